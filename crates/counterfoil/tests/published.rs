//! PUBLISH goes on by itself while the database is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use counterfoil::{Counter, Database, Key, Kind, Options, Role};
use counterfoil_mirror::site::Folder;
use counterfoil_reader::{Terms, read};

pub fn open(folder: &std::path::Path) -> Database {
    let options =
        Options::path(folder.join("db")).key(Key::from_hex(&"07".repeat(32)).expect("a key")).counter(Counter::None);
    if folder.join("db").exists() { Database::open(options) } else { Database::create(options) }.expect("a database")
}

pub fn owner_of(database: &Database, sql: &str) -> String {
    let batches: Vec<_> = database.connect().expect("a connection").query(sql, &[]).expect("published").collect();
    let batch = batches[0].as_ref().expect("a row");
    let mut text = String::new();
    counterfoil::write_cell(&mut text, batch.column(0), 0).expect("a text");
    text
}

/// Rows that a reader finds in the folder.
fn rows(folder: &std::path::Path, owner: &str) -> usize {
    let owner = owner.parse().expect("an owner");
    let now = counterfoil::publishing::now().expect("a clock");
    let terms = Terms { owner, now, clock_error: 1000, max_age: u64::MAX, hints: true };
    let mut site = Folder(folder.join("site"));
    // The folder may change while it is read.
    let reading = (0..50).find_map(|_| read(&mut site, "SELECT * FROM t", &terms, &mut None).ok());
    reading.expect("an answer").table.rows.len()
}

fn wait_for(folder: &std::path::Path, owner: &str, count: usize) {
    for _ in 0..600 {
        if rows(folder, owner) == count {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing was published by itself");
}

#[test]
fn what_changes_is_published_by_itself_after_an_opening_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = open(folder.path());
    let mut connection = database.connect().expect("a connection");
    connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)", &[]).expect("a table");
    let publish = format!("PUBLISH TABLE t ORDER BY n EVERY '1 s' TO 'dir:{}'", folder.path().join("site").display());
    let owner = owner_of(&database, &publish);
    assert_eq!(rows(folder.path(), &owner), 1);
    connection.execute("INSERT INTO t VALUES (2), (3)", &[]).expect("rows");
    wait_for(folder.path(), &owner, 3);
    drop(connection);
    database.close().expect("closed");
    // Whoever opens it and writes goes on.
    let database = open(folder.path());
    database.connect().expect("a connection").execute("DELETE FROM t WHERE n = 1", &[]).expect("a row less");
    wait_for(folder.path(), &owner, 2);
    // Until it is over.
    let mut connection = database.connect().expect("a connection");
    connection.execute("UNPUBLISH t; INSERT INTO t VALUES (9)", &[]).expect("no longer published");
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(rows(folder.path(), &owner), 2);
    drop(connection);
    database.close().expect("closed");
}

/// Of the only publication: when it was published last, and what went wrong since.
fn told_of(database: &Database) -> [String; 2] {
    let mut connection = database.connect().expect("a connection");
    let batches: Vec<_> = connection.query("SHOW PUBLICATIONS", &[]).expect("a list").collect();
    let batch = batches[0].as_ref().expect("a row");
    ["last_published", "last_error"].map(|name| {
        let mut text = String::new();
        counterfoil::write_cell(&mut text, batch.column_by_name(name).expect("a column"), 0).expect("a text");
        text
    })
}

#[test]
fn what_fails_is_told_and_was_not_published() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = open(folder.path());
    let mut connection = database.connect().expect("a connection");
    connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)", &[]).expect("a table");
    let site = folder.path().join("site");
    owner_of(&database, &format!("PUBLISH TABLE t ORDER BY n EVERY '1 s' TO 'dir:{}'", site.display()));
    assert_eq!(told_of(&database)[1], "");
    // A file is in the folder's place.
    std::fs::rename(&site, folder.path().join("away")).expect("renamed");
    std::fs::write(&site, "no folder").expect("written");
    let told = (0..600).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        Some(told_of(&database)).filter(|[_, error]| !error.is_empty())
    });
    let [published, error] = told.expect("what went wrong");
    assert!(!published.is_empty() && error.contains("site"), "{published}, {error}");
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(told_of(&database)[0], published, "nothing was published since");
    // Nor is it forgotten when the database is opened again.
    drop(connection);
    database.close().expect("closed");
    let database = open(folder.path());
    assert!(!told_of(&database)[0].is_empty(), "it was published before");
    std::fs::remove_file(&site).expect("removed");
    database.connect().expect("a connection").execute("INSERT INTO t VALUES (2)", &[]).expect("a row");
    for _ in 0..600 {
        if told_of(&database)[0] != published {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let told = told_of(&database);
    assert_ne!(told[0], published, "{told:?}");
    database.close().expect("closed");
}

#[test]
fn a_publish_that_is_interrupted_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = open(folder.path());
    let mut connection = database.connect().expect("a connection");
    connection.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)", &[]).expect("a table");
    connection.execute("INSERT INTO t SELECT * FROM generate_series(1, 1500)", &[]).expect("rows");
    let publish = format!("PUBLISH TABLE t ORDER BY n TO 'dir:{}'", folder.path().join("site").display());
    let left = Arc::new(AtomicI64::new(0));
    let asked = left.clone();
    connection.ask_while_waiting(move || asked.fetch_sub(1, Ordering::Relaxed) <= 0);
    let mut interrupted = 0;
    for looks in 1.. {
        left.store(looks, Ordering::Relaxed);
        match connection.execute(&publish, &[]) {
            Ok(_) => break,
            Err(error) => assert_eq!(error.kind(), Kind::Interrupted, "{error}"),
        }
        interrupted += 1;
        left.store(i64::MAX, Ordering::Relaxed);
        let shown: usize = connection
            .query("SHOW PUBLICATIONS", &[])
            .expect("a list")
            .map(|batch| batch.expect("rows").num_rows())
            .sum();
        assert!(shown == 0 && !folder.path().join("site").exists(), "after {looks}");
    }
    left.store(i64::MAX, Ordering::Relaxed);
    assert!(interrupted > 3, "it was interrupted {interrupted} times");
    let owner = owner_of(&database, &publish);
    assert_eq!(rows(folder.path(), &owner), 1500);
    drop(connection);
    database.close().expect("closed");
}

#[test]
fn users_from_outside_do_not_publish() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = open(folder.path());
    database.connect().expect("a connection").execute("CREATE TABLE t (n INTEGER)", &[]).expect("a table");
    for role in [Role::Reader, Role::Writer] {
        let mut connection = database.connect_as(role).expect("a connection");
        for sql in ["PUBLISH TABLE t ORDER BY n TO 'dir:x'", "UNPUBLISH t"] {
            let refused = connection.execute(sql, &[]).expect_err("refused");
            assert!(matches!(refused.kind(), Kind::Misuse | Kind::NotSupported), "{refused}");
        }
        connection.execute("SHOW PUBLICATIONS", &[]).expect("a list");
    }
}
