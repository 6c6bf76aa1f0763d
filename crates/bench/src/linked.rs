//! Real flights with all their foreign keys and every column of a WHERE indexed, beside SQLite: import, and 40 questions.
//!
//! Schema and questions are those of the test that holds both against each other (`crates/counterfoil/tests/against_sqlite`).

use std::path::{Path, PathBuf};
use std::process::Command;

use counterfoil::{Connection, Database};
use counterfoil_bench_figures::machine;

use crate::first::{Folder, program};
use crate::stopwatch::{line, median, seconds};
use crate::{Failure, flights};

const SCHEMA: &str = include_str!("../../counterfoil/tests/against_sqlite/linked-schema.sql");
const QUESTIONS: &str = include_str!("../../counterfoil/tests/against_sqlite/linked.sql");
/// In the order in which they reference each other.
const TABLES: [(&str, &str); 5] = [
    ("airlines", "airlines.csv"),
    ("airports", "airports.csv"),
    ("planes", "planes.csv"),
    ("weather", "weather.csv.gz"),
    ("flights", "flights-2013-01.csv.gz"),
];
/// How often a question is asked: the middle one counts.
const RUNS: usize = 5;
/// An answer from so many rows or fewer of the flights is selective.
const FEW: u64 = 1000;

/// Measures and prints the tables. Without a file of flights the sample of January is taken.
pub fn run(file: Option<PathBuf>) -> Result<(), Failure> {
    let folder = Folder::new()?;
    machine::print();
    println!("ours: sealed, file counter; peer: SQLite {}, WAL, FULL, in the clear\n", rusqlite::version());
    println!("{:<44} {:>12} {:>12} {:>8}", "", "ours", "SQLite", "ratio");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/nycflights13");
    let files: Vec<(&str, PathBuf)> = TABLES
        .iter()
        .map(|(table, name)| match &file {
            Some(file) if *table == "flights" => (*table, file.clone()),
            _ => (*table, sample.join(name)),
        })
        .collect();
    let database = Database::create(folder.options("linked.db")?)?;
    database.connect()?.run(SCHEMA, &[])?;
    database.close()?;
    let (ours, ()) = seconds(|| files.iter().try_for_each(|(table, file)| import(&folder, table, file)))?;
    let mut sqlite = folder.sqlite("linked.sqlite")?;
    sqlite.execute_batch(&sqlite_schema())?;
    let (theirs, rows) = seconds(|| {
        let rows = files.iter().map(|(table, file)| flights::load_into_sqlite(&mut sqlite, table, file));
        rows.sum::<Result<u64, Failure>>()
    })?;
    line("import with all foreign keys and indexes", "s", ours, theirs, &format!("{rows} rows; goal below 15 s"));
    ask(&folder, &sqlite)
}

/// By the program, as a person does.
fn import(folder: &Folder, table: &str, file: &Path) -> Result<(), Failure> {
    let status = Command::new(program()?)
        .args(["import", "--quiet", "--null", "NA", "--key-file"])
        .arg(folder.path("key"))
        .arg(folder.path("linked.db"))
        .arg(table)
        .arg(file)
        .env("COUNTERFOIL_STATE_DIR", folder.path("state"))
        .status()?;
    if status.success() { Ok(()) } else { Err(format!("the import of {table} failed").into()) }
}

/// SQLite knows no reference that is not enforced; all of them are indexed.
fn sqlite_schema() -> String {
    let lines = SCHEMA.lines().filter(|line| !line.contains(" REFERENCES "));
    let mut schema: String = lines.flat_map(|line| [line, "\n"]).collect();
    schema = schema.replace(",\n)", "\n)");
    let keys = ["flights (carrier)", "flights (origin, time_hour)", "flights (dest)", "flights (tailnum)"];
    keys.iter().for_each(|columns| schema += &format!("CREATE INDEX ON {columns};\n"));
    // An index has to have a name there.
    let mut parts = schema.split("CREATE INDEX ON");
    let mut named = parts.next().unwrap_or_default().to_owned();
    parts.enumerate().for_each(|(number, text)| named += &format!("CREATE INDEX i{number} ON{text}"));
    named
}

fn ask(folder: &Folder, sqlite: &rusqlite::Connection) -> Result<(), Failure> {
    let database = Database::open(folder.options("linked.db")?)?;
    let mut connection = database.connect()?;
    println!("\n{:>4} {:>8} {:>12} {:>12} {:>8}  question", "", "rows", "ours, us", "SQLite, us", "ratio");
    let questions = QUESTIONS.lines().filter(|text| !text.starts_with("--") && !text.is_empty());
    let (mut logs, mut selective, mut faster, mut count) = (0.0, 0, 0, 0);
    for (number, text) in questions.enumerate() {
        let rows = read_ours(&mut connection, text)?;
        let ours = median(RUNS, || Ok(seconds(|| read_ours(&mut connection, text))?.0))?;
        let theirs_rows = read_theirs(sqlite, text)?;
        let theirs = median(RUNS, || Ok(seconds(|| read_theirs(sqlite, text))?.0))?;
        if rows != theirs_rows {
            return Err(format!("{text}: {rows} rows, SQLite has {theirs_rows}").into());
        }
        let few = touched(sqlite, text)? <= FEW;
        (selective, count) = (selective + u32::from(few), count + 1);
        faster += u32::from(few && ours < theirs);
        logs += (ours / theirs).ln();
        let mark = if few { "" } else { " (much)" };
        let [ours_us, theirs_us] = [ours * 1e6, theirs * 1e6];
        println!("{:>4} {rows:>8} {ours_us:>12.0} {theirs_us:>12.0} {:>8.2}  {text}{mark}", number + 1, ours / theirs);
    }
    println!("\n{faster} of {selective} selective questions are answered faster than by SQLite (goal: all)");
    println!("geometric mean of ours over SQLite's, all {count}: {:.2}", (logs / f64::from(count)).exp());
    Ok(())
}

/// Rows of the flights that a question is about: what it asks, without grouping them.
fn touched(sqlite: &rusqlite::Connection, text: &str) -> Result<u64, Failure> {
    let from = text.find(" FROM ").ok_or("a question without FROM")?;
    let ends = [" GROUP BY ", " ORDER BY "].iter().filter_map(|word| text.find(word));
    let end = ends.min().unwrap_or(text.len());
    let sql = format!("SELECT count(*){}", &text[from..end]);
    Ok(u64::try_from(sqlite.query_row(&sql, [], |row| row.get::<_, i64>(0))?)?)
}

fn read_ours(connection: &mut Connection, text: &str) -> Result<u64, Failure> {
    let mut rows = 0;
    for batch in connection.query(text, &[])? {
        rows += batch?.num_rows() as u64;
    }
    Ok(rows)
}

fn read_theirs(sqlite: &rusqlite::Connection, text: &str) -> Result<u64, Failure> {
    let mut statement = sqlite.prepare(text)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            std::hint::black_box(row.get_ref(column)?);
        }
        count += 1;
    }
    Ok(count)
}
