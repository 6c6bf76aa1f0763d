//! An open database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use counterfoil_log::Snapshot;
use counterfoil_relation::{FRESH_ROWS, Relations, Table};
use counterfoil_sql::{Engine, EngineOptions, Rights, Spill};
use zeroize::Zeroizing;

use crate::connection::Connection;
use crate::create::{self, Created};
use crate::error::{Error, Result};
use crate::incidents::{self, Incident};
use crate::options::{Options, Place};
use crate::records::Records;
use crate::relation::Relation;
use crate::rollback::Rollbacks;
use crate::series::Series;
use crate::store::FileStore;
use crate::users::Role;
use crate::volume::{Freshness, Volume};

/// An open database. Clones are the same one; it closes with the last of them and the last connection.
#[derive(Clone)]
pub struct Database {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Arc<FileStore>,
    pub(crate) engine: Arc<Engine>,
    recovery_code: Option<Zeroizing<String>>,
    #[cfg(feature = "publish")]
    pub(crate) publications: Arc<crate::publishing::Publications>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        #[cfg(feature = "publish")]
        if self.store.process().require().is_ok() {
            self.publications.stop();
        }
        // Whoever tidies uses the engine, and must not be the one who drops it.
        self.store.rest();
    }
}

/// How long the writer is left to others between two steps of tidying.
const BETWEEN_STEPS: Duration = Duration::from_millis(5);

/// Bytes that the queries of a database may have spilled at any time: more is a query gone wrong, and the folder is
/// not ours alone.
const SPILL_BYTES_MAX: u64 = 64 << 30;

/// About what the index entries of a new row take, of all indexes that are written at a time.
const FRESH_ROW_BYTES: usize = 256;
/// With fewer new rows in an index a run of it would not be worth its page.
const FRESH_ROWS_MIN: usize = 16;
/// And steps of merges look at so many entries at least, since the catalog lists what each of them makes.
const STEP_ENTRIES: usize = 4096;
/// Segments of tables are so many times as large as what is new may be: a segment is renewed where deletes and updates take more than
/// half of that.
const SEGMENT_TIMES: u64 = 256;
const SEGMENT_BYTES_MIN: u64 = 1 << 20;
const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// Of a database with a limit they are this part of it: what is left of one finds room in what is kept for deletions, however much is
/// gone everywhere.
const SEGMENTS_OF_LIMIT: u64 = 64;
const LIMITED_SEGMENT_BYTES_MIN: u64 = 256 << 10;

impl Database {
    /// Makes a database. What is there already is never overwritten, and an attempt that is cut short leaves nothing
    /// that could be taken for a database.
    ///
    /// # Errors
    /// [`crate::Kind::Misuse`] for options that cannot be and names that are taken, [`crate::Kind::Device`],
    /// [`crate::Kind::Full`].
    pub fn create(options: Options) -> Result<Self> {
        let place = options.place.clone();
        let created = create::create(options).map_err(|error| error.at(&place))?;
        Self::of(created)
    }

    /// Opens a database. Nothing is written before the first statement that changes something.
    ///
    /// # Errors
    /// [`crate::Kind::NotFound`], [`crate::Kind::NotADatabase`], [`crate::Kind::WrongKey`], and whatever speaks against
    /// trusting it: [`crate::Kind::Tampered`], [`crate::Kind::Corrupt`], [`crate::Kind::RolledBack`],
    /// [`crate::Kind::CounterLost`].
    pub fn open(options: Options) -> Result<Self> {
        let place = options.place.clone();
        if place == Place::Memory {
            return Self::create(options);
        }
        Self::open_volume(options).map_err(|error| error.at(&place))
    }

    fn open_volume(options: Options) -> Result<Self> {
        let volume = Arc::new(Volume::open(options)?);
        let (store, freshness) = FileStore::open(volume.clone())?;
        let newest = store.newest()?;
        match freshness {
            Freshness::Absent => volume.options.note("freshness not checked"),
            Freshness::Behind(permitted) => volume.options.note(&format!(
                "{}; on_rollback = 'record': the next write goes on from it, with an incident",
                permitted.refusal.what()
            )),
            Freshness::Compared | Freshness::NoCounter => {}
        }
        if let Some(told) = Rollbacks::of(&newest)?.unaccepted() {
            volume.options.note(&told.to_string());
        }
        let settled = volume.settle_begun(&newest)?;
        if let Some((copy, _)) = settled.fault {
            volume
                .options
                .note(&format!("header {copy} is not good: the other one is, and the next change of a key repairs it"));
        }
        Self::with_store(Arc::new(store), None)
    }

    pub(crate) fn of(created: Created) -> Result<Self> {
        let (store, _) = FileStore::open(created.volume)?;
        Self::with_store(Arc::new(store), created.recovery_code)
    }

    fn with_store(store: Arc<FileStore>, recovery_code: Option<Zeroizing<String>>) -> Result<Self> {
        let asked = &store.volume().options;
        let spill = asked.spill_folder.clone().map(|folder| Spill { folder, bytes_max: SPILL_BYTES_MAX });
        let (memory_bytes, reorganizes) = (asked.memory_bytes, asked.reorganize);
        let options = EngineOptions { memory_bytes, spill, is_tidied: reorganizes, ..EngineOptions::default() };
        let segment_bytes_max = match store.volume().opened().header.layout.size_limit {
            0 => SEGMENT_BYTES_MAX,
            limit => (limit / SEGMENTS_OF_LIMIT).clamp(LIMITED_SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
        };
        let (relations, options) = match asked.bounds()? {
            None => (Relations::new().with_segment_bytes(segment_bytes_max), options),
            Some(ram) => {
                let fresh_rows = (ram.fresh() / FRESH_ROW_BYTES).clamp(FRESH_ROWS_MIN, FRESH_ROWS);
                let relations = Relations::with_fresh_rows(fresh_rows).with_step_entries(STEP_ENTRIES);
                let segment_bytes = (ram.fresh() as u64).saturating_mul(SEGMENT_TIMES).max(SEGMENT_BYTES_MIN);
                let segment_bytes = segment_bytes.min(segment_bytes_max);
                (
                    relations
                        .with_head_bytes(ram.heads())
                        .with_new_bytes(ram.fresh())
                        .with_merge_bytes(ram.merges())
                        .with_build_bytes(ram.merges())
                        .with_segment_bytes(segment_bytes),
                    ram.bounds(options),
                )
            }
        };
        let engine = Engine::new(store.clone(), Arc::new(relations), options)?;
        if reorganizes {
            let (tidied, has_looked) = (Arc::downgrade(&engine), AtomicBool::new(false));
            store.keep_house_with(Arc::new(move |writer| {
                let engine = tidied.upgrade()?;
                if !has_looked.swap(true, Ordering::Relaxed) {
                    // What was left half done when the database was last closed.
                    engine.relations().note_all(&**writer).ok()?;
                }
                engine.tidy(writer).then_some(BETWEEN_STEPS)
            }));
        }
        engine.belong_to(Arc::new(crate::owner::Owning(Arc::downgrade(&store))));
        #[cfg(feature = "disperse")]
        engine.reach_clouds_with(Arc::new(crate::clouds::Reached::default()));
        let database = Self {
            #[cfg(not(feature = "publish"))]
            inner: Arc::new(Inner { store, engine, recovery_code }),
            #[cfg(feature = "publish")]
            inner: Arc::new_cyclic(|inner| {
                let publications = crate::publishing::Publications::new(inner.clone());
                engine.publish_with(Arc::new(crate::publishing::Answering(publications.clone())));
                engine.verify_with(Arc::new(crate::publishing::Verifying::new(inner.clone())));
                Inner { store, engine, recovery_code, publications }
            }),
        };
        #[cfg(feature = "publish")]
        if !database.volume().options.read_only {
            database.inner.publications.go_on(&database)?;
        }
        Ok(database)
    }

    /// The recovery code, if this database was just made with one. It is kept nowhere else.
    #[must_use]
    pub fn recovery_code(&self) -> Option<&str> {
        self.inner.recovery_code.as_ref().map(|code| code.as_str())
    }

    /// A connection: one user of the database, with a transaction of its own.
    ///
    /// # Errors
    /// [`crate::Kind::Misuse`] in a child process that inherited the handle.
    pub fn connect(&self) -> Result<Connection> {
        self.require_process()?;
        Connection::new(self.inner.clone())
    }

    /// A connection for somebody who comes in from outside: a reader changes nothing, and nobody reads or writes files of this
    /// machine with COPY.
    ///
    /// # Errors
    /// As [`Database::connect`].
    pub fn connect_as(&self, role: Role) -> Result<Connection> {
        self.require_process()?;
        Connection::with_rights(self.inner.clone(), Rights { writes: role == Role::Writer, host_files: false })
    }

    /// Records by name.
    #[must_use]
    pub fn records(&self) -> Records {
        Records::new(self.clone())
    }

    /// A table, by name.
    ///
    /// # Errors
    /// [`crate::Kind::NotFound`].
    pub fn relation(&self, name: &str) -> Result<Relation> {
        Relation::new(self, name)
    }

    /// A series table, by name.
    ///
    /// # Errors
    /// [`crate::Kind::NotFound`], [`crate::Kind::Misuse`] for a table of another kind.
    pub fn series(&self, name: &str) -> Result<Series> {
        Series::new(self, name)
    }

    /// What the owner must be told of: counters adopted, backups restored, older images gone on from.
    ///
    /// # Errors
    /// Those of reading.
    pub fn incidents(&self) -> Result<Vec<Incident>> {
        incidents::all(&self.snapshot()?)
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.inner.store.volume().options.place
    }

    /// Ends it: what was acknowledged is counted, the writer's lock is given back. Dropping does the same without
    /// telling what went wrong.
    ///
    /// # Errors
    /// [`crate::Kind::Misuse`] while a connection has a transaction open; [`crate::Kind::Device`],
    /// [`crate::Kind::CounterLost`].
    pub fn close(self) -> Result<()> {
        #[cfg(feature = "publish")]
        if self.require_process().is_ok() {
            self.inner.publications.stop();
        }
        self.inner.engine.flush(self.volume().options.lock_timeout)?;
        self.inner.store.close()
    }

    pub(crate) fn volume(&self) -> &Arc<Volume> {
        self.inner.store.volume()
    }

    pub(crate) fn require_process(&self) -> Result<()> {
        self.inner.store.process().require()
    }

    /// The newest committed state.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.inner.store.newest()
    }

    /// From now on no other process writes, until this database is closed.
    #[cfg(feature = "publish")]
    pub(crate) fn become_writer(&self) -> Result<()> {
        let patience = self.inner.store.volume().options.lock_timeout;
        drop(self.inner.store.lease(counterfoil_sql::Patience::of(patience))?);
        Ok(())
    }

    /// Runs one change of our own, as a commit.
    pub(crate) fn change<T>(&self, body: impl FnOnce(&mut counterfoil_log::Writer) -> Result<T>) -> Result<T> {
        self.change_within(self.inner.store.volume().options.lock_timeout, body)
    }

    /// The same, unless somebody else has the writer for longer than that.
    pub(crate) fn change_within<T>(
        &self,
        patience: Duration,
        body: impl FnOnce(&mut counterfoil_log::Writer) -> Result<T>,
    ) -> Result<T> {
        self.change_begun(patience, counterfoil_log::Writer::begin, body)
    }

    /// As [`Database::change`], where it frees more than it writes: what is kept for such changes may be granted to it.
    pub(crate) fn change_to_free<T>(&self, body: impl FnOnce(&mut counterfoil_log::Writer) -> Result<T>) -> Result<T> {
        let patience = self.inner.store.volume().options.lock_timeout;
        self.change_begun(patience, counterfoil_log::Writer::begin_to_free, body)
    }

    fn change_begun<T>(
        &self,
        patience: Duration,
        begin: impl FnOnce(&mut counterfoil_log::Writer) -> Result<(), counterfoil_log::Error>,
        body: impl FnOnce(&mut counterfoil_log::Writer) -> Result<T>,
    ) -> Result<T> {
        use counterfoil_sql::{Patience, Store};
        let store = &self.inner.store;
        let mut lease = store.lease(Patience::of(patience))?;
        let engine = &self.inner.engine;
        engine.settle(&mut lease);
        begin(&mut lease)?;
        match body(&mut lease).and_then(|value| lease.commit().map(|_| value).map_err(Error::from)) {
            Ok(value) => {
                engine.committed(&*lease);
                store.committed(lease.snapshot());
                Ok(value)
            }
            Err(error) => {
                lease.rollback();
                engine.rolled_back(&*lease);
                Err(error)
            }
        }
    }

    /// All tables, by name.
    pub(crate) fn tables(&self, snapshot: &Snapshot) -> Result<Vec<Arc<Table>>> {
        Ok(self.inner.engine.relations().tables(snapshot)?)
    }
}
