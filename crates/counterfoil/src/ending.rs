//! When serving ends: somebody says so, or the database cannot go on.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

/// The end of serving. All who serve one database share it, so that what ends one of them ends all.
#[derive(Clone, Default)]
pub struct Ending(Arc<Shared>);

#[derive(Default)]
struct Shared {
    over: Mutex<Option<Result<()>>>,
    changed: Condvar,
}

impl fmt::Debug for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the end of serving")
    }
}

impl Ending {
    /// Says that it is over.
    pub fn stop(&self) {
        self.end(Ok(()));
    }

    /// The database cannot go on: the first reason counts.
    pub fn failed(&self, error: Error) {
        self.end(Err(error));
    }

    fn end(&self, how: Result<()>) {
        self.0.over.lock().get_or_insert(how);
        self.0.changed.notify_all();
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.over.lock().is_some()
    }

    /// Waits until somebody stops it, or until the database cannot go on.
    ///
    /// # Errors
    /// Why the database cannot go on: its device failed, or what lies on it cannot be trusted.
    pub fn wait(&self) -> Result<()> {
        let mut over = self.0.over.lock();
        loop {
            match &*over {
                Some(how) => return how.clone(),
                None => self.0.changed.wait(&mut over),
            }
        }
    }
}
