//! A counter whose power fails with that of the part: before a step, or behind it.

use counterfoil_vault::{Counter, CounterError, CounterKind, CounterValue, MemoryCounter, Tag};

/// Fails at a step.
#[derive(Clone)]
pub struct CutCounter {
    pub inner: MemoryCounter,
    /// How many steps are taken before the one that fails, and whether that one is taken all the same.
    pub cut: Option<(u32, bool)>,
}

const CUT: CounterError = CounterError::Device { operation: "stepped", code: 5 };

impl CutCounter {
    pub fn at(value: u64) -> Self {
        Self { inner: MemoryCounter::at(value, None), cut: None }
    }

    /// A counter of its own that stands where this one stands.
    pub fn copied(&self) -> Self {
        let value = self.inner.clone().value().expect("stands");
        Self { inner: MemoryCounter::at(value.value, value.tag), cut: None }
    }
}

impl Counter for CutCounter {
    fn kind(&self) -> CounterKind {
        self.inner.kind()
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.inner.value()
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        match &mut self.cut {
            Some((0, is_taken)) => {
                if *is_taken {
                    self.inner.step(to, tag)?;
                }
                return Err(CUT);
            }
            Some((left, _)) => *left -= 1,
            None => {}
        }
        self.inner.step(to, tag)
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        self.inner.adopt(value, tag)
    }
}
