//! Rows of which nobody is told that they come in an order.
//!
//! The query library says of the rows of a join that they come in the order of one side and, where that is equal, in that of the other.
//! That is not so where the first side has rows that are equal in its order: each of them brings the rows of the other side that
//! it joins, one after the other (DataFusion 55, `join_equivalence_properties`; with `ORDER BY` of both it leaves out the sort).
//! So the side that would be told second says nothing of its order.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};

use crate::error::Error;
use crate::inner_node::{no_expressions, over_children};

/// The plan node: passes rows on as they are.
#[derive(Debug)]
pub(crate) struct Unordered {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Unordered {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Unordered { input, properties: Arc::new(properties) }
    }

    fn over(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let input = children.into_iter().next().ok_or_else(|| Error::Bug("nothing without an order".into()))?;
        Ok(Arc::new(Unordered::new(input)))
    }
}

impl DisplayAs for Unordered {
    fn fmt_as(&self, _kind: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unordered")
    }
}

impl ExecutionPlan for Unordered {
    fn name(&self) -> &'static str {
        "Unordered"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    no_expressions!();

    over_children!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream, DataFusionError> {
        self.input.execute(partition, context)
    }
}

/// The rule, behind the one that may exchange the sides of a join, and before those that ask for orders.
#[derive(Debug)]
pub(crate) struct OneOrder;

impl PhysicalOptimizerRule for OneOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        plan.transform_up(|node| {
            let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(node)) };
            if join.left().output_ordering().is_none() || join.right().output_ordering().is_none() {
                return Ok(Transformed::no(node));
            }
            let left: Arc<dyn ExecutionPlan> = Arc::new(Unordered::new(join.left().clone()));
            let right = join.right().clone();
            Ok(Transformed::yes(datafusion::physical_plan::replace_children_if_necessary(node, vec![left, right])?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "one_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
