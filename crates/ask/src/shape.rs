//! What a SELECT makes of matching rows: columns or aggregates, sorted and counted.

use counterfoil_proof::Value;

use crate::condition::Row;
use crate::error::Error;
use crate::names::Names;
use crate::result::{Table, aggregate, project, sort};
use crate::select::{Output, Shown, SortKey, outputs, sort_keys};
use crate::statement::Statement;

/// What becomes of the rows for which a condition is true.
#[derive(Debug)]
pub(crate) struct Shape {
    outputs: Vec<Output>,
    pub(crate) is_distinct: bool,
    pub(crate) sort_keys: Vec<SortKey>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
}

impl Shape {
    pub(crate) fn of(names: &Names<'_>, statement: &Statement) -> Result<Self, Error> {
        let outputs = outputs(names, &statement.items)?;
        let sort_keys = sort_keys(names, &outputs, statement.is_distinct, &statement.order_by)?;
        let Statement { is_distinct, limit, offset, .. } = *statement;
        Ok(Self { outputs, is_distinct, sort_keys, limit, offset })
    }

    pub(crate) fn is_aggregate(&self) -> bool {
        self.outputs.iter().any(|output| matches!(output.shown, Shown::Aggregate(_)))
    }

    /// The columns that it takes.
    pub(crate) fn columns(&self) -> Vec<u16> {
        let shown = self.outputs.iter().filter_map(|output| output.shown.column());
        shown.chain(self.sort_keys.iter().map(|key| key.column)).collect()
    }

    /// The result, of all rows that match.
    pub(crate) fn table(&self, mut matching: Vec<Row<'_>>) -> Result<Table, Error> {
        sort(&mut matching, &self.sort_keys)?;
        let shown: Vec<Vec<Value>> = if self.is_aggregate() {
            vec![aggregate(&matching, &self.outputs)?]
        } else {
            project(&matching, &self.outputs, self.is_distinct)?
        };
        let (offset, limit) = (size(self.offset), self.limit.map_or(usize::MAX, size));
        Ok(Table {
            names: self.outputs.iter().map(|output| output.name.clone()).collect(),
            kinds: self.outputs.iter().map(|output| output.kind).collect(),
            rows: shown.into_iter().skip(offset).take(limit).collect(),
        })
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
