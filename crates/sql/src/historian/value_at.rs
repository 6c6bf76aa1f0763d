//! `value_at`: what a signal was at given instants.
//!
//! The plan below hands samples and instants over in one order: those of a series together, by time, and at one time the
//! samples first.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Float64Array, Int16Array, Int64Array, RecordBatch};
use datafusion::arrow::compute::{cast, interleave};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;

use super::grid::Tick;
use super::keys::Keys;
use super::node::Output;
use super::quality;
use super::samples::{Samples, Waiting};
use super::signal::{Method, Sample, Signal};

/// The operation.
///
/// Its input has after keys and time: whether the row is an instant, value, quality, and the instants' own columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValueAt {
    pub signal: Signal,
    pub tick: Tick,
    /// The instant for which every series is asked; then the input has none.
    pub at: Option<i64>,
}

impl fmt::Display for ValueAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "ValueAt: {}, {}", self.tick.shown(at), self.signal.shown(self.tick)),
            None => write!(f, "ValueAt: {}", self.signal.shown(self.tick)),
        }
    }
}

/// An instant: a row of a batch that is kept, and its time.
struct Instant {
    batch: usize,
    row: usize,
    time: Option<i64>,
}

/// What was found for one.
struct Found {
    instant: Instant,
    value: Option<f64>,
    sample: Option<Sample>,
}

/// The way through one series.
#[derive(Default)]
struct Walk {
    /// The last sample that is known to be the one of its time.
    before: Option<Sample>,
    /// Instants after it whose value depends on the next sample.
    open: Vec<Instant>,
    /// Holds the next sample.
    waiting: Waiting,
    asked: bool,
}

impl ValueAt {
    pub(crate) async fn run(
        &self,
        keys: usize,
        mut input: SendableRecordBatchStream,
        output: Output,
    ) -> Result<(), DataFusionError> {
        let mut series = Keys::new(&input.schema(), keys)?;
        let mut answer = Answer { keys, batches: Vec::new(), found: Vec::new(), output };
        let mut walk = Walk::default();
        let mut any = None;
        while let Some(batch) = input.try_next().await? {
            // The last batch that is kept has a row of the series that goes on.
            if batch.num_rows() == 0 {
                continue;
            }
            let samples = Samples::new(&batch, keys, keys + 2, keys + 3)?;
            let instants = batch.column(keys + 1).as_boolean().clone();
            let runs = series.runs(&batch)?;
            answer.batches.push(batch);
            let place = answer.batches.len() - 1;
            for run in runs {
                if run.begins {
                    self.end(&mut walk, any, &mut answer);
                    walk = Walk::default();
                }
                any = Some((place, run.rows.start));
                for row in run.rows {
                    if instants.value(row) {
                        if let Some(last) = walk.waiting.end() {
                            self.close(&mut walk, Some(last), &mut answer);
                        }
                        let instant = Instant { batch: place, row, time: samples.time(row) };
                        self.instant(&mut walk, instant, &mut answer);
                    } else if let Some(sample) = samples.at(row) {
                        self.sample(&mut walk, sample, (place, row), &mut answer);
                    }
                    if answer.found.len() >= answer.output.rows_max {
                        answer.flush().await?;
                    }
                }
            }
            answer.flush().await?;
            // Of a series that goes on, one row is needed for its keys.
            match walk.open.is_empty() {
                true => {
                    answer.forget();
                    any = any.map(|(_, row)| (0, row));
                }
                false => answer.keep()?,
            }
        }
        self.end(&mut walk, any, &mut answer);
        answer.flush().await
    }

    fn sample(&self, walk: &mut Walk, sample: Sample, place: (usize, usize), answer: &mut Answer) {
        if let Some(last) = walk.waiting.push(sample) {
            self.go_on(walk, last, place, answer);
        }
    }

    /// Goes on to a sample, past the one instant if it lies before it.
    fn go_on(&self, walk: &mut Walk, next: Sample, place: (usize, usize), answer: &mut Answer) {
        if self.at.is_some_and(|at| at < next.ts) {
            self.ask(walk, place, answer);
        }
        self.close(walk, Some(next), answer);
    }

    /// Asks for the one instant, once. A series that begins later has no row.
    fn ask(&self, walk: &mut Walk, (batch, row): (usize, usize), answer: &mut Answer) {
        let first = !std::mem::replace(&mut walk.asked, true);
        if first && self.at.is_some() && walk.before.is_some() {
            self.instant(walk, Instant { batch, row, time: self.at }, answer);
        }
    }

    /// Answers an instant, or keeps it open. All samples up to it have been seen.
    fn instant(&self, walk: &mut Walk, instant: Instant, answer: &mut Answer) {
        let before = walk.before.filter(|_| instant.time.is_some());
        match (before, instant.time) {
            (Some(before), Some(time)) if self.signal.method == Method::Linear && time > before.ts => {
                walk.open.push(instant);
            }
            (before, time) => {
                let value = before.zip(time).and_then(|(before, time)| self.signal.at(&before, None, time));
                answer.found.push(Found { instant, value, sample: before });
            }
        }
    }

    /// Answers the instants that waited for the next sample, or for the end.
    fn close(&self, walk: &mut Walk, next: Option<Sample>, answer: &mut Answer) {
        if let Some(before) = walk.before {
            for instant in walk.open.drain(..) {
                let value = instant.time.and_then(|time| self.signal.at(&before, next.as_ref(), time));
                answer.found.push(Found { instant, value, sample: Some(before) });
            }
        }
        walk.before = next.or(walk.before);
    }

    /// The end of a series.
    fn end(&self, walk: &mut Walk, any: Option<(usize, usize)>, answer: &mut Answer) {
        let Some(place) = any else { return };
        if let Some(last) = walk.waiting.end() {
            self.go_on(walk, last, place, answer);
        }
        self.ask(walk, place, answer);
        self.close(walk, None, answer);
    }
}

/// Rows of the answer that are not handed over yet, and the batches they lie in.
struct Answer {
    keys: usize,
    batches: Vec<RecordBatch>,
    found: Vec<Found>,
    output: Output,
}

impl Answer {
    /// Keeps the last batch for longer, since its instants wait for a sample.
    fn keep(&mut self) -> Result<(), DataFusionError> {
        let weight = |batch: &RecordBatch| batch.get_array_memory_size() + batch.num_rows() * size_of::<Instant>();
        self.output.memory.try_grow(self.batches.last().map_or(0, weight))
    }

    /// Forgets all batches but the last.
    fn forget(&mut self) {
        self.batches.drain(..self.batches.len() - 1);
        self.output.memory.resize(0);
    }

    async fn flush(&mut self) -> Result<(), DataFusionError> {
        if self.found.is_empty() {
            return Ok(());
        }
        let schema = self.output.schema.clone();
        let places: Vec<(usize, usize)> =
            self.found.iter().map(|found| (found.instant.batch, found.instant.row)).collect();
        let own = |column: usize| {
            let arrays: Vec<&dyn Array> = self.batches.iter().map(|batch| batch.column(column).as_ref()).collect();
            interleave(&arrays, &places)
        };
        let mut columns = (0..self.keys).map(own).collect::<Result<Vec<_>, _>>()?;
        let time = |times: Int64Array| cast(&times, schema.field(self.keys).data_type());
        columns.push(time(self.found.iter().map(|found| found.instant.time).collect())?);
        // Behind the instants' own columns stand value, quality and the sample's time.
        let extras = schema.fields().len() - self.keys - 4;
        for extra in 0..extras {
            columns.push(own(self.keys + 4 + extra)?);
        }
        columns.push(Arc::new(self.found.iter().map(|found| found.value).collect::<Float64Array>()));
        let quality = |found: &Found| found.sample?.quality.map(quality::stored);
        columns.push(Arc::new(self.found.iter().map(quality).collect::<Int16Array>()));
        columns.push(time(self.found.iter().map(|found| found.sample.map(|sample| sample.ts)).collect())?);
        self.found.clear();
        self.output.send(RecordBatch::try_new(schema, columns)?).await
    }
}
