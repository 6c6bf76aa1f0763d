//! `lttb`: the points of a series that keep its look, by largest triangles in three buckets (S. Steinarsson, Downsampling
//! Time Series for Visual Representation, University of Iceland 2013, section 4.2).

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Float64Array, Int64Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use futures::TryStreamExt;

use super::keys::{Key, Keys};
use super::node::Output;
use super::samples::{Samples, Waiting};
use super::signal::Sample;

/// The operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lttb {
    /// Points that stay of each series, two at least.
    pub points: usize,
}

impl fmt::Display for Lttb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LTTB: {} points", self.points)
    }
}

/// A point of a drawing.
type Point = (i64, f64);

impl Lttb {
    pub(crate) async fn run(
        &self,
        keys: usize,
        mut input: SendableRecordBatchStream,
        output: Output,
    ) -> Result<(), DataFusionError> {
        let mut series = Keys::new(&input.schema(), keys)?;
        let mut drawing = Drawing::default();
        while let Some(batch) = input.try_next().await? {
            let samples = Samples::new(&batch, keys, keys + 1, keys + 2)?;
            for run in series.runs(&batch)? {
                if run.begins {
                    self.finish(&mut drawing, &series, &output).await?;
                    drawing = Drawing { key: run.key, ..Drawing::default() };
                }
                for sample in run.rows.filter_map(|row| samples.at(row)) {
                    let done = drawing.waiting.push(sample);
                    drawing.draw(done, &output)?;
                }
            }
        }
        self.finish(&mut drawing, &series, &output).await
    }

    /// Hands over what stays of a series.
    async fn finish(&self, drawing: &mut Drawing, series: &Keys, output: &Output) -> Result<(), DataFusionError> {
        let last = drawing.waiting.end();
        drawing.draw(last, output)?;
        let kept = kept(&drawing.points, self.points);
        for places in kept.chunks(output.rows_max) {
            let mut columns = series.columns(&vec![drawing.key.clone(); places.len()])?;
            let times = Int64Array::from_iter_values(places.iter().map(|place| drawing.points[*place].0));
            columns.push(cast(&times, output.schema.field(columns.len()).data_type())?);
            let values = places.iter().map(|place| drawing.points[*place].1);
            columns.push(Arc::new(Float64Array::from_iter_values(values)));
            output.send(RecordBatch::try_new(output.schema.clone(), columns)?).await?;
        }
        drawing.points = Vec::new();
        output.memory.resize(0);
        Ok(())
    }
}

/// The points of one series.
#[derive(Default)]
struct Drawing {
    key: Key,
    waiting: Waiting,
    points: Vec<Point>,
}

impl Drawing {
    fn draw(&mut self, sample: Option<Sample>, output: &Output) -> Result<(), DataFusionError> {
        // NaN and infinity have no place in a drawing.
        let Some(Sample { ts, value: Some(value), .. }) =
            sample.filter(|sample| sample.value.is_some_and(f64::is_finite))
        else {
            return Ok(());
        };
        if self.points.len() == self.points.capacity() {
            let capacity = (self.points.capacity() * 2).max(1024);
            // The old and the new stand beside each other while one is copied.
            output.memory.try_resize((self.points.capacity() + capacity) * size_of::<Point>())?;
            self.points.reserve_exact(capacity - self.points.len());
        }
        self.points.push((ts, value));
        Ok(())
    }
}

/// The places of the points that stay: the first, the last, and of each bucket of points between them the one that makes
/// the largest triangle with the point chosen before it and the middle of the bucket after it.
fn kept(points: &[Point], count: usize) -> Vec<usize> {
    if points.len() <= count {
        return (0..points.len()).collect();
    }
    let (last, inner) = (points.len() - 1, count - 2);
    // Where a bucket begins; the first point is a bucket of its own, and so is the last.
    let begin = |bucket: usize| match inner {
        0 => last,
        inner => (bucket as u128 * (last - 1) as u128 / inner as u128) as usize + 1,
    };
    let x = |place: usize| (i128::from(points[place].0) - i128::from(points[0].0)) as f64;
    let mut kept = vec![0];
    for bucket in 0..inner {
        let (here, next) = (begin(bucket)..begin(bucket + 1), begin(bucket + 1)..begin(bucket + 2).min(last + 1));
        let length = next.len() as f64;
        let middle = next.fold((0.0, 0.0), |sum, place| (sum.0 + x(place) / length, sum.1 + points[place].1 / length));
        let before = kept[kept.len() - 1];
        let mut largest = (here.start, -1.0);
        for place in here {
            let twice = (x(before) - middle.0) * (points[place].1 - points[before].1)
                - (x(before) - x(place)) * (middle.1 - points[before].1);
            if twice.abs() > largest.1 {
                largest = (place, twice.abs());
            }
        }
        kept.push(largest.0);
    }
    kept.push(last);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_what_the_thesis_chooses() {
        // A flat line with a peak: its buckets are 1..3, 3..6 and 6..9, the peak is in the second.
        let mut points: Vec<Point> = (0..10).map(|time| (time, 0.0)).collect();
        points[5].1 = 8.0;
        assert_eq!(kept(&points, 5), [0, 2, 5, 6, 9]);
        assert_eq!(kept(&points, 2), [0, 9]);
        assert_eq!(kept(&points, 3), [0, 5, 9]);
        assert_eq!(kept(&points, 10), (0..10).collect::<Vec<_>>());
        assert_eq!(kept(&[], 3), [0usize; 0]);
    }

    #[test]
    fn as_many_points_stay_as_were_asked_for_each_once() {
        for length in 2..60 {
            let points: Vec<Point> = (0..length).map(|time| (time * time, ((time * 7919) % 31) as f64)).collect();
            for count in 2..=length as usize {
                let kept = kept(&points, count);
                assert_eq!(kept.len(), count);
                assert!(kept.is_sorted_by(|left, right| left < right), "{kept:?}");
            }
        }
    }
}
