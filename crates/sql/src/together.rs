//! The memory of rows that a statement changes together, since what becomes of one hangs on the others.
//!
//! They are counted as they come, before anything is changed. Where there is not enough for them the rest is counted, too, as far as
//! that can be done, and the statement ends with how much it needs.

use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

use crate::error::{Error, Result};
use crate::memory::RECKONED_BYTES_MAX;

/// What each row takes until the statement is done, beside its new image, by measurement (DESIGN, "Limits, known"): its old and its
/// new keys, and what it joins.
pub(crate) const UPDATED_ROW_BYTES: usize = 360;
/// How often its new image is there.
const IMAGES: usize = 2;
/// The same of a row that goes, of a table that others reference.
pub(crate) const DELETED_ROW_BYTES: usize = 160;

/// Rows that are changed together.
pub(crate) struct Together {
    pool: Arc<dyn MemoryPool>,
    held: MemoryReservation,
    row_bytes: usize,
    /// Whether rows may come more than once: those behind where memory ends cannot be told from those before.
    repeats: bool,
    /// Bytes that they take, so far.
    bytes: usize,
    is_enough: bool,
}

impl Together {
    /// None yet; each will take so many bytes of what all queries have, or none are counted.
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>, row_bytes: usize, repeats: bool) -> Self {
        let held = MemoryConsumer::new("changed together").register(pool);
        Together { pool: pool.clone(), held, row_bytes, repeats, bytes: 0, is_enough: true }
    }

    /// Counts rows that come for the first time, with so many bytes of new images: whether there is memory for all so far. Where there is none, nobody is to keep them.
    ///
    /// # Errors
    /// As [`Together::check`], where the rest cannot be counted, or need not: a query may answer rows without end.
    pub(crate) fn take(&mut self, rows: usize, image_bytes: usize) -> Result<bool> {
        if self.row_bytes == 0 {
            return Ok(true);
        }
        let bytes = rows.saturating_mul(self.row_bytes).saturating_add(image_bytes.saturating_mul(IMAGES));
        self.bytes = self.bytes.saturating_add(bytes);
        self.is_enough = self.is_enough && self.held.try_grow(bytes).is_ok();
        if !self.is_enough {
            self.held.free();
            if self.repeats || self.bytes >= RECKONED_BYTES_MAX {
                self.check()?;
            }
        }
        Ok(self.is_enough)
    }

    /// All have come.
    ///
    /// # Errors
    /// [`Error::Memory`] if there was not enough for them, with how much is.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_enough {
            return Ok(());
        }
        let needed = self.pool.reserved().saturating_add(self.bytes);
        Err(Error::of_memory(needed, needed))
    }
}
