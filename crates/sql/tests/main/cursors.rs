//! DECLARE, FETCH, CLOSE; SELECT ... FOR UPDATE; DISCARD.

use counterfoil_sql::Value;

use crate::database::{Database, ask};

fn numbers() -> Database {
    Database::after("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t SELECT * FROM generate_series(1, 20000)")
}

#[test]
fn a_cursor_goes_forward_over_what_was_there() {
    let mut database = numbers();
    database.expect(&[
        (
            "DECLARE c CURSOR FOR SELECT 1",
            "error: a cursor ends with its transaction: BEGIN one first, or say WITH HOLD",
        ),
        ("BEGIN", "BEGIN"),
        ("DECLARE c NO SCROLL CURSOR FOR SELECT a FROM t ORDER BY a", "DECLARE CURSOR"),
        ("FETCH 2 FROM c", "1\n2"),
        ("FETCH NEXT FROM c", "3"),
        ("FETCH FORWARD FROM c; FETCH c; FETCH IN c;", "4\n5\n6"),
        ("FETCH \"c\"", "7"),
        ("FETCH FORWARD 0 FROM c", ""),
        ("DELETE FROM t WHERE a > 3", "DELETE 19997"),
        ("FETCH FORWARD 3 IN c", "8\n9\n10"),
    ]);
    let rest = database.ask("FETCH ALL FROM c");
    let rest: Vec<&str> = rest.lines().collect();
    assert_eq!((rest.len(), rest[0], rest[rest.len() - 1]), (20000 - 10, "11", "20000"));
    database.expect(&[
        ("FETCH 10 FROM c", ""),
        ("DECLARE d SCROLL CURSOR FOR SELECT 1", "error: not supported: SCROLL: cursors go forward"),
        ("ROLLBACK", "ROLLBACK"),
        ("FETCH 1 FROM c", "error: no cursor c"),
    ]);
}

#[test]
fn cursors_live_as_long_as_they_say() {
    let mut database = numbers();
    database.expect(&[
        ("DECLARE free CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a", "DECLARE CURSOR"),
        ("BEGIN", "BEGIN"),
        ("DECLARE short CURSOR FOR SELECT 1", "DECLARE CURSOR"),
        ("DECLARE held CURSOR WITH HOLD FOR SELECT 2", "DECLARE CURSOR"),
        ("DECLARE held CURSOR FOR SELECT 2", "error: there is a cursor held already: CLOSE it first"),
        ("ROLLBACK", "ROLLBACK"),
        ("BEGIN", "BEGIN"),
        ("FETCH 1 FROM held", "error: no cursor held"),
        ("ROLLBACK", "ROLLBACK"),
        ("BEGIN", "BEGIN"),
        ("DECLARE short CURSOR FOR SELECT 1", "DECLARE CURSOR"),
        ("DECLARE held CURSOR WITH HOLD FOR SELECT 2", "DECLARE CURSOR"),
        ("COMMIT", "COMMIT"),
        ("FETCH 1 FROM short", "error: no cursor short"),
        ("FETCH 1 FROM held", "2"),
        ("FETCH 2 FROM free", "1\n2"),
        ("CLOSE free", "CLOSE CURSOR"),
        ("FETCH 2 FROM free", "error: no cursor free"),
        ("CLOSE free", "error: no cursor free"),
        ("CLOSE ALL", "CLOSE CURSOR ALL"),
        ("FETCH 1 FROM held", "error: no cursor held"),
    ]);
    assert_eq!(
        ask(&mut database.session, "DECLARE p CURSOR WITH HOLD FOR SELECT a FROM t WHERE a = $1", &[Value::Integer(7)]),
        "DECLARE CURSOR"
    );
    assert_eq!(database.ask("FETCH ALL FROM p"), "7");
    let some = "SELECT a FROM t ORDER BY a OFFSET $1 ROWS FETCH FIRST ($2) ROWS ONLY";
    for two in [Value::Integer(2), Value::from("2")] {
        assert_eq!(ask(&mut database.session, some, &[two.clone(), two]), "3\n4");
    }
    for number in 0..99 {
        database.ask(&format!("DECLARE c{number} CURSOR WITH HOLD FOR SELECT 1"));
    }
    assert_eq!(
        database.ask("DECLARE more CURSOR WITH HOLD FOR SELECT 1"),
        "error: not supported: more than 100 cursors: CLOSE some"
    );
    database.expect(&[("DISCARD ALL", "DISCARD ALL"), ("FETCH 1 FROM p", "error: no cursor p")]);
    database.expect(&[
        ("DECLARE q CURSOR WITH HOLD FOR SELECT x FROM generate_series(1, 9) AS g(x)", "DECLARE CURSOR"),
        ("FETCH q", "1"),
        ("FETCH 2 q", "2\n3"),
        ("FETCH FORWARD 1 q", "4"),
        ("FETCH FORWARD q;", "5"),
        ("FETCH FROM q", "6"),
        ("FETCH NEXT IN q", "7"),
        ("FETCH ALL q", "8\n9"),
    ]);
}

#[test]
fn rows_that_were_asked_for_update_stay_as_they_are() {
    let mut database = numbers();
    let mut other = database.connect();
    ask(&mut other, "SET lock_timeout = '50ms'", &[]);
    database.expect(&[("SELECT a FROM t WHERE a = 1 FOR UPDATE", "1"), ("BEGIN", "BEGIN")]);
    assert_eq!(ask(&mut other, "UPDATE t SET a = -2 WHERE a = 2", &[]), "UPDATE 1", "nobody holds it");
    database.expect(&[("SELECT a FROM t WHERE a = 1 FOR UPDATE", "1")]);
    let refused = ask(&mut other, "UPDATE t SET a = -1 WHERE a = 1", &[]);
    assert!(refused.starts_with("error: "), "{refused}");
    database.expect(&[
        ("UPDATE t SET a = -1 WHERE a = 1", "UPDATE 1"),
        ("COMMIT", "COMMIT"),
        (
            "SELECT a FROM t FOR UPDATE SKIP LOCKED",
            "error: not supported: NOWAIT and SKIP LOCKED: SET lock_timeout says how long is waited",
        ),
        (
            "SELECT * FROM (SELECT a FROM t FOR UPDATE NOWAIT) AS s",
            "error: not supported: NOWAIT and SKIP LOCKED: SET lock_timeout says how long is waited",
        ),
        ("SELECT * FROM (SELECT 1 INTO x) AS s", "error: not supported: SELECT INTO: write CREATE TABLE ... AS"),
        ("BEGIN", "BEGIN"),
        ("SELECT * FROM (SELECT a FROM t WHERE a = 5 FOR UPDATE) AS s", "5"),
    ]);
    let refused = ask(&mut other, "UPDATE t SET a = -5 WHERE a = 5", &[]);
    assert!(refused.starts_with("error: "), "{refused}");
    database.expect(&[("COMMIT", "COMMIT")]);
    assert_eq!(ask(&mut other, "UPDATE t SET a = -3 WHERE a = 3", &[]), "UPDATE 1");
}

#[test]
fn discard_makes_a_session_new() {
    let mut database = numbers();
    database.expect(&[
        ("SET lock_timeout = '1s'", "SET"),
        ("PREPARE p AS SELECT 1", "PREPARE"),
        ("BEGIN", "BEGIN"),
        (
            "DISCARD ALL",
            "error: DISCARD ALL is no part of a transaction: COMMIT first, or run it alone (several statements in one text are a transaction, too)",
        ),
        ("ROLLBACK", "ROLLBACK"),
        ("DISCARD ALL", "DISCARD ALL"),
        ("EXECUTE p", "error: no prepared statement p"),
        ("SHOW lock_timeout", "5000ms"),
        ("DISCARD PLANS", "DISCARD PLANS"),
    ]);
}

#[test]
fn prepared_statements_are_bounded_and_their_arguments_checked() {
    let mut database = numbers();
    for number in 0..1000 {
        database.ask(&format!("PREPARE p{number} AS SELECT $1 + 0"));
    }
    database.expect(&[
        ("PREPARE more AS SELECT 1", "error: not supported: more than 1000 prepared statements: DEALLOCATE some"),
        ("DEALLOCATE p1", "DEALLOCATE"),
        ("PREPARE more AS SELECT 1", "PREPARE"),
        ("PREPARE more AS SELECT 2", "error: there is a prepared statement more already: DEALLOCATE it first"),
        ("EXECUTE p0(5)", "5"),
        ("EXECUTE p0", "error: p0 wants 1 arguments, and 0 were given"),
        ("EXECUTE p0(5, 6)", "error: p0 wants 1 arguments, and 2 were given"),
        ("EXPLAIN EXECUTE p0(5, 6)", "error: p0 wants 1 arguments, and 2 were given"),
        ("EXPLAIN EXECUTE nothing", "error: no prepared statement nothing"),
        ("DEALLOCATE p0", "DEALLOCATE"),
        ("PREPARE p0 (integer, text, date) AS SELECT $1 / 2, $2 || 'x'", "PREPARE"),
        ("EXECUTE p0(7.6, 5, '2026-01-01')", "4|5x"),
        ("EXECUTE p0('7', 5, NULL)", "3|5x"),
    ]);
    let plan = database.ask("EXPLAIN EXECUTE p0(7, 5, NULL)");
    assert!(plan.contains("Projection"), "{plan}");
    let least = ask(&mut database.session, "EXECUTE p0(-$1)", &[Value::Integer(i64::MIN)]);
    assert!(least.starts_with("error: not supported: the argument"), "{least}");
}

#[test]
fn cursors_that_saw_what_is_undone_end() {
    let mut database = numbers();
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("DECLARE before CURSOR FOR SELECT a FROM t ORDER BY a", "DECLARE CURSOR"),
        ("SAVEPOINT one", "SAVEPOINT"),
        ("INSERT INTO t VALUES (-1)", "INSERT 1"),
        ("DECLARE seen CURSOR FOR SELECT a FROM t ORDER BY a", "DECLARE CURSOR"),
        ("SAVEPOINT two", "SAVEPOINT"),
        ("DECLARE inner CURSOR WITH HOLD FOR SELECT a FROM t ORDER BY a", "DECLARE CURSOR"),
        ("FETCH 1 FROM inner", "-1"),
        ("ROLLBACK TO two", "ROLLBACK"),
        ("FETCH 1 FROM seen", "-1"),
        ("ROLLBACK TO one", "ROLLBACK"),
        ("FETCH 1 FROM before", "1"),
        ("FETCH 1 FROM seen", "error: no cursor seen"),
        ("ROLLBACK TO one", "ROLLBACK"),
        ("FETCH 1 FROM inner", "error: no cursor inner"),
        ("ROLLBACK TO one", "ROLLBACK"),
        ("SAVEPOINT two", "SAVEPOINT"),
        ("DECLARE kept CURSOR FOR SELECT 1", "DECLARE CURSOR"),
        ("RELEASE two", "RELEASE"),
        ("SAVEPOINT two", "SAVEPOINT"),
        ("ROLLBACK TO two", "ROLLBACK"),
        ("FETCH 1 FROM kept", "1"),
        ("COMMIT", "COMMIT"),
    ]);
}

#[test]
fn statements_that_are_prepared_are_queries_and_changes() {
    let mut database = numbers();
    let refused = "error: not supported: PREPARE of anything but SELECT, VALUES, INSERT, UPDATE and DELETE";
    database.expect(&[
        ("PREPARE a AS EXECUTE a", refused),
        ("PREPARE a AS PREPARE b AS SELECT 1", refused),
        ("PREPARE a AS DROP TABLE t", refused),
        ("PREPARE a AS VALUES (1)", "PREPARE"),
        ("EXECUTE a", "1"),
    ]);
}
