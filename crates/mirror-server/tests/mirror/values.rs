//! Questions about values over real sockets: filters are split, kept and sent, and what makes no sense ends in an error.

use std::sync::Arc;

use counterfoil_mirror_server::Embedded;
use counterfoil_proof::{Found, Points, Type, Value};

use crate::world::{World, listen, row};

#[test]
fn filters_are_kept_and_sent_where_they_are_smaller() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Embedded::open(&folder.path().join("store")).expect("a store"));
    let mut world = World::new();
    world.insert((0..400).map(|price| row("A", 1, 2 * price)).collect());
    world.close();
    let listener = listen(store, world.owner, |_| ());
    let address = listener.address();
    world.push(address, 20_000);
    assert!(world.publication.shelf().filters(1).count() > 3);
    world.holds(address);
    let encoded = |price: i64| {
        let mut bytes = Vec::new();
        Type::BigInt.encode(&Value::Integer(price), &mut bytes).expect("a number");
        bytes
    };
    let absent = (0..400).map(|at| encoded(2 * at + 1)).collect();
    let points = Points::new(world.publication.definition(), 1, absent, &[]).expect("a question");
    assert!(world.ask_for(address, &points).expect("an honest answer").rows.is_empty());
    let reply = world.post(address, "answer", &points.to_bytes());
    let found = Found::from_bytes(&reply.body, world.publication.definition(), &points).expect("an answer");
    assert!(found.filters.len() > 3 && reply.body.len() < 8000, "{} bytes", reply.body.len());
    // Half of a question, one of another version, and one about another table.
    let bytes = points.to_bytes();
    let mut of_another = bytes.clone();
    of_another[5] ^= 1;
    for spoilt in [&bytes[..bytes.len() / 2], &[&[3][..], &bytes[1..]].concat(), &of_another] {
        assert_eq!(world.post(address, "answer", spoilt).status, 400);
    }
    listener.shut_down();
}

#[test]
fn an_answer_about_values_is_bounded_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Embedded::open(&folder.path().join("store")).expect("a store"));
    let mut world = World::new();
    world.insert((0..200).map(|price| row("A", 1, price)).collect());
    world.close();
    let listener = listen(store, world.owner, |limits| limits.answer_bytes_max = 40_000);
    world.push(listener.address(), 1 << 20);
    let encoded = |price: i64| {
        let mut bytes = Vec::new();
        Type::BigInt.encode(&Value::Integer(price), &mut bytes).expect("a number");
        bytes
    };
    let points = |count: i64| {
        Points::new(world.publication.definition(), 1, (0..count).map(encoded).collect(), &[]).expect("a question")
    };
    assert_eq!(world.post(listener.address(), "answer", &points(3).to_bytes()).status, 200);
    assert_eq!(world.post(listener.address(), "answer", &points(200).to_bytes()).status, 422);
    listener.shut_down();
}
