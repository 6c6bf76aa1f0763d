//! One series: its tree and its open points.
//!
//! ```text
//!   leaves, in the tree                | tail
//!   ------------------------------ end | ----- newest
//!        ^  ^    ^ late                |
//! ```
//! 1. All points of the tail are newer than any in a leaf; the newest point of a series is always there (Algorithm 5 leaves it).
//! 2. What is late stands at or before the end of the leaves, and counts before what they say.

use crate::column::Kind;
use crate::edge::Edge;
use crate::open::Late;
use crate::points::Points;

/// Points that a leaf is first thought to hold.
const LEAF_GUESS: usize = 256;

/// One series of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    pub(crate) edge: Edge,
    pub(crate) tail: Points,
    pub(crate) late: Late,
    /// Points that fill a leaf, as far as is known.
    pub(crate) leaf_guess: usize,
    /// Entries that fill a node.
    pub(crate) node_guess: usize,
}

impl Series {
    pub(crate) fn new(kinds: &[Kind]) -> Series {
        Series {
            edge: Edge::default(),
            tail: Points::new(kinds),
            late: Late::new(kinds),
            leaf_guess: LEAF_GUESS,
            node_guess: 64,
        }
    }

    /// Stores a point.
    pub(crate) fn put(&mut self, other: &Points, at: usize) {
        let time = other.times[at];
        if self.tail.times.last().is_some_and(|newest| *newest < time) {
            self.tail.append_one(other, at);
        } else if self.edge.end().is_some_and(|end| time <= end) {
            self.late.put(other, at);
        } else {
            self.tail.upsert(other, at);
        }
    }

    /// Deletes a point, if it is there.
    pub(crate) fn delete(&mut self, time: i64) {
        if self.edge.end().is_some_and(|end| time <= end) {
            self.late.delete(time);
        } else if let Ok(place) = self.tail.times.binary_search(&time) {
            self.tail.remove(place..place + 1);
        }
    }

    /// Drops the points of the tail that leaves hold by now.
    pub(crate) fn drop_settled(&mut self) {
        let Some(end) = self.edge.end() else { return };
        let settled = self.tail.times.partition_point(|time| *time <= end);
        self.tail.remove(0..settled);
    }
}
