//! What is measured: a store of tuples, ours or a peer's.

use std::path::Path;

use crate::Failure;
use crate::query::{Answer, Fold};
use crate::workload::{Sort, Tuple};

/// A span of time, both ends within.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub first: i64,
    pub last: i64,
}

/// A store with an analog and a boolean table. Changes are durable once `commit` has returned.
pub trait Store {
    /// Stores tuples, one call of the store's own for each (stores that take columns: all at once). One that is there
    /// with the same series and time is replaced.
    fn insert(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure>;

    /// Gives tuples that are there other values.
    fn update(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.insert(sort, tuples)
    }

    /// Deletes the tuples with these series and times.
    fn delete(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure>;

    /// How many are deleted in a benchmark at most.
    fn deletions_max(&self) -> usize {
        usize::MAX
    }

    /// Makes everything durable.
    fn commit(&mut self) -> Result<(), Failure>;

    /// What comes out of the tuples of a series within a span.
    fn fold(&mut self, sort: Sort, series: u32, span: Span, fold: Fold) -> Result<Answer, Failure>;

    /// The same of all series at once, each with a fold of its own.
    fn fold_all(&mut self, sort: Sort, span: Span, folds: &[Fold]) -> Result<Answer, Failure> {
        let all = (0..).zip(folds).map(|(series, fold)| self.fold(sort, series, span, *fold));
        all.sum::<Result<Answer, Failure>>()
    }

    /// The newest tuple of all series, by their numbers.
    fn newest(&mut self, sort: Sort) -> Result<Vec<Tuple>, Failure>;

    /// Ends all work that was put off, as a store that is closed in good order does, so that its size tells something.
    fn settle(&mut self) -> Result<(), Failure>;
}

impl std::iter::Sum for Answer {
    fn sum<I: Iterator<Item = Answer>>(answers: I) -> Answer {
        answers.fold(Answer::default(), Answer::and)
    }
}

/// Bytes that a folder takes on its medium, holes left out.
pub fn bytes_in(folder: &Path) -> Result<u64, Failure> {
    use std::os::unix::fs::MetadataExt;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_in(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(bytes)
}
