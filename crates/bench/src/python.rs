//! Python's door beside the library's: the same work in one run, in turns, each with a database of its own.
//!
//! Both turn what they find into values: the library's side reads every number and text of its batches, since batches that
//! are handed over unread cost nothing. Arrow tables are the exception on both sides: there the batches are what was wanted.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use counterfoil::arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, RecordBatch, StringArray};
use counterfoil::arrow::datatypes::{Float64Type, Int64Type};
use counterfoil::{Connection, Database};
use counterfoil_bench_figures::machine;

use crate::Failure;
use crate::first::Folder;
use crate::stopwatch::{line, seconds};

/// Rows unless told otherwise, and single statements.
pub const ROWS: usize = 1_000_000;
const POINTS: usize = 2000;
/// Rows of an Arrow batch.
const BATCH: usize = 1 << 17;
const ROUNDS: usize = 3;
const TABLE: &str = "CREATE TABLE t (id BIGINT PRIMARY KEY, value DOUBLE PRECISION, note TEXT)";

/// Seconds by measurement.
type Measured = HashMap<String, Vec<f64>>;

/// Prints rates of both. `python` is an interpreter that finds the package, built as this program was.
pub fn run(python: &Path, rows: usize) -> Result<(), Failure> {
    machine::print();
    println!("rows:    {rows}, and {POINTS} statements of one row\n");
    println!("{:<44} {:>12} {:>12} {:>8}", "", "Python", "library", "ratio");
    let (mut door, mut library) = (Measured::new(), Measured::new());
    for _ in 0..ROUNDS {
        by_library(rows, &mut library)?;
        by_python(python, rows, &mut door)?;
    }
    let commits = POINTS / 10;
    for (name, what, unit, count) in [
        ("in", "Arrow batches in", "rows/s", rows),
        ("out", "a table out as Arrow", "rows/s", rows),
        ("rows", "a table out as values", "rows/s", rows),
        ("select", "one row by its key", "1/s", POINTS),
        ("insert", "one row in, in a transaction", "1/s", POINTS),
        ("commit", "one row in, durable", "1/s", commits),
    ] {
        let goal = if name == "rows" { "" } else { "goal ratio 0.70" };
        line(what, unit, rate(&mut door, name, count)?, rate(&mut library, name, count)?, goal);
    }
    Ok(())
}

fn rate(measured: &mut Measured, name: &str, count: usize) -> Result<f64, Failure> {
    let times = measured.get_mut(name).ok_or_else(|| format!("{name} was not measured"))?;
    times.sort_by(f64::total_cmp);
    Ok(count as f64 / times[times.len() / 2])
}

fn by_python(python: &Path, rows: usize, measured: &mut Measured) -> Result<(), Failure> {
    let folder = Folder::new()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/python/door.py");
    let output = Command::new(python)
        .arg(script)
        .args([folder.path(""), folder.path("key")])
        .args([rows.to_string(), POINTS.to_string()])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{} ended with {}", python.display(), output.status).into());
    }
    for told in String::from_utf8(output.stdout)?.lines() {
        let (name, seconds) = told.split_once(' ').ok_or("a line without a number")?;
        measured.entry(name.to_owned()).or_default().push(seconds.parse()?);
    }
    Ok(())
}

fn by_library(rows: usize, measured: &mut Measured) -> Result<(), Failure> {
    let folder = Folder::new()?;
    let database = Database::create(folder.options("library.db")?)?;
    let mut connection = database.connect()?;
    connection.execute(TABLE, &[])?;
    let batches = batches(rows)?;
    let mut note = |name: &str, work: &mut dyn FnMut(&mut Connection) -> Result<(), Failure>| {
        let (taken, ()) = seconds(|| work(&mut connection))?;
        measured.entry(name.to_owned()).or_default().push(taken);
        Ok::<_, Failure>(())
    };
    note("in", &mut |connection| {
        let columns = ["id", "value", "note"].map(String::from);
        let mut batches = batches.iter().cloned().map(Ok::<_, counterfoil::Error>);
        connection.load("t", &columns, &mut batches)?;
        Ok(())
    })?;
    note("out", &mut |connection| {
        let table = connection.query("SELECT * FROM t", &[])?.collect::<Result<Vec<_>, _>>()?;
        assert_eq!(table.iter().map(RecordBatch::num_rows).sum::<usize>(), rows, "all are there");
        Ok(())
    })?;
    note("rows", &mut |connection| {
        let mut values = Vec::with_capacity(rows);
        for batch in connection.query("SELECT * FROM t", &[])? {
            add_values(&batch?, &mut values);
        }
        Ok(())
    })?;
    note("select", &mut |connection| select(connection, rows))?;
    note("insert", &mut |connection| {
        let mut transaction = connection.transaction()?;
        insert(&mut transaction, POINTS, rows)?;
        Ok(transaction.commit()?)
    })?;
    note("commit", &mut |connection| insert(connection, POINTS / 10, rows + POINTS))
}

fn batches(rows: usize) -> Result<Vec<RecordBatch>, Failure> {
    let batch = |first: usize| {
        let numbers = first..rows.min(first + BATCH);
        let columns: [(&str, ArrayRef); 3] = [
            ("id", Arc::new(Int64Array::from_iter_values(numbers.clone().map(|number| number as i64)))),
            ("value", Arc::new(Float64Array::from_iter_values(numbers.clone().map(|number| number as f64 / 4.0)))),
            ("note", Arc::new(StringArray::from_iter_values(numbers.map(|number| format!("note {number}"))))),
        ];
        Ok(RecordBatch::try_from_iter(columns)?)
    };
    (0..rows).step_by(BATCH).map(batch).collect()
}

fn add_values(batch: &RecordBatch, values: &mut Vec<(i64, f64, String)>) {
    let (ids, numbers) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Float64Type>());
    let notes = batch.column(2).as_string_view();
    values.extend((0..batch.num_rows()).map(|row| (ids.value(row), numbers.value(row), notes.value(row).to_owned())));
}

fn select(connection: &mut Connection, rows: usize) -> Result<(), Failure> {
    let mut select = connection.prepare("SELECT note FROM t WHERE id = $1")?;
    for number in 0..POINTS {
        let wanted = number * 7919 % rows;
        let mut found = None;
        for batch in select.query(&[(wanted as i64).into()])? {
            let batch = batch?;
            found = (batch.num_rows() > 0).then(|| batch.column(0).as_string_view().value(0).to_owned()).or(found);
        }
        assert_eq!(found, Some(format!("note {wanted}")), "it is there");
    }
    Ok(())
}

fn insert(connection: &mut Connection, count: usize, first: usize) -> Result<(), Failure> {
    let mut insert = connection.prepare("INSERT INTO t VALUES ($1, $2, $3)")?;
    for number in first..first + count {
        insert.execute(&[(number as i64).into(), 0.5.into(), "a note".into()])?;
    }
    Ok(())
}
