//! One series: its tree and its open points.
//!
//! ```text
//!   leaves, in the tree                | tail
//!   ------------------------------ end | ----- newest
//!        ^  ^    ^ late                |
//! ```
//! 1. All points of the tail are newer than any in a leaf; the newest point of a series is always there (Algorithm 5 leaves it).
//! 2. What is late stands at or before the end of the leaves, and counts before what they say.

use alloc::vec::Vec;

use crate::Error;
use crate::batch::Picked;
use crate::column::Kind;
use crate::edge::{Edge, Splice};
use crate::leaf;
use crate::open::Late;
use crate::points::{Points, Span};
use crate::tail::Tail;

/// Points that a leaf is first thought to hold.
const LEAF_GUESS: usize = 256;

/// One series of a table.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) edge: Edge,
    pub(crate) tail: Tail,
    pub(crate) late: Late,
    /// Points that fill a leaf, as far as is known.
    pub(crate) leaf_guess: usize,
    /// Entries that fill a node.
    pub(crate) node_guess: usize,
    /// Bytes of its open points as the sum of the table has them, and whether they are others by now.
    pub(crate) counted: usize,
    pub(crate) is_stale: bool,
    /// What the journal does not know yet: open points from this time on, ones of these times that came between those it knows,
    /// and late ones of these.
    untold_from: Option<i64>,
    untold_between: Vec<i64>,
    untold_late: Vec<i64>,
    /// No leaf goes for being before an earlier time than this: what retention saw when it looked last.
    pub(crate) trims_from: i64,
}

impl Series {
    pub(crate) fn new(kinds: &[Kind]) -> Series {
        Series {
            edge: Edge::default(),
            tail: Tail::new(kinds),
            late: Late::new(kinds),
            leaf_guess: LEAF_GUESS,
            node_guess: 64,
            counted: 0,
            is_stale: false,
            untold_from: None,
            untold_between: Vec::new(),
            untold_late: Vec::new(),
            trims_from: i64::MIN,
        }
    }

    /// Stores points in the order in which they came, until so many are late; how many were stored.
    pub(crate) fn store(&mut self, other: &Points, picked: Picked<'_>, late_max: usize) -> usize {
        let (mut at, count) = (0, picked.len());
        while at < count && self.late.len() < late_max {
            let row = picked.row(at);
            let newest = self.tail.newest().or(self.edge.end());
            if newest.is_some_and(|newest| other.times[row] <= newest) {
                self.put(other, row);
                at += 1;
                continue;
            }
            // Those that go on where the series ends, all at once.
            let more = picked.ascending(&other.times, at);
            self.untold_from.get_or_insert(other.times[row]);
            self.tail.append(other, picked.part(at..at + more));
            at += more;
        }
        at
    }

    /// Stores a point.
    fn put(&mut self, other: &Points, at: usize) {
        let time = other.times[at];
        if self.tail.newest().is_none_or(|newest| time <= newest) && self.edge.end().is_some_and(|end| time <= end) {
            self.late.put(other, at);
            self.untold_late.push(time);
        } else {
            self.tail.put(other, at);
            if self.untold_from.is_none_or(|from| time < from) {
                self.untold_between.push(time);
            }
        }
    }

    /// Changes the edge as the journal says. Its newest leaf tells how many points fill the next one.
    pub(crate) fn splice(&mut self, splice: &Splice) -> Result<(), Error> {
        if let Some(newest) = splice.entries.last().filter(|_| splice.level == 0) {
            self.leaf_guess =
                usize::try_from(newest.points).map_or(leaf::POINTS_MAX, |points| points.clamp(1, leaf::POINTS_MAX));
        }
        self.edge.apply(splice)
    }

    /// Whether the journal knows all open points.
    pub(crate) fn is_told(&self) -> bool {
        self.untold_from.is_none() && self.untold_between.is_empty() && self.untold_late.is_empty()
    }

    /// Gives the points that the journal does not know, and takes for granted that it will; what is in leaves by now it need not.
    pub(crate) fn tell<E>(&mut self, mut give: impl FnMut(&Points, Picked<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut late = core::mem::take(&mut self.untold_late);
        self.tell_between(&mut give)?;
        if let Some(first) = self.untold_from.take() {
            let mut points = self.late.points.none();
            self.tail.read(&Span { first, last: i64::MAX }, &mut points);
            give(&points, Picked::Range(0, points.len()))?;
        }
        late.sort_unstable();
        late.dedup();
        let places = late.iter().filter_map(|time| self.late.points.times.binary_search(time).ok());
        places.into_iter().try_for_each(|place| give(&self.late.points, Picked::Range(place, place + 1)))
    }

    /// Gives those that came between points that the journal knows: the others are not told again.
    fn tell_between<E>(&mut self, mut give: impl FnMut(&Points, Picked<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut between = core::mem::take(&mut self.untold_between);
        between.sort_unstable();
        let (Some(first), Some(last)) = (between.first().copied(), between.last().copied()) else { return Ok(()) };
        let mut points = self.late.points.none();
        self.tail.read(&Span { first, last }, &mut points);
        let is_untold = |at: &u32| between.binary_search(&points.times[*at as usize]).is_ok();
        let untold: Vec<u32> = (0..points.len() as u32).filter(is_untold).collect();
        give(&points, Picked::At(&untold))
    }

    /// The journal knows all open points: they were read from it.
    pub(crate) fn told(&mut self) {
        self.untold_between.clear();
        self.untold_late.clear();
        self.untold_from = None;
    }

    /// Deletes a point, if it is there.
    pub(crate) fn delete(&mut self, time: i64) {
        if self.edge.end().is_some_and(|end| time <= end) {
            self.late.delete(time);
        } else {
            self.tail.delete(time);
        }
    }

    /// Drops the points of the tail that leaves hold by now.
    pub(crate) fn drop_settled(&mut self) {
        if let Some(end) = self.edge.end() {
            self.tail.drop_until(end);
        }
    }

    /// The same series with its tail kept otherwise.
    pub(crate) fn with_tail(&self, tail: Tail) -> Series {
        let (edge, late) = (self.edge.clone(), self.late.clone());
        let (untold_between, untold_late) = (self.untold_between.clone(), self.untold_late.clone());
        Series { edge, tail, late, untold_between, untold_late, ..*self }
    }

    /// Whether an open point is before a time.
    pub(crate) fn is_open_before(&self, time: i64) -> bool {
        let oldest = [self.tail.oldest(), self.late.points.times.first().copied()];
        oldest.into_iter().flatten().any(|oldest| oldest < time)
    }

    /// Drops the open points that are before a time; packed ones may stay, and nobody reads them.
    pub(crate) fn forget_before(&mut self, time: i64) {
        self.tail.forget_before(time);
        self.late.forget_before(time);
    }

    /// Bytes of memory that the open points take.
    pub(crate) fn open_bytes(&self) -> usize {
        self.tail.bytes() + self.late.bytes()
    }
}
