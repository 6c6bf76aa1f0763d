//! A server's shelf of bytes gives the same answers, byte by byte, as one of entries.

use counterfoil_mirror::{MemoryShelf, PackedShelf, answer_bytes};
use counterfoil_proof::{FIRST_RID, Scheme};

use crate::honest::{random_edit, random_question};
use crate::world::{Dice, SCHEMES, World};

/// What a mirror is told: entries that are new or other ones, and numbers that are gone.
fn tell(packed: &mut PackedShelf, before: &MemoryShelf, now: &MemoryShelf) {
    let definition = counterfoil_mirror::Shelf::definition(now).clone();
    for rid in before.rids(0).filter(|rid| now.entry(*rid).is_none()) {
        assert!(packed.remove(rid).expect("an entry"));
    }
    for group in before.groups.from(&[]).filter(|group| now.groups.of_number(group.stamp.rid).is_none()) {
        assert!(packed.remove(group.stamp.rid).expect("a group"));
    }
    for group in now.groups.from(&[]) {
        packed.put(&group.to_bytes()).expect("a group");
    }
    let ends = (0..FIRST_RID).filter(|rid| now.entry(*rid).is_some());
    for rid in now.rids(0).filter(|rid| *rid >= FIRST_RID).chain(ends) {
        let entry = now.entry(rid).expect("an entry");
        if before.entry(rid) != Some(entry) {
            packed.put(&entry.to_bytes(&definition).expect("bytes")).expect("an entry");
        }
    }
}

#[test]
fn answers_made_of_bytes_are_those_made_of_entries() {
    SCHEMES.into_iter().for_each(answers_made_of_bytes);
}

fn answers_made_of_bytes(scheme: Scheme) {
    let rounds = if std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full") { 600 } else { 60 };
    let mut dice = Dice(21);
    let mut world = World::signing(scheme);
    let mut packed = PackedShelf::new(world.publication.definition().clone());
    let mut before = MemoryShelf::new(world.publication.definition().clone());
    for round in 0..rounds {
        world.publication.edit(random_edit(&mut dice, &world)).expect("an edit");
        let now = world.publication.shelf().clone();
        tell(&mut packed, &before, &now);
        before = now;
        for at in 0..8 {
            let question = if at == 0 { world.all() } else { random_question(&mut dice, &world) };
            let wanted = world.answer(&question).to_bytes(world.publication.definition(), &question).expect("bytes");
            assert!(answer_bytes(&mut &packed, &question).expect("an answer") == wanted, "round {round}");
            // A shelf without bytes of entries and sums takes the other way.
            assert!(answer_bytes(&mut &before, &question).expect("an answer") == wanted, "round {round}");
        }
    }
}

#[test]
fn what_is_no_entry_of_the_table_is_not_taken() {
    let mut world = World::new();
    world.insert(vec![crate::world::row("A", 1, Some(5), "x")]);
    let definition = world.publication.definition();
    let rid = world.publication.shelf().rids(0).find(|rid| *rid >= FIRST_RID).expect("a record");
    let bytes = world.publication.shelf().entry(rid).expect("an entry").to_bytes(definition).expect("bytes");
    let mut packed = PackedShelf::new(definition.clone());
    for length in 0..bytes.len() {
        assert!(packed.put(&bytes[..length]).is_err());
    }
    packed.put(&bytes).expect("an entry");
    assert!(packed.remove(rid).expect("it is there") && !packed.remove(rid).expect("it is gone"));
    // Without head and tail there is no answer, and no panic.
    assert!(answer_bytes(&mut &packed, &world.all()).is_err());
}

#[test]
fn a_row_that_keeps_its_place_is_signed_alone() {
    let mut world = World::new();
    let row = crate::world::row;
    world.insert(vec![row("A", 1, Some(5), "x"), row("B", 1, Some(6), "y"), row("C", 1, Some(7), "z")]);
    world.close();
    let edit = |values| counterfoil_publish::Edit { update: vec![(FIRST_RID + 1, values)], ..Default::default() };
    // Nothing that it is sorted by changes.
    assert_eq!(world.publication.edit(edit(row("B", 1, Some(6), "other"))).expect("an edit").signed, 1);
    // It stays the second one by price, but its neighbours' links hold its place.
    assert_eq!(world.publication.edit(edit(row("B", 1, Some(65), "other"))).expect("an edit").signed, 4);
    world.close();
    for question in [world.all(), world.of_symbol("B", &[0, 1, 2, 3])] {
        let answer = world.answer(&question);
        world.check(&question, &answer).expect("an honest answer");
    }
}
