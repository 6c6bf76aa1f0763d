//! The store against a map: random commits, releases, openings, full windows.

use counterfoil_record::{BufferSizes, Error, RecordId, Store, Which, Window};

use crate::bench::*;
use crate::part::{Part, Random};

/// Runs `steps` random steps and compares everything after each opening.
fn run(shape: &Shape, seed: u64, steps: usize, bytes: usize, per_commit: usize) -> (usize, usize) {
    let mut random = Random(seed);
    let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
    let (mut truth, mut commits, mut full) = (Truth::new(), 0, 0);
    let mut name = format(&mut part, &vault, &mut memory, shape).name();
    for _ in 0..steps {
        let mut store = open(&mut part, &vault, &mut memory, shape, Which::Exactly(name)).unwrap();
        for _ in 0..random.below(30) {
            let count = random.below(per_commit + 1);
            let changes = random_changes(&mut random, shape.ids, bytes, count);
            let before = store.version();
            let fits = store.fits(&borrowed(&changes).as_slice());
            match store.commit(&borrowed(&changes)) {
                Ok(version) => {
                    assert!(fits && version > before && version == store.version());
                    apply(&mut truth, &changes);
                    commits += 1;
                }
                Err(Error::Full { .. }) => {
                    assert_eq!(store.version(), before);
                    full += 1;
                    if let Some(version) = store.prepare().unwrap() {
                        store.release(version);
                    }
                }
                Err(other) => panic!("{other}"),
            }
            store.check();
            if random.below(8) > 0 {
                store.release(store.version());
            }
            assert_eq!(store.count() as usize, truth.len());
            let mut buffer = vec![0; 4096];
            for (id, record) in &truth {
                let length = store.read(RecordId(*id), &mut buffer).unwrap();
                assert_eq!(*record, buffer[..length]);
            }
        }
        store.release(store.version());
        name = store.name();
        assert_eq!(look(&part, &vault, shape, Which::Newest).unwrap(), (name, truth.clone()));
    }
    let untouched = |page: &Vec<u8>| page.iter().all(|byte| *byte == page[0]);
    let (pages, block) = (&part.pages, shape.block_pages as usize);
    assert!(pages[..block].iter().all(untouched) && pages[pages.len() - block..].iter().all(untouched));
    (commits, full)
}

#[test]
fn random_histories_agree_with_a_map() {
    for seed in 0..12 {
        let (commits, _) = run(&NAND, seed, 12, 60, 6);
        assert!(commits > 20);
        run(&FILE, 100 + seed, 12, 434, 12);
        run(&FILE, 200 + seed, 8, 40, 60);
    }
    assert_eq!(counterfoil_vault::witness::duplicates(), []);
}

#[test]
fn a_full_window_says_so_and_goes_on() {
    let mut seen = 0;
    for seed in 0..12 {
        let (commits, full) = run(&Shape { ids: 60, ..NAND }, seed, 30, 130, 4);
        assert!(commits > 50, "{commits} commits, {full} times full");
        seen += full;
    }
    assert!(seen > 50, "the window was full {seen} times");
}

/// Fills the store with records until it is full, one a commit.
fn fill(store: &mut Store<'_, Part>, bytes: usize, truth: &mut Truth) {
    loop {
        let Ok(id) = store.allocate() else { return };
        let record = vec![id.0 as u8; bytes];
        match store.commit(&[(id, Some(&record))]) {
            Ok(version) => {
                store.release(version);
                truth.insert(id.0, record);
            }
            Err(Error::Full { .. }) => match store.prepare().unwrap() {
                Some(version) => store.release(version),
                None => return,
            },
            Err(other) => panic!("{other}"),
        }
        store.check();
    }
}

#[test]
fn deletions_work_in_a_full_store_one_an_opening() {
    for bytes in [30, 60, 150, 230, 400] {
        let shape = Shape { ids: 2000, erase: true, ..FILE };
        let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
        let mut truth = Truth::new();
        let mut store = format(&mut part, &vault, &mut memory, &shape);
        fill(&mut store, bytes, &mut truth);
        let at_first = truth.len();
        let mut openings = 0;
        while let Some(id) = truth.keys().nth(truth.len() / 2).copied() {
            let mut store = open(&mut part, &vault, &mut memory, &shape, Which::Newest).unwrap();
            let version = store.commit(&[(RecordId(id), None)]).unwrap_or_else(|error| {
                panic!("{error} at opening {openings} with {} of {at_first} records of {bytes} left", truth.len())
            });
            store.release(version);
            store.check();
            truth.remove(&id);
            openings += 1;
        }
        assert_eq!(look(&part, &vault, &shape, Which::Newest).unwrap().1, Truth::new());
    }
}

#[test]
fn a_full_store_can_be_overwritten_again_and_again() {
    // What a caller is promised: after Full, preparing and releasing gives room for what was deallocated.
    let shape = Shape { ids: 2000, erase: true, ..FILE };
    let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
    let mut truth = Truth::new();
    let mut store = format(&mut part, &vault, &mut memory, &shape);
    fill(&mut store, 30, &mut truth);
    let mut random = Random(5);
    for _ in 0..300 {
        let ids: Vec<u32> = truth.keys().copied().collect();
        let id = ids[random.below(ids.len())];
        let version = store.commit(&[(RecordId(id), None)]).unwrap();
        store.release(version);
        let record = vec![random.next() as u8; 20];
        let mut tries = 0;
        loop {
            match store.commit(&[(RecordId(id), Some(&record))]) {
                Ok(version) => break store.release(version),
                Err(Error::Full { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            tries += 1;
            assert!(tries < 40, "room is found within two laps");
            if let Some(version) = store.prepare().unwrap() {
                store.release(version);
            } else {
                // Nothing more to gain: the record that was there took no page of its own.
                truth.remove(&id);
                let other = *truth.keys().nth(random.below(truth.len())).unwrap();
                let version = store.commit(&[(RecordId(other), None)]).unwrap();
                store.release(version);
                truth.remove(&other);
            }
            store.check();
        }
        truth.insert(id, record);
    }
    assert_eq!(look(&part, &vault, &shape, Which::Newest).unwrap().1, truth);
}

#[test]
fn space_left_is_a_promise() {
    let mut random = Random(77);
    for seed in 0..40 {
        let (mut part, vault, mut memory) = (FILE.part(), fresh_vault(), FILE.memory());
        let mut store = format(&mut part, &vault, &mut memory, &FILE);
        for _ in 0..seed % 7 {
            let version = store.commit(&borrowed(&random_changes(&mut random, 64, 300, 9))).unwrap();
            store.release(version);
        }
        // The worst way to cut bytes into records: each a little over half a page, or of any size.
        let (mut left, most) = (store.space_left() as usize, store.record_bytes_max());
        let mut changes = Changes::new();
        for id in 0..64 {
            let bytes = if seed % 2 == 0 { most / 2 + 1 } else { random.below(most + 1) };
            let bytes = bytes.min(left.saturating_sub(6));
            if left < 6 {
                break;
            }
            left -= bytes + 6;
            changes.push((id, Some(vec![1; bytes])));
        }
        store.commit(&borrowed(&changes)).unwrap();
    }
}

#[test]
fn an_unreleased_commit_keeps_the_one_before_whole() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let (mut part, vault, mut memory) = (FILE.part(), fresh_vault(), FILE.memory());
        let mut store = format(&mut part, &vault, &mut memory, &FILE);
        let mut truth = Truth::new();
        for _ in 0..30 {
            let changes = random_changes(&mut random, 64, 100, 10);
            let version = store.commit(&borrowed(&changes)).unwrap();
            apply(&mut truth, &changes);
            store.release(version);
        }
        let released = store.name();
        let mut later = truth.clone();
        loop {
            let changes = random_changes(&mut random, 64, 100, 10);
            if store.commit(&borrowed(&changes)).is_err() {
                break;
            }
            apply(&mut later, &changes);
            store.check();
        }
        let newest = store.version();
        assert_eq!(look(&part, &vault, &FILE, Which::Exactly(released)).unwrap(), (released, truth.clone()));
        assert_eq!(look(&part, &vault, &FILE, Which::Newest).unwrap().1, later);
        // Back through every commit, one after another.
        let mut version = newest;
        loop {
            let (name, found) = look(&part, &vault, &FILE, Which::Before(version)).unwrap();
            version = name.version;
            if name == released {
                assert_eq!(found, truth);
                break;
            }
        }
        // Fall back for good: what was not released is gone, and the store works on.
        let mut store = open(&mut part, &vault, &mut memory, &FILE, Which::Exactly(released)).unwrap();
        let changes = random_changes(&mut random, 64, 100, 3);
        store.commit(&borrowed(&changes)).unwrap();
        let name = store.name();
        apply(&mut truth, &changes);
        assert_eq!(look(&part, &vault, &FILE, Which::Exactly(name)).unwrap().1, truth);
    }
}

#[test]
fn putting_aside_and_taking_up_changes_nothing() {
    let (mut part, vault, mut memory) = (FILE.part(), fresh_vault(), FILE.memory());
    let mut suspended = format(&mut part, &vault, &mut memory, &FILE).suspend();
    let (mut random, mut truth) = (Random(3), Truth::new());
    for _ in 0..100 {
        let mut store = Store::resume(&mut part, &vault, suspended, memory.buffers()).unwrap();
        let changes = random_changes(&mut random, 64, 100, 5);
        let version = store.commit(&borrowed(&changes)).unwrap();
        store.release(version);
        store.check();
        apply(&mut truth, &changes);
        suspended = store.suspend();
    }
    assert_eq!(look(&part, &vault, &FILE, Which::Newest).unwrap().1, truth);
}

#[test]
fn allocated_ids_are_free_and_differ() {
    let (mut part, vault, mut memory) = (FILE.part(), fresh_vault(), FILE.memory());
    let mut store = format(&mut part, &vault, &mut memory, &FILE);
    let (one, two) = (store.allocate().unwrap(), store.allocate().unwrap());
    assert_eq!((one, two), (RecordId(0), RecordId(1)));
    store.commit(&[(two, Some(b"two"))]).unwrap();
    assert_eq!(store.allocate(), Ok(RecordId(0)));
    assert_eq!(store.allocate(), Ok(RecordId(2)));
    store.commit(&[(two, None), (RecordId(63), Some(b"last"))]).unwrap();
    let ids: Vec<_> = std::iter::from_fn(|| store.allocate().ok()).collect();
    assert_eq!(ids.len(), 63);
    assert_eq!(store.allocate(), Err(Error::IdsExhausted { limit: 64 }));
}

#[test]
fn callers_are_told_what_they_did_wrong_and_nothing_is_lost() {
    let (mut part, vault, mut memory) = (FILE.part(), fresh_vault(), FILE.memory());
    let mut store = format(&mut part, &vault, &mut memory, &FILE);
    let id = store.allocate().unwrap();
    store.commit(&[(id, Some(b"kept")), (id, Some(b"kept twice")), (id, Some(b"kept last"))]).unwrap();
    let most = store.record_bytes_max();
    let long = vec![0; most + 1];
    assert_eq!(store.commit(&[(id, Some(&long))]), Err(Error::RecordTooLong { bytes: most + 1, limit: most }));
    assert_eq!(store.commit(&[(RecordId(64), Some(b""))]), Err(Error::IdOutOfRange { id: RecordId(64), limit: 64 }));
    let mut small = [0; 3];
    assert_eq!(store.read(id, &mut small), Err(Error::BufferTooSmall { what: "a record", needed: 9, given: 3 }));
    assert_eq!(store.read(RecordId(5), &mut small), Err(Error::NoRecord(RecordId(5))));
    store.commit(&[(id, Some(&long[..most]))]).unwrap();
    store.commit(&[(id, Some(b"kept last"))]).unwrap();
    store.check();
    let mut buffer = [0; 16];
    assert_eq!(store.read(id, &mut buffer), Ok(9));

    let mut few = Memory::new(&part.geometry, &FILE.window(), 0);
    let answer = Store::open(&mut part, &vault, FILE.window(), Which::Newest, None, few.buffers());
    assert_eq!(answer.err(), Some(Error::BufferTooSmall { what: "the index", needed: 1, given: 0 }));
    let mut store = Store::open(&mut part, &vault, FILE.window(), Which::Newest, None, memory.buffers()).unwrap();
    assert!(matches!(store.commit(&[]), Err(Error::Misuse(_))));
    store.start_writing(fresh_epoch()).unwrap();
    assert!(matches!(store.start_writing(fresh_epoch()), Err(Error::Misuse(_))));
    store.commit(&[]).unwrap();

    let geometry = part.geometry;
    let sizes = |window| BufferSizes::of(&geometry, &window);
    assert!(matches!(sizes(Window { first_block: 0, block_count: 7, doubled: false }), Err(Error::Geometry(_))));
    assert!(matches!(sizes(Window { first_block: 3, block_count: 12, doubled: true }), Err(Error::Geometry(_))));
    assert!(matches!(
        sizes(Window { first_block: u64::MAX, block_count: 12, doubled: false }),
        Err(Error::Geometry(_))
    ));
}

#[test]
fn an_epoch_is_used_once() {
    let (mut part, vault, mut memory) = (FILE.part(), fresh_vault(), FILE.memory());
    let epoch = fresh_epoch();
    Store::format(&mut part, &vault, FILE.window(), epoch, memory.buffers()).unwrap();
    let answer = Store::open(&mut part, &vault, FILE.window(), Which::Newest, Some(epoch), memory.buffers());
    assert!(matches!(answer.err(), Some(Error::Misuse(_))));
}

#[test]
fn opening_an_untouched_store_reads_heads_and_little_else() {
    let shape = Shape { page_bytes: 512, block_pages: 32, blocks: 32, erase: false, ids: 300, doubled: false };
    let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
    let mut store = format(&mut part, &vault, &mut memory, &shape);
    let mut random = Random(9);
    for _ in 0..500 {
        let version = store.commit(&borrowed(&random_changes(&mut random, 300, 40, 8))).unwrap();
        store.release(version);
    }
    store.fold().unwrap();
    part.reads.set(0);
    let window = shape.window();
    let heads = 27 * 32;
    Store::open(&mut part, &vault, window, Which::Newest, None, memory.buffers()).unwrap();
    assert!(part.reads.get() < heads + 40, "{} reads", part.reads.get());
}

#[test]
fn index_copies_of_unreleased_commits_stay() {
    let (mut part, vault, mut memory) = (FILE.part(), fresh_vault(), FILE.memory());
    let mut store = format(&mut part, &vault, &mut memory, &FILE);
    let version = store.commit(&[(RecordId(60), Some(b"sixty"))]).unwrap();
    store.release(version);
    let version = store.fold().unwrap();
    store.release(version);
    let released = store.name();
    let mut folds = 0;
    while store.fold().is_ok() {
        folds += 1;
        assert!(folds < 100);
    }
    assert!(folds > 8, "{folds} copies found room");
    assert!(matches!(store.fold(), Err(Error::Full { .. })));
    // Commits that need no new copy go on.
    store.commit(&[(RecordId(1), Some(b"one"))]).unwrap();
    store.check();
    let newest = store.name();
    let truth = Truth::from([(60, b"sixty".to_vec())]);
    assert_eq!(look(&part, &vault, &FILE, Which::Exactly(released)).unwrap().1, truth);
    assert_eq!(look(&part, &vault, &FILE, Which::Newest).unwrap().0, newest);
}

#[test]
fn as_much_fits_as_is_promised() {
    for seed in 0..30 {
        let mut random = Random(seed);
        let shape = Shape { page_bytes: 512, block_pages: 8, blocks: 24, erase: true, ids: 1100, doubled: true };
        let (mut part, vault, mut memory) = (shape.part(), fresh_vault(), shape.memory());
        let mut store = format(&mut part, &vault, &mut memory, &shape);
        // Records of one size, so that how many fill a page is known.
        let bytes = [60, 100, 150, 225, 434][seed as usize % 5];
        let each = store.page_room() / (bytes + 6);
        let write = 1 + random.below(30);
        let held = store.pages_max() as usize - write;
        let count = (held * each).min(700);
        let overwrite = |store: &mut Store<'_, Part>, ids: &mut dyn Iterator<Item = usize>| {
            let changes: Changes = ids.map(|id| (id as u32, Some(vec![id as u8; bytes]))).collect();
            for _ in 0..100 {
                match store.commit(&borrowed(&changes)) {
                    Ok(version) => return store.release(version),
                    Err(Error::Full { .. }) => {}
                    Err(other) => panic!("{other}"),
                }
                let version = store.prepare().unwrap().unwrap_or_else(|| panic!("seed {seed}: {} held", count / each));
                store.release(version);
                store.check();
            }
            panic!("no room after a hundred preparations");
        };
        for first in (0..count).step_by(write * each) {
            overwrite(&mut store, &mut (first..count.min(first + write * each)));
        }
        for _ in 0..40 {
            let ids: Vec<usize> = (0..write * each).map(|_| random.below(count)).collect();
            overwrite(&mut store, &mut ids.into_iter());
        }
        assert_eq!(store.count() as usize, count);
    }
}
