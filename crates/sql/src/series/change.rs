//! Changes to the rows of a series table. A row's number is its series and its time: 32 and 64 bits of one integer.

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
    let form = Form::of(table)?;
    table.check(batch).map_err(Error::Relation)?;
    let Some((taken, ahead)) = apart::divide(engine, table, batch)? else {
        let expired = put(engine, lease, table, &form, batch, true)?;
        return Ok(Elsewhere { ahead: 0, expired });
    };
    let expired = put(engine, lease, table, &form, &taken, true)?;
    let apart = apart::kept_apart(table).ok_or_else(|| Error::Bug("no series table".into()))?;
    put(engine, lease, &apart, &Form::of(&apart)?, &ahead, false)?;
    Ok(Elsewhere { ahead: ahead.count() as u64, expired })
}

/// Stores rows of which each is to be stored: they were in such a table before.
pub(crate) fn insert_as_given(
    engine: &Engine,
    lease: &mut Lease,
    table: &Arc<Table>,
    batch: &RowBatch,
) -> Result<Elsewhere> {
    let form = Form::of(table)?;
    table.check(batch).map_err(Error::Relation)?;
    engine.doors.forget_table(form.number);
    let expired = put(engine, lease, table, &form, batch, false)?;
    Ok(Elsewhere { ahead: 0, expired })
}

fn put(
    engine: &Engine,
    lease: &mut Lease,
    table: &Arc<Table>,
    form: &Form,
    batch: &RowBatch,
    thins: bool,
) -> Result<u64> {
    if batch.count() == 0 {
        return Ok(0);
    }
    let tables = &engine.series;
    if apart::is_apart(table) {
        define::create_apart(tables, lease, table)?;
    }
    if Told::table(table).refuses_duplicates() {
        refuse_duplicates(tables, &**lease, table, form, batch)?;
    }
    let series = series_of(tables, lease, table, form, batch)?;
    let thinned = match thins && !apart::is_apart(table) {
        true => thin((tables, &engine.doors), &**lease, table, form, batch, &series)?,
        false => None,
    };
    let Some(thinned) = thinned else { return append(engine, lease, table, form, batch, series) };
    if !thinned.gone.is_empty() {
        tables.delete(&mut **lease, form.number, &thinned.gone).map_err(told(table))?;
    }
    append(engine, lease, table, form, &thinned.batch, thinned.series)
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

/// Stores rows in the place of those with their keys; how many are before what the table keeps.
fn append(
    engine: &Engine,
    lease: &mut Lease,
    table: &Arc<Table>,
    form: &Form,
    batch: &RowBatch,
    series: Vec<u32>,
) -> Result<u64> {
    engine.retention.note(table)?;
    let tables = &engine.series;
    let kinds = tables.kinds(&**lease, form.number).map_err(told(table))?;
    let points = rows::points(form, &kinds, batch, series)?;
    tables.insert(&mut **lease, form.number, &points).map_err(told(table))
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
    let series = series_of(tables, lease, table, &form, images)?;
    append(engine, lease, table, &form, images, series)
}
