//! Statements that are committed together: none is answered before it is durable, none undoes another one.
//!
//! Nothing here waits for time to pass: groups wait for an hour, and end for another reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use counterfoil_flash::{BlockNumber, Device, Error, Geometry, MemoryDevice, Operation, PageNumber, Read};
use counterfoil_sql::log::View;
use counterfoil_sql::{Interrupt, Patience};

use crate::database::{Database, ask};

fn readings(every: &str) -> Database {
    Database::after(&format!(
        "CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, PRIMARY KEY (sensor, ts))
             WITH (engine = 'series', commit_every = '{every}', on_duplicate = 'error');
         CREATE TABLE plain (a INTEGER PRIMARY KEY)"
    ))
}

/// A statement that runs in a session and a thread of its own, and what it will have answered.
struct Asked {
    answer: Receiver<String>,
    interrupt: Interrupt,
}

impl Asked {
    fn of(database: &Database, sql: &str) -> Asked {
        let (mut session, sql) = (database.connect(), sql.to_owned());
        let (sender, answer) = channel();
        let interrupt = session.interrupt();
        thread::spawn(move || {
            let _ = sender.send(ask(&mut session, &sql, &[]));
        });
        Asked { answer, interrupt }
    }

    fn is_open(&self) -> bool {
        self.answer.try_recv().is_err()
    }

    fn answer(&self) -> String {
        self.answer.recv().unwrap()
    }
}

/// A point that is inserted beside others: waits until it waits.
fn insert(database: &Database, sensor: &str) -> Asked {
    let before = database.engine.waiting();
    let asked = Asked::of(database, &format!("INSERT INTO readings VALUES ('{sensor}', '2026-01-01', 1)"));
    while database.engine.waiting() == before {
        thread::yield_now();
    }
    asked
}

fn commits(database: &Database) -> u64 {
    database.engine.store().snapshot().unwrap().commit_number().0
}

const COUNT: &str = "SELECT count(*) FROM readings";

#[test]
fn statements_of_one_group_are_one_commit_and_answered_after_it() {
    let mut database = readings("1 h");
    let before = commits(&database);
    let asked: Vec<Asked> = ["a", "b", "c"].map(|sensor| insert(&database, sensor)).into();
    assert!(asked.iter().all(Asked::is_open));
    assert_eq!((commits(&database), &*database.ask(COUNT)), (before, "0"), "nothing of it is seen before");
    database.engine.flush(std::time::Duration::from_secs(5)).unwrap();
    assert!(asked.iter().all(|asked| asked.answer() == "INSERT 1"));
    assert_eq!((commits(&database), &*database.ask(COUNT)), (before + 1, "3"));
}

#[test]
fn whoever_writes_otherwise_commits_what_waits_and_undoes_nothing_of_it() {
    let mut database = readings("1 h");
    let waiting = insert(&database, "a");
    database.expect(&[
        ("BEGIN", "BEGIN"),
        (COUNT, "0"),
        ("INSERT INTO readings VALUES ('b', '2026-01-01', 1)", "INSERT 1"),
    ]);
    assert_eq!(waiting.answer(), "INSERT 1");
    database.expect(&[(COUNT, "2"), ("ROLLBACK", "ROLLBACK"), (COUNT, "1")]);

    let waiting = insert(&database, "c");
    database.expect(&[("INSERT INTO plain VALUES (1)", "INSERT 1"), (COUNT, "2")]);
    assert_eq!(waiting.answer(), "INSERT 1");

    let waiting = insert(&database, "d");
    assert!(database.ask("INSERT INTO plain VALUES (1)").starts_with("error"));
    assert_eq!(waiting.answer(), "INSERT 1");

    let waiting = insert(&database, "e");
    database.expect(&[("DELETE FROM readings WHERE sensor = 'e'", "DELETE 1"), ("DROP TABLE readings", "DROP TABLE")]);
    assert_eq!(waiting.answer(), "INSERT 1");

    // In a transaction of its own, or where it need not be durable, an INSERT waits for nobody.
    let mut database = readings("1 h");
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("INSERT INTO readings VALUES ('a', '2026-01-01', 1)", "INSERT 1"),
        ("COMMIT", "COMMIT"),
        ("SET synchronous_commit = off", "SET"),
        ("INSERT INTO readings VALUES ('b', '2026-01-01', 1)", "INSERT 1"),
        (COUNT, "2"),
    ]);
}

#[test]
fn a_member_that_fails_undoes_itself_alone() {
    let mut database = readings("1 h");
    let waiting = [insert(&database, "a"), insert(&database, "b")];
    // It has stored a part when it meets a row that is not durable yet: that row is, when the error is answered.
    let stored: String = (0..8192).map(|at| format!("('x', '2026-01-01 00:00:00.{at:06}', 1), ")).collect();
    let refused = database.ask(&format!("INSERT INTO readings VALUES {stored}('b', '2026-01-01', 2)"));
    assert!(refused.starts_with("error: duplicate key"), "{refused}");
    assert!(waiting.iter().all(|asked| asked.answer() == "INSERT 1"));
    assert_eq!(database.ask("SELECT sensor, value FROM readings ORDER BY sensor"), "a|1\nb|1");
    // Alone it leaves nothing behind that anybody would have to wait for.
    let before = commits(&database);
    assert!(database.ask("INSERT INTO readings VALUES ('b', '2026-01-01', 2)").starts_with("error"));
    assert_eq!((database.engine.waiting(), commits(&database)), (0, before));
}

#[test]
fn an_interrupt_ends_the_wait_and_not_the_statement() {
    let mut database = readings("1 h");
    let waiting = [insert(&database, "a"), insert(&database, "b")];
    waiting[1].interrupt.raise();
    assert!(waiting.iter().all(|asked| asked.answer() == "INSERT 1"));
    assert_eq!(database.ask(COUNT), "2");
}

#[test]
fn a_member_commits_by_itself_when_its_time_is_over() {
    let mut database = readings("1 us");
    database.expect(&[("INSERT INTO readings VALUES ('a', '2026-01-01', 1)", "INSERT 1"), (COUNT, "1")]);
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let mut session = database.connect();
            thread::spawn(move || {
                (0..20)
                    .map(|at| {
                        ask(
                            &mut session,
                            &format!("INSERT INTO readings VALUES ('t{thread}', '2026-01-01 00:00:{at:02}', 1)"),
                            &[],
                        )
                    })
                    .collect::<Vec<_>>()
            })
        })
        .collect();
    assert!(threads.into_iter().flat_map(|thread| thread.join().unwrap()).all(|answer| answer == "INSERT 1"));
    assert_eq!((&*database.ask(COUNT), database.engine.waiting()), ("161", 0));
}

/// A medium that fails from some moment on.
struct Failing {
    device: MemoryDevice,
    fails: Arc<AtomicBool>,
}

impl Failing {
    fn check(&self) -> Result<(), Error> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(Error::Device { operation: Operation::Flush, page: PageNumber(0), code: 5 }),
            false => Ok(()),
        }
    }
}

impl Read for Failing {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.device.read(page, offset, buffer)
    }
}

impl Device for Failing {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        self.check()?;
        self.device.program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        self.check()?;
        self.device.erase(block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.check()?;
        self.device.flush()
    }
}

#[test]
fn a_commit_that_fails_is_told_to_every_member() {
    let fails = Arc::new(AtomicBool::new(false));
    let of = fails.clone();
    let mut database = Database::on(move |device| Box::new(Failing { device, fails: of }));
    database
        .session
        .run(
            "CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, PRIMARY KEY (sensor, ts))
             WITH (engine = 'series', commit_every = '1 h')",
            &[],
        )
        .unwrap();
    let waiting = [insert(&database, "a"), insert(&database, "b")];
    fails.store(true, Ordering::SeqCst);
    waiting[0].interrupt.raise();
    for asked in waiting {
        let answer = asked.answer();
        assert!(answer.starts_with("error"), "{answer}");
    }
    assert_eq!(database.ask(COUNT), "0");
    assert!(database.ask("INSERT INTO readings VALUES ('c', '2026-01-01', 1)").starts_with("error"));
    assert_eq!(database.engine.waiting(), 0);
}

#[test]
fn a_group_keeps_what_ended_well_and_nothing_of_whoever_did_not() {
    let mut database = readings("1 h");
    let waiting = insert(&database, "a");
    // A user of the writer that is gone without a word.
    drop(database.engine.store().writer(Patience::of(std::time::Duration::from_secs(5))).unwrap());
    assert!(waiting.is_open());
    let other = insert(&database, "b");
    database.engine.flush(std::time::Duration::from_secs(5)).unwrap();
    assert_eq!((waiting.answer(), other.answer(), &*database.ask(COUNT)), ("INSERT 1".into(), "INSERT 1".into(), "2"));
}

#[test]
fn commit_every_is_a_span() {
    let mut database = Database::new();
    let with = |option: &str| {
        format!("CREATE TABLE t (ts TIMESTAMP PRIMARY KEY) WITH (engine = 'series', commit_every = '{option}')")
    };
    let expected = "error: commit_every = 'often': a span of time is due, such as '500 ms' or '2 s'";
    database.expect(&[
        (&with("often"), expected),
        (&with("0 s"), "CREATE TABLE"),
        ("INSERT INTO t VALUES ('2026-01-01')", "INSERT 1"),
    ]);
}
