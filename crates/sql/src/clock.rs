//! What time it is: asked in one place, so that a test can say.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What tells an engine the time of day: for `now()`, and for samples that are ahead of it.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// A clock that is read by calling this.
    pub fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Clock(Arc::new(read))
    }

    /// What it says.
    pub(crate) fn now(&self) -> SystemTime {
        (self.0)()
    }

    /// What it says in microseconds since 1970.
    pub(crate) fn microseconds(&self) -> i64 {
        let whole = |span: std::time::Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        match self.now().duration_since(UNIX_EPOCH) {
            Ok(since) => whole(since),
            Err(before) => -whole(before.duration()),
        }
    }
}

impl Default for Clock {
    /// The machine's.
    fn default() -> Self {
        Clock::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
