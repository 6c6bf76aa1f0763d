//! Columns of one name in conditions by which a subquery speaks of the query around it: `WHERE x.id = outer.id AND y.id = outer.a`.
//!
//! The query library takes such conditions out of the subquery and gives all of its columns one alias (DataFusion 55): `x.id` and `y.id` are one
//! column then, and rows come several times or not at all. So each of them gets a name of its own below the condition.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DataFusionError};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, lit};

use crate::error::Error;
use crate::rewriting;

/// Gives names of their own to what subqueries compare with the queries around them, where two have one.
pub(crate) fn told_apart(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    rewriting::of_plan(plan, within)
}

fn within(expr: Expr) -> Result<Transformed<Expr>, DataFusionError> {
    match expr {
        Expr::ScalarSubquery(subquery) => Ok(apart(subquery)?.update_data(Expr::ScalarSubquery)),
        Expr::Exists(Exists { subquery, negated }) => {
            Ok(apart(subquery)?.update_data(|subquery| Expr::Exists(Exists { subquery, negated })))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            Ok(apart(subquery)?.update_data(|subquery| Expr::InSubquery(InSubquery { expr, subquery, negated })))
        }
        Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
            let compared = |subquery| Expr::SetComparison(SetComparison { expr, subquery, op, quantifier });
            Ok(apart(subquery)?.update_data(compared))
        }
        other => Ok(Transformed::no(other)),
    }
}

fn apart(subquery: Subquery) -> Result<Transformed<Subquery>, DataFusionError> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(subquery));
    }
    let mut keys = Vec::new();
    let mut is_below_window = false;
    subquery.subquery.apply(|node| {
        match node {
            LogicalPlan::Window(window) => is_below_window |= speaks(&window.input)?,
            LogicalPlan::Filter(filter) => add_keys(filter, &mut keys)?,
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if is_below_window {
        let text = "a window over rows that speak of the query around it: write it as a join";
        return Err(Error::NotSupported(text.into()).into());
    }
    let is_twice = |(at, key): (usize, &Column)| keys[..at].iter().any(|other| other.name == key.name);
    if !keys.iter().enumerate().any(is_twice) {
        return Ok(Transformed::no(subquery));
    }
    let plan = subquery.subquery.as_ref().clone().transform_up(|node| match node {
        LogicalPlan::Filter(filter) if filter.predicate.contains_outer() => named(filter, &keys).map(Transformed::yes),
        node => node.recompute_schema().map(Transformed::yes),
    })?;
    Ok(plan.update_data(|plan| Subquery { subquery: plan.into(), ..subquery }))
}

fn speaks(plan: &LogicalPlan) -> Result<bool, DataFusionError> {
    plan.exists(|node| Ok(node.contains_outer_reference()))
}

/// The columns in a filter's conditions that speak of the query around it.
fn add_keys(filter: &Filter, keys: &mut Vec<Column>) -> Result<(), DataFusionError> {
    for condition in split_conjunction(&filter.predicate).into_iter().filter(|condition| condition.contains_outer()) {
        condition.apply(|expr| {
            if let Expr::Column(column) = expr
                && !keys.contains(column)
            {
                keys.push(column.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(())
}

/// A filter over rows that have these columns once more, under names of their own.
fn named(filter: Filter, keys: &[Column]) -> Result<LogicalPlan, DataFusionError> {
    let input = filter.input.as_ref().clone();
    let name = |at: usize| format!("{}_key_{at}", crate::HIDDEN);
    let own = keys.iter().enumerate().filter(|(_, key)| input.schema().has_column(key));
    let again = own.map(|(at, key)| Expr::Column(key.clone()).alias(name(at)));
    let all: Vec<Expr> = input.schema().columns().into_iter().map(Expr::Column).chain(again).collect();
    let told = |expr: Expr| match &expr {
        Expr::Column(column) => Ok(match keys.iter().position(|key| key == column) {
            Some(at) => Transformed::yes(Expr::Column(Column::new_unqualified(name(at)))),
            None => Transformed::no(expr),
        }),
        _ => Ok(Transformed::no(expr)),
    };
    let condition = |condition: &Expr| match condition.contains_outer() {
        true => Ok(condition.clone().transform_up(told)?.data),
        false => Ok(condition.clone()),
    };
    let conditions = split_conjunction(&filter.predicate).into_iter().map(condition);
    let conditions = conditions.collect::<Result<Vec<_>, DataFusionError>>()?;
    let rows = LogicalPlanBuilder::from(input).project(all)?;
    rows.filter(conjunction(conditions).unwrap_or_else(|| lit(true)))?.build()
}
