//! What a question to a server may take of its statement, and the thread that asks it.
//!
//! A question waits for a server, which may say nothing for as long as it likes. It has a thread of its own: the threads that read
//! tables are few, and one server that is silent must not take them from all others.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::BaselineMetrics;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::session::STACK_BYTES;

/// Questions of one process that wait for servers at a time.
const QUESTIONS_MAX: usize = 64;

static QUESTIONS: AtomicUsize = AtomicUsize::new(0);

/// What a question may take of its statement.
pub struct Asking {
    pool: Arc<dyn MemoryPool>,
    reservation: MemoryReservation,
    wanted: Weak<()>,
}

impl Asking {
    /// A question for whoever holds `wanted`, with memory of the pool.
    pub(crate) fn of(pool: &Arc<dyn MemoryPool>, wanted: &Arc<()>) -> Self {
        let reservation = MemoryConsumer::new("published rows").register(pool);
        Asking { pool: pool.clone(), reservation, wanted: Arc::downgrade(wanted) }
    }

    /// Takes so many bytes of working memory more.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn take(&self, bytes: usize) -> Result<()> {
        Ok(self.reservation.try_grow(bytes)?)
    }

    /// Holds so many bytes from now on, whatever it held before: no more than that.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn hold(&self, bytes: usize) -> Result<()> {
        Ok(self.reservation.try_resize(bytes)?)
    }

    /// Bytes that could be taken now at most.
    #[must_use]
    pub fn room(&self) -> usize {
        match self.pool.memory_limit() {
            MemoryLimit::Finite(limit) => limit.saturating_sub(self.pool.reserved()),
            _ => usize::MAX,
        }
    }

    /// Gone as soon as nobody waits for the answer any more.
    #[must_use]
    pub fn wanted(&self) -> Weak<()> {
        self.wanted.clone()
    }

    /// Gives back what a batch took that somebody else has now.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.reservation.shrink(bytes.min(self.reservation.size()));
    }
}

/// One of the questions that are asked.
struct Counted;

impl Counted {
    fn begin() -> Result<Self> {
        let before = QUESTIONS.fetch_add(1, Ordering::Relaxed);
        // It is counted from here on, and no longer where it is one too many.
        let counted = Counted;
        match before < QUESTIONS_MAX {
            true => Ok(counted),
            false => Err(Error::Network(format!(
                "{QUESTIONS_MAX} questions wait for servers of published tables: try again when some have ended"
            ))),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        QUESTIONS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Does something on a thread of its own, and waits for it. Whoever waits no longer leaves the thread to itself: it ends with the
/// file that it waits for.
pub(crate) async fn apart<T: Send + 'static>(body: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let counted = Counted::begin()?;
    let (sender, answer) = oneshot::channel();
    let thread = std::thread::Builder::new().name("counterfoil-asker".into()).stack_size(STACK_BYTES);
    let asked = thread.spawn(move || {
        let done = body();
        drop(counted);
        // Nobody may wait for it any more.
        let _ = sender.send(done);
    });
    let asked = asked.map_err(|error| Error::Host(format!("cannot start a thread that asks a server: {error}")))?;
    let answer =
        answer.await.unwrap_or_else(|_| Err(Error::Bug("a question to a server ended without an answer".into())));
    // It has nothing left to do; who lets go of a thread while it ends may end with it (see `Executor`). A panic has been told of.
    asked.join().unwrap_or_default();
    answer
}

/// Some batches of an answer.
pub(crate) struct Turn {
    pub batches: VecDeque<RecordBatch>,
    /// Whether nothing comes behind them.
    pub is_last: bool,
}

/// Batches that are asked for when the first of them is wanted, on a thread of its own. Their memory is the statement's until somebody
/// else has them.
pub(crate) fn stream(
    schema: SchemaRef,
    context: &TaskContext,
    metrics: BaselineMetrics,
    ask: impl FnOnce(&mut Asking) -> Result<VecDeque<RecordBatch>> + Send + 'static,
) -> SendableRecordBatchStream {
    let mut ask = Some(ask);
    in_turns(schema, context, metrics, move |asking| {
        let batches = ask.take().map_or_else(|| Ok(VecDeque::new()), |ask| ask(asking))?;
        Ok(Turn { batches, is_last: true })
    })
}

/// As [`stream`], but some at a time: more are asked for when somebody else has those before.
pub(crate) fn in_turns(
    schema: SchemaRef,
    context: &TaskContext,
    metrics: BaselineMetrics,
    ask: impl FnMut(&mut Asking) -> Result<Turn> + Send + 'static,
) -> SendableRecordBatchStream {
    let wanted = Arc::new(());
    let asking = Asking::of(context.memory_pool(), &wanted);
    let batches = Batches { ask: Some((ask, asking)), held: None, ready: VecDeque::new(), _wanted: wanted };
    let stream = futures::stream::unfold((batches, metrics), |(mut batches, metrics)| async move {
        let batch = batches.next().await.transpose()?;
        if let Ok(batch) = &batch {
            metrics.record_output(batch.num_rows());
        }
        Some((batch.map_err(DataFusionError::from), (batches, metrics)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, stream))
}

/// See [`in_turns`].
struct Batches<F> {
    /// What is asked next, unless all of it was.
    ask: Option<(F, Asking)>,
    /// The memory of the last batches, where nothing is asked behind them.
    held: Option<Asking>,
    ready: VecDeque<RecordBatch>,
    _wanted: Arc<()>,
}

impl<F: FnMut(&mut Asking) -> Result<Turn> + Send + 'static> Batches<F> {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.ready.is_empty() {
            let Some((mut ask, mut asking)) = self.ask.take() else { return Ok(None) };
            let (turn, ask, asking) = apart(move || Ok((ask(&mut asking)?, ask, asking))).await?;
            self.ready = turn.batches;
            match turn.is_last {
                true => self.held = Some(asking),
                false => self.ask = Some((ask, asking)),
            }
        }
        let batch = self.ready.pop_front();
        let held = self.held.as_ref().or(self.ask.as_ref().map(|(_, asking)| asking));
        if let (Some(batch), Some(held)) = (&batch, held) {
            held.give_back(batch.get_array_memory_size());
        }
        Ok(batch)
    }
}
