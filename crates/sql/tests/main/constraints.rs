//! Rules of tables.

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
        ("DROP TABLE p", "error: table p is referenced by foreign keys of table c"),
    ]);
}
