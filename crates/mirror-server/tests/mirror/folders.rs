//! A hostile folder: files that any web server could serve, in which readers look for their answer themselves. Whatever is in it,
//! they refuse it with the right word, or find what the owner has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use counterfoil_proof::{Scheme, Value};
use counterfoil_reader::{Error, Memory, Terms, place_of, read, read_join};

use crate::court::{Court, Kind, is_full};
use crate::deceit::word;
use crate::files::Files;
use crate::mixed::Mixed;
use crate::spoiled::{SPOILT, Spoil};
use crate::states::STATES;
use crate::told::Told;

type Rows = Vec<Vec<Value>>;

fn ask(files: &Files, sql: &str, terms: &Terms, memory: &mut [Option<Memory>; 2]) -> Result<Rows, Error> {
    let (mut one, mut other) = (files.clone(), files.clone());
    let [first, second] = memory;
    if sql.contains(" JOIN ") {
        read_join(&mut one, &mut other, sql, terms, [first, second]).map(|reading| reading.table.rows)
    } else {
        read(&mut one, sql, terms, first).map(|reading| reading.table.rows)
    }
}

/// All tables of a court, each as it is made of what it is today.
fn written(court: &Court, make: impl Fn(&str, &mut Mixed)) -> Files {
    let mut files = Files::default();
    for (table, today) in &court.today {
        let mut mixed = Mixed::of(today);
        make(table, &mut mixed);
        mixed.write(&mut files, &place_of(&court.owner, table));
    }
    files
}

/// The honest answer of a program about the table that is lied about.
fn told(court: &Court, (_, sql, table): &Kind, terms: &Terms) -> Option<Told> {
    let (stock, found) = (court.stocks[table].clone(), Arc::<Mutex<Option<Told>>>::default());
    let (noted, asked) = (found.clone(), format!("/{}answer", place_of(&court.owner, table)));
    court.between.lie(Box::new(move |path, question, honest| {
        if path == asked {
            let told = honest.as_deref().map(|honest| Told::of(&stock.definition, question, honest));
            *noted.lock().expect("an answer") = told;
        }
        honest
    }));
    court.asked(sql, terms, &mut [None, None]).expect("honest");
    court.between.be_honest();
    found.lock().expect("an answer").take()
}

/// A folder with a spoilt table; none where there is nothing to be spoilt.
fn spoilt(court: &Court, honest: &Files, table: &str, told: &Told, spoil: Spoil) -> Option<Files> {
    let (mut files, mut mixed) = (honest.clone(), Mixed::of(&court.today[table]));
    spoil(&mut mixed.shelf, &mut told.clone(), &court.stocks[table])?;
    // Nothing is refused for want of a summary.
    mixed.standing.first = mixed.shelf.oldest().min(mixed.standing.last);
    mixed.write(&mut files, &place_of(&court.owner, table));
    Some(files)
}

type Tried = BTreeMap<&'static str, BTreeSet<&'static str>>;

fn spoilt_each(court: &Court, scheme: Scheme, kind: &Kind, hints: bool, tried: &mut Tried) -> Vec<String> {
    let terms = Terms { hints, ..court.terms() };
    let (name, sql, table) = *kind;
    let told = told(court, kind, &terms).expect("an answer");
    let files = written(court, |_, _| ());
    let honest =
        ask(&files, sql, &terms, &mut [None, None]).unwrap_or_else(|error| panic!("{scheme:?}, {name}: {error}"));
    let mut wrong = Vec::new();
    for (spoil_name, expected, spoil) in SPOILT {
        let Some(files) = spoilt(court, &files, table, &told, *spoil) else { continue };
        let wrongly = match ask(&files, sql, &terms, &mut [None, None]) {
            Ok(rows) => Some(format!("taken, and the same rows: {}", rows == honest)),
            // Where a hint is that of something else, that is what is seen first.
            Err(error) if hints && error.to_string().starts_with("malformed: a hint") => None,
            Err(error) if word(&error) == *expected => None,
            Err(error) => Some(format!("{error}, and not {expected}")),
        };
        wrong.extend(wrongly.map(|wrongly| format!("{scheme:?}, {name}, {spoil_name}: {wrongly}")));
        tried.entry(name).or_default().insert(spoil_name);
    }
    wrong
}

#[test]
fn a_spoilt_table_in_a_folder_is_refused_with_the_right_word() {
    let (mut all, mut wrong) = (BTreeSet::new(), Vec::new());
    for (scheme, court) in Court::all() {
        let mut tried = Tried::new();
        for (at, kind) in court.kinds.iter().enumerate() {
            // At the reduced size half of them with hints: those are seen to be wrong first, where something else is.
            for hints in [false, true].into_iter().filter(|hints| is_full() || *hints == (at % 2 == 1)) {
                wrong.extend(spoilt_each(&court, scheme, kind, hints, &mut tried));
            }
        }
        for (kind, names) in tried {
            println!("{scheme:?}, {kind}: {} ways", names.len());
            assert!(names.len() >= 6, "{scheme:?}, {kind}: only {names:?}");
            all.extend(names);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let never: Vec<&str> = SPOILT.iter().map(|spoil| spoil.0).filter(|name| !all.contains(name)).collect();
    assert!(never.is_empty(), "never tried: {never:?}");
}

#[test]
fn folders_of_other_moments_are_refused_and_nothing_of_them_is_remembered() {
    let mut wrong = Vec::new();
    for (scheme, court) in Court::some() {
        let (honest, terms) = (written(&court, |_, _| ()), court.terms());
        for state in STATES {
            let files = written(&court, |table, mixed| court.mix(table, mixed, state.make));
            for (kind, sql, _) in court.kinds.iter().filter(|kind| kind.2 != "nothing" || !state.is_change) {
                let mut known = [None, None];
                ask(&honest, sql, &terms, &mut known).expect("honest");
                let remembered = known.clone();
                let told = [&mut known, &mut [None, None]];
                let told = told.map(|memory| ask(&files, sql, &terms, memory).err().map(|error| word(&error)));
                assert!(known == remembered, "{scheme:?}, {kind}, {}: what was refused is remembered", state.name);
                if told != [state.known, state.fresh] {
                    wrong.push(format!("{scheme:?}, {kind}, {}: {told:?}", state.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Pages are found by their hashes: what is not there, or is another one, is no row less.
#[test]
fn pages_that_are_missing_exchanged_or_of_another_tree_are_refused() {
    for (scheme, court) in Court::some() {
        let honest = written(&court, |_, _| ());
        for (kind, sql, table) in &court.kinds {
            let place = place_of(&court.owner, table);
            let refused =
                |files: &Files| ask(files, sql, &court.terms(), &mut [None, None]).err().map(|error| word(&error));
            let pages = honest.pages(&place);
            let mut missing = honest.clone();
            pages.iter().for_each(|page| drop(missing.remove(page)));
            assert_eq!(refused(&missing), Some("withheld"), "{scheme:?}, {kind}");
            let mut exchanged = honest.clone();
            for (page, other) in pages.iter().zip(pages.iter().cycle().skip(1)) {
                let bytes = honest.clone().remove(other).expect("a page");
                exchanged.put(page.clone(), bytes);
            }
            assert_eq!(refused(&exchanged), Some("malformed"), "{scheme:?}, {kind}");
            // Totals of no row take nodes alone.
            if *kind != "totals of an empty table" {
                let mut trees = honest.clone();
                trees.exchange_trees(&place, 0, 1);
                assert!(refused(&trees).is_some(), "{scheme:?}, {kind}");
            }
        }
    }
}

/// Whatever byte of a page it is, also one of which nothing in the answer would be made.
#[test]
fn pages_of_other_bytes_than_their_names_say_are_refused() {
    for (scheme, court) in Court::some() {
        let (honest, terms) = (written(&court, |_, _| ()), Terms { hints: false, ..court.terms() });
        for (kind, sql, table) in &court.kinds {
            let refused = |files: &Files| ask(files, sql, &terms, &mut [None, None]).err().map(|error| word(&error));
            let mut read = 0;
            for page in honest.pages(&place_of(&court.owner, table)) {
                let mut spoilt = honest.clone();
                let mut bytes = spoilt.remove(&page).expect("a page");
                // A page that nobody looks for is nobody's trouble.
                if refused(&spoilt).is_none() {
                    continue;
                }
                *bytes.last_mut().expect("a byte") ^= 1;
                spoilt.put(page.clone(), bytes);
                assert_eq!(refused(&spoilt), Some("malformed"), "{scheme:?}, {kind}, {page}");
                read += 1;
            }
            assert!(read > 0, "{scheme:?}, {kind}: no page is read");
        }
    }
}
