//! `(SELECT max(x) FROM t WHERE t.a < outer.a)`: subqueries that speak of the query around them by more than what is equal.
//!
//! The query library groups the rows of such a subquery by the column that is to equal the outer one, and joins both (DataFusion 55): where
//! nothing equals it, it refuses. So the values that there are outside are brought in, each once, and are what the rows are grouped by:
//!
//! ```text
//! SELECT max(x) FROM t WHERE t.a < outer.a
//!     = SELECT max(x) FROM t CROSS JOIN (SELECT DISTINCT a AS v FROM the query around it) WHERE t.a < v AND v = outer.a
//! ```
//! A NULL outside equals nothing, so this is done only where the condition is never true of one.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit};

use crate::rewriting;

/// Brings values of the queries around subqueries into them where that is needed.
pub(crate) fn brought_in(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let around = match &node {
            LogicalPlan::Filter(filter) => filter.input.clone(),
            LogicalPlan::Projection(projection) => projection.input.clone(),
            LogicalPlan::Aggregate(aggregate) => aggregate.input.clone(),
            _ => return Ok(Transformed::no(node)),
        };
        rewriting::of_node(node, |expr| match expr {
            Expr::ScalarSubquery(subquery) => within(subquery, &around).map(|of| of.update_data(Expr::ScalarSubquery)),
            other => Ok(Transformed::no(other)),
        })
    })?;
    Ok(plan.data)
}

fn within(subquery: Subquery, around: &LogicalPlan) -> Result<Transformed<Subquery>, DataFusionError> {
    if subquery.outer_ref_columns.is_empty() || !is_repeatable(around)? {
        return Ok(Transformed::no(subquery));
    }
    let mut is_done = false;
    let plan = subquery.subquery.as_ref().clone().transform_up(|node| match node {
        LogicalPlan::Filter(filter) if !is_done && needs_values(&filter) => {
            let brought = with_values(filter, around)?;
            is_done = brought.transformed;
            Ok(brought)
        }
        node if is_done => node.recompute_schema().map(Transformed::yes),
        node => Ok(Transformed::no(node)),
    })?;
    let outer_ref_columns = plan.data.all_out_ref_exprs();
    Ok(plan.update_data(|plan| Subquery { subquery: plan.into(), outer_ref_columns, ..subquery }))
}

/// Whether a query answers the same when it is asked twice, and by itself.
fn is_repeatable(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    let mut is_repeatable = true;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            is_repeatable &= !expr.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    plan.apply(|node| {
        is_repeatable &= !node.contains_outer_reference();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(is_repeatable)
}

fn needs_values(filter: &Filter) -> bool {
    split_conjunction(&filter.predicate)
        .into_iter()
        .any(|condition| condition.contains_outer() && !is_equality(condition))
}

/// Whether the library groups by the column of a condition.
fn is_equality(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let column = |expr: &Expr| match expr {
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Column(_)),
        expr => matches!(expr, Expr::Column(_)),
    };
    (column(left) && !right.any_column_refs()) || (column(right) && !left.any_column_refs())
}

/// The rows of a filter beside the values that its condition speaks of, and the condition of both.
fn with_values(filter: Filter, around: &LogicalPlan) -> Result<Transformed<LogicalPlan>, DataFusionError> {
    let conditions = split_conjunction(&filter.predicate);
    let mut outer: Vec<(Expr, Column)> = Vec::new();
    for condition in conditions.iter().filter(|condition| !is_equality(condition)) {
        references(condition, &mut outer)?;
    }
    let is_refused = |reference| conditions.iter().any(|condition| is_unknown_of_null(condition, reference));
    if !outer.iter().all(|(reference, column)| around.schema().has_column(column) && is_refused(reference)) {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let inner = |expr: Expr| match outer.iter().position(|(reference, _)| *reference == expr) {
        Some(at) => Ok(Transformed::yes(value(at))),
        None => Ok(Transformed::no(expr)),
    };
    let beside = |condition: &Expr| match is_equality(condition) {
        true => Ok(condition.clone()),
        false => Ok(condition.clone().transform_up(inner)?.data),
    };
    let mut all = conditions.into_iter().map(beside).collect::<Result<Vec<Expr>, DataFusionError>>()?;
    all.extend(outer.iter().enumerate().map(|(at, (reference, _))| value(at).eq(reference.clone())));
    let shown = outer.iter().enumerate().map(|(at, (_, column))| Expr::Column(column.clone()).alias(name(at)));
    let values = LogicalPlanBuilder::from(around.clone()).project(shown.collect::<Vec<_>>())?.distinct()?.build()?;
    let rows = LogicalPlanBuilder::from(filter.input.as_ref().clone()).cross_join(values)?;
    Ok(Transformed::yes(rows.filter(conjunction(all).unwrap_or_else(|| lit(true)))?.build()?))
}

/// What the values of an outer column are called inside.
fn name(at: usize) -> String {
    format!("{}_outer_{at}", crate::HIDDEN)
}

fn value(at: usize) -> Expr {
    Expr::Column(Column::new_unqualified(name(at)))
}

/// Adds what of the query around it an expression names.
fn references(expr: &Expr, found: &mut Vec<(Expr, Column)>) -> Result<(), DataFusionError> {
    expr.apply(|expr| {
        if let Expr::OuterReferenceColumn(_, column) = expr
            && found.iter().all(|(known, _)| known != expr)
        {
            found.push((expr.clone(), column.clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Whether a condition is never true where a value outside is NULL: a comparison of arithmetic on it.
fn is_unknown_of_null(condition: &Expr, reference: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else { return false };
    is_comparison(*op) && [left, right].into_iter().any(|side| is_null_of(side, reference))
}

fn is_comparison(op: Operator) -> bool {
    matches!(op, Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn is_null_of(expr: &Expr, reference: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_null_of(&cast.expr, reference),
        Expr::Negative(inner) => is_null_of(inner, reference),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let is_arithmetic = matches!(
                op,
                Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo
            );
            is_arithmetic && (is_null_of(left, reference) || is_null_of(right, reference))
        }
        expr => expr == reference,
    }
}
