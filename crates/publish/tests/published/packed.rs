//! A server's shelf of bytes gives the same answers, byte by byte, as one of entries.

use counterfoil_mirror::{MemoryShelf, NodeEntry, PackedShelf, SignedFilter, answer_bytes, reply};
use counterfoil_proof::{FIRST_RID, Points, Scheme, Type, Value};

use crate::honest::{random_edit, random_question};
use crate::totals::counted;
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
    tell_of_parts(packed, before, now);
}

/// The same of filters and nodes.
fn tell_of_parts(packed: &mut PackedShelf, before: &MemoryShelf, now: &MemoryShelf) {
    let definition = counterfoil_mirror::Shelf::definition(now).clone();
    let nodes_gone = before.nodes.all().map(|node| node.stamp.rid).filter(|rid| now.nodes.entry(*rid).is_none());
    let filters = |shelf: &MemoryShelf| -> Vec<SignedFilter> {
        definition.filters.iter().flat_map(|order| shelf.filters(*order).cloned().collect::<Vec<_>>()).collect()
    };
    let filters_before = filters(before).into_iter().map(|signed| signed.stamp.rid);
    for rid in nodes_gone.chain(filters_before.filter(|rid| now.filter_of_number(*rid).is_none())) {
        assert!(packed.remove(rid).expect("a part") && !packed.remove(rid).expect("it is gone"));
    }
    let is_new = |node: &&NodeEntry| before.nodes.entry(node.stamp.rid) != Some(*node);
    let nodes = now.nodes.all().filter(is_new).map(|node| node.to_bytes(&definition).expect("bytes"));
    for bytes in nodes.chain(filters(now).iter().map(SignedFilter::to_bytes)) {
        assert!(packed.put(&bytes[..bytes.len() - 1]).is_err(), "half a part");
        packed.put(&bytes).expect("a part");
    }
}

#[test]
fn totals_and_values_are_answered_with_the_same_nodes_and_filters() {
    let rounds = if std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full") { 300 } else { 25 };
    let mut dice = Dice(22);
    let mut world = World::of(counted(), [5; 96]);
    let mut packed = PackedShelf::new(world.publication.definition().clone());
    let mut before = MemoryShelf::new(world.publication.definition().clone());
    let (mut tiles, mut filters) = (0, 0);
    for round in 0..rounds {
        world.publication.edit(crate::totals::random_edit(&mut dice, &world, 30)).expect("an edit");
        world.close();
        let now = world.publication.shelf().clone();
        tell(&mut packed, &before, &now);
        before = now;
        for _ in 0..6 {
            let totals = crate::totals::random_question(&mut dice, &world);
            tiles += crate::totals::verify(&mut world, &totals).expect("honest").nodes;
            let values = ["", "A", "AB", "B", "BA", "BC", "C", "D"].into_iter().filter(|_| dice.below(2) == 0);
            let encoded = |symbol: &str| {
                let mut bytes = Vec::new();
                Type::Text.encode(&Value::Text(symbol.into()), &mut bytes).expect("a text");
                bytes
            };
            let points = Points::new(world.publication.definition(), 0, values.map(encoded).collect(), &[2]);
            for question in points.ok().map(|points| points.to_bytes()).into_iter().chain([totals.to_bytes()]) {
                let wanted = reply(&mut before.clone(), &question).expect("an answer");
                assert!(reply(&mut &packed, &question).expect("an answer") == wanted, "round {round}");
                filters += usize::from(Points::are(&question) && wanted[33] > 0);
            }
        }
    }
    assert!(tiles > 20 && filters > 20, "{tiles} nodes, {filters} answers with filters");
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
