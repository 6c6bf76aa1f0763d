//! Points of one series in memory, by ascending time.

use alloc::vec::Vec;
use core::mem::size_of;
use core::ops::Range;

use crate::batch::Picked;
use crate::codec::{Nonsense, integers};
use crate::column::{Column, Kind, Value};

/// Points of one series, by ascending time; of a batch on its way in, rows in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// In the unit of the table's time column.
    pub times: Vec<i64>,
    /// As long as `times`, each.
    pub columns: Vec<Column>,
}

impl Points {
    /// None yet.
    pub fn new(kinds: &[Kind]) -> Self {
        Points { times: Vec::new(), columns: kinds.iter().map(|kind| Column::new(*kind)).collect() }
    }

    /// Others of the same columns, none yet.
    pub(crate) fn none(&self) -> Points {
        Points { times: Vec::new(), columns: self.columns.iter().map(Column::none).collect() }
    }

    /// Bytes of memory that the points take, beside what no points take.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self.columns.iter().map(Column::bytes).sum::<usize>();
        self.times.capacity() * size_of::<i64>() + columns
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Appends a point.
    ///
    /// # Panics
    /// If a value is of another kind than its column.
    #[inline]
    pub fn push(&mut self, time: i64, values: impl IntoIterator<Item = Option<Value>>) {
        self.times.push(time);
        let mut columns = self.columns.iter_mut();
        // Led by the values: how many an array has and of what kinds is known where this is compiled.
        values.into_iter().for_each(|value| {
            if let Some(column) = columns.next() {
                column.push(value);
            }
        });
        columns.for_each(|column| column.push(None));
    }

    /// Makes room for so many points more.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.times.reserve(count);
        self.columns.iter_mut().for_each(|column| column.values.reserve(count));
    }

    /// Appends points of others with the same columns.
    pub fn append(&mut self, other: &Points, range: Range<usize>) {
        self.times.extend_from_slice(&other.times[range.clone()]);
        self.columns.iter_mut().zip(&other.columns).for_each(|(column, other)| column.append(other, range.clone()));
    }

    /// Appends points of others with the same columns.
    pub(crate) fn append_picked(&mut self, other: &Points, picked: Picked<'_>) {
        match picked {
            Picked::Range(from, until) => self.append(other, from..until),
            Picked::At(rows) => {
                self.times.extend(rows.iter().map(|row| other.times[*row as usize]));
                self.columns.iter_mut().zip(&other.columns).for_each(|(column, other)| column.append_at(other, rows));
            }
        }
    }

    /// Appends one point of others with the same columns.
    pub(crate) fn append_one(&mut self, other: &Points, at: usize) {
        self.times.push(other.times[at]);
        self.columns.iter_mut().zip(&other.columns).for_each(|(column, other)| column.append_one(other, at));
    }

    /// Puts a point of others where it belongs, in the place of one of the same time; where it is, and whether it is new.
    pub(crate) fn upsert(&mut self, other: &Points, at: usize) -> (usize, bool) {
        let time = other.times[at];
        let columns = self.columns.iter_mut().zip(&other.columns);
        match self.times.binary_search(&time) {
            Ok(place) => {
                columns.for_each(|(column, other)| column.set(place, other, at));
                (place, false)
            }
            Err(place) => {
                columns.for_each(|(column, other)| column.insert(place, other, at));
                self.times.insert(place, time);
                (place, true)
            }
        }
    }

    /// Bytes of the texts of a point; none where there is no column of them.
    pub(crate) fn text_bytes(&self, at: usize) -> Option<usize> {
        let texts = self.columns.iter().filter_map(|column| column.values.texts());
        texts.map(|texts| texts[at].len()).reduce(|sum, bytes| sum + bytes)
    }

    /// Whether the texts of each point have so many bytes together at most.
    pub(crate) fn texts_fit(&self, bytes_max: usize) -> bool {
        let has_texts = self.columns.iter().any(|column| column.values.texts().is_some());
        !has_texts || (0..self.len()).all(|at| self.text_bytes(at).is_none_or(|bytes| bytes <= bytes_max))
    }

    /// Takes points away.
    pub(crate) fn remove(&mut self, range: Range<usize>) {
        self.times.drain(range.clone());
        self.columns.iter_mut().for_each(|column| column.remove(range.clone()));
    }

    /// The bytes of some of them, without a head.
    pub(crate) fn encode(&self, range: Range<usize>, out: &mut Vec<u8>) {
        integers::encode(&self.times[range.clone()], out);
        self.columns.iter().for_each(|column| column.encode(range.clone(), out));
    }

    /// Appends so many points, and takes their bytes off the front; columns for which nothing is left are NULL.
    pub(crate) fn decode(&mut self, bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
        integers::decode(bytes, count, &mut self.times)?;
        for column in &mut self.columns {
            if bytes.is_empty() {
                column.append_nothing(count);
            } else {
                column.decode(bytes, count)?;
            }
        }
        Ok(())
    }

    /// The same, where these points have only some of the columns that the bytes have: those at these places, in their order.
    pub(crate) fn decode_some(
        &mut self,
        bytes: &mut &[u8],
        count: usize,
        (kinds, wanted): (&[Kind], &[usize]),
    ) -> Result<(), Nonsense> {
        integers::decode(bytes, count, &mut self.times)?;
        let (mut columns, mut passed) = (self.columns.iter_mut().zip(wanted), 0);
        columns.try_for_each(|(column, place)| {
            while passed < *place && !bytes.is_empty() {
                Column::skip(kinds[passed], bytes, count)?;
                passed += 1;
            }
            passed = *place + 1;
            match bytes.is_empty() {
                true => column.append_nothing(count),
                false => column.decode(bytes, count)?,
            }
            Ok(())
        })
    }

    /// The columns at these places, ascending, and no others.
    pub(crate) fn select(mut self, wanted: &[usize]) -> Points {
        let mut place = 0;
        self.columns.retain(|_| {
            place += 1;
            wanted.binary_search(&(place - 1)).is_ok()
        });
        self
    }

    /// Those of a range.
    pub(crate) fn slice(self, range: Range<usize>) -> Points {
        if range == (0..self.len()) {
            return self;
        }
        let mut slice = self.none();
        slice.append(&self, range);
        slice
    }

    /// The places of points of a span of time.
    pub(crate) fn within(&self, span: &Span) -> Range<usize> {
        let from = self.times.partition_point(|time| *time < span.first);
        from..self.times.partition_point(|time| *time <= span.last).max(from)
    }
}

/// A span of time, both ends within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The earliest time in it.
    pub first: i64,
    /// The latest time in it: before `first` if nothing is.
    pub last: i64,
}

impl Span {
    /// All of time.
    pub const ALL: Span = Span { first: i64::MIN, last: i64::MAX };

    /// Whether a time lies in it.
    pub fn contains(&self, time: i64) -> bool {
        self.first <= time && time <= self.last
    }

    /// What lies in both.
    #[must_use]
    pub fn within(&self, other: &Span) -> Span {
        Span { first: self.first.max(other.first), last: self.last.min(other.last) }
    }

    /// Whether there is a time that lies in both.
    pub fn meets(&self, other: &Span) -> bool {
        self.first.max(other.first) <= self.last.min(other.last)
    }
}
