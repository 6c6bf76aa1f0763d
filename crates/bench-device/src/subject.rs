//! A store under test, as the benchmark sees it.

use crate::work::Work;

/// Bytes of a counter of the benchmark: 20 of static descriptor, 4 of value.
pub const COUNTER_BYTES: usize = 24;

/// A counter of the benchmark.
pub type Counter = [u8; COUNTER_BYTES];

/// Why a store does not do what it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no room.
    Full,
    /// Anything else: the message of its error.
    Other(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Full => f.write_str("full"),
            Refusal::Other(message) => f.write_str(message),
        }
    }
}

/// A store that holds counters.
pub trait Subject {
    /// The counter of an id.
    fn read(&mut self, id: u32) -> Result<Counter, Refusal>;

    /// Writes all counters, atomically and durably. No id stands there twice.
    fn commit(&mut self, changes: &[(u32, Counter)]) -> Result<(), Refusal>;

    /// What was done so far.
    fn work(&self) -> Work;
}
