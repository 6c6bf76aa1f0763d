//! Random commits, reads and openings against a map.

use counterfoil_flash_sim::{Dice, Part};
use counterfoil_record::RecordId;
use counterfoil_record::alone::Error;

use crate::chip::*;

/// Plays commits and openings; how many commits were refused because the store was full.
fn play(mut chip: Chip, seed: u64, ids: u32, bytes_max: u64, openings: usize) -> usize {
    let (mut dice, mut truth, mut refused) = (Dice::new(seed), Truth::new(), 0);
    chip.with(true, |_| ()).expect("made");
    for _ in 0..openings {
        let outcome = chip.with(false, |store| {
            compare(&contents(store, ids), &truth, &format!("seed {seed} after opening"));
            for _ in 0..dice.below(60) {
                let changes = random_changes(&mut dice, ids, bytes_max, 5);
                match store.commit(&borrowed(&changes)) {
                    Ok(_) => apply(&mut truth, &changes),
                    Err(Error::Full) => refused += 1,
                    Err(other) => panic!("seed {seed}: {other}"),
                }
                store.check();
                if dice.once_in(8) {
                    compare(&contents(store, ids), &truth, &format!("seed {seed}"));
                }
            }
        });
        outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    refused
}

#[test]
fn it_holds_what_a_map_holds() {
    for seed in 0..10 {
        let refused = play(Chip::new(Part::gnatdb_board(16), 3), seed, 300, 60, 30);
        assert_eq!(refused, 0, "seed {seed}");
    }
}

#[test]
fn it_does_so_without_bits_for_what_is_current() {
    let mut chip = Chip::new(Part::gnatdb_board(16), 3);
    chip.has_live = false;
    assert_eq!(play(chip, 1, 300, 60, 30), 0);
}

#[test]
fn it_does_so_on_media_that_need_no_erase() {
    assert_eq!(play(Chip::new(Part::file(512, 8, 40), 8), 1, 300, 60, 30), 0);
}

#[test]
fn it_does_so_in_thirty_two_kilobytes() {
    let mut chip = Chip::new(Part::gnatdb_board(4), 2);
    (chip.pending, chip.leaves) = (40, 2);
    assert_eq!(play(chip, 1, 60, 20, 30), 0);
}

/// A full store takes deletions, one at a time, and then as much as before.
#[test]
fn a_full_store_is_emptied_and_filled_again() {
    let mut chip = Chip::new(Part::gnatdb_board(16), 3);
    chip.with(true, |_| ()).expect("made");
    let mut most = None;
    for round in 0..4u8 {
        let filled = chip.with(false, |store| {
            let mut id = 0;
            let error = loop {
                match store.commit(&[(RecordId(id), Some(&[round; 24]))]) {
                    Ok(_) => id += 1,
                    Err(error) => break error,
                }
                store.check();
            };
            assert!(matches!(error, Error::Full), "{error}");
            id
        });
        let filled = filled.expect("opens");
        println!("{filled} records of 24 bytes fit in round {round}");
        assert!(filled > 2600, "{filled} records fit");
        let first = *most.get_or_insert(filled);
        assert!(filled.abs_diff(first) < 200, "{filled} records fit in round {round}, {first} at first");
        let emptied = chip.with(false, |store| {
            let mut buffer = [0; 24];
            for id in 0..filled {
                assert_eq!(store.read(RecordId(id), &mut buffer).expect("reads"), 24);
                assert_eq!(buffer, [round; 24]);
                store.commit(&[(RecordId(id), None)]).unwrap_or_else(|error| panic!("record {id}: {error}"));
                store.check();
            }
        });
        emptied.expect("opens");
    }
}

/// What `allocate` hands out, against all ids that have no record; and how many pages it reads for it.
#[test]
fn ids_that_are_handed_out_are_free_and_the_lowest() {
    for seed in 0..10 {
        let (mut chip, mut dice, mut truth) = (Chip::new(Part::gnatdb_board(16), 3), Dice::new(seed), Truth::new());
        chip.shape.names = (seed % 2) as u32 * 7;
        let (names, device) = (chip.shape.names, chip.device.clone());
        chip.with(true, |_| ()).expect("made");
        for _ in 0..8 {
            let played = chip.with(false, |store| {
                for _ in 0..60 {
                    let expected = (names..).filter(|id| !truth.contains_key(id));
                    let before = device.meters();
                    let handed: Vec<u32> = (0..5).map(|_| store.allocate().expect("there are some").0).collect();
                    let reads = device.meters().since(&before).reads;
                    assert!(reads <= 5 + 16, "seed {seed}: {reads} pages read");
                    assert_eq!(handed, expected.take(5).collect::<Vec<_>>(), "seed {seed}");
                    let mut changes: Changes = handed[..3].iter().map(|id| (*id, Some(vec![1; 20]))).collect();
                    changes.push((names + dice.below(900) as u32, None));
                    store.commit(&borrowed(&changes)).expect("commits");
                    apply(&mut truth, &changes);
                }
            });
            played.expect("opens");
        }
    }
}
