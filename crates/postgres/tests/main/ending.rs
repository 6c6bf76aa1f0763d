//! A database that cannot go on ends its serving.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use counterfoil::{Database, Ending, Key, Kind, Options};
use counterfoil_postgres::{Listener, Settings};

use crate::client::Client;

#[test]
fn what_cannot_be_trusted_ends_the_serving() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("db");
    let options = || Options::path(&path).key(Key::bytes(&[7; 32]));
    let database = Database::create(options()).expect("a database");
    let mut connection = database.connect().expect("a connection");
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)", &[]).expect("a table");
    let rows = "INSERT INTO t SELECT value, 'name ' || value FROM generate_series(1, 20000) AS s(value)";
    connection.execute(rows, &[]).expect("rows");
    drop(connection);
    database.close().expect("closed");

    let database = Database::open(options()).expect("a database");
    let settings = Settings::at("127.0.0.1:0".parse().expect("an address")).danger_no_authentication();
    let listener = Listener::bind(&database, settings).expect("a listener");
    let ending: Ending = listener.ending();
    let mut client = Client::connect(listener.address(), "anybody", "").expect("a client");
    // What is wrong with a statement ends nothing.
    for wrong in ["SELECT nothing", "SELECT 1 / 0", "INSERT INTO t VALUES (1, 'twice')", "COPY t FROM '/etc/passwd'"] {
        assert!(client.ask(wrong).error.is_some(), "{wrong}");
    }
    assert!(!ending.is_over());
    let file = OpenOptions::new().write(true).open(&path).expect("the file");
    let bytes = file.metadata().expect("its size").len();
    // All but what was read when it was opened.
    (bytes / 8..bytes).step_by(512).for_each(|at| file.write_at(&[0x5a; 64], at).map(drop).expect("written"));
    let answer = client.ask("SELECT count(name), sum(length(name)) FROM t");
    assert_eq!(answer.code(), "XX001");
    assert!(ending.is_over(), "whoever serves it is told before the client");
    let error = ending.wait().expect_err("it cannot go on");
    assert!(matches!(error.kind(), Kind::Tampered | Kind::Corrupt), "{error}");
    listener.shut_down();
}
