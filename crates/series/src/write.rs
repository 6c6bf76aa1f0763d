//! Changes to a table: points are stored, leaves are written when they are full, and the journal is told.
//!
//! ```text
//! put -> tail or late -> full leaves (Algorithm 5, the favourable case) -> full nodes -> journal: splices, then what stayed open
//! ```
//! A cut before the commit leaves pages that no journal names: they are nobody's.

use alloc::vec::Vec;

use crate::Error;
use crate::Storage;
use crate::batch::{Batch, Rows, Run};
use crate::edge::{Entry, LEVELS_MAX, Splice};
use crate::files::Files;
use crate::journal::{self, Entry as Journaled};
use crate::leaf;
use crate::node;
use crate::points::Points;
use crate::series::Series;
use crate::state::{Gathered, State};

/// A change in the making.
pub(crate) struct Change<'a> {
    pub(crate) storage: &'a mut dyn Storage,
    pub(crate) files: &'a Files,
    pub(crate) state: &'a mut State,
    /// Points newer than the newest of their series less this wait for others that are between them.
    pub(crate) reorder: i64,
    /// Points late in one series from which on they are merged into its leaves.
    pub(crate) late_points: usize,
    pub(crate) splices: Vec<Splice>,
    pub(crate) settled: Vec<u32>,
}

impl Change<'_> {
    /// Stores points.
    pub(crate) fn insert(&mut self, batch: &Batch) -> Result<(), Error> {
        let bytes_max = leaf::text_bytes_max(self.files.pages.bytes as usize);
        if !batch.rows.texts_fit(bytes_max) {
            return Err(Error::TooLong { bytes_max });
        }
        let runs = batch.by_series();
        for run in &runs {
            if !self.append_run(run, &batch.rows)? {
                self.each_row(run, |series, row| series.put(&batch.rows, row))?;
            }
            self.settle_tail(run.series)?;
        }
        self.tell_edges()?;
        self.tell_points(&runs, &batch.rows)
    }

    /// Deletes points: those that are not there are no error.
    pub(crate) fn delete(&mut self, batch: &Batch) -> Result<(), Error> {
        let runs = batch.by_series();
        let times = &batch.rows.times;
        for run in &runs {
            self.each_row(run, |series, row| series.delete(times[row]))?;
        }
        self.tell_edges()?;
        self.tell_gone(&runs, times)
    }

    /// Appends rows that go on where the series ends, all at once; whether they do.
    fn append_run(&mut self, run: &Run, rows: &Points) -> Result<bool, Error> {
        let series = self.state.series_mut(run.series)?;
        let newest = series.tail.times.last().copied().or(series.edge.end());
        let Rows::Range(from, until) = run.rows else { return Ok(false) };
        let goes_on = newest.is_none_or(|newest| newest < rows.times[from])
            && rows.times[from..until].is_sorted_by(|one, next| one < next);
        if goes_on {
            series.tail.append(rows, from..until);
        }
        Ok(goes_on)
    }

    /// Changes a series row by row; what is late is merged whenever it has become much.
    fn each_row(&mut self, run: &Run, change: impl Fn(&mut Series, usize)) -> Result<(), Error> {
        for row in run.rows.iter() {
            let series = self.state.series_mut(run.series)?;
            change(series, row);
            if series.late.len() >= self.late_points {
                self.merge_late(run.series)?;
            }
        }
        Ok(())
    }

    /// Writes the leaves that the tail of a series fills.
    fn settle_tail(&mut self, number: u32) -> Result<(), Error> {
        let page_bytes = self.files.pages.bytes as usize;
        let mut from = 0;
        let mut born = Vec::new();
        loop {
            let series = self.state.series_mut(number)?;
            let Some(newest) = series.tail.times.last().copied() else { break };
            // The newest point stays: whoever asks for it need not look further.
            let settles = series.tail.times.partition_point(|time| *time < newest.saturating_sub(self.reorder));
            if settles < from + series.leaf_guess {
                break;
            }
            let Some(packed) = leaf::pack(number, &series.tail, from..settles, series.leaf_guess, page_bytes) else {
                return Err(Error::Misuse("a point that does not fit a page"));
            };
            if packed.count == settles - from && packed.count < leaf::POINTS_MAX {
                // There is room left: so many would have filled it.
                let by_bytes = packed.count * page_bytes / packed.bytes.max(1);
                series.leaf_guess = by_bytes.max(packed.count + 1 + packed.count / 64).min(leaf::POINTS_MAX);
                break;
            }
            series.leaf_guess = packed.count;
            let times = &series.tail.times[from..from + packed.count];
            let (first, last) = (times[0], times[packed.count - 1]);
            let summaries = self.files.summarized().of(&series.tail, from..from + packed.count);
            let at = self.files.pages.write(self.storage, &packed.payload)?;
            born.push(Entry { first, last, points: packed.count as u64, at, summaries });
            from += packed.count;
        }
        if !born.is_empty() {
            self.grow(number, 0, born)?;
            self.state.series_mut(number)?.drop_settled();
        }
        Ok(())
    }

    /// Adds entries at the right end of a level, and makes nodes of those that fill one.
    fn grow(&mut self, number: u32, level: usize, born: Vec<Entry>) -> Result<(), Error> {
        let there = self.level(number, level)?;
        self.splice(Splice { series: number, level: level as u8, at: there as u32, removed: 0, entries: born })?;
        self.promote(number, level)
    }

    /// Writes the nodes that the entries of a level fill.
    pub(crate) fn promote(&mut self, number: u32, level: usize) -> Result<(), Error> {
        loop {
            let series = self.state.series_mut(number)?;
            let entries = series.edge.levels[level].clone();
            if entries.len() < series.node_guess || level + 1 == LEVELS_MAX {
                return Ok(());
            }
            let packed = node::pack(number, level + 1, &entries, self.files);
            if packed.count == entries.len() && packed.count < node::ENTRIES_MAX {
                series.node_guess = entries.len() + entries.len() / 32 + 1;
                return Ok(());
            }
            series.node_guess = packed.count;
            let at = self.files.pages.write(self.storage, &packed.payload)?;
            let under = &entries[..packed.count];
            let Some(over) = Entry::over(under, at) else { return Ok(()) };
            let removed = packed.count as u32;
            self.splice(Splice { series: number, level: level as u8, at: 0, removed, entries: Vec::new() })?;
            self.grow(number, level + 1, Vec::from([over]))?;
        }
    }

    fn level(&mut self, number: u32, level: usize) -> Result<usize, Error> {
        Ok(self.state.series_mut(number)?.edge.levels.get(level).map_or(0, |entries| entries.len()))
    }

    /// Changes an edge, and keeps that in mind for the journal.
    pub(crate) fn splice(&mut self, splice: Splice) -> Result<(), Error> {
        self.state.series_mut(splice.series)?.edge.apply(&splice)?;
        self.splices.push(splice);
        Ok(())
    }

    /// Tells the journal how edges changed.
    pub(crate) fn tell_edges(&mut self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        if !self.splices.is_empty() {
            let splices = Journaled::Splices(core::mem::take(&mut self.splices));
            journal::put(&splices, self.files.shape(), &mut bytes)?;
        }
        if !self.settled.is_empty() {
            let settled = Journaled::Settled(core::mem::take(&mut self.settled));
            journal::put(&settled, self.files.shape(), &mut bytes)?;
        }
        self.append(&bytes)
    }

    /// Tells the journal of the points that went into no leaf.
    fn tell_points(&mut self, runs: &[Run], rows: &Points) -> Result<(), Error> {
        let kinds = self.state.kinds.clone();
        let mut open = Gathered::new(&kinds, Journaled::Points);
        let mut bytes = Vec::new();
        let shape = self.files.shape();
        let mut give = |entry: &Journaled| journal::put(entry, shape, &mut bytes);
        for run in runs {
            let series = self.state.series_mut(run.series)?;
            let end = series.edge.end();
            if let Rows::Range(from, until) = run.rows
                && rows.times[from..until].is_sorted()
                && end.is_none_or(|end| end < rows.times[from])
            {
                open.append(run.series, rows, from..until, &mut give)?;
                continue;
            }
            for row in run.rows.iter() {
                // What leaves cover is told of if it is late; else it is in one of those just written.
                let time = rows.times[row];
                if end.is_none_or(|end| end < time) || series.late.knows(time).is_some() {
                    open.append(run.series, rows, row..row + 1, &mut give)?;
                }
            }
        }
        open.give(&mut give)?;
        self.append(&bytes)
    }

    /// Tells the journal of the points that were deleted, unless leaves were written without them.
    fn tell_gone(&mut self, runs: &[Run], times: &[i64]) -> Result<(), Error> {
        let mut gone = Gathered::new(&[], Journaled::Gone);
        let mut bytes = Vec::new();
        let shape = self.files.shape();
        let mut give = |entry: &Journaled| journal::put(entry, shape, &mut bytes);
        for run in runs {
            let series = self.state.series_mut(run.series)?;
            let end = series.edge.end();
            for time in run.rows.iter().map(|row| times[row]) {
                if end.is_none_or(|end| end < time) || series.late.knows(time).is_some() {
                    gone.push_time(run.series, time, &mut give)?;
                }
            }
        }
        gone.give(&mut give)?;
        self.append(&bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if !bytes.is_empty() {
            self.storage.append(self.files.journal(), bytes)?;
            self.state.bytes += bytes.len() as u64;
        }
        Ok(())
    }

    /// Begins a journal anew with what is open, and drops the one before.
    pub(crate) fn turn_journal(storage: &mut dyn Storage, files: &mut Files, state: &mut State) -> Result<(), Error> {
        let before = files.turn_journal(storage)?;
        (state.journal, state.bytes) = (files.journal(), 0);
        let mut bytes = 0;
        let mut give = |entry: &Journaled| {
            let mut entry_bytes = Vec::new();
            journal::put(entry, files.shape(), &mut entry_bytes)?;
            bytes += entry_bytes.len() as u64;
            storage.append(files.journal(), &entry_bytes)?;
            Ok(())
        };
        state.entries(&mut give)?;
        state.bytes = bytes;
        Ok(storage.drop_group(before)?)
    }
}
