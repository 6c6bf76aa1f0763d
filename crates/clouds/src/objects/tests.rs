//! A server that says what a test wants: lies, bombs, and nothing.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use counterfoil_disperse::{Failure, Store as _};

use parking_lot::Mutex;

use super::{Bounds, FILE, Objects};
use crate::address::Address;

const SHORT: Duration = Duration::from_secs(2);

/// Answers each request with what a function writes; the connection ends with it. Gives its port, and counts requests.
fn server(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (port, count) = (listener.local_addr().expect("an address").port(), Arc::new(AtomicUsize::new(0)));
    let (counted, answer) = (count.clone(), Arc::new(answer));
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (Ok(mut connection), counted, answer) = (connection, counted.clone(), answer.clone()) else { return };
            std::thread::spawn(move || {
                let Some(request) = request(&mut connection) else { return };
                counted.fetch_add(1, Ordering::Relaxed);
                answer(&request, &mut connection);
            });
        }
    });
    (port, count)
}

/// The head of a request, after its body.
fn request(connection: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte).ok()?;
        head.extend(byte);
    }
    let head = String::from_utf8(head).ok()?;
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().expect("a length"))];
    connection.read_exact(&mut body).ok()?;
    Some(head)
}

fn reply(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
}

/// Its address.
fn at(port: u16) -> String {
    format!("http://{}", std::net::SocketAddr::from(([127, 0, 0, 1], port)))
}

fn bucket(port: u16) -> Objects {
    let address = format!("s3://bucket/mine?endpoint={}", at(port));
    Objects::new(Address::parse(&address).expect("an address"), Some("AKIA\nhush"), SHORT).expect("a store")
}

fn web(port: u16) -> Objects {
    let address = format!("webdav://{}@{}:{port}/mine", "me", "127.0.0.1");
    Objects::new(Address::parse(&address).expect("an address"), Some("hush"), SHORT).expect("a store")
}

/// A store at a server that always says the same.
fn told_by(store: fn(u16) -> Objects, text: String) -> Objects {
    store(server(move |_, connection| drop(connection.write_all(text.as_bytes()))).0)
}

fn page(names: &[&str], more: &str) -> String {
    let object = |name: &&str| {
        format!("<Contents><Key>{name}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>")
    };
    let objects: String = names.iter().map(object).collect();
    reply("200 OK", "", &format!("<ListBucketResult>{more}{objects}</ListBucketResult>"))
}

fn collection(hrefs: &[&str]) -> String {
    let response = |href: &&str| {
        format!(
            "<D:response><D:href>{href}</D:href><D:propstat><D:prop><D:resourcetype/>\
             <D:getlastmodified>Thu, 01 Jan 2026 00:00:00 GMT</D:getlastmodified><D:getcontentlength>1</D:getcontentlength>\
             </D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )
    };
    let responses: String = hrefs.iter().map(response).collect();
    reply(
        "207 Multi-Status",
        "",
        &format!("<?xml version=\"1.0\"?><D:multistatus xmlns:D=\"DAV:\">{responses}</D:multistatus>"),
    )
}

#[test]
fn an_object_that_is_declared_too_large_is_not_read() {
    for store in [bucket, web] {
        let (ended, is_ended) = mpsc::channel();
        let (port, _) = server(move |_, connection| {
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000000000\r\n\r\n");
            // Somebody who waited for it would have to be patient.
            let mut rest = [0];
            ended.send(connection.read(&mut rest).is_ok()).expect("told");
        });
        assert!(matches!(store(port).get("t", "x", 0..1), Err(Failure::Malformed(_))));
        assert!(is_ended.recv().expect("told"), "the connection is closed");
    }
}

#[test]
fn an_object_of_more_bytes_than_any_of_ours_is_not_kept() {
    for store in [bucket, web] {
        // Of a length that is not declared, and that does not end.
        let (port, _) = server(|_, connection| {
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            while connection.write_all(format!("10000\r\n{}\r\n", "x".repeat(1 << 16)).as_bytes()).is_ok() {}
        });
        let mut store = store(port);
        store.file = Bounds { bytes: 3 << 20, ..FILE };
        assert!(matches!(store.get("t", "x", 0..1), Err(Failure::Malformed(_))));
    }
}

#[test]
fn a_listing_without_end_has_one() {
    let more = "<IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>";
    let page = page(&[], more);
    let (port, count) = server(move |_, connection| drop(connection.write_all(page.as_bytes())));
    let told = bucket(port).list("t");
    assert!(matches!(told, Err(Failure::Malformed(_) | Failure::Unreachable(_))), "{told:?}");
    assert!(count.load(Ordering::Relaxed) <= super::PAGES_MAX as usize);
}

#[test]
fn names_that_lead_elsewhere_are_none() {
    let names = [
        "mine/t/a",
        "mine/t/../b",
        "mine/t/",
        "mine/other/c",
        "",
        "m",
        "/",
        "mine/t/\u{e9}",
        "elsewhere",
        "mine/t/d/e",
    ];
    let listed = told_by(bucket, page(&names, "<IsTruncated>false</IsTruncated>")).list("t");
    // The library does not always live through it; what it says is no table without rows.
    match listed {
        Ok(names) => assert_eq!(names, ["a", "\u{e9}"]),
        Err(failure) => assert!(matches!(failure, Failure::Malformed(_)), "{failure}"),
    }
    let hrefs = [
        "/mine/t/",
        "/mine/t/a",
        "/mine/t/%2e%2e%2fb",
        "/mine/t/%C3%A9",
        "/mine/t/%ff",
        "x",
        "/",
        "/mine/other/c",
        "http://127.0.0.1/mine/t/c",
    ];
    let listed = told_by(web, collection(&hrefs)).list("t");
    match listed {
        Ok(names) => assert!(names.iter().all(|name| !name.contains('/')) && names.contains(&"a".into()), "{names:?}"),
        Err(failure) => assert!(matches!(failure, Failure::Malformed(_)), "{failure}"),
    }
}

#[test]
fn servers_that_name_files_by_whole_addresses_are_understood() {
    let text = |port: u16| collection(&[&format!("{}/mine/t/a", at(port))]);
    let (port, _) = server(move |head, connection| {
        let port =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: 127.0.0.1:").map(str::to_owned));
        let port = port.and_then(|port| port.trim().parse().ok()).expect("a port");
        drop(connection.write_all(text(port).as_bytes()));
    });
    assert_eq!(web(port).list("t"), Ok(vec!["a".to_owned()]));
}

#[test]
fn what_makes_no_sense_is_told_as_that() {
    for body in ["", "<", "<x>", "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>", "\u{0}\u{1}"]
    {
        for store in [bucket, web] {
            let told = told_by(store, reply("200 OK", "", body)).list("t");
            // No table without rows, in any case.
            assert!(matches!(told, Err(Failure::Malformed(_) | Failure::Refused(_))), "{body}: {told:?}");
        }
    }
}

#[test]
fn an_answer_that_ends_in_the_middle_is_out_of_reach() {
    let half = reply("200 OK", "", &"x".repeat(1000));
    for store in [bucket, web] {
        let half = half[..half.len() - 500].to_owned();
        let (port, count) = server(move |_, connection| drop(connection.write_all(half.as_bytes())));
        assert!(matches!(store(port).get("t", "x", 0..1), Err(Failure::Unreachable(_))));
        assert_eq!(count.load(Ordering::Relaxed), 1 + super::PAUSES.len(), "it was tried again");
    }
}

#[test]
fn what_fails_for_a_moment_is_tried_again_and_what_is_refused_is_not() {
    let (port, count) = server({
        let asked = AtomicUsize::new(0);
        move |_, connection| {
            let text = match asked.fetch_add(1, Ordering::Relaxed) {
                0 => reply("503 Slow Down", "", ""),
                _ => reply("200 OK", "", "x"),
            };
            drop(connection.write_all(text.as_bytes()));
        }
    });
    assert_eq!(bucket(port).get("t", "x", 0..1), Ok(Some(b"x".to_vec())));
    assert_eq!(count.load(Ordering::Relaxed), 2);
    for status in ["403 Forbidden", "507 Insufficient Storage", "418 I'm a teapot"] {
        // Of a file that is put in its place by another name goes what may lie beside it.
        for (store, requests) in [(bucket as fn(u16) -> _, 1), (web, 2)] {
            let text = reply(status, "", "hush");
            let (port, count) = server(move |_, connection| drop(connection.write_all(text.as_bytes())));
            let told = store(port).put("t", "x", b"y").expect_err(status);
            assert!(
                matches!(&told, Failure::Refused(what) if !what.contains("hush") && !what.contains("AKIA")),
                "{told}"
            );
            assert_eq!(count.load(Ordering::Relaxed), requests);
        }
    }
}

#[test]
fn a_server_that_knows_no_ranges_gives_all_of_an_object() {
    for store in [bucket, web] {
        let whole = "x".repeat(1000);
        assert_eq!(told_by(store, reply("200 OK", "", &whole)).get("t", "x", 10..20), Ok(Some(whole.into_bytes())));
        // And one whose object has become shorter than it was when it was written says so.
        let told = told_by(store, reply("416 Range Not Satisfiable", "", "")).get("t", "x", 10..20);
        assert!(matches!(told, Err(Failure::Malformed(_))), "{told:?}");
    }
}

#[test]
fn nobody_is_led_elsewhere_with_a_key() {
    for store in [bucket, web] {
        let (other, count) = server(|_, connection| drop(connection.write_all(reply("200 OK", "", "x").as_bytes())));
        let location = format!("Location: {}/x\r\n", at(other));
        for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
            let store = told_by(store, reply(status, &location, ""));
            assert!(matches!(store.get("t", "x", 0..1), Err(Failure::Refused(_))), "{status}");
            assert!(matches!(store.put("t", "x", b"y"), Err(Failure::Refused(_))), "{status}");
        }
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_byte_now_and_then_keeps_nobody() {
    for store in [bucket, web] {
        let (port, _) = server(|_, connection| {
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
            while connection.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        assert!(matches!(store(port).get("t", "x", 0..1), Err(Failure::Unreachable(_))));
    }
}

#[test]
fn a_file_has_its_name_when_it_is_whole() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let noted = heads.clone();
    let (port, _) = server(move |head, connection| {
        noted.lock().push(head.to_owned());
        let text = match head.split(' ').next() {
            Some("PROPFIND") => collection(&["/mine/t/"]),
            _ => reply("201 Created", "", ""),
        };
        drop(connection.write_all(text.as_bytes()));
    });
    assert_eq!(web(port).put("t", "x", b"y"), Ok(()));
    let heads = heads.lock();
    let puts: Vec<&String> = heads.iter().filter(|head| head.starts_with("PUT ")).collect();
    assert!(puts.len() == 1 && puts[0].starts_with("PUT /mine/t/x.part "), "{puts:?}");
    let moved = heads.iter().filter(|head| head.starts_with("MOVE /mine/t/x.part "));
    let target = format!("destination: {}/mine/t/x\r\n", at(port));
    assert_eq!(moved.filter(|head| head.to_ascii_lowercase().contains(&target)).count(), 1, "{heads:?}");
}
