//! The first database beside SQLite: import, filtered scan, durable single-row commits, opening after a kill.
//!
//! Ours is sealed with AES-256-GCM-SIV and bound to a file counter; SQLite runs in WAL mode with `synchronous = FULL`,
//! in the clear.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use counterfoil::{Counter, Database, Key, Options};
use counterfoil_bench_figures::machine;

use crate::stopwatch::{line, median, seconds};
use crate::{Failure, flights};

/// Hidden words that make this program a writer which is killed.
pub const WRITER: &str = "write-until-killed";
pub const SQLITE_WRITER: &str = "sqlite-write-until-killed";

const COMMITS: u32 = 3000;
const QUESTION: &str = "SELECT count(*), sum(distance) FROM flights WHERE dep_delay > 30 AND distance < 1500";

pub struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    pub fn new() -> Result<Folder, Failure> {
        let folder = tempfile::tempdir_in(".")?;
        std::fs::write(folder.path().join("key"), Key::generate()?.to_hex().ok_or("a key without bytes")?.as_bytes())?;
        Ok(Folder { folder })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn options(&self, name: &str) -> Result<Options, Failure> {
        options(&self.path(name), &self.path("key"))
    }

    pub fn sqlite(&self, name: &str) -> Result<rusqlite::Connection, Failure> {
        sqlite(&self.path(name))
    }
}

fn options(database: &Path, key: &Path) -> Result<Options, Failure> {
    let state = database.with_file_name("state");
    Ok(Options::path(database).key(Key::from_file(key)?).counter(Counter::File(state)))
}

pub fn sqlite(path: &Path) -> Result<rusqlite::Connection, Failure> {
    let connection = rusqlite::Connection::open(path)?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")?;
    Ok(connection)
}

/// Measures and prints the table. Without a file of flights the sample of January is taken.
pub fn run(file: Option<PathBuf>) -> Result<(), Failure> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/nycflights13/flights-2013-01.csv.gz");
    let file = file.unwrap_or(sample);
    let folder = Folder::new()?;
    machine::print();
    println!("ours: sealed, file counter; peer: SQLite {}, WAL, FULL, in the clear\n", rusqlite::version());
    println!("{:<44} {:>12} {:>12} {:>8}", "", "ours", "SQLite", "ratio");
    let rows = import(&folder, &file)?;
    scan(&folder, rows)?;
    commits(&folder)?;
    opening(&folder)
}

/// The program, which stands beside this one.
pub fn program() -> Result<PathBuf, Failure> {
    let beside = std::env::current_exe()?.with_file_name("counterfoil");
    if beside.exists() { Ok(beside) } else { Err(format!("{} is not built", beside.display()).into()) }
}

fn import(folder: &Folder, file: &Path) -> Result<u64, Failure> {
    drop(Database::create(folder.options("flights.db")?)?);
    let (ours, ()) = seconds(|| {
        let status = Command::new(program()?)
            .args(["import", "--quiet", "--create", "--null", "NA", "--key-file"])
            .arg(folder.path("key"))
            .arg(folder.path("flights.db"))
            .arg("flights")
            .arg(file)
            .env("COUNTERFOIL_STATE_DIR", folder.path("state"))
            .status()?;
        if status.success() { Ok(()) } else { Err("the import failed".into()) }
    })?;
    let mut connection = folder.sqlite("flights.sqlite")?;
    let (theirs, rows) = seconds(|| flights::import_into_sqlite(&mut connection, file))?;
    let rate = rows as f64;
    line("import of a CSV file, one transaction", "rows/s", rate / ours, rate / theirs, "goal 150,000 rows/s");
    Ok(rows)
}

fn scan(folder: &Folder, rows: u64) -> Result<(), Failure> {
    let database = Database::open(folder.options("flights.db")?)?;
    let mut connection = database.connect()?;
    let mut ask = || -> Result<f64, Failure> {
        let (seconds, ()) = seconds(|| {
            for batch in connection.query(QUESTION, &[])? {
                batch?;
            }
            Ok(())
        })?;
        Ok(seconds)
    };
    let first = ask()?;
    let ours = median(7, ask)?;
    let sqlite = folder.sqlite("flights.sqlite")?;
    let theirs = median(7, || {
        let (seconds, _) = seconds(|| Ok(sqlite.query_row(QUESTION, [], |row| row.get::<_, i64>(0))?))?;
        Ok(seconds)
    })?;
    let rows = rows as f64;
    line("filtered scan, two of 19 columns", "rows/s", rows / ours, rows / theirs, "goal 3,000,000 rows/s");
    line("  the first time after opening", "rows/s", rows / first, rows / theirs, "");
    Ok(())
}

fn commits(folder: &Folder) -> Result<(), Failure> {
    let database = Database::create(folder.options("commits.db")?)?;
    let mut connection = database.connect()?;
    connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT)", &[])?;
    let sqlite = folder.sqlite("commits.sqlite")?;
    sqlite.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT)")?;
    let mut next = 0i64;
    let mut theirs_next = 0i64;
    // In turns, so that both see the same disk.
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        ours.push(
            seconds(|| {
                let mut insert = connection.prepare("INSERT INTO t VALUES ($1, $2)")?;
                for _ in 0..COMMITS / 5 {
                    insert.execute(&[next.into(), "a note of some length, as notes are".into()])?;
                    next += 1;
                }
                Ok(())
            })?
            .0,
        );
        theirs.push(
            seconds(|| {
                let mut insert = sqlite.prepare("INSERT INTO t VALUES (?, ?)")?;
                for _ in 0..COMMITS / 5 {
                    insert.execute((theirs_next, "a note of some length, as notes are"))?;
                    theirs_next += 1;
                }
                Ok(())
            })?
            .0,
        );
    }
    let rate = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        f64::from(COMMITS / 5) / times[times.len() / 2]
    };
    line("durable commits of one row", "commits/s", rate(&mut ours), rate(&mut theirs), "goal ratio 0.70");
    Ok(())
}

/// Opening, with a first question, after the writer was killed in the middle of its commits.
fn opening(folder: &Folder) -> Result<(), Failure> {
    drop(Database::create(folder.options("killed.db")?)?);
    let (database, key) = (folder.path("killed.db"), folder.path("key"));
    let peer = folder.path("killed.sqlite");
    kill(Command::new(std::env::current_exe()?).arg(WRITER).args([&database, &key]))?;
    kill(Command::new(std::env::current_exe()?).arg(SQLITE_WRITER).arg(&peer))?;
    let (ours, ()) = seconds(|| {
        let database = Database::open(folder.options("killed.db")?)?;
        let mut connection = database.connect()?;
        for batch in connection.query("SELECT max(id) FROM t", &[])? {
            batch?;
        }
        connection.execute("INSERT INTO t VALUES (-1, 'back')", &[])?;
        Ok(())
    })?;
    let (theirs, ()) = seconds(|| {
        let connection = sqlite(&peer)?;
        connection.query_row("SELECT max(id) FROM t", [], |row| row.get::<_, i64>(0))?;
        connection.execute("INSERT INTO t VALUES (-1, 'back')", [])?;
        Ok(())
    })?;
    line("opening after a kill, one read, one write", "us", ours * 1e6, theirs * 1e6, "goal below 100,000 us");
    Ok(())
}

fn kill(command: &mut Command) -> Result<(), Failure> {
    let mut child = command.stdout(Stdio::null()).spawn()?;
    std::thread::sleep(Duration::from_secs(3));
    child.kill()?;
    child.wait()?;
    Ok(())
}

/// Commits row after row until somebody kills it.
pub fn write_until_killed(database: &Path, key: &Path) -> Result<(), Failure> {
    let database = Database::open(options(database, key)?)?;
    let mut connection = database.connect()?;
    connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, note TEXT)", &[])?;
    let mut insert = connection.prepare("INSERT INTO t VALUES ($1, $2)")?;
    for id in 0i64.. {
        insert.execute(&[id.into(), "a note".into()])?;
    }
    Ok(())
}

/// The same for the peer.
pub fn sqlite_write_until_killed(database: &Path) -> Result<(), Failure> {
    let connection = sqlite(database)?;
    connection.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT)")?;
    let mut insert = connection.prepare("INSERT INTO t VALUES (?, ?)")?;
    for id in 0i64.. {
        insert.execute((id, "a note"))?;
    }
    Ok(())
}
