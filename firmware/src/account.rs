//! What the calls of one kind cost.

use core::fmt;

/// Calls of one kind: time on the counted clock, and stack.
pub struct Account {
    name: &'static str,
    calls: u64,
    nanoseconds: u64,
    nanoseconds_max: u64,
    stack_max: usize,
}

impl Account {
    /// Nothing yet.
    pub fn new(name: &'static str) -> Self {
        Account { name, calls: 0, nanoseconds: 0, nanoseconds_max: 0, stack_max: 0 }
    }

    /// Adds one call.
    pub fn add(&mut self, nanoseconds: u64, stack: usize) {
        self.calls += 1;
        self.nanoseconds += nanoseconds;
        self.nanoseconds_max = self.nanoseconds_max.max(nanoseconds);
        self.stack_max = self.stack_max.max(stack);
    }

    /// Nanoseconds of a call, on average.
    pub fn mean(&self) -> u64 {
        self.nanoseconds / self.calls.max(1)
    }

    /// The most bytes of stack that a call took.
    pub fn stack_max(&self) -> usize {
        self.stack_max
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = |nanoseconds: u64| (nanoseconds / 1_000_000, nanoseconds / 100_000 % 10);
        let ((mean, mean_tenth), (most, most_tenth)) = (tenths(self.mean()), tenths(self.nanoseconds_max));
        write!(
            f,
            "{:<12}{:>6} calls  mean {mean:>4}.{mean_tenth} ms  most {most:>4}.{most_tenth} ms",
            self.name, self.calls
        )?;
        if self.stack_max > 0 { write!(f, "  stack {:>5} bytes", self.stack_max) } else { Ok(()) }
    }
}
