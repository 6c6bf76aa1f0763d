//! `serve --postgres`: a client comes in, and the server ends as it is told to, or when its database cannot go on.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::served::Served;
use super::stage::Stage;

/// A server of the database `db`.
struct Server {
    served: Served,
    address: String,
}

impl Server {
    fn start(stage: &Stage, options: &[&str]) -> Self {
        let words = [&["serve", "db", "--postgres", "127.0.0.1:0", "--no-auth"], options].concat();
        let served = Served::start(stage, &words);
        let line = served.says("PostgreSQL's protocol at ");
        let place = line.split(" at ").nth(1).and_then(|rest| rest.split(": ").next()).expect("an address");
        Self { address: place.replace(" port ", ":"), served }
    }

    fn client(&self) -> Client {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a patience");
        let mut client = Client(stream);
        let fields = b"\0\x03\0\0user\0anybody\0\0";
        client.0.write_all(&[&(fields.len() as u32 + 4).to_be_bytes()[..], fields].concat()).expect("sent");
        client.answer().expect("let in");
        client
    }
}

/// As much of a client as statements and texts need.
struct Client(TcpStream);

impl Client {
    /// The cells of all rows, or the error.
    fn ask(&mut self, sql: &str) -> Result<Vec<String>, String> {
        let length = (sql.len() as u32 + 5).to_be_bytes();
        self.0.write_all(&[b"Q", length.as_slice(), sql.as_bytes(), b"\0"].concat()).expect("sent");
        self.answer()
    }

    fn answer(&mut self) -> Result<Vec<String>, String> {
        let (mut cells, mut error) = (Vec::new(), None);
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).expect("a message");
            let mut body = vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4];
            self.0.read_exact(&mut body).expect("all of it");
            match head[0] {
                b'D' => cells.extend(row(&body)),
                b'E' => error = Some(String::from_utf8_lossy(&body).into_owned()),
                b'Z' => return error.map_or(Ok(cells), Err),
                _ => {}
            }
        }
    }
}

fn row(body: &[u8]) -> Vec<String> {
    let (mut rest, mut cells) = (&body[2..], Vec::new());
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (cell, next) = behind.split_at(u32::from_be_bytes(*length) as usize);
        cells.push(String::from_utf8_lossy(cell).into_owned());
        rest = next;
    }
    cells
}

#[test]
fn a_client_is_answered_and_what_it_committed_is_there_when_the_server_was_told_to_end() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let stage = Stage::with_database();
        let mut server = Server::start(&stage, &["--influx", "127.0.0.1:0"]);
        let mut client = server.client();
        assert_eq!(client.ask("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)"), Ok(Vec::new()));
        assert_eq!(client.ask("SELECT a, 'ä' FROM t ORDER BY a"), Ok(["1", "ä", "2", "ä"].map(str::to_owned).into()));
        let mut open = server.client();
        open.ask("BEGIN; INSERT INTO t VALUES (3)").expect("begun");
        assert_eq!(server.served.end(signal), Some(0));
        server.served.says("ending");
        assert_eq!(stage.ask("SELECT sum(a) FROM t"), "3", "what was not committed is not there");
        stage.good(&["verify", "db"]);
        stage.good(&["db", "INSERT INTO t VALUES (4)"]);
    }
}

#[test]
fn a_database_that_cannot_be_trusted_ends_its_server() {
    let stage = Stage::with_database();
    stage.good(&["db", "CREATE TABLE t AS SELECT v, 'name ' || v AS n FROM generate_series(1, 20000) AS s(v)"]);
    let mut server = Server::start(&stage, &[]);
    let mut client = server.client();
    let file = OpenOptions::new().write(true).open(stage.path("db")).expect("the file");
    let bytes = file.metadata().expect("its size").len();
    (bytes / 8..bytes).step_by(512).for_each(|at| file.write_at(&[0x5a; 64], at).map(drop).expect("written"));
    assert!(client.ask("SELECT sum(length(n)) FROM t").is_err_and(|error| error.contains("XX001")));
    assert_eq!(server.served.child.wait().expect("ends").code(), Some(3));
    server.served.says("error: ");
}

#[test]
fn certificates_are_told_of_before_anybody_is_served() {
    let stage = Stage::with_database();
    stage.write("p", "secret");
    stage.good(&["user", "add", "db", "ann", "--password-file", "p"]);
    let serve = |options: &[&str], code: i32, says: &[&str]| {
        stage.refused(&[&["serve", "db", "--postgres", "127.0.0.1:0"], options].concat(), code, says);
    };
    stage.write("none.pem", "");
    serve(&["--tls-certificate-file", "gone.pem", "--tls-key-file", "k"], 1, &["gone.pem"]);
    serve(&["--tls-certificate-file", "none.pem", "--tls-key-file", "k"], 1, &["no certificate", "none.pem"]);
    let data = |name: &str| format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../postgres/tests/data/{}"), name);
    let (certificate, key) = (data("pkcs8.pem"), data("pkcs1.key"));
    let options = ["--tls-certificate-file", &certificate, "--tls-key-file", &key];
    serve(&options, 1, &["not that of the certificate", "pkcs1.key"]);
    // Neither alone, nor without whom it is for.
    for options in [&options[..2], &options[2..]] {
        assert_eq!(stage.run(&[&["serve", "db", "--postgres", "1"], options].concat()).code, 1);
    }
    assert_eq!(stage.run(&[&["serve", "db", "--influx", "1"], &options[..]].concat()).code, 1);
    stage.refused(&["serve", "db", "--postgres", "0.0.0.0:0"], 1, &["without TLS", "--tls-certificate-file"]);
}
