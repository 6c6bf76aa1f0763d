//! One user of a database: statements, transactions, prepared statements.

use std::io::BufRead;
use std::sync::Arc;

use counterfoil_log::{Snapshot, View, record_space};
use counterfoil_sql::{self as sql, BroughtBack, Lost, Rights, Session};
pub use counterfoil_sql::{Description, Interrupt, TransactionState, Value};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};

use crate::database::Inner;
use crate::error::{Error, Kind, Result};
use crate::relation::ColumnInfo;

/// What a statement answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Rows, to be read batch by batch.
    Rows(Rows),
    /// How many rows a statement changed, and what sort of statement it was: `INSERT`, `UPDATE`, `DELETE`, `COPY`.
    Count {
        /// The sort.
        tag: &'static str,
        /// Rows.
        rows: u64,
    },
    /// Done, with nothing to count.
    Done(&'static str),
    /// The text of `COPY ... TO STDOUT`, piece by piece.
    CopyOut(CopyOut),
}

/// The text of `COPY ... TO STDOUT`, piece by piece.
pub struct CopyOut {
    text: sql::CopyOut,
    inner: Arc<Inner>,
}

impl CopyOut {
    /// How many columns a row has.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.text.columns()
    }

    /// How many rows the pieces had so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.text.rows()
    }

    /// Where the rows of the last piece end, in bytes from its begin; the names of a header are one.
    #[must_use]
    pub fn row_ends(&self) -> &[usize] {
        self.text.row_ends()
    }
}

impl std::fmt::Debug for CopyOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text.fmt(f)
    }
}

impl Iterator for CopyOut {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.text.next().map(|piece| piece.map_err(|error| full(&self.inner, error)))
    }
}

/// The rows of a query, batch by batch, as Arrow columns. Dropping it ends the query.
pub struct Rows {
    rows: sql::Rows,
    inner: Arc<Inner>,
}

/// One user of a database. Used by one thread at a time; any number of them read beside each other, and one at a time
/// writes.
pub struct Connection {
    session: Session,
    inner: Arc<Inner>,
}

impl Connection {
    pub(crate) fn new(inner: Arc<Inner>) -> Result<Self> {
        Self::with_rights(inner, Rights::ALL)
    }

    /// One of the database itself, which may name tables that are hidden from its users.
    #[cfg(feature = "publish")]
    pub(crate) fn own(inner: Arc<Inner>) -> Result<Self> {
        let session = Session::own(inner.engine.clone())?;
        Ok(Self { session, inner })
    }

    pub(crate) fn with_rights(inner: Arc<Inner>, rights: Rights) -> Result<Self> {
        let session = Session::with_rights(inner.engine.clone(), rights)?;
        let mut connection = Self { session, inner };
        let timeout = connection.inner.store.volume().options.lock_timeout;
        if timeout != crate::options::LOCK_TIMEOUT_DEFAULT {
            connection.begin_with("lock_timeout", &format!("{}ms", timeout.as_millis()))?;
        }
        Ok(connection)
    }

    /// Runs statements and answers what each of them answered. Outside a transaction each is one of its own; the first
    /// error ends it. `$1`, `$2` stand for `parameters` in order.
    ///
    /// # Errors
    /// The first statement's that failed.
    pub fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Outcome>> {
        self.inner.store.process().require()?;
        let outcomes = self.session.run(sql, parameters).map_err(|error| full(&self.inner, error))?;
        Ok(outcomes.into_iter().map(|outcome| self.outcome(outcome)).collect())
    }

    fn outcome(&self, outcome: sql::Outcome) -> Outcome {
        match outcome {
            sql::Outcome::Rows(rows) => Outcome::Rows(Rows { rows, inner: self.inner.clone() }),
            sql::Outcome::Count { tag, rows } => Outcome::Count { tag, rows },
            sql::Outcome::Done(tag) => Outcome::Done(tag),
            sql::Outcome::CopyOut(text) => Outcome::CopyOut(CopyOut { text, inner: self.inner.clone() }),
            _ => Outcome::Done(""),
        }
    }

    /// What the statements run last have to say beside their answers, such as that points were kept apart.
    pub fn take_notices(&mut self) -> Vec<String> {
        self.session.take_notices()
    }

    /// What is known of the rows of published tables that the statements run last have seen: of a result that is still being read,
    /// of what was read so far. One for each table.
    #[must_use]
    pub fn verdicts(&self) -> Vec<sql::Verified> {
        self.session.verdicts()
    }

    /// Runs statements and answers how many rows they changed together.
    ///
    /// # Errors
    /// As [`Connection::run`].
    pub fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<u64> {
        let mut changed = 0;
        for outcome in self.run(sql, parameters)? {
            match outcome {
                Outcome::Count { rows, .. } => changed += rows,
                // Rows that nobody wants are read all the same: an error in the last of them is an error.
                Outcome::Rows(mut rows) => rows.try_for_each(|batch| batch.map(drop))?,
                Outcome::CopyOut(mut text) => text.try_for_each(|piece| piece.map(drop))?,
                Outcome::Done(_) => {}
            }
        }
        Ok(changed)
    }

    /// Runs `COPY ... FROM STDIN` with the text that `input` gives, and answers how many rows it had.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for any other statement, [`Kind::Input`] naming the line that is no row; nothing stays then.
    pub fn copy_in(&mut self, sql: &str, input: &mut dyn BufRead) -> Result<u64> {
        self.inner.store.process().require()?;
        match self.session.copy_in(sql, input).map_err(|error| full(&self.inner, error))? {
            sql::Outcome::Count { rows, .. } => Ok(rows),
            _ => Ok(0),
        }
    }

    /// Runs one query.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for a statement that answers no rows, or several statements; otherwise the query's.
    pub fn query(&mut self, sql: &str, parameters: &[Value]) -> Result<Rows> {
        self.inner.store.process().require()?;
        let outcome = self.session.run_one(sql, parameters).map_err(|error| full(&self.inner, error))?;
        match self.outcome(outcome) {
            Outcome::Rows(rows) => Ok(rows),
            _ => Err(Error::new(Kind::Misuse, "this statement answers no rows").advise("use execute")),
        }
    }

    /// The rows of a question.
    pub(crate) fn ask(&mut self, question: &sql::Question) -> Result<Rows> {
        self.inner.store.process().require()?;
        let rows = self.session.ask_question(question).map_err(|error| full(&self.inner, error))?;
        Ok(Rows { rows, inner: self.inner.clone() })
    }

    /// Parses a statement once, to be run with parameters many times.
    ///
    /// # Errors
    /// [`Kind::Sql`].
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared<'_>> {
        self.inner.store.process().require()?;
        let parameters = self.session.prepare(sql).map_err(|error| full(&self.inner, error))?;
        Ok(Prepared { connection: self, sql: sql.to_owned(), parameters })
    }

    /// What a statement wants and answers, where its parameters are of these types, as far as they are known. Nothing runs.
    ///
    /// # Errors
    /// [`Kind::Sql`], [`Kind::NotFound`] and [`Kind::NotSupported`] as the statement would answer.
    pub fn describe(&mut self, sql: &str, given: &[Option<DataType>]) -> Result<Description> {
        self.inner.store.process().require()?;
        self.session.description(sql, given).map_err(|error| full(&self.inner, error))
    }

    /// The columns of a cursor that DECLARE made.
    ///
    /// # Errors
    /// [`Kind::NotFound`].
    pub fn cursor_columns(&self, name: &str) -> Result<SchemaRef> {
        Ok(self.session.cursor_columns(name)?)
    }

    /// Begins a transaction. Dropped without [`Transaction::commit`], it is rolled back.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if there is one.
    pub fn transaction(&mut self) -> Result<Transaction<'_>> {
        self.execute("BEGIN", &[])?;
        Ok(Transaction { connection: self, ended: false })
    }

    /// Whether a transaction is open.
    #[must_use]
    pub fn transaction_state(&self) -> TransactionState {
        self.session.transaction_state()
    }

    /// From now on columns of results that a statement gives no name to are called as PostgreSQL calls them: `count` and not
    /// `count(*)`.
    pub fn name_as_postgresql(&mut self) {
        self.session.name_as_postgresql();
    }

    /// Gives a setting the value with which the connection begins, and to which RESET goes back: for what a program is told before
    /// its first statement.
    ///
    /// # Errors
    /// Those of SET.
    pub fn begin_with(&mut self, setting: &str, value: &str) -> Result<()> {
        Ok(self.session.begin_with(setting, value)?)
    }

    /// The value of a setting of the connection, as SHOW answers it; none where there is no such setting.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<String> {
        self.session.value_of(name)
    }

    /// A transaction that is open takes nothing but ROLLBACK from now on: something that belongs to it went wrong before a statement
    /// could run. Without one nothing happens.
    pub fn fail_transaction(&mut self) {
        self.session.fail_transaction();
    }

    /// A handle with which another thread interrupts what this connection is doing.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.session.interrupt()
    }

    /// Has `is_called_off` asked ten times a second while a query runs, on the thread that waits for it; true ends it with
    /// [`Kind::Interrupted`]. For callers whose signals reach one thread alone, the one that waits.
    pub fn ask_while_waiting(&mut self, is_called_off: impl Fn() -> bool + Send + Sync + 'static) {
        self.session.ask_while_waiting(is_called_off);
    }

    /// Keeps bytes under a name, as [`crate::Records::put`] does, as a statement: part of the transaction that is open.
    ///
    /// # Errors
    /// [`Kind::Input`] for names and values that are too long; those of writing.
    pub fn put_record(&mut self, name: &str, value: &[u8]) -> Result<()> {
        self.inner.store.process().require()?;
        crate::records::check(name, value)?;
        self.session.put_record(name.as_bytes(), value).map_err(|error| full(&self.inner, error))
    }

    /// Remembers that shares of the key were made.
    pub(crate) fn note_split(&mut self, catalogue_secret: &[u8; 32]) -> Result<()> {
        self.session.note_split(catalogue_secret).map_err(|error| full(&self.inner, error))
    }

    /// Makes tables again that are lost, in a database without them.
    pub(crate) fn bring_back(&mut self, lost: Vec<Lost>, catalogue_secret: &[u8; 32]) -> Result<Vec<BroughtBack>> {
        self.session.bring_back(lost, catalogue_secret).map_err(|error| full(&self.inner, error))
    }

    /// Deletes records, as a statement: part of the transaction that is open. Answers how many of them there were.
    ///
    /// # Errors
    /// Those of writing.
    pub fn delete_records(&mut self, names: &[&str]) -> Result<usize> {
        // Without one of them there is nothing to change, and no reason to wait for the writer.
        let view = self.view()?;
        if names.iter().all(|name| view.record(record_space::USER, name.as_bytes()).is_none()) {
            return Ok(0);
        }
        drop(view);
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        self.session.delete_records(&names).map_err(|error| full(&self.inner, error))
    }

    /// The bytes under a name, as the next statement would see them: with what the open transaction put there.
    ///
    /// # Errors
    /// Those of reading.
    pub fn record(&mut self, name: &str) -> Result<Option<Arc<[u8]>>> {
        Ok(self.view()?.record(record_space::USER, name.as_bytes()))
    }

    /// The names of records that begin with `prefix`, in order, as the next statement would see them.
    ///
    /// # Errors
    /// Those of reading.
    pub fn record_names(&mut self, prefix: &str) -> Result<Vec<String>> {
        let records = self.view()?.records(record_space::USER, prefix.as_bytes());
        Ok(records.into_iter().map(|(name, _)| String::from_utf8_lossy(&name).into_owned()).collect())
    }

    /// Adds rows to a table as one statement: `columns` says which columns the batches have, in order; the others get
    /// their defaults.
    ///
    /// # Errors
    /// [`Kind::NotFound`], [`Kind::Constraint`], and whatever the batches answer; then none of the rows is there.
    pub fn load<E: From<Error>>(
        &mut self,
        table: &str,
        columns: &[String],
        batches: &mut dyn Iterator<Item = Result<RecordBatch, E>>,
    ) -> Result<u64, E> {
        self.inner.store.process().require()?;
        let mut failed = None;
        let mut passed_on = batches.map(|batch| {
            batch.map_err(|error| {
                // Any error will do to end the statement: the one to tell is this.
                failed = Some(error);
                sql::Error::Interrupted
            })
        });
        let loaded = self.session.load(table, columns, &mut passed_on);
        match (loaded, failed) {
            (_, Some(error)) => Err(error),
            (Ok(rows), None) => Ok(rows),
            (Err(error), None) => Err(full(&self.inner, error).into()),
        }
    }

    /// Stores rows of series tables as one statement: what became of each.
    pub(crate) fn append(&mut self, points: &[sql::NewPoints<'_>]) -> Result<Vec<sql::Appended>> {
        self.inner.store.process().require()?;
        self.session.append_points(points).map_err(|error| full(&self.inner, error))
    }

    /// A writer of points for a series table.
    pub(crate) fn point_writer(&mut self, table: &str) -> Result<sql::PointWriter> {
        self.inner.store.process().require()?;
        self.session.point_writer(table).map_err(|error| full(&self.inner, error))
    }

    /// Stores what waits in a writer, as one statement.
    pub(crate) fn write_points(&mut self, points: &mut sql::PointWriter) -> Result<sql::Written> {
        self.inner.store.process().require()?;
        self.session.write_points(points).map_err(|error| full(&self.inner, error))
    }

    /// What the next statement sees.
    pub(crate) fn view(&mut self) -> Result<Snapshot> {
        self.inner.store.process().require()?;
        self.session.snapshot().map_err(|error| full(&self.inner, error))
    }

    /// The columns of a table, as the next statement would see it; none if there is no such table.
    ///
    /// # Errors
    /// Those of reading.
    pub fn columns(&mut self, table: &str) -> Result<Option<Vec<ColumnInfo>>> {
        self.inner.store.process().require()?;
        let table = self.session.table(table).map_err(|error| full(&self.inner, error))?;
        Ok(table.map(|table| crate::schema::columns(&table)))
    }
}

/// The error in full, where the SQL floor could only say it in short.
pub(crate) fn full(inner: &Inner, error: sql::Error) -> Error {
    inner.store.take_refusal().unwrap_or_else(|| inner.store.in_hindsight(error.into()))
}

impl Rows {
    /// What the statement is called that changed these rows, `INSERT` for one, where it is RETURNING that answers them.
    #[must_use]
    pub fn change(&self) -> Option<&'static str> {
        self.rows.change()
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        self.rows.schema()
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.inner.store.process().require() {
            return Some(Err(error));
        }
        Some(self.rows.next()?.map_err(|error| full(&self.inner, error)))
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.rows.fmt(f)
    }
}

/// A statement to be run many times.
pub struct Prepared<'a> {
    connection: &'a mut Connection,
    sql: String,
    parameters: usize,
}

impl Prepared<'_> {
    /// How many parameters it wants.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        self.parameters
    }

    /// Runs it and answers how many rows it changed.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn execute(&mut self, parameters: &[Value]) -> Result<u64> {
        self.connection.execute(&self.sql, parameters)
    }

    /// Runs it and answers its rows.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub fn query(&mut self, parameters: &[Value]) -> Result<Rows> {
        self.connection.query(&self.sql, parameters)
    }
}

/// A transaction: all of it or nothing.
pub struct Transaction<'a> {
    connection: &'a mut Connection,
    ended: bool,
}

impl Transaction<'_> {
    /// Makes it durable.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if a statement in it failed: then it is rolled back. [`Kind::Device`], [`Kind::Full`],
    /// [`Kind::CounterLost`].
    pub fn commit(mut self) -> Result<()> {
        self.ended = true;
        match self.connection.run("COMMIT", &[])?.pop() {
            Some(Outcome::Done("ROLLBACK")) => {
                Err(Error::new(Kind::Misuse, "a statement of the transaction failed, so all of it was rolled back"))
            }
            _ => Ok(()),
        }
    }

    /// Undoes it.
    ///
    /// # Errors
    /// None that anything could be done about.
    pub fn rollback(mut self) -> Result<()> {
        self.ended = true;
        self.connection.execute("ROLLBACK", &[]).map(drop)
    }
}

impl std::ops::Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl std::ops::DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // A transaction that cannot be rolled back ends with the connection.
            let _ = self.connection.execute("ROLLBACK", &[]);
        }
    }
}
