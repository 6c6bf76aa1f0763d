//! Rows that entries of indexes name: all of them, or those with the least numbers that there is room for.
//!
//! Whoever has room for some only asks again for those behind them, and the entries are read once more: a page of an index names a
//! thousand rows, and each of these costs a page.

use alloc::vec::Vec;

use crate::index::IndexReader;
use crate::key::ByteRange;
use crate::{Error, RowId};
use counterfoil_log::Order as _;

/// Rows found so far.
pub(crate) struct Found {
    rows: Vec<RowId>,
    /// Those before this one are known already.
    from: RowId,
    /// Rows that there is room for; twice as many may be there until they are sorted.
    room: usize,
    /// The last that there is room for, once there are more.
    last: Option<RowId>,
    /// Entries that may be looked at: more are worse than reading all rows.
    entries_left: usize,
}

impl Found {
    /// All rows, of so many entries at most.
    pub(crate) fn all(entries_max: usize) -> Self {
        Found::some(RowId(0), usize::MAX, entries_max)
    }

    /// The first `room` rows from one on, of so many entries at most.
    pub(crate) fn some(from: RowId, room: usize, entries_max: usize) -> Self {
        Found { rows: Vec::new(), from, room: room.max(1), last: None, entries_left: entries_max }
    }

    /// Adds the rows of a range; whether there are not too many.
    pub(crate) fn add(&mut self, reader: &IndexReader<'_>, range: &ByteRange) -> Result<bool, Error> {
        reader.visit(range, &mut |row| Ok(self.take(row)))
    }

    fn take(&mut self, row: RowId) -> bool {
        let Some(left) = self.entries_left.checked_sub(1) else { return false };
        self.entries_left = left;
        if row >= self.from && self.last.is_none_or(|last| row <= last) {
            self.rows.push(row);
            if self.rows.len() >= self.room.saturating_mul(2) {
                self.tidy();
            }
        }
        true
    }

    fn tidy(&mut self) {
        self.rows.order();
        self.rows.dedup();
        if self.rows.len() > self.room {
            self.rows.truncate(self.room);
            self.last = self.rows.last().copied();
        }
    }

    /// About how many rows of another table may be looked at together to find these.
    pub(crate) fn piece_rows(&self) -> usize {
        self.entries_left.min(self.room) / 8
    }

    /// The rows, each once, in the order of their numbers; and where those behind them begin, if there may be any.
    pub(crate) fn finish(mut self) -> (Vec<RowId>, Option<RowId>) {
        self.tidy();
        let behind = self.last.map(|last| RowId(last.0.saturating_add(1)));
        (self.rows, behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of taking rows window by window.
    fn windows(rows: &[u64], room: usize) -> Vec<Vec<u64>> {
        let (mut windows, mut from) = (Vec::new(), Some(RowId(0)));
        while let Some(begin) = from {
            let mut found = Found::some(begin, room, rows.len());
            assert!(rows.iter().all(|row| found.take(RowId(*row))));
            let (some, behind) = found.finish();
            assert!(some.len() <= room);
            windows.push(some.into_iter().map(|row| row.0).collect());
            from = behind;
        }
        windows
    }

    #[test]
    fn windows_are_all_rows_once_and_in_order() {
        let rows: Vec<u64> = (0..500).map(|row| row * 7919 % 300).collect();
        let mut all = rows.clone();
        all.sort_unstable();
        all.dedup();
        for room in [1, 2, 7, 299, 300, 1000] {
            let windows = windows(&rows, room);
            assert_eq!(windows.concat(), all, "room for {room}");
            assert!(windows.len() <= all.len().div_ceil(room) + 1);
        }
        assert_eq!(windows(&[], 5), [[0_u64; 0]]);
    }

    #[test]
    fn too_many_entries_are_told() {
        let mut found = Found::all(2);
        assert!(found.take(RowId(1)) && found.take(RowId(1)) && !found.take(RowId(0)));
    }
}
