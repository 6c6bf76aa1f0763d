//! Where a table's bytes lie: its segments, and apart from them the runs of each of its indexes.
//!
//! The record of the segments is rewritten when one begins or is renewed, that of an index when a run of it is written or a step of a
//! merge is done; not when rows are added: how many rows there are follows from the lengths of the containers.
//!
//! Invariants (`Files::check`, `IndexFiles::is_sound`):
//! 1. segments cover ascending ranges of row numbers that do not meet; only the last may still grow;
//! 2. runs describe themselves sensibly, and pieces of one sorted run follow each other;
//! 3. a merge under way is of runs that are there, and what it has written goes as far as it says.

use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::{ContainerId, GroupId, Order as _};
use serde::{Deserialize, Serialize};

use crate::run::Run;
use crate::{Error, Table};

/// Row numbers stay below this: a join holds one, plus 1, in 6 bytes.
pub(crate) const ROW_NUMBERS_MAX: u64 = 1 << 47;

/// The physical side of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Files {
    /// The number of the next row, where the last segment does not say it.
    pub(crate) next_row: u64,
    /// How often the table was rewritten or emptied.
    pub(crate) rewrites: u64,
    /// How often segments of it were renewed since.
    pub(crate) renewals: u64,
    pub(crate) segments: Vec<Segment>,
}

/// Rows with a common layout and contiguous numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    /// The number of its first row.
    pub(crate) first: u64,
    /// Row numbers it covers; `None`: it still grows, and covers as many as it has rows.
    pub(crate) span: Option<u64>,
    /// The layout of its rows, by place in the table's list, in the lower 16 bits; in the others the bytes from one row to the next, or
    /// zero where these are those of an image.
    pub(crate) form: u32,
    pub(crate) group: u64,
    pub(crate) rows: u64,
    pub(crate) heap: u64,
    pub(crate) deletes: u64,
    pub(crate) updates: u64,
    /// The map of the row numbers that are there; without one, all are.
    pub(crate) presence: Option<u64>,
    /// Which rows had been updated when it was renewed; without it, none that any run could know under another key.
    pub(crate) renewed: Option<Renewed>,
}

/// Rows that index runs from before a renewal may know under keys that are no longer theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Renewed {
    /// The number of the renewal: runs with this one or a later one have looked since.
    pub(crate) number: u64,
    /// The map of their row numbers.
    pub(crate) rows: u64,
}

/// Layouts that a table has at most.
pub(crate) const LAYOUTS_MAX: usize = 1 << FORM_BITS;
const FORM_BITS: u32 = 16;

/// The form of a segment of a layout, with so many bytes from one row to the next; none: as many as its images have.
pub(crate) fn form(layout: u32, stride: Option<u16>) -> u32 {
    layout | u32::from(stride.unwrap_or(0)) << FORM_BITS
}

impl Segment {
    /// The layout of its rows, by place in the table's list.
    pub(crate) fn layout(&self) -> usize {
        (self.form & (LAYOUTS_MAX as u32 - 1)) as usize
    }

    /// Bytes from one row to the next, of images that have so many.
    pub(crate) fn stride(&self, width: usize) -> usize {
        match self.form >> FORM_BITS {
            0 => width,
            stride => stride as usize,
        }
    }

    pub(crate) fn group(&self) -> GroupId {
        GroupId(self.group)
    }

    pub(crate) fn rows(&self) -> ContainerId {
        ContainerId(self.rows)
    }

    pub(crate) fn heap(&self) -> ContainerId {
        ContainerId(self.heap)
    }

    pub(crate) fn deletes(&self) -> ContainerId {
        ContainerId(self.deletes)
    }

    pub(crate) fn updates(&self) -> ContainerId {
        ContainerId(self.updates)
    }

    pub(crate) fn presence(&self) -> Option<ContainerId> {
        self.presence.map(ContainerId)
    }

    pub(crate) fn renewed_rows(&self) -> Option<ContainerId> {
        self.renewed.map(|renewed| ContainerId(renewed.rows))
    }
}

/// The settled part of an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexFiles {
    pub(crate) coverage: Coverage,
    /// Newest last; tiers do not grow from one to the next. Those that follow the one before are pieces of one sorted run.
    pub(crate) runs: Vec<Run>,
    /// A merge of some of them that is under way.
    pub(crate) merging: Option<Merging>,
}

/// A merge of runs, as far as its last step came. Until it has ended, the runs that go into it are the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Merging {
    /// The first run that goes into it, and how many do.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// The tier of what it makes.
    pub(crate) tier: u8,
    /// The last entry that was looked at; empty before the first.
    pub(crate) until: Vec<u8>,
    /// What it has made: pieces of one sorted run.
    pub(crate) made: Vec<Run>,
}

impl Merging {
    /// The places of the runs that go into it.
    pub(crate) fn places(&self) -> Range<usize> {
        self.first as usize..(self.first as usize).saturating_add(self.count as usize)
    }
}

impl IndexFiles {
    /// An index of which nothing is settled.
    pub(crate) fn empty(coverage: Coverage) -> Self {
        IndexFiles { coverage, runs: Vec::new(), merging: None }
    }

    /// The sorted runs, each in its pieces.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = &[Run]> {
        pieces(&self.runs)
    }

    /// Its runs, and what a merge under way has made.
    pub(crate) fn all_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().chain(self.merging.iter().flat_map(|merging| &merging.made))
    }

    /// The group that a run of a tier may lie in behind the first `count` runs: that of the one before it, if it is of the same tier. All
    /// runs of a tier go into one merge, so they die together; those that go into one already die before.
    pub(crate) fn group_beside(&self, count: usize, tier: u8) -> Option<GroupId> {
        let place = count.checked_sub(1)?;
        let is_merged = self.merging.as_ref().is_some_and(|merging| merging.places().contains(&place));
        let before = self.runs.get(place).filter(|run| run.tier == tier && !is_merged)?;
        Some(before.group())
    }

    /// Entries of its runs.
    pub(crate) fn entries(&self) -> u64 {
        self.runs.iter().fold(0, |sum, run| sum.saturating_add(run.entries))
    }

    /// Whether what was read makes sense beside the segments of its table; nothing in it is believed before.
    pub(crate) fn is_sound(&self, files: &Files) -> bool {
        let seen = |run: &Run| run.check().is_ok() && run.renewals <= files.renewals;
        let merging = self.merging.as_ref().is_none_or(|merging| {
            let inputs = self.runs.get(merging.places()).unwrap_or_default();
            let behind = self.runs.get(merging.places().end);
            let whole = inputs.first().is_some_and(|run| !run.follows) && behind.is_none_or(|run| !run.follows);
            let within = merging.made.last().is_none_or(|run| run.last <= merging.until);
            whole && within && are_pieces(&merging.made)
        });
        self.all_runs().all(seen) && merging && pieces(&self.runs).all(are_pieces)
    }
}

/// Sorted runs out of their pieces.
pub(crate) fn pieces(runs: &[Run]) -> impl Iterator<Item = &[Run]> {
    runs.chunk_by(|_, next| next.follows)
}

/// The groups of runs, each once.
pub(crate) fn groups<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<GroupId> {
    let mut groups: Vec<GroupId> = runs.map(Run::group).collect();
    groups.order();
    groups.dedup();
    groups
}

/// Whether runs are pieces of one sorted run.
fn are_pieces(runs: &[Run]) -> bool {
    let first = runs.first().is_none_or(|run| !run.follows);
    first && runs.windows(2).all(|pair| pair[1].follows && pair[0].last < pair[1].first)
}

/// What the runs of an index know: everything before these marks. What comes after is the index's fresh part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Coverage {
    /// How often the table was rewritten or emptied: marks before and after that do not compare.
    pub(crate) rewrites: u64,
    /// How often segments had been renewed: other logs came in the place of some that the marks are of.
    pub(crate) renewals: u64,
    /// Rows below this number, as they were inserted.
    pub(crate) rows: u64,
    /// For each segment (by its group) so many bytes of its update log; none means 0.
    pub(crate) updates: Vec<(u64, u64)>,
}

impl Coverage {
    /// Nothing known, of a table rewritten so many times.
    pub(crate) fn none(rewrites: u64) -> Self {
        Coverage { rewrites, ..Coverage::default() }
    }

    /// Bytes of a segment's update log that the runs know.
    pub(crate) fn of_updates(&self, segment: &Segment) -> u64 {
        self.updates.iter().find(|(group, _)| *group == segment.group).map_or(0, |(_, bytes)| *bytes)
    }
}

impl Files {
    /// Checks what was read against the table it belongs to.
    pub(crate) fn check(&self, table: &Table) -> Result<(), Error> {
        let wrong = || Error::corrupt(&table.name, "catalog of segments");
        let mut from = 0;
        for (place, segment) in self.segments.iter().enumerate() {
            let last = place + 1 == self.segments.len();
            let ends = segment.first.checked_add(segment.span.unwrap_or(0));
            let ends = ends.filter(|ends| *ends <= ROW_NUMBERS_MAX).ok_or_else(wrong)?;
            let open = segment.span.is_none();
            if segment.renewed.is_some_and(|renewed| renewed.number > self.renewals || open) {
                return Err(wrong());
            }
            if segment.first < from || (open && !last) || segment.layout() >= table.layouts.len() {
                return Err(wrong());
            }
            from = ends;
        }
        if self.next_row > ROW_NUMBERS_MAX || (from > self.next_row && !self.grows()) {
            return Err(wrong());
        }
        Ok(())
    }

    fn grows(&self) -> bool {
        self.segments.last().is_some_and(|segment| segment.span.is_none())
    }
}
