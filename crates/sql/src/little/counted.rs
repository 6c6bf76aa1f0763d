//! Rows that a node keeps without asking anybody for the memory, counted on their way to it.

use std::fmt;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;
use parking_lot::Mutex;

use crate::error::Error;
use crate::inner_node::{no_expressions, over_children};

/// What is held for a node that is running.
type Held = Arc<Mutex<Vec<Arc<MemoryReservation>>>>;

/// The plan node below it, which counts, or that above it, which holds what was counted until it ends.
#[derive(Debug)]
pub(super) struct Counted {
    input: Arc<dyn ExecutionPlan>,
    held: Held,
    is_below: bool,
}

impl Counted {
    /// A node that keeps rows, between the two.
    pub(super) fn around(node: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let held = Held::default();
        let below = node
            .children()
            .into_iter()
            .cloned()
            .map(|input| Arc::new(Counted { input, held: held.clone(), is_below: true }) as Arc<dyn ExecutionPlan>);
        let input = super::over(node, below.collect())?;
        Ok(Arc::new(Counted { input, held, is_below: false }))
    }

    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let input = children.into_iter().next().ok_or_else(|| Error::Bug("nothing to count".into()))?;
        Ok(Arc::new(Counted { input, held: self.held.clone(), is_below: self.is_below }))
    }
}

impl DisplayAs for Counted {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_below { "Counted: kept above" } else { "Counted: held" })
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
        if !self.is_below {
            // Started, the node below has started the one that counts.
            let input = self.input.execute(partition, context)?;
            let held = std::mem::take(&mut *self.held.lock());
            let rows = input.inspect(move |_| {
                let _ = &held;
            });
            return Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)));
        }
        let reservation = Arc::new(MemoryConsumer::new("Counted").register(context.memory_pool()));
        self.held.lock().push(reservation.clone());
        let input = self.input.execute(partition, context)?;
        let counted = input.map(move |batch| {
            let batch = batch?;
            reservation.try_grow(batch.get_array_memory_size())?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), counted)))
    }
}
