//! In what grain rows are sealed and read.
//!
//! A host opens a page of four kilobytes in two microseconds and keeps it. A device has no room for pages and deciphers block by
//! block: there the rows, their newer images and their long values lie in containers of cells, and a row costs the cells
//! that hold it. Which of the two a segment has stands in the log beside its containers, so either opener reads either; what
//! a [`Grain`] decides is how new segments are made, and how far apart what is read together may lie.

use counterfoil_log::Sealing;

use crate::Layout;

/// Rows, and long values, that are nearer to each other than this are read together.
const GAP_BYTES: u64 = 1024;
/// Rows are read together over so many bytes at most.
const IMAGES_BYTES_MAX: u64 = 4096;
/// In cells each byte between is deciphered, for a microsecond in eight; a page asked once more costs some thirty.
const CELLS_GAP_BYTES: u64 = 128;
/// In cells what is read together stays below a page: all of one would be its MAC too.
const CELLS_IMAGES_BYTES_MAX: u64 = 960;

/// Whether rows are read page by page or in pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Grain {
    /// Where pages are kept once they are opened.
    #[default]
    Pages,
    /// Where they are not.
    Cells,
}

/// How the containers of a segment are sealed of which pieces are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSealing {
    pub(crate) rows: Sealing,
    pub(crate) heap: Sealing,
    pub(crate) updates: Sealing,
}

impl Grain {
    /// For a segment with rows of this layout. Joins, the places of long values and the row numbers of an update log point
    /// somewhere.
    pub(crate) fn sealing(self, layout: &Layout) -> SegmentSealing {
        let points = !layout.joins().is_empty() || layout.columns().iter().any(|column| column.kind.is_variable());
        match self {
            Grain::Pages => SegmentSealing { rows: Sealing::Whole, heap: Sealing::Whole, updates: Sealing::Whole },
            Grain::Cells => SegmentSealing {
                rows: if points { Sealing::Pointers } else { Sealing::Cells },
                heap: Sealing::Cells,
                updates: Sealing::Pointers,
            },
        }
    }

    /// How far apart long values may lie that are read together.
    pub(crate) fn gap_bytes(self) -> u64 {
        match self {
            Grain::Pages => GAP_BYTES,
            Grain::Cells => CELLS_GAP_BYTES,
        }
    }

    /// Over how many bytes rows are read together.
    fn images_bytes_max(self) -> u64 {
        match self {
            Grain::Pages => IMAGES_BYTES_MAX,
            Grain::Cells => CELLS_IMAGES_BYTES_MAX,
        }
    }

    /// How many of the first positions of `rows` are read together: they lie one behind the other, near each other.
    pub(crate) fn near<T>(self, rows: &[(T, u64)], width: u64) -> usize {
        let first = rows.first().map_or(0, |(_, first)| *first);
        let fits = |next: u64| (next - first + 1) * width <= self.images_bytes_max();
        let is_near = |one: u64, next: u64| match self {
            // What is read from end to end is read at once, however much it is.
            Grain::Pages if next == one.wrapping_add(1) => true,
            _ => next > one && (next - one - 1) * width <= self.gap_bytes() && fits(next),
        };
        1 + rows.array_windows().take_while(|[(_, one), (_, next)]| is_near(*one, *next)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnId, JoinId, Type};
    use alloc::vec::Vec;

    fn near(grain: Grain, positions: &[u64], width: u64) -> usize {
        let rows: Vec<((), u64)> = positions.iter().map(|position| ((), *position)).collect();
        grain.near(&rows, width)
    }

    #[test]
    fn what_is_near_is_read_together() {
        let all: Vec<u64> = (0..100).collect();
        assert_eq!(near(Grain::Pages, &all, 100), 100);
        assert_eq!(near(Grain::Cells, &all, 100), 9);
        assert_eq!((near(Grain::Pages, &[5, 9, 20], 100), near(Grain::Cells, &[5, 9, 20], 100)), (3, 1));
        assert_eq!((near(Grain::Pages, &[5, 7, 6], 100), near(Grain::Cells, &[5, 7, 6], 100)), (2, 2));
        assert_eq!((near(Grain::Pages, &[], 100), near(Grain::Cells, &[5, 5], 100)), (1, 1));
    }

    #[test]
    fn what_points_somewhere_has_stronger_cells() {
        let number = || [(ColumnId(0), Type::BigInt)];
        let text = || [(ColumnId(0), Type::Char(5))];
        let joined = Layout::with_joins(number(), Vec::from([JoinId(0)]));
        let rows = |layout: &Layout| Grain::Cells.sealing(layout).rows;
        assert_eq!(rows(&Layout::new(number())), Sealing::Cells);
        assert_eq!((rows(&Layout::new(text())), rows(&joined)), (Sealing::Pointers, Sealing::Pointers));
        assert_eq!(Grain::Pages.sealing(&joined).rows, Sealing::Whole);
    }
}
