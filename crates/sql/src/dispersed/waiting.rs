//! Who waits for an answer of clouds: a scan, with the memory of its statement, or a statement that changes something.

use counterfoil_disperse::{Failure, Watch};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::published::Asking;

/// What may call it off.
enum By<'a> {
    Scan(&'a Asking),
    Statement(&'a Interrupt),
}

/// Whoever waits, and why no longer.
pub(super) struct Waiting<'a> {
    by: By<'a>,
    error: Mutex<Option<Error>>,
}

impl<'a> Waiting<'a> {
    /// A scan: it takes memory, and ends with its statement.
    pub fn scan(asking: &'a Asking) -> Self {
        Self { by: By::Scan(asking), error: Mutex::default() }
    }

    /// A statement that holds what it reads for a moment.
    pub fn statement(interrupt: &'a Interrupt) -> Self {
        Self { by: By::Statement(interrupt), error: Mutex::default() }
    }

    fn check(&self, bytes: usize) -> Result<()> {
        match &self.by {
            By::Scan(asking) if asking.wanted().strong_count() == 0 => Err(Error::Interrupted),
            By::Scan(asking) => asking.take(bytes),
            By::Statement(interrupt) => interrupt.check(),
        }
    }

    /// Why nobody waits any more.
    pub fn called_off(&self) -> Error {
        self.error.lock().take().unwrap_or(Error::Interrupted)
    }
}

impl Watch for Waiting<'_> {
    fn part(&self, bytes: usize) -> Result<(), Failure> {
        self.check(bytes).map_err(|error| {
            *self.error.lock() = Some(error);
            Failure::CalledOff
        })
    }
}
