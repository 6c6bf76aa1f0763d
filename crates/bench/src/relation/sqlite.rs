//! SQLite, in the clear, in WAL mode with `synchronous = FULL`.

use std::path::{Path, PathBuf};

use super::figure7::{Row, TABLES};
use super::{Cost, RUNS, RUNS_COLD, Subject, forget, written};
use crate::Failure;
use crate::first::{Folder, sqlite};
use crate::stopwatch::{median, seconds};

pub struct Sqlite {
    /// None while it is closed.
    open: Option<rusqlite::Connection>,
    path: PathBuf,
}

impl Sqlite {
    pub fn new(folder: &Folder) -> Result<Self, Failure> {
        let path = folder.path("paper.sqlite");
        Ok(Sqlite { open: Some(open(&path)?), path })
    }

    fn connection(&mut self) -> Result<&mut rusqlite::Connection, Failure> {
        Ok(self.open.as_mut().ok_or("it is closed")?)
    }

    fn load_all(&mut self, rows: u64) -> Result<(), Failure> {
        let transaction = self.connection()?.transaction()?;
        for table in &TABLES {
            transaction.execute_batch(&table.create())?;
            let marks = vec!["?"; table.columns().len()].join(", ");
            let mut insert = transaction.prepare(&format!("INSERT INTO {} VALUES ({marks})", table.name))?;
            for id in 0..table.rows(rows) {
                insert.execute(rusqlite::params_from_iter(values(&table.row(id, rows))))?;
            }
        }
        transaction.commit()?;
        for index in TABLES.iter().flat_map(|table| table.indexes(true)) {
            self.connection()?.execute_batch(&index)?;
        }
        self.connection()?.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); ANALYZE")?;
        Ok(())
    }
}

fn values(row: &Row) -> Vec<rusqlite::types::Value> {
    let mut values = vec![row.id.into()];
    values.extend(row.references.iter().map(|reference| rusqlite::types::Value::from(*reference)));
    values.extend(row.values.iter().map(|value| rusqlite::types::Value::from(value.clone())));
    values.push(row.a1.clone().into());
    values
}

fn open(path: &Path) -> Result<rusqlite::Connection, Failure> {
    let connection = sqlite(path)?;
    connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA cache_size = -65536")?;
    Ok(connection)
}

/// Runs a query to its last row and reads every value.
fn count(statement: &mut rusqlite::Statement<'_>) -> Result<u64, Failure> {
    let columns = statement.column_count();
    let (mut rows, mut bytes, mut found) = (statement.query([])?, 0, 0_u64);
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            bytes += row.get_ref(column)?.as_str()?.len();
        }
        found += 1;
    }
    std::hint::black_box(bytes);
    Ok(found)
}

impl Subject for Sqlite {
    fn load(&mut self, rows: u64) -> Result<Cost, Failure> {
        let before = written(std::process::id())?;
        let (seconds, ()) = seconds(|| self.load_all(rows))?;
        Ok(Cost { seconds, bytes: written(std::process::id())? - before })
    }

    fn commits(&mut self, rows: u64, count: u64) -> Result<Cost, Failure> {
        let table = &TABLES[TABLES.len() - 1];
        let marks = vec!["?"; table.columns().len()].join(", ");
        let mut insert = self.connection()?.prepare(&format!("INSERT INTO {} VALUES ({marks})", table.name))?;
        let before = written(std::process::id())?;
        let (seconds, ()) = seconds(|| {
            for id in rows..rows + count {
                insert.execute(rusqlite::params_from_iter(values(&table.row(id, rows))))?;
            }
            Ok(())
        })?;
        Ok(Cost { seconds, bytes: written(std::process::id())? - before })
    }

    fn run(&mut self, statements: &[String]) -> Result<Cost, Failure> {
        let before = written(std::process::id())?;
        let connection = self.connection()?;
        let (seconds, ()) = seconds(|| statements.iter().try_for_each(|sql| Ok(connection.execute_batch(sql)?)))?;
        Ok(Cost { seconds, bytes: written(std::process::id())? - before })
    }

    fn query(&mut self, sql: &str) -> Result<(f64, u64), Failure> {
        let (mut statement, mut rows) = (self.connection()?.prepare(sql)?, 0);
        let seconds = median(RUNS, || {
            let (seconds, count) = seconds(|| count(&mut statement))?;
            rows = count;
            Ok(seconds)
        })?;
        Ok((seconds, rows))
    }

    fn query_cold(&mut self, sql: &str) -> Result<(f64, u64), Failure> {
        let mut rows = 0;
        let seconds = median(RUNS_COLD, || {
            self.open = None;
            forget(&self.path)?;
            let (seconds, count) = seconds(|| count(&mut self.open.insert(open(&self.path)?).prepare(sql)?))?;
            rows = count;
            Ok(seconds)
        })?;
        Ok((seconds, rows))
    }
}
