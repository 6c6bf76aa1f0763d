//! Changes to a table: points are stored, leaves are written when they are full, and the journal is told.
//!
//! ```text
//! put -> tail or late -> full leaves (Algorithm 5, the favourable case) -> full nodes -> journal: splices, then what stayed open
//! ```
//! A cut before the commit leaves pages that no journal names: they are nobody's.

use alloc::vec::Vec;

use crate::Error;
use crate::Storage;
use crate::batch::{Batch, Run, Runs};
use crate::edge::{Entry, LEVELS_MAX, Splice};
use crate::files::Files;
use crate::journal::{self, Entry as Journaled};
use crate::leaf;
use crate::node;
use crate::points::Points;
use crate::state::{Gathered, State};

/// Rows of a batch that are sorted by series and stored before the next ones: so many stay in a processor's cache.
const ROWS_AT_ONCE: usize = 1 << 15;

/// A change in the making.
pub(crate) struct Change<'a> {
    pub(crate) storage: &'a mut dyn Storage,
    pub(crate) files: &'a Files,
    pub(crate) state: &'a mut State,
    /// Points newer than the newest of their series less this wait for others that are between them.
    pub(crate) reorder: i64,
    /// Points late in one series from which on they are merged into its leaves.
    pub(crate) late_points: usize,
    /// Bytes that its open points may take.
    pub(crate) open_bytes: usize,
    pub(crate) splices: Vec<Splice>,
    pub(crate) settled: Vec<u32>,
    /// Series with points that the journal does not know yet.
    pub(crate) untold: Vec<u32>,
}

/// Points from which on a leaf is tried: a few more than are thought to fill it, since one that is tried and not filled was encoded
/// for nothing.
fn worth_trying(guess: usize) -> usize {
    guess + guess / 32
}

impl Change<'_> {
    /// Stores points; how many were not, being before what is kept.
    pub(crate) fn insert(&mut self, all: &Batch) -> Result<u64, Error> {
        let bytes_max = leaf::text_bytes_max(self.files.pages.bytes as usize);
        if !all.rows.texts_fit(bytes_max) {
            return Err(Error::TooLong { bytes_max });
        }
        let batch = all.since(self.state.oldest);
        for from in (0..batch.len()).step_by(ROWS_AT_ONCE) {
            for run in batch.by_series(from..batch.len().min(from + ROWS_AT_ONCE)).iter() {
                self.store(run, &batch.rows)?;
                self.settle_tail(run.series)?;
            }
            self.state.recount();
            self.state.pack_down(self.open_bytes, 1);
        }
        self.tell_edges()?;
        self.tell_points()?;
        Ok((all.len() - batch.len()) as u64)
    }

    /// Deletes points: those that are not there are no error.
    pub(crate) fn delete(&mut self, batch: &Batch) -> Result<(), Error> {
        let batch = batch.since(self.state.oldest);
        let runs = batch.by_series(0..batch.len());
        let times = &batch.rows.times;
        for run in runs.iter() {
            self.remove(run, times)?;
        }
        self.tell_edges()?;
        self.tell_gone(&runs, times)
    }

    /// Stores rows in a series; what is late is merged whenever it has become much.
    fn store(&mut self, run: Run<'_>, rows: &Points) -> Result<(), Error> {
        let (all, mut at) = (run.rows, 0);
        if self.state.series_mut(run.series)?.is_told() {
            self.untold.push(run.series);
        }
        while at < all.len() {
            let series = self.state.series_mut(run.series)?;
            at += series.store(rows, all.part(at..all.len()), self.late_points);
            if series.late.len() >= self.late_points {
                self.merge_late(run.series)?;
            }
        }
        Ok(())
    }

    /// Deletes rows in a series, in the same way.
    fn remove(&mut self, run: Run<'_>, times: &[i64]) -> Result<(), Error> {
        let all = run.rows;
        for at in 0..all.len() {
            let series = self.state.series_mut(run.series)?;
            series.delete(times[all.row(at)]);
            if series.late.len() >= self.late_points {
                self.merge_late(run.series)?;
            }
        }
        Ok(())
    }

    /// Writes the leaves that the tail of a series fills.
    fn settle_tail(&mut self, number: u32) -> Result<(), Error> {
        let page_bytes = self.files.pages.bytes as usize;
        let series = self.state.series_mut(number)?;
        let Some(newest) = series.tail.newest() else { return Ok(()) };
        // The newest point stays: whoever asks for it need not look further.
        let settled = newest.saturating_sub(self.reorder);
        if series.tail.before(settled) < worth_trying(series.leaf_guess) {
            return Ok(());
        }
        let tail = series.tail.all();
        let settles = tail.times.partition_point(|time| *time < settled);
        let (mut from, mut born) = (0, Vec::new());
        while settles - from >= worth_trying(series.leaf_guess) {
            let Some(packed) = leaf::pack(number, &tail, from..settles, series.leaf_guess, page_bytes) else {
                return Err(Error::Misuse("a point that does not fit a page"));
            };
            let by_bytes = packed.count * page_bytes / packed.bytes.max(1);
            if packed.count == settles - from && packed.count < leaf::POINTS_MAX {
                // There is room left: so many would have filled it.
                series.leaf_guess = by_bytes.max(packed.count + 1 + packed.count / 64).min(leaf::POINTS_MAX);
                break;
            }
            // A little less than would fill the next one, if its points take as many bytes: so the first attempt fits.
            series.leaf_guess = (by_bytes - by_bytes / 128).clamp(1, leaf::POINTS_MAX);
            let times = &tail.times[from..from + packed.count];
            let (first, last) = (times[0], times[packed.count - 1]);
            let summaries = self.files.summarized().of(&tail, from..from + packed.count);
            let at = self.files.pages.write(self.storage, &packed.payload)?;
            born.push(Entry { first, last, points: packed.count as u64, at, summaries });
            from += packed.count;
        }
        drop(tail);
        self.settle(number, born)
    }

    /// Leaves were written of the oldest points of a tail.
    pub(crate) fn settle(&mut self, number: u32, born: Vec<Entry>) -> Result<(), Error> {
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
        let page_bytes = self.files.pages.bytes as usize;
        loop {
            let series = self.state.series_mut(number)?;
            let entries = series.edge.levels[level].clone();
            if entries.len() < series.node_guess || level + 1 == LEVELS_MAX {
                return Ok(());
            }
            let packed = node::pack(number, level + 1, &entries, self.files);
            if packed.count == entries.len() && packed.count < node::ENTRIES_MAX {
                // There is room left: a little less than would fill it, and a little more than there is.
                let by_bytes = packed.count * page_bytes / packed.bytes;
                series.node_guess = (by_bytes - by_bytes / 32).max(entries.len() + entries.len() / 32 + 1);
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
    fn tell_points(&mut self) -> Result<(), Error> {
        let kinds = self.state.kinds.clone();
        let mut open = Gathered::new(&kinds, Journaled::Points);
        let mut bytes = Vec::new();
        let shape = self.files.shape();
        let mut give = |entry: &Journaled| journal::put(entry, shape, &mut bytes);
        for number in core::mem::take(&mut self.untold) {
            let series = self.state.series_mut(number)?;
            series.tell(|points, picked| open.append(number, points, picked, &mut give))?;
        }
        open.give(&mut give)?;
        self.append(&bytes)
    }

    /// Tells the journal of the points that were deleted, unless leaves were written without them.
    fn tell_gone(&mut self, runs: &Runs, times: &[i64]) -> Result<(), Error> {
        let mut gone = Gathered::new(&[], Journaled::Gone);
        let mut bytes = Vec::new();
        let shape = self.files.shape();
        let mut give = |entry: &Journaled| journal::put(entry, shape, &mut bytes);
        for run in runs.iter() {
            let series = self.state.series_mut(run.series)?;
            let end = series.edge.end();
            let all = run.rows;
            for time in (0..all.len()).map(|at| times[all.row(at)]) {
                if end.is_none_or(|end| end < time) || series.late.knows(time).is_some() {
                    gone.push_time(run.series, time, &mut give)?;
                }
            }
        }
        gone.give(&mut give)?;
        self.append(&bytes)
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
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
        (state.bytes, state.begun, files.journal_begun) = (bytes, bytes, bytes);
        Ok(storage.drop_group(before)?)
    }
}
