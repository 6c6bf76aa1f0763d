//! What the counters of computers have in common, beyond being counters.

use std::path::PathBuf;
use std::time::Duration;

use crate::counter::{Counter, CounterError};
use crate::{CounterRecord, FileCounter};

/// A counter of a computer: it keeps the number of rollbacks too, is held by one writer, and can be forgotten.
pub trait HostCounter: Counter {
    /// All that the counter holds.
    ///
    /// # Errors
    /// As [`Counter::value`].
    fn record(&mut self) -> Result<CounterRecord, CounterError>;

    /// Takes the counter for this handle alone until it is dropped, waiting up to `patience`.
    ///
    /// # Errors
    /// [`CounterError::Held`], [`CounterError::Device`].
    fn hold(&mut self, patience: Duration) -> Result<(), CounterError>;

    /// How many older images were gone on from, as the counter holds it from its next step or adoption on.
    fn set_rollbacks(&mut self, rollbacks: u32);

    /// Deletes the counter. What it vouched for can then be put back unnoticed.
    ///
    /// # Errors
    /// [`CounterError::Absent`], [`CounterError::Held`], [`CounterError::Device`].
    fn forget(&mut self) -> Result<(), CounterError>;

    /// Where it is.
    fn place(&self) -> PathBuf;

    /// The counter as one in a file, where it is one: only those are handed on to another key.
    fn into_file(self: std::boxed::Box<Self>) -> Option<FileCounter> {
        None
    }
}
