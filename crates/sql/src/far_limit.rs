//! A LIMIT far away is none to groups, and none is where keys are floating-point numbers.
//!
//! For `GROUP BY ... ORDER BY ... LIMIT n` the query library keeps n groups alone, in a heap and a table that it makes for n
//! groups at once, and asks nobody for the memory: `LIMIT 1000000000` would take gigabytes for ten rows, and the largest number
//! there is overflows (DataFusion 55, `aggregates/topk`). Behind a LIMIT so far, all groups are kept as if there were none; what
//! stands above them still counts rows. And it looks for the key of a group that it lets go of, and does not find NaN, which is not
//! equal to itself (a panic of a query, `aggregates/topk/hash_table.rs`).

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

/// Groups that the library may make room for at once: some hundred bytes each.
const GROUPS_MAX: usize = 4096;

/// The rule.
#[derive(Debug)]
pub(crate) struct FarLimit;

impl PhysicalOptimizerRule for FarLimit {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        plan.transform_down(|node| {
            let unlimited = node.downcast_ref::<AggregateExec>().filter(|groups| is_far(groups)).map(|groups| {
                let unlimited: Arc<dyn ExecutionPlan> = Arc::new(groups.with_new_limit_options(None));
                unlimited
            });
            Ok(unlimited.map_or_else(|| Transformed::no(node), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "far_limit"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn is_far(groups: &AggregateExec) -> bool {
    let schema = groups.input().schema();
    let kinds = groups.group_expr().input_exprs().into_iter().map(|key| key.data_type(&schema));
    let may_be_nan = kinds.into_iter().any(|kind| kind.map_or(true, |kind| kind.is_floating()));
    groups.limit_options().is_some_and(|options| may_be_nan || options.limit() > GROUPS_MAX)
}
