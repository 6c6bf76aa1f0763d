//! Work for when a writer has gone quiet, each kind of it on a thread of its own that sleeps while there is nothing to do.
//!
//! ```text
//! commit --> wanted --> so long a wait --> the writer, if nobody has it --> work --> wanted again, if there is more
//!   ^__________________________________ the writer is given back after each piece ___________________|
//! ```

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use counterfoil_sql::{Chore, Lease, WriterSlot};
use parking_lot::{Condvar, Mutex};

/// Such a thread, while a writer is open.
pub(crate) struct Idle {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// From when on a wait counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// From the first commit on: those that follow join it.
    FirstCommit,
    /// From the last one on: while commits come there is no work.
    LastCommit,
}

/// What is done, with the writer; how long to wait for the next piece of it, if there is one.
pub(crate) type Work = Arc<dyn Fn(&mut Lease) -> Option<Duration> + Send + Sync>;

#[derive(Default)]
struct Shared {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Wanted {
    /// There was a commit, or there is more to do.
    is_due: bool,
    /// Commits so far.
    commits: u64,
    is_ended: bool,
}

impl Idle {
    /// Works when the writer of `slot` has been left alone for `patience`. Where no thread can be had, nothing is done: the next commit
    /// and closing do what must be done.
    pub(crate) fn start(name: &str, slot: Arc<WriterSlot>, (since, patience): (Since, Duration), work: Work) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name(format!("counterfoil-{name}"));
        let thread = thread.spawn(move || theirs.run(&slot, (since, patience), &work)).ok();
        Self { shared, thread }
    }

    /// A commit was made.
    pub(crate) fn committed(&self) {
        let mut wanted = self.shared.wanted.lock();
        wanted.commits += 1;
        if !wanted.is_due {
            wanted.is_due = true;
            self.shared.changed.notify_one();
        }
    }

    /// Ends the thread; afterwards it does not hold the writer.
    pub(crate) fn stop(mut self) {
        self.shared.wanted.lock().is_ended = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been told of where it happened.
            thread.join().unwrap_or_default();
        }
    }
}

impl Shared {
    fn run(&self, slot: &Arc<WriterSlot>, (since, patience): (Since, Duration), work: &Work) {
        let mut wait = patience;
        while self.wait_until_due() && self.wait_out(since, (wait, patience)) {
            wait = patience;
            match slot.lease_for_chore() {
                Chore::Lease(mut writer) => {
                    if let Some(next) = work(&mut writer) {
                        wait = next;
                        self.wanted.lock().is_due = true;
                    }
                }
                // Somebody has it: he does what must be done, or we do when he has ended.
                Chore::Busy => self.wanted.lock().is_due = true,
                Chore::NoWriter => {}
            }
        }
    }

    /// False at the end.
    fn wait_until_due(&self) -> bool {
        let mut wanted = self.wanted.lock();
        self.changed.wait_while(&mut wanted, |wanted| !wanted.is_due && !wanted.is_ended);
        !wanted.is_ended
    }

    /// Lets the time pass; what comes from then on is due anew. False at the end.
    fn wait_out(&self, since: Since, (mut patience, full): (Duration, Duration)) -> bool {
        let mut wanted = self.wanted.lock();
        loop {
            let commits = wanted.commits;
            self.changed.wait_while_for(&mut wanted, |wanted| !wanted.is_ended, patience);
            let is_quiet = since == Since::FirstCommit || wanted.commits == commits;
            // Whoever waits for quiet waits for as much of it as ever.
            patience = full;
            if wanted.is_ended || is_quiet {
                wanted.is_due = false;
                return !wanted.is_ended;
            }
        }
    }
}
