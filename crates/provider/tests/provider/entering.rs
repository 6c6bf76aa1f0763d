//! Who comes in, who does not, and what strangers can take.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use counterfoil_disperse::Failure;
use counterfoil_provider::{Limits, Options, Remote, ServeError, Tokens, serve};

use crate::host::{Host, NOTES, token};
use crate::questions::{Step, done, table};

const ASK: Step = Step::Ask { tags: Vec::new(), order: None, between: None, places: None, sums: false };

fn ask(url: &str, token: &str) -> Result<(), Failure> {
    let cloud = Remote::new(url, Some(token)).expect("an address").with_patience(Duration::from_secs(5));
    match done(&cloud, &table(1), &ASK) {
        // Whoever is let in hears that there is no such table.
        Err(Failure::NoTable) => Ok(()),
        told => told.map(drop),
    }
}

fn refused(url: &str, token: &str, says: &str) {
    let told = ask(url, token);
    assert!(matches!(&told, Err(Failure::Refused(text)) if text.contains(says)), "{told:?}");
}

#[test]
fn a_token_is_needed_and_one_that_is_good() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::new(folder.path());
    let good = token(folder.path(), "ada");
    let expired = Tokens::in_folder(folder.path()).add("bob", Duration::ZERO).expect("a token");
    assert_eq!(ask(&host.url, &good), Ok(()));
    assert_eq!(ask(&host.url, &format!(" {good}\n")), Ok(()));
    refused(&host.url, "", "no such token");
    refused(&host.url, &good[1..], "no such token");
    refused(&host.url, expired.reveal(), "expired");
    // A token that was taken away opens nothing from the next connection on.
    std::fs::write(folder.path().join("tokens"), "").expect("written");
    refused(&host.url, &good, "no such token");
}

#[test]
fn another_server_at_the_address_is_named_and_learns_no_token() {
    let (own, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let host = Host::new(own.path());
    let token = token(own.path(), "ada");
    let (port, url) = (host.port(), host.url.clone());
    drop(host);
    let _impostor = Host::start(other.path(), port, Limits::default());
    let told = ask(&url, &token);
    assert!(matches!(&told, Err(Failure::Malformed(text)) if text.contains("another server is there")), "{told:?}");
    assert!(!format!("{told:?}").contains(&token));
}

#[test]
fn a_server_that_is_silent_or_speaks_something_else_is_out_of_reach_in_time() {
    let pin = "00".repeat(32);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = |port: u16| format!("provider://{}?pin={pin}", SocketAddr::from(([127, 0, 0, 1], port)));
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let cloud = Remote::new(&url(port(&silent)), None).expect("an address").with_patience(Duration::from_millis(200));
    assert!(matches!(done(&cloud, &table(1), &ASK), Err(Failure::Unreachable(_))));
    let chatty = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = url(port(&chatty));
    let talking = std::thread::spawn(move || {
        let (mut stream, _) = chatty.accept().expect("somebody");
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("said");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    assert!(matches!(ask(&address, "x"), Err(Failure::Unreachable(_))));
    talking.join().expect("ended");
    let nobody = url(1);
    assert!(matches!(ask(&nobody, "x"), Err(Failure::Unreachable(_))));
}

#[test]
fn strangers_take_neither_time_nor_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut limits = Limits::default();
    limits.connections_max = 3;
    limits.patience_hello = Duration::from_millis(300);
    let host = Host::start(folder.path(), 0, limits);
    let good = token(folder.path(), "ada");
    let address = SocketAddr::from(([127, 0, 0, 1], host.port()));
    // Three who say nothing take all the room there is, and not for long.
    let mut idle: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).expect("in")).collect();
    std::thread::sleep(Duration::from_millis(50));
    assert!(matches!(ask(&host.url, &good), Err(Failure::Unreachable(_))));
    assert!(matches!(ask(&host.url, &good), Err(Failure::Unreachable(_))));
    // Whoever runs it hears of that, and not with each of them.
    let told = NOTES.lock().expect("notes").iter().filter(|note| note.contains("there are 3 connections")).count();
    assert_eq!(told, 1);
    for stream in &mut idle {
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        assert_eq!(stream.read(&mut [0; 16]).unwrap_or_default(), 0, "it is sent away");
    }
    assert_eq!(ask(&host.url, &good), Ok(()));
    // Noise, and the beginning of a handshake that never goes on.
    for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 0xff, 0xff], &[0; 4096]] {
        let mut stream = TcpStream::connect(address).expect("in");
        stream.write_all(noise).expect("said");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        let mut answer = Vec::new();
        let _ = (&mut stream).take(1 << 16).read_to_end(&mut answer);
        assert!(answer.len() < 64, "an alert at most");
    }
    assert_eq!(ask(&host.url, &good), Ok(()));
}

#[test]
fn a_folder_is_served_by_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = Host::new(folder.path());
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let again = || Options { folder: folder.path().to_owned(), listen, limits: Limits::default(), note: |_| () };
    let refused = serve(again(), |_| ());
    assert!(matches!(refused, Err(ServeError::Served(_))), "{refused:?}");
    drop(host);
    serve(again(), |_| ()).expect("nobody serves it any more");
}
