//! The first rows of a dispersed table in the order of a column, and least and greatest values, of which clouds say which rows they may be.
//!
//! ```text
//! sort, first n      <- [filter <-] union <- rows here             the same over    union <- rows here
//! partial min or max                      <- rows of clouds   =>                          <- rows of clouds that may come first
//! ```
//! Only by columns FOR (danger order): of these clouds see the order of all values anyway, so that no question tells them more but what is
//! fetched. Of a filter, conditions that opened values decide. The plan above stays as it is, and sorts what is left (first.rs of
//! `counterfoil_disperse`).

use std::sync::Arc;

use counterfoil_disperse::{Asking as Ask, Condition, First, Report, Rows, Table, Unanswered, Value};
use counterfoil_relation::Type;
use datafusion::common::DataFusionError;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, replace_children_if_necessary};

use super::asked_where::ordered_at;
use super::scan::{AtFault, DispersedScan, Hides};
use super::sums::{Above, above, instead};
use super::waiting::Waiting;
use crate::error::Result;
use crate::published::Asking;

/// Rows that come first in some orders, of those of which conditions are true.
#[derive(Clone)]
pub(super) struct FirstRows {
    orders: Vec<First>,
    conditions: Vec<Condition>,
}

/// What takes the place of a sort of which the first rows are wanted, or of an aggregation by least and greatest values.
pub(crate) fn from_orders(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError> {
    let narrowed = match (plan.downcast_ref::<SortExec>(), plan.downcast_ref::<AggregateExec>()) {
        (Some(sort), _) => narrowed(sort.input(), &|above| Some(vec![of_sort(sort, above)?]))?,
        (_, Some(aggregate)) if is_whole(aggregate) => {
            let of_each = |above: &Above<'_>| {
                aggregate.aggr_expr().iter().map(|of| of_aggregate(of, above)).collect::<Option<Vec<First>>>()
            };
            narrowed(aggregate.input(), &of_each)?
        }
        _ => None,
    };
    narrowed.map(|input| replace_children_if_necessary(plan.clone(), vec![input])).transpose()
}

fn is_whole(aggregate: &AggregateExec) -> bool {
    *aggregate.mode() == AggregateMode::Partial
        && aggregate.group_expr().is_empty()
        && aggregate.filter_expr().iter().all(Option::is_none)
}

/// The same input with rows of clouds that may come first alone; none: clouds do not know.
fn narrowed(
    input: &Arc<dyn ExecutionPlan>,
    orders: &dyn Fn(&Above<'_>) -> Option<Vec<First>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>, DataFusionError> {
    let Some(above) = above(input) else { return Ok(None) };
    let [here, _] = &above.union.inputs()[..] else { return Ok(None) };
    let Some(scan) = above.scan() else { return Ok(None) };
    let conditions = match above.predicate {
        None if !scan.is_whole() => return Ok(None),
        None => Vec::new(),
        Some(predicate) => match scan.decided(predicate) {
            Some(conditions) => conditions,
            None => return Ok(None),
        },
    };
    let Some(orders) = orders(&above).filter(|orders| !orders.is_empty()) else { return Ok(None) };
    let away = Arc::new(scan.with_first(FirstRows { orders, conditions }));
    instead(input, &UnionExec::try_new(vec![here.clone(), away])?).map(Some)
}

/// The order of a sort of which so many rows are wanted: its first column alone, of which rows that are equal to the last one stay.
fn of_sort(sort: &SortExec, above: &Above<'_>) -> Option<First> {
    let by = sort.expr().first();
    let column = above.ordered(&by.expr)?;
    let (is_descending, scan) = (by.options.descending, above.scan()?);
    let nulls_first = by.options.nulls_first && scan.may_be_null(column);
    // Which texts come surely behind another one codes of eight letters do not say.
    (!nulls_first || scan.knows_all_of(column)).then_some(())?;
    Some(First { column, is_descending, nulls_first, count: sort.fetch()? as u64 })
}

/// The order in which the least or greatest value comes first.
fn of_aggregate(of: &AggregateFunctionExpr, above: &Above<'_>) -> Option<First> {
    let is_descending = match of.fun().name() {
        "min" => false,
        "max" => true,
        _ => return None,
    };
    let [argument] = &of.expressions()[..] else { return None };
    Some(First { column: above.ordered(argument)?, is_descending, nulls_first: false, count: 1 })
}

impl Above<'_> {
    fn scan(&self) -> Option<&DispersedScan> {
        self.union.inputs().get(1)?.downcast_ref::<DispersedScan>()
    }

    /// The column of a table that an expression is, if clouds know its order and it is that of SQL.
    fn ordered(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<u16> {
        let (column, scan) = (expr.downcast_ref::<Column>()?.index(), self.scan()?);
        scan.knows_order(scan.place(*self.columns.get(column)?)?)
    }
}

impl DispersedScan {
    fn knows_order(&self, place: usize) -> Option<u16> {
        let column = &self.table().columns[place];
        let id = column.id.0 as u16;
        // Floating-point numbers have two noughts and more than one NaN, and a CHAR(n) is compared as what is padded.
        let is_plain = !matches!(column.kind, Type::Real | Type::Double | Type::Uuid | Type::Char(_));
        let opened = self.kept().and_then(|kept| self.opened(kept.current())).ok()?;
        (is_plain && opened.puts_in_order(id, self.goal())).then_some(id)
    }

    fn may_be_null(&self, id: u16) -> bool {
        self.table().columns.iter().any(|column| column.id.0 == u32::from(id) && !column.not_null)
    }

    /// Whether codes of a column's order know all of a value.
    fn knows_all_of(&self, id: u16) -> bool {
        let zero = Some((Value::Number(0), true));
        let opened = self.kept().and_then(|kept| self.opened(kept.current()));
        opened.is_ok_and(|opened| opened.knows(&Condition::Range { column: id, low: zero, high: None }))
    }

    /// Those of some rows that may come first; all, if nobody may be believed.
    pub(super) fn first_of(
        &self,
        asking: &Asking,
        rows: &Rows,
        first: &FirstRows,
        at_fault: &mut AtFault,
    ) -> Result<Rows> {
        let may_be = |opened: &Table, asked: Ask<'_>, report: &mut Report| -> Result<Rows, Unanswered> {
            let mut all = Rows::new();
            for order in &first.orders {
                all |= opened.first(asked, *order, &first.conditions, report)?;
            }
            Ok(all)
        };
        let found =
            self.asked(&Waiting::scan(asking), rows, Hides::WhatIsGone, |opened, asked, are_believed, report| {
                if !are_believed {
                    return Ok(asked.state.live.clone());
                }
                let rows = may_be(opened, asked, report);
                at_fault.add(opened, asked.goal, report);
                rows
            })?;
        Ok(found.into_iter().flatten().collect())
    }

    /// What clouds are asked to put in order, for people.
    pub(super) fn ordered_at(&self) -> Vec<String> {
        let (Some(first), Ok(kept)) = (self.first(), self.kept()) else { return Vec::new() };
        first.orders.iter().filter_map(|order| ordered_at(&kept, order)).collect()
    }
}

impl FirstRows {
    /// The columns in whose order they come first.
    pub(super) fn columns(&self) -> impl Iterator<Item = u16> {
        self.orders.iter().map(|order| order.column)
    }

    /// What is true of them, of which clouds are asked before.
    pub(super) fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}
