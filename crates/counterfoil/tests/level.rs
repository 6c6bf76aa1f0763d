//! What statements take of memory with `ram` of 64 KB, SQL and its library included, counted by the allocator: as much for many rows as
//! for few. What others take would be counted too: so the test runs itself once more, in a process of its own.
//!
//! What one transaction has changed comes on top (docs/relations.md): 12 bytes for a deleted row, 16 for an updated one.

use std::process::Command;

use counterfoil::{Connection, Counter, Database, Key, Options, Outcome};
use counterfoil_vault::witness;

use crate::MEMORY;

/// Said to the process that is alone.
const ALONE: &str = "COUNTERFOIL_ALONE";
const RAM_BYTES: u64 = 64 << 10;
/// What a thousand rows more may take.
const PER_THOUSAND_ROWS: usize = 1500;
/// What a row that one transaction changes may take beside that, at most.
const CHANGED_ROW: usize = 32;
/// By how much one run of a statement differs from another.
const NOISE: usize = 512 << 10;
/// What the fewer rows may take: the library's plans and batches are no matter of the bound.
const MOST: usize = 640 << 10;
/// What they may where the library filters rows, or puts them beside each other in a join: it takes blocks of a mebibyte for each column of
/// texts.
const MOST_WITH_BLOCKS: usize = 5 << 20;

/// Statements, and of how many in a hundred rows they change.
const STATEMENTS: [(&str, usize); 18] = [
    (
        "INSERT INTO t SELECT i, i % 1000, 'row ' || i || repeat('.', 90), i * 0.5 FROM generate_series(1, ROWS) AS s(i)",
        0,
    ),
    ("INSERT INTO u SELECT id, id, a, b FROM t", 0),
    ("SELECT sum(a), avg(c), max(b) FROM t", 0),
    ("SELECT count(DISTINCT b) FROM t", 0),
    ("SELECT id, b FROM t ORDER BY c DESC, b", 0),
    ("SELECT a % 7, count(*), min(b) FROM t GROUP BY 1 ORDER BY 1", 0),
    ("SELECT b, count(*) FROM t GROUP BY b HAVING count(*) > 1", 0),
    ("SELECT count(*) FROM t JOIN u ON t.b = u.b", 0),
    ("SELECT t.b, u.b FROM u JOIN t ON u.t = t.id WHERE t.a < 500 ORDER BY u.b", 0),
    ("SELECT count(*) FROM (SELECT b FROM t EXCEPT SELECT b FROM u WHERE id % 2 = 0) AS left_over", 0),
    ("SELECT count(*) FROM t WHERE id NOT IN (SELECT id FROM u WHERE a < 900)", 0),
    ("SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY b) AS n FROM t) AS numbered", 0),
    ("SELECT count(n) FROM (SELECT lag(b) OVER (ORDER BY id) AS n FROM t) AS numbered", 0),
    ("CREATE INDEX t_b ON t (b)", 0),
    ("SELECT count(*) FROM t WHERE b LIKE 'row 1%'", 0),
    ("UPDATE t SET a = a + 1 WHERE id % 3 = 0", 34),
    ("DELETE FROM u WHERE id % 5 = 0", 20),
    ("VACUUM", 0),
];

fn is_full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

/// Runs a statement, row by row; the most that was taken beside what there was.
fn peak(connection: &mut Connection, sql: &str) -> usize {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    for outcome in connection.run(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")) {
        if let Outcome::Rows(batches) = outcome {
            batches.for_each(|batch| drop(batch.unwrap_or_else(|error| panic!("{sql}: {error}"))));
        }
    }
    MEMORY.peak_usage() - before
}

/// What each of the statements takes over so many rows.
fn peaks(rows: usize) -> Vec<usize> {
    let folder = tempfile::tempdir().expect("a folder");
    witness::reset();
    // What tidies up in the background would be counted with whatever runs; VACUUM does the same.
    let options = Options::path(folder.path().join("db")).key(Key::bytes(&[7; 32])).counter(Counter::None);
    let options = options.ram(RAM_BYTES).reorganize(false);
    let database = Database::create(options).expect("a database");
    let mut connection = database.connect().expect("a connection");
    let tables = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT, c DOUBLE PRECISION); \
                  CREATE TABLE u (id INT PRIMARY KEY, t INT REFERENCES t, a INT, b TEXT)";
    peak(&mut connection, tables);
    STATEMENTS.iter().map(|(sql, _)| peak(&mut connection, &sql.replace("ROWS", &rows.to_string()))).collect()
}

#[test]
fn statements_over_many_rows_take_no_more_memory_than_over_few() {
    if std::env::var_os(ALONE).is_some() {
        return compare();
    }
    let own = std::env::current_exe().expect("this program");
    let name = "level::statements_over_many_rows_take_no_more_memory_than_over_few";
    let told = Command::new(own).args(["--exact", name, "--nocapture"]).env(ALONE, "yes").output().expect("it runs");
    let (said, faults) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    println!("{said}");
    assert!(told.status.success() && said.contains("VACUUM"), "{faults}");
}

fn compare() {
    let (few, many) = if is_full() { (50_000, 1_000_000) } else { (10_000, 80_000) };
    // It remembers each pair that is sealed with, which is a matter of these tests.
    let seals = if is_full() { 20 << 20 } else { 3 << 19 };
    witness::reserve(seals);
    peaks(1000);
    let (of_few, of_many) = (peaks(few), peaks(many));
    assert!(witness::distinct() < seals, "{} seals", witness::distinct());
    println!("KiB at the most, over {few} rows and over {many}");
    let mut wrong = Vec::new();
    for (((sql, changed), few_bytes), many_bytes) in STATEMENTS.iter().zip(&of_few).zip(&of_many) {
        println!("{:>8}{:>8}  {sql}", few_bytes >> 10, many_bytes >> 10);
        let more = (many - few) / 1000 * PER_THOUSAND_ROWS + many * changed / 100 * CHANGED_ROW;
        let has_blocks = sql.contains("EXCEPT") || sql.starts_with("UPDATE");
        let most = if has_blocks { MOST_WITH_BLOCKS } else { MOST };
        if *many_bytes > few_bytes + more + NOISE || *few_bytes > most {
            wrong.push(sql);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
