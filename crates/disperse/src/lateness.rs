//! Whether a cloud was waited for in vain a moment ago: then others are asked first.
//!
//! A query that is read in turns asks clouds anew for each of them, and a statement asks several questions: without this one that hangs
//! would cost each of them what it takes to notice.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So long after somebody waited in vain the others are asked first. What a cloud was slow at may be over; asking it too early costs a
/// moment, asking it too late costs nothing but a longer way.
const REMEMBERED: Duration = Duration::from_secs(30);

/// When a cloud was last waited for in vain.
#[derive(Default)]
pub struct Lateness {
    noted: Mutex<Option<Instant>>,
}

impl Lateness {
    /// It is waited for in vain now.
    pub fn note(&self) {
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// It has answered.
    pub fn forget(&self) {
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether that was a moment ago.
    pub fn is_late(&self) -> bool {
        self.is_late_at(Instant::now())
    }

    fn is_late_at(&self, now: Instant) -> bool {
        let noted = *self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.is_some_and(|noted| now.saturating_duration_since(noted) < REMEMBERED)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Lateness, REMEMBERED};

    #[test]
    fn it_is_forgotten_after_a_while() {
        let lateness = Lateness::default();
        assert!(!lateness.is_late());
        lateness.note();
        assert!(lateness.is_late());
        lateness.forget();
        assert!(!lateness.is_late());
        lateness.note();
        let now = Instant::now();
        assert!(lateness.is_late());
        assert!(lateness.is_late_at(now + REMEMBERED - Duration::from_secs(1)));
        assert!(!lateness.is_late_at(now + REMEMBERED));
    }
}
