//! In what grain rows are sealed and read.
//!
//! A host opens a page of four kilobytes in two microseconds and keeps it. A device has no room for pages and deciphers block by
//! block: there the rows, their newer images and their long values lie in containers of cells, and a row costs the cells
//! that hold it. Which of the two a segment has stands in the log beside its containers, so either opener reads either; what
//! a [`Grain`] decides is how new segments are made, and how far apart what is read together may lie.

use counterfoil_log::Sealing;

use crate::{Layout, few_or_many};

/// Rows, and long values, that are nearer to each other than this are read together.
const GAP_BYTES: u64 = 1024;
/// What a row may take more, as a part of itself, so that it does not begin on one page and end on another.
const STRIDE_PART: usize = 6;
/// Rows are read together over so many bytes at most.
const IMAGES_BYTES_MAX: u64 = few_or_many(2048, 4096) as u64;
/// In cells each byte between is deciphered, for a microsecond in eight; a page asked once more costs some thirty.
const CELLS_GAP_BYTES: u64 = 128;

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

    /// How many bytes there are from one row to the next in pages that hold so many; none: as many as an image has. Where rows are read
    /// in pieces, one that lies on two pages costs two reads, and one on two sectors a sector more: where a page can be so many rows
    /// with a little room to spare, it is.
    pub(crate) fn stride(self, layout: &Layout, page_payload: usize) -> Option<u16> {
        let rows = page_payload.checked_div(layout.width())?;
        let stride = page_payload.checked_div(rows)?;
        let spare = stride - layout.width();
        let is_worth =
            self == Grain::Cells && page_payload.is_multiple_of(rows) && spare * STRIDE_PART <= layout.width();
        u16::try_from(stride).ok().filter(|_| is_worth && spare > 0)
    }

    /// How far apart long values may lie that are read together.
    pub(crate) fn gap_bytes(self) -> u64 {
        match self {
            Grain::Pages => GAP_BYTES,
            Grain::Cells => CELLS_GAP_BYTES,
        }
    }
}

/// How many of the first positions of `rows` are read together: they lie one behind the other, near each other.
pub(crate) fn near<T>(rows: &[(T, u64)], width: u64) -> usize {
    let first = rows.first().map_or(0, |(_, first)| *first);
    let is_near = |one: u64, next: u64| {
        let is_next = next == one.wrapping_add(1);
        let fits =
            || next > one && (next - one - 1) * width <= GAP_BYTES && (next - first + 1) * width <= IMAGES_BYTES_MAX;
        // What is read from end to end is read at once, however much it is.
        is_next || fits()
    };
    1 + rows.array_windows().take_while(|[(_, one), (_, next)]| is_near(*one, *next)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnId, JoinId, Type};
    use alloc::vec::Vec;

    fn near_of(positions: &[u64], width: u64) -> usize {
        let rows: Vec<((), u64)> = positions.iter().map(|position| ((), *position)).collect();
        near(&rows, width)
    }

    #[test]
    fn what_is_near_is_read_together() {
        let all: Vec<u64> = (0..100).collect();
        assert_eq!(near_of(&all, 100), 100);
        assert_eq!((near_of(&[5, 9, 20], 100), near_of(&[5, 30], 100)), (3, 1));
        assert_eq!((near_of(&[5, 7, 6], 100), near_of(&[5, 5], 100), near_of(&[], 100)), (2, 1, 1));
    }

    #[test]
    fn rows_do_not_lie_on_two_pages_where_that_costs_little() {
        let of = |width: u32| Layout::new([(ColumnId(0), Type::Char(100)), (ColumnId(1), Type::Char(width - 109))]);
        let stride = |width: u32| Grain::Cells.stride(&of(width), 1016);
        // Four, five that do not divide the page, and four that would take too much more.
        assert_eq!([219, 200, 205].map(stride), [Some(254), None, None]);
        let of = |width: u32| Layout::new([(ColumnId(0), Type::Char(width - 5))]);
        assert_eq!(Grain::Pages.stride(&of(120), 1016), None);
        assert_eq!(Grain::Cells.stride(&of(120), 100), None, "a row of several pages");
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
