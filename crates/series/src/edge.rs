//! The right edge of a series' tree: what is under no node yet, level by level (Chronos, section 3.2).
//!
//! ```text
//! levels[1]  [node][node][node]                  each: a page of entries of level 0, full
//! levels[0]                     [leaf][leaf]     each: a page of points, full
//! ```
//! Time goes on from the highest level to the lowest: what a node covers is older than what stands beside it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::pages::PageAt;
use crate::points::Span;
use crate::summary::Summary;

/// Levels that a tree has at most: with the fewest entries that a node may have, more than a medium holds.
pub(crate) const LEVELS_MAX: usize = 12;

/// A page of the tree as its parent knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The time of the first point under it.
    pub(crate) first: i64,
    /// The time of the last point under it.
    pub(crate) last: i64,
    /// Points under it.
    pub(crate) points: u64,
    pub(crate) at: PageAt,
    /// Of the points under it, one for each column that has summaries; none in a table without. They are written beside the
    /// rest (`digest`).
    #[serde(skip)]
    pub(crate) summaries: Option<Arc<[Summary]>>,
}

impl Entry {
    pub(crate) fn span(&self) -> Span {
        Span { first: self.first, last: self.last }
    }

    /// One that covers them all.
    pub(crate) fn over(entries: &[Entry], at: PageAt) -> Option<Entry> {
        let (first, last) = (entries.first()?.first, entries.last()?.last);
        let points = entries.iter().map(|entry| entry.points).fold(0, u64::wrapping_add);
        Some(Entry { first, last, points, at, summaries: summaries_over(entries) })
    }
}

/// Summaries of all points under some entries that follow each other.
fn summaries_over(entries: &[Entry]) -> Option<Arc<[Summary]>> {
    let (oldest, newer) = entries.split_first()?;
    let mut all = oldest.summaries.as_deref()?.to_vec();
    let mut end = oldest.last;
    for entry in newer {
        let next = entry.summaries.as_deref()?;
        let from_first = entry.first.wrapping_sub(oldest.first) as u64;
        let (from_last, long) = (entry.first.wrapping_sub(end) as u64, entry.last.wrapping_sub(entry.first) as u64);
        all.iter_mut().zip(next).for_each(|(sum, next)| sum.append(next, from_first, from_last, long));
        end = entry.last;
    }
    Some(all.into())
}

/// How the edge of a series changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Splice {
    pub(crate) series: u32,
    pub(crate) level: u8,
    /// From this entry on ...
    pub(crate) at: u32,
    /// ... so many are taken out ...
    pub(crate) removed: u32,
    /// ... and these put in.
    pub(crate) entries: Vec<Entry>,
}

/// The edge of one series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) levels: Vec<Arc<Vec<Entry>>>,
}

impl Edge {
    /// The time of the last point in any leaf.
    pub(crate) fn end(&self) -> Option<i64> {
        self.levels.iter().find_map(|level| level.last()).map(|entry| entry.last)
    }

    /// Points in leaves.
    pub(crate) fn points(&self) -> u64 {
        self.levels.iter().flat_map(|level| level.iter()).map(|entry| entry.points).sum()
    }

    /// Its entries, the oldest first.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, usize, Entry)> + '_ {
        let levels = self.levels.iter().enumerate().rev();
        levels
            .flat_map(|(level, entries)| entries.iter().enumerate().map(move |(at, entry)| (level, at, entry.clone())))
    }

    /// What makes such an edge out of nothing.
    pub(crate) fn splices(&self, series: u32) -> Vec<Splice> {
        let levels = self.levels.iter().enumerate().rev().filter(|(_, entries)| !entries.is_empty());
        let splice = |(level, entries): (usize, &Arc<Vec<Entry>>)| Splice {
            series,
            level: level as u8,
            at: 0,
            removed: 0,
            entries: entries.to_vec(),
        };
        levels.map(splice).collect()
    }

    /// Changes it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is nothing to be changed in this way, or time would no longer go on.
    pub(crate) fn apply(&mut self, splice: &Splice) -> Result<(), Error> {
        let wrong = Error::Corrupt { what: "journal" };
        let level = usize::from(splice.level);
        if level >= LEVELS_MAX {
            return Err(wrong);
        }
        while self.levels.len() <= level {
            self.levels.push(Arc::default());
        }
        let entries = Arc::make_mut(&mut self.levels[level]);
        let from = splice.at as usize;
        let until = from.checked_add(splice.removed as usize).filter(|until| *until <= entries.len());
        entries.splice(from..until.ok_or(wrong.clone())?, splice.entries.iter().cloned());
        let near = entries[from.saturating_sub(1)..].iter().take(splice.entries.len() + 2);
        let sound = |entry: &Entry| entry.first <= entry.last && entry.points < 1 << 48;
        let in_order =
            near.clone().all(sound) && near.clone().zip(near.skip(1)).all(|(one, next)| one.last < next.first);
        if in_order { Ok(()) } else { Err(wrong) }
    }
}
