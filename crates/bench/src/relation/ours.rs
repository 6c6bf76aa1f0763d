//! Ours, through the library.

use std::path::PathBuf;
use std::sync::Arc;

use counterfoil::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use counterfoil::{Connection, Database, Error, Kind, Options};

use super::figure7::{INDEXED, Row, TABLES, Table};
use super::{Cost, RUNS, RUNS_COLD, Subject, forget, written};
use crate::Failure;
use crate::first::Folder;
use crate::stopwatch::{median, seconds};

const BATCH_ROWS: u64 = 8192;

pub struct Ours {
    /// None while it is closed.
    open: Option<(Connection, Database)>,
    options: Options,
    path: PathBuf,
}

impl Ours {
    pub fn new(folder: &Folder) -> Result<Self, Failure> {
        let options = folder.options("paper.db")?;
        let database = Database::create(options.clone())?;
        Ok(Ours { open: Some((database.connect()?, database)), options, path: folder.path("paper.db") })
    }

    fn connection(&mut self) -> Result<&mut Connection, Failure> {
        Ok(self.open.as_mut().map(|(connection, _)| connection).ok_or("it is closed")?)
    }

    /// Opens it anew, with nothing of it in the system's cache; seconds, and the rows of a query.
    fn count_cold(&mut self, sql: &str) -> Result<(f64, u64), Failure> {
        if let Some((connection, database)) = self.open.take() {
            drop(connection);
            database.close()?;
        }
        forget(&self.path)?;
        seconds(|| {
            let database = Database::open(self.options.clone())?;
            let (connection, _) = self.open.insert((database.connect()?, database));
            count(connection, sql)
        })
    }

    /// Runs a query to its last row; how many they are.
    pub fn query_once(&mut self, sql: &str) -> Result<u64, Failure> {
        count(self.connection()?, sql)
    }

    fn load_all(&mut self, rows: u64) -> Result<(), Failure> {
        for table in &TABLES {
            self.connection()?.execute(&table.create(), &[])?;
            let count = table.rows(rows);
            let mut batches = (0..count).step_by(BATCH_ROWS as usize).map(|first| {
                let rows: Vec<Row> = (first..count.min(first + BATCH_ROWS)).map(|id| table.row(id, rows)).collect();
                batch(table, &rows).map_err(|error| Error::new(Kind::Bug, error.to_string()))
            });
            self.connection()?.load(table.name, &table.columns(), &mut batches)?;
        }
        for index in TABLES.iter().flat_map(|table| table.indexes(false)) {
            self.connection()?.execute(&index, &[])?;
        }
        self.connection()?.execute("VACUUM", &[])?;
        Ok(())
    }
}

impl Subject for Ours {
    fn load(&mut self, rows: u64) -> Result<Cost, Failure> {
        let before = written(std::process::id())?;
        let (seconds, ()) = seconds(|| self.load_all(rows))?;
        Ok(Cost { seconds, bytes: written(std::process::id())? - before })
    }

    fn commits(&mut self, rows: u64, count: u64) -> Result<Cost, Failure> {
        let table = &TABLES[TABLES.len() - 1];
        let marks: Vec<String> =
            (1..=1 + table.references.len() + INDEXED.len() + 1).map(|n| format!("${n}")).collect();
        let insert = format!("INSERT INTO {} VALUES ({})", table.name, marks.join(", "));
        let mut insert = self.connection()?.prepare(&insert)?;
        let before = written(std::process::id())?;
        let (seconds, ()) = seconds(|| {
            for id in rows..rows + count {
                let row = table.row(id, rows);
                let mut values = vec![row.id.into()];
                values.extend(row.references.iter().map(|reference| (*reference).into()));
                values.extend(row.values.iter().map(|value| value.as_str().into()));
                values.push(row.a1.as_str().into());
                insert.execute(&values)?;
            }
            Ok(())
        })?;
        Ok(Cost { seconds, bytes: written(std::process::id())? - before })
    }

    fn run(&mut self, statements: &[String]) -> Result<Cost, Failure> {
        let before = written(std::process::id())?;
        let connection = self.connection()?;
        let run = |sql: &String| Ok(connection.execute(sql, &[]).map(drop)?);
        let (seconds, ()) = seconds(|| statements.iter().try_for_each(run))?;
        Ok(Cost { seconds, bytes: written(std::process::id())? - before })
    }

    fn query(&mut self, sql: &str) -> Result<(f64, u64), Failure> {
        let (connection, mut rows) = (self.connection()?, 0);
        let seconds = median(RUNS, || {
            let (seconds, count) = seconds(|| count(connection, sql))?;
            rows = count;
            Ok(seconds)
        })?;
        Ok((seconds, rows))
    }

    fn query_cold(&mut self, sql: &str) -> Result<(f64, u64), Failure> {
        let mut rows = 0;
        let seconds = median(RUNS_COLD, || {
            let (seconds, count) = self.count_cold(sql)?;
            rows = count;
            Ok(seconds)
        })?;
        Ok((seconds, rows))
    }
}

/// Runs a query to its last row.
fn count(connection: &mut Connection, sql: &str) -> Result<u64, Failure> {
    let mut count = 0;
    for batch in connection.query(sql, &[])? {
        count += batch?.num_rows() as u64;
    }
    Ok(count)
}

/// Rows as the library takes them.
fn batch(table: &Table, rows: &[Row]) -> Result<RecordBatch, Failure> {
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.id)))];
    for place in 0..table.references.len() {
        columns.push(Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.references[place]))));
    }
    for place in 0..INDEXED.len() {
        columns.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.values[place].as_str()))));
    }
    columns.push(Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.a1.as_str()))));
    Ok(RecordBatch::try_from_iter(table.columns().iter().zip(columns))?)
}
