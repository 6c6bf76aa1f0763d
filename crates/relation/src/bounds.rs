//! How much the tables of a database keep in memory, and how large what they write is: told before the first of them is read, and each
//! of it may differ from open to open.

use crate::Relations;
use crate::grain::Grain;
use crate::heads::Heads;

/// Maps of the row numbers of segments are kept up to this part of the memory for what is new.
const MAPS_PART: usize = 4;
/// Bytes of entries that are sorted at once while an index is built, unless [`Relations::with_build_bytes`] says otherwise.
pub(crate) const BUILD_BYTES: usize = 64 << 20;

impl Relations {
    /// The same, with a bound for the memory that index entries of new rows, deletes and updates take together, about and of all
    /// tables: none unless told. Where it is reached, the index with the most becomes a run, and the segment with the most is renewed
    /// by [`Relations::maintain`]. A quarter of it is for maps of the rows that are there, and what has no room is read when it is
    /// needed. What one transaction deletes and updates is not bounded.
    #[must_use]
    pub fn with_new_bytes(mut self, bytes: usize) -> Self {
        self.shared.new_bytes = bytes;
        self.shared.states.map_bytes_max = Some(bytes / MAPS_PART);
        self
    }

    /// The same, with steps of merges that look at so many entries at least, however few are fresh: each makes a piece that the catalog
    /// lists.
    #[must_use]
    pub fn with_step_entries(mut self, entries: usize) -> Self {
        self.shared.step_entries = entries.max(1);
        self
    }

    /// The same, with a bound for the memory of a merge: what it reads ahead of its runs, and about as much of what it makes. Where there are
    /// more runs than it has room for, some are merged first. 128 KiB of each run unless told otherwise.
    #[must_use]
    pub fn with_merge_bytes(mut self, bytes: usize) -> Self {
        self.shared.merge_bytes = bytes.max(1);
        self
    }

    /// The same, with about so many bytes of entries that are sorted at once while an index is built, where they are more than those of
    /// eight fresh parts; these are sorted at once in any case. While they are gathered they may take twice as much. 64 MiB for
    /// [`Relations::new`], else none.
    #[must_use]
    pub fn with_build_bytes(mut self, bytes: usize) -> Self {
        self.shared.build_bytes = bytes;
        self
    }

    /// The same, with another number of sorted runs of an index that are merged into one, at least 2: 8 unless told otherwise. Fewer make
    /// fewer runs, of each of which memory holds some hundred bytes, and write entries more often.
    #[must_use]
    pub fn with_tier_runs(mut self, runs: usize) -> Self {
        self.shared.tier_runs = runs.max(2);
        self
    }

    /// The same, with tiers of which each has runs so many times as large as the one below, at least 2: as many times as runs are
    /// merged into one unless told otherwise. What runs of a tier become stays in it until it is as large as those of the next, so
    /// that many times as much is kept in fewer runs, and small ones are written more often.
    #[must_use]
    pub fn with_tier_growth(mut self, growth: usize) -> Self {
        self.shared.tier_growth = Some(growth.max(2));
        self
    }

    /// The same, with another bound for the bytes of a table's segments: 64 MiB unless told otherwise. What is renewed at once is a
    /// segment or two.
    #[must_use]
    pub fn with_segment_bytes(mut self, bytes: u64) -> Self {
        self.shared.segment_bytes = bytes.max(1);
        self
    }

    /// The same, with another bound for the bytes of index runs (their upper levels and filters) that are kept in memory: 64 MiB
    /// unless told otherwise.
    #[must_use]
    pub fn with_head_bytes(mut self, bytes: usize) -> Self {
        self.shared.heads = Heads::with_bytes(bytes);
        self
    }

    /// The same, for a device: rows that are written from here on are sealed in small cells, and read in pieces, so that a row
    /// costs no page where there is no room to keep one. What is there already stays as it is, and either reads either.
    #[must_use]
    pub fn with_cells(mut self) -> Self {
        self.shared.grain = Grain::Cells;
        self
    }
}
