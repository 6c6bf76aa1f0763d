//! The thread that publishes again when it is time, while the database is open.

use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::publisher::Publications;

/// The thread, once there is something to publish.
#[derive(Default)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_woken: bool,
    is_ended: bool,
}

impl Worker {
    /// Starts it, unless it runs. Where no thread can be had, PUBLISH publishes once and says nothing more.
    pub fn start(&self, publications: &Arc<Publications>) {
        let mut thread = self.thread.lock();
        if thread.is_some() || self.is_ended() {
            return;
        }
        let (shared, publications) = (self.shared.clone(), Arc::downgrade(publications));
        let named = thread::Builder::new().name("counterfoil-publisher".into());
        *thread = named.spawn(move || shared.run(&publications)).ok();
    }

    /// There may be something to do.
    pub fn wake(&self) {
        self.shared.state.lock().is_woken = true;
        self.shared.changed.notify_one();
    }

    pub fn is_ended(&self) -> bool {
        self.shared.state.lock().is_ended
    }

    /// Ends it. The thread may be the one that drops the database: it does not wait for itself.
    pub fn stop(&self) {
        self.shared.state.lock().is_ended = true;
        self.shared.changed.notify_one();
        let Some(thread) = self.thread.lock().take() else { return };
        if thread.thread().id() != current() {
            // A panic of that thread has been told of where it happened.
            thread.join().unwrap_or_default();
        }
    }
}

fn current() -> ThreadId {
    thread::current().id()
}

impl Shared {
    fn run(&self, publications: &Weak<Publications>) {
        let mut wait = Duration::from_secs(1);
        while self.wait(wait) {
            let Some(publications) = publications.upgrade() else { return };
            wait = publications.work();
        }
    }

    /// Lets the time pass, or until somebody wakes it. False at the end.
    fn wait(&self, wait: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.is_woken && !state.is_ended, wait);
        state.is_woken = false;
        !state.is_ended
    }
}
