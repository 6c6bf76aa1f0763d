//! What a query has running, and the end of it.
//!
//! ```text
//! stream dropped -> its tasks are told to end -> each lets go on its own thread -> gone
//!        |------------------------ waited for, a moment ----------------------|
//! ```
//! Until then they hold memory that the next statement would be given, and a snapshot whose pages it would find free. So whoever
//! drops the rows of a query waits for it, in vain at most [`WAIT_MAX`]: a step of a scan runs out.

use std::any::Any;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{Stream, StreamExt, TryStreamExt};

use crate::error::Result;

/// How long an end is waited for.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How often it is looked for at once, before a pause between two looks.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_micros(100);

/// What each task of a query holds as long as it runs.
pub(crate) type Hold = Arc<dyn Any + Send + Sync>;

/// Starts a plan of the library.
///
/// # Errors
/// The library's.
pub(crate) fn start(
    state: &SessionState,
    physical: Arc<dyn ExecutionPlan>,
) -> Result<SendableRecordBatchStream, DataFusionError> {
    let environment = state.runtime_env();
    let held = Arc::new(Held { pool: environment.memory_pool.clone() });
    let ended = Arc::downgrade(&held);
    let environment = RuntimeEnv { memory_pool: held, ..RuntimeEnv::clone(environment) };
    let context = TaskContext::from(state).with_runtime(Arc::new(environment));
    let rows = execute_stream(physical, Arc::new(context))?;
    Ok(Box::pin(Running { schema: rows.schema(), rows: Some(rows), ended }))
}

/// Starts what holds something as long as it runs.
///
/// # Errors
/// Those of starting it.
pub(crate) fn start_with(
    state: &SessionState,
    begin: impl FnOnce(Hold) -> Result<SendableRecordBatchStream>,
) -> Result<SendableRecordBatchStream> {
    let held = Arc::new(Held { pool: state.runtime_env().memory_pool.clone() });
    let ended = Arc::downgrade(&held);
    let rows = begin(held)?;
    Ok(Box::pin(Running { schema: rows.schema(), rows: Some(rows), ended }))
}

/// Reads up to the first row: what goes wrong before it is an error of the statement, of which nothing is left.
///
/// # Errors
/// The rows'.
pub(crate) async fn begun(mut rows: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
    let (schema, mut first) = (rows.schema(), None);
    while let Some(batch) = rows.try_next().await? {
        if batch.num_rows() > 0 {
            first = Some(Ok(batch));
            break;
        }
    }
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(first).chain(rows))))
}

/// The rows of a query.
struct Running {
    schema: SchemaRef,
    rows: Option<SendableRecordBatchStream>,
    ended: Weak<Held>,
}

impl Stream for Running {
    type Item = Result<RecordBatch, DataFusionError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.rows {
            Some(rows) => rows.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl RecordBatchStream for Running {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.rows = None;
        let (begin, mut looks) = (Instant::now(), 0);
        while self.ended.strong_count() > 0 && begin.elapsed() < WAIT_MAX {
            if looks < LOOKS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PAUSE);
            }
            looks += 1;
        }
    }
}

/// The memory that all queries share, as one query sees it: whoever was lent some of it, or may be, holds this.
#[derive(Debug)]
struct Held {
    pool: Arc<dyn MemoryPool>,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pool.fmt(f)
    }
}

impl MemoryPool for Held {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        self.pool.try_grow(reservation, additional)
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_plan::EmptyRecordBatchStream;
    use datafusion::prelude::SessionContext;

    use super::*;

    #[test]
    fn whoever_drops_the_rows_waits_for_what_runs_on() {
        let state = SessionContext::new().state();
        let is_done = Arc::new(AtomicBool::new(false));
        let rows = start_with(&state, |hold| {
            let is_done = is_done.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                is_done.store(true, Ordering::SeqCst);
                drop(hold);
            });
            Ok(Box::pin(EmptyRecordBatchStream::new(Arc::new(Schema::empty()))))
        });
        drop(rows);
        assert!(is_done.load(Ordering::SeqCst));
    }
}
