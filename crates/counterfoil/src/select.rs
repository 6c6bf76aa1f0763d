//! Questions put together by a program: without a text, and where an index names few rows without planning.

use counterfoil_sql::Question;
pub use counterfoil_sql::{ColumnName, Condition, column};

use crate::connection::{Connection, Rows};
use crate::error::Result;

/// A question being put together: what [`Connection::select`] begins.
///
/// ```
/// # fn main() -> counterfoil::Result<()> {
/// use counterfoil::{Database, Options, column};
///
/// let database = Database::create(Options::memory())?;
/// let mut connection = database.connect()?;
/// connection.execute("CREATE TABLE ward (id INTEGER PRIMARY KEY, name TEXT)", &[])?;
/// connection.execute(
///     "CREATE TABLE patient (id INTEGER PRIMARY KEY, ward INTEGER REFERENCES ward, name TEXT)",
///     &[],
/// )?;
/// connection.execute("INSERT INTO ward VALUES (1, 'North'), (2, 'South')", &[])?;
/// connection.execute("INSERT INTO patient VALUES (10, 2, 'Ada'), (11, 1, 'Ben'), (12, 2, 'Cy')", &[])?;
///
/// let rows = connection
///     .select("patient")
///     .join("ward", column("patient.ward").is_same_as(column("ward.id")))
///     .filter(column("ward.name").equals("South").and(column("patient.id").at_least(11)))
///     .columns(["patient.name"])
///     .rows()?;
/// let count: usize = rows.map(|batch| batch.map(|batch| batch.num_rows())).sum::<counterfoil::Result<usize>>()?;
/// assert_eq!(count, 1);
/// # Ok(())
/// # }
/// ```
#[must_use = "a question is asked by `rows`"]
pub struct Select<'c> {
    connection: &'c mut Connection,
    question: Question,
}

impl Connection {
    /// Begins a question to a table, for all its columns and rows. Names are as they were created, nothing is folded.
    pub fn select(&mut self, table: &str) -> Select<'_> {
        Select { connection: self, question: Question::of(table) }
    }
}

impl Select<'_> {
    fn with(self, change: impl FnOnce(Question) -> Question) -> Self {
        Select { question: change(self.question), ..self }
    }

    /// Joins a table where `on` is true. Along a foreign key no table is searched: a row knows which rows it references.
    pub fn join(self, table: &str, on: Condition) -> Self {
        self.with(|question| question.join(table, on))
    }

    /// Joins a table where `on` is true; rows that find none stay, with NULLs.
    pub fn left_join(self, table: &str, on: Condition) -> Self {
        self.with(|question| question.left_join(table, on))
    }

    /// Of these rows those of which `condition` is true.
    pub fn filter(self, condition: Condition) -> Self {
        self.with(|question| question.filter(condition))
    }

    /// These columns, behind those asked for before; without any all are shown.
    pub fn columns<'n>(self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.with(|question| question.columns(names))
    }

    /// So many rows at most, whichever come first.
    pub fn limit(self, rows: usize) -> Self {
        self.with(|question| question.limit(rows))
    }

    /// Asks.
    ///
    /// # Errors
    /// [`Kind::NotFound`](crate::Kind::NotFound) and [`Kind::Sql`](crate::Kind::Sql) for tables and columns that are not there, or
    /// are named by more than one table; those of reading.
    pub fn rows(self) -> Result<Rows> {
        self.connection.ask(&self.question)
    }
}

impl std::fmt::Debug for Select<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.question.fmt(f)
    }
}
