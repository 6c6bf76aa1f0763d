//! What clients of PostgreSQL do every day.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use counterfoil::{Database, Options, Role};
use counterfoil_postgres::{Limits, Listener, Settings};

use crate::client::{Client, message};
use crate::server::Server;

pub const LONG: &str =
    "SELECT count(*) FROM generate_series(1, 1000000) AS a(x), generate_series(1, 1000000) AS b(y) WHERE x + y = 3";

/// A Parse, with the types of its parameters.
pub fn parse(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let mut body = format!("{name}\0{sql}\0").into_bytes();
    body.extend((types.len() as u16).to_be_bytes());
    types.iter().for_each(|kind| body.extend(kind.to_be_bytes()));
    message(b'P', &body)
}

/// A Bind of values in binary, whose columns are to come in this format.
pub fn bind(portal: &str, statement: &str, values: &[Option<&[u8]>], format: u16) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0").into_bytes();
    body.extend([0, 1, 0, 1]);
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        body.extend(value.map_or(-1, |value| value.len() as i32).to_be_bytes());
        body.extend(value.unwrap_or_default());
    }
    body.extend([0, 1]);
    body.extend(format.to_be_bytes());
    message(b'B', &body)
}

pub fn execute(portal: &str, rows: i32) -> Vec<u8> {
    message(b'E', &[format!("{portal}\0").as_bytes(), &rows.to_be_bytes()].concat())
}

pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

#[test]
fn rows_are_those_of_the_facade() {
    let server = Server::new();
    let mut client = server.client("alice");
    let made = client.ask(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, price NUMERIC(10,2), at TIMESTAMP, raw BYTEA, good BOOLEAN);
         INSERT INTO t VALUES (1, 'ä', 1.5, '2024-02-29 12:00', '\\x00ff', true), (2, NULL, -0.05, NULL, NULL, false)",
    );
    assert_eq!(made.tags, ["CREATE TABLE", "INSERT 0 2"]);
    let read = client.ask("SELECT * FROM t ORDER BY id");
    assert_eq!(
        read.texts(),
        [["1", "ä", "1.50", "2024-02-29 12:00:00", "\\x00ff", "t"], ["2", "NULL", "-0.05", "NULL", "NULL", "f"]]
    );
    assert_eq!((read.tags, read.state), (vec!["SELECT 2".to_owned()], b'I'));
    // The facade sees what clients committed.
    let mut own = server.database.connect().expect("a connection");
    let rows = own.query("SELECT id FROM t", &[]).expect("rows").map(|batch| batch.expect("a batch").num_rows());
    assert_eq!(rows.sum::<usize>(), 2);
}

/// Numbers of objects, vectors and arrays are told as what PostgreSQL calls them, and sent as it sends them.
#[test]
fn the_catalogue_goes_as_it_does_from_postgresql() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (b, a))");
    let sql = "SELECT c.oid > 16383, c.relkind, i.indkey, ARRAY['x','y'], c.oid FROM pg_class c JOIN pg_index i ON i.indrelid = c.oid
               WHERE c.relname = 't'";
    let read = client.ask(sql);
    let row = read.texts().swap_remove(0);
    assert_eq!(row[..4], ["t", "r", "2 1", "{x,y}"]);
    let types: Vec<u32> = read.columns.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(types, [16, 18, 22, 1009, 26]);
    client.send(&[parse("", sql, &[]), bind("", "", &[], 1), execute("", 0), sync()].concat());
    let read = client.answer(None);
    let number = row[4].parse::<u32>().expect("a number");
    assert_eq!(read.rows[0][4], Some(number.to_be_bytes().to_vec()));
    let keys = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 2, 0, 0, 0, 2, 0, 1];
    assert_eq!(read.rows[0][2], Some(keys.to_vec()));
    // An array as a parameter is of the type that it is cast to.
    let wanted = [&keys[..8], &[0, 0, 0, 26, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4], &number.to_be_bytes()].concat();
    let sql = "SELECT relname FROM pg_class WHERE oid = ANY ($1::oid[])";
    client.send(&[parse("", sql, &[]), bind("", "", &[Some(&wanted)], 0), execute("", 0), sync()].concat());
    assert_eq!(client.answer(None).texts(), [["t"]]);
}

#[test]
fn parameters_and_columns_go_in_binary() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id BIGINT PRIMARY KEY, x DOUBLE PRECISION, name TEXT)");
    client.send(&parse("insert", "INSERT INTO t VALUES ($1, $2, $3)", &[20, 701, 25]));
    for id in 0..300i64 {
        let (number, half, name) = (id.to_be_bytes(), (id as f64 / 2.0).to_be_bytes(), format!("n{id}"));
        let name = (id % 3 > 0).then_some(name.as_bytes());
        client.send(&bind("", "insert", &[Some(&number), Some(&half), name], 0));
        client.send(&execute("", 0));
        client.send(&message(b'C', b"P\0"));
    }
    client.send(&sync());
    let stored = client.answer(None);
    assert_eq!((stored.error, stored.tags), (None, vec!["INSERT 0 1".to_owned(); 300]));
    client.send(&parse("select", "SELECT id, x, name FROM t WHERE id >= $1 ORDER BY id", &[20]));
    client.send(&bind("", "select", &[Some(&102i64.to_be_bytes())], 1));
    client.send(&[execute("", 0), sync()].concat());
    let read = client.answer(None);
    assert_eq!(read.rows.len(), 198);
    assert_eq!(read.rows[0], [Some(102i64.to_be_bytes().to_vec()), Some(51f64.to_be_bytes().to_vec()), None]);
}

#[test]
fn a_portal_gives_its_rows_piece_by_piece() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("BEGIN");
    client.send(&parse("", "SELECT value FROM generate_series(1, 20000) AS s(value)", &[]));
    client.send(&bind("p", "", &[], 0));
    client.send(&sync());
    client.answer(None);
    let (mut seen, mut rounds) = (0, 0);
    loop {
        client.send(&[execute("p", 3000), sync()].concat());
        let part = client.answer(None);
        assert!(part.rows.len() <= 3000 && part.error.is_none());
        part.texts().iter().for_each(|row| {
            seen += 1;
            assert_eq!(row[0], seen.to_string());
        });
        rounds += 1;
        if part.suspended == 0 {
            break;
        }
    }
    assert_eq!((seen, rounds), (20_000, 7));
    // With its transaction it ends.
    client.ask("COMMIT");
    client.send(&[execute("p", 0), sync()].concat());
    assert_eq!(client.answer(None).code(), "34000");
}

#[test]
fn what_stands_before_a_statement_does_not_hide_what_it_is() {
    let server = Server::new();
    let mut client = server.client("alice");
    for sql in [
        "SELECT 1",
        "\n  SELECT 1;",
        "/* one */ SELECT 1",
        "-- one\nSELECT 1",
        "(SELECT 1)",
        "WITH x AS (SELECT 1) SELECT * FROM x",
    ] {
        let ask = [
            parse("", sql, &[]),
            message(b'D', b"S\0"),
            bind("", "", &[], 0),
            message(b'D', b"P\0"),
            execute("", 0),
            sync(),
        ];
        client.send(&ask.concat());
        let answer = client.answer(None);
        assert_eq!((answer.described, answer.texts()), (2, vec![vec!["1".to_owned()]]), "{sql}");
    }
    client.send(&[parse("", " ; -- nothing", &[]), bind("", "", &[], 0), execute("", 0), sync()].concat());
    let nothing = client.answer(None);
    assert_eq!((nothing.error, nothing.tags.len()), (None, 0));
}

#[test]
fn too_many_clients_are_told_so_and_who_goes_makes_room() {
    let limits = Limits { connections_max: 2, strangers_max: 8, ..Limits::default() };
    let server = Server::with(|settings| settings.limits(limits));
    let (first, _second) = (server.client("alice"), server.client("bob"));
    let refused = server.shown("alice", crate::server::PASSWORD).err().expect("refused");
    assert_eq!(refused.0, "53300");
    drop(first);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while server.shown("alice", crate::server::PASSWORD).is_err() {
        assert!(std::time::Instant::now() < until, "room is made");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn those_who_say_nothing_keep_nobody_out() {
    let limits = Limits { strangers_max: 4, patience: Duration::from_secs(600), ..Limits::default() };
    let server = Server::with(|settings| settings.limits(limits));
    let silent: Vec<TcpStream> = (0..40).map(|_| crate::client::socket(server.listener.address())).collect();
    let mut client = server.client("alice");
    assert_eq!(client.ask("SELECT 1").texts(), [["1"]]);
    drop(silent);
}

#[test]
fn a_user_who_is_removed_goes_on_for_a_second_at_most() {
    let server = Server::new();
    let (mut alice, mut bob) = (server.client("alice"), server.client("bob"));
    server.database.users().remove("bob").expect("removed");
    server.database.users().add("bob", Role::Writer, &"another".to_owned().into()).expect("added");
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(alice.ask("SELECT 1").texts(), [["1"]]);
    bob.send(&message(b'Q', b"SELECT 1\0"));
    let told = bob.last_words();
    assert_eq!((told.code(), told.rows.len()), ("28000", 0));
}

#[test]
fn a_cancel_between_statements_leaves_out_those_behind() {
    let server = Server::new();
    let mut client = server.client("alice");
    // Most of the time passes between two of them, in reading and planning.
    let many = "SELECT 1;".repeat(20_000);
    for _ in 0..5 {
        let cancel = client.cancellation();
        let is_answered = Arc::new(AtomicBool::new(false));
        let until = is_answered.clone();
        let cancelling = std::thread::spawn(move || {
            // On a busy machine the first may come before the text has.
            while !until.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                cancel();
            }
        });
        let answer = client.ask(&many);
        is_answered.store(true, Ordering::Relaxed);
        assert_eq!(answer.code(), "57014", "{} were answered", answer.tags.len());
        cancelling.join().expect("a thread");
        assert_eq!(client.ask("SELECT 1").texts(), [["1"]]);
    }
}

#[test]
fn an_error_drops_what_follows_up_to_sync() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id INTEGER)");
    let insert = [parse("", "INSERT INTO t VALUES (1)", &[]), bind("", "", &[], 0), execute("", 0)].concat();
    client.send(
        &[parse("", "SELECT nothing", &[]), bind("", "", &[], 0), execute("", 0), insert.clone(), sync()].concat(),
    );
    assert!(client.answer(None).error.is_some());
    assert_eq!(client.ask("SELECT * FROM t").texts().len(), 0, "what followed did not run");
    client.send(&[insert, sync()].concat());
    assert_eq!(client.answer(None).tags, ["INSERT 0 1"]);
}

#[test]
fn several_statements_are_one_transaction_and_begin_is_another() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    let both = client.ask("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)");
    assert_eq!((both.code(), both.state), ("23505", b'I'));
    assert_eq!(client.ask("SELECT count(*) FROM t").texts(), [["0"]]);
    assert_eq!(client.ask("BEGIN; INSERT INTO t VALUES (1)").state, b'T');
    let failed = client.ask("INSERT INTO t VALUES (1)");
    assert_eq!((failed.code(), failed.state), ("23505", b'E'));
    assert_eq!(client.ask("ROLLBACK").state, b'I');
    assert_eq!(client.ask("SELECT count(*) FROM t").texts(), [["0"]]);
    assert_eq!(client.ask("INSERT INTO t VALUES (7) RETURNING id").tags, ["INSERT 0 1"]);
    assert_eq!(client.ask(" -- nothing").tags, Vec::<String>::new());
}

/// What a client copied in is there when it was told so, and not there when it gave it up, also behind the line that ends it.
#[test]
fn rows_that_are_given_up_are_not_there() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (a INTEGER, at TIMESTAMPTZ DEFAULT now())");
    client.send(&message(b'Q', b"COPY t (a) FROM STDIN\0"));
    client.send(&[message(b'd', b"1\n\\.\n"), message(b'f', b"no\0")].concat());
    let answer = client.answer(None);
    assert_eq!((answer.code(), answer.state), ("57014", b'I'));
    assert_eq!(client.ask("SELECT count(*) FROM t").texts(), [["0"]]);
    let copy = |client: &mut Client| {
        client.send(&message(b'Q', b"COPY t(a)FROM STDIN(FORMAT text)\0"));
        client.answer(Some(b"2\n\\.\n"))
    };
    assert_eq!(copy(&mut client).tags, ["COPY 1"]);
    assert_eq!(client.ask("SELECT a FROM t").texts(), [["2"]]);
    // A clock of its own: rows of a later statement are later.
    std::thread::sleep(std::time::Duration::from_millis(2));
    assert_eq!(copy(&mut client).tags, ["COPY 1"]);
    assert_eq!(client.ask("SELECT count(DISTINCT at) FROM t").texts(), [["2"]]);
    client.ask("BEGIN; SELECT nothing");
    let failed = copy(&mut client);
    assert_eq!((failed.code(), failed.state), ("25P02", b'E'));
    client.ask("ROLLBACK");
    let mut fresh = server.client("alice");
    assert_eq!(copy(&mut fresh).tags, ["COPY 1"], "the first statement of a connection has a clock, too");
}

#[test]
fn texts_have_no_zeros() {
    let server = Server::new();
    let mut client = server.client("alice");
    for (kind, format) in [(25, 0), (0, 0), (25, 1)] {
        client.send(&parse("", "SELECT $1", &[kind]));
        client.send(&message(b'B', &[&b"\0\0"[..], &[0, 1, 0, format, 0, 1, 0, 0, 0, 3], b"a\0b", &[0, 0]].concat()));
        client.send(&sync());
        assert_eq!(client.answer(None).code(), "22021");
    }
}

#[test]
fn settings_that_would_not_be_kept_are_refused() {
    let server = Server::new();
    let mut client = server.client("alice");
    for set in ["SET client_encoding = 'LATIN1'", "SET DateStyle = 'German'", "SET IntervalStyle = 'iso_8601'"] {
        assert_eq!(client.ask(set).code(), "0A000", "{set}");
    }
    for set in
        ["SET client_encoding = 'UTF-8'", "SET DateStyle = 'ISO'", "SET datestyle TO ISO, MDY", "SET NAMES 'utf8'"]
    {
        assert_eq!(client.ask(set).error, None, "{set}");
    }
    client.ask("SET statement_timeout = '100ms'");
    assert_eq!(client.ask("SHOW statement_timeout").texts(), [["100ms"]]);
    let long = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(v)";
    assert_eq!(client.ask(long).code(), "57014");
    client.ask("RESET statement_timeout");
    assert_eq!(client.ask("SELECT 1").texts(), [["1"]]);
}

/// Settings that come with the first words, alone and among options.
#[test]
fn first_words_set_what_set_does() {
    let server = Server::new();
    let options = "-c default_transaction_read_only=on -cstatement_timeout=5s --lock-timeout=1s";
    let first = [
        ("options", options),
        ("application_name", "my app"),
        ("client_encoding", "'utf-8'"),
        ("DateStyle", "ISO"),
        ("TimeZone", "Europe/Berlin"),
        ("extra_float_digits", "2"),
    ];
    let mut client = server.saying(&first).expect("a client");
    assert_eq!(client.greeted, ["times are shown and read in UTC here, and not in Europe/Berlin"]);
    assert_eq!(client.reported["application_name"], "my app");
    assert_eq!(client.reported["default_transaction_read_only"], "on");
    assert_eq!(client.reported["TimeZone"], "UTC");
    let shown = "SELECT current_setting('application_name'), current_setting('statement_timeout'), current_setting('lock_timeout')";
    assert_eq!(client.ask(shown).texts(), [["my app", "5000ms", "1000ms"]]);
    assert_eq!(client.ask("SHOW application_name").texts(), [["my app"]]);
    assert_eq!(client.ask("CREATE TABLE t (a INTEGER)").code(), "25006");
    client.ask("SET application_name = 'other'; SET default_transaction_read_only = off");
    assert_eq!(client.reported["application_name"], "other");
    assert_eq!(client.ask("CREATE TABLE t (a INTEGER)").error, None);
    // What pools send: it goes back to what was said first.
    let back = client.ask("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;");
    assert_eq!((back.error, back.tags.concat()), (None, "SELECT 1CLOSE CURSOR ALLUNLISTENRESET".into()));
    assert_eq!(client.reported["application_name"], "my app");
    for (name, value) in [
        ("options", "-c nonsense=1"),
        ("options", "-d"),
        ("client_encoding", "LATIN1"),
        ("default_transaction_isolation", "strict"),
        ("replication", "database"),
    ] {
        assert!(server.saying(&[(name, value)]).is_err(), "{name} = {value}");
    }
}

/// Drivers try a transaction again where they read 40001.
#[test]
fn a_transaction_that_another_one_overtook_is_told_to_try_again() {
    let server = Server::new();
    let (mut alice, mut other) = (server.client("alice"), server.client("alice"));
    alice.ask("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    alice.ask("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t");
    other.ask("INSERT INTO t VALUES (1)");
    assert_eq!(alice.ask("INSERT INTO t VALUES (2)").code(), "40001");
    alice.ask("ROLLBACK");
    alice.ask("BEGIN; INSERT INTO t VALUES (2)");
    other.ask("SET lock_timeout = '10ms'");
    assert_eq!(other.ask("INSERT INTO t VALUES (3)").code(), "55P03");
}

#[test]
fn rows_are_copied_in_and_out() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)");
    let text: String = (0..20_000).map(|id| format!("{id}\tname {id}\n")).collect();
    let copy = |client: &mut Client, rows: Option<&[u8]>| {
        client.send(&message(b'Q', b"COPY t FROM STDIN\0"));
        client.answer(rows)
    };
    assert_eq!(copy(&mut client, Some(text.as_bytes())).tags, ["COPY 20000"]);
    let out = client.ask("COPY (SELECT * FROM t ORDER BY id) TO STDOUT");
    assert_eq!((out.tags, String::from_utf8(out.copied)), (vec!["COPY 20000".to_owned()], Ok(text)));
    assert_eq!(out.pieces, 20_000, "a message for each row");
    let csv = client.ask("COPY (SELECT 1 AS a, E'two\\nlines' AS b) TO STDOUT WITH (FORMAT csv, HEADER)");
    assert_eq!((csv.copied, csv.pieces), (b"a,b\n1,\"two\nlines\"\n".to_vec(), 2));
    // A line that is no row undoes all of them, and so does giving them up.
    assert_eq!(copy(&mut client, Some(b"20000\tgood\nx\tbad\n20001\tgood\n")).code(), "22P02");
    assert_eq!(copy(&mut client, None).code(), "57014");
    assert_eq!(client.ask("SELECT count(*) FROM t").texts(), [["20000"]]);
}

#[test]
fn a_reader_changes_nothing_and_nobody_reaches_files() {
    let server = Server::new();
    let mut alice = server.client("alice");
    alice.ask("CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)");
    alice.ask("CREATE TABLE s (n TEXT, ts TIMESTAMP, x INTEGER, PRIMARY KEY (n, ts)) WITH (engine = 'series', commit_every = '1 ms')");
    let mut bob = server.client("bob");
    assert_eq!(bob.ask("SELECT id FROM t").texts(), [["1"]]);
    for change in [
        "INSERT INTO t VALUES (2)",
        "INSERT INTO s VALUES ('a', '2024-01-01', 1)",
        "UPDATE t SET id = 3",
        "DELETE FROM t",
        "TRUNCATE t",
        "DROP TABLE t",
        "CREATE TABLE u (id INTEGER)",
        "ALTER TABLE t ADD COLUMN x INTEGER",
        "CREATE VIEW v AS SELECT 1",
        "VACUUM",
        "SET on_rollback = 'record'",
        "WITH x AS (SELECT 5) INSERT INTO t SELECT * FROM x",
    ] {
        let (code, text) = bob.ask(change).error.expect(change);
        assert!(code == "55000" && text.contains("reader"), "{change}: {code} {text}");
    }
    bob.send(&message(b'Q', b"COPY t FROM STDIN\0"));
    assert_eq!(bob.answer(Some(b"5\n")).code(), "55000");
    assert_eq!(alice.ask("SELECT id FROM t").texts(), [["1"]]);
    assert_eq!(alice.ask("SELECT x FROM s").texts().len(), 0);
    for client in [&mut alice, &mut bob] {
        for copy in ["COPY t TO '/tmp/counterfoil-test.csv'", "COPY t FROM '/etc/passwd'"] {
            assert_eq!(client.ask(copy).code(), "0A000");
        }
    }
}

#[test]
fn who_shows_the_wrong_password_learns_nothing() {
    let server = Server::new();
    let wrong = server.shown("alice", "wrong horse").err().expect("refused");
    assert_eq!(wrong.0, "28P01");
    assert_eq!(server.shown("nobody", crate::server::PASSWORD).err(), Some(wrong.clone()));
    assert_eq!(server.shown("alice", "").err(), Some(wrong));
    server.client("alice");
}

#[test]
fn addresses_that_others_reach_and_databases_without_users_are_not_served() {
    let server = Server::new();
    let settings = |address: &str| Settings::at(address.parse().expect("an address"));
    assert!(Listener::bind(&server.database, settings("0.0.0.0:0")).is_err());
    assert!(Listener::bind(&server.database, settings("0.0.0.0:0").danger_no_authentication()).is_err());
    let empty = Database::create(Options::memory()).expect("a database");
    assert!(Listener::bind(&empty, settings("127.0.0.1:0")).is_err());
    let open = Listener::bind(&empty, settings("127.0.0.1:0").danger_no_authentication()).expect("a listener");
    let mut client = Client::connect(open.address(), "anybody", "").expect("a client");
    assert_eq!(client.ask("CREATE TABLE t (id INTEGER)").tags, ["CREATE TABLE"]);
}

#[test]
fn what_runs_is_cancelled_by_who_knows_the_key_and_the_connection_goes_on() {
    let server = Server::new();
    let mut client = server.client("alice");
    let (address, number, key) = (server.listener.address(), client.number, client.key);
    let cancel = move |key: [u8; 4]| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let head = [16u32.to_be_bytes(), 80_877_102u32.to_be_bytes()].concat();
        stream.write_all(&[head.as_slice(), &number, &key].concat()).expect("asked");
    };
    let cancelling = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        cancel(key.map(|byte| !byte));
        std::thread::sleep(Duration::from_millis(300));
        cancel(key);
    });
    let begun = std::time::Instant::now();
    assert_eq!(client.ask(LONG).code(), "57014");
    assert!(begun.elapsed() >= Duration::from_millis(600), "the wrong key ends nothing");
    cancelling.join().expect("a thread");
    assert_eq!(client.ask("SELECT 1").texts(), [["1"]]);
}

/// Somebody who has the writer, runs something endless, and goes; behind it stands more.
fn goes_in_the_middle(server: &Server, last_word: &[u8]) {
    let mut gone = server.client("alice");
    gone.ask("CREATE TABLE IF NOT EXISTS t (id BIGINT)");
    assert_eq!(gone.ask("BEGIN; INSERT INTO t VALUES (1)").code(), "none");
    gone.send(&message(b'Q', format!("{LONG}\0").as_bytes()));
    gone.send(&message(b'Q', format!("{LONG}\0").as_bytes()));
    gone.send(last_word);
    std::thread::sleep(Duration::from_millis(300));
}

#[test]
fn what_a_client_asked_for_ends_with_it_and_others_have_the_writer() {
    let server = Server::new();
    for last_word in [&[][..], &message(b'X', &[]), &message(b'Q', b"COMMIT\0")] {
        goes_in_the_middle(&server, last_word);
        let mut other = server.client("alice");
        other.ask("SET lock_timeout = '60s'");
        assert_eq!(other.ask("INSERT INTO t VALUES (2)").tags, ["INSERT 0 1"]);
    }
    assert_eq!(server.client("bob").ask("SELECT count(*), min(id) FROM t").texts(), [["3", "2"]]);
}

#[test]
fn shutting_down_ends_what_runs() {
    let Server { database, listener } = Server::new();
    let mut client = Client::connect(listener.address(), "alice", crate::server::PASSWORD).expect("a client");
    client.send(&message(b'Q', format!("{LONG}\0").as_bytes()));
    std::thread::sleep(Duration::from_millis(300));
    listener.shut_down();
    database.close().expect("closed");
}

/// What the shell says as `note:`.
#[test]
fn notices_come_beside_answers() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE s (n TEXT, ts TIMESTAMP, x INTEGER, PRIMARY KEY (n, ts)) WITH (engine = 'series', future_max = '1 h')");
    let insert = "INSERT INTO s VALUES ('a', '2999-01-01', 1)";
    let told = client.ask(insert);
    let is_told = |notices: &[String]| notices.len() == 1 && notices[0].contains("1 point of table s is more than");
    assert!(is_told(&told.notices) && told.error.is_none(), "{told:?}");
    client.send(&[parse("", insert, &[]), bind("", "", &[], 0), execute("", 0), sync()].concat());
    let told = client.answer(None);
    assert!(is_told(&told.notices) && told.error.is_none(), "{told:?}");
    client.send(&message(b'Q', b"COPY s FROM STDIN\0"));
    let told = client.answer(Some(b"a\t2999-01-02\t1\n"));
    assert!(is_told(&told.notices) && told.error.is_none(), "{told:?}");
    assert_eq!(client.ask("SELECT 1").notices.len(), 0);
}

#[test]
fn names_and_passwords_are_those_of_any_script() {
    let server = Server::new();
    let password = "ka\u{308}se \u{2168}";
    server.database.users().add("jürgen", Role::Reader, &password.to_owned().into()).expect("a user");
    // Clients prepare what they are given.
    let mut client = server.shown("jürgen", "käse IX").expect("a client");
    assert_eq!(client.ask("SELECT 'größer'").texts(), [["größer"]]);
    assert!(server.shown("jürgen", password).is_err(), "not prepared");
    assert_eq!(server.database.users().by_password("jürgen", password.as_bytes()).expect("read"), Some(Role::Reader));
}
