//! The scan that a side of a join ends in, and the column of its table that a column of the side is: through nodes that let each row of it, or
//! a whole group, through or not by itself.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use crate::little;
use crate::narrow_scan::NarrowScan;
use crate::scan::{Output, TableScan};
use crate::unordered::Unordered;

/// The place in its table of the column that one side of a comparison is, if it lets rows be looked for: through nodes that let each row of it
/// through or not by itself. Floating-point numbers are compared in other ways here and there.
pub(crate) fn place_of(compared: &Arc<dyn PhysicalExpr>, side: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let kind = compared.data_type(&side.schema()).ok().filter(|kind| !kind.is_floating())?;
    if let Some(cast) = compared.downcast_ref::<CastExpr>() {
        // A wider integer is as many numbers.
        let inner = cast.expr().data_type(&side.schema()).ok()?;
        return (kind.is_integer() && inner.is_integer()).then(|| place_of(cast.expr(), side))?;
    }
    below(side, compared.downcast_ref::<Column>()?.index())
}

/// The table's column that a column of a plan is.
fn below(plan: &Arc<dyn ExecutionPlan>, column: usize) -> Option<usize> {
    if let Some(scan) = plan.downcast_ref::<TableScan>() {
        return match scan.output().get(column)? {
            Output::Column(place) => Some(*place),
            Output::RowId => None,
        };
    }
    if let Some(shown) = plan.downcast_ref::<ProjectionExec>() {
        return place_of(&shown.expr().get(column)?.expr, shown.input());
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let column = filter.projection().as_ref().map_or(Some(column), |shown| shown.get(column).copied())?;
        return below(filter.input(), column);
    }
    if let Some(groups) = plan.downcast_ref::<AggregateExec>() {
        return place_of(&groups.group_expr().expr().get(column)?.0, groups.input());
    }
    below(passed_through(plan)?, column)
}

/// What lies below a node that gives on the rows that it is given.
fn passed_through(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    let gives_on = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<SortExec>()
        || plan.is::<Unordered>()
        || little::sorts(plan);
    gives_on.then(|| plan.children()[0])
}

/// The scan that a side of a join ends in, if nothing on the way looks at more than a row or a whole group.
pub(crate) fn scan_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&TableScan> {
    if let Some(scan) = plan.downcast_ref::<TableScan>() {
        return Some(scan);
    }
    if plan.fetch().is_some() {
        return None;
    }
    if let Some(groups) = plan.downcast_ref::<AggregateExec>() {
        let is_plain = groups.group_expr().is_single() && groups.limit_options().is_none();
        return is_plain.then(|| scan_below(groups.input()))?;
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return scan_below(filter.input());
    }
    if let Some(shown) = plan.downcast_ref::<ProjectionExec>() {
        return scan_below(shown.input());
    }
    scan_below(passed_through(plan)?)
}

/// The same side of a join with another scan at its end.
pub(crate) fn over_scan(
    plan: &Arc<dyn ExecutionPlan>,
    narrow: &Arc<NarrowScan>,
) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    if plan.is::<TableScan>() {
        return Ok(narrow.clone());
    }
    let inner = over_scan(plan.children()[0], narrow)?;
    replace_children_if_necessary(plan.clone(), vec![inner])
}
