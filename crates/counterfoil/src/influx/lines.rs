//! Lines from a file or a pipe, within the transactions of a connection.

use std::io::Read;
use std::time::{SystemTime, UNIX_EPOCH};

pub use counterfoil_influx::Precision as LinePrecision;
use counterfoil_influx::{Batch, Parser, Piece, Problem, Reading, Reject, Rejects, limits};

use super::databases::Entry;
use super::points::{self, Rows};
use super::schema::Known;
use crate::connection::Connection;
use crate::database::Database;
use crate::error::{Error, Result};

/// Memory of the lines that are stored at a time, about.
const BATCH_BYTES: usize = 2 << 20;

/// Lines on their way into a database, a batch at a time: measurements are tables of the same name.
pub struct Lines<R> {
    lines: counterfoil_influx::Lines<R>,
    parser: Parser,
    reading: Reading,
    imported: LinesImported,
}

/// What came of lines so far.
#[derive(Clone, Debug, Default)]
pub struct LinesImported {
    /// Lines that were neither empty nor comments.
    pub lines: u64,
    /// Rows that were stored: lines less those that were refused.
    pub rows: u64,
    rejects: Rejects,
}

impl LinesImported {
    /// Lines that were refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.rejects.count()
    }

    /// The first of them, and why: `line 2: ...; line 7, column 3: ...; and 12 more`.
    #[must_use]
    pub fn why(&self) -> String {
        self.rejects.to_string()
    }
}

impl<R: Read> Lines<R> {
    /// Lines of `source`, whose times count in `precision`. Fields of the names `quality_fields` hold qualities of OPC UA.
    pub fn new(source: R, precision: LinePrecision, quality_fields: &[String]) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let reading = Reading {
            precision,
            now: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            quality_fields: quality_fields.into(),
        };
        let lines = counterfoil_influx::Lines::new(source);
        Self { lines, parser: Parser::new(), reading, imported: LinesImported::default() }
    }

    /// What came of the lines so far.
    #[must_use]
    pub fn imported(&self) -> &LinesImported {
        &self.imported
    }

    /// Reads on until `rows_max` rows or 2 MiB wait, and stores them as one statement of the connection; whether there may
    /// be more. Lines that are wrong are left out and counted.
    ///
    /// # Errors
    /// What the source says; those of writing. Then none of these rows is there.
    pub fn store_some(&mut self, database: &Database, connection: &mut Connection, rows_max: u64) -> Result<bool> {
        let plain = Entry { name: String::new(), is_plain: true };
        let known = Known::fixed(database.clone(), plain, true, connection.view()?);
        let mut batch = Batch::new();
        let mut goes_on = true;
        while goes_on && (batch.rows() as u64) < rows_max && batch.bytes() < BATCH_BYTES {
            goes_on = self.push_next(&mut batch, &known)?;
        }
        drop(known);
        self.store(connection, batch)?;
        Ok(goes_on)
    }

    /// Takes one line into a batch; false at the end.
    fn push_next(&mut self, batch: &mut Batch, known: &Known) -> Result<bool> {
        let wrong = |error: std::io::Error| Error::host("read the lines", "lines", &error);
        let (number, text) = match self.lines.next().map_err(wrong)? {
            None => return Ok(false),
            Some(Piece::Line { number, text }) => (number, Some(text)),
            Some(Piece::TooLong { number }) => (number, None),
        };
        self.imported.lines += 1;
        let reject = |column, problem| Reject { line: number, column, problem };
        let pushed = match text {
            None => Err(reject(0, Problem::Limit("bytes of a line", limits::LINE_BYTES_MAX))),
            Some(text) => match self.parser.parse(text) {
                Err(fault) => Err(reject(fault.offset as u64 + 1, fault.problem)),
                Ok(line) => batch.push(&line, number, &self.reading, known).map_err(|problem| reject(0, problem)),
            },
        };
        if let Err(reject) = pushed {
            self.imported.rejects.push(reject);
        }
        Ok(true)
    }

    fn store(&mut self, connection: &mut Connection, batch: Batch) -> Result<()> {
        let mut tables: Vec<Rows> = batch.into_tables().into_iter().map(Rows::new).collect();
        if tables.is_empty() {
            return Ok(());
        }
        let points: Vec<_> = tables
            .iter_mut()
            .map(|rows| {
                let name = rows.measurement().to_owned();
                rows.points(name, true, Vec::new())
            })
            .collect();
        let appended = connection.append(&points)?;
        drop(points);
        self.imported.rows += appended.iter().map(|appended| appended.rows() as u64).sum::<u64>();
        self.imported.rejects.append(points::rejects(tables.iter().zip(&appended)));
        Ok(())
    }
}
