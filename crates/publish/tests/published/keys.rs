//! Keys that come and go, a root kept elsewhere, a ledger put back; and what is cut in between.

use counterfoil_mirror::{MemoryShelf, answer};
use counterfoil_proof::record::{Kind, message};
use counterfoil_proof::{
    Chain, FIRST_RID, GROUPS_MAX, Owner, Question, Refusal, SecretKey, Seen, Summary, Trust, TrustedManifest, Value,
    Verified, attributes, check, contents_root,
};
use counterfoil_publish::{
    Change, Edit, Error, Ledger, MemoryLedger, NewKey, Pair, Plan, Publication, Restored, Secrets, Terms,
};

use crate::world::{World, definition, row};

pub fn key(seed: u8) -> NewKey {
    NewKey::from_entropy(&[seed; 32], 1 << 50).expect("a key")
}

fn update(world: &mut World, at: usize, price: i128) -> u64 {
    let rid = world.publication.shelf().rids(0).filter(|rid| *rid >= FIRST_RID).nth(at).expect("a record");
    let update = vec![(rid, row("A", at as i64, Some(price), "updated"))];
    world.publication.edit(Edit { update, ..Edit::default() }).expect("an edit");
    rid
}

fn filled() -> World {
    let mut world = World::new();
    world.insert((0..5).map(|at| row("A", at, Some(at.into()), "a note")).collect());
    world.close();
    world
}

/// What a reader who holds these says of all rows on a shelf.
fn all_of(
    shelf: &MemoryShelf,
    manifest: &TrustedManifest,
    summaries: &[Vec<u8>],
    now: u64,
) -> Result<Verified, Refusal> {
    let definition = &manifest.manifest().definition;
    let question = Question::new(definition, 0, vec![counterfoil_proof::Interval::all()], &[0, 1, 2, 3]).expect("all");
    let bytes =
        answer(&mut shelf.clone(), &question).expect("an answer").to_bytes(definition, &question).expect("bytes");
    let chain = Chain::check(manifest, summaries.iter().map(Vec::as_slice))?;
    check(&Trust { manifest, chain: &chain, now, clock_error: 5, max_age: u64::MAX }, &question, &bytes)
}

fn all(world: &mut World) -> Result<Verified, Refusal> {
    let summaries = world.publication.summaries_from(world.publication.oldest_period()).expect("summaries");
    all_of(world.publication.shelf(), &world.manifest(), &summaries, world.now)
}

fn digest_of(world: &World) -> counterfoil_proof::Digest {
    world.publication.definition().digest()
}

#[test]
fn a_new_key_signs_from_the_next_period_on_and_both_count() {
    let mut world = filled();
    let before = world.manifest();
    world.publication.rotate(world.now, key(9), &[]).expect("a rotation");
    let after = world.manifest();
    assert_eq!(after.manifest().serial, before.manifest().serial + 1);
    assert!(matches!(
        TrustedManifest::check(World::new().publication.manifest(), &world.owner, 2),
        Err(Refusal::Stale(_))
    ));
    // The open period is the old key's: nothing has to be pushed before the manifest yet.
    update(&mut world, 0, 77);
    let summaries = world.publication.summaries().expect("summaries");
    assert!(all_of(world.publication.shelf(), &before, &summaries, world.now).is_ok());
    world.close();
    update(&mut world, 1, 78);
    let verified = all(&mut world).expect("rows of two keys");
    assert_eq!(verified.rows.len(), 5);
    let summaries = world.publication.summaries().expect("summaries");
    let refused = all_of(world.publication.shelf(), &before, &summaries, world.now);
    assert!(matches!(refused, Err(Refusal::Forged(_))), "the new key under the old manifest");
    let status = world.publication.status();
    let counts: Vec<u64> = status.keys.iter().map(|(_, count)| *count).collect();
    assert_eq!((status.serial, status.open_period, counts.iter().sum::<u64>()), (2, 2, 9));
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
    // A key once more in the same period takes the place of one that was never used.
    for seed in [10, 11] {
        world.publication.rotate(world.now, key(seed), &[]).expect("a rotation");
    }
    assert_eq!(world.manifest().manifest().keys.len(), 3);
    assert!(matches!(world.publication.rotate(world.now, key(9), &[]), Err(Error::Misuse(_))), "a key again");
    let expired = NewKey::from_entropy(&[12; 32], world.now).expect("a key");
    assert!(matches!(world.publication.rotate(world.now, expired, &[]), Err(Error::Misuse(_))));
    assert!(all(&mut world).is_ok());
}

#[test]
fn keys_are_listed_while_something_stands_that_they_signed_and_at_most_sixteen() {
    let mut world = World::new();
    world.insert((0..40).map(|at| row("A", at, Some(at.into()), "a note")).collect());
    for seed in 0..30 {
        world.publication.rotate(world.now, key(100 + seed), &[]).expect("a rotation");
        world.close();
        // One row of each key stays, so that each but those signed anew has to stay too.
        update(&mut world, usize::from(seed), 1000 + i128::from(seed));
        assert_eq!(all(&mut world).expect("rows of many keys").rows.len(), 40);
    }
    assert_eq!(world.manifest().manifest().keys.len(), GROUPS_MAX);
    while !world.publication.renew_before(u64::MAX, 7).expect("a step").is_done {}
    world.close();
    world.publication.rotate(world.now, key(99), &[]).expect("a rotation");
    assert_eq!(world.manifest().manifest().keys.len(), 2, "what signs, and what is to come");
    assert_eq!(all(&mut world).expect("rows of one key").rows.len(), 40);
}

#[test]
fn what_an_expiring_key_signed_is_renewed_in_time() {
    let plan = Plan {
        definition: definition("prices"),
        now: 1000,
        every: 0,
        renew: 0,
        max_age: u64::MAX,
        expires: 90_000_000,
    };
    let mut world = World::planned(plan, [5; 96]);
    world.insert(vec![row("A", 1, Some(1), "x")]);
    world.close();
    assert_eq!(world.publication.renew(world.now, 100).expect("a step").signed, 0, "it signs still");
    world.publication.rotate(world.now, key(9), &[]).expect("a rotation");
    world.close();
    assert_eq!(world.publication.renew(world.now, 100).expect("a step").signed, 0, "it expires in more than a day");
    world.now = 10_000_000;
    let step = world.publication.renew(world.now, 2).expect("a step");
    assert!(step.signed == 2 && !step.is_done);
    while !world.publication.renew(world.now, 2).expect("a step").is_done {}
    world.close();
    world.now = 100_000_000;
    assert_eq!(all(&mut world).expect("nothing of the expired key").rows.len(), 1);
    world.publication.rotate(world.now, key(10), &[]).expect("a rotation");
    assert_eq!(world.manifest().manifest().keys.len(), 2, "the expired key is not listed any more");
}

#[test]
fn who_published_nothing_until_the_key_expired_is_believed_at_once_again() {
    let plan = Plan {
        definition: definition("prices"),
        now: 1000,
        every: 0,
        renew: 0,
        max_age: u64::MAX,
        expires: 50_000_000,
    };
    let mut world = World::planned(plan, [5; 96]);
    world.insert(vec![row("A", 1, Some(1), "x"), row("A", 2, Some(2), "x")]);
    world.close();
    assert!(!world.publication.leave_expired_key(world.now).expect("a key that signs"));
    world.now = 60_000_000;
    assert!(matches!(all(&mut world), Err(Refusal::Stale(_))));
    let refused = world.publication.leave_expired_key(world.now).expect_err("no other key");
    assert!(refused.to_string().contains("expired"), "{refused}");
    world.publication.rotate(world.now, key(9), &[]).expect("a rotation");
    assert!(world.publication.leave_expired_key(world.now).expect("another key"));
    while !world.publication.renew(world.now, 100).expect("a step").is_done {}
    world.close();
    assert_eq!(all(&mut world).expect("rows of the new key").rows.len(), 2);
    assert!(!world.publication.leave_expired_key(world.now).expect("a key that signs"));
}

/// A row that somebody who knows a key makes up: other values in the place of a record, in the period in which that was signed.
fn forged(shelf: &MemoryShelf, rid: u64, thief: &SecretKey, owner: &World) -> MemoryShelf {
    let mut entry = shelf.entry(rid).expect("a record").clone();
    let record = entry.record.as_mut().expect("values");
    record.values[3] = Value::Text("made up".into());
    let root = attributes::root(&record.leaves(owner.publication.definition()).expect("leaves"));
    let message = message(&digest_of(owner), Kind::Record, &entry.stamp, &entry.links, &root);
    entry.signed = thief.sign_all(&[message]);
    let mut shelf = shelf.clone();
    shelf.put(entry).expect("an entry");
    shelf
}

#[test]
fn a_stolen_key_is_revoked_and_nothing_that_it_signed_counts() {
    let mut world = filled();
    let thief = SecretKey::from_entropy(&[5; 32]).expect("the stolen key");
    // Two signatures by the key in the open period, one of them for the same record, and one key that is to come.
    let rid = update(&mut world, 1, 70);
    update(&mut world, 1, 71);
    world.publication.rotate(world.now, key(8), &[]).expect("a rotation");
    let old_shelf = world.publication.shelf().clone();
    let old_manifest = world.manifest();
    let old_summaries = world.publication.summaries().expect("summaries");
    let made_up = forged(&old_shelf, rid, &thief, &world);
    assert!(all_of(&made_up, &old_manifest, &old_summaries, world.now).is_ok(), "a key is a key");

    let versions =
        |shelf: &MemoryShelf| shelf.rids(0).map(|rid| shelf.entry(rid).expect("one").stamp.version).collect();
    let before: Vec<u64> = versions(world.publication.shelf());
    world.now += 1000;
    world.publication.revoke(world.now, &thief.public(), key(9), &[]).expect("a revocation");
    assert_eq!(before, versions(world.publication.shelf()), "signed again, unchanged");
    let status = world.publication.status();
    assert!(status.keys.len() == 1 && status.open_period == 2 && status.oldest_period == 1);
    assert_eq!(all(&mut world).expect("the new key's rows").rows.len(), 5);
    let (manifest, summaries) = (world.manifest(), world.publication.summaries().expect("summaries"));
    // Of a period that is nobody's any more, who can tell the thief from a mirror that was not brought up to date?
    for shelf in [&made_up, &old_shelf] {
        let refused = all_of(shelf, &manifest, &summaries, world.now);
        assert!(matches!(refused, Err(Refusal::Stale(_))), "{:?}", refused.err());
    }
    // In the new key's period.
    let now_made_up = forged(world.publication.shelf(), rid, &thief, &world);
    let refused = all_of(&now_made_up, &manifest, &summaries, world.now);
    assert!(matches!(refused, Err(Refusal::Forged(_))), "{:?}", refused.err());
    // A summary by the stolen key, before or behind the owner's.
    let last = Chain::check(&manifest, [&summaries[1][..]]).expect("the owner's summary");
    assert!(matches!(Chain::check(&manifest, [&summaries[0][..]]), Err(Refusal::Stale(_))));
    let more = Summary {
        definition: digest_of(&world),
        period: 2,
        before: *last.head(),
        ended: world.now,
        contents: contents_root(Vec::new()),
        changed: Vec::new(),
        finals: Default::default(),
    };
    let more = more.sign(&thief);
    assert!(matches!(Chain::check(&manifest, [&summaries[1][..], &more]), Err(Refusal::Forged(_))));
    assert!(matches!(world.publication.revoke(world.now, &thief.public(), key(7), &[]), Err(Error::Misuse(_))));
    // What was signed again by another key in its own period is one message: its version is the one that counts.
    update(&mut world, 2, 72);
    world.close();
    assert_eq!(all(&mut world).expect("rows").rows.len(), 5);
}

#[test]
fn the_old_name_leads_to_the_new_one_until_it_is_given_up() {
    let mut world = filled();
    let old = world.owner;
    let new = SecretKey::from_entropy(&[21; 32]).expect("a root");
    let first = world.publication.manifest().to_vec();
    world.publication.rotate_root(world.now, &new, &[]).expect("two roots");
    let name = Owner::of(&new.public());
    assert_eq!(world.publication.owner(), name);
    assert_eq!(world.publication.status().owner_before, Some(old));
    assert!(matches!(world.publication.rotate_root(world.now, &new, &[]), Err(Error::Misuse(_))));
    for known in [old, name] {
        let manifest = TrustedManifest::check(world.publication.manifest(), &known, 1).expect("either name");
        assert_eq!((manifest.owner(), manifest.manifest().serial), (name, 2));
    }
    assert!(all(&mut world).is_ok());
    world.publication = Publication::open(world.publication.into_ledger()).expect("the same publication");
    assert!(matches!(world.publication.finish_root_rotation(world.now, &[]), Err(Error::RootNeeded)));
    let mut ledger = world.publication.into_ledger();
    assert!(!holds(&mut ledger, &new.to_bytes()), "whoever brings it keeps it");
    world.publication = Publication::open(ledger).expect("the same publication");
    world.publication.finish_root_rotation(world.now, std::slice::from_ref(&new)).expect("one root");
    assert!(matches!(TrustedManifest::check(world.publication.manifest(), &old, 2), Err(Refusal::Forged(_))));
    assert!(matches!(TrustedManifest::check(&first, &name, 0), Err(Refusal::Forged(_))));
    assert!(matches!(world.publication.finish_root_rotation(world.now, &[]), Err(Error::Misuse(_))));
    world.owner = name;
    assert!(all(&mut world).is_ok());
    // Somebody who has another root key puts it beside this one, which has not signed that.
    let [thief, signing] = [66, 5].map(|seed| SecretKey::from_entropy(&[seed; 32]).expect("a key"));
    let mut manifest = world.manifest().manifest().clone();
    manifest.roots.insert(0, thief.public());
    manifest.serial += 1;
    assert!(manifest.sign(&[&thief, &thief, &signing]).is_err());
    let mut bytes = manifest.sign(&[&thief, &new, &signing]).expect("as if both had signed");
    let signatures = bytes.len() - 3 * 48;
    bytes.copy_within(signatures..signatures + 48, signatures + 48);
    assert!(matches!(TrustedManifest::check(&bytes, &name, 0), Err(Refusal::Forged(_))));
}

fn holds(ledger: &mut MemoryLedger, secret: &[u8]) -> bool {
    ledger.scan(b"").expect("pairs").iter().any(|(_, value)| value.windows(32).any(|part| part == secret))
}

#[test]
fn a_root_that_is_kept_elsewhere_is_asked_for() {
    let mut entropy = [5; 96];
    entropy[..32].fill(4);
    let mut world = World::of(definition("prices"), entropy);
    world.insert((0..5).map(|at| row("A", at, None, "a note")).collect());
    world.close();
    let refused = world.publication.export_root(|_| Err(Error::Ledger("no seal".into())));
    assert!(matches!(refused, Err(Error::Ledger(_))) && world.publication.has_root());
    let mut kept = Vec::new();
    world
        .publication
        .export_root(|bytes| {
            kept = bytes.to_vec();
            Ok(())
        })
        .expect("the root");
    let root = SecretKey::from_bytes(&kept).expect("a root");
    assert_eq!(Owner::of(&root.public()), world.owner);
    let mut ledger = world.publication.into_ledger();
    assert!(!holds(&mut ledger, &kept), "the ledger has forgotten it");
    world.publication = Publication::open(ledger).expect("without its root");
    // Days are as ever, without it.
    update(&mut world, 1, 9);
    world.close();
    world.publication.renew_before(u64::MAX, 3).expect("a step");
    let other = SecretKey::from_entropy(&[77; 32]).expect("another root");
    for roots in [&[][..], std::slice::from_ref(&other)] {
        assert!(matches!(world.publication.rotate(world.now, key(9), roots), Err(Error::RootNeeded)));
        assert!(matches!(world.publication.rotate_root(world.now, &other, roots), Err(Error::RootNeeded)));
    }
    assert!(matches!(world.publication.export_root(|_| Ok(())), Err(Error::RootNeeded)));
    let roots = [root];
    world.publication.rotate(world.now, key(9), &roots).expect("a rotation");
    world.publication.rotate_root(world.now, &other, &roots).expect("two roots");
    let mut ledger = world.publication.into_ledger();
    assert!(!holds(&mut ledger, &kept) && !holds(&mut ledger, &other.to_bytes()), "nor does it learn the new one");
    world.publication = Publication::open(ledger).expect("without its roots");
    world.publication.finish_root_rotation(world.now, &[other]).expect("one root");
    world.owner = world.publication.owner();
    assert!(all(&mut world).is_ok());
}

fn copy(world: World) -> (World, MemoryLedger) {
    let World { publication, owner, now } = world;
    let ledger = publication.into_ledger();
    let publication = Publication::open(ledger.clone()).expect("the same publication");
    (World { publication, owner, now }, ledger)
}

fn go_on(world: &mut World, note: &str) {
    world.insert(vec![row("N", 1, None, note)]);
    world.close();
    update(world, 0, note.len() as i128);
    world.insert(vec![row("N", 2, None, note)]);
    world.close();
}

#[test]
fn a_ledger_put_back_without_a_word_is_noticed_by_who_saw_more() {
    let mut world = filled();
    world.insert(vec![row("B", 1, None, "in the open period")]);
    let (mut world, ledger) = copy(world);
    go_on(&mut world, "lost");
    let (manifest, mut chain) = (world.manifest(), world.chain());
    let seen = Seen::of(&manifest, &chain).expect("what was seen");
    world.publication = Publication::open(ledger).expect("the copy");
    world.close();
    let (copied, summaries) = (world.manifest(), world.publication.summaries().expect("summaries"));
    assert_eq!(manifest.digest(), copied.digest(), "the copy says nothing of itself");
    assert!(matches!(seen.check(&copied, &world.chain()), Err(Refusal::Stale(_))), "periods that were there already");
    assert!(chain.extend(&copied, [&summaries[1][..]]).is_err());
    go_on(&mut world, "new");
    let summaries = world.publication.summaries().expect("summaries");
    assert!(matches!(seen.check(&copied, &world.chain()), Err(Refusal::Forged(_))), "two summaries of one period");
    assert!(matches!(chain.extend(&copied, [&summaries[3][..]]), Err(Refusal::Forged(_))));
}

#[test]
fn a_ledger_put_back_and_told_so_signs_nothing_that_collides() {
    for is_key_of_the_open_period_new in [false, true] {
        let mut world = filled();
        if is_key_of_the_open_period_new {
            world.publication.rotate(world.now, key(30), &[]).expect("a rotation");
            world.close();
        }
        world.insert(vec![row("B", 1, None, "in the open period")]);
        let (mut world, ledger) = copy(world);
        go_on(&mut world, "lost");
        world.publication.rotate(world.now, key(31), &[]).expect("a rotation that the copy does not know");
        go_on(&mut world, "lost as well");
        let (lost_shelf, lost) = (world.publication.shelf().clone(), world.publication.summaries().expect("summaries"));
        let (old_manifest, old_chain) = (world.manifest(), world.chain());
        let seen = Seen::of(&old_manifest, &old_chain).expect("what was seen");
        assert!(all(&mut world).is_ok());

        let serial = old_manifest.manifest().serial;
        let restored = Restored { now: world.now, seen_serial: serial, key: key(40), salts: [41; 32] };
        world.publication = Publication::open_restored(ledger, restored, &[]).expect("the copy");
        let manifest = world.manifest();
        assert!(manifest.manifest().serial > serial && manifest.manifest().serial >= world.now);
        assert_eq!(all(&mut world).expect("the copy's rows").rows.len(), 6);
        let check_all = |world: &mut World| {
            let (manifest, summaries) = (world.manifest(), world.publication.summaries().expect("summaries"));
            // Whoever saw what was lost takes the new manifest, and nothing of before with it.
            assert!(seen.check(&manifest, &world.chain()).is_ok());
            assert!(matches!(Chain::check(&manifest, lost.iter().map(Vec::as_slice)), Err(Refusal::Forged(_))));
            assert!(all_of(&lost_shelf, &manifest, &summaries, world.now).is_err());
            assert!(all_of(&lost_shelf, &manifest, &lost, world.now).is_err());
            assert!(all_of(world.publication.shelf(), &old_manifest, &lost, world.now).is_err());
            // Single rows of before among the new ones.
            for rid in lost_shelf.rids(0) {
                let old = lost_shelf.entry(rid).expect("an entry");
                if world.publication.shelf().entry(rid).is_none_or(|new| new.signed != old.signed) {
                    let mut mixed = world.publication.shelf().clone();
                    mixed.put(old.clone()).expect("an entry");
                    assert!(all_of(&mixed, &manifest, &summaries, world.now).is_err(), "record {rid}");
                }
            }
            let after = Seen::of(&manifest, &world.chain()).expect("what was seen");
            assert!(after.check(&old_manifest, &old_chain).is_err(), "and not back");
        };
        check_all(&mut world);
        for note in ["new", "newer", "newest"] {
            go_on(&mut world, note);
            check_all(&mut world);
        }
        // One number and other values: the salts are others too, or hashes of hidden values could be compared.
        let record = |shelf: &MemoryShelf, rid| shelf.entry(rid).and_then(|entry| entry.record.clone());
        let both = lost_shelf
            .rids(0)
            .filter_map(|rid| Some((record(&lost_shelf, rid)?, record(world.publication.shelf(), rid)?)));
        let other: Vec<_> = both.filter(|(old, new)| old.values != new.values).collect();
        assert!(other.len() >= 4 && other.iter().all(|(old, new)| old.seed != new.seed));
    }
}

#[test]
fn a_chain_does_not_end_under_a_key_that_is_listed_for_older_rows() {
    let mut world = filled();
    update(&mut world, 0, 49);
    world.publication.rotate(world.now, key(50), &[]).expect("a rotation");
    world.close();
    // In period 2 the second key signs one row and its neighbours, and the period's summary.
    update(&mut world, 0, 50);
    world.publication.rotate(world.now, key(51), &[]).expect("a rotation");
    world.close();
    let seen = Seen::of(&world.manifest(), &world.chain()).expect("what was seen");
    assert_eq!(seen.period, 2);
    // The third one signs the same again, so that the second one goes, while rows of the first one stay.
    update(&mut world, 0, 51);
    world.close();
    world.publication.rotate(world.now, key(52), &[]).expect("a rotation");
    let manifest = world.manifest();
    assert!(manifest.manifest().key_of(2).is_none() && manifest.manifest().key_of(0).is_some());
    assert!(seen.check(&manifest, &world.chain()).is_ok());
    let summaries = world.publication.summaries().expect("summaries");
    let earlier = Chain::check(&manifest, [&summaries[0][..]]).expect("an earlier end, under a key that is listed");
    assert!(matches!(seen.check(&manifest, &earlier), Err(Refusal::Stale(_))));
    // Of what a listed key signed the summary itself has to be there.
    let seen = Seen::of(&manifest, &world.chain()).expect("what was seen");
    world.close();
    let summaries = world.publication.summaries_from(4).expect("summaries");
    let late = Chain::check(&manifest, [&summaries[0][..]]).expect("a chain");
    assert!(seen.check(&manifest, &late).is_ok(), "it follows what was seen");
    let older = Seen { period: 0, key: manifest.manifest().key_of(0).expect("a key").key, ..seen };
    assert!(matches!(older.check(&manifest, &late), Err(Refusal::Incomplete(_))));
    assert!(matches!(older.check(&manifest, &world.chain()), Err(Refusal::Forged(_))));
    assert!(matches!(Seen { manifest: [0; 32], ..seen }.check(&manifest, &late), Err(Refusal::Forged(_))));
}

/// A ledger that is cut at a commit: the change is not there, or it is and nobody was told.
struct Cut {
    inner: MemoryLedger,
    commits: usize,
    is_durable: bool,
}

impl Ledger for Cut {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get(key)
    }

    fn scan(&mut self, prefix: &[u8]) -> Result<Vec<Pair>, Error> {
        self.inner.scan(prefix)
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<(), Error> {
        let left = self.commits.checked_sub(1);
        if left.is_some() || self.is_durable {
            self.inner.commit(changes)?;
        }
        self.commits = left.ok_or_else(|| Error::Ledger("cut".into()))?;
        Ok(())
    }
}

/// Does step `at` of a life of keys; each is one commit.
fn step(publication: &mut Publication<Cut>, at: u64) -> Result<(), Error> {
    let now = 3000 + 1000 * at;
    let root = SecretKey::from_entropy(&[60; 32]).expect("a root");
    // It is the signing key's as well: this owner has one entropy for all.
    let old = SecretKey::from_entropy(&[5; 32]).expect("a root");
    match at {
        0 => publication.edit(Edit { insert: vec![row("C", 1, None, "x")], ..Edit::default() }).map(drop),
        1 => publication.rotate(now, key(61), &[]),
        2 | 6 | 11 => publication.close_period(now).map(drop),
        3 => publication.renew_before(u64::MAX, 4).map(drop),
        4 => publication.export_root(|_| Ok(())),
        5 => publication.edit(Edit { insert: vec![row("C", 2, None, "y")], ..Edit::default() }).map(drop),
        7 => publication.revoke(now, &old.public(), key(62), &[old]),
        8 => publication.rotate_root(now, &root, &[old]),
        9 => publication.finish_root_rotation(now, &[root]),
        10 => publication.rotate(now, key(63), &[root]),
        _ => publication.renew_before(u64::MAX, 100).map(drop),
    }
}

const STEPS: u64 = 13;

fn state(publication: Publication<Cut>) -> (Publication<Cut>, Vec<Pair>) {
    let cut = publication.into_ledger();
    let mut inner = cut.inner.clone();
    let pairs = inner.scan(b"").expect("pairs");
    (Publication::open(cut).expect("what the ledger holds"), pairs)
}

#[test]
fn a_cut_at_any_commit_of_any_change_of_keys_leaves_all_of_it_or_nothing() {
    let begin = || {
        let mut world = World::new();
        world.insert((0..4).map(|at| row("A", at, Some(at.into()), "a note")).collect());
        world.close();
        world.publication.into_ledger()
    };
    let open = |inner: MemoryLedger, commits, is_durable| {
        Publication::open(Cut { inner, commits, is_durable }).expect("a publication")
    };
    // Without a cut: the ledger behind each step.
    let mut publication = open(begin(), usize::MAX, false);
    let mut states = Vec::new();
    for at in 0..STEPS {
        let (same, pairs) = state(publication);
        states.push(pairs);
        publication = same;
        step(&mut publication, at).expect("a step");
    }
    states.push(state(publication).1);
    for (cut, is_durable) in (0..STEPS).flat_map(|cut| [(cut, false), (cut, true)]) {
        let mut publication = open(begin(), cut as usize, is_durable);
        let mut served: Vec<Vec<u8>> = vec![publication.manifest().to_vec()];
        let failed = (0..STEPS).find(|at| {
            let failed = step(&mut publication, *at).is_err();
            // A manifest that did not become durable, as far as the owner knows, is not served.
            served.push(publication.manifest().to_vec());
            failed
        });
        assert_eq!(failed, Some(cut));
        assert_eq!(served[cut as usize], served[cut as usize + 1]);
        assert!(matches!(publication.rotate(9000, key(70), &[]), Err(Error::Latched)));
        assert!(matches!(publication.renew_before(u64::MAX, 9), Err(Error::Latched)));
        assert!(matches!(publication.export_root(|_| Ok(())), Err(Error::Latched)));
        let mut publication = open(publication.into_ledger().inner, usize::MAX, false);
        let done = cut + u64::from(is_durable);
        let (same, pairs) = state(publication);
        assert!(pairs == states[done as usize], "cut {cut}: all of the step, or nothing");
        publication = same;
        for at in done..STEPS {
            served.push(publication.manifest().to_vec());
            step(&mut publication, at).expect("a step");
        }
        // No serial was served with two manifests, and none after a higher one.
        let serials: Vec<u64> = served.iter().map(|bytes| serial(bytes)).collect();
        assert!(serials.is_sorted());
        for (at, pair) in served.windows(2).enumerate() {
            assert!(pair[0] == pair[1] || serials[at] < serials[at + 1]);
        }
        let owner = publication.owner();
        let publication = Publication::open(publication.into_ledger().inner).expect("the same");
        let mut world = World { publication, owner, now: 20_000 };
        world.close();
        assert_eq!(all(&mut world).expect("honest").rows.len(), 6);
    }
}

/// The serial of a manifest, whoever its owner is.
fn serial(bytes: &[u8]) -> u64 {
    let names =
        [&[5; 32][..], &[60; 32]].map(|entropy| Owner::of(&SecretKey::from_entropy(entropy).expect("a root").public()));
    let checked = names.iter().find_map(|owner| TrustedManifest::check(bytes, owner, 0).ok());
    checked.expect("a manifest").manifest().serial
}

#[test]
fn a_table_begins_under_a_root_that_its_ledger_never_holds() {
    let root = SecretKey::from_entropy(&[60; 32]).expect("a root");
    let plan =
        Plan { definition: definition("prices"), now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
    let secrets = |seed| Secrets::under(&root.public(), &[seed; 64]).expect("keys");
    let without = Publication::create(MemoryLedger::default(), plan.clone(), secrets(5), &[]);
    assert!(matches!(without.err(), Some(Error::RootNeeded)));
    let other = SecretKey::from_entropy(&[61; 32]).expect("a root");
    let wrong = Publication::create(MemoryLedger::default(), plan.clone(), secrets(5), &[other]);
    assert!(matches!(wrong.err(), Some(Error::RootNeeded)));
    // Two tables of one owner.
    for seed in [5, 6] {
        let publication =
            Publication::create(MemoryLedger::default(), plan.clone(), secrets(seed), std::slice::from_ref(&root));
        let publication = publication.expect("a publication");
        let owner = Owner::of(&root.public());
        assert!(publication.owner() == owner && !publication.has_root());
        let mut world = World { publication, owner, now: 1000 };
        world.insert(vec![row("A", 1, Some(1), "x")]);
        world.close();
        assert_eq!(all(&mut world).expect("honest").rows.len(), 1);
        assert!(matches!(world.publication.rotate(2000, key(9), &[]), Err(Error::RootNeeded)));
        let mut ledger = world.publication.into_ledger();
        assert!(!holds(&mut ledger, &root.to_bytes()));
        Publication::open(ledger).expect("the same");
    }
}

#[test]
fn terms_change_with_a_manifest_of_a_higher_serial_and_no_signature() {
    let mut world = filled();
    let (serial, terms) = (world.manifest().manifest().serial, world.publication.terms());
    world.publication.set_terms(world.now, terms, &[]).expect("nothing to do");
    assert_eq!(world.manifest().manifest().serial, serial);
    let terms = Terms { every: 60_000, renew: 3000, max_age: 90_000 };
    world.publication.set_terms(world.now, terms, &[]).expect("other terms");
    let manifest = world.manifest();
    assert_eq!((manifest.manifest().serial, manifest.manifest().max_age), (serial + 1, 90_000));
    assert!(all(&mut world).is_ok());
    // What is to be renewed waits for the end of a period.
    for wrong in [Terms { renew: 0, ..terms }, Terms { renew: 30_000, ..terms }] {
        assert!(matches!(world.publication.set_terms(world.now, wrong, &[]), Err(Error::Misuse(_))));
    }
    // From now on what is old is renewed, and what nobody renewed does not count.
    world.now += 4000;
    assert!(world.publication.renew(world.now, 1000).expect("a step").signed > 0);
    let world = World { publication: Publication::open(world.publication.into_ledger()).expect("the same"), ..world };
    assert_eq!(world.publication.terms(), terms);
}

#[test]
fn secrets_of_other_numbers_begin_nothing() {
    let plan =
        Plan { definition: definition("prices"), now: 1000, every: 0, renew: 0, max_age: u64::MAX, expires: 1 << 50 };
    let world = World::planned(plan.clone(), [5; 96]);
    let aged = Plan { renew: 3000, max_age: 3000, ..plan.clone() };
    let refused =
        Publication::create(MemoryLedger::default(), aged, Secrets::from_entropy(&[6; 96]).expect("keys"), &[]);
    assert!(matches!(refused.err(), Some(Error::Misuse(what)) if what.contains("before they are renewed")));
    let again =
        Publication::create(world.publication.into_ledger(), plan, Secrets::from_entropy(&[6; 96]).expect("keys"), &[]);
    assert!(matches!(again.err(), Some(Error::Misuse(_))));
}
