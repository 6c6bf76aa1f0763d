//! What is late goes into the leaves that cover it: they are written anew, and so is every node above them.
//!
//! A leaf that overflows becomes several, the first of them full (Algorithm 5, the unfavourable case, for many points at once);
//! nodes split in halves (the standard split). Nothing is written in place: pages that are replaced are given back.

use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::View;

use crate::Error;
use crate::codec::Nonsense;
use crate::column::Kind;
use crate::edge::{Entry, Splice};
use crate::files::Files;
use crate::leaf::{self, Leaf};
use crate::node;
use crate::open::Late;
use crate::points::{Points, Span};
use crate::write::Change;

/// Reads a leaf, and that it is what its parent says.
pub(crate) fn read_leaf(
    view: &dyn View,
    files: &Files,
    kinds: &[Kind],
    number: u32,
    entry: &Entry,
) -> Result<Points, Error> {
    let mut points = Points::new(kinds);
    read_columns(view, files, (number, entry), &mut points, |leaf, points| leaf.read(points))?;
    Ok(points)
}

/// Appends columns of a leaf, and looks whether it is what its parent says.
pub(crate) fn read_columns(
    view: &dyn View,
    files: &Files,
    (number, entry): (u32, &Entry),
    points: &mut Points,
    read: impl FnOnce(&Leaf<'_>, &mut Points) -> Result<(), Nonsense>,
) -> Result<(), Error> {
    let wrong = Error::Corrupt { what: "leaf" };
    let payload = files.pages.read(view, entry.at)?;
    let leaf = Leaf::new(&payload).map_err(Error::nonsense("leaf"))?;
    if leaf.series != number || leaf.count as u64 != entry.points {
        return Err(wrong);
    }
    let begun = points.len();
    read(&leaf, points).map_err(Error::nonsense("leaf"))?;
    let times = &points.times[begun..];
    let is_it = times.first() == Some(&entry.first) && times.last() == Some(&entry.last);
    if is_it { Ok(()) } else { Err(wrong) }
}

impl Change<'_> {
    /// Merges what is late in a series into its leaves.
    pub(crate) fn merge_late(&mut self, number: u32) -> Result<(), Error> {
        let kinds = self.state.kinds.clone();
        let series = self.state.series_mut(number)?;
        let late = core::mem::replace(&mut series.late, Late::new(&kinds));
        let entries: Vec<_> = series.edge.entries().collect();
        self.settled.push(number);
        let (mut done, mut from) = (Vec::new(), 0);
        for (at, (level, place, entry)) in entries.iter().enumerate() {
            // What comes before the first leaf goes into that, what is between two into the older one.
            let next = entries.get(at + 1).map(|(_, _, next)| next.first);
            let until = late.before(from..late.len(), next);
            if from < until {
                let written = self.rewrite(number, *level, entry, &late, from..until)?;
                done.push(Splice {
                    series: number,
                    level: *level as u8,
                    at: *place as u32,
                    removed: 1,
                    entries: written,
                });
            }
            from = until;
        }
        // From the newest on: the places of older ones stay what they were.
        done.into_iter().rev().try_for_each(|splice| self.splice(splice))?;
        (0..self.state.series_mut(number)?.edge.levels.len()).try_for_each(|level| self.promote(number, level))
    }

    /// Writes an entry anew with the late points of a range; what stands in its place then.
    fn rewrite(
        &mut self,
        number: u32,
        level: usize,
        entry: &Entry,
        late: &Late,
        range: Range<usize>,
    ) -> Result<Vec<Entry>, Error> {
        let written = match level {
            0 => self.rewrite_leaf(number, entry, late, range)?,
            _ => self.rewrite_node(number, level, entry, late, range)?,
        };
        self.files.pages.free(self.storage, entry.at)?;
        Ok(written)
    }

    fn rewrite_leaf(
        &mut self,
        number: u32,
        entry: &Entry,
        late: &Late,
        range: Range<usize>,
    ) -> Result<Vec<Entry>, Error> {
        let kinds = self.state.kinds.clone();
        let under = read_leaf(self.storage, self.files, &kinds, number, entry)?;
        let span = Span { first: late.points.times[range.start], last: late.points.times[range.end - 1] };
        let guess = under.len();
        let points = late.merged(under, &span);
        self.write_leaves(number, &points, guess)
    }

    /// Writes points as leaves, all but the last of them full.
    pub(crate) fn write_leaves(&mut self, number: u32, points: &Points, guess: usize) -> Result<Vec<Entry>, Error> {
        let page_bytes = self.files.pages.bytes as usize;
        let (mut from, mut written, mut guess) = (0, Vec::new(), guess);
        while from < points.len() {
            let packed = leaf::pack(number, points, from..points.len(), guess, page_bytes);
            let packed = packed.ok_or(Error::Misuse("a point that does not fit a page"))?;
            let times = &points.times[from..from + packed.count];
            let (first, last) = (times[0], times[packed.count - 1]);
            let summaries = self.files.summarized().of(points, from..from + packed.count);
            let at = self.files.pages.write(self.storage, &packed.payload)?;
            written.push(Entry { first, last, points: packed.count as u64, at, summaries });
            (from, guess) = (from + packed.count, packed.count);
        }
        Ok(written)
    }

    fn rewrite_node(
        &mut self,
        number: u32,
        level: usize,
        entry: &Entry,
        late: &Late,
        range: Range<usize>,
    ) -> Result<Vec<Entry>, Error> {
        let under = node::read(self.storage, self.files, (number, level), entry)?;
        let mut entries = Vec::with_capacity(under.len() + 1);
        let mut from = range.start;
        for (at, child) in under.iter().enumerate() {
            let next = under.get(at + 1).map(|next| next.first);
            let until = late.before(from..range.end, next);
            match from == until {
                true => entries.push(child.clone()),
                false => entries.extend(self.rewrite(number, level - 1, child, late, from..until)?),
            }
            from = until;
        }
        self.write_nodes(number, level, &entries)
    }

    /// Writes entries as one node, or as several that are about equally full.
    pub(crate) fn write_nodes(&mut self, number: u32, level: usize, entries: &[Entry]) -> Result<Vec<Entry>, Error> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let packed = node::pack(number, level, entries, self.files);
        if packed.count < entries.len() {
            let (older, newer) = entries.split_at(entries.len() / 2);
            let mut written = self.write_nodes(number, level, older)?;
            written.extend(self.write_nodes(number, level, newer)?);
            return Ok(written);
        }
        let at = self.files.pages.write(self.storage, &packed.payload)?;
        Ok(Entry::over(entries, at).into_iter().collect())
    }
}
