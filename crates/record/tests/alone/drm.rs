//! The DRM benchmark of the paper (section 6.1), on the counted clock: what it costs is counted, so it is the same on
//! every machine.

use counterfoil_flash_sim::{Dice, Meters, Part};
use counterfoil_record::RecordId;

use crate::chip::*;

/// Nanoseconds of one pass of the cipher over a page (Figure 6, encryption).
const CIPHER: u64 = 1_144_000;
const TRANSACTIONS: usize = 3000;

/// What transactions cost, in nanoseconds.
struct Cost {
    mean: u64,
    p99: u64,
}

/// Runs the benchmark on a part of 128 KB (one to five counters are read, incremented and committed), and prints a row.
fn run(counters: u32) -> Cost {
    let mut chip = Chip::new(Part::gnatdb_board(16), 3);
    chip.pending = 160;
    let (prices, device) = (chip.device.part().prices, chip.device.clone());
    let measured = chip.with(true, |store| {
        let record = [7; 24];
        for first in (0..counters).step_by(10) {
            let ids = first..(first + 10).min(counters);
            let changes: Vec<_> = ids.map(|id| (RecordId(id), Some(&record[..]))).collect();
            store.commit(&changes).expect("loads");
        }
        let mut dice = Dice::new(5);
        let transaction = |_| {
            let before = device.meters();
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
            device.meters().since(&before)
        };
        // The first half is not measured: the rings have not come round yet.
        (0..2 * TRANSACTIONS).map(transaction).skip(TRANSACTIONS).collect::<Vec<_>>()
    });
    let done = measured.expect("made");
    let time = |done: &Meters| done.nanoseconds(&prices) + (done.reads + done.programs) * CIPHER + prices.counter_step;
    let mut times: Vec<u64> = done.iter().map(time).collect();
    times.sort_unstable();
    let cost = Cost { mean: times.iter().sum::<u64>() / times.len() as u64, p99: times[times.len() * 99 / 100] };
    let each = |count: &dyn Fn(&Meters) -> u64| done.iter().map(count).sum::<u64>() as f64 / done.len() as f64;
    println!(
        "{counters} counters: mean {:.1} ms, p99 {:.0} ms; pages read {:.1}, written {:.1}",
        cost.mean as f64 / 1e6,
        cost.p99 as f64 / 1e6,
        each(&|done| done.reads),
        each(&|done| done.programs)
    );
    cost
}

/// The goals at one, below fifty, seventy-five and eighty-five percent of what the data ring holds (27 bytes for each counter).
/// `cargo test -p counterfoil-record --test alone drm -- --nocapture` prints the table.
#[test]
fn a_transaction_costs_what_it_should() {
    for (counters, goal) in [(40, 10_000_000), (1500, 18_000_000), (2600, 25_000_000), (2937, 25_000_000)] {
        let cost = run(counters);
        assert!(cost.mean < goal && cost.p99 < 40_000_000, "{counters} counters: the goal is {goal} ns");
        assert!(cost.mean > goal / 3, "{counters} counters: {} ns is too good to be true", cost.mean);
    }
}
