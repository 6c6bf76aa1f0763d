//! Retention: the oldest points go, by dropping the pages that hold them.
//!
//! ```text
//!   dropped | dropped | border | leaf | leaf |         the border leaf holds points on both sides of the time
//!                         ^ oldest
//! ```
//! 1. By time: a mark of the table hides everything before it at once, in one commit; the pages are given back as calls go on, so
//!    many at a time. No leaf is written anew: what of the border leaf is before the mark stays hidden until the leaf goes.
//! 2. By space: the oldest leaves over all series go, each as a whole, and no mark hides anything.
//! 3. Nodes on the border are written anew without what went: for one leaf alone that would write as much as it gives back, so
//!    by time it is done for [`LEAVES_MIN`] of them at once, and by space so many of one series go together.
//!
//! A cut leaves what the last commit had: pages are given back in the commit whose journal no longer names them.

use alloc::collections::{BTreeMap, BinaryHeap};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use counterfoil_log::View;

use crate::edge::{Entry, LEVELS_MAX, Splice};
use crate::journal::{self, Entry as Journaled};
use crate::node;
use crate::tables::{SeriesTables, TableNumber};
use crate::write::Change;
use crate::{Error, Storage};

/// Leaves under a node that go at once.
const LEAVES_MIN: usize = 16;
/// Pages that a call may always look at, so that each one gets on.
const PAGES_MIN: u64 = (LEVELS_MAX + LEAVES_MIN) as u64;

/// What went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Pages that were given back, leaves and nodes.
    pub pages: u64,
    /// Pages that were written: nodes without what went.
    pub written: u64,
    /// Whether there is more to be given back, by another call in a transaction to come.
    pub more: bool,
    /// By space: the series that lost points, each with the time before which nothing of it is left.
    pub series: Vec<(u32, i64)>,
}

/// How far a call may go.
struct Work {
    /// What is before this time goes.
    before: i64,
    /// Fewer leaves than so many under a node that stays are not worth writing that anew.
    leaves_min: usize,
    /// Pages that may still be looked at or given back.
    left: u64,
    dropped: Dropped,
    /// The time of the last point that went.
    last: i64,
    /// When more can be had from the node that was looked at last.
    again_from: i64,
}

impl Work {
    fn new(before: i64, leaves_min: usize, left: u64) -> Work {
        let dropped = Dropped::default();
        Work { before, leaves_min, left, dropped, last: i64::MIN, again_from: i64::MIN }
    }
}

impl SeriesTables {
    /// Lets everything go that is before a time: nobody sees it any more, and points of such times that come later are not stored.
    /// Gives back as many pages as that leaves without use, but looks at `pages_max` or a few at most: while `more` is true, another
    /// call gives back more. A time before the one of an earlier call goes on with that.
    ///
    /// # Errors
    /// As [`SeriesTables::add_column`].
    pub fn retain_from(
        &self,
        writer: &mut dyn Storage,
        table: TableNumber,
        time: i64,
        pages_max: u64,
    ) -> Result<Dropped, Error> {
        let mut dropped = Dropped::default();
        self.change(writer, table, |change| {
            dropped = change.retain_from(time, pages_max)?;
            Ok(())
        })?;
        Ok(dropped)
    }

    /// Gives back the oldest leaves over all series, until so many pages are free that were not, or no leaf is left. Points in no
    /// leaf stay.
    ///
    /// # Errors
    /// As [`SeriesTables::add_column`].
    pub fn drop_oldest(&self, writer: &mut dyn Storage, table: TableNumber, pages: u64) -> Result<Dropped, Error> {
        let mut dropped = Dropped::default();
        self.change(writer, table, |change| {
            dropped = change.drop_oldest(pages)?;
            Ok(())
        })?;
        Ok(dropped)
    }

    /// The time before which nothing is kept.
    ///
    /// # Errors
    /// As [`SeriesTables::find`].
    pub fn oldest(&self, view: &dyn View, table: TableNumber) -> Result<i64, Error> {
        Ok(self.open(view, table)?.1.oldest)
    }
}

impl Change<'_> {
    fn retain_from(&mut self, time: i64, pages_max: u64) -> Result<Dropped, Error> {
        let mut told = Vec::new();
        if time > self.state.oldest {
            self.state.forget_before(time)?;
            journal::put(&Journaled::Oldest(time), self.files.shape(), &mut told)?;
        }
        self.append(&told)?;
        let before = self.state.oldest;
        let mut work = Work::new(before, LEAVES_MIN, pages_max.max(PAGES_MIN));
        for number in 0..self.state.series.len() as u32 {
            let series = &self.state.series[number as usize];
            let oldest = series.edge.entries().next();
            if before < series.trims_from || oldest.is_none_or(|(_, _, entry)| before <= entry.first) {
                continue;
            }
            self.trim_series(number, &mut work)?;
            if work.left == 0 {
                // Whether that was all is seen by the next call.
                work.dropped.more = true;
                break;
            }
        }
        self.tell_edges()?;
        Ok(work.dropped)
    }

    /// Takes what goes off the front of a series.
    fn trim_series(&mut self, number: u32, work: &mut Work) -> Result<(), Error> {
        work.again_from = i64::MIN;
        loop {
            let series = &self.state.series[number as usize];
            let Some((level, _, entry)) = series.edge.entries().next() else { return Ok(()) };
            let (removed, entries) = if level == 0 {
                let all: Arc<Vec<Entry>> = series.edge.levels[0].clone();
                (self.trim_leaves(&all, work)?, Vec::new())
            } else {
                let left = self.trim(number, level, &entry, work)?;
                (usize::from(left.as_slice() != [entry]), left)
            };
            if removed > 0 {
                let is_rest = !entries.is_empty();
                self.splice(Splice { series: number, level: level as u8, at: 0, removed: removed as u32, entries })?;
                if level > 0 && !is_rest && work.left > 0 {
                    continue;
                }
            }
            // What was not looked at is looked at by the next call.
            let again_from = if work.left == 0 { i64::MIN } else { work.again_from };
            self.state.series_mut(number)?.trims_from = again_from;
            return Ok(());
        }
    }

    /// Gives back those of some leaves that go; how many they are.
    fn trim_leaves(&mut self, leaves: &[Entry], work: &mut Work) -> Result<usize, Error> {
        let going = leaves.iter().take_while(|leaf| leaf.last < work.before).take(work.left as usize);
        let mut count = 0;
        for leaf in going {
            self.files.pages.free(self.storage, leaf.at)?;
            work.last = leaf.last;
            count += 1;
        }
        work.left -= count as u64;
        work.dropped.pages += count as u64;
        Ok(count)
    }

    /// What stands in the place of a node when what goes is gone: nothing, itself, or one with less under it.
    fn trim(&mut self, number: u32, level: usize, entry: &Entry, work: &mut Work) -> Result<Vec<Entry>, Error> {
        if work.left == 0 || work.before <= entry.first {
            return Ok(Vec::from([entry.clone()]));
        }
        work.left -= 1;
        let under = node::read(self.storage, self.files, (number, level), entry)?;
        let mut rest = Vec::new();
        if level == 1 {
            let going = under.iter().take_while(|leaf| leaf.last < work.before).count();
            if going < work.leaves_min.min(under.len()) {
                let enough = under.get(work.leaves_min - 1).or(under.last());
                work.again_from = enough.map_or(i64::MIN, |leaf| leaf.last.saturating_add(1));
                return Ok(Vec::from([entry.clone()]));
            }
            let gone = self.trim_leaves(&under, work)?;
            rest.extend_from_slice(&under[gone..]);
        } else {
            for child in &under {
                rest.extend(self.trim(number, level - 1, child, work)?);
            }
        }
        if rest == under {
            return Ok(Vec::from([entry.clone()]));
        }
        self.files.pages.free(self.storage, entry.at)?;
        work.dropped.pages += 1;
        let written = self.write_nodes(number, level, &rest)?;
        work.dropped.written += written.len() as u64;
        Ok(written)
    }

    fn drop_oldest(&mut self, pages: u64) -> Result<Dropped, Error> {
        let first = |change: &Change<'_>, number: u32| {
            let series = change.state.series.get(number as usize)?;
            series.edge.entries().next().map(|(_, _, entry)| (Reverse(entry.first), number))
        };
        let numbers = 0..self.state.series.len() as u32;
        let mut oldest: BinaryHeap<_> = numbers.filter_map(|number| first(self, number)).collect();
        let (mut dropped, mut begins) = (Dropped::default(), BTreeMap::new());
        while dropped.pages < pages + dropped.written {
            let Some((_, number)) = oldest.pop() else { break };
            let series = &self.state.series[number as usize];
            let is_leaf = series.edge.entries().next().is_some_and(|(level, _, _)| level == 0);
            let mut work = Work::new(i64::MAX, 1, if is_leaf { 1 } else { PAGES_MIN });
            self.trim_series(number, &mut work)?;
            dropped.pages += work.dropped.pages;
            dropped.written += work.dropped.written;
            begins.insert(number, work.last.saturating_add(1));
            oldest.extend(first(self, number));
        }
        for (number, begin) in &begins {
            self.state.series_mut(*number)?.late.forget_before(*begin);
        }
        self.tell_edges()?;
        dropped.series = begins.into_iter().collect();
        dropped.more = !oldest.is_empty();
        let mut told = Vec::new();
        if !dropped.series.is_empty() {
            journal::put(&Journaled::Begins(dropped.series.clone()), self.files.shape(), &mut told)?;
        }
        self.append(&told)?;
        Ok(dropped)
    }
}
