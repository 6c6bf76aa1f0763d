//! Reading a table from end to end.
use crate::{Error, RowBlock};

/// A scan under way. It owns its view, so it may move to a thread of its own.
pub struct Scan<V> {
    view: V,
}

impl<V: counterfoil_log::View + Clone> Scan<V> {
    /// Which columns' long values are wanted, by their places in the table; otherwise all. Asking for the long value of
    /// another column is an error.
    #[must_use]
    pub fn with_columns(self, columns: &[usize]) -> Self;

    /// Cuts what is left into at most `parts` scans of about the same size, in order.
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Scan<V>>;

    /// Rows not yet read, visible or not.
    #[must_use]
    pub fn rows_left(&self) -> u64;

    /// The next rows, at most `rows_max` (fewer if their long values are many); `None` at the end.
    /// Blocks without a visible row are passed over.
    pub fn next(&mut self, rows_max: usize) -> Result<Option<RowBlock>, Error>;
}
