//! Rows of the root that come into question: lists that indexes name of it and of what it joins, taken together.
//!
//! ```text
//! tests of a source -- its indexes --> its rows -- a path, backwards --> a list of the root's --\
//! alternatives, each such lists --> the rows that one of them has -------------------------------+--> the rows that all have
//! ```
//!
//! Lists ascend. They begin with the shortest, and none is asked for where few rows remain: reading those is less work. Where one is
//! longer than what a scan of the root would cost, its entries are not read to the end.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::{Order as _, View};

use super::condition::{Condition, conjuncts};
use super::named::FEW_ROWS;
use super::ranges::{flatten, ways};
use super::test::{Test, select};
use super::told::{self, told};
use super::{Access, NamedRows, Source};
use crate::found::Found;
use crate::grain::Grain;
use crate::{Error, Relations, RowId, Table};

/// One in so many of the root's rows is fetched by number: in the order of their numbers they cost less than a scan of all and
/// a hash join of each.
pub(super) const ROOT_SHARE: u64 = 4;
/// The same where rows lie in cells: a scan opens all cells of a page, and reads what each row joins.
pub(super) const ROOT_SHARE_IN_CELLS: u64 = 2;
/// A source with at most one in so many of the root's rows may be read to its end, to know which of its rows come into question; all
/// that are have twice as many.
pub(super) const SOURCE_SHARE: u64 = 8;
/// About how many rows of a source are read at the price of one that is fetched by number.
const ROWS_OF_A_FETCH: u64 = 16;
/// Rows read at a time.
const BLOCK_ROWS: usize = 4096;

/// Rows of a root that come into question.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// All that belong to the answer, and perhaps others; ascending.
    pub rows: Vec<RowId>,
    /// What named them: indexes, with the paths along which they did, and small tables that were read.
    pub by: Vec<String>,
    /// Those that a path names, in the order in which it does: those together that join the same row.
    together: Vec<RowId>,
}

impl Candidates {
    /// The rows in the order in which reading them and what they join costs least: where rows lie in cells, those together that join
    /// the same row of the largest table that was asked about.
    #[must_use]
    pub fn in_reading_order(&self) -> Vec<RowId> {
        if self.together.is_empty() {
            return self.rows.clone();
        }
        let mut left = self.rows.iter().map(|_| true).collect::<Vec<_>>();
        let mut is_left =
            |row: &&RowId| self.rows.binary_search(row).is_ok_and(|place| core::mem::replace(&mut left[place], false));
        self.together.iter().filter(&mut is_left).copied().collect()
    }
}

impl Relations {
    /// The rows of the root that come into question, if they are few enough for reading all tables to be worse. One of the sources
    /// is the root; `named`: what [`Relations::named_rows`] says of each.
    ///
    /// # Errors
    /// [`Error::misuse`] without a root, [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn candidates_of_root(
        &self,
        view: &dyn View,
        sources: &[Source],
        named: &[Option<&NamedRows>],
    ) -> Result<Option<Candidates>, Error> {
        self.candidates_where(view, sources, &[], named, usize::MAX)
    }

    /// As [`Relations::candidates_of_root`], where conditions hold besides that are of several tables, if there is room for so many rows.
    ///
    /// # Errors
    /// As [`Relations::candidates_of_root`].
    pub fn candidates_where(
        &self,
        view: &dyn View,
        sources: &[Source],
        conditions: &[Condition],
        named: &[Option<&NamedRows>],
        room: usize,
    ) -> Result<Option<Candidates>, Error> {
        self.candidates_within(view, (sources, conditions), named, (room, Access::Cheaper))
    }

    /// As [`Relations::candidates_where`], if there is room for them.
    pub(super) fn candidates_within(
        &self,
        view: &dyn View,
        (sources, conditions): (&[Source], &[Condition]),
        named: &[Option<&NamedRows>],
        (room, access): (usize, Access),
    ) -> Result<Option<Candidates>, Error> {
        if access == Access::Scan {
            return Ok(None);
        }
        let mut search = Search::begin(self, view, sources, access)?;
        let mut asked = Asked::default();
        // Rows without an optional source stay.
        for (source, named) in sources.iter().zip(named).filter(|(source, _)| !source.is_optional) {
            match named {
                Some(named) => {
                    asked.lists.extend(search.list(source, Cow::Borrowed(&named.rows), named.index.clone())?)
                }
                None if search.is_to_be_read(source, &source.tests, room)? => {
                    asked.to_read.push((source, source.tests.clone()))
                }
                None => {}
            }
        }
        let mut flat = Vec::new();
        conjuncts(conditions, &mut flat);
        search.take(&flat, &mut asked, room)?;
        let found = search.in_all(asked, room)?;
        let together = search.together.1;
        Ok(found.map(|(rows, by)| Candidates { rows, by, together }))
    }
}

/// What is all to be true of a row.
#[derive(Default)]
struct Asked<'a> {
    /// Rows that indexes name.
    lists: Vec<List<'a>>,
    /// Tests that no index serves; their source may be small enough to be read.
    to_read: Vec<(&'a Source, Vec<Test>)>,
    /// Alternatives.
    any: Vec<&'a [Condition]>,
}

/// Rows of a source that come into question.
struct List<'n> {
    rows: Cow<'n, [RowId]>,
    /// What named them.
    by: String,
    /// The path to their table; none where they are the root's.
    path: Option<usize>,
}

/// Lists of the root's rows being made.
struct Search<'s> {
    relations: &'s Relations,
    view: &'s dyn View,
    sources: &'s [Source],
    root: &'s Table,
    /// The root's rows.
    total: u64,
    /// Rows of sources that may still be read to know which come into question.
    reads_left: u64,
    access: Access,
    /// Rows of the largest table from which a path led back to the root's, and these as they were found.
    together: (u64, Vec<RowId>),
}

/// Rows of the root, ascending, and what named them.
type Rows = (Vec<RowId>, Vec<String>);

impl<'s> Search<'s> {
    fn begin(
        relations: &'s Relations,
        view: &'s dyn View,
        sources: &'s [Source],
        access: Access,
    ) -> Result<Self, Error> {
        let root = sources.iter().find(|source| source.path.is_none());
        let root = &root.ok_or_else(|| Error::misuse("a question without a root"))?.table;
        let total = relations.count(view, root)?;
        let reads_left = 2 * (total / SOURCE_SHARE);
        Ok(Search { relations, view, sources, root, total, reads_left, access, together: (0, Vec::new()) })
    }

    /// Rows of the root that a list may have.
    fn rows_max(&self, room: usize) -> usize {
        self.access.rows_max(self.total, self.root_share(), FEW_ROWS).min(room)
    }

    fn root_share(&self) -> u64 {
        self.relations.root_share()
    }

    /// Rows of a source as a list, if they are few of its rows.
    fn list<'n>(&self, source: &Source, rows: Cow<'n, [RowId]>, by: String) -> Result<Option<List<'n>>, Error> {
        // The root's rows join those of the source about evenly: many of these are many of the root.
        let count = self.relations.count(self.view, &source.table)?;
        let is_few = rows.len() <= self.access.rows_max(count, self.root_share(), FEW_ROWS);
        Ok(is_few.then(|| List { rows, by: self.along(source.path, by), path: source.path }))
    }

    /// What names rows of a source, and the path to them.
    fn along(&self, path: Option<usize>, by: String) -> String {
        let join = path.and_then(|path| self.root.joins.get(path));
        told(|| match join.map(|join| self.root.path_name(join)) {
            // What is never true needs no index.
            Some(name) if !by.is_empty() => format!("{by} along {name}"),
            _ => by,
        })
    }

    /// The rows of a source that is small beside the root, those of which the tests are true: if reading it is less work than the rows
    /// that are still in question.
    fn by_reading(
        &mut self,
        (source, tests): (&Source, &[Test]),
        all: Option<&Rows>,
        room: usize,
    ) -> Result<Option<List<'static>>, Error> {
        let count = self.relations.count(self.view, &source.table)?;
        let is_worth = all.is_none_or(|(rows, _)| rows.len() as u64 > count / ROWS_OF_A_FETCH);
        if tests.is_empty() || !is_worth || !self.may_read(source, count) {
            return Ok(None);
        }
        self.reads_left -= count;
        let Some(rows) = self.relations.matching(self.view, source, tests, room)? else { return Ok(None) };
        self.list(source, Cow::Owned(rows), told(|| format!("{} read", source.table.name)))
    }

    /// Whether a source that no index has named rows of may be read for them: not where one may only have had no room for as many, since
    /// windows have. Where there was room for as many as an index may name, it names too many.
    fn is_to_be_read(&self, source: &Source, tests: &[Test], room: usize) -> Result<bool, Error> {
        let mut flat = Vec::new();
        tests.iter().for_each(|test| flatten(test, &mut flat));
        if room == usize::MAX || ways(&flat, &source.table).is_empty() {
            return Ok(true);
        }
        let named_max = self.relations.named_max(self.view, &source.table, self.access)?;
        Ok(!cfg!(feature = "small") && named_max <= room / self.sources.len())
    }

    /// Whether a source of so many rows may be read to its end.
    fn may_read(&self, source: &Source, count: u64) -> bool {
        source.path.is_some() && count <= self.reads_left && count <= self.total / SOURCE_SHARE
    }

    /// Asks what is said of each source alone, and takes apart what is said of several.
    fn take<'a>(&mut self, conditions: &[&'a Condition], asked: &mut Asked<'a>, room: usize) -> Result<(), Error>
    where
        's: 'a,
    {
        for (number, source) in self.sources.iter().enumerate() {
            let said = conditions.iter().filter_map(|condition| said_of(condition, source, number));
            let tests: Vec<Test> = said.cloned().collect();
            if tests.is_empty() {
                continue;
            }
            match self.relations.named_by(self.view, &source.table, &tests, (room, self.access))? {
                Some(named) => asked.lists.extend(self.list(source, Cow::Owned(named.rows), named.index)?),
                None if self.is_to_be_read(source, &tests, room)? => asked.to_read.push((source, tests)),
                None => {}
            }
        }
        asked.any.extend(conditions.iter().filter_map(|condition| match condition {
            Condition::Any(any) => Some(any.as_slice()),
            _ => None,
        }));
        Ok(())
    }

    /// The rows of the root of which all may be true that is asked, as far as it is worth asking.
    fn in_all(&mut self, mut asked: Asked<'_>, room: usize) -> Result<Option<Rows>, Error> {
        asked.lists.order_stably_by_key(|list| list.rows.len());
        let mut all: Option<Rows> = None;
        for list in asked.lists {
            all = self.narrowed(all, list, room)?;
        }
        for (source, tests) in &asked.to_read {
            if !is_few(&all)
                && let Some(list) = self.by_reading((source, tests), all.as_ref(), room)?
            {
                all = self.narrowed(all, list, room)?;
            }
        }
        for alternatives in asked.any {
            if !is_few(&all) {
                // Three lists are there at a time: what was found, what one of some names, and what the next of them does.
                all = both(all, self.in_any(alternatives, room / 3)?);
            }
        }
        Ok(all.filter(|(rows, _)| rows.len() <= self.rows_max(room)))
    }

    /// Of the rows found so far those that a list names as well.
    fn narrowed(&mut self, all: Option<Rows>, list: List<'_>, room: usize) -> Result<Option<Rows>, Error> {
        let rows_max = self.rows_max(room);
        // Each of those that are joined is looked up, whatever comes of it.
        let lookups_max = all.as_ref().map_or(rows_max, |(rows, _)| rows.len().min(rows_max));
        let List { rows, by, path } = list;
        let back = match path {
            _ if is_few(&all) => None,
            Some(_) if rows.len() > lookups_max => None,
            None => Some(rows.into_owned()),
            Some(path) => self.along_path(path, &rows, (rows_max, room))?,
        };
        Ok(both(all, back.map(|rows| (rows, Vec::from([by])))))
    }

    /// The rows of the root from which a path may lead to one of some rows.
    fn along_path(
        &mut self,
        path: usize,
        rows: &[RowId],
        (rows_max, room): (usize, usize),
    ) -> Result<Option<Vec<RowId>>, Error> {
        // Where there is room for as many numbers as there are.
        let is_told = self.relations.shared.grain == Grain::Cells && room == usize::MAX;
        let mut found = if is_told { Found::all_together(rows_max) } else { Found::all(rows_max) };
        if !self.relations.find_joined_to(self.view, self.root, (path, rows), &mut found)? {
            return Ok(None);
        }
        if !is_told {
            return Ok(Some(found.finish_all()));
        }
        let mut rows = found.into_list();
        let end = self.sources.iter().find(|source| source.path == Some(path));
        let end = end.map_or(Ok(0), |source| self.relations.count(self.view, &source.table))?;
        if end > self.together.0 {
            self.together = (end, rows.clone());
        }
        rows.order();
        rows.dedup();
        Ok(Some(rows))
    }

    /// The rows of the root of which one of these may be true, if indexes name those of each.
    fn in_any(&mut self, alternatives: &[Condition], room: usize) -> Result<Option<Rows>, Error> {
        if !alternatives.iter().all(|alternative| self.is_served(alternative)) {
            return Ok(None);
        }
        let rows_max = self.rows_max(room);
        let (mut rows, mut names) = (Vec::new(), Vec::new());
        for alternative in alternatives {
            let mut flat = Vec::new();
            conjuncts(core::slice::from_ref(alternative), &mut flat);
            let mut asked = Asked::default();
            self.take(&flat, &mut asked, room)?;
            let Some((more, by)) = self.in_all(asked, room)? else { return Ok(None) };
            rows = merged(rows, &more);
            if rows.len() > rows_max {
                return Ok(None);
            }
            let by = told::apart(&by);
            if !by.is_empty() && !names.contains(&by) {
                names.push(by);
            }
        }
        Ok(Some((rows, Vec::from([told::either(&names)]))))
    }

    /// Whether there is an index, or a small table, that may name rows of which a condition is true: what would be looked up in vain
    /// for one alternative is not looked up for those before it.
    fn is_served(&self, condition: &Condition) -> bool {
        let mut flat = Vec::new();
        conjuncts(core::slice::from_ref(condition), &mut flat);
        flat.iter().any(|condition| match condition {
            Condition::Any(any) => any.iter().all(|alternative| self.is_served(alternative)),
            Condition::All(_) => false,
            Condition::Of(number, _) => {
                let Some(source) = self.sources.get(*number) else { return false };
                let count = self.relations.count(self.view, &source.table);
                said_of(condition, source, *number).is_some_and(|test| {
                    is_indexed(test, &source.table) || count.is_ok_and(|count| self.may_read(source, count))
                })
            }
        })
    }
}

/// Whether so few rows are left that reading them is less work than asking for more lists.
fn is_few(all: &Option<Rows>) -> bool {
    all.as_ref().is_some_and(|(rows, _)| rows.len() <= FEW_ROWS)
}

/// Whether indexes may name the rows of which a test is true.
fn is_indexed(test: &Test, table: &Table) -> bool {
    let mut flat = Vec::new();
    flatten(test, &mut flat);
    flat.contains(&&Test::Never)
        || !ways(&flat, table).is_empty()
        || flat.iter().any(|test| match test {
            Test::Any(tests) => tests.iter().all(|test| is_indexed(test, table)),
            _ => false,
        })
}

/// What a condition says of the rows of one source that are there, if nothing else makes it true.
pub(super) fn said_of<'c>(condition: &'c Condition, source: &Source, number: usize) -> Option<&'c Test> {
    match condition {
        Condition::Of(of, test) if *of == number && !(source.is_optional && test.is_true_of_none()) => Some(test),
        _ => None,
    }
}

/// The rows that both name.
fn both(all: Option<Rows>, more: Option<Rows>) -> Option<Rows> {
    match (all, more) {
        (Some((mut rows, mut names)), Some((more, by))) => {
            rows.retain(|row| more.binary_search(row).is_ok());
            names.extend(by);
            Some((rows, names))
        }
        (one, other) => one.or(other),
    }
}

/// The rows that one of two ascending lists has, ascending.
fn merged(one: Vec<RowId>, other: &[RowId]) -> Vec<RowId> {
    if one.is_empty() {
        return other.to_vec();
    }
    let mut all = one;
    all.extend_from_slice(other);
    all.order();
    all.dedup();
    all
}

impl Relations {
    /// One of so many rows of the root may be named.
    pub(super) fn root_share(&self) -> u64 {
        match self.shared.grain {
            Grain::Pages => ROOT_SHARE,
            Grain::Cells => ROOT_SHARE_IN_CELLS,
        }
    }

    /// The rows of a source's table of which tests are true, if there is room for them.
    pub(super) fn matching(
        &self,
        view: &dyn View,
        source: &Source,
        tests: &[Test],
        room: usize,
    ) -> Result<Option<Vec<RowId>>, Error> {
        let mut columns = Vec::new();
        tests.iter().for_each(|test| test.columns(&mut columns));
        let mut all = self.scan(view, &source.table)?.with_columns(&columns);
        if room < usize::MAX {
            all = all.with_heap_bytes(room as u64);
        }
        // A row is read in about as much room as ten candidates take.
        let block_rows = (room / 10).clamp(1, BLOCK_ROWS);
        let mut rows = Vec::new();
        loop {
            let block = match all.next(block_rows) {
                Err(error) if error.is_memory() => return Ok(None),
                block => block?,
            };
            let Some(block) = block else { return Ok(Some(rows)) };
            select(&block, tests)?.each(|row| rows.push(block.id(row)));
            if rows.len() > room {
                return Ok(None);
            }
        }
    }
}
