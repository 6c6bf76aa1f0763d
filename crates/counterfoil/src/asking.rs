//! Questions about published tables to servers that nobody trusts: rows are the owner's, all of them, and of a known age, or there
//! are none.
//!
//! ```text
//! SQL -> question -> files of a server, or a folder -> checked by `counterfoil_reader` -> rows and verdict
//!                                                   -> what was seen, in the state directory
//! ```
//! No database takes part in it. What is said here for programs, `counterfoil ask` says for people.

mod batch;
mod fetching;
mod remembered;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use counterfoil_ask::{Asked, AskedJoin, Table};
use counterfoil_mirror::site::Fetch;
use counterfoil_proof::{Owner, Refusal};
use counterfoil_reader as reader;
use counterfoil_reader::{KEPT_BYTES_MAX, Kept, KeptJoin, Memory, Terms};
use datafusion::arrow::array::RecordBatch;

use crate::error::{Error, Kind, Result};
use crate::options::Counter;
use crate::publishing::{Authorities, Patience};
use remembered::Remembered;

pub use batch::batch;
pub use counterfoil_reader::Verdict;
pub use fetching::fetch;

/// How wrong two clocks may be together, unless somebody says otherwise.
pub const CLOCK_ERROR: Duration = Duration::from_secs(10);

/// How long servers may take of a question in all, unless somebody says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(600);

const ANOTHER: &str = "do not use what it says; ask another server";
const CLOCKS: &str = "set the clock of this machine if it is wrong; --clock-error says how wrong both may be together";
const AGAIN: &str = "try again, or ask another server";
const STANDING: &str = "if its owner publishes that often, ask a server that answers questions (counterfoil mirror serve), or ask for less";
const LONGER: &str = "ask for less, ask another server, or wait longer (--timeout)";

/// Whose tables are asked for, where, and on which terms.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Asking {
    /// Whose tables they are.
    pub owner: Owner,
    /// Addresses or folders: one, or two for two tables that are joined.
    pub servers: Vec<String>,
    /// Who vouches for servers at `https://`.
    pub authorities: Authorities,
    /// How old an answer may be at most.
    pub max_age: Option<Duration>,
    /// How wrong the owner's clock and this machine's may be together.
    pub clock_error: Duration,
    /// How long servers may take of a question, all that is fetched for it together.
    pub timeout: Duration,
    /// Whether the smallest proof is asked for: 96 bytes a signature less, and ten times as long to check.
    pub compact: bool,
    /// The state directory, which remembers what was seen. Without one an older state would not be noticed.
    pub state: Option<PathBuf>,
    /// Set to end it: no more is fetched then.
    pub called_off: Arc<AtomicBool>,
}

/// Rows that are the owner's, and what is known of them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The rows.
    pub rows: RecordBatch,
    /// How much there is to them.
    pub verdict: Verdict,
    /// How it was answered, in words for people.
    pub plan: String,
    /// All that it takes to check it again ([`check`]).
    pub kept: Vec<u8>,
    /// Whether it is remembered what was seen.
    pub is_remembered: bool,
}

/// Rows of an answer that was kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The rows.
    pub rows: RecordBatch,
    /// How much there was to them when it was asked.
    pub verdict: Verdict,
    /// When that was, as the file says: milliseconds since 1970.
    pub at: u64,
    /// What was asked.
    pub sql: String,
}

impl Asking {
    /// About tables of this owner (`foilpub1...`), on the usual terms, and with the state directory of this user.
    ///
    /// # Errors
    /// [`Kind::Misuse`]: no owner is called so.
    pub fn of(owner: &str) -> Result<Self> {
        let state = match Counter::user_default() {
            Ok(Counter::File(folder)) => Some(folder),
            _ => None,
        };
        Ok(Self {
            owner: owner_of(owner)?,
            servers: Vec::new(),
            authorities: Authorities::default(),
            max_age: None,
            clock_error: CLOCK_ERROR,
            timeout: TIMEOUT,
            compact: false,
            state,
            called_off: Arc::default(),
        })
    }

    /// Asks one SELECT of one table, or of two that are joined.
    ///
    /// # Errors
    /// [`Kind::NotVerified`]: it is not to be trusted, and [`Error::verdict`] says why in a word; [`Kind::Network`],
    /// [`Kind::NotFound`]: nobody answers, or no such table is there; [`Kind::Sql`], [`Kind::NotSupported`], [`Kind::Misuse`]; those of
    /// the state directory.
    pub fn ask(&self, sql: &str) -> Result<Answer> {
        let place = self.servers.join(", ");
        let told = |error| told(error, &place);
        let joined = AskedJoin::tables_of(sql).map_err(|error| told(error.into()))?;
        let tables = match joined {
            Some(tables) => tables.to_vec(),
            None => vec![Asked::table_of(sql).map_err(|error| told(error.into()))?],
        };
        let state = self.state.as_deref();
        let remembered: Vec<_> = tables.iter().map(|table| Remembered::of(state, &self.owner, table)).collect();
        let before = remembered.iter().map(Remembered::read).collect::<Result<Vec<_>>>()?;
        let mut memories = before.clone();
        let patience = Arc::new(Patience::of(self.timeout));
        let answer = self.read(sql, &mut memories, &patience)?;
        // What was seen is remembered even if the rows are refused: it was the owner's.
        for ((remembered, before), memory) in remembered.iter().zip(&before).zip(&memories) {
            if let Some(memory) = memory.as_ref().filter(|memory| before.as_ref() != Some(memory)) {
                remembered.write(memory)?;
            }
        }
        let (table, verdict, plan, kept) = answer.map_err(|error| match error {
            reader::Error::Unreachable(what) if patience.left().is_err() => {
                Error::new(Kind::Network, what).at(&place).advise(LONGER)
            }
            error => told(error),
        })?;
        let is_remembered = remembered.iter().all(Remembered::is_somewhere);
        Ok(Answer { rows: batch(&table)?, verdict, plan, kept, is_remembered })
    }

    /// Asks; once more if a server was brought up to date meanwhile, so that a page of before is gone.
    fn read(
        &self,
        sql: &str,
        memories: &mut [Option<Memory>],
        patience: &Arc<Patience>,
    ) -> Result<Result<Read, reader::Error>> {
        // Two tables of one place are fetched over two connections: each counts what it brings by itself, and time is one.
        let (first, second) = (self.servers.first(), self.servers.last());
        let (mut first, mut second) = (self.server(first, patience)?, self.server(second, patience)?);
        let terms = self.terms();
        let mut once = || match memories {
            [memory] => reader::read(&mut *first, sql, &terms, memory)
                .map(|reading| (reading.table, reading.verdict, reading.plan, reading.kept.to_bytes())),
            [one, other] => reader::read_join(&mut *first, &mut *second, sql, &terms, [one, other])
                .map(|reading| (reading.table, reading.verdict, reading.plan, reading.kept.to_bytes())),
            _ => Err(counterfoil_ask::Error::NotSupported("a question about so many tables".into()).into()),
        };
        Ok(match once() {
            Err(reader::Error::Withheld(_)) => once(),
            read => read,
        })
    }

    fn server(&self, server: Option<&String>, patience: &Arc<Patience>) -> Result<Box<dyn Fetch + Send>> {
        let wanted = || Error::new(Kind::Misuse, "a server is wanted").advise("name its address, or a folder");
        fetch(server.ok_or_else(wanted)?, &self.authorities, patience, &self.called_off)
    }

    fn terms(&self) -> Terms {
        Terms {
            owner: self.owner,
            now: milliseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
            clock_error: milliseconds(self.clock_error),
            max_age: self.max_age.map_or(u64::MAX, milliseconds),
            hints: !self.compact,
        }
    }
}

/// What came of a question.
type Read = (Table, Verdict, String, Vec<u8>);

/// Looks at a kept answer again, without a network.
///
/// # Errors
/// [`Kind::NotVerified`]: it is not to be trusted; [`Kind::Input`]: no kept answer is in the file; what the system says about it.
pub fn check(path: &Path, owner: &str, clock_error: Duration) -> Result<Checked> {
    let owner = owner_of(owner)?;
    let place = path.display().to_string();
    let told = |error| told(error, &place);
    let (bytes, clock_error) = (read_kept(path, &place)?, milliseconds(clock_error));
    let (at, sql, checked) = if KeptJoin::are(&bytes) {
        let kept = KeptJoin::from_bytes(&bytes).map_err(told)?;
        (kept.at(), kept.sql().to_owned(), kept.check(&owner, clock_error))
    } else {
        let kept = Kept::from_bytes(&bytes).map_err(told)?;
        (kept.at(), kept.sql().to_owned(), kept.check(&owner, clock_error))
    };
    let (table, verdict) = checked.map_err(told)?;
    Ok(Checked { rows: batch(&table)?, verdict, at, sql })
}

fn read_kept(path: &Path, place: &str) -> Result<Vec<u8>> {
    let failed = |error: io::Error| Error::host("read the file", place, &error);
    if fs::metadata(path).map_err(failed)?.len() > KEPT_BYTES_MAX as u64 {
        return Err(Error::new(Kind::Misuse, "a kept answer of more than a gigabyte").at(place));
    }
    fs::read(path).map_err(failed)
}

/// Refuses a name for an answer that is to be kept where something is already: better known before it is asked.
///
/// # Errors
/// [`Kind::Misuse`].
pub fn refuse_to_overwrite(path: &Path) -> Result<()> {
    let there = path.symlink_metadata().is_ok();
    let refused = || Error::new(Kind::Misuse, "there is something of this name already").at(path.display());
    if there { Err(refused()) } else { Ok(()) }
}

impl Answer {
    /// Keeps it in a new file, for this user alone, and sees it to the disk.
    ///
    /// # Errors
    /// What the system says.
    pub fn save(&self, path: &Path) -> Result<()> {
        let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).and_then(|mut file| {
            file.write_all(&self.kept)?;
            file.sync_all()
        });
        written.map_err(|error| Error::host("write the file", path.display(), &error))
    }
}

fn owner_of(owner: &str) -> Result<Owner> {
    owner.parse().map_err(|error: counterfoil_proof::NoOwner| Error::new(Kind::Misuse, error.to_string()))
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A reader's error as the database tells it, at the server or file that it is about.
#[must_use]
pub fn told(error: reader::Error, place: &str) -> Error {
    let text = error.to_string();
    let (error, is_moving) = match error {
        reader::Error::Moving(last) => (*last, true),
        error => (error, false),
    };
    let (kind, advice) = match &error {
        reader::Error::Sql(counterfoil_ask::Error::NotSupported(_)) => {
            return Error::new(Kind::NotSupported, error.to_string()).at(place);
        }
        reader::Error::Sql(_) => return Error::new(Kind::Sql, error.to_string()),
        reader::Error::Unreachable(what) if what == fetching::CALLED_OFF => {
            return Error::new(Kind::Interrupted, what.clone());
        }
        reader::Error::Unreachable(_) | reader::Error::Withheld(_) => (Kind::Network, AGAIN),
        reader::Error::NoTable(_) => (Kind::NotFound, "check the address"),
        reader::Error::Refused(Refusal::Clock(_)) => (Kind::NotVerified, CLOCKS),
        reader::Error::Damaged(..) | reader::Error::Refused(_) => (Kind::NotVerified, ANOTHER),
        reader::Error::NotKept(_) => (Kind::Input, "check the file"),
        _ => (Kind::Bug, "please report it"),
    };
    let advice = if is_moving { STANDING } else { advice };
    Error::new(kind, text).at(place).advise(advice).with_verdict(error.word())
}
