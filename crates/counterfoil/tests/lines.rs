//! Line protocol and users, as a program uses them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use counterfoil::{Database, InfluxOptions, Kind, LinePrecision, Lines, Options, Role, Secret};

fn database() -> Database {
    Database::create(Options::memory()).expect("a database")
}

fn ask(database: &Database, sql: &str) -> String {
    let mut connection = database.connect().expect("a connection");
    let mut text = String::new();
    for batch in connection.query(sql, &[]).expect("an answer") {
        let batch = batch.expect("rows");
        for row in 0..batch.num_rows() {
            for column in batch.columns() {
                counterfoil::write_cell(&mut text, column, row).expect("a cell");
                text.push(' ');
            }
            text.push('\n');
        }
    }
    text.trim_end().to_owned()
}

#[test]
fn lines_are_stored_in_the_transaction_of_a_connection() {
    let database = database();
    let mut connection = database.connect().expect("a connection");
    let text = "m,h=a x=1,y=true 1\nm,h=a x=2i 2\nm,h=a x=3 3\nm,h=b y=false 4\nn z=1u 5\n";
    let mut lines = Lines::new(text.as_bytes(), LinePrecision::Seconds, &[]);
    connection.execute("BEGIN", &[]).expect("begun");
    // Two rows at a time: what the first statement made, the second one finds.
    while lines.store_some(&database, &mut connection, 2).expect("stored") {}
    assert_eq!(ask(&database, "SELECT count(*) FROM information_schema.tables WHERE table_name = 'm'"), "0");
    connection.execute("COMMIT", &[]).expect("committed");
    let imported = lines.imported();
    assert_eq!((imported.lines, imported.rows, imported.refused()), (5, 4, 1));
    assert_eq!(imported.why(), "line 2: type conflict: field \"x\" is integer here, its column float: send float");
    assert_eq!(ask(&database, "SELECT sum(x), count(y), min(time) FROM m"), "4 2 1970-01-01 00:00:01");
}

/// A line of another type that comes first in a later stretch does not turn the good ones away.
#[test]
fn a_column_keeps_its_type_from_one_stretch_to_the_next() {
    let database = database();
    let mut connection = database.connect().expect("a connection");
    let text = "m x=1 1\nm x=2i 2\nm x=3 3\nm x=4 4\nm x=5i 5\nm x=6 6\n";
    let mut lines = Lines::new(text.as_bytes(), LinePrecision::Nanoseconds, &[]);
    while lines.store_some(&database, &mut connection, 1).expect("stored") {}
    assert_eq!((lines.imported().rows, lines.imported().refused()), (4, 2));
    assert_eq!(ask(&database, "SELECT sum(x) FROM m"), "14");
}

#[test]
fn a_source_that_fails_ends_with_what_it_said() {
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from_raw_os_error(5))
        }
    }
    let database = database();
    let mut connection = database.connect().expect("a connection");
    let error =
        Lines::new(Failing, LinePrecision::Nanoseconds, &[]).store_some(&database, &mut connection, 9).unwrap_err();
    assert_eq!(error.kind(), Kind::Device);
}

fn post(address: SocketAddr, target: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let request = format!(
        "POST {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn loopback() -> InfluxOptions {
    InfluxOptions::at("127.0.0.1:0".parse().expect("an address"))
}

#[test]
fn many_clients_write_at_once_beside_a_connection() {
    let database = database();
    let listener = database.serve_influx(loopback().danger_no_authentication()).expect("a listener");
    let address = listener.address();
    let writing = |client: usize| {
        move || {
            for row in 0..25 {
                let answer = post(address, "/write?db=a", &format!("m,client=c{client} x={row} {row}\n"));
                assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
            }
        }
    };
    let clients: Vec<_> = (0..8).map(|client| std::thread::spawn(writing(client))).collect();
    let mut connection = database.connect().expect("a connection");
    for round in 0..10 {
        connection.execute(&format!("CREATE TABLE t{round} (a INT)"), &[]).expect("a table");
    }
    clients.into_iter().for_each(|client| client.join().expect("a client"));
    assert_eq!(ask(&database, "SELECT count(*), sum(x) FROM m"), "200 2400");
    let (ending, stopper) = (listener.ending(), listener.ending());
    std::thread::spawn(move || stopper.stop());
    ending.wait().expect("stopped");
    listener.shut_down();
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    drop(connection);
    database.close().expect("closed");
}

/// A transaction that holds the writer is waited for no longer than the lock timeout, and nothing of the batch is there.
#[test]
fn a_writer_that_does_not_end_is_not_waited_for() {
    let patience = std::time::Duration::from_millis(100);
    let database = Database::create(Options::memory().lock_timeout(patience)).expect("a database");
    let listener = database.serve_influx(loopback().danger_no_authentication()).expect("a listener");
    let answer = post(listener.address(), "/write?db=a", "m x=0 0");
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    let mut connection = database.connect().expect("a connection");
    connection.execute("BEGIN; CREATE TABLE t (a INT)", &[]).expect("begun");
    let answer = post(listener.address(), "/write?db=a", "m x=1 1");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    connection.execute("COMMIT", &[]).expect("committed");
    let answer = post(listener.address(), "/write?db=a", "m x=1 1");
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert_eq!(ask(&database, "SELECT count(*) FROM m"), "2");
}

#[test]
fn users_show_what_they_were_given() {
    let database = database();
    let users = database.users();
    assert_eq!(database.serve_influx(loopback()).err().map(|error| error.kind()), Some(Kind::Misuse));
    users.add("ann", Role::Reader, &Secret::from("pass:word".to_owned())).expect("added");
    let token = users.add_with_token("collector", Role::Writer).expect("added");
    assert_eq!(users.by_password("ann", b"pass:word").expect("read"), Some(Role::Reader));
    assert_eq!(users.by_token(token.as_bytes()).expect("read"), Some(Role::Writer));
    assert_eq!(users.by_password("ann", token.as_bytes()).expect("read"), Some(Role::Writer));
    for (name, password) in [("ann", "password"), ("ann", ""), ("collector", ""), ("nobody", "pass:word")] {
        assert_eq!(users.by_password(name, password.as_bytes()).expect("read"), None, "{name}");
    }
    assert_eq!(users.by_token(b"pass:word").expect("read"), None, "a password is no token");
    assert_eq!(users.by_token(b"").expect("read"), None);
    users.remove("ann").expect("removed");
    assert_eq!(users.by_password("ann", b"pass:word").expect("read"), None);
    assert_eq!(users.list().expect("read").len(), 1);
    assert_eq!(users.remove("ann").unwrap_err().kind(), Kind::NotFound);
}

/// Names of databases that come at once are made once, and one of them is plain.
#[test]
fn one_database_is_plain() {
    let database = database();
    let listener = Arc::new(database.serve_influx(loopback().danger_no_authentication()).expect("a listener"));
    let clients = (0..6).map(|client| {
        let listener = listener.clone();
        std::thread::spawn(move || {
            let answer =
                post(listener.address(), &format!("/write?db=d{}", client % 3), &format!("m x={client} {client}"));
            assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        })
    });
    clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().expect("a client"));
    let tables =
        ask(&database, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1");
    let names: Vec<&str> = tables.lines().map(str::trim).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(names.iter().filter(|name| **name == "m").count(), 1, "{names:?}");
}
