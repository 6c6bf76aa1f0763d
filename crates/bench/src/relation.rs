//! The paper's section 7 on the wall clock: MILo-DB's schema and its 18 queries, beside SQLite and SQLCipher.
//!
//! Ours is sealed and bound to a file counter, SQLCipher encrypts and cannot notice an old copy, SQLite does neither. All have an index on
//! every indexed attribute and every foreign key, built after the load, and every query runs to its last row. Then the others are asked
//! once more, with T0 and all that it joins in one table, ours as before. And each query is asked *cold*: of a database that is opened for it, with
//! nothing of its files in the system's cache.

mod figure7;
mod ours;
mod queries;
mod schema;
mod sqlcipher;
mod sqlite;
mod table1;
mod wide;

use std::path::Path;
use std::time::{Duration, Instant};

use counterfoil_bench_figures::machine;
use table1::Query;

use crate::Failure;

/// Rows of T0 unless told otherwise.
pub const ROWS: u64 = figure7::ROWS;
/// Rows that are committed one by one.
const SINGLE: u64 = 500;
/// How often a query runs: the middle one counts.
const RUNS: usize = 5;
/// How long a query is asked for a profiler.
const ALONE: Duration = Duration::from_secs(2);
/// And how often cold.
const RUNS_COLD: usize = 3;

/// What a database took.
#[derive(Clone, Copy, Default)]
pub struct Cost {
    pub seconds: f64,
    /// Bytes handed to the operating system's files.
    pub bytes: f64,
}

/// A database under test.
trait Subject {
    /// The load, indexes, and what it takes to be compact afterwards.
    fn load(&mut self, rows: u64) -> Result<Cost, Failure>;
    /// Rows appended to T0, each in a transaction of its own.
    fn commits(&mut self, rows: u64, count: u64) -> Result<Cost, Failure>;
    /// Statements, one after another.
    fn run(&mut self, statements: &[String]) -> Result<Cost, Failure>;
    /// Seconds that a query takes (the middle of a few runs), and its rows.
    fn query(&mut self, sql: &str) -> Result<(f64, u64), Failure>;
    /// The same from opening the database on, nothing of which is in memory or in the system's cache.
    fn query_cold(&mut self, sql: &str) -> Result<(f64, u64), Failure>;
}

/// Measures and prints the tables.
pub fn run(rows: u64) -> Result<(), Failure> {
    let folder = crate::first::Folder::new()?;
    machine::print();
    println!(
        "ours: sealed, file counter; SQLite {}, in the clear; SQLCipher {}\n",
        rusqlite::version(),
        sqlcipher::version()?
    );
    let mut subjects: [(&str, Box<dyn Subject>); 3] = [
        ("ours", Box::new(ours::Ours::new(&folder)?)),
        ("SQLite", Box::new(sqlite::Sqlite::new(&folder)?)),
        ("SQLCipher", Box::new(sqlcipher::SqlCipher::new(&folder)?)),
    ];
    let mut loads = [Cost::default(); 3];
    for (load, (_, subject)) in loads.iter_mut().zip(&mut subjects) {
        *load = subject.load(rows)?;
    }
    let all: u64 = figure7::TABLES.iter().map(|table| table.rows(rows)).sum();
    println!("{:<34} {:>12} {:>12} {:>12}", format!("{rows} rows in T0, {all} in all"), "ours", "SQLite", "SQLCipher");
    three("bulk load and indexes, s", loads.map(|load| load.seconds), "goal 3 times SQLCipher's speed");
    three("  bytes written a row", loads.map(|load| load.bytes / all as f64), "goal no more than SQLCipher");
    let mut commits = [Cost::default(); 3];
    for (cost, (_, subject)) in commits.iter_mut().zip(&mut subjects) {
        *cost = subject.commits(rows, SINGLE)?;
    }
    three("one row of T0 and commit, us", commits.map(|cost| cost.seconds * 1e6 / SINGLE as f64), "");
    three("  bytes written", commits.map(|cost| cost.bytes / SINGLE as f64), "goal a tenth of SQLCipher's");
    println!();
    ask(&mut subjects, rows, ([queries::sql; 3], Cache::Warm))?;
    println!("\nEach query cold: the database is opened for it, and its files are not in the system's cache");
    ask(&mut subjects, rows, ([queries::sql; 3], Cache::Cold))?;
    println!("\nT0 of SQLite and SQLCipher denormalised: one table of what it joins, every attribute indexed");
    for ((_, subject), load) in subjects[1..].iter_mut().zip(&mut loads[1..]) {
        *load = subject.run(&wide::statements())?;
    }
    three("that table and its indexes, s", loads.map(|load| load.seconds), "ours: the load above");
    three("  bytes written a row of T0", loads.map(|load| load.bytes / rows as f64), "ours: the load above");
    println!();
    ask(&mut subjects, rows, ([queries::sql, wide::sql, wide::sql], Cache::Warm))
}

/// Loads ours and asks some of the queries over and over, so that a profiler sees nothing else for as long.
pub fn ours_alone(rows: u64, names: &[&str]) -> Result<(), Failure> {
    let folder = crate::first::Folder::new()?;
    machine::print();
    let mut ours = ours::Ours::new(&folder)?;
    println!("load: {:.2} s", ours.load(rows)?.seconds);
    for query in table1::all(rows).iter().filter(|query| names.contains(&query.name)) {
        let (begun, mut runs) = (Instant::now(), 0_u32);
        while begun.elapsed() < ALONE {
            ours.query_once(&queries::sql(query))?;
            runs += 1;
        }
        println!("{}: {:.1} us", query.name, begun.elapsed().as_secs_f64() * 1e6 / f64::from(runs));
    }
    Ok(())
}

/// The words of a query, for each database.
type Words = [fn(&Query) -> String; 3];

/// What of a database is in memory when it is asked.
#[derive(Clone, Copy)]
enum Cache {
    Warm,
    Cold,
}

/// Times the 18 queries, each in the words of its database.
fn ask(subjects: &mut [(&str, Box<dyn Subject>); 3], rows: u64, (words, cache): (Words, Cache)) -> Result<(), Failure> {
    println!("{:<10} {:>8} {:>8} {:>12} {:>12} {:>12}   us", "query", "rows", "paper's", "ours", "SQLite", "SQLCipher");
    let mut logs = [0.0; 3];
    let queries = table1::all(rows);
    for query in &queries {
        let Query { name, paper_rows, .. } = query;
        let mut seconds = [0.0; 3];
        let mut counts = [0; 3];
        for (place, (_, subject)) in subjects.iter_mut().enumerate() {
            (seconds[place], counts[place]) = answer(subject.as_mut(), &words[place](query), cache)?;
            logs[place] += f64::ln(seconds[place]);
        }
        if counts.iter().any(|count| *count != counts[0]) {
            return Err(format!("{name}: {counts:?} rows").into());
        }
        let [ours, sqlite, cipher] = seconds.map(|seconds| seconds * 1e6);
        println!("{name:<10} {:>8} {paper_rows:>8} {ours:>12.0} {sqlite:>12.0} {cipher:>12.0}", counts[0]);
    }
    let means = logs.map(|log| (log / queries.len() as f64).exp() * 1e6);
    three("geometric mean, us", means, "goal twice as fast as SQLCipher");
    Ok(())
}

fn answer(subject: &mut dyn Subject, sql: &str, cache: Cache) -> Result<(f64, u64), Failure> {
    match cache {
        Cache::Warm => subject.query(sql),
        Cache::Cold => subject.query_cold(sql),
    }
}

fn three(what: &str, [ours, sqlite, cipher]: [f64; 3], goal: &str) {
    println!("{what:<34} {ours:>12.1} {sqlite:>12.1} {cipher:>12.1}   {:.2} of SQLCipher's; {goal}", ours / cipher);
}

/// Has the system forget what it keeps of a database's files: all whose names begin as its own does.
fn forget(database: &Path) -> Result<(), Failure> {
    let (folder, name) = database.parent().zip(database.file_name()).ok_or("no file")?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(name.as_encoded_bytes()) || !entry.file_type()?.is_file() {
            continue;
        }
        let file = std::fs::File::open(entry.path())?;
        // What is not on the disk yet would stay.
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

/// Bytes that a process has handed to files so far.
fn written(process: u32) -> Result<f64, Failure> {
    let counts = std::fs::read_to_string(format!("/proc/{process}/io"))?;
    let line = counts.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(line.ok_or("no count of bytes written")?.trim().parse()?)
}
