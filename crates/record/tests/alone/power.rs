//! Power cuts at every step of the counter, behind a cache, and again and again while the store is opened anew.

use counterfoil_flash_sim::{Dice, Fault, Part, Scenario, Survivors, Tearing};
use counterfoil_record::RecordId;
use counterfoil_record::alone::Error;

use crate::chip::*;
use crate::script::*;
use crate::walk::small;

/// Behind a cache the pages of a commit reach the medium in any order, or some of them do not.
#[test]
fn a_cut_behind_a_cache_leaves_a_whole_commit() {
    let mut start = Chip::new(Part::file(512, 8, 14), 3);
    (start.pending, start.leaves) = (40, 4);
    start.with(true, |_| ()).expect("made");
    let mut known = Known::default();
    let long = |dice: &mut Dice| -> Changes {
        (0..6).map(|_| (dice.below(8) as u32, Some(vec![dice.below(256) as u8; 200]))).collect()
    };
    let play = |chip: &mut Chip, known: &mut Known, dice: &mut Dice| {
        chip.with(false, |store| {
            for _ in 0..6 {
                let changes = long(dice);
                let mut next = known.truth.clone();
                apply(&mut next, &changes);
                known.under_way = Some(next.clone());
                store.commit(&borrowed(&changes))?;
                (known.truth, known.under_way) = (next, None);
            }
            Ok::<_, Error>(())
        })
    };
    play(&mut start, &mut known, &mut Dice::new(1)).expect("opens").expect("plays");
    let mut cuts = 0;
    for seed in 0..400 {
        let (mut chip, mut known) = (start.copied(), known.clone());
        let at = 1 + seed % 40;
        let cut = Fault::Cut { at, tearing: Tearing::Byte(256), survivors: Survivors::Any };
        chip.device.set_scenario(Scenario::one(seed, cut));
        let id = format!("seed {seed}");
        if matches!(play(&mut chip, &mut known, &mut Dice::new(2)), Ok(Ok(()))) {
            continue;
        }
        cuts += 1;
        chip.device.power_on();
        judge(&mut chip, &mut known, &id);
        play(&mut chip, &mut known, &mut Dice::new(3)).expect("opens").unwrap_or_else(|error| panic!("{id}: {error}"));
        judge(&mut chip, &mut known, &id);
    }
    assert!(cuts > 200, "{cuts} cuts");
}

/// A process that died before its flush leaves a commit in the cache: the next one counts it when it is on the medium.
#[test]
fn a_commit_that_waits_in_a_cache_is_durable_before_it_is_counted() {
    let mut start = Chip::new(Part::file(512, 8, 14), 3);
    start.with(true, |store| store.commit(&[(RecordId(0), Some(b"one"))])).expect("made").expect("commits");
    for (lost, after) in (1..8).flat_map(|lost| (1..8).map(move |after| (lost, after))) {
        let (mut chip, id) = (start.copied(), format!("flush {lost}, cut {after}"));
        // An opening takes two steps, its first commit one.
        chip.counter.cut = Some((3, false));
        let device = chip.device.clone();
        let played = chip.with(false, |store| {
            store.commit(&[(RecordId(1), Some(b"two"))]).expect("commits");
            device.set_scenario(Scenario::one(1, Fault::LostFlush { at: device.writes() + lost }));
            store.commit(&[(RecordId(2), Some(b"three"))])
        });
        assert_eq!(played, Ok(Err(Error::Counter)), "{id}");
        device.reopen();
        chip.counter.cut = None;
        let at = device.writes() + after;
        let cut = Fault::Cut { at, tearing: Tearing::Untouched, survivors: Survivors::None };
        device.set_scenario(Scenario::one(1, cut));
        let _ = chip.with(false, |store| store.commit(&[(RecordId(3), Some(b"four"))]));
        device.power_on();
        let found = chip.with(false, |store| contents(store, 4)).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert!(found.contains_key(&1), "{id}: {found:?}");
    }
}

/// A cut may have begun a page and left no trace of it.
#[test]
fn an_opening_leaves_the_page_behind_the_newest_commit_alone() {
    let mut chip = small(0);
    chip.with(true, |_| ()).expect("made");
    for _ in 0..2 {
        chip.with(false, |store| store.commit(&[(RecordId(0), Some(b"one"))])).expect("opens").expect("commits");
    }
    let image = chip.device.image();
    // The first block has the first map, the second one the first pages of the data ring.
    let written: Vec<bool> = (8..16).map(|page| image.holds(page)).collect();
    // The root of the making; twice a page passed over, an opening root and a commit.
    assert_eq!(written, [true, false, true, true, false, true, true, false]);
}

#[test]
fn a_cut_at_any_step_of_the_counter_leaves_a_whole_commit() {
    let (start, known, _) = started(small(0), 30);
    for steps in 0..32 {
        for is_taken in [false, true] {
            let (mut chip, mut known) = (start.copied(), known.clone());
            let id = format!("step {steps}, taken {is_taken}");
            chip.counter.cut = Some((steps, is_taken));
            let outcome = play(&mut chip, &mut known, &mut Dice::new(2), 30);
            assert!(outcome.is_err(), "{id}: the power did not fail");
            chip.counter.cut = None;
            judge(&mut chip, &mut known, &id);
            play(&mut chip, &mut known, &mut Dice::new(3), 20).unwrap_or_else(|error| panic!("{id}, later: {error}"));
            judge(&mut chip, &mut known, &id);
        }
    }
}

/// Openings that are cut short, two of three: the list of openings must not run over, nor the room.
#[test]
fn openings_that_are_cut_again_and_again_do_not_use_up_the_store() {
    let (start, known, _) = started(small(0), 1);
    for seed in 0..40 {
        let (mut chip, mut known, mut dice) = (start.copied(), known.clone(), Dice::new(seed));
        for turn in 0..60 {
            let at = chip.device.writes() + 1 + dice.below(12);
            let tearing = [Tearing::Byte(100), Tearing::Complete, Tearing::Untouched][dice.below(3) as usize];
            let cut = Fault::Cut { at, tearing, survivors: Survivors::All };
            if turn % 3 != 0 {
                chip.device.set_scenario(Scenario::one(seed, cut));
            }
            let outcome = play(&mut chip, &mut known, &mut dice, 3);
            assert!(!matches!(outcome, Err(Error::Full)), "seed {seed}, turn {turn}: full");
            chip.device.set_scenario(Scenario::calm(seed));
            chip.device.power_on();
            if dice.once_in(4) {
                judge(&mut chip, &mut known, &format!("seed {seed}, turn {turn}"));
            } else if known.under_way.is_some() {
                // Nobody looked: what it holds is seen later.
                let found = chip.copied().with(false, |store| contents(store, IDS));
                (known.truth, known.under_way) = (found.expect("opens"), None);
            }
        }
        judge(&mut chip, &mut known, &format!("seed {seed}"));
    }
}
