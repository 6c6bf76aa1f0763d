//! A published table while one statement asks for it.

use std::sync::Arc;

use counterfoil_ask::{Comparison, Filter, Scan, SortKey, Wanted as AskWanted};
use counterfoil_proof::{Definition, Type, Value};
use counterfoil_reader::{self as reader, Opened};
use counterfoil_relation::Table;
use counterfoil_sql::{
    self as sql, Answer, Asking, Comparison as Compared, Constant, Planned, Test, Verdict, VerifiedTable, Wanted,
};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use parking_lot::Mutex;

use super::bounded::{Bounded, Bounds};
use super::columns::column;
use super::verifying::{Failure, Place, Shared, TIMES, is_of, told};
use crate::error::{Error, Kind, Result};

/// A published table while one statement asks for it: all its scans are answered as of one period.
pub(super) struct Asked {
    shared: Arc<Shared>,
    place: Place,
    table: Arc<Table>,
    /// What it was when it was seen last.
    definition: Option<Definition>,
    open: Mutex<Option<Open>>,
}

struct Open {
    table: Opened<Bounded>,
    bounds: Arc<Bounds>,
    /// Whether rows of it were given: from then on it is not opened anew.
    is_asked: bool,
}

impl Asked {
    pub fn new(shared: Arc<Shared>, place: Place, table: Arc<Table>, definition: Option<Definition>) -> Self {
        Self { shared, place, table, definition, open: Mutex::new(None) }
    }

    /// Opens the table, and keeps what was seen of it, whatever becomes of the rows.
    fn open(&self, may_write: bool, asking: &Asking, note: &mut Option<String>) -> Result<Open, Failure> {
        let database = self.shared.database()?;
        let before = self.shared.seen.newest(&database, &self.place.record)?;
        // Nobody who closes the database waits for a server.
        drop(database);
        let (table, bounds, kept) = self.place.open(before.as_ref(), asking)?;
        if asking.wanted().strong_count() == 0 {
            return Err(sql::Error::Interrupted.into());
        }
        let database = self.shared.database()?;
        *note = self.shared.seen.keep(&database, &self.place.record, &kept, may_write);
        if !is_of(table.definition(), &self.table) {
            let text = format!("the owner of {} publishes it with other columns now", self.place.table);
            let error = Error::new(Kind::Sql, text).at(&self.place.server);
            return Err(error.advise(format!("DROP TABLE {}, and CREATE it again", self.table.name)).into());
        }
        Ok(Open { table, bounds, is_asked: false })
    }

    /// Asks once.
    fn rows(
        &self,
        open: &mut Open,
        wanted: &Wanted,
        asking: &Asking,
    ) -> Result<(Vec<RecordBatch>, Option<Verdict>), Failure> {
        let Open { table, bounds, .. } = open;
        let scan = scan(table.definition(), wanted)?;
        if !wanted.sort.is_empty() && !scan.is_sorted() {
            let text = format!("the orders of published table {} have changed", self.table.name);
            return Err(sql::Error::Conflict(format!("{text}: ask again")).into());
        }
        let Some(question) = scan.question() else { return Ok((Vec::new(), None)) };
        bounds.begin(asking.room() / TIMES, asking.wanted());
        let take = |bytes: usize| {
            asking.take(bounds.brought().saturating_add(bytes.saturating_mul(TIMES))).map_err(Failure::Ours)
        };
        let (rows, verdict) = table.rows(question, &self.place.terms()?, take).map_err(|failure| match failure {
            Failure::Reader(error) => Failure::told(error, bounds),
            ours => ours,
        })?;
        open.is_asked = true;
        let reader::Verdict { as_of, age, signatures, period } = verdict;
        let kinds = wanted.columns.iter().map(|place| open.table.definition().columns[*place].kind).collect::<Vec<_>>();
        let rows = scan.rows(rows).map_err(reader::Error::from)?;
        let batches = batches(rows, &scan.places(), &kinds, wanted)?;
        asking.hold(batches.iter().map(RecordBatch::get_array_memory_size).sum())?;
        Ok((batches, Some(Verdict { as_of, age, signatures, period })))
    }

    fn ask_open(&self, wanted: &Wanted, may_write: bool, asking: &Asking) -> Result<Answer, Failure> {
        let mut open = self.open.lock();
        let (mut note, mut is_again) = (None, false);
        loop {
            let answered = match &mut *open {
                Some(open) => self.rows(open, wanted, asking),
                none => match self.open(may_write, asking, &mut note) {
                    Ok(opened) => self.rows(none.insert(opened), wanted, asking),
                    Err(failure) => Err(failure),
                },
            };
            match answered {
                Ok((batches, verdict)) => return Ok(Answer { batches, verdict, note }),
                // It may have been brought up to date meanwhile: then what is of before does not fit what is of now. Whoever lies does
                // so once more.
                Err(Failure::Reader(error))
                    if error.may_pass() && !is_again && open.as_ref().is_none_or(|open| !open.is_asked) =>
                {
                    (*open, is_again) = (None, true);
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

impl VerifiedTable for Asked {
    fn plan(&self, wanted: &Wanted) -> sql::Result<Planned> {
        let server = &self.place.server;
        let Some(definition) = &self.definition else {
            return Ok(Planned { words: format!("asks {server}"), is_sorted: wanted.sort.is_empty() });
        };
        let scan = scan(definition, wanted).map_err(told)?;
        let words = match scan.question() {
            Some(_) => format!("asks {server}: {}", scan.plan()),
            None => scan.plan(),
        };
        Ok(Planned { words, is_sorted: scan.is_sorted() })
    }

    fn ask(&self, wanted: &Wanted, may_write: bool, asking: &mut Asking) -> sql::Result<Answer> {
        if let Some(definition) = &self.definition
            && scan(definition, wanted).map_err(told)?.question().is_none()
        {
            return Ok(Answer { batches: Vec::new(), verdict: None, note: None });
        }
        self.ask_open(wanted, may_write, asking).map_err(|failure| failure.of_query(&self.place.server))
    }
}

/// How what a scan wants is asked of a table.
fn scan(definition: &Definition, wanted: &Wanted) -> Result<Scan> {
    let number = |place: usize| u16::try_from(place).unwrap_or(u16::MAX);
    let key = |by: &sql::SortBy| SortKey {
        column: number(by.column),
        is_descending: by.is_descending,
        nulls_first: by.nulls_first,
    };
    let filters = wanted.tests.iter().map(|test| filter(definition, test)).collect::<Result<_>>()?;
    let wanted = AskWanted {
        filter: Filter::All(filters),
        columns: wanted.columns.iter().map(|place| number(*place)).collect(),
        sort_keys: wanted.sort.iter().map(key).collect(),
        limit: wanted.limit.map(|limit| limit as u64),
    };
    Scan::of(definition, &wanted).map_err(|error| {
        Error::new(Kind::Bug, format!("a question about a published table: {error}")).advise("please report it")
    })
}

fn filter(definition: &Definition, test: &Test) -> Result<Filter> {
    let all = |tests: &[Test]| tests.iter().map(|test| filter(definition, test)).collect::<Result<_>>();
    let number = |column: usize| u16::try_from(column).unwrap_or(u16::MAX);
    Ok(match test {
        Test::Never => Filter::Never,
        Test::All(tests) => Filter::All(all(tests)?),
        Test::Any(tests) => Filter::Any(all(tests)?),
        Test::Null { column, wanted } => Filter::Null { column: number(*column), wanted: *wanted },
        Test::Compare { column, comparison, constant } => Filter::Compare {
            column: number(*column),
            comparison: comparison_of(*comparison),
            value: value(definition, *column, constant)?,
        },
        Test::In { column, constants } => Filter::In {
            column: number(*column),
            values: constants.iter().map(|constant| value(definition, *column, constant)).collect::<Result<_>>()?,
        },
    })
}

fn comparison_of(comparison: Compared) -> Comparison {
    match comparison {
        Compared::Equal => Comparison::Equal,
        Compared::Unequal => Comparison::NotEqual,
        Compared::Less => Comparison::Less,
        Compared::AtMost => Comparison::LessOrEqual,
        Compared::Greater => Comparison::Greater,
        Compared::AtLeast => Comparison::GreaterOrEqual,
    }
}

/// What a column is compared with, as the proof has values.
fn value(definition: &Definition, column: usize, constant: &Constant) -> Result<Value> {
    let other = || Error::new(Kind::Bug, "a column compared with a value of another type").advise("please report it");
    let kind = definition.columns.get(column).ok_or_else(other)?.kind;
    Ok(match (kind, constant) {
        (Type::Boolean, Constant::Whole(number)) => Value::Boolean(*number != 0),
        (_, Constant::Whole(number)) => Value::Integer(*number),
        (_, Constant::Float(number)) => Value::Double(*number),
        (_, Constant::Decimal(number)) => Value::Numeric(*number),
        (Type::Text, Constant::Bytes(bytes)) => Value::Text(String::from_utf8(bytes.clone()).map_err(|_| other())?),
        (Type::Bytea, Constant::Bytes(bytes)) => Value::Bytes(bytes.clone()),
        (Type::Uuid, Constant::Bytes(bytes)) => Value::Uuid(bytes[..].try_into().map_err(|_| other())?),
        _ => return Err(other()),
    })
}

/// Rows as the scan gives them. They are let go of as they become columns.
fn batches(rows: Vec<Vec<Value>>, places: &[usize], kinds: &[Type], wanted: &Wanted) -> Result<Vec<RecordBatch>> {
    let (mut rows, mut batches) = (rows.into_iter(), Vec::new());
    loop {
        let some: Vec<Vec<Value>> = rows.by_ref().take(wanted.batch_rows).collect();
        if some.is_empty() {
            return Ok(batches);
        }
        let of = |(place, kind): (&usize, &Type)| column(*kind, some.iter().map(|row| &row[*place]));
        let arrays: Vec<ArrayRef> = places.iter().zip(kinds).map(of).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(some.len()));
        let batch = RecordBatch::try_new_with_options(wanted.schema.clone(), arrays, &options)
            .map_err(|_| Error::new(Kind::Bug, "verified columns of other types").advise("please report it"))?;
        batches.push(batch);
    }
}
