//! Cursors of SQL: DECLARE, FETCH, CLOSE. They go forward, and see what was there when they were declared.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::{
    CloseCursor, Declare, DeclareType, FetchDirection, Ident, Statement, Value as Literal, ValueWithSpan,
};
use parking_lot::Mutex;

use crate::engine::Rows;
use crate::error::{Error, Named, Result};
use crate::session::{Outcome, Session};
use crate::statement::fold;
use crate::value::Value;

/// Cursors that a session may have at a time: each holds a snapshot, and rows that were read ahead.
const CURSORS_MAX: usize = 100;

/// A cursor of a session.
pub(crate) struct Cursor {
    reading: Arc<Mutex<Reading>>,
    life: Life,
    /// Savepoints of its transaction when it was declared, as far as they were not released.
    savepoints: usize,
}

/// How long a cursor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    /// To the end of its transaction.
    Transaction,
    /// WITH HOLD, if its transaction is committed.
    Pending,
    /// WITH HOLD: to CLOSE.
    Held,
}

/// Rows of a cursor, as far as they were fetched.
pub(crate) struct Reading {
    rows: Rows,
    batch: Option<RecordBatch>,
}

impl Reading {
    /// The next rows, so many at most.
    pub(crate) fn next(&mut self, most: u64) -> Option<Result<RecordBatch>> {
        let batch = match self.batch.take() {
            Some(batch) => batch,
            None => match self.rows.next()? {
                Ok(batch) => batch,
                Err(error) => return Some(Err(error)),
            },
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if batch.num_rows() <= most {
            return Some(Ok(batch));
        }
        self.batch = Some(batch.slice(most, batch.num_rows() - most));
        Some(Ok(batch.slice(0, most)))
    }

    fn schema(&self) -> SchemaRef {
        self.rows.schema().clone()
    }
}

impl Session {
    /// DECLARE name CURSOR FOR query.
    pub(crate) fn declare(&mut self, declared: &[Declare], parameters: &[Value]) -> Result<Outcome> {
        let [Declare { names, declare_type: Some(DeclareType::Cursor), scroll, hold, for_query: Some(query), .. }] =
            declared
        else {
            return Err(Error::NotSupported("DECLARE of anything but a cursor".into()));
        };
        if *scroll == Some(true) {
            return Err(Error::NotSupported("SCROLL: cursors go forward".into()));
        }
        let name = names.first().map(fold).unwrap_or_default();
        let held = *hold == Some(true);
        let in_block = self.guard.transaction.in_block();
        if !held && !in_block {
            return Err(Error::Misuse("a cursor ends with its transaction: BEGIN one first, or say WITH HOLD".into()));
        }
        if self.cursors.contains_key(&name) {
            return Err(Error::Taken(Named::Cursor, format!("there is a cursor {name} already: CLOSE it first")));
        }
        if self.cursors.len() >= CURSORS_MAX {
            return Err(Error::NotSupported(format!("more than {CURSORS_MAX} cursors: CLOSE some")));
        }
        // Its rows are read when they are fetched, and so are its errors met.
        self.planner.is_for_later = true;
        let declared = self.query(&Statement::Query(query.clone()), parameters);
        self.planner.is_for_later = false;
        let Outcome::Rows(rows) = declared? else {
            return Err(Error::Bug("a query without rows".into()));
        };
        let savepoints = self.guard.transaction.savepoints();
        let life = match (held, in_block) {
            (true, true) => Life::Pending,
            (true, false) => Life::Held,
            (false, _) => Life::Transaction,
        };
        let reading = Arc::new(Mutex::new(Reading { rows, batch: None }));
        self.cursors.insert(name, Cursor { reading, life, savepoints });
        Ok(Outcome::Done("DECLARE CURSOR"))
    }

    /// FETCH: rows that are read as far as they are asked for, and before the next FETCH.
    pub(crate) fn fetch(&mut self, name: &Ident, direction: &FetchDirection) -> Result<Outcome> {
        let most = count(direction)?;
        let reading = self.cursor(&fold(name))?.reading.clone();
        let schema = reading.lock().schema();
        Ok(Outcome::Rows(Rows::fetched(schema, reading, most)))
    }

    /// CLOSE.
    pub(crate) fn close(&mut self, closed: &CloseCursor) -> Result<Outcome> {
        match closed {
            CloseCursor::All => {
                self.cursors.clear();
                return Ok(Outcome::Done("CLOSE CURSOR ALL"));
            }
            CloseCursor::Specific { name } => {
                let name = fold(name);
                self.cursors.remove(&name).ok_or_else(|| no_cursor(&name))?;
            }
        }
        Ok(Outcome::Done("CLOSE CURSOR"))
    }

    /// The columns of a cursor.
    ///
    /// # Errors
    /// [`Error::NoCursor`].
    pub fn cursor_columns(&self, name: &str) -> Result<SchemaRef> {
        Ok(self.cursor(name)?.reading.lock().schema())
    }

    fn cursor(&self, name: &str) -> Result<&Cursor> {
        self.cursors.get(name).ok_or_else(|| no_cursor(name))
    }

    /// What the end of a transaction does to cursors.
    pub(crate) fn end_cursors(&mut self, is_committed: bool) {
        self.cursors.retain(|_, cursor| match cursor.life {
            Life::Transaction => false,
            Life::Pending => is_committed,
            Life::Held => true,
        });
        for cursor in self.cursors.values_mut() {
            (cursor.life, cursor.savepoints) = (Life::Held, 0);
        }
    }

    /// ROLLBACK TO a savepoint: what was declared since saw what is undone.
    pub(crate) fn undo_cursors(&mut self) {
        let savepoints = self.guard.transaction.savepoints();
        // The savepoint itself is still there.
        self.cursors.retain(|_, cursor| cursor.savepoints < savepoints);
    }

    /// RELEASE of a savepoint: what was declared since belongs to the one before it.
    pub(crate) fn release_cursors(&mut self) {
        let savepoints = self.guard.transaction.savepoints();
        self.cursors.values_mut().for_each(|cursor| cursor.savepoints = cursor.savepoints.min(savepoints));
    }
}

fn no_cursor(name: &str) -> Error {
    Error::NoCursor(format!("no cursor {name}"))
}

/// How many rows a direction asks for, at most.
fn count(direction: &FetchDirection) -> Result<u64> {
    let number = |limit: &ValueWithSpan| match &limit.value {
        Literal::Number(digits, _) => digits.parse::<u64>().ok(),
        _ => None,
    };
    let most = match direction {
        FetchDirection::Next | FetchDirection::Forward { limit: None } => Some(1),
        FetchDirection::All | FetchDirection::ForwardAll => Some(u64::MAX),
        FetchDirection::Count { limit } | FetchDirection::Forward { limit: Some(limit) } => number(limit),
        _ => None,
    };
    most.ok_or_else(|| Error::NotSupported(format!("FETCH {direction}: cursors go forward")))
}
