//! What series tables can be told: samples from the future.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use counterfoil_sql::{Clock, EngineOptions};

use crate::database::Database;

/// A database whose clock stands where a test puts it: seconds after the first of January 2026.
fn at_noon() -> (Database, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(43_200));
    let read = seconds.clone();
    let clock = Clock::new(move || UNIX_EPOCH + Duration::from_secs(1_767_225_600 + read.load(Ordering::Relaxed)));
    (Database::with_options(EngineOptions { parallelism: 2, clock, ..EngineOptions::default() }), seconds)
}

fn table(name: &str, time: &str, options: &str) -> String {
    format!(
        "CREATE TABLE {name} (sensor TEXT, ts {time}, value DOUBLE PRECISION, PRIMARY KEY (sensor, ts))
             WITH (engine = 'series'{options})"
    )
}

#[test]
fn samples_far_ahead_of_the_clock_are_counted_and_kept_apart() {
    let (mut database, seconds) = at_noon();
    database.expect(&[
        ("SELECT now()", "2026-01-01 12:00:00+00"),
        (&table("readings", "TIMESTAMP", ""), "CREATE TABLE"),
        ("SELECT count(*) FROM future.readings", "0"),
        ("DELETE FROM future.readings", "DELETE 0"),
        (
            "INSERT INTO readings VALUES ('a', '2026-01-02 12:00:00', 1), ('a', '2026-01-02 12:00:00.000001', 2),
                 ('b', '2077-01-01', 3), ('b', '1977-01-01', 4)",
            "INSERT 4",
        ),
    ]);
    let notices = database.session.take_notices();
    assert_eq!(
        notices,
        [
            "2 points of table readings are more than 1 day ahead of the clock: kept apart, in future.readings (future_max)"
        ]
    );
    database.expect(&[
        ("SELECT sensor, value FROM readings ORDER BY sensor, ts", "a|1\nb|4"),
        (
            "SELECT sensor, ts, value FROM future.readings ORDER BY sensor",
            "a|2026-01-02 12:00:00.000001|2\nb|2077-01-01 00:00:00|3",
        ),
        ("INSERT INTO readings VALUES ('b', '2077-01-01', 5) RETURNING value", "5"),
        ("SELECT sensor, future.readings.value FROM future.readings WHERE ts > '2030-01-01'", "b|5"),
    ]);
    assert_eq!(database.session.take_notices().len(), 0, "a run forgets the notices of the one before");
    // The clock is what it should be: what was kept apart is moved by hand, and what is still ahead stays.
    seconds.store(10 * 86_400, Ordering::Relaxed);
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("INSERT INTO readings SELECT * FROM future.readings WHERE ts <= now()", "INSERT 1"),
        ("DELETE FROM future.readings WHERE ts <= now()", "DELETE 1"),
        ("COMMIT", "COMMIT"),
        ("SELECT count(*), max(value) FROM readings", "3|4"),
        ("UPDATE future.readings SET value = 6 WHERE sensor = 'b'", "UPDATE 1"),
        ("SELECT value FROM future.readings", "6"),
        (
            "EXPLAIN SELECT value FROM future.readings WHERE sensor = 'b'",
            "Series: future.readings, columns: [value], 1 series",
        ),
    ]);
}

#[test]
fn what_is_kept_apart_follows_its_table() {
    let (mut database, _) = at_noon();
    database.ask(&table("r", "TIMESTAMPTZ", ", future_max = '2 h', on_duplicate = 'error'"));
    database.expect(&[
        ("INSERT INTO r VALUES ('a', '2026-01-01 14:00:00Z', 1)", "INSERT 1"),
        ("ALTER TABLE r DROP COLUMN value", "ALTER TABLE"),
        ("ALTER TABLE r ADD COLUMN note TEXT", "ALTER TABLE"),
        ("INSERT INTO r VALUES ('a', '2026-01-01 14:00:00.1Z', 'x')", "INSERT 1"),
        ("ALTER TABLE r ADD COLUMN more INTEGER", "ALTER TABLE"),
        ("INSERT INTO r VALUES ('b', '2026-01-01 14:00:00.1Z', 'y', 7)", "INSERT 1"),
        (
            "INSERT INTO r VALUES ('b', '2026-01-01 14:00:00.1Z', 'y', 8)",
            "error: duplicate key: a row of table r has this key already (constraint r_pkey, on_duplicate = 'error')",
        ),
        ("INSERT INTO future.r VALUES ('c', '2020-01-01', 'z', 9)", "INSERT 1"),
        ("ALTER TABLE r RENAME TO q", "ALTER TABLE"),
        ("SELECT sensor, note, more FROM future.q ORDER BY sensor", "a|x|NULL\nb|y|7\nc|z|9"),
        (
            "COPY future.q TO STDOUT (FORMAT csv)",
            "a,2026-01-01 14:00:00.1+00,x,\nb,2026-01-01 14:00:00.1+00,y,7\nc,2020-01-01 00:00:00+00,z,9",
        ),
        ("SELECT count(*) FROM q", "1"),
        ("TRUNCATE q", "TRUNCATE TABLE"),
        ("SELECT count(*) FROM future.q", "3"),
        ("TRUNCATE future.q", "TRUNCATE TABLE"),
        ("SELECT count(*) FROM future.q", "0"),
        ("BEGIN", "BEGIN"),
        ("INSERT INTO q VALUES ('a', '2026-02-01', '', 1)", "INSERT 1"),
        ("SELECT count(*) FROM future.q", "1"),
        ("ROLLBACK", "ROLLBACK"),
        ("SELECT count(*) FROM future.q", "0"),
        ("ALTER TABLE future.q DROP COLUMN note", "error: not supported: future.q follows q: change that"),
        ("CREATE TABLE future.other (a INTEGER)", "error: names that begin with __counterfoil are reserved"),
        ("DROP TABLE q", "DROP TABLE"),
        ("SELECT count(*) FROM future.q", "error: table 'future.q' not found"),
        ("CREATE TABLE plain (a INTEGER)", "CREATE TABLE"),
        ("INSERT INTO future.plain VALUES (1)", "error: not supported: future.plain: plain is no series table"),
    ]);
}

#[test]
fn a_view_of_what_is_kept_apart_holds_its_table() {
    let (mut database, _) = at_noon();
    database.ask(&table("r", "TIMESTAMP", ""));
    database.expect(&[
        ("INSERT INTO r VALUES ('a', '2077-01-01', 1)", "INSERT 1"),
        ("CREATE VIEW ahead AS SELECT sensor, value FROM future.r", "CREATE VIEW"),
        ("ALTER TABLE r RENAME TO q", "error: view ahead depends on the name of table r: drop it first"),
        (
            "ALTER TABLE r RENAME COLUMN sensor TO s",
            "error: view ahead depends on the name of column sensor of table r: drop it first",
        ),
        (
            "ALTER TABLE r DROP COLUMN value",
            "error: view ahead depends on column value of table r: drop it first, or add CASCADE",
        ),
        ("ALTER TABLE r ADD COLUMN note TEXT", "ALTER TABLE"),
        ("SELECT * FROM ahead", "a|1"),
        ("DROP TABLE r", "error: view ahead depends on r: drop it first, or add CASCADE"),
        ("DROP TABLE r CASCADE", "DROP TABLE"),
        ("SELECT * FROM ahead", "error: table 'ahead' not found"),
        // Under the one word that stands for future.q, too.
        (&table("q", "TIMESTAMP", ""), "CREATE TABLE"),
        ("CREATE VIEW ahead AS SELECT sensor FROM __counterfoil_future_q", "CREATE VIEW"),
        ("DROP TABLE q", "error: view ahead depends on q: drop it first, or add CASCADE"),
    ]);
}

#[test]
fn on_conflict_minds_what_is_kept_apart() {
    for option in ["last", "error"] {
        let (mut database, _) = at_noon();
        database.ask(&table("r", "TIMESTAMP", &format!(", on_duplicate = '{option}'")));
        database.expect(&[
            ("INSERT INTO r VALUES ('a', '2077-01-01', 1), ('a', '2025-01-01', 2)", "INSERT 2"),
            ("INSERT INTO r VALUES ('a', '2077-01-01', 8), ('a', '2025-01-01', 8) ON CONFLICT DO NOTHING", "INSERT 0"),
            ("SELECT value FROM future.r UNION ALL SELECT value FROM r ORDER BY value", "1\n2"),
            (
                "INSERT INTO r VALUES ('a', '2077-01-01', 10), ('b', '2077-01-01', 20), ('a', '2025-01-01', 30)
                  ON CONFLICT (sensor, ts) DO UPDATE SET value = r.value + excluded.value",
                "INSERT 3",
            ),
            ("SELECT sensor, value FROM future.r ORDER BY sensor", "a|11\nb|20"),
            ("SELECT sensor, value FROM r", "a|32"),
            // A row that is in the table although it is ahead, because it was moved there, is met there.
            ("UPDATE r SET ts = '2078-01-01'", "UPDATE 1"),
            ("INSERT INTO r VALUES ('a', '2078-01-01', 8) ON CONFLICT DO NOTHING", "INSERT 0"),
            ("SELECT count(*) FROM future.r", "2"),
        ]);
    }
}

#[test]
fn future_max_is_a_span_or_none() {
    let (mut database, _) = at_noon();
    for (at, (options, expected)) in [
        (", future_max = 'none'", "CREATE TABLE"),
        (
            ", future_max = '36 moons'",
            "error: future_max = '36 moons': a span of time is due, such as '500 ms' or '2 s'",
        ),
        (", future_max = '-1 h'", "error: future_max = '-1 h': a span of time is due, such as '500 ms' or '2 s'"),
        (", future_max = '1 h', future_max = '2 h'", "error: the option future_max is given twice"),
        (", future_max = '0 s'", "CREATE TABLE"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(database.ask(&table(&format!("t{at}"), "TIMESTAMP(9)", options)), expected, "{options}");
    }
    database.ask(&table("open", "TIMESTAMP(9)", ", future_max = 'none'"));
    database.ask(&table("strict", "TIMESTAMP(9)", ", future_max = '0 s'"));
    for table in ["open", "strict"] {
        database.ask(&format!(
            "INSERT INTO {table} VALUES ('a', '2026-01-01 12:00:00', 0), ('a', '2026-01-01 12:00:00.000000001', 1)"
        ));
    }
    database.expect(&[
        ("SELECT count(*) FROM open", "2"),
        ("SELECT count(*) FROM strict", "1"),
        ("SELECT value FROM future.strict", "1"),
    ]);
}
