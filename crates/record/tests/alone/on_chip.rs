//! Stores whose counter lies in cells of the chip: the power fails in the middle of a step, or of a change of the bank.

use counterfoil_flash_sim::{Dice, Fault, Part, Scenario, SimulatedBanks, Survivors, Tearing};
use counterfoil_vault::CounterKind;

use crate::chip::*;
use crate::script::*;
use crate::walk::small_on;

/// A store on flash of the sort that its counter is made of.
fn chip(kind: CounterKind) -> Chip {
    let (part, banks) = match kind {
        CounterKind::Nor => (Part::nor(512, 8, 9), SimulatedBanks::nor(36, Scenario::calm(1))),
        _ => (Part::ecc_words(512, 8, 9, 8), SimulatedBanks::ecc_words(256, 8, Scenario::calm(1))),
    };
    let mut chip = small_on(part, 0);
    counter_in(&banks, kind).adopt(0, &[0; 16]).expect("adopts");
    chip.banks = Some((banks, kind));
    chip
}

fn banks(chip: &Chip) -> SimulatedBanks {
    chip.banks.as_ref().expect("a counter on the chip").0.clone()
}

fn every_cut(kind: CounterKind) {
    let commits = if is_full_size() { 200 } else { 40 };
    let (start, known, _) = started(chip(kind), commits);
    let calm = start.copied();
    let before = banks(&calm).writes();
    play(&mut calm.copied(), &mut known.clone(), &mut Dice::new(2), commits).expect("plays");
    let mut counted = start.copied();
    play(&mut counted, &mut known.clone(), &mut Dice::new(2), commits).expect("plays");
    let after = banks(&counted);
    assert!(after.erases() > banks(&start).erases(), "the bank changes in the script");
    let seeds = if is_full_size() { 8 } else { 1 };
    let seeded = [Tearing::Bits, Tearing::Fickle, Tearing::Unreadable].into_iter();
    let ways: Vec<_> = [(Tearing::Untouched, 0), (Tearing::Complete, 0)]
        .into_iter()
        .chain(seeded.flat_map(|tearing| (0..seeds).map(move |seed| (tearing, seed))))
        .collect();
    for (at, (tearing, seed)) in (before + 1..=after.writes()).flat_map(|at| ways.iter().map(move |way| (at, *way))) {
        let (mut chip, mut known) = (start.copied(), known.clone());
        let scenario = Scenario::one(seed, Fault::Cut { at, tearing, survivors: Survivors::All });
        let id = format!("{kind} {scenario}");
        banks(&chip).set_scenario(scenario);
        assert!(play(&mut chip, &mut known, &mut Dice::new(2), commits).is_err(), "{id}: the power did not fail");
        for turn in 0..3 {
            banks(&chip).power_on();
            chip.device.power_on();
            judge(&mut chip, &mut known, &id);
            play(&mut chip, &mut known, &mut Dice::new(turn), 4).unwrap_or_else(|error| panic!("{id}, later: {error}"));
        }
        judge(&mut chip, &mut known, &id);
    }
}

#[test]
fn a_cut_in_the_bits_of_the_counter_leaves_a_whole_commit() {
    every_cut(CounterKind::Nor);
}

#[test]
fn a_cut_in_the_words_of_the_counter_leaves_a_whole_commit() {
    every_cut(CounterKind::Ecc);
}

/// An older image is refused, whatever the cut left of a step.
#[test]
fn an_older_image_is_refused_by_counters_on_chips() {
    for kind in [CounterKind::Nor, CounterKind::Ecc] {
        let (start, known, _) = started(chip(kind), 5);
        let old = start.device.image();
        for seed in 0..40 {
            let (mut chip, mut known) = (start.copied(), known.clone());
            let at = banks(&chip).writes() + 12 + seed % 20;
            let tearing = [Tearing::Bits, Tearing::Fickle][seed as usize % 2];
            banks(&chip).set_scenario(Scenario::one(seed, Fault::Cut { at, tearing, survivors: Survivors::All }));
            assert!(play(&mut chip, &mut known, &mut Dice::new(2), 60).is_err(), "{kind} {seed}: no cut");
            banks(&chip).power_on();
            chip.device.power_on();
            let newest = chip.device.image();
            chip.device.restore(old.clone());
            let refused = chip.with(false, |_| ());
            assert_eq!(refused, Err(counterfoil_record::alone::Error::RolledBack), "{kind} {seed}");
            chip.device.restore(newest);
            judge(&mut chip, &mut known, &format!("{kind} {seed}"));
        }
    }
}
