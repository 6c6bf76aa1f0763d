//! An honest owner and an honest mirror: whatever happened to either, readers are told what the owner has.

use std::sync::Arc;

use counterfoil_mirror_server::{Allowed, Embedded, Options, Store, serve};
use counterfoil_proof::{Definition, Direction, Edge, Interval, Scheme, Type, Value};

use crate::world::{Dice, World, definition, listen, row};

fn embedded() -> (tempfile::TempDir, Arc<dyn Store>) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Embedded::open(&folder.path().join("store")).expect("a store");
    (folder, Arc::new(store))
}

/// What every store has to do, with tables signed in each way.
pub fn follows(store: Arc<dyn Store>) {
    let schemes = [Scheme::PerRecord, Scheme::PerAttribute, Scheme::Group(2), Scheme::Group(16)];
    for (number, scheme) in (3..).zip(schemes) {
        follows_table(store.clone(), Definition { scheme, ..definition(number, &format!("prices{number}")) });
    }
}

fn follows_table(store: Arc<dyn Store>, definition: Definition) {
    let rounds = if std::env::var("COUNTERFOIL_PROOF").is_ok_and(|size| size == "full") { 200 } else { 12 };
    let mut dice = Dice(11);
    let mut world = World::of(definition, 5);
    let listener = listen(store, world.owner, |_| ());
    let address = listener.address();
    world.close();
    for round in 0..rounds {
        for _ in 0..=dice.below(3) {
            world.change(&mut dice);
        }
        // A whole update at once, or as many as there are entries.
        let pushed = world.push(address, if dice.below(2) == 0 { 1 << 20 } else { 1 });
        assert!(pushed > 0 || round > 0);
        world.holds(address);
        assert_eq!(world.push(address, 1 << 20), 0, "what was told is not told again");
    }
    // Between the parts of a load nobody is answered; a question before is the question of somebody else.
    world.change(&mut dice);
    let update = world.publication.update_for(&world.state(address), 1).expect("an update").expect("news");
    assert_eq!(world.post(address, "update", &update).status, 200);
    let open = world.state(address);
    if !open.is_whole {
        assert_eq!(world.post(address, "answer", &world.all(0).to_bytes()).status, 503);
    }
    world.push(address, 1 << 20);
    world.holds(address);
    listener.shut_down();
}

#[test]
fn a_mirror_follows_its_owner() {
    let (_folder, store) = embedded();
    follows(store);
}

#[test]
fn intervals_and_limits_are_answered() {
    let (_folder, store) = embedded();
    let mut world = World::new();
    world.insert((0..50).map(|day| row(["A", "B"][day as usize % 2], day, 100 - day)).collect());
    world.close();
    let listener = listen(store, world.owner, |_| ());
    world.push(listener.address(), 1 << 20);
    let mut prefix = Vec::new();
    Type::Text.encode(&Value::Text("A".into()), &mut prefix).expect("a text");
    let interval = Interval::new(Edge::before(&prefix)..Edge::behind(&prefix)).expect("an interval");
    for direction in [Direction::Ascending, Direction::Descending] {
        let question =
            counterfoil_proof::Question::new(world.publication.definition(), 0, vec![interval.clone()], &[2]);
        let question = question.and_then(|question| question.limited(3, direction)).expect("a question").hinted();
        let verified = world.ask(listener.address(), &question).expect("an honest answer");
        let days: Vec<_> = verified.rows.iter().map(|row| row[1].clone()).collect();
        let expected = if direction == Direction::Ascending { [0, 2, 4] } else { [48, 46, 44] };
        assert!(days == expected.map(Value::Integer) && verified.is_cut);
    }
}

#[test]
fn two_tables_and_two_owners_do_not_meet() {
    let (_folder, store) = embedded();
    let mut worlds =
        [World::new(), World::of(definition(4, "a table/of % others"), 5), World::of(definition(3, "prices"), 90)];
    let listeners: Vec<_> = worlds.iter().map(|world| listen(store.clone(), world.owner, |_| ())).collect();
    for (at, world) in worlds.iter_mut().enumerate() {
        world.insert(vec![row("A", at as i64, 1)]);
        world.close();
    }
    // Names travel in percent signs.
    let path =
        |world: &World, what: &str| world.path(what).replace("a table/of % others", "a%20table%2Fof%20%25%20others");
    for (world, listener) in worlds.iter_mut().zip(&listeners) {
        let address = listener.address();
        let update = world.publication.update_for(&Default::default(), 1 << 20).expect("an update").expect("news");
        let reply = crate::client::once(address, &format!("POST {}", path(world, "update")), &update);
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    }
    worlds[0].holds(listeners[1].address());
    worlds[2].holds(listeners[0].address());
    let line = format!("GET {}", path(&worlds[1], "manifest"));
    assert_eq!(crate::client::once(listeners[0].address(), &line, b"").body, worlds[1].publication.manifest());
}

#[test]
fn a_mirror_put_back_to_yesterday_is_brought_up_to_date() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, yesterday) = (folder.path().join("store"), folder.path().join("yesterday"));
    let mut dice = Dice(5);
    let mut world = World::new();
    world.close();
    let run = |world: &mut World| {
        let listener = listen(Arc::new(Embedded::open(&store).expect("a store")), world.owner, |_| ());
        let pushed = world.push(listener.address(), 300);
        world.close();
        world.push(listener.address(), 300);
        world.holds(listener.address());
        pushed
    };
    world.insert((0..40).map(|day| row("A", day, day)).collect());
    let load = run(&mut world);
    std::fs::copy(&store, &yesterday).expect("a copy");
    for _ in 0..3 {
        world.change(&mut dice);
        run(&mut world);
    }
    std::fs::copy(&yesterday, &store).expect("a copy");
    run(&mut world);
    // One that lost everything too.
    std::fs::remove_file(&store).expect("no store");
    assert!(run(&mut world) > 10 && load > 10);
}

#[test]
fn an_owner_killed_at_any_moment_catches_up_and_one_put_back_begins_anew() {
    let (_folder, store) = embedded();
    let mut dice = Dice(8);
    let mut world = World::new();
    let listener = listen(store, world.owner, |_| ());
    let address = listener.address();
    world.insert((0..20).map(|day| row("A", day, day)).collect());
    world.close();
    for round in 0..6 {
        // Killed after some of the updates, it knows nothing but its ledger.
        let state = world.state(address);
        if let Some(update) = world.publication.update_for(&state, 400).expect("an update") {
            world.post(address, "update", &update);
        }
        let ledger = world.ledger();
        world = world.with_ledger(ledger.clone());
        world.push(address, 400);
        world.change(&mut dice);
        world.close();
        world.push(address, 400);
        world.holds(address);
        let generation = world.state(address).progress.generation;
        if round % 2 == 1 {
            // Put back, it signs other things under the same numbers; one commit short of the mirror, as many, or more.
            world = world.with_ledger(ledger);
            for _ in 0..round {
                world.insert(vec![row("C", round, 1)]);
            }
            world.close();
            world.push(address, 400);
            world.holds(address);
            assert_eq!(world.state(address).progress.generation, generation + 1);
        }
    }
}

/// The lost commit and the one in its place have one number, and touch as many records.
#[test]
fn an_owner_put_back_by_one_commit_is_noticed_by_what_that_commit_said() {
    let (_folder, store) = embedded();
    let mut world = World::new();
    let listener = listen(store, world.owner, |_| ());
    world.insert((0..20).map(|day| row("A", day, day)).collect());
    world.close();
    let ledger = world.ledger();
    world.insert(vec![row("B", 1, 1)]);
    world.push(listener.address(), 1 << 20);
    let state = world.state(listener.address());
    world = world.with_ledger(ledger);
    world.insert(vec![row("B", 2, 2)]);
    world.push(listener.address(), 1 << 20);
    let again = world.state(listener.address()).progress;
    assert_eq!((again.number, again.generation), (state.progress.number, state.progress.generation + 1));
    world.close();
    world.push(listener.address(), 1 << 20);
    world.holds(listener.address());
}

#[test]
fn it_is_served_until_it_is_told_to_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::new();
    world.close();
    let store = folder.path().join("store");
    for _ in 0..2 {
        let options = Options::new(store.to_str().expect("a path"), "127.0.0.1:0".parse().expect("one"), Allowed::Any);
        serve(options, |address| {
            world.push(address, 1 << 20);
            world.holds(address);
        })
        .expect("a server");
    }
}
