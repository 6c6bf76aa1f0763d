//! `count(*), count(DISTINCT x)` with little memory: counts as sums of ones.
//!
//! The query library groups by what is to be distinct before it counts, in order and in little memory, where all other aggregates can be put
//! together from those of the smaller groups: it knows that of sums, least and greatest values alone (DataFusion 55,
//! `single_distinct_aggregation_to_group_by`), and keeps all values in memory beside a `count`. A count is the sum of a one for each row in
//! which nothing is NULL, and 0 where there is no row.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable as _, LogicalPlan, Projection, lit, when};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule. The library's own, which it is for, has its turn behind it.
#[derive(Debug)]
pub(crate) struct CountsAsSums;

impl OptimizerRule for CountsAsSums {
    fn name(&self) -> &str {
        "counts_as_sums"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>, DataFusionError> {
        match plan {
            LogicalPlan::Aggregate(groups) if would_do(&groups) => as_sums(groups).map(Transformed::yes),
            plan => Ok(Transformed::no(plan)),
        }
    }
}

/// Whether counts are all that keeps the library from grouping by one thing that is to be distinct.
fn would_do(groups: &Aggregate) -> bool {
    let mut distinct = HashSet::new();
    let mut counts = 0;
    for aggregate in &groups.aggr_expr {
        let Some((function, params)) = plain(aggregate) else { return false };
        match function {
            _ if params.distinct => distinct.extend(&params.args),
            "count" => counts += 1,
            "sum" | "min" | "max" => {}
            _ => return false,
        }
    }
    distinct.len() == 1 && counts > 0 && !matches!(groups.group_expr.first(), Some(Expr::GroupingSet(_)))
}

/// An aggregate of all rows of a group, in whatever order.
fn plain(aggregate: &Expr) -> Option<(&str, &AggregateFunctionParams)> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = aggregate else { return None };
    (params.filter.is_none() && params.order_by.is_empty()).then(|| (func.name(), params))
}

fn as_sums(groups: Aggregate) -> Result<LogicalPlan, DataFusionError> {
    let input = groups.input.schema().clone();
    let is_count =
        |aggregate: &Expr| plain(aggregate).is_some_and(|(name, params)| name == "count" && !params.distinct);
    let counts: Vec<bool> = groups.aggr_expr.iter().map(is_count).collect();
    // Of two that are one sum there is one: no two columns have one name.
    let (mut aggregates, mut places): (Vec<Expr>, Vec<usize>) = (Vec::new(), Vec::new());
    for aggregate in &groups.aggr_expr {
        let summed = if is_count(aggregate) { sum_of_ones(aggregate, &input)? } else { aggregate.clone() };
        let name = summed.schema_name().to_string();
        let known = aggregates.iter().position(|known| known.schema_name().to_string() == name);
        places.push(known.unwrap_or(aggregates.len()));
        if known.is_none() {
            aggregates.push(summed);
        }
    }
    let (known, first) = (groups.schema.clone(), groups.group_expr.len());
    let summed = Aggregate::try_new(groups.input, groups.group_expr, aggregates)?;
    let shown = (0..known.fields().len()).map(|place| {
        let at = if place < first { place } else { first + places[place - first] };
        let column = Expr::from(summed.schema.qualified_field(at));
        let (qualifier, field) = known.qualified_field(place);
        let is_count = place >= first && counts[place - first];
        let value = if is_count { coalesce(vec![column, lit(0_i64)]) } else { column };
        value.alias_qualified(qualifier.cloned(), field.name())
    });
    let shown = shown.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(shown, Arc::new(LogicalPlan::Aggregate(summed)))?))
}

/// `sum(1)`, or a one where nothing that is counted is NULL.
fn sum_of_ones(count: &Expr, input: &DFSchema) -> Result<Expr, DataFusionError> {
    let counted = plain(count).map_or(&[][..], |(_, params)| &params.args);
    let mut is_there: Option<Expr> = None;
    for column in counted {
        // What is never NULL says nothing, and the library would find that out later, under another name.
        if column.nullable(input)? {
            let own = column.clone().is_not_null();
            is_there = Some(is_there.map_or(own.clone(), |all| all.and(own)));
        }
    }
    let one = match is_there {
        None => lit(1_i64),
        Some(is_there) => when(is_there, lit(1_i64)).otherwise(lit(0_i64))?,
    };
    Ok(Expr::AggregateFunction(AggregateFunction::new_udf(sum_udaf(), vec![one], false, None, Vec::new(), None)))
}
