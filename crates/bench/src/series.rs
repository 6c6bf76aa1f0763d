//! A series table through the library's own doors: points by cursors, Arrow batches in, and SQL out, beside SQLite.
//!
//! The workload is that of docs/benchmarks-series.md, which measures the engine below and its peers: a hundred series, measured in
//! turn, each sample up to 15 ms late, values that walk by two decimals.

use std::sync::Arc;

use counterfoil::arrow::array::{
    ArrayRef, Float64Array, Int16Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use counterfoil::{Database, Value};
use counterfoil_bench_figures::machine;

use crate::Failure;
use crate::first::Folder;
use crate::stopwatch::{line, seconds};

/// Points unless told otherwise.
pub const POINTS: usize = 5_000_000;
const SERIES: usize = 100;
/// Rows of an Arrow batch.
const BATCH: usize = 1 << 17;
const FIRST: i64 = 1_767_225_600_000_000;

const TABLE: &str = "(sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT, PRIMARY KEY (sensor, ts))
    WITH (engine = 'series', future_max = 'none')";

/// Points in the order in which they come: series, time, value.
struct Walk {
    values: Vec<i64>,
    seed: u64,
    at: usize,
}

impl Walk {
    fn new() -> Self {
        Walk { values: vec![2000; SERIES], seed: 1, at: 0 }
    }
}

impl Iterator for Walk {
    type Item = (usize, i64, f64);

    fn next(&mut self) -> Option<Self::Item> {
        self.seed = self.seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let (series, second) = (self.at % SERIES, (self.at / SERIES) as i64);
        self.values[series] += (self.seed >> 33) as i64 % 33 - 16;
        self.at += 1;
        let late = (self.seed >> 40) as i64 % 15_000;
        Some((series, FIRST + second * 1_000_000 + late, self.values[series] as f64 / 100.0))
    }
}

fn name(series: usize) -> String {
    format!("sensor-{series:03}")
}

/// Prints rates for so many points.
pub fn run(points: usize) -> Result<(), Failure> {
    machine::print();
    println!("points:  {points} of {SERIES} series\n");
    println!("{:<44} {:>12} {:>12} {:>8}", "", "ours", "SQLite", "ratio");
    let folder = Folder::new()?;
    let database = Database::create(folder.options("series")?)?;
    database.connect()?.run(&format!("CREATE TABLE points {TABLE}; CREATE TABLE batches {TABLE}"), &[])?;
    let mut sqlite = folder.sqlite("sqlite")?;
    let rate = |seconds: f64| points as f64 / seconds;

    let (inserted, ()) = seconds(|| insert_into_sqlite(&mut sqlite, points))?;
    let (pushed, ()) = seconds(|| push(&database, points))?;
    line("points by calls", "points/s", rate(pushed), rate(inserted), "30,000,000");
    let batches = batches(points)?;
    let (loaded, rows) = seconds(|| {
        let columns = ["sensor", "ts", "value", "quality"].map(String::from);
        let mut batches = batches.iter().cloned().map(Ok::<_, counterfoil::Error>);
        Ok(database.connect()?.load("batches", &columns, &mut batches)?)
    })?;
    assert_eq!(rows, points as u64, "all are there");
    line("Arrow batches", "points/s", rate(loaded), rate(inserted), "DuckDB's 13,900,000");
    for (what, question, goal) in [
        ("all times and values", "SELECT ts, value FROM points", "100,000,000"),
        ("a condition on values", "SELECT count(*) FROM points WHERE value > 21.5", ""),
        ("sum by sensor", "SELECT sensor, sum(value) FROM points GROUP BY sensor", ""),
    ] {
        let (ours, _) = seconds(|| ask(&database, question))?;
        let (theirs, _) = seconds(|| ask_sqlite(&sqlite, question))?;
        line(what, "points/s", rate(ours), rate(theirs), goal);
    }
    Ok(())
}

fn push(database: &Database, points: usize) -> Result<(), Failure> {
    let mut writer = database.series("points")?.writer()?;
    let cursors =
        (0..SERIES).map(|series| writer.cursor(&[Value::Text(name(series))])).collect::<Result<Vec<_>, _>>()?;
    for (series, time, value) in Walk::new().take(points) {
        writer.push(cursors[series], time, &[Value::Double(value), Value::Integer(192)])?;
    }
    writer.commit()?;
    Ok(())
}

fn batches(points: usize) -> Result<Vec<RecordBatch>, Failure> {
    let mut walk = Walk::new().take(points).peekable();
    let mut batches = Vec::new();
    while walk.peek().is_some() {
        let part: Vec<_> = walk.by_ref().take(BATCH).collect();
        let columns: [(&str, ArrayRef); 4] = [
            ("sensor", Arc::new(StringArray::from_iter_values(part.iter().map(|(series, ..)| name(*series))))),
            ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(part.iter().map(|(_, time, _)| *time)))),
            ("value", Arc::new(Float64Array::from_iter_values(part.iter().map(|(.., value)| *value)))),
            ("quality", Arc::new(Int16Array::from_iter_values(part.iter().map(|_| 192)))),
        ];
        batches.push(RecordBatch::try_from_iter(columns)?);
    }
    Ok(batches)
}

fn ask(database: &Database, question: &str) -> Result<usize, Failure> {
    let mut rows = 0;
    for batch in database.connect()?.query(question, &[])? {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

fn insert_into_sqlite(sqlite: &mut rusqlite::Connection, points: usize) -> Result<(), Failure> {
    sqlite.execute_batch(
        "CREATE TABLE points (sensor INTEGER, ts INTEGER, value REAL, quality INTEGER, PRIMARY KEY (sensor, ts)) WITHOUT ROWID",
    )?;
    let mut walk = Walk::new().take(points).peekable();
    while walk.peek().is_some() {
        let transaction = sqlite.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO points VALUES (?, ?, ?, 192)")?;
            for (series, time, value) in walk.by_ref().take(BATCH) {
                insert.execute((series as i64, time, value))?;
            }
        }
        transaction.commit()?;
    }
    Ok(())
}

fn ask_sqlite(sqlite: &rusqlite::Connection, question: &str) -> Result<usize, Failure> {
    let mut statement = sqlite.prepare(question)?;
    let columns = statement.column_count();
    let (mut rows, mut count) = (statement.query([])?, 0);
    while let Some(row) = rows.next()? {
        (0..columns).try_for_each(|column| row.get_ref(column).map(drop))?;
        count += 1;
    }
    Ok(count)
}
