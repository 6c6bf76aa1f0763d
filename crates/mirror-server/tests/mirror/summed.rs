//! Sums of signatures that a mirror keeps: its answers are, byte for byte, those of whoever adds up each signature, whatever comes and
//! goes, and whoever writes beside it.

use std::path::Path;
use std::sync::Arc;

use counterfoil_mirror::reply;
use counterfoil_mirror_server::{Embedded, Listener};
use counterfoil_proof::{Direction, Edge, FIRST_RID, Interval, Question};
use counterfoil_publish::Edit;

use crate::world::{Dice, World, listen, row};

fn served(store: &Path, world: &World, sums_bytes_max: usize) -> Listener {
    let store = Arc::new(Embedded::open(store).expect("a store"));
    listen(store, world.owner, |limits| limits.sums_bytes_max = sums_bytes_max)
}

fn random_row(dice: &mut Dice) -> Vec<counterfoil_proof::Value> {
    row(["A", "B", "BB", ""][dice.below(4) as usize], dice.below(40) as i64, dice.below(900) as i64)
}

/// Parts of an order which may touch each other, with all columns (made of stored bytes) or some, with hints or without, up to a limit from
/// either end or not.
fn random_question(world: &World, dice: &mut Dice) -> Question {
    let order = dice.below(2) as u8;
    let shelf = world.publication.shelf();
    let rids: Vec<u64> = shelf.rids(order).filter(|rid| *rid >= FIRST_RID).collect();
    let edge = |dice: &mut Dice| {
        let entry = shelf.entry(rids[dice.below(rids.len() as u64) as usize]).expect("an entry");
        Edge::at(&entry.position(world.publication.definition(), order).expect("a position"))
    };
    let count = 2 + dice.below(3);
    let mut edges: Vec<Edge> = (0..count).map(|_| edge(dice)).collect();
    edges.sort_by(|one, other| one.bytes().cmp(other.bytes()));
    let mut intervals: Vec<Interval> =
        edges.windows(2).filter_map(|pair| Interval::new(pair[0].clone()..pair[1].clone())).collect();
    if intervals.is_empty() {
        intervals.push(Interval::all());
    }
    let columns: &[u16] = if dice.below(2) == 0 { &[0, 1, 2] } else { &[2] };
    let mut question = Question::new(world.publication.definition(), order, intervals, columns).expect("a question");
    if dice.below(2) == 0 {
        question = question.hinted();
    }
    if dice.below(3) == 0 {
        let direction = [Direction::Ascending, Direction::Descending][dice.below(2) as usize];
        question = question.limited(1 + dice.below(100), direction).expect("a limit");
    }
    question
}

/// Whether a mirror that stands where the owner does says what a plain list would.
fn says_the_same(world: &World, listener: &Listener, dice: &mut Dice, questions: usize) {
    for _ in 0..questions {
        says(world, listener, &random_question(world, dice));
    }
}

fn says(world: &World, listener: &Listener, question: &Question) {
    let plain = reply(&mut world.publication.shelf().clone(), &question.to_bytes()).expect("an answer");
    let told = world.post(listener.address(), "answer", &question.to_bytes());
    assert_eq!(told.status, 200);
    assert!(told.body == plain);
}

fn change(world: &mut World, dice: &mut Dice) {
    let mut edit = Edit::default();
    for rid in world.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID) {
        match dice.below(200) {
            0 => edit.delete.push(rid),
            1 | 2 => edit.update.push((rid, random_row(dice))),
            _ => {}
        }
    }
    edit.insert = (0..dice.below(6)).map(|_| random_row(dice)).collect();
    world.publication.edit(edit).expect("an edit");
    if dice.below(2) == 0 {
        world.close();
    }
}

#[test]
fn answers_with_kept_sums_are_those_of_plain_ones_through_updates_and_restarts() {
    let (folder, mut world, mut dice) = (tempfile::tempdir().expect("a folder"), World::new(), Dice(11));
    let store = folder.path().join("store");
    world.insert((0..600).map(|_| random_row(&mut dice)).collect());
    world.close();
    // Of so little memory that it is full again and again, of none, and of as much as it needs.
    for sums_bytes_max in [64 << 20, 20_000, 0, 64 << 20] {
        let mut listener = served(&store, &world, sums_bytes_max);
        let copy = world.ledger();
        for step in 0..12 {
            world.push(listener.address(), if step % 3 == 0 { 5000 } else { 1 << 20 });
            says_the_same(&world, &listener, &mut dice, 12);
            change(&mut world, &mut dice);
            match step {
                // It starts again with nothing.
                5 => {
                    listener.shut_down();
                    listener = served(&store, &world, sums_bytes_max);
                }
                // The owner is put back, so that the table is begun anew.
                8 => world = world.with_ledger(copy.clone()),
                _ => {}
            }
        }
        listener.shut_down();
    }
}

/// Two mirrors beside one store: each learns from it alone what the other one was told.
#[test]
fn what_another_mirror_wrote_to_the_store_is_no_sum_of_before() {
    let (folder, mut world, mut dice) = (tempfile::tempdir().expect("a folder"), World::new(), Dice(12));
    let store = Arc::new(Embedded::open(&folder.path().join("store")).expect("a store"));
    world.insert((0..400).map(|_| random_row(&mut dice)).collect());
    world.close();
    let mirrors = [(); 2].map(|()| listen(store.clone(), world.owner, |_| ()));
    for _ in 0..16 {
        // Whoever was not told is asked for all first: the sums of before are there still.
        world.push(mirrors[dice.below(2) as usize].address(), 1 << 20);
        for (mirror, order) in mirrors.iter().flat_map(|mirror| [(mirror, 0), (mirror, 1)]) {
            says(&world, mirror, &world.all(order));
        }
        mirrors.iter().for_each(|mirror| says_the_same(&world, mirror, &mut dice, 6));
        change(&mut world, &mut dice);
    }
}
