//! `(SELECT x FROM t WHERE t.a = outer.a)`: a subquery that speaks of the query around it, and answers a row at most because of what is there.
//!
//! The query library wants an aggregate there, of which it can see that it is one row (DataFusion 55). So one is made of it:
//!
//! | written | here |
//! |---|---|
//! | with `LIMIT 1` | `first_value(x ORDER BY ...)` |
//! | with all columns of a key equal to something | `first_value(x)` |
//! | else | the same, if `count(*)` of it is not above 1: then it is an error, as in PostgreSQL |

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DataFusionError};
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::expr::{ScalarFunction, Sort as SortBy};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Distinct, Expr, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, Operator,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SkipType, Subquery, Volatility, lit, scalar_subquery,
    when,
};

use crate::error::Error;
use crate::rewriting;

/// Makes aggregates of subqueries that speak of the query around them and are none.
pub(crate) fn aggregated(plan: LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    rewriting::of_plan(plan, one)
}

fn one(expr: Expr) -> Result<Transformed<Expr>, DataFusionError> {
    match expr {
        Expr::ScalarSubquery(mut subquery)
            if !subquery.outer_ref_columns.is_empty() && is_wrapped(&subquery.subquery) =>
        {
            while let Some(inner) = unwrapped(&subquery.subquery) {
                subquery.subquery = inner.clone();
            }
            Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
        }
        Expr::ScalarSubquery(subquery) if speaks_of_rows(&subquery) => Ok(Transformed::yes(value_of(&subquery)?)),
        other => Ok(Transformed::no(other)),
    }
}

/// Whether a plan is an aggregate of all rows, which has one row, with an order, a LIMIT or DISTINCT of that.
fn is_wrapped(plan: &LogicalPlan) -> bool {
    let is_of_all = |plan: &LogicalPlan| matches!(bare(plan), LogicalPlan::Aggregate(all) if all.group_expr.is_empty());
    unwrapped(plan).is_some_and(|inner| is_of_all(inner) || is_wrapped(inner))
}

fn unwrapped(plan: &LogicalPlan) -> Option<&Arc<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(sort) => Some(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => Some(input),
        LogicalPlan::Limit(limit) => {
            let from_the_first = matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
            let of_some = matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(1..) | None)));
            (from_the_first && of_some).then_some(&limit.input)
        }
        _ => None,
    }
}

/// Whether a subquery is of the query around it, and none that answers one row by itself.
fn speaks_of_rows(subquery: &Subquery) -> bool {
    let plan = bare(&subquery.subquery);
    let is_aggregate = match plan {
        LogicalPlan::Filter(filter) => matches!(*filter.input, LogicalPlan::Aggregate(_)),
        plan => matches!(plan, LogicalPlan::Aggregate(_)),
    };
    !subquery.outer_ref_columns.is_empty() && subquery.subquery.schema().fields().len() == 1 && !is_aggregate
}

fn bare(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => bare(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => bare(&alias.input),
        plan => plan,
    }
}

fn value_of(subquery: &Subquery) -> Result<Expr, DataFusionError> {
    let plan = &*subquery.subquery;
    if let Some((value, order, rows)) = first_of(plan)? {
        return alone(rows, first_value(value, each_once(order)));
    }
    let rows = unsorted(plan);
    let value = Expr::Column(Column::from(rows.schema().qualified_field(0)));
    let first = alone(rows, first_value(value, Vec::new()))?;
    if is_of_one_key(rows) {
        return Ok(first);
    }
    let many = alone(rows, count(lit(1_i64)))?.gt(lit(1_i64));
    let refused = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&REFUSED), vec![first.clone()]));
    when(many, refused).otherwise(first)
}

fn alone(rows: &LogicalPlan, aggregate: Expr) -> Result<Expr, DataFusionError> {
    let plan = LogicalPlanBuilder::from(rows.clone()).aggregate(Vec::<Expr>::new(), [aggregate])?.build()?;
    Ok(scalar_subquery(plan.into()))
}

/// What is shown, in which order, of which rows.
type First<'a> = (Expr, Vec<SortBy>, &'a LogicalPlan);

/// Of `... ORDER BY y LIMIT 1`. The order may be by what is not shown.
fn first_of(plan: &LogicalPlan) -> Result<Option<First<'_>>, DataFusionError> {
    let LogicalPlan::Limit(limit) = plan else { return Ok(None) };
    if !is_one(limit)? {
        return Ok(None);
    }
    let shown = |rows: &LogicalPlan| Expr::Column(Column::from(rows.schema().qualified_field(0)));
    Ok(Some(match &*limit.input {
        LogicalPlan::Sort(sort) => (shown(&sort.input), sort.expr.clone(), &*sort.input),
        LogicalPlan::Projection(projection) => match &*projection.input {
            LogicalPlan::Sort(sort) => (projection.expr[0].clone().unalias(), sort.expr.clone(), &*sort.input),
            _ => (shown(&limit.input), Vec::new(), &*limit.input),
        },
        rows => (shown(rows), Vec::new(), rows),
    }))
}

/// What comes a second time orders nothing, and the library's aggregate panics over it (DataFusion 55).
fn each_once(order: Vec<SortBy>) -> Vec<SortBy> {
    order.into_iter().fold(Vec::new(), |mut once: Vec<SortBy>, by| {
        if once.iter().all(|known| known.expr != by.expr) {
            once.push(by);
        }
        once
    })
}

fn is_one(limit: &Limit) -> Result<bool, DataFusionError> {
    let from_the_first = matches!(limit.get_skip_type()?, SkipType::Literal(0));
    Ok(from_the_first && matches!(limit.get_fetch_type()?, FetchType::Literal(Some(1))))
}

fn unsorted(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => &sort.input,
        plan => plan,
    }
}

/// Whether a condition says of all columns of a key what they are equal to.
fn is_of_one_key(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    let LogicalPlan::Filter(filter) = &*projection.input else { return false };
    let schema = filter.input.schema();
    let equal = |expr: &Expr| match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => match (&**left, &**right) {
            (Expr::Column(column), other) | (other, Expr::Column(column)) if !other.any_column_refs() => {
                schema.maybe_index_of_column(column)
            }
            _ => None,
        },
        _ => None,
    };
    let known: Vec<usize> = split_conjunction(&filter.predicate).into_iter().filter_map(equal).collect();
    let is_key = |columns: &[usize]| !columns.is_empty() && columns.iter().all(|column| known.contains(column));
    let is_scan = matches!(bare(&filter.input), LogicalPlan::TableScan(_));
    is_scan && schema.functional_dependencies().iter().any(|key| is_key(&key.source_indices))
}

static REFUSED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    // Nothing that is volatile is worked out before there are rows.
    Arc::new(ScalarUDF::new_from_impl(Refused { signature: Signature::any(1, Volatility::Volatile) }))
});

/// What is said where a subquery has more than one row: an error, of the type of the value.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Refused {
    signature: Signature,
}

impl ScalarUDFImpl for Refused {
    fn name(&self) -> &str {
        "more_than_one_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        if arguments.number_rows == 0 {
            return Ok(arguments.args.swap_remove(0));
        }
        Err(Error::Sql(
            "a subquery in an expression has more than one row: say which with LIMIT 1, or take max()".into(),
        )
        .into())
    }
}
