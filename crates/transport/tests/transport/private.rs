//! https: whom a reader believes, and what it is told where nobody vouches.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use counterfoil_mirror::site::Fetch;
use counterfoil_transport::{Authorities, Error, Http};

use crate::certificates::{Authority, Valid};
use crate::server::{Reply, Request, serve};

const HERE: &str = "127.0.0.1";

fn believing(authority: &Authority) -> Authorities {
    let folder = tempfile::tempdir().expect("a folder");
    Authorities::from_file(authority.write(folder.path())).expect("an authority")
}

fn fetched(url: &str, authorities: &Authorities) -> Result<Option<Vec<u8>>, String> {
    Http::vouched_for(url, authorities).expect("an address").fetch("manifest", 100)
}

fn at(address: SocketAddr) -> String {
    format!("https://{address}")
}

fn file(request: Request) -> Reply {
    if request.path == "/site/manifest" { Reply::found("the manifest") } else { Reply::missing() }
}

#[test]
fn files_come_and_questions_go_through_tls() {
    let authority = Authority::new();
    let answer = |request: Request| match (&request.method[..], &request.path[..]) {
        ("POST", "/site/answer") => Reply::found([b"answer to ", &request.body[..]].concat()),
        _ => file(request),
    };
    let url = format!("{}/site/", at(serve(Some(authority.server(HERE, Valid::Now)), answer)));
    let mut http = Http::vouched_for(&url, &believing(&authority)).expect("an address");
    assert_eq!(http.fetch("manifest", 12), Ok(Some(b"the manifest".to_vec())));
    assert_eq!(http.ask("answer", b"a question", 100), Ok(Some(b"answer to a question".to_vec())));
    assert_eq!(http.fetch("head", 12), Ok(None));
    assert_eq!(http.fetch("manifest", 11), Err("manifest: more than 11 bytes".into()));
}

#[test]
fn a_server_for_which_nobody_vouches_is_asked_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    let asked = Arc::new(AtomicUsize::new(0));
    let serve = |config| {
        let asked = asked.clone();
        at(serve(Some(config), move |request| {
            asked.fetch_add(1, Ordering::Relaxed);
            file(request)
        }))
    };
    let believed = believing(&authority);
    for (config, why) in [
        (other.server(HERE, Valid::Now), "nobody whom this machine trusts vouches"),
        (authority.server("mirror.example", Valid::Now), "is for another name"),
        (authority.server(HERE, Valid::Before), "has expired, or this machine's clock is wrong"),
        (authority.server(HERE, Valid::Later), "is for a time to come"),
    ] {
        let told = fetched(&serve(config), &believed).expect_err(why);
        assert!(told.starts_with("manifest: ") && told.contains(why), "{told}");
    }
    // Those that this machine trusts do not know an authority that was made just now.
    let told = fetched(&serve(authority.server(HERE, Valid::Now)), &Authorities::default()).expect_err("unknown");
    assert!(told.contains("--tls-ca") && told.contains("SSL_CERT_FILE"), "{told}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn nobody_is_led_from_tls_to_where_others_read_along() {
    let authority = Authority::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let clear = serve(None, move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Reply::found("in clear")
    });
    let elsewhere = format!("http://{clear}/manifest");
    let url = at(serve(Some(authority.server(HERE, Valid::Now)), move |_| Reply::leads_to(&elsewhere)));
    let told = fetched(&url, &believing(&authority)).expect_err("led astray");
    assert!(told.contains("without TLS"), "{told}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    // The other way round is one that servers choose often.
    let url = format!("{}/site/manifest", at(serve(Some(authority.server(HERE, Valid::Now)), file)));
    let clear = format!("http://{}", serve(None, move |_| Reply::leads_to(&url)));
    assert_eq!(fetched(&clear, &believing(&authority)), Ok(Some(b"the manifest".to_vec())));
}

#[test]
fn a_server_without_tls_is_told_of_as_one() {
    let told = fetched(&at(serve(None, file)), &Authorities::default()).expect_err("no TLS");
    assert!(told.contains("does not speak TLS") || told.contains("ca-certificates"), "{told}");
    let told = fetched(&at(serve(None, file)), &believing(&Authority::new())).expect_err("no TLS");
    assert!(told.contains("does not speak TLS"), "{told}");
}

#[test]
fn other_addresses_are_refused() {
    for url in ["ftp://example.com", "example.com", "", "HTTPS://example.com", "file:///srv"] {
        assert!(matches!(Http::at(url), Err(Error::Address(_))), "{url}");
    }
}
