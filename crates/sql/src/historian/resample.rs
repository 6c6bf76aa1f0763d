//! `resample`: a row for each series and bucket, with what the signal did in it.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int16Array, Int64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;

use super::grid::Grid;
use super::keys::{Key, Keys};
use super::node::Output;
use super::quality;
use super::samples::{Samples, Waiting};
use super::signal::{Piece, Sample, Signal, greater};

/// The operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resample {
    pub grid: Grid,
    pub signal: Signal,
}

impl fmt::Display for Resample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resample: {}, {}", self.grid, self.signal.shown(self.grid.tick))
    }
}

/// The columns behind the keys and the bucket.
pub(crate) fn fields() -> Vec<Field> {
    let double = |name| Field::new(name, DataType::Float64, true);
    vec![
        double("value"),
        double("time_weighted_average"),
        double("time_integral"),
        double("min"),
        double("max"),
        double("first"),
        double("last"),
        Field::new("count", DataType::Int64, false),
        Field::new("samples", DataType::Int64, false),
        Field::new("percent_good", DataType::Float64, false),
        Field::new("worst_quality", DataType::Int16, true),
    ]
}

impl Resample {
    pub(crate) async fn run(
        &self,
        keys: usize,
        mut input: SendableRecordBatchStream,
        output: Output,
    ) -> Result<(), DataFusionError> {
        let mut series = Keys::new(&input.schema(), keys)?;
        let mut rows = Rows::default();
        let mut walk = Walk::new(self, None);
        while let Some(batch) = input.try_next().await? {
            let samples = Samples::new(&batch, keys, keys + 1, keys + 2)?;
            for run in series.runs(&batch)? {
                if run.begins {
                    self.finish(&mut walk, &mut rows, &series, &output).await?;
                    walk = Walk::new(self, run.key);
                }
                for sample in run.rows.filter_map(|row| samples.at(row)) {
                    if let Some(sample) = walk.waiting.push(sample) {
                        self.go_on(&mut walk, Some(sample), &mut rows, &series, &output).await?;
                    }
                }
            }
        }
        self.finish(&mut walk, &mut rows, &series, &output).await?;
        self.flush(&mut rows, &series, &output).await
    }

    /// Goes on to the next sample of a series, or behind the last.
    async fn go_on(
        &self,
        walk: &mut Walk,
        next: Option<Sample>,
        rows: &mut Rows,
        series: &Keys,
        output: &Output,
    ) -> Result<(), DataFusionError> {
        if let Some(before) = std::mem::replace(&mut walk.before, next) {
            while walk.step(self, &before, next.as_ref()) {
                self.emit(walk, rows, series, output).await?;
            }
        }
        Ok(())
    }

    /// The rest of a series.
    async fn finish(
        &self,
        walk: &mut Walk,
        rows: &mut Rows,
        series: &Keys,
        output: &Output,
    ) -> Result<(), DataFusionError> {
        let Some(last) = walk.waiting.end() else { return Ok(()) };
        self.go_on(walk, Some(last), rows, series, output).await?;
        self.go_on(walk, None, rows, series, output).await?;
        // A series whose samples all come after the range has no rows.
        while walk.seen && walk.bucket.from < self.grid.stop {
            self.emit(walk, rows, series, output).await?;
        }
        Ok(())
    }

    async fn emit(
        &self,
        walk: &mut Walk,
        rows: &mut Rows,
        series: &Keys,
        output: &Output,
    ) -> Result<(), DataFusionError> {
        walk.index += 1;
        let next = Bucket::new(walk.bucket.to, self.grid.bound(walk.index + 1));
        rows.keys.push(walk.key.clone());
        rows.buckets.push(std::mem::replace(&mut walk.bucket, next));
        if rows.buckets.len() >= output.rows_max {
            self.flush(rows, series, output).await?;
        }
        Ok(())
    }

    async fn flush(&self, rows: &mut Rows, series: &Keys, output: &Output) -> Result<(), DataFusionError> {
        if rows.buckets.is_empty() {
            return Ok(());
        }
        let mut columns = series.columns(&rows.keys)?;
        let starts = rows.buckets.iter().map(|bucket| bucket.from).collect::<Int64Array>();
        columns.push(cast(&starts, output.schema.field(columns.len()).data_type())?);
        columns.extend(rows.columns(self.grid.tick.seconds()));
        *rows = Rows::default();
        output.send(RecordBatch::try_new(output.schema.clone(), columns)?).await
    }
}

/// Buckets that are complete.
#[derive(Default)]
struct Rows {
    keys: Vec<Key>,
    buckets: Vec<Bucket>,
}

impl Rows {
    fn columns(&self, seconds: f64) -> Vec<ArrayRef> {
        let double = |of: &dyn Fn(&Bucket) -> Option<f64>| -> ArrayRef {
            Arc::new(self.buckets.iter().map(of).collect::<Float64Array>())
        };
        let count = |of: &dyn Fn(&Bucket) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(self.buckets.iter().map(of)))
        };
        let worst = self.buckets.iter().map(|bucket| bucket.worst.map(quality::stored));
        vec![
            double(&|bucket| bucket.value),
            double(&Bucket::average),
            double(&|bucket| (bucket.ticks > 0).then_some(bucket.area * seconds)),
            double(&|bucket| bucket.min),
            double(&|bucket| bucket.max),
            double(&|bucket| bucket.first),
            double(&|bucket| bucket.last),
            count(&|bucket| bucket.count),
            count(&|bucket| bucket.samples),
            double(&|bucket| Some(100.0 * bucket.ticks as f64 / (bucket.to - bucket.from) as f64)),
            Arc::new(worst.collect::<Int16Array>()),
        ]
    }
}

/// A bucket, and what was seen of it so far.
#[derive(Clone, Debug, Default)]
struct Bucket {
    from: i64,
    to: i64,
    value: Option<f64>,
    /// How much of it is known.
    ticks: i64,
    area: f64,
    min: Option<f64>,
    max: Option<f64>,
    first: Option<f64>,
    last: Option<f64>,
    count: i64,
    samples: i64,
    worst: Option<i64>,
}

impl Bucket {
    fn new(from: i64, to: i64) -> Self {
        Bucket { from, to, ..Bucket::default() }
    }

    fn see(&mut self, value: f64) {
        let choose = |known: Option<f64>, better: std::cmp::Ordering| match known {
            Some(known) if greater(value, known) != better => known,
            _ => value,
        };
        self.min = Some(choose(self.min, std::cmp::Ordering::Less));
        self.max = Some(choose(self.max, std::cmp::Ordering::Greater));
    }

    /// A sample that lies in this bucket.
    fn sample(&mut self, sample: &Sample) {
        self.samples += 1;
        self.count += i64::from(sample.value.is_some());
        self.first = self.first.or(sample.value);
        self.last = sample.value.or(self.last);
        sample.value.into_iter().for_each(|value| self.see(value));
    }

    fn add(&mut self, piece: Piece) {
        self.ticks += piece.ticks;
        self.area += piece.area();
        self.see(piece.first);
        self.see(piece.last);
    }

    /// Rounding must not carry it out of what the signal was.
    fn average(&self) -> Option<f64> {
        let average = self.area / self.ticks as f64;
        let (min, max) = (self.min?, self.max?);
        (self.ticks > 0).then(|| if average.is_nan() { average } else { average.max(min).min(max) })
    }
}

/// The way through one series.
struct Walk {
    key: Key,
    waiting: Waiting,
    /// The sample up to which the way has gone.
    before: Option<Sample>,
    index: i64,
    bucket: Bucket,
    /// Whether there was a sample before the end of the range.
    seen: bool,
}

impl Walk {
    fn new(operation: &Resample, key: Key) -> Self {
        let bucket = Bucket::new(operation.grid.start, operation.grid.bound(1));
        Walk { key, waiting: Waiting::default(), before: None, index: 0, bucket, seen: false }
    }

    /// Goes on from one sample towards the next; true where a bucket is complete. To be called until it is not.
    fn step(&mut self, operation: &Resample, before: &Sample, after: Option<&Sample>) -> bool {
        let Resample { grid, signal } = operation;
        self.seen |= before.ts < grid.stop;
        let start = before.ts.max(grid.start);
        let end = after.map_or(grid.stop, |after| after.ts.min(grid.stop));
        if self.bucket.to <= start && start < grid.stop {
            return true;
        }
        let (from, to) = (start.max(self.bucket.from), end.min(self.bucket.to));
        if from >= to {
            return false;
        }
        if from == before.ts {
            self.bucket.sample(before);
        }
        if from == self.bucket.from {
            self.bucket.value = signal.at(before, after, from);
            self.bucket.value.into_iter().for_each(|value| self.bucket.see(value));
        }
        self.bucket.worst = quality::worse(self.bucket.worst, before.quality);
        if let Some(piece) = signal.piece(before, after, from, to) {
            self.bucket.add(piece);
        }
        to == self.bucket.to
    }
}
