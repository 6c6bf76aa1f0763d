//! `serve` and `user`: a listener that clients of InfluxDB write to, killed and told to end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::lines::recorded_is_there;
use super::served::Served;
use super::stage::Stage;

/// A server of the database `db`.
struct Server {
    served: Served,
    address: String,
}

impl Server {
    fn start(stage: &Stage, options: &[&str]) -> Self {
        let served = Served::start(stage, &[&["serve", "db", "--influx", "127.0.0.1:0"], options].concat());
        let line = served.says("line protocol at http://");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split(": ").next());
        Self { address: address.expect("an address").to_owned(), served }
    }

    /// Sends a request, and answers its status and body.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head[9..12].parse().expect("a status"), body.trim_end().to_owned())
    }

    fn write(&self, path: &str, lines: &str) -> (u16, String) {
        self.ask("POST", path, "", lines.as_bytes())
    }

    fn good(&self, path: &str, lines: &str) {
        assert_eq!(self.write(path, lines), (204, String::new()));
    }

    fn query(&self, text: &str) -> String {
        let path = format!("/query?q={}", text.replace(' ', "%20").replace('"', "%22"));
        let (status, body) = self.ask("POST", &path, "", b"");
        assert_eq!(status, 200, "{body}");
        body
    }
}

const OPEN: [&str; 1] = ["--no-auth"];

/// The answer is given when the rows are durable: they are there after the server is killed at any moment behind it.
#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let stage = Stage::with_database();
    for round in 0..3 {
        let mut server = Server::start(&stage, &OPEN);
        for row in 0..20 {
            let time = round * 1000 + row;
            server.good("/write?db=a", &format!("m,h=a x={row} {time}\nm,h=b x={row},y=1i {time}"));
        }
        server.served.child.kill().expect("killed");
        server.served.child.wait().expect("ends");
        let rows = (round + 1) * 40;
        assert_eq!(stage.ask("SELECT count(*), count(y) FROM m"), format!("{rows},{}", rows / 2));
    }
    stage.good(&["verify", "db"]);
}

#[test]
fn what_telegraf_sends_is_stored() {
    let stage = Stage::with_database();
    let mut server = Server::start(&stage, &OPEN);
    let recorded =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../influx/tests/data/telegraf.lp")).expect("recorded");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&recorded).expect("packed");
    let packed = packed.finish().expect("packed");
    server.query("CREATE DATABASE \"telegraf\"");
    let answer = server.ask("POST", "/write?db=telegraf&consistency=any", "content-encoding: gzip\r\n", &packed);
    assert_eq!(answer.0, 204, "{}", answer.1);
    let (status, body) = server.ask("POST", "/api/v2/write?org=x&bucket=telegraf&precision=ns", "", &recorded);
    assert_eq!(status, 204, "{body}");
    // Others read beside it, and see what was acknowledged.
    recorded_is_there(&stage);
    stage.refused(&["db", "CREATE TABLE t (a INT)", "--lock-timeout", "0.2"], 4, &["is writing"]);
    assert_eq!(server.served.end(Signal::SIGTERM), Some(0));
    server.served.says("ending");
    recorded_is_there(&stage);
    stage.good(&["db", "CREATE TABLE t (a INT)"]);
}

#[test]
fn lines_that_are_wrong_are_named_and_the_others_are_stored() {
    let stage = Stage::with_database();
    let mut server = Server::start(&stage, &["--no-auth", "--quality-field", "q", "--quality-field", "Quality"]);
    server.good("/write?db=a&precision=s", "m,h=a x=1,q=\"Good\",n=7u 1");
    let (status, body) = server.write(
        "/write?db=a&precision=s",
        "m,h=a x=2i 2\nm,h=a x=3,q=\"nonsense\" 3\nm,h=a x=4 4\nm,h=a,rack=1 x=5 5\nm,h=a n=18446744073709551615u 6\nm,h=a q=4i 1",
    );
    assert_eq!(status, 400);
    for part in [
        "partial write: 4 of 6 lines were dropped",
        "line 1: type conflict: field \\\"x\\\" is integer here, its column float: send float",
        "line 2: \\\"nonsense\\\" is no quality",
        "line 4: tag \\\"rack\\\" is not in the key of the table",
        "line 5: a number out of the range of column \\\"n\\\", numeric(18,0)",
    ] {
        assert!(body.contains(part), "{part} is not in {body}");
    }
    assert_eq!(server.served.end(Signal::SIGINT), Some(0));
    assert_eq!(stage.ask("SELECT x, q, n FROM m ORDER BY time"), "1,0,7;4,,");
}

#[test]
fn databases_are_names_before_tables() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE mine (a INT)"]);
    let mut server = Server::start(&stage, &OPEN);
    assert!(server.query("SHOW DATABASES").contains(r#""values":[]"#));
    server.query("CREATE DATABASE first WITH REPLICATION 1");
    server.good("/write?db=first", "cpu,h=a x=1 1");
    server.good("/write?db=second", "cpu,h=a x=2i 1\ncpu,h=a x=3i 2");
    assert!(server.query("SHOW DATABASES").contains(r#"[["first"],["second"]]"#));
    let (status, body) = server.write("/write?db=first", "mine x=1 1\nsecond.cpu,h=a x=1i 1");
    assert_eq!(status, 400);
    assert!(
        body.contains("is a relation, not a series table") && body.contains("is that of influx_database"),
        "{body}"
    );
    assert_eq!(server.write("/write?db=a%2Fb%2F", "cpu x=1").0, 400);
    assert_eq!(server.served.end(Signal::SIGTERM), Some(0));
    assert_eq!(stage.ask("SELECT (SELECT sum(x) FROM cpu), (SELECT sum(x) FROM \"second.cpu\")"), "1,5");
    // What is dropped is what was made for that database.
    stage.good(&[
        "db",
        "CREATE TABLE own (h TEXT, time TIMESTAMP(9), x DOUBLE PRECISION, PRIMARY KEY (h, time)) WITH (engine = 'series')",
    ]);
    let mut server = Server::start(&stage, &OPEN);
    server.good("/write?db=first", "own,h=a x=9 1");
    server.query("DROP DATABASE first");
    server.query("DROP DATABASE nobody");
    assert!(server.query("SHOW DATABASES").contains(r#"[["second"]]"#));
    server.good("/write?db=third", "cpu,h=a x=7 1");
    server.served.end(Signal::SIGTERM);
    assert_eq!(
        stage.ask("SELECT (SELECT sum(x) FROM cpu), (SELECT sum(x) FROM \"second.cpu\"), (SELECT sum(x) FROM own)"),
        "7,5,9"
    );
    stage.good(&["db", "SELECT * FROM mine"]);
    stage.good(&["verify", "db"]);
}

#[test]
fn nothing_is_made_where_that_is_forbidden() {
    let stage = Stage::with_database();
    let columns = "(h TEXT, time TIMESTAMP(9), x DOUBLE PRECISION, PRIMARY KEY (h, time)) WITH (engine = 'series')";
    stage.good(&["db", &format!("CREATE TABLE m {columns}")]);
    let server = Server::start(&stage, &["--no-auth", "--no-create"]);
    server.good("/write?db=a", "m,h=a x=1 1");
    let (status, body) = server.write("/write?db=a", "m,h=a x=2 2\nm,h=a x=3,y=3 3\nother x=1 1");
    assert_eq!(status, 400);
    assert!(body.contains("line 2: there is no column \\\"y\\\", and none may be made"), "{body}");
    assert!(body.contains("line 3: there is no table \\\"other\\\", and none may be made"), "{body}");
    drop(server);
    assert_eq!(stage.ask("SELECT count(*) FROM m"), "2");
}

#[test]
fn users_are_added_listed_and_removed() {
    let stage = Stage::with_database();
    stage.write("p", "secret\n");
    stage.write("empty", "\n");
    assert_eq!(stage.good(&["user", "list", "db"]), "");
    stage.good(&["user", "add", "db", "ann", "--password-file", "p"]);
    let token = stage.good(&["user", "add", "db", "collector", "--token"]);
    assert!(token.starts_with("cft_") && token.len() == 69, "{token}");
    let reader = stage.good(&["user", "add", "db", "reader@example.com", "--role", "reader", "--token", "-q"]);
    assert_ne!(reader, token);
    let list = stage.good(&["user", "list", "db"]);
    let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    assert_eq!(
        list.lines().map(words).collect::<Vec<_>>(),
        ["ann writer password", "collector writer token", "reader@example.com reader token"]
    );
    stage.refused(&["user", "add", "db", "ann", "--token"], 1, &["there is a user ann already"]);
    stage.refused(&["user", "add", "db", "a:b", "--token"], 1, &["not a name for a user"]);
    stage.refused(&["user", "add", "db", "eve", "--password-file", "empty"], 1, &["the password is empty"]);
    stage.refused(&["user", "add", "db", "eve"], 1, &["no password was given", "--token"]);
    stage.refused(&["user", "remove", "db", "eve"], 1, &["no user eve", "user list"]);
    stage.good(&["user", "remove", "db", "ann"]);
    assert_eq!(stage.good(&["user", "list", "db"]).lines().count(), 2);
    // Neither the file nor a copy of it shows a secret, and a copy under a new key keeps the users.
    let image = stage.read("db");
    for secret in [&b"secret"[..], token.trim().as_bytes(), b"collector"] {
        assert!(!image.windows(secret.len()).any(|bytes| bytes == secret), "in the file");
    }
    stage.good(&["rekey", "db", "--data"]);
    assert_eq!(stage.good(&["user", "list", "db"]).lines().count(), 2);
    stage.good(&["verify", "db"]);
}

fn basic(user: &str, password: &str) -> String {
    format!("/write?db=a&u={user}&p={password}")
}

#[test]
fn who_writes_shows_a_token_or_a_password() {
    let stage = Stage::with_database();
    stage.refused(&["serve", "db", "--influx", "127.0.0.1:0"], 1, &["there is no user", "user add", "--no-auth"]);
    stage.refused(&["serve", "db", "--influx", "0.0.0.0:0", "--no-auth"], 1, &["only a loopback address", "0.0.0.0:0"]);
    stage.write("p", "secret");
    stage.good(&["user", "add", "db", "ann", "--password-file", "p"]);
    let token = stage.good(&["user", "add", "db", "collector", "--token"]).trim().to_owned();
    let reader = stage.good(&["user", "add", "db", "look", "--role", "reader", "--token"]).trim().to_owned();
    let mut server = Server::start(&stage, &[]);
    let shown = |header: &str| server.ask("POST", "/write?db=a", header, b"m x=1 1").0;
    let header = |text: &str| shown(&format!("authorization: {text}\r\n"));
    assert_eq!(header(&format!("Token {token}")), 204);
    assert_eq!(header(&format!("Bearer {token}")), 204);
    assert_eq!(header("Token ann:secret"), 204);
    assert_eq!(header(&format!("Token collector:{token}")), 204);
    assert_eq!(server.write(&basic("ann", "secret"), "m x=2 2").0, 204);
    assert_eq!(server.write(&basic("anybody", &token), "m x=2 2").0, 204, "as clients of version 1 send tokens");
    assert_eq!(shown(""), 401);
    for wrong in
        ["Token wrong", "Token ann:wrong", "Token nobody:secret", "Basic YW5uOnNlY3JldDI=", "Token ann", "Token "]
    {
        assert_eq!(header(wrong), 401, "{wrong}");
    }
    assert_eq!(header(&format!("Token {}", &token[..token.len() - 1])), 401);
    assert_eq!(header(&format!("Token {reader}")), 403);
    let query = |text: &str, token: &str| {
        server.ask("POST", &format!("/query?q={text}"), &format!("authorization: Token {token}\r\n"), b"").0
    };
    assert_eq!((query("SHOW%20DATABASES", &reader), query("DROP%20DATABASE%20a", &reader)), (200, 403));
    assert_eq!((query("SHOW%20DATABASES", &token), query("SHOW%20DATABASES", "x")), (200, 401));
    assert_eq!(server.ask("GET", "/ping", "", b"").0, 204);
    assert_eq!(server.ask("GET", "/health", "", b"").0, 200);
    assert_eq!(server.served.end(Signal::SIGTERM), Some(0));
    let said: Vec<String> = server.served.told.try_iter().collect();
    assert!(!said.iter().any(|line| line.contains("secret") || line.contains(&token)), "{said:?}");
    assert_eq!(stage.ask("SELECT count(*) FROM m"), "2");
}

#[test]
fn what_cannot_be_served_is_said() {
    let stage = Stage::with_database();
    stage.refused(&["serve", "db"], 1, &["nothing to serve", "--influx"]);
    stage.refused(&["serve", "db", "--postgres", "127.0.0.1:0"], 1, &["no user who could come in", "user add"]);
    stage.refused(&["serve", "db", "--postgres", "0.0.0.0:0", "--no-auth"], 1, &["loopback"]);
    stage.refused(&["serve", "db", "--influx", "nowhere"], 1, &["no address", "(nowhere)"]);
    stage.refused(&["serve", "none", "--influx", "1", "--no-auth"], 1, &["there is no such database (none)"]);
    stage.refused(&["user", "list", ":memory:"], 1, &["in memory"]);
    let server = Server::start(&stage, &OPEN);
    stage.refused(
        &["serve", "db", "--influx", &server.address, "--no-auth"],
        2,
        &["could not listen", &server.address],
    );
    // A writer elsewhere: clients are told to come again, and do.
    let mut writer = stage.spawn(&["db"]);
    let mut input = writer.stdin.take().expect("a pipe");
    writeln!(input, "CREATE TABLE t (a INT); SELECT 'ready';").expect("written");
    let mut answers = BufReader::new(writer.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(answers.read_line(&mut line).expect("read") > 0, "it ended early");
    }
    let (status, body) = server.write("/write?db=a", "m x=1 1");
    assert!(status == 503 && body.contains("is writing"), "{status} {body}");
    drop(input);
    writer.wait().expect("ends");
    server.good("/write?db=a", "m x=1 1");
}
