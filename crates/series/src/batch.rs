//! Points on their way in: rows of many series, in the order in which they came.

use alloc::borrow::Cow;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::column::{Kind, Value};
use crate::points::Points;

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
    pub(crate) fn by_series(&self, range: Range<usize>) -> Vec<Run> {
        let series = &self.series[range.clone()];
        if series.is_sorted() {
            let runs = series.chunk_by(|one, next| one == next).scan(range.start, |at, run| {
                let from = *at;
                *at += run.len();
                Some(Run { series: run[0], rows: Rows::Range(from, *at) })
            });
            return runs.collect();
        }
        let most = series.iter().max().map_or(0, |most| *most as usize);
        let (from, order) = (range.start as u32, 0..series.len() as u32);
        let order = if most < 4 * series.len() { counted(series, most) } else { sorted(series, order.collect()) };
        let run = |rows: &[u32]| Run {
            series: series[rows[0] as usize],
            rows: Rows::At(rows.iter().map(|row| from + row).collect()),
        };
        order.chunk_by(|one, next| series[*one as usize] == series[*next as usize]).map(run).collect()
    }
}

/// The places of numbers in their order, equal ones as they come: by counting, since the numbers of series are small and dense.
fn counted(numbers: &[u32], most: usize) -> Vec<u32> {
    let mut places = vec![0_u32; most + 2];
    numbers.iter().for_each(|number| places[*number as usize + 1] += 1);
    (1..places.len()).for_each(|at| places[at] += places[at - 1]);
    let mut order = vec![0; numbers.len()];
    for (row, number) in (0..).zip(numbers) {
        let place = &mut places[*number as usize];
        order[*place as usize] = row;
        *place += 1;
    }
    order
}

/// The same for few numbers of many.
fn sorted(numbers: &[u32], mut order: Vec<u32>) -> Vec<u32> {
    order.sort_by_key(|row| numbers[*row as usize]);
    order
}

/// The rows of one series in a batch.
pub(crate) struct Run {
    pub(crate) series: u32,
    pub(crate) rows: Rows,
}

/// Which rows.
pub(crate) enum Rows {
    /// From one on, up to and without the other.
    Range(usize, usize),
    /// These.
    At(Vec<u32>),
}

impl Rows {
    pub(crate) fn all(&self) -> Picked<'_> {
        match self {
            Rows::Range(from, until) => Picked::Range(*from, *until),
            Rows::At(rows) => Picked::At(rows),
        }
    }
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
