//! Reading rows past damage: what cannot be read is cut in halves until the bad rows stand alone.

use alloc::collections::VecDeque;
use core::ops::Range;

use counterfoil_log::View;

use crate::access::Access;
use crate::read::Wanted;
use crate::{Error, RowBlock};

/// What lies next in a table.
pub(crate) enum Piece {
    /// Rows.
    Rows(RowBlock),
    /// Positions of a segment that cannot be read, and why.
    Damaged { part: usize, positions: Range<u64>, error: Error },
}

/// Positions still to be read.
pub(crate) struct Careful {
    ranges: VecDeque<(usize, Range<u64>)>,
}

impl Careful {
    pub(crate) fn new(access: &Access) -> Self {
        let all = access.parts.iter().enumerate().map(|(place, part)| (place, 0..part.count));
        Careful { ranges: all.filter(|(_, range)| !range.is_empty()).collect() }
    }

    /// The next piece of at most `rows_max` rows; `None` at the end. Errors that are no damage end it.
    pub(crate) fn next(&mut self, view: &dyn View, access: &Access, rows_max: usize) -> Result<Option<Piece>, Error> {
        while let Some((part, range)) = self.ranges.pop_front() {
            let end = range.end.min(range.start + rows_max.max(1) as u64);
            if end < range.end {
                self.ranges.push_front((part, end..range.end));
            }
            let (start, count) = (range.start, (end - range.start) as usize);
            match access.read(view, part, start, count, &Wanted::all()) {
                Ok(block) => {
                    let read = start + block.count() as u64;
                    if read < end {
                        self.ranges.push_front((part, read..end));
                    }
                    return Ok(Some(Piece::Rows(block)));
                }
                Err(error) if !error.is_damage() => return Err(error),
                Err(error) if count == 1 => return Ok(Some(Piece::Damaged { part, positions: start..end, error })),
                Err(_) => {
                    let middle = start + (end - start) / 2;
                    self.ranges.push_front((part, middle..end));
                    self.ranges.push_front((part, start..middle));
                }
            }
        }
        Ok(None)
    }
}
