//! Values as both databases have them, and the two databases behind one small face.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use counterfoil::arrow::array::{Array, AsArray, RecordBatch};
use counterfoil::arrow::datatypes::{DataType, Float32Type, Float64Type};
use counterfoil::arrow::util::display::{ArrayFormatter, FormatOptions};
use counterfoil::{Connection, Database, Kind, Options, TableUse};

/// One value of an answer.
#[derive(Clone, Debug)]
pub enum Cell {
    Null,
    Number(f64),
    Text(String),
}

impl PartialEq for Cell {
    fn eq(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Null, Cell::Null) => true,
            // Sums of doubles depend on the order in which they are added.
            (Cell::Number(a), Cell::Number(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0),
            (Cell::Text(a), Cell::Text(b)) => a == b,
            _ => false,
        }
    }
}

pub type Rows = Vec<Vec<Cell>>;

/// A database to ask.
pub trait Peer {
    fn run(&mut self, sql: &str) -> Result<Rows, String>;
}

pub struct Ours {
    connection: Connection,
    database: Database,
}

impl Ours {
    pub fn new() -> Ours {
        Ours::with(Options::memory())
    }

    pub fn with(options: Options) -> Ours {
        Ours::of(Database::create(options).unwrap())
    }

    pub fn open(options: Options) -> Ours {
        Ours::of(Database::open(options).unwrap())
    }

    fn of(database: Database) -> Ours {
        Ours { connection: database.connect().unwrap(), database }
    }

    /// How tables are kept, by name.
    pub fn kept(&self) -> Vec<(String, TableUse)> {
        self.database.inspect().unwrap().relations
    }

    /// A reorganization, called off once it has asked so often whether it is, as it does a few times a step; whether it ended before.
    pub fn vacuum(&mut self, asks: usize) -> bool {
        let left = AtomicUsize::new(asks);
        let one_less = move || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        self.connection.ask_while_waiting(move || one_less().is_err());
        let ended = self.connection.execute("VACUUM", &[]);
        self.connection.ask_while_waiting(|| false);
        if let Err(error) = &ended {
            assert_eq!(error.kind(), Kind::Interrupted, "{error}");
        }
        ended.is_ok()
    }

    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Peer for Ours {
    fn run(&mut self, sql: &str) -> Result<Rows, String> {
        let mut rows = Vec::new();
        for outcome in self.connection.run(sql, &[]).map_err(|error| error.to_string())? {
            if let counterfoil::Outcome::Rows(batches) = outcome {
                for batch in batches {
                    rows.extend(cells(&batch.map_err(|error| error.to_string())?));
                }
            }
        }
        Ok(rows)
    }
}

fn cells(batch: &RecordBatch) -> Rows {
    (0..batch.num_rows()).map(|row| batch.columns().iter().map(|column| cell(column, row)).collect()).collect()
}

fn cell(column: &dyn Array, row: usize) -> Cell {
    if column.is_null(row) {
        return Cell::Null;
    }
    match column.data_type() {
        DataType::Float64 => Cell::Number(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => Cell::Number(f64::from(column.as_primitive::<Float32Type>().value(row))),
        DataType::Boolean => Cell::Number(f64::from(u8::from(column.as_boolean().value(row)))),
        kind => {
            let text = ArrayFormatter::try_new(column, &FormatOptions::new()).unwrap().value(row).to_string();
            let numeric = kind.is_numeric();
            if numeric { Cell::Number(text.parse().unwrap()) } else { Cell::Text(text) }
        }
    }
}

pub struct Sqlite(pub rusqlite::Connection);

impl Sqlite {
    pub fn new() -> Sqlite {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch("PRAGMA case_sensitive_like = ON; PRAGMA foreign_keys = ON").unwrap();
        Sqlite(connection)
    }
}

impl Peer for Sqlite {
    fn run(&mut self, sql: &str) -> Result<Rows, String> {
        let mut statement = self.0.prepare(sql).map_err(|error| error.to_string())?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(|error| error.to_string())? {
            all.push((0..columns).map(|column| Cell::from(row.get_ref(column).unwrap())).collect());
        }
        Ok(all)
    }
}

impl From<rusqlite::types::ValueRef<'_>> for Cell {
    fn from(value: rusqlite::types::ValueRef<'_>) -> Cell {
        use rusqlite::types::ValueRef;
        match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Number(number as f64),
            ValueRef::Real(number) => Cell::Number(number),
            ValueRef::Text(text) | ValueRef::Blob(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Null => f.write_str("NULL"),
            Cell::Number(number) => number.fmt(f),
            Cell::Text(text) => write!(f, "'{text}'"),
        }
    }
}

/// The first difference, for people.
pub fn difference(ours: &Rows, theirs: &Rows) -> Option<String> {
    let line = |row: &Vec<Cell>| row.iter().map(Cell::to_string).collect::<Vec<_>>().join(" | ");
    for (index, (mine, other)) in ours.iter().zip(theirs).enumerate() {
        if mine != other {
            return Some(format!("row {index}: ours {}, SQLite's {}", line(mine), line(other)));
        }
    }
    (ours.len() != theirs.len()).then(|| format!("{} rows, SQLite has {}", ours.len(), theirs.len()))
}

/// In an order that both sides have.
pub fn sorted(mut rows: Rows) -> Rows {
    rows.sort_by_cached_key(|row| row.iter().map(|cell| format!("{cell}|")).collect::<String>());
    rows
}

/// Steps that a reorganization of tables has left.
pub fn steps(kept: &[(String, TableUse)]) -> usize {
    kept.iter().map(|(_, table)| table.steps.len()).sum()
}
