//! When serving ends: somebody says so, or the database cannot go on.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};

#[derive(Default)]
pub(super) struct Ending {
    over: Mutex<Option<Result<()>>>,
    changed: Condvar,
}

impl Ending {
    /// The database cannot go on: the first reason counts.
    pub(super) fn failed(&self, error: Error) {
        self.end(Err(error));
    }

    fn end(&self, how: Result<()>) {
        self.over.lock().get_or_insert(how);
        self.changed.notify_all();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.lock().is_some()
    }

    /// Waits for it.
    pub(super) fn wait(&self) -> Result<()> {
        let mut over = self.over.lock();
        loop {
            match &*over {
                Some(how) => return how.clone(),
                None => self.changed.wait(&mut over),
            }
        }
    }
}

/// Ends the wait of [`InfluxListener::wait`](super::InfluxListener::wait) from another thread.
#[derive(Clone)]
pub struct Stopper(pub(super) Arc<Ending>);

impl Stopper {
    /// Says that it is over.
    pub fn stop(&self) {
        self.0.end(Ok(()));
    }
}
