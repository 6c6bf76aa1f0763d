//! Where sessions get the database from: snapshots for reading, and the one writer on loan.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_log::{Snapshot, Writer};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::error::{Error, Result};

/// What the database's owner (the facade) gives to its sessions.
pub trait Store: Send + Sync {
    /// The newest committed state. It stays readable as long as the snapshot lives.
    ///
    /// # Errors
    /// [`Error::Log`] if the newest root cannot be read.
    fn snapshot(&self) -> Result<Snapshot>;

    /// The writer, for one transaction. Waits at most `patience` for whoever has it.
    ///
    /// # Errors
    /// [`Error::Locked`] after that time, [`Error::Misuse`] where the database is open for reading only.
    fn writer(&self, patience: Duration) -> Result<Lease>;

    /// Called after every commit with the state it made: what [`Store::snapshot`] answers from now on.
    fn committed(&self, snapshot: Snapshot);
}

/// The writer on loan. Dropping the lease gives it back; whoever took it has committed or rolled back before, or is one of several
/// statements that are committed together.
pub struct Lease {
    writer: Option<Box<Writer>>,
    slot: Arc<WriterSlot>,
}

impl Deref for Lease {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        self.writer.as_deref().expect("a lease has its writer until it is dropped")
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut Writer {
        self.writer.as_deref_mut().expect("a lease has its writer until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.slot.give_back(writer);
        }
    }
}

/// Makes the writer when the first one to write asks for it: opening for writing is a commit of its own.
pub type OpenWriter = Box<dyn FnMut() -> Result<Writer> + Send>;

/// The place the writer stands at while nobody writes.
pub struct WriterSlot {
    state: Mutex<SlotState>,
    given_back: Condvar,
}

struct SlotState {
    writer: Option<Box<Writer>>,
    loan: Loan,
    open: OpenWriter,
}

/// What the writer is lent for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loan {
    Nothing,
    Transaction,
    /// Something short in between: whoever comes waits for it, however impatient.
    Chore,
}

/// What became of asking for the writer for something short in between.
pub enum Chore {
    /// Nobody had it.
    Lease(Lease),
    /// A transaction has it, or has left something in it that is not committed.
    Busy,
    /// There is none.
    NoWriter,
}

impl WriterSlot {
    /// A slot whose writer is made by `open` when it is first wanted.
    pub fn new(open: OpenWriter) -> Arc<Self> {
        let state = SlotState { writer: None, loan: Loan::Nothing, open };
        Arc::new(WriterSlot { state: Mutex::new(state), given_back: Condvar::new() })
    }

    /// Takes the writer, waiting at most `patience`.
    ///
    /// # Errors
    /// [`Error::Locked`] after that time, or what opening the writer answers.
    pub fn lease(self: &Arc<Self>, patience: Duration) -> Result<Lease> {
        let deadline = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.loan != Loan::Nothing {
            if state.loan == Loan::Chore {
                self.given_back.wait(&mut state);
            } else if self.given_back.wait_until(&mut state, deadline).timed_out() && state.loan == Loan::Transaction {
                return Err(Error::Locked(
                    "another connection of this process is writing: wait for its COMMIT, or raise lock_timeout".into(),
                ));
            }
        }
        let writer = match state.writer.take() {
            Some(writer) => writer,
            None => Box::new((state.open)()?),
        };
        state.loan = Loan::Transaction;
        Ok(Lease { writer: Some(writer), slot: self.clone() })
    }

    /// Takes the writer for something short, if there is one and nobody has it.
    pub fn lease_for_chore(self: &Arc<Self>) -> Chore {
        let mut state = self.state.lock();
        match state.writer.take() {
            // Statements wait for a commit that they make together, which a chore has no part in.
            Some(writer) if writer.is_active() => {
                state.writer = Some(writer);
                Chore::Busy
            }
            Some(writer) => {
                state.loan = Loan::Chore;
                Chore::Lease(Lease { writer: Some(writer), slot: self.clone() })
            }
            None if state.loan == Loan::Nothing => Chore::NoWriter,
            None => Chore::Busy,
        }
    }

    fn give_back(&self, writer: Box<Writer>) {
        let mut state = self.state.lock();
        state.writer = Some(writer);
        state.loan = Loan::Nothing;
        self.given_back.notify_one();
    }

    /// Takes the writer out for good, to close it. `None` if there never was one, or it is lent.
    pub fn retire(&self) -> Option<Box<Writer>> {
        self.state.lock().writer.take()
    }
}

/// A store over a writer that is open already: for `:memory:` databases and tests.
pub struct LocalStore {
    slot: Arc<WriterSlot>,
    latest: RwLock<Snapshot>,
}

impl LocalStore {
    /// Serves `writer` and the snapshots of its commits.
    pub fn new(mut writer: Writer) -> Arc<Self> {
        let latest = RwLock::new(writer.snapshot());
        let mut writer = Some(writer);
        let open = move || writer.take().ok_or_else(|| Error::Misuse("the database is closed".into()));
        Arc::new(LocalStore { slot: WriterSlot::new(Box::new(open)), latest })
    }
}

impl Store for LocalStore {
    fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.latest.read().clone())
    }

    fn writer(&self, patience: Duration) -> Result<Lease> {
        self.slot.lease(patience)
    }

    fn committed(&self, snapshot: Snapshot) {
        *self.latest.write() = snapshot;
    }
}
