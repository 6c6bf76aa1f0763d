//! A mirror whose store is put back from a copy: readers are told by their own memory, or by the verdict's age, and the owner's next
//! update brings it to where the owner is.

use std::fs;
use std::sync::Arc;

use counterfoil_mirror_server::Embedded;
use counterfoil_proof::Refusal;
use counterfoil_reader::{Error, Terms, read};

use crate::between::Web;
use crate::world::{Dice, World, listen, row};

#[test]
fn a_mirror_put_back_from_a_copy_shows_nobody_more_than_it_had_and_catches_up() {
    let (folder, mut dice) = (tempfile::tempdir().expect("a folder"), Dice(4));
    let [store, copy] = ["store", "copy"].map(|name| folder.path().join(name));
    let mut world = World::new();
    let serve = |world: &World| listen(Arc::new(Embedded::open(&store).expect("a store")), world.owner, |_| ());
    let sql = "SELECT symbol, day, price FROM prices";
    let told = |world: &World, address, memory: &mut _| {
        let (owner, now) = (world.owner, world.now + 10);
        let terms = Terms { owner, now, clock_error: 5, max_age: u64::MAX, hints: true };
        read(&mut Web(address), sql, &terms, memory)
    };
    world.insert((0..40).map(|day| row("A", day, day)).collect());
    world.close();
    for _ in 0..4 {
        let listener = serve(&world);
        world.push(listener.address(), 1 << 20);
        let before = world.rows(0);
        let as_of = world.now;
        listener.shut_down();
        fs::copy(&store, &copy).expect("a copy");
        // It goes on, and somebody sees that.
        let listener = serve(&world);
        (0..3).for_each(|_| world.change(&mut dice));
        world.insert(vec![row("BB", 0, 1)]);
        world.close();
        world.push(listener.address(), 1 << 20);
        let mut memory = None;
        told(&world, listener.address(), &mut memory).expect("an honest answer");
        listener.shut_down();
        fs::copy(&copy, &store).expect("what was copied");
        let listener = serve(&world);
        let refused = told(&world, listener.address(), &mut memory).map(|reading| reading.verdict);
        assert!(matches!(refused, Err(Error::Refused(Refusal::Stale(_)))), "{refused:?}");
        // Who saw nothing since is told what was right then, and that it was then.
        let stranger = told(&world, listener.address(), &mut None).expect("an honest answer");
        assert_eq!((stranger.table.rows, stranger.verdict.as_of), (before, as_of));
        assert!(stranger.verdict.age >= world.now - as_of);
        assert!(world.push(listener.address(), 1 << 20) > 0);
        assert_eq!(told(&world, listener.address(), &mut memory).expect("rows").table.rows, world.rows(0));
        world.holds(listener.address());
        listener.shut_down();
    }
}
