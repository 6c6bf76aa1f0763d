//! Faults that were found once, each with the smallest history that shows it.

use counterfoil_flash_sim::{Dice, Fault, Part, Scenario, Survivors, Tearing};
use counterfoil_record::RecordId;
use counterfoil_record::alone::Error;

use crate::chip::*;

/// More writes than any commit may take: the power fails then, instead of the test running for ever.
const WRITES_MAX: u64 = 20_000;

fn bound_writes(chip: &Chip) {
    let at = chip.device.writes() + WRITES_MAX;
    let cut = Fault::Cut { at, tearing: Tearing::Complete, survivors: Survivors::All };
    chip.device.set_scenario(Scenario::one(1, cut));
}

/// Fills a store with long records; how many there are then.
fn fill(chip: &mut Chip) -> u32 {
    chip.with(true, |_| ()).expect("made");
    let filled = chip.with(false, |store| {
        let mut id = 0;
        while store.commit(&[(RecordId(id), Some(&[1; 440]))]).is_ok() {
            id += 1;
        }
        id
    });
    filled.expect("opens")
}

fn commit(chip: &mut Chip, id: u32, record: Option<&[u8]>) -> Result<(), Error> {
    chip.with(false, |store| store.commit(&[(RecordId(id), record)]).map(drop))?
}

/// A commit page reached the medium and a leaf of the same commit did not, and nobody read the leaves.
#[test]
fn a_leaf_that_a_cut_lost_is_missed_without_bits_too() {
    for (at, seed) in (1..120).flat_map(|at| (0..4).map(move |seed| (at, seed))) {
        let mut chip = Chip::new(Part::file(512, 8, 16), 4);
        (chip.has_live, chip.pending, chip.leaves) = (false, 34, 2);
        chip.with(true, |_| ()).expect("made");
        let cut = Fault::Cut { at: chip.device.writes() + at, tearing: Tearing::Untouched, survivors: Survivors::Any };
        chip.device.set_scenario(Scenario::one(seed, cut));
        let mut acknowledged = 0;
        let played = chip.with(false, |store| {
            for id in 0..60 {
                store.commit(&[(RecordId(id), Some(&[7; 20]))])?;
                acknowledged = id + 1;
            }
            Ok::<_, Error>(())
        });
        assert!(played.is_ok(), "opening writes nothing");
        chip.device.power_on();
        chip.device.set_scenario(Scenario::calm(1));
        let found = chip.with(false, |store| contents(store, 60)).expect("opens");
        assert!(found.len() >= acknowledged as usize, "cut {at}, seed {seed}");
    }
}

/// Cleaning blocks in which everything is current gained nothing, and was done again and again.
#[test]
fn an_opening_of_a_full_store_comes_to_an_end() {
    let mut chip = Chip::new(Part::nand(512, 8, 16), 4);
    fill(&mut chip);
    for turn in 0..5 {
        bound_writes(&chip);
        let outcome = commit(&mut chip, 0, Some(&[1; 440]));
        assert!(!chip.device.is_cut(), "turn {turn}: {outcome:?} took {WRITES_MAX} writes");
    }
}

/// Each restart took two pages of a full store, and none was given back in time.
#[test]
fn a_full_store_that_is_asked_for_more_at_every_start_can_be_emptied() {
    let mut chip = Chip::new(Part::nand(512, 32, 9), 3);
    let filled = fill(&mut chip);
    for turn in 0..40 {
        let mut other = chip.copied();
        for place in [&chip, &other] {
            bound_writes(place);
        }
        assert_eq!(commit(&mut other, 0, None), Ok(()), "after {turn} restarts");
        assert_eq!(commit(&mut chip, filled + 1, Some(&[1; 440])), Err(Error::Full), "turn {turn}");
    }
}

/// What stood in the oldest block of the index ring could not be moved any more.
#[test]
fn the_index_ring_does_not_get_stuck() {
    for seed in 0..20 {
        let mut chip = Chip::new(Part::nand(512, 32, 8), 3);
        chip.shape.page_entries = 1;
        (chip.pending, chip.leaves) = (112, 28);
        chip.with(true, |_| ()).expect("made");
        let mut dice = Dice::new(seed);
        let ids: Vec<u32> = (0..80).map(|_| dice.below(6600) as u32).collect();
        let played = chip.with(false, |store| {
            for turn in 0..1000 {
                let id = RecordId(ids[dice.below(80) as usize]);
                let record: Option<&[u8]> = dice.once_in(3).then_some(&[1; 8]);
                store.commit(&[(id, record)]).unwrap_or_else(|error| panic!("seed {seed}, turn {turn}: {error}"));
            }
        });
        played.expect("opens");
    }
}

/// The head of a page has 39 bits for the number of an opening.
#[test]
fn a_counter_that_stands_too_high_is_refused() {
    let mut chip = Chip::new(Part::gnatdb_board(16), 3);
    chip.counter = crate::counter::CutCounter::at((1 << 39) - 1);
    assert_eq!(chip.with(true, |_| ()), Err(Error::WornOut));
    chip.counter = crate::counter::CutCounter::at((1 << 39) - 100);
    chip.with(true, |_| ()).expect("made");
    let mut numbers = 0;
    while commit(&mut chip, 0, Some(b"one")).is_ok() {
        numbers += 1;
    }
    assert!(numbers > 5 && numbers < 50, "{numbers} openings");
    assert_eq!(commit(&mut chip, 0, Some(b"one")), Err(Error::WornOut));
    assert_eq!(chip.with(false, |store| contents(store, 1).len()), Ok(1));
}

/// Words of two bytes have no room for ids from 65,535 on, but leaves may be many enough for them: they became the word for
/// nothing, and the store could not be cleaned any more.
#[test]
fn ids_that_a_word_has_no_room_for_are_refused() {
    let mut chip = Chip::new(Part::nand(1024, 64, 12), 6);
    (chip.pending, chip.leaves) = (640, 160);
    chip.with(true, |_| ()).expect("made");
    for id in [65_534, 65_535, 65_536, 70_000] {
        match commit(&mut chip, id, Some(&[7; 20])) {
            Err(Error::IdOutOfRange) => {}
            outcome => {
                assert_eq!(outcome, Ok(()), "id {id}");
                let read = chip.with(false, |store| store.read(RecordId(id), &mut [0; 64])).expect("opens");
                assert_eq!(read, Ok(20), "id {id}");
            }
        }
    }
}

/// Fills a store with records of 24 bytes at random ids, asks it for changes, and deallocates everything.
fn fill_and_empty(blocks: u64, index: u32, pending: usize, seed: u64) {
    let mut chip = Chip::new(Part::nand(512, 16, blocks), index);
    (chip.pending, chip.leaves) = (pending, 16);
    chip.with(true, |_| ()).expect("made");
    let mut dice = Dice::new(seed);
    let played = chip.with(false, |store| {
        let (limit, mut ids) = (u64::from(store.ids_max()), Vec::new());
        loop {
            let id = dice.below(limit) as u32;
            match store.commit(&[(RecordId(id), Some(&[1; 24]))]) {
                Ok(_) if ids.contains(&id) => {}
                Ok(_) => ids.push(id),
                Err(error) => break assert_eq!(error, Error::Full),
            }
        }
        for _ in 0..60 {
            let id = ids[dice.below(ids.len() as u64) as usize];
            assert!(matches!(store.commit(&[(RecordId(id), Some(&[2; 24]))]), Ok(_) | Err(Error::Full)));
        }
        for (gone, id) in ids.iter().rev().enumerate() {
            let outcome = store.commit(&[(RecordId(*id), None)]);
            assert!(outcome.is_ok(), "seed {seed}, after {gone} of {} deallocations: {outcome:?}", ids.len());
        }
    });
    played.expect("opens");
}

/// A deallocation and its cleaning asked for three pages where two do: the data ring was down to two, and the last page of the
/// oldest block was never moved.
#[test]
fn a_full_store_that_is_asked_for_changes_can_be_emptied() {
    (0..20).for_each(|seed| fill_and_empty(16, 4, 64, seed));
}

/// With few waiting changes for each leaf a commit may write so many leaves that the index ring never has room for them: then the
/// store was full with three quarters of its data ring free. So few are refused.
#[test]
fn few_waiting_changes_do_not_make_a_store_full() {
    let mut chip = Chip::new(Part::nand(512, 16, 16), 3);
    (chip.pending, chip.leaves) = (34, 16);
    assert_eq!(chip.with(true, |_| ()), Err(Error::BufferTooSmall));
    (0..6).for_each(|seed| fill_and_empty(16, 3, 64, seed));
}

/// A store of records of 24 bytes that takes no more of them: how many there are.
fn fill_short(chip: &mut Chip) -> u32 {
    chip.pending = 160;
    chip.with(true, |_| ()).expect("made");
    let filled = chip.with(false, |store| {
        (0..).take_while(|id| store.commit(&[(RecordId(*id), Some(&[1; 24]))]).is_ok()).count() as u32
    });
    filled.expect("opens")
}

/// Cuts so many openings in a row short, within so many writes, and then deallocates a record; again and again.
fn stands(chip: &mut Chip, filled: u32, seed: u64, (in_a_row, writes): (u32, u64)) {
    let mut dice = Dice::new(seed);
    for round in 0..12 {
        for _ in 0..in_a_row {
            let at = chip.device.writes() + 1 + dice.below(writes);
            let cut = Fault::Cut { at, tearing: Tearing::Byte(100), survivors: Survivors::All };
            chip.device.set_scenario(Scenario::one(seed, cut));
            let _ = commit(chip, round, None);
            chip.device.power_on();
        }
        chip.device.set_scenario(Scenario::calm(seed));
        let outcome = commit(chip, round, None);
        assert_eq!(outcome, Ok(()), "{in_a_row} cut within {writes}, seed {seed}, round {round}, {filled} records");
    }
}

/// In a store that is as full as it gets: three in a row before their roots are whole, one at any of its first writes. Pages were
/// left half empty when no more changes could wait, blocks with less than three pages to spare were not cleaned at all, and a cut
/// took as many pages as the commit had.
#[test]
fn a_full_store_stands_openings_that_are_cut_short() {
    let parts = [
        (Part::nand(512, 16, 16), 3),
        (Part::nand(512, 16, 16), 4),
        (Part::nand(512, 16, 12), 3),
        (Part::nand(512, 32, 9), 3),
        (Part::ecc_words(512, 16, 16, 8), 3),
    ];
    for (seed, (part, index)) in parts.into_iter().enumerate() {
        let mut chip = Chip::new(part.clone(), index);
        let filled = fill_short(&mut chip);
        for cuts in [(0, 1), (3, 2), (1, 8)] {
            let mut full = Chip::new(part.clone(), index);
            full.device.restore(chip.device.image());
            (full.counter, full.pending) = (chip.counter.copied(), chip.pending);
            stands(&mut full, filled, seed as u64, cuts);
        }
    }
}
