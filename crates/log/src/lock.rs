//! One lock for both worlds: a reader-writer lock where there is an operating system, a plain cell where there is one
//! user of everything.

#[cfg(feature = "std")]
extern crate std;

/// Many readers or one writer.
#[derive(Debug, Default)]
pub struct Lock<T> {
    #[cfg(feature = "std")]
    inner: std::sync::RwLock<T>,
    #[cfg(not(feature = "std"))]
    inner: core::cell::RefCell<T>,
}

impl<T> Lock<T> {
    /// A lock before a value.
    pub fn new(value: T) -> Self {
        Lock { inner: value.into() }
    }

    /// Reads. A panic elsewhere while the lock was held is no reason to stop: what is behind it is rebuilt from the
    /// containers whenever it does not fit them.
    #[cfg(feature = "std")]
    pub fn read<R>(&self, use_it: impl FnOnce(&T) -> R) -> R {
        use_it(&self.inner.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Changes.
    #[cfg(feature = "std")]
    pub fn write<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        use_it(&mut self.inner.write().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Reads.
    #[cfg(not(feature = "std"))]
    pub fn read<R>(&self, use_it: impl FnOnce(&T) -> R) -> R {
        use_it(&self.inner.borrow())
    }

    /// Changes.
    #[cfg(not(feature = "std"))]
    pub fn write<R>(&self, use_it: impl FnOnce(&mut T) -> R) -> R {
        use_it(&mut self.inner.borrow_mut())
    }
}
