//! Changes to the rows of a series table. A row's number is its series and its time: 32 and 64 bits of one integer.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_log::View;
use counterfoil_relation::{RowBatch, Table};
use counterfoil_series::{Batch, Block, SeriesTables};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::concat_batches;

use super::options::Told;
use super::thin::thin;
use super::{Form, apart, define, keys, rows, told};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::load;
use crate::store::Lease;

/// The number of a row: unique, and ordered by series and time.
pub(crate) fn number(series: u32, time: i64) -> i128 {
    i128::from(series) << 64 | i128::from(time as u64 ^ 1 << 63)
}

fn place(number: i128) -> (u32, i64) {
    ((number >> 64) as u32, (number as u64 ^ 1 << 63) as i64)
}

/// The series of each row, by its key, and the different keys there are.
fn keys_of(form: &Form, batch: &RowBatch) -> Result<(Vec<usize>, Vec<Vec<u8>>)> {
    let (mut places, mut distinct, mut key) = (HashMap::<Vec<u8>, usize>::new(), Vec::new(), Vec::new());
    let mut of = Vec::with_capacity(batch.count());
    for row in 0..batch.count() {
        keys::of_row(form, batch, row, &mut key)?;
        let place = match places.get(&key) {
            Some(place) => *place,
            None => {
                distinct.push(key.clone());
                places.insert(key.clone(), distinct.len() - 1);
                distinct.len() - 1
            }
        };
        of.push(place);
    }
    Ok((of, distinct))
}

/// Rows that are not where they were meant to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// Too far ahead of the clock: kept apart.
    pub(crate) ahead: u64,
    /// Before what the table keeps: not stored.
    pub(crate) expired: u64,
}

impl std::ops::AddAssign for Elsewhere {
    fn add_assign(&mut self, other: Self) {
        self.ahead += other.ahead;
        self.expired += other.expired;
    }
}

/// Stores rows; those with the key of one that is there take its place, unless the table refuses that.
pub(crate) fn insert(engine: &Engine, lease: &mut Lease, table: &Arc<Table>, batch: &RowBatch) -> Result<Elsewhere> {
    insert_as(engine, lease, table, batch, false)
}

/// Stores rows of which each is to be stored: they were in such a table before.
pub(crate) fn insert_as_given(
    engine: &Engine,
    lease: &mut Lease,
    table: &Arc<Table>,
    batch: &RowBatch,
) -> Result<Elsewhere> {
    insert_as(engine, lease, table, batch, true)
}

fn insert_as(
    engine: &Engine,
    lease: &mut Lease,
    table: &Arc<Table>,
    batch: &RowBatch,
    as_given: bool,
) -> Result<Elsewhere> {
    let (form, tables) = (Form::of(table)?, &engine.series);
    table.check(batch).map_err(Error::Relation)?;
    if batch.count() == 0 {
        return Ok(Elsewhere::default());
    }
    if Told::table(table).refuses_duplicates() {
        match apart::divide(engine, table, batch)?.filter(|_| !as_given).zip(apart::kept_apart(table)) {
            None => refuse_duplicates(tables, &**lease, table, &form, batch)?,
            Some(((taken, ahead), apart)) => {
                refuse_duplicates(tables, &**lease, table, &form, &taken)?;
                refuse_duplicates(tables, &**lease, &apart, &Form::of(&apart)?, &ahead)?;
            }
        }
    }
    let points = points_of(tables, lease, table, &form, batch)?;
    store(engine, lease, (table, &form), Cow::Owned(points), as_given)
}

/// Stores points that break no rule: those too far ahead of the clock are kept apart, those left out that a line between others
/// stands for. `as_given`: each of them stays as it is.
pub(super) fn store(
    engine: &Engine,
    lease: &mut Lease,
    (table, form): (&Arc<Table>, &Form),
    batch: Cow<'_, Batch>,
    as_given: bool,
) -> Result<Elsewhere> {
    let (tables, count) = (&engine.series, batch.len());
    let mut taken = batch;
    if as_given {
        engine.doors.forget_table(form.number);
    } else {
        taken = apart::keep_apart(engine, lease, (table, form), taken)?;
    }
    let ahead = (count - taken.len()) as u64;
    // Before the door: what is not stored must not stand for what is left out.
    let kept = without_expired(engine, lease, (table, form), taken)?;
    let expired = count as u64 - ahead - kept.len() as u64;
    let mut taken = kept;
    if !(as_given || taken.is_empty() || apart::is_apart(table))
        && let Some(thinned) = thin((tables, &engine.doors), &**lease, table, form, &taken)?
    {
        if !thinned.gone.is_empty() {
            tables.delete(&mut **lease, form.number, &thinned.gone).map_err(told(table))?;
        }
        taken = Cow::Owned(thinned.batch);
    }
    if taken.is_empty() {
        return Ok(Elsewhere { ahead, expired });
    }
    Ok(Elsewhere { ahead, expired: expired + put(engine, lease, (table, form), &taken)? })
}

/// The points that are not before what the table keeps.
fn without_expired<'b>(
    engine: &Engine,
    lease: &Lease,
    (table, form): (&Arc<Table>, &Form),
    batch: Cow<'b, Batch>,
) -> Result<Cow<'b, Batch>> {
    let oldest = engine.series.oldest(&**lease, form.number).map_err(told(table))?;
    if batch.rows.times.iter().all(|time| oldest <= *time) {
        return Ok(batch);
    }
    Ok(Cow::Owned(batch.split(|time| oldest <= time).0))
}

/// Of rows that a statement gave a table those that are not before what it keeps: what it has stored of them. `as_given`: none of
/// them was kept apart instead.
pub(crate) fn without_expired_rows(
    engine: &Engine,
    view: &dyn View,
    table: &Arc<Table>,
    batch: RowBatch,
    as_given: bool,
) -> Result<RowBatch> {
    let form = Form::of(table)?;
    let oldest = engine.series.oldest(view, form.number).map_err(told(table))?;
    let last = if as_given { None } else { apart::last(table, &form, &engine.options.clock)? };
    let mut stored = RowBatch::new(batch.layout().clone(), 0);
    for (row, time) in rows::times(&form, &batch).into_iter().enumerate() {
        if oldest <= time || last.is_some_and(|last| last < time) {
            stored.push_from(&batch, row).map_err(Error::Relation)?;
        }
    }
    Ok(stored)
}

/// Stores points as they are; how many are before what the table keeps.
fn put(engine: &Engine, lease: &mut Lease, (table, form): (&Arc<Table>, &Form), batch: &Batch) -> Result<u64> {
    engine.retention.note(table)?;
    engine.series.insert(&mut **lease, form.number, batch).map_err(told(table))
}

/// Rows as points; series that are new get a number.
fn points_of(
    tables: &SeriesTables,
    lease: &mut Lease,
    table: &Arc<Table>,
    form: &Form,
    batch: &RowBatch,
) -> Result<Batch> {
    if apart::is_apart(table) {
        define::create_apart(tables, lease, table)?;
    }
    let series = series_of(tables, lease, table, form, batch)?;
    let kinds = tables.kinds(&**lease, form.number).map_err(told(table))?;
    rows::points(form, &kinds, batch, series)
}

/// The series of each row; those that are new get a number.
fn series_of(
    tables: &SeriesTables,
    lease: &mut Lease,
    table: &Arc<Table>,
    form: &Form,
    batch: &RowBatch,
) -> Result<Vec<u32>> {
    let (of, distinct) = keys_of(form, batch)?;
    let named = distinct.iter().map(Vec::as_slice);
    let numbers = tables.number(&mut **lease, form.number, named).map_err(told(table))?;
    Ok(of.into_iter().map(|place| numbers[place]).collect())
}

fn refuse_duplicates(
    tables: &SeriesTables,
    view: &dyn View,
    table: &Arc<Table>,
    form: &Form,
    batch: &RowBatch,
) -> Result<()> {
    let (of, _) = keys_of(form, batch)?;
    let mut seen = std::collections::HashSet::new();
    let repeats = of.iter().zip(rows::times(form, batch)).any(|key| !seen.insert(key));
    if repeats || conflicts(tables, view, table, batch)?.iter().any(Option::is_some) {
        let name = table.primary_key.as_ref().map_or("", |key| key.name.as_str());
        return Err(Error::Constraint(format!(
            "duplicate key: a row of table {} has this key already (constraint {name}, on_duplicate = 'error')",
            table.name
        )));
    }
    Ok(())
}

/// For each row the number of the row with the same key that is there.
pub(crate) fn conflicts(
    tables: &SeriesTables,
    view: &dyn View,
    table: &Arc<Table>,
    batch: &RowBatch,
) -> Result<Vec<Option<i128>>> {
    if !apart::is_there(tables, view, table)? {
        return Ok(vec![None; batch.count()]);
    }
    let form = Form::of(table)?;
    let (of, distinct) = keys_of(&form, batch)?;
    let named = distinct.iter().map(Vec::as_slice);
    let numbers = tables.numbers(view, form.number, named).map_err(told(table))?;
    let keys: Vec<Option<(u32, i64)>> =
        of.iter().zip(rows::times(&form, batch)).map(|(place, time)| Some((numbers[*place]?, time))).collect();
    let wanted: Vec<(u32, i64)> = keys.iter().map(|key| key.unwrap_or((u32::MAX, 0))).collect();
    let found = tables.find(view, form.number, &wanted).map_err(told(table))?;
    let there = keys.into_iter().zip(found.there);
    Ok(there.map(|(key, is_there)| key.filter(|_| is_there).map(|(series, time)| number(series, time))).collect())
}

/// The rows with these numbers, in their order.
pub(crate) fn fetch(
    tables: &SeriesTables,
    view: &dyn View,
    table: &Arc<Table>,
    numbers: &[i128],
) -> Result<RecordBatch> {
    let form = Form::of(table)?;
    let wanted: Vec<(u32, i64)> = numbers.iter().map(|number| place(*number)).collect();
    let found = tables.find(view, form.number, &wanted).map_err(told(table))?;
    let names = tables.keys(view, form.number).map_err(told(table))?;
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let schema = load::table_schema(table);
    let kinds = tables.kinds(view, form.number).map_err(told(table))?;
    let mut parts = Vec::new();
    for (at, (series, _)) in wanted.iter().enumerate() {
        let key = names.get(*series as usize).cloned().ok_or_else(|| Error::Bug("a row that is not there".into()))?;
        let mut points = counterfoil_series::Points::new(&kinds);
        points.append(&found.points, at..at + 1);
        let key_columns = key_columns(table, &form, &[key])?;
        let columns = rows::arrays(table, &form, &Block { series: 0, points }, &all, &key_columns)?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        parts.push(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?);
    }
    Ok(concat_batches(&schema, &parts)?)
}

/// The columns that name series as arrays, by their place in the table; the others are absent.
pub(crate) fn key_columns(table: &Table, form: &Form, keys: &[Arc<[u8]>]) -> Result<Vec<Option<ArrayRef>>> {
    Ok(key_columns_of(table, form, &keys::record_batch(table, form, keys)?))
}

/// Of the table's columns those that name series; the others are absent.
pub(crate) fn key_columns_of(table: &Table, form: &Form, batch: &RecordBatch) -> Vec<Option<ArrayRef>> {
    let column = |place| form.keys.contains(&place).then(|| batch.column(place).clone());
    (0..table.columns.len()).map(column).collect()
}

/// Deletes the rows with these numbers.
pub(crate) fn delete(engine: &Engine, lease: &mut Lease, table: &Arc<Table>, numbers: &[i128]) -> Result<u64> {
    let (form, tables) = (Form::of(table)?, &engine.series);
    engine.doors.forget_table(form.number);
    let mut batch = Batch::new(&[]);
    for (series, time) in numbers.iter().map(|number| place(*number)) {
        batch.push(series, time, []);
    }
    tables.delete(&mut **lease, form.number, &batch).map_err(told(table))?;
    Ok(numbers.len() as u64)
}

/// Gives the rows with these numbers new values, keys included; how many are before what the table keeps by now.
pub(crate) fn update(
    engine: &Engine,
    lease: &mut Lease,
    table: &Arc<Table>,
    numbers: &[i128],
    images: &RowBatch,
) -> Result<u64> {
    let (form, tables) = (Form::of(table)?, &engine.series);
    engine.doors.forget_table(form.number);
    table.check(images).map_err(Error::Relation)?;
    let (of, distinct) = keys_of(&form, images)?;
    let known = tables.numbers(&**lease, form.number, distinct.iter().map(Vec::as_slice)).map_err(told(table))?;
    let times = rows::times(&form, images);
    let stays = |row: usize| known[of[row]].is_some_and(|series| number(series, times[row]) == numbers[row]);
    let moved: Vec<i128> = (0..numbers.len()).filter(|row| !stays(*row)).map(|row| numbers[row]).collect();
    if !moved.is_empty() {
        delete(engine, lease, table, &moved)?;
        let mut seen = std::collections::HashSet::new();
        let repeats = of.iter().zip(&times).any(|key| !seen.insert(key));
        let met = conflicts(tables, &**lease, table, images)?;
        let meets = (0..numbers.len()).any(|row| !stays(row) && met[row].is_some());
        if repeats || meets {
            return Err(Error::Constraint(format!(
                "duplicate key: two rows of table {} would have the same key",
                table.name
            )));
        }
    }
    let points = points_of(tables, lease, table, &form, images)?;
    put(engine, lease, (table, &form), &points)
}
