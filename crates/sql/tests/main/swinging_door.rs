//! Compression by swinging door: lines between what is stored pass everything that was given within its bound.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_sql::relation::Relations;
use counterfoil_sql::{Engine, EngineOptions, Session};

use crate::database::Database;

const BOUND: f64 = 0.5;

fn readings(options: &str) -> Database {
    Database::after(&format!(
        "CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT, PRIMARY KEY (sensor, ts))
             WITH (engine = 'series', swinging_door = 'value {BOUND}'{options})"
    ))
}

/// The same database as another process would find it: nothing but what is stored is known.
fn restart(database: &mut Database) {
    let store = database.engine.store().clone();
    let options = EngineOptions { parallelism: 2, ..EngineOptions::default() };
    let engine = Engine::new(store, Arc::new(Relations::new()), options).unwrap();
    database.session = Session::new(engine.clone()).unwrap();
    database.engine = engine;
}

/// A number that looks drawn by lot, below `below`.
fn dice(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    (*seed >> 33) % below
}

/// Points by time: value and quality.
type Points = BTreeMap<i64, (Option<f64>, i64)>;

fn stored(database: &mut Database, sensor: u64) -> Points {
    let rows = database.ask(&format!(
        "SELECT CAST(EXTRACT(EPOCH FROM ts) AS BIGINT), value, quality FROM readings WHERE sensor = 's{sensor}' ORDER BY ts"
    ));
    let row = |row: &str| {
        let cells: Vec<&str> = row.split('|').collect();
        (cells[0].parse().unwrap(), (cells[1].parse().ok(), cells[2].parse().unwrap()))
    };
    rows.lines().map(row).collect()
}

/// Asserts of points that were given in order that lines between those stored pass them within the bound.
fn check(given: &Points, stored: &Points) {
    assert_eq!(given.last_key_value(), stored.last_key_value(), "the newest point is stored");
    assert!(stored.iter().all(|(time, point)| given.get(time) == Some(point)), "what is stored was given");
    for (time, (value, quality)) in given.iter().filter(|(time, _)| !stored.contains_key(time)) {
        let (from, before) = stored.range(..time).next_back().unwrap();
        let (to, after) = stored.range(time..).next().unwrap();
        assert_eq!((quality, quality), (&before.1, &after.1), "quality at {time}");
        match (value, before.0, after.0) {
            (Some(value), Some(before), Some(after)) => {
                let line = before + (after - before) * ((time - from) as f64 / (to - from) as f64);
                assert!((line - value).abs() <= BOUND, "{line} for {value} at {time}");
            }
            (value, before, after) => {
                assert_eq!((value.is_none(), before.is_none()), (before.is_none(), after.is_none()))
            }
        }
    }
}

#[test]
fn random_walks_keep_their_bound_across_restarts_and_rollbacks() {
    let mut database = readings("");
    let mut seed = 11;
    let mut given: Vec<Points> = vec![Points::new(); 4];
    let mut now = [(0_i64, 0.0_f64); 4];
    let mut undone = 0;
    for _ in 0..400 {
        let (before, now_before) = (given.clone(), now);
        let mut rows = Vec::new();
        for _ in 0..=dice(&mut seed, 12) {
            let sensor = dice(&mut seed, 4) as usize;
            let (time, value) = &mut now[sensor];
            *time += 1 + dice(&mut seed, 20) as i64;
            *value += dice(&mut seed, 1000) as f64 / 1500.0 - 0.333;
            let shown = (dice(&mut seed, 200) > 0).then_some(*value);
            let quality = if dice(&mut seed, 150) > 0 { 192 } else { 0 };
            given[sensor].insert(*time, (shown, quality));
            let shown = shown.map_or("NULL".into(), |value| value.to_string());
            rows.push(format!("('s{sensor}', TIMESTAMP '1970-01-01' + INTERVAL '{time} seconds', {shown}, {quality})"));
        }
        let insert = |rows: &[String]| format!("INSERT INTO readings VALUES {}", rows.join(", "));
        let answer = format!("INSERT {}", rows.len());
        match dice(&mut seed, 12) {
            0 => {
                database.ask("BEGIN");
                assert_eq!(database.ask(&insert(&rows)), answer);
                database.ask("ROLLBACK");
                (given, now) = (before, now_before);
                undone += 1;
            }
            1 => {
                // What a savepoint undoes is given once more in another way.
                database.ask("BEGIN");
                database.ask(&insert(&rows[..1]));
                database.ask("SAVEPOINT s");
                database.ask(&insert(&rows));
                database.ask("ROLLBACK TO s");
                assert_eq!(database.ask(&insert(&rows)), answer);
                database.ask("COMMIT");
            }
            2 => {
                assert!(
                    database.ask(&insert(&[rows, vec!["('s0', NULL, 0, 0)".into()]].concat())).starts_with("error")
                );
                (given, now) = (before, now_before);
                undone += 1;
            }
            3 => {
                assert_eq!(database.ask(&insert(&rows)), answer);
                restart(&mut database);
            }
            _ => assert_eq!(database.ask(&insert(&rows)), answer),
        }
    }
    let (mut all, mut kept) = (0, 0);
    for sensor in 0..4 {
        let stored = stored(&mut database, sensor);
        check(&given[sensor as usize], &stored);
        (all, kept) = (all + given[sensor as usize].len(), kept + stored.len());
    }
    println!("{all} points given, {kept} stored; {undone} statements undone");
    assert!(kept * 2 < all && undone > 20);
}

#[test]
fn a_slow_signal_needs_few_points() {
    let mut database = readings("");
    let answer = database.ask(
        "INSERT INTO readings SELECT 's0', TIMESTAMP '1970-01-01' + CAST(i || ' seconds' AS INTERVAL), 20 + 5 * sin(i / 1000.0), 192
             FROM generate_series(1, 50000) s(i) ORDER BY i",
    );
    assert_eq!(answer, "INSERT 50000");
    let kept = stored(&mut database, 0).len();
    println!("a sine of amplitude 5 and bound {BOUND}, sampled 6283 times a period: {kept} of 50000 points stored");
    assert!((20..200).contains(&kept), "{kept}");
}

#[test]
fn what_comes_late_is_stored_and_ends_the_door() {
    let mut database = readings("");
    let put = |database: &mut Database, at: i64, value: f64| {
        let sql = format!(
            "INSERT INTO readings VALUES ('s0', TIMESTAMP '1970-01-01' + INTERVAL '{at} seconds', {value}, 192)"
        );
        assert_eq!(database.ask(&sql), "INSERT 1");
    };
    let times = |database: &mut Database| stored(database, 0).into_keys().collect::<Vec<_>>();
    for at in 0..=10 {
        put(&mut database, at * 10, 1.0);
    }
    assert_eq!(times(&mut database), [0, 100]);
    put(&mut database, 55, 1.0);
    assert_eq!(times(&mut database), [0, 55, 100], "a late point is stored");
    put(&mut database, 110, 1.0);
    put(&mut database, 120, 1.0);
    assert_eq!(times(&mut database), [0, 55, 100, 120], "and the door begins anew at the newest");
    put(&mut database, 120, 9.0);
    put(&mut database, 130, 9.0);
    put(&mut database, 140, 9.0);
    assert_eq!(times(&mut database), [0, 55, 100, 120, 140], "the last value of a time counts");
    database.ask("UPDATE readings SET value = 5 WHERE ts = TIMESTAMP '1970-01-01 00:02:00'");
    put(&mut database, 150, 13.0);
    put(&mut database, 160, 17.0);
    assert_eq!(times(&mut database), [0, 55, 100, 120, 140, 160], "changed: a new door, in which 150 lies on a line");
    database.ask("DELETE FROM readings WHERE ts >= TIMESTAMP '1970-01-01 00:02:20'");
    put(&mut database, 150, 5.0);
    put(&mut database, 160, 5.0);
    assert_eq!(times(&mut database), [0, 55, 100, 120, 160]);
}

#[test]
fn bounds_are_said_checked_and_found_again() {
    let mut database = Database::new();
    let with = |options: &str| {
        format!(
            "CREATE TABLE t (s TEXT, ts TIMESTAMP, v DOUBLE PRECISION, \"Level\" NUMERIC(9,2), n INTEGER, note TEXT, PRIMARY KEY (s, ts))
                 WITH (engine = 'series', {options})"
        )
    };
    for (options, expected) in [
        ("swinging_door = 'v'", "swinging_door = 'v': columns with their bounds are due, as 'value 0.5, level 2'"),
        (
            "swinging_door = 'v -1'",
            "swinging_door = 'v -1': columns with their bounds are due, as 'value 0.5, level 2'",
        ),
        (
            "swinging_door = 'v NaN'",
            "swinging_door = 'v NaN': columns with their bounds are due, as 'value 0.5, level 2'",
        ),
        ("swinging_door = 'w 1'", "no column w (swinging_door)"),
        ("swinging_door = 'note 1'", "swinging_door: column note of type text is no measured number"),
        ("swinging_door = 's 1'", "swinging_door: column s of type text is no measured number"),
        ("swinging_door = 'v 1, v 2'", "swinging_door names column v twice"),
        ("swinging_door_gap = '1 h'", "swinging_door_gap without swinging_door"),
        ("dead_band_gap = '1 h'", "dead_band_gap without dead_band"),
        ("dead_band = 'v'", "dead_band = 'v': columns with their bounds are due, as 'value 0.5, level 2'"),
        ("dead_band = 'note 1'", "dead_band: column note of type text is no measured number"),
        ("dead_band = 'v 1', swinging_door = 'v 1'", "swinging_door and dead_band: a table has one of them"),
        (
            "swinging_door = 'v 1', reorder = '1 s'",
            "not supported: swinging_door with reorder: points that come between others are stored whatever they say",
        ),
    ] {
        assert_eq!(database.ask(&with(options)), format!("error: {expected}"), "{options}");
    }
    let bounds = "SELECT * FROM counterfoil.error_bounds";
    database.expect(&[
        (&with("swinging_door = 'V 0.5, \"Level\" 2', swinging_door_gap = '10 min'"), "CREATE TABLE"),
        (bounds, "t|v|0.5|swinging_door\nt|Level|2|swinging_door"),
        ("ALTER TABLE t RENAME COLUMN v TO \"a b\"", "ALTER TABLE"),
        (bounds, "t|a b|0.5|swinging_door\nt|Level|2|swinging_door"),
        (
            "ALTER TABLE t DROP COLUMN \"Level\"",
            "error: swinging_door names column Level: ALTER TABLE t SET (swinging_door = ...) first",
        ),
        ("ALTER TABLE t SET (swinging_door = '\"a b\" 1', future_max = 'none')", "ALTER TABLE"),
        ("ALTER TABLE t DROP COLUMN \"Level\"", "ALTER TABLE"),
        (bounds, "t|a b|1|swinging_door"),
        ("ALTER TABLE t SET (colour = 'red')", "error: not supported: the table option colour (engine series)"),
        ("ALTER TABLE t SET (swinging_door = 'x 1')", "error: no column x (swinging_door)"),
        (
            "SELECT option_name, option_value FROM counterfoil.series_options ORDER BY option_name",
            "commit_every|0 s\ndead_band|none\ndead_band_gap|none\nfuture_max|none\ninflux_database|none\non_duplicate|last\nquality|none\nreorder|0 s\nretention|none\nsummaries|none\nswinging_door|\"a b\" 1\nswinging_door_gap|10 min",
        ),
        // Numbers of every kind are measured, and other columns hold still.
        ("ALTER TABLE t SET (swinging_door = '\"a b\" 0, n 1')", "ALTER TABLE"),
        (
            "INSERT INTO t SELECT 'x', TIMESTAMP '1970-01-01' + CAST(i || ' minutes' AS INTERVAL), 7, i / 10, CASE WHEN i = 55 THEN 'here' END
                 FROM generate_series(0, 99) s(i) ORDER BY i",
            "INSERT 100",
        ),
        ("SELECT count(*) < 25, count(note) FROM t", "true|1"),
        ("SELECT max(gap) FROM (SELECT ts - lag(ts) OVER (ORDER BY ts) AS gap FROM t) g", "00:10:00"),
        ("SELECT table_name, series, is_exact, kept_apart FROM counterfoil.series", "t|1|true|0"),
        ("ALTER TABLE t SET (swinging_door = 'none', swinging_door_gap = 'none')", "ALTER TABLE"),
        (bounds, ""),
    ]);
}

#[test]
fn a_dead_band_keeps_every_point_near_the_stored_one_before_it() {
    let mut database = Database::after(&format!(
        "CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT, PRIMARY KEY (sensor, ts))
             WITH (engine = 'series', dead_band = 'value {BOUND}', dead_band_gap = '50 s')"
    ));
    let (mut seed, mut given, mut now) = (5, Points::new(), (0, 0.0));
    for round in 0..300 {
        let mut rows = Vec::new();
        for _ in 0..=dice(&mut seed, 12) {
            now = (now.0 + 1 + dice(&mut seed, 9) as i64, now.1 + dice(&mut seed, 1000) as f64 / 3000.0 - 0.166);
            let shown = (dice(&mut seed, 80) > 0).then_some(now.1);
            let quality = if dice(&mut seed, 60) > 0 { 192 } else { 0 };
            given.insert(now.0, (shown, quality));
            let shown = shown.map_or("NULL".into(), |value| value.to_string());
            rows.push(format!("('s0', TIMESTAMP '1970-01-01' + INTERVAL '{} seconds', {shown}, {quality})", now.0));
        }
        database.ask(&format!("INSERT INTO readings VALUES {}", rows.join(", ")));
        if round % 40 == 39 {
            restart(&mut database);
        }
    }
    let stored = stored(&mut database, 0);
    assert!(stored.len() * 2 < given.len(), "{} of {} are stored", stored.len(), given.len());
    assert!(stored.iter().all(|(time, point)| given.get(time) == Some(point)), "what is stored was given");
    for (time, (value, quality)) in &given {
        let (at, (held, was)) = stored.range(..=time).next_back().expect("the first point is stored");
        assert!(time - at < 50 && quality == was, "{time} after {at}");
        match (value, held) {
            (Some(value), Some(held)) => assert!((value - held).abs() <= BOUND, "{value} after {held}"),
            (value, held) => assert_eq!(value.is_none(), held.is_none()),
        }
    }
    database.expect(&[
        ("SELECT * FROM counterfoil.error_bounds", "readings|value|0.5|dead_band"),
        // What comes late is stored as it is.
        ("INSERT INTO readings VALUES ('s0', '1970-01-01 00:00:00.5', 0, 192)", "INSERT 1"),
        ("SELECT value FROM readings WHERE ts = '1970-01-01 00:00:00.5'", "0"),
        ("ALTER TABLE readings RENAME COLUMN value TO v", "ALTER TABLE"),
        ("SELECT * FROM counterfoil.error_bounds", "readings|v|0.5|dead_band"),
        (
            "ALTER TABLE readings DROP COLUMN v",
            "error: dead_band names column v: ALTER TABLE readings SET (dead_band = ...) first",
        ),
    ]);
}
