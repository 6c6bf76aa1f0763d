//! The side of a join that was begun before the join: the rows that came, and those that come behind them.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use crate::inner_node::{no_expressions, over_children};

/// A part of it.
pub(crate) struct Part {
    /// The rows that came, with the memory that they were given.
    pub batches: Vec<(RecordBatch, Option<MemoryReservation>)>,
    /// What comes behind them, if that was not the end.
    pub rest: Option<SendableRecordBatchStream>,
}

/// The plan node, over what was begun: its parts are read once.
pub(crate) struct BegunSide {
    plan: Arc<dyn ExecutionPlan>,
    parts: Vec<Mutex<Option<Part>>>,
}

impl BegunSide {
    /// What was begun of a plan, part by part.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>, parts: Vec<Part>) -> Self {
        BegunSide { plan: plan.clone(), parts: parts.into_iter().map(|part| Mutex::new(Some(part))).collect() }
    }

    /// It is never put over anything else: what was begun is begun.
    fn over(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        Ok(self)
    }
}

impl fmt::Debug for BegunSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunSide").field("parts", &self.parts.len()).finish()
    }
}

impl DisplayAs for BegunSide {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rows that were read already")
    }
}

impl ExecutionPlan for BegunSide {
    fn name(&self) -> &'static str {
        "BegunSide"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    no_expressions!();
    over_children!();

    fn execute(
        &self,
        partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let part = self.parts.get(partition).and_then(|part| part.lock().take());
        let Some(Part { batches, rest }) = part else {
            return Err(DataFusionError::Internal("a side of a join is read twice".into()));
        };
        let rest = rest.map_or_else(|| stream::empty().boxed(), StreamExt::boxed);
        // Memory is given back with what is handed on: whoever reads it asks for his own.
        let came = stream::iter(batches.into_iter().map(|(batch, _)| Ok(batch))).chain(rest);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.plan.schema(), came)))
    }
}
