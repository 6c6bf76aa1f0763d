//! One SQL statement that changes rows: what must wait for its end, and who is told of what it drags along.

use alloc::vec::Vec;

use crate::rejoin::Rejoin;
use crate::{Error, ForeignKeyId, RowBatch, RowId, Table, TableId};

/// Told of rows about to change by ON DELETE / ON UPDATE actions: their new images. It is where CHECK constraints of
/// the other tables are evaluated; an error ends the statement.
pub type Observer<'a> = dyn FnMut(&Table, &RowBatch) -> Result<(), Error> + 'a;

/// A statement under way.
#[derive(Default)]
pub struct Statement<'a> {
    pub(crate) observer: Option<&'a mut Observer<'a>>,
    /// Keys to which rows of a table refer in their own table, and which are not there yet.
    pub(crate) waiting: Vec<Waiting>,
    /// Rows whose joins have to be found anew.
    pub(crate) rejoin: Rejoin,
}

/// A reference of a table to itself that must hold at the end of the statement.
pub(crate) struct Waiting {
    pub(crate) table: TableId,
    pub(crate) foreign_key: ForeignKeyId,
    pub(crate) key: Vec<u8>,
    /// The row that references it.
    pub(crate) row: RowId,
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
        Statement { observer: Some(observer), ..Self::default() }
    }
}
