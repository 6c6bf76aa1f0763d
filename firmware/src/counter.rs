//! A one-way counter.

use counterfoil_vault::{Counter, CounterError, CounterKind, CounterValue, Tag};

/// A counter in RAM. On a device it is cells of flash, a fuse bank or a secure element: something that keeps its number
/// without power, and that whoever holds the flash cannot turn back.
#[derive(Default)]
pub struct RamCounter(u64);

impl Counter for RamCounter {
    fn kind(&self) -> CounterKind {
        CounterKind::Nor
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        Ok(CounterValue { value: self.0, tag: None })
    }

    fn step(&mut self, to: u64, _: &Tag) -> Result<(), CounterError> {
        match to.checked_sub(self.0) {
            Some(0 | 1) => self.0 = to,
            Some(_) => return Err(CounterError::Skipped { present: self.0, asked: to }),
            None => return Err(CounterError::Lower { present: self.0, asked: to }),
        }
        Ok(())
    }

    fn adopt(&mut self, _: u64, _: &Tag) -> Result<(), CounterError> {
        Err(CounterError::Device { operation: "bound anew", code: 0 })
    }
}

/// The same, of a chip that keeps it while its power is off: there is one, and every opening finds it as the last one left it.
#[cfg(feature = "relation")]
pub struct ChipCounter;

#[cfg(feature = "relation")]
static KEPT: cortex_m::interrupt::Mutex<core::cell::RefCell<RamCounter>> =
    cortex_m::interrupt::Mutex::new(core::cell::RefCell::new(RamCounter(0)));

#[cfg(feature = "relation")]
impl ChipCounter {
    fn with<T>(work: impl FnOnce(&mut RamCounter) -> T) -> T {
        cortex_m::interrupt::free(|section| work(&mut KEPT.borrow(section).borrow_mut()))
    }
}

#[cfg(feature = "relation")]
impl Counter for ChipCounter {
    fn kind(&self) -> CounterKind {
        CounterKind::Nor
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        ChipCounter::with(RamCounter::value)
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        ChipCounter::with(|counter| counter.step(to, tag))
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        ChipCounter::with(|counter| counter.adopt(value, tag))
    }
}
