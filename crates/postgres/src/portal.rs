//! Statements that were prepared, and portals: statements with their parameters, as far as they have run.

use std::sync::Arc;

use counterfoil::arrow::array::{ArrayRef, RecordBatch};
use counterfoil::arrow::compute::{CastOptions, cast_with_options};
use counterfoil::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use counterfoil::arrow::error::ArrowError;
use counterfoil::{Connection, CopyOut, Description, Error, Outcome, Rows, Value, statements};

use crate::rows::{Encoder, Format};
use crate::sqlstate::{Refusal, Stopped};
use crate::types::{self, oid};
use crate::wire::{Stream, Wire};

/// A statement that was prepared.
pub struct Prepared {
    /// Its text.
    pub sql: Arc<str>,
    /// The types of its parameters, as far as the client said them; 0 where it did not.
    pub types: Vec<u32>,
    /// What the client was told of it, if it asked.
    pub told: Option<Told>,
}

/// What a client was told of a statement: it reads rows and writes parameters by that.
pub struct Told {
    /// The types of its parameters.
    pub types: Vec<u32>,
    /// The columns of its rows; none if it answers none.
    pub columns: Option<SchemaRef>,
}

impl Prepared {
    /// Bytes that are held for it.
    pub fn bytes(&self) -> usize {
        let columns = self.told.iter().filter_map(|told| told.columns.as_ref());
        // Twice the numbers of types: those said and those told.
        self.sql.len()
            + 8 * self.types.len()
            + columns.map(|columns| FIELD_BYTES * columns.fields().len()).sum::<usize>()
    }

    /// What the client was told of it, or will be.
    ///
    /// # Errors
    /// What planning the statement answers.
    pub fn told(&mut self, connection: &mut Connection) -> Result<&Told, Error> {
        let told = match self.told.take() {
            Some(told) => told,
            None => self.asked(connection)?,
        };
        Ok(self.told.insert(told))
    }

    fn asked(&self, connection: &mut Connection) -> Result<Told, Error> {
        let given: Vec<_> = self.types.iter().map(|oid| types::of_parameter(*oid)).collect();
        let description = match statements::is_blank(&self.sql) || statements::copies_in(&self.sql) {
            true => Description::default(),
            false => connection.describe(&self.sql, &given)?,
        };
        let mut kinds = self.types.clone();
        for (oid, kind) in kinds.iter_mut().zip(description.parameters).filter(|(oid, _)| **oid == 0) {
            *oid = kind.map_or(0, |kind| types::Told::of(&kind).oid);
        }
        // What may be anything is a text.
        kinds.iter_mut().filter(|oid| **oid == 0).for_each(|oid| *oid = oid::TEXT);
        Ok(Told { types: kinds, columns: description.columns })
    }
}

/// About what a column of a description takes, with its name.
const FIELD_BYTES: usize = 192;

/// How far a portal has run.
enum Progress {
    Waiting,
    Reading(Box<Reading>),
    CopyOut(CopyOut),
    CopyIn,
    /// It has run, and what it came to is to be said.
    Over(String),
    /// That was said.
    Done,
}

/// A statement with its parameters.
pub struct Portal {
    sql: Arc<str>,
    /// The types of its parameters, as far as the client said them.
    types: Vec<u32>,
    bytes: usize,
    values: Vec<Value>,
    wanted: Vec<Format>,
    /// What the client was told that it would get: nothing; no rows; rows of these columns.
    told: Option<Option<SchemaRef>>,
    progress: Progress,
}

/// Rows, as far as they were sent.
struct Reading {
    rows: Rows,
    /// Its columns as they are sent.
    schema: SchemaRef,
    /// Whether they are made so: the client was told other types than came out.
    is_cast: bool,
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
    pub fn new(
        (sql, types): (Arc<str>, Vec<u32>),
        values: Vec<Value>,
        wanted: Vec<Format>,
        told: Option<Option<SchemaRef>>,
    ) -> Self {
        let own = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        // Its statement may be closed before it, so its text counts here as well.
        let bytes = sql.len()
            + 4 * types.len()
            + values.iter().map(|value| size_of::<Value>() + own(value)).sum::<usize>()
            + wanted.len();
        Portal { sql, types, bytes, values, wanted, told, progress: Progress::Waiting }
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
    pub fn start(&mut self, connection: &mut Connection) -> Result<Option<SchemaRef>, Stopped> {
        if matches!(self.progress, Progress::Waiting) {
            self.keep_word(connection)?;
            self.progress = begun(&self.sql, &self.values, connection)?;
            if let (Some(told), Progress::Reading(reading)) = (&self.told, &mut self.progress) {
                reading.keep_word(told.as_ref())?;
            }
        }
        Ok(match &self.progress {
            Progress::Reading(reading) => Some(reading.schema.clone()),
            _ => None,
        })
    }

    /// Refuses a change that answers other columns by now than the client was told, before it is made.
    fn keep_word(&self, connection: &mut Connection) -> Result<(), Stopped> {
        let Some(told) = &self.told else { return Ok(()) };
        let is_change = matches!(statements::first_word(&self.sql).as_str(), "INSERT" | "UPDATE" | "DELETE" | "WITH");
        let count = |columns: &Option<SchemaRef>| columns.as_ref().map(|columns| columns.fields().len());
        match is_change && told.is_some() && count(told) != count(&self.described(connection)?) {
            true => Err(changed().into()),
            false => Ok(()),
        }
    }

    fn described(&self, connection: &mut Connection) -> Result<Option<SchemaRef>, Error> {
        let given: Vec<_> = self.types.iter().map(|oid| types::of_parameter(*oid)).collect();
        Ok(connection.describe(&self.sql, &given)?.columns)
    }

    /// Its columns, before it runs: its rows will be of these.
    ///
    /// # Errors
    /// What planning the statement answers.
    pub fn promise(&mut self, connection: &mut Connection) -> Result<Option<SchemaRef>, Stopped> {
        if let Progress::Reading(reading) = &self.progress {
            return Ok(Some(reading.schema.clone()));
        }
        let told = match self.told.take() {
            Some(told) => told,
            None => self.described(connection)?,
        };
        Ok(self.told.insert(told).clone())
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
        let is_query = matches!(statements::first_word(&self.sql).as_str(), "SELECT" | "VALUES" | "TABLE" | "WITH");
        let tag = match &mut self.progress {
            Progress::Reading(reading) => {
                if !reading.send(wire, &formats, rows_max)? {
                    return Ok(Ran::Suspended);
                }
                rows_tag(reading.rows.change(), &self.sql, reading.sent)
            }
            Progress::CopyOut(text) => {
                let rows = copied(wire, text)?;
                format!("COPY {rows}")
            }
            Progress::CopyIn => return Ok(Ran::CopyIn),
            Progress::Over(tag) => std::mem::take(tag),
            Progress::Done if is_query => "SELECT 0".to_owned(),
            Progress::Done => return Err(Refusal::new("55000", "this portal has run: bind it anew").into()),
            Progress::Waiting => return Ok(Ran::Empty),
        };
        self.progress = Progress::Done;
        Ok(Ran::Complete(tag))
    }
}

impl Reading {
    /// Makes the rows what the client was told they would be. What a parameter is may change what a query answers, and so may
    /// a table that was made anew; the client reads bytes by the types that it was told.
    fn keep_word(&mut self, told: Option<&SchemaRef>) -> Result<(), Refusal> {
        let told = told.ok_or_else(changed)?;
        if told.fields().len() != self.schema.fields().len() {
            return Err(changed());
        }
        let differ = |(told, is): (&FieldRef, &FieldRef)| types::Told::of(told).oid != types::Told::of(is).oid;
        self.is_cast = told.fields().iter().zip(self.schema.fields()).any(differ);
        if self.is_cast {
            self.schema = told.clone();
        }
        Ok(())
    }

    /// Sends rows; whether that was all of them.
    fn send<S: Stream>(&mut self, wire: &mut Wire<S>, formats: &[Format], rows_max: u64) -> Result<bool, Stopped> {
        let mut left = if rows_max == 0 { u64::MAX } else { rows_max };
        loop {
            let batch = match self.batch.take() {
                Some(batch) => batch,
                None => match self.rows.next().transpose()? {
                    Some(batch) if self.is_cast => cast_to(&batch, &self.schema)?,
                    Some(batch) => batch,
                    None => return Ok(true),
                },
            };
            let columns = Encoder::new(&batch, formats);
            while self.next < batch.num_rows() && left > 0 {
                columns.send(wire, self.next)?;
                (self.next, self.sent, left) = (self.next + 1, self.sent + 1, left - 1);
            }
            drop(columns);
            if self.next < batch.num_rows() {
                self.batch = Some(batch);
                return Ok(false);
            }
            self.next = 0;
        }
    }
}

fn changed() -> Refusal {
    Refusal::new("0A000", "the statement answers other columns than when it was prepared: prepare it anew")
}

/// The columns of a batch as columns of these types.
fn cast_to(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Refusal> {
    let wrong = |error: ArrowError| {
        Refusal::new("0A000", format!("the statement answers other types than when it was prepared: {error}"))
    };
    let is_lossy = |(column, field): (&ArrayRef, &FieldRef)| match (column.data_type(), field.data_type()) {
        (DataType::Decimal128(..) | DataType::Float32 | DataType::Float64, to) => to.is_integer(),
        (DataType::Timestamp(..), to) => matches!(to, DataType::Date32),
        _ => false,
    };
    if batch.columns().iter().zip(schema.fields()).any(is_lossy) {
        return Err(Refusal::new(
            "0A000",
            "the statement answers finer types than when it was prepared: prepare it anew",
        ));
    }
    // What does not fit is an error, and not NULL.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast_with_options(column, field.data_type(), &options));
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    // A column that was said to have no NULL may have one now.
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns).map_err(wrong)
}

fn begun(sql: &str, values: &[Value], connection: &mut Connection) -> Result<Progress, Error> {
    if statements::copies_in(sql) {
        return Ok(Progress::CopyIn);
    }
    let outcome = connection.run(sql, values)?.pop();
    Ok(match outcome {
        Some(Outcome::Rows(rows)) => {
            let schema = rows.schema().clone();
            let reading = Reading { rows, schema, is_cast: false, batch: None, next: 0, sent: 0 };
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
fn rows_tag(change: Option<&str>, sql: &str, rows: u64) -> String {
    match (change, statements::first_word(sql).as_str()) {
        (Some("INSERT"), _) => format!("INSERT 0 {rows}"),
        (Some(change), _) => format!("{change} {rows}"),
        (None, "FETCH") => format!("FETCH {rows}"),
        (None, word @ ("SHOW" | "EXPLAIN")) => word.to_owned(),
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
    while let Some(piece) = text.next().transpose()? {
        // Clients count on a message for each row.
        let mut begin = 0;
        for end in text.row_ends() {
            wire.send(b'd', |out| out.extend_from_slice(&piece[begin..*end]))?;
            begin = *end;
        }
    }
    wire.send(b'c', |_| ())?;
    Ok(text.rows())
}
