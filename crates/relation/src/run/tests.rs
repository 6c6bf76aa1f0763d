//! Runs against a sorted set, and against bytes that are none.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use core::cell::Cell;

use counterfoil_log::{CommitNumber, Memory, NamelessPage, PoolId, Storage as _, View};

use super::stream::Stream;
use super::*;
use crate::RowId;
use crate::heads::Heads;
use crate::key::{entry, split_entry};

/// Numbers without a pattern.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn key(&mut self) -> Vec<u8> {
        let bytes = match self.roll(20) {
            0 => self.roll(600),
            _ => self.roll(12),
        };
        let mut key: Vec<u8> = (0..bytes).map(|_| 97 + self.roll(3) as u8).collect();
        key.insert(0, 1);
        key.extend_from_slice(&[0, 0]);
        key
    }
}

fn entries(dice: &mut Dice, count: u64) -> BTreeSet<Vec<u8>> {
    (0..count).map(|_| entry(&dice.key(), RowId(dice.roll(1000)))).collect()
}

fn write(storage: &mut Memory, entries: &BTreeSet<Vec<u8>>) -> Run {
    let blocks = Blocks::in_pages(storage.page_bytes());
    write_in(storage, blocks, entries)
}

fn write_in(storage: &mut Memory, blocks: Blocks, entries: &BTreeSet<Vec<u8>>) -> Run {
    let mut writer = RunWriter::new(blocks, None, (0, 0), entries.len() as u64);
    entries.iter().for_each(|entry| writer.push(storage, entry).unwrap());
    writer.finish(storage).unwrap().unwrap()
}

#[test]
fn a_run_is_as_long_as_a_reader_takes_it_for_on_pages_of_any_size() {
    let mut dice = Dice(7);
    for (page_bytes, count) in [496, 1008, 2032, 4080].into_iter().flat_map(|bytes| [(bytes, 100), (bytes, 3000)]) {
        let mut entries = entries(&mut dice, count);
        // Small blocks are for short keys.
        entries.retain(|entry| entry.len() < 80);
        assert!(entries.len() as u64 > count / 2, "{}", entries.len());
        for blocks in [Blocks::in_pages(page_bytes), Blocks::in_sectors(8), Blocks::in_sectors(200)] {
            let mut storage = Memory::default();
            storage.page_bytes = Some(page_bytes);
            let run = write_in(&mut storage, blocks, &entries);
            run.check_length(&storage).unwrap();
            Head::read(&storage, &run).unwrap();
            let there = storage.length(run.container()).unwrap() as usize;
            // Where a page is no larger than a block, a device has nothing of it in memory.
            let is_whole = there.is_multiple_of(blocks.sealing.page_payload(page_bytes));
            assert!(
                is_whole || !cfg!(feature = "small") || page_bytes > blocks.bytes,
                "{page_bytes}, {blocks:?}: {there}"
            );
        }
    }
}

#[test]
fn a_run_reads_as_the_set_it_was_written_from() {
    let mut dice = Dice(1);
    for count in [1, 2, 100, 3000, 60_000] {
        let mut storage = Memory::default();
        let entries = entries(&mut dice, count);
        let run = write(&mut storage, &entries);
        run.check().unwrap();
        let behind = storage.length(run.container()).unwrap() - run.bytes();
        // Where memory is little its last page is whole.
        assert!(behind == 0 || (cfg!(feature = "small") && behind < storage.page_bytes() as u64), "{behind}");
        assert_eq!(run.entries, entries.len() as u64);
        let head = Head::read(&storage, &run).unwrap();
        let bare = Head::bare();
        for piece_bytes in [7, 496, storage.page_bytes(), 100_000] {
            let mut stream = Stream::at(&run, 0, piece_bytes);
            for entry in &entries {
                assert!(stream.advance(&storage).unwrap());
                assert_eq!(stream.current(), Some(entry.as_slice()));
            }
            assert!(!stream.advance(&storage).unwrap() && !stream.advance(&storage).unwrap());
            assert_eq!(stream.current(), None);
        }
        for _ in 0..500 {
            let low = match dice.roll(2) {
                0 => dice.key(),
                _ => entries.iter().nth(dice.roll(entries.len() as u64) as usize).unwrap().clone(),
            };
            let expected = entries.range(low.clone()..).next();
            for head in [&head, &bare] {
                let cursor = head.seek(&storage, &run, &low).unwrap();
                assert_eq!(cursor.current(), expected.map(Vec::as_slice));
            }
        }
        for (key, _) in entries.iter().filter_map(|entry| split_entry(entry)).take(500) {
            assert!(head.may_hold(&storage, &run, key).unwrap() && bare.may_hold(&storage, &run, key).unwrap());
        }
    }
}

#[test]
fn a_filter_that_cannot_be_read_does_not_say_that_a_key_is_absent() {
    let mut storage = Memory::default();
    let entries = entries(&mut Dice(4), 3000);
    let run = write(&mut storage, &entries);
    storage.containers.clear();
    for (key, _) in entries.iter().filter_map(|entry| split_entry(entry)).take(50) {
        assert!(Head::bare().may_hold(&storage, &run, key).is_err());
    }
}

#[test]
fn merged_runs_read_as_the_union() {
    let mut dice = Dice(2);
    let mut storage = Memory::default();
    let sets: Vec<_> = (0..5).map(|_| entries(&mut dice, 2000)).collect();
    let runs: Vec<_> = sets.iter().map(|set| write(&mut storage, set)).collect();
    let all: Vec<Vec<u8>> = sets.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().collect();
    for (passed, piece_bytes) in [(0, 100_000), (0, 50), (1, 4080), (4000, 4080), (all.len(), 50)] {
        let after = passed.checked_sub(1).map_or(&[][..], |last| &all[last]);
        let mut merge = Merge::after(&storage, runs.chunks(1), after, piece_bytes).unwrap();
        let mut entry = Vec::new();
        for expected in &all[passed..] {
            entry.clear();
            assert!(merge.next(&storage, &mut entry).unwrap());
            assert_eq!(entry, *expected);
        }
        assert!(!merge.next(&storage, &mut entry).unwrap());
    }
}

#[test]
fn nothing_makes_no_run() {
    let mut storage = Memory::default();
    let blocks = Blocks::in_pages(storage.page_bytes());
    let writer = RunWriter::new(blocks, None, (0, 0), 10);
    assert!(writer.finish(&mut storage).unwrap().is_none());
    assert!(storage.containers.is_empty());
}

#[test]
fn nonsense_ends_in_an_error_or_a_wrong_answer_never_in_a_panic() {
    let mut dice = Dice(3);
    let mut storage = Memory::default();
    let entries = entries(&mut dice, 5000);
    let run = write(&mut storage, &entries);
    for _ in 0..3000 {
        let mut broken = storage.clone();
        let (_, bytes) = broken.containers.get_mut(&run.container()).unwrap();
        for _ in 0..=dice.roll(3) {
            let place = dice.roll(bytes.len() as u64) as usize;
            let place =
                if dice.roll(2) == 0 { place / run.block_bytes() * run.block_bytes() + place % 24 } else { place };
            bytes[place.min(run.bytes() as usize - 1)] = dice.roll(256) as u8;
        }
        let mut stream = Stream::at(&run, 0, 496);
        while matches!(stream.advance(&broken), Ok(true)) {}
        let low = dice.key();
        for head in [Head::read(&broken, &run).unwrap(), Head::bare()] {
            let _ = head.may_hold(&broken, &run, &low);
            if let Ok(mut cursor) = head.seek(&broken, &run, &low) {
                for _ in 0..1000 {
                    if !matches!(cursor.advance(&broken), Ok(true)) && !cursor.skip_block() {
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn a_description_that_makes_no_sense_is_refused() {
    let mut storage = Memory::default();
    let good = write(&mut storage, &entries(&mut Dice(4), 5000));
    let spoiled: [fn(&mut Run); 8] = [
        |run| run.levels.clear(),
        |run| run.levels.push(1),
        |run| run.levels[0] = 0,
        |run| run.lines = 0,
        |run| run.entries = 0,
        |run| run.entries = 1 << 60,
        |run| run.first.clear(),
        |run| core::mem::swap(&mut run.first, &mut run.last),
    ];
    for spoil in spoiled {
        let mut run = good.clone();
        spoil(&mut run);
        assert!(run.check().is_err());
    }
    let mut longer = good.clone();
    longer.levels[0] += 1;
    assert!(longer.check().is_ok() && Head::read(&storage, &longer).is_err());
    assert!(longer.check_length(&storage).is_err() && good.check_length(&storage).is_ok());
}

#[test]
fn a_damaged_block_is_passed_over_alone() {
    let mut storage = Memory::default();
    let entries = entries(&mut Dice(5), 4000);
    let run = write(&mut storage, &entries);
    storage.containers.get_mut(&run.container()).unwrap().1[2 * run.block_bytes()] = 77;
    let mut cursor = Cursor::careful(&run);
    let (mut read, mut damaged) = (0, 0);
    loop {
        match cursor.advance(&storage) {
            Ok(true) => read += 1,
            Ok(false) => break,
            Err(_) => {
                damaged += 1;
                assert!(cursor.skip_block());
            }
        }
    }
    assert_eq!(damaged, 1);
    assert!(read < entries.len() && read > entries.len() / 2);
}

/// A view that counts the bytes read.
struct Metered<'a> {
    view: &'a Memory,
    bytes: Cell<u64>,
}

impl View for Metered<'_> {
    fn length(&self, container: ContainerId) -> Result<u64, counterfoil_log::Error> {
        self.view.length(container)
    }

    fn read(&self, container: ContainerId, offset: u64, buffer: &mut [u8]) -> Result<(), counterfoil_log::Error> {
        self.bytes.set(self.bytes.get() + buffer.len() as u64);
        self.view.read(container, offset, buffer)
    }

    fn read_nameless(&self, pool: PoolId, page: NamelessPage, buffer: &mut [u8]) -> Result<(), counterfoil_log::Error> {
        self.view.read_nameless(pool, page, buffer)
    }

    fn record(&self, space: u8, name: &[u8]) -> Option<alloc::sync::Arc<[u8]>> {
        self.view.record(space, name)
    }

    fn records(&self, space: u8, prefix: &[u8]) -> Vec<(Vec<u8>, alloc::sync::Arc<[u8]>)> {
        self.view.records(space, prefix)
    }

    fn commit_number(&self) -> CommitNumber {
        self.view.commit_number()
    }
}

#[test]
fn a_head_is_read_once_and_not_for_one_lookup() {
    let mut storage = Memory::default();
    let run = write(&mut storage, &(0..60_000_u64).map(|row| entry(&row.to_be_bytes(), RowId(row * 7919))).collect());
    let (view, heads) = (Metered { view: &storage, bytes: Cell::new(0) }, Heads::default());
    let look = |key: u64| {
        let head = heads.of(&view, &run, 1).unwrap();
        let key = key.to_be_bytes();
        assert!(head.may_hold(&view, &run, &key).unwrap());
        assert_eq!(head.seek(&view, &run, &key).unwrap().current().unwrap()[..8], key);
    };
    look(30_000);
    let (first, block) = (view.bytes.take(), run.block_bytes() as u64);
    assert!(first <= 4 * block && 10 * first < run.head_bytes(), "{first} bytes for one lookup");
    (0..10_000).for_each(|key| look(key * 6));
    let rest = view.bytes.get();
    assert!(rest < 10_001 * block + 3 * run.head_bytes(), "{rest} bytes for 10,000 lookups");
}
