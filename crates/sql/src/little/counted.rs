//! A node that keeps rows, between one that counts what it is given and one that knows what it answers.
//!
//! ```text
//! Counted: held          what was counted is held until the node ends, or until it has answered
//!   the node
//!     Counted: kept above    bytes of each batch, taken from the bound
//!       its input
//! ```
//! Where memory ends, the rest of the input is looked at once, and the error says what all of it would have taken.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::task::yield_now;

use crate::error::Error;
use crate::inner_node::{no_expressions, over_children};
use crate::memory::{self, RECKONED_BYTES_MAX};

/// What a node keeps of the rows that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeps {
    /// All of them, and asks nobody for the memory.
    All,
    /// Those that it has not answered, and asks nobody.
    Unanswered,
    /// As much more as they are more, and asks for it.
    Asked,
}

/// The input of a node that is running.
struct Fed {
    keeps: Keeps,
    rows: Mutex<Option<SendableRecordBatchStream>>,
    counted: Mutex<Count>,
    reservation: MemoryReservation,
}

/// Rows, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// All that came.
    rows: usize,
    /// Rows that are held, and their bytes.
    held_rows: usize,
    held_bytes: usize,
}

impl Fed {
    /// Takes what a batch takes.
    fn take(&self, batch: &RecordBatch) -> Result<(), DataFusionError> {
        let mut counted = self.counted.lock();
        counted.rows += batch.num_rows();
        if self.keeps != Keeps::Asked {
            let bytes = batch.get_array_memory_size();
            self.reservation.try_grow(bytes)?;
            counted.held_rows += batch.num_rows();
            counted.held_bytes += bytes;
        }
        Ok(())
    }

    /// So many rows were answered.
    fn answered(&self, rows: usize) {
        let mut counted = self.counted.lock();
        if self.keeps == Keeps::Unanswered && counted.held_rows > 0 {
            let gone = rows.min(counted.held_rows);
            let bytes = (counted.held_bytes as u128 * gone as u128 / counted.held_rows as u128) as usize;
            counted.held_rows -= gone;
            counted.held_bytes -= bytes;
            self.reservation.shrink(bytes);
        }
    }

    /// What all queries would have to have for all rows, where `needed` was not there for those that came; none if the rest cannot be
    /// read either, or there is none. Rows without end are looked at until so much would be needed that nobody asks for more.
    async fn needed_for_all(&self, needed: usize) -> Option<usize> {
        if self.keeps == Keeps::Unanswered {
            // How many wait for an answer at a time is not told by how many there are.
            return None;
        }
        let mut rest = self.rows.lock().take()?;
        let came = self.counted.lock().rows.max(1) as u128;
        let (mut rows, mut all) = (came, needed);
        while all < RECKONED_BYTES_MAX
            && let Some(batch) = rest.next().await
        {
            let batch = batch.ok()?;
            rows += batch.num_rows() as u128;
            all = match self.keeps {
                Keeps::All => all.saturating_add(batch.get_array_memory_size()),
                _ => usize::try_from(needed as u128 * rows / came).unwrap_or(usize::MAX),
            };
            // Whoever waits for the statement may call it off.
            yield_now().await;
        }
        Some(all)
    }
}

/// Inputs of a node that is running: each part of it takes its own.
type Inputs = Arc<Mutex<Vec<Arc<Fed>>>>;

/// The plan node below it, which counts, or that above it, which holds what was counted until it ends.
pub(super) struct Counted {
    input: Arc<dyn ExecutionPlan>,
    keeps: Keeps,
    inputs: Inputs,
    is_below: bool,
}

impl Counted {
    /// A node that keeps rows, of its first input, between the two.
    pub(super) fn around(
        node: &Arc<dyn ExecutionPlan>,
        keeps: Keeps,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let inputs = Inputs::default();
        let mut below: Vec<Arc<dyn ExecutionPlan>> = node.children().into_iter().cloned().collect();
        if let Some(first) = below.first_mut() {
            *first = Arc::new(Counted { input: first.clone(), keeps, inputs: inputs.clone(), is_below: true });
        }
        let input = super::over(node, below)?;
        Ok(Arc::new(Counted { input, keeps, inputs, is_below: false }))
    }

    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let input = children.into_iter().next().ok_or_else(|| Error::Bug("nothing to count".into()))?;
        Ok(Arc::new(Counted { input, inputs: self.inputs.clone(), ..*self }))
    }

    /// The rows of the node's input, counted on their way to it.
    fn counting(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let reservation = MemoryConsumer::new("Counted").register(context.memory_pool());
        let rows = Mutex::new(Some(self.input.execute(partition, context)?));
        let fed = Arc::new(Fed { keeps: self.keeps, rows, counted: Mutex::default(), reservation });
        self.inputs.lock().push(fed.clone());
        let counted = stream::poll_fn(move |waker| {
            let mut rows = fed.rows.lock();
            let next = rows.as_mut().map_or(Poll::Ready(None), |rows| rows.poll_next_unpin(waker));
            if matches!(next, Poll::Ready(None | Some(Err(_)))) {
                // There is no rest to be looked at.
                *rows = None;
            }
            next.map(|batch| batch.map(|batch| batch.and_then(|batch| fed.take(&batch).map(|()| batch))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted)))
    }

    /// The rows that the node answers.
    fn holding(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        // Started, the node below has started the one that counts.
        let rows = self.input.execute(partition, context)?;
        let inputs = std::mem::take(&mut *self.inputs.lock());
        let held = stream::unfold((rows, inputs), |(mut rows, inputs)| async move {
            let batch = match rows.next().await? {
                Ok(batch) => {
                    inputs.iter().for_each(|fed| fed.answered(batch.num_rows()));
                    Ok(batch)
                }
                Err(error) => Err(reckoned(error, &inputs).await),
            };
            Some((batch, (rows, inputs)))
        })
        .fuse();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), held)))
    }
}

/// What a node ended with: where that is memory of its own, with how much all rows would have taken.
async fn reckoned(error: DataFusionError, inputs: &[Arc<Fed>]) -> DataFusionError {
    let DataFusionError::ResourcesExhausted(refusal) = error.find_root() else { return error };
    let (Some(needed), [fed]) = (memory::needed(refusal), inputs) else { return error };
    match fed.needed_for_all(needed).await {
        Some(needed) => Error::of_tables(counterfoil_relation::Error::memory(Some(needed))).into(),
        None => error,
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("keeps", &self.keeps).field("is_below", &self.is_below).finish_non_exhaustive()
    }
}

impl DisplayAs for Counted {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.is_below, self.keeps) {
            (true, Keeps::Asked) => "Counted: looked at above",
            (true, _) => "Counted: kept above",
            (false, Keeps::All) => "Counted: held",
            (false, Keeps::Unanswered) => "Counted: held until it is answered",
            (false, Keeps::Asked) => "Counted: rows",
        })
    }
}

impl ExecutionPlan for Counted {
    fn name(&self) -> &'static str {
        "Counted"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    no_expressions!();

    over_children!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        match self.is_below {
            true => self.counting(partition, context),
            false => self.holding(partition, context),
        }
    }
}
