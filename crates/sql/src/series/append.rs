//! Rows that collectors send: by column, into series tables that are made and widened as they come.
//!
//! ```text
//! points -> the table, made on its first row -> columns, added as they come -> rows in the order of their keys
//!        -> rows of one key become one -> what they leave out is taken from the row that is there -> the engine
//! ```
//! 1. A row that cannot be stored is left out and named with its reason; the others are stored. An error is one of the
//!    database, and then nothing of the whole call is there.
//! 2. A row with the key of one that is there changes the columns that it gives and leaves the others, whichever came first.
//! 3. Memory is bounded by the points given and [`CHUNK_BYTES`].

mod merge;
mod numbers;
mod reason;
mod target;

use counterfoil_relation::Type;
use counterfoil_series::Values;

pub use reason::Reason;

use crate::error::{Error, Result};
use crate::session::Session;
use crate::transaction::Change;
use target::Target;

/// What the rows that are sorted and merged at a time may take as columns.
const CHUNK_BYTES: usize = 8 << 20;
/// What a value takes there at most.
const VALUE_BYTES: usize = 24;
/// Rows sorted and merged at a time, at least.
const CHUNK_ROWS_MIN: usize = 64;

/// The column of the time in tables that are made for points.
pub const TIME_COLUMN: &str = "time";

/// Rows for one series table.
pub struct NewPoints<'a> {
    /// The table, by its exact name.
    pub table: String,
    /// Whether a table that is not there is made, and columns that it lacks are added.
    pub may_create: bool,
    /// Options of a table that is made, beside its engine: names and values.
    pub options: Vec<(String, String)>,
    /// Names of the TEXT columns of the key. One that the table has and that is not among them is ''.
    pub tags: &'a [String],
    /// What names a series: for each tag that it has the place among `tags` and the text, ascending; others are ''.
    pub sets: Vec<Vec<(usize, &'a str)>>,
    /// The set of each row.
    pub set_of: &'a [u32],
    /// The time of each row, in nanoseconds since 1970-01-01 00:00 UTC.
    pub times: &'a [i64],
    /// The other columns.
    pub fields: Vec<NewField<'a>>,
}

/// A column of rows that are to be stored.
pub struct NewField<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type: that of the table's column has to be the same.
    pub kind: Type,
    /// The values, in the order of the rows that have one.
    pub values: Values,
    /// Those rows, ascending; none where every row has a value.
    pub rows: Option<&'a [u32]>,
}

impl NewField<'_> {
    /// The rows from `from` on up to and without `until` that have a value, and the place of each among the values.
    fn places(&self, from: usize, until: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (dense, sparse) = match self.rows {
            None => (from..until.min(self.values.len()), &[][..]),
            Some(rows) => {
                let begin = rows.partition_point(|row| (*row as usize) < from);
                let end = rows.partition_point(|row| (*row as usize) < until);
                (begin..begin, &rows[begin..end])
            }
        };
        let begin = dense.start;
        let sparse = sparse.iter().enumerate().map(move |(at, row)| (*row as usize, begin + at));
        dense.map(|row| (row, row)).chain(sparse)
    }
}

/// What became of rows: they are stored, but for those that were refused.
#[derive(Debug, Default)]
pub struct Appended {
    reasons: Vec<Reason>,
    /// For each row 0, or the place of its reason and 1.
    of: Vec<u32>,
}

impl Appended {
    fn new(rows: usize) -> Self {
        Appended { reasons: Vec::new(), of: vec![0; rows] }
    }

    /// The rows that were refused, in their order.
    pub fn refused(&self) -> impl Iterator<Item = (usize, &Reason)> {
        let reason = |(row, at): (usize, &u32)| Some((row, self.reasons.get((*at as usize).checked_sub(1)?)?));
        self.of.iter().enumerate().filter_map(reason)
    }

    /// Rows that were stored.
    pub fn rows(&self) -> usize {
        self.of.iter().filter(|reason| **reason == 0).count()
    }

    fn is_refused(&self, row: usize) -> bool {
        self.of[row] != 0
    }

    /// Refuses rows that are not refused yet.
    fn refuse(&mut self, rows: impl IntoIterator<Item = usize>, reason: Reason) {
        let number = self.reasons.len() as u32 + 1;
        let mut is_used = false;
        for row in rows {
            if self.of[row] == 0 {
                (self.of[row], is_used) = (number, true);
            }
        }
        if is_used {
            self.reasons.push(reason);
        }
    }

    fn refuse_all(&mut self, reason: Reason) {
        self.refuse(0..self.of.len(), reason);
    }
}

impl Session {
    /// Stores rows for series tables as one statement: what became of each.
    ///
    /// # Errors
    /// What the database refuses as a whole (it is full, or another process writes): then none of the rows is there.
    pub fn append_points(&mut self, all: &[NewPoints<'_>]) -> Result<Vec<Appended>> {
        if self.guard.transaction.has_failed() {
            return Err(Error::Failed);
        }
        self.planner.interrupt.clear();
        let appended =
            self.change(|session, change| all.iter().map(|points| session.append_to(change, points)).collect());
        if appended.is_err() {
            self.guard.transaction.fail();
        }
        appended
    }

    fn append_to(&mut self, change: &mut Change, points: &NewPoints<'_>) -> Result<Appended> {
        let mut appended = Appended::new(points.times.len());
        let Some(target) = Target::prepare(self, change, points, &mut appended)? else { return Ok(appended) };
        let engine = self.engine().clone();
        let slots = target.slots();
        let rows_max = (CHUNK_BYTES / (slots.max(1) * VALUE_BYTES)).max(CHUNK_ROWS_MIN);
        let mut from = 0;
        while from < points.times.len() {
            let until = points.times.len().min(from + rows_max);
            merge::store(&engine, &mut change.lease, &target, points, from..until, &mut appended)?;
            from = until;
        }
        Ok(appended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_says_which_of_some_rows_it_has() {
        let rows = [1, 2, 5, 9];
        let values = || Values::Integers(vec![10, 20, 50, 90]);
        let sparse = NewField { name: "a", kind: Type::BigInt, values: values(), rows: Some(&rows) };
        assert_eq!(sparse.places(2, 9).collect::<Vec<_>>(), [(2, 1), (5, 2)]);
        assert_eq!(sparse.places(6, 9).count(), 0);
        let dense = NewField { name: "a", kind: Type::BigInt, values: values(), rows: None };
        assert_eq!(dense.places(1, 3).collect::<Vec<_>>(), [(1, 1), (2, 2)]);
    }

    #[test]
    fn the_first_reason_of_a_row_counts() {
        let mut appended = Appended::new(3);
        appended.refuse([1], Reason::NoTable("t".into()));
        appended.refuse([1], Reason::NewTag("a".into()));
        appended.refuse([1, 2], Reason::NewTag("b".into()));
        let refused: Vec<_> = appended.refused().map(|(row, reason)| (row, reason.clone())).collect();
        assert_eq!(refused, [(1, Reason::NoTable("t".into())), (2, Reason::NewTag("b".into()))]);
        assert_eq!((appended.rows(), appended.reasons.len()), (1, 2));
    }
}
