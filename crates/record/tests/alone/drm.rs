//! The DRM benchmark of the paper (section 6.1), on the counted clock: what it costs is counted, so it is the same on
//! every machine.

use counterfoil_flash_sim::{Dice, Part};
use counterfoil_record::RecordId;

use crate::chip::*;

/// Nanoseconds of one pass of the cipher over a page (Figure 6, encryption).
const CIPHER: u64 = 1_144_000;
const TRANSACTIONS: usize = 3000;

/// Mean nanoseconds of a transaction on a part of 128 KB: one to five counters are read, incremented and committed.
fn mean(counters: u32) -> u64 {
    let mut chip = Chip::new(Part::gnatdb_board(16), 3);
    let (prices, device) = (chip.device.part().prices, chip.device.clone());
    let measured = chip.with(true, |store| {
        let record = [7; 24];
        for first in (0..counters).step_by(10) {
            let ids = first..(first + 10).min(counters);
            let changes: Vec<_> = ids.map(|id| (RecordId(id), Some(&record[..]))).collect();
            store.commit(&changes).expect("loads");
        }
        let mut dice = Dice::new(5);
        let mut before = device.meters();
        for turn in 0..2 * TRANSACTIONS {
            if turn == TRANSACTIONS {
                // Not before the rings have come round.
                before = device.meters();
            }
            let mut ids: Vec<u32> = (0..1 + dice.below(5)).map(|_| dice.below(u64::from(counters)) as u32).collect();
            ids.sort_unstable();
            ids.dedup();
            let incremented = |id: &u32| {
                let mut record = [0; 24];
                store.read(RecordId(*id), &mut record).expect("reads");
                record[20] = record[20].wrapping_add(1);
                record
            };
            let records: Vec<_> = ids.iter().map(incremented).collect();
            let changes: Vec<_> =
                ids.iter().zip(&records).map(|(id, record)| (RecordId(*id), Some(&record[..]))).collect();
            store.commit(&changes).expect("commits");
        }
        device.meters().since(&before)
    });
    let done = measured.expect("made");
    let ciphers = (done.reads + done.programs) * CIPHER;
    (done.nanoseconds(&prices) + ciphers) / TRANSACTIONS as u64 + prices.counter_step
}

/// The goals at one, below fifty, and seventy-five percent of what the data ring holds (27 bytes for each counter).
#[test]
fn a_transaction_costs_what_it_should() {
    for (counters, goal) in [(40, 10_000_000), (1500, 18_000_000), (2600, 25_000_000)] {
        let mean = mean(counters);
        assert!(mean < goal, "{counters} counters: {mean} ns, the goal is {goal}");
        assert!(mean > goal / 3, "{counters} counters: {mean} ns is too good to be true");
    }
}
