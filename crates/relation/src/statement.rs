//! One SQL statement that changes rows: what must wait for its end, and who is told of what it drags along.

use alloc::vec::Vec;

use crate::{Error, RowBatch, Table, TableId};

/// Told of rows about to change by ON DELETE / ON UPDATE actions: their new images. It is where CHECK constraints of
/// the other tables are evaluated; an error ends the statement.
pub type Observer<'a> = dyn FnMut(&Table, &RowBatch) -> Result<(), Error> + 'a;

/// A statement under way.
#[derive(Default)]
pub struct Statement<'a> {
    pub(crate) observer: Option<&'a mut Observer<'a>>,
    /// Rows that reference a row of their own table which is not there yet: table, foreign key by place, key.
    pub(crate) waiting: Vec<(TableId, usize, Vec<u8>)>,
}

impl<'a> Statement<'a> {
    /// A statement that nobody observes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A statement whose cascading changes are shown to `observer` first.
    #[must_use]
    pub fn observed(observer: &'a mut Observer<'a>) -> Self {
        Statement { observer: Some(observer), waiting: Vec::new() }
    }
}
