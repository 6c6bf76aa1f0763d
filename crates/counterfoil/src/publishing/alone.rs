//! The right to sign for what is published from a database.

use parking_lot::MutexGuard;

use crate::database::Database;
use crate::error::Result;

/// The right to sign for what is published from a database, held until dropped. No other process writes to the database while this
/// one has it open, and nothing else in this one publishes from it. It is had before the owner's state is read: two that read the
/// same state would sign two summaries of one period, and whoever has seen the first takes the second for a forgery.
pub struct Alone<'d> {
    pub(super) database: &'d Database,
    _one: MutexGuard<'d, ()>,
}

impl<'d> Alone<'d> {
    /// Waits until nobody else has it, as long as statements wait for whoever writes.
    ///
    /// # Errors
    /// [`crate::Kind::Locked`]: another process writes; those of opening the database for writing.
    pub fn with(database: &'d Database) -> Result<Self> {
        let one = database.inner.publications.one_at_a_time();
        database.become_writer()?;
        Ok(Self { database, _one: one })
    }
}
