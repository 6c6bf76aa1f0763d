//! Windows that keep no row which they have answered.
//!
//! The library forgets rows that no frame will have any more; how many those are hangs on the frames. Of a running total, a rank or a
//! neighbour nothing is kept but the row itself, so what waits for an answer is all there is.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::WindowFrameBound;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, StandardWindowExpr, WindowExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowUDFExpr};

/// Aggregates whose state does not grow.
const TOTALS: [&str; 9] = ["avg", "bool_and", "bool_or", "count", "max", "min", "stddev", "sum", "var"];
/// Window functions that look at no other row.
const RANKS: [&str; 3] = ["dense_rank", "rank", "row_number"];
/// Window functions that look at a row so far away.
const NEIGHBOURS: [&str; 2] = ["lag", "lead"];
/// How far away that may be: fewer rows than a batch mostly has.
const ROWS_AWAY_MAX: i64 = 16;

/// Whether a node keeps nothing that it has answered.
pub(super) fn is_forgetful(node: &dyn ExecutionPlan) -> bool {
    node.downcast_ref::<BoundedWindowAggExec>().is_some_and(|windows| windows.window_expr().iter().all(forgets))
}

fn forgets(window: &Arc<dyn WindowExpr>) -> bool {
    let window = window.as_any();
    if let Some(total) = window.downcast_ref::<PlainAggregateWindowExpr>() {
        let (frame, aggregate) = (total.get_window_frame(), total.get_aggregate_expr());
        let is_running = frame.start_bound.is_unbounded() && frame.end_bound == WindowFrameBound::CurrentRow;
        return is_running && TOTALS.contains(&aggregate.fun().name()) && !aggregate.is_distinct();
    }
    let function = window.downcast_ref::<StandardWindowExpr>().map(StandardWindowExpr::get_standard_func_expr);
    let function = function.and_then(|function| function.as_any().downcast_ref::<WindowUDFExpr>());
    function.is_some_and(|function| match function.fun().name() {
        name if RANKS.contains(&name) => true,
        name if NEIGHBOURS.contains(&name) => function.args().get(1).is_none_or(is_near),
        _ => false,
    })
}

fn is_near(rows: &Arc<dyn PhysicalExpr>) -> bool {
    let rows = rows.downcast_ref::<Literal>().map(Literal::value);
    matches!(rows, Some(ScalarValue::Int64(Some(rows))) if rows.abs() <= ROWS_AWAY_MAX)
}
