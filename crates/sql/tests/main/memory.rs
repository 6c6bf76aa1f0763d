//! Queries over sets from far below to far above the bound of working memory.

use counterfoil_sql::{EngineOptions, MEMORY_BYTES_MIN, Spill};

use crate::database::{Database, is_full};

const PARTS: usize = 2;
const OUTGROWN: &str = "error: the query needs more working memory than it may take";

fn bounded(folder: &std::path::Path) -> Database {
    let spill = Spill { folder: folder.to_owned(), bytes_max: 4 << 30 };
    let memory_bytes = PARTS * MEMORY_BYTES_MIN;
    Database::with_options(EngineOptions { memory_bytes, parallelism: PARTS, spill: Some(spill), ..Default::default() })
}

/// Rows whose `b` has `32 + width` bytes.
fn fill(database: &mut Database, rows: usize, width: usize) {
    database.ask("DROP TABLE IF EXISTS t");
    let sql = format!(
        "CREATE TABLE t AS SELECT i * 7919 % {rows} AS a, CAST(i % 1000 AS NUMERIC(10,2)) AS n, \
         md5(i::text) || repeat('x', {width}) AS b FROM generate_series(1, {rows}) s(i)"
    );
    assert_eq!(database.ask(&sql), format!("SELECT {rows}"));
}

/// Reads all rows of a sort and compares neighbours.
fn sorts(database: &mut Database, rows: usize, sql: &str) {
    let answer = database.ask(sql);
    assert_eq!(answer.lines().count(), rows, "{sql}: {}", answer.lines().last().unwrap_or_default());
    assert!(answer.lines().is_sorted(), "{sql}");
}

fn groups(database: &mut Database, rows: usize) {
    let counted = |count: usize| count.to_string();
    for (sql, expected) in [
        ("SELECT count(*) FROM (SELECT DISTINCT b, a FROM t)", counted(rows)),
        ("SELECT count(*) FROM (SELECT b, sum(a), max(b), avg(n) FROM t GROUP BY b)", counted(rows)),
        ("SELECT count(*), sum(c) FROM (SELECT a, count(DISTINCT b) c FROM t GROUP BY a)", format!("{rows}|{rows}")),
        ("SELECT count(*) FROM (SELECT b FROM t UNION SELECT b || 'y' FROM t)", counted(2 * rows)),
        ("SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY b) r FROM t)", counted(rows)),
    ] {
        assert_eq!(database.ask(sql), expected, "{rows} rows: {sql}");
    }
}

/// Joins, and windows whose sorters all run at once, are answered, or refused in words: whether the parts of a window find room
/// beside each other depends on which comes first. Says how many were refused.
fn joins(database: &mut Database, rows: usize) -> usize {
    let queries = [
        "SELECT count(*) FROM t JOIN t u ON t.b = u.b",
        "SELECT count(*) FROM t LEFT JOIN t u ON t.a = u.a AND t.b = u.b",
        "SELECT count(*) FROM t WHERE b IN (SELECT b FROM t)",
        "SELECT count(r) FROM (SELECT row_number() OVER (PARTITION BY n ORDER BY b) r FROM t)",
    ];
    let answers = queries.map(|sql| database.ask(sql));
    for (sql, answer) in queries.iter().zip(&answers) {
        assert!(*answer == rows.to_string() || answer.starts_with(OUTGROWN), "{rows} rows: {sql}: {answer}");
    }
    answers.iter().filter(|answer| answer.starts_with(OUTGROWN)).count()
}

#[test]
fn sorts_and_groups_end_well_at_any_size_and_joins_in_an_answer_or_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let mut database = bounded(folder.path());
    let mut refused = 0;
    let sizes = [(1_000, 20), (100_000, 20), (3_000, 2_000), (40_000, 2_000), (200_000, 20), (350_000, 20)];
    for (rows, width) in sizes.into_iter().take(if is_full() { 6 } else { 4 }) {
        fill(&mut database, rows, width);
        groups(&mut database, rows);
        refused += joins(&mut database, rows);
        sorts(&mut database, rows, "SELECT b FROM t ORDER BY b");
        sorts(&mut database, rows, "SELECT b, a, n FROM t ORDER BY b, n, a DESC");
    }
    assert!(refused > 0, "the largest sets do not fit");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The query library would ask the system for all of it at once, and the process would end.
#[test]
fn answers_that_would_take_all_memory_are_refused() {
    let mut database = Database::new();
    for sql in [
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(lpad('x', 2147483647, 'ab'))",
        "SELECT length(rpad('x', 2147483647))",
        "SELECT length(lpad('x', 9223372036854775807, 'ä'))",
        "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 1000)))",
        "SELECT max(length(repeat(v::text, 100000))) FROM generate_series(1, 100000) AS s(v)",
        "SELECT max(length(lpad(v::text, 100000, 'ä'))) FROM generate_series(1, 100000) AS s(v)",
    ] {
        let answer = database.ask(sql);
        assert!(
            answer.starts_with("error: ") && answer.ends_with(" would answer more than 256 MiB at once"),
            "{answer}"
        );
    }
    database.expect(&[
        (
            "SELECT length(repeat('x', 1000000)), repeat('ab', 2), repeat('ab', -1), repeat(NULL, 3)",
            "1000000|abab||NULL",
        ),
        (
            "SELECT length(replace(repeat('x', 1000000), 'z', repeat('y', 1000))), replace('abab', 'b', 'é')",
            "1000000|aéaé",
        ),
        ("SELECT lpad('a', 3, 'é'), rpad('abc', 2), lpad('a', 2)", "ééa|ab| a"),
        ("SELECT replace('abc', '', 'x'), length(replace(repeat('x', 100000), 'x', 'yy'))", "abc|200000"),
    ]);
}

/// The query library would make room for as many groups as the LIMIT says, before it has seen a row.
#[test]
fn a_limit_lets_go_of_groups_that_are_not_a_number() {
    let mut database = Database::after("CREATE TABLE n (i INTEGER, d DOUBLE PRECISION, r REAL)");
    database.expect(&[
        ("INSERT INTO n VALUES (1, 'NaN'::DOUBLE PRECISION, 'NaN'::REAL), (2, 5, 5)", "INSERT 2"),
        ("INSERT INTO n SELECT 9, i, i FROM generate_series(1, 100) AS i", "INSERT 100"),
        ("SELECT count(*) FROM (SELECT DISTINCT d FROM n ORDER BY d LIMIT 2) q", "2"),
        ("SELECT count(*) FROM (SELECT r, max(i) AS m FROM n GROUP BY r ORDER BY m DESC LIMIT 2) q", "2"),
    ]);
}

#[test]
fn a_limit_far_away_takes_no_more_memory_than_the_groups_there_are() {
    let mut database = Database::new();
    for limit in ["9223372036854775807", "1844674407370955161", "5000000000"] {
        for (sql, expected) in [
            ("SELECT DISTINCT v % 3 AS g FROM generate_series(1, 9) s(v) ORDER BY g DESC", "2\n1\n0"),
            ("SELECT v % 3, max(v) FROM generate_series(1, 9) s(v) GROUP BY 1 ORDER BY max(v)", "1|7\n2|8\n0|9"),
            (
                "SELECT (v % 2)::text AS g, min(v) FROM generate_series(1, 9) s(v) GROUP BY g ORDER BY 2 DESC",
                "0|2\n1|1",
            ),
        ] {
            assert_eq!(database.ask(&format!("{sql} LIMIT {limit}")), expected, "{sql} LIMIT {limit}");
        }
    }
}
