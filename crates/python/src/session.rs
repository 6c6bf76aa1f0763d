//! A connection as Python's layer uses it.

use std::sync::Arc;

use counterfoil::{Connection, Error, Interrupt, Outcome, TransactionState, Value};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::databases::Shared;
use crate::errors::{about, misuse, told};
use crate::files::{self, Source, Target};
use crate::held::Held;
use crate::placeholders::{Style, Text};
use crate::rows::Rows;
use crate::series::Series;
use crate::texts::Texts;
use crate::waiting::wait;
use crate::{many, stream, values};

/// A database, as messages name it.
pub type Place = Option<Arc<str>>;

/// A connection and what it is of.
pub struct Open {
    pub connection: Connection,
    pub shared: Arc<Shared>,
    /// The database, as messages name it; none in memory.
    pub place: Place,
}

/// A connection to a database. Any number of threads may hold it; one at a time is served.
#[pyclass(frozen, module = "counterfoil._counterfoil")]
pub struct Session {
    open: Held<Open>,
    interrupt: Interrupt,
    /// Held for a moment, and by nobody who attaches.
    notes: Arc<Mutex<Vec<String>>>,
    texts: Texts,
}

/// What a statement answered: its sort, how many rows it changed, and its rows.
type Answer = (&'static str, Option<u64>, Option<Rows>);

impl Session {
    /// Of a connection.
    pub fn new(shared: Arc<Shared>, connection: Connection, place: Place) -> Self {
        let (interrupt, notes) = (connection.interrupt(), shared.notes.clone());
        Self {
            open: Held::new("connection", Open { connection, shared, place }),
            interrupt,
            notes,
            texts: Texts::default(),
        }
    }

    fn with<T: Send>(&self, py: Python<'_>, body: impl FnOnce(&mut Open) -> Result<T, Error> + Send) -> PyResult<T> {
        wait(py, || {
            self.open.with(|open| {
                let result = body(open);
                open.shared.notes.lock().extend(open.connection.take_notices());
                result.map_err(|error| about(error, open.place.as_deref()))
            })
        })
    }
}

impl Session {
    /// A statement's text and its parameters.
    fn bound(
        &self,
        py: Python<'_>,
        sql: &str,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(Arc<Text>, Vec<Value>)> {
        let Some(given) = parameters else { return Ok((told(py, self.texts.read(sql, Style::None))?, Vec::new())) };
        if is_mapping(given)? {
            let text = told(py, self.texts.read(sql, Style::Names))?;
            let parameters = named(py, &text.names, given)?;
            return Ok((text, parameters));
        }
        let text = told(py, self.texts.read(sql, Style::Questions))?;
        let parameters = values::row(given)?;
        told(py, fits(&text, parameters.len()))?;
        Ok((text, parameters))
    }

    fn bound_many(&self, py: Python<'_>, sql: &str, rows: &Bound<'_, PyAny>) -> PyResult<(Arc<Text>, Vec<Vec<Value>>)> {
        let mut bound: Vec<Vec<Value>> = Vec::new();
        let mut text: Option<(Style, Arc<Text>)> = None;
        for row in rows.try_iter()? {
            let row = row?;
            let style = if is_mapping(&row)? { Style::Names } else { Style::Questions };
            if text.as_ref().is_none_or(|(before, _)| *before != style) {
                let first = text.is_none();
                text = Some((style, told(py, self.texts.read(sql, style))?));
                told(
                    py,
                    if first { Ok(()) } else { Err(misuse("some rows of parameters are mappings, and some are not")) },
                )?;
            }
            let Some((_, text)) = &text else { continue };
            if style == Style::Names {
                bound.push(named(py, &text.names, &row)?);
            } else {
                let row = values::row(&row)?;
                told(py, fits(text, row.len()))?;
                bound.push(row);
            }
        }
        let text = match text {
            Some((_, text)) => text,
            None => told(py, self.texts.read(sql, Style::Questions))?,
        };
        Ok((text, bound))
    }
}

#[pymethods]
impl Session {
    /// Runs statements. `parameters` is a sequence or a mapping; `begin` says that a statement that changes something
    /// begins a transaction if there is none.
    fn run(
        &self,
        py: Python<'_>,
        sql: &str,
        parameters: Option<&Bound<'_, PyAny>>,
        begin: bool,
    ) -> PyResult<Vec<Answer>> {
        let (text, parameters) = self.bound(py, sql, parameters)?;
        self.with(py, |open| {
            begun(&mut open.connection, begin && text.changes, |connection| {
                let outcomes = connection.run(&text.sql, &parameters)?;
                outcomes.into_iter().map(|outcome| answer(outcome, &open.place)).collect()
            })
        })
    }

    /// Runs one statement for each of many rows of parameters, all or none, and answers how many rows they changed.
    fn run_many(&self, py: Python<'_>, sql: &str, rows: &Bound<'_, PyAny>, begin: bool) -> PyResult<u64> {
        let (text, rows) = self.bound_many(py, sql, rows)?;
        self.with(py, move |open| {
            if rows.is_empty() {
                return Ok(0);
            }
            begun(&mut open.connection, begin && text.changes, |connection| many::run(connection, &text.sql, &rows))
        })
    }

    /// Adds the rows of anything that gives an Arrow stream or array to a table, as one statement.
    fn load(
        &self,
        py: Python<'_>,
        table: String,
        data: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
        begin: bool,
    ) -> PyResult<u64> {
        let reader = stream::reader(data)?;
        self.with(py, move |open| {
            begun(&mut open.connection, begin, |connection| stream::load(connection, &table, reader, columns))
        })
    }

    /// Runs `COPY ... FROM STDIN` with what a file of Python gives, and answers how many rows that were.
    fn copy_in(&self, py: Python<'_>, sql: &str, source: &Bound<'_, PyAny>, begin: bool) -> PyResult<u64> {
        let mut source = Source::new(source)?;
        self.with(py, |open| begun(&mut open.connection, begin, |connection| connection.copy_in(sql, &mut source)))
    }

    /// Runs `COPY ... TO STDOUT` into a file of Python, and answers how many rows that were.
    fn copy_out(&self, py: Python<'_>, sql: &str, target: &Bound<'_, PyAny>) -> PyResult<u64> {
        let target = Target::new(target)?;
        self.with(py, |open| files::copy_out(&mut open.connection, sql, &target))
    }

    /// Ends the transaction, if there is one: `COMMIT` or `ROLLBACK`.
    fn end(&self, py: Python<'_>, commit: bool) -> PyResult<()> {
        self.with(py, move |open| end(&mut open.connection, commit))
    }

    /// `idle`, `open` or `failed`.
    fn transaction_state(&self, py: Python<'_>) -> PyResult<&'static str> {
        let state = self.with(py, |open| Ok(open.connection.transaction_state()))?;
        Ok(match state {
            TransactionState::Idle => "idle",
            TransactionState::Open => "open",
            TransactionState::Failed => "failed",
        })
    }

    /// What the database has to say beside its answers.
    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock())
    }

    /// Ends the statement that is running, from another thread or a signal handler.
    fn interrupt(&self) {
        self.interrupt.raise();
    }

    /// Rolls back what is open, and closes the database if no other connection has it open. False if it was closed before.
    fn close(&self, py: Python<'_>) -> PyResult<bool> {
        wait(py, || {
            let Some(mut open) = self.open.take()? else { return Ok(false) };
            end(&mut open.connection, false)?;
            drop(open.connection);
            match Arc::into_inner(open.shared) {
                Some(shared) => shared.database.close().map(|()| true),
                None => Ok(true),
            }
        })
    }

    /// The bytes under a name, or None.
    fn record<'py>(&self, py: Python<'py>, name: String) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.with(py, move |open| open.connection.record(&name))?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    /// Keeps bytes under a name.
    fn put_record(&self, py: Python<'_>, name: String, value: Vec<u8>) -> PyResult<()> {
        self.with(py, move |open| open.connection.put_record(&name, &value))
    }

    /// Deletes records by name, and answers how many there were.
    fn delete_records(&self, py: Python<'_>, names: Vec<String>) -> PyResult<usize> {
        self.with(py, move |open| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            open.connection.delete_records(&names)
        })
    }

    /// Names of records that begin with `prefix`, in order.
    fn record_names(&self, py: Python<'_>, prefix: String) -> PyResult<Vec<String>> {
        self.with(py, move |open| open.connection.record_names(&prefix))
    }

    /// Texts of shares of the key: any `need` of the `of` are the key.
    fn split_key(&self, py: Python<'_>, need: u8, of: u8) -> PyResult<Vec<String>> {
        let shares = self.with(py, move |open| open.shared.database.split_key(need, of))?;
        // Python keeps texts as long as it likes: they are secrets in its hands from here on.
        Ok(shares.iter().map(|share| share.as_str().to_owned()).collect())
    }

    /// Remembers that shares were made and are kept.
    fn note_split(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |open| open.shared.database.note_split())
    }

    /// A series table.
    fn series(&self, py: Python<'_>, name: String) -> PyResult<Series> {
        let (series, place) =
            self.with(py, move |open| Ok((open.shared.database.series(&name)?, open.place.clone())))?;
        Ok(Series::new(series, place))
    }
}

/// Runs `body`, in a transaction that begins with it if that is wanted and none is open. One that begins with a statement
/// that fails ends with it: nothing else was in it.
fn begun<T>(
    connection: &mut Connection,
    begin: bool,
    body: impl FnOnce(&mut Connection) -> Result<T, Error>,
) -> Result<T, Error> {
    let begins = begin && connection.transaction_state() == TransactionState::Idle;
    if begins {
        connection.execute("BEGIN", &[])?;
    }
    let result = body(connection);
    if begins && result.is_err() {
        connection.execute("ROLLBACK", &[])?;
    }
    result
}

fn end(connection: &mut Connection, commit: bool) -> Result<(), Error> {
    match (connection.transaction_state(), commit) {
        (TransactionState::Idle, _) => Ok(()),
        (TransactionState::Open, true) => connection.execute("COMMIT", &[]).map(drop),
        (TransactionState::Failed, true) => {
            connection.execute("ROLLBACK", &[])?;
            Err(misuse("a statement of the transaction failed, so all of it was rolled back"))
        }
        (_, false) => connection.execute("ROLLBACK", &[]).map(drop),
    }
}

fn answer(outcome: Outcome, place: &Place) -> Result<Answer, Error> {
    Ok(match outcome {
        Outcome::Rows(rows) => {
            let schema = rows.schema().clone();
            ("SELECT", None, Some(Rows::begin(schema, Box::new(rows), place.clone())?))
        }
        Outcome::Count { tag, rows } => (tag, Some(rows), None),
        Outcome::Done(tag) => (tag, None, None),
        _ => {
            return Err(misuse("COPY ... TO STDOUT answers no rows").advise("give copy_out a file for its text"));
        }
    })
}

fn fits(text: &Text, given: usize) -> Result<(), Error> {
    if text.questions > 0 && text.questions != given {
        return Err(misuse(format!("the statement wants {} parameters, and {given} were given", text.questions)));
    }
    Ok(())
}

fn is_mapping(any: &Bound<'_, PyAny>) -> PyResult<bool> {
    if any.is_instance_of::<PyList>() || any.is_instance_of::<PyTuple>() {
        return Ok(false);
    }
    // Sequences have no keys; asking for the abstract class would cost more than the statement.
    Ok(any.is_instance_of::<PyDict>() || any.hasattr("keys")?)
}

fn named(py: Python<'_>, names: &[String], given: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    let value = |name: &String| match given.contains(name)? {
        true => values::value(&given.get_item(name)?),
        false => told(py, Err(misuse(format!("the statement wants parameter :{name}, which was not given")))),
    };
    names.iter().map(value).collect()
}
