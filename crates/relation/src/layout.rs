//! Layouts: where each column lies in a row image.
//!
//! ```text
//!  0               ceil(n/8)
//!  | NULL bitmap   | column 0 | column 1 | ... | column n-1 | join 0 | ... | join m-1 |
//!  bit i of the bitmap: column i is NULL, and then all its bytes are zero
//!  a join: 6 bytes, the number of the row at the end of the path, plus 1; 0: there is none
//!
//!  a text or bytes:   | length u32 | up to 12 bytes, zero padded |          length <= 12
//!                     | length u32 | first 4 bytes | offset u64   |          length > 12: all of it in the heap
//!  CHAR(n), n to 127: | length u32 | up to n bytes, zero padded  |          length <= n, and as above where it is more:
//!                     | length u32 | first 4 bytes | offset u64 | 0 |      of n characters some have several bytes
//! ```
//!
//! Invariants: columns and joins follow one another without a gap, in the order of the layout; a layout never changes.

use alloc::vec::Vec;

use crate::{ColumnId, JoinId, Type};

/// Bytes of a text of any length that fit in the image itself.
pub const INLINE_BYTES: usize = 12;
/// The longest CHAR(n) that has its width in the image.
pub const WIDE_CHARACTERS_MAX: u32 = 127;
/// Bytes of a text's length.
pub(crate) const LENGTH_BYTES: usize = 4;
/// Bytes of a join.
pub(crate) const JOIN_BYTES: usize = 6;

/// One column of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutColumn {
    /// Which column.
    pub id: ColumnId,
    /// Its type.
    pub kind: Type,
    /// Where its bytes begin in a row image.
    pub offset: usize,
}

/// How the columns of a row lie in its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    columns: Vec<LayoutColumn>,
    joins: Vec<JoinId>,
    null_bytes: usize,
    width: usize,
}

impl Layout {
    /// Lays columns out in the order given.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = (ColumnId, Type)>) -> Self {
        Layout::with_joins(columns, Vec::new())
    }

    /// Lays columns out in the order given, and joins behind them.
    pub(crate) fn with_joins(columns: impl IntoIterator<Item = (ColumnId, Type)>, joins: Vec<JoinId>) -> Self {
        let columns: Vec<_> = columns.into_iter().collect();
        let null_bytes = columns.len().div_ceil(8);
        let mut width = null_bytes;
        let place = |(id, kind): (ColumnId, Type)| {
            let offset = width;
            width += kind.bytes();
            LayoutColumn { id, kind, offset }
        };
        let columns = columns.into_iter().map(place).collect();
        // A table without columns still has rows.
        let width = width.max(1) + joins.len() * JOIN_BYTES;
        Layout { columns, joins, null_bytes, width }
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> &[LayoutColumn] {
        &self.columns
    }

    /// The joins behind the columns, in order.
    pub(crate) fn joins(&self) -> &[JoinId] {
        &self.joins
    }

    /// Where the bytes of a join begin in a row image.
    pub(crate) fn join_offset(&self, place: usize) -> usize {
        assert!(place < self.joins.len(), "no such join");
        self.width - (self.joins.len() - place) * JOIN_BYTES
    }

    /// Bytes of the NULL bitmap.
    #[must_use]
    pub fn null_bytes(&self) -> usize {
        self.null_bytes
    }

    /// Bytes of a row image.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Where in this layout column `id` is.
    #[must_use]
    pub fn position(&self, id: ColumnId) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }
}
