//! With little memory the query library reads tables, filters, and works columns out, a few rows at a time. What would keep rows
//! of them in memory is put into other words, in which rows are sorted aside:
//!
//! ```text
//! HashJoinExec                 ->  SortMergeJoinExec                     before the library makes orders: see `merged`
//! SortExec                     ->  SortedAside                           when all else is done
//! AggregateExec (groups)       ->  AggregateExec of groups in order      over SortedAside by the groups
//! windows, aggregates of all,
//! joins without keys           ->  as they are                           between two Counted
//! what is not known            ->  refused, with what is enough for it
//! ```
//!
//! Rows with equal keys stay in the order in which they came, so that an answer is the same however much memory there is. What is
//! kept of one group, of the rows of one side with one key, or by the few that cannot be put into other words (ROLLUP, FULL JOIN
//! with more conditions than keys), is taken from the bound like everything, and what is too much for it ends in an error.

mod counted;
mod counts;
mod forgetful;
mod merge_key;
mod merged;
mod null_aware;
mod refused;
mod sides;
mod sorted;
mod sorting;
mod text_keys;
mod window_texts;

use std::fmt;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};

use crate::spill::SealedFiles;
use counted::{Counted, Keeps};
pub(crate) use counts::CountsAsSums;
use forgetful::is_forgetful;
pub(crate) use merged::Merging;
use refused::Refused;
use sorted::SortedAside;
pub(crate) use window_texts::WindowTexts;

/// Whether a node sorts all rows of its input aside, and gives all of them on.
pub(crate) fn sorts(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<SortedAside>().is_some_and(SortedAside::gives_all_on)
}

/// Nodes that pass rows on as they come, or take what they keep from the bound.
const PASSING: [&str; 15] = [
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "FilterExec",
    "GlobalLimitExec",
    "Historian",
    "LocalLimitExec",
    "NullAware",
    "ProjectionExec",
    "RecursiveQueryExec",
    "ScalarSubqueryExec",
    "SortMergeJoinExec",
    "SortPreservingMergeExec",
    "UnionExec",
    "Unordered",
];
/// Nodes that read what is in memory anyhow: what the database says of itself, and values that a statement has.
const AT_HAND: [&str; 3] = ["DataSourceExec", "EmptyExec", "PlaceholderRowExec"];
/// Nodes that read tables, or make rows up.
const READING: [&str; 9] = [
    "AnsweredScan",
    "DispersedScan",
    "JoinedScan",
    "LateScan",
    "LazyMemoryExec",
    "PublishedScan",
    "SeriesScan",
    "TableScan",
    "WorkTableExec",
];
/// Nodes that keep all rows of their first input, and ask for the memory.
const BUILDING: [&str; 3] = ["CrossJoinExec", "HashJoinExec", "NestedLoopJoinExec"];
/// Nodes that keep rows without asking for the memory.
const KEEPING: [&str; 2] = ["BoundedWindowAggExec", "WindowAggExec"];

/// The rule: the last one.
pub(crate) struct Little {
    /// Where rows are put aside.
    pub(crate) spill: Option<Arc<SealedFiles>>,
}

impl fmt::Debug for Little {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Little")
    }
}

impl PhysicalOptimizerRule for Little {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        let mut refused = None;
        let plan = plan.transform_up(|node| match is_at_hand(&node)? {
            true => Ok(Transformed::no(node)),
            false => match self.reworded(&node)? {
                Some(node) => Ok(Transformed::yes(node)),
                None => {
                    refused.get_or_insert_with(|| node.name().to_owned());
                    Ok(Transformed::no(node))
                }
            },
        });
        let plan = plan.data()?;
        Ok(match refused {
            None => plan,
            Some(node) => Arc::new(Refused::new(plan, node)),
        })
    }

    fn name(&self) -> &str {
        "little"
    }

    /// Columns of groups may be called otherwise, and nothing asks for them by name any more.
    fn schema_check(&self) -> bool {
        true
    }
}

impl Little {
    /// The same in little memory; none where it is not known how.
    fn reworded(&self, node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError> {
        if let Some(sort) = node.downcast_ref::<SortExec>() {
            let input = if sort.preserve_partitioning() { sort.input().clone() } else { one_part(sort.input()) };
            let sorted = self.sorted(input, sort.expr().clone(), sort.fetch());
            return Ok(Some(sorted.unwrap_or_else(|| node.clone())));
        }
        if let Some(groups) = node.downcast_ref::<AggregateExec>() {
            return self.grouped(groups).map(Some);
        }
        if let Some(parts) = node.downcast_ref::<RepartitionExec>()
            && parts.partitioning().partition_count() == 1
        {
            return Ok(Some(one_part(parts.input())));
        }
        if KEEPING.contains(&node.name()) {
            let keeps = if is_forgetful(node.as_ref()) { Keeps::Unanswered } else { Keeps::All };
            return Counted::around(node, keeps).map(Some);
        }
        if BUILDING.contains(&node.name()) {
            return Counted::around(node, Keeps::Asked).map(Some);
        }
        let is_fine = PASSING.contains(&node.name()) || READING.contains(&node.name());
        Ok(is_fine.then(|| node.clone()))
    }

    /// Groups one after the other; as they are where they are several groupings at once.
    fn grouped(&self, node: &AggregateExec) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        // The library's own heap of groups for a limit asks nobody for memory.
        let unlimited: Arc<dyn ExecutionPlan> = Arc::new(node.with_new_limit_options(None));
        if node.group_expr().is_true_no_grouping() {
            return Counted::around(&unlimited, Keeps::Asked);
        }
        if node.group_expr().has_grouping_set() || *node.input_order_mode() == InputOrderMode::Sorted {
            return Ok(unlimited);
        }
        if let Some(groups) = text_keys::in_columns(node)? {
            return text_keys::as_they_were(self.grouped(&groups)?, &node.schema());
        }
        let keys = node.group_expr().input_exprs();
        // What is worked out twice is to be the same both times.
        let ordering = match keys.iter().any(is_volatile) {
            true => None,
            false => LexOrdering::new(keys.into_iter().map(PhysicalSortExpr::new_default)),
        };
        let sorted =
            ordering.and_then(|ordering| SortedAside::new(node.input().clone(), ordering, None, self.spill.clone()));
        sorted.map_or_else(|| Ok(unlimited.clone()), |sorted| over(&unlimited, vec![Arc::new(sorted.for_groups())]))
    }

    fn sorted(
        &self,
        input: Arc<dyn ExecutionPlan>,
        ordering: LexOrdering,
        fetch: Option<usize>,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        let sorted = SortedAside::new(input, ordering, fetch, self.spill.clone())?;
        Some(Arc::new(sorted))
    }
}

/// A node over others than it was.
fn over(
    node: &Arc<dyn ExecutionPlan>,
    input: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    node.clone().replace_children(input, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// All rows in one part.
fn one_part(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match input.output_partitioning().partition_count() {
        1 => input.clone(),
        _ => Arc::new(CoalescePartitionsExec::new(input.clone())),
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
