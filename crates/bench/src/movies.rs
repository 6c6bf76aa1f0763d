//! The StealthDB paper's benchmark, a million movies: put at clouds that cannot read them, selected, ordered, added up; beside the paper's
//! numbers and SQLite's from the same run.
//!
//! Three clouds, one of which may fail and none of which learns anything: `id` has shares and cells, `name` cells. Providers are processes
//! of their own. What the paper calls memory and file without encryption is here a table of the sealed database, in memory and in a file.

mod paper;
mod plots;
mod provider;
mod sweet_spot;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use counterfoil::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use counterfoil::{Connection, Database, Options};
use counterfoil_bench_figures::machine;

use self::paper::{GOALS, PAPER};
use self::provider::Running;
pub use self::provider::provide;
use crate::Failure;
use crate::first::Folder;
use crate::stopwatch::{median, seconds};

/// Movies unless told otherwise.
pub const ROWS: usize = 1_000_000;
/// The word with which this program runs as a provider.
pub const PROVIDER: &str = "movies-provider";
const BATCH: usize = 1 << 16;
const RUNS: usize = 3;
const CLOUDS: [&str; 3] = ["a", "b", "c"];
/// What overheads are told of: rows in memory, asked for here.
const SEALED: &str = "sealed, memory";
const DISPERSED: &str = "CREATE TABLE movies (id BIGINT NOT NULL FOR (sum), name TEXT) \
                         WITH (engine = 'dispersed', clouds = 'a, b, c', key_backup = 'none')";

const STEPS: [(&str, &str); 5] = [
    ("SELECT", "SELECT id, name FROM movies"),
    ("SELECT ORDER BY", "SELECT id, name FROM movies ORDER BY name"),
    ("SELECT SUM(id)", "SELECT sum(id) FROM movies"),
    ("SELECT WHERE name =", "SELECT id FROM movies WHERE name = 'The Silent Harbour of Winter 4711'"),
    ("SELECT SUM WHERE id <", "SELECT sum(id), count(*) FROM movies WHERE id < 100000"),
];

/// An artificial name, of which no two are alike.
fn name(id: usize) -> String {
    const FIRST: [&str; 8] = ["Silent", "Golden", "Last", "Hidden", "Broken", "Distant", "Burning", "Lonely"];
    const SECOND: [&str; 8] = ["Harbour", "Garden", "Letter", "Mountain", "Train", "Witness", "Island", "Mirror"];
    const THIRD: [&str; 8] = ["Winter", "Lisbon", "the North", "Tomorrow", "Glass", "Ashes", "the Sea", "Midnight"];
    let at = id.wrapping_mul(0x9E37_79B9) >> 7;
    format!("The {} {} of {} {id}", FIRST[at % 8], SECOND[at / 8 % 8], THIRD[at / 64 % 8])
}

fn batches(rows: usize) -> Result<Vec<RecordBatch>, Failure> {
    let ids: Vec<usize> = (1..=rows).collect();
    let batch = |part: &[usize]| {
        let columns: [(&str, ArrayRef); 2] = [
            ("id", Arc::new(Int64Array::from_iter_values(part.iter().map(|id| *id as i64)))),
            ("name", Arc::new(StringArray::from_iter_values(part.iter().map(|id| name(*id))))),
        ];
        Ok(RecordBatch::try_from_iter(columns)?)
    };
    ids.chunks(BATCH).map(batch).collect()
}

/// Prints the table for so many movies; into a folder go plots of it.
pub fn run(rows: usize, plots: Option<&Path>) -> Result<(), Failure> {
    machine::print();
    println!(
        "movies:  {rows}; queries: the middle of {RUNS}; SQLite {}, WAL, FULL, in the clear\n",
        rusqlite::version()
    );
    let batches = batches(rows)?;
    println!("seconds{:<38} {:>10} {}", "", "INSERT", STEPS.map(|(what, _)| format!("{what:>21}")).concat());
    for (what, numbers) in PAPER.iter().chain(&GOALS) {
        print(what, numbers);
    }
    let folder = Folder::new()?;
    let mut measured = Vec::new();
    let mut tell = |what: &'static str, numbers: Vec<f64>| {
        print(what, &numbers);
        measured.push((what, numbers));
    };
    tell("SQLite, memory", sqlite(rusqlite::Connection::open_in_memory()?, rows)?);
    tell("SQLite, file", sqlite(folder.sqlite("sqlite")?, rows)?);
    let plain = "CREATE TABLE movies (id BIGINT NOT NULL, name TEXT)";
    let memory = || -> Result<Database, Failure> { Ok(Database::create(Options::memory())?) };
    tell(SEALED, measure(&memory()?, &[], plain, &batches, rows)?);
    tell("sealed, file", measure(&Database::create(folder.options("plain")?)?, &[], plain, &batches, rows)?);
    let clouds = CLOUDS.map(|cloud| (format!("memory:movies-{cloud}"), None));
    tell("dispersed over memory", measure(&memory()?, &clouds, DISPERSED, &batches, rows)?);
    let folders = clouds_of(|cloud| {
        std::fs::create_dir(folder.path(cloud))?;
        Ok((format!("dir:{}", std::path::absolute(folder.path(cloud))?.display()), None))
    })?;
    let database = Database::create(folder.options("folders")?)?;
    tell("dispersed over three folders", measure(&database, &folders, DISPERSED, &batches, rows)?);
    let pieces = DISPERSED.replace("clouds =", "coding = 'encryption, dispersion', clouds =");
    tell("the same in pieces", measure(&database, &folders, &pieces, &batches, rows)?);
    drop(database);
    let running = clouds_of(|cloud| Running::start(&folder.path(&format!("at-{cloud}"))))?;
    let providers: Vec<_> = running.iter().map(|running| (running.url.clone(), Some(running.token.clone()))).collect();
    let database = Database::create(folder.options("providers")?)?;
    tell("dispersed over three providers", measure(&database, &providers, DISPERSED, &batches, rows)?);
    let coded = DISPERSED.replace("(sum)", "(sum, range)").replace("name TEXT", "name TEXT FOR (equality)");
    tell("the same with codes for = and <", measure(&database, &providers, &coded, &batches, rows)?);
    let spots = sweet_spot::measure(&database, &providers, &batches)?;
    sweet_spot::print(&spots);
    match plots {
        Some(plots) => plots::draw(&measured, &spots, plots),
        None => Ok(()),
    }
}

fn clouds_of<T>(make: impl Fn(&str) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
    CLOUDS.iter().map(|cloud| make(cloud)).collect()
}

fn print(what: &str, numbers: &[f64]) {
    let mut line = format!("{what:<45} {:>10.2} ", numbers[0]);
    for number in &numbers[1..] {
        let _ = write!(line, "{number:>21.3}");
    }
    println!("{line}");
}

/// A cloud: where it is, and the file of its token.
type Cloud = (String, Option<String>);

fn measure(
    database: &Database,
    clouds: &[Cloud],
    create: &str,
    batches: &[RecordBatch],
    rows: usize,
) -> Result<Vec<f64>, Failure> {
    let mut connection = database.connect()?;
    declare(&mut connection, clouds)?;
    connection.run(create, &[])?;
    let (inserted, loaded) = seconds(|| load(&mut connection, batches))?;
    assert_eq!(loaded, rows as u64, "all are there");
    let sum = connection.query("SELECT sum(id) FROM movies", &[])?.next().ok_or("a sum")??;
    let text = format!("{:?}", sum.column(0));
    assert!(text.contains(&(rows * (rows + 1) / 2).to_string()), "the paper's sum is n (n + 1) / 2: {text}");
    assert!(connection.take_notices().iter().all(|note| !note.contains("later")), "clouds have them");
    let mut numbers = vec![inserted];
    for (what, sql) in STEPS {
        numbers.push(median(RUNS, || {
            let (taken, found) = seconds(|| ask(&mut connection, sql))?;
            assert_eq!(found, expected(what, rows), "{what}");
            Ok(taken)
        })?);
    }
    connection.run("DROP TABLE movies", &[])?;
    for name in CLOUDS.iter().take(clouds.len()) {
        connection.run(&format!("DROP CLOUD {name}"), &[])?;
    }
    Ok(numbers)
}

fn declare(connection: &mut Connection, clouds: &[Cloud]) -> Result<(), Failure> {
    for ((url, token), name) in clouds.iter().zip(CLOUDS) {
        let secret = token.as_ref().map_or_else(String::new, |file| format!(", secret_file '{file}'"));
        connection.run(&format!("CREATE CLOUD {name} OPTIONS (url '{url}'{secret})"), &[])?;
    }
    Ok(())
}

fn load(connection: &mut Connection, batches: &[RecordBatch]) -> Result<u64, Failure> {
    let columns = ["id", "name"].map(String::from);
    let mut given = batches.iter().cloned().map(Ok::<_, counterfoil::Error>);
    Ok(connection.load("movies", &columns, &mut given)?)
}

/// How many rows a step has.
fn expected(what: &str, rows: usize) -> usize {
    match what {
        "SELECT" | "SELECT ORDER BY" => rows,
        "SELECT WHERE name =" => usize::from((1..=rows).any(|id| name(id) == "The Silent Harbour of Winter 4711")),
        _ => 1,
    }
}

fn ask(connection: &mut Connection, sql: &str) -> Result<usize, Failure> {
    let mut rows = 0;
    for batch in connection.query(sql, &[])? {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

fn sqlite(mut sqlite: rusqlite::Connection, rows: usize) -> Result<Vec<f64>, Failure> {
    sqlite.execute_batch("CREATE TABLE movies (id INTEGER NOT NULL, name TEXT)")?;
    let (inserted, ()) = seconds(|| {
        let transaction = sqlite.transaction()?;
        {
            let mut insert = transaction.prepare("INSERT INTO movies VALUES (?, ?)")?;
            for id in 1..=rows {
                insert.execute((id as i64, name(id)))?;
            }
        }
        Ok(transaction.commit()?)
    })?;
    let mut numbers = vec![inserted];
    for (what, sql) in STEPS {
        numbers.push(median(RUNS, || {
            let (taken, found) = seconds(|| {
                let mut statement = sqlite.prepare(sql)?;
                let columns = statement.column_count();
                let mut cursor = statement.query([])?;
                let mut found = 0;
                while let Some(row) = cursor.next()? {
                    // Whoever selects wants the values.
                    for at in 0..columns {
                        std::hint::black_box(row.get_ref(at)?);
                    }
                    found += 1;
                }
                Ok(found)
            })?;
            assert_eq!(found, expected(what, rows), "{what}");
            Ok(taken)
        })?);
    }
    Ok(numbers)
}
