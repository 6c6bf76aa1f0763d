//! What is known of a table in memory: the sum of its journal.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::{ContainerId, View};

use crate::Error;
use crate::batch::Picked;
use crate::budget::Budget;
use crate::column::Kind;
use crate::digest::{Shape, Summarized};
use crate::files::Files;
use crate::journal::{self, Entry, Runs};
use crate::names::Names;
use crate::points::Points;
use crate::series::Series;
use crate::shelf::Shelf;

/// Bytes of a journal that are read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Entries of edges from which on a journal entry is full.
const EDGE_ENTRIES: usize = 1024;

/// A table as of one view. Cheap to clone: series are shared until they change.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) kinds: Arc<[Kind]>,
    pub(crate) summarized: Arc<Summarized>,
    pub(crate) names: Arc<Names>,
    pub(crate) series: Shelf,
    /// What is before this time is gone.
    pub(crate) oldest: i64,
    /// The journal that was read, how far, and how long it was when it was begun.
    pub(crate) journal: ContainerId,
    pub(crate) bytes: u64,
    pub(crate) begun: u64,
    pub(crate) budget: Budget,
}

impl State {
    /// Of an empty journal.
    pub(crate) fn new(files: &Files) -> State {
        State {
            kinds: files.kinds.clone().into(),
            summarized: Arc::new(files.summarized().clone()),
            names: Arc::default(),
            series: Shelf::default(),
            oldest: i64::MIN,
            journal: files.journal(),
            bytes: 0,
            begun: files.journal_begun,
            budget: Budget::default(),
        }
    }

    /// Reads on, up to what a view sees, packing what is open beyond so many bytes.
    pub(crate) fn read_on(&mut self, view: &dyn View, files: &Files, open_bytes: usize) -> Result<(), Error> {
        let names = view.length(files.names())?;
        if names != self.names.bytes() {
            Arc::make_mut(&mut self.names).read_on(view, files.names(), names)?;
        }
        let (length, wrong) = (view.length(self.journal)?, Error::Corrupt { what: "journal" });
        let mut bytes = Vec::new();
        while self.bytes < length {
            let there = bytes.len() as u64;
            let more = (length - self.bytes - there).min(PIECE_BYTES as u64) as usize;
            if more == 0 || bytes.len() > journal::BYTES_MAX {
                return Err(wrong);
            }
            let begun = bytes.len();
            bytes.resize(begun + more, 0);
            view.read(self.journal, self.bytes + there, &mut bytes[begun..])?;
            let taken = self.apply_whole(&bytes, open_bytes)?;
            bytes.drain(..taken);
            self.bytes += taken as u64;
        }
        Ok(())
    }

    /// Applies the entries that are whole; how many bytes they are.
    fn apply_whole(&mut self, bytes: &[u8], open_bytes: usize) -> Result<usize, Error> {
        let mut rest = bytes;
        while let Some(head) = rest.first_chunk::<{ journal::HEAD_BYTES }>() {
            let body = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
            if rest.len() - journal::HEAD_BYTES < body {
                break;
            }
            let shape = Shape { kinds: &self.kinds, summarized: &self.summarized };
            let entry = journal::take(&mut rest, shape)?;
            self.apply(&entry)?;
            self.recount();
            self.pack_down(open_bytes, 2);
        }
        Ok(bytes.len() - rest.len())
    }

    /// Lets something happen to the table.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Result<(), Error> {
        match entry {
            Entry::Splices(splices) => {
                for splice in splices {
                    self.series_mut(splice.series)?.splice(splice)?;
                }
                for splice in splices {
                    self.series_mut(splice.series)?.drop_settled();
                }
                Ok(())
            }
            Entry::Points(runs) => self.each(runs, |series, runs, range| {
                series.store(&runs.points, Picked::Range(range.start, range.end), usize::MAX);
                series.told();
            }),
            Entry::Gone(runs) => {
                self.each(runs, |series, runs, range| range.for_each(|at| series.delete(runs.points.times[at])))
            }
            Entry::Settled(all) => {
                for number in all {
                    let kinds = self.kinds.clone();
                    self.series_mut(*number)?.late = crate::open::Late::new(&kinds);
                }
                Ok(())
            }
            Entry::Oldest(time) => self.forget_before(*time),
            Entry::Begins(all) => {
                for (number, time) in all {
                    self.series_mut(*number)?.late.forget_before(*time);
                }
                Ok(())
            }
        }
    }

    fn each(&mut self, runs: &Runs, mut change: impl FnMut(&mut Series, &Runs, Range<usize>)) -> Result<(), Error> {
        for (number, range) in runs.each() {
            change(self.series_mut(number)?, runs, range);
        }
        Ok(())
    }

    /// Lets everything go that is before a time: what is open at once, pages as they are given back.
    pub(crate) fn forget_before(&mut self, time: i64) -> Result<(), Error> {
        self.oldest = self.oldest.max(time);
        for number in 0..self.series.len() {
            if self.series[number].is_open_before(time) {
                self.series_mut(number as u32)?.forget_before(time);
            }
        }
        Ok(())
    }

    /// A series, to be changed.
    pub(crate) fn series_mut(&mut self, number: u32) -> Result<&mut Series, Error> {
        let at = number as usize;
        if at >= self.names.len() {
            return Err(Error::Corrupt { what: "number of a series" });
        }
        if at >= self.series.len() {
            self.series.extend_to(at + 1, &Arc::new(Series::new(&self.kinds)));
        }
        let series = Arc::make_mut(self.series.place(at));
        if !series.is_stale {
            series.is_stale = true;
            self.budget.stale.push(number);
        }
        Ok(series)
    }

    /// Points there are; exact unless some are late, or before the oldest that there may be.
    pub(crate) fn points(&self) -> (u64, bool) {
        let points = self.series.iter().map(|series| series.edge.points() + series.tail.len() as u64).sum();
        let is_exact = |series: &Arc<Series>| {
            let first = series.edge.entries().next().map(|(_, _, entry)| entry.first).or(series.tail.oldest());
            series.late.is_empty() && first.is_none_or(|first| self.oldest <= first)
        };
        (points, self.series.iter().all(is_exact))
    }

    /// Everything that is open, as entries for a new journal.
    pub(crate) fn entries(&self, give: Give<'_>) -> Result<(), Error> {
        let mut points = Gathered::new(&self.kinds, Entry::Points);
        let mut gone = Gathered::new(&[], Entry::Gone);
        if self.oldest > i64::MIN {
            give(&Entry::Oldest(self.oldest))?;
        }
        self.edges(give)?;
        for (number, series) in (0..).zip(&self.series) {
            for (place, is_gone) in series.late.gone.iter().enumerate() {
                match is_gone {
                    true => gone.push_time(number, series.late.points.times[place], give)?,
                    false => points.append(number, &series.late.points, Picked::Range(place, place + 1), give)?,
                }
            }
            series.tail.each(|open| points.append(number, open, Picked::Range(0, open.len()), give))?;
        }
        gone.give(give)?;
        points.give(give)
    }

    /// The edges of all series, so many entries of them together.
    fn edges(&self, give: Give<'_>) -> Result<(), Error> {
        let (mut splices, mut entries) = (Vec::new(), 0);
        for (number, series) in (0..).zip(&self.series) {
            let more = series.edge.splices(number);
            entries += more.iter().map(|splice| splice.entries.len()).sum::<usize>();
            splices.extend(more);
            if entries >= EDGE_ENTRIES {
                give(&Entry::Splices(core::mem::take(&mut splices)))?;
                entries = 0;
            }
        }
        if splices.is_empty() { Ok(()) } else { give(&Entry::Splices(splices)) }
    }
}

/// Takes entries.
pub(crate) type Give<'a> = &'a mut dyn FnMut(&Entry) -> Result<(), Error>;

/// Points on their way into the journal, entry by entry.
pub(crate) struct Gathered {
    runs: Runs,
    text_bytes: usize,
    kinds: Arc<[Kind]>,
    entry: fn(Runs) -> Entry,
}

impl Gathered {
    pub(crate) fn new(kinds: &[Kind], entry: fn(Runs) -> Entry) -> Gathered {
        Gathered { runs: Runs::new(kinds), text_bytes: 0, kinds: kinds.into(), entry }
    }

    pub(crate) fn append(
        &mut self,
        series: u32,
        points: &Points,
        picked: Picked<'_>,
        give: Give<'_>,
    ) -> Result<(), Error> {
        let mut from = 0;
        while from < picked.len() {
            let until = picked.len().min(from + (journal::POINTS_MAX - self.runs.points.len()));
            // Points with texts are looked at one by one: so many of the longest would fill memory.
            let (until, text_bytes) = match points.text_bytes(picked.row(from)) {
                None => (until, 0),
                Some(bytes) => (from + 1, bytes),
            };
            self.runs.append(series, points, picked.part(from..until));
            self.text_bytes += text_bytes;
            from = until;
            if self.runs.points.len() == journal::POINTS_MAX || self.text_bytes >= journal::TEXT_BYTES {
                self.give(give)?;
            }
        }
        Ok(())
    }

    pub(crate) fn push_time(&mut self, series: u32, time: i64, give: Give<'_>) -> Result<(), Error> {
        self.runs.push_time(series, time);
        if self.runs.points.len() == journal::POINTS_MAX { self.give(give) } else { Ok(()) }
    }

    /// Gives what was gathered.
    pub(crate) fn give(&mut self, give: Give<'_>) -> Result<(), Error> {
        if self.runs.runs.is_empty() {
            return Ok(());
        }
        self.text_bytes = 0;
        let runs = core::mem::replace(&mut self.runs, Runs::new(&self.kinds));
        give(&(self.entry)(runs))
    }
}
