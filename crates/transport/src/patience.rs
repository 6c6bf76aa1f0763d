//! How long servers are waited for in all.
//!
//! Each file has a limit of its own, and there may be very many of them: a server that sends a byte now and then, within that limit,
//! could keep a reader for days. So a question has one limit more, over all that is fetched for it. What is counted is time spent
//! waiting for servers; what a reader does with their bytes takes as long as it takes.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time that servers may take of a question, all of them together.
#[derive(Debug)]
pub struct Patience {
    total: Duration,
    /// Milliseconds.
    spent: AtomicU64,
}

/// All of it is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent(Duration);

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "servers have taken more than {} s in all", self.0.as_secs_f64())
    }
}

impl Patience {
    /// So much in all.
    #[must_use]
    pub fn of(total: Duration) -> Self {
        Self { total, spent: AtomicU64::new(0) }
    }

    /// What is left of it.
    ///
    /// # Errors
    /// [`Spent`]: nothing.
    pub fn left(&self) -> Result<Duration, Spent> {
        let spent = Duration::from_millis(self.spent.load(Ordering::Relaxed));
        self.total.checked_sub(spent).filter(|left| !left.is_zero()).ok_or(Spent(self.total))
    }

    /// Waits for somebody, who is told how long at most. A wait costs a millisecond at least, so that no number of them is free.
    pub(crate) fn spend<T>(&self, wait: impl FnOnce(Duration) -> T) -> Result<T, Spent> {
        let left = self.left()?;
        let begun = Instant::now();
        let found = wait(left);
        let spent = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.spent.fetch_add(spent.saturating_add(1), Ordering::Relaxed);
        Ok(found)
    }
}
