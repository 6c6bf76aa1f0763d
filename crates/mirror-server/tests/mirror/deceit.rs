//! A hostile mirror over real HTTP: whatever it says to whatever was asked, the reader refuses it with the right word.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use counterfoil_mirror::wire::Standing;
use counterfoil_mirror::{MemoryShelf, reply};
use counterfoil_proof::bytes::Writer;
use counterfoil_reader::{Error, Memory, Terms, place_of};

use crate::between::Rule;
use crate::court::{Court, KINDS, Moment};
use crate::told::Told;
use crate::tricks::{Play, TRICKS};
use crate::world::Dice;

/// The verdict in one word, whichever part of it noticed.
fn word(error: &Error) -> &'static str {
    match error {
        Error::Refused(refusal) => refusal.word(),
        Error::Damaged(..) => "malformed",
        Error::Withheld(_) => "withheld",
        Error::NoTable(_) => "no table",
        Error::Sql(_) => "no such table",
        _ => "another error",
    }
}

/// Answers about a table as a trick makes them; how often there was something to lie about.
fn lying(court: &Court, table: &'static str, play: Play, played: &Arc<Mutex<usize>>) -> Rule {
    let (stock, played) = (court.stocks[table].clone(), played.clone());
    let (place, last) = (format!("/{}", place_of(&court.owner, table)), court.today[table].standing.last);
    Box::new(move |asked, question, honest| {
        let honest = honest?;
        match asked.strip_prefix(&place[..]) {
            Some("answer") => {}
            // With all summaries that there are, so that nothing is refused for want of one.
            Some("head") => return Some(Standing { last, first: 0 }.to_bytes()),
            _ => return Some(honest),
        }
        let Some(lie) = play(Told::of(&stock.definition, question, &honest), &stock) else { return Some(honest) };
        *played.lock().expect("a count") += 1;
        Some(lie)
    })
}

#[test]
fn every_lie_in_an_answer_to_every_kind_of_question_is_refused_with_the_right_word() {
    let court = Court::new();
    let mut tried: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (kind, sql, table) in KINDS {
        for hints in [false, true] {
            let terms = Terms { hints, ..court.terms() };
            let ask = || court.asked(sql, &terms, &mut [None, None]);
            court.between.be_honest();
            let honest = ask().unwrap_or_else(|error| panic!("{kind}, honest: {error}"));
            for (name, expected, play) in TRICKS {
                let played = Arc::default();
                court.between.lie(lying(&court, table, *play, &played));
                let told = ask();
                if *played.lock().expect("a count") == 0 {
                    assert!(told.is_ok_and(|told| told == honest), "{kind}: an honest answer");
                    continue;
                }
                match told {
                    Ok(told) => wrong.push(format!("{kind}, {name}: taken, and the same rows: {}", told.0 == honest.0)),
                    // Where a hint is that of something else, that is what is seen first.
                    Err(error) if hints && error.to_string().starts_with("malformed: a hint") => {}
                    Err(error) if word(&error) == *expected => {}
                    Err(error) => wrong.push(format!("{kind}, {name}: {error}, and not {expected}")),
                }
                tried.entry(kind).or_default().insert(name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (kind, names) in &tried {
        println!("{kind}: {} lies", names.len());
        assert!(names.len() >= 15, "{kind}: only {names:?}");
    }
    let all: BTreeSet<&str> = tried.into_values().flatten().collect();
    let never: Vec<&str> = TRICKS.iter().map(|trick| trick.0).filter(|name| !all.contains(name)).collect();
    assert!(never.is_empty(), "never played: {never:?}");
}

/// A mirror that serves what moments say, each file by its own.
#[derive(Clone)]
struct Mixed {
    manifest: Vec<u8>,
    summaries: Vec<Vec<u8>>,
    standing: Standing,
    shelf: MemoryShelf,
}

impl Mixed {
    fn of(moment: &Moment) -> Self {
        let Moment { manifest, summaries, standing, shelf } = moment.clone();
        Self { manifest, summaries, standing, shelf }
    }

    fn served(&self, file: &str, question: &[u8]) -> Option<Vec<u8>> {
        match file {
            "manifest" => Some(self.manifest.clone()),
            "head" => Some(self.standing.to_bytes()),
            "answer" => reply(&mut self.shelf.clone(), question).ok(),
            "summaries/0" => {
                let mut writer = Writer::default();
                self.summaries.iter().for_each(|summary| {
                    writer.string(summary);
                });
                Some(writer.0)
            }
            _ => None,
        }
    }
}

/// Says of each table what `of` makes of it.
fn mixing(court: &Court, of: impl Fn(&str) -> Mixed) -> Rule {
    let tables: Vec<(String, Mixed)> =
        court.stocks.keys().map(|table| (format!("/{}", place_of(&court.owner, table)), of(table))).collect();
    Box::new(move |path, question, _| {
        tables.iter().find_map(|(place, mixed)| mixed.served(path.strip_prefix(&place[..])?, question))
    })
}

struct State {
    name: &'static str,
    /// What a reader says that was there today, and one that comes for the first time; nothing: it takes the rows.
    known: Option<&'static str>,
    fresh: Option<&'static str>,
    /// Whether there is nothing to notice where the table did not change.
    is_change: bool,
    make: fn(&mut Mixed, &Moment, &Moment, &Moment),
}

/// Manifests, heads and summaries of other moments: what is told, by today's, that moment's, and a fork of it.
const STATES: &[State] = &[
    State {
        name: "all of before",
        known: Some("stale"),
        fresh: None,
        is_change: false,
        make: |told, _, then, _| *told = Mixed::of(then),
    },
    State {
        name: "the manifest of before",
        known: Some("stale"),
        fresh: Some("forged"),
        is_change: false,
        make: |told, _, then, _| told.manifest = then.manifest.clone(),
    },
    State {
        name: "summaries that end before",
        known: Some("stale"),
        fresh: Some("malformed"),
        is_change: true,
        make: |told, _, then, _| (told.summaries, told.standing) = (then.summaries.clone(), then.standing),
    },
    State {
        name: "a summary that is missing",
        known: Some("incomplete"),
        fresh: Some("incomplete"),
        is_change: false,
        make: |told, _, _, _| {
            told.summaries.remove(2);
            told.standing.last -= 1;
        },
    },
    State {
        name: "a summary told again as the next one",
        known: Some("incomplete"),
        fresh: Some("incomplete"),
        is_change: false,
        make: |told, _, _, _| told.summaries[3] = told.summaries[2].clone(),
    },
    State {
        name: "two summaries exchanged",
        known: Some("incomplete"),
        fresh: Some("incomplete"),
        is_change: false,
        make: |told, _, _, _| told.summaries.swap(4, 5),
    },
    State {
        name: "a summary of another history",
        known: Some("forged"),
        fresh: Some("forged"),
        is_change: true,
        make: |told, _, _, fork| told.summaries[3] = fork.summaries[3].clone(),
    },
    State {
        name: "all of another history",
        known: Some("forged"),
        fresh: None,
        is_change: false,
        make: |told, _, _, fork| *told = Mixed::of(fork),
    },
    State {
        name: "a head that begins too late",
        known: Some("incomplete"),
        fresh: Some("incomplete"),
        is_change: false,
        make: |told, _, _, _| told.standing.first = told.standing.last,
    },
    State {
        name: "a byte of a summary",
        known: Some("forged"),
        fresh: Some("forged"),
        is_change: false,
        make: |told, _, _, _| told.summaries[3][50] ^= 1,
    },
];

fn taken(court: &Court, sql: &str, terms: &Terms, memory: &mut [Option<Memory>; 2]) -> Option<&'static str> {
    court.asked(sql, terms, memory).err().map(|error| word(&error))
}

#[test]
fn manifests_heads_and_summaries_of_other_moments_are_refused_and_nothing_of_them_is_remembered() {
    let court = Court::new();
    let mut wrong = Vec::new();
    for (kind, sql, table) in KINDS {
        court.between.be_honest();
        let mut known = [None, None];
        court.asked(sql, &court.terms(), &mut known).expect("honest");
        let remembered = known.clone();
        for State { name, known: expected, fresh, make, .. } in
            STATES.iter().filter(|state| *table != "nothing" || !state.is_change)
        {
            court.between.lie(mixing(&court, |table| {
                let mut mixed = Mixed::of(&court.today[table]);
                make(&mut mixed, &court.today[table], &court.then[table], &court.fork[table]);
                mixed
            }));
            let told = [&mut known, &mut [None, None]].map(|memory| taken(&court, sql, &court.terms(), memory));
            assert!(known == remembered, "{kind}, {name}: what was refused is remembered");
            if told != [*expected, *fresh] {
                wrong.push(format!("{kind}, {name}: {told:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn clocks_ages_and_other_tables() {
    let court = Court::new();
    for (kind, sql, table) in KINDS {
        let refused = |terms: Terms| taken(&court, sql, &terms, &mut [None, None]);
        assert_eq!(refused(court.terms()), None);
        assert_eq!(refused(Terms { now: court.now - 100, ..court.terms() }), Some("clock"), "{kind}: a clock set back");
        assert_eq!(refused(Terms { now: court.now + 500, max_age: 400, ..court.terms() }), Some("stale"), "{kind}");
        assert_eq!(refused(Terms { now: 1 << 50, ..court.terms() }), Some("stale"), "{kind}: keys have expired");
        // The table of another name, and the name of another owner, in this one's place.
        let (place, twin) = (format!("/{}", place_of(&court.owner, table)), Mixed::of(&court.today["firms"]));
        court.between.lie(Box::new(move |path, question, honest| match path.strip_prefix(&place[..]) {
            Some(file) => twin.served(file, question),
            None => honest,
        }));
        assert_eq!(refused(court.terms()), Some("no such table"), "{kind}");
        court.between.be_honest();
    }
}

/// Files of the mirror, each with a byte changed: refused, or the same rows, as of no later moment.
#[test]
fn any_byte_of_whatever_is_served_changed_is_refused_or_changes_no_row() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full");
    let court = Court::new();
    let mut dice = Dice(17);
    let (mut refused, mut same) = (0, 0);
    for (kind, sql, _) in KINDS {
        court.between.be_honest();
        let honest = court.ask(sql).expect("honest");
        for (file, bytes) in files(&court, sql) {
            let sampled: Vec<usize> = match full {
                true if bytes <= 4000 => (0..bytes).collect(),
                true => (0..2000).map(|_| dice.below(bytes as u64) as usize).collect(),
                false => (0..6).map(|_| dice.below(bytes as u64) as usize).collect(),
            };
            for at in sampled {
                let turned = 1 << dice.below(8);
                let file = file.clone();
                let name = file.clone();
                court.between.lie(Box::new(move |path, _, honest| {
                    let mut honest = honest?;
                    if path == file {
                        honest[at] ^= turned;
                    }
                    Some(honest)
                }));
                match court.ask(sql) {
                    Err(_) => refused += 1,
                    Ok((rows, verdict)) => {
                        same += 1;
                        assert!(rows == honest.0, "{kind}: byte {at} of {name}");
                        assert!(verdict.as_of <= honest.1.as_of && verdict.age >= honest.1.age);
                    }
                }
            }
        }
    }
    println!("{refused} refused, {same} the same");
    assert!(refused > 10 * same);
}

/// Which files a question takes, and how long they are.
fn files(court: &Court, sql: &str) -> Vec<(String, usize)> {
    let found: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let noted = found.clone();
    court.between.lie(Box::new(move |path, _, honest| {
        let honest = honest?;
        noted.lock().expect("files").insert(path.into(), honest.len());
        Some(honest)
    }));
    court.ask(sql).expect("honest");
    court.between.be_honest();
    let found = std::mem::take(&mut *found.lock().expect("files"));
    found.into_iter().collect()
}
