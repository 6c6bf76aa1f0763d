//! Reading a series from a time backwards: whoever wants the newest points before it reads a page of each level, and not all
//! that came before.
//!
//! ```text
//!   | leaf | leaf | leaf | tail .... |     span.last
//!   4      3      2      1         <-'
//! ```
//! What is late between two leaves is given with the older one, as a scan gives it; what is late before the oldest comes last.

use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use crate::Error;
use crate::edge::Entry;
use crate::files::Files;
use crate::node;
use crate::open::Late;
use crate::points::{Points, Span};
use crate::scan::{Block, Read};
use crate::state::State;

/// The points of a series, the newest block first; within a block they are by ascending time.
pub struct Backward<V> {
    view: V,
    files: Files,
    state: Arc<State>,
    series: u32,
    /// What is still to be given.
    span: Span,
    /// The columns that are read, ascending; none is all.
    wanted: Option<Vec<usize>>,
    /// What is late, where only some columns of it are wanted.
    late: Option<Late>,
    /// Whether points that are in no leaf come first.
    in_tail: bool,
    /// Entries still to be visited, the next one last, with their level.
    ahead: Vec<(usize, Entry)>,
}

impl<V: View> Backward<V> {
    pub(crate) fn new(view: V, files: Files, state: Arc<State>, number: u32, span: Span) -> Self {
        // What retention took is gone, whether its pages are yet or not.
        let mut span = span.within(&Span { first: state.oldest, last: i64::MAX });
        let mut ahead = Vec::new();
        match state.series.get(number as usize) {
            Some(series) => ahead.extend(series.edge.entries().map(|(level, _, entry)| (level, entry))),
            None => span = Span { first: 0, last: -1 },
        }
        ahead.retain(|(_, entry)| entry.span().meets(&span));
        Backward { view, files, state, series: number, span, wanted: None, late: None, in_tail: true, ahead }
    }

    /// Reads only the columns at these places: blocks have no others, and these in the order of the table.
    #[must_use]
    pub fn columns(mut self, places: &[usize]) -> Self {
        let kinds = self.state.kinds.len();
        let mut wanted: Vec<usize> = places.iter().copied().filter(|place| *place < kinds).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.len() < kinds {
            self.late = self.state.series.get(self.series as usize).map(|series| series.late.select(&wanted));
            self.wanted = Some(wanted);
        }
        self
    }

    /// The points before those given; none when all were.
    ///
    /// # Errors
    /// [`Error::Log`], [`Error::Corrupt`].
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Block>, Error> {
        while self.span.first <= self.span.last {
            let points = self.step()?;
            if !points.is_empty() {
                return Ok(Some(Block { series: self.series, points }));
            }
        }
        Ok(None)
    }

    fn step(&mut self) -> Result<Points, Error> {
        let state = self.state.clone();
        let series = &state.series[self.series as usize];
        let read = Read { state: &state, wanted: self.wanted.as_deref() };
        if self.in_tail {
            let points = read.last_of_tail(&series.tail, &self.span);
            match points.times.first().copied() {
                Some(first) => self.go_before(first),
                None => self.in_tail = false,
            }
            return Ok(points);
        }
        let mut leaf = read.none();
        let first = match self.ahead.pop() {
            None => self.span.first,
            Some((0, entry)) => {
                read.leaf(&self.view, &self.files, (self.series, &entry), &mut leaf)?;
                entry.first.max(self.span.first)
            }
            Some((level, entry)) => {
                let under = node::read(&self.view, &self.files, (self.series, level), &entry)?;
                let within = under.into_iter().filter(|entry| entry.span().meets(&self.span));
                self.ahead.extend(within.map(|entry| (level - 1, entry)));
                return Ok(read.none());
            }
        };
        let part = Span { first, last: self.span.last };
        let within = leaf.within(&part);
        let points = self.late.as_ref().unwrap_or(&series.late).merged(leaf.slice(within), &part);
        self.go_before(first);
        Ok(points)
    }

    fn go_before(&mut self, time: i64) {
        self.span = time.checked_sub(1).map_or(Span { first: 0, last: -1 }, |last| Span { last, ..self.span });
    }
}
