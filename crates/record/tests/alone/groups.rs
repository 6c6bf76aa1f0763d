//! Commits that share a step of the counter: durable at once, counted together.

use counterfoil_flash_sim::{Attacker, Dice};
use counterfoil_record::RecordId;
use counterfoil_record::alone::Error;
use counterfoil_vault::Counter;

use crate::chip::*;
use crate::walk::{IDS, is_refusal, small};

fn value(chip: &mut Chip) -> u64 {
    chip.counter.value().expect("stands").value
}

#[test]
fn a_group_takes_one_step() {
    let mut chip = small(0);
    chip.with(true, |_| ()).expect("made");
    chip.with(false, |store| store.commit(&[(RecordId(0), Some(b"0"))])).expect("opens").expect("commits");
    let before = value(&mut chip);
    let played = chip.with(false, |store| {
        for turn in 1..20 {
            store.commit_in_group(&[(RecordId(turn), Some(b"more"))])?;
        }
        store.close_group()?;
        store.close_group()
    });
    assert_eq!(played, Ok(Ok(())));
    assert_eq!(value(&mut chip), before + 2 + 1, "an opening takes two, the group one");
    // A group that nobody closed is counted by the next opening.
    let before = value(&mut chip);
    let played = chip.with(false, |store| store.commit_in_group(&[(RecordId(30), Some(b"last"))]).map(drop));
    assert_eq!(played, Ok(Ok(())));
    assert_eq!(value(&mut chip), before + 2);
    let found = chip.with(false, |store| contents(store, IDS)).expect("opens");
    assert_eq!(found.len(), 21);
    chip.with(false, |store| store.commit(&[(RecordId(0), None)])).expect("opens").expect("commits");
    assert_eq!(value(&mut chip), before + 2 + 1 + 2 + 1);
}

/// What can be put back unnoticed: the commits of the open group and the one before it, and nothing older, ever.
#[test]
fn only_the_open_group_can_be_put_back() {
    let seeds = if is_full_size() { 4_000 } else { 200 };
    let (mut refused, mut accepted_older) = (0, 0);
    for seed in 0..seeds {
        let (mut chip, mut dice, attacker) = (small(seed), Dice::new(seed), Attacker::new());
        chip.with(true, |_| ()).expect("made");
        chip.device.watch(&attacker);
        // What may be there: everything since the last counted commit.
        let mut possible = vec![Truth::new()];
        for turn in 0..25 {
            let id = format!("seed {seed}, turn {turn}");
            let newest = chip.device.image();
            if dice.once_in(2) {
                let image = attacker.whole(dice.below(attacker.image_count() as u64) as usize);
                chip.device.restore(image.expect("an image"));
            }
            let outcome = chip.with(false, |store| {
                let mut truth = try_contents(store, IDS)?;
                assert!(possible.contains(&truth), "{id}: not what it may be");
                accepted_older += usize::from(possible.last() != Some(&truth));
                possible = vec![truth.clone()];
                for _ in 0..1 + dice.below(4) {
                    let changes = random_changes(&mut dice, IDS, 30, 3);
                    apply(&mut truth, &changes);
                    match dice.once_in(3) {
                        true => {
                            store.commit(&borrowed(&changes))?;
                            possible = vec![truth.clone()];
                        }
                        false => {
                            store.commit_in_group(&borrowed(&changes))?;
                            possible.push(truth.clone());
                        }
                    }
                }
                Ok::<_, Error>(truth)
            });
            match outcome {
                Ok(Ok(_)) => {}
                Ok(Err(error)) | Err(error) if is_refusal(&error) => {
                    refused += 1;
                    chip.device.restore(newest);
                }
                other => panic!("{id}: {other:?}"),
            }
        }
    }
    assert!(refused > seeds as usize, "{refused} were refused");
    assert!(accepted_older > 0, "the group can be put back in part, as the documents say");
}
