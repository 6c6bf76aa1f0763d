//! Rows of the root that come into question, window by window: where there is no room for the numbers of all of them.
//!
//! ```text
//! an index's ranges, or rows that the root joins --\
//! or others, of alternatives ----------------------+--> the least numbers there is room for --> read, tested --> those behind them ...
//! ```
//!
//! The numbers ascend from window to window, so an answer comes in the order that it has where there is room for all. However many
//! lists are merged, a window has the room of one: where rows lie close to each other it is a bit for each number, which takes in 64
//! numbers where a list has one row.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use super::candidates::{ROOT_SHARE, said_of};
use super::condition::{Condition, conjuncts};
use super::named::{TABLE_ROWS_MIN, TABLE_SHARE};
use super::ranges::{Way, flatten, ways};
use super::{Access, Source, Test};
use crate::found::{Found, FoundRows, span_of};
use crate::{Error, NamedRows, Relations, RowId};

/// What names the rows of windows.
pub(super) struct Windows {
    lists: Vec<List>,
    /// Rows of a window.
    room: usize,
    /// Entries that may be looked at for one.
    entries_max: usize,
    /// Where the next window begins; none behind the last.
    from: Option<RowId>,
    /// Whether rows lie so close that bits take in more of them than a list.
    is_close: bool,
}

enum List {
    /// Ranges of an index of the root.
    Way(Way),
    /// Rows that are joined along a path, by its place among the root's joins.
    Joined(usize, Vec<RowId>),
}

/// The windows of a question, the first of them and what names their rows.
type Opened = (Windows, FoundRows, String);

impl Windows {
    /// The windows of a question; none where reading all rows is better. `named`: what indexes say of each source, as far as there was
    /// room; `room`: for so many rows.
    pub(super) fn open(
        relations: &Relations,
        view: &dyn View,
        (sources, conditions): (&[Source], &[Condition]),
        named: &[Option<NamedRows>],
        (room, access): (usize, Access),
    ) -> Result<Option<Opened>, Error> {
        let Some(root) = sources.iter().find(|source| source.path.is_none()) else { return Ok(None) };
        if access == Access::Scan {
            return Ok(None);
        }
        let total = relations.count(view, &root.table)?;
        let opening = Opening { relations, view, sources, root, total, room, access };
        if let Some(opened) = opening.by_way()? {
            return Ok(Some(opened));
        }
        match opening.by_path(named)? {
            Some(opened) => Ok(Some(opened)),
            None => opening.by_alternatives(conditions),
        }
    }

    /// The next window; none behind the last.
    pub(super) fn next(
        &mut self,
        relations: &Relations,
        view: &dyn View,
        root: &Source,
    ) -> Result<Option<FoundRows>, Error> {
        match self.from {
            None => Ok(None),
            Some(_) => self.find(relations, view, root)?.map(Some).ok_or(Error::Misuse("a view that has changed")),
        }
    }

    fn find(&mut self, relations: &Relations, view: &dyn View, root: &Source) -> Result<Option<FoundRows>, Error> {
        let from = self.from.unwrap_or(RowId(0));
        let mut found = match self.is_close {
            true => Found::close(from, self.room, self.entries_max),
            false => Found::some(from, self.room, self.entries_max),
        };
        for list in &self.lists {
            let is_all = match list {
                List::Way(way) => relations.find_in(view, &root.table, (way.index, &way.ranges), &mut found)?,
                List::Joined(path, rows) => relations.find_joined_to(view, &root.table, (*path, rows), &mut found)?,
            };
            if !is_all {
                return Ok(None);
            }
        }
        let (rows, behind) = found.finish();
        self.from = behind;
        // What a list came to, bits would have come to in fewer windows, or the other way round.
        self.is_close = match self.is_close {
            true => rows.count_left() >= self.room,
            false => rows.greatest().is_some_and(|last| last.0 - from.0 < span_of(self.room)),
        };
        Ok(Some(rows))
    }
}

/// Windows being sought.
struct Opening<'o> {
    relations: &'o Relations,
    view: &'o dyn View,
    sources: &'o [Source],
    root: &'o Source,
    /// The root's rows.
    total: u64,
    /// Rows that there is room for.
    room: usize,
    access: Access,
}

impl Opening<'_> {
    /// Entries that may be looked at for a window, if there was too little room for so many: where there was enough, what was not
    /// taken was too much.
    fn entries_max(&self, share: u64) -> Option<usize> {
        let entries_max = self.access.rows_max(self.total, share, TABLE_ROWS_MIN);
        Some(entries_max).filter(|entries_max| self.room / self.sources.len() < *entries_max)
    }

    /// The first window, if its lists do not have too many entries.
    fn begin(&self, lists: Vec<List>, entries_max: usize, by: &str) -> Result<Option<Opened>, Error> {
        // A window may be there twice until it is sorted, and beside it the rows that are joined.
        let (room, from) = (self.room / 4, Some(RowId(0)));
        let mut windows = Windows { lists, room, entries_max, from, is_close: false };
        let first = windows.find(self.relations, self.view, self.root)?;
        Ok(first.map(|rows| (windows, rows, format!("{by} in passes"))))
    }

    /// By an index of the root.
    fn by_way(&self) -> Result<Option<Opened>, Error> {
        let Some(entries_max) = self.entries_max(TABLE_SHARE) else { return Ok(None) };
        let mut flat = Vec::new();
        self.root.tests.iter().for_each(|test| flatten(test, &mut flat));
        for way in ways(&flat, &self.root.table) {
            let by = index_name(self.root, &way);
            if let Some(opened) = self.begin(Vec::from([List::Way(way)]), entries_max, &by)? {
                return Ok(Some(opened));
            }
        }
        Ok(None)
    }

    /// By the rows of another source, back along its path.
    fn by_path(&self, named: &[Option<NamedRows>]) -> Result<Option<Opened>, Error> {
        let Some(entries_max) = self.entries_max(ROOT_SHARE) else { return Ok(None) };
        let joined = self.sources.iter().zip(named).filter(|(source, _)| !source.is_optional);
        let mut joined: Vec<_> = joined.filter_map(|(source, named)| Some((source.path?, named.as_ref()?))).collect();
        joined.order_stably_by_key(|(_, named)| named.rows.len());
        for (path, named) in joined {
            let lists = Vec::from([List::Joined(path, named.rows.clone())]);
            if let Some(opened) = self.begin(lists, entries_max, &along(self.root, path, &named.index))? {
                return Ok(Some(opened));
            }
        }
        Ok(None)
    }

    /// By the lists of alternatives, merged.
    fn by_alternatives(&self, conditions: &[Condition]) -> Result<Option<Opened>, Error> {
        let Some(entries_max) = self.entries_max(ROOT_SHARE) else { return Ok(None) };
        let Opening { relations, view, sources, access, .. } = *self;
        let mut tests = Vec::new();
        self.root.tests.iter().for_each(|test| flatten(test, &mut tests));
        let number = sources.iter().position(|source| source.path.is_none()).unwrap_or_default();
        let own = tests.into_iter().filter(|test| matches!(test, Test::Any(_)));
        let own: Vec<Condition> = own.map(|test| Condition::Of(number, test.clone())).collect();
        let mut all = Vec::new();
        conjuncts(conditions, &mut all);
        for condition in own.iter().chain(all) {
            let (lists, by) = (Vec::new(), Vec::new());
            let mut merging = Merging { relations, view, sources, access, room: self.room / 4, lists, by };
            if merging.add(condition)?
                && let Some(opened) = self.begin(merging.lists, entries_max, &merging.by.join(" or "))?
            {
                return Ok(Some(opened));
            }
        }
        Ok(None)
    }
}

fn index_name(source: &Source, way: &Way) -> String {
    source.table.index(way.index).map(|index| index.name.clone()).unwrap_or_default()
}

/// What names rows of a source, and the path to them.
fn along(root: &Source, path: usize, by: &str) -> String {
    match root.table.joins.get(path) {
        Some(join) => format!("{by} along {}", root.table.path_name(join)),
        None => by.into(),
    }
}

/// Lists of which one has each row of which a condition is true.
struct Merging<'m> {
    relations: &'m Relations,
    view: &'m dyn View,
    sources: &'m [Source],
    access: Access,
    /// Rows of sources that there is room for.
    room: usize,
    lists: Vec<List>,
    by: Vec<String>,
}

impl Merging<'_> {
    /// Adds such lists, if indexes give them.
    fn add(&mut self, condition: &Condition) -> Result<bool, Error> {
        let mut flat = Vec::new();
        conjuncts(core::slice::from_ref(condition), &mut flat);
        for (number, source) in self.sources.iter().enumerate() {
            let said = flat.iter().filter_map(|condition| said_of(condition, source, number));
            let tests: Vec<Test> = said.cloned().collect();
            if !tests.is_empty() && self.add_of(source, &tests)? {
                return Ok(true);
            }
        }
        for condition in flat {
            let Condition::Any(any) = condition else { continue };
            let before = (self.lists.len(), self.by.len());
            let mut is_all = true;
            for alternative in any {
                is_all = is_all && self.add(alternative)?;
            }
            if is_all {
                return Ok(true);
            }
            self.lists.truncate(before.0);
            self.by.truncate(before.1);
        }
        Ok(false)
    }

    /// Adds a list of the rows of which tests of one source may be true.
    fn add_of(&mut self, source: &Source, tests: &[Test]) -> Result<bool, Error> {
        let (list, by) = match source.path {
            None => {
                let mut flat = Vec::new();
                tests.iter().for_each(|test| flatten(test, &mut flat));
                let Some(way) = ways(&flat, &source.table).into_iter().next() else {
                    return self.add_alternatives(source, &flat);
                };
                let by = index_name(source, &way);
                (List::Way(way), by)
            }
            Some(path) => {
                let named = self.relations.named_by(self.view, &source.table, tests, (self.room, self.access))?;
                let Some(NamedRows { rows, index }) = named else { return Ok(false) };
                self.room -= rows.len().min(self.room);
                let root = self.sources.iter().find(|source| source.path.is_none());
                let by = root.map(|root| along(root, path, &index)).unwrap_or_default();
                (List::Joined(path, rows), by)
            }
        };
        self.lists.push(list);
        if !self.by.contains(&by) {
            self.by.push(by);
        }
        Ok(true)
    }

    /// Adds a list for each of the alternatives that one of some tests of the root has.
    fn add_alternatives(&mut self, root: &Source, tests: &[&Test]) -> Result<bool, Error> {
        for test in tests {
            let Test::Any(any) = test else { continue };
            let before = (self.lists.len(), self.by.len());
            let mut is_all = true;
            for test in any {
                is_all = is_all && self.add_of(root, core::slice::from_ref(test))?;
            }
            if is_all {
                return Ok(true);
            }
            self.lists.truncate(before.0);
            self.by.truncate(before.1);
        }
        Ok(false)
    }
}
