//! PostgreSQL, or what speaks its protocol and SQL, as a cloud: the questions of a dispersed table run as its own SQL.
//!
//! ```text
//! table t0123...          place BIGINT PRIMARY KEY, shares BIGINT, everything else BYTEA, as they come with the first rows
//! equality                c = ANY (tags), with an index on columns that hold tags
//! range                   the sixteen blocks of an order's code compared in turn, by sha256() and get_byte()
//! sum                     sum(c) % (2^61 - 1): BIGINTs add up to a NUMERIC that does not overflow
//! ```
//! 1. Places are 64 bits without a sign; a BIGINT has the same bits.
//! 2. Rows are put by COPY into a table of the transaction, and what is there already is passed over: telling again does nothing.
//! 3. A connection that failed is closed. One that waited is tried once, and another one is made.

mod query;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::postgres::binary_copy::BinaryCopyInWriter;
use ::postgres::error::SqlState;
use ::postgres::fallible_iterator::FallibleIterator as _;
use ::postgres::types::{ToSql, Type};
use ::postgres::{Client, Config, NoTls, Row};
use counterfoil_disperse::fragments::{Answer, Data, Fragments, Name, Question, Strings};
use counterfoil_disperse::{Failure, Provider};
use parking_lot::Mutex;

use query::Query;

/// Connections that wait for somebody.
const IDLE_MAX: usize = 8;
/// Rows of a part of an answer.
const PART_ROWS: usize = 1 << 14;
/// How long the first word may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// What a statement may take there.
const SETTINGS: &str = "SET statement_timeout = '300s'; SET lock_timeout = '30s'";

/// A database of PostgreSQL.
pub struct Postgres {
    config: Config,
    idle: Mutex<Vec<Client>>,
    /// What is known of tables, so that it is not asked for each time.
    shapes: Mutex<HashMap<Name, Arc<Shape>>>,
}

/// What a table looks like there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shape {
    /// Its columns, and whether each holds one tag in every row.
    columns: Vec<(Name, Column)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Shares,
    Tags,
    Strings,
}

impl Shape {
    fn column(&self, name: &Name) -> Result<Column, Failure> {
        let found = self.columns.iter().find(|(own, _)| own == name).map(|(_, column)| *column);
        found.ok_or_else(|| Failure::Refused(format!("no column {}", name.as_str())))
    }
}

fn failed(error: &::postgres::Error) -> Failure {
    let Some(told) = error.as_db_error() else {
        // What does not come from the server is either no answer of it, or one that nobody can read.
        return match error.is_closed()
            || std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>())
        {
            true => Failure::Unreachable("the connection to PostgreSQL failed".into()),
            false => Failure::Malformed("what PostgreSQL says does not fit what it was asked".into()),
        };
    };
    // What the server says, and nothing of the statement's values.
    let what = format!("PostgreSQL: {} ({})", told.message(), told.code().code());
    match told.code().code().get(..2) {
        // Connections, resources, and an operator who shuts it down.
        Some("08" | "53" | "57" | "58") if *told.code() != SqlState::DISK_FULL => Failure::Unreachable(what),
        _ => Failure::Refused(what),
    }
}

fn as_bigint(place: u64) -> i64 {
    place as i64
}

impl Postgres {
    /// A database by its address; nobody is asked yet. Without TLS: it is on this machine, or the way to it is protected otherwise.
    ///
    /// # Errors
    /// What is wrong with the address, for people.
    pub fn new(url: &str, password: Option<&str>) -> Result<Self, String> {
        let mut config: Config = url.parse().map_err(|_| format!("cloud at {url}: this is no postgres:// address"))?;
        if config.get_password().is_some() {
            return Err("a password in the address of a cloud: put it into a file, secret_file '...'".into());
        }
        if let Some(password) = password {
            config.password(password);
        }
        config.application_name("counterfoil").connect_timeout(CONNECT_TIMEOUT);
        Ok(Self { config, idle: Mutex::default(), shapes: Mutex::default() })
    }

    fn client(&self) -> Result<Client, Failure> {
        while let Some(mut client) = self.idle.lock().pop() {
            if client.is_valid(CONNECT_TIMEOUT).is_ok() {
                return Ok(client);
            }
        }
        let mut client = self.config.connect(NoTls).map_err(|error| failed(&error))?;
        client.batch_execute(SETTINGS).map_err(|error| failed(&error))?;
        Ok(client)
    }

    /// Does something on a connection, which waits for the next one if that went well.
    fn with<T>(&self, body: impl FnOnce(&mut Client) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut client = self.client()?;
        let done = body(&mut client)?;
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(client);
        }
        Ok(done)
    }

    /// What a table looks like; none: it is not there.
    fn shape(&self, client: &mut Client, table: &Name) -> Result<Option<Arc<Shape>>, Failure> {
        if let Some(shape) = self.shapes.lock().get(table) {
            return Ok(Some(shape.clone()));
        }
        let columns = "SELECT attname::text, atttypid = 'bigint'::regtype, col_description(attrelid, attnum) = 'tags' \
                       FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 1 AND NOT attisdropped ORDER BY attnum";
        let rows = client.query(columns, &[&table.as_str()]).map_err(|error| failed(&error))?;
        let malformed = || Failure::Malformed(format!("table {} has other columns than it was given", table.as_str()));
        let mut shape = Shape::default();
        for row in rows {
            let name = Name::parse(row.get(0)).ok_or_else(malformed)?;
            let column = match (row.get(1), row.get::<_, Option<bool>>(2)) {
                (true, _) => Column::Shares,
                (false, Some(true)) => Column::Tags,
                (false, _) => Column::Strings,
            };
            shape.columns.push((name, column));
        }
        if shape.columns.is_empty() {
            return Ok(None);
        }
        let shape = Arc::new(shape);
        self.shapes.lock().insert(table.clone(), shape.clone());
        Ok(Some(shape))
    }

    /// Makes a table for rows such as these, unless it is there.
    fn make(&self, client: &mut Client, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        if self.shape(client, table)?.is_some() {
            return Ok(());
        }
        let name = table.as_str();
        let (mut columns, mut beside) = (vec!["place BIGINT PRIMARY KEY".to_owned()], Vec::new());
        for (column, data) in &rows.columns {
            let column = column.as_str();
            match data {
                Data::Shares(_) => columns.push(format!("{column} BIGINT NOT NULL")),
                Data::Strings(strings) => {
                    columns.push(format!("{column} BYTEA NOT NULL"));
                    if !strings.is_empty() && strings.iter().all(|string| string.len() == 16) {
                        beside.push(format!("COMMENT ON COLUMN {name}.{column} IS 'tags'"));
                        beside.push(format!(
                            "CREATE INDEX IF NOT EXISTS {name}_{column} ON {name} USING hash ({column})"
                        ));
                    }
                }
            }
        }
        let make =
            format!("BEGIN; CREATE TABLE IF NOT EXISTS {name} ({}); {}; COMMIT", columns.join(", "), beside.join("; "));
        client.batch_execute(&make).map_err(|error| failed(&error))
    }
}

impl Provider for Postgres {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        self.with(|client| {
            self.make(client, table, rows)?;
            copy(client, table, rows).map_err(|error| failed(&error))
        })
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        self.with(|client| {
            if self.shape(client, table)?.is_none() {
                return Ok(());
            }
            let delete = format!("DELETE FROM {} WHERE place = ANY ($1)", table.as_str());
            let places: Vec<i64> = places.iter().copied().map(as_bigint).collect();
            client.execute(&delete, &[&places]).map(drop).map_err(|error| failed(&error))
        })
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.with(|client| {
            let no_table = || Failure::Refused(format!("no table {}", table.as_str()));
            let shape = self.shape(client, table)?.ok_or_else(no_table)?;
            let query = Query::of(table, question, &shape)?;
            match question.sums.is_empty() {
                true => rows(client, &query, question, &shape, take),
                false => sums(client, &query, question, take),
            }
        })
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.shapes.lock().remove(table);
        self.with(|client| {
            let drop_table = format!("DROP TABLE IF EXISTS {}", table.as_str());
            client.batch_execute(&drop_table).map_err(|error| failed(&error))
        })
    }
}

/// Puts rows, but those that are there.
fn copy(client: &mut Client, table: &Name, rows: &Fragments) -> Result<(), ::postgres::Error> {
    let (name, mut types) = (table.as_str(), vec![Type::INT8]);
    let mut columns = vec!["place"];
    for (column, data) in &rows.columns {
        columns.push(column.as_str());
        types.push(if matches!(data, Data::Shares(_)) { Type::INT8 } else { Type::BYTEA });
    }
    let columns = columns.join(", ");
    let mut transaction = client.transaction()?;
    transaction.batch_execute(&format!("CREATE TEMP TABLE incoming (LIKE {name}) ON COMMIT DROP"))?;
    let copied = transaction.copy_in(&format!("COPY incoming ({columns}) FROM STDIN BINARY"))?;
    let mut writer = BinaryCopyInWriter::new(copied, &types);
    for (row, place) in rows.places.iter().enumerate() {
        let place = as_bigint(*place);
        let values: Vec<Value<'_>> = rows.columns.iter().map(|(_, data)| value(data, row)).collect();
        let all = std::iter::once(&place as &(dyn ToSql + Sync)).chain(values.iter().map(Value::to_sql));
        writer.write(&all.collect::<Vec<_>>())?;
    }
    writer.finish()?;
    let insert =
        format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM incoming ON CONFLICT (place) DO NOTHING");
    transaction.execute(&insert, &[])?;
    transaction.commit()
}

/// A value as it is written.
enum Value<'a> {
    Share(i64),
    String(&'a [u8]),
}

impl Value<'_> {
    fn to_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Share(share) => share,
            Self::String(string) => string,
        }
    }
}

fn value(data: &Data, row: usize) -> Value<'_> {
    match data {
        Data::Shares(shares) => Value::Share(as_bigint(shares[row])),
        Data::Strings(strings) => Value::String(strings.get(row)),
    }
}

/// Rows, part by part as they come.
fn rows(
    client: &mut Client,
    query: &Query,
    question: &Question,
    shape: &Shape,
    take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut found = client.query_raw(&query.rows(question), query.values()).map_err(|error| failed(&error))?;
    // Who asks on behind the end is told that the connection is closed.
    let mut is_end = false;
    while !is_end {
        let mut part = Part::new(question, shape)?;
        while part.places.len() < PART_ROWS && !is_end {
            match found.next().map_err(|error| failed(&error))? {
                Some(row) => part.add(&row)?,
                None => is_end = true,
            }
        }
        take(part.answer(question))?;
    }
    Ok(())
}

/// Rows that have come.
struct Part {
    places: Vec<u64>,
    columns: Vec<Data>,
}

impl Part {
    fn new(question: &Question, shape: &Shape) -> Result<Self, Failure> {
        let column = |name: &Name| {
            Ok(match shape.column(name)? {
                Column::Shares => Data::Shares(Vec::new()),
                _ => Data::Strings(Strings::default()),
            })
        };
        let columns = question.columns.iter().map(column).collect::<Result<_, Failure>>()?;
        Ok(Self { places: Vec::new(), columns })
    }

    fn add(&mut self, row: &Row) -> Result<(), Failure> {
        let malformed = |_| Failure::Malformed("a value of another type than its column".into());
        self.places.push(row.try_get::<_, i64>(0).map_err(malformed)? as u64);
        for (at, data) in self.columns.iter_mut().enumerate() {
            match data {
                Data::Shares(shares) => shares.push(row.try_get::<_, i64>(at + 1).map_err(malformed)? as u64),
                Data::Strings(strings) => strings.push(row.try_get(at + 1).map_err(malformed)?),
            }
        }
        Ok(())
    }

    fn answer(self, question: &Question) -> Answer {
        let added = self.places.len() as u64;
        let columns = question.columns.iter().cloned().zip(self.columns).collect();
        Answer { rows: Fragments { places: self.places, columns }, added, sums: Vec::new() }
    }
}

/// One row: how many were added up, and what they come to.
fn sums(
    client: &mut Client,
    query: &Query,
    question: &Question,
    take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let row = client.query_raw(&query.sums(question), query.values()).and_then(|mut rows| rows.next());
    let malformed = || Failure::Malformed("no sum where one was asked for".into());
    let row = row.map_err(|error| failed(&error))?.ok_or_else(malformed)?;
    let number = |at: usize| {
        let number: Result<Option<i64>, _> = row.try_get(at);
        number.map_err(|_| malformed()).map(|number| number.unwrap_or(0) as u64)
    };
    let sums = (1..=question.sums.len()).map(number).collect::<Result<_, Failure>>()?;
    take(Answer { added: number(0)?, sums, ..Answer::default() })
}
