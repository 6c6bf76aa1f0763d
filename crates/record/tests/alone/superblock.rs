//! An image on a host that was told nothing but the key.

use counterfoil_flash::{Device, MemoryDevice, PageNumber, Read};
use counterfoil_flash_sim::{Dice, Part};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Purged, Superblock};
use counterfoil_vault::{DatabaseId, Suite, Vault, VolumeKey};

use crate::chip::*;
use crate::walk::small;

/// Every copy that an image holds, and the page it stands in.
fn copies(chip: &Chip) -> Vec<(u64, Superblock)> {
    let (image, geometry) = (chip.device.image(), chip.device.part().geometry);
    let firsts = (0..geometry.block_count).map(|block| block * u64::from(geometry.block_pages));
    firsts.filter_map(|page| Some((page, Superblock::decode(&image.page(page))?))).collect()
}

#[test]
fn at_every_moment_an_image_says_how_it_is_cut_up() {
    let (mut chip, mut dice) = (small(0), Dice::new(1));
    chip.with(true, |_| ()).expect("made");
    let expected = chip.shape;
    for turn in 0..200 {
        chip.with(false, |store| store.commit(&borrowed(&random_changes(&mut dice, 60, 30, 3)))).expect("opens").ok();
        let found = copies(&chip);
        assert!(!found.is_empty(), "turn {turn}");
        for (page, superblock) in found {
            assert_eq!((superblock.shape, superblock.geometry), (expected, chip.device.part().geometry));
            assert_eq!((superblock.suite, superblock.word_bytes), (Suite::AsconAead128, 2));
            assert_eq!(u64::from(superblock.block) * 8, page, "it says where it stands");
            let mut buffer = [0; 512];
            assert_eq!(superblock.check(&chip.device, PageNumber(page), &chip.vault, &mut buffer), Ok(()));
        }
    }
    assert!(copies(&chip).len() >= 3, "one in each block of the index ring, and in some that it left");
}

#[test]
fn a_superblock_that_was_changed_is_not_believed() {
    let mut chip = small(0);
    chip.with(true, |store| store.commit(&[(RecordId(0), Some(b"one"))])).expect("made").expect("commits");
    let (page, superblock) = copies(&chip)[0];
    let mut device = MemoryDevice::new(chip.device.part().geometry).expect("a device");
    let (image, mut buffer) = (chip.device.image(), [0; 512]);
    let mut believed = 0;
    for bit in 0..512 * 8 {
        let mut bytes = image.page(page).to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        device.erase(counterfoil_flash::BlockNumber(page / 8)).expect("erases");
        device.program(PageNumber(page), &bytes).expect("programs");
        if let Some(claimed) = Superblock::decode(&bytes) {
            believed += usize::from(claimed.check(&device, PageNumber(page), &chip.vault, &mut buffer).is_ok());
        }
    }
    assert_eq!(believed, 0);
    let other = Vault::new(&VolumeKey::from_bytes(&[9; 32]), DatabaseId([4; 32]), Suite::AsconAead128);
    let checked = superblock.check(&chip.device, PageNumber(page), &other, &mut buffer);
    assert_eq!(checked, Err(Error::Tampered));
    assert!(chip.device.read(PageNumber(page), 0, &mut buffer).is_ok());
}

#[test]
fn noise_is_no_superblock() {
    let mut dice = Dice::new(5);
    for _ in 0..20_000 {
        let mut bytes = [0; Superblock::BYTES];
        bytes.fill_with(|| dice.below(256) as u8);
        bytes[..8].copy_from_slice(b"foilchip");
        bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
        bytes[11] &= 7;
        if let Some(found) = Superblock::decode(&bytes) {
            assert!(found.block < found.shape.block_count && found.geometry.validate().is_ok());
        }
        assert_eq!(Superblock::decode(&bytes[..Superblock::BYTES - 1]), None);
    }
}

/// The same keys on the same part, cut up otherwise: nothing of the one is taken for the other's.
#[test]
fn a_store_opens_in_its_own_shape_alone() {
    let mut chip = Chip::new(Part::nand(512, 8, 10), 3);
    chip.with(true, |store| store.commit(&[(RecordId(0), Some(b"one"))])).expect("made").expect("commits");
    let good = chip.shape;
    for entries in [16, 18, 8, 32] {
        chip.shape.page_entries = entries;
        assert_eq!(chip.with(false, |_| ()), Err(Error::Tampered).or(Err(Error::NoCommit)), "{entries} entries");
    }
    chip.shape = good;
    for names in [1, 7] {
        chip.shape.names = names;
        assert!(chip.with(false, |_| ()).is_err(), "{names} names");
    }
    chip.shape = good;
    assert_eq!(chip.with(false, |store| contents(store, 1).len()), Ok(1));
}

/// Those too that were erased by a purge, or ahead.
#[test]
fn every_block_of_the_index_ring_that_holds_something_begins_with_a_superblock() {
    let (mut chip, mut dice) = (small(0), Dice::new(2));
    chip.with(true, |_| ()).expect("made");
    let (device, shape) = (chip.device.clone(), chip.shape);
    let look = |when: &str| {
        let image = device.image();
        let is_index = |first: &u64| {
            let page = image.page(first + 1);
            let block = u32::from(u16::from_le_bytes([page[8], page[9]]));
            image.holds(first + 1) && (shape.block_count - shape.index_blocks..shape.block_count).contains(&block)
        };
        for first in (0..72).step_by(8).filter(is_index) {
            assert!(image.page(first).starts_with(b"foilchip"), "{when}: block {}", first / 8);
        }
    };
    for turn in 0..20 {
        let played = chip.with(false, |store| {
            match turn % 3 {
                0 => assert_eq!(store.purge()?, Purged::Done),
                1 => while store.prepare()? {},
                _ => {}
            }
            (0..200).try_for_each(|commit| {
                look(&format!("turn {turn}, commit {commit}"));
                store.commit(&borrowed(&random_changes(&mut dice, 60, 30, 3))).map(drop)
            })
        });
        assert_eq!(played, Ok(Ok::<_, Error>(())), "turn {turn}");
    }
}
