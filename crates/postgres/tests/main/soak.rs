//! A hundred clients at once, each at its own work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use counterfoil::{Database, Key, Options, Role};
use counterfoil_postgres::{Listener, Settings};

use crate::client::{Answer, Client, message};
use crate::clients::{bind, execute, parse, sync};
use crate::hostile::memory;
use crate::server::PASSWORD;

const CLIENTS: usize = 100;
/// What takes longer than anybody waits, and lets others run meanwhile: a join that finds nothing would not
/// (docs/postgres.md, "Limits").
const LONG: &str = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(v) WHERE v % 7 = 8";
/// Rows that each writer has: few, so that the statements which a session keeps parsed are all there soon.
const ROWS: i64 = 20;

fn duration() -> Duration {
    match std::env::var("COUNTERFOIL_PROOF").as_deref() {
        Ok("full") => Duration::from_secs(300),
        _ => Duration::from_secs(8),
    }
}

/// A client and what it draws.
struct Worker {
    client: Client,
    number: i64,
    drawn: u64,
}

impl Worker {
    fn draw(&mut self, below: u64) -> i64 {
        self.drawn = self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.drawn >> 33) % below) as i64
    }

    /// Some row of its own.
    fn row(&mut self) -> i64 {
        self.number * ROWS + self.draw(ROWS as u64)
    }

    fn good(&mut self, sql: &str) -> Answer {
        let answer = self.client.ask(sql);
        assert_eq!(answer.error, None, "{sql}");
        answer
    }

    /// A point, by a statement that was prepared.
    fn select(&mut self) {
        let id = self.row();
        self.client.send(&[bind("", "point", &[Some(&id.to_be_bytes())], 0), execute("", 0), sync()].concat());
        let answer = self.client.answer(None);
        assert!(answer.texts().len() <= 1);
    }

    fn insert(&mut self) {
        let id = self.row();
        self.good(&format!("INSERT INTO t VALUES ({id}, {id}, 'n') ON CONFLICT (id) DO UPDATE SET x = {id}"));
    }

    /// Two rows of one sum, or neither.
    fn transaction(&mut self) {
        let (from, to, end) = (self.row(), self.row(), ["COMMIT", "ROLLBACK"][self.draw(2) as usize]);
        self.good("BEGIN");
        self.good(&format!("UPDATE t SET x = x - 1 WHERE id = {from}"));
        self.good(&format!("UPDATE t SET x = x + 1 WHERE id = {to}"));
        assert_eq!(self.good(end).state, b'I');
    }

    fn copy(&mut self) {
        let begin = self.number * ROWS;
        let some = begin..begin + ROWS / 2;
        self.good(&format!("BEGIN; DELETE FROM t WHERE id >= {} AND id < {}", some.start, some.end));
        let rows: String = some.map(|id| format!("{id}\t{id}\tcopied\n")).collect();
        self.client.send(&message(b'Q', b"COPY t FROM STDIN\0"));
        let copied = self.client.answer(Some(rows.as_bytes()));
        assert_eq!((copied.error, copied.tags), (None, vec![format!("COPY {}", ROWS / 2)]));
        self.good("COMMIT");
    }

    fn read(&mut self) {
        let copied = self.good("COPY (SELECT * FROM t ORDER BY id LIMIT 2000) TO STDOUT").copied;
        assert!(!copied.is_empty());
        assert_eq!(self.good("SELECT count(*), sum(x), max(name) FROM t").texts().len(), 1);
    }

    /// One that is ended by another connection: which asks until it is, for what does not run yet is not ended.
    fn cancel(&mut self) {
        let (request, has_ended) = (self.client.cancellation(), Arc::new(AtomicBool::new(false)));
        let told = has_ended.clone();
        let cancelling = std::thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                request();
            }
        });
        let answer = self.client.ask(LONG);
        has_ended.store(true, Ordering::Relaxed);
        cancelling.join().expect("a thread");
        assert_eq!(answer.code(), "57014");
    }

    fn work(&mut self, is_over: &AtomicBool, done: &AtomicU64) {
        self.client.send(&[parse("point", "SELECT id, x, name FROM t WHERE id = $1", &[20]), sync()].concat());
        assert_eq!(self.client.answer(None).error, None);
        while !is_over.load(Ordering::Relaxed) {
            match (self.number, self.draw(100)) {
                (0, _) => self.read(),
                (_, 0..80) => self.select(),
                (_, 80..90) => self.insert(),
                (_, 90..95) => self.transaction(),
                (_, 95..98) => self.copy(),
                (1..5, _) => self.cancel(),
                _ => self.select(),
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_hundred_clients_at_once_see_no_error_and_take_no_more_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options::path(folder.path().join("db")).key(Key::bytes(&[7; 32]));
    let database = Database::create(options.lock_timeout(Duration::from_secs(120))).expect("a database");
    for (name, role) in [("alice", Role::Writer), ("bob", Role::Reader)] {
        database.users().add(name, role, &PASSWORD.to_owned().into()).expect("a user");
    }
    let listener =
        Listener::bind(&database, Settings::at("127.0.0.1:0".parse().expect("an address"))).expect("a listener");
    let come = |user| Client::connect(listener.address(), user, PASSWORD).expect("a client");
    come("alice").ask("CREATE TABLE t (id BIGINT PRIMARY KEY, x BIGINT, name TEXT)");
    let filled =
        format!("INSERT INTO t SELECT v, v, 'n' FROM generate_series(0, {}) AS s(v)", CLIENTS as i64 * ROWS - 1);
    assert_eq!(come("alice").ask(&filled).error, None);

    let (is_over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (0..CLIENTS as i64)
        .map(|number| {
            let client = come(if number == 0 { "bob" } else { "alice" });
            let mut worker = Worker { client, number, drawn: number as u64 };
            let (is_over, done) = (is_over.clone(), done.clone());
            std::thread::spawn(move || worker.work(&is_over, &done))
        })
        .collect();
    let begun = Instant::now();
    let mut early = 0;
    while begun.elapsed() < duration() {
        std::thread::sleep(duration() / 20);
        // Which pages were sealed under which nonces, which tests alone remember.
        counterfoil_vault::witness::reset();
        if begun.elapsed() < duration() / 4 {
            early = memory();
        }
        println!("{:>4} s  {:>8} KiB  {:>8} done", begun.elapsed().as_secs(), memory(), done.load(Ordering::Relaxed));
    }
    is_over.store(true, Ordering::Relaxed);
    workers.into_iter().for_each(|worker| worker.join().expect("no error"));
    let late = memory();
    assert!(late < early + 64 * 1024, "{early} KiB grew to {late} KiB");
    let sum = come("bob").ask("SELECT count(*) FROM t").texts();
    assert_eq!(sum, [[(CLIENTS as i64 * ROWS).to_string()]], "rows are put back as they are taken");
    listener.shut_down();
    database.close().expect("closed");
}
