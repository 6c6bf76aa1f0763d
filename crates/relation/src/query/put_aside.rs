//! Rows that paths name, each path followed once: their numbers are put aside and come back window by window.
//!
//! ```text
//! a path -- some rows at its end at a time --> numbers of the root's rows --> the parts of that path (Parts)
//! a window: bits of the first path's part, of them those that the others' parts have too
//! ```

use core::ops::Range;

use alloc::vec::Vec;

use counterfoil_log::View;

use super::ends::Ends;
use super::parts::Parts;
use super::scratch::Scratch;
use super::{PIECE_ENDS, Source};
use crate::found::{Found, FoundRows, span_of};
use crate::{Error, Relations, RowId};

/// Numbers that paths name, all of them together; each row is to be named by all paths.
pub(super) struct PutAside {
    paths: Vec<Parts>,
    /// Rows of a window.
    room: usize,
    /// Where the next window begins.
    next: RowId,
    end: u64,
}

impl PutAside {
    /// None yet of so many paths, for numbers of which windows have room for so many rows.
    pub(super) fn of(paths: usize, numbers: Range<u64>, room: usize) -> Self {
        // While numbers come there is no window, which would be there twice.
        let bytes_max = 2 * room * size_of::<RowId>();
        let parts = (0..paths).map(|_| Parts::new(&numbers, span_of(room), bytes_max)).collect();
        PutAside { paths: parts, room, next: RowId(numbers.start), end: numbers.end }
    }

    /// About how often something is read of all windows.
    pub(super) fn reads(&self) -> u64 {
        self.paths.iter().map(Parts::count).sum()
    }

    /// Follows the paths and puts aside what they name.
    pub(super) fn fill(
        &mut self,
        relations: &Relations,
        view: &dyn View,
        root: &Source,
        paths: &[&Ends],
        scratch: &mut dyn Scratch,
    ) -> Result<(), Error> {
        for (parts, ends) in self.paths.iter_mut().zip(paths) {
            // So many at a time that about as many rows join them as there is room for.
            let count = ends.count().saturating_mul(self.room) / (ends.joined as usize).max(1);
            let mut next = RowId(0);
            loop {
                let piece = ends.piece(next, count.clamp(1, PIECE_ENDS));
                let Some(last) = piece.last() else { break };
                next = RowId(last.0.saturating_add(1));
                let mut from = Some(self.next);
                while let Some(first) = from {
                    let mut found = Found::some(first, self.room, usize::MAX);
                    relations.find_joined_to(view, &root.table, (ends.path, &piece), &mut found)?;
                    let (mut rows, behind) = found.finish();
                    rows.try_for_each(|row| parts.push(scratch, row))?;
                    from = behind;
                }
            }
            parts.close(scratch)?;
        }
        Ok(())
    }

    /// The rows of the next window; none behind the last.
    pub(super) fn next(&mut self, scratch: &mut dyn Scratch) -> Result<Option<FoundRows>, Error> {
        let Some((first, others)) = self.paths.split_first().filter(|_| self.next.0 < self.end) else {
            return Ok(None);
        };
        let mut found = Found::close(self.next, self.room, usize::MAX);
        first.each_beside(scratch, self.next, &mut |row| {
            let _ = found.take(row);
        })?;
        let mut rows = found.finish().0;
        for parts in others {
            if rows.count_left() > 0 {
                let mut again = Found::among(rows);
                parts.each_beside(scratch, self.next, &mut |row| {
                    let _ = again.take(row);
                })?;
                rows = again.finish().0;
            }
        }
        self.next = RowId(self.next.0.saturating_add(span_of(self.room)));
        Ok(Some(rows))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::InMemory;
    use super::*;

    #[test]
    fn windows_have_what_all_paths_name_in_order() {
        // Where parts are as large as windows, and where several windows are one part.
        for (numbers, room) in [(7..500_000, 128), (7..3_000_000, 8), (3..4, 1)] {
            let step = ((numbers.end - numbers.start) / 20_000).max(1);
            let mut aside = InMemory(Vec::new());
            for paths in 1..4 {
                let mut put = PutAside::of(paths, numbers.clone(), room);
                for (place, parts) in put.paths.iter_mut().enumerate() {
                    // In descending order, and each of them twice.
                    let named = numbers.clone().step_by(step as usize * (place + 1)).map(RowId);
                    let named: Vec<RowId> = named.flat_map(|row| [row, row]).collect();
                    named.iter().rev().for_each(|row| parts.push(&mut aside, *row).unwrap());
                    parts.close(&mut aside).unwrap();
                }
                let mut got = Vec::new();
                while let Some(rows) = put.next(&mut aside).unwrap() {
                    got.extend(rows.map(|row| row.0));
                }
                let common = [1, 2, 6][paths - 1] * step as usize;
                assert!(got == numbers.clone().step_by(common).collect::<Vec<_>>(), "{paths} paths, room for {room}");
            }
        }
    }
}
