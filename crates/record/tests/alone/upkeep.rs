//! What a device does while it has time: cleaning and erasing ahead, purging, and looking after its flash.

use std::collections::BTreeSet;

use counterfoil_flash_sim::{Dice, Fault, Part, Scenario, SimulatedDevice, Survivors, Tearing};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Purged, Standalone};

use crate::chip::*;
use crate::walk::small;

const IDS: u32 = 60;

/// Some commits, prepared for and purged now and then.
fn play(
    store: &mut Standalone<'_, SimulatedDevice, u16>,
    dice: &mut Dice,
    truth: &mut Truth,
    under_way: &mut Option<Truth>,
) -> Result<(), Error> {
    for _ in 0..30 {
        match dice.below(12) {
            0 => assert_eq!(store.purge()?, Purged::Done),
            1 => while store.prepare()? {},
            2 => drop(store.prepare()?),
            3 => drop(store.space_left(20)?),
            4 => store.close_group()?,
            turn => {
                let changes = random_changes(dice, IDS, 30, 3);
                let mut next = truth.clone();
                apply(&mut next, &changes);
                *under_way = Some(next.clone());
                match turn {
                    5..7 => store.commit_in_group(&borrowed(&changes))?,
                    _ => store.commit(&borrowed(&changes))?,
                };
                (*truth, *under_way) = (next, None);
            }
        }
        store.check();
        compare(&contents(store, IDS), truth, "in between");
    }
    Ok(())
}

#[test]
fn preparing_and_purging_change_nothing_that_is_read() {
    for seed in 0..40 {
        let (mut chip, mut dice, mut truth) = (small(seed), Dice::new(seed), Truth::new());
        chip.with(true, |_| ()).expect("made");
        for _ in 0..6 {
            let played = chip.with(false, |store| {
                compare(&contents(store, IDS), &truth, "after opening");
                play(store, &mut dice, &mut truth, &mut None)
            });
            played.expect("opens").unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
}

/// Every write and every step of the counter of such a script is the last one once.
#[test]
fn a_cut_in_preparing_and_purging_leaves_a_whole_commit() {
    let mut start = small(0);
    start.with(true, |_| ()).expect("made");
    let mut known = Truth::new();
    let played = start.with(false, |store| play(store, &mut Dice::new(1), &mut known, &mut None));
    played.expect("opens").expect("plays");
    let seeds = if is_full_size() { 20 } else { 2 };
    let mut cuts = 0;
    for (seed, tearing) in (0..seeds).flat_map(|seed| [(seed, Tearing::Byte(100)), (seed, Tearing::Bits)]) {
        for after in 1.. {
            let (mut chip, mut truth, mut under_way) = (start.copied(), known.clone(), None);
            let at = chip.device.writes() + after;
            let cut = Fault::Cut { at, tearing, survivors: Survivors::All };
            chip.device.set_scenario(Scenario::one(seed, cut));
            let id = format!("seed {seed}, write {after}");
            let played = chip.with(false, |store| play(store, &mut Dice::new(100 + seed), &mut truth, &mut under_way));
            if !chip.device.is_cut() {
                played.expect("opens").unwrap_or_else(|error| panic!("{id}: {error}"));
                break;
            }
            cuts += 1;
            chip.device.power_on();
            let found = chip.with(false, |store| contents(store, IDS)).unwrap_or_else(|error| panic!("{id}: {error}"));
            if under_way.as_ref() != Some(&found) {
                compare(&found, &truth, &id);
            }
            let mut truth = found;
            let later = chip.with(false, |store| play(store, &mut Dice::new(3), &mut truth, &mut None));
            later.expect("opens").unwrap_or_else(|error| panic!("{id}, later: {error}"));
        }
    }
    assert!(cuts > 200, "{cuts} cuts");
}

/// The pages of an image that are not blank, without superblocks.
fn pages(chip: &Chip) -> BTreeSet<Vec<u8>> {
    let image = chip.device.image();
    let count = chip.device.part().geometry.page_count();
    let pages = (0..count).map(|page| image.page(page).to_vec());
    pages.filter(|page| page.iter().any(|byte| *byte != 0xFF) && !page.starts_with(b"foilchip")).collect()
}

#[test]
fn after_a_purge_no_page_is_on_the_part_that_was_there_before() {
    for (part, seed) in [(Part::gnatdb_board(16), 1), (Part::nand(512, 8, 9), 2), (Part::nand(1024, 32, 8), 3)] {
        let (mut chip, mut dice, mut truth) = (Chip::new(part, 3), Dice::new(seed), Truth::new());
        (chip.pending, chip.leaves) = (40, 4);
        chip.with(true, |_| ()).expect("made");
        for turn in 0..4 {
            let played = chip.with(false, |store| {
                for _ in 0..30 {
                    let changes = random_changes(&mut dice, IDS, 30, 3);
                    store.commit(&borrowed(&changes)).expect("commits");
                    apply(&mut truth, &changes);
                }
            });
            played.expect("opens");
            let before = pages(&chip);
            assert_eq!(chip.with(false, |store| store.purge()), Ok(Ok(Purged::Done)), "turn {turn}");
            let left: Vec<_> = pages(&chip).intersection(&before).map(|page| page[..8].to_vec()).collect();
            assert!(left.is_empty(), "turn {turn}: {} pages were left: {left:?}", left.len());
            compare(&chip.with(false, |store| contents(store, IDS)).expect("opens"), &truth, "after the purge");
        }
    }
}

#[test]
fn a_purge_promises_nothing_where_erasing_is_not_ours() {
    let mut chip = Chip::new(Part::file(512, 8, 16), 4);
    chip.with(true, |store| store.commit(&[(RecordId(0), Some(b"secret"))])).expect("made").expect("commits");
    assert_eq!(chip.with(false, |store| store.purge()), Ok(Ok(Purged::NotGuaranteed)));
    let mut image = Chip::new(Part::nand(512, 8, 16), 4);
    image.with(true, |store| store.commit(&[(RecordId(0), Some(b"secret"))])).expect("made").expect("commits");
}

/// What was prepared, later commits need not do: no erase falls into them.
#[test]
fn a_prepared_store_commits_without_erasing() {
    let mut chip = Chip::new(Part::gnatdb_board(16), 3);
    chip.with(true, |_| ()).expect("made");
    let device = chip.device.clone();
    let played = chip.with(false, |store| {
        let mut dice = Dice::new(1);
        let mut steps = 0;
        for turn in 0..1500 {
            while store.prepare().expect("prepares") {
                steps += 1;
            }
            let before = device.meters();
            let record = [turn as u8; 24];
            let changes: Vec<_> = (0..4).map(|_| (RecordId(dice.below(1200) as u32), Some(&record[..]))).collect();
            store.commit(&changes).expect("commits");
            let done = device.meters().since(&before);
            assert_eq!(done.erases, 0, "turn {turn}");
        }
        steps
    });
    assert!(played.expect("opens") > 1500 / 16, "there was something to prepare");
}

/// What a step of preparing programs and erases at most, in a store that is full and in one that is not; the table of
/// docs/devices.md. `cargo test -p counterfoil-record --test alone a_step_of -- --nocapture` prints it.
#[test]
fn a_step_of_preparing_is_bounded() {
    for counters in [300, 1500, 2700] {
        let mut chip = Chip::new(Part::gnatdb_board(16), 3);
        let device = chip.device.clone();
        let measured = chip.with(true, |store| {
            let (mut dice, mut most) = (Dice::new(3), (0, 0));
            for first in (0..counters).step_by(10) {
                let changes: Vec<_> = (first..first + 10).map(|id| (RecordId(id), Some(&[7; 24][..]))).collect();
                store.commit(&changes).expect("loads");
            }
            for turn in 0..1500 {
                let record = [turn as u8; 24];
                let id = RecordId(dice.below(u64::from(counters)) as u32);
                store.commit(&[(id, Some(&record[..]))]).expect("commits");
                loop {
                    let before = device.meters();
                    let is_more = store.prepare().expect("prepares");
                    let done = device.meters().since(&before);
                    most = (most.0.max(done.programs), most.1.max(done.erases));
                    if !is_more {
                        break;
                    }
                }
            }
            most
        });
        let (programs, erases) = measured.expect("made");
        println!(
            "{counters} counters: a step of preparing programs {programs} pages and erases {erases} blocks at most"
        );
        assert!(programs <= 3 * 16 && erases <= 3, "{counters} counters: {programs} programs, {erases} erases");
    }
}

/// What is said to be left can be committed, whatever the records are like, and not much more.
#[test]
fn the_space_that_is_said_to_be_left_is_there() {
    for seed in 0..12 {
        let (mut chip, mut dice) = (Chip::new(Part::gnatdb_board(16), 3), Dice::new(seed));
        chip.has_live = seed % 4 != 3;
        let bytes = [8, 24, 60, 100][seed as usize % 4];
        let measured = chip.with(true, |store| {
            let mut next = 0;
            loop {
                let left = store.space_left(bytes).expect("reads");
                let records = u64::from(left).min(1 + dice.below(12));
                if records == 0 {
                    break;
                }
                let changes: Vec<_> =
                    (0..records).map(|more| (RecordId(next + more as u32), Some(&[7; 100][..bytes]))).collect();
                let done = store.commit(&changes);
                done.unwrap_or_else(|error| panic!("seed {seed}: {error} at {next}, {left} said to be left"));
                next += records as u32;
                if dice.once_in(3) {
                    store.commit(&[(RecordId(dice.below(u64::from(next)) as u32), None)]).expect("deallocates");
                }
            }
            let mut more = 0;
            while store.commit(&[(RecordId(next + more), Some(&[7; 100][..bytes]))]).is_ok() {
                more += 1;
            }
            (next, more)
        });
        let (said, more) = measured.expect("made");
        println!("records of {bytes} bytes: {said} were said to fit, {more} more did");
        assert!(said > 3 * more, "seed {seed}: {said} were said to fit, {more} more did");
    }
}

#[test]
fn the_life_that_is_left_goes_down_with_each_lap() {
    let mut chip = small(0);
    let lives = chip.with(true, |store| {
        let mut lives = Vec::new();
        for turn in 0..300u32 {
            store.commit(&[(RecordId(turn % 9), Some(&[1; 30]))]).expect("commits");
            lives.push(store.lifetime_left(1000));
        }
        lives
    });
    let lives = lives.expect("made");
    assert_eq!(lives.first(), Some(&999));
    let most = chip.device.meters().erases / u64::from(chip.shape.block_count);
    let last = u64::from(*lives.last().expect("some"));
    assert!(
        lives.is_sorted_by(|a, b| a >= b) && 1000 - last > most && 1000 - last < 3 * most,
        "{last}, {most} erases a block"
    );
}

/// Filling the blocks being written takes room in both rings, and making room in one takes some of the other.
#[test]
fn a_store_that_is_four_fifths_full_can_be_purged() {
    for counters in [100, 1500, 2600, 2700, 2750, 2800] {
        let mut chip = Chip::new(Part::gnatdb_board(16), 3);
        chip.pending = 160;
        let purged = chip.with(true, |store| {
            let (mut dice, record) = (Dice::new(5), [7; 24]);
            for first in (0..counters).step_by(10) {
                let changes: Vec<_> = (first..first + 10).map(|id| (RecordId(id), Some(&record[..]))).collect();
                store.commit(&changes).expect("loads");
            }
            for _ in 0..1500 {
                let ids = (0..3).map(|_| RecordId(dice.below(u64::from(counters)) as u32));
                store.commit(&ids.map(|id| (id, Some(&record[..]))).collect::<Vec<_>>()).expect("commits");
            }
            while store.prepare().expect("prepares") {}
            let purged = store.purge();
            store.check();
            let there = (0..counters).filter(|id| store.read(RecordId(*id), &mut [0; 24]) == Ok(24)).count();
            assert_eq!(there as u32, counters);
            purged
        });
        assert_eq!(purged, Ok(Ok(Purged::Done)), "{counters} counters");
    }
}
