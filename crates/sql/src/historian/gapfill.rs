//! `gapfill`: the rows of a grouping by buckets of time, and rows for the buckets that have none.
//!
//! What a bucket without a row is filled with depends on its neighbours alone, so nothing is kept but the row before.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, UInt64Array, new_null_array,
};
use datafusion::arrow::compute::{cast, interleave, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::scalar::ScalarValue;
use futures::TryStreamExt;

use super::grid::Grid;
use super::keys::Keys;
use super::node::Output;
use super::samples::ticks;
use super::signal::between;
use crate::error::Error;

/// What a column has where there is no row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fill {
    Null,
    Previous,
    Linear,
    Constant(ScalarValue),
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fill::Null => f.write_str("null"),
            Fill::Previous => f.write_str("previous"),
            Fill::Linear => f.write_str("linear"),
            Fill::Constant(value) => write!(f, "{value}"),
        }
    }
}

/// The operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Gapfill {
    pub grid: Grid,
    /// For each column behind the keys and the bucket.
    pub fills: Vec<Fill>,
}

impl fmt::Display for Gapfill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fills: Vec<String> = self.fills.iter().map(Fill::to_string).collect();
        write!(f, "Gapfill: {}, fill: [{}]", self.grid, fills.join(", "))
    }
}

/// Where a row lies: the last row of the batch before (0) or the batch at hand (1), and which row of it.
type Place = (usize, usize);

/// A row of the answer.
struct Row {
    time: i64,
    /// A row of the same series.
    series: Place,
    cells: Cells,
}

enum Cells {
    There,
    Missing { before: Option<(i64, Place)>, after: Option<(i64, Place)> },
}

/// The way through one series.
#[derive(Default)]
struct Walk {
    /// The bucket that comes next.
    index: i64,
    series: Option<Place>,
    before: Option<(i64, Place)>,
    ended: bool,
}

impl Gapfill {
    pub(crate) async fn run(
        &self,
        keys: usize,
        mut input: SendableRecordBatchStream,
        output: Output,
    ) -> Result<(), DataFusionError> {
        let mut series = Keys::new(&input.schema(), keys)?;
        let mut batches = [RecordBatch::new_empty(input.schema()), RecordBatch::new_empty(input.schema())];
        let mut answer = Answer { fill: self, keys, rows: Vec::new(), output };
        let mut walk = Walk::default();
        while let Some(batch) = input.try_next().await? {
            if batch.num_rows() == 0 {
                continue;
            }
            let times = ticks(batch.column(keys))?;
            batches[1] = batch;
            for run in series.runs(&batches[1])? {
                if run.begins {
                    self.fill_to(&mut walk, None, &batches, &mut answer).await?;
                    walk = Walk::default();
                }
                for row in run.rows {
                    walk.series = Some((1, row));
                    if times.is_valid(row) {
                        self.row(&mut walk, times.value(row), (1, row), &batches, &mut answer).await?;
                    }
                }
            }
            answer.flush(&batches).await?;
            walk.keep(&mut batches)?;
        }
        self.fill_to(&mut walk, None, &batches, &mut answer).await?;
        answer.flush(&batches).await
    }

    async fn row(
        &self,
        walk: &mut Walk,
        time: i64,
        place: Place,
        batches: &[RecordBatch; 2],
        answer: &mut Answer<'_>,
    ) -> Result<(), DataFusionError> {
        if time >= self.grid.start && !walk.ended {
            self.fill_to(walk, Some((time, place)), batches, answer).await?;
            walk.ended = time >= self.grid.stop;
            if !walk.ended {
                self.check(walk, time)?;
                walk.index += 1;
                answer.push(Row { time, series: place, cells: Cells::There }, batches).await?;
            }
        }
        walk.before = Some((time, place));
        Ok(())
    }

    /// A row must begin a bucket that has no other row.
    fn check(&self, walk: &Walk, time: i64) -> Result<(), DataFusionError> {
        let tick = self.grid.tick;
        if walk.before.is_some_and(|(before, _)| before == time) {
            let text = format!(
                "gapfill: two rows of one series have the bucket {}: name the columns that tell series apart (by => ...)",
                tick.shown(time)
            );
            return Err(Error::Sql(text).into());
        }
        if self.grid.bound(walk.index) != time {
            let text = format!(
                "gapfill: {} begins no bucket ({}): group by date_bin with the same width, and origin where the buckets do not begin at whole ones",
                tick.shown(time),
                self.grid
            );
            return Err(Error::Sql(text).into());
        }
        Ok(())
    }

    /// Rows for the buckets before the next row, or to the end of the range.
    async fn fill_to(
        &self,
        walk: &mut Walk,
        after: Option<(i64, Place)>,
        batches: &[RecordBatch; 2],
        answer: &mut Answer<'_>,
    ) -> Result<(), DataFusionError> {
        let (Some(series), false) = (walk.series, walk.ended) else { return Ok(()) };
        let end = after.map_or(self.grid.stop, |(time, _)| time.min(self.grid.stop));
        loop {
            let time = self.grid.bound(walk.index);
            if time >= end {
                return Ok(());
            }
            walk.index += 1;
            let cells = Cells::Missing { before: walk.before, after };
            answer.push(Row { time, series, cells }, batches).await?;
        }
    }
}

impl Walk {
    /// Keeps one row of a batch that goes.
    fn keep(&mut self, batches: &mut [RecordBatch; 2]) -> Result<(), DataFusionError> {
        // The row before is the last that was seen, wherever it has a time; else any row will do for the keys.
        let place = self.before.map(|(_, place)| place).or(self.series);
        if let Some((slot, row)) = place {
            let kept = take_record_batch(&batches[slot], &UInt64Array::from(vec![row as u64]))?;
            batches[0] = kept;
            self.series = Some((0, 0));
            self.before = self.before.map(|(time, _)| (time, (0, 0)));
        }
        Ok(())
    }
}

/// Rows of the answer that are not handed over yet.
struct Answer<'a> {
    fill: &'a Gapfill,
    keys: usize,
    rows: Vec<Row>,
    output: Output,
}

impl Answer<'_> {
    async fn push(&mut self, row: Row, batches: &[RecordBatch; 2]) -> Result<(), DataFusionError> {
        self.rows.push(row);
        if self.rows.len() >= self.output.rows_max {
            self.flush(batches).await?;
        }
        Ok(())
    }

    async fn flush(&mut self, batches: &[RecordBatch; 2]) -> Result<(), DataFusionError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let schema = self.output.schema.clone();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for key in 0..self.keys {
            let places: Vec<Place> = self.rows.iter().map(|row| row.series).collect();
            columns.push(interleave(&[batches[0].column(key), batches[1].column(key)], &places)?);
        }
        let times: Int64Array = self.rows.iter().map(|row| row.time).collect();
        columns.push(cast(&times, schema.field(self.keys).data_type())?);
        for (place, fill) in self.fill.fills.iter().enumerate() {
            let index = self.keys + 1 + place;
            let pair = [batches[0].column(index), batches[1].column(index)];
            columns.push(match fill {
                Fill::Linear => self.lines(pair)?,
                fill => self.cells(pair, fill)?,
            });
        }
        self.rows.clear();
        self.output.send(RecordBatch::try_new(schema, columns)?).await
    }

    /// A column whose missing cells are NULL, a constant, or those of the row before.
    fn cells(&self, pair: [&ArrayRef; 2], fill: &Fill) -> Result<ArrayRef, DataFusionError> {
        let other = match fill {
            Fill::Constant(value) => value.to_array()?,
            _ => new_null_array(pair[0].data_type(), 1),
        };
        let cell = |row: &Row| match (&row.cells, fill) {
            (Cells::There, _) => row.series,
            (Cells::Missing { before: Some((_, place)), .. }, Fill::Previous) => *place,
            _ => (2, 0),
        };
        let places: Vec<Place> = self.rows.iter().map(cell).collect();
        Ok(interleave(&[pair[0].as_ref(), pair[1].as_ref(), other.as_ref()], &places)?)
    }

    /// A column of floating-point numbers whose missing cells lie on lines.
    fn lines(&self, pair: [&ArrayRef; 2]) -> Result<ArrayRef, DataFusionError> {
        let double = |array: &ArrayRef| -> Result<Float64Array, DataFusionError> {
            Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
        };
        let numbers = [double(pair[0])?, double(pair[1])?];
        let number = |(slot, row): Place| numbers[slot].is_valid(row).then(|| numbers[slot].value(row));
        let cell = |row: &Row| match &row.cells {
            Cells::There => number(row.series),
            Cells::Missing { before: Some((from, first)), after: Some((to, last)) } => {
                Some(between((*from, number(*first)?), (*to, number(*last)?), row.time))
            }
            Cells::Missing { .. } => None,
        };
        let column: Float64Array = self.rows.iter().map(cell).collect();
        Ok(cast(&(Arc::new(column) as ArrayRef), pair[0].data_type())?)
    }
}
