//! The memory of rows that a statement changes together, since what becomes of one hangs on the others.
//!
//! They are counted as they come, before anything is changed. Where there is not enough for them the rest is counted, too, and the
//! statement ends with how much it needs.

use std::sync::Arc;

use counterfoil_relation as relation;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use crate::error::{Error, Result};

/// What each row takes until the statement is done, by measurement (DESIGN, "Limits, known"): its new image, twice, its old and its
/// new keys, and what it joins.
pub(crate) const UPDATED_ROW_BYTES: usize = 400;
/// The same of a row that goes, of a table that others reference.
pub(crate) const DELETED_ROW_BYTES: usize = 100;

/// Rows that are changed together.
pub(crate) struct Together {
    pool: Arc<dyn MemoryPool>,
    held: MemoryReservation,
    row_bytes: usize,
    rows: usize,
    is_enough: bool,
}

impl Together {
    /// None yet; each will take so many bytes of what all queries have.
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>, row_bytes: usize) -> Self {
        let held = MemoryConsumer::new("changed together").register(pool);
        Together { pool: pool.clone(), held, row_bytes, rows: 0, is_enough: true }
    }

    /// Counts rows that come: whether there is memory for all so far. Where there is none, nobody is to keep them.
    pub(crate) fn take(&mut self, rows: usize) -> bool {
        self.rows = self.rows.saturating_add(rows);
        self.is_enough = self.is_enough && self.held.try_grow(rows.saturating_mul(self.row_bytes)).is_ok();
        if !self.is_enough {
            self.held.free();
        }
        self.is_enough
    }

    /// All have come.
    ///
    /// # Errors
    /// [`Error::Memory`] if there was not enough for them, with how much is.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_enough {
            return Ok(());
        }
        let needed = self.pool.reserved().saturating_add(self.rows.saturating_mul(self.row_bytes));
        Err(Error::of_tables(relation::Error::memory(Some(needed))))
    }
}
