//! A script of commits that is cut, and what must be there afterwards.

use counterfoil_flash_sim::Dice;
use counterfoil_record::alone::Error;

use crate::chip::*;

pub const IDS: u32 = 90;

/// Acknowledged contents, and those of the commit under way.
#[derive(Clone, Default)]
pub struct Known {
    pub truth: Truth,
    pub under_way: Option<Truth>,
}

/// Commits until the script or the power ends.
pub fn play(chip: &mut Chip, known: &mut Known, dice: &mut Dice, commits: usize) -> Result<(), Error> {
    chip.with(false, |store| {
        for _ in 0..commits {
            let changes = random_changes(dice, IDS, 30, 4);
            let mut next = known.truth.clone();
            apply(&mut next, &changes);
            known.under_way = Some(next.clone());
            store.commit(&borrowed(&changes))?;
            store.check();
            (known.truth, known.under_way) = (next, None);
        }
        Ok(())
    })?
}

/// Opens after a cut: what is there must be what was acknowledged, or the commit that was cut.
pub fn judge(chip: &mut Chip, known: &mut Known, id: &str) {
    let found = chip.with(false, |store| contents(store, IDS)).unwrap_or_else(|error| panic!("{id}: {error}"));
    if known.under_way.as_ref() != Some(&found) {
        compare(&found, &known.truth, id);
    }
    (known.truth, known.under_way) = (found, None);
}

/// A store that has gone round its rings a few times, and how many writes the script makes after that.
pub fn started(mut chip: Chip, commits: usize) -> (Chip, Known, u64) {
    let mut known = Known::default();
    chip.with(true, |_| ()).expect("made");
    play(&mut chip, &mut known, &mut Dice::new(1), 150).expect("plays");
    let before = chip.device.writes();
    let (copy, mut truth) = (chip.copied(), known.clone());
    play(&mut chip, &mut truth, &mut Dice::new(2), commits).expect("plays");
    (copy, known, chip.device.writes() - before)
}
