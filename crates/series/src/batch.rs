//! Points on their way in: rows of many series, in the order in which they came.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::column::{Kind, Value};
use crate::points::Points;
use crate::row::Row;

/// Rows to be stored, or keys to be deleted (then without columns).
#[derive(Clone, Debug)]
pub struct Batch {
    /// The series of each row.
    pub series: Vec<u32>,
    /// The times and values of each row.
    pub rows: Points,
}

/// Leaves the values for which `is_kept` says so.
pub(crate) fn keep<T>(values: &mut Vec<T>, is_kept: &[bool]) {
    let mut at = is_kept.iter();
    values.retain(|_| at.next().is_some_and(|is_kept| *is_kept));
}

impl Batch {
    /// Without rows.
    pub fn new(kinds: &[Kind]) -> Self {
        Batch { series: Vec::new(), rows: Points::new(kinds) }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If a value is of another kind than its column.
    #[inline]
    pub fn push(&mut self, series: u32, time: i64, values: impl IntoIterator<Item = Option<Value>>) {
        self.series.push(series);
        self.rows.push(time, values);
    }

    /// Appends a row of values whose types are known where this is compiled, as `(1.5, 192_i64)`.
    ///
    /// # Panics
    /// If a value is of another kind than its column, or there are more than columns.
    #[inline(always)]
    pub fn push_row(&mut self, series: u32, time: i64, row: impl Row) {
        self.series.push(series);
        self.rows.times.push(time);
        row.put(&mut self.rows.columns);
    }

    /// Takes all rows out and keeps their room: for the next ones.
    pub fn clear(&mut self) {
        self.series.clear();
        self.rows.remove(0..self.rows.len());
        self.rows.columns.iter_mut().for_each(|column| column.present = None);
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Leaves the rows for which `is_kept` says so.
    pub fn retain(&mut self, is_kept: &[bool]) {
        if is_kept.contains(&false) {
            keep(&mut self.series, is_kept);
            keep(&mut self.rows.times, is_kept);
            self.rows.columns.iter_mut().for_each(|column| column.retain(is_kept));
        }
    }

    /// The rows of times for which `is_first` says so, and the others.
    #[must_use]
    pub fn split(&self, is_first: impl Fn(i64) -> bool) -> (Batch, Batch) {
        let none = || Batch { series: Vec::new(), rows: self.rows.none() };
        let (mut first, mut others) = (none(), none());
        for (at, series) in self.series.iter().enumerate() {
            let batch = if is_first(self.rows.times[at]) { &mut first } else { &mut others };
            batch.series.push(*series);
            batch.rows.append_one(&self.rows, at);
        }
        (first, others)
    }

    /// The rows that are not before a time.
    pub(crate) fn since(&self, oldest: i64) -> Cow<'_, Batch> {
        if oldest == i64::MIN || self.rows.times.iter().all(|time| oldest <= *time) {
            return Cow::Borrowed(self);
        }
        Cow::Owned(self.split(|time| oldest <= time).0)
    }

    /// The rows of each series together, of those from one on up to and without another, in the order in which they came.
    pub(crate) fn by_series(&self, range: Range<usize>) -> Runs {
        let series = &self.series[range.clone()];
        if series.is_sorted() {
            let runs = series.chunk_by(|one, next| one == next).scan(range.start, |at, run| {
                let from = *at;
                *at += run.len();
                Some((run[0], from..*at))
            });
            return Runs { order: None, runs: runs.collect() };
        }
        let most = series.iter().max().map_or(0, |most| *most as usize);
        let from = range.start as u32;
        if most < 4 * series.len() { counted(series, most, from) } else { sorted(series, from) }
    }
}

/// The rows of each series, the first of which is at `from`: by counting, since the numbers of series are small and dense.
fn counted(series: &[u32], most: usize, from: u32) -> Runs {
    let mut places = vec![0_u32; most + 2];
    series.iter().for_each(|number| places[*number as usize + 1] += 1);
    let mut runs = Vec::new();
    for number in 0..=most {
        let (begun, count) = (places[number], places[number + 1]);
        places[number + 1] += begun;
        if count > 0 {
            runs.push((number as u32, begun as usize..(begun + count) as usize));
        }
    }
    let mut order = vec![0; series.len()];
    for (row, number) in (from..).zip(series) {
        let place = &mut places[*number as usize];
        order[*place as usize] = row;
        *place += 1;
    }
    Runs { order: Some(order), runs }
}

/// The same for few series of many.
fn sorted(series: &[u32], from: u32) -> Runs {
    let of = |row: &u32| series[(*row - from) as usize];
    let mut order: Vec<u32> = (from..from + series.len() as u32).collect();
    order.sort_by_key(of);
    let runs = order.chunk_by(|one, next| of(one) == of(next)).scan(0, |at, run| {
        let begun = *at;
        *at += run.len();
        Some((of(&run[0]), begun..*at))
    });
    let runs = runs.collect();
    Runs { order: Some(order), runs }
}

/// The rows of a batch, series by series.
pub(crate) struct Runs {
    /// Their places; none where they lie together as they are.
    order: Option<Vec<u32>>,
    /// Each series, and where its rows are among these.
    runs: Vec<(u32, Range<usize>)>,
}

impl Runs {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Run<'_>> + '_ {
        self.runs.iter().map(|(series, range)| {
            let rows = match &self.order {
                Some(order) => Picked::At(&order[range.clone()]),
                None => Picked::Range(range.start, range.end),
            };
            Run { series: *series, rows }
        })
    }
}

/// The rows of one series in a batch.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) series: u32,
    pub(crate) rows: Picked<'a>,
}

/// Some of the rows of a batch, or of the points of a series.
#[derive(Clone, Copy)]
pub(crate) enum Picked<'a> {
    /// From one on, up to and without the other.
    Range(usize, usize),
    /// These.
    At(&'a [u32]),
}

impl Picked<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Picked::Range(from, until) => until - from,
            Picked::At(rows) => rows.len(),
        }
    }

    /// The place of one of them.
    pub(crate) fn row(&self, at: usize) -> usize {
        match self {
            Picked::Range(from, _) => from + at,
            Picked::At(rows) => rows[at] as usize,
        }
    }

    /// Those from one on, up to and without another.
    pub(crate) fn part(&self, range: Range<usize>) -> Self {
        match self {
            Picked::Range(from, _) => Picked::Range(from + range.start, from + range.end),
            Picked::At(rows) => Picked::At(&rows[range]),
        }
    }

    /// From one of them on, how many follow each other in the order of time.
    pub(crate) fn ascending(&self, times: &[i64], from: usize) -> usize {
        let ascends = |times: &[i64]| times.windows(2).take_while(|pair| pair[0] < pair[1]).count() + 1;
        match self {
            Picked::Range(first, until) => ascends(&times[first + from..*until]),
            Picked::At(rows) => {
                let time = |row: u32| times[row as usize];
                rows[from..].windows(2).take_while(|pair| time(pair[0]) < time(pair[1])).count() + 1
            }
        }
    }
}
