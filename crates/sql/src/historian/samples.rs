//! Samples as the plan below hands them over: key columns, time, value, quality.

use std::cmp::Ordering;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::DataFusionError;

use super::quality;
use super::signal::Sample;

/// The samples of a batch.
pub(crate) struct Samples {
    times: Int64Array,
    values: Float64Array,
    qualities: Int64Array,
}

/// A column of whole numbers or times, as ticks.
pub(crate) fn ticks(array: &ArrayRef) -> Result<Int64Array, DataFusionError> {
    Ok(cast(array, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

impl Samples {
    /// The columns at these places.
    pub(crate) fn new(batch: &RecordBatch, time: usize, value: usize, quality: usize) -> Result<Self, DataFusionError> {
        let values = cast(batch.column(value), &DataType::Float64)?.as_primitive::<Float64Type>().clone();
        Ok(Samples { times: ticks(batch.column(time))?, values, qualities: ticks(batch.column(quality))? })
    }

    /// The sample of a row, if it is one.
    pub(crate) fn at(&self, row: usize) -> Option<Sample> {
        let ts = self.time(row)?;
        let quality = self.qualities.is_valid(row).then(|| self.qualities.value(row));
        let value = self.values.is_valid(row).then(|| self.values.value(row));
        match (quality::is_good(quality), value) {
            (true, None) => None,
            (true, value) => Some(Sample { ts, value, quality }),
            (false, _) => Some(Sample { ts, value: None, quality }),
        }
    }

    /// The time of a row.
    pub(crate) fn time(&self, row: usize) -> Option<i64> {
        self.times.is_valid(row).then(|| self.times.value(row))
    }
}

/// Holds the last sample until one of a later time is there: until then, a better one of the same time may come.
#[derive(Default)]
pub(crate) struct Waiting {
    last: Option<Sample>,
}

impl Waiting {
    /// The sample before this one, once it is known to be the one of its time.
    pub(crate) fn push(&mut self, next: Sample) -> Option<Sample> {
        match self.last {
            Some(last) if last.ts.cmp(&next.ts) == Ordering::Equal => {
                self.last = Some(last.or_better(next));
                None
            }
            _ => self.last.replace(next),
        }
    }

    /// The last sample: no other comes.
    pub(crate) fn end(&mut self) -> Option<Sample> {
        self.last.take()
    }
}
