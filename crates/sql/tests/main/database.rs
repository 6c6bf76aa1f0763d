//! A database in memory, and a way to say what statements answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil_flash::{Device, Error, Geometry, MemoryDevice, PageNumber, Read};
use counterfoil_sql::log::{Counting, Layout, Media, NoPins, Settings, Writer, create};
use counterfoil_sql::relation::Relations;
use counterfoil_sql::{Engine, EngineOptions, LocalStore, Outcome, Ram, Session, Spill, Value, text};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

/// A database and one session of it.
pub struct Database {
    pub engine: Arc<Engine>,
    pub session: Session,
    reads: Arc<AtomicU64>,
}

/// A medium whose reads are counted.
struct Counted {
    device: MemoryDevice,
    reads: Arc<AtomicU64>,
}

impl Read for Counted {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.device.read(page, offset, buffer)
    }
}

/// Whether a proof runs at full size (`make prove`).
pub fn is_full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

/// Bytes of the cache of pages.
const CACHE_BYTES: usize = 1 << 22;
/// Blocks of a medium that no test fills.
const BLOCKS: u64 = 1 << 12;

fn writer(
    blocks: u64,
    medium: impl FnOnce(MemoryDevice) -> Box<dyn Device + Send>,
    (reads, cache_bytes): (Arc<AtomicU64>, usize),
) -> Writer {
    let mut entropy = DangerFixedEntropy::seeded(1);
    let key = VolumeKey::generate(&mut entropy).unwrap();
    let id = DatabaseId::generate(&mut entropy).unwrap();
    let geometry =
        Geometry { page_bytes: 4096, block_pages: 64, block_count: blocks, erase_before_program: false, grows: true };
    let device = MemoryDevice::new(geometry).unwrap();
    let reader = Arc::new(Counted { device: device.clone(), reads });
    let media = Media { reader, writer: medium(device) };
    let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
    let layout = Layout::new(&geometry, 64, 16).unwrap();
    let settings = Settings {
        counter: Some(Box::new(MemoryCounter::at(0, None))),
        counting: Counting::EveryCommit,
        pins: Box::new(NoPins),
        headers: None,
    };
    create(media, vault, layout, settings, &mut entropy, 0, cache_bytes).unwrap()
}

impl Database {
    /// An empty database.
    pub fn new() -> Self {
        let options = EngineOptions { parallelism: 2, ..EngineOptions::default() };
        Self::with_options(options)
    }

    pub fn with_options(options: EngineOptions) -> Self {
        Self::made(options, BLOCKS, |device| Box::new(device))
    }

    /// An empty database whose queries have so much memory, or as much as they want, and somewhere to put what does not fit.
    pub fn in_ram(ram: Option<Ram>) -> Self {
        let spill = Some(Spill { folder: std::env::temp_dir(), bytes_max: 64 << 20 });
        let options = EngineOptions { parallelism: 2, spill, ..EngineOptions::default() };
        Self::with_options(ram.map_or(options.clone(), |ram| ram.bounds(options)))
    }

    /// An empty database on a medium of so many blocks of 256 KB.
    pub fn small(blocks: u64) -> Self {
        Self::made(EngineOptions { parallelism: 2, ..EngineOptions::default() }, blocks, |device| Box::new(device))
    }

    /// An empty database that reads each page anew.
    pub fn without_cache() -> Self {
        let options = EngineOptions { parallelism: 2, ..EngineOptions::default() };
        Self::cached(options, BLOCKS, |device| Box::new(device), 0)
    }

    /// An empty database that writes to its medium through something else.
    pub fn on(medium: impl FnOnce(MemoryDevice) -> Box<dyn Device + Send>) -> Self {
        Self::made(EngineOptions { parallelism: 2, ..EngineOptions::default() }, BLOCKS, medium)
    }

    fn made(options: EngineOptions, blocks: u64, medium: impl FnOnce(MemoryDevice) -> Box<dyn Device + Send>) -> Self {
        Self::cached(options, blocks, medium, CACHE_BYTES)
    }

    fn cached(
        options: EngineOptions,
        blocks: u64,
        medium: impl FnOnce(MemoryDevice) -> Box<dyn Device + Send>,
        cache_bytes: usize,
    ) -> Self {
        let reads = Arc::new(AtomicU64::new(0));
        let store = LocalStore::new(writer(blocks, medium, (reads.clone(), cache_bytes)));
        let engine = Engine::new(store, Arc::new(Relations::new()), options).unwrap();
        let session = Session::new(engine.clone()).unwrap();
        Database { engine, session, reads }
    }

    /// How often the medium was read: what is in the cache is not.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// A database after a script.
    pub fn after(script: &str) -> Self {
        let mut database = Self::new();
        database.session.run(script, &[]).unwrap();
        database
    }

    /// Another connection.
    pub fn connect(&self) -> Session {
        Session::new(self.engine.clone()).unwrap()
    }

    /// What a statement answers, as text.
    pub fn ask(&mut self, sql: &str) -> String {
        ask(&mut self.session, sql, &[])
    }

    /// Runs statements and compares what they answer.
    #[track_caller]
    pub fn expect(&mut self, script: &[(&str, &str)]) {
        for (sql, expected) in script {
            assert_eq!(self.ask(sql), *expected, "{sql}");
        }
    }
}

/// Rows as `a|b` lines, counts as `INSERT 1`, errors as `error: ...`.
pub fn ask(session: &mut Session, sql: &str, parameters: &[Value]) -> String {
    let outcomes = match session.run(sql, parameters) {
        Ok(outcomes) => outcomes,
        Err(error) => return format!("error: {error}"),
    };
    let mut lines = Vec::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Count { tag, rows } => lines.push(format!("{tag} {rows}")),
            Outcome::Done(tag) => lines.push(tag.to_owned()),
            Outcome::CopyOut(out) => {
                for chunk in out {
                    lines.push(String::from_utf8(chunk.unwrap()).unwrap().trim_end_matches('\n').to_owned());
                }
            }
            Outcome::Rows(rows) => {
                for batch in rows {
                    let batch = match batch {
                        Ok(batch) => batch,
                        Err(error) => return format!("error: {error}"),
                    };
                    for row in 0..batch.num_rows() {
                        let cell = |column: &counterfoil_sql::arrow::array::ArrayRef| {
                            text::cell(column.as_ref(), row).unwrap().unwrap_or_else(|| "NULL".into())
                        };
                        lines.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join("|"));
                    }
                }
            }
            other => lines.push(format!("{other:?}")),
        }
    }
    lines.join("\n")
}
