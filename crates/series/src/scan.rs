//! Reading a table: block by block, the points of each series by ascending time.

use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use crate::Error;
use crate::edge::Entry;
use crate::files::Files;
use crate::leaf;
use crate::merge::read_columns;
use crate::node::Walk;
use crate::open::Late;
use crate::points::{Points, Span};
use crate::state::State;
use crate::tail::Tail;

/// Points that a block has at most where it has those of several leaves: whoever takes blocks has work with each of them.
const BLOCK_POINTS: usize = 8192;

/// Points of one series.
#[derive(Clone, Debug)]
pub struct Block {
    /// The series.
    pub series: u32,
    /// Its points, by ascending time, later than those of the blocks before it.
    pub points: Points,
}

/// A scan under way.
pub struct Scan<V> {
    view: V,
    files: Arc<Files>,
    state: Arc<State>,
    span: Span,
    /// The columns that are read, ascending; none is all.
    wanted: Option<Arc<[usize]>>,
    /// Series still to be read, the next one last.
    ahead: Vec<u32>,
    current: Option<Current>,
    /// Points up to which the next block goes on with another leaf. The first one does not: who wants few points reads no more.
    block_points: usize,
}

/// The series being read.
struct Current {
    series: u32,
    walk: Walk,
    /// What is late, where only some columns of it are wanted.
    late: Option<Late>,
    /// Everything before this time was given.
    from: i64,
    done: bool,
}

impl<V: View> Scan<V> {
    pub(crate) fn new(view: V, files: Arc<Files>, state: Arc<State>, series: Option<Vec<u32>>, span: Span) -> Self {
        let mut ahead = series.unwrap_or_else(|| (0..state.series.len() as u32).collect());
        ahead.reverse();
        // What retention took is gone, whether its pages are yet or not.
        let span = span.within(&Span { first: state.oldest, last: i64::MAX });
        Scan { view, files, state, span, wanted: None, ahead, current: None, block_points: 0 }
    }

    /// Reads only the columns at these places: blocks have no others, and these in the order of the table.
    #[must_use]
    pub fn columns(self, places: &[usize]) -> Self {
        let mut wanted: Vec<usize> = places.iter().copied().filter(|place| *place < self.state.kinds.len()).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let wanted = (wanted.len() < self.state.kinds.len()).then(|| wanted.into());
        Scan { wanted, ..self }
    }

    /// The key of a series.
    pub fn key(&self, series: u32) -> Option<&Arc<[u8]>> {
        self.state.names.key(series)
    }

    /// About how many series are still to be read.
    pub fn series_left(&self) -> usize {
        self.ahead.len() + usize::from(self.current.is_some())
    }

    /// Cuts the scan into parts that can be read at the same time.
    #[must_use]
    pub fn split(self, parts: usize) -> Vec<Self>
    where
        V: Clone,
    {
        let per_part = self.ahead.len().div_ceil(parts.max(1)).max(1);
        let part = |ahead: &[u32]| Scan {
            view: self.view.clone(),
            files: self.files.clone(),
            state: self.state.clone(),
            span: self.span,
            wanted: self.wanted.clone(),
            ahead: ahead.to_vec(),
            current: None,
            block_points: 0,
        };
        let mut parts: Vec<_> = self.ahead.rchunks(per_part).map(part).collect();
        if parts.is_empty() {
            parts.push(part(&[]));
        }
        parts
    }

    /// The next points; none when all were given.
    ///
    /// # Errors
    /// [`Error::Log`], [`Error::Corrupt`].
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Block>, Error> {
        if self.span.first > self.span.last {
            return Ok(None);
        }
        loop {
            if self.current.is_none() {
                let Some(number) = self.ahead.pop() else { return Ok(None) };
                let Some(series) = self.state.series.get(number as usize) else { continue };
                let walk = Walk::new(number, &series.edge, self.span);
                let wanted = self.wanted.as_ref().filter(|_| !series.late.is_empty());
                let late = wanted.map(|wanted| series.late.select(wanted));
                self.current = Some(Current { series: number, walk, late, from: self.span.first, done: false });
            }
            let Some(current) = &mut self.current else { continue };
            let read = Read { state: &self.state, wanted: self.wanted.as_deref() };
            let points = current.next(&self.view, &self.files, &read, (self.span, self.block_points))?;
            let series = current.series;
            if current.done {
                self.current = None;
            }
            if !points.is_empty() {
                self.block_points = BLOCK_POINTS;
                return Ok(Some(Block { series, points }));
            }
        }
    }
}

impl Current {
    /// What comes next: leaves with what is late under them, and after the last one the tail.
    fn next(
        &mut self,
        view: &dyn View,
        files: &Files,
        read: &Read<'_>,
        (span, points_max): (Span, usize),
    ) -> Result<Points, Error> {
        let series = &read.state.series[self.series as usize];
        let (mut points, mut part) = (read.none(), Span { first: self.from, last: span.last });
        match self.walk.next(view, files)? {
            Some(entry) => {
                if series.late.is_empty() {
                    let count = (entry.points as usize).min(leaf::POINTS_MAX);
                    points.reserve(count + self.walk.points_whole(points_max.saturating_sub(count)));
                }
                read.leaf(view, files, (self.series, &entry), &mut points)?;
                part.last = self.passed(span);
            }
            None => self.done = true,
        }
        let within = points.within(&part);
        points = points.slice(within);
        if series.late.is_empty() {
            while let Some(entry) = self.walk.next_whole(points_max.saturating_sub(points.len())) {
                read.leaf(view, files, (self.series, &entry), &mut points)?;
                part.last = self.passed(span);
            }
        } else {
            points = self.late.as_ref().unwrap_or(&series.late).merged(points, &part);
        }
        if self.done {
            read.tail(&series.tail, &part, &mut points);
        } else {
            self.from = part.last + 1;
        }
        Ok(points)
    }

    /// Up to when everything was given with the leaf that was read last: what is between two leaves is given with the older one.
    fn passed(&mut self, span: Span) -> i64 {
        let next = self.walk.goes_on_at();
        self.done = next.is_none();
        next.map_or(span.last, |next| (next - 1).min(span.last))
    }
}

/// Which columns of a table are read.
pub(crate) struct Read<'a> {
    pub(crate) state: &'a State,
    pub(crate) wanted: Option<&'a [usize]>,
}

impl Read<'_> {
    /// No points of these columns.
    pub(crate) fn none(&self) -> Points {
        let all = Points::new(&self.state.kinds);
        match self.wanted {
            Some(wanted) => all.select(wanted),
            None => all,
        }
    }

    /// Appends the points of a leaf.
    pub(crate) fn leaf(
        &self,
        view: &dyn View,
        files: &Files,
        place: (u32, &Entry),
        points: &mut Points,
    ) -> Result<(), Error> {
        read_columns(view, files, place, points, |leaf, points| match self.wanted {
            Some(wanted) => leaf.read_some(points, (&self.state.kinds, wanted)),
            None => leaf.read(points),
        })
    }

    fn tail(&self, tail: &Tail, span: &Span, points: &mut Points) {
        let Some(wanted) = self.wanted else { return tail.read(span, points) };
        let mut all = Points::new(&self.state.kinds);
        tail.read(span, &mut all);
        let some = all.select(wanted);
        points.append(&some, 0..some.len());
    }
    /// The newest points of a span, as many as lie together; none if there are none.
    pub(crate) fn last_of_tail(&self, tail: &Tail, span: &Span) -> Points {
        let mut all = Points::new(&self.state.kinds);
        tail.read_last(span, &mut all);
        match self.wanted {
            Some(wanted) => all.select(wanted),
            None => all,
        }
    }
}
