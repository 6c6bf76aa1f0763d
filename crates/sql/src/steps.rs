//! How a part of a scan does its work: in steps of one block.
//!
//! A few steps run on the bounded blocking pool, the next ones start when their batches are taken, and no thread ever waits for a
//! consumer: however many scans one query has, they cannot starve each other, and a dropped stream leaves at most a few steps to
//! run out.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput, Time};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::running::Hold;

/// What gives batches one by one, each of them work for a thread of its own.
pub(crate) trait Step: Send + 'static {
    /// The next batch; none when all were given. One without rows says that there are none yet: then whoever wants them is looked for.
    fn step(&mut self) -> Result<Option<RecordBatch>>;
}

/// Steps of a part that a thread takes before it hands their batches over, in the end.
const STEPS_MAX: usize = 16;
/// Bytes from which on it hands them over earlier: rows may be wide, and every part of every scan of a plan may have as much in hand
/// before anybody takes it.
const BYTES_AHEAD: usize = 4 << 20;

/// What a thread works on, and what it holds meanwhile.
struct Work<W> {
    of: W,
    /// How long it has worked on it.
    elapsed: Time,
    _hold: Hold,
    /// Whoever wants the batches; gone when nobody does any more.
    wanted: Weak<()>,
}

impl<W: Step> Work<W> {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        let _timer = self.elapsed.timer();
        self.of.step()
    }
}

/// What a thread gives back.
struct Stepped<W> {
    work: Box<Work<W>>,
    batches: VecDeque<RecordBatch>,
    /// How the part ended, if it did.
    end: Option<Result<()>>,
}

impl<W: Step> Stepped<W> {
    /// Takes so many steps.
    fn of(mut work: Box<Work<W>>, steps: usize) -> Self {
        let (mut batches, mut bytes) = (VecDeque::new(), 0);
        while batches.len() < steps && bytes < BYTES_AHEAD {
            if work.wanted.strong_count() == 0 {
                return Stepped { work, batches, end: Some(Err(Error::Interrupted)) };
            }
            match work.step() {
                Ok(Some(batch)) if batch.num_rows() == 0 => {}
                Ok(Some(batch)) => {
                    bytes += batch.get_array_memory_size();
                    batches.push_back(batch);
                }
                ended => return Stepped { work, batches, end: Some(ended.map(drop)) },
            }
        }
        Stepped { work, batches, end: None }
    }
}

/// Steps of a part: on the blocking pool, started ahead of the consumer; or in place for small parts.
///
/// A block takes less time than two threads need to tell each other that it is there. So the first step is handed over by itself,
/// and then twice as many each time.
pub(crate) struct Steps<W> {
    work: Option<Box<Work<W>>>,
    ahead: Option<JoinHandle<Stepped<W>>>,
    steps: usize,
    ready: VecDeque<RecordBatch>,
    end: Option<Result<()>>,
    inline: bool,
    _wants: Arc<()>,
}

impl<W: Step> Steps<W> {
    /// The batches of a part as the query library takes them. `hold` is held as long as a thread has something of it.
    pub(crate) fn stream(
        work: W,
        hold: Hold,
        inline: bool,
        metrics: BaselineMetrics,
        schema: SchemaRef,
    ) -> SendableRecordBatchStream {
        let wants = Arc::new(());
        let elapsed = metrics.elapsed_compute().clone();
        let work = Some(Box::new(Work { of: work, elapsed, _hold: hold, wanted: Arc::downgrade(&wants) }));
        let steps = Steps { work, ahead: None, steps: 1, ready: VecDeque::new(), end: None, inline, _wants: wants };
        let stream = futures::stream::unfold((steps, metrics), |(mut steps, metrics)| async move {
            let batch = steps.next().await.transpose()?;
            if let Ok(batch) = &batch {
                batch.record_output(&metrics);
            }
            Some((batch.map_err(DataFusionError::from), (steps, metrics)))
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, stream))
    }

    fn start(&mut self) {
        if let Some(work) = self.work.take() {
            let steps = self.steps;
            self.ahead = Some(tokio::task::spawn_blocking(move || Stepped::of(work, steps)));
            self.steps = (2 * steps).min(STEPS_MAX);
        }
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.inline {
            let Some(work) = &mut self.work else { return Ok(None) };
            loop {
                match work.step()? {
                    Some(batch) if batch.num_rows() == 0 => {}
                    batch => return Ok(batch),
                }
            }
        }
        if self.ready.is_empty() && self.end.is_none() {
            self.more().await?;
        }
        match self.ready.pop_front() {
            Some(batch) => Ok(Some(batch)),
            None => self.end.take().unwrap_or(Ok(())).map(|()| None),
        }
    }

    /// Waits for the batches that are being read, and has the next ones read.
    async fn more(&mut self) -> Result<()> {
        self.start();
        let Some(ahead) = self.ahead.take() else { return Ok(()) };
        let Stepped { work, batches, end } = match ahead.await {
            Ok(done) => done,
            Err(error) if error.is_cancelled() => return Err(Error::Interrupted),
            Err(_) => return Err(Error::Bug("a scan panicked".into())),
        };
        (self.ready, self.end) = (batches, end);
        if self.end.is_none() {
            self.work = Some(work);
            self.start();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, BinaryArray};

    use super::*;

    /// Batches of one row of so many bytes, without an end.
    struct Wide(usize);

    impl Step for Wide {
        fn step(&mut self) -> Result<Option<RecordBatch>> {
            let row: ArrayRef = Arc::new(BinaryArray::from(vec![vec![0; self.0].as_slice()]));
            Ok(Some(RecordBatch::try_from_iter([("row", row)])?))
        }
    }

    #[test]
    fn narrow_batches_are_handed_over_many_at_a_time_and_wide_ones_few() {
        let wants = Arc::new(());
        let work = |bytes| {
            Box::new(Work {
                of: Wide(bytes),
                elapsed: Time::new(),
                _hold: Arc::new(()),
                wanted: Arc::downgrade(&wants),
            })
        };
        let of = |bytes| Stepped::of(work(bytes), STEPS_MAX).batches.len();
        assert_eq!(of(100), STEPS_MAX);
        assert_eq!(of(1 << 20), 4);
        assert_eq!(of(8 << 20), 1);
    }

    /// Batches without a row, without an end.
    struct Endless;

    impl Step for Endless {
        fn step(&mut self) -> Result<Option<RecordBatch>> {
            let none: ArrayRef = Arc::new(BinaryArray::from(Vec::<&[u8]>::new()));
            Ok(Some(RecordBatch::try_from_iter([("row", none)])?))
        }
    }

    #[test]
    fn work_that_nobody_wants_any_more_ends() {
        let wants = Arc::new(());
        let work = Work { of: Endless, elapsed: Time::new(), _hold: Arc::new(()), wanted: Arc::downgrade(&wants) };
        let thread = std::thread::spawn(|| Stepped::of(Box::new(work), STEPS_MAX).end);
        drop(wants);
        assert!(matches!(thread.join().unwrap(), Some(Err(Error::Interrupted))));
    }
}
