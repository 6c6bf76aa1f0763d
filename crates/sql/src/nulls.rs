//! `x IN (SELECT ...)` where neither true nor false is the answer.
//!
//! With NULLs about, IN may be unknown. As a condition of its own the query library gets that right; anywhere else (in
//! NOT, beside OR, among columns, NOT IN of a correlated query) it makes a marker of it that is only true or false, and `NOT IN` beside an OR then
//! lets rows through that it must not. In such places IN becomes what it means, by counting:
//!
//! ```text
//! CASE WHEN (SELECT count(*) FROM q WHERE q.v = x) > 0 THEN true
//!      WHEN (SELECT count(*) FROM q WHERE q.v IS NULL) > 0 OR x IS NULL AND (SELECT count(*) FROM q) > 0 THEN NULL
//!      ELSE false END
//! ```
//!
//! Where even that cannot be said (`x` is a column of a query further out, or stands in the ON of a join), the query is
//! refused: a wrong answer is worse than none.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, ScalarValue};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, lit, scalar_subquery, when,
};

use crate::error::{Error, Result};
use crate::nesting::Written;
use crate::no_row;
use crate::rewriting;

/// What the column of a subquery is called where its rows are counted.
const VALUE: &str = "__counterfoil_value";

/// Puts what it means in the place of every IN that would lose what is unknown.
///
/// # Errors
/// [`Error::NotSupported`] where that cannot be said.
pub(crate) fn keep_unknown(plan: LogicalPlan, written: Written) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(renamed)?.data;
    let plan = written.bounded(plan.transform_up_with_subqueries(in_columns)?.data)?;
    let plan = written.bounded(plan.transform_up_with_subqueries(counted)?.data)?;
    refuse_lost(&plan)?;
    Ok(plan)
}

/// A node of a plan with counting in place of IN where it matters.
fn counted(node: LogicalPlan) -> Result<Transformed<LogicalPlan>, DataFusionError> {
    if !loses_nulls(&node)? {
        return Ok(Transformed::no(node));
    }
    let schema = node.inputs().first().map(|input| input.schema().clone());
    match (node, schema) {
        (LogicalPlan::Filter(filter), Some(schema)) => {
            let conditions =
                split_conjunction_owned(filter.predicate).into_iter().map(|condition| {
                    match filter_loses(&condition, &schema)? {
                        true => Ok(counting(condition, &schema)?.data),
                        false => Ok(condition),
                    }
                });
            let conditions: Vec<Expr> = conditions.collect::<Result<_, DataFusionError>>()?;
            let predicate = conjunction(conditions).unwrap_or_else(|| lit(true));
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)))
        }
        (node @ (LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Sort(_)), Some(schema)) => {
            rewriting::of_node(node, |expr| counted_in(expr, &schema))
        }
        (node, _) => Ok(Transformed::no(node)),
    }
}

fn counting(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>, DataFusionError> {
    expr.transform_up(|expr| counted_in(expr, schema))
}

fn counted_in(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>, DataFusionError> {
    match &expr {
        Expr::InSubquery(InSubquery { expr: sought, subquery, negated })
            if !has_outer(sought)? && !sought.is_volatile() =>
        {
            let rows = with_own_name(&subquery.subquery)?;
            Ok(Transformed::yes(meaning(sought, &rows, Operator::Eq, !negated, schema)?))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// What a comparison with all rows means, said by counting them: a row for which `op` is true decides; else, if one says nothing, nothing is
/// known; else none decided.
fn meaning(
    sought: &Expr,
    rows: &LogicalPlan,
    op: Operator,
    decided: bool,
    schema: &DFSchema,
) -> Result<Expr, DataFusionError> {
    let value = Expr::Column(Column::new_unqualified(VALUE));
    let deciding = BinaryExpr::new(Box::new(outer(sought, schema)?), op, Box::new(value.clone()));
    let found = some_row(rows, Some(Expr::BinaryExpr(deciding)))?;
    let nulls = some_row(rows, Some(value.is_null()))?;
    let any = some_row(rows, None)?;
    let unknown = nulls.or(sought.clone().is_null().and(any));
    when(found, lit(decided)).when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(!decided))
}

/// The rows of a subquery with their column under a name that is nowhere else: two columns of one name, here and outside, are one for the
/// library once it has joined both, and `t.c = t.c` is what is left of the condition.
fn with_own_name(rows: &LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let value = Expr::Column(Column::from(rows.schema().qualified_field(0))).alias(VALUE);
    LogicalPlanBuilder::from(rows.clone()).project([value])?.build()
}

/// Gives that name where the library makes the condition by itself.
fn renamed(node: LogicalPlan) -> Result<Transformed<LogicalPlan>, DataFusionError> {
    let schema = node.inputs().first().map(|input| input.schema().clone());
    let is_twice = |rows: &LogicalPlan| {
        let (qualifier, field) = rows.schema().qualified_field(0);
        qualifier.is_none()
            && schema.as_ref().is_some_and(|schema| schema.has_column_with_unqualified_name(field.name()))
    };
    rewriting::of_node(node, |expr| match expr {
        Expr::SetComparison(mut comparison) => {
            comparison.subquery.subquery = with_own_name(&comparison.subquery.subquery)?.into();
            Ok(Transformed::yes(Expr::SetComparison(comparison)))
        }
        Expr::Exists(Exists { subquery, negated }) if no_row::has_one_row(&subquery.subquery) => {
            Ok(Transformed::yes(lit(!negated)))
        }
        // One that speaks of the query around it may have a column for that which is called so, too.
        Expr::InSubquery(mut inner)
            if is_twice(&inner.subquery.subquery) || !inner.subquery.outer_ref_columns.is_empty() =>
        {
            inner.subquery.subquery = with_own_name(&inner.subquery.subquery)?.into();
            Ok(Transformed::yes(Expr::InSubquery(inner)))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// `EXISTS (SELECT ...)` and `x > ANY (SELECT ...)`, which the library knows in conditions alone, among columns.
fn in_columns(node: LogicalPlan) -> Result<Transformed<LogicalPlan>, DataFusionError> {
    let (LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)) = &node else { return Ok(Transformed::no(node)) };
    let Some(schema) = node.inputs().first().map(|input| input.schema().clone()) else {
        return Ok(Transformed::no(node));
    };
    rewriting::of_node(node, |expr| match &expr {
        Expr::Exists(Exists { subquery, negated }) => {
            let found = some_row(&subquery.subquery, None)?;
            Ok(Transformed::yes(if *negated { Expr::Not(Box::new(found)) } else { found }))
        }
        Expr::SetComparison(comparison) if !has_outer(&comparison.expr)? && !comparison.expr.is_volatile() => {
            Ok(Transformed::yes(meaning_of_comparison(comparison, &schema)?))
        }
        _ => Ok(Transformed::no(expr)),
    })
}

/// `ANY` is decided by a row for which it is true, `ALL` by one for which it is not.
fn meaning_of_comparison(comparison: &SetComparison, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    let SetComparison { expr: sought, subquery, op, quantifier } = comparison;
    let (op, decided) = match quantifier {
        SetQuantifier::Any => (Some(*op), true),
        SetQuantifier::All => (op.negate(), false),
    };
    let op = op.ok_or_else(|| Error::NotSupported(format!("{} ALL among columns", comparison.op)))?;
    meaning(sought, &subquery.subquery, op, decided, schema)
}

/// Whether there is a row for which a condition holds.
fn some_row(rows: &LogicalPlan, condition: Option<Expr>) -> Result<Expr, DataFusionError> {
    let mut rows = LogicalPlanBuilder::from(rows.clone());
    if let Some(condition) = condition {
        rows = rows.filter(condition)?;
    }
    let counts = rows.aggregate(Vec::<Expr>::new(), [count(lit(1_i64))])?.build()?;
    Ok(scalar_subquery(counts.into()).gt(lit(0_i64)))
}

/// An expression as a subquery sees it: its columns are those of the query around it.
fn outer(expr: &Expr, schema: &DFSchema) -> Result<Expr, DataFusionError> {
    let outer = expr.clone().transform_up(|expr| match expr {
        Expr::Column(column) => {
            let (_, field) = schema.qualified_field_from_column(&column)?;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field.clone(), column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(outer.data)
}

/// Whether an expression has a column of a query further out in it.
fn has_outer(expr: &Expr) -> Result<bool, DataFusionError> {
    expr.exists(|expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..))))
}

/// Refuses a plan in which an unknown IN would be taken for true or false.
fn refuse_lost(plan: &LogicalPlan) -> Result<()> {
    let mut lost = false;
    plan.apply_with_subqueries(|node| {
        lost |= loses_nulls(node)?;
        Ok(if lost { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if lost {
        return Err(Error::NotSupported(
            "IN (SELECT ...) in this place where NULLs may occur: write EXISTS (SELECT ...)".into(),
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
            lost |= filter_loses(condition, schema)?;
        }
        return Ok(lost);
    }
    node.apply_expressions(|expr| {
        lost |= mentions_unknown(expr, schema)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(lost)
}

/// Whether the library gets a condition of a filter wrong, or refuses it: a NOT IN that speaks of the query around it is
/// more than its join for NOT IN can do, and so is one of a value that is in no row: then it joins by nothing, and forgets NULLs.
fn filter_loses(condition: &Expr, schema: &DFSchema) -> Result<bool, DataFusionError> {
    let is_more = |inner: &InSubquery| !inner.subquery.outer_ref_columns.is_empty() || !inner.expr.any_column_refs();
    match condition {
        Expr::InSubquery(inner) => Ok(inner.negated && is_more(inner)),
        Expr::Not(not) => match not.as_ref() {
            Expr::InSubquery(inner) => Ok(is_more(inner)),
            _ => condition_loses(condition, schema),
        },
        other => condition_loses(other, schema),
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
