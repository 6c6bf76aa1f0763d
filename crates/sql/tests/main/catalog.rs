//! CREATE, ALTER, DROP, views, and what the database says of itself.

use crate::database::Database;

#[test]
fn columns_are_added_dropped_and_renamed() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2)");
    database.expect(&[
        ("ALTER TABLE t ADD COLUMN b TEXT", "ALTER TABLE"),
        ("ALTER TABLE t ADD c INTEGER NOT NULL DEFAULT 3 + 4", "ALTER TABLE"),
        (
            "ALTER TABLE t ADD d INTEGER NOT NULL",
            "error: column d is NOT NULL and the table has rows: give it a DEFAULT",
        ),
        ("INSERT INTO t VALUES (3, 'x', 9)", "INSERT 1"),
        ("SELECT * FROM t ORDER BY a", "1|NULL|7\n2|NULL|7\n3|x|9"),
        ("ALTER TABLE t DROP COLUMN b", "ALTER TABLE"),
        ("ALTER TABLE t RENAME COLUMN c TO z", "ALTER TABLE"),
        ("ALTER TABLE t RENAME TO u", "ALTER TABLE"),
        ("SELECT a, z FROM u ORDER BY a", "1|7\n2|7\n3|9"),
        ("ALTER TABLE u ALTER COLUMN a TYPE BIGINT", "ALTER TABLE"),
        ("ALTER TABLE nowhere ADD x INTEGER", "error: no table nowhere"),
        ("ALTER TABLE IF EXISTS nowhere ADD x INTEGER", "ALTER TABLE"),
        ("TRUNCATE u", "TRUNCATE TABLE"),
        ("SELECT count(*) FROM u", "0"),
        ("VACUUM", "VACUUM"),
        ("VACUUM u", "VACUUM"),
    ]);
}

#[test]
fn views_are_queries_with_a_name() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER, b INTEGER); INSERT INTO t VALUES (1, 10), (2, 20)");
    database.expect(&[
        ("CREATE VIEW v AS SELECT a, a + b AS c FROM t", "CREATE VIEW"),
        ("CREATE VIEW w (x) AS SELECT c * 2 FROM v WHERE a > 1", "CREATE VIEW"),
        ("SELECT * FROM w", "44"),
        ("SELECT v.a, w.x FROM v, w ORDER BY 1", "1|44\n2|44"),
        ("INSERT INTO v VALUES (1, 2)", "error: v is a view: rows change in its tables"),
        ("DROP TABLE t", "error: view v depends on t: drop it first, or add CASCADE"),
        ("DROP TABLE v", "error: v is a view: write DROP VIEW"),
        ("CREATE VIEW v AS SELECT 1", "error: there is a table, view or index v already"),
        ("CREATE OR REPLACE VIEW w AS SELECT a FROM v", "CREATE VIEW"),
        ("SELECT * FROM w ORDER BY a", "1\n2"),
        ("CREATE VIEW bad AS SELECT nope FROM t", "error: no column nope (there are a, b)"),
        ("DROP TABLE t CASCADE", "DROP TABLE"),
        ("SELECT * FROM w", "error: table 'w' not found"),
    ]);
}

#[test]
fn nothing_changes_under_a_view_unnoticed() {
    let mut database = Database::after(
        "CREATE TABLE t (a INTEGER, b INTEGER); CREATE TABLE u (b INTEGER, d INTEGER);
         INSERT INTO t VALUES (1, 10); INSERT INTO u VALUES (10, 7);
         CREATE VIEW v AS SELECT * FROM t JOIN u USING (b); CREATE VIEW w AS SELECT a FROM v;
         CREATE VIEW both AS SELECT t.* FROM t UNION ALL SELECT * FROM u; CREATE VIEW k (x, y) AS SELECT * FROM t",
    );
    database.expect(&[
        ("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5", "ALTER TABLE"),
        ("SELECT b, a, d FROM v", "10|1|7"),
        ("SELECT * FROM both ORDER BY 1", "1|10\n10|7"),
        ("SELECT x, y FROM k", "1|10"),
        (
            "ALTER TABLE t DROP COLUMN a",
            "error: view both depends on column a of table t: drop it first, or add CASCADE",
        ),
        (
            "ALTER TABLE t RENAME COLUMN a TO z",
            "error: view both depends on the name of column a of table t: drop it first",
        ),
        ("ALTER TABLE t RENAME TO z", "error: view both depends on the name of table t: drop it first"),
        (
            "CREATE OR REPLACE VIEW v AS SELECT d FROM u",
            "error: view w depends on the columns of view v: drop it first",
        ),
        ("CREATE OR REPLACE VIEW v AS SELECT a, t.b, 1 AS d FROM t", "CREATE VIEW"),
        ("ALTER TABLE t DROP COLUMN c", "ALTER TABLE"),
        ("SELECT a FROM w", "1"),
        ("ALTER TABLE t DROP COLUMN a CASCADE", "ALTER TABLE"),
        ("SELECT * FROM w", "error: table 'w' not found"),
        ("SELECT * FROM both", "error: table 'both' not found"),
        ("SELECT * FROM t", "10"),
    ]);
}

#[test]
fn a_table_is_made_of_a_query() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x'), (2, 'y')");
    database.expect(&[
        ("CREATE TABLE u AS SELECT a * 10 AS ten, b, 1.5 AS n, now() AS t FROM t", "SELECT 2"),
        ("SELECT ten, b, n FROM u ORDER BY ten", "10|x|1.5\n20|y|1.5"),
        ("CREATE TABLE u AS SELECT 1", "error: there is a table, view or index u already"),
        ("CREATE TABLE IF NOT EXISTS u AS SELECT 1", "CREATE TABLE"),
        ("CREATE TABLE dup AS SELECT a, a FROM t", "error: column a is named twice"),
    ]);
}

#[test]
fn indexes_find_the_same_rows() {
    let mut database = Database::after(
        "CREATE TABLE t (a INTEGER, b TEXT);
         INSERT INTO t SELECT value % 100, 'b' || (value % 7) FROM generate_series(1, 5000) AS g(value)",
    );
    let queries = [
        "SELECT count(*) FROM t WHERE a = 5",
        "SELECT count(*) FROM t WHERE a = 5 AND b = 'b3'",
        "SELECT count(*) FROM t WHERE a IN (1, 2, 3, NULL) AND b > 'b4'",
        "SELECT count(*) FROM t WHERE a > 97",
        "SELECT count(*) FROM t WHERE a BETWEEN 3 AND 4 AND b <> 'b0'",
        "SELECT count(*) FROM t WHERE a < 2 AND a > 0",
        "SELECT count(*) FROM t WHERE a = 1000",
    ];
    let before: Vec<_> = queries.iter().map(|sql| database.ask(sql)).collect();
    database.expect(&[("CREATE INDEX ON t (a, b)", "CREATE INDEX")]);
    let after: Vec<_> = queries.iter().map(|sql| database.ask(sql)).collect();
    assert_eq!(before, after);
    assert!(database.ask("EXPLAIN SELECT b FROM t WHERE a = 5").contains("Index: t_a_b_idx"));
    database.expect(&[
        ("DELETE FROM t WHERE a = 5", "DELETE 50"),
        ("SELECT count(*) FROM t WHERE a = 5", "0"),
        ("UPDATE t SET a = 5 WHERE a = 6", "UPDATE 50"),
        ("SELECT count(*) FROM t WHERE a = 5", "50"),
        ("DROP INDEX t_a_b_idx", "DROP INDEX"),
        ("SELECT count(*) FROM t WHERE a = 5", "50"),
        (
            "CREATE UNIQUE INDEX one ON t (a)",
            "error: table t already has a row with this key (a): unique constraint one",
        ),
    ]);
}

#[test]
fn the_database_describes_itself() {
    let mut database = Database::after(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(20) DEFAULT 'x', at TIMESTAMP NOT NULL);
         CREATE VIEW v AS SELECT name FROM t",
    );
    database.expect(&[
        ("SHOW TABLES", "t\nv"),
        (
            "DESCRIBE t",
            "id|integer|NO|PRIMARY KEY|NULL\nname|character varying(20)|YES|NULL|'x'\nat|timestamp without time zone|NO|NULL|NULL",
        ),
        ("SHOW COLUMNS FROM v", "name|text|YES|NULL|NULL"),
        ("SELECT table_name, table_type FROM information_schema.tables ORDER BY 1", "t|BASE TABLE\nv|VIEW"),
        (
            "SELECT column_name, data_type, character_maximum_length FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position",
            "id|integer|NULL\nname|character varying|20\nat|timestamp without time zone|NULL",
        ),
        ("SELECT constraint_name, constraint_type FROM information_schema.table_constraints", "t_pkey|PRIMARY KEY"),
        ("CREATE TABLE child (x INTEGER CHECK (x > 0), CONSTRAINT up FOREIGN KEY (x) REFERENCES t)", "CREATE TABLE"),
        (
            "SELECT constraint_name, table_name, column_name FROM information_schema.constraint_column_usage ORDER BY 1",
            "child_x_check|child|x\nt_pkey|t|id\nup|t|id",
        ),
        ("SHOW lock_timeout", "5000ms"),
        ("SET application_name = 'x'", "SET"),
        ("SHOW application_name", "x"),
        ("SET nonsense = 1", "error: no setting nonsense: SHOW ALL lists them"),
        ("SHOW nonsense", "error: no setting nonsense: SHOW ALL lists them"),
        ("DESCRIBE nowhere", "error: no table nowhere"),
    ]);
    let sql = database.session.create_statement("t").unwrap();
    let mut copy = Database::after(&sql);
    assert_eq!(copy.session.create_statement("t").unwrap(), sql);
}

#[test]
fn explain_shows_the_plan() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER, b TEXT); INSERT INTO t VALUES (1, 'x')");
    let plan = database.ask("EXPLAIN SELECT b FROM t WHERE a = 1");
    assert!(plan.contains("TableScan") || plan.contains("Scan: t"), "{plan}");
    assert!(plan.contains("tests: [a]"), "{plan}");
    let direct = database.ask("EXPLAIN ANALYZE SELECT b FROM t");
    assert!(direct.starts_with("Direct: ") && direct.contains("output_rows=1"), "{direct}");
    // What was not measured would be the least that there is.
    assert!(direct.contains("output_batches=1"), "{direct}");
    for least in ["elapsed_compute=1ns", "output_bytes=0.0 B"] {
        assert!(!direct.contains(least), "{direct}");
    }
    assert!(database.ask("EXPLAIN SELECT b, a, b FROM t").contains("Scan: t"), "a column may be there twice");
    for (change, head) in [
        ("UPDATE t SET b = 'y' WHERE a = 1", "Update on t\n  "),
        ("WITH o AS (SELECT 1 AS a) UPDATE t SET b = 'y' FROM o WHERE o.a = t.a", "Update on t\n  "),
        ("DELETE FROM t WHERE a = 1", "Delete on t\n  "),
        ("INSERT INTO t SELECT a + 1, b FROM t WHERE a = 1", "Insert on t\n  "),
    ] {
        let plan = database.ask(&format!("EXPLAIN {change}"));
        assert!(plan.starts_with(head) && plan.contains("Scan: t"), "{change}: {plan}");
        assert!(database.ask(&format!("EXPLAIN ANALYZE {change}")).starts_with("error: not supported"));
    }
    assert_eq!(database.ask("EXPLAIN INSERT INTO t VALUES (2, 'y')"), "Insert on t");
    database.ask("PREPARE change AS UPDATE t SET b = 'y' WHERE a = $1");
    assert!(database.ask("EXPLAIN EXECUTE change(1)").contains("Update on t"));
    assert_eq!(database.ask("SELECT * FROM t"), "1|x", "nothing was changed");
    for wrong in ["UPDATE t SET c = 1", "DELETE FROM nowhere", "INSERT INTO nowhere SELECT 1"] {
        assert!(database.ask(&format!("EXPLAIN {wrong}")).starts_with("error:"), "{wrong}");
    }
    assert!(database.ask("EXPLAIN CREATE TABLE u (a INT)").starts_with("error: not supported"));
}

#[test]
fn what_is_not_supported_says_so() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    for (sql, expected) in [
        (
            "CREATE TEMPORARY TABLE x (a INTEGER)",
            "temporary tables: CREATE TABLE and DROP TABLE, ROLLBACK what made it, or name a query in WITH",
        ),
        (
            "CREATE SCHEMA IF NOT EXISTS s",
            "CREATE SCHEMA: public is the one schema, give tables names that say what they belong to",
        ),
        ("GRANT SELECT ON t TO me", "GRANT SELECT ON"),
        (
            "CREATE TABLE x (a INTEGER) WITH (engine = 'scattered')",
            "engine = 'scattered': 'relation', 'series', 'published' or 'dispersed'",
        ),
        ("SELECT * FROM t FOR UPDATE NOWAIT", "NOWAIT and SKIP LOCKED: SET lock_timeout says how long is waited"),
        ("SELECT a INTO x FROM t", "SELECT INTO: write CREATE TABLE ... AS"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1", "materialized and temporary views"),
    ] {
        assert_eq!(database.ask(sql), format!("error: not supported: {expected}"), "{sql}");
    }
    let published = "CREATE TABLE x (a INTEGER) WITH (engine = 'published')";
    assert_eq!(database.ask(published), "error: a published table wants server = 'http://example.com'");
}

#[test]
fn uuids_are_known_by_their_mark() {
    let uuid = "'12345678-1234-5678-1234-567812345678'";
    let mut database = Database::after(&format!(
        "CREATE TABLE t (id UUID PRIMARY KEY, a TEXT); INSERT INTO t VALUES ({uuid}, 'x');
         CREATE VIEW v AS SELECT id AS other, id::text AS written FROM t;
         CREATE TABLE s (id UUID, ts TIMESTAMP, v DOUBLE PRECISION, PRIMARY KEY (id, ts)) WITH (engine = 'series')"
    ));
    for (sql, expected) in [
        ("SELECT * FROM t".to_owned(), "uuid text"),
        ("SELECT max(a), id AS other FROM t GROUP BY id ORDER BY 2 LIMIT 1".to_owned(), "text uuid"),
        ("SELECT x.id, y.a FROM t x JOIN t y ON x.id = y.id WHERE x.a = 'x'".to_owned(), "uuid text"),
        ("SELECT DISTINCT id FROM t UNION ALL SELECT other FROM v".to_owned(), "uuid"),
        ("SELECT * FROM v".to_owned(), "uuid text"),
        ("SELECT id, v FROM s".to_owned(), "uuid double precision"),
        (format!("SELECT {uuid}::uuid, {uuid}, lower(id::text) FROM t"), "uuid text text"),
        (
            "SELECT coalesce(NULL, id), CASE WHEN a = 'x' THEN id END, nullif(id, other) FROM t, v".to_owned(),
            "uuid uuid uuid",
        ),
        (
            format!(
                "SELECT CASE a WHEN 'x' THEN id ELSE {uuid} END, greatest(id, {uuid}), coalesce(id::text, a) FROM t"
            ),
            "uuid uuid text",
        ),
        ("SELECT gen_random_uuid(), u FROM (SELECT coalesce(id) AS u FROM t) AS inner".to_owned(), "uuid uuid"),
        (format!("UPDATE t SET a = 'y' WHERE id = {uuid} RETURNING id, a"), "uuid text"),
    ] {
        for begin in ["", "BEGIN; UPDATE t SET a = a; "] {
            let outcomes = database.session.run(&format!("{begin}{sql}"), &[]).expect(&sql);
            let Some(counterfoil_sql::Outcome::Rows(rows)) = outcomes.into_iter().next_back() else {
                panic!("{sql} answers rows")
            };
            let kinds = |schema: &datafusion::arrow::datatypes::SchemaRef| {
                let kinds = schema.fields().iter().map(|field| counterfoil_sql::field_name(field));
                kinds.collect::<Vec<_>>().join(" ")
            };
            assert_eq!(kinds(rows.schema()), expected, "{begin}{sql}");
            for batch in rows {
                assert_eq!(kinds(&batch.expect("reads").schema()), expected, "{begin}{sql}");
            }
            let _ = database.session.run("ROLLBACK", &[]);
        }
    }
    database.expect(&[
        ("SHOW COLUMNS FROM v", "other|uuid|YES|NULL|NULL\nwritten|text|YES|NULL|NULL"),
        ("CREATE TABLE copy AS SELECT id FROM t", "SELECT 1"),
        ("SELECT data_type FROM information_schema.columns WHERE table_name = 'copy'", "uuid"),
        ("SELECT pg_typeof(id), pg_typeof(id::text) FROM copy", "uuid|text"),
    ]);
}

#[test]
fn identity_columns_say_how_they_count() {
    let mut database = Database::after(
        "CREATE TABLE up (id SMALLINT GENERATED ALWAYS AS IDENTITY, a INTEGER);
         CREATE TABLE down (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH -5 INCREMENT BY -2))",
    );
    let sql =
        "SELECT column_name, is_identity, identity_generation, identity_start, identity_increment, identity_maximum,
        identity_minimum, identity_cycle FROM information_schema.columns WHERE table_name = ";
    database.expect(&[
        (&format!("{sql}'up'"), "id|YES|ALWAYS|1|1|32767|1|NO\na|NO|NULL|NULL|NULL|NULL|NULL|NO"),
        (&format!("{sql}'down'"), "id|YES|BY DEFAULT|-5|-2|-1|-9223372036854775808|NO"),
    ]);
}

#[test]
fn a_float_without_digits_is_a_double() {
    let mut database = Database::new();
    database.expect(&[
        ("SELECT CAST(0.1 AS FLOAT), pg_typeof(CAST(0.1 AS FLOAT))", "0.1|double precision"),
        (
            "SELECT pg_typeof(0.1::FLOAT(24)), pg_typeof(0.1::FLOAT(25)), pg_typeof(0.1::FLOAT4)",
            "real|double precision|real",
        ),
    ]);
}

/// What dumps and migrations say beside it: the schema that there is, and comments.
#[test]
fn what_has_nothing_to_do_is_taken_and_said() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER, \"B c\" TEXT); CREATE VIEW v AS SELECT a FROM t");
    database.expect(&[
        ("CREATE SCHEMA IF NOT EXISTS public", "CREATE SCHEMA"),
        ("COMMENT ON SCHEMA public IS 'standard public schema'", "COMMENT"),
        ("COMMENT ON TABLE public.t IS 'a table'", "COMMENT"),
        ("COMMENT ON COLUMN t.\"B c\" IS NULL", "COMMENT"),
        ("COMMENT ON COLUMN v.a IS 'x'", "COMMENT"),
        ("COMMENT ON TABLE nothing IS 'x'", "error: no table nothing"),
        ("COMMENT ON TABLE v IS 'x'", "error: no table v"),
        ("COMMENT ON VIEW v IS 'x'", "COMMENT"),
        ("COMMENT ON VIEW t IS 'x'", "error: no view t"),
        ("COMMENT ON INDEX nothing IS 'x'", "error: no index nothing"),
        ("COMMENT ON SCHEMA other IS 'x'", "error: no schema other: public is the one schema"),
        ("COMMENT ON COLUMN t.nothing IS 'x'", "error: no column nothing in table t"),
        ("COMMENT ON COLUMN a IS 'x'", "error: a column is named behind its table: COMMENT ON COLUMN t.c"),
    ]);
    database.ask("COMMENT ON TABLE t IS 'a table'");
    assert_eq!(database.session.take_notices(), ["comments are not kept"]);
    let refused = database.session.run("CREATE SCHEMA public", &[]).unwrap_err();
    assert_eq!((refused.to_string().as_str(), refused.sqlstate()), ("there is a schema public already", Some("42P06")));
}
