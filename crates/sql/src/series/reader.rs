//! Rows of a series table, one batch after another and without a plan: all of them, also past what is damaged, for checking and
//! saving; or those of one series or a span of time, for programs.

use std::sync::Arc;

use counterfoil_log::{Snapshot, View};
use counterfoil_relation::Table;
use counterfoil_series::{Scan, SeriesTables, Span, Survey};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};

use super::{Form, change, is_series, is_there, rows, told, writer};
use crate::error::Result;
use crate::load;
use crate::value::Value;

/// Rows of a series table that there are, and whether that is exact; none for a table of another kind.
///
/// # Errors
/// Those of reading.
pub fn count(tables: &SeriesTables, view: &dyn View, table: &Arc<Table>) -> Result<Option<(u64, bool)>> {
    if !is_series(table) {
        return Ok(None);
    }
    tables.count(view, Form::of(table)?.number).map(Some).map_err(told(table))
}

/// A series table in numbers; none for a table of another kind.
///
/// # Errors
/// Those of reading.
pub fn survey(tables: &SeriesTables, view: &dyn View, table: &Arc<Table>) -> Result<Option<Survey>> {
    if !is_series(table) {
        return Ok(None);
    }
    tables.survey(view, Form::of(table)?.number).map(Some).map_err(told(table))
}

/// Reads a series table from its beginning to its end.
pub struct SeriesReader {
    scan: Scan<Snapshot>,
    table: Arc<Table>,
    form: Form,
    keys: Vec<Option<ArrayRef>>,
}

impl SeriesReader {
    /// Begins; none for a table of another kind, and where nothing is kept apart.
    ///
    /// # Errors
    /// Those of reading what the table has in memory: then nothing of it can be read.
    pub fn open(tables: &SeriesTables, snapshot: Snapshot, table: &Arc<Table>) -> Result<Option<Self>> {
        Self::part(tables, snapshot, table, None, Span::ALL)
    }

    /// Begins with the points of one series, named by a value for each column of the key but the time, or of all, within a span of time
    /// in the unit of the table's column.
    ///
    /// # Errors
    /// As [`SeriesReader::open`]; those of naming a series.
    pub fn part(
        tables: &SeriesTables,
        snapshot: Snapshot,
        table: &Arc<Table>,
        key: Option<&[Value]>,
        span: Span,
    ) -> Result<Option<Self>> {
        if !is_series(table) || !is_there(tables, &snapshot, table)? {
            return Ok(None);
        }
        let form = Form::of(table)?;
        let names = tables.keys(&snapshot, form.number).map_err(told(table))?;
        let keys = change::key_columns(table, &form, &names)?;
        let series = key.map(|key| numbers(tables, &snapshot, table, &form, key)).transpose()?;
        let scan = tables.scan(snapshot, form.number, series, span).map_err(told(table))?;
        Ok(Some(SeriesReader { scan, table: table.clone(), form, keys }))
    }

    /// Series that are still to be read.
    pub fn series_left(&self) -> usize {
        self.scan.series_left()
    }

    /// The next rows.
    ///
    /// # Errors
    /// What a page that cannot be read answers: its rows are skipped, and the next call goes on behind it.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(block) = self.scan.next().map_err(told(&self.table))? else { return Ok(None) };
        let all: Vec<usize> = (0..self.table.columns.len()).collect();
        let columns = rows::arrays(&self.table, &self.form, &block, &all, &self.keys)?;
        let options = RecordBatchOptions::new().with_row_count(Some(block.points.len()));
        Ok(Some(RecordBatch::try_new_with_options(load::table_schema(&self.table), columns, &options)?))
    }
}

/// The number of a series, if there is one of this name.
fn numbers(tables: &SeriesTables, view: &dyn View, table: &Arc<Table>, form: &Form, key: &[Value]) -> Result<Vec<u32>> {
    let key = writer::key_of(table, form, key)?;
    let numbers = tables.numbers(view, form.number, [&*key]).map_err(told(table))?;
    Ok(numbers.into_iter().flatten().collect())
}

/// The time of the newest point of a series, as far as is known without reading a page; none where it has no points.
///
/// # Errors
/// Those of naming a series and of reading.
pub fn newest(tables: &SeriesTables, view: &dyn View, table: &Arc<Table>, key: &[Value]) -> Result<Option<i64>> {
    let form = Form::of(table)?;
    let numbers = numbers(tables, view, table, &form, key)?;
    let newest = tables.newest(view, form.number, &numbers).map_err(told(table))?;
    Ok(newest.into_iter().flatten().next())
}
