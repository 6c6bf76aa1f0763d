//! Clients that are slow, greedy, half there, or not clients at all.

mod common;

use std::io::Read;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::client::{Client, gzip, once, request};
use common::listen;
use common::memory::Memory;

const WRITE: &str = "POST /write?db=db";
const GZIP: (&str, &str) = ("content-encoding", "gzip");

fn closed(client: &mut Client) -> bool {
    matches!(client.stream.read(&mut [0; 100]), Ok(0)) || client.stream.take_error().is_ok_and(|error| error.is_some())
}

#[test]
fn a_head_that_drips_is_cut_and_others_are_served() {
    let listener = listen(Memory::with("db"), |limits| limits.head_timeout = Duration::from_millis(600));
    let mut slow: Vec<_> = (0..50).map(|_| Client::new(listener.address())).collect();
    let begun = Instant::now();
    for byte in b"POST /write?db=db HT" {
        slow.iter_mut().for_each(|client| {
            client.send(&[*byte]);
        });
        assert_eq!(once(listener.address(), WRITE, &[], b"m a=1").status, 204);
        thread::sleep(Duration::from_millis(10));
    }
    assert!(slow.iter_mut().all(closed));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn a_body_that_drips_ends_in_an_answer() {
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |limits| {
        limits.body_timeout = Duration::from_millis(500);
        limits.writes_in_flight_max = 4;
    });
    let mut slow: Vec<_> = (0..4).map(|_| Client::new(listener.address())).collect();
    for client in &mut slow {
        client.send(b"POST /write?db=db HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nm a=1 1\nm a=2");
    }
    // They hold all places; who comes now waits for one of them and gets it.
    assert_eq!(once(listener.address(), WRITE, &[], b"m b=1").status, 204);
    for client in &mut slow {
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.status, 503, "{answer:?}");
    }
    // No batch of theirs was full, and the last line may be half a line.
    assert_eq!(sink.rows("db"), 1);
}

#[test]
fn half_a_body_is_not_written() {
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |_| ());
    let mut client = Client::new(listener.address());
    client.send(b"POST /write?db=db HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\nm a=1 1\nm a=12");
    client.stream.shutdown(std::net::Shutdown::Both).unwrap();
    let packed = gzip(&b"m a=1 1\n".repeat(100));
    let cut = once(listener.address(), WRITE, &[GZIP], &packed[..packed.len() - 5]);
    assert_eq!((cut.status, cut.body.contains("gzip")), (400, true));
    let garbage = once(listener.address(), WRITE, &[GZIP], b"m a=1 1\n");
    assert_eq!(garbage.status, 400);
    let mut chunked = Client::new(listener.address());
    let chunks = ("transfer-encoding", "chunked");
    chunked.send(&request(WRITE, &[chunks], b"8\r\nm a=1 1\n\r\nZZ\r\n"));
    assert_eq!(chunked.answer().map(|answer| answer.status), Some(400));
    assert_eq!(sink.rows("db"), 0);
    // And a whole one in chunks is.
    let answer = once(listener.address(), WRITE, &[chunks], b"3\r\nm a\r\n5\r\n=1 1\n\r\n0\r\n\r\n");
    assert_eq!((answer.status, sink.rows("db")), (204, 1));
}

#[test]
fn what_is_too_large_ends_in_413() {
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |limits| limits.body_bytes_max = 1 << 20);
    let address = listener.address();
    // By what it says, before a byte of it came.
    let mut client = Client::new(address);
    client.send(b"POST /write?db=db HTTP/1.1\r\nhost: x\r\ncontent-length: 1048577\r\n\r\n");
    assert_eq!(client.answer().map(|answer| answer.status), Some(413));
    // By what came, of a body that does not say.
    let mut client = Client::new(address);
    client.send(&request(WRITE, &[("transfer-encoding", "chunked")], b""));
    let chunk = [b"10000\r\n", &b"#comment\n".repeat(7282)[..0x10000], b"\r\n"].concat();
    for _ in 0..17 {
        client.send(&chunk);
    }
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.status, 413);
    // By what it becomes: 1 MB that unpacks to 1 GB, and the same twice packed into two members.
    let bomb = gzip(&vec![b'\n'; 256 << 20]);
    assert!(bomb.len() < 1 << 20);
    for bomb in [bomb.clone(), [gzip(b"m a=1\n"), bomb].concat()] {
        let begun = Instant::now();
        let answer = once(address, WRITE, &[GZIP], &bomb);
        assert_eq!((answer.status, answer.json()["error"].is_string()), (413, true));
        assert!(begun.elapsed() < Duration::from_secs(3));
    }
    assert_eq!(sink.rows("db"), 0);
    // An exact fit is none.
    let mut fits = b"m a=1\n".to_vec();
    fits.resize(1 << 20, b'\n');
    assert_eq!(once(address, WRITE, &[GZIP], &gzip(&fits)).status, 204);
    assert_eq!(once(address, WRITE, &[("content-encoding", "br")], b"").status, 415);
}

#[test]
fn answers_that_nobody_reads_end_the_connection() {
    let listener = listen(Memory::with("db"), |limits| limits.answer_timeout = Duration::from_millis(300));
    let mut client = Client::new(listener.address());
    client.stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let requests = b"GET /ping?verbose=1 HTTP/1.1\r\nhost: x\r\n\r\n".repeat(1000);
    let begun = Instant::now();
    while client.send(&requests) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it takes for ever what it cannot answer");
    }
    // Closed by the listener, and not by our own time-out for a write.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn heads_have_limits() {
    let listener = listen(Memory::with("db"), |_| ());
    let long = format!("GET /ping?{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(20_000));
    let many = format!("GET /ping HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(100));
    for head in [long, many] {
        let mut client = Client::new(listener.address());
        client.send(head.as_bytes());
        assert!(client.answer().is_none_or(|answer| matches!(answer.status, 414 | 431)));
    }
}

#[test]
fn connections_beyond_the_limit_are_told_to_come_again() {
    let listener = listen(Memory::with("db"), |limits| limits.connections_max = 3);
    let mut held: Vec<_> = (0..3).map(|_| Client::new(listener.address())).collect();
    for client in &mut held {
        assert_eq!(client.request("GET /ping", &[], b"").status, 204);
    }
    let answer = Client::new(listener.address()).answer().expect("an answer");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    drop(held);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(once(listener.address(), "GET /ping", &[], b"").status, 204);
}

/// A device too slow for its writers: who does not get a turn is told so, and was not written.
#[test]
fn back_pressure_is_told_and_nothing_is_written_behind_its_back() {
    let sink = Memory::with("db");
    *sink.delay.lock().unwrap() = Duration::from_millis(400);
    let listener = listen(sink.clone(), |limits| {
        limits.queue_batches_max = 1;
        limits.writes_in_flight_max = 6;
        limits.queue_wait = Duration::from_millis(500);
    });
    let address = listener.address();
    let writer = |number: usize| {
        thread::spawn(move || {
            let line = if number.is_multiple_of(2) { WRITE } else { "POST /api/v2/write?bucket=db" };
            let answer = once(address, line, &[], b"m a=1");
            match answer.status {
                204 => 1,
                500 if number.is_multiple_of(2) && answer.body.contains("timeout") => 0,
                503 if !number.is_multiple_of(2) => 0,
                _ => panic!("{answer:?}"),
            }
        })
    };
    let writers: Vec<_> = (0..20).map(writer).collect();
    let written: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
    thread::sleep(Duration::from_millis(1000));
    assert!((1..20).contains(&written), "{written}");
    assert_eq!(sink.rows("db"), written);
    *sink.delay.lock().unwrap() = Duration::ZERO;
    assert_eq!(once(address, WRITE, &[], b"m a=1").status, 204);
}

#[test]
fn one_commit_covers_what_waits() {
    let sink = Memory::with("db");
    *sink.delay.lock().unwrap() = Duration::from_millis(200);
    let listener = listen(sink.clone(), |_| ());
    let address = listener.address();
    let writers: Vec<_> = (0..9).map(|_| thread::spawn(move || once(address, WRITE, &[], b"m a=1").status)).collect();
    assert!(writers.into_iter().all(|writer| writer.join().unwrap() == 204));
    assert!(*sink.commits.lock().unwrap() <= 4, "{} commits", sink.commits.lock().unwrap());
}

#[test]
fn a_request_that_has_begun_is_answered_at_shutdown() {
    let sink = Memory::with("db");
    *sink.delay.lock().unwrap() = Duration::from_millis(500);
    let listener = listen(sink.clone(), |_| ());
    let address = listener.address();
    let mut idle = Client::new(address);
    assert_eq!(idle.request("GET /ping", &[], b"").status, 204);
    let writer = thread::spawn(move || once(address, WRITE, &[], b"m a=1").status);
    thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    listener.shut_down();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!((writer.join().unwrap(), sink.rows("db")), (204, 1));
    assert!(closed(&mut idle));
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// Requests damaged at random, and bytes that were never any, for some seconds; a minute in full.
#[test]
fn noise_harms_nobody() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    let length = Duration::from_secs(if full { 60 } else { 4 });
    let sink = Memory::with("db");
    let listener = listen(sink.clone(), |limits| {
        limits.head_timeout = Duration::from_millis(200);
        limits.body_timeout = Duration::from_millis(200);
    });
    let address = listener.address();
    let noise = move |seed: u64| {
        let mut random = Random(seed);
        let begun = Instant::now();
        let mut sent = 0;
        while begun.elapsed() < length {
            let mut bytes = match random.below(4) {
                0 => (0..random.below(400)).map(|_| random.below(256) as u8).collect(),
                1 => request(WRITE, &[GZIP], &gzip(b"m a=1 1\nm b=2\n")),
                2 => request(WRITE, &[("transfer-encoding", "chunked")], b"8\r\nm a=1 1\n\r\n0\r\n\r\n"),
                _ => request("POST /query?q=show+databases&u=a&p=b", &[("authorization", "Basic bWU6eA==")], b"x"),
            };
            for _ in 0..random.below(6) {
                if !bytes.is_empty() {
                    let at = random.below(bytes.len());
                    bytes[at] = random.below(256) as u8;
                }
            }
            let mut client = Client::new(address);
            client.stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            client.send(&bytes);
            let _ = client.stream.read(&mut [0; 1000]);
            sent += 1;
        }
        sent
    };
    let senders: Vec<_> = (1..=4).map(|seed| thread::spawn(move || noise(seed * 0x9e37_79b9))).collect();
    let sent: usize = senders.into_iter().map(|sender| sender.join().unwrap()).sum();
    assert!(sent > 100, "{sent}");
    assert_eq!(once(address, WRITE, &[], b"m c=1").status, 204);
    assert_eq!(once(address, "GET /health", &[], b"").status, 200);
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A sink that panics takes its thread along: everybody is told, and nobody waits for ever.
#[test]
fn a_sink_that_dies_is_told() {
    struct Dying(Arc<Memory>);
    use counterfoil_influx::listener::{Access, Credentials, Sink, SinkError, Write, Written};
    impl Sink for Dying {
        fn write(&self, _: Vec<Write>) -> Vec<Result<Written, SinkError>> {
            panic!("on purpose")
        }
        fn schema(&self, name: &str) -> Result<Arc<dyn counterfoil_influx::Schema>, SinkError> {
            self.0.schema(name)
        }
        fn authorize(&self, _: &Credentials, _: &Access) -> Result<(), SinkError> {
            Ok(())
        }
        fn databases(&self) -> Result<Vec<String>, SinkError> {
            panic!("on purpose")
        }
        fn create_database(&self, _: &str) -> Result<(), SinkError> {
            Ok(())
        }
        fn drop_database(&self, _: &str) -> Result<(), SinkError> {
            Ok(())
        }
    }
    let listener = listen(Arc::new(Dying(Memory::with("db"))), |_| ());
    for _ in 0..3 {
        assert_eq!(once(listener.address(), WRITE, &[], b"m a=1").status, 503);
    }
    assert_eq!(once(listener.address(), "GET /query?q=show+databases", &[], b"").status, 503);
    assert_eq!(once(listener.address(), "GET /health", &[], b"").status, 503);
    listener.shut_down();
}
