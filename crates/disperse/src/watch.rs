//! Whoever waits for an answer: what it may take, and whether it is still wanted.

use crate::provider::Failure;

/// Asked with each part of an answer, before it is kept.
pub trait Watch: Sync {
    /// So many bytes more are to be kept.
    ///
    /// # Errors
    /// [`Failure::CalledOff`]: nobody waits any more, or there is no room.
    fn part(&self, bytes: usize) -> Result<(), Failure>;
}

/// Waits for as long as it takes, with all the memory there is: for tests and tools.
pub struct Patient;

impl Watch for Patient {
    fn part(&self, _bytes: usize) -> Result<(), Failure> {
        Ok(())
    }
}
