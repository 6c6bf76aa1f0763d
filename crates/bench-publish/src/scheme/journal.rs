//! Where a server makes updates durable before anybody sees them, as long as it is told to: a file that grows.

use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::embedded::unnamed_file;
use crate::Failure;

/// Those who wait at the same time share one flush.
pub struct Journal {
    file: File,
    is_on: AtomicBool,
    /// Updates written.
    written: Mutex<u64>,
    /// Updates that are durable; whoever holds it flushes.
    flushed: Mutex<u64>,
}

impl Journal {
    /// Switched off.
    pub fn new() -> Result<Self, Failure> {
        let file = unnamed_file()?;
        Ok(Self { file, is_on: AtomicBool::new(false), written: Mutex::default(), flushed: Mutex::default() })
    }

    pub fn switch(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Writes the parts of an update; all are durable when this returns.
    pub fn append<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Failure> {
        if !self.is_on.load(Ordering::Relaxed) {
            return Ok(());
        }
        let parts: Vec<&[u8]> = parts.into_iter().collect();
        let mine = {
            let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
            (&self.file).write_all(&parts.concat())?;
            *written += 1;
            *written
        };
        let mut flushed = self.flushed.lock().unwrap_or_else(PoisonError::into_inner);
        if *flushed < mine {
            let all = *self.written.lock().unwrap_or_else(PoisonError::into_inner);
            self.file.sync_data()?;
            *flushed = all;
        }
        Ok(())
    }
}
