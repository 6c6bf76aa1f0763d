//! PostgreSQL, or what speaks its protocol and SQL, as a cloud: the questions of a dispersed table run as its own SQL.
//!
//! ```text
//! table t0123...          place BIGINT PRIMARY KEY, shares BIGINT, everything else BYTEA, as they come with the first rows
//! equality                c = ANY (tags), with an index on columns that hold tags
//! danger order            c BETWEEN code AND code, with an index on columns that hold such codes
//! range                   the sixteen blocks of an order's code compared in turn, by sha256() and get_byte()
//! sum                     sum(c) % (2^61 - 1): BIGINTs add up to a NUMERIC that does not overflow
//! ```
//! 1. Places are 64 bits without a sign; a BIGINT has the same bits.
//! 2. Rows are put by COPY into a table of the transaction, and what is there already is passed over: telling again does nothing.
//! 3. A server that says nothing for a minute is out of reach. A connection that failed is closed; one that waited is tried, and
//!    another one is made.

mod connection;
mod query;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_disperse::coding::boldyreva::CODE_BYTES;
use counterfoil_disperse::fragments::{Answer, Data, Fragments, Name, Question, Strings};
use counterfoil_disperse::{Failure, Provider};
use counterfoil_tls::postgres::{Address, Encrypted, Unencrypted};
use futures::TryStreamExt as _;
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};

use crate::worker::Worker;
use connection::Connection;
use query::Query;

/// Connections that wait for somebody.
const IDLE_MAX: usize = 8;
/// Rows of a part of an answer, and their bytes, unless one row has more.
const PART_ROWS: usize = 1 << 14;
const PART_BYTES: usize = 8 << 20;
/// How long the first word may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may be silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a statement may take there: less than that.
const SETTINGS: &str = "SET statement_timeout = '50s'; SET lock_timeout = '30s'";

/// A database of PostgreSQL.
pub struct Postgres {
    config: Config,
    /// How connections are encrypted, if they are.
    encrypted: Option<Encrypted>,
    /// On which its connections are served.
    worker: Worker,
    idle: Mutex<Vec<Connection>>,
    /// What is known of tables, so that it is not asked for each time.
    shapes: Mutex<HashMap<Name, Arc<Shape>>>,
    patience: Duration,
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
        // It was there when rows were put.
        found.ok_or_else(|| Failure::Malformed(format!("its table has no column {}", name.as_str())))
    }
}

fn failed(error: &tokio_postgres::Error) -> Failure {
    let Some(told) = error.as_db_error() else {
        // What does not come from the server is either no answer of it, or one that nobody can read.
        let cause = std::error::Error::source(error);
        match Unencrypted::of(error) {
            Some(why @ Unencrypted::NotOffered) => return Failure::Refused(why.to_string()),
            Some(why @ Unencrypted::Failed(_)) => return Failure::Unreachable(why.to_string()),
            None => {}
        }
        return match error.is_closed() || cause.is_some_and(|cause| cause.is::<std::io::Error>()) {
            true => Failure::Unreachable("the connection to PostgreSQL failed".into()),
            false => Failure::Malformed("what PostgreSQL says does not fit what it was asked".into()),
        };
    };
    if *told.code() == SqlState::UNDEFINED_TABLE {
        return Failure::NoTable;
    }
    // What the server says, and nothing of the statement's values.
    let what = format!("PostgreSQL: {} ({})", told.message(), told.code().code());
    if [SqlState::UNDEFINED_COLUMN, SqlState::DATATYPE_MISMATCH].contains(told.code()) {
        // Its table is not as it was made.
        return Failure::Malformed(what);
    }
    match told.code().code().get(..2) {
        // Connections, resources, and an operator who shuts it down.
        Some("08" | "53" | "57" | "58") if *told.code() != SqlState::DISK_FULL => Failure::Unreachable(what),
        _ => Failure::Refused(what),
    }
}

/// What the server answers, if it does in time.
async fn answered<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    let silent = |_| Failure::Unreachable(format!("PostgreSQL says nothing for {} s", patience.as_secs()));
    timeout(patience, asked).await.map_err(silent)?.map_err(|error| failed(&error))
}

fn as_bigint(place: u64) -> i64 {
    place as i64
}

impl Postgres {
    /// A database by its address; nobody is asked yet. Without `sslmode=require` it is on this machine, or the way to it is protected
    /// otherwise.
    ///
    /// # Errors
    /// What is wrong with the address, for people.
    pub fn new(url: &str, password: Option<&str>) -> Result<Self, String> {
        let wrong = |what| format!("cloud at {url}: {what}");
        let Address { mut config, encrypted } = Address::parse(url).map_err(wrong)?;
        if config.get_password().is_some() {
            return Err("a password in the address of a cloud: put it into a file, secret_file '...'".into());
        }
        if let Some(password) = password {
            config.password(password);
        }
        config.application_name("counterfoil").connect_timeout(CONNECT_TIMEOUT);
        let worker = Worker::new(url)?;
        Ok(Self { config, encrypted, worker, idle: Mutex::default(), shapes: Mutex::default(), patience: PATIENCE })
    }

    /// The same, with another idea of how long a server may be silent.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    async fn connection(&self) -> Result<Connection, Failure> {
        loop {
            let Some(connection) = self.idle.lock().pop() else { break };
            if answered(CONNECT_TIMEOUT, connection.client.batch_execute("")).await.is_ok() {
                return Ok(connection);
            }
        }
        let connection =
            Connection::open(&self.config, self.encrypted.as_ref(), CONNECT_TIMEOUT.min(self.patience)).await?;
        answered(self.patience, connection.client.batch_execute(SETTINGS)).await?;
        Ok(connection)
    }

    /// Does something on a connection, which waits for the next one if that went well.
    fn with<T>(&self, body: impl AsyncFnOnce(&mut Client) -> Result<T, Failure>) -> Result<T, Failure> {
        self.worker.wait(async {
            let mut connection = self.connection().await?;
            let done = body(&mut connection.client).await?;
            let mut idle = self.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(connection);
            }
            Ok(done)
        })
    }

    /// What was done with a table; if it is not there any more, what was known of it is forgotten.
    fn if_there<T>(&self, table: &Name, done: Result<T, Failure>) -> Result<T, Failure> {
        if matches!(done, Err(Failure::NoTable)) {
            self.shapes.lock().remove(table);
        }
        done
    }

    /// What a table looks like; none: it is not there.
    async fn shape(&self, client: &Client, table: &Name) -> Result<Option<Arc<Shape>>, Failure> {
        if let Some(shape) = self.shapes.lock().get(table) {
            return Ok(Some(shape.clone()));
        }
        let columns = "SELECT attname::text, atttypid = 'bigint'::regtype, col_description(attrelid, attnum) = 'tags' \
                       FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 1 AND NOT attisdropped ORDER BY attnum";
        let rows = answered(self.patience, client.query(columns, &[&table.as_str()])).await?;
        let shape = Shape { columns: rows.iter().map(described).collect::<Option<_>>().ok_or_else(|| strange(table))? };
        if shape.columns.is_empty() {
            return Ok(None);
        }
        let shape = Arc::new(shape);
        self.shapes.lock().insert(table.clone(), shape.clone());
        Ok(Some(shape))
    }

    /// Makes a table for rows such as these, unless it is there.
    async fn make(&self, client: &Client, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        if self.shape(client, table).await?.is_some() {
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
                    let is_code = |string: &[u8]| string.len() == CODE_BYTES;
                    if strings.iter().any(is_code) && strings.iter().all(|of| of.is_empty() || is_code(of)) {
                        // Of codes alone: a column whose first strings are as long by chance may get long ones, for which an index has no room.
                        beside.push(format!(
                            "CREATE INDEX IF NOT EXISTS {name}_{column} ON {name} ({column}) WHERE octet_length({column}) = {CODE_BYTES}"
                        ));
                    }
                    if !strings.is_empty() && strings.iter().all(|string| string.len() == 16) {
                        beside.push(format!("COMMENT ON COLUMN {name}.{column} IS 'tags'"));
                        beside.push(format!(
                            "CREATE INDEX IF NOT EXISTS {name}_{column} ON {name} USING hash ({column})"
                        ));
                    }
                }
            }
        }
        let (columns, beside) = (columns.join(", "), beside.join("; "));
        let make = format!("BEGIN; CREATE TABLE IF NOT EXISTS {name} ({columns}); {beside}; COMMIT");
        answered(self.patience, client.batch_execute(&make)).await
    }

    /// Puts rows, but those that are there.
    async fn copy(&self, client: &mut Client, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        let (name, mut types) = (table.as_str(), vec![Type::INT8]);
        let mut columns = vec!["place"];
        for (column, data) in &rows.columns {
            columns.push(column.as_str());
            types.push(if matches!(data, Data::Shares(_)) { Type::INT8 } else { Type::BYTEA });
        }
        let columns = columns.join(", ");
        let transaction = answered(self.patience, client.transaction()).await?;
        let make = format!("CREATE TEMP TABLE incoming (LIKE {name}) ON COMMIT DROP");
        answered(self.patience, transaction.batch_execute(&make)).await?;
        let copy = format!("COPY incoming ({columns}) FROM STDIN BINARY");
        let copied = answered(self.patience, transaction.copy_in(&copy)).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(copied, &types));
        for (row, place) in rows.places.iter().enumerate() {
            let place = as_bigint(*place);
            let values: Vec<Value<'_>> = rows.columns.iter().map(|(_, data)| value(data, row)).collect();
            let all = std::iter::once(&place as &(dyn ToSql + Sync)).chain(values.iter().map(Value::to_sql));
            answered(self.patience, writer.as_mut().write(&all.collect::<Vec<_>>())).await?;
        }
        answered(self.patience, writer.finish()).await?;
        let insert =
            format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM incoming ON CONFLICT (place) DO NOTHING");
        answered(self.patience, transaction.execute(&insert, &[])).await?;
        answered(self.patience, transaction.commit()).await
    }

    /// Rows, part by part as they come.
    async fn rows(
        &self,
        client: &Client,
        query: &Query,
        (question, shape): (&Question, &Shape),
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let found = answered(self.patience, client.query_raw(&query.rows(question), query.values())).await?;
        let mut found = pin!(found);
        let mut part = Part::new(question, shape)?;
        while let Some(row) = answered(self.patience, found.try_next()).await? {
            part.add(&row)?;
            if part.places.len() == PART_ROWS || part.bytes >= PART_BYTES {
                take(std::mem::replace(&mut part, Part::new(question, shape)?).answer(question))?;
            }
        }
        take(part.answer(question))
    }

    /// One row: how many were added up, and what they come to.
    async fn sums(
        &self,
        client: &Client,
        query: &Query,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let malformed = || Failure::Malformed("no sum where one was asked for".into());
        let found = answered(self.patience, client.query_raw(&query.sums(question), query.values())).await?;
        let mut found = pin!(found);
        let row = answered(self.patience, found.try_next()).await?.ok_or_else(malformed)?;
        let number = |at: usize| {
            let number: Result<Option<i64>, _> = row.try_get(at);
            number.map_err(|_| malformed()).map(|number| number.unwrap_or(0) as u64)
        };
        let sums = (1..=question.sums.len()).map(number).collect::<Result<_, Failure>>()?;
        take(Answer { added: number(0)?, sums, ..Answer::default() })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Before the thread that serves them.
        self.idle.lock().clear();
    }
}

fn strange(table: &Name) -> Failure {
    Failure::Malformed(format!("table {} has other columns than it was given", table.as_str()))
}

/// A column as the server describes it; none: it is none of ours.
fn described(row: &Row) -> Option<(Name, Column)> {
    let name = Name::parse(row.try_get(0).ok()?)?;
    let (is_number, is_tags): (bool, Option<bool>) = (row.try_get(1).ok()?, row.try_get(2).ok()?);
    Some((
        name,
        if is_number {
            Column::Shares
        } else if is_tags == Some(true) {
            Column::Tags
        } else {
            Column::Strings
        },
    ))
}

impl Provider for Postgres {
    fn put(&self, table: &Name, rows: &Fragments) -> Result<(), Failure> {
        let put = || {
            self.with(async |client| {
                self.make(client, table, rows).await?;
                self.copy(client, table, rows).await
            })
        };
        // Somebody has dropped it, or put the server back, since it was seen: it is made anew.
        match self.if_there(table, put()) {
            Err(Failure::NoTable) => put(),
            done => done,
        }
    }

    fn remove(&self, table: &Name, places: &[u64]) -> Result<(), Failure> {
        let done = self.with(async |client| {
            if self.shape(client, table).await?.is_none() {
                return Ok(());
            }
            let delete = format!("DELETE FROM {} WHERE place = ANY ($1)", table.as_str());
            let places: Vec<i64> = places.iter().copied().map(as_bigint).collect();
            answered(self.patience, client.execute(&delete, &[&places])).await.map(drop)
        });
        match self.if_there(table, done) {
            Err(Failure::NoTable) => Ok(()),
            done => done,
        }
    }

    fn ask(
        &self,
        table: &Name,
        question: &Question,
        take: &mut dyn FnMut(Answer) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let asked = self.with(async |client| {
            let shape = self.shape(client, table).await?.ok_or(Failure::NoTable)?;
            let query = Query::of(table, question, &shape)?;
            match question.sums.is_empty() {
                true => self.rows(client, &query, (question, &shape), take).await,
                false => self.sums(client, &query, question, take).await,
            }
        });
        self.if_there(table, asked)
    }

    fn drop_table(&self, table: &Name) -> Result<(), Failure> {
        self.shapes.lock().remove(table);
        self.with(async |client| {
            let drop_table = format!("DROP TABLE IF EXISTS {}", table.as_str());
            answered(self.patience, client.batch_execute(&drop_table)).await
        })
    }
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

/// Rows that have come.
struct Part {
    places: Vec<u64>,
    columns: Vec<Data>,
    bytes: usize,
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
        Ok(Self { places: Vec::new(), columns, bytes: 0 })
    }

    fn add(&mut self, row: &Row) -> Result<(), Failure> {
        let malformed = |_| Failure::Malformed("a value of another type than its column".into());
        self.places.push(row.try_get::<_, i64>(0).map_err(malformed)? as u64);
        for (at, data) in self.columns.iter_mut().enumerate() {
            match data {
                Data::Shares(shares) => shares.push(row.try_get::<_, i64>(at + 1).map_err(malformed)? as u64),
                Data::Strings(strings) => {
                    let string: &[u8] = row.try_get(at + 1).map_err(malformed)?;
                    self.bytes += string.len();
                    strings.push(string);
                }
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
