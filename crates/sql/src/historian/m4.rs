//! `m4`: of each bucket of a series the first, the last, the least and the greatest point, with which a line is drawn as all
//! points would draw it where a bucket is a column of pixels (U. Jugel et al., M4: A Visualization-Oriented Time Series Data
//! Aggregation, VLDB 2014).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;

use super::grid::Grid;
use super::keys::{Key, Keys};
use super::node::Output;
use super::samples::{Samples, Waiting};
use super::signal::Sample;

/// The operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct M4 {
    pub grid: Grid,
}

impl fmt::Display for M4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "M4: {}", self.grid)
    }
}

/// A point of a drawing.
type Point = (i64, f64);

/// What stays of a bucket.
#[derive(Clone, Copy)]
struct Pixels {
    bucket: i64,
    first: Point,
    least: Point,
    greatest: Point,
    last: Point,
}

/// The way through one series.
#[derive(Default)]
struct Walk {
    key: Key,
    waiting: Waiting,
    pixels: Option<Pixels>,
}

/// Points that are not handed over yet.
#[derive(Default)]
struct Rows {
    keys: Vec<Key>,
    points: Vec<Point>,
}

impl M4 {
    pub(crate) async fn run(
        &self,
        keys: usize,
        mut input: SendableRecordBatchStream,
        output: Output,
    ) -> Result<(), DataFusionError> {
        let mut series = Keys::new(&input.schema(), keys)?;
        let (mut walk, mut rows) = (Walk::default(), Rows::default());
        while let Some(batch) = input.try_next().await? {
            let samples = Samples::new(&batch, keys, keys + 1, keys + 2)?;
            for run in series.runs(&batch)? {
                if run.begins {
                    self.end(&mut walk, &mut rows);
                    walk = Walk { key: run.key, ..Walk::default() };
                }
                for sample in run.rows.filter_map(|row| samples.at(row)) {
                    let done = walk.waiting.push(sample);
                    self.draw(&mut walk, done, &mut rows);
                    if rows.points.len() >= output.rows_max {
                        rows.flush(&series, &output).await?;
                    }
                }
            }
        }
        self.end(&mut walk, &mut rows);
        rows.flush(&series, &output).await
    }

    fn end(&self, walk: &mut Walk, rows: &mut Rows) {
        let last = walk.waiting.end();
        self.draw(walk, last, rows);
        walk.pixels.take().into_iter().for_each(|pixels| rows.add(&walk.key, pixels));
    }

    fn draw(&self, walk: &mut Walk, sample: Option<Sample>, rows: &mut Rows) {
        // NaN and infinity have no place in a drawing.
        let Some(Sample { ts, value: Some(value), .. }) =
            sample.filter(|sample| sample.value.is_some_and(f64::is_finite))
        else {
            return;
        };
        let (bucket, point) = (self.grid.index(ts), (ts, value));
        match walk.pixels.as_mut().filter(|pixels| pixels.bucket == bucket) {
            Some(pixels) => {
                pixels.last = point;
                if value < pixels.least.1 {
                    pixels.least = point;
                }
                if value > pixels.greatest.1 {
                    pixels.greatest = point;
                }
            }
            None => {
                let next = Pixels { bucket, first: point, least: point, greatest: point, last: point };
                let before = walk.pixels.replace(next);
                before.into_iter().for_each(|pixels| rows.add(&walk.key, pixels));
            }
        }
    }
}

impl Rows {
    fn add(&mut self, key: &Key, pixels: Pixels) {
        let mut points = [pixels.first, pixels.least, pixels.greatest, pixels.last];
        points.sort_by_key(|point| point.0);
        for (place, point) in points.iter().enumerate() {
            if place == 0 || points[place - 1].0 != point.0 {
                self.keys.push(key.clone());
                self.points.push(*point);
            }
        }
    }

    async fn flush(&mut self, series: &Keys, output: &Output) -> Result<(), DataFusionError> {
        if self.points.is_empty() {
            return Ok(());
        }
        let mut columns = series.columns(&self.keys)?;
        let times = Int64Array::from_iter_values(self.points.iter().map(|point| point.0));
        columns.push(cast(&times, output.schema.field(columns.len()).data_type())?);
        columns.push(Arc::new(Float64Array::from_iter_values(self.points.iter().map(|point| point.1))));
        *self = Rows::default();
        output.send(RecordBatch::try_new(output.schema.clone(), columns)?).await
    }
}
