//! Signatures that are made again before they are too old.

use counterfoil_mirror::answer;
use counterfoil_proof::{Chain, Question, Refusal, Trust, Verified, check};
use counterfoil_publish::{Edit, Plan};

use crate::world::{World, definition, row};

const RENEW: u64 = 10_000;
const MAX_AGE: u64 = 20_000;

fn world(rows: i64) -> World {
    let plan = Plan {
        definition: definition("prices"),
        now: 1000,
        every: 0,
        renew: RENEW,
        max_age: MAX_AGE,
        expires: 1 << 50,
    };
    let mut world = World::planned(plan, [5; 96]);
    world.insert((0..rows).map(|at| row("A", at, Some(at.into()), "a note")).collect());
    world.close();
    world
}

/// What a reader says who fetches summaries from the period on that the owner names, and no earlier ones.
fn all(world: &mut World) -> Result<Verified, Refusal> {
    let manifest = world.manifest();
    let summaries = world.publication.summaries_from(world.publication.oldest_period()).expect("summaries");
    let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
    let question = world.all();
    let bytes = world.answer(&question).to_bytes(world.publication.definition(), &question).expect("bytes");
    check(
        &Trust { manifest: &manifest, chain: &chain, now: world.now, clock_error: 5, max_age: 5000 },
        &question,
        &bytes,
    )
}

#[test]
fn steps_renew_the_oldest_first_and_leave_versions_and_marks() {
    let mut world = world(10);
    for _ in 0..4 {
        world.close();
    }
    // Signed later, and so not due.
    world.insert(vec![row("B", 1, None, "later")]);
    world.close();
    assert_eq!(world.publication.renew(world.now, 5).expect("a step").signed, 0);
    let last = world.now;
    let old = world.publication.shelf().clone();
    world.now = 2000 + RENEW;
    let (mut signed, mut steps) = (0, 0);
    loop {
        let step = world.publication.renew(world.now, 3).expect("a step");
        assert!(step.signed <= 3);
        (signed, steps) = (signed + step.signed, steps + 1);
        if step.is_done {
            break;
        }
    }
    // Ten records, two heads and two tails, less those that came with the later row: two neighbours in each order, itself.
    let young = old.rids(0).chain(old.rids(1).filter(|rid| *rid < 32));
    let young = young.filter(|rid| old.entry(*rid).expect("an entry").stamp.period == 5).count() as u64;
    assert!(young >= 3);
    assert_eq!((signed, steps), (14 + 1 - young, (14 + 1 - young).div_ceil(3)));
    for rid in old.rids(0).chain(old.rids(1)) {
        let (before, now) = (old.entry(rid).expect("one"), world.publication.shelf().entry(rid).expect("one"));
        assert_eq!(before.stamp.version, now.stamp.version, "renewal leaves the version");
        assert!(now.stamp.period >= 5);
    }
    assert_eq!(world.publication.oldest_period(), 5);
    let status = world.publication.status();
    assert_eq!((status.open_changes, status.open_signatures, status.oldest_signature), (0, signed, Some(last)));
    world.close();
    assert_eq!(world.publication.oldest_period(), 5);
    assert_eq!(all(&mut world).expect("from the oldest signature on").rows.len(), 11);
    // Unmarked: whoever still shows the old signature shows the same row, and summaries as far back as it takes.
    let question = world.all();
    let bytes = answer(&mut old.clone(), &question).expect("an answer");
    assert!(world.check(&question, &bytes).is_ok());
    let bytes = bytes.to_bytes(world.publication.definition(), &question).expect("bytes");
    let (manifest, served) = (world.manifest(), world.publication.summaries_from(5).expect("summaries"));
    let chain = Chain::check(&manifest, served.iter().map(Vec::as_slice)).expect("a chain");
    let trust = Trust { manifest: &manifest, chain: &chain, now: world.now, clock_error: 5, max_age: u64::MAX };
    assert!(matches!(check(&trust, &question, &bytes), Err(Refusal::Incomplete(_))));
}

#[test]
fn a_table_that_nobody_touches_stays_readable_for_ever_and_one_that_is_not_renewed_does_not() {
    let (mut kept, mut left) = (world(6), world(6));
    for round in 0..60 {
        for world in [&mut kept, &mut left] {
            world.close();
        }
        while !kept.publication.renew(kept.now, 2).expect("a step").is_done {}
        // Heads and tails are renewed too, or an empty answer would be too old.
        let question = kept.of_symbol("Z", &[0]);
        let honest = kept.answer(&question);
        assert!(kept.check(&question, &honest).expect("honest").rows.is_empty(), "round {round}");
        assert_eq!(all(&mut kept).expect("honest").rows.len(), 6);
        let age = left.now + 10 - 2000;
        let honest = left.answer(&question);
        let verdict = left.check(&question, &honest);
        assert_eq!(verdict.is_ok(), age <= MAX_AGE + 5, "round {round}");
    }
    let needed = kept.publication.summaries_from(kept.publication.oldest_period()).expect("summaries").len() as u64;
    assert!(needed <= RENEW / 1000 + 2, "{needed} summaries are needed, of 61");
    // An owner's clock that was set back renews nothing too early and nothing twice.
    assert_eq!(kept.publication.renew(0, 100).expect("a step").signed, 0);
}

#[test]
fn renewed_and_then_changed_in_one_period() {
    let mut world = world(4);
    world.now += RENEW;
    world.publication.renew(world.now, 100).expect("a step");
    let renewed = world.publication.shelf().clone();
    let rids: Vec<u64> = renewed.rids(0).filter(|rid| *rid >= 32).collect();
    let edit = Edit { update: vec![(rids[1], row("A", 1, Some(99), "new"))], delete: vec![rids[3]], ..Edit::default() };
    world.publication.edit(edit).expect("an edit");
    let now = world.publication.shelf().clone();
    world.close();
    assert_eq!(all(&mut world).expect("honest").rows.len(), 3);
    let question = Question::new(world.publication.definition(), 1, vec![counterfoil_proof::Interval::all()], &[0, 2]);
    for question in [world.all(), question.expect("a question")] {
        let stale = answer(&mut renewed.clone(), &question).expect("an answer");
        assert!(matches!(world.check(&question, &stale), Err(Refusal::Stale(_))), "what was renewed before it changed");
        // One of them among what stands.
        for rid in rids.iter().filter(|rid| {
            now.entry(**rid).map(|entry| entry.stamp.version) != renewed.entry(**rid).map(|entry| entry.stamp.version)
        }) {
            let mut mixed = now.clone();
            mixed.put(renewed.entry(*rid).expect("an entry").clone()).expect("an entry");
            let stale = answer(&mut mixed, &question).expect("an answer");
            assert!(world.check(&question, &stale).is_err(), "record {rid}");
        }
    }
    // Nothing that was renewed and left alone is marked: it needs no look at it.
    let head = world.publication.shelf().entry(2).expect("a head").stamp;
    assert_eq!(head.period, 1);
}
