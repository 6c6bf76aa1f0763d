//! The view of each coalition, up to the declared size, beside one that is made of what it is said to learn.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_disperse::leakage::{Learned, What, learned};
use counterfoil_disperse::{Declaration, Placement};

use crate::facts::{self, Facts};
use crate::ledger::{ALL, ID, NAME, NOTE, SALARY, TOTAL, drawn, ledger, questions};
use crate::likeness;
use crate::owner::Owner;
use crate::random::Random;
use crate::simulator::Simulator;

/// Whether everything is tried that can be, and not as much as takes little time.
pub fn is_full() -> bool {
    std::env::var_os("COUNTERFOIL_PROOF").is_some_and(|proof| proof == "full")
}

/// The places of a coalition's clouds among those of a layout.
fn places(declaration: &Declaration, coalition: &[&str]) -> Vec<usize> {
    let is_in = |at: &usize| coalition.contains(&declaration.clouds[*at].as_str());
    (0..declaration.clouds.len()).filter(is_in).collect()
}

/// What a coalition is said to learn of a layout.
fn told(declaration: &Declaration, coalition: &[&str]) -> BTreeSet<Learned> {
    let placement = Placement::plan(declaration).expect("a placement");
    learned(declaration, &placement, &places(declaration, coalition))
}

/// The same of what an owner did, by layout and column.
pub fn facts(owner: &Owner, coalition: &[&str]) -> BTreeMap<u32, BTreeMap<u16, Facts>> {
    let of_layout = |(number, declaration): (&u32, &Declaration)| {
        let learned = told(declaration, coalition);
        let lines = facts::put(&owner.deeds, &owner.lines, *number);
        let asked = facts::conditions(&owner.deeds, *number);
        let columns = declaration.columns.iter().enumerate();
        (*number, columns.map(|at| (at.1.id, facts::facts(&learned, at, &lines, &asked))).collect())
    };
    owner.declared.iter().map(of_layout).collect()
}

/// What a coalition sees of an owner.
pub fn real(owner: &Owner, coalition: &[&str]) -> Vec<String> {
    let views = coalition.iter().map(|cloud| ((*cloud).to_owned(), owner.seen(cloud).events)).collect();
    likeness::lines(&views, &owner.labels, &owner.catalogue.name())
}

/// What it would see, were its view made of what it is said to learn.
pub fn simulated(owner: &Owner, coalition: &[&str], facts: &BTreeMap<u32, BTreeMap<u16, Facts>>) -> Vec<String> {
    let mut simulator = Simulator::new(7, &owner.declared, facts, coalition);
    simulator.run(&owner.deeds);
    likeness::lines(&simulator.views, &simulator.labels, &simulator.catalogue.0)
}

/// That two views are alike; else where they differ first.
pub fn alike(one: &[String], other: &[String], whose: &str) {
    for (at, (one, other)) in one.iter().zip(other).enumerate() {
        let (mut one, mut other) = (one.lines(), other.lines());
        loop {
            match (one.next(), other.next()) {
                (None, None) => break,
                (one, other) => assert_eq!(one, other, "event {at} of {whose}"),
            }
        }
    }
    assert_eq!(one.len(), other.len(), "{whose} see as much");
}

/// All coalitions up to the declared size, of all clouds that there ever were. Where one cloud alone is to learn nothing of what is added up,
/// no coalition does.
pub fn coalitions(owner: &Owner) -> Vec<Vec<&str>> {
    let (clouds, may_collude) = (owner.clouds(), owner.kept.declaration().may_collude);
    let most = if may_collude == 0 { clouds.len() } else { may_collude };
    let masks = (1..1_u32 << clouds.len()).filter(|mask| mask.count_ones() as usize <= most);
    let in_mask = |mask: u32| (0..clouds.len()).filter(move |at| mask >> at & 1 == 1);
    masks.map(|mask| in_mask(mask).map(|at| clouds[at]).collect()).collect()
}

/// An owner who has done everything once that a table is for.
fn busy(seed: u8, declaration: Declaration, rows: usize) -> Owner {
    let (mut owner, mut random) = (Owner::new(seed, declaration), Random(seed.into()));
    let first = drawn(&mut random, rows);
    let numbers = owner.insert(&first);
    owner.tell();
    owner.insert(&drawn(&mut random, rows / 4));
    questions(&first).iter().for_each(|question| owner.ask(question, &ALL));
    owner.sum(SALARY, true);
    owner.sum(TOTAL, false);
    owner.delete(&numbers[2..5]);
    owner.update(&numbers[7..9], &drawn(&mut random, 2));
    owner.tell();
    questions(&first)[..8].iter().for_each(|question| owner.ask(question, &[NOTE, ID, NAME]));
    owner.sum(SALARY, true);
    owner.repair();
    owner
}

const SHAPES: [(usize, usize, usize); 5] = [(3, 1, 1), (2, 1, 0), (4, 1, 2), (5, 2, 2), (1, 0, 0)];

#[test]
fn what_a_coalition_sees_is_made_of_what_it_is_said_to_learn() {
    let rows = if is_full() { 200 } else { 32 };
    for (seed, shape) in (1..).zip(&SHAPES) {
        let owner = busy(seed, ledger(*shape), rows);
        for coalition in coalitions(&owner) {
            let whose = format!("{coalition:?} of {shape:?}");
            let facts = facts(&owner, &coalition);
            alike(&real(&owner, &coalition), &simulated(&owner, &coalition, &facts), &whose);
        }
    }
}

/// Facts without one of them.
fn without(facts: &mut Facts, what: What) {
    match what {
        What::Length => facts.lengths.iter_mut().flat_map(|of| of.values_mut()).for_each(|length| *length = 32),
        What::Nulls => facts.nulls = None,
        What::Equality => facts.equal.iter_mut().for_each(|of| of.rows.clear()),
        What::Prefixes => facts.begins.iter_mut().flatten().for_each(|of| of.rows.clear()),
        What::Order => facts.order.iter_mut().for_each(|of| of.rows.clear()),
        What::TotalOrder => facts.ranks.iter_mut().flat_map(|of| of.0.values_mut()).for_each(|rank| *rank = 0),
        What::Beginnings | What::Values => {}
    }
}

#[test]
fn whatever_is_said_to_be_learned_shows() {
    let owner = busy(9, ledger((3, 1, 1)), 24);
    for coalition in coalitions(&owner) {
        let seen = real(&owner, &coalition);
        for Learned { column, what, .. } in told(owner.kept.declaration(), &coalition) {
            let mut facts = facts(&owner, &coalition);
            without(facts.get_mut(&0).expect("a layout").get_mut(&column).expect("a column"), what);
            // Of which letters the upper half of a code is no view says anything but its bytes.
            let shows = simulated(&owner, &coalition, &facts) != seen;
            assert!(shows || what == What::Beginnings, "{what:?} of column {column} for {coalition:?}");
        }
    }
}
