//! A database that has reached its size limit: what can be deleted still can.

use std::time::Duration;

use counterfoil::{Connection, Counter, Database, Error, Key, Kind, Options, Outcome};
use tempfile::TempDir;

const LIMIT_BYTES: u64 = 24 << 20;

fn limited(folder: &TempDir) -> Options {
    let key = Key::from_hex(&"0123456789abcdef".repeat(4)).expect("a key");
    let counter = Counter::File(folder.path().join("state"));
    Options::path(folder.path().join("db")).key(key).counter(counter).size_limit(LIMIT_BYTES)
}

/// Inserts until nothing goes in any more; answers how many rows did.
fn fill(connection: &mut Connection) -> i64 {
    let mut rows = 0;
    for step in [2000, 100] {
        loop {
            let text = format!(
                "INSERT INTO t SELECT v, repeat(chr(97 + v % 26), 1000) FROM generate_series({}, {}) AS s(v)",
                rows + 1,
                rows + step
            );
            match connection.execute(&text, &[]) {
                Ok(_) => rows += step,
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Full, "{error}");
                    break;
                }
            }
        }
    }
    rows
}

fn run(connection: &mut Connection, sql: &str) -> Result<u64, Error> {
    let outcomes = connection.run(sql, &[])?;
    Ok(outcomes.iter().map(|outcome| if let Outcome::Count { rows, .. } = outcome { *rows } else { 0 }).sum())
}

fn full(folder: &TempDir) -> (Database, Connection, i64) {
    let database = Database::create(limited(folder)).expect("made");
    let mut connection = database.connect().expect("connects");
    run(&mut connection, "CREATE TABLE t (a BIGINT PRIMARY KEY, b TEXT)").expect("made");
    let rows = fill(&mut connection);
    assert!(rows > 1000, "{rows}");
    (database, connection, rows)
}

#[test]
fn deleting_goes_on_where_the_database_is_full() {
    let folder = tempfile::tempdir().expect("a folder");
    let (database, mut connection, rows) = full(&folder);
    let insert = format!("INSERT INTO t VALUES ({}, repeat('x', 200000))", rows + 1);
    assert_eq!(run(&mut connection, &insert).err().map(|error| error.kind()), Some(Kind::Full));
    let deleted = run(&mut connection, "BEGIN; DELETE FROM t WHERE a > 500; COMMIT");
    assert_eq!(deleted.expect("deletes") as i64, rows - 500);
    assert_eq!(run(&mut connection, "DELETE FROM t WHERE a > 400").expect("deletes"), 100);
    drop(connection);
    let found = database.verify(&mut |_, _, _| ()).expect("verifies");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    assert_eq!(found.tables[0].rows, 400);
}

#[test]
fn a_transaction_that_deletes_and_inserts_is_not_given_what_is_kept_for_deletions() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_database, mut connection, rows) = full(&folder);
    let both =
        format!("BEGIN; DELETE FROM t WHERE a = 1; INSERT INTO t VALUES ({}, repeat('x', 400000)); COMMIT", rows + 1);
    assert_eq!(run(&mut connection, &both).err().map(|error| error.kind()), Some(Kind::Full));
    run(&mut connection, "ROLLBACK").expect("rolls back");
    run(&mut connection, "DELETE FROM t").expect("deletes");
}

/// Writers that come and go do not begin to wait for a reader anew, each for itself.
#[test]
fn a_reader_holds_space_for_its_time_and_no_longer() {
    const AGE: Duration = Duration::from_secs(2);
    let folder = tempfile::tempdir().expect("a folder");
    let (database, connection, rows) = full(&folder);
    drop(connection);
    database.close().expect("closes");
    let write = |age: Duration, sql: &str| -> Result<u64, Error> {
        let database = Database::open(limited(&folder).snapshot_max_age(age))?;
        let written = run(&mut database.connect()?, sql);
        database.close().and(written)
    };
    let fill = format!("INSERT INTO t SELECT v, repeat('x', 1000) FROM generate_series(1, {}) s(v)", rows / 2);
    let reader = Database::open(limited(&folder).snapshot_max_age(AGE).cache_bytes(0)).expect("opens");
    let mut reading = reader.connect().expect("connects");
    run(&mut reading, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t").expect("reads");
    assert_eq!(write(Duration::from_secs(300), "DELETE FROM t").expect("deletes") as i64, rows);
    let held = write(Duration::from_secs(300), &fill).expect_err("what the reader needs is kept");
    assert_eq!(held.kind(), Kind::Full);
    assert!(held.to_string().contains("while a reader holds snapshot"), "{held}");
    std::thread::sleep(AGE + Duration::from_secs(2));
    assert_eq!(write(AGE, &fill).expect("it has had its time") as i64, rows / 2);
    let late = run(&mut reading, "SELECT max(b) FROM t").map_err(|error| error.kind());
    assert!(matches!(late, Ok(_) | Err(Kind::SnapshotTooOld)), "{late:?}");
}

/// What a commit frees can be granted when it is counted. Nobody waits a second for that.
#[test]
fn what_was_emptied_is_used_again_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (database, mut connection, rows) = full(&folder);
    for turn in 0..3 {
        run(&mut connection, "TRUNCATE t").expect("empties");
        let insert = format!("INSERT INTO t SELECT v, repeat('y', 1000) FROM generate_series(1, {}) AS s(v)", rows / 2);
        run(&mut connection, &insert).unwrap_or_else(|error| panic!("turn {turn}: {error}"));
        run(&mut connection, "DELETE FROM t WHERE a % 2 = 0").expect("deletes");
        run(&mut connection, "VACUUM").unwrap_or_else(|error| panic!("turn {turn}: {error}"));
        fill_up(&mut connection);
    }
    drop(connection);
    let found = database.verify(&mut |_, _, _| ()).expect("verifies");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
}

fn fill_up(connection: &mut Connection) {
    let mut from = 1_000_000;
    while run(
        connection,
        &format!("INSERT INTO t SELECT v, repeat('z', 1000) FROM generate_series({from}, {}) AS s(v)", from + 499),
    )
    .is_ok()
    {
        from += 500;
    }
}

/// Of all segments a twentieth is left: each is renewed within what is kept for deletions.
#[test]
fn rows_that_were_deleted_everywhere_give_their_room_back() {
    for ram in [None, Some(64 << 10)] {
        let folder = tempfile::tempdir().expect("a folder");
        let options = ram.map_or(limited(&folder), |ram| limited(&folder).ram(ram));
        let database = Database::create(options).expect("made");
        let mut connection = database.connect().expect("connects");
        run(&mut connection, "CREATE TABLE t (a BIGINT PRIMARY KEY, b TEXT)").expect("made");
        let rows = fill(&mut connection);
        run(&mut connection, "DELETE FROM t WHERE a % 20 <> 0").expect("deletes");
        run(&mut connection, "VACUUM").unwrap_or_else(|error| panic!("{ram:?}: {error}"));
        let more = format!(
            "INSERT INTO t SELECT v, repeat('y', 1000) FROM generate_series(100001, {}) AS s(v)",
            100_000 + rows * 3 / 4
        );
        run(&mut connection, &more).unwrap_or_else(|error| panic!("{ram:?}, behind {rows}: {error}"));
        drop(connection);
        let found = database.verify(&mut |_, _, _| ()).expect("verifies");
        assert!(found.problems.is_empty(), "{:?}", found.problems);
    }
}
