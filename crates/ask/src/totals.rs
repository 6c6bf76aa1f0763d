//! Aggregates from signed totals, where the table has them for all that is asked.

use std::collections::BTreeMap;

use counterfoil_proof::{Definition, Totals, TotalsOf, TotalsQuestion, Value};

use crate::condition::Condition;
use crate::error::Error;
use crate::plan::exact_intervals;
use crate::result::{shown_mean, shown_sum};
use crate::select::{Aggregate, Output, Shown};
use crate::shape::Shape;

const OTHER: Error = Error::OtherRows("totals of other columns");

/// The question for totals that answers a SELECT of aggregates: along an order whose nodes have all of its columns, and in which
/// the condition is nothing but intervals. None where it takes rows.
pub(crate) fn question(
    definition: &Definition,
    condition: &Condition,
    Shape { outputs, groups, .. }: &Shape,
) -> Result<Option<TotalsQuestion>, Error> {
    for of in &definition.nodes {
        // Groups are those of an order's first columns, in whatever order they are named.
        let order = &definition.orders[usize::from(of.order)];
        let first = order.get(..groups.columns.len());
        if !first.is_some_and(|first| first.iter().all(|column| groups.columns.contains(column))) {
            continue;
        }
        let has = |column: u16| of.columns.binary_search(&column).is_ok();
        let is_there = |output: &Output| match output.shown {
            Shown::Column(_) | Shown::Aggregate(Aggregate::Rows) => true,
            Shown::Aggregate(Aggregate::Count(column) | Aggregate::Min(column) | Aggregate::Max(column)) => has(column),
            // A sum of floating numbers depends on the order of adding.
            Shown::Aggregate(Aggregate::Sum(column) | Aggregate::Mean(column)) => {
                has(column) && definition.columns[usize::from(column)].kind.is_summed()
            }
        };
        if !outputs.iter().all(is_there) {
            continue;
        }
        if let Some(intervals) = exact_intervals(condition, order)
            && !intervals.is_empty()
        {
            return Ok(Some(TotalsQuestion::new(definition, of.order, intervals, groups.columns.len())?));
        }
    }
    Ok(None)
}

/// The rows of a result, one for each group.
pub(crate) fn rows(
    definition: &Definition,
    question: &TotalsQuestion,
    Shape { outputs, groups, .. }: &Shape,
    found: &[TotalsOf],
) -> Result<Vec<Vec<Value>>, Error> {
    let order = definition.orders.get(usize::from(question.order())).ok_or(OTHER)?;
    let mut sorted = BTreeMap::new();
    for TotalsOf { group, totals } in found {
        let grouped = |column| {
            let at = order.iter().position(|own| *own == column).ok_or(OTHER)?;
            group.get(at).ok_or(OTHER)
        };
        let value = |output: &Output| match output.shown {
            Shown::Column(column) => grouped(column).cloned(),
            Shown::Aggregate(_) => value(definition, question, output, totals),
        };
        let row = outputs.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        sorted.insert(groups.key(definition, grouped)?, row);
    }
    groups.in_order(sorted.into_values().collect(), outputs)
}

fn value(definition: &Definition, question: &TotalsQuestion, output: &Output, totals: &Totals) -> Result<Value, Error> {
    let count = |count: u64| i64::try_from(count).map(Value::Integer).map_err(|_| Error::Overflow("a count"));
    let Shown::Aggregate(aggregate) = output.shown else { return Err(OTHER) };
    let Some(column) = output.shown.column() else { return count(totals.rows) };
    let columns = definition.node_columns(question.order()).ok_or(OTHER)?;
    let at = columns.binary_search(&column).map_err(|_| OTHER)?;
    let own = totals.columns.get(at).ok_or(OTHER)?;
    match aggregate {
        Aggregate::Count(_) => count(own.count),
        _ if own.count == 0 => Ok(Value::Null),
        Aggregate::Min(_) => Ok(own.least.clone()),
        Aggregate::Max(_) => Ok(own.largest.clone()),
        Aggregate::Sum(_) => shown_sum(own.sum, output.kind),
        _ => shown_mean(own.sum, own.count, definition.columns[usize::from(column)].kind, output.kind),
    }
}
