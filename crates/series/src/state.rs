//! What is known of a table in memory: the sum of its journal.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::{ContainerId, View};

use crate::Error;
use crate::column::Kind;
use crate::digest::{Shape, Summarized};
use crate::files::Files;
use crate::journal::{self, Entry, Runs};
use crate::names::Names;
use crate::points::Points;
use crate::series::Series;

/// Bytes of a journal that are read at a time.
const PIECE_BYTES: usize = 1 << 20;
/// A table as of one view. Cheap to clone: series are shared until they change.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) kinds: Arc<[Kind]>,
    pub(crate) summarized: Arc<Summarized>,
    pub(crate) names: Arc<Names>,
    pub(crate) series: Vec<Arc<Series>>,
    /// The journal that was read, and how far.
    pub(crate) journal: ContainerId,
    pub(crate) bytes: u64,
}

impl State {
    /// Of an empty journal.
    pub(crate) fn new(files: &Files) -> State {
        State {
            kinds: files.kinds.clone().into(),
            summarized: Arc::new(files.summarized().clone()),
            names: Arc::default(),
            series: Vec::new(),
            journal: files.journal(),
            bytes: 0,
        }
    }

    /// Reads on, up to what a view sees.
    pub(crate) fn read_on(&mut self, view: &dyn View, files: &Files) -> Result<(), Error> {
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
            let taken = self.apply_whole(&bytes)?;
            bytes.drain(..taken);
            self.bytes += taken as u64;
        }
        Ok(())
    }

    /// Applies the entries that are whole; how many bytes they are.
    fn apply_whole(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut rest = bytes;
        while let Some(head) = rest.first_chunk::<{ journal::HEAD_BYTES }>() {
            let body = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
            if rest.len() - journal::HEAD_BYTES < body {
                break;
            }
            let shape = Shape { kinds: &self.kinds, summarized: &self.summarized };
            let entry = journal::take(&mut rest, shape)?;
            self.apply(&entry)?;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Lets something happen to the table.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Result<(), Error> {
        match entry {
            Entry::Splices(splices) => {
                for splice in splices {
                    self.series_mut(splice.series)?.edge.apply(splice)?;
                }
                for splice in splices {
                    self.series_mut(splice.series)?.drop_settled();
                }
                Ok(())
            }
            Entry::Points(runs) => self.each(runs, |series, runs, at| {
                series.put(&runs.points, at);
            }),
            Entry::Gone(runs) => self.each(runs, |series, runs, at| series.delete(runs.points.times[at])),
            Entry::Settled(all) => {
                for number in all {
                    let kinds = self.kinds.clone();
                    self.series_mut(*number)?.late = crate::open::Late::new(&kinds);
                }
                Ok(())
            }
        }
    }

    fn each(&mut self, runs: &Runs, mut change: impl FnMut(&mut Series, &Runs, usize)) -> Result<(), Error> {
        for (number, range) in runs.each() {
            let series = self.series_mut(number)?;
            range.for_each(|at| change(series, runs, at));
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
            let empty = Arc::new(Series::new(&self.kinds));
            self.series.resize(at + 1, empty);
        }
        Ok(Arc::make_mut(&mut self.series[at]))
    }

    /// Points there are; exact unless some are late.
    pub(crate) fn points(&self) -> (u64, bool) {
        let points = self.series.iter().map(|series| series.edge.points() + series.tail.len() as u64).sum();
        (points, self.series.iter().all(|series| series.late.is_empty()))
    }

    /// Everything that is open, as entries for a new journal.
    pub(crate) fn entries(&self, give: &mut dyn FnMut(&Entry) -> Result<(), Error>) -> Result<(), Error> {
        let mut points = Gathered::new(&self.kinds, Entry::Points);
        let mut gone = Gathered::new(&[], Entry::Gone);
        for (number, series) in (0..).zip(&self.series) {
            let splices = series.edge.splices(number);
            if !splices.is_empty() {
                give(&Entry::Splices(splices))?;
            }
            for (place, is_gone) in series.late.gone.iter().enumerate() {
                match is_gone {
                    true => gone.push_time(number, series.late.points.times[place], give)?,
                    false => points.append(number, &series.late.points, place..place + 1, give)?,
                }
            }
            points.append(number, &series.tail, 0..series.tail.len(), give)?;
        }
        gone.give(give)?;
        points.give(give)
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
        range: Range<usize>,
        give: Give<'_>,
    ) -> Result<(), Error> {
        let mut from = range.start;
        while from < range.end {
            let until = range.end.min(from + (journal::POINTS_MAX - self.runs.points.len()));
            // Points with texts are looked at one by one: so many of the longest would fill memory.
            let (until, text_bytes) = match points.text_bytes(from) {
                None => (until, 0),
                Some(bytes) => (from + 1, bytes),
            };
            self.runs.append(series, points, from..until);
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
