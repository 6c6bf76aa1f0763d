//! Points on their way in: rows of many series, in the order in which they came.

use alloc::vec;
use alloc::vec::Vec;

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

impl Batch {
    /// Without rows.
    pub fn new(kinds: &[Kind]) -> Self {
        Batch { series: Vec::new(), rows: Points::new(kinds) }
    }

    /// Appends a row.
    ///
    /// # Panics
    /// If a value is of another kind than its column.
    pub fn push(&mut self, series: u32, time: i64, values: impl IntoIterator<Item = Option<Value>>) {
        self.series.push(series);
        self.rows.push(time, values);
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// The rows of each series together, in the order in which they came.
    pub(crate) fn by_series(&self) -> Vec<Run> {
        if self.series.is_sorted() {
            let runs = self.series.chunk_by(|one, next| one == next).scan(0, |at, run| {
                let from = *at;
                *at += run.len();
                Some(Run { series: run[0], rows: Rows::Range(from, *at) })
            });
            return runs.collect();
        }
        self.sorted()
    }

    /// By counting: the numbers of series are small and dense.
    fn sorted(&self) -> Vec<Run> {
        let most = self.series.iter().max().map_or(0, |most| *most as usize);
        let mut places = vec![0_usize; most + 2];
        self.series.iter().for_each(|series| places[*series as usize + 1] += 1);
        (1..places.len()).for_each(|at| places[at] += places[at - 1]);
        let (bounds, mut order) = (places.clone(), vec![0_u32; self.series.len()]);
        for (row, series) in self.series.iter().enumerate() {
            let place = &mut places[*series as usize];
            order[*place] = row as u32;
            *place += 1;
        }
        let run = |series: usize| {
            let rows = &order[bounds[series]..bounds[series + 1]];
            (!rows.is_empty()).then(|| Run { series: series as u32, rows: Rows::At(rows.to_vec()) })
        };
        (0..=most).filter_map(run).collect()
    }
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let (range, at) = match self {
            Rows::Range(from, until) => (*from..*until, &[][..]),
            Rows::At(rows) => (0..0, rows.as_slice()),
        };
        range.chain(at.iter().map(|row| *row as usize))
    }
}
