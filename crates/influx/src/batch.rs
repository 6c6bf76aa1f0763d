//! Lines gathered by measurement.
//!
//! A line whose measurement and tags stood in an earlier line of the batch, byte for byte, costs one look into a hash
//! table; the names of tags and measurements are then not looked at again.

use std::collections::HashMap;
use std::sync::Arc;

use crate::line::Line;
use crate::precision::Precision;
use crate::problem::Problem;
use crate::schema::Schema;
use crate::table::{Context, Table};
use crate::value::Value;

/// What the bookkeeping of a row takes beside its values.
const ROW_BYTES: usize = 24;
/// What a new series takes beside its text, which lies in three places.
const SERIES_BYTES: usize = 256;
/// What each of its tags takes.
const TAG_BYTES: usize = 32;
/// What a new column takes.
const COLUMN_BYTES: usize = 384;
/// What a new table takes.
const TABLE_BYTES: usize = 1536;

/// How the lines of a request are to be read.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The unit of their times.
    pub precision: Precision,
    /// The time of lines that have none, in nanoseconds since 1970-01-01 00:00 UTC.
    pub now: i64,
    /// The fields that hold qualities of OPC UA: their columns become qualities'.
    pub quality_fields: Arc<[String]>,
}

/// Rows by table.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    tables: Vec<Table>,
    by_name: HashMap<String, usize>,
    by_series: HashMap<String, (usize, u32)>,
    rows: usize,
    bytes: usize,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Rows in all tables.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Memory that the batch takes, estimated high: batches of every kind were measured to take a third to nine tenths.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The tables, each with a row at least.
    pub fn into_tables(mut self) -> Vec<Table> {
        self.tables.retain(|table| table.rows() > 0);
        self.tables.iter_mut().for_each(Table::finish);
        self.tables
    }

    /// Takes a line whole, or says why not.
    ///
    /// # Errors
    /// What the syntax cannot tell: a time out of range, a name that is a tag and a field, a type other than the
    /// column's in this batch or in `schema`, no quality where one belongs.
    pub fn push(
        &mut self,
        line: &Line<'_>,
        number: u64,
        reading: &Reading,
        schema: &dyn Schema,
    ) -> Result<(), Problem> {
        let time = match line.time() {
            Some(time) => reading.precision.scale(time).ok_or(Problem::TimeOutOfRange)?,
            None => reading.precision.cut(reading.now),
        };
        let context = Context { schema, quality_fields: &reading.quality_fields };
        let (table, set) = match self.by_series.get(line.series()) {
            Some(&(table, set)) => {
                self.check_fields(table, line, &context)?;
                (table, set)
            }
            None => self.new_series(line, &context)?,
        };
        self.tables[table].push(set, time, number, line);
        self.rows += 1;
        self.bytes += ROW_BYTES + line.fields().map(|(_, value)| value_bytes(&value)).sum::<usize>();
        Ok(())
    }

    fn check_fields(&mut self, table: usize, line: &Line<'_>, context: &Context<'_>) -> Result<(), Problem> {
        let table = &mut self.tables[table];
        let before = table.fields.len();
        let checked = table.check_fields(line, context);
        self.bytes += (table.fields.len() - before) * COLUMN_BYTES;
        checked
    }

    fn new_series(&mut self, line: &Line<'_>, context: &Context<'_>) -> Result<(usize, u32), Problem> {
        let table = self.table(line, context)?;
        self.tables[table].check_tags(line, context)?;
        self.check_fields(table, line, context)?;
        let tags = &mut self.tables[table].tags;
        let before = tags.names().len();
        let set = tags.number(line);
        let new_names = tags.names().len() - before;
        self.bytes += SERIES_BYTES + 3 * line.series().len() + line.tags().len() * TAG_BYTES + new_names * COLUMN_BYTES;
        self.by_series.insert(line.series().to_owned(), (table, set));
        Ok((table, set))
    }

    fn table(&mut self, line: &Line<'_>, context: &Context<'_>) -> Result<usize, Problem> {
        let name = line.measurement().unescaped();
        if let Some(&table) = self.by_name.get(&*name) {
            return Ok(table);
        }
        context.schema.takes(&name)?;
        self.tables.push(Table::new(name.clone().into_owned()));
        self.by_name.insert(name.into_owned(), self.tables.len() - 1);
        self.bytes += TABLE_BYTES;
        Ok(self.tables.len() - 1)
    }
}

fn value_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Text(text) => 8 + text.raw.len(),
        _ => 12,
    }
}

#[cfg(test)]
mod tests;
