//! Where the sessions of one process get the database from, beside the sessions of others.
//!
//! ```text
//! reading   pin everything -> recover -> pin what was found, let go of the rest
//!           later statements follow the spine on from there; the pin moves along when nobody reads the older one
//! writing   the writer's lock -> recover -> counter -> opening root; kept until the database is closed
//! ```
//!
//! Invariants
//! 1. Every snapshot handed out is the newest commit there was when it was asked for, or newer than none shown before.
//! 2. While a snapshot of another process's commit is alive here, a pin at or below its commit is held.
//! 3. A process that inherited this by `fork` gets [`Kind::Misuse`] before it reads or seals anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_flash::Handle;
use counterfoil_flash::lock::{COMMIT_MAX, Pin, Pins, WriterLock};
use counterfoil_log::{self as log, Counting, NoPins, Recovered, Settings, Snapshot, View, Writer};
use counterfoil_sql as sql;
use counterfoil_vault::{self as vault, CounterError, CounterKind, HostCounter, Settled, SystemEntropy};
use parking_lot::{Mutex, RwLock};
use sql::{Lease, Patience, Store, WriterSlot};

use crate::convert::to_sql;
use crate::error::{Error, Kind, Result};
use crate::idle::{Idle, Since, Work};
use crate::incidents;
use crate::volume::{self, Freshness, Keeper, Volume};

/// Commits of so many milliseconds take one step of the counter together.
pub(crate) const GROUP_MILLISECONDS: u64 = 1000;

/// The same of a counter in a TPM, whose memory wears out: at a step a second, 100,000 writes would be gone after a day of
/// writing.
const TPM_GROUP_MILLISECONDS: u64 = 60_000;

/// How long a writer is left alone before tables are tidied.
pub(crate) const HOUSE_PATIENCE: Duration = Duration::from_millis(100);

/// The process that a handle belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn current() -> Self {
        Self(std::process::id())
    }

    /// Refuses a child that inherited the handle: parent and child would seal different pages in the same places.
    pub(crate) fn require(self) -> Result<()> {
        if std::process::id() == self.0 {
            return Ok(());
        }
        Err(Error::new(Kind::Misuse, "this database was opened by the parent of this process")
            .advise("open it again in the child"))
    }
}

/// The database as this process has it open.
pub(crate) struct FileStore {
    process: Process,
    volume: Arc<Volume>,
    pins: Option<Pins>,
    reading: Mutex<Option<Reading>>,
    /// The newest commit of our own writer, once there is one.
    written: RwLock<Option<Snapshot>>,
    slot: Arc<WriterSlot>,
    opening: Arc<Opening>,
    /// What is done when the writer has gone quiet, once we have written.
    idle: Mutex<Resting>,
    /// Tidies tables, a step at a time.
    housework: Mutex<Option<Work>>,
}

/// Who works when the writer has gone quiet.
#[derive(Default)]
struct Resting {
    threads: Vec<Idle>,
    /// They are being ended, and a commit that one of them makes meanwhile starts no others.
    is_ending: bool,
}

/// What the newest recovery found, and what keeps it where it is.
struct Reading {
    recovered: Recovered,
    /// What was handed out, oldest first.
    held: Vec<Held>,
}

/// A snapshot of another process's commit, the pin that keeps it, and since when.
struct Held {
    snapshot: Snapshot,
    since: Instant,
    pin: Option<Pin>,
}

impl Held {
    fn new(snapshot: Snapshot, pin: Option<Pin>) -> Self {
        Self { snapshot, since: Instant::now(), pin }
    }
}

/// How the writer is made when it is first wanted.
pub(crate) struct Opening {
    volume: Arc<Volume>,
    pins: Option<Pins>,
    lock: Mutex<Option<WriterLock>>,
    /// Why it was not, in full: the SQL floor has fewer kinds of errors.
    refused: Mutex<Option<Error>>,
}

impl FileStore {
    /// Opens for reading: recovers, pins, and holds the image against its counter.
    pub(crate) fn open(volume: Arc<Volume>) -> Result<(Self, Freshness)> {
        let pins = volume.medium.handle().map(Pins::new);
        let (reading, freshness) = Reading::begin(&volume, pins.as_ref())?;
        Ok((Self::new(volume, pins, Some(reading)), freshness))
    }

    fn new(volume: Arc<Volume>, pins: Option<Pins>, reading: Option<Reading>) -> Self {
        let opening = Arc::new(Opening {
            volume: volume.clone(),
            pins: pins.clone(),
            lock: Mutex::new(None),
            refused: Mutex::new(None),
        });
        let for_slot = opening.clone();
        Self {
            process: Process::current(),
            volume,
            pins,
            reading: Mutex::new(reading),
            written: RwLock::new(None),
            slot: WriterSlot::new(Box::new(move |patience: Patience<'_>| for_slot.open(patience))),
            opening,
            idle: Mutex::default(),
            housework: Mutex::new(None),
        }
    }

    pub(crate) fn volume(&self) -> &Arc<Volume> {
        &self.volume
    }

    pub(crate) fn process(&self) -> Process {
        self.process
    }

    /// The newest committed state.
    pub(crate) fn newest(&self) -> Result<Snapshot> {
        self.process.require()?;
        if let Some(snapshot) = &*self.written.read() {
            return Ok(snapshot.clone());
        }
        let mut reading = self.reading.lock();
        let next = self.next_reading(reading.take())?;
        let snapshot = next.newest();
        *reading = Some(next);
        Ok(snapshot)
    }

    fn next_reading(&self, reading: Option<Reading>) -> Result<Reading> {
        let pins = self.pins.as_ref();
        match reading {
            Some(reading) if self.volume.options.as_of_opening => Ok(reading),
            Some(reading) => reading.catch_up(&self.volume, pins),
            None => Ok(Reading::begin(&self.volume, pins)?.0),
        }
    }

    /// What an error means for somebody who has read one snapshot for long: pages that are not what they were may have
    /// been reused by a writer that has waited long enough.
    pub(crate) fn in_hindsight(&self, error: Error) -> Error {
        let suspicious = matches!(error.kind(), Kind::Tampered | Kind::Corrupt);
        let age_max = self.volume.options.snapshot_max_age;
        let reading = self.reading.lock();
        let old = |held: &Held| held.snapshot.is_shared() && held.since.elapsed() > age_max;
        if suspicious && reading.as_ref().is_some_and(|reading| reading.held.iter().any(old)) {
            return Error::new(Kind::SnapshotTooOld, "snapshot too old: a writer needed its space")
                .advise("begin a new transaction, and end it sooner");
        }
        error
    }

    /// The pins upon this opening of the file.
    pub(crate) fn pins(&self) -> Option<&Pins> {
        self.pins.as_ref()
    }

    /// What went wrong when the writer was made, in full.
    pub(crate) fn take_refusal(&self) -> Option<Error> {
        self.opening.refused.lock().take()
    }

    /// The writer, for one transaction.
    /// Keeps an error in full for whoever reads what the SQL floor says of it in short.
    #[cfg(feature = "publish")]
    pub(crate) fn refuse(&self, error: Error) -> sql::Error {
        self.opening.refuse(error)
    }

    pub(crate) fn lease(&self, patience: Patience<'_>) -> Result<Lease> {
        self.process.require()?;
        let lease = self.slot.lease(patience).map_err(|error| self.take_refusal().unwrap_or_else(|| error.into()))?;
        let mut lease = lease;
        let mut written = self.written.write();
        if written.is_none() {
            *written = Some(lease.snapshot());
        }
        drop(written);
        self.let_go();
        Ok(lease)
    }

    /// Drops the pins of snapshots from before we wrote that nobody reads any more: the writer knows its own snapshots,
    /// and would otherwise wait for ours for ever.
    fn let_go(&self) {
        let mut reading = self.reading.lock();
        if let Some(held) = reading.as_mut() {
            held.prune(0);
            if held.held.is_empty() {
                *reading = None;
            }
        }
    }

    /// Gives what is to be done when the writer has gone quiet.
    pub(crate) fn keep_house_with(&self, work: Work) {
        *self.housework.lock() = Some(work);
    }

    /// Has the commit that was just made counted in time, whether or not another one comes; without a counter it is made
    /// durable then at the latest. And has tables tidied if no other one comes.
    fn work_when_idle(&self) {
        let mut idle = self.idle.lock();
        if idle.is_ending {
            return;
        }
        if idle.threads.is_empty() {
            let patience = Duration::from_millis(group_milliseconds(self.volume.counter_kind()));
            let slot = || self.slot.clone();
            idle.threads.push(Idle::start("counter", slot(), (Since::FirstCommit, patience), Arc::new(count)));
            if let Some(work) = self.housework.lock().clone() {
                idle.threads.push(Idle::start("house", slot(), (Since::LastCommit, HOUSE_PATIENCE), work));
            }
        }
        idle.threads.iter().for_each(Idle::committed);
    }

    /// Whether this process has written.
    pub(crate) fn has_written(&self) -> bool {
        self.written.read().is_some()
    }

    /// Ends what is done when the writer has gone quiet.
    pub(crate) fn rest(&self) {
        // A child that inherited this has none of the threads.
        if self.process.require().is_ok() {
            let threads = {
                let mut idle = self.idle.lock();
                idle.is_ending = true;
                std::mem::take(&mut idle.threads)
            };
            // Not under the lock, which a commit of theirs takes.
            threads.into_iter().for_each(Idle::stop);
            self.idle.lock().is_ending = false;
        }
    }

    /// Ends the writing: counts what is not counted, gives the lock back.
    pub(crate) fn close(&self) -> Result<()> {
        if self.process.require().is_err() {
            // A child that drops what it inherited: nothing of it is the child's to close.
            return Ok(());
        }
        self.rest();
        let closed = match self.slot.retire() {
            Some(mut writer) => writer.close(),
            None if self.has_written() => {
                self.work_when_idle();
                return Err(Error::new(Kind::Misuse, "a transaction is open").advise("end it before closing"));
            }
            None => Ok(()),
        };
        *self.written.write() = None;
        *self.reading.lock() = None;
        *self.opening.lock.lock() = None;
        Ok(closed?)
    }
}

impl Store for FileStore {
    fn snapshot(&self) -> sql::Result<Snapshot> {
        self.newest().map_err(|error| self.opening.refuse(error))
    }

    fn writer(&self, patience: Patience<'_>) -> sql::Result<Lease> {
        self.lease(patience).map_err(|error| self.opening.refuse(error))
    }

    fn is_writer(&self) -> bool {
        self.has_written()
    }

    fn committed(&self, snapshot: Snapshot) {
        *self.written.write() = Some(snapshot);
        self.let_go();
        self.work_when_idle();
    }
}

/// Counts the last commits of a writer that has gone quiet. Commits take a step of the counter together, those of a second. The next
/// commit after that second closes the group; where none comes, this does.
fn count(writer: &mut Lease) -> Option<Duration> {
    // What the counter answers is kept by the writer, for whoever uses it next.
    writer.close_group_if_due().ok()?;
    writer.group_closes_in().map(Duration::from_millis)
}

impl Drop for FileStore {
    fn drop(&mut self) {
        // Whoever wants to hear of a failure calls `Database::close`; nothing that was acknowledged depends on it.
        let _ = self.close();
    }
}

impl Reading {
    fn begin(volume: &Volume, pins: Option<&Pins>) -> Result<(Self, Freshness)> {
        // Commit 0 is older than everything: while it is pinned, nothing is reclaimed that is found meanwhile.
        let everything = pins.map(|pins| pins.acquire(0)).transpose()?;
        let (recovered, freshness) = volume.recover_and_judge()?;
        let pin = pins.map(|pins| pins.acquire(recovered.commit().0)).transpose()?;
        drop(everything);
        let held = Held::new(recovered.snapshot(), pin);
        Ok((Self { recovered, held: vec![held] }, freshness))
    }

    /// Follows the spine to the newest commit. The pin that is held keeps everything on the way, unless a writer has
    /// waited for it long enough: then recovery judges what is there.
    fn catch_up(self, volume: &Volume, pins: Option<&Pins>) -> Result<Self> {
        let Self { recovered, mut held } = self;
        let stale = held.iter().all(|held| held.since.elapsed() > volume.options.snapshot_max_age);
        let before = recovered.commit();
        // Before the spine is followed: whoever commits after that waits for us as for somebody who begins now.
        held.last().and_then(|held| held.pin.as_ref()).map(Pin::renew).transpose()?;
        let recovered = match recovered.catch_up() {
            Err(error) if stale || volume.window_left(&error) => {
                let begun = Self::begin(volume, pins)?.0;
                held.extend(begun.held);
                begun.recovered
            }
            followed => {
                let recovered = followed?;
                if recovered.commit() != before {
                    let pin = pins.map(|pins| pins.acquire(recovered.commit().0)).transpose()?;
                    held.push(Held::new(recovered.snapshot(), pin));
                }
                recovered
            }
        };
        let mut reading = Self { recovered, held };
        reading.prune(1);
        Ok(reading)
    }

    /// Lets go of commits that nobody reads any more, except for so many of the newest.
    fn prune(&mut self, keep: usize) {
        let newest = self.held.len().saturating_sub(keep);
        let mut index = 0;
        self.held.retain(|held| {
            let needed = index >= newest || held.snapshot.is_shared();
            index += 1;
            needed
        });
    }

    fn newest(&self) -> Snapshot {
        match self.held.last() {
            Some(held) => held.snapshot.clone(),
            None => self.recovered.snapshot(),
        }
    }
}

/// The lock of whoever writes to the file.
fn locked(handle: &Handle, patience: Patience<'_>) -> Result<WriterLock> {
    use counterfoil_flash::lock::LockError;
    loop {
        match WriterLock::acquire(handle, patience.piece()) {
            Err(LockError::Held(_)) if !patience.left().is_zero() => patience.look()?,
            Err(LockError::Device(error)) => return Err(unwritable(error)),
            other => return Ok(other?),
        }
    }
}

impl Opening {
    fn open(&self, patience: Patience<'_>) -> sql::Result<Writer> {
        self.try_open(patience).map_err(|error| self.refuse(error))
    }

    fn refuse(&self, error: Error) -> sql::Error {
        let short = to_sql(error.clone());
        *self.refused.lock() = Some(error);
        short
    }

    fn try_open(&self, patience: Patience<'_>) -> Result<Writer> {
        let volume = &*self.volume;
        if volume.options.read_only {
            return Err(Error::new(Kind::Misuse, "the database was opened for reading only"));
        }
        let mut lock = self.lock.lock();
        if lock.is_none()
            && let Some(handle) = volume.medium.handle()
        {
            *lock = Some(locked(handle, patience)?);
        }
        let opened = self.open_locked(volume, patience);
        if opened.is_err() {
            *lock = None;
        }
        opened
    }

    /// The writer's lock is ours: nobody else moves the image or its counter.
    fn open_locked(&self, volume: &Volume, patience: Patience<'_>) -> Result<Writer> {
        let pins: Box<dyn log::Pins> = match &self.pins {
            Some(pins) => Box::new(OtherReaders::new(pins.clone(), volume.options.snapshot_max_age)),
            None => Box::new(NoPins),
        };
        let (mut counter, absent) = self.held_counter(volume, patience)?;
        let recovered = volume.recover()?;
        let version = recovered.version();
        let record = counter.as_mut().filter(|_| !absent).map(|counter| counter.record()).transpose()?;
        let freshness = record.as_ref().map(|record| volume::judge(&recovered, record)).transpose()?;
        if absent || matches!(freshness, Some(Freshness::Behind(_))) {
            // Before a counter is bound to an image it must be one that opens.
            settle_anew(volume, &recovered.snapshot())?;
        }
        if let (Some(Freshness::Behind(permitted)), Some(counter)) = (&freshness, &mut counter) {
            counter.set_rollbacks(permitted.rollbacks.count);
        }
        let settings = Settings {
            counter: counter.map(|counter| counter as Box<dyn vault::Counter + Send>),
            counting: counting(volume.counter_kind()),
            pins,
            headers: Some(Box::new(Keeper(self.volume.clone()))),
        };
        let device = volume.medium.writer();
        let mut writer = match (freshness, record) {
            (Some(Freshness::Behind(permitted)), Some(record)) => {
                let first = |writer: &mut Writer| permitted.record(writer, version);
                recovered.adopt(device, settings, &mut SystemEntropy, record.value, first)?
            }
            _ if absent => {
                let text = format!("no counter was here: this image, version {version}, was taken for the newest");
                let first = |writer: &mut Writer| incidents::record(writer, incidents::IncidentKind::Adopted, &text);
                recovered.adopt(device, settings, &mut SystemEntropy, 0, first)?
            }
            _ => recovered.open(device, settings, &mut SystemEntropy)?,
        };
        if absent {
            volume.options.note("counter adopted: there was none for this database here (see counterfoil.incidents)");
        }
        self.finish_header_change(volume, &mut writer)?;
        if writer.mended_pages() > 0 {
            let pages = writer.mended_pages();
            volume.options.note(&format!("{pages} pages of the checkpoint were damaged, and restored from their copy"));
        }
        Ok(writer)
    }

    /// The counter for this writer alone, and whether there is none yet. A lock upon the database keeps others from this
    /// file; a copy of it is another file, and its writer is kept out here.
    fn held_counter(&self, volume: &Volume, patience: Patience<'_>) -> Result<(Option<Box<dyn HostCounter>>, bool)> {
        let Some(mut counter) = volume.counter_to_step()? else { return Ok((None, false)) };
        // First without the lock: what is refused leaves nothing behind. Then again: it may have moved meanwhile.
        Self::is_absent(&mut *counter, volume)?;
        counter.hold(patience.left())?;
        let absent = Self::is_absent(&mut *counter, volume)?;
        Ok((Some(counter), absent))
    }

    fn is_absent(counter: &mut dyn HostCounter, volume: &Volume) -> Result<bool> {
        match counter.value() {
            Ok(_) => Ok(false),
            Err(CounterError::Absent) if volume.options.require_counter => {
                Err(Error::new(Kind::CounterLost, "there is no counter for this database here")
                    .advise("bring it from where the database was used"))
            }
            // A machine has one TPM: who comes with a file to another one, or deletes the counter, is not believed.
            Err(error @ CounterError::Absent) if volume.counter_kind() == CounterKind::Tpm => Err(error.into()),
            Err(CounterError::Absent) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Carries on a change of the header that was cut short.
    fn finish_header_change(&self, volume: &Volume, writer: &mut Writer) -> Result<()> {
        let settled = settle_anew(volume, writer)?;
        if let Some(mut change) = settled.unfinished {
            volume.drive(writer, &mut change)?;
            volume.refresh()?;
        }
        Ok(())
    }
}

/// Settles the header; read again if need be, because another process may have changed the slots since we opened.
fn settle_anew(volume: &Volume, view: &dyn View) -> Result<Settled> {
    match volume.settle(view) {
        Err(error) if error.kind() == Kind::Tampered => {
            volume.refresh()?;
            volume.settle(view)
        }
        other => other,
    }
}

/// How many milliseconds of commits take one step of a counter of this kind together.
fn group_milliseconds(kind: CounterKind) -> u64 {
    if kind == CounterKind::Tpm { TPM_GROUP_MILLISECONDS } else { GROUP_MILLISECONDS }
}

/// One step of the counter for all commits of a group.
pub(crate) fn counting(kind: CounterKind) -> Counting {
    let begun = std::time::Instant::now();
    Counting::Every {
        milliseconds: group_milliseconds(kind),
        clock: Box::new(move || u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)),
    }
}

fn unwritable(error: counterfoil_flash::Error) -> Error {
    match error {
        counterfoil_flash::Error::ReadOnly => {
            Error::new(Kind::Device, "the database can only be read here").advise("check the permissions of the file")
        }
        other => other.into(),
    }
}

/// The readers of other processes, and of other openings in this one. Each is waited for so long and no longer.
pub(crate) struct OtherReaders {
    pins: Pins,
    age_max: Duration,
    /// When pins were first seen to be in the way.
    seen: BTreeMap<u64, Instant>,
}

impl OtherReaders {
    pub(crate) fn new(pins: Pins, age_max: Duration) -> Self {
        Self { pins, age_max, seen: BTreeMap::new() }
    }

    /// The oldest pin that is still waited for. Those on commit 0 always are: whoever recovers or makes a backup holds
    /// everything, for as long as that takes.
    fn try_oldest(&mut self) -> Result<Option<u64>, counterfoil_flash::Error> {
        let now = Instant::now();
        let mut seen = BTreeMap::new();
        let mut from = 0;
        let oldest = loop {
            let Some(commit) = self.pins.oldest_in(from..COMMIT_MAX)? else { break None };
            let since = self.seen.get(&commit).copied().unwrap_or(now);
            seen.insert(commit, since);
            // Where writers come and go, none of them sees a reader for long.
            let is_old =
                now.duration_since(since) > self.age_max || self.pins.have_all_begun_before(commit, self.age_max)?;
            if commit == 0 || !is_old {
                break Some(commit);
            }
            from = commit + 1;
        };
        self.seen = seen;
        Ok(oldest)
    }
}

impl log::Pins for OtherReaders {
    fn oldest(&mut self) -> Option<u64> {
        // Where locks cannot be asked, nothing is reclaimed: better a file that grows than a reader that fails.
        self.try_oldest().unwrap_or(Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_inherited_a_handle_is_refused() {
        assert!(Process::current().require().is_ok());
        let parent = Process(std::process::id() ^ 1);
        assert_eq!(parent.require().err().map(|error| error.kind()), Some(Kind::Misuse));
    }
}
