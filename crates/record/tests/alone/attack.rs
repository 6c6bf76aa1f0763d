//! One who keeps every image and puts back what he likes, whole and mixed, between any two steps of its owner.

use counterfoil_flash_sim::{Attacker, Dice};

use crate::chip::*;
use crate::walk::{IDS, is_refusal, small, walk};

/// Reads everything; what was refused is none.
fn look(chip: &mut Chip, id: &str) -> Option<Truth> {
    let read = chip.with(false, |store| try_contents(store, IDS));
    match read.and_then(|read| read) {
        Ok(found) => Some(found),
        Err(error) if is_refusal(&error) => None,
        Err(other) => panic!("{id}: {other}"),
    }
}

#[test]
fn what_was_acknowledged_is_never_missing_unnoticed() {
    let walks = if is_full_size() { 20_000 } else { 400 };
    let refused: usize = (0..walks).map(walk).sum();
    assert!(refused > walks as usize, "{refused} images were refused");
}

#[test]
fn every_image_but_the_newest_is_refused_or_holds_the_same() {
    let (mut chip, mut dice, attacker) = (small(0), Dice::new(9), Attacker::new());
    chip.with(true, |_| ()).expect("made");
    chip.device.watch(&attacker);
    let mut truth = Truth::new();
    for _ in 0..6 {
        let played = chip.with(false, |store| {
            for _ in 0..30 {
                let changes = random_changes(&mut dice, IDS, 30, 3);
                store.commit(&borrowed(&changes)).expect("commits");
                apply(&mut truth, &changes);
            }
        });
        played.expect("opens");
    }
    let images = attacker.image_count();
    assert!(images > 200, "{images} images");
    let mixtures = if is_full_size() { 2000 } else { 300 };
    let whole = (0..images).map(|index| (format!("image {index}"), attacker.whole(index)));
    let mixed = (0..mixtures).map(|seed| {
        let near = [images - 1, images - 1 - dice.below(20) as usize, images - 1 - dice.below(20) as usize];
        (format!("mixture {seed}"), attacker.mixture_of(&near, seed))
    });
    let mut accepted = 0;
    for (id, image) in whole.chain(mixed) {
        let mut other = chip.copied();
        other.device.restore(image.expect("an image"));
        if let Some(found) = look(&mut other, &id) {
            compare(&found, &truth, &id);
            accepted += 1;
        }
    }
    assert!(accepted > 0 && accepted < images + mixtures as usize / 2, "{accepted} accepted");
}

/// Bits that turn over are noticed, or nothing comes of them.
#[test]
fn a_flipped_bit_is_an_error_or_without_effect() {
    let (mut chip, mut dice) = (small(0), Dice::new(3));
    chip.with(true, |_| ()).expect("made");
    let mut truth = Truth::new();
    let played = chip.with(false, |store| {
        for _ in 0..80 {
            let changes = random_changes(&mut dice, IDS, 30, 3);
            store.commit(&borrowed(&changes)).expect("commits");
            apply(&mut truth, &changes);
        }
    });
    played.expect("opens");
    let mut noticed = 0;
    for turn in 0..600 {
        let mut other = chip.copied();
        let mut image = other.device.image();
        image.flip(dice.below(72), dice.below(512 * 8));
        other.device.restore(image);
        match look(&mut other, &format!("turn {turn}")) {
            Some(found) => compare(&found, &truth, &format!("turn {turn}")),
            None => noticed += 1,
        }
    }
    assert!(noticed > 50, "{noticed} were noticed");
}
