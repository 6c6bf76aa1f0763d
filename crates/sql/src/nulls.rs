//! `x IN (SELECT ...)` where neither true nor false is the answer.
//!
//! With NULLs about, IN may be unknown. As a condition of its own the query library gets that right; anywhere else (in
//! NOT, beside OR, among columns) it makes a marker of it that is only true or false, and `NOT IN` beside an OR then
//! lets rows through that it must not. A wrong answer being worse than none, such places are refused.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};

use crate::error::{Error, Result};

/// Refuses a plan in which an unknown IN would be taken for true or false.
///
/// # Errors
/// [`Error::NotSupported`].
pub(crate) fn refuse_lost(plan: &LogicalPlan) -> Result<()> {
    let mut lost = false;
    plan.apply_with_subqueries(|node| {
        lost |= loses_nulls(node)?;
        Ok(if lost { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if lost {
        return Err(Error::NotSupported(
            "IN (SELECT ...) in NOT, beside OR or among columns where NULLs may occur: write EXISTS (SELECT ...)"
                .into(),
        ));
    }
    Ok(())
}

fn loses_nulls(node: &LogicalPlan) -> Result<bool, DataFusionError> {
    let mut lost = false;
    let schemas = node.inputs();
    let Some(schema) = schemas.first().map(|input| input.schema()) else { return Ok(false) };
    if let LogicalPlan::Filter(filter) = node {
        for condition in split_conjunction(&filter.predicate) {
            lost |= !matches!(strip_not(condition), Expr::InSubquery(_)) && condition_loses(condition, schema)?;
        }
        return Ok(lost);
    }
    node.apply_expressions(|expr| {
        lost |= mentions_unknown(expr, schema)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(lost)
}

fn strip_not(condition: &Expr) -> &Expr {
    match condition {
        Expr::Not(inner) => inner,
        other => other,
    }
}

/// Beside AND and OR alone, a plain IN that is unknown counts as false, and may.
fn condition_loses(condition: &Expr, schema: &DFSchema) -> Result<bool, DataFusionError> {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            Ok(condition_loses(left, schema)? || condition_loses(right, schema)?)
        }
        Expr::InSubquery(InSubquery { negated: false, .. }) => Ok(false),
        other => mentions_unknown(other, schema),
    }
}

/// Whether an expression has an IN in it that may be unknown.
fn mentions_unknown(expr: &Expr, schema: &DFSchema) -> Result<bool, DataFusionError> {
    let mut found = false;
    expr.apply(|inner| {
        if let Expr::InSubquery(InSubquery { expr, subquery, .. }) = inner {
            let rows_nullable = subquery.subquery.schema().fields().iter().any(|field| field.is_nullable());
            // What cannot be told from here is taken for nullable.
            found |= rows_nullable || expr.nullable(schema).unwrap_or(true);
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
