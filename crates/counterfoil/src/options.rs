//! How a database is made or opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use counterfoil_sql::Ram;
use counterfoil_vault::StateEnvironment;
pub use counterfoil_vault::Suite as Cipher;

use crate::error::{Error, Kind, Result};
use crate::key::Key;
use crate::tpm::Tpm;

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file.
    File(PathBuf),
    /// In memory: it ends with the last handle.
    Memory,
    /// On a block device, taken whole.
    Block(PathBuf),
}

impl Place {
    /// Understands what a command line has: a path, `:memory:`, or `block:/dev/X`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.strip_prefix("block:") {
            Some(device) => Place::Block(device.into()),
            None if text == ":memory:" => Place::Memory,
            None => Place::File(text.into()),
        }
    }

    /// The path, where there is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Place::File(path) | Place::Block(path) => Some(path),
            Place::Memory => None,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::File(path) => path.display().fmt(f),
            Place::Block(path) => write!(f, "block:{}", path.display()),
            Place::Memory => f.write_str(":memory:"),
        }
    }
}

/// The one-way counter that tells the newest image of a database from yesterday's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counter {
    /// None: an older image put back is not noticed.
    None,
    /// A file in this directory. It helps as far as whoever holds the database cannot write there.
    File(PathBuf),
    /// Memory of the machine's TPM ([`Options::tpm`]). In this directory is the lock that keeps the writers of two
    /// copies of the database apart.
    Tpm(PathBuf),
}

impl Counter {
    /// The file counter where the user's programs keep their state: `COUNTERFOIL_STATE_DIR`, else
    /// `$XDG_STATE_HOME/counterfoil`, else `~/.local/state/counterfoil`.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if none of these is set.
    pub fn user_default() -> Result<Self> {
        Self::user_directory().map(Counter::File)
    }

    /// The counter in the machine's TPM, with its lock where the file counter would be.
    ///
    /// # Errors
    /// As [`Counter::user_default`].
    pub fn user_tpm() -> Result<Self> {
        Self::user_directory().map(Counter::Tpm)
    }

    /// Where counters in files, and locks of others, are.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Counter::None => None,
            Counter::File(directory) | Counter::Tpm(directory) => Some(directory),
        }
    }

    fn user_directory() -> Result<PathBuf> {
        let variable = |name: &str| std::env::var_os(name);
        let (own, state, home) = (variable("COUNTERFOIL_STATE_DIR"), variable("XDG_STATE_HOME"), variable("HOME"));
        let environment = StateEnvironment {
            counterfoil_state_dir: own.as_deref(),
            xdg_state_home: state.as_deref(),
            home: home.as_deref(),
        };
        environment.directory().ok_or_else(|| {
            Error::new(Kind::Misuse, "nothing says where the counter is kept").advise("set COUNTERFOIL_STATE_DIR")
        })
    }
}

/// Told of what is not an error and should still be known.
pub(crate) type OnNote = Arc<dyn Fn(&str) + Send + Sync>;

/// How a database is made or opened. What matters for one of the two only says so.
#[derive(Clone)]
pub struct Options {
    pub(crate) place: Place,
    pub(crate) key: Option<Arc<Key>>,
    pub(crate) counter: Option<Counter>,
    pub(crate) tpm: Tpm,
    pub(crate) require_counter: bool,
    /// Of a copy nobody asks whether it is the newest image.
    pub(crate) is_copy: bool,
    pub(crate) read_only: bool,
    pub(crate) as_of_opening: bool,
    pub(crate) lock_timeout: Duration,
    pub(crate) snapshot_max_age: Duration,
    pub(crate) cache_bytes: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) ram: Option<u64>,
    pub(crate) spill_folder: Option<PathBuf>,
    pub(crate) reorganize: bool,
    pub(crate) on_note: Option<OnNote>,
    pub(crate) page_bytes: u32,
    pub(crate) size_limit: Option<u64>,
    pub(crate) cipher: Cipher,
    pub(crate) recovery: bool,
    pub(crate) erase: bool,
}

const CACHE_BYTES_DEFAULT: usize = 64 << 20;
/// How long a statement waits for another writer.
pub const LOCK_TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);

/// How long a reader's snapshot holds up the reuse of space.
const SNAPSHOT_AGE_DEFAULT: Duration = Duration::from_secs(300);

impl Options {
    /// The usual options for a database in a file.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self::at(Place::File(path.into()))
    }

    /// The usual options for a database in memory.
    #[must_use]
    pub fn memory() -> Self {
        Self::at(Place::Memory)
    }

    /// The usual options for a database that takes a whole block device.
    pub fn block_device(path: impl Into<PathBuf>) -> Self {
        Self::at(Place::Block(path.into()))
    }

    /// The usual options.
    #[must_use]
    pub fn at(place: Place) -> Self {
        Self {
            place,
            key: None,
            counter: None,
            tpm: Tpm::usual(),
            require_counter: false,
            is_copy: false,
            read_only: false,
            as_of_opening: false,
            lock_timeout: LOCK_TIMEOUT_DEFAULT,
            snapshot_max_age: SNAPSHOT_AGE_DEFAULT,
            cache_bytes: CACHE_BYTES_DEFAULT,
            memory_bytes: counterfoil_sql::EngineOptions::default().memory_bytes,
            ram: None,
            spill_folder: Some(std::env::temp_dir()),
            reorganize: true,
            on_note: None,
            page_bytes: 4096,
            size_limit: None,
            cipher: Cipher::Aes256GcmSiv,
            recovery: false,
            erase: false,
        }
    }

    /// What opens it.
    #[must_use]
    pub fn key(self, key: Key) -> Self {
        Self { key: Some(Arc::new(key)), ..self }
    }

    /// Making: the counter it is bound to. Opening: where a file counter, or the lock of another, is kept. Without this
    /// no directory is touched: a new database has no counter, and one bound to a file counter is read with a note and
    /// not written.
    #[must_use]
    pub fn counter(self, counter: Counter) -> Self {
        Self { counter: Some(counter), ..self }
    }

    /// Where the TPM is, for databases with a counter in it; else [`Tpm::usual`].
    #[must_use]
    pub fn tpm(self, tpm: Tpm) -> Self {
        Self { tpm, ..self }
    }

    /// Refuse where the counter is absent.
    #[must_use]
    pub fn require_counter(self, require_counter: bool) -> Self {
        Self { require_counter, ..self }
    }

    /// Refuse to write.
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Read everything as of the moment of opening, whatever others commit meanwhile. It ends when this process writes.
    #[must_use]
    pub fn as_of_opening(self, as_of_opening: bool) -> Self {
        Self { as_of_opening, ..self }
    }

    /// How long a statement waits for another writer.
    #[must_use]
    pub fn lock_timeout(self, lock_timeout: Duration) -> Self {
        Self { lock_timeout, ..self }
    }

    /// How long the snapshot of a reader in another process holds up the reuse of space, from when a statement last began with
    /// it: five minutes unless told otherwise. What is older may end with [`Kind::SnapshotTooOld`].
    #[must_use]
    pub fn snapshot_max_age(self, snapshot_max_age: Duration) -> Self {
        Self { snapshot_max_age, ..self }
    }

    /// Whether tables are tidied in the background when nobody writes: segments of which much is gone are renewed, and index runs merged,
    /// in small commits that give way to others. So it is unless told otherwise; without it commits do as much by and by.
    #[must_use]
    pub fn reorganize(self, reorganize: bool) -> Self {
        Self { reorganize, ..self }
    }

    /// Bytes of opened pages that are kept.
    #[must_use]
    pub fn cache_bytes(self, cache_bytes: usize) -> Self {
        Self { cache_bytes, ..self }
    }

    /// Bytes of working memory that all queries together may take.
    #[must_use]
    pub fn memory_bytes(self, memory_bytes: usize) -> Self {
        Self { memory_bytes, ..self }
    }

    /// Bytes of memory for all that grows with what the database holds: opened pages, what is kept of indexes, what queries work with.
    /// It takes the place of [`Options::cache_bytes`] and [`Options::memory_bytes`]. The least is 64 KiB; with less than 64 MiB queries
    /// of columns, along foreign keys, grouped and in order, are answered all the same, and others may end with
    /// [`Kind::Full`] and a text that says how much they need. `SET ram = '64K'` bounds one connection further.
    ///
    /// What the program takes however little is asked comes on top, and so do the changes of a transaction until it ends.
    #[must_use]
    pub fn ram(self, bytes: u64) -> Self {
        Self { ram: Some(bytes), ..self }
    }

    /// Where queries put what does not fit into their memory: sealed under a key that ends with the process, in files
    /// without a name. The system's folder for temporary files unless told otherwise; without one such queries end in
    /// an error.
    #[must_use]
    pub fn spill_folder(self, folder: Option<PathBuf>) -> Self {
        Self { spill_folder: folder, ..self }
    }

    /// Who is told of what is not an error and should still be known: `freshness not checked` and its like.
    #[must_use]
    pub fn on_note(self, on_note: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { on_note: Some(Arc::new(on_note)), ..self }
    }

    /// Making: bytes in a page, a power of two from 512 to 65536.
    #[must_use]
    pub fn page_bytes(self, page_bytes: u32) -> Self {
        Self { page_bytes, ..self }
    }

    /// Making: how large it may become.
    #[must_use]
    pub fn size_limit(self, bytes: u64) -> Self {
        Self { size_limit: Some(bytes), ..self }
    }

    /// Making: the page cipher.
    #[must_use]
    pub fn cipher(self, cipher: Cipher) -> Self {
        Self { cipher, ..self }
    }

    /// Making: whether a recovery code is made too ([`crate::Database::recovery_code`]).
    #[must_use]
    pub fn recovery(self, recovery: bool) -> Self {
        Self { recovery, ..self }
    }

    /// Making: take a block device even if something is on it, which is lost.
    #[must_use]
    pub fn danger_erase(self, erase: bool) -> Self {
        Self { erase, ..self }
    }

    /// What [`Options::ram`] says.
    pub(crate) fn bounds(&self) -> Result<Option<Ram>> {
        Ok(self.ram.map(Ram::of).transpose()?)
    }

    /// Bytes of opened pages that are kept.
    pub(crate) fn page_bytes_kept(&self) -> Result<usize> {
        Ok(self.bounds()?.map_or(self.cache_bytes, Ram::pages))
    }

    pub(crate) fn note(&self, note: &str) {
        if let Some(on_note) = &self.on_note {
            on_note(note);
        }
    }
}
