//! What every scheme must do: honest answers are whole, and nothing else is believed.

use super::bas::Bas;
use super::condensed::Chained;
use super::embedded::Embedded;
use super::{Keys, RECORD, Reader as _, Record, Scheme, key_of, record};

const RECORDS: u32 = 60;

fn numbers(records: &[Record]) -> Vec<u32> {
    records.iter().map(key_of).map(|key| key / 2).collect()
}

fn whole_answers(scheme: &impl Scheme) {
    let reader = scheme.reader().expect("a reader");
    for keys in [0..=0, 1..=1, 0..=9, 41..=41, 40..=60, 117..=118, 118..=500, 119..=119, 200..=300, 0..=u32::MAX >> 1] {
        let wanted: Vec<Record> = (0..RECORDS).map(|number| record(number, 0)).collect();
        let wanted: Vec<Record> = wanted.into_iter().filter(|record| keys.contains(&key_of(record))).collect();
        let answer = scheme.answer(keys.clone()).expect("an answer");
        let found = reader.check(keys.clone(), &answer).unwrap_or_else(|| panic!("{keys:?} is refused"));
        assert!(found == wanted, "{keys:?}: {:?} and not {:?}", numbers(&found), numbers(&wanted));
    }
}

/// Every byte counts, and no answer is one to another question.
fn tampered_answers(scheme: &impl Scheme) {
    let (reader, keys): (_, Keys) = (scheme.reader().expect("a reader"), 40..=46);
    let answer = scheme.answer(keys.clone()).expect("an answer");
    for at in 0..answer.len() {
        let mut wrong = answer.clone();
        wrong[at] ^= 1 << (at % 8);
        assert!(reader.check(keys.clone(), &wrong).is_none(), "byte {at} of {}", answer.len());
        assert!(reader.check(keys.clone(), &answer[..at]).is_none(), "the first {at} bytes");
    }
    // A row dropped at either end: the answer of fewer keys, told to be that of more.
    for fewer in [42..=46, 40..=44, 42..=44] {
        let part = scheme.answer(fewer).expect("an answer");
        assert!(reader.check(keys.clone(), &part).is_none(), "a row is missing");
    }
    // Wherever a row's bytes are, it is not to be cut out.
    let row = record(21, 0);
    let place = answer.windows(RECORD - 4).position(|part| part == &row[4..]);
    if let Some(place) = place {
        for (from, to) in [(place - 4, place + 508), (place - 12, place + 508), (place - 5, place + 508)] {
            let cut = [&answer[..from], &answer[to..]].concat();
            assert!(reader.check(keys.clone(), &cut).is_none(), "a row is cut out");
        }
    }
}

fn stale_answers(scheme: &impl Scheme) {
    let keys: Keys = 40..=46;
    let before = scheme.answer(keys.clone()).expect("an answer");
    scheme.update(&[record(21, 1)]).expect("an update");
    let now = scheme.answer(keys.clone()).expect("an answer");
    scheme.end_period().expect("a period");
    let later = scheme.answer(keys.clone()).expect("an answer");
    let reader = scheme.reader().expect("a reader");
    assert!(reader.check(keys.clone(), &before).is_none(), "a row of before its update");
    let found = reader.check(keys.clone(), &later).expect("an honest answer");
    assert!(found[1] == record(21, 1) && found[2] == record(22, 0));
    // Twice in one period: the version in between is stale, too.
    scheme.update(&[record(21, 2)]).expect("an update");
    let between = scheme.answer(keys.clone()).expect("an answer");
    scheme.update(&[record(21, 3)]).expect("an update");
    scheme.end_period().expect("a period");
    let reader = scheme.reader().expect("a reader");
    for old in [before, now, later, between] {
        assert!(reader.check(keys.clone(), &old).is_none());
    }
    let answer = scheme.answer(keys.clone()).expect("an answer");
    assert!(reader.check(keys, &answer).expect("an honest answer")[1] == record(21, 3));
}

/// An update of many records changes all of them and no other.
fn many_records(scheme: &impl Scheme) {
    let (all, changed): (Keys, _) = (0..=2 * RECORDS, [0..1, 3..45, 50..60]);
    let before = scheme.answer(all.clone()).expect("an answer");
    let old = scheme.reader().expect("a reader").check(all.clone(), &before).expect("an honest answer");
    let records: Vec<Record> = changed.iter().cloned().flatten().map(|number| record(number, 9)).collect();
    scheme.update(&records).expect("an update");
    scheme.end_period().expect("a period");
    let reader = scheme.reader().expect("a reader");
    assert!(reader.check(all.clone(), &before).is_none(), "rows of before their update");
    let found = reader.check(all.clone(), &scheme.answer(all).expect("an answer")).expect("an honest answer");
    for (number, found) in (0..).zip(&found) {
        let is_changed = changed.iter().any(|part| part.contains(&number));
        assert!(*found == if is_changed { record(number, 9) } else { old[number as usize] }, "{number}");
    }
    assert!(found.len() == old.len());
}

fn all(scheme: &impl Scheme) {
    whole_answers(scheme);
    tampered_answers(scheme);
    stale_answers(scheme);
    many_records(scheme);
}

#[test]
fn signatures_that_add_up_are_believed_for_what_the_owner_has_and_nothing_else() {
    all(&Bas::load(RECORDS, false).expect("a table"));
    all(&Bas::load(RECORDS, true).expect("a table"));
}

#[test]
fn the_embedded_tree_is_believed_for_what_the_owner_has_and_nothing_else() {
    all(&Embedded::load(RECORDS).expect("a table"));
}

#[test]
fn condensed_signatures_are_believed_for_what_the_owner_has_and_nothing_else() {
    let scheme = Chained::load(RECORDS).expect("a table");
    scheme.journal().switch(true);
    all(&scheme);
}
