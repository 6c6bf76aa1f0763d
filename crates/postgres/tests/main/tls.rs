//! TLS: who comes in by it, who does not, and what is not taken for it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use counterfoil::Kind;
use counterfoil_postgres::{Limits, Listener, Settings, Tls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};
use sha2::{Digest, Sha256};

use crate::client::{Channel, Client, message, socket, startup};
use crate::server::{PASSWORD, Server};

const ASK: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const ALL: &[&SupportedProtocolVersion] = &[&rustls::version::TLS12, &rustls::version::TLS13];

type Behind = StreamOwned<ClientConnection, TcpStream>;

fn data(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/data", name].iter().collect()
}

fn certificate() -> CertificateDer<'static> {
    CertificateDer::from_pem_file(data("pkcs8.pem")).expect("a certificate")
}

/// What libpq binds the channel to.
fn end_point() -> Vec<u8> {
    Sha256::digest(certificate()).to_vec()
}

fn served(limits: Limits) -> Server {
    let tls = Tls::from_files(data("pkcs8.pem"), data("pkcs8.key")).expect("a certificate");
    Server::with(|settings| settings.tls(tls).limits(limits))
}

fn quick() -> Limits {
    Limits { refusal_delay: Duration::ZERO, ..Limits::default() }
}

/// A handshake over a socket.
fn behind(
    mut socket: TcpStream,
    protocols: &[&[u8]],
    versions: &[&'static SupportedProtocolVersion],
) -> io::Result<Behind> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("root.pem")).expect("a root")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions).expect("versions");
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from("localhost").expect("a name");
    let mut connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(connection, socket))
}

/// A socket on which TLS was asked for, and granted.
fn granted(server: &Server) -> TcpStream {
    let mut socket = socket(server.listener.address());
    socket.write_all(&ASK).expect("asked");
    let mut answer = [0];
    socket.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, *b"S");
    socket
}

fn come(server: &Server, user: &str, password: &str, channel: Channel<'_>) -> Result<Client, (String, String)> {
    let stream = behind(granted(server), &[b"postgresql"], ALL).expect("a handshake");
    Client::over(stream, user, password, channel)
}

/// Everything that comes until the server ends.
fn rest(mut stream: impl Read) -> Vec<u8> {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Err(error) if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind()) => {
            panic!("the connection goes on")
        }
        _ => rest,
    }
}

#[test]
fn clients_ask_for_tls_with_keys_of_every_sort() {
    for (certificate, key) in [("pkcs8.pem", "pkcs8.key"), ("pkcs8.pem", "sec1.key"), ("pkcs1.pem", "pkcs1.key")] {
        let tls = Tls::from_files(data(certificate), data(key)).expect(key);
        assert_eq!(format!("{tls:?}"), "a certificate and its key");
        let server = Server::with(|settings| settings.tls(tls));
        for versions in [ALL, &ALL[..1]] {
            let stream = behind(granted(&server), &[], versions).expect(key);
            let mut client = Client::over(stream, "alice", PASSWORD, Channel::Unknown).expect("a client");
            let long = "x".repeat(300_000);
            assert_eq!(client.ask(&format!("SELECT '{long}'")).texts(), [[long]]);
        }
        // In clear, too: this machine is trusted with it.
        assert_eq!(server.client("alice").ask("SELECT 1").texts(), [["1"]]);
    }
}

#[test]
fn a_handshake_may_come_first_and_asks_for_postgresql_then() {
    let server = served(quick());
    let direct = |protocols: &[&[u8]]| behind(socket(server.listener.address()), protocols, ALL);
    let mut client = Client::over(direct(&[b"postgresql"]).expect("a handshake"), "alice", PASSWORD, Channel::Unknown)
        .expect("a client");
    assert_eq!(client.ask("SELECT 1").texts(), [["1"]]);
    assert!(direct(&[b"http/1.1"]).is_err());
    // One that names none completes its handshake, and that was it.
    if let Ok(mut stream) = direct(&[]) {
        let _ = stream.write_all(&startup("alice"));
        assert_eq!(rest(stream), b"");
    }
    // Who asked first need not name it.
    assert!(behind(granted(&server), &[], ALL).is_ok());
    assert!(behind(granted(&server), &[b"http/1.1"], ALL).is_err());
}

/// CVE-2021-23214: whoever stands between could put a statement before what the client says behind TLS.
#[test]
fn what_comes_in_clear_behind_the_request_ends_it() {
    let server = served(quick());
    for behind_it in [startup("alice"), vec![0], message(b'Q', b"SELECT 1\0")] {
        let mut socket = socket(server.listener.address());
        socket.write_all(&[ASK.as_slice(), &behind_it].concat()).expect("sent");
        let answer = rest(&mut socket);
        assert!(answer.is_empty() || answer == b"S", "{answer:?}");
    }
    // Nor is it taken for something that came behind TLS, where the handshake follows.
    let mut socket = socket(server.listener.address());
    socket.write_all(&[ASK.as_slice(), &startup("alice")].concat()).expect("sent");
    let _ = socket.read(&mut [0]);
    assert!(behind(socket, &[], ALL).is_err(), "the handshake goes on");
    // Behind TLS nobody asks for it again.
    let mut stream = behind(granted(&server), &[], ALL).expect("a handshake");
    stream.write_all(&ASK).expect("asked");
    assert!(String::from_utf8_lossy(&rest(stream)).contains("08P01"));
}

#[test]
fn channels_are_bound_and_nobody_hides_that_they_can_be() {
    let server = served(quick());
    let end_point = end_point();
    come(&server, "alice", PASSWORD, Channel::Bound(&end_point)).expect("bound").ask("SELECT 1").texts();
    come(&server, "alice", PASSWORD, Channel::Unknown).expect("of an old client").ask("SELECT 1").texts();
    let code = |channel| come(&server, "alice", PASSWORD, channel).err().map(|(code, _)| code);
    // The certificate of whoever stands between is another one.
    assert_eq!(code(Channel::Bound(&[7; 32])).as_deref(), Some("28P01"));
    assert_eq!(code(Channel::Bound(&[])).as_deref(), Some("28P01"));
    assert_eq!(code(Channel::NotOffered).as_deref(), Some("28000"));
    let wrong = come(&server, "alice", "wrong", Channel::Bound(&end_point)).err().map(|(code, _)| code);
    assert_eq!(wrong.as_deref(), Some("28P01"));
    // In clear there is nothing to bind it to.
    let clear = |channel| Client::over(socket(server.listener.address()), "alice", PASSWORD, channel);
    clear(Channel::NotOffered).expect("true, in clear");
    assert_eq!(clear(Channel::Bound(&end_point)).err().map(|(code, _)| code).as_deref(), Some("28000"));
}

#[test]
fn certificates_that_cannot_be_used_are_told_at_once() {
    let refused = |certificate: &str, key: &str| {
        let error = Tls::from_files(data(certificate), data(key)).expect_err("refused");
        (error.kind(), error.to_string())
    };
    for (certificate, key, kind, part) in [
        ("none.pem", "pkcs8.key", Kind::NotFound, "none.pem"),
        ("pkcs8.pem", "none.key", Kind::NotFound, "none.key"),
        ("pkcs8.pem", "pkcs1.key", Kind::Input, "not that of the certificate"),
        ("root.pem", "pkcs8.key", Kind::Input, "not that of the certificate"),
        ("pkcs8.pem", "locked.key", Kind::Input, "no key without a passphrase"),
        ("pkcs8.key", "pkcs8.key", Kind::Input, "no certificate is in the file"),
        ("pkcs8.pem", "pkcs8.pem", Kind::Input, "no key without a passphrase"),
        ("make", "pkcs8.key", Kind::Input, "no certificate is in the file"),
    ] {
        let (is, text) = refused(certificate, key);
        assert!(is == kind && text.contains(part), "{certificate} {key}: {is:?} {text}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong.pem");
    std::fs::write(&wrong, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").expect("written");
    let error = Tls::from_files(&wrong, data("pkcs8.key")).expect_err("refused");
    assert!(error.kind() == Kind::Input && error.to_string().contains("makes no sense"), "{error}");
}

#[test]
fn other_addresses_are_served_with_tls_and_users_alone() {
    let server = Server::new();
    let tls = Tls::from_files(data("pkcs8.pem"), data("pkcs8.key")).expect("a certificate");
    // Where this machine has no IPv6, one kind of socket is all there is.
    let families = ["0.0.0.0:0", "[::]:0"].into_iter().filter(|address| std::net::TcpListener::bind(address).is_ok());
    for address in families {
        let settings = || Settings::at(address.parse().expect("an address"));
        assert!(Listener::bind(&server.database, settings()).is_err());
        assert!(Listener::bind(&server.database, settings().tls(tls.clone()).danger_no_authentication()).is_err());
        let listener = Listener::bind(&server.database, settings().tls(tls.clone())).expect("a listener");
        let mut address = listener.address();
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        // On a socket of IPv6 that, too, is this machine.
        let mut client = Client::connect(address, "alice", PASSWORD).expect("a client of this machine");
        assert_eq!(client.ask("SELECT 1").texts(), [["1"]]);
    }
}

#[test]
fn a_handshake_that_does_not_end_is_not_waited_for() {
    let server = served(Limits { patience: Duration::from_millis(300), ..quick() });
    let hello = {
        let mut connection = ClientConnection::new(
            Arc::new(
                ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                    .with_safe_default_protocol_versions()
                    .expect("versions")
                    .with_root_certificates(RootCertStore::empty())
                    .with_no_client_auth(),
            ),
            ServerName::try_from("localhost").expect("a name"),
        )
        .expect("a client");
        let mut hello = Vec::new();
        connection.write_tls(&mut hello).expect("a hello");
        hello
    };
    for sent in [&hello[..0], &hello[..1], &hello[..hello.len() / 2], &hello[..]] {
        let mut socket = granted(&server);
        socket.write_all(sent).expect("sent");
        rest(&mut socket);
    }
    // Byte by byte it has no more time than all at once.
    let mut socket = granted(&server);
    let mut dripped = 0;
    while dripped < 400 && socket.write_all(&hello[dripped % hello.len()..][..1]).is_ok() {
        dripped += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(dripped < 400, "it goes on for ever");
    server.client("alice");
}

#[test]
fn bytes_that_are_no_handshake_end_the_connection() {
    let server = served(quick());
    let mut number = 1u64;
    let mut noise = |bytes: usize| -> Vec<u8> {
        let byte = |_| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) as u8
        };
        (0..bytes).map(byte).collect()
    };
    for round in 0..200usize {
        let bytes = match round % 4 {
            0 => noise(round),
            // A record of a handshake, with noise in it.
            1 => [&[0x16, 3, 1, 0, 50, 1, 0, 0, 46, 3, 3], noise(44).as_slice()].concat(),
            2 => [&[0x16, 3, 1, 0x40, 0], noise(0x4000).as_slice()].concat(),
            _ => [&[0x17, 3, 3, 0, 20], noise(20).as_slice()].concat(),
        };
        let is_direct = bytes.first() == Some(&0x16) && round % 8 < 4;
        let mut socket = if is_direct { socket(server.listener.address()) } else { granted(&server) };
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let answer = rest(&mut socket);
        assert!(answer.len() < 100 && !answer.windows(5).any(|bytes| bytes == b"SCRAM"), "{round}: {answer:?}");
    }
    // What is cut behind the handshake ends there.
    let mut stream = behind(granted(&server), &[], ALL).expect("a handshake");
    stream.write_all(&startup("alice")[..9]).expect("sent");
    drop(stream);
    come(&server, "alice", PASSWORD, Channel::Bound(&end_point())).expect("it goes on");
}

#[test]
fn statements_are_cancelled_by_who_asks_in_clear_and_by_who_asks_behind_tls() {
    let server = served(quick());
    for secured in [false, true] {
        let mut client = come(&server, "alice", PASSWORD, Channel::Unknown).expect("a client");
        let head = [16u32.to_be_bytes(), 80_877_102u32.to_be_bytes()].concat();
        let request = [head.as_slice(), &client.number, &client.key].concat();
        let socket = if secured { granted(&server) } else { socket(server.listener.address()) };
        let cancelling = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            if secured {
                behind(socket, &[], ALL).and_then(|mut stream| stream.write_all(&request)).expect("asked");
            } else {
                { socket }.write_all(&request).expect("asked");
            }
        });
        assert_eq!(client.ask(crate::clients::LONG).code(), "57014");
        cancelling.join().expect("a thread");
    }
}
