//! Series tables that keep points for a time only, or as long as there is room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use counterfoil_flash::{BlockNumber, Device, Error, Geometry, MemoryDevice, PageNumber, Read};
use counterfoil_sql::relation::Type;
use counterfoil_sql::series_engine::Values;
use counterfoil_sql::{Clock, EngineOptions, NewField, NewPoints};

use crate::database::{Database, ask};

/// A database whose clock stands where a test puts it: seconds after the first of January 2026.
fn at(seconds: u64) -> (Database, Arc<AtomicU64>) {
    let clock = Arc::new(AtomicU64::new(seconds));
    let read = clock.clone();
    let read = Clock::new(move || UNIX_EPOCH + Duration::from_secs(1_767_225_600 + read.load(Ordering::Relaxed)));
    let options = EngineOptions { parallelism: 2, clock: read, ..EngineOptions::default() };
    (Database::with_options(options), clock)
}

fn table(options: &str) -> String {
    format!(
        "CREATE TABLE r (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, PRIMARY KEY (sensor, ts))
             WITH (engine = 'series', {options})"
    )
}

const DAY: u64 = 86_400;

#[test]
fn points_go_when_the_clock_and_newer_points_say_so() {
    let (mut database, clock) = at(0);
    database.expect(&[
        (&table("retention = '2 days'"), "CREATE TABLE"),
        (
            "INSERT INTO r VALUES ('a', '2020-01-01', 1), ('b', '2020-01-02', 2), ('a', '2020-01-02 12:00:00', 3)",
            "INSERT 3",
        ),
        // History comes in: the newest point is its clock.
        ("SELECT sensor, value FROM r ORDER BY ts", "a|1\nb|2\na|3"),
        ("INSERT INTO r VALUES ('b', '2020-01-03 06:00:00', 4)", "INSERT 1"),
        ("SELECT sensor, value FROM r ORDER BY ts", "b|2\na|3\nb|4"),
        // The clock says the first of January 2026: what is ahead of it drops nothing before its time.
        ("INSERT INTO r VALUES ('a', '2025-12-31', 5), ('a', '2026-01-01 20:00:00', 6)", "INSERT 2"),
        ("SELECT sensor, value FROM r ORDER BY ts", "a|5\na|6"),
    ]);
    clock.store(DAY, Ordering::Relaxed);
    database.expect(&[
        ("INSERT INTO r VALUES ('c', '2026-01-01 21:00:00', 7)", "INSERT 1"),
        ("SELECT sensor, value FROM r ORDER BY ts", "a|5\na|6\nc|7"),
    ]);
    // Days go by, and nobody writes: nothing goes, for nobody knows that the clock is right.
    clock.store(30 * DAY, Ordering::Relaxed);
    database.expect(&[
        ("INSERT INTO r VALUES ('c', '2026-01-01 21:00:01', 8)", "INSERT 1"),
        ("SELECT sensor, value FROM r ORDER BY ts", "a|5\na|6\nc|7\nc|8"),
        ("INSERT INTO r VALUES ('c', '2026-01-30', 9)", "INSERT 1"),
        ("SELECT sensor, value FROM r ORDER BY ts", "c|9"),
    ]);
}

#[test]
fn points_that_are_too_old_are_not_stored_and_the_writer_is_told() {
    let (mut database, _) = at(10 * DAY);
    database.expect(&[
        (&table("retention = '1 d'"), "CREATE TABLE"),
        ("INSERT INTO r VALUES ('a', '2026-01-10', 1)", "INSERT 1"),
        (
            "INSERT INTO r VALUES ('a', '2026-01-09', 2), ('a', '2026-01-08 23:59:59', 3), ('b', '2026-01-01', 4)",
            "INSERT 1",
        ),
    ]);
    let notices = database.session.take_notices();
    assert_eq!(notices, ["2 points of table r are older than what it keeps: not stored (retention)"]);
    database.expect(&[("UPDATE r SET ts = '2025-01-01' WHERE value = 2", "UPDATE 0"), ("SELECT value FROM r", "1")]);
    let notices = database.session.take_notices();
    assert_eq!(notices.len(), 0, "a run forgets the notices of the one before");
    database.expect(&[("UPDATE r SET ts = '2025-01-01' WHERE value = 1", "UPDATE 0"), ("SELECT value FROM r", "")]);
}

#[test]
fn statements_count_and_return_what_is_stored() {
    let (mut database, _) = at(10 * DAY);
    let refused = ["1 point of table r is older than what it keeps: not stored (retention)"];
    database.expect(&[
        (&table("retention = '1 d', future_max = '1 h'"), "CREATE TABLE"),
        ("INSERT INTO r VALUES ('a', '2026-01-10', 1), ('b', '2026-01-10', 2)", "INSERT 2"),
        // One is too old, one is kept apart.
        (
            "INSERT INTO r VALUES ('a', '2026-01-09', 3), ('b', '2026-01-08', 4), ('c', '2026-02-01', 5)
                 RETURNING sensor, value",
            "a|3\nc|5",
        ),
    ]);
    assert_eq!(database.session.take_notices()[1..], refused);
    database.expect(&[(
        "UPDATE r SET ts = CASE sensor WHEN 'a' THEN ts ELSE TIMESTAMP '2025-01-01' END RETURNING value",
        "3\n1",
    )]);
    assert_eq!(database.session.take_notices(), refused);
    database.expect(&[
        ("SELECT value FROM r ORDER BY ts", "3\n1"),
        (
            "INSERT INTO r VALUES ('a', '2026-01-10', 6) ON CONFLICT (sensor, ts) DO UPDATE SET ts = '2025-01-01'",
            "INSERT 0",
        ),
        ("SELECT value FROM r ORDER BY ts", "3"),
    ]);
    assert_eq!(database.session.take_notices(), [""; 0], "those of a run are the last statement's");
}

#[test]
fn what_is_not_stored_stands_for_nothing() {
    for (way, kept) in [("dead_band = 'value 0.5'", "1"), ("swinging_door = 'value 0.5'", "2")] {
        let (mut database, _) = at(10 * DAY);
        database.expect(&[
            (&table(&format!("retention = '1 d', {way}")), "CREATE TABLE"),
            ("INSERT INTO r VALUES ('a', '2026-01-10', 1)", "INSERT 1"),
            // Another series comes with what it has gathered for two days: the first point is too old to be stored.
            (
                "INSERT INTO r SELECT 'b', TIMESTAMP '2026-01-08' + CAST(n || ' hours' AS INTERVAL), 5
                     FROM generate_series(0, 47) AS g(n) ORDER BY n",
                "INSERT 24",
            ),
            ("SELECT count(*) FROM r WHERE sensor = 'b'", kept),
            ("SELECT min(ts) FROM r WHERE sensor = 'b'", "2026-01-09 00:00:00"),
        ]);
    }
}

#[test]
fn rows_of_collectors_that_are_too_old_are_refused_with_the_reason() {
    let (mut database, _) = at(10 * DAY);
    database.expect(&[
        (
            "CREATE TABLE m (tag TEXT, time TIMESTAMP(9), x DOUBLE PRECISION, PRIMARY KEY (tag, time))
                 WITH (engine = 'series', retention = '1 h')",
            "CREATE TABLE",
        ),
        ("INSERT INTO m VALUES ('a', '2026-01-10', 1)", "INSERT 1"),
    ]);
    let noon = (1_767_225_600 + 9 * DAY as i64) * 1_000_000_000;
    let hour = 3_600_000_000_000;
    let points = NewPoints {
        table: "m".into(),
        may_create: false,
        options: Vec::new(),
        tags: &["tag".to_owned()],
        sets: vec![vec![(0, "a")]],
        set_of: &[0, 0, 0],
        times: &[noon - hour - 1, noon - hour, noon + 1],
        fields: vec![NewField {
            name: "x",
            kind: Type::Double,
            values: Values::Doubles(vec![2.0, 3.0, 4.0]),
            rows: None,
        }],
    };
    let appended = database.session.append_points(&[points]).unwrap();
    let refused: Vec<_> = appended[0].refused().map(|(row, reason)| (row, reason.to_string())).collect();
    assert_eq!(refused, [(0, "older than what the table keeps (retention): leave it out".to_owned())]);
    assert_eq!(appended[0].rows(), 2);
    database.expect(&[("SELECT x FROM m ORDER BY time", "3\n1\n4")]);
}

#[test]
fn retention_is_told_and_told_anew() {
    let (mut database, _) = at(10 * DAY);
    database.expect(&[
        (
            &table("retention = '-1 d'"),
            "error: retention = '-1 d': a span of time such as '2 years', or 'space', or 'none' is due",
        ),
        (
            &table("retention = '0 s'"),
            "error: retention = '0 s': a span of time such as '2 years', or 'space', or 'none' is due",
        ),
        (&table("retention = 'space'"), "CREATE TABLE"),
        (
            "SELECT option_value FROM counterfoil.series_options WHERE table_name = 'r' AND option_name = 'retention'",
            "space",
        ),
        ("INSERT INTO r VALUES ('a', '2026-01-01', 1), ('a', '2026-01-08', 2), ('a', '2026-01-10', 3)", "INSERT 3"),
        // From now on, without a further point.
        ("ALTER TABLE r SET (retention = '5 days')", "ALTER TABLE"),
        ("SELECT value FROM r ORDER BY ts", "2\n3"),
        ("ALTER TABLE r SET (retention = '1 day')", "ALTER TABLE"),
        ("SELECT value FROM r ORDER BY ts", "3"),
        // What went does not come back, and what is older than that is not taken.
        ("ALTER TABLE r SET (retention = 'none')", "ALTER TABLE"),
        ("INSERT INTO r VALUES ('a', '2026-01-08', 4), ('a', '2026-01-09', 5)", "INSERT 1"),
        ("SELECT value FROM r ORDER BY ts", "5\n3"),
        ("BEGIN", "BEGIN"),
        ("ALTER TABLE r SET (retention = '1 h')", "ALTER TABLE"),
        ("ROLLBACK", "ROLLBACK"),
        ("INSERT INTO r VALUES ('a', '2026-01-09 01:00:00', 6)", "INSERT 1"),
        ("SELECT value FROM r ORDER BY ts", "5\n6\n3"),
        // A table that is emptied begins anew.
        ("TRUNCATE r", "TRUNCATE TABLE"),
        ("INSERT INTO r VALUES ('a', '2020-01-01', 7)", "INSERT 1"),
        ("SELECT value FROM r", "7"),
    ]);
}

/// A statement that stores an hour of a sensor, a point each second.
fn hour(number: u64) -> String {
    let from = 1_767_225_600 + number * 3600;
    format!(
        "INSERT INTO r SELECT 'a', to_timestamp({from} + n.value), random() FROM generate_series(0, 3599) AS n(value)"
    )
}

#[test]
fn the_oldest_points_make_room_where_retention_is_by_space() {
    let mut database = Database::small(64);
    database.ask(&table("retention = 'space', future_max = 'none'"));
    for number in 0..320 {
        assert_eq!(database.ask(&hour(number)), "INSERT 3600", "hour {number}");
        let oldest = database.ask("SELECT count(*) >= 7200 OR min(ts) = '2026-01-01' FROM r");
        assert_eq!(oldest, "true", "hour {number}");
    }
    database.expect(&[
        ("SELECT min(ts) > '2026-01-03', max(ts), count(*) > 200000 FROM r", "true|2026-01-14 07:59:59|true"),
        // A gap would be a leaf that went and should not have.
        ("SELECT count(*) = extract(epoch FROM max(ts) - min(ts)) + 1 FROM r", "true"),
    ]);
}

/// A disk of which others leave so many pages.
struct Shared(MemoryDevice, u64);

impl Read for Shared {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.0.read(page, offset, buffer)
    }
}

impl Device for Shared {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        assert!(page.0 < self.1, "a page that was refused is not programmed");
        self.0.program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        self.0.erase(block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.0.flush()
    }

    fn reserve(&mut self, page: PageNumber, pages: u64) -> Result<(), Error> {
        if page.0 + pages <= self.1 { Ok(()) } else { Err(Error::Full { page }) }
    }
}

#[test]
fn the_oldest_points_make_room_on_a_disk_that_others_fill_before_the_limit() {
    let mut database = Database::on(|device| Box::new(Shared(device, 100 * 64)));
    database.ask(&table("retention = 'space', future_max = 'none'"));
    let mut refused = Vec::new();
    for number in 0..500 {
        let answer = database.ask(&hour(number));
        if answer != "INSERT 3600" {
            assert!(answer.contains("no room left"), "hour {number}: {answer}");
            refused.push(number);
            assert_eq!(database.ask(&hour(number)), "INSERT 3600", "hour {number} again");
        }
    }
    assert!(refused.len() <= 1, "the end is met once: {refused:?}");
    database.expect(&[
        ("SELECT min(ts) > '2026-01-03', max(ts), count(*) > 200000 FROM r", "true|2026-01-21 19:59:59|true"),
        ("SELECT count(*) = extract(epoch FROM max(ts) - min(ts)) + 1 FROM r", "true"),
    ]);
}

#[test]
fn a_full_medium_is_an_error_where_retention_is_not_by_space() {
    let mut database = Database::small(64);
    database.ask(&table("future_max = 'none'"));
    let stored = (0..200).position(|number| database.ask(&hour(number)).contains("no room left")).expect("full");
    let count = format!("{}", stored * 3600);
    database.expect(&[
        ("SELECT count(*) FROM r", &count),
        ("SELECT min(ts) FROM r", "2026-01-01 00:00:00"),
        // Told so later, it makes room.
        ("ALTER TABLE r SET (retention = 'space')", "ALTER TABLE"),
        (&hour(200), "INSERT 3600"),
        (&hour(201), "INSERT 3600"),
        ("SELECT min(ts) > '2026-01-01' FROM r", "true"),
    ]);
}

#[test]
fn a_transaction_greater_than_the_room_fails_makes_room_and_leaves_the_rest_as_it_is() {
    let mut database = Database::small(64);
    database.ask(&table("retention = 'space', future_max = 'none'"));
    database.expect(&[(&hour(0), "INSERT 3600")]);
    let days = "INSERT INTO r SELECT 'a', to_timestamp(1767312000 + n.value), random()
        FROM generate_series(0, 999999) AS n(value)";
    assert!(database.ask(days).contains("no room left"));
    database.expect(&[("SELECT max(ts) FROM r", "2026-01-01 00:59:59"), (&hour(1), "INSERT 3600")]);
}

#[test]
fn a_table_loses_little_while_what_it_has_too_much_of_is_on_its_way_to_others() {
    let mut database = Database::small(64);
    database.ask(&table("retention = 'space', future_max = 'none'"));
    // Leaves of two sensors lie side by side, until there is no other room; then those of one go.
    for number in 0..150 {
        assert_eq!(database.ask(&hour(number)), "INSERT 3600", "hour {number}");
        assert_eq!(database.ask(&hour(number).replace("'a'", "'b'")), "INSERT 3600", "hour {number}");
    }
    assert_eq!(database.ask("SELECT min(ts) > '2026-01-01' FROM r"), "true");
    database.ask("DELETE FROM r WHERE sensor = 'b'");
    let count = |database: &mut Database| database.ask("SELECT count(*) FROM r").parse::<u64>().unwrap();
    let before = count(&mut database);
    database.ask(&table("retention = 'space', future_max = 'none'").replace(" r ", " w "));
    for number in 0..3 {
        assert_eq!(database.ask(&format!("INSERT INTO w VALUES ('a', '2026-02-0{}', 1)", number + 1)), "INSERT 1");
    }
    let lost = before - count(&mut database);
    // A commit drops what lies under one node: 28 leaves.
    assert!(lost < 45_000, "{lost} of {before} points went for three");
    for number in 0..320 {
        assert_eq!(database.ask(&hour(number).replace(" r ", " w ")), "INSERT 3600", "hour {number}");
    }
}

#[test]
fn the_oldest_points_stay_while_a_reader_holds_what_went() {
    let mut database = Database::small(64);
    database.ask(&table("retention = 'space', future_max = 'none'"));
    for number in 0..100 {
        assert_eq!(database.ask(&hour(number)), "INSERT 3600");
    }
    let mut reader = database.connect();
    assert_eq!(ask(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ", &[]), "BEGIN");
    assert_eq!(ask(&mut reader, "SELECT count(*) FROM r", &[]), "360000");
    let stored = (100..1000).find(|number| database.ask(&hour(*number)).contains("no room left")).expect("full");
    let count = |database: &mut Database| database.ask("SELECT count(*) FROM r").parse::<u64>().unwrap();
    let before = count(&mut database);
    for number in stored..stored + 20 {
        assert!(database.ask(&hour(number)).contains("no room left"), "hour {number}");
    }
    assert_eq!(count(&mut database), before, "what cannot be used yet is not dropped");
    assert!(before > 360_000, "{before}");
    assert_eq!(ask(&mut reader, "SELECT count(*) FROM r", &[]), "360000");
    assert_eq!(ask(&mut reader, "COMMIT", &[]), "COMMIT");
    database.expect(&[(&hour(stored), "INSERT 3600"), (&hour(stored + 1), "INSERT 3600")]);
}
