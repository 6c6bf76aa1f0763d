//! Rows that ON CONFLICT DO UPDATE has met or made: none is updated twice by one statement, whatever parts it comes in.

use std::sync::Arc;

use counterfoil_relation::RowId;
use datafusion::execution::memory_pool::MemoryPool;
use roaring::RoaringTreemap;

use crate::error::{Error, Result};
use crate::together::Together;

/// Rows of one statement.
#[derive(Default)]
pub(crate) struct Met {
    rows: RoaringTreemap,
    /// The first row that the statement has inserted: numbers ascend.
    inserted: Option<u64>,
    /// Bytes of their numbers.
    bytes: usize,
    held: Option<Together>,
}

impl Met {
    /// Notes that rows were inserted, the first of them this one.
    pub(crate) fn note_inserted(&mut self, first: RowId) {
        self.inserted.get_or_insert(first.0);
    }

    /// Takes rows that were met.
    ///
    /// # Errors
    /// [`Error::Twice`] for one that this statement has met or inserted before, [`Error::Memory`].
    pub(crate) fn take(&mut self, rows: &[i128], pool: &Arc<dyn MemoryPool>) -> Result<()> {
        for row in rows {
            let row = u64::try_from(*row).map_err(|_| Error::Bug("a row number out of bounds".into()))?;
            if self.inserted.is_some_and(|first| row >= first) || !self.rows.insert(row) {
                return Err(twice());
            }
        }
        let bytes = self.rows.serialized_size();
        let more = bytes.saturating_sub(self.bytes);
        self.bytes = bytes;
        self.held.get_or_insert_with(|| Together::new(pool, 1, true)).take(more, 0)?;
        Ok(())
    }
}

/// What is said of two new rows with one key.
pub(crate) fn twice() -> Error {
    Error::Twice("two of the new rows have the same key: ON CONFLICT DO UPDATE would update one row twice".into())
}
