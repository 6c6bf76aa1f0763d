//! What clouds see of all that happens to a table: changes, moves, repairs, what they are told of the catalogue. Of two tables of the same
//! leakage they see the same, and of each what follows from what is said to be learned.

use std::collections::BTreeSet;

use counterfoil_disperse::fragments::{Data, Name};
use counterfoil_disperse::{Condition, Declaration, Distribution, Goal, Operations};

use crate::ledger::{
    ALL, CITY, GRADE, ID, NAME, NOTE, PHOTO, RATE, SALARY, TOTAL, drawn, ledger, questions, twin_questions, twins,
};
use crate::owner::{Line, Owner};
use crate::random::Random;
use crate::simulated::{alike, coalitions, facts, is_full, real, simulated};
use crate::watching::Event;

/// Lines and questions: what differs between two owners who do the same.
#[derive(Clone)]
struct Lines {
    lines: Vec<Line>,
    questions: Vec<Condition>,
}

/// What was not seen yet of lines is taken from here on.
struct Given {
    all: Lines,
    taken: usize,
}

impl Given {
    fn lines(&mut self, count: usize) -> Vec<Line> {
        self.taken += count;
        self.all.lines[self.taken - count..self.taken].to_vec()
    }
}

/// Two owners do the same with other values of the same leakage, and under other keys. Each coalition sees the same of both, and that is
/// made of what it is said to learn.
fn same(declaration: &Declaration, flow: impl Fn(&mut Owner, &mut Given)) -> [Owner; 2] {
    let lines = drawn(&mut Random(11), if is_full() { 400 } else { 120 });
    let questions = questions(&lines);
    let twins = Lines { lines: twins(&lines), questions: twin_questions(&questions) };
    let run = |seed, all: Lines| {
        let (mut owner, mut given) = (Owner::new(seed, declaration.clone()), Given { all, taken: 0 });
        flow(&mut owner, &mut given);
        owner
    };
    let (one, other) = (run(1, Lines { lines, questions }), run(2, twins));
    for coalition in coalitions(&one) {
        let whose = format!("{coalition:?}");
        let known = facts(&one, &coalition);
        for (layout, others) in facts(&other, &coalition) {
            others.iter().for_each(|(column, of)| assert_eq!(known[&layout][column], *of, "column {column} of both"));
        }
        let seen = real(&one, &coalition);
        alike(&seen, &real(&other, &coalition), &whose);
        alike(&seen, &simulated(&one, &coalition, &known), &whose);
    }
    [one, other]
}

fn rows() -> usize {
    if is_full() { 100 } else { 40 }
}

#[test]
fn changes_say_when_they_come_and_which_rows_they_are_of() {
    same(&ledger((3, 1, 1)), |owner, given| {
        let rows = owner.insert(&given.lines(rows()));
        owner.tell();
        owner.delete(&rows[1..6]);
        owner.update(&rows[8..9], &given.lines(1));
        owner.update(&rows[10..16], &given.lines(6));
        owner.tell();
        owner.update(&rows[9..10], &given.lines(1));
        owner.delete(&rows[17..18]);
        owner.tell();
        given.all.questions.iter().for_each(|question| owner.ask(question, &[NOTE, PHOTO]));
    });
}

#[test]
fn who_wants_it_certain_asks_all_and_says_no_more() {
    same(&ledger((3, 1, 1)), |owner, given| {
        owner.insert(&given.lines(rows()));
        let certain = Goal::Reliability(None);
        given.all.questions.iter().for_each(|question| owner.ask_for(certain, question, &ALL));
        owner.sum_for(certain, SALARY, true);
        owner.sum_for(certain, TOTAL, false);
    });
}

#[test]
fn refresh_says_which_rows_move_at_the_same_time_and_nothing_else() {
    let declaration = ledger((3, 1, 1));
    let owners = same(&declaration, |owner, given| {
        let rows = owner.insert(&given.lines(rows()));
        owner.tell();
        owner.ask(&given.all.questions[3].clone(), &ALL);
        owner.begin(declaration.clone());
        owner.move_some(7);
        // Whoever asks in between asks both; who changes something changes it where it lies.
        given.all.questions[..12].iter().for_each(|question| owner.ask(question, &ALL));
        owner.delete(&rows[5..9]);
        owner.insert(&given.lines(3));
        owner.relay(declaration.clone(), 7);
        given.all.questions.iter().for_each(|question| owner.ask(question, &ALL));
        owner.sum(SALARY, true);
        owner.sum(TOTAL, false);
    });
    owners.iter().for_each(nothing_comes_again);
}

#[test]
fn rows_that_move_leave_nothing_by_which_they_are_known() {
    let declaration = ledger((3, 1, 1));
    let owners = same(&declaration, |owner, given| {
        owner.insert(&given.lines(rows()));
        owner.tell();
        // Both lie there: what they have in common is seen best now.
        owner.begin(declaration.clone());
        while owner.move_some(9) {}
    });
    owners.iter().for_each(nothing_comes_again);
}

/// Nothing that lies in one layout lies in another one.
fn nothing_comes_again(owner: &Owner) {
    for cloud in owner.clouds() {
        let mut seen: Vec<(Name, BTreeSet<Vec<u8>>)> = Vec::new();
        for event in owner.seen(cloud).events {
            let Event::Put(table, put) = event else { continue };
            let mut marks: BTreeSet<Vec<u8>> = put.places.iter().map(|place| place.to_be_bytes().to_vec()).collect();
            for (name, data) in &put.columns {
                marks.insert(name.as_str().as_bytes().to_vec());
                match data {
                    Data::Shares(shares) => marks.extend(shares.iter().map(|share| share.to_be_bytes().to_vec())),
                    Data::Strings(strings) => {
                        let blocks = strings.iter().flat_map(|string| string.as_chunks::<16>().0);
                        marks.extend(blocks.map(|block| block.to_vec()));
                    }
                }
            }
            assert!(seen.iter().all(|(other, of)| *other == table || of.is_disjoint(&marks)), "{cloud}");
            seen.push((table, marks));
        }
        assert!(seen.len() > 2);
    }
}

#[test]
fn a_move_to_other_clouds_and_codings_says_no_more_than_where_it_leads() {
    let declaration = ledger((4, 1, 2));
    let mut other = declaration.clone();
    // One cloud is left and another one comes; codings change, cells lie otherwise.
    other.clouds = ["e", "b", "d", "c"].map(str::to_owned).to_vec();
    other.columns[usize::from(NOTE)].distribution = Distribution::Dispersed;
    other.columns[usize::from(PHOTO)].distribution = Distribution::Replicated;
    other.columns[usize::from(RATE)].operations = Operations::default();
    other.columns[usize::from(CITY)].operations = Operations { prefix: true, range: true, ..Operations::default() };
    other.columns[usize::from(GRADE)].operations = Operations { equality: true, sum: true, ..Operations::default() };
    same(&declaration, |owner, given| {
        owner.insert(&given.lines(rows()));
        owner.tell();
        given.all.questions[..6].iter().for_each(|question| owner.ask(question, &[ID, NAME]));
        owner.relay(other.clone(), 9);
        owner.insert(&given.lines(2));
        owner.tell();
        given.all.questions.iter().for_each(|question| owner.ask(question, &ALL));
        owner.sum(GRADE, true);
    });
}

#[test]
fn a_database_that_is_put_back_shows_nothing_of_what_clouds_have() {
    same(&ledger((3, 1, 1)), |owner, given| {
        let rows = owner.insert(&given.lines(rows()));
        let copy = owner.copy();
        // The same numbers come again, of other rows, some of which have no values.
        owner.insert(&given.lines(30));
        owner.put_back(copy);
        owner.insert(&given.lines(30));
        owner.delete(&rows[..2]);
        owner.repair();
        given.all.questions.iter().for_each(|question| owner.ask(question, &ALL));
    });
}

#[test]
fn repair_asks_which_rows_there_are_and_gives_back_what_is_lost() {
    same(&ledger((3, 1, 1)), |owner, given| {
        let rows = owner.insert(&given.lines(rows()));
        owner.tell();
        owner.repair();
        owner.lose(2, &rows[3..11]);
        owner.repair();
        owner.ask(&given.all.questions[1].clone(), &ALL);
    });
}

#[test]
fn entries_of_the_catalogue_are_noise_of_some_lengths() {
    let [owner, _] = same(&ledger((3, 1, 1)), |owner, given| {
        for _ in 0..4 {
            let rows = owner.insert(&given.lines(4));
            owner.tell();
            owner.delete(&rows[..1]);
            owner.tell();
        }
    });
    let (mut salts, mut entries) = (BTreeSet::new(), 0);
    for cloud in owner.clouds() {
        for event in owner.seen(cloud).events {
            let Event::Put(table, put) = event else { continue };
            let [(_, Data::Strings(sealed))] = &put.columns[..] else { continue };
            assert_eq!(table, owner.catalogue.name());
            for (place, entry) in put.places.iter().zip(sealed.iter()) {
                assert_eq!(entry[..8], place.to_be_bytes());
                let sealed = entry.len() - 32;
                assert_eq!(sealed, counterfoil_disperse::coding::cells::class(sealed), "its length is one of a class");
                salts.insert(entry[..16].to_vec());
                entries += 1;
            }
        }
    }
    // Each has a salt of its own, and so a key: one cloud's are no other's either.
    assert_eq!(salts.len(), entries);
    assert!(entries > 40, "{entries}");
}
