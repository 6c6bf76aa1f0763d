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
    let told = ask(&mut other, "INSERT INTO t VALUES (2)", &[]);
    assert!(told.starts_with("error: interrupted: it took longer than statement_timeout says"), "{told}");
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

/// What transactions are that say nothing of it, and what the one is that is open.
#[test]
fn transactions_are_what_was_said_of_them() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    let read_only = "error: this transaction is READ ONLY";
    database.expect(&[
        ("SHOW transaction_isolation", "read committed"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET"),
        ("SHOW default_transaction_read_only", "on"),
        ("SHOW transaction_read_only", "on"),
        ("INSERT INTO t VALUES (1)", read_only),
        ("CREATE TABLE u (a INTEGER)", read_only),
        ("BEGIN", "BEGIN"),
        ("DELETE FROM t", read_only),
        ("ROLLBACK", "ROLLBACK"),
        ("BEGIN READ WRITE", "BEGIN"),
        ("SHOW transaction_read_only", "off"),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET"),
        ("SELECT current_setting('transaction_read_only')", "off"),
        ("INSERT INTO t VALUES (1), (2)", "INSERT 2"),
        ("SHOW transaction_isolation", "serializable"),
        ("COMMIT", "COMMIT"),
        ("SET default_transaction_read_only TO off", "SET"),
        ("SET default_transaction_isolation = 'repeatable read'", "SET"),
        ("SHOW transaction_isolation", "repeatable read"),
        ("START TRANSACTION READ ONLY, NOT DEFERRABLE", "BEGIN"),
        ("SHOW TRANSACTION ISOLATION LEVEL", "repeatable read"),
        ("SELECT count(*) FROM t", "2"),
    ]);
    let mut other = database.connect();
    assert_eq!(ask(&mut other, "INSERT INTO t VALUES (3)", &[]), "INSERT 1");
    database.expect(&[
        ("SELECT count(*) FROM t", "2"),
        ("COMMIT", "COMMIT"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE", "BEGIN"),
        ("SHOW transaction_isolation", "serializable"),
        ("SET transaction_read_only = off", "SET"),
        ("INSERT INTO t VALUES (4)", "INSERT 1"),
        ("COMMIT", "COMMIT"),
        ("BEGIN DEFERRABLE, ISOLATION LEVEL READ COMMITTED", "BEGIN"),
        ("SELECT current_setting('transaction_isolation')", "read committed"),
        ("COMMIT", "COMMIT"),
        (
            "SET default_transaction_isolation = 'strict'",
            "error: strict is no level of isolation: read uncommitted, read committed, repeatable read, serializable are",
        ),
        ("RESET ALL", "RESET"),
        ("SHOW transaction_isolation", "read committed"),
    ]);
    assert!(database.ask("BEGIN READ").starts_with("error: "));
}

/// A transaction that has asked stays what it is, in whichever words it is told otherwise.
#[test]
fn settings_change_no_transaction_that_has_asked() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    for change in [
        "SET transaction_read_only = off",
        "SET LOCAL transaction_read_only = off",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "SET transaction_isolation = 'serializable'",
    ] {
        database.expect(&[("BEGIN READ ONLY", "BEGIN"), ("SELECT count(*) FROM t", "0")]);
        let refused = database.session.run(change, &[]).unwrap_err();
        assert_eq!(refused.sqlstate(), Some("25001"), "{change}: {refused}");
        assert!(database.ask("INSERT INTO t VALUES (1)").starts_with("error: "), "{change}");
        database.expect(&[("ROLLBACK", "ROLLBACK")]);
    }
    // What it is already it may be told at any time.
    database.expect(&[
        ("BEGIN READ ONLY", "BEGIN"),
        ("SELECT count(*) FROM t", "0"),
        ("SET transaction_read_only = on", "SET"),
        ("COMMIT", "COMMIT"),
    ]);
}

/// SET LOCAL ends with its transaction, and what is undone is undone in settings, too.
#[test]
fn settings_go_with_their_transaction() {
    let mut database = Database::new();
    database.expect(&[
        ("SET application_name = 'first'", "SET"),
        ("BEGIN", "BEGIN"),
        ("SET LOCAL application_name = 'local'", "SET"),
        ("SHOW application_name", "local"),
        ("COMMIT", "COMMIT"),
        ("SHOW application_name", "first"),
        ("BEGIN", "BEGIN"),
        ("SET application_name = 'second'", "SET"),
        ("SET LOCAL statement_timeout = '7s'", "SET"),
        ("SAVEPOINT one", "SAVEPOINT"),
        ("SET LOCAL application_name = 'third'", "SET"),
        ("SET statement_timeout = '9s'", "SET"),
        ("SAVEPOINT two", "SAVEPOINT"),
        ("SET enable_summaries = off", "SET"),
        ("RELEASE two", "RELEASE"),
        ("SHOW enable_summaries", "off"),
        ("ROLLBACK TO one", "ROLLBACK"),
        ("SELECT current_setting('application_name'), current_setting('statement_timeout')", "second|7000ms"),
        ("SHOW enable_summaries", "on"),
        ("COMMIT", "COMMIT"),
        ("SELECT current_setting('application_name'), current_setting('statement_timeout')", "second|0"),
        ("BEGIN", "BEGIN"),
        ("SET application_name = 'lost'", "SET"),
        ("SELECT nope", "error: no column nope"),
        ("COMMIT", "ROLLBACK"),
        ("SHOW application_name", "second"),
        ("BEGIN", "BEGIN"),
        ("RESET application_name", "RESET"),
        ("SELECT set_config('lock_timeout', '1s', true)", "1s"),
        ("ROLLBACK", "ROLLBACK"),
        ("SHOW application_name", "second"),
        ("SHOW lock_timeout", "5000ms"),
        ("SET LOCAL application_name = 'nobody'", "SET"),
        ("SHOW application_name", "second"),
    ]);
    database.ask("SET LOCAL application_name = 'nobody'");
    assert_eq!(database.session.take_notices(), ["SET LOCAL is for a transaction, and there is none"]);
}

/// RESET goes back to what a client said before its first statement.
#[test]
fn reset_goes_back_to_what_was_said_first() {
    let mut database = Database::new();
    database.session.begin_with("Application_Name", "mine").unwrap();
    database.session.begin_with("default_transaction_read_only", "on").unwrap();
    assert!(database.session.begin_with("nonsense", "1").is_err());
    database.expect(&[
        ("SHOW application_name", "mine"),
        ("CREATE TABLE t (a INTEGER)", "error: this transaction is READ ONLY"),
        ("SET application_name = 'other'", "SET"),
        ("SET default_transaction_read_only = off", "SET"),
        ("RESET ALL", "RESET"),
        ("SHOW application_name", "mine"),
        ("SHOW default_transaction_read_only", "on"),
        ("SET application_name = 'other'", "SET"),
        ("SET application_name TO DEFAULT", "SET"),
        ("SELECT current_setting('application_name')", "mine"),
        ("RESET nonsense", "error: no setting nonsense: SHOW ALL lists them"),
    ]);
}

/// What pools of connections send when one comes back.
#[test]
fn a_session_that_is_given_back_is_as_new() {
    let mut database = Database::after("SET application_name = 'x'; PREPARE p AS SELECT 1");
    database.expect(&[
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "DECLARE CURSOR"),
        ("SELECT pg_advisory_unlock_all()", ""),
        ("CLOSE ALL", "CLOSE CURSOR ALL"),
        ("UNLISTEN *", "UNLISTEN"),
        ("RESET ALL", "RESET"),
        ("SHOW application_name", ""),
        ("FETCH 1 FROM c", "error: no cursor c"),
        ("EXECUTE p", "1"),
        ("DEALLOCATE ALL", "DEALLOCATE ALL"),
        ("EXECUTE p", "error: no prepared statement p"),
        ("SET application_name = 'x'", "SET"),
        ("DISCARD ALL", "DISCARD ALL"),
        ("SELECT current_setting('application_name')", ""),
    ]);
}

/// What tools say before they begin: taken where it changes nothing, and refused where it would.
#[test]
fn settings_of_tools_are_taken_or_refused() {
    let mut database = Database::new();
    for sql in [
        "SET work_mem = '64MB'",
        "SET bytea_output = 'hex'",
        "SET check_function_bodies = false",
        "SET xmloption = content",
        "SET default_tablespace = ''",
        "SET synchronize_seqscans TO off",
        "SET ROLE NONE",
        "SET SESSION ROLE NONE",
        "RESET ROLE",
        "SET NAMES 'utf8'",
        "SET TIME ZONE DEFAULT",
        "SET TIME ZONE LOCAL",
    ] {
        assert!(["SET", "RESET"].contains(&database.ask(sql).as_str()), "{sql}: {}", database.ask(sql));
    }
    for (sql, why) in [
        ("SET bytea_output = 'escape'", "error: not supported: SET bytea_output to anything but hex"),
        ("SET xmloption = document", "error: not supported: SET xmloption to anything but content"),
        (
            "SET default_tablespace = 'fast'",
            "error: not supported: SET default_tablespace to anything but an empty text",
        ),
        ("SET synchronize_seqscans TO on", "error: not supported: SET synchronize_seqscans to anything but off"),
        ("SET TIME ZONE 'Europe/Berlin'", "error: not supported: SET timezone to anything but UTC"),
    ] {
        assert_eq!(database.ask(sql), why, "{sql}");
    }
    assert!(database.ask("SET ROLE alice").starts_with("error: not supported"));
}

/// What a transaction is said to be within a part of it is undone with that part, and said again by a second BEGIN.
#[test]
fn modes_are_those_that_were_said_last_and_not_undone() {
    Database::after("CREATE TABLE t (a INTEGER)").expect(&[
        ("BEGIN", "BEGIN"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("SET TRANSACTION READ ONLY", "SET"),
        ("INSERT INTO t VALUES (1)", "error: this transaction is READ ONLY"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("INSERT INTO t VALUES (1)", "INSERT 1"),
        ("BEGIN READ ONLY", "BEGIN"),
        ("INSERT INTO t VALUES (2)", "error: this transaction is READ ONLY"),
        ("ROLLBACK", "ROLLBACK"),
    ]);
}

/// What a transaction may do, and what it sees, is said before it looks at anything.
#[test]
fn a_transaction_that_has_asked_stays_what_it_is() {
    let mut database = Database::after("CREATE TABLE t (a INTEGER)");
    database.expect(&[
        ("BEGIN READ ONLY", "BEGIN"),
        ("SET TRANSACTION READ WRITE", "SET"),
        ("SET TRANSACTION READ ONLY", "SET"),
        ("SHOW transaction_read_only", "on"),
        ("SELECT 1", "1"),
        ("SET TRANSACTION READ ONLY", "SET"),
        (
            "SET TRANSACTION READ WRITE",
            "error: SET TRANSACTION READ WRITE comes before the first query of a transaction",
        ),
        ("SELECT 1", "error: the transaction has failed: ROLLBACK it first"),
        ("ROLLBACK", "ROLLBACK"),
        ("BEGIN", "BEGIN"),
        ("INSERT INTO t VALUES (1)", "INSERT 1"),
        ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", "SET"),
        (
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            "error: SET TRANSACTION ISOLATION LEVEL comes before the first query of a transaction",
        ),
        ("ROLLBACK", "ROLLBACK"),
    ]);
    database.expect(&[("BEGIN READ ONLY", "BEGIN"), ("SELECT count(*) FROM t", "0")]);
    let refused = database.session.run("SET TRANSACTION READ WRITE", &[]).unwrap_err();
    assert_eq!(refused.sqlstate(), Some("25001"));
}

#[test]
fn what_a_query_that_fails_wanted_set_is_not() {
    let mut database = Database::new();
    database.expect(&[
        ("SELECT set_config('application_name', 'one', false), 1", "one|1"),
        ("SELECT set_config('application_name', 'two', false), 1 / 0", "error: division by zero"),
        ("SHOW application_name", "one"),
        (
            "SELECT set_config('application_name', 'two', false), set_config('bytea_output', 'escape', false)",
            "error: not supported: SET bytea_output to anything but hex",
        ),
        ("SELECT set_config('application_name', 'two', false), nothing", "error: no column nothing"),
        ("SHOW application_name", "one"),
        ("BEGIN", "BEGIN"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("SELECT set_config('application_name', 'two', false)", "two"),
        ("SELECT set_config('application_name', 'three', false), 1 / 0", "error: division by zero"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("SHOW application_name", "one"),
        ("COMMIT", "COMMIT"),
        ("SHOW application_name", "one"),
    ]);
}
