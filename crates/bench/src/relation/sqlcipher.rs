//! SQLCipher, through its own program: the library cannot stand beside SQLite's in one process.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use super::figure7::{Row, TABLES};
use super::{Cost, RUNS, RUNS_COLD, Subject, forget, written};
use crate::Failure;
use crate::first::Folder;
use crate::stopwatch::median;

/// Comes back when all before it is done.
const DONE: &str = "counterfoil-bench-done";

/// The program, told what to do line by line.
pub struct SqlCipher {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    path: PathBuf,
    csv: PathBuf,
}

/// Its version.
pub fn version() -> Result<String, Failure> {
    let missing = "sqlcipher is not there: apt-get install sqlcipher";
    let output = Command::new("sqlcipher").args([":memory:", "PRAGMA cipher_version"]).output().map_err(|_| missing)?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

impl SqlCipher {
    pub fn new(folder: &Folder) -> Result<Self, Failure> {
        let mut cipher = SqlCipher::started(folder.path("paper.sqlcipher"), folder.path("table.csv"))?;
        cipher.open()?;
        Ok(cipher)
    }

    /// The program, before it has opened anything.
    fn started(path: PathBuf, csv: PathBuf) -> Result<Self, Failure> {
        let mut child = Command::new("sqlcipher").arg(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().ok_or("no way in")?;
        let output = BufReader::new(child.stdout.take().ok_or("no way out")?);
        Ok(SqlCipher { child, input, output, path, csv })
    }

    fn open(&mut self) -> Result<(), Failure> {
        // A raw key: deriving one from a passphrase is not what is measured.
        let key = "ab".repeat(32);
        let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536";
        self.tell(&format!("PRAGMA key = \"x'{key}'\"; {settings}; PRAGMA foreign_keys = ON;")).map(drop)
    }

    /// Runs some lines to their end; what they printed, line by line.
    fn tell(&mut self, lines: &str) -> Result<Vec<String>, Failure> {
        writeln!(self.input, "{lines}\n.print {DONE}")?;
        self.input.flush()?;
        let mut printed = Vec::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("sqlcipher has ended".into());
            }
            if line.trim_end() == DONE {
                return Ok(printed);
            }
            printed.push(line);
        }
    }

    /// The same, and what it cost.
    fn cost(&mut self, lines: &str) -> Result<Cost, Failure> {
        let before = written(self.child.id())?;
        let begun = Instant::now();
        self.tell(lines)?;
        Ok(Cost { seconds: begun.elapsed().as_secs_f64(), bytes: written(self.child.id())? - before })
    }
}

fn line(row: &Row) -> String {
    let references: String = row.references.iter().map(|reference| format!("{reference},")).collect();
    format!("{},{references}{},{}\n", row.id, row.values.join(","), row.a1)
}

impl Subject for SqlCipher {
    fn load(&mut self, rows: u64) -> Result<Cost, Failure> {
        let mut total = Cost::default();
        let mut add = |cost: Cost| {
            total = Cost { seconds: total.seconds + cost.seconds, bytes: total.bytes + cost.bytes };
        };
        for table in &TABLES {
            let text: String = (0..table.rows(rows)).map(|id| line(&table.row(id, rows))).collect();
            std::fs::write(&self.csv, text)?;
            let csv = self.csv.display().to_string();
            add(self.cost(&format!("{};\n.mode csv\n.import {csv} {}\n.mode list", table.create(), table.name))?);
        }
        for index in TABLES.iter().flat_map(|table| table.indexes(true)) {
            add(self.cost(&format!("{index};"))?);
        }
        add(self.cost("PRAGMA wal_checkpoint(TRUNCATE); ANALYZE;")?);
        Ok(total)
    }

    fn commits(&mut self, rows: u64, count: u64) -> Result<Cost, Failure> {
        let table = &TABLES[TABLES.len() - 1];
        let insert = |id| {
            let row = table.row(id, rows);
            let references: String = row.references.iter().map(|reference| format!("{reference}, ")).collect();
            format!(
                "INSERT INTO {} VALUES ({}, {references}'{}', '{}');\n",
                table.name,
                row.id,
                row.values.join("', '"),
                row.a1
            )
        };
        self.cost(&(rows..rows + count).map(insert).collect::<String>())
    }

    fn run(&mut self, statements: &[String]) -> Result<Cost, Failure> {
        self.cost(&format!("{};", statements.join(";\n")))
    }

    fn query(&mut self, sql: &str) -> Result<(f64, u64), Failure> {
        let rows = self.count(sql)?;
        let summed = summed(sql)?;
        let once = self.cost(&summed)?.seconds;
        // A few at once where the pipe between us would count.
        let times = (0.05 / once).clamp(1.0, 200.0) as usize;
        let several = summed.repeat(times);
        let seconds = median(RUNS, || Ok(self.cost(&several)?.seconds / times as f64))?;
        Ok((seconds, rows))
    }

    fn query_cold(&mut self, sql: &str) -> Result<(f64, u64), Failure> {
        let (rows, summed) = (self.count(sql)?, summed(sql)?);
        let seconds = median(RUNS_COLD, || {
            self.end();
            forget(&self.path)?;
            // That the program starts is not what is measured.
            *self = SqlCipher::started(self.path.clone(), self.csv.clone())?;
            self.tell("")?;
            let begun = Instant::now();
            self.open()?;
            self.tell(&summed)?;
            Ok(begun.elapsed().as_secs_f64())
        })?;
        Ok((seconds, rows))
    }
}

impl SqlCipher {
    fn count(&mut self, sql: &str) -> Result<u64, Failure> {
        Ok(self.tell(&format!("SELECT count(*) FROM ({sql});"))?.first().ok_or("no count")?.trim().parse()?)
    }

    fn end(&mut self) {
        // Whatever it says: it is not asked again.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The same query with every value read, and none printed.
fn summed(sql: &str) -> Result<String, Failure> {
    let (shown, from) = sql[7..].split_once(" FROM ").ok_or("no query")?;
    let lengths: Vec<String> = shown.split(", ").map(|column| format!("length({column})")).collect();
    Ok(format!("SELECT sum({}) FROM {from};\n", lengths.join(" + ")))
}

impl Drop for SqlCipher {
    fn drop(&mut self) {
        self.end();
    }
}
