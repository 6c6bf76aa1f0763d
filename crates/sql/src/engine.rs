//! What all sessions of one open database share: the store, the tables, and the machinery that runs queries.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use counterfoil_log::{View, Writer};
use counterfoil_relation::{BUDGET_BYTES_MIN, Relations};
use counterfoil_series::SeriesTables;
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use futures::StreamExt;
use parking_lot::Mutex;

use crate::aside::Means;
use crate::clock::Clock;
use crate::cursors::Reading;
use crate::dispersed::{Clouds, Dispersed, Owner};
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::group::Groups;
use crate::interrupt::Interrupt;
use crate::memory;
use crate::naming;
use crate::patience::Patience;
use crate::published::Verifier;
use crate::publishing::Publisher;
use crate::ram::Ram;
use crate::series::{Doors, Keeper};
use crate::sharing::Turn;
use crate::spill::{SealedFiles, Spill};
use crate::store::{Lease, Store};
use crate::transaction::{self, Purpose};

/// Bytes of working memory that the queries of one database may take together, unless told otherwise or there are more
/// than 32 processors.
pub const MEMORY_BYTES_DEFAULT: usize = 1 << 30;

/// The least memory that queries can do with.
pub const LITTLE_BYTES_MIN: usize = BUDGET_BYTES_MIN;

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bytes of working memory that all queries together may take. Sorts end well at any size if it is
    /// [`MEMORY_BYTES_MIN`](crate::MEMORY_BYTES_MIN) for each part, or more.
    pub memory_bytes: usize,
    /// How many parts of one query run at once.
    pub parallelism: usize,
    /// Where queries put what does not fit into memory, sealed. Without it they end in an error there.
    pub spill: Option<Spill>,
    /// What time it is.
    pub clock: Clock,
    /// Whether that memory is less than the query library needs to sort, group and join: then it may not, and what it may not ends with
    /// [`Error::Memory`]. Questions of columns, along foreign keys, grouped and in order, need [`LITTLE_BYTES_MIN`] alone.
    pub is_little: bool,
    /// What all that comes from, where somebody said it.
    pub ram: Option<Ram>,
    /// Whether somebody calls [`Engine::tidy`] when nobody writes: then commits leave it all but the most pressing.
    pub is_tidied: bool,
    /// For how many seconds other clients of a dispersed table wait for this one where it does not go on with what it began.
    pub lease_seconds: u32,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let parallelism = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let memory_bytes = MEMORY_BYTES_DEFAULT.max(parallelism * memory::MEMORY_BYTES_MIN);
        let (spill, clock) = (None, Clock::default());
        EngineOptions {
            memory_bytes,
            parallelism,
            spill,
            clock,
            is_little: false,
            ram: None,
            is_tidied: false,
            lease_seconds: LEASE_SECONDS,
        }
    }
}

/// The one of [`EngineOptions::lease_seconds`] that is taken otherwise: twice as long as a cloud is waited for that is slow.
const LEASE_SECONDS: u32 = 30;

/// One open database, as its sessions see it.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) relations: Arc<Relations>,
    pub(crate) series: Arc<SeriesTables>,
    pub(crate) doors: Doors,
    pub(crate) groups: Groups,
    pub(crate) retention: Keeper,
    pub(crate) options: EngineOptions,
    pub(crate) environment: Arc<RuntimeEnv>,
    pub(crate) means: Means,
    pub(crate) turn: Turn,
    pub(crate) executor: Arc<Executor>,
    pub(crate) publisher: OnceLock<Arc<dyn Publisher>>,
    pub(crate) verifier: OnceLock<Arc<dyn Verifier>>,
    pub(crate) dispersed: Arc<Dispersed>,
}

impl Engine {
    /// An engine over a store and its tables.
    ///
    /// # Errors
    /// [`Error::Host`] if the threads that run queries cannot be started.
    pub fn new(store: Arc<dyn Store>, relations: Arc<Relations>, options: EngineOptions) -> Result<Arc<Self>> {
        // The library's own spill files are in the clear: they stay disabled, and sealed ones take their place.
        let spill = options.spill.clone().map(SealedFiles::new).transpose()?.map(Arc::new);
        let disk = match &spill {
            None => DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled),
            Some(files) => DiskManagerBuilder::default().with_temp_file_factory(files.clone()),
        };
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(memory::Shared::new(options.memory_bytes, options.parallelism))
            .with_disk_manager_builder(disk)
            .build_arc()?;
        let means = Means { pool: environment.memory_pool.clone(), bytes: options.memory_bytes, spill };
        let executor = Arc::new(Executor::new(options.parallelism)?);
        let series = Arc::new(SeriesTables::new());
        let (doors, groups, retention) = (Doors::default(), Groups::default(), Keeper::default());
        let (turn, publisher, verifier, dispersed) =
            (Turn::default(), OnceLock::new(), OnceLock::new(), Arc::default());
        #[rustfmt::skip]
        let engine = Engine {
            store, relations, series, doors, groups, retention, options, environment, means, turn, executor, publisher,
            verifier, dispersed,
        };
        Ok(Arc::new(engine))
    }

    /// Gives what PUBLISH is answered by. The first one stays.
    pub fn publish_with(&self, publisher: Arc<dyn Publisher>) {
        // There is one database to an engine, and it does this once.
        let _ = self.publisher.set(publisher);
    }

    /// Gives what the database is to those who bring it back. The first one stays.
    pub fn belong_to(&self, owner: Arc<dyn Owner>) {
        let _ = self.dispersed.owner.set(owner);
    }

    /// Gives what reaches clouds over a network. The first one stays.
    pub fn reach_clouds_with(&self, clouds: Arc<dyn Clouds>) {
        let _ = self.dispersed.clouds.set(clouds);
    }

    /// Gives what asks for published tables. The first one stays.
    pub fn verify_with(&self, verifier: Arc<dyn Verifier>) {
        let _ = self.verifier.set(verifier);
    }

    /// The store this engine stands on.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The series tables of this database.
    pub fn series(&self) -> &Arc<SeriesTables> {
        &self.series
    }

    /// Tells everybody who keeps tables that something was committed, with the writer as it is.
    pub fn committed(&self, view: &dyn View) {
        self.relations.committed(view);
        self.series.committed(view);
        self.doors.committed(view);
        self.retention.committed();
    }

    /// Tells everybody who keeps tables that something was rolled back, with the writer as it is.
    pub fn rolled_back(&self, view: &dyn View) {
        self.relations.rolled_back(view);
        self.series.rolled_back(view);
        self.doors.forget();
        self.retention.rolled_back();
    }

    /// Leaves a writer as one takes it that begins a commit of its own: statements that wait to be committed together are, and what a
    /// crashed user of it left behind is undone.
    pub fn settle(&self, lease: &mut Lease) {
        self.groups.settle(self, lease);
    }

    /// Statements that wait to be committed together.
    pub fn waiting(&self) -> usize {
        self.groups.waiting()
    }

    /// Commits what statements wait for, at once: before closing.
    ///
    /// # Errors
    /// [`Error::Locked`] if a statement has the writer for longer than `patience`.
    pub fn flush(&self, patience: Duration) -> Result<()> {
        if self.waiting() > 0 {
            self.settle(&mut self.store.writer(Patience::of(patience))?);
        }
        Ok(())
    }

    /// Takes a step in tidying a table that has changed, as a commit of its own; whether there may be more to do.
    pub fn tidy(&self, lease: &mut Lease) -> bool {
        self.settle(lease);
        transaction::tidy(self, lease, Purpose::Store)
    }

    /// Lets go of what a series table keeps no longer, some thousand pages in a transaction; whether there is anything to commit.
    /// `is_first`: the first call of several asks all tables, the others go on.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub fn retain(&self, writer: &mut Writer, is_first: bool) -> Result<bool> {
        if is_first {
            self.retention.note_all(self, writer)?;
        }
        for id in self.retention.written() {
            if self.retention.keep(self, writer, id)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The tables of this database.
    pub fn relations(&self) -> &Arc<Relations> {
        &self.relations
    }
}

/// The rows of a query, batch by batch. Dropping it ends the query.
pub struct Rows {
    schema: SchemaRef,
    source: Source,
    change: Option<&'static str>,
}

enum Source {
    Stream { stream: SendableRecordBatchStream, executor: Arc<Executor>, interrupt: Interrupt },
    Batches(std::vec::IntoIter<RecordBatch>),
    Cursor { reading: Arc<Mutex<Reading>>, left: u64 },
    Ended,
}

impl Rows {
    pub(crate) fn stream(
        schema: SchemaRef,
        stream: SendableRecordBatchStream,
        executor: Arc<Executor>,
        interrupt: Interrupt,
    ) -> Self {
        Rows { schema: naming::shown(&schema), source: Source::Stream { stream, executor, interrupt }, change: None }
    }

    pub(crate) fn batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Rows { schema: naming::shown(&schema), source: Source::Batches(batches.into_iter()), change: None }
    }

    /// The rows that RETURNING answers, of a statement that is called so.
    pub(crate) fn changed(tag: &'static str, schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Rows { change: Some(tag), ..Rows::batches(schema, batches) }
    }

    /// So many rows of a cursor, at most.
    pub(crate) fn fetched(schema: SchemaRef, reading: Arc<Mutex<Reading>>, most: u64) -> Self {
        Rows { schema, source: Source::Cursor { reading, left: most }, change: None }
    }

    /// What the statement is called that changed these rows, `INSERT` for one, where it is RETURNING that answers them.
    pub fn change(&self) -> Option<&'static str> {
        self.change
    }

    /// Names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// All rows at once.
    ///
    /// # Errors
    /// The first error of the query.
    pub fn collect_all(self) -> Result<Vec<RecordBatch>> {
        self.collect()
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.source {
            Source::Ended => None,
            Source::Batches(batches) => batches.next().map(Ok),
            Source::Cursor { left: 0, .. } => None,
            Source::Cursor { reading, left } => {
                let next = reading.lock().next(*left);
                if let Some(Ok(batch)) = &next {
                    *left -= batch.num_rows() as u64;
                }
                next
            }
            Source::Stream { stream, executor, interrupt } => {
                executor.run(interrupt, async { stream.next().await.transpose().map_err(Error::from) }).transpose()
            }
        };
        match next {
            Some(Ok(batch)) if batch.schema_ref() == &self.schema => Some(Ok(batch)),
            Some(Ok(batch)) => {
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let columns = batch.columns().to_vec();
                Some(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options).map_err(Error::from))
            }
            ended => {
                self.source = Source::Ended;
                ended
            }
        }
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("columns", &self.schema.fields().len()).finish()
    }
}
