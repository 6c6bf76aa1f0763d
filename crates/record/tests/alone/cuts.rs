//! Power cuts at every write of a script, in every way that the part knows, on every sort of flash; and second cuts while
//! the store recovers, cleans or counts after the first.

use counterfoil_flash_sim::{Dice, Fault, Part, Scenario, Survivors, Tearing};
use counterfoil_record::alone::Error;

use crate::chip::*;
use crate::script::*;
use crate::walk::{is_refusal, small_on};

/// Flash of each sort, of one shape: a few short blocks, so that both rings come round again and again.
fn parts() -> [Part; 4] {
    [Part::nand(512, 8, 9), Part::nor(512, 8, 9), Part::ecc_words(512, 8, 9, 8), Part::ecc_words(512, 8, 9, 16)]
}

/// Opens after a cut, goes on, and opens again.
fn survive(chip: &mut Chip, known: &mut Known, id: &str) {
    judge(chip, known, id);
    play(chip, known, &mut Dice::new(3), 20).unwrap_or_else(|error| panic!("{id}, later: {error}"));
    judge(chip, known, id);
}

fn every_cut(part: Part) {
    let commits = if is_full_size() { 500 } else { 25 };
    let (start, known, writes) = started(small_on(part.clone(), 0), commits);
    let mut cuts = 0;
    for scenario in Scenario::every_cut_of(7, writes, &part) {
        let (mut chip, mut known) = (start.copied(), known.clone());
        let id = scenario.to_string();
        chip.device.set_scenario(scenario);
        let outcome = play(&mut chip, &mut known, &mut Dice::new(2), commits);
        assert!(outcome.is_err(), "{id}: the power did not fail");
        chip.device.power_on();
        survive(&mut chip, &mut known, &id);
        cuts += 1;
    }
    assert!(cuts > 16 * commits, "{cuts} cuts");
}

#[test]
fn a_cut_at_any_write_to_nand_leaves_a_whole_commit() {
    every_cut(parts()[0].clone());
}

#[test]
fn a_cut_at_any_write_to_nor_leaves_a_whole_commit() {
    every_cut(parts()[1].clone());
}

#[test]
fn a_cut_at_any_write_to_words_of_eight_bytes_leaves_a_whole_commit() {
    every_cut(parts()[2].clone());
}

#[test]
fn a_cut_at_any_write_to_words_of_sixteen_bytes_leaves_a_whole_commit() {
    every_cut(parts()[3].clone());
}

fn any_tearing(dice: &mut Dice) -> Tearing {
    let byte = Tearing::Byte(dice.below(512) as u32);
    [
        Tearing::Untouched,
        Tearing::Complete,
        byte,
        byte,
        Tearing::Bits,
        Tearing::Bits,
        Tearing::Fickle,
        Tearing::Unreadable,
    ][dice.below(8) as usize]
}

/// Lets the power fail within so many writes, or at one of so many steps of the counter.
fn cut_soon(chip: &mut Chip, dice: &mut Dice, (writes, steps): (u64, u64)) {
    if dice.once_in(4) {
        chip.counter.cut = Some((dice.below(steps) as u32, dice.once_in(2)));
    } else {
        let at = chip.device.writes() + 1 + dice.below(writes);
        let cut = Fault::Cut { at, tearing: any_tearing(dice), survivors: Survivors::All };
        chip.device.set_scenario(Scenario::one(dice.roll(), cut));
    }
}

fn power_on(chip: &mut Chip) {
    chip.device.power_on();
    chip.device.set_scenario(Scenario::calm(1));
    chip.counter.cut = None;
}

/// A second cut soon after the first falls into what the next opening writes first, or into the cleaning and counting of
/// its first commits.
#[test]
fn a_second_cut_leaves_a_whole_commit_too() {
    let samples = if is_full_size() { 20_000 } else { 600 };
    let starts = parts().map(|part| started(small_on(part, 0), 30));
    let mut second = 0;
    for seed in 0..samples {
        let mut dice = Dice::new(seed);
        let (start, known, writes) = &starts[seed as usize % starts.len()];
        let (mut chip, mut known) = (start.copied(), known.clone());
        let id = format!("part {}, seed {seed}", seed as usize % starts.len());
        cut_soon(&mut chip, &mut dice, (*writes, 30));
        // A script of as many writes and steps as there are: the first cut always comes.
        let first = play(&mut chip, &mut known, &mut Dice::new(2), 30);
        assert!(first.is_err(), "{id}: the power did not fail");
        power_on(&mut chip);
        judge(&mut chip, &mut known, &id);
        let soon = if dice.once_in(2) { (6, 3) } else { (60, 20) };
        cut_soon(&mut chip, &mut dice, soon);
        second += u64::from(play(&mut chip, &mut known, &mut dice, 20).is_err());
        power_on(&mut chip);
        survive(&mut chip, &mut known, &id);
    }
    assert!(second > samples / 2, "{second} second cuts in {samples} samples");
}

/// What a stick with a translation layer may do is more than a store can mend: sectors that nobody wrote are damaged, and
/// flushes are acknowledged that were none. What is acknowledged may be lost, and never is without being noticed.
#[test]
fn what_a_stick_loses_is_noticed() {
    let seeds = if is_full_size() { 20_000 } else { 600 };
    let stick = Part::stick(512, 8, 9, 16);
    let (start, known, writes) = started(small_on(Part { lying_flushes: None, ..stick.clone() }, 0), 20);
    let (mut whole, mut refused) = (0, 0);
    for seed in 0..seeds {
        let mut dice = Dice::new(seed);
        let (mut chip, mut known) = (start.copied_to(stick.clone()), known.clone());
        let survivors = [Survivors::All, Survivors::None, Survivors::Any][dice.below(3) as usize];
        let cut = Fault::Cut { at: 1 + dice.below(writes), tearing: any_tearing(&mut dice), survivors };
        chip.device.set_scenario(Scenario::one(seed, cut));
        assert!(play(&mut chip, &mut known, &mut Dice::new(2), 20).is_err(), "seed {seed}: the power did not fail");
        chip.device.power_on();
        chip.device.set_scenario(Scenario::calm(seed));
        match chip.with(false, |store| try_contents(store, IDS)) {
            Ok(Ok(found)) => {
                if known.under_way.as_ref() != Some(&found) {
                    compare(&found, &known.truth, &format!("seed {seed}"));
                }
                whole += 1;
            }
            Ok(Err(error)) | Err(error) => {
                assert!(is_refusal(&error) || error == Error::Device, "seed {seed}: {error}");
                refused += 1;
            }
        }
    }
    println!("{whole} stores whole after a cut, {refused} refused");
    assert!(whole > seeds / 4 && refused > seeds / 50, "{whole} whole, {refused} refused");
}
