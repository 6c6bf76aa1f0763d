//! Reading what can still be read of a damaged table.
use core::ops::Range;
use crate::{Error, RowBlock, RowId};

/// A salvage under way: blocks of rows that still authenticate.
pub struct Salvage<V> {
    view: V,
}

impl<V: counterfoil_log::View> Salvage<V> {
    /// The next rows that can be read; `None` at the end.
    pub fn next(&mut self, rows_max: usize) -> Result<Option<RowBlock>, Error>;

    /// Row numbers that were not readable so far, in order.
    pub fn missing(&self) -> &[Range<RowId>];

    /// What else is lost: deletions or updates that cannot be read, so that rows may appear as they once were.
    pub fn notes(&self) -> &[String];
}
