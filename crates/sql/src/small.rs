//! With little memory the query library may read tables, filter, and work columns out, a few rows at a time. What would have to keep
//! rows of them is refused, with what it would take: the library needs megabytes for it whatever the rows are.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::error::Error;

/// Nodes that pass rows on as they come.
const PASSING: [&str; 8] = [
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "FilterExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "ProjectionExec",
    "UnionExec",
];
/// Nodes that read what is in memory anyhow: what the database says of itself, and values that a statement has.
const AT_HAND: [&str; 4] = ["DataSourceExec", "EmptyExec", "LazyMemoryExec", "PlaceholderRowExec"];
/// Nodes that read tables.
const READING: [&str; 6] = ["TableScan", "JoinedScan", "SeriesScan", "AnsweredScan", "PublishedScan", "DispersedScan"];
/// What is enough for all of them.
const ENOUGH: &str = "--ram 64M";

/// The rule: the last one, which changes nothing.
#[derive(Debug)]
pub(crate) struct Small;

impl PhysicalOptimizerRule for Small {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        plan.apply(|node| {
            let is_fine = PASSING.contains(&node.name()) || READING.contains(&node.name()) || is_at_hand(node)?;
            if is_fine { Ok(TreeNodeRecursion::Continue) } else { Err(refused(node.name()).into()) }
        })?;
        Ok(plan)
    }

    fn name(&self) -> &str {
        "small"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether nothing below a node reads a table.
fn is_at_hand(node: &Arc<dyn ExecutionPlan>) -> Result<bool, DataFusionError> {
    let mut is_at_hand = true;
    node.apply(|below| {
        is_at_hand &= !below.children().is_empty() || AT_HAND.contains(&below.name());
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_at_hand)
}

fn refused(node: &str) -> Error {
    let what = match node {
        _ if node.contains("Join") => "a join that is not along foreign keys alone",
        _ if node.contains("Sort") => "an order of more than columns",
        _ if node.contains("Aggregate") => "groups or aggregates of more than columns",
        _ if node.contains("Window") => "a window",
        _ => "a step",
    };
    Error::Memory(format!("this query has {what} ({node}), for which so little memory is not enough: {ENOUGH} is"))
}
