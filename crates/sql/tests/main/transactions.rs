//! BEGIN to COMMIT, savepoints, failed statements, and what others see meanwhile.

use counterfoil_sql::TransactionState;

use crate::database::{Database, ask};

#[test]
fn a_transaction_sees_its_own_changes_and_others_do_not() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)");
    let mut other = database.connect();
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("INSERT INTO t VALUES (2)", "INSERT 1"),
        ("SELECT count(*) FROM t", "2"),
        ("DELETE FROM t WHERE a = 1", "DELETE 1"),
        ("SELECT a FROM t", "2"),
    ]);
    assert_eq!(ask(&mut other, "SELECT a FROM t", &[]), "1");
    assert_eq!(database.ask("COMMIT"), "COMMIT");
    assert_eq!(ask(&mut other, "SELECT a FROM t", &[]), "2");
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("DELETE FROM t", "DELETE 1"),
        ("ROLLBACK", "ROLLBACK"),
        ("SELECT a FROM t", "2"),
    ]);
}

#[test]
fn a_failed_statement_undoes_itself_and_waits_for_rollback() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("INSERT INTO t VALUES (1)", "INSERT 1"),
        ("SAVEPOINT s", "SAVEPOINT"),
        (
            "INSERT INTO t VALUES (2), (1)",
            "error: table t already has a row with this key (a): unique constraint t_pkey",
        ),
        ("SELECT count(*) FROM t", "error: the transaction has failed: ROLLBACK it first"),
    ]);
    assert_eq!(database.session.transaction_state(), TransactionState::Failed);
    database.expect(&[
        ("ROLLBACK TO s", "ROLLBACK"),
        ("SELECT a FROM t", "1"),
        ("INSERT INTO t VALUES (3)", "INSERT 1"),
        ("RELEASE s", "RELEASE"),
        ("COMMIT", "COMMIT"),
        ("SELECT a FROM t ORDER BY a", "1\n3"),
        ("BEGIN", "BEGIN"),
        ("SELECT nope", "error: no column nope"),
        ("COMMIT", "ROLLBACK"),
    ]);
    assert_eq!(database.session.transaction_state(), TransactionState::Idle);
}

#[test]
fn savepoints_nest_and_cover_definitions() {
    let mut database = Database::new();
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("SAVEPOINT empty", "SAVEPOINT"),
        ("CREATE TABLE t (a INTEGER)", "CREATE TABLE"),
        ("INSERT INTO t VALUES (1)", "INSERT 1"),
        ("SAVEPOINT one", "SAVEPOINT"),
        ("ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'x'", "ALTER TABLE"),
        ("INSERT INTO t VALUES (2, 'y')", "INSERT 1"),
        ("SELECT * FROM t ORDER BY a", "1|x\n2|y"),
        ("ROLLBACK TO one", "ROLLBACK"),
        ("SELECT * FROM t", "1"),
        ("ROLLBACK TO empty", "ROLLBACK"),
        ("SELECT * FROM t", "error: table 't' not found"),
        ("ROLLBACK", "ROLLBACK"),
        ("ROLLBACK TO one", "error: ROLLBACK TO SAVEPOINT stands inside a transaction: BEGIN one first"),
    ]);
}

#[test]
fn one_writes_and_the_others_wait_their_time() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    let mut other = database.connect();
    database.expect(&[("BEGIN", "BEGIN"), ("INSERT INTO t VALUES (1)", "INSERT 1")]);
    assert_eq!(ask(&mut other, "SET lock_timeout = '50ms'", &[]), "SET");
    assert!(ask(&mut other, "INSERT INTO t VALUES (2)", &[]).starts_with("error: another connection"));
    assert_eq!(ask(&mut other, "SELECT count(*) FROM t", &[]), "0");
    assert_eq!(database.ask("COMMIT"), "COMMIT");
    assert_eq!(ask(&mut other, "INSERT INTO t VALUES (2)", &[]), "INSERT 1");
    assert_eq!(database.ask("SELECT count(*) FROM t"), "2");
}

#[test]
fn who_waits_for_another_is_called_off() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    let mut other = database.connect();
    database.expect(&[("BEGIN", "BEGIN"), ("INSERT INTO t VALUES (1)", "INSERT 1")]);
    assert_eq!(ask(&mut other, "SET lock_timeout = '600s'; SET statement_timeout = '200ms'", &[]), "SET\nSET");
    assert_eq!(ask(&mut other, "INSERT INTO t VALUES (2)", &[]), "error: interrupted");
    assert_eq!(ask(&mut other, "SET statement_timeout = 0", &[]), "SET");
    let (interrupt, begun) = (other.interrupt(), std::time::Instant::now());
    let interrupting = std::thread::spawn(move || {
        while !interrupting_is_over(begun) {
            std::thread::sleep(std::time::Duration::from_millis(50));
            interrupt.raise();
        }
    });
    assert_eq!(ask(&mut other, "DELETE FROM t", &[]), "error: interrupted");
    interrupting.join().expect("a thread");
    assert_eq!(database.ask("COMMIT"), "COMMIT");
    assert_eq!(ask(&mut other, "DELETE FROM t", &[]), "DELETE 1");
}

/// For a second it is asked again and again: the statement begins within that, and forgets what was asked before.
fn interrupting_is_over(begun: std::time::Instant) -> bool {
    begun.elapsed() > std::time::Duration::from_secs(1)
}

#[test]
fn a_dropped_session_gives_the_writer_back() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    let mut other = database.connect();
    assert_eq!(ask(&mut other, "BEGIN; INSERT INTO t VALUES (1)", &[]), "BEGIN\nINSERT 1");
    drop(other);
    assert_eq!(database.ask("INSERT INTO t VALUES (2)"), "INSERT 1");
    assert_eq!(database.ask("SELECT a FROM t"), "2");
}

#[test]
fn repeatable_reads_repeat_and_refuse_to_write_over_others() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    let mut other = database.connect();
    database.expect(&[("BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN"), ("SELECT count(*) FROM t", "0")]);
    assert_eq!(ask(&mut other, "INSERT INTO t VALUES (1)", &[]), "INSERT 1");
    database.expect(&[
        ("SELECT count(*) FROM t", "0"),
        (
            "INSERT INTO t VALUES (2)",
            "error: another transaction committed since this one began: ROLLBACK and try again",
        ),
        ("ROLLBACK", "ROLLBACK"),
        ("BEGIN READ ONLY", "BEGIN"),
        ("INSERT INTO t VALUES (2)", "error: this transaction is READ ONLY"),
        ("ROLLBACK", "ROLLBACK"),
    ]);
}

#[test]
fn commits_need_not_wait_for_the_medium() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    database.expect(&[
        ("SHOW synchronous_commit", "on"),
        ("SET synchronous_commit = off", "SET"),
        ("SHOW synchronous_commit", "off"),
        ("INSERT INTO t VALUES (1)", "INSERT 1"),
        ("BEGIN", "BEGIN"),
        ("INSERT INTO t VALUES (2)", "INSERT 1"),
        ("COMMIT", "COMMIT"),
        ("SELECT sum(a) FROM t", "3"),
        ("SET synchronous_commit = maybe", "error: synchronous_commit is on or off, not maybe"),
        ("SET synchronous_commit = 'local'", "SET"),
        ("SHOW synchronous_commit", "on"),
        ("RESET ALL", "RESET"),
    ]);
}
