//! Where sessions get the database from: snapshots for reading, and the one writer on loan.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use counterfoil_log::{Snapshot, Writer};
use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::patience::Patience;
use crate::slot::WriterSlot;

/// What the database's owner (the facade) gives to its sessions.
pub trait Store: Send + Sync {
    /// The newest committed state. It stays readable as long as the snapshot lives.
    ///
    /// # Errors
    /// [`Error::Log`] if the newest root cannot be read.
    fn snapshot(&self) -> Result<Snapshot>;

    /// The writer, for one transaction. Waits for whoever has it.
    ///
    /// # Errors
    /// [`Error::Locked`] where somebody has it for longer than there is patience, what calls the waiting off, [`Error::Misuse`]
    /// where the database is open for reading only.
    fn writer(&self, patience: Patience<'_>) -> Result<Lease>;

    /// Whether this process is the one that writes, until it closes the database.
    fn is_writer(&self) -> bool {
        true
    }

    /// Called after every commit with the state it made: what [`Store::snapshot`] answers from now on.
    fn committed(&self, snapshot: Snapshot);
}

/// The writer on loan. Dropping the lease gives it back; whoever took it has committed or rolled back before, or is one of several
/// statements that are committed together.
pub struct Lease {
    writer: Option<Box<Writer>>,
    slot: Arc<WriterSlot>,
}

impl Lease {
    pub(crate) fn of(writer: Box<Writer>, slot: Arc<WriterSlot>) -> Self {
        Lease { writer: Some(writer), slot }
    }
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
        let open = move |_: Patience<'_>| writer.take().ok_or_else(|| Error::Misuse("the database is closed".into()));
        Arc::new(LocalStore { slot: WriterSlot::new(Box::new(open)), latest })
    }
}

impl Store for LocalStore {
    fn snapshot(&self) -> Result<Snapshot> {
        Ok(self.latest.read().clone())
    }

    fn writer(&self, patience: Patience<'_>) -> Result<Lease> {
        self.slot.lease(patience)
    }

    fn committed(&self, snapshot: Snapshot) {
        *self.latest.write() = snapshot;
    }
}
