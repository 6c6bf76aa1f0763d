//! Rows that come into question, by what indexes say of them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use super::Source;
use super::ranges::{Way, flatten, ways};
use super::test::{Test, select};
use crate::{Error, Relations, RowId, Table};

/// One row in so many is fetched by number: one costs about as much as twenty rows read in passing.
pub(super) const TABLE_SHARE: u64 = 20;
/// So many rows are fetched by number, however few there are.
pub(super) const TABLE_ROWS_MIN: usize = 64;
/// One row in so many may be named by one of several indexes: an entry costs about as much as a row read in passing.
const LIST_SHARE: u64 = 4;
/// With so few rows named, reading them is less work than asking for more.
const FEW_ROWS: usize = 256;
/// One in so many of the root's rows is fetched by number: in the order of their numbers they cost less than a scan of all and
/// a hash join of each.
pub(super) const ROOT_SHARE: u64 = 4;
/// A source with at most one in so many of the root's rows is read to its end, to know which of its rows come into question.
const SOURCE_SHARE: u64 = 8;
/// Rows read at a time.
const BLOCK_ROWS: usize = 4096;

/// Rows of a table that indexes name.
#[derive(Clone, Debug, Default)]
pub struct NamedRows {
    /// All rows of which the tests are true, and perhaps others; ascending.
    pub rows: Vec<RowId>,
    /// The indexes; nothing where none needed to be asked.
    pub index: String,
}

/// Rows of a root that come into question.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// All that belong to the answer, and perhaps others; ascending.
    pub rows: Vec<RowId>,
    /// What named them: indexes, and small tables that were read.
    pub by: Vec<String>,
}

/// Rows of a source that come into question.
struct Asked<'n> {
    rows: Cow<'n, [RowId]>,
    by: String,
    path: Option<usize>,
}

impl Relations {
    /// The rows of which tests may be true, if indexes say that they are few enough for a scan to be worse.
    ///
    /// # Errors
    /// [`Error::Log`], [`Error::Corrupt`].
    pub fn named_rows(&self, view: &dyn View, table: &Table, tests: &[Test]) -> Result<Option<NamedRows>, Error> {
        self.named_within(view, table, tests, usize::MAX)
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
        if tests.is_empty() {
            return Ok(None);
        }
        let total = self.count(view, table)?;
        let share = |share: u64| usize::try_from(total / share).unwrap_or(usize::MAX).max(TABLE_ROWS_MIN).min(room);
        let tests: Vec<&Test> = tests.iter().collect();
        // One list alone is not made shorter by another.
        let list_share = if may_narrow(&tests, table) { LIST_SHARE } else { TABLE_SHARE };
        let named = self.of_all(view, table, &tests, share(list_share))?;
        Ok(named.filter(|named| named.rows.len() <= share(TABLE_SHARE)))
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
        for way in ways(&flat, table) {
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
        let mut rows = Vec::new();
        for range in &way.ranges {
            match self.candidates(view, table, way.index, range, rows_max)? {
                Some(found) if rows.len() + found.len() <= rows_max => rows.extend(found),
                _ => return Ok(None),
            }
        }
        if way.ranges.len() > 1 {
            rows.order();
            rows.dedup();
        }
        let index = table.index(way.index).map(|index| index.name.clone()).unwrap_or_default();
        Ok(Some(NamedRows { rows, index }))
    }

    /// The rows of the root that come into question, if they are few enough for reading all tables to be worse. One of the sources
    /// is the root; `named`: what [`Relations::named_rows`] says of each.
    ///
    /// # Errors
    /// [`Error::Misuse`] without a root, [`Error::Log`], [`Error::Corrupt`].
    pub fn candidates_of_root(
        &self,
        view: &dyn View,
        sources: &[Source],
        named: &[Option<&NamedRows>],
    ) -> Result<Option<Candidates>, Error> {
        self.candidates_within(view, sources, named, usize::MAX)
    }

    /// As [`Relations::candidates_of_root`], if there is room for them.
    pub(super) fn candidates_within(
        &self,
        view: &dyn View,
        sources: &[Source],
        named: &[Option<&NamedRows>],
        room: usize,
    ) -> Result<Option<Candidates>, Error> {
        let root = sources.iter().find(|source| source.path.is_none());
        let root = &root.ok_or(Error::Misuse("a question without a root"))?.table;
        let total = self.count(view, root)?;
        let rows_max = usize::try_from(total / ROOT_SHARE).unwrap_or(usize::MAX).max(FEW_ROWS).min(room);
        let mut asked = Vec::new();
        // Rows without an optional source stay.
        for (source, named) in sources.iter().zip(named).filter(|(source, _)| !source.is_optional) {
            asked.extend(self.rows_of(view, source, *named, (total, room))?);
        }
        asked.order_stably_by_key(|asked| asked.rows.len());
        let mut all: Option<Vec<RowId>> = None;
        let mut by = Vec::new();
        for Asked { rows, by: name, path } in asked {
            if all.as_ref().is_some_and(|all| all.len() <= FEW_ROWS) {
                break;
            }
            let back = match path {
                // Each of them is looked up, whatever comes of it.
                Some(_) if rows.len() > rows_max => None,
                None => Some(rows.into_owned()),
                Some(path) => self.joined_to(view, root, path, &rows, rows_max)?,
            };
            let Some(mut rows) = back else { continue };
            if let Some(all) = &all {
                rows.retain(|row| all.binary_search(row).is_ok());
            }
            all = Some(rows);
            by.push(name);
        }
        Ok(all.filter(|rows| rows.len() <= rows_max).map(|rows| Candidates { rows, by }))
    }

    /// The rows of a source that come into question, if they are few of its rows: those that an index has named, or, of a table that
    /// is small beside the root, those of which the tests are true.
    fn rows_of<'n>(
        &self,
        view: &dyn View,
        source: &Source,
        named: Option<&'n NamedRows>,
        (total, room): (u64, usize),
    ) -> Result<Option<Asked<'n>>, Error> {
        let (table, path) = (&source.table, source.path);
        let count = self.count(view, table)?;
        let asked = match named {
            Some(named) => Asked { rows: Cow::Borrowed(&named.rows), by: named.index.clone(), path },
            None if path.is_none() || source.tests.is_empty() || count > total / SOURCE_SHARE => return Ok(None),
            None => {
                let Some(rows) = self.matching(view, source, room)? else { return Ok(None) };
                Asked { rows: Cow::Owned(rows), by: format!("{} read", table.name), path }
            }
        };
        // The root's rows join those of the source about evenly: many of these are many of the root.
        let is_few = asked.rows.len() <= FEW_ROWS || asked.rows.len() as u64 <= count / ROOT_SHARE;
        Ok(Some(asked).filter(|_| is_few))
    }

    /// The rows of a table of which a source's tests are true, if there is room for them.
    fn matching(&self, view: &dyn View, source: &Source, room: usize) -> Result<Option<Vec<RowId>>, Error> {
        let mut all = self.scan(view, &source.table)?.with_columns(&source.tested_columns());
        if room < usize::MAX {
            all = all.with_heap_bytes(room as u64);
        }
        // A row is read in about as much room as ten candidates take.
        let block_rows = (room / 10).clamp(1, BLOCK_ROWS);
        let mut rows = Vec::new();
        loop {
            let block = match all.next(block_rows) {
                Err(Error::Memory { .. }) => return Ok(None),
                block => block?,
            };
            let Some(block) = block else { return Ok(Some(rows)) };
            select(&block, &source.tests)?.each(|row| rows.push(block.id(row)));
            if rows.len() > room {
                return Ok(None);
            }
        }
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

/// Names one behind the other, each once.
fn names(mut all: String, name: &str) -> String {
    if name.is_empty() || all.split(", ").any(|known| known == name) {
        return all;
    }
    if !all.is_empty() {
        all.push_str(", ");
    }
    all.push_str(name);
    all
}
