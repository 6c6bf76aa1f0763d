//! Bytes that no client sends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::client::{message, startup};
use crate::server::Server;

/// How long bytes are made up.
fn duration() -> Duration {
    match std::env::var("COUNTERFOIL_PROOF").as_deref() {
        Ok("full") => Duration::from_secs(600),
        _ => Duration::from_secs(5),
    }
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.listener.address()).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a patience");
    stream
}

/// Sends it all, says that nothing more comes, and reads until the server ends.
fn send(stream: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    // Whoever is not understood may be gone before all of it was sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionReset,
            "the server ends a connection that it was told the end of"
        );
    }
    answer
}

/// Memory of this process, in KiB, without what it has mapped of files: pages of the program come as they are first run.
pub fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Messages of which each may be whole, cut, too long, or noise.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        Just("SELECT 1".to_owned()),
        Just("SELECT $1::BIGINT".to_owned()),
        Just("BEGIN".to_owned()),
        Just("COPY t FROM STDIN".to_owned()),
        Just("s".to_owned()),
        Just(String::new()),
        "[ -~]{0,40}",
    ];
    let body = prop_oneof![
        3 => proptest::collection::vec((text, any::<bool>()), 0..4).prop_map(|texts| {
            let mut body = Vec::new();
            for (text, ends) in texts {
                body.extend(text.bytes());
                body.extend(ends.then_some(0));
            }
            body
        }),
        1 => proptest::collection::vec(any::<u8>(), 0..60),
        1 => Just([b"\0\0".as_slice(), &[0xff; 12]].concat()),
        1 => Just(b"\0s\0\0\0\0\x01\0\0\0\x01x\0\0".to_vec()),
        1 => Just(b"\0\x7f\xff\xff\xff".to_vec()),
    ];
    let kind = prop_oneof![5 => prop::sample::select(b"QPBDECSHXdcfFp".to_vec()), 1 => any::<u8>()];
    let whole =
        (kind, body, prop_oneof![8 => Just(0i32), 1 => -6i32..60, 1 => any::<i32>()]).prop_map(|(kind, body, off)| {
            let length = (body.len() as i32 + 4).wrapping_add(off).to_be_bytes();
            [&[kind], length.as_slice(), &body].concat()
        });
    proptest::collection::vec(whole, 0..8).prop_map(|messages| messages.concat())
}

#[test]
fn bytes_that_are_made_up_end_a_connection_and_nothing_else() {
    let strangers = Server::new();
    let guests = Server::with(|settings| settings.danger_no_authentication());
    let mut client = guests.client("anybody");
    client.ask("CREATE TABLE t (id INTEGER)");
    let (mut runner, made_up) = (TestRunner::deterministic(), messages());
    let (begun, mut rounds, mut before) = (Instant::now(), 0, 0);
    while begun.elapsed() < duration() || rounds < 200 {
        let bytes = made_up.new_tree(&mut runner).expect("bytes").current();
        let greeting = startup("alice");
        send(&mut connect(&guests), &[greeting.as_slice(), &bytes].concat());
        send(&mut connect(&strangers), &[greeting.as_slice(), &bytes].concat());
        send(&mut connect(&strangers), &bytes);
        rounds += 1;
        if rounds == 200 {
            before = memory();
        }
    }
    println!("{rounds} rounds, {} KiB at first, {} KiB in the end", before, memory());
    assert!(memory() < before + 64 * 1024, "{before} KiB grew to {} KiB", memory());
    assert_eq!(client.ask("SELECT count(*) FROM t").texts().len(), 1, "it goes on");
    assert_eq!(strangers.client("alice").ask("SELECT 1").texts(), [["1"]], "it lets in whoever may come");
}

#[test]
fn strangers_take_little_and_are_told_so() {
    let server = Server::new();
    // A gigabyte is announced before anybody has shown who is there.
    let long = [0x3fff_ffffu32.to_be_bytes().as_slice(), &196_608u32.to_be_bytes()].concat();
    let answer = send(&mut connect(&server), &long);
    assert!(answer.starts_with(b"E") && String::from_utf8_lossy(&answer).contains("08P01"));
    let greeted = [startup("alice"), vec![b'p', 0x3f, 0xff, 0xff, 0xff]].concat();
    assert!(String::from_utf8_lossy(&send(&mut connect(&server), &greeted)).contains("08P01"));
    // A statement of somebody who was not let in does not run.
    let asked = [startup("alice"), message(b'Q', b"CREATE TABLE t (id INTEGER)\0")].concat();
    assert!(String::from_utf8_lossy(&send(&mut connect(&server), &asked)).contains("08P01"));
    assert!(server.client("alice").ask("SELECT * FROM t").error.is_some());
    // Encryption is not there, and asking for it is answered.
    let answer = send(&mut connect(&server), &[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
    assert_eq!(answer, b"N");
    // Another protocol.
    assert!(String::from_utf8_lossy(&send(&mut connect(&server), &[0, 0, 0, 8, 0, 2, 0, 0])).contains("0A000"));
}

#[test]
fn an_answer_of_any_number_of_rows_takes_no_room_for_them() {
    let server = Server::with(|settings| settings.danger_no_authentication());
    let execute = [b"\0".as_slice(), &i32::MAX.to_be_bytes()].concat();
    let bytes = [
        startup("a"),
        message(b'P', b"\0SELECT 1\0\0\0"),
        message(b'B', b"\0\0\0\0\0\0\0\0"),
        message(b'E', &execute),
        message(b'S', b""),
        message(b'X', b""),
    ]
    .concat();
    let answer = send(&mut connect(&server), &bytes);
    assert!(answer.windows(8).any(|bytes| bytes == b"SELECT 1"), "the tag of one row");
}

#[test]
fn names_are_bounded_and_the_connection_goes_on() {
    let server = Server::with(|settings| settings.danger_no_authentication());
    let parse = |number: usize| message(b'P', format!("s{number}\0SELECT 1\0\0\0").as_bytes());
    let mut bytes = startup("a");
    (0..1001).for_each(|number| bytes.extend(parse(number)));
    bytes.extend(message(b'S', b""));
    bytes.extend(message(b'C', b"Ss7\0"));
    bytes.extend(parse(2000));
    bytes.extend(message(b'S', b""));
    bytes.extend(message(b'X', b""));
    let answer = send(&mut connect(&server), &bytes);
    let parsed = answer.windows(5).filter(|bytes| *bytes == b"1\0\0\0\x04").count();
    assert_eq!(parsed, 1001, "a thousand, and one in the place of another");
    assert!(String::from_utf8_lossy(&answer).contains("53400"));
}
