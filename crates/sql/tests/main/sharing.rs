//! Connections that ask at once share little memory: they wait for one another, and say so where that takes too long.

use std::time::Duration;

use counterfoil_sql::{Ram, Session};

use crate::database::{Database, ask};

/// A question that needs more than half of what there is.
const QUESTION: &str = "SELECT v, count(*), min(id) FROM t GROUP BY v ORDER BY v DESC LIMIT 3";

fn filled() -> Database {
    let mut database = Database::in_ram(Some(Ram::LEAST));
    for statement in [
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, v TEXT)",
        "CREATE INDEX ON t (a)",
        "INSERT INTO t SELECT i, i % 37, 'text ' || i % 211 FROM generate_series(1, 3000) AS i",
        "CREATE TABLE told (n INTEGER)",
    ] {
        let said = database.ask(statement);
        assert!(!said.starts_with("error"), "{statement}: {said}");
    }
    database
}

/// A session that keeps most of the memory to itself.
fn holder(database: &Database) -> Session {
    let mut session = database.connect();
    for statement in ["BEGIN", &format!("DECLARE c CURSOR FOR {QUESTION}"), "FETCH 1 FROM c"] {
        let said = ask(&mut session, statement, &[]);
        assert!(!said.starts_with("error"), "{statement}: {said}");
    }
    session
}

#[test]
fn connections_that_ask_at_once_are_answered() {
    let mut database = filled();
    let queries = [
        QUESTION,
        "SELECT id FROM t WHERE a = 5 ORDER BY id",
        "SELECT * FROM t WHERE id = 77",
        "SELECT a, count(*), max(v) FROM t GROUP BY a ORDER BY a",
        "SELECT id, row_number() OVER (ORDER BY v, id DESC) FROM t WHERE a < 5 ORDER BY id",
        "SELECT x.id, y.id FROM t x JOIN t y ON x.id = y.a WHERE y.id < 200 ORDER BY 1, 2",
        "SELECT count(*) FROM t WHERE v IN (SELECT 'text ' || a FROM t)",
    ];
    let wanted = queries.map(|query| database.ask(query));
    assert!(wanted.iter().all(|answer| !answer.starts_with("error")), "{wanted:?}");
    std::thread::scope(|scope| {
        for number in 0..5 {
            let (mut session, queries, wanted) = (database.connect(), &queries, &wanted);
            scope.spawn(move || {
                // Many machines are slower than the one that this was written on.
                ask(&mut session, "SET lock_timeout = '5min'", &[]);
                for round in 0..12 {
                    let which = (number + round) % queries.len();
                    let answer = ask(&mut session, queries[which], &[]);
                    assert!(answer == wanted[which], "{}: {answer}", queries[which]);
                    if round % 4 == 0 {
                        let told = format!("INSERT INTO told SELECT a FROM t WHERE v < 'text 2' AND {number} >= 0");
                        assert!(ask(&mut session, &told, &[]).starts_with("INSERT"));
                    }
                }
            });
        }
    });
    let each: u64 = database.ask("SELECT count(*) FROM t WHERE v < 'text 2'").parse().expect("a number");
    assert_eq!(database.ask("SELECT count(*) FROM told"), (15 * each).to_string());
}

#[test]
fn who_waits_for_memory_goes_on_when_it_is_given_back() {
    let mut database = filled();
    let answer = database.ask(QUESTION);
    let mut holder = holder(&database);
    database.expect(&[("SET lock_timeout = '50ms'", "SET")]);
    let refused = database.ask(QUESTION);
    assert!(refused.contains("queries of other connections") && refused.contains("lock_timeout"), "{refused}");
    // What a session keeps to itself it does not wait for.
    ask(&mut holder, "SET lock_timeout = '300ms'", &[]);
    let refused = ask(&mut holder, QUESTION, &[]);
    assert!(refused.contains("bytes of working memory"), "{refused}");

    database.expect(&[("SET lock_timeout = '5min'", "SET")]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            ask(&mut holder, "ROLLBACK", &[]);
        });
        assert_eq!(database.ask(QUESTION), answer);
    });
}

#[test]
fn who_waits_for_memory_can_be_interrupted() {
    let mut database = filled();
    let _holder = holder(&database);
    database.expect(&[("SET lock_timeout = '5min'", "SET")]);
    let interrupt = database.session.interrupt();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            interrupt.raise();
        });
        assert_eq!(database.ask(QUESTION), "error: interrupted");
    });
}

/// A cursor that holds nothing but might makes the shares of others smaller, and gives nothing back: nobody waits for it.
#[test]
fn nobody_waits_for_who_has_nothing() {
    let mut database = Database::in_ram(Some(Ram::LIBRARY));
    let large = "SELECT count(*), sum(length(a)) FROM (SELECT g / 160000 AS k, string_agg(repeat('x', 100), ',') AS a \
                 FROM generate_series(0, 159999) AS s(g) GROUP BY 1) q";
    assert_eq!(database.ask(large), "1|16159999");
    let mut idle = database.connect();
    for statement in [
        "BEGIN",
        "DECLARE c CURSOR FOR SELECT g % 3, count(*) FROM generate_series(1, 100) AS s(g) GROUP BY 1",
        "FETCH 1 FROM c",
    ] {
        assert!(!ask(&mut idle, statement, &[]).starts_with("error"), "{statement}");
    }
    database.expect(&[("SET lock_timeout = '5min'", "SET")]);
    let said = database.ask(large);
    assert!(said == "1|16159999" || said.contains("more working memory"), "{said}");
    ask(&mut idle, "ROLLBACK", &[]);
    assert_eq!(database.ask(large), "1|16159999");
}
