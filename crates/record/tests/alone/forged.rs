//! What one without the key can write: real pages under other heads, and heads without pages. And what a store does not do
//! once something went wrong.

use counterfoil_flash_sim::{Attacker, Fault, Image, Scenario};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Purged};
use counterfoil_vault::Counter;

use crate::chip::*;
use crate::counter::CutCounter;
use crate::walk::{is_refusal, small};

const BLOCK_PAGES: u64 = 8;
const PAGES: u64 = 72;
/// As many as divide the pages of a lap, so that each page holds the record that it held a lap before.
const RECORDS: u32 = 6;

/// A store that was written in one opening for some laps, and purged if that is asked.
fn written(purged: bool) -> (Chip, Truth, Attacker) {
    let (mut chip, mut truth, attacker) = (small(0), Truth::new(), Attacker::new());
    chip.with(true, |_| ()).expect("made");
    chip.device.watch(&attacker);
    let played = chip.with(false, |store| {
        for turn in 0..200u32 {
            let record = turn.to_le_bytes().to_vec();
            store.commit(&[(RecordId(turn % RECORDS), Some(&record))])?;
            truth.insert(turn % RECORDS, record);
        }
        if purged { store.purge().map(|said| assert_eq!(said, Purged::Done)) } else { Ok(()) }
    });
    played.expect("opens").expect("plays");
    (chip, truth, attacker)
}

/// Lap, opening, block of the rings, and page in it: what the clear head of a page says.
fn head(image: &Image, page: u64) -> ([u8; 3], [u8; 5], [u8; 2], u64) {
    let bytes = image.page(page);
    let field = |from: usize, to: usize| bytes[from..to].to_vec();
    (
        field(0, 3).try_into().expect("three"),
        field(3, 8).try_into().expect("five"),
        field(8, 10).try_into().expect("two"),
        page % BLOCK_PAGES,
    )
}

fn is_refused_or_the_same(chip: &Chip, image: Image, truth: &Truth, id: &str) -> bool {
    let mut other = chip.copied();
    other.device.restore(image);
    match other.with(false, |store| try_contents(store, RECORDS)) {
        Ok(Ok(found)) => compare(&found, truth, id),
        Ok(Err(error)) | Err(error) => {
            assert!(is_refusal(&error), "{id}: {error}");
            return true;
        }
    }
    false
}

#[test]
fn an_older_page_under_the_head_of_a_newer_one_is_refused() {
    let (chip, truth, attacker) = written(false);
    let newest = chip.device.image();
    let (mut refused, mut tried) = (0, 0);
    let kept: Vec<Image> = (0..attacker.image_count()).step_by(3).filter_map(|index| attacker.whole(index)).collect();
    for page in (0..PAGES).filter(|page| newest.holds(*page)) {
        let (lap, opening, block, index) = head(&newest, page);
        // The page that stood in the same place of the ring, a lap or more before.
        let older = kept.iter().rev().find_map(|image| {
            let stands = |other: &u64| {
                let (its_lap, its_opening, its_block, its_index) = head(image, *other);
                (its_opening, its_block, its_index) == (opening, block, index) && its_lap != lap
            };
            (0..PAGES).filter(|other| image.holds(*other)).find(stands).map(|other| image.page(other).to_vec())
        });
        let Some(mut bytes) = older else { continue };
        bytes[..3].copy_from_slice(&lap);
        let mut image = newest.clone();
        image.set(page, &bytes);
        refused += usize::from(is_refused_or_the_same(&chip, image, &truth, &format!("page {page}")));
        tried += 1;
    }
    assert!(tried > 20 && refused > 5, "{refused} of {tried} were refused");
}

/// Noise under a head that says so.
fn claimed(lap: u32, opening: u64, block: u16) -> Vec<u8> {
    let mut bytes = vec![0x5A; 512];
    bytes[..3].copy_from_slice(&lap.to_le_bytes()[..3]);
    bytes[3..8].copy_from_slice(&opening.to_le_bytes()[..5]);
    bytes[8..10].copy_from_slice(&block.to_le_bytes());
    bytes
}

#[test]
fn forged_heads_do_not_hide_the_newest_commit() {
    let (chip, truth, _) = written(true);
    let newest = chip.device.image();
    let mut most = 0;
    for first in (0..PAGES).step_by(BLOCK_PAGES as usize).filter(|first| newest.holds(*first)) {
        let (_, _, block, _) = head(&newest, first);
        let blank: Vec<u64> = (first..first + BLOCK_PAGES).filter(|page| !newest.holds(*page)).collect();
        let mut image = newest.clone();
        for (lap, page) in (1000..).zip(&blank) {
            image.set(*page, &claimed(lap, 5000, u16::from_le_bytes(block)));
        }
        assert!(!is_refused_or_the_same(&chip, image, &truth, &format!("block {first}")));
        most = most.max(blank.len());
    }
    assert!(most > 5, "{most} heads were forged");
}

#[test]
fn a_block_of_forged_heads_takes_no_other_ones_place() {
    let (chip, truth, _) = written(true);
    let newest = chip.device.image();
    let mut free = 0;
    for first in (0..PAGES).step_by(BLOCK_PAGES as usize) {
        let pages = first..first + BLOCK_PAGES;
        if pages.clone().any(|page| newest.holds(page)) {
            continue;
        }
        free += 1;
        for block in 0..(PAGES / BLOCK_PAGES) as u16 {
            let mut image = newest.clone();
            pages.clone().for_each(|page| image.set(page, &claimed(1000, 5000, block)));
            let id = format!("block {block} at {first}");
            assert!(!is_refused_or_the_same(&chip, image, &truth, &id), "{id}: refused");
        }
    }
    assert!(free > 3, "{free} blocks were free");
}

#[test]
fn a_counter_that_stands_elsewhere_refuses_the_image() {
    let (mut chip, _, _) = written(false);
    let present = chip.counter.value().expect("stands");
    let mut at = |value| {
        chip.counter = CutCounter::at(value);
        chip.with(false, |_| ())
    };
    assert_eq!([at(present.value + 1), at(present.value + 9)], [Err(Error::RolledBack); 2]);
    assert_eq!([at(present.value - 2), at(0)], [Err(Error::CounterLost); 2]);
    assert_eq!([at(present.value), at(present.value - 1)], [Ok(()); 2]);
}

#[test]
fn after_a_write_that_failed_the_store_answers_nothing_until_it_is_opened_again() {
    let (mut chip, truth, _) = written(false);
    let device = chip.device.clone();
    let played = chip.with(false, |store| {
        store.commit(&[(RecordId(0), Some(&truth[&0]))]).expect("commits");
        device.set_scenario(Scenario::one(1, Fault::FailedWrite { at: device.writes() + 1 }));
        assert_eq!(store.commit(&[(RecordId(0), None)]), Err(Error::Device));
        let mut buffer = [0; 16];
        assert_eq!(store.read(RecordId(1), &mut buffer), Err(Error::Latched));
        assert_eq!(store.commit(&[(RecordId(0), None)]), Err(Error::Latched));
        assert_eq!(store.prepare(), Err(Error::Latched));
    });
    played.expect("opens");
    compare(&chip.with(false, |store| contents(store, RECORDS)).expect("opens"), &truth, "opened again");
}

/// Bits that are still there, or again, in the block that was erased last.
#[test]
fn a_purge_that_left_something_does_not_say_that_it_is_done() {
    let (chip, _, _) = written(false);
    let mut calm = chip.copied();
    assert_eq!(calm.with(false, |store| store.purge()), Ok(Ok(Purged::Done)));
    // Copies count their writes from the beginning. The last one is the last erase, or the superblock behind it.
    let at = calm.device.writes();
    let mut noticed = 0;
    for page in 0..PAGES {
        let mut other = chip.copied();
        other.device.set_scenario(Scenario::one(page, Fault::Rot { at, page, bits: 3 }));
        let said = other.with(false, |store| store.purge()).expect("opens").expect("purges");
        noticed += u64::from(said == Purged::NotGuaranteed);
    }
    assert_eq!(noticed, BLOCK_PAGES);
}

/// The page of an opening root may have been begun by an opening that was cut, and hold nothing now.
#[test]
fn an_opening_root_that_does_not_read_back_is_not_counted() {
    let (chip, truth, _) = written(false);
    let mut calm = chip.copied();
    calm.with(false, |store| store.prepare()).expect("opens").expect("prepares");
    let (before, after) = (chip.device.image(), calm.device.image());
    let mut noticed = 0;
    for page in after.differing(&before) {
        // A flush, the root, and perhaps an erase before it, or a flush behind it.
        for at in 1..=3 {
            let (mut other, id) = (chip.copied(), format!("write {at}, page {page}"));
            other.device.set_scenario(Scenario::one(page, Fault::Rot { at, page, bits: 3 }));
            match other.with(false, |store| store.prepare()).expect("opens") {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error, Error::Device, "{id}");
                    noticed += 1;
                }
            }
            let found = other.with(false, |store| contents(store, RECORDS));
            compare(&found.unwrap_or_else(|error| panic!("{id}: {error}")), &truth, &id);
        }
    }
    assert!(noticed > 0, "the page of the root was not among them");
}
