//! The open points of a series: those that are in no leaf.

use alloc::vec::Vec;
use core::ops::Range;

use crate::column::Kind;
use crate::points::{Points, Span};

/// Changes to times that leaves cover: points that came late, new values, and points that are no more.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Late {
    /// What stands at these times, whatever a leaf says; where a point is gone, its values mean nothing.
    pub(crate) points: Points,
    /// Whether the point is gone, one each.
    pub(crate) gone: Vec<bool>,
}

impl Late {
    pub(crate) fn new(kinds: &[Kind]) -> Late {
        Late { points: Points::new(kinds), gone: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.gone.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    /// Drops what is known of the times before this one.
    pub(crate) fn forget_before(&mut self, time: i64) {
        let gone = self.points.times.partition_point(|late| *late < time);
        self.points.remove(0..gone);
        self.gone.drain(0..gone);
    }

    /// Bytes of memory that the points take.
    pub(crate) fn bytes(&self) -> usize {
        self.points.bytes() + self.gone.capacity()
    }

    /// A point is there now.
    pub(crate) fn put(&mut self, other: &Points, at: usize) {
        self.note(other, at, false);
    }

    /// Whatever stood at this time is gone.
    pub(crate) fn delete(&mut self, time: i64) {
        let mut nothing = self.points.none();
        nothing.push(time, []);
        self.note(&nothing, 0, true);
    }

    fn note(&mut self, other: &Points, at: usize, gone: bool) {
        match self.points.upsert(other, at) {
            (place, true) => self.gone.insert(place, gone),
            (place, false) => self.gone[place] = gone,
        }
    }

    /// What is known of a time: none if nothing, else whether a point is there.
    pub(crate) fn knows(&self, time: i64) -> Option<bool> {
        self.points.times.binary_search(&time).ok().map(|place| !self.gone[place])
    }

    /// Where those of a range end that are before a time; all of them where there is none.
    pub(crate) fn before(&self, range: Range<usize>, time: Option<i64>) -> usize {
        let Some(time) = time else { return range.end };
        range.start + self.points.times[range].partition_point(|late| *late < time)
    }

    /// The same with the columns at these places, ascending, and no others.
    pub(crate) fn select(&self, wanted: &[usize]) -> Late {
        Late { points: self.points.clone().select(wanted), gone: self.gone.clone() }
    }

    /// Points with these changes made, those of a span.
    pub(crate) fn merged(&self, under: Points, span: &Span) -> Points {
        let range = self.points.within(span);
        if range.is_empty() {
            return under;
        }
        let mut merged = under.none();
        let mut from = 0;
        for place in range {
            let time = self.points.times[place];
            let until = from + under.times[from..].partition_point(|below| *below < time);
            merged.append(&under, from..until);
            from = until + usize::from(under.times.get(until) == Some(&time));
            if !self.gone[place] {
                merged.append_one(&self.points, place);
            }
        }
        merged.append(&under, from..under.len());
        merged
    }
}
