//! A medium that counts what is written to it, and remembers where if asked; and a clock that goes on when it is told to.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use counterfoil_flash::{BlockNumber, Device, Error, Geometry, PageNumber, Read};

/// What was written so far.
#[derive(Default)]
pub struct Counts {
    bytes: AtomicU64,
    flushes: AtomicU64,
    milliseconds: AtomicU64,
    /// The first page of each write, while that is wanted.
    trace: Mutex<Option<Vec<u64>>>,
}

impl Counts {
    /// Bytes programmed.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Flushes.
    pub fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    /// How late it is, in milliseconds, as far as it was told.
    pub fn milliseconds(&self) -> u64 {
        self.milliseconds.load(Ordering::Relaxed)
    }

    /// So many milliseconds pass.
    pub fn pass(&self, milliseconds: u64) {
        self.milliseconds.fetch_add(milliseconds, Ordering::Relaxed);
    }

    /// Remembers from now on which pages are written.
    pub fn follow(&self) {
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
    }

    /// The pages that were written since.
    pub fn followed(&self) -> Vec<u64> {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    fn add(&self, page: PageNumber, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(pages) = &mut *self.trace.lock().unwrap_or_else(PoisonError::into_inner) {
            pages.push(page.0);
        }
    }
}

/// A medium with counts.
pub struct Counted<D> {
    pub below: D,
    pub counts: Arc<Counts>,
}

impl<D: Device> Read for Counted<D> {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.below.read(page, offset, buffer)
    }
}

impl<D: Device> Device for Counted<D> {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        self.counts.add(page, data.len() as u64);
        self.below.program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        self.below.erase(block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.counts.flushes.fetch_add(1, Ordering::Relaxed);
        self.below.flush()
    }

    fn reserve(&mut self, page: PageNumber, pages: u64) -> Result<(), Error> {
        self.below.reserve(page, pages)
    }
}
