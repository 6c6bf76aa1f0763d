//! Memory of open points within a stated budget ([`crate::Limits::open_bytes`]).
//!
//! What is open beyond it is packed, by the codecs of leaves: some ten times smaller. Where that is not enough, a change merges what
//! is late, and then writes the longest tails as leaves that are not full. A reader cannot write and only packs.
//!
//! Each series counts its bytes whenever it was changed, and the table sums them up, so that asking costs nothing.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::Error;
use crate::series::Series;
use crate::state::State;
use crate::tables::{Known, SeriesTables, TableNumber};
use crate::write::Change;

/// Room for so many fresh points is worth packing; for fewer when that does not help: it costs the more, the fewer they are.
const FRESH_ROOM_MIN: [usize; 2] = [64, 8];
/// What takes less than this part of a page is not written for the sake of memory: a leaf would hold next to nothing.
const PAGE_PART: usize = 8;

/// What is known of the memory that the open points of a table take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    /// Bytes of the open points of all series.
    pub(crate) bytes: usize,
    /// Series that were changed since they were counted.
    pub(crate) stale: Vec<u32>,
    /// The series that was looked at last.
    hand: usize,
}

/// What is aimed at when so much is the most: packing a little for each point would cost more.
fn goal(bytes_max: usize) -> usize {
    bytes_max - bytes_max / 8
}

impl State {
    /// Counts the bytes of series that were changed.
    pub(crate) fn recount(&mut self) {
        for number in core::mem::take(&mut self.budget.stale) {
            let series = Arc::make_mut(self.series.place(number as usize));
            let bytes = series.open_bytes();
            self.budget.bytes = self.budget.bytes - series.counted + bytes;
            (series.counted, series.is_stale) = (bytes, false);
        }
    }

    /// Packs open points until they take no more than so many bytes, or nothing is left to be packed; `rounds` says how few
    /// points of a series are worth it.
    pub(crate) fn pack_down(&mut self, bytes_max: usize, rounds: usize) {
        if self.budget.bytes <= bytes_max {
            return;
        }
        for least in FRESH_ROOM_MIN.into_iter().take(rounds) {
            for _ in 0..self.series.len() {
                if self.budget.bytes <= goal(bytes_max) {
                    return;
                }
                self.budget.hand = (self.budget.hand + 1) % self.series.len();
                if self.series[self.budget.hand].tail.fresh_room() >= least {
                    self.pack(self.budget.hand);
                }
            }
        }
    }

    fn pack(&mut self, at: usize) {
        let place = self.series.place(at);
        let tail = place.tail.packed();
        // Whoever reads an older commit keeps the series as it was: that is not copied only to be dropped.
        match Arc::get_mut(place) {
            Some(series) => series.tail = tail,
            None => *place = Arc::new(place.with_tail(tail)),
        }
        let series = Arc::make_mut(place);
        let bytes = series.open_bytes();
        self.budget.bytes = self.budget.bytes - series.counted + bytes;
        series.counted = bytes;
    }
}

impl Known {
    /// What was known last.
    pub(crate) fn newest(&self) -> Option<&Arc<State>> {
        self.pending.as_ref().or(self.settled.as_ref())
    }

    fn newest_mut(&mut self) -> Option<&mut Arc<State>> {
        self.pending.as_mut().or(self.settled.as_mut())
    }
}

impl SeriesTables {
    /// Bytes of memory that points in no leaf take, over all tables that were used; beside that each series takes some hundreds.
    /// While somebody reads an older commit, what was changed since is there twice.
    pub fn open_bytes(&self) -> usize {
        self.known.read(|known| known.values().filter_map(Known::newest).map(|state| state.budget.bytes).sum())
    }

    /// Bytes that one table may have open, for what the others have.
    pub(crate) fn bytes_left(&self, table: TableNumber) -> usize {
        let others = self.known.read(|known| {
            let others = known.iter().filter(|(number, _)| **number != table);
            others.filter_map(|(_, known)| known.newest()).map(|state| state.budget.bytes).sum()
        });
        self.limits.open_bytes.saturating_sub(others)
    }

    /// Holds the table that was changed to the budget: by packing, then by packing what others have, then by writing leaves.
    pub(crate) fn keep_within(&self, table: TableNumber, change: &mut Change<'_>) -> Result<(), Error> {
        change.state.recount();
        if change.state.budget.bytes <= self.bytes_left(table) {
            return Ok(());
        }
        change.state.pack_down(self.bytes_left(table), 1);
        if change.state.budget.bytes > self.bytes_left(table) {
            self.pack_others(table);
            change.state.pack_down(self.bytes_left(table), FRESH_ROOM_MIN.len());
        }
        if change.state.budget.bytes > self.bytes_left(table) {
            change.relieve(self.bytes_left(table))?;
        }
        Ok(())
    }

    /// Packs what other tables have open, so that a change finds room.
    fn pack_others(&self, table: TableNumber) {
        self.known.write(|known| {
            let others = known.iter_mut().filter(|(number, _)| **number != table);
            for state in others.filter_map(|(_, known)| known.newest_mut()) {
                if state.series.iter().any(|series| series.tail.fresh_room() >= FRESH_ROOM_MIN[0]) {
                    Arc::make_mut(state).pack_down(0, 1);
                }
            }
        });
    }
}

impl Change<'_> {
    /// Writes what is open beyond so many bytes into leaves, the largest series first.
    pub(crate) fn relieve(&mut self, bytes_max: usize) -> Result<(), Error> {
        self.relieve_by(bytes_max, |series| series.late.bytes(), |change, number| change.merge_late(number))?;
        self.relieve_by(bytes_max, |series| series.tail.bytes(), |change, number| change.settle_all(number))?;
        self.tell_edges()
    }

    fn relieve_by(
        &mut self,
        bytes_max: usize,
        bytes: impl Fn(&Series) -> usize,
        settle: impl Fn(&mut Self, u32) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.state.recount();
        if self.state.budget.bytes <= bytes_max {
            return Ok(());
        }
        let least = self.files.pages.bytes as usize / PAGE_PART;
        let all = (0..).zip(&self.state.series).map(|(number, series)| (bytes(series), number));
        let mut largest: Vec<(usize, u32)> = all.filter(|(bytes, _)| *bytes >= least).collect();
        largest.sort_unstable_by(|one, other| other.cmp(one));
        for (_, number) in largest {
            if self.state.budget.bytes <= goal(bytes_max) {
                break;
            }
            settle(self, number)?;
            self.state.recount();
        }
        Ok(())
    }

    /// Writes the tail of a series as leaves, but for the newest point: the last of them is not full.
    fn settle_all(&mut self, number: u32) -> Result<(), Error> {
        let series = self.state.series_mut(number)?;
        let guess = series.leaf_guess;
        let mut points = series.tail.all().into_owned();
        points.remove(points.len().saturating_sub(1)..points.len());
        let born = self.write_leaves(number, &points, guess)?;
        self.settle(number, born)?;
        let series = self.state.series_mut(number)?;
        series.tail = series.tail.packed();
        Ok(())
    }
}
