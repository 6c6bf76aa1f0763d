//! Strings of one cloud, put together from the parts of its answer.

use std::sync::atomic::AtomicBool;

use crate::asked::{self, Progress};
use crate::fragments::{Answer, Data, Name, Question, Strings};
use crate::provider::Failure;
use crate::state::Rows;
use crate::table::{Asking, Fault, Table, Unanswered};

/// What came of a question for rows.
pub(crate) enum Came {
    /// All of them; and what is to be said of whoever gave them.
    Whole(Gathered, Option<Fault>),
    /// Nothing, for others were faster.
    Late,
    /// Not what was asked for.
    Not(Fault),
}

/// Rows that are wanted: ascending, and as a set.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub rows: &'a [u64],
    pub set: &'a Rows,
}

impl Wanted<'_> {
    /// Where a row is among them; none: it is not wanted.
    pub fn rank(&self, row: u64) -> Option<usize> {
        let (first, last) = (self.rows.first()?, self.rows.len() - 1);
        // Where none is missing in between it is as far from the first one as its number is, and never farther.
        let most = usize::try_from(row.checked_sub(*first)?).map_or(last, |most| most.min(last));
        if self.rows[most] == row { Some(most) } else { self.rows[..most].binary_search(&row).ok() }
    }
}

impl Table {
    /// What one cloud is asked for columns of strings of rows.
    pub(crate) fn question(
        &self,
        asking: Asking<'_>,
        cloud: usize,
        columns: Vec<Name>,
        wanted: Wanted<'_>,
    ) -> (Name, Question) {
        // A few more than are meant are sooner passed over than all others are named.
        let is_all = *wanted.set == asking.state.live && asking.state.others <= wanted.set.len() / 4;
        let rows = wanted.rows.iter().copied();
        let places = (!is_all).then(|| self.coder().sorted_places(&asking.state.epochs, cloud, rows));
        (self.coder().table_name(cloud), Question { columns, places, ..Question::default() })
    }

    /// What one cloud has of rows in columns of strings.
    pub(crate) fn gather(
        &self,
        asking: Asking<'_>,
        cloud: usize,
        names: Vec<Name>,
        wanted: Wanted<'_>,
        (is_enough, progress): (&AtomicBool, &Progress),
    ) -> Result<Came, Unanswered> {
        progress.expects(wanted.rows.len());
        let wait = self.wait(asking.watch, is_enough, progress);
        let asked = self.question(asking, cloud, names.clone(), wanted);
        let mut gathered = Gathered::new(names.len());
        let mut take = |answer: Answer| gathered.add(self, (asking, cloud), &names, &answer, wanted);
        match asked::ask_for_rows(&self.clouds()[cloud], asked, wait, &mut take) {
            Ok((true, damage)) => {
                let fault = damage.map(Fault::Failed);
                match gathered.order(wanted.rows) {
                    true => Ok(Came::Whole(gathered, fault)),
                    false => Ok(Came::Not(fault.unwrap_or(Fault::Lacks))),
                }
            }
            Ok((false, _)) => Ok(Came::Late),
            Err(Failure::CalledOff) => Err(Unanswered::CalledOff),
            Err(failure) => Ok(Came::Not(Fault::Failed(failure))),
        }
    }
}

pub(crate) fn malformed(what: &str) -> Failure {
    Failure::Malformed(what.into())
}

/// The strings of a part of an answer: a column for each name, each with as many as there are places.
pub(crate) fn strings<'a>(names: &[Name], answer: &'a Answer) -> Result<Vec<&'a Strings>, Failure> {
    if !answer.rows.is_even() {
        return Err(malformed("columns of different lengths"));
    }
    let strings = names.iter().map(|name| match answer.rows.column(name) {
        Some(Data::Strings(strings)) => Ok(strings),
        Some(Data::Shares(_)) => Err(malformed("numbers for cells")),
        None => Err(malformed("a column is missing")),
    });
    strings.collect()
}

/// Parts of an answer put together: of wanted rows alone, and each once, so that a cloud cannot have more kept than was asked for.
pub(crate) struct Gathered {
    /// The rows, each with its place here.
    rows: Vec<(u64, usize)>,
    cells: Vec<Strings>,
}

impl Gathered {
    fn new(columns: usize) -> Self {
        Self { rows: Vec::new(), cells: vec![Strings::default(); columns] }
    }

    fn add(
        &mut self,
        table: &Table,
        (asking, cloud): (Asking<'_>, usize),
        names: &[Name],
        answer: &Answer,
        wanted: Wanted<'_>,
    ) -> Result<(), Failure> {
        let strings = strings(names, answer)?;
        // Somebody may have called it off while nothing came that is wanted.
        asking.watch.part(0)?;
        for (at, row) in table.coder().rows(&asking.state.epochs, cloud, answer.rows.places.clone()).enumerate() {
            // What is not wanted is passed over: rows that are on their way, that are gone, or that are of before.
            let Some(row) = row.filter(|row| wanted.set.contains(*row)) else { continue };
            if self.rows.len() == wanted.rows.len() {
                return Err(malformed("a row twice"));
            }
            asking.watch.part(size_of::<(u64, usize)>() + strings.iter().map(|of| of.get(at).len()).sum::<usize>())?;
            self.rows.push((row, self.rows.len()));
            self.cells.iter_mut().zip(&strings).for_each(|(cells, of)| cells.push(of.get(at)));
        }
        Ok(())
    }

    /// Puts the rows in order; whether they are those that were wanted, which are ascending.
    fn order(&mut self, wanted: &[u64]) -> bool {
        self.rows.sort_unstable();
        self.rows.len() == wanted.len() && self.rows.iter().zip(wanted).all(|((own, _), row)| own == row)
    }

    /// The string of a column for the nth row.
    pub fn string(&self, column: usize, nth: usize) -> &[u8] {
        self.cells[column].get(self.rows[nth].1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Wanted;
    use crate::state::Rows;

    proptest! {
        #[test]
        fn a_rank_is_where_a_row_is(rows in prop::collection::btree_set(0_u64..200, 0..90), far in any::<u64>()) {
            let set: Rows = rows.iter().copied().collect();
            let rows: Vec<u64> = rows.into_iter().collect();
            let wanted = Wanted { rows: &rows, set: &set };
            for row in (0..200).chain([far]) {
                prop_assert_eq!(wanted.rank(row), rows.iter().position(|own| *own == row));
            }
        }
    }
}
