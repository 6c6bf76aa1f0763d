//! Rows of one table that come into question, by what its indexes say of them.

use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use super::Access;
use super::candidates::ROOT_SHARE_IN_CELLS;
use super::ranges::{Way, any_ways, flatten, ways};
use super::test::Test;
use super::told::{index_name, names};
use crate::grain::Grain;
use crate::{Error, Relations, RowId, Table};

/// One row in so many is fetched by number: one costs about as much as twenty rows read in passing.
pub(super) const TABLE_SHARE: u64 = 20;
/// So many rows are fetched by number, however few there are.
pub(super) const TABLE_ROWS_MIN: usize = 64;
/// One row in so many may be named by one of several indexes: an entry costs about as much as a row read in passing.
const LIST_SHARE: u64 = 4;
/// With so few rows named, reading them is less work than asking for more.
pub(super) const FEW_ROWS: usize = 256;

/// Rows of a table that indexes name.
#[derive(Clone, Debug, Default)]
pub struct NamedRows {
    /// All rows of which the tests are true, and perhaps others; ascending.
    pub rows: Vec<RowId>,
    /// The indexes; nothing where none needed to be asked.
    pub index: String,
}

impl Relations {
    /// The rows of which tests may be true, if indexes say that they are few enough for a scan to be worse.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn named_rows(&self, view: &dyn View, table: &Table, tests: &[Test]) -> Result<Option<NamedRows>, Error> {
        self.named_by(view, table, tests, (usize::MAX, Access::Cheaper))
    }

    /// As [`Relations::named_rows`], if there is room for so many of them.
    ///
    /// # Errors
    /// As [`Relations::named_rows`].
    pub fn named_within(
        &self,
        view: &dyn View,
        table: &Table,
        tests: &[Test],
        room: usize,
    ) -> Result<Option<NamedRows>, Error> {
        self.named_by(view, table, tests, (room, Access::Cheaper))
    }

    /// As [`Relations::named_within`], where it may be told that indexes are to be asked, or not.
    pub(super) fn named_by(
        &self,
        view: &dyn View,
        table: &Table,
        tests: &[Test],
        (room, access): (usize, Access),
    ) -> Result<Option<NamedRows>, Error> {
        if tests.is_empty() || access == Access::Scan {
            return Ok(None);
        }
        let total = self.count(view, table)?;
        let share = |share: u64| access.rows_max(total, self.in_grain(share), TABLE_ROWS_MIN).min(room);
        let tests: Vec<&Test> = tests.iter().collect();
        // One list alone is not made shorter by another.
        let list_share = if may_narrow(&tests, table) { LIST_SHARE } else { TABLE_SHARE };
        let named = self.of_all(view, table, &tests, share(list_share))?;
        Ok(named.filter(|named| named.rows.len() <= share(TABLE_SHARE)))
    }

    /// How many rows of a table indexes may name before reading all of them is less work.
    pub(super) fn named_max(&self, view: &dyn View, table: &Table, access: Access) -> Result<usize, Error> {
        Ok(access.rows_max(self.count(view, table)?, self.in_grain(TABLE_SHARE), TABLE_ROWS_MIN))
    }

    /// Which share of rows may be named: where rows lie in cells, entries by the page cost next to nothing, and a scan opens all cells.
    fn in_grain(&self, share: u64) -> u64 {
        match self.shared.grain {
            Grain::Pages => share,
            Grain::Cells => ROOT_SHARE_IN_CELLS,
        }
    }

    /// The rows of which all of these may be true: of one index, or of several while many remain.
    fn of_all(
        &self,
        view: &dyn View,
        table: &Table,
        tests: &[&Test],
        rows_max: usize,
    ) -> Result<Option<NamedRows>, Error> {
        let mut flat = Vec::new();
        tests.iter().for_each(|test| flatten(test, &mut flat));
        let mut all: Option<NamedRows> = flat.contains(&&Test::Never).then(NamedRows::default);
        let is_few = |all: &Option<NamedRows>| all.as_ref().is_some_and(|all| all.rows.len() <= FEW_ROWS);
        let mut said: Vec<usize> = Vec::new();
        for way in any_ways(&flat, table) {
            if is_few(&all) || way.columns.iter().all(|column| said.contains(column)) {
                continue;
            }
            if let Some(named) = self.in_ranges(view, table, &way, rows_max)? {
                said.extend(&way.columns);
                all = Some(both(all, named));
            }
        }
        for alternatives in flat.iter().filter_map(|test| if let Test::Any(tests) = test { Some(tests) } else { None })
        {
            if !is_few(&all)
                && let Some(named) = self.of_any(view, table, alternatives, rows_max)?
            {
                all = Some(both(all, named));
            }
        }
        Ok(all)
    }

    /// The rows of which one of these may be true, if indexes name those of each.
    fn of_any(
        &self,
        view: &dyn View,
        table: &Table,
        alternatives: &[Test],
        rows_max: usize,
    ) -> Result<Option<NamedRows>, Error> {
        let mut any = NamedRows::default();
        for test in alternatives {
            let Some(named) = self.of_all(view, table, &[test], rows_max)? else { return Ok(None) };
            any.rows.extend(named.rows);
            if any.rows.len() > rows_max {
                return Ok(None);
            }
            any.index = names(any.index, &named.index);
        }
        any.rows.order();
        any.rows.dedup();
        Ok(Some(any))
    }

    /// The rows of an index's ranges, if they are not too many.
    fn in_ranges(
        &self,
        view: &dyn View,
        table: &Table,
        way: &Way,
        rows_max: usize,
    ) -> Result<Option<NamedRows>, Error> {
        // Each is looked up, which is as much work as reading a row by its number.
        if way.ranges.len() > rows_max {
            return Ok(None);
        }
        let mut rows = Vec::new();
        for range in &way.ranges {
            match self.candidates_or_owner(view, table, (way.index, range), rows_max)? {
                Some(found) if rows.len() + found.len() <= rows_max => rows.extend(found),
                _ => return Ok(None),
            }
        }
        if way.ranges.len() > 1 {
            rows.order();
            rows.dedup();
        }
        let index = index_name(table, way.index);
        Ok(Some(NamedRows { rows, index }))
    }
}

/// Whether several indexes may have something to say of rows of which these are true.
fn may_narrow(tests: &[&Test], table: &Table) -> bool {
    let mut flat = Vec::new();
    tests.iter().for_each(|test| flatten(test, &mut flat));
    ways(&flat, table).len() > 1 || flat.iter().any(|test| matches!(test, Test::Any(_)))
}

/// The rows that both name.
fn both(all: Option<NamedRows>, named: NamedRows) -> NamedRows {
    let Some(mut all) = all else { return named };
    all.rows.retain(|row| named.rows.binary_search(row).is_ok());
    NamedRows { rows: all.rows, index: names(all.index, &named.index) }
}
