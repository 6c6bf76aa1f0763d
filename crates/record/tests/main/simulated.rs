//! The faults of `flash-sim`: cuts torn in every way it knows, flushes that lie or fail, pages that fade or rot.

use counterfoil_flash_sim::{Fault, Part, Scenario, SimulatedDevice, Survivors, Tearing};
use counterfoil_record::{Error, Which};
use counterfoil_vault::Vault;

use crate::bench::*;
use crate::part::Random;
use crate::power::{Known, judge, play};

const COMMITS: usize = 10;

fn nand() -> (Part, Shape) {
    (Part::nand(512, 8, 26), Shape { erase: true, ..FILE })
}

fn file() -> (Part, Shape) {
    (Part::file(2048, 4, 14), Shape { page_bytes: 2048, block_pages: 4, doubled: false, ..FILE })
}

/// A part with an empty store, whose writes are counted from there.
fn start(part: &Part, shape: &Shape) -> (SimulatedDevice, Vault, Known, u64) {
    let (mut device, vault) = (SimulatedDevice::new(part.clone(), Scenario::calm(0)), fresh_vault());
    let known = Known::new(&mut device, &vault, shape);
    let writes = device.writes();
    (device, vault, known, writes)
}

/// Runs the script under a scenario and brings the power back.
fn suffer(part: &Part, shape: &Shape, scenario: Scenario, seed: u64) -> (SimulatedDevice, Vault, Known, bool) {
    let (mut device, vault, mut known, _) = start(part, shape);
    device.set_scenario(scenario);
    let failed = play(&mut device, &vault, shape, &mut Random(seed), COMMITS, &mut known).is_err();
    device.power_on();
    device.set_scenario(Scenario::calm(seed));
    (device, vault, known, failed)
}

fn writes_of_script(part: &Part, shape: &Shape, seed: u64) -> (u64, u64) {
    let (mut device, vault, mut known, before) = start(part, shape);
    play(&mut device, &vault, shape, &mut Random(seed), COMMITS, &mut known).unwrap();
    (before, device.writes())
}

/// Contents in which the medium may have lied: some commit's, or a typed error; nothing else.
fn true_or_typed(device: &SimulatedDevice, vault: &Vault, shape: &Shape, known: &Known, id: &str) {
    let typed = |error: Error| {
        let expected =
            matches!(error, Error::Tampered { .. } | Error::Corrupt { .. } | Error::NoCommit { .. } | Error::Device(_));
        assert!(expected, "{id}: {error}");
    };
    match look(device, vault, shape, Which::Exactly(known.released.0)) {
        Ok((_, found)) => assert_eq!(found, known.released.1, "{id}: other contents under the name"),
        Err(error) => typed(error),
    }
    if let Err(error) = look(device, vault, shape, Which::Newest) {
        typed(error);
    }
}

#[test]
fn every_cut_in_every_way() {
    for (seed, (part, shape)) in [(1, nand()), (2, file())] {
        let (before, after) = writes_of_script(&part, &shape, seed);
        for mut scenario in Scenario::every_cut(seed, after - before, shape.page_bytes) {
            let [Fault::Cut { at, tearing, .. }] = &mut scenario.faults[..] else { panic!("one cut") };
            *at += before;
            let fickle = *tearing == Tearing::Fickle;
            let id = scenario.to_string();
            let (mut device, vault, mut known, failed) = suffer(&part, &shape, scenario, seed);
            assert!(failed, "{id}: the power did not fail");
            if fickle {
                // The page under way reads once: the commit is seen and then gone, or never seen.
                true_or_typed(&device, &vault, &shape, &known, &id);
                let released = look(&device, &vault, &shape, Which::Exactly(known.released.0));
                assert_eq!(released.map(|found| found.1).as_ref(), Ok(&known.released.1), "{id}");
                continue;
            }
            known.acknowledged = judge(&device, &vault, &shape, &known, &id);
            known.under_way = None;
            play(&mut device, &vault, &shape, &mut Random(seed ^ 0x5EED), 3, &mut known)
                .unwrap_or_else(|error| panic!("{id}: going on: {error}"));
            judge(&device, &vault, &shape, &known, &id);
        }
    }
    assert_eq!(counterfoil_vault::witness::duplicates(), []);
}

#[test]
fn flushes_that_lie_and_writes_that_fail() {
    for (seed, (part, shape)) in [(3, nand()), (4, file())] {
        let (before, after) = writes_of_script(&part, &shape, seed);
        for at in before + 1..=after {
            for fault in [Fault::FailedFlush { at }, Fault::FailedWrite { at }, Fault::Fade { at }] {
                let scenario = Scenario::one(seed + at, fault);
                let id = scenario.to_string();
                let (device, vault, known, failed) = suffer(&part, &shape, scenario, seed);
                if failed && !matches!(fault, Fault::Fade { .. }) {
                    judge(&device, &vault, &shape, &known, &id);
                }
                true_or_typed(&device, &vault, &shape, &known, &id);
            }
            // A flush that lies matters only if the power fails after it.
            for later in [1, 3, 9] {
                let cut = Fault::Cut { at: at + later, tearing: Tearing::Untouched, survivors: Survivors::Any };
                let scenario = Scenario { seed: seed + at, faults: vec![Fault::LostFlush { at }, cut] };
                let id = scenario.to_string();
                let (device, vault, known, _) = suffer(&part, &shape, scenario, seed);
                true_or_typed(&device, &vault, &shape, &known, &id);
            }
        }
    }
}

#[test]
fn bits_that_rot() {
    for (seed, (part, shape)) in [(5, nand()), (6, file())] {
        let (_, after) = writes_of_script(&part, &shape, seed);
        for page in 0..part.geometry.page_count() {
            for bits in [1, 9] {
                let scenario = Scenario::one(seed + page, Fault::Rot { at: after, page, bits });
                let id = scenario.to_string();
                let (device, vault, known, _) = suffer(&part, &shape, scenario, seed);
                true_or_typed(&device, &vault, &shape, &known, &id);
            }
        }
    }
}
