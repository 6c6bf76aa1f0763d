//! Statements that were prepared, and portals: statements with their parameters, as far as they have run.

use std::sync::Arc;

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::datatypes::SchemaRef;
use counterfoil::{Connection, CopyOut, Error, Outcome, Rows, Value, statements};

use crate::rows::{Encoder, Format};
use crate::sqlstate::{Refusal, Stopped};
use crate::wire::{Stream, Wire};

/// A statement that was prepared.
pub struct Prepared {
    /// Its text.
    pub sql: Arc<str>,
    /// The types of its parameters, as far as the client said them; 0 where it did not.
    pub types: Vec<u32>,
}

/// How far a portal has run.
enum Progress {
    Waiting,
    Reading(Box<Reading>),
    CopyOut(CopyOut),
    CopyIn,
    Over(String),
}

/// A statement with its parameters.
pub struct Portal {
    sql: Arc<str>,
    bytes: usize,
    values: Vec<Value>,
    wanted: Vec<Format>,
    progress: Progress,
}

/// Rows, as far as they were sent.
struct Reading {
    rows: Rows,
    encoder: Encoder,
    batch: Option<RecordBatch>,
    next: usize,
    sent: u64,
}

/// What running a portal came to.
pub enum Ran {
    /// All of it ran: what to say.
    Complete(String),
    /// There is nothing to run.
    Empty,
    /// There are more rows.
    Suspended,
    /// Rows are to come in.
    CopyIn,
}

impl Portal {
    /// A statement with values for its parameters, whose columns are sent in these formats.
    pub fn new(sql: Arc<str>, values: Vec<Value>, wanted: Vec<Format>) -> Self {
        let own = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        // Its statement may be closed before it, so its text counts here as well.
        let bytes =
            sql.len() + values.iter().map(|value| size_of::<Value>() + own(value)).sum::<usize>() + wanted.len();
        Portal { sql, bytes, values, wanted, progress: Progress::Waiting }
    }

    /// Bytes that are held for it, but for rows.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its text.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The formats of columns of so many.
    pub fn formats(&self, columns: usize) -> Result<Vec<Format>, Refusal> {
        match self.wanted.as_slice() {
            [] => Ok(vec![Format::Text; columns]),
            [all] => Ok(vec![*all; columns]),
            each if each.len() == columns => Ok(each.to_vec()),
            _ => Err(Refusal::new("08P01", "a portal has another number of formats than of columns")),
        }
    }

    /// Begins to run it, if it has not: whoever wants to know its columns gets those of the very rows that are sent then.
    ///
    /// # Errors
    /// The statement's.
    pub fn start(&mut self, connection: &mut Connection) -> Result<Option<SchemaRef>, Error> {
        if matches!(self.progress, Progress::Waiting) {
            self.progress = begun(&self.sql, &self.values, connection)?;
        }
        Ok(match &self.progress {
            Progress::Reading(reading) => Some(reading.rows.schema().clone()),
            _ => None,
        })
    }

    /// Runs it, up to so many rows; 0 for all of them.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn run<S: Stream>(
        &mut self,
        connection: &mut Connection,
        wire: &mut Wire<S>,
        rows_max: u64,
    ) -> Result<Ran, Stopped> {
        if statements::is_blank(&self.sql) {
            return Ok(Ran::Empty);
        }
        let schema = self.start(connection)?;
        let formats = schema.map(|schema| self.formats(schema.fields().len())).transpose()?.unwrap_or_default();
        let tag = match &mut self.progress {
            Progress::Reading(reading) => {
                if !reading.send(wire, &formats, rows_max)? {
                    return Ok(Ran::Suspended);
                }
                rows_tag(&self.sql, reading.sent)
            }
            Progress::CopyOut(text) => {
                let rows = copied(wire, text)?;
                format!("COPY {rows}")
            }
            Progress::CopyIn => return Ok(Ran::CopyIn),
            Progress::Over(tag) => std::mem::take(tag),
            Progress::Waiting => return Ok(Ran::Empty),
        };
        self.progress = Progress::Over(String::new());
        Ok(Ran::Complete(tag))
    }
}

impl Reading {
    /// Sends rows; whether that was all of them.
    fn send<S: Stream>(&mut self, wire: &mut Wire<S>, formats: &[Format], rows_max: u64) -> Result<bool, Stopped> {
        let mut left = if rows_max == 0 { u64::MAX } else { rows_max };
        loop {
            let batch = match self.batch.take() {
                Some(batch) => batch,
                None => match self.rows.next().transpose()? {
                    Some(batch) => batch,
                    None => return Ok(true),
                },
            };
            while self.next < batch.num_rows() && left > 0 {
                self.encoder.send(wire, formats, &batch, self.next)?;
                (self.next, self.sent, left) = (self.next + 1, self.sent + 1, left - 1);
            }
            if self.next < batch.num_rows() {
                self.batch = Some(batch);
                return Ok(false);
            }
            self.next = 0;
        }
    }
}

fn begun(sql: &str, values: &[Value], connection: &mut Connection) -> Result<Progress, Error> {
    if statements::copies_in(sql) {
        return Ok(Progress::CopyIn);
    }
    let outcome = connection.run(sql, values)?.pop();
    Ok(match outcome {
        Some(Outcome::Rows(rows)) => {
            let reading = Reading { rows, encoder: Encoder::new(), batch: None, next: 0, sent: 0 };
            Progress::Reading(Box::new(reading))
        }
        Some(Outcome::CopyOut(text)) => Progress::CopyOut(text),
        Some(Outcome::Count { tag: "INSERT", rows }) => Progress::Over(format!("INSERT 0 {rows}")),
        Some(Outcome::Count { tag, rows }) => Progress::Over(format!("{tag} {rows}")),
        Some(Outcome::Done(tag)) => Progress::Over(tag.to_owned()),
        _ => Progress::Over(String::new()),
    })
}

/// What a statement is called that answered so many rows: a change may, with RETURNING.
fn rows_tag(sql: &str, rows: u64) -> String {
    match statements::first_word(sql).as_str() {
        "INSERT" => format!("INSERT 0 {rows}"),
        word @ ("UPDATE" | "DELETE" | "MERGE" | "FETCH") => format!("{word} {rows}"),
        word @ ("SHOW" | "EXPLAIN") => word.to_owned(),
        _ => format!("SELECT {rows}"),
    }
}

/// Sends the text of COPY; how many rows it had.
fn copied<S: Stream>(wire: &mut Wire<S>, text: &mut CopyOut) -> Result<u64, Stopped> {
    let columns = u16::try_from(text.columns()).unwrap_or(u16::MAX);
    wire.send(b'H', |out| {
        // Text, and each column of it.
        out.push(0);
        out.extend_from_slice(&columns.to_be_bytes());
        (0..columns).for_each(|_| out.extend_from_slice(&[0, 0]));
    })?;
    for piece in &mut *text {
        let piece = piece?;
        wire.send(b'd', |out| out.extend_from_slice(&piece))?;
    }
    wire.send(b'c', |_| ())?;
    Ok(text.rows())
}
