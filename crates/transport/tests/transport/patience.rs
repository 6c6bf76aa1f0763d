//! Servers that send a byte now and then, for ever: a reader does not stay for ever with them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use counterfoil_mirror::site::Fetch;
use counterfoil_mirror::wire::Standing;
use counterfoil_proof::Owner;
use counterfoil_reader::{Error, Terms, read};
use counterfoil_transport::{Http, Patience};

use crate::server::{Reply, serve};

/// One that answers whatever is asked with so many bytes, one every ten milliseconds.
fn dripping(bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("a client");
            thread::spawn(move || drip(client, bytes));
        }
    });
    address
}

/// Until all is sent, or the client goes.
fn drip(mut client: TcpStream, bytes: usize) {
    let mut head = [0; 4096];
    let _ = client.read(&mut head);
    let mut sent = write!(client, "HTTP/1.1 200 so\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
    for _ in 0..bytes {
        if sent.is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
        sent = client.write_all(b"x");
    }
}

fn patient(address: SocketAddr, patience: &Arc<Patience>) -> Http {
    Http::at(&format!("http://{address}")).expect("an address").with_patience(patience.clone())
}

const IN_ALL: &str = "servers have taken more than 0.3 s in all";

#[test]
fn a_file_that_drips_ends_with_the_patience_for_all_of_them() {
    let patience = Arc::new(Patience::of(Duration::from_millis(300)));
    // It would take ten seconds: within the time of a file, and not within that of all.
    let mut http = patient(dripping(1000), &patience);
    assert_eq!(http.fetch("manifest", 2000), Err(format!("manifest: {IN_ALL}")));
    // Nobody is asked any more, whoever shares it.
    let mut other = patient(serve(None, |_| panic!("somebody was asked")), &patience);
    assert_eq!(other.fetch("head", 2000), Err(format!("head: {IN_ALL}")));
    assert_eq!(other.ask("answer", b"?", 2000), Err(format!("answer: {IN_ALL}")));
}

#[test]
fn files_that_come_slowly_and_without_end_end_with_it() {
    let patience = Arc::new(Patience::of(Duration::from_millis(300)));
    let mut http = patient(dripping(2), &patience);
    // Each comes in twenty milliseconds. So does the first one, on any machine that is not too busy to say anything.
    let came = (0..1000).take_while(|_| http.fetch("page", 2).is_ok()).count();
    assert!(came < 1000, "{came} files came");
    assert_eq!(http.fetch("page", 2), Err(format!("page: {IN_ALL}")));
}

#[test]
fn who_answers_at_once_as_often_as_it_likes_takes_of_it_too() {
    let patience = Arc::new(Patience::of(Duration::from_millis(300)));
    let mut http = patient(serve(None, |_| Reply::missing()), &patience);
    let came = (0..1000).take_while(|_| http.fetch("page", 2).is_ok()).count();
    assert!(came < 400, "{came} requests");
}

/// A reader's question ends, whatever the mirror sends first.
#[test]
fn a_question_to_a_mirror_that_drips_ends_and_says_why() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let mirror = serve(None, move |request| {
        counted.fetch_add(1, Ordering::Relaxed);
        match &request.path[..] {
            "/manifest" => Reply::found("what a manifest is not"),
            "/head" => Reply::found(Standing { last: u64::MAX / 2, first: 0 }.to_bytes()),
            _ => Reply::missing(),
        }
    });
    let terms = Terms {
        owner: Owner::of(&counterfoil_proof::SecretKey::from_entropy(&[1; 32]).expect("a key").public()),
        now: 1000,
        clock_error: 0,
        max_age: u64::MAX,
        hints: true,
    };
    let ask = |http: &mut Http| read(http, "SELECT * FROM prices", &terms, &mut None).map(drop);
    let patience = Arc::new(Patience::of(Duration::from_millis(300)));
    // One that answers is refused for what it says.
    assert!(matches!(ask(&mut patient(mirror, &patience)), Err(Error::Refused(_))));
    assert!(asked.load(Ordering::Relaxed) >= 2);
    let told = ask(&mut patient(dripping(1000), &patience));
    assert_eq!(told, Err(Error::Unreachable(format!("manifest: {IN_ALL}"))));
}
