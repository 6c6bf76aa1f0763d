//! Published tables of others as tables of this database: their rows come from a server that nobody trusts, and only verified
//! ones are seen.
//!
//! ```text
//! CREATE TABLE quotes WITH (engine = 'published', server = 'http://example.com' or 'dir:PATH', owner = 'foilpub1...'
//!     [, "table" = 'NAME'] [, max_age = SECONDS or '1 hour'])
//! ```
//! This floor knows no network and no proof: the floor above gives the engine a [`Verifier`]. Here a scan becomes what is
//! wanted of it (columns, conditions, an order, a number of rows), and what is verified becomes batches.
//!
//! Invariants
//! 1. A scan gives its first row after the whole answer was verified; anything else ends it with an error and no row.
//! 2. All scans of one table in a statement are answered as of one period.
//! 3. Planning asks no server: a view over a published table is described without one.

mod asking;
mod define;
mod provider;
mod scan;
mod verdicts;

use std::sync::Arc;
use std::time::Duration;

use counterfoil_log::{View, Writer};
use counterfoil_relation::{Engine as Told, NewColumn, Table, Test};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

pub use asking::Asking;
pub(crate) use asking::{Turn, in_turns, stream};
pub(crate) use define::{forget, option_is_known};
pub(crate) use provider::{PublishedProvider, Statement};
pub(crate) use verdicts::Verdicts;
pub use verdicts::{Verdict, Verified};

use crate::error::{Error, Result};

/// What WITH (engine = ...) says for a published table.
pub(crate) const ENGINE: &str = "published";

const SERVER: &str = "server";
const OWNER: &str = "owner";
const TABLE: &str = "table";
/// How old an answer may be.
pub(crate) const MAX_AGE: &str = "max_age";

/// Whether a table's rows come from a server.
#[must_use]
pub fn is_published(table: &Table) -> bool {
    table.engine.as_ref().is_some_and(|engine| engine.name == ENGINE)
}

/// Where the rows of a table come from, and whose they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// `dir:PATH` or an address.
    pub server: String,
    /// The owner's name.
    pub owner: String,
    /// What the owner calls the table.
    pub table: String,
    /// How old an answer may be; none: the verdict says how old it is.
    pub max_age: Option<Duration>,
}

impl Source {
    /// What the options of the table `name` say.
    pub(crate) fn of(name: &str, told: &Told) -> Result<Self> {
        let text =
            |option: &str| told.options.iter().find(|(other, _)| other == option).map(|(_, value)| value.clone());
        let wanted = |option: &str, example: &str| {
            let missing = || Error::Sql(format!("a published table wants {option} = '{example}'"));
            text(option).filter(|value| !value.is_empty()).ok_or_else(missing)
        };
        Ok(Source {
            server: wanted(SERVER, "http://example.com")?,
            owner: wanted(OWNER, "foilpub1...")?,
            table: text(TABLE).unwrap_or_else(|| name.to_owned()),
            max_age: text(MAX_AGE).map(|age| define::age(&age)).transpose()?,
        })
    }

    /// Where the rows of a table come from; none if they are here.
    ///
    /// # Errors
    /// [`Error::Sql`]: options that a later version wrote.
    pub fn of_table(table: &Table) -> Result<Option<Self>> {
        let told = table.engine.as_ref().filter(|engine| engine.name == ENGINE);
        told.map(|told| Source::of(&table.name, told)).transpose()
    }

    /// The options that say it, canonical.
    fn options(&self, name: &str, told: &Told) -> Vec<(String, String)> {
        let age = told.options.iter().find(|(option, _)| option == MAX_AGE).map(|(_, age)| age.clone());
        let table = Some(self.table.clone()).filter(|table| table != name);
        let said =
            [(SERVER, Some(self.server.clone())), (OWNER, Some(self.owner.clone())), (TABLE, table), (MAX_AGE, age)];
        said.into_iter().filter_map(|(option, value)| Some((option.to_owned(), value?))).collect()
    }
}

/// A published table as its owner has it.
#[derive(Clone, Debug)]
pub struct Defined {
    /// Where it is, as it is kept: a folder by its whole path.
    pub source: Source,
    /// Its columns.
    pub columns: Vec<NewColumn>,
    /// What the verifier remembers of it.
    pub seen: Vec<u8>,
}

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortBy {
    /// The column's place in the table.
    pub column: usize,
    /// Whether the greatest value comes first.
    pub is_descending: bool,
    /// Whether NULLs come before all values.
    pub nulls_first: bool,
}

/// What a scan wants of a published table.
#[derive(Clone)]
pub struct Wanted {
    /// Places of columns, in the order in which they are shown.
    pub columns: Vec<usize>,
    /// What must be true of a row.
    pub tests: Vec<Test>,
    /// By what rows are sorted, if that comes of itself.
    pub sort: Vec<SortBy>,
    /// Rows at most.
    pub limit: Option<usize>,
    /// Rows of a batch at most.
    pub batch_rows: usize,
    /// What the batches are.
    pub schema: SchemaRef,
}

/// How it will be asked, as far as that is known without a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// In words for people.
    pub words: String,
    /// Whether rows come as they are to be sorted.
    pub is_sorted: bool,
}

/// Verified rows.
pub struct Answer {
    /// The rows.
    pub batches: Vec<RecordBatch>,
    /// What is known of them; none where nobody had to be asked, since no row can match.
    pub verdict: Option<Verdict>,
    /// What is to be said beside it.
    pub note: Option<String>,
}

/// A published table while one statement runs.
pub trait VerifiedTable: Send + Sync {
    /// How it will be asked. Asks nobody.
    ///
    /// # Errors
    /// Those of reading what is remembered of the table.
    fn plan(&self, wanted: &Wanted) -> Result<Planned>;

    /// Asks and verifies. `may_write`: whether what was seen may be written at once; otherwise [`Verifier::keep_seen`] does it
    /// later.
    ///
    /// # Errors
    /// [`Error::NotVerified`], [`Error::Network`], and what else speaks against it. Then no row is seen.
    fn ask(&self, wanted: &Wanted, may_write: bool, asking: &mut Asking) -> Result<Answer>;
}

/// Who asks servers that nobody trusts, and checks what they say.
pub trait Verifier: Send + Sync {
    /// A published table as its owner has it now.
    ///
    /// # Errors
    /// As [`VerifiedTable::ask`].
    fn define(&self, source: &Source, asking: &mut Asking) -> Result<Defined>;

    /// Keeps what was seen of a table that is made, as part of a transaction.
    ///
    /// # Errors
    /// Those of writing.
    fn remember(&self, writer: &mut Writer, defined: &Defined) -> Result<()>;

    /// Forgets what was seen of a table, as part of a transaction.
    ///
    /// # Errors
    /// Those of writing.
    fn forget(&self, writer: &mut Writer, source: &Source) -> Result<()>;

    /// The table, for one statement.
    ///
    /// # Errors
    /// [`Error::Sql`], [`Error::NotSupported`]: an owner or a server that is none.
    fn table(&self, source: &Source, table: &Arc<Table>) -> Result<Arc<dyn VerifiedTable>>;

    /// Writes what was seen and is not written yet; says what speaks against it.
    fn keep_seen(&self) -> Option<String>;

    /// A verdict in words for people.
    fn told(&self, verdict: &Verdict) -> String;
}

/// Refuses to change the rows of a published table.
pub(crate) fn refuse_change(table: &Table) -> Result<()> {
    refuse(table, "INSERT, UPDATE, DELETE and TRUNCATE")
}

/// Refuses what is not done with a published table.
pub(crate) fn refuse(table: &Table, what: &str) -> Result<()> {
    match is_published(table) {
        false => Ok(()),
        true => Err(Error::NotSupported(format!(
            "{what} of table {}, which is published: its columns and rows are its owner's",
            table.name
        ))),
    }
}

/// All published tables that a view sees.
pub(crate) fn all(engine: &crate::engine::Engine, view: &dyn View) -> Result<Vec<Arc<Table>>> {
    let mut tables = engine.relations.tables(view).map_err(Error::Relation)?;
    tables.retain(|table| is_published(table));
    Ok(tables)
}
