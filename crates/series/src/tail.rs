//! The open points of a series that are newer than its leaves: the older ones packed once memory is short, the newest as they are.
//!
//! ```text
//!   | part | part | part | fresh ...... newest |      a part: up to 256 points, in the bytes that a leaf would have
//! ```
//! 1. Time goes on from part to part and into what is fresh.
//! 2. Where there are parts, something is fresh: whoever asks for the newest point unpacks nothing.
//! 3. Packing changes no answer. Nothing of it is durable: the journal has the points, however they lie in memory.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::size_of;
use core::ops::Range;

use crate::batch::Picked;
use crate::column::Kind;
use crate::points::{Points, Span};

/// Points of a part at most: what a point that comes late into the tail unpacks.
const PART_POINTS: usize = 256;
/// A last part of fewer is packed anew with what comes behind it.
const PART_POINTS_MIN: usize = PART_POINTS / 2;
/// Bytes that the counts of an `Arc` take.
const SHARED_BYTES: usize = 16;

/// Some points, packed.
#[derive(Clone, PartialEq)]
struct Part {
    first: i64,
    last: i64,
    count: u32,
    bytes: Arc<[u8]>,
}

impl core::fmt::Debug for Part {
    /// What the values are stays where it is.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} points", self.count)
    }
}

impl Part {
    fn pack(points: &Points, range: Range<usize>) -> Part {
        let mut bytes = Vec::new();
        points.encode(range.clone(), &mut bytes);
        let times = &points.times[range];
        Part { first: times[0], last: times[times.len() - 1], count: times.len() as u32, bytes: bytes.into() }
    }

    fn unpack(&self, points: &mut Points) {
        let decoded = points.decode(&mut &self.bytes[..], self.count as usize);
        decoded.expect("what was packed here is unpacked here");
    }
}

/// Points by ascending time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tail {
    parts: Vec<Part>,
    fresh: Points,
}

impl Tail {
    pub(crate) fn new(kinds: &[Kind]) -> Tail {
        Tail { parts: Vec::new(), fresh: Points::new(kinds) }
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.count as usize).sum::<usize>() + self.fresh.len()
    }

    /// How many points those that are not packed have room for.
    pub(crate) fn fresh_room(&self) -> usize {
        self.fresh.times.capacity()
    }

    /// The time of the first point.
    pub(crate) fn oldest(&self) -> Option<i64> {
        self.parts.first().map(|part| part.first).or(self.fresh.times.first().copied())
    }

    /// The time of the last point.
    pub(crate) fn newest(&self) -> Option<i64> {
        self.fresh.times.last().copied()
    }

    /// At least so many points are before a time: exactly so many if all of them are fresh.
    pub(crate) fn before(&self, time: i64) -> usize {
        let whole = self.parts.iter().take_while(|part| part.last < time);
        let packed = whole.map(|part| part.count as usize).sum::<usize>();
        packed + self.fresh.times.partition_point(|fresh| *fresh < time)
    }

    /// Appends points that are newer than all of these.
    pub(crate) fn append(&mut self, other: &Points, picked: Picked<'_>) {
        self.fresh.append_picked(other, picked);
    }

    /// Stores a point.
    pub(crate) fn put(&mut self, other: &Points, at: usize) {
        let time = other.times[at];
        if self.newest().is_some_and(|newest| newest < time) {
            return self.fresh.append_one(other, at);
        }
        self.unpack_from(time);
        self.fresh.upsert(other, at);
    }

    /// Deletes a point, if it is there.
    pub(crate) fn delete(&mut self, time: i64) {
        self.unpack_from(time);
        if let Ok(place) = self.fresh.times.binary_search(&time) {
            self.fresh.remove(place..place + 1);
            self.keep_newest_fresh();
        }
    }

    /// Drops the points up to a time.
    pub(crate) fn drop_until(&mut self, end: i64) {
        let whole = self.parts.partition_point(|part| part.last <= end);
        self.parts.drain(..whole);
        if let Some(border) = self.parts.first_mut().filter(|part| part.first <= end) {
            let mut points = self.fresh.none();
            border.unpack(&mut points);
            let settled = points.times.partition_point(|time| *time <= end);
            *border = Part::pack(&points, settled..points.len());
        }
        let settled = self.fresh.times.partition_point(|time| *time <= end);
        self.fresh.remove(0..settled);
    }

    /// Drops the points before a time; of those that are packed whole parts.
    pub(crate) fn forget_before(&mut self, time: i64) {
        let whole = self.parts.partition_point(|part| part.last < time);
        self.parts.drain(..whole);
        if self.parts.is_empty() {
            let gone = self.fresh.times.partition_point(|fresh| *fresh < time);
            self.fresh.remove(0..gone);
        }
    }

    /// All points, as they are or unpacked; what is packed stays so.
    pub(crate) fn all(&self) -> Cow<'_, Points> {
        if self.parts.is_empty() {
            return Cow::Borrowed(&self.fresh);
        }
        let mut points = self.fresh.none();
        self.read(&Span::ALL, &mut points);
        Cow::Owned(points)
    }

    /// Appends those of a span to other points.
    pub(crate) fn read(&self, span: &Span, into: &mut Points) {
        for part in &self.parts {
            if span.first <= part.first && part.last <= span.last {
                part.unpack(into);
            } else if (Span { first: part.first, last: part.last }).meets(span) {
                let mut points = into.none();
                part.unpack(&mut points);
                into.append(&points, points.within(span));
            }
        }
        into.append(&self.fresh, self.fresh.within(span));
    }

    /// Appends those of a span that lie together with the newest of them.
    pub(crate) fn read_last(&self, span: &Span, into: &mut Points) {
        let fresh = self.fresh.within(span);
        if !fresh.is_empty() {
            return into.append(&self.fresh, fresh);
        }
        let met = |part: &&Part| (Span { first: part.first, last: part.last }).meets(span);
        for part in self.parts.iter().rev().filter(met) {
            let mut points = into.none();
            part.unpack(&mut points);
            let within = points.within(span);
            if !within.is_empty() {
                return into.append(&points, within);
            }
        }
    }

    /// Gives all points, some at a time.
    pub(crate) fn each<E>(&self, mut give: impl FnMut(&Points) -> Result<(), E>) -> Result<(), E> {
        for part in &self.parts {
            let mut points = self.fresh.none();
            part.unpack(&mut points);
            give(&points)?;
        }
        give(&self.fresh)
    }

    /// The same points in fewer bytes: all but the newest one packed.
    pub(crate) fn packed(&self) -> Tail {
        let (mut parts, mut fresh) = (self.parts.clone(), self.fresh.none());
        let mut points = &self.fresh;
        if let Some(short) = parts.pop_if(|part| (part.count as usize) < PART_POINTS_MIN) {
            short.unpack(&mut fresh);
            fresh.append(&self.fresh, 0..self.fresh.len());
            points = &fresh;
        }
        let newest = points.len().saturating_sub(1);
        let mut from = 0;
        while from < newest {
            // Parts of about the same size, none of them short if there are points enough.
            let left = newest - from;
            let count = left.div_ceil(left.div_ceil(PART_POINTS));
            parts.push(Part::pack(points, from..from + count));
            from += count;
        }
        let mut last = points.none();
        last.append(points, newest..points.len());
        parts.shrink_to_fit();
        Tail { parts, fresh: last }
    }

    /// Bytes of memory that the points take, beside what a series takes without any.
    pub(crate) fn bytes(&self) -> usize {
        let packed = self.parts.iter().map(|part| part.bytes.len() + SHARED_BYTES).sum::<usize>();
        self.parts.capacity() * size_of::<Part>() + packed + self.fresh.bytes()
    }

    /// Unpacks what is not before a time, and the part that it lies in.
    fn unpack_from(&mut self, time: i64) {
        self.unpack_parts(self.parts.partition_point(|part| part.last < time));
    }

    fn unpack_parts(&mut self, from: usize) {
        if from == self.parts.len() {
            return;
        }
        let mut points = self.fresh.none();
        self.parts.drain(from..).for_each(|part| part.unpack(&mut points));
        points.append(&self.fresh, 0..self.fresh.len());
        self.fresh = points;
    }

    fn keep_newest_fresh(&mut self) {
        if self.fresh.is_empty() {
            self.unpack_parts(self.parts.len().saturating_sub(1));
        }
    }
}
