//! ALTER TABLE ... ALTER COLUMN.

use counterfoil_sql::{Error, Ram, Value};

use crate::database::{Database, ask};

#[test]
fn defaults_and_not_null_come_and_go() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, s SERIAL, note TEXT)", "CREATE TABLE"),
        ("INSERT INTO t VALUES (1)", "INSERT 1"),
        ("ALTER TABLE t ALTER COLUMN n SET DEFAULT 6 * 7", "ALTER TABLE"),
        ("INSERT INTO t (id) VALUES (2)", "INSERT 1"),
        ("ALTER TABLE t ALTER n DROP DEFAULT, ALTER note SET DEFAULT upper('x')", "ALTER TABLE"),
        ("INSERT INTO t (id) VALUES (3)", "INSERT 1"),
        ("SELECT id, n, note FROM t ORDER BY id", "1|NULL|NULL\n2|42|NULL\n3|NULL|X"),
        ("ALTER TABLE t ALTER n SET DEFAULT 'x'", "error: a text is not a valid integer (column n)"),
        ("ALTER TABLE t ALTER nothing SET DEFAULT 1", "error: no column nothing in table t"),
        (
            "ALTER TABLE t ALTER s DROP DEFAULT",
            "error: not supported: the default of column s, which counts up by itself (SERIAL, IDENTITY): give the number in INSERT",
        ),
        ("ALTER TABLE t ALTER n SET NOT NULL", "error: column n of table t must not be NULL"),
        ("UPDATE t SET n = id WHERE n IS NULL", "UPDATE 2"),
        ("ALTER TABLE t ALTER n SET NOT NULL", "ALTER TABLE"),
        ("ALTER TABLE t ALTER n SET NOT NULL", "ALTER TABLE"),
        ("INSERT INTO t (id) VALUES (4)", "error: column n of table t must not be NULL"),
        ("BEGIN", "BEGIN"),
        ("ALTER TABLE t ALTER n DROP NOT NULL", "ALTER TABLE"),
        ("INSERT INTO t (id) VALUES (4)", "INSERT 1"),
        ("ROLLBACK", "ROLLBACK"),
        ("INSERT INTO t (id) VALUES (4)", "error: column n of table t must not be NULL"),
        (
            "ALTER TABLE t ALTER id DROP NOT NULL",
            "error: column id is in a primary key: drop constraint t_pkey first",
        ),
        (
            "ALTER TABLE t ALTER s DROP NOT NULL",
            "error: column s counts up by itself (SERIAL, IDENTITY), and is never NULL",
        ),
        ("ALTER TABLE IF EXISTS nothing ALTER n DROP NOT NULL", "ALTER TABLE"),
    ]);
    let refused = database.session.run("ALTER TABLE t ALTER note SET NOT NULL", &[]).unwrap_err();
    assert_eq!(refused.sqlstate(), Some("23502"));
}

#[test]
fn a_type_that_is_stored_alike_is_a_word_in_the_catalog() {
    let mut database = Database::after(
        "CREATE TABLE t (id VARCHAR(4) PRIMARY KEY, n NUMERIC(5, 2), note VARCHAR(3) DEFAULT 'abc');
         CREATE TABLE c (t VARCHAR(4) REFERENCES t);
         CREATE VIEW v AS SELECT note, n FROM t;
         INSERT INTO t VALUES ('a', 1.25, 'one'), ('b', 999.99, NULL); INSERT INTO c VALUES ('a')",
    );
    let reads = |database: &mut Database, sql: &str| {
        let before = database.reads();
        assert_eq!(database.ask(sql), "ALTER TABLE", "{sql}");
        database.reads() - before
    };
    // What is referenced, indexed and looked at through views goes on.
    assert_eq!(reads(&mut database, "ALTER TABLE t ALTER id TYPE VARCHAR(10)"), 0);
    assert_eq!(reads(&mut database, "ALTER TABLE t ALTER COLUMN note SET DATA TYPE TEXT USING note::text"), 0);
    database.expect(&[
        ("INSERT INTO t (id, note) VALUES ('longer', 'longer'), ('d', DEFAULT)", "INSERT 2"),
        ("SELECT note FROM v ORDER BY note", "abc\nlonger\none\nNULL"),
        ("ALTER TABLE c ALTER t TYPE TEXT", "ALTER TABLE"),
        ("INSERT INTO c VALUES ('longer')", "INSERT 1"),
        ("ALTER TABLE t ALTER note TYPE VARCHAR(6)", "ALTER TABLE"),
        ("INSERT INTO t VALUES ('e', 1, 'longest')", "error: a text is too long (column note, character varying(6))"),
        ("ALTER TABLE t ALTER note TYPE VARCHAR(5)", "error: a text is too long (column note, character varying(5))"),
        (
            "ALTER TABLE t ALTER note TYPE VARCHAR(2)",
            "error: the default of column note is no character varying(2): DROP DEFAULT first \
             (a text is too long (column note, character varying(2)))",
        ),
        ("DROP VIEW v", "DROP VIEW"),
        ("ALTER TABLE t ALTER n TYPE NUMERIC(9, 2)", "ALTER TABLE"),
        ("INSERT INTO t (id, n) VALUES ('e', 1234567.89)", "INSERT 1"),
        ("ALTER TABLE t ALTER n TYPE NUMERIC(5, 2)", "error: a number is out of range (column n, numeric(5,2))"),
        ("SELECT sum(n) FROM t", "1235569.13"),
    ]);
}

#[test]
fn rows_become_those_of_another_type() {
    let mut database = Database::after(
        "CREATE TABLE t (id SERIAL PRIMARY KEY, n INTEGER NOT NULL DEFAULT 7 CHECK (n < 100000), u TEXT UNIQUE, at DATE);
         CREATE INDEX t_n ON t (n, at);
         INSERT INTO t (id, n, u, at) SELECT x, x, x::text, DATE '2024-01-01' + x % 3 FROM generate_series(1, 50000) AS g(x)",
    );
    database.expect(&[
        (
            "ALTER TABLE t ALTER u TYPE INTEGER",
            "error: column u does not become integer by itself: write USING u::integer",
        ),
        ("ALTER TABLE t ALTER u TYPE INTEGER USING u::integer", "ALTER TABLE"),
        ("INSERT INTO t (u) VALUES (5)", "error: table t already has a row with this key (u): unique constraint t_u_key"),
        ("SELECT id, pg_typeof(u) FROM t WHERE u = 777", "777|integer"),
        ("ALTER TABLE t ALTER n TYPE NUMERIC(12, 3) USING t.n / 2.0, ALTER at TYPE TIMESTAMP", "ALTER TABLE"),
        ("SELECT * FROM t WHERE n = 1.5", "3|1.500|3|2024-01-01 00:00:00"),
        ("SELECT count(*) FROM t WHERE n >= 24999 AND at > '2024-01-01'", "2"),
        ("INSERT INTO t (u) VALUES (-1) RETURNING n", "7.000"),
        ("INSERT INTO t (n) VALUES (100000)", "error: a row of table t breaks check constraint t_n_check"),
        ("INSERT INTO t (n) VALUES (NULL)", "error: column n of table t must not be NULL"),
        ("ALTER TABLE t ALTER n TYPE BIGINT USING n * 1000", "error: a row of table t breaks check constraint t_n_check"),
        ("ALTER TABLE t ALTER n TYPE BIGINT USING nullif(n, 1)", "error: column n of table t must not be NULL"),
        ("ALTER TABLE t ALTER u TYPE BIGINT USING 1", "error: table t already has a row with this key (u): unique constraint t_u_key"),
        (
            "ALTER TABLE t ALTER n TYPE BIGINT USING (SELECT max(id) FROM t)",
            "error: not supported: a subquery in USING: an UPDATE of another column may have one",
        ),
        ("ALTER TABLE t ALTER id TYPE TEXT", "error: identity column id must be SMALLINT, INTEGER or BIGINT"),
        ("ALTER TABLE t ALTER n TYPE SERIAL", "error: not supported: type serial"),
        ("ALTER TABLE t ALTER id TYPE BIGINT USING id::bigint", "ALTER TABLE"),
        ("SELECT count(*), count(DISTINCT n), sum(u) FROM t", "50001|50000|1250024999"),
        ("INSERT INTO t (u) VALUES (-2) RETURNING id", "50002"),
        ("VACUUM t", "VACUUM"),
        ("SELECT * FROM t WHERE id = 40000", "40000|20000.000|40000|2024-01-02 00:00:00"),
        ("SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position",
         "id|bigint\nn|numeric\nu|integer\nat|timestamp without time zone"),
    ]);
}

#[test]
fn what_leans_on_a_column_goes_on_or_says_what_to_do() {
    let mut database = Database::after(
        "CREATE TABLE p (id INTEGER PRIMARY KEY, code TEXT UNIQUE, n INTEGER);
         CREATE TABLE c (p INTEGER REFERENCES p ON DELETE CASCADE, code TEXT REFERENCES p (code));
         CREATE VIEW v AS SELECT id, n FROM p;
         CREATE VIEW w AS SELECT id FROM p WHERE n > 1;
         INSERT INTO p VALUES (1, 'a', 1), (2, 'b', 2); INSERT INTO c VALUES (1, 'a'), (2, NULL)",
    );
    database.expect(&[
        (
            "ALTER TABLE p ALTER n TYPE BIGINT",
            "error: view v depends on the type of column n of table p: drop it first",
        ),
        ("ALTER TABLE p ALTER n SET DEFAULT 3, ALTER n SET NOT NULL", "ALTER TABLE"),
        ("DROP VIEW v", "DROP VIEW"),
        ("ALTER TABLE p ALTER n TYPE BIGINT", "ALTER TABLE"),
        ("SELECT id FROM w", "2"),
        ("DROP VIEW w", "DROP VIEW"),
        (
            "ALTER TABLE p ALTER code TYPE CHAR(5)",
            "error: not supported: another type for column code, which is in foreign key c_code_fkey of table c: drop that, and add it again",
        ),
        (
            "ALTER TABLE c ALTER p TYPE BIGINT USING -p",
            "error: not supported: another type for column p, which is in foreign key c_p_fkey of table c: drop that, and add it again",
        ),
        ("ALTER TABLE p ALTER id TYPE BIGINT", "ALTER TABLE"),
        ("ALTER TABLE c ALTER p TYPE BIGINT", "ALTER TABLE"),
        ("SELECT p.n FROM c JOIN p ON p.id = c.p ORDER BY c.p", "1\n2"),
        (
            "INSERT INTO c VALUES (3, NULL)",
            "error: a row of table c references a row that does not exist (p): foreign key c_p_fkey",
        ),
        ("DELETE FROM p WHERE id = 2", "DELETE 1"),
        ("SELECT p FROM c", "1"),
    ]);
}

#[test]
fn another_type_is_of_its_transaction() {
    let mut database = Database::after(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER); INSERT INTO t VALUES (1, 10), (2, 20);
         PREPARE q AS SELECT n FROM t WHERE id = $1",
    );
    let mut other = database.connect();
    assert_eq!(ask(&mut other, "SELECT n / 3 FROM t WHERE id = $1", &[Value::Integer(1)]), "3");
    database.expect(&[
        ("EXECUTE q(1)", "10"),
        ("BEGIN", "BEGIN"),
        ("ALTER TABLE t ALTER n TYPE DOUBLE PRECISION USING n + 0.5", "ALTER TABLE"),
        ("INSERT INTO t VALUES (3, 0.25)", "INSERT 1"),
        ("EXECUTE q(1)", "10.5"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("ALTER TABLE t ALTER n TYPE TEXT", "ALTER TABLE"),
        ("SELECT n || '!' FROM t ORDER BY id", "10.5!\n20.5!\n0.25!"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("SELECT sum(n) FROM t", "31.25"),
        ("ROLLBACK", "ROLLBACK"),
        ("SELECT sum(n) FROM t", "30"),
        ("EXECUTE q(1)", "10"),
        ("ALTER TABLE t ALTER n TYPE DOUBLE PRECISION", "ALTER TABLE"),
    ]);
    assert_eq!(ask(&mut other, "SELECT n / 4 FROM t WHERE id = $1", &[Value::Integer(1)]), "2.5");
}

#[test]
fn another_type_takes_no_more_memory_than_there_is() {
    let mut database = Database::in_ram(Some(Ram::LEAST));
    database.expect(&[
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, note TEXT)", "CREATE TABLE"),
        ("INSERT INTO t SELECT x, x, 'note ' || x FROM generate_series(1, 30000) AS g(x)", "INSERT 30000"),
        ("CREATE INDEX ON t (n)", "CREATE INDEX"),
        ("ALTER TABLE t ALTER n TYPE TEXT", "ALTER TABLE"),
        ("SELECT id FROM t WHERE n = '29999'", "29999"),
        ("ALTER TABLE t ALTER id TYPE BIGINT", "ALTER TABLE"),
        ("SELECT note FROM t WHERE id = 12345", "note 12345"),
    ]);
}

#[test]
fn columns_of_series_keep_their_types() {
    let mut database = Database::after(
        "CREATE TABLE s (k INTEGER, time TIMESTAMP, v DOUBLE PRECISION, PRIMARY KEY (k, time)) WITH (engine = 'series')",
    );
    database.expect(&[
        (
            "ALTER TABLE s ALTER v TYPE TEXT",
            "error: not supported: ALTER COLUMN ... TYPE TEXT of a series table: it has its columns as they were made",
        ),
        ("ALTER TABLE s ALTER v SET DEFAULT 1.5", "ALTER TABLE"),
        ("INSERT INTO s (k, time) VALUES (1, '2024-01-01')", "INSERT 1"),
        ("SELECT v FROM s", "1.5"),
    ]);
    let refused = database.session.run("ALTER TABLE s ALTER v SET NOT NULL", &[]).unwrap_err();
    assert!(matches!(refused, Error::NotSupported(_)));
}

/// A REAL becomes the number that is written alike, which is another one: whatever looks for it finds it, and USING may take it as it is.
#[test]
fn keys_follow_values_that_become_others() {
    let mut database = Database::after(
        "CREATE TABLE p (k REAL PRIMARY KEY, n INTEGER, b REAL); CREATE INDEX ON p (b);
         INSERT INTO p SELECT x / 10.0, x, 2147483648 FROM generate_series(1, 3000) AS g(x)",
    );
    database.expect(&[
        ("ALTER TABLE p ALTER k TYPE DOUBLE PRECISION", "ALTER TABLE"),
        ("SELECT n FROM p WHERE k = 0.1", "1"),
        ("SELECT count(*) FROM p WHERE k BETWEEN 0.1 AND 0.3", "3"),
        (
            "INSERT INTO p VALUES (0.1, 99, 0)",
            "error: table p already has a row with this key (k): unique constraint p_pkey",
        ),
        ("ALTER TABLE p ALTER b TYPE BIGINT USING b::bigint", "ALTER TABLE"),
        ("SELECT count(*) FROM p WHERE b = 2147483648", "3000"),
        ("CREATE TABLE q (k REAL PRIMARY KEY)", "CREATE TABLE"),
        ("CREATE TABLE c (k REAL REFERENCES q)", "CREATE TABLE"),
    ]);
    let refused = database.ask("ALTER TABLE q ALTER k TYPE DOUBLE PRECISION");
    assert!(refused.contains("which is in foreign key c_k_fkey of table c"), "{refused}");
}

#[test]
fn using_is_of_the_columns_of_the_row() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER DEFAULT 5, n INTEGER); INSERT INTO t VALUES (1, 2)");
    for (using, refused) in [
        ("DEFAULT", "DEFAULT in USING"),
        ("coalesce(a, DEFAULT)", "DEFAULT in USING"),
        ("other.a", "no column other.a in table t"),
        ("excluded.n", "no column excluded.n in table t"),
        ("__counterfoil_aside", "no column __counterfoil_aside in table t"),
        ("row_number() OVER (ORDER BY n)", "a window function in USING"),
        ("(SELECT max(n) FROM t)", "a subquery in USING"),
    ] {
        let said = database.ask(&format!("ALTER TABLE t ALTER a TYPE BIGINT USING {using}"));
        assert!(said.starts_with("error") && said.contains(refused), "{using}: {said}");
    }
    database.expect(&[
        ("SELECT a FROM t", "1"),
        ("ALTER TABLE t ALTER a TYPE BIGINT USING t.a + n", "ALTER TABLE"),
        ("SELECT a FROM t", "3"),
    ]);
}
