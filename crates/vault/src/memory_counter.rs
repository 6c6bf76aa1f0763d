//! A counter in memory, for `:memory:` databases and for tests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::counter::may_step;
use crate::{Counter, CounterError, CounterKind, CounterValue, Tag};

/// A counter that lives as long as its last clone: clones are handles of one counter, so that it can outlive a
/// database that is cut short and opened again.
#[derive(Clone, Debug, Default)]
pub struct MemoryCounter {
    present: Arc<Mutex<Option<CounterValue>>>,
}

impl MemoryCounter {
    /// A counter that is absent until it is adopted.
    pub fn new() -> MemoryCounter {
        MemoryCounter::default()
    }

    /// A counter that holds a value.
    pub fn at(value: u64, tag: Option<Tag>) -> MemoryCounter {
        let counter = MemoryCounter::new();
        counter.danger_set(Some(CounterValue { value, tag }));
        counter
    }

    /// **Danger: goes down too.** What an attacker with power over the counter would do; `None` deletes it.
    pub fn danger_set(&self, present: Option<CounterValue>) {
        *self.lock() = present;
    }

    fn lock(&self) -> MutexGuard<'_, Option<CounterValue>> {
        // Nothing in here can leave half a value behind.
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counter for MemoryCounter {
    fn kind(&self) -> CounterKind {
        CounterKind::File
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        (*self.lock()).ok_or(CounterError::Absent)
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        let mut present = self.lock();
        let held = (*present).ok_or(CounterError::Absent)?;
        if may_step(&held, to, tag)? {
            *present = Some(CounterValue { value: to, tag: Some(*tag) });
        }
        Ok(())
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        let mut present = self.lock();
        match *present {
            Some(held) if held.value > value => Err(CounterError::Lower { present: held.value, asked: value }),
            _ => {
                *present = Some(CounterValue { value, tag: Some(*tag) });
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_only_grows_and_says_why_not() {
        let mut counter = MemoryCounter::new();
        assert_eq!(counter.value(), Err(CounterError::Absent));
        assert_eq!(counter.step(1, &[1; 16]), Err(CounterError::Absent));
        counter.adopt(5, &[5; 16]).unwrap();
        counter.step(5, &[5; 16]).unwrap();
        assert_eq!(counter.step(5, &[6; 16]), Err(CounterError::OtherCommit { value: 5 }));
        assert_eq!(counter.step(4, &[4; 16]), Err(CounterError::Lower { present: 5, asked: 4 }));
        assert_eq!(counter.adopt(4, &[4; 16]), Err(CounterError::Lower { present: 5, asked: 4 }));
        assert_eq!(counter.step(9, &[9; 16]), Err(CounterError::Skipped { present: 5, asked: 9 }));
        counter.clone().step(6, &[9; 16]).unwrap();
        assert_eq!(counter.value(), Ok(CounterValue { value: 6, tag: Some([9; 16]) }));
    }
}
