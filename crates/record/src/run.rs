//! Which epoch every page of the data ring was written in: a list of runs, one for each opening that still has pages.
//!
//! ```text
//! 0 first u64 | 8 end u64 | 16 epoch number u64 | 24 epoch salt [16]          (40 bytes; end is one past the last)
//! ```
//! 1. Runs are in the order of their sequences, none is empty, none overlap. Between two runs lie the pages that an
//!    opening abandoned when it began on a fresh block; they belong to nobody.
//! 2. A page's epoch is predicted by the runs alone. A page put back from a history that was cut short has the right
//!    sequence and the wrong epoch, and so the wrong key.

use counterfoil_vault::Epoch;

use crate::bytes::{array_at, put, u64_at};

pub(crate) const RUN_BYTES: usize = 40;

/// Neighbouring pages of the data ring that were written in one opening. Callers hand over a buffer of these and
/// need not know what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) epoch: Epoch,
}

impl Run {
    /// A run to fill a new buffer with.
    pub const EMPTY: Run = Run { first: 0, end: 0, epoch: Epoch { number: 0, salt: [0; 16] } };

    pub(crate) fn decode(bytes: &[u8; RUN_BYTES]) -> Run {
        let epoch = Epoch { number: u64_at(bytes, 16), salt: array_at(bytes, 24) };
        Run { first: u64_at(bytes, 0), end: u64_at(bytes, 8), epoch }
    }

    pub(crate) fn encode(&self) -> [u8; RUN_BYTES] {
        let mut bytes = [0; RUN_BYTES];
        put(&mut bytes, 0, &self.first.to_le_bytes());
        put(&mut bytes, 8, &self.end.to_le_bytes());
        put(&mut bytes, 16, &self.epoch.number.to_le_bytes());
        put(&mut bytes, 24, &self.epoch.salt);
        bytes
    }
}

impl Default for Run {
    fn default() -> Run {
        Run::EMPTY
    }
}

/// The epoch of the page with this sequence, if it belongs to the store.
pub(crate) fn epoch_of(runs: &[Run], sequence: u64) -> Option<Epoch> {
    let after = runs.partition_point(|run| run.first <= sequence);
    let run = runs.get(after.checked_sub(1)?)?;
    (sequence < run.end).then_some(run.epoch)
}

/// Adds `run` after the first `count` runs, which may make the last one longer. `None` if it breaks invariant 1 or
/// finds no room; else the new count.
pub(crate) fn push(runs: &mut [Run], count: usize, run: Run) -> Option<usize> {
    if run.first >= run.end {
        return None;
    }
    if let Some(last) = count.checked_sub(1).and_then(|last| runs.get_mut(last)) {
        if run.first < last.end {
            return None;
        }
        if run.first == last.end && run.epoch == last.epoch {
            last.end = run.end;
            return Some(count);
        }
    }
    *runs.get_mut(count)? = run;
    Some(count + 1)
}

/// Drops the runs that end before `tail`; the new count.
pub(crate) fn drop_before(runs: &mut [Run], tail: u64) -> usize {
    let gone = runs.partition_point(|run| run.end <= tail);
    runs.copy_within(gone.., 0);
    runs.len() - gone
}

/// The parts of the runs that come after `fold`.
pub(crate) fn after(runs: &[Run], fold: u64) -> impl Iterator<Item = Run> + '_ {
    let skipped = runs.partition_point(|run| run.end <= fold + 1);
    runs.iter().skip(skipped).map(move |run| Run { first: run.first.max(fold + 1), ..*run })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u64, end: u64, number: u64) -> Run {
        Run { first, end, epoch: Epoch { number, salt: [number as u8; 16] } }
    }

    #[test]
    fn a_page_has_the_epoch_of_its_run_and_holes_have_none() {
        let runs = [run(8, 11, 1), run(16, 30, 2)];
        assert_eq!(epoch_of(&runs, 7), None);
        assert_eq!(epoch_of(&runs, 10).map(|epoch| epoch.number), Some(1));
        assert_eq!(epoch_of(&runs, 11), None);
        assert_eq!(epoch_of(&runs, 29).map(|epoch| epoch.number), Some(2));
        assert_eq!(epoch_of(&runs, 30), None);
    }

    #[test]
    fn neighbours_of_one_epoch_join_and_nothing_overlaps() {
        let mut runs = [Run::EMPTY; 3];
        assert_eq!(push(&mut runs, 0, run(8, 9, 1)), Some(1));
        assert_eq!(push(&mut runs, 1, run(9, 12, 1)), Some(1));
        assert_eq!(push(&mut runs, 1, run(11, 13, 2)), None);
        assert_eq!(push(&mut runs, 1, run(12, 12, 2)), None);
        assert_eq!(push(&mut runs, 1, run(16, 20, 2)), Some(2));
        assert_eq!(after(&runs[..2], 10).collect::<std::vec::Vec<_>>(), [run(11, 12, 1), run(16, 20, 2)]);
        assert_eq!(drop_before(&mut runs[..2], 16), 1);
        assert_eq!(runs[0], run(16, 20, 2));
        assert_eq!(Run::decode(&runs[0].encode()), runs[0]);
    }
}
