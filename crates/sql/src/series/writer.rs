//! Points given one by one, without a statement: through a write cursor for each series (Chronos 3.1).
//!
//! ```text
//! cursor(key), once for each series      push(cursor, time, values), for each point      commit: all that waits, as one
//! ```
//! A cursor stands for the name of its series, which is then looked up once and not with each point. That is what the paper's
//! cursors save at this height; that no point searches the tree from its root is the engine's doing, which keeps the open end of each
//! series in memory within a budget, so that a cursor is a number and ten thousand of them need no buffers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use counterfoil_relation::{RowBatch, Table, Type, Value as Stored};
use counterfoil_series::{self as engine, Batch, Field, Kind};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::take;

use super::change::Elsewhere;
use super::{Form, change, columns, keys, rows, told};
use crate::assign;
use crate::change::Changed;
use crate::error::{Error, Result};
use crate::insert::Target;
use crate::load;
use crate::session::Session;
use crate::transaction::Change;
use crate::value::Value;

/// Tells the cursors of one writer from those of another.
static WRITERS: AtomicU32 = AtomicU32::new(0);

/// Where points of one series go: of the writer that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    writer: u32,
    series: u32,
}

/// What became of points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Points that are durable now.
    pub points: u64,
    /// Those of them that are ahead of the clock and were kept apart (`future_max`).
    pub kept_apart: u64,
    /// Points beside them that are older than what the table keeps, and were not stored (`retention`).
    pub expired: u64,
}

impl std::ops::AddAssign for Written {
    fn add_assign(&mut self, other: Self) {
        self.points += other.points;
        self.kept_apart += other.kept_apart;
        self.expired += other.expired;
    }
}

/// Gathers points for one series table.
pub struct PointWriter {
    number: u32,
    table: Arc<Table>,
    form: Form,
    keys: Vec<Arc<[u8]>>,
    cursors: HashMap<Arc<[u8]>, u32>,
    batch: Batch,
    text_bytes_max: usize,
    /// The values of a point on its way into the batch.
    row: Vec<Option<engine::Value>>,
}

impl PointWriter {
    /// How many points wait to be committed.
    pub fn waiting(&self) -> usize {
        self.batch.len()
    }

    /// Forgets the points that wait.
    pub fn discard(&mut self) {
        self.batch.clear();
    }

    /// Where the points of a series go: a value for each column of the key but the time.
    ///
    /// # Errors
    /// [`Error::Misuse`] for another number of values, [`Error::Constraint`] for values that the columns do not take.
    pub fn cursor(&mut self, key: &[Value]) -> Result<Cursor> {
        let key = key_of(&self.table, &self.form, key)?;
        if key.len() > engine::KEY_BYTES_MAX {
            let (name, max) = (&self.table.name, engine::KEY_BYTES_MAX);
            return Err(Error::Constraint(format!("the name of a series has at most {max} bytes (table {name})")));
        }
        let series = match self.cursors.get(&*key) {
            Some(series) => *series,
            None => {
                let (series, key) = (self.keys.len() as u32, Arc::<[u8]>::from(key));
                self.keys.push(key.clone());
                self.cursors.insert(key, series);
                series
            }
        };
        Ok(Cursor { writer: self.number, series })
    }

    /// Gives the points that wait the columns that the engine has by now: of the table they were added and dropped again.
    fn widen(&mut self, kinds: &[Kind]) {
        for kind in kinds.get(self.row.len()..).unwrap_or_default() {
            let mut column = engine::Column::new(*kind);
            column.append_nothing(self.batch.len());
            self.batch.rows.columns.push(column);
            self.row.push(None);
        }
    }

    /// Adds a point: its time in the unit of the table's column (microseconds since 1970, nanoseconds for TIMESTAMP(9)), and a value for
    /// each column that is not of the key, in order.
    ///
    /// # Errors
    /// [`Error::Misuse`] for another writer's cursor and another number of values, [`Error::Constraint`] and [`Error::Sql`] for values
    /// that the columns do not take: then the point is not among those that wait.
    pub fn push(&mut self, cursor: Cursor, time: i64, values: &[Value]) -> Result<()> {
        if cursor.writer != self.number {
            return Err(Error::Misuse("a cursor of another writer".into()));
        }
        if values.len() != self.form.values.len() {
            return Err(Error::Misuse(format!(
                "{} values for {} columns beside the key of table {}",
                values.len(),
                self.form.values.len(),
                self.table.name
            )));
        }
        if self.push_numbers(cursor.series, time, values) {
            return Ok(());
        }
        for ((place, slot), value) in self.form.values.iter().zip(values) {
            self.row[*slot] = held(&self.table, *place, value)?;
        }
        let bytes = |value: &Option<engine::Value>| match value {
            Some(engine::Value::Text(text)) => text.len(),
            _ => 0,
        };
        if self.row.iter().map(bytes).sum::<usize>() > self.text_bytes_max {
            let (name, max) = (&self.table.name, self.text_bytes_max);
            return Err(Error::Constraint(format!(
                "the texts of a point have at most {max} bytes together (table {name})"
            )));
        }
        self.batch.push(cursor.series, time, self.row.iter_mut().map(Option::take));
        Ok(())
    }

    /// Adds a point whose values go into their columns as they are, as most do; false, and nothing is added, for another one.
    fn push_numbers(&mut self, series: u32, time: i64, values: &[Value]) -> bool {
        let of = |(place, _): &(usize, usize)| &self.table.columns[*place].kind;
        let is_one = |(column, value): (&(usize, usize), &Value)| match (value, of(column)) {
            (Value::Double(_), Type::Double) | (Value::Integer(_), Type::BigInt) => true,
            (Value::Integer(number), Type::SmallInt) => i16::try_from(*number).is_ok(),
            _ => false,
        };
        let columns = &mut self.batch.rows.columns;
        // A column that was dropped is still one of the engine's, and gets NULL.
        if columns.len() != values.len() || !self.form.values.iter().zip(values).all(is_one) {
            return false;
        }
        for ((_, slot), value) in self.form.values.iter().zip(values) {
            match value {
                // Adding 0.0 turns -0.0 into 0.0 and leaves every other number alone.
                Value::Double(number) => (number + 0.0).put(&mut columns[*slot]),
                Value::Integer(number) => number.put(&mut columns[*slot]),
                _ => unreachable!("only numbers are let through"),
            }
        }
        self.batch.series.push(series);
        self.batch.rows.times.push(time);
        true
    }
}

/// The bytes that name a series.
pub(super) fn key_of(table: &Table, form: &Form, key: &[Value]) -> Result<Vec<u8>> {
    if key.len() != form.keys.len() {
        return Err(Error::Misuse(format!(
            "{} values for the {} columns that name a series of table {}",
            key.len(),
            form.keys.len(),
            table.name
        )));
    }
    let mut row = RowBatch::new(table.layout(), 1);
    for (place, value) in form.keys.iter().zip(key) {
        if matches!(value, Value::Null) {
            let column = &table.columns[*place].name;
            return Err(Error::Constraint(format!(
                "NULL in the name of a series (column {column}, table {})",
                table.name
            )));
        }
        let stored = stored(table, *place, value)?;
        row.set(0, *place, stored.borrow()).map_err(Error::Relation)?;
    }
    let mut bytes = Vec::new();
    keys::of_row(form, &row, 0, &mut bytes)?;
    Ok(bytes)
}

fn stored(table: &Table, place: usize, value: &Value) -> Result<Stored> {
    let column = &table.columns[place];
    assign::assign(value, &column.kind).map_err(|misfit| misfit.error(&column.name, &column.kind, value.kind()))
}

/// A value as the engine holds it.
fn held(table: &Table, place: usize, value: &Value) -> Result<Option<engine::Value>> {
    match (value, &table.columns[place].kind) {
        (Value::Null, _) => Ok(None),
        // Adding 0.0 turns -0.0 into 0.0 and leaves every other number alone.
        (Value::Double(number), Type::Double) => Ok(Some(engine::Value::Double(number + 0.0))),
        (Value::Integer(number), Type::BigInt) => Ok(Some(engine::Value::Integer(*number))),
        (Value::Integer(number), Type::SmallInt) if i16::try_from(*number).is_ok() => {
            Ok(Some(engine::Value::Integer(*number)))
        }
        (value, _) => {
            let mut row = RowBatch::new(table.layout(), 1);
            row.set(0, place, stored(table, place, value)?.borrow()).map_err(Error::Relation)?;
            Ok(rows::column_of(&row, place)?.value(0))
        }
    }
}

impl Session {
    /// A writer of points for a series table.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::Misuse`] for a table of another kind.
    pub fn point_writer(&mut self, table: &str) -> Result<PointWriter> {
        let found = self.table(table)?.ok_or_else(|| Error::NoTable(format!("no table {table}")))?;
        if !super::is_series(&found) {
            return Err(Error::Misuse(format!("{table} is no series table")));
        }
        let (form, view) = (Form::of(&found)?, self.view()?);
        let kinds = self.engine().series.kinds(&view, form.number).map_err(told(&found))?;
        Ok(PointWriter {
            number: WRITERS.fetch_add(1, Ordering::Relaxed),
            batch: Batch::new(&kinds),
            row: vec![None; kinds.len()],
            text_bytes_max: self.engine().series.text_bytes_max(&view, form.number).map_err(told(&found))?,
            table: found,
            form,
            keys: Vec::new(),
            cursors: HashMap::new(),
        })
    }

    /// Stores what waits in a writer, as one statement; then nothing waits any more.
    ///
    /// # Errors
    /// Those of INSERT, [`Error::Misuse`] if the table was changed meanwhile: then none of the points is there, and they go on waiting.
    pub fn write_points(&mut self, writer: &mut PointWriter) -> Result<Written> {
        if self.guard.transaction.has_failed() {
            return Err(Error::Failed);
        }
        if writer.batch.is_empty() {
            return Ok(Written::default());
        }
        self.planner.interrupt.clear();
        let count = writer.batch.len() as u64;
        let elsewhere = self.change(|session, change| session.write_waiting(change, writer));
        if elsewhere.is_err() {
            self.guard.transaction.fail();
        }
        let Elsewhere { ahead, expired } = elsewhere?;
        writer.batch.clear();
        Ok(Written { points: count - expired, kept_apart: ahead, expired })
    }

    fn write_waiting(&mut self, change: &mut Change, writer: &mut PointWriter) -> Result<Elsewhere> {
        let engine = self.engine().clone();
        let table = engine.relations.table_by_id(&*change.lease, writer.table.id).map_err(Error::Relation)?;
        let is_same = |table: &Arc<Table>| {
            (&table.columns, &table.primary_key) == (&writer.table.columns, &writer.table.primary_key)
        };
        let table = table.filter(is_same).ok_or_else(|| {
            Error::Misuse(format!("table {} was changed or dropped: begin a new writer", writer.table.name))
        })?;
        writer.table = table;
        writer.widen(&engine.series.kinds(&*change.lease, writer.form.number).map_err(told(&writer.table))?);
        let (table, number) = (&writer.table, writer.form.number);
        if !columns::takes_points(table) {
            let batch = record_batch(writer)?;
            let target = Target::of_load(table.clone(), (0..table.columns.len()).collect())?;
            let mut changed = Changed::new(table.clone(), false, &[]);
            self.insert_columns(change, &target, &batch, &mut changed)?;
            return Ok(changed.finish(self, change)?.elsewhere);
        }
        let (tables, lease) = (&engine.series, &mut change.lease);
        // A cursor without points makes no series.
        let mut is_used = vec![false; writer.keys.len()];
        writer.batch.series.iter().for_each(|cursor| is_used[*cursor as usize] = true);
        let used = || (0..is_used.len()).filter(|cursor| is_used[*cursor]);
        let names = used().map(|cursor| &*writer.keys[cursor]);
        let numbers = tables.number(&mut **lease, number, names).map_err(told(table))?;
        let mut number_of = vec![0; writer.keys.len()];
        used().zip(numbers).for_each(|(cursor, number)| number_of[cursor] = number);
        let series = writer.batch.series.iter().map(|cursor| number_of[*cursor as usize]).collect();
        let local = std::mem::replace(&mut writer.batch.series, series);
        let stored =
            change::store(&engine, lease, (table, &writer.form), Cow::Borrowed(&writer.batch), self.settings.as_given);
        writer.batch.series = local;
        stored
    }
}

/// The points that wait as columns of their table, for one that asks something of single rows.
fn record_batch(writer: &PointWriter) -> Result<RecordBatch> {
    let (table, form, points) = (&writer.table, &writer.form, &writer.batch.rows);
    let names = change::key_columns(table, form, &writer.keys)?;
    let of = UInt32Array::from(writer.batch.series.clone());
    let mut arrays: Vec<Option<ArrayRef>> = vec![None; table.columns.len()];
    for place in &form.keys {
        let name = names[*place].as_ref().ok_or_else(|| Error::Bug("a column of the key".into()))?;
        arrays[*place] = Some(take(name.as_ref(), &of, None)?);
    }
    arrays[form.time] = Some(rows::integers(&table.columns[form.time].kind, &points.times, None)?);
    for (place, slot) in &form.values {
        arrays[*place] = Some(rows::values(&table.columns[*place].kind, &points.columns[*slot])?);
    }
    let arrays =
        arrays.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| Error::Bug("a column of a table".into()))?;
    let options = RecordBatchOptions::new().with_row_count(Some(points.len()));
    Ok(RecordBatch::try_new_with_options(load::table_schema(table), arrays, &options)?)
}
