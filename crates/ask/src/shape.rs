//! What a SELECT makes of matching rows: columns or aggregates, of groups or of all, sorted and counted.

use counterfoil_proof::Value;

use crate::condition::Row;
use crate::error::{Error, not_supported};
use crate::groups::Groups;
use crate::names::Names;
use crate::result::{Table, aggregate, project, sort};
use crate::select::{Output, Shown, SortKey, check_outputs, outputs, sort_keys};
use crate::statement::Statement;

/// What becomes of the rows for which a condition is true.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) outputs: Vec<Output>,
    pub(crate) is_distinct: bool,
    pub(crate) groups: Groups,
    pub(crate) sort_keys: Vec<SortKey>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
}

impl Shape {
    pub(crate) fn of(names: &Names<'_>, statement: &Statement) -> Result<Self, Error> {
        let outputs = outputs(names, &statement.items)?;
        let groups = Groups::of(names, &outputs, &statement.group_by)?;
        check_outputs(&outputs, &groups.columns)?;
        let Statement { is_distinct, limit, offset, .. } = *statement;
        if is_distinct && !groups.is_none() {
            return not_supported("DISTINCT beside GROUP BY");
        }
        let (groups, sort_keys) = if groups.is_none() {
            (groups, sort_keys(names, &outputs, is_distinct, &statement.order_by)?)
        } else {
            (groups.sorted(names, &outputs, &statement.order_by)?, Vec::new())
        };
        Ok(Self { outputs, is_distinct, groups, sort_keys, limit, offset })
    }

    pub(crate) fn is_aggregate(&self) -> bool {
        !self.groups.is_none() || self.outputs.iter().any(|output| matches!(output.shown, Shown::Aggregate(_)))
    }

    /// The columns that it takes.
    pub(crate) fn columns(&self) -> Vec<u16> {
        let shown = self.outputs.iter().filter_map(|output| output.shown.column());
        shown.chain(self.sort_keys.iter().map(|key| key.column)).chain(self.groups.columns.iter().copied()).collect()
    }

    /// The result, of all rows that match.
    pub(crate) fn table(&self, mut matching: Vec<Row<'_>>) -> Result<Table, Error> {
        sort(&mut matching, &self.sort_keys)?;
        let shown = if !self.groups.is_none() {
            self.groups.of_rows(matching, &self.outputs)?
        } else if self.is_aggregate() {
            vec![aggregate(&matching, &self.outputs)?]
        } else {
            project(&matching, &self.outputs, self.is_distinct)?
        };
        Ok(self.shown(shown))
    }

    /// As many of its rows as are wanted.
    pub(crate) fn shown(&self, rows: Vec<Vec<Value>>) -> Table {
        let (offset, limit) = (size(self.offset), self.limit.map_or(usize::MAX, size));
        Table {
            names: self.outputs.iter().map(|output| output.name.clone()).collect(),
            kinds: self.outputs.iter().map(|output| output.kind).collect(),
            rows: rows.into_iter().skip(offset).take(limit).collect(),
        }
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
