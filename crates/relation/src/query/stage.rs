//! What becomes of rows on their way to an answer: groups, no row twice, in order.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::fold::Groups;
use super::packed;
use super::plan::{Order, Output, Plan};
use super::rows::value;
use super::sorter::Fold;
use super::{JoinedRows, select};
use crate::key::push_value;
use crate::layout::Layout;
use crate::{Error, RowBlock, RowBuilder, RowId, RowIds, Type, ValueRef};

/// A stage: what its records are.
pub(super) enum Stage {
    /// Groups of rows, folded.
    Groups(Groups),
    /// Rows of the answer, once each.
    Once(Vec<Type>),
    /// Rows of the answer, in order.
    InOrder(Vec<Type>, Vec<Order>),
}

impl Fold for Stage {
    fn fold(&self, into: &mut Vec<u8>, other: &[u8]) -> Result<bool, Error> {
        match self {
            Stage::Groups(groups) => groups.fold(into, other).map(|()| true),
            Stage::Once(_) => Ok(true),
            Stage::InOrder(..) => Ok(false),
        }
    }
}

impl Stage {
    /// The stages of a question, the first first.
    pub(super) fn all(plan: &Plan) -> Result<Vec<Stage>, Error> {
        let kinds: Vec<Type> = plan.outputs.iter().map(|output| plan.kind_of(*output)).collect::<Result<_, _>>()?;
        let mut stages = Vec::new();
        if plan.is_grouped() {
            stages.push(Stage::Groups(Groups::of(plan)?));
        }
        if plan.is_distinct {
            stages.push(Stage::Once(kinds.clone()));
        }
        if !plan.order.is_empty() {
            stages.push(Stage::InOrder(kinds, plan.order.clone()));
        }
        Ok(stages)
    }

    /// An aggregate of no row is a row as well: then the load of that one.
    pub(super) fn begins_empty(&self, load: &mut Vec<u8>) -> bool {
        match self {
            Stage::Groups(groups) => groups.begin_empty(load),
            _ => false,
        }
    }

    /// The load of so many rows together, where nothing of them is wanted but how many they are.
    #[cfg(not(feature = "small"))]
    pub(super) fn record_all(&self, count: usize, load: &mut Vec<u8>) -> bool {
        match self {
            Stage::Groups(groups) => groups.record_all(count, load),
            _ => false,
        }
    }

    /// The record of a row that was read.
    pub(super) fn record(
        &self,
        plan: &Plan,
        rows: &JoinedRows,
        row: usize,
        (key, load): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<(), Error> {
        match self {
            Stage::Groups(groups) => groups.record(rows, row, (key, load)),
            _ => {
                self.record_values(&plan.values(rows, row)?, (key, load));
                Ok(())
            }
        }
    }

    /// The record of a row of the answer.
    pub(super) fn record_values(&self, values: &[ValueRef<'_>], (key, load): (&mut Vec<u8>, &mut Vec<u8>)) {
        key.clear();
        load.clear();
        values.iter().for_each(|value| packed::push(*value, load));
        match self {
            Stage::InOrder(_, order) => push_order(order, values, key),
            _ => values.iter().for_each(|value| push_value(*value, key)),
        }
    }

    /// The outputs that a record stands for.
    pub(super) fn values<'l>(&self, mut load: &'l [u8]) -> Result<Vec<ValueRef<'l>>, Error> {
        match self {
            Stage::Groups(groups) => groups.outputs(load),
            Stage::Once(kinds) | Stage::InOrder(kinds, _) => {
                kinds.iter().map(|kind| packed::read(*kind, &mut load)).collect()
            }
        }
    }
}

impl Plan {
    /// The outputs of a row that stands for itself.
    pub(super) fn values<'r>(&self, rows: &'r JoinedRows, row: usize) -> Result<Vec<ValueRef<'r>>, Error> {
        let output = |output: &Output| match output {
            Output::Column(place) => value(rows, *place, row),
            _ => Err(Error::misuse("an aggregate of a single row")),
        };
        self.outputs.iter().map(output).collect()
    }
}

/// A key in whose order rows come as they are to.
fn push_order(order: &[Order], values: &[ValueRef<'_>], key: &mut Vec<u8>) {
    for Order { output, is_descending, nulls_first } in order {
        let value = values[*output];
        let is_null = value == ValueRef::Null;
        key.push(u8::from(is_null != *nulls_first));
        if is_null {
            continue;
        }
        let start = key.len();
        push_value(value, key);
        if *is_descending {
            key[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// HAVING: which groups are wanted.
pub(super) struct Filter {
    tests: Vec<super::Test>,
    layout: Arc<Layout>,
}

impl Filter {
    pub(super) fn of(plan: &Plan) -> Result<Self, Error> {
        Ok(Filter { tests: plan.having.clone(), layout: plan.layout(plan.outputs.len())? })
    }

    /// Whether it has anything to say of groups.
    pub(super) fn says_something(&self) -> bool {
        !self.tests.is_empty()
    }

    /// Whether a row of the answer is wanted; it is asked of groups alone, and each passes it once.
    pub(super) fn holds(&self, stage: &Stage, values: &[ValueRef<'_>]) -> Result<bool, Error> {
        if self.tests.is_empty() || !matches!(stage, Stage::Groups(_)) {
            return Ok(true);
        }
        let mut row = RowBuilder::new(self.layout.clone());
        row.push(values)?;
        let block = RowBlock { rows: row.finish(), ids: RowIds::From(RowId(0)), visible: None };
        Ok(select(&block, &self.tests)?.count() > 0)
    }
}
