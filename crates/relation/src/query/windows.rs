//! Rows of the root that come into question, window by window: where there is no room for the numbers of all of them.
//!
//! ```text
//! an index's ranges, or rows that the root joins --\
//! or others, of alternatives ----------------------+--> the least numbers there is room for --> read, tested --> those behind them ...
//! ```
//!
//! The numbers ascend from window to window, so an answer comes in the order that it has where there is room for all. However many
//! lists are merged, a window has the room of one: where rows lie close to each other it is a bit for each number, which takes in 64
//! numbers where a list has one row. Where rows have to be in several lists, a window has the room of two.
//!
//! Entries are read once for each window. Where nobody minds the order, rows that join others come in that of these instead: some
//! of those at a time, with all that join them, and each entry is read once. Where windows are many and all rows are named along
//! paths, these are followed once, and what they name is put aside.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

#[cfg(not(feature = "small"))]
use super::candidates::SOURCE_SHARE;
use super::candidates::said_of;
use super::condition::{Condition, conjuncts};
use super::ends::Ends;
use super::named::{TABLE_ROWS_MIN, TABLE_SHARE};
use super::put_aside::PutAside;
use super::ranges::{Way, flatten, ways};
use super::scratch::Scratch;
use super::told::{along, both, either, index_name, told};
use super::{Access, PIECE_ENDS, Source, Test};
use crate::found::{Found, FoundRows, span_of};
use crate::{Error, NamedRows, Relations, RowId};

/// So many windows, at most, are worth what reading a source names: with more, reading all rows of the root may be less work.
#[cfg(not(feature = "small"))]
const READ_WINDOWS_MAX: u64 = 64;

/// What names the rows of windows.
pub(super) struct Windows {
    /// One of them names each row.
    lists: Vec<List>,
    /// All of these do besides.
    also: Vec<Ends>,
    /// Those at the end of a path whose turn comes later.
    later: Option<Later>,
    /// Rows of a window.
    room: usize,
    /// Entries that may be looked at for one.
    entries_max: usize,
    /// Where the next window begins; none behind the last.
    from: Option<RowId>,
    /// Whether rows lie so close that bits take in more of them than a list.
    is_close: bool,
    /// All that is left, once it is put aside.
    aside: Option<PutAside>,
    /// Whether that has been thought of, if it may be.
    is_decided: bool,
}

enum List {
    /// Ranges of an index of the root.
    Way(Way),
    /// Rows that are joined along a path, by its place among the root's joins.
    Joined(usize, Vec<RowId>),
    /// All at the end of a path.
    Ends(Ends),
}

/// Rows at the end of a path, some of them at a time.
struct Later {
    ends: Ends,
    next: RowId,
    count: usize,
}

impl Later {
    fn take(&mut self) -> Option<List> {
        let piece = self.ends.piece(self.next, self.count);
        self.next = RowId(piece.last()?.0.saturating_add(1));
        Some(List::Joined(self.ends.path, piece))
    }
}

/// The windows of a question, the first of them and what names their rows.
type Opened = (Windows, FoundRows, String);

impl Windows {
    /// The windows of a question; none where reading all rows is better. `named`: what indexes say of each source, as far as there was
    /// room; `room`: for so many rows.
    #[inline(never)]
    pub(super) fn open(
        relations: &Relations,
        view: &dyn View,
        (sources, conditions): (&[Source], &[Condition]),
        named: Vec<Option<NamedRows>>,
        (room, access, in_any_order): (usize, Access, bool),
    ) -> Result<Option<Opened>, Error> {
        let Some(root) = sources.iter().find(|source| source.path.is_none()) else { return Ok(None) };
        if access == Access::Scan {
            return Ok(None);
        }
        let total = relations.count(view, &root.table)?;
        let opening = Opening { relations, view, sources, root, total, room, access, in_any_order };
        if let Some(opened) = opening.by_way()? {
            return Ok(Some(opened));
        }
        #[cfg(not(feature = "small"))]
        let named = opening.with_read(named)?;
        match opening.by_paths(named)? {
            Some(opened) => Ok(Some(opened)),
            None => opening.by_alternatives(conditions),
        }
    }

    /// The next window; none behind the last.
    #[inline(never)]
    pub(super) fn next(
        &mut self,
        relations: &Relations,
        view: &dyn View,
        root: &Source,
        scratch: &mut dyn Scratch,
    ) -> Result<Option<FoundRows>, Error> {
        if !core::mem::replace(&mut self.is_decided, true) && scratch.is_roomy() {
            self.put_aside(relations, view, root, scratch)?;
        }
        if let Some(aside) = &mut self.aside {
            return aside.next(scratch);
        }
        if self.from.is_none() {
            let Some(list) = self.later.as_mut().and_then(Later::take) else { return Ok(None) };
            (self.lists, self.from) = (Vec::from([list]), Some(RowId(0)));
        }
        self.find(relations, view, root)?.map(Some).ok_or_else(|| Error::misuse("a view that has changed"))
    }

    /// Puts aside what paths name, where that is less work than to follow them again for each window.
    fn put_aside(
        &mut self,
        relations: &Relations,
        view: &dyn View,
        root: &Source,
        scratch: &mut dyn Scratch,
    ) -> Result<(), Error> {
        let [List::Ends(first)] = &self.lists[..] else { return Ok(()) };
        let paths: Vec<&Ends> = core::iter::once(first).chain(&self.also).collect();
        let end = relations.shared.access(view, root.table.id)?.next_row();
        let (of_bits, of_lists) = (end.div_ceil(span_of(self.room)), first.joined.div_ceil(self.room.max(1) as u64));
        let windows = of_bits.min(of_lists);
        self.is_close = of_bits < of_lists;
        let followed: u64 = paths.iter().map(|ends| ends.count() as u64).sum();
        let mut aside = PutAside::of(paths.len(), 0..end, self.room);
        if windows.saturating_mul(followed) <= followed + aside.reads() {
            return Ok(());
        }
        match aside.fill(relations, view, root, &paths, scratch) {
            // There was no room for them after all.
            Err(error) if error.is_memory() => Ok(()),
            filled => {
                (self.lists, self.also, self.aside) = (Vec::new(), Vec::new(), Some(aside));
                filled
            }
        }
    }

    /// About how many rows there are at most in windows of which none was asked for yet.
    pub(super) fn expected(&self) -> usize {
        let paths = self.lists.iter().filter_map(|list| if let List::Ends(ends) = list { Some(ends) } else { None });
        let least = paths.chain(&self.also).map(|ends| ends.joined).min();
        least.filter(|_| !self.is_decided).and_then(|least| usize::try_from(least).ok()).unwrap_or(0)
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
                List::Ends(ends) => find_ends(relations, view, root, ends, &mut found)?,
            };
            if !is_all {
                return Ok(None);
            }
        }
        let (mut rows, behind) = found.finish();
        let is_close = self.is_close_behind(&rows, from);
        for ends in &self.also {
            let mut again = Found::among(rows);
            find_ends(relations, view, root, ends, &mut again)?;
            rows = again.finish().0;
        }
        (self.from, self.is_close) = (behind, is_close);
        Ok(Some(rows))
    }

    /// Whether the next window is to be bits.
    fn is_close_behind(&self, rows: &FoundRows, from: RowId) -> bool {
        // What a list came to, bits would have come to in fewer windows, or the other way round.
        match self.is_close {
            true => rows.count_left() >= self.room,
            false => rows.greatest().is_some_and(|last| last.0 - from.0 < span_of(self.room)),
        }
    }
}

/// Finds the rows of the root that join one of those at the end of a path; whether there are not too many.
fn find_ends(
    relations: &Relations,
    view: &dyn View,
    root: &Source,
    ends: &Ends,
    found: &mut Found,
) -> Result<bool, Error> {
    let mut next = RowId(0);
    loop {
        let piece = ends.piece(next, PIECE_ENDS);
        let Some(last) = piece.last() else { return Ok(true) };
        next = RowId(last.0.saturating_add(1));
        if !relations.find_joined_to(view, &root.table, (ends.path, &piece), found)? {
            return Ok(false);
        }
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
    /// Whether rows may come in any order.
    in_any_order: bool,
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
        self.begin_with(lists, (Vec::new(), None), entries_max, by)
    }

    fn begin_with(
        &self,
        lists: Vec<List>,
        (also, later): (Vec<Ends>, Option<Later>),
        entries_max: usize,
        by: &str,
    ) -> Result<Option<Opened>, Error> {
        let mut windows = self.windows(lists, (also, later), entries_max);
        windows.is_decided = true;
        let first = windows.find(self.relations, self.view, self.root)?;
        Ok(first.map(|rows| (windows, rows, in_passes(by))))
    }

    fn windows(&self, lists: Vec<List>, (also, later): (Vec<Ends>, Option<Later>), entries_max: usize) -> Windows {
        // A window may be there twice until it is sorted, and beside it the rows that are joined.
        let (room, from) = (self.room / 4, Some(RowId(0)));
        Windows { lists, also, later, room, entries_max, from, is_close: false, aside: None, is_decided: false }
    }

    /// By an index of the root.
    fn by_way(&self) -> Result<Option<Opened>, Error> {
        let Some(entries_max) = self.entries_max(TABLE_SHARE) else { return Ok(None) };
        let mut flat = Vec::new();
        self.root.tests.iter().for_each(|test| flatten(test, &mut flat));
        for way in ways(&flat, &self.root.table) {
            let by = index_name(&self.root.table, way.index);
            if let Some(opened) = self.begin(Vec::from([List::Way(way)]), entries_max, &by)? {
                return Ok(Some(opened));
            }
        }
        Ok(None)
    }

    /// What indexes say of each source, and what reading says of those that are small and that no index serves.
    #[cfg(not(feature = "small"))]
    fn with_read(&self, mut named: Vec<Option<NamedRows>>) -> Result<Vec<Option<NamedRows>>, Error> {
        // Where one row at the end is joined by many more than others, its entries are read for each window.
        if self.total.div_ceil(span_of(self.room / 4).max(1)) > READ_WINDOWS_MAX {
            return Ok(named);
        }
        for (source, named) in self.sources.iter().zip(&mut named).filter(|(_, named)| named.is_none()) {
            let mut flat = Vec::new();
            source.tests.iter().for_each(|test| flatten(test, &mut flat));
            let count = self.relations.count(self.view, &source.table)?;
            let is_small = count <= self.total / SOURCE_SHARE;
            let is_joined = source.path.is_some() && !source.is_optional;
            if !is_joined || flat.is_empty() || !is_small || !ways(&flat, &source.table).is_empty() {
                continue;
            }
            let room = self.room / self.sources.len();
            let rows = self.relations.matching(self.view, source, &source.tests, room)?;
            *named = rows.map(|rows| NamedRows { rows, index: told(|| format!("{} read", source.table.name)) });
        }
        Ok(named)
    }

    /// By the rows of other sources, back along their paths: all that are few enough, those that most rows join last.
    fn by_paths(&self, named: Vec<Option<NamedRows>>) -> Result<Option<Opened>, Error> {
        let Some(entries_max) = self.entries_max(self.relations.root_share()) else { return Ok(None) };
        let (mut all, mut words) = (Vec::new(), self.room / 2);
        for (source, named) in self.sources.iter().zip(named) {
            let bounds = (self.total, words, self.access);
            let ends = Ends::of(self.relations, self.view, (source, named), bounds)?;
            words -= ends.as_ref().map_or(0, Ends::words);
            all.extend(ends.filter(|ends| ends.joined <= entries_max as u64));
        }
        all.order_stably_by_key(|ends| ends.joined);
        let mut all = all.into_iter();
        let Some(first) = all.next() else { return Ok(None) };
        // Each of them is a lookup, which is to be less work than the rows that it may spare.
        let also: Vec<Ends> = all.filter(|ends| ends.count() as u64 <= first.joined).collect();
        let by = core::iter::once(&first).chain(&also).map(|ends| along(self.root, ends.path, &ends.index));
        let by: Vec<String> = by.collect();
        if !also.is_empty() || !self.in_any_order {
            // None is found yet: all may be put aside by whoever asks for the first.
            let windows = self.windows(Vec::from([List::Ends(first)]), (also, None), usize::MAX);
            return Ok(Some((windows, FoundRows::none(), in_passes(&both(&by)))));
        }
        // So many at a time that what joins them is one window.
        let count = (first.count() * (self.room / 4) / (first.joined as usize).max(1)).max(1);
        let mut later = Later { ends: first, next: RowId(0), count };
        let lists = Vec::from_iter(later.take());
        self.begin_with(lists, (also, Some(later)), entries_max, &both(&by))
    }

    /// By the lists of alternatives, merged.
    fn by_alternatives(&self, conditions: &[Condition]) -> Result<Option<Opened>, Error> {
        let Some(entries_max) = self.entries_max(self.relations.root_share()) else { return Ok(None) };
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
                && let Some(opened) = self.begin(merging.lists, entries_max, &either(&merging.by))?
            {
                return Ok(Some(opened));
            }
        }
        Ok(None)
    }
}

fn in_passes(by: &str) -> String {
    told(|| format!("{by} in passes"))
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
                let by = index_name(&source.table, way.index);
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
