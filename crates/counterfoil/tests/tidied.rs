//! Tables are tidied in the background, when nobody writes.

use std::time::{Duration, Instant};

use counterfoil::{Connection, Counter, Database, Key, Options, TableUse};
use tempfile::TempDir;

fn options(folder: &TempDir) -> Options {
    let key = Key::from_hex(&"0123456789abcdef".repeat(4)).expect("a key");
    let counter = Counter::File(folder.path().join("state"));
    Options::path(folder.path().join("db")).key(key).counter(counter)
}

fn run(connection: &mut Connection, sql: &str) {
    drop(connection.run(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}")));
}

/// Rows of which most are deleted again, in statements that are over when it returns.
fn worn(database: &Database) -> Connection {
    let mut connection = database.connect().expect("connects");
    run(&mut connection, "CREATE TABLE t (a BIGINT PRIMARY KEY, b TEXT)");
    run(&mut connection, "INSERT INTO t SELECT v, repeat('b', 100) FROM generate_series(1, 100000) AS s(v)");
    // What deletes frees at once; an update of the same rows waits.
    run(&mut connection, "UPDATE t SET b = 'c' WHERE a > 30000");
    connection
}

fn kept(database: &Database) -> TableUse {
    database.inspect().expect("inspects").relations.into_iter().find(|(name, _)| name == "t").expect("the table").1
}

/// Looks until it is so; a machine that takes a minute for it has other troubles.
fn comes_true(mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn what_was_updated_is_tidied_when_nobody_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::create(options(&folder)).expect("made");
    let mut connection = worn(&database);
    assert!(comes_true(|| kept(&database).updates == 0), "{:?}", kept(&database));
    let found = database.verify(&mut |_, _, _| ()).expect("verifies");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    run(&mut connection, "INSERT INTO t VALUES (0, 'last')");
    drop(connection);
    database.close().expect("closes");
}

#[test]
fn without_it_commits_take_its_steps() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::create(options(&folder).reorganize(false)).expect("made");
    let mut connection = worn(&database);
    // One step after each commit: the UPDATE's own, and a few more.
    (0..8).for_each(|row| run(&mut connection, &format!("INSERT INTO t VALUES ({}, 'x')", -row)));
    assert_eq!(kept(&database).updates, 0, "{:?}", kept(&database));
    drop(connection);
    database.close().expect("closes");
}

#[test]
fn what_was_left_by_the_last_process_is_tidied_by_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = Database::create(options(&folder)).expect("made");
    drop(worn(&database));
    database.close().expect("closes");
    let database = Database::open(options(&folder)).expect("opens");
    assert!(kept(&database).updates > 0, "closed before anybody had the time");
    // The thread looks at all tables when somebody has written, whatever it was.
    let mut connection = database.connect().expect("connects");
    run(&mut connection, "CREATE TABLE other (a BIGINT)");
    assert!(comes_true(|| kept(&database).updates == 0), "{:?}", kept(&database));
}

#[test]
fn a_database_is_closed_in_the_middle_of_it_and_goes_on_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut database = Database::create(options(&folder)).expect("made");
    drop(worn(&database));
    for round in 0..20_u64 {
        // Sooner or later it is under way.
        std::thread::sleep(Duration::from_millis(90 + round * 3));
        database.close().expect("closes");
        database = Database::open(options(&folder)).expect("opens");
        let mut connection = database.connect().expect("connects");
        run(&mut connection, &format!("UPDATE t SET b = 'd{round}' WHERE a <= 2000"));
    }
    assert_eq!(kept(&database).rows, 100_000);
    assert_eq!(database.verify(&mut |_, _, _| ()).expect("verifies").problems, []);
}
