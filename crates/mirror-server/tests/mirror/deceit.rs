//! A hostile mirror over real HTTP: whatever it says to whatever was asked, the reader refuses it with the right word.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use counterfoil_mirror::wire::Standing;
use counterfoil_proof::Scheme;
use counterfoil_reader::{Error, Memory, Terms, place_of};

use crate::between::Rule;
use crate::court::{Court, Kind, is_full};
use crate::mixed::Mixed;
use crate::states::{STATES, State};
use crate::told::Told;
use crate::tricks::{Play, TRICKS};
use crate::world::Dice;

/// The verdict in one word, whichever part of it noticed.
pub fn word(error: &Error) -> &'static str {
    match error {
        Error::Refused(refusal) => refusal.word(),
        Error::Damaged(..) => "malformed",
        Error::Withheld(_) => "withheld",
        Error::Moving(last) => word(last),
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

/// Lies that were told of each kind of question, whatever the scheme.
type Tried = BTreeMap<&'static str, BTreeSet<&'static str>>;

/// Tells each lie about a question; gives what was not refused with the right word.
fn lied_to(court: &Court, scheme: Scheme, kind: &Kind, hints: bool, tried: &mut Tried) -> Vec<String> {
    let (kind, sql, table) = *kind;
    let mut wrong = Vec::new();
    let terms = Terms { hints, ..court.terms() };
    let ask = || court.asked(sql, &terms, &mut [None, None]);
    court.between.be_honest();
    let honest = ask().unwrap_or_else(|error| panic!("{scheme:?}, {kind}, honest: {error}"));
    for (name, expected, play) in TRICKS {
        let played = Arc::default();
        court.between.lie(lying(court, table, *play, &played));
        let told = ask();
        if *played.lock().expect("a count") == 0 {
            assert!(told.is_ok_and(|told| told == honest), "{scheme:?}, {kind}: an honest answer");
            continue;
        }
        let wrongly = match told {
            Ok(told) => Some(format!("taken, and the same rows: {}", told.0 == honest.0)),
            // Where a hint is that of something else, that is what is seen first.
            Err(error) if hints && error.to_string().starts_with("malformed: a hint") => None,
            Err(error) if word(&error) == *expected => None,
            Err(error) => Some(format!("{error}, and not {expected}")),
        };
        wrong.extend(wrongly.map(|wrongly| format!("{scheme:?}, {kind}, {name}: {wrongly}")));
        tried.entry(kind).or_default().insert(name);
    }
    wrong
}

#[test]
fn every_lie_in_an_answer_to_every_kind_of_question_is_refused_with_the_right_word() {
    let mut all = BTreeSet::new();
    let mut wrong = Vec::new();
    for (scheme, court) in Court::all() {
        let mut tried = Tried::new();
        for kind in &court.kinds {
            for hints in [false, true] {
                wrong.extend(lied_to(&court, scheme, kind, hints, &mut tried));
            }
        }
        for (kind, names) in tried {
            println!("{scheme:?}, {kind}: {} lies", names.len());
            assert!(names.len() >= 15, "{scheme:?}, {kind}: only {names:?}");
            all.extend(names);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let never: Vec<&str> = TRICKS.iter().map(|trick| trick.0).filter(|name| !all.contains(name)).collect();
    assert!(never.is_empty(), "never played: {never:?}");
}

/// Says of each table what `of` makes of it.
fn mixing(court: &Court, of: impl Fn(&str) -> Mixed) -> Rule {
    let tables: Vec<(String, Mixed)> =
        court.stocks.keys().map(|table| (format!("/{}", place_of(&court.owner, table)), of(table))).collect();
    Box::new(move |path, question, _| {
        tables.iter().find_map(|(place, mixed)| mixed.served(path.strip_prefix(&place[..])?, question))
    })
}

fn taken(court: &Court, sql: &str, terms: &Terms, memory: &mut [Option<Memory>; 2]) -> Option<&'static str> {
    court.asked(sql, terms, memory).err().map(|error| word(&error))
}

#[test]
fn manifests_heads_and_summaries_of_other_moments_are_refused_and_nothing_of_them_is_remembered() {
    let mut wrong = Vec::new();
    for (scheme, court) in Court::some() {
        for (kind, sql, table) in &court.kinds {
            court.between.be_honest();
            let mut known = [None, None];
            court.asked(sql, &court.terms(), &mut known).expect("honest");
            let remembered = known.clone();
            for State { name, known: expected, fresh, make, .. } in
                STATES.iter().filter(|state| *table != "nothing" || !state.is_change)
            {
                court.between.lie(mixing(&court, |table| {
                    let mut mixed = Mixed::of(&court.today[table]);
                    court.mix(table, &mut mixed, *make);
                    mixed
                }));
                let told = [&mut known, &mut [None, None]].map(|memory| taken(&court, sql, &court.terms(), memory));
                assert!(known == remembered, "{scheme:?}, {kind}, {name}: what was refused is remembered");
                if told != [*expected, *fresh] {
                    wrong.push(format!("{scheme:?}, {kind}, {name}: {told:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn clocks_ages_and_other_tables() {
    for (_, court) in Court::some() {
        for (kind, sql, table) in &court.kinds {
            let refused = |terms: Terms| taken(&court, sql, &terms, &mut [None, None]);
            assert_eq!(refused(court.terms()), None);
            let back = Terms { now: court.now - 100, ..court.terms() };
            assert_eq!(refused(back), Some("clock"), "{kind}: a clock set back");
            let old = Terms { now: court.now + 500, max_age: 400, ..court.terms() };
            assert_eq!(refused(old), Some("stale"), "{kind}");
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
}

/// Files of the mirror, each with a byte changed: refused, or the same rows, as of no later moment.
#[test]
fn any_byte_of_whatever_is_served_changed_is_refused_or_changes_no_row() {
    let mut dice = Dice(17);
    let (mut refused, mut same) = (0, 0);
    for (scheme, court) in Court::all() {
        for (kind, sql, _) in &court.kinds {
            court.between.be_honest();
            let honest = court.ask(sql).expect("honest");
            for (file, bytes) in files(&court, sql) {
                for at in sampled(bytes, &mut dice) {
                    turn_a_bit(&court, &file, at, 1 << dice.below(8));
                    match court.ask(sql) {
                        Err(_) => refused += 1,
                        Ok((rows, verdict)) => {
                            same += 1;
                            assert!(rows == honest.0, "{scheme:?}, {kind}: byte {at} of {file}");
                            assert!(verdict.as_of <= honest.1.as_of && verdict.age >= honest.1.age);
                        }
                    }
                }
            }
        }
    }
    println!("{refused} refused, {same} the same");
    // Of the summaries those that are older than any signature are not looked at.
    assert!(refused > 4 * same);
}

/// Places in a file of so many bytes.
fn sampled(bytes: usize, dice: &mut Dice) -> Vec<usize> {
    match is_full() {
        true if bytes <= 4000 => (0..bytes).collect(),
        true => (0..2000).map(|_| dice.below(bytes as u64) as usize).collect(),
        false => (0..6).map(|_| dice.below(bytes as u64) as usize).collect(),
    }
}

fn turn_a_bit(court: &Court, file: &str, at: usize, bit: u8) {
    let file = file.to_string();
    court.between.lie(Box::new(move |path, _, honest| {
        let mut honest = honest?;
        if path == file {
            honest[at] ^= bit;
        }
        Some(honest)
    }));
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
