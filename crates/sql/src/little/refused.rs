//! What cannot be done in little memory: it can be looked at, and says what is enough when it is to run.

use std::fmt;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::error::Error;

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

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion, DataFusionError>,
    ) -> Result<TreeNodeRecursion, DataFusionError> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        self.over(children)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        self.over(children)
    }

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
