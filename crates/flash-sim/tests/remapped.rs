//! Bad blocks under a device that hides them: from the factory, and later, with the power failing at every write.

use std::collections::BTreeMap;

use counterfoil_flash::{
    BlockNumber, Device, Error, NO_TABLE, PageNumber, RESERVE_SPENT, Read, Remapped, TABLE_BLOCKS,
};
use counterfoil_flash_sim::{Dice, Fault, Part, Scenario, SimulatedDevice, Survivors, Tearing};

const PAGE: usize = 512;
const RESERVE: usize = 6;
const BLOCKS: u64 = 12;
const RAW_BLOCKS: u64 = BLOCKS + RESERVE as u64 + TABLE_BLOCKS as u64;

/// Bad from the factory: two blocks that are seen, one of the reserve, one of the table.
fn part() -> Part {
    let bad_blocks = vec![1, 5, BLOCKS + 1, RAW_BLOCKS - TABLE_BLOCKS as u64];
    Part { bad_blocks, ..Part::nand(PAGE as u32, 4, RAW_BLOCKS) }
}

/// What each page holds that was programmed since its block was erased.
type Truth = BTreeMap<u64, u8>;

fn format(raw: &SimulatedDevice) {
    let (mut slots, mut page) = ([0; RESERVE], [0; PAGE]);
    Remapped::format(raw.clone(), &mut slots, &mut page).expect("formats");
}

/// Rewrites blocks until the script or the power ends. Answers the pages of which nothing is known, because a write to them
/// was under way.
fn play(raw: &SimulatedDevice, truth: &mut Truth, dice: &mut Dice) -> Result<(), (Error, Vec<u64>)> {
    let (mut slots, mut page) = ([0; RESERVE], [0; PAGE]);
    let mut device = Remapped::open(raw.clone(), &mut slots, &mut page).map_err(|error| (error, Vec::new()))?;
    for _ in 0..10 {
        let block = dice.below(BLOCKS);
        let pages = block * 4..block * 4 + 4;
        truth.retain(|page, _| !pages.contains(page));
        device.erase(BlockNumber(block)).map_err(|error| (error, pages.clone().collect()))?;
        for page in pages {
            let byte = dice.below(255) as u8;
            device.program(PageNumber(page), &[byte; PAGE]).map_err(|error| (error, vec![page]))?;
            truth.insert(page, byte);
        }
    }
    Ok(())
}

fn compare(raw: &SimulatedDevice, truth: &Truth, unknown: &[u64], id: &str) {
    let (mut slots, mut page) = ([0; RESERVE], [0; PAGE]);
    let device = Remapped::open(raw.clone(), &mut slots, &mut page).unwrap_or_else(|error| panic!("{id}: {error}"));
    for page in 0..BLOCKS * 4 {
        let mut bytes = [0; PAGE];
        if !unknown.contains(&page) {
            device.read(PageNumber(page), 0, &mut bytes).unwrap_or_else(|error| panic!("{id}: {error}"));
            assert_eq!(bytes, [truth.get(&page).copied().unwrap_or(0xFF); PAGE], "{id}: page {page}");
        }
    }
}

#[test]
fn bad_blocks_are_not_seen() {
    let raw = SimulatedDevice::new(part(), Scenario::calm(1));
    format(&raw);
    let (mut truth, mut dice) = (Truth::new(), Dice::new(1));
    for _ in 0..20 {
        assert_eq!(play(&raw, &mut truth, &mut dice), Ok(()));
        compare(&raw, &truth, &[], "calm");
    }
    let (mut slots, mut page) = ([0; RESERVE], [0; PAGE]);
    let device = Remapped::open(raw, &mut slots, &mut page).expect("opens");
    assert_eq!((device.geometry().block_count, device.reserve_left()), (BLOCKS, RESERVE - 3));
    let mut across = [0; 2 * PAGE];
    device.read(PageNumber(19), 256, &mut across).expect("reads over the border of a block that was replaced");
    assert_eq!((across[0], across[300], across[PAGE + 300]), (truth[&19], truth[&20], truth[&21]));
}

/// Blocks fail at any write, and the power at any other one.
#[test]
fn a_cut_at_any_write_leaves_what_was_written() {
    let base = SimulatedDevice::new(part(), Scenario::calm(1));
    format(&base);
    let mut known = Truth::new();
    play(&base, &mut known, &mut Dice::new(1)).expect("calm");
    let image = base.image();
    for failing in [2, 4, 9] {
        let bad = [Fault::BadBlock { at: failing }, Fault::BadBlock { at: failing + 13 }];
        for at in 1..56 {
            for tearing in [
                Tearing::Untouched,
                Tearing::Complete,
                Tearing::Byte(100),
                Tearing::Bits,
                Tearing::Fickle,
                Tearing::Unreadable,
            ] {
                let cut = Fault::Cut { at, tearing, survivors: Survivors::All };
                let faults = bad.into_iter().filter(|fault| fault.at() != at).chain([cut]).collect();
                let scenario = Scenario { seed: at, faults };
                let id = scenario.to_string();
                let raw = SimulatedDevice::new(part(), scenario);
                raw.restore(image.clone());
                let (mut truth, mut dice) = (known.clone(), Dice::new(2));
                let mut unknown = match play(&raw, &mut truth, &mut dice) {
                    Ok(()) => Vec::new(),
                    Err((_, unknown)) => unknown,
                };
                assert!(raw.is_cut(), "{id}: the power did not fail");
                raw.power_on();
                compare(&raw, &truth, &unknown, &id);
                for turn in 0..2 {
                    play(&raw, &mut truth, &mut Dice::new(turn)).unwrap_or_else(|(error, _)| panic!("{id}: {error}"));
                    unknown.retain(|page| !truth.contains_key(page));
                    compare(&raw, &truth, &unknown, &id);
                }
            }
        }
    }
}

#[test]
fn a_reserve_comes_to_an_end_and_nothing_is_lost() {
    let faults = (0..20).map(|index| Fault::BadBlock { at: 30 + 11 * index }).collect();
    let raw = SimulatedDevice::new(part(), Scenario { seed: 1, faults });
    format(&raw);
    let (mut truth, mut dice) = (Truth::new(), Dice::new(3));
    let (error, unknown) = loop {
        if let Err(ended) = play(&raw, &mut truth, &mut dice) {
            break ended;
        }
    };
    assert!(matches!(error, Error::Device { code: RESERVE_SPENT | counterfoil_flash_sim::BAD_BLOCK, .. }), "{error}");
    compare(&raw, &truth, &unknown, "spent");
}

#[test]
fn what_does_not_fit_is_refused() {
    let raw = SimulatedDevice::new(part(), Scenario::calm(1));
    let open = |reserve: usize, page_bytes: usize| {
        Remapped::open(raw.clone(), &mut vec![0; reserve], &mut vec![0; page_bytes]).map(drop)
    };
    assert!(matches!(open(RESERVE, PAGE), Err(Error::Device { code: NO_TABLE, .. })));
    assert!(matches!(open(RESERVE, 9), Err(Error::Shape { .. })));
    assert!(matches!(open(200, PAGE), Err(Error::Shape { .. })));
    assert!(matches!(open(20, PAGE), Err(Error::Shape { .. })));
    format(&raw);
    assert!(matches!(open(RESERVE - 1, PAGE), Err(Error::Device { code: NO_TABLE, .. })));
    assert_eq!(open(RESERVE, PAGE), Ok(()));
}

/// The table is the page that SPEC.md describes.
#[test]
fn the_table_is_the_one_of_the_specification() {
    let raw = SimulatedDevice::new(part(), Scenario::calm(1));
    format(&raw);
    let mut page = [0; PAGE];
    // The first block for tables is bad.
    let first = (RAW_BLOCKS - u64::from(TABLE_BLOCKS) + 1) * 4;
    raw.read(PageNumber(first), 0, &mut page).expect("reads");
    let mut expected = b"CFremap1".to_vec();
    expected.extend(1u64.to_le_bytes());
    for number in [RESERVE as u32, 1, u32::MAX - 1, 5, u32::MAX, u32::MAX, u32::MAX] {
        expected.extend(number.to_le_bytes());
    }
    assert_eq!(page[..expected.len()], expected);
    assert!(page[expected.len() + 4..].iter().all(|byte| *byte == 0xFF));
}

/// A cut may have left a table that is gone at a later look: what is written under it must not depend on it.
#[test]
fn an_opening_writes_the_table_once_more_before_anything_else() {
    let raw = SimulatedDevice::new(part(), Scenario::calm(1));
    format(&raw);
    let newest = (RAW_BLOCKS - u64::from(TABLE_BLOCKS) + 1) * 4;
    let (mut slots, mut page) = ([0; RESERVE], [0; PAGE]);
    let mut device = Remapped::open(raw.clone(), &mut slots, &mut page).expect("opens");
    assert!(!raw.image().holds(newest + 1), "opening alone writes nothing");
    for _ in 0..2 {
        device.erase(BlockNumber(0)).expect("calm");
        assert!(raw.image().holds(newest + 1) && !raw.image().holds(newest + 2), "once");
    }
}

/// Bits of a table that turned over must not put a block where it is not.
#[test]
fn a_table_with_a_bit_turned_over_is_none() {
    let raw = SimulatedDevice::new(part(), Scenario::calm(1));
    format(&raw);
    let (image, table) = (raw.image(), (RAW_BLOCKS - u64::from(TABLE_BLOCKS) + 1) * 4);
    let bytes = 8 + 8 + 4 + 4 * RESERVE as u64 + 4;
    for bit in 0..bytes * 8 {
        let mut image = image.clone();
        image.flip(table, bit);
        raw.restore(image);
        let opened = Remapped::open(raw.clone(), &mut [0; RESERVE], &mut [0; PAGE]).map(drop);
        assert!(matches!(opened, Err(Error::Device { code: NO_TABLE, .. })), "bit {bit}: {opened:?}");
    }
}

#[test]
fn a_table_that_does_not_read_back_is_written_again() {
    let raw = SimulatedDevice::new(part(), Scenario::calm(1));
    format(&raw);
    let newest = (RAW_BLOCKS - u64::from(TABLE_BLOCKS) + 1) * 4;
    let (mut slots, mut page) = ([0; RESERVE], [0; PAGE]);
    let mut device = Remapped::open(raw.clone(), &mut slots, &mut page).expect("opens");
    device.erase(BlockNumber(0)).expect("calm");
    device.program(PageNumber(0), &[1; PAGE]).expect("calm");
    // The second page fails; a block is erased, two pages are programmed there, and then the table.
    let at = raw.writes() + 1;
    let faults = vec![Fault::BadBlock { at }, Fault::Rot { at: at + 4, page: newest + 2, bits: 3 }];
    raw.set_scenario(Scenario { seed: 1, faults });
    device.program(PageNumber(1), &[2; PAGE]).expect("another block takes it");
    assert!(raw.image().holds(newest + 2) && raw.image().holds(newest + 3), "twice");
    let truth = Truth::from([(0, 1), (1, 2)]);
    compare(&raw, &truth, &[], "opened again");
}

/// A page to which a write was tried is not blank, wherever its block lies now: it could be programmed again.
#[test]
fn a_page_that_does_not_read_is_not_blank_in_another_block() {
    let raw = SimulatedDevice::new(part(), Scenario::calm(1));
    format(&raw);
    let (mut slots, mut page) = ([0; RESERVE], [0; PAGE]);
    let mut device = Remapped::open(raw.clone(), &mut slots, &mut page).expect("opens");
    device.erase(BlockNumber(0)).expect("calm");
    device.program(PageNumber(0), &[1; PAGE]).expect("calm");
    let cut = Fault::Cut { at: raw.writes() + 1, tearing: Tearing::Unreadable, survivors: Survivors::All };
    raw.set_scenario(Scenario::one(1, cut));
    device.program(PageNumber(1), &[2; PAGE]).expect_err("the power failed");
    raw.power_on();
    let mut device = Remapped::open(raw.clone(), &mut slots, &mut page).expect("opens");
    let mut bytes = [0; PAGE];
    device.read(PageNumber(1), 0, &mut bytes).expect_err("error correction gave up");
    // The table and its flush come first.
    raw.set_scenario(Scenario::one(1, Fault::BadBlock { at: raw.writes() + 3 }));
    device.program(PageNumber(2), &[3; PAGE]).expect("another block takes it");
    device.read(PageNumber(1), 0, &mut bytes).expect("reads now");
    assert!(bytes.iter().any(|byte| *byte != 0xFF), "it looks blank");
    device.read(PageNumber(2), 0, &mut bytes).expect("reads");
    assert_eq!(bytes, [3; PAGE]);
}
