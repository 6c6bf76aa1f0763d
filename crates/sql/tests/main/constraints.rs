//! Rules of tables.

use std::sync::Arc;

use counterfoil_sql::arrow::array::{ArrayRef, Decimal128Array, RecordBatch, Time64MicrosecondArray};

use crate::database::Database;

#[test]
fn checks_are_evaluated_and_null_passes() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE t (a INTEGER CHECK (a > 0), b INTEGER, CONSTRAINT small CHECK (b < a))", "CREATE TABLE"),
        ("INSERT INTO t VALUES (5, 1), (NULL, 3), (5, NULL)", "INSERT 3"),
        ("INSERT INTO t VALUES (5, 9)", "error: a row of table t breaks check constraint small"),
        ("INSERT INTO t VALUES (0, -1)", "error: a row of table t breaks check constraint t_a_check"),
        ("UPDATE t SET b = 100 WHERE a = 5", "error: a row of table t breaks check constraint small"),
        ("SELECT count(*) FROM t", "3"),
        ("CREATE TABLE u (a INTEGER CHECK (nope > 0))", "error: no column nope (there are a)"),
        ("ALTER TABLE t RENAME COLUMN a TO z", "ALTER TABLE"),
        ("INSERT INTO t VALUES (5, 9)", "error: a row of table t breaks check constraint small"),
    ]);
}

#[test]
fn what_programs_hand_over_is_within_the_types_of_columns() {
    let mut database = Database::new();
    database.expect(&[("CREATE TABLE t (n NUMERIC(4, 2), at TIME)", "CREATE TABLE")]);
    let day = 86_400_000_000;
    let mut load = |number: i128, time: i64| {
        let numbers = Decimal128Array::from_iter_values([number]).with_precision_and_scale(4, 2).expect("unlooked at");
        let columns: [ArrayRef; 2] = [Arc::new(numbers), Arc::new(Time64MicrosecondArray::from_iter_values([time]))];
        let batch = RecordBatch::try_from_iter(["n", "at"].into_iter().zip(columns)).expect("a batch");
        let columns = ["n".to_owned(), "at".to_owned()];
        database.session.load("t", &columns, &mut std::iter::once(Ok(batch))).map_err(|error| error.to_string())
    };
    assert_eq!(load(9999, day), Ok(1));
    assert_eq!(load(0, day + 1), Err("a time is out of range (column at, time without time zone)".into()));
    assert_eq!(load(0, -1), Err("a time is out of range (column at, time without time zone)".into()));
    assert_eq!(load(10_000, 0), Err("a number is out of range (column n, numeric(4,2))".into()));
    database.expect(&[
        ("SELECT * FROM t", "99.99|24:00:00"),
        ("INSERT INTO t (at) VALUES ('23:59:60')", "INSERT 1"),
        ("INSERT INTO t (at) VALUES ('23:59:60.5')", "error: a text is not a valid time without time zone (column at)"),
        (
            "INSERT INTO t (at) SELECT TIME '23:59:60.5'",
            "error: a time is out of range (column at, time without time zone)",
        ),
    ]);
}

#[test]
fn keys_and_not_null_hold() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE t (a INTEGER, b TEXT NOT NULL, c TEXT UNIQUE, PRIMARY KEY (a, b))", "CREATE TABLE"),
        ("INSERT INTO t VALUES (1, 'x', 'c'), (1, 'y', NULL), (2, 'x', NULL)", "INSERT 3"),
        (
            "INSERT INTO t VALUES (1, 'x', 'd')",
            "error: table t already has a row with this key (a, b): unique constraint t_pkey",
        ),
        (
            "INSERT INTO t VALUES (3, 'x', 'c')",
            "error: table t already has a row with this key (c): unique constraint t_c_key",
        ),
        ("INSERT INTO t VALUES (NULL, 'x', 'd')", "error: column a of table t must not be NULL"),
        ("INSERT INTO t (a) VALUES (4)", "error: column b of table t must not be NULL"),
        ("UPDATE t SET c = 'c'", "error: table t already has a row with this key (c): unique constraint t_c_key"),
        ("SELECT count(*) FROM t", "3"),
        ("CREATE TABLE u (a INTEGER PRIMARY KEY, b INTEGER PRIMARY KEY)", "error: table u has two primary keys"),
    ]);
}

#[test]
fn references_hold_cascade_and_set_null() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE p (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES p)", "CREATE TABLE"),
        ("CREATE TABLE c (id INTEGER, p INTEGER REFERENCES p (id) ON DELETE CASCADE)", "CREATE TABLE"),
        (
            "CREATE TABLE n (id INTEGER, p INTEGER REFERENCES p ON DELETE SET NULL CHECK (p IS NOT NULL OR id > 1))",
            "CREATE TABLE",
        ),
        ("INSERT INTO p VALUES (1, 2), (2, NULL), (3, 1)", "INSERT 3"),
        (
            "INSERT INTO c VALUES (1, 9)",
            "error: a row of table c references a row that does not exist (p): foreign key c_p_fkey",
        ),
        ("INSERT INTO c VALUES (1, 3), (2, NULL)", "INSERT 2"),
        ("DELETE FROM p WHERE id = 2", "error: a row is still referenced from table p (boss): foreign key p_boss_fkey"),
        ("INSERT INTO n VALUES (1, 3)", "INSERT 1"),
        ("DELETE FROM p WHERE id = 3", "error: a row of table n breaks check constraint n_check"),
        ("UPDATE n SET id = 2", "UPDATE 1"),
        ("DELETE FROM p WHERE id = 3", "DELETE 1"),
        ("SELECT id, p FROM c", "2|NULL"),
        ("SELECT id, p FROM n", "2|NULL"),
        ("DROP TABLE p", "error: table p is referenced by foreign keys of table c: CASCADE drops them"),
    ]);
}

#[test]
fn checks_that_name_their_table_outlive_its_name() {
    let mut database = Database::after("CREATE TABLE q (a INTEGER, CHECK (q.a > 0))");
    database.expect(&[
        ("ALTER TABLE q ADD CHECK (q.a < 10)", "ALTER TABLE"),
        ("ALTER TABLE q RENAME TO r", "ALTER TABLE"),
        ("ALTER TABLE r ADD COLUMN b INTEGER", "ALTER TABLE"),
        ("INSERT INTO r VALUES (3, 4)", "INSERT 1"),
    ]);
    assert!(database.ask("INSERT INTO r VALUES (0, 4)").starts_with("error: "));
    assert!(database.ask("INSERT INTO r VALUES (10, 4)").starts_with("error: "));
}

#[test]
fn constraints_come_to_tables_that_are_there() {
    let mut database = Database::new();
    database.expect(&[
        (
            "CREATE TABLE t (a INTEGER, b INTEGER, c TEXT) WITH (fillfactor = 70, autovacuum_enabled = false)",
            "CREATE TABLE",
        ),
        // More rows than are kept without an index.
        ("INSERT INTO t SELECT x, x / 2, 'n' || x FROM generate_series(1, 30000) AS g(x)", "INSERT 30000"),
        ("INSERT INTO t VALUES (NULL, 0, 'none')", "INSERT 1"),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", "error: column a of table t must not be NULL"),
        ("DELETE FROM t WHERE a IS NULL", "DELETE 1"),
        (
            "ALTER TABLE t ADD PRIMARY KEY (b)",
            "error: table t already has a row with this key (b): unique constraint t_pkey",
        ),
        ("ALTER TABLE t ADD PRIMARY KEY (nothing)", "error: table t has no column nothing"),
        ("ALTER TABLE t ADD CONSTRAINT mine PRIMARY KEY (a)", "ALTER TABLE"),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", "error: table t has a primary key already"),
        (
            "INSERT INTO t VALUES (7, 1, 'x')",
            "error: table t already has a row with this key (a): unique constraint mine",
        ),
        ("INSERT INTO t VALUES (NULL, 1, 'x')", "error: column a of table t must not be NULL"),
        ("SELECT c FROM t WHERE a = 29999", "n29999"),
        ("ALTER TABLE t ADD UNIQUE (c)", "ALTER TABLE"),
        (
            "INSERT INTO t VALUES (40000, 1, 'n5')",
            "error: table t already has a row with this key (c): unique constraint t_c_key",
        ),
        ("ALTER TABLE t ADD CONSTRAINT low CHECK (b < 100)", "error: a row of table t breaks check constraint low"),
        ("ALTER TABLE t ADD CONSTRAINT low CHECK (b < 100000)", "ALTER TABLE"),
        ("INSERT INTO t VALUES (40000, 100000, 'x')", "error: a row of table t breaks check constraint low"),
        ("ALTER TABLE t ADD CHECK (b)", "error: a CHECK must be true or false: b"),
        (
            "ALTER TABLE t ADD CHECK (b > 0) NOT VALID",
            "error: not supported: NOT VALID: every row keeps the constraints of its table",
        ),
    ]);
}

#[test]
fn references_come_to_tables_that_are_there() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE p (id INTEGER PRIMARY KEY)", "CREATE TABLE"),
        ("CREATE TABLE c (\"own Id\" INTEGER, p INTEGER)", "CREATE TABLE"),
        ("INSERT INTO p SELECT * FROM generate_series(1, 20000)", "INSERT 20000"),
        ("INSERT INTO c SELECT x, x FROM generate_series(1, 20001) AS g(x)", "INSERT 20001"),
        ("INSERT INTO c VALUES (0, NULL)", "INSERT 1"),
        (
            "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p",
            "error: a row of table c references a row that does not exist (p): foreign key c_p_fkey",
        ),
        ("DELETE FROM p WHERE id = 1", "DELETE 1"),
        ("DELETE FROM c WHERE p IN (1, 20001)", "DELETE 2"),
        ("ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p ON DELETE CASCADE", "ALTER TABLE"),
        (
            "INSERT INTO c VALUES (1, 1)",
            "error: a row of table c references a row that does not exist (p): foreign key c_p_fkey",
        ),
        ("DELETE FROM p WHERE id <= 100", "DELETE 99"),
        ("SELECT count(*) FROM c", "19901"),
        ("BEGIN", "BEGIN"),
        ("ALTER TABLE c ADD PRIMARY KEY (\"own Id\")", "ALTER TABLE"),
        (
            "INSERT INTO c VALUES (0, NULL)",
            "error: table c already has a row with this key (own Id): unique constraint c_pkey",
        ),
        ("ROLLBACK", "ROLLBACK"),
        ("INSERT INTO c VALUES (0, NULL)", "INSERT 1"),
        (
            "CREATE TABLE s (k INTEGER, time TIMESTAMP, v INTEGER, PRIMARY KEY (k, time)) WITH (engine = 'series')",
            "CREATE TABLE",
        ),
        (
            "ALTER TABLE s ADD UNIQUE (v)",
            "error: not supported: constraints of a series table: its key is its series and its time",
        ),
    ]);
}

#[test]
fn constraints_go() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE p (id INTEGER PRIMARY KEY, code TEXT UNIQUE, CONSTRAINT some CHECK (id > 0))", "CREATE TABLE"),
        (
            "CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p, code TEXT REFERENCES p (code))",
            "CREATE TABLE",
        ),
        ("CREATE TABLE g (c INTEGER REFERENCES c)", "CREATE TABLE"),
        ("INSERT INTO p SELECT x, 'p' || x FROM generate_series(1, 20000) AS g(x)", "INSERT 20000"),
        ("INSERT INTO c SELECT x, x, 'p' || x FROM generate_series(1, 20000) AS g(x)", "INSERT 20000"),
        ("INSERT INTO g SELECT x FROM generate_series(1, 20000) AS g(x)", "INSERT 20000"),
        ("ALTER TABLE p DROP CONSTRAINT nothing", "error: table p has no constraint nothing"),
        ("ALTER TABLE p DROP CONSTRAINT IF EXISTS nothing", "ALTER TABLE"),
        ("INSERT INTO p VALUES (-1, 'a')", "error: a row of table p breaks check constraint some"),
        ("ALTER TABLE p DROP CONSTRAINT some", "ALTER TABLE"),
        ("INSERT INTO p VALUES (-1, 'a')", "INSERT 1"),
        // A key that is referenced stays, or takes what references it along.
        (
            "ALTER TABLE p DROP CONSTRAINT p_pkey",
            "error: key p_pkey is referenced by foreign keys of table c: CASCADE drops them",
        ),
        ("BEGIN", "BEGIN"),
        ("ALTER TABLE p DROP CONSTRAINT p_pkey CASCADE", "ALTER TABLE"),
        ("INSERT INTO c VALUES (0, 77777, 'p1')", "INSERT 1"),
        ("INSERT INTO p VALUES (5, 'again')", "INSERT 1"),
        ("INSERT INTO p VALUES (NULL, 'none')", "error: column id of table p must not be NULL"),
        ("ROLLBACK", "ROLLBACK"),
        (
            "INSERT INTO c VALUES (0, 77777, 'p1')",
            "error: a row of table c references a row that does not exist (p): foreign key c_p_fkey",
        ),
        ("ALTER TABLE c DROP CONSTRAINT c_p_fkey", "ALTER TABLE"),
        ("INSERT INTO c VALUES (0, 77777, 'p1')", "INSERT 1"),
        (
            "INSERT INTO c VALUES (-1, 1, 'nobody')",
            "error: a row of table c references a row that does not exist (code): foreign key c_code_fkey",
        ),
        ("SELECT count(*) FROM c JOIN p ON p.id = c.p WHERE c.id < 100", "99"),
        ("SELECT g.c, p.id FROM g JOIN c ON c.id = g.c JOIN p ON p.code = c.code WHERE g.c = 700", "700|700"),
        ("ALTER TABLE p DROP CONSTRAINT p_code_key CASCADE", "ALTER TABLE"),
        ("INSERT INTO c VALUES (-1, 1, 'nobody')", "INSERT 1"),
        ("INSERT INTO p VALUES (50000, 'p1')", "INSERT 1"),
        ("SELECT count(*) FROM p WHERE code = 'p1'", "2"),
        ("ALTER TABLE p DROP CONSTRAINT p_pkey", "ALTER TABLE"),
        ("INSERT INTO p VALUES (50000, 'p2')", "INSERT 1"),
        (
            "ALTER TABLE p ADD PRIMARY KEY (id)",
            "error: table p already has a row with this key (id): unique constraint p_pkey",
        ),
        ("DELETE FROM p WHERE code = 'p2' AND id = 50000", "DELETE 1"),
        ("ALTER TABLE p ADD PRIMARY KEY (id)", "ALTER TABLE"),
        ("VACUUM", "VACUUM"),
        ("SELECT g.c, c.code FROM g JOIN c ON c.id = g.c WHERE g.c = 19999", "19999|p19999"),
    ]);
}

#[test]
fn a_key_that_others_lean_on_stays() {
    let mut database = Database::new();
    database.expect(&[
        ("CREATE TABLE p (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p)", "CREATE TABLE"),
        ("CREATE TABLE c (p INTEGER REFERENCES p, n INTEGER, PRIMARY KEY (p, n))", "CREATE TABLE"),
        (
            "ALTER TABLE c DROP CONSTRAINT c_pkey",
            "error: foreign key c_p_fkey leans on the index of key c_pkey: drop it first",
        ),
        ("ALTER TABLE c DROP CONSTRAINT c_p_fkey, DROP CONSTRAINT c_pkey", "ALTER TABLE"),
        ("INSERT INTO c VALUES (1, 1), (1, 1)", "INSERT 2"),
        (
            "ALTER TABLE p DROP CONSTRAINT p_pkey RESTRICT",
            "error: key p_pkey is referenced by foreign keys of table p: CASCADE drops them",
        ),
        ("ALTER TABLE p DROP CONSTRAINT p_pkey CASCADE", "ALTER TABLE"),
        ("INSERT INTO p VALUES (1, 7), (1, 7)", "INSERT 2"),
    ]);
}

#[test]
fn tables_are_emptied_together_with_those_that_reference_them() {
    let mut database = Database::after(
        "CREATE TABLE parent (a INTEGER PRIMARY KEY, up INTEGER REFERENCES parent (a));
         CREATE TABLE child (b INTEGER PRIMARY KEY, a INTEGER REFERENCES parent (a));
         CREATE TABLE grandchild (c INTEGER, b INTEGER REFERENCES child (b));
         CREATE TABLE loose (a INTEGER REFERENCES parent (a) NOT ENFORCED)",
    );
    let fill =
        "INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (2, 1); INSERT INTO grandchild VALUES (3, 2);
                INSERT INTO loose VALUES (1)";
    let left = "SELECT (SELECT count(*) FROM parent), (SELECT count(*) FROM child), (SELECT count(*) FROM grandchild), (SELECT count(*) FROM loose)";
    database.ask(fill);
    database.expect(&[
        (
            "TRUNCATE parent",
            "error: table parent is referenced by foreign keys of table child: name that as well, or add CASCADE",
        ),
        (
            "TRUNCATE parent, child",
            "error: table child is referenced by foreign keys of table grandchild: name that as well, or add CASCADE",
        ),
        (left, "1|1|1|1"),
        ("TRUNCATE parent, grandchild, child", "TRUNCATE TABLE"),
        (left, "0|0|0|1"),
    ]);
    database.ask(fill);
    assert_eq!(database.ask("TRUNCATE child CASCADE"), "TRUNCATE TABLE");
    assert_eq!(database.session.take_notices(), ["TRUNCATE empties table grandchild as well"]);
    database.expect(&[(left, "1|0|0|2"), ("TRUNCATE parent CASCADE", "TRUNCATE TABLE"), (left, "0|0|0|2")]);
    database.ask(fill);
    database.expect(&[(left, "1|1|1|3")]);
}
