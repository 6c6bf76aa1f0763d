//! A stream of lines becomes batches of a bounded size.

use std::fmt;
use std::io::{self, Read};

use crate::batch::{Batch, Reading};
use crate::limits::LINE_BYTES_MAX;
use crate::line::Parser;
use crate::lines::{Lines, Piece};
use crate::problem::{Problem, Reject, Rejects};
use crate::schema::Schema;

/// What came of a stream.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// Lines that were neither empty nor comments.
    pub lines: u64,
    /// Those that were in no batch, and why.
    pub rejects: Rejects,
}

/// Why a stream was not read to its end.
#[derive(Debug)]
pub enum Stopped<E> {
    /// The source failed.
    Source(io::Error),
    /// Whoever takes the batches refused one.
    Taker(E),
}

impl<E: fmt::Display> fmt::Display for Stopped<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Source(error) => error.fmt(f),
            Stopped::Taker(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Display + fmt::Debug> std::error::Error for Stopped<E> {}

/// Reads lines to the end of `source` and gives them to `take` in batches of about `batch_bytes_max` bytes of memory. A
/// line that is wrong is counted and left out.
///
/// # Errors
/// What the source or the taker says. Batches taken before that stay taken.
pub fn gather<E>(
    source: impl Read,
    reading: &Reading,
    schema: &dyn Schema,
    batch_bytes_max: usize,
    mut take: impl FnMut(Batch) -> Result<(), E>,
) -> Result<Gathered, Stopped<E>> {
    let mut lines = Lines::new(source);
    let mut parser = Parser::new();
    let mut gathered = Gathered::default();
    let mut batch = Batch::new();
    while let Some(piece) = lines.next().map_err(Stopped::Source)? {
        gathered.lines += 1;
        if let Err(reject) = push(piece, &mut parser, &mut batch, reading, schema) {
            gathered.rejects.push(reject);
        }
        if batch.bytes() >= batch_bytes_max {
            hand_over(std::mem::take(&mut batch), &mut take)?;
        }
    }
    hand_over(batch, &mut take)?;
    Ok(gathered)
}

/// A batch without rows may have grown by names that rejected lines left in it.
fn hand_over<E>(batch: Batch, take: &mut impl FnMut(Batch) -> Result<(), E>) -> Result<(), Stopped<E>> {
    if batch.rows() == 0 { Ok(()) } else { take(batch).map_err(Stopped::Taker) }
}

fn push(
    piece: Piece<'_>,
    parser: &mut Parser,
    batch: &mut Batch,
    reading: &Reading,
    schema: &dyn Schema,
) -> Result<(), Reject> {
    let (number, text) = match piece {
        Piece::Line { number, text } => (number, text),
        Piece::TooLong { number } => {
            let problem = Problem::Limit("bytes of a line", LINE_BYTES_MAX);
            return Err(Reject { line: number, column: 0, problem });
        }
    };
    let line = parser.parse(text).map_err(|fault| Reject {
        line: number,
        column: fault.offset as u64 + 1,
        problem: fault.problem,
    })?;
    batch.push(&line, number, reading, schema).map_err(|problem| Reject { line: number, column: 0, problem })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::NoSchema;

    #[test]
    fn bad_lines_leave_the_others_alone() {
        let text = "m a=1 1\nm a= 2\n# c\nm a=1i 3\nm a=4 4\n";
        let mut rows = 0;
        let gathered = gather(text.as_bytes(), &Reading::default(), &NoSchema, 1 << 20, |batch| {
            rows += batch.rows();
            Ok::<(), ()>(())
        })
        .unwrap();
        assert_eq!((gathered.lines, rows, gathered.rejects.count()), (4, 2, 2));
        assert_eq!(
            gathered.rejects.to_string(),
            "line 2, column 5: a field without a value: write NAME=VALUE, or leave it out; line 4: type conflict: field \
             \"a\" is integer here, its column float: send float"
        );
    }

    #[test]
    fn batches_are_bounded_and_rejects_are_too() {
        let text = "m,h=host1 a=1,b=2,c=3 1\nm a=\n".repeat(10_000);
        let (mut rows, mut batches) = (0, 0);
        let gathered = gather(text.as_bytes(), &Reading::default(), &NoSchema, 100_000, |batch| {
            assert!(batch.bytes() < 101_000);
            rows += batch.rows();
            batches += 1;
            Ok::<(), ()>(())
        })
        .unwrap();
        assert_eq!((rows, gathered.rejects.count()), (10_000, 10_000));
        assert!(batches > 5, "{batches}");
        assert!(gathered.rejects.to_string().ends_with("; and 9990 more"));
    }

    #[test]
    fn a_taker_that_refuses_ends_it() {
        let stopped = gather("m a=1".as_bytes(), &Reading::default(), &NoSchema, 1, |_| Err("full")).unwrap_err();
        assert!(matches!(stopped, Stopped::Taker("full")));
    }
}
