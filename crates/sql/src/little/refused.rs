//! What cannot be done in little memory: it can be looked at, and says what is enough when it is to run.

use std::fmt;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::error::Error;
use crate::inner_node::{no_expressions, over_children};

/// What is enough for everything.
const ENOUGH: &str = "--ram 64M";

/// The plan node, over all that is refused.
#[derive(Debug)]
pub(super) struct Refused {
    plan: Arc<dyn ExecutionPlan>,
    /// The name of the node that needs more.
    node: String,
}

impl Refused {
    pub(super) fn new(plan: Arc<dyn ExecutionPlan>, node: String) -> Self {
        Refused { plan, node }
    }

    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let plan = children.into_iter().next().ok_or_else(|| Error::Bug("a plan without what it is over".into()))?;
        Ok(Arc::new(Refused::new(plan, self.node.clone())))
    }
}

impl DisplayAs for Refused {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refused: {} needs {ENOUGH}", self.node)
    }
}

impl ExecutionPlan for Refused {
    fn name(&self) -> &'static str {
        "Refused"
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
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        let node = &self.node;
        let text = format!("this query has a step ({node}) for which so little memory is not enough: {ENOUGH} is");
        Err(Error::Memory(text).into())
    }
}
