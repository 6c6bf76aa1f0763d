//! Tables, rows and queries.

use counterfoil_sql::{Outcome, Session, Value};

use crate::database::{Database, ask};

#[test]
fn a_table_is_made_filled_and_read() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE birds (name TEXT PRIMARY KEY, wings INTEGER, weight DOUBLE PRECISION)", "CREATE TABLE"),
        ("INSERT INTO birds VALUES ('wren', 2, 9.5), ('kiwi', 0, NULL)", "INSERT 2"),
        ("SELECT name, wings FROM birds ORDER BY name", "kiwi|0\nwren|2"),
        ("SELECT count(*), sum(wings), avg(weight) FROM birds", "2|2|9.5"),
        ("SELECT name FROM birds WHERE weight IS NULL", "kiwi"),
        ("SELECT Name FROM BIRDS WHERE wings = 2", "wren"),
        ("SELECT * FROM birds WHERE name = 'wren'", "wren|2|9.5"),
        ("SELECT nothing FROM birds", "error: no column nothing (there are name, wings, weight)"),
        ("SELECT * FROM nowhere", "error: table 'nowhere' not found"),
        ("DROP TABLE birds", "DROP TABLE"),
        ("DROP TABLE birds", "error: no table birds"),
        ("DROP TABLE IF EXISTS birds", "DROP TABLE"),
    ]);
}

#[test]
fn every_type_keeps_its_values() {
    let mut database = Database::new();
    database.expect(&[
        (
            "CREATE TABLE t (b BOOLEAN, s SMALLINT, i INTEGER, l BIGINT, r REAL, d DOUBLE PRECISION, n NUMERIC(10,2), \
             x TEXT, v VARCHAR(5), c CHAR(4), y BYTEA, a DATE, h TIME, p TIMESTAMP, q TIMESTAMP(9), z TIMESTAMPTZ, u UUID)",
            "CREATE TABLE",
        ),
        (
            "INSERT INTO t VALUES (true, -5, 100000, 9000000000, 1.5, 0.1, 12345.678, 'a text that is longer than twelve', \
             'short', 'ab', '\\xdeadbeef', '2024-02-29', '12:34:56.789', '2024-02-29T12:34:56Z', \
             '2024-02-29 12:34:56.123456789', '2024-02-29 12:34:56+02', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')",
            "INSERT 1",
        ),
        ("INSERT INTO t (b) VALUES (NULL)", "INSERT 1"),
        (
            "SELECT * FROM t WHERE b",
            "true|-5|100000|9000000000|1.5|0.1|12345.68|a text that is longer than twelve|short|ab|\\xdeadbeef|2024-02-29|\
             12:34:56.789|2024-02-29 12:34:56|2024-02-29 12:34:56.123456789|2024-02-29 10:34:56+00|\
             a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ),
        ("SELECT count(*) FROM t WHERE x IS NULL AND u IS NULL AND n IS NULL", "1"),
        ("SELECT i FROM t WHERE u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "100000"),
        ("SELECT i FROM t WHERE p = '2024-02-29 12:34:56' AND a = '2024-02-29'", "100000"),
        ("SELECT i FROM t WHERE n = 12345.68 AND d = 0.1 AND l > 5", "100000"),
        ("SELECT i FROM t WHERE c = 'ab' AND v LIKE 'sh%'", "100000"),
        ("INSERT INTO t (s) VALUES (40000)", "error: an integer is out of range (column s, smallint)"),
        ("INSERT INTO t (i) VALUES (3000000000)", "error: an integer is out of range (column i, integer)"),
        ("INSERT INTO t (v) VALUES ('too long')", "error: a text is too long (column v, character varying(5))"),
        ("INSERT INTO t (n) VALUES (123456789)", "error: an integer is out of range (column n, numeric(10,2))"),
        ("INSERT INTO t (a) VALUES ('yesterday')", "error: a text is not a valid date (column a)"),
        ("INSERT INTO t (u) VALUES ('x')", "error: a text is not a valid uuid (column u)"),
        ("INSERT INTO t (b) VALUES (1)", "error: an integer cannot be stored in column b (boolean): cast it"),
        ("CREATE TABLE j (x JSON)", "error: not supported: type JSON"),
    ]);
}

#[test]
fn a_char_that_lies_in_the_row_is_a_text_like_any_other() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, c CHAR(20), x TEXT)", "CREATE TABLE"),
        ("INSERT INTO t VALUES (1, 'short', 'a long text in the heap'), (2, 'fifteen letters', 'b')", "INSERT 2"),
        ("INSERT INTO t VALUES (3, 'zw\u{f6}lf gro\u{df}e L\u{f6}wen \u{e4}\u{e4}', NULL), (4, NULL, 'another long text')", "INSERT 2"),
        ("SELECT id, c, x FROM t WHERE id < 3 ORDER BY id", "1|short|a long text in the heap\n2|fifteen letters|b"),
        ("SELECT c, x FROM t WHERE id > 2 ORDER BY id", "zw\u{f6}lf gro\u{df}e L\u{f6}wen \u{e4}\u{e4}|NULL\nNULL|another long text"),
        ("SELECT id FROM t WHERE c = 'fifteen letters'", "2"),
        ("SELECT max(c), min(c), count(DISTINCT c) FROM t", "zw\u{f6}lf gro\u{df}e L\u{f6}wen \u{e4}\u{e4}|fifteen letters|3"),
        ("UPDATE t SET c = 'exactly twenty here!' WHERE id = 3", "UPDATE 1"),
        ("SELECT upper(c) || x FROM t WHERE c LIKE '%letters' OR id = 1 ORDER BY id", "SHORTa long text in the heap\nFIFTEEN LETTERSb"),
        ("SELECT c FROM t WHERE id = 3", "exactly twenty here!"),
    ]);
}

#[test]
fn parameters_stand_for_values() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER, b TEXT, c TIMESTAMP)");
    let values = [Value::Integer(1), Value::from("one"), Value::Timestamp(1_000_000_000)];
    assert_eq!(ask(&mut database.session, "INSERT INTO t VALUES ($1, $2, $3)", &values), "INSERT 1");
    let query = "SELECT b, c FROM t WHERE a = $1 AND b = $2 AND c = $3";
    assert_eq!(ask(&mut database.session, query, &values), "one|1970-01-01 00:00:01");
    assert_eq!(ask(&mut database.session, "SELECT $1 + 1, $2 LIMIT $1", &values), "2|one");
    assert_eq!(
        ask(&mut database.session, "SELECT $4", &values),
        "error: the statement wants parameter $4, and 3 were given"
    );
    assert_eq!(database.session.prepare(query).unwrap(), 3);
    assert_eq!(ask(&mut database.session, "UPDATE t SET b = $2 WHERE a = $1", &[1.into(), "two".into()]), "UPDATE 1");
    assert_eq!(ask(&mut database.session, "DELETE FROM t WHERE b = $1", &["two".into()]), "DELETE 1");
}

#[test]
fn many_rows_are_scanned_in_parts_and_streamed() {
    let mut database = Database::after("CREATE TABLE t (id BIGINT PRIMARY KEY, half BIGINT, label TEXT)");
    database.expect(&[
        (
            "INSERT INTO t SELECT value, value / 2, 'label number ' || value FROM generate_series(1, 100000) AS g(value)",
            "INSERT 100000",
        ),
        ("SELECT count(*), min(id), max(id), sum(half) FROM t", "100000|1|100000|2500000000"),
        ("SELECT label FROM t WHERE id = 77777", "label number 77777"),
        ("SELECT count(*) FROM t WHERE half = 500", "2"),
        ("SELECT count(*) FROM t WHERE id BETWEEN 10 AND 19 OR id IN (5, 6, 200000)", "12"),
        ("SELECT id FROM t ORDER BY id DESC LIMIT 2 OFFSET 1", "99999\n99998"),
        ("SELECT count(*) FROM t a JOIN t b ON a.id = b.half", "99999"),
    ]);
    let Outcome::Rows(mut rows) = database.session.run_one("SELECT * FROM t", &[]).unwrap() else { panic!("rows") };
    assert!(rows.next().unwrap().unwrap().num_rows() > 0);
    drop(rows);
    assert_eq!(database.ask("SELECT count(*) FROM t WHERE label LIKE '%99'"), "1000");
}

#[test]
fn an_interrupt_ends_a_query() {
    let mut database = Database::new();
    let interrupt = database.session.interrupt();
    let waiter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        interrupt.raise();
    });
    let sql = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";
    assert_eq!(database.ask(sql), "error: interrupted");
    waiter.join().unwrap();
    assert_eq!(database.ask("SELECT 1"), "1");
}

#[test]
fn a_query_that_outgrows_its_memory_ends_in_an_error() {
    let options = counterfoil_sql::EngineOptions { memory_bytes: 1 << 20, parallelism: 1, ..Default::default() };
    let mut database = Database::with_options(options);
    let sql = "SELECT value FROM generate_series(1, 3000000) AS g(value) ORDER BY value DESC";
    assert!(database.ask(sql).starts_with("error: the query needs more working memory"), "{}", database.ask(sql));
}

#[test]
fn with_a_folder_to_spill_to_it_ends_well_and_leaves_nothing_there() {
    let folder = tempfile::tempdir().unwrap();
    let spill = counterfoil_sql::Spill { folder: folder.path().to_owned(), bytes_max: 1 << 30 };
    let options = counterfoil_sql::EngineOptions {
        memory_bytes: 24 << 20,
        parallelism: 1,
        spill: Some(spill),
        ..Default::default()
    };
    let mut database = Database::with_options(options);
    let sql = "SELECT min(value), max(place) FROM (SELECT value, row_number() OVER (ORDER BY value DESC) AS place \
               FROM generate_series(1, 3000000) AS g(value)) AS numbered";
    assert_eq!(database.ask(sql), "1|3000000");
    let plan =
        database.ask("EXPLAIN ANALYZE SELECT value FROM generate_series(1, 3000000) AS g(value) ORDER BY value DESC");
    assert!(plan.contains("spill_count=") && !plan.contains("spill_count=0,"), "{plan}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn default_values_and_identity_fill_what_is_left_out() {
    let mut database = Database::new();
    database.expect(&[
        (
            "CREATE TABLE t (id INTEGER GENERATED ALWAYS AS IDENTITY, a INTEGER DEFAULT 7, b TEXT DEFAULT upper('x'), c DATE DEFAULT current_date, s SERIAL)",
            "CREATE TABLE",
        ),
        ("INSERT INTO t (a) VALUES (1), (DEFAULT)", "INSERT 2"),
        ("INSERT INTO t DEFAULT VALUES", "INSERT 1"),
        ("SELECT id, a, b, c = current_date, s FROM t ORDER BY id", "1|1|X|true|1\n2|7|X|true|2\n3|7|X|true|3"),
        ("INSERT INTO t (id) VALUES (9)", "error: column id is GENERATED ALWAYS: leave it out, or give DEFAULT"),
        ("INSERT INTO t (s) VALUES (1 + 9) RETURNING id, s, a + 1", "4|10|8"),
        ("INSERT INTO t (nope) VALUES (1)", "error: no column nope in table t"),
        ("INSERT INTO t (a) VALUES (1, 2)", "error: 2 values for 1 columns (table t)"),
    ]);
}

#[test]
fn statements_of_one_text_run_in_order_and_stop_at_the_first_error() {
    let mut database = Database::new();
    let text =
        "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1); SELECT a FROM t; SELECT nope FROM t; DROP TABLE t";
    assert!(database.ask(text).starts_with("error: no column nope"));
    assert_eq!(database.ask("SELECT a FROM t"), "1");
    assert_eq!(database.ask(""), "");
    assert!(database.ask("SELEC 1").starts_with("error: "));
}

#[test]
fn sessions_can_be_used_from_other_threads() {
    let database = Database::after("CREATE TABLE t (a INTEGER)");
    let mut other: Session = database.connect();
    let answer = std::thread::spawn(move || ask(&mut other, "INSERT INTO t VALUES (1)", &[])).join().unwrap();
    assert_eq!(answer, "INSERT 1");
}

#[test]
fn extremes_are_those_of_the_order() {
    let mut database = Database::after(
        "CREATE TABLE t (g INTEGER, v DOUBLE PRECISION, w REAL);
         INSERT INTO t VALUES (1, 'NaN', 'NaN'), (1, 5, 5), (1, -7, -7), (2, NULL, NULL), (3, 'NaN', 'NaN'), (4, 2, 2), (4, 'NaN', 'NaN')",
    );
    database.expect(&[
        (
            "SELECT g, min(v), max(v), min(w), max(w) FROM t GROUP BY g ORDER BY g",
            "1|-7|NaN|-7|NaN\n2|NULL|NULL|NULL|NULL\n3|NaN|NaN|NaN|NaN\n4|2|NaN|2|NaN",
        ),
        ("SELECT min(v), max(v) FROM t", "-7|NaN"),
    ]);
}
