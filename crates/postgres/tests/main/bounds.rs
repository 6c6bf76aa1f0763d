//! What a client may hold, and what stays understandable when something is refused.

use std::io::Write;

use counterfoil_postgres::Limits;

use crate::client::{Client, message, socket, startup};
use crate::clients::{bind, execute, parse, sync};
use crate::server::{PASSWORD, Server};

/// Numbers that look drawn, the same in each run.
struct Noise(u64);

impl Noise {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next(256) as u8).collect()
    }
}

fn small_budget() -> Server {
    let limits = Limits { small_bytes: 1000, large_bytes_max: 1_000_000, ..Limits::default() };
    Server::with(|settings| settings.limits(limits))
}

/// A statement of so many bytes, in two halves.
fn halves(bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut whole = message(b'Q', format!("SELECT length('{}')\0", "x".repeat(bytes)).as_bytes());
    let rest = whole.split_off(bytes / 2);
    (whole, rest)
}

#[test]
fn large_messages_share_one_budget() {
    let server = small_budget();
    let (mut first, mut second) = (server.client("alice"), server.client("alice"));
    let (begun, rest) = halves(800_000);
    let large = format!("SELECT length('{}')", "x".repeat(600_000));
    // The server takes room for a message when it reads its head, beside us: where the second was there before the
    // first, it is the first that was refused or came later. It ends its message then, and begins another.
    let refused = (1..=100).find_map(|attempt| {
        first.send(&begun);
        std::thread::sleep(std::time::Duration::from_millis(10 * attempt));
        let answer = second.ask(&large);
        if answer.error.is_none() {
            first.send(&rest);
            first.answer(None);
        }
        answer.error
    });
    let (code, text) = refused.expect("refused");
    assert!(code == "53200" && text.contains("no room"), "{code} {text}");
    // Small ones need none of it, and what is large comes in when the first has gone.
    assert_eq!(second.ask("SELECT 1").texts(), [["1"]]);
    first.send(&rest);
    assert_eq!(first.answer(None).texts(), [["800000"]]);
    let (begun, rest) = halves(900_000);
    second.send(&[begun, rest].concat());
    assert_eq!(second.answer(None).texts(), [["900000"]]);
    // More than there is at all.
    let (begun, rest) = halves(1_100_000);
    second.send(&[begun, rest].concat());
    assert_eq!(second.answer(None).code(), "53200");
}

#[test]
fn who_finds_no_room_fails_in_its_own_transaction_and_goes_on() {
    let server = small_budget();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id INTEGER, name TEXT); BEGIN; INSERT INTO t VALUES (1, 'a')");
    let text = "x".repeat(1_200_000);
    let large = [parse("", &format!("SELECT '{text}'"), &[]), bind("", "", &[], 0), execute("", 0)].concat();
    client.send(&[large, parse("", "INSERT INTO t VALUES (2)", &[]), sync()].concat());
    let answer = client.answer(None);
    assert_eq!((answer.code(), answer.state), ("53200", b'E'));
    assert_eq!(client.ask("ROLLBACK").state, b'I');
    // Rows that are copied in: one message of them is too large, and none of the others is there.
    client.send(&message(b'Q', b"COPY t FROM STDIN\0"));
    let rows = [
        message(b'd', b"1\ta\n"),
        message(b'd', format!("2\t{text}\n").as_bytes()),
        message(b'd', b"3\tc\n"),
        message(b'c', b""),
    ];
    client.send(&rows.concat());
    assert_eq!(client.answer(None).code(), "53200");
    assert_eq!(client.ask("SELECT count(*) FROM t").texts(), [["0"]]);
}

#[test]
fn what_is_held_is_of_the_budget_too() {
    let server = small_budget();
    let (mut first, mut second) = (server.client("alice"), server.client("alice"));
    let text = "x".repeat(450_000);
    let hold =
        |name: &str| [parse("", "SELECT length($1)", &[25]), bind(name, "", &[Some(text.as_bytes())], 0)].concat();
    first.ask("BEGIN");
    first.send(&[hold("p"), sync()].concat());
    assert_eq!(first.answer(None).error, None);
    // The message fits, and then its values do not.
    second.ask("BEGIN");
    second.send(&[hold("p"), sync()].concat());
    assert_eq!(second.answer(None).code(), "53200");
    first.send(&[execute("p", 0), sync()].concat());
    assert_eq!(first.answer(None).texts(), [["450000"]]);
    // With its transaction, or with its client, goes what is held.
    first.ask("COMMIT");
    second.ask("ROLLBACK");
    second.ask("BEGIN");
    second.send(&[hold("p"), execute("p", 0), sync()].concat());
    assert_eq!(second.answer(None).texts(), [["450000"]]);
}

#[test]
fn bytes_and_portals_of_a_client_are_bounded() {
    let server = Server::new();
    let mut client = server.client("alice");
    let text = "x".repeat(7 << 20);
    let mut holding = parse("s", "SELECT length($1)", &[25]);
    (0..9).for_each(|number| holding.extend(bind(&format!("p{number}"), "s", &[Some(text.as_bytes())], 0)));
    client.send(&holding);
    // 64 MiB are held less one: the tenth is refused, and closing one makes room.
    client.send(&[bind("p9", "s", &[Some(text.as_bytes())], 0), sync()].concat());
    let answer = client.answer(None);
    assert!(answer.error.is_some_and(|(code, text)| code == "53400" && text.contains("too much is held")));
    client.ask("BEGIN");
    (1..=9).for_each(|number| client.send(&bind(&format!("p{number}"), "s", &[Some(text.as_bytes())], 0)));
    client.send(
        &[message(b'C', b"Pp4\0"), bind("p0", "s", &[Some(text.as_bytes())], 0), execute("p0", 0), sync()].concat(),
    );
    let answer = client.answer(None);
    assert_eq!(answer.texts(), [[(7 << 20).to_string()]]);
    client.ask("ROLLBACK");
    // Portals that hold nothing are a hundred.
    let portals =
        |count: usize| (0..count).flat_map(|number| bind(&format!("p{number}"), "none", &[], 0)).collect::<Vec<_>>();
    client.send(&[parse("none", "SELECT 1", &[]), portals(100), execute("p99", 0), sync()].concat());
    assert_eq!(client.answer(None).texts(), [["1"]]);
    client.send(&[portals(101), sync()].concat());
    let answer = client.answer(None);
    assert!(answer.error.is_some_and(|(code, text)| code == "53400" && text.contains("too many portals")));
    // With Sync they went, for there was no transaction.
    client.send(&[portals(100), sync()].concat());
    assert_eq!(client.answer(None).error, None);
}

#[test]
fn statements_without_a_name_and_of_the_same_name_take_one_place() {
    let server = Server::new();
    let mut client = server.client("alice");
    let named: Vec<u8> = (0..999).flat_map(|number| parse(&format!("s{number}"), "SELECT 1", &[])).collect();
    let unnamed: Vec<u8> = (0..3).flat_map(|_| parse("", "SELECT 1", &[])).collect();
    client.send(&[named, unnamed, sync()].concat());
    assert_eq!(client.answer(None).error, None);
    client.send(&[parse("s0", "SELECT 2", &[]), sync()].concat());
    assert_eq!(client.answer(None).code(), "42P05");
    client.send(&[parse("more", "SELECT 2", &[]), sync()].concat());
    assert_eq!(client.answer(None).code(), "53400");
}

/// Whatever the bytes of a parameter are: the connection says that it is ready for what comes next.
#[test]
fn any_bytes_of_any_type_are_answered() {
    let server = Server::new();
    let mut client = server.client("alice");
    let mut noise = Noise(7);
    let rounds = if std::env::var("COUNTERFOIL_PROOF").as_deref() == Ok("full") { 400 } else { 12 };
    let known = [16, 17, 20, 21, 23, 25, 700, 701, 1042, 1043, 1082, 1083, 1114, 1184, 1186, 1700, 2950];
    let others = [0, 1, 18, 19, 26, 114, 600, 869, 1007, 1009, 1266, 2249, 3802, u32::MAX];
    for kind in known.into_iter().chain(others) {
        for round in 0..rounds {
            let length = [1, 2, 4, 8, 10, 12, 16][noise.next(7)] + noise.next(2) * noise.next(30);
            let value = match round {
                0 => Vec::new(),
                // A number as it is sent, that is too large for what it stands for.
                1 => [0x7f].into_iter().chain([0xff; 7]).collect(),
                2 => [0x80].into_iter().chain([0; 7]).collect(),
                _ => noise.bytes(length),
            };
            let ask = [
                parse("", "SELECT $1", &[kind]),
                bind("", "", &[Some(&value)], (round % 2) as u16),
                execute("", 0),
                sync(),
            ];
            client.send(&ask.concat());
            let answer = client.answer(None);
            assert_eq!(answer.state, b'I');
            assert!(answer.rows.len() == 1 || answer.error.is_some(), "type {kind}, {value:?}: {answer:?}");
        }
    }
    assert_eq!(client.ask("SELECT 1").texts(), [["1"]]);
}

#[test]
fn a_transaction_fails_with_a_bind_that_cannot_be() {
    let server = Server::new();
    let mut client = server.client("alice");
    client.ask("CREATE TABLE t (id INTEGER)");
    client.ask("BEGIN; INSERT INTO t VALUES (1)");
    client.send(
        &[parse("", "INSERT INTO t VALUES ($1)", &[23]), bind("", "", &[Some(&[1, 2, 3])], 0), execute("", 0), sync()]
            .concat(),
    );
    let answer = client.answer(None);
    assert_eq!((answer.code(), answer.state), ("22P03", b'E'));
    assert!(client.ask("INSERT INTO t VALUES (2)").error.is_some());
    assert_eq!(client.ask("COMMIT").state, b'I');
    assert_eq!(client.ask("SELECT count(*) FROM t").texts(), [["0"]]);
}

/// A length is only said; what counts is what comes.
#[test]
fn lengths_take_no_room_of_the_budget() {
    let server = small_budget();
    let mut sockets = Vec::new();
    for _ in 0..4 {
        let mut client = server.shown("alice", PASSWORD).expect("a client");
        client.send(&[&[b'Q'][..], &900_000u32.to_be_bytes(), b"S"].concat());
        sockets.push(client);
    }
    let mut client = server.shown("alice", PASSWORD).expect("a client");
    let long = format!("SELECT length('{}')", "x".repeat(500_000));
    assert_eq!(client.ask(&long).texts(), [["500000"]]);
}

#[test]
fn a_row_that_cannot_be_sent_leaves_what_follows_understandable() {
    let server = Server::new();
    let mut client = server.client("alice");
    let sql = "SELECT v, CASE WHEN v > 2 THEN ARRAY[ARRAY[v]] END FROM generate_series(1, 4) AS s(v) ORDER BY v";
    client.send(
        &[parse("", sql, &[]), bind("", "", &[], 1), execute("", 0), parse("", "SELECT 1", &[]), sync()].concat(),
    );
    let answer = client.answer(None);
    // Two rows whose array is NULL, and nothing of the third.
    assert_eq!((answer.rows.len(), answer.code(), answer.state), (2, "0A000", b'I'));
    assert_eq!(client.ask(sql).texts().len(), 4, "as text all of them are sent");
}

#[test]
fn a_client_that_goes_in_the_middle_gives_its_room_back() {
    let server = small_budget();
    for _ in 0..20 {
        let (begun, _) = halves(900_000);
        let mut socket = socket(server.listener.address());
        // Before it is let in nobody has any of it.
        socket.write_all(&[startup("alice"), begun].concat()).expect("sent");
        drop(socket);
        let mut client = server.shown("alice", PASSWORD).expect("a client");
        client.send(&halves(900_000).0);
    }
    let mut client: Client = server.client("alice");
    let (begun, rest) = halves(900_000);
    let whole = [begun, rest].concat();
    let came_in = (0..1000).any(|_| {
        client.send(&whole);
        let is_in = client.answer(None).error.is_none();
        if !is_in {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        is_in
    });
    assert!(came_in, "the room of those that went is not there");
}
