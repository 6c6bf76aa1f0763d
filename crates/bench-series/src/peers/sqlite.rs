//! SQLite: tables WITHOUT ROWID, prepared statements, WAL with `synchronous = FULL`.

use std::path::Path;

use rusqlite::{Connection, params};

use super::{CACHE_BYTES, sorted};
use crate::Failure;
use crate::query::{Answer, Fold, Folding};
use crate::store::{Span, Store};
use crate::workload::{SERIES, Sort, Tuple};

pub struct Sqlite {
    connection: Connection,
    is_active: bool,
}

const fn table(sort: Sort) -> &'static str {
    match sort {
        Sort::Analog => "analog",
        Sort::Boolean => "boolean",
    }
}

impl Sqlite {
    pub fn create(folder: &Path) -> Result<Sqlite, Failure> {
        let connection = Connection::open(folder.join("sqlite.db"))?;
        connection.execute_batch(&format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -{}",
            CACHE_BYTES >> 10
        ))?;
        for sort in Sort::BOTH {
            connection.execute_batch(&format!(
                "CREATE TABLE {} (series INTEGER, time INTEGER, value REAL, quality INTEGER,
                 PRIMARY KEY (series, time)) WITHOUT ROWID",
                table(sort)
            ))?;
        }
        Ok(Sqlite { connection, is_active: false })
    }

    fn begin(&mut self) -> Result<(), Failure> {
        if !self.is_active {
            self.connection.execute_batch("BEGIN")?;
            self.is_active = true;
        }
        Ok(())
    }

    /// A question that SQL answers by itself.
    fn ask(&self, sort: Sort, series: u32, span: Span, what: &str) -> Result<Answer, Failure> {
        let text = format!("SELECT count(*), {what} FROM {} WHERE series = ? AND time BETWEEN ? AND ?", table(sort));
        let mut statement = self.connection.prepare(&text)?;
        let answer = statement.query_row(params![series, span.first, span.last], |row| {
            Ok(Answer { tuples: row.get::<_, i64>(0)? as u64, number: row.get::<_, Option<f64>>(1)?.unwrap_or(0.0) })
        })?;
        Ok(answer)
    }

    /// One that needs a look at each row.
    fn look(&self, sort: Sort, series: u32, span: Span, fold: Fold) -> Result<Answer, Failure> {
        let text = format!(
            "SELECT time, value, quality FROM {} WHERE series = ? AND time BETWEEN ? AND ? ORDER BY time",
            table(sort)
        );
        let mut statement = self.connection.prepare(&text)?;
        let mut rows = statement.query(params![series, span.first, span.last])?;
        let mut folding = Folding::new(fold);
        while let Some(row) = rows.next()? {
            folding.take(row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as u8);
        }
        Ok(folding.answer())
    }
}

impl Store for Sqlite {
    fn insert(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.begin()?;
        let text = format!("INSERT OR REPLACE INTO {} VALUES (?, ?, ?, ?)", table(sort));
        let mut insert = self.connection.prepare(&text)?;
        for tuple in sorted(tuples) {
            insert.execute(params![tuple.series, tuple.time, tuple.value, tuple.quality])?;
        }
        Ok(())
    }

    fn delete(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.begin()?;
        let text = format!("DELETE FROM {} WHERE series = ? AND time = ?", table(sort));
        let mut delete = self.connection.prepare(&text)?;
        for tuple in sorted(tuples) {
            delete.execute(params![tuple.series, tuple.time])?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_active) {
            self.connection.execute_batch("COMMIT")?;
        }
        Ok(())
    }

    fn fold(&mut self, sort: Sort, series: u32, span: Span, fold: Fold) -> Result<Answer, Failure> {
        match fold {
            Fold::Count => self.ask(sort, series, span, "CAST(count(*) AS REAL)"),
            Fold::Sum => self.ask(sort, series, span, "sum(value)"),
            Fold::Average => self.ask(sort, series, span, "avg(value)"),
            Fold::Extremes => self.ask(sort, series, span, "min(value) + max(value)"),
            Fold::Above(threshold) => {
                self.ask(sort, series, span, &format!("CAST(sum(value > {threshold:?}) AS REAL)"))
            }
            Fold::Raw | Fold::Gaps(_) => self.look(sort, series, span, fold),
        }
    }

    fn newest(&mut self, sort: Sort) -> Result<Vec<Tuple>, Failure> {
        let text =
            format!("SELECT time, value, quality FROM {} WHERE series = ? ORDER BY time DESC LIMIT 1", table(sort));
        let mut statement = self.connection.prepare(&text)?;
        let mut found = Vec::new();
        for series in 0..SERIES {
            let mut rows = statement.query([series])?;
            if let Some(row) = rows.next()? {
                let quality = row.get::<_, i64>(2)? as u8;
                found.push(Tuple { series, time: row.get(0)?, value: row.get(1)?, quality });
            }
        }
        Ok(found)
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.commit()?;
        Ok(self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?)
    }
}
