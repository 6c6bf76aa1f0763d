//! Counts the last commits of a writer that has gone quiet.
//!
//! Commits take a step of the counter together, those of a second. The next commit after that second closes the group;
//! where none comes, this thread does. It sleeps while there is nothing to count.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use counterfoil_sql::{Chore, WriterSlot};
use parking_lot::{Condvar, Mutex};

/// The thread, while a writer is open.
pub(crate) struct IdleCounter {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Wanted {
    #[default]
    Nothing,
    /// There is a commit that may not be counted yet.
    Counting,
    End,
}

impl IdleCounter {
    /// Counts what the writer of `slot` leaves uncounted for `patience`. Where no thread can be had, the next commit and
    /// closing count all the same.
    pub(crate) fn start(slot: Arc<WriterSlot>, patience: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("counterfoil-counter".into());
        let thread = thread.spawn(move || theirs.run(&slot, patience)).ok();
        Self { shared, thread }
    }

    /// A commit was made.
    pub(crate) fn committed(&self) {
        self.shared.want_counting();
    }

    /// Ends the thread; afterwards it does not hold the writer.
    pub(crate) fn stop(mut self) {
        *self.shared.wanted.lock() = Wanted::End;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been told of where it happened.
            thread.join().unwrap_or_default();
        }
    }
}

impl Shared {
    fn run(&self, slot: &Arc<WriterSlot>, patience: Duration) {
        let mut wait = patience;
        while self.wait_for_commit() && self.wait_out(wait) {
            wait = patience;
            match slot.lease_for_chore() {
                Chore::Lease(mut writer) => {
                    // What the counter answers is kept by the writer, for whoever uses it next.
                    let counted = writer.close_group_if_due();
                    if let (Ok(()), Some(milliseconds)) = (counted, writer.group_closes_in()) {
                        wait = Duration::from_millis(milliseconds);
                        self.want_counting();
                    }
                }
                // A transaction is open: it closes the group when it writes, or we do when it has ended.
                Chore::Busy => self.want_counting(),
                Chore::NoWriter => {}
            }
        }
    }

    fn want_counting(&self) {
        let mut wanted = self.wanted.lock();
        if *wanted == Wanted::Nothing {
            *wanted = Wanted::Counting;
            self.changed.notify_one();
        }
    }

    /// False at the end.
    fn wait_for_commit(&self) -> bool {
        let mut wanted = self.wanted.lock();
        self.changed.wait_while(&mut wanted, |wanted| *wanted == Wanted::Nothing);
        *wanted == Wanted::Counting
    }

    /// Lets the time pass in which other commits join the group; from then on those that come are asked about anew.
    fn wait_out(&self, patience: Duration) -> bool {
        let mut wanted = self.wanted.lock();
        self.changed.wait_while_for(&mut wanted, |wanted| *wanted != Wanted::End, patience);
        let goes_on = *wanted == Wanted::Counting;
        if goes_on {
            *wanted = Wanted::Nothing;
        }
        goes_on
    }
}
