//! Devices that nobody looks after, on media that lie: an older image is opened, and written down.

use counterfoil_flash_sim::{Dice, SimulatedDevice};
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Standalone};

use crate::chip::*;
use crate::walk::small;

fn commit(chip: &mut Chip, id: u32) -> Result<(), Error> {
    chip.with(false, |store| store.commit(&[(RecordId(id), Some(b"record"))]).map(drop))?
}

fn despite<T>(
    chip: &mut Chip,
    most: u16,
    user: impl FnOnce(&mut Standalone<'_, SimulatedDevice, u16>) -> T,
) -> Result<T, Error> {
    chip.rollbacks_max = most;
    let outcome = chip.with(false, user);
    chip.rollbacks_max = 0;
    outcome
}

#[test]
fn an_older_image_is_opened_as_often_as_was_allowed_and_told_for_ever() {
    let mut chip = small(0);
    chip.with(true, |_| ()).expect("made");
    commit(&mut chip, 0).expect("commits");
    for time in 1..=3 {
        let older = chip.device.image();
        commit(&mut chip, 10).expect("commits");
        chip.device.restore(older.clone());
        assert_eq!(commit(&mut chip, 1), Err(Error::RolledBack), "time {time}");
        assert_eq!(despite(&mut chip, time - 1, |_| ()), Err(Error::RolledBack), "time {time}");
        let found = despite(&mut chip, time, |store| (store.rollbacks(), contents(store, 60).contains_key(&10)));
        assert_eq!(found, Ok((time, false)), "time {time}");
        // It is written down: an opening that allows nothing opens what is there now, and knows.
        assert_eq!(chip.with(false, |store| store.rollbacks()), Ok(time));
        commit(&mut chip, 2).expect("commits");
        for turn in 0..200 {
            commit(&mut chip, 20 + turn % 10).expect("commits");
        }
        assert_eq!(chip.with(false, |store| store.rollbacks()), Ok(time));
        chip.with(false, |store| store.commit(&[(RecordId(10), None)])).expect("opens").expect("commits");
        // And the image that was put back is older than what is there now.
        let newest = chip.device.image();
        chip.device.restore(older);
        assert_eq!(chip.with(false, |_| ()), Err(Error::RolledBack));
        chip.device.restore(newest);
    }
}

/// A medium that acknowledged some pages and lost them, and kept some behind them: the newest whole commit is gone on from.
#[test]
fn what_a_lying_medium_kept_of_lost_commits_is_never_taken_up_again() {
    let mut opened = 0;
    for seed in 0..200 {
        let (mut chip, mut dice) = (small(seed), Dice::new(seed));
        chip.with(true, |_| ()).expect("made");
        let (mut truths, mut truth) = (Vec::new(), Truth::new());
        let device = chip.device.clone();
        let older = chip.with(false, |store| {
            for _ in 0..40 {
                let changes = random_changes(&mut dice, 60, 30, 3);
                store.commit(&borrowed(&changes)).expect("commits");
                apply(&mut truth, &changes);
                truths.push(truth.clone());
            }
            let older = device.image();
            for _ in 0..2 + dice.below(20) {
                let changes = random_changes(&mut dice, 60, 30, 3);
                store.commit(&borrowed(&changes)).expect("commits");
                apply(&mut truth, &changes);
                truths.push(truth.clone());
            }
            older
        });
        let older = older.expect("opens");
        let newest = chip.device.image();
        let mut mixed = older.clone();
        for page in 0..72 {
            if dice.once_in(3) && newest.holds(page) {
                mixed.take(page, &newest);
            }
        }
        chip.device.restore(mixed);
        let found = despite(&mut chip, 5, |store| (try_contents(store, 60), store.rollbacks()));
        let (Ok(found), rollbacks) = (match found {
            Ok(found) => found,
            Err(Error::Tampered | Error::Corrupt | Error::NoCommit) => continue,
            Err(other) => panic!("seed {seed}: {other}"),
        }) else {
            continue;
        };
        opened += 1;
        assert!(truths.contains(&found), "seed {seed}: what was never committed");
        let mut truth = found;
        for _ in 0..60 {
            let changes = random_changes(&mut dice, 60, 30, 3);
            let done = chip.with(false, |store| store.commit(&borrowed(&changes)).map(drop));
            done.and_then(|done| done).unwrap_or_else(|error| panic!("seed {seed}, {rollbacks} times: {error}"));
            apply(&mut truth, &changes);
            let now = chip.with(false, |store| contents(store, 60)).expect("opens");
            compare(&now, &truth, &format!("seed {seed}"));
        }
    }
    assert!(opened > 50, "{opened} were opened");
}
