//! A device in the hands of one who keeps every image and puts back what he likes, between any two steps of its owner.

use counterfoil_flash_sim::{Attacker, Dice, Fault, Part, Scenario, Survivors, Tearing};
use counterfoil_record::alone::Error;

use crate::chip::*;

pub const IDS: u32 = 60;

/// A part of a few short blocks, so that both rings come round again and again.
pub fn small(key: u64) -> Chip {
    small_on(Part::nand(512, 8, 9), key)
}

/// The same on a part of some sort.
pub fn small_on(part: Part, key: u64) -> Chip {
    let mut chip = Chip::keyed(part, 3, key);
    (chip.pending, chip.leaves) = (40, 4);
    chip
}

/// What an opening may end with when the image is not the newest.
pub fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::RolledBack | Error::CounterLost | Error::Tampered | Error::Corrupt | Error::NoCommit)
}

/// Owner and attacker take turns. Whatever opens must be what was acknowledged last, or a commit after it that was cut
/// before it was acknowledged.
pub fn walk(seed: u64) -> usize {
    let (mut chip, mut dice, attacker) = (small(seed), Dice::new(seed), Attacker::new());
    chip.with(true, |_| ()).expect("made");
    let (mut possible, mut refused) = (vec![Truth::new()], 0);
    for turn in 0..40 {
        let id = format!("seed {seed}, turn {turn}");
        attacker.see(chip.device.image());
        let newest = chip.device.image();
        if dice.once_in(2) {
            let image = match dice.once_in(3) {
                true => attacker.mixture(dice.roll()),
                false => attacker.whole(dice.below(attacker.image_count() as u64) as usize),
            };
            chip.device.restore(image.expect("an image"));
        }
        if dice.once_in(2) {
            let at = chip.device.writes() + 1 + dice.below(8);
            let cut = Fault::Cut { at, tearing: Tearing::Complete, survivors: Survivors::All };
            chip.device.set_scenario(Scenario::one(seed, cut));
        } else if dice.once_in(4) {
            chip.counter.cut = Some((dice.below(4) as u32, dice.once_in(2)));
        }
        let outcome = chip.with(false, |store| {
            let mut truth = try_contents(store, IDS)?;
            if !possible.contains(&truth) {
                compare(&truth, &possible[0], &id);
            }
            for _ in 0..dice.below(4) {
                let changes = random_changes(&mut dice, IDS, 30, 3);
                apply(&mut truth, &changes);
                possible.push(truth.clone());
                store.commit(&borrowed(&changes))?;
                possible = vec![truth.clone()];
            }
            Ok(())
        });
        chip.counter.cut = None;
        chip.device.set_scenario(Scenario::calm(seed));
        chip.device.power_on();
        if let Err(error) | Ok(Err(error)) = outcome
            && is_refusal(&error)
        {
            refused += 1;
            chip.device.restore(newest);
        }
    }
    refused
}
