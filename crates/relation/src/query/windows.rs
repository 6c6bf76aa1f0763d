//! Rows of the root that come into question, window by window: where there is no room for the numbers of all of them.
//!
//! ```text
//! an index's ranges, or rows that the root joins --> the least numbers there is room for --> read, tested --> those behind them ...
//! ```
//!
//! The numbers ascend from window to window, so an answer comes in the order that it has where there is room for all.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use super::Source;
use super::named::{ROOT_SHARE, TABLE_ROWS_MIN, TABLE_SHARE};
use super::ranges::{Way, flatten, ways};
use crate::found::Found;
use crate::{Error, NamedRows, Relations, RowId};

/// What names the rows of windows.
pub(super) struct Windows {
    by: By,
    /// Rows of a window.
    room: usize,
    /// Entries that may be looked at for one.
    entries_max: usize,
    /// Where the next window begins; none behind the last.
    from: Option<RowId>,
}

enum By {
    /// Ranges of an index of the root.
    Way(Way),
    /// Rows that are joined along a path, by its place among the root's joins.
    Joined(usize, Vec<RowId>),
}

impl Windows {
    /// The windows of a question, the first of them and what names their rows; none where reading all rows is better.
    /// `named`: what indexes say of each source, as far as there was room; `room`: for so many rows.
    pub(super) fn open(
        relations: &Relations,
        view: &dyn View,
        sources: &[Source],
        named: &[Option<NamedRows>],
        room: usize,
    ) -> Result<Option<(Self, Vec<RowId>, String)>, Error> {
        let Some(root) = sources.iter().find(|source| source.path.is_none()) else { return Ok(None) };
        let total = relations.count(view, &root.table)?;
        let share = |share: u64| usize::try_from(total / share).unwrap_or(usize::MAX).max(TABLE_ROWS_MIN);
        // Where there was room enough, what was not taken was too much.
        let is_short = |entries_max: usize| room / sources.len() < entries_max;
        // A window may be there twice until it is sorted, and beside it the rows that are joined.
        let window = room / 4;
        let mut flat = Vec::new();
        root.tests.iter().for_each(|test| flatten(test, &mut flat));
        for way in ways(&flat, &root.table).into_iter().filter(|_| is_short(share(TABLE_SHARE))) {
            let name = root.table.index(way.index).map(|index| index.name.clone()).unwrap_or_default();
            let windows =
                Windows { by: By::Way(way), room: window, entries_max: share(TABLE_SHARE), from: Some(RowId(0)) };
            if let Some(opened) = windows.begin(relations, view, root, name)? {
                return Ok(Some(opened));
            }
        }
        let joined = sources.iter().zip(named).filter(|(source, _)| !source.is_optional && is_short(share(ROOT_SHARE)));
        let mut joined: Vec<_> = joined.filter_map(|(source, named)| Some((source.path?, named.as_ref()?))).collect();
        joined.order_stably_by_key(|(_, named)| named.rows.len());
        for (path, named) in joined {
            let by = By::Joined(path, named.rows.clone());
            let windows = Windows { by, room: window, entries_max: share(ROOT_SHARE), from: Some(RowId(0)) };
            if let Some(opened) = windows.begin(relations, view, root, named.index.clone())? {
                return Ok(Some(opened));
            }
        }
        Ok(None)
    }

    fn begin(
        mut self,
        relations: &Relations,
        view: &dyn View,
        root: &Source,
        name: String,
    ) -> Result<Option<(Self, Vec<RowId>, String)>, Error> {
        let first = self.find(relations, view, root)?;
        Ok(first.map(|rows| (self, rows, format!("{name} in passes"))))
    }

    /// The next window; none behind the last.
    pub(super) fn next(
        &mut self,
        relations: &Relations,
        view: &dyn View,
        root: &Source,
    ) -> Result<Option<Vec<RowId>>, Error> {
        match self.from {
            None => Ok(None),
            Some(_) => self.find(relations, view, root)?.map(Some).ok_or(Error::Misuse("a view that has changed")),
        }
    }

    fn find(&mut self, relations: &Relations, view: &dyn View, root: &Source) -> Result<Option<Vec<RowId>>, Error> {
        let mut found = Found::some(self.from.unwrap_or(RowId(0)), self.room, self.entries_max);
        let is_all = match &self.by {
            By::Way(way) => relations.find_in(view, &root.table, (way.index, &way.ranges), &mut found)?,
            By::Joined(path, rows) => relations.find_joined_to(view, &root.table, (*path, rows), &mut found)?,
        };
        if !is_all {
            return Ok(None);
        }
        let (rows, behind) = found.finish();
        self.from = behind;
        Ok(Some(rows))
    }
}
