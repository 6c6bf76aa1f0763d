//! Scans of series tables come in the order of their keys and times: who asks for that order sorts nothing.

use crate::database::Database;

/// Series that are first named in another order than theirs, with late points.
fn plants() -> Database {
    let mut database = Database::after(
        "CREATE TABLE plants (site SMALLINT, sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT,
             PRIMARY KEY (site, sensor, ts)) WITH (engine = 'series');
         CREATE TABLE plain (site SMALLINT, sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT,
             PRIMARY KEY (site, sensor, ts));",
    );
    for (second, step) in [(40, 7), (0, 5), (20, 3)] {
        let rows = (0..60).map(|at| {
            let (site, sensor) = (2 - at % 3, ["b", "ä", "a", "B", "aa"][(at * 3 % 5) as usize]);
            format!(
                "({site}, '{sensor}', TIMESTAMP '2026-01-01' + INTERVAL '{} seconds', {at}, 192)",
                second + at * step
            )
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        database.ask(&format!(
            "INSERT INTO plain VALUES {rows} ON CONFLICT (site, sensor, ts) DO UPDATE SET value = excluded.value"
        ));
        database.ask(&format!("INSERT INTO plants VALUES {rows}"));
    }
    assert_eq!(database.ask("SELECT count(*) FROM plants"), database.ask("SELECT count(*) FROM plain"));
    database
}

/// Asks both tables, and tells whether the plan over the series sorts.
fn sorts(database: &mut Database, query: &str) -> bool {
    let plain = database.ask(&query.replace("plants", "plain"));
    assert_eq!(database.ask(query), plain, "{query}");
    assert!(!plain.starts_with("error"), "{query}: {plain}");
    database.ask(&format!("EXPLAIN {query}")).contains("SortExec")
}

#[test]
fn whoever_asks_for_the_order_of_series_and_time_sorts_nothing() {
    let mut database = plants();
    for query in [
        "SELECT * FROM plants ORDER BY site, sensor, ts",
        "SELECT site, sensor FROM plants ORDER BY site, sensor",
        "SELECT * FROM plants WHERE sensor = 'a' ORDER BY site, ts",
        "SELECT ts, value FROM plants WHERE site = 1 ORDER BY sensor, ts",
        "SELECT ts, value FROM plants WHERE site = 1 AND sensor = 'b' ORDER BY ts LIMIT 3",
        "SELECT ts FROM plants WHERE site = 1 AND sensor = 'b' AND ts > '2026-01-01 00:01:00' ORDER BY ts",
        "SELECT * FROM plants WHERE value > 20 ORDER BY site, sensor, ts LIMIT 5 OFFSET 2",
        "SELECT site, sensor, ts, lag(value) OVER (PARTITION BY site, sensor ORDER BY ts) AS b FROM plants ORDER BY 1, 2, 3",
    ] {
        assert!(!sorts(&mut database, query), "{query}\n{}", database.ask(&format!("EXPLAIN {query}")));
    }
    // Another order is none that it has; nor is one whose first column no longer is there to tell.
    for query in [
        "SELECT * FROM plants ORDER BY ts, site, sensor",
        "SELECT * FROM plants ORDER BY sensor, site, ts",
        "SELECT ts, sensor FROM plants WHERE site IN (0, 1) ORDER BY sensor, ts, value",
        "SELECT sensor, ts, site FROM plants WHERE sensor IN ('a', 'b') ORDER BY ts, sensor, site",
    ] {
        assert!(sorts(&mut database, query), "{query}");
    }
}

#[test]
fn what_historians_ask_is_answered_without_a_sort() {
    let mut database = plants();
    let range = "'10 seconds', '2026-01-01', '2026-01-01 00:04:00'";
    for call in [
        format!("resample(plants, {range}, method => 'linear')"),
        format!("m4(plants, {range})"),
        "lttb(plants, 4)".into(),
        "value_at(plants, '2026-01-01 00:02:00')".into(),
        "gapfill((SELECT site, sensor, ts, value FROM plants), '1 second', '2026-01-01', '2026-01-01 00:08:00', by => (site, sensor))".into(),
    ] {
        let query = format!("SELECT * FROM {call} ORDER BY 1, 2, 3");
        assert!(!sorts(&mut database, &query), "{query}\n{}", database.ask(&format!("EXPLAIN {query}")));
    }
}

/// A table that is read in parts: its parts are told apart by key, so that groups and the historian's functions are not dealt out
/// anew, and joins are.
#[test]
fn parts_follow_each_other_in_the_order_of_keys() {
    let mut database = Database::after(
        "CREATE TABLE plants (site INTEGER, sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, PRIMARY KEY (site, sensor, ts))
             WITH (engine = 'series');
         CREATE TABLE plain (site INTEGER, sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION);
         CREATE TABLE names (site INTEGER, sensor TEXT, name TEXT)",
    );
    let filled = database.ask(
        "INSERT INTO plain SELECT 3 - i % 2, chr(110 - CAST(i % 5 AS INTEGER)), TIMESTAMP '2026-01-01' + CAST(i || ' seconds' AS INTERVAL),
             CAST(i % 1000 AS DOUBLE PRECISION) FROM generate_series(0, 209999) s(i)",
    );
    assert_eq!(filled, "INSERT 210000");
    assert_eq!(database.ask("INSERT INTO plants SELECT * FROM plain"), "INSERT 210000");
    database.ask("INSERT INTO names SELECT DISTINCT site, sensor, sensor || '!' FROM plain");
    for query in [
        "SELECT count(*), sum(value) FROM (SELECT * FROM plants ORDER BY site, sensor, ts LIMIT 99999) t",
        "SELECT * FROM plants WHERE ts > '2026-01-02 00:00:00' ORDER BY site, sensor, ts LIMIT 7 OFFSET 61000",
        "SELECT site, sensor, count(*), sum(value), min(ts) FROM plants GROUP BY site, sensor ORDER BY site, sensor",
        "SELECT site, sensor, ts, row_number() OVER (PARTITION BY site, sensor ORDER BY ts) AS n FROM plants \
             ORDER BY site, sensor, ts LIMIT 3 OFFSET 150000",
        "SELECT site, sensor, count, time_weighted_average FROM resample(plants, '1 hour', '2026-01-01', '2026-01-02', by => (site, sensor)) \
             ORDER BY site, sensor, bucket LIMIT 9 OFFSET 100",
    ] {
        assert!(!sorts(&mut database, query), "{query}\n{}", database.ask(&format!("EXPLAIN {query}")));
        assert!(database.ask(&format!("EXPLAIN {query}")).contains("in 2 parts"), "{query}");
    }
    let grouped = database.ask("EXPLAIN SELECT site, sensor, sum(value) FROM plants GROUP BY site, sensor");
    assert!(!grouped.contains("RepartitionExec"), "{grouped}");
    for query in [
        "SELECT sensor, count(*) FROM plants GROUP BY sensor ORDER BY sensor",
        "SELECT site, max(value) FROM plants GROUP BY site ORDER BY site",
        "SELECT n.name, count(*), sum(p.value) FROM plants p JOIN names n ON n.site = p.site AND n.sensor = p.sensor GROUP BY 1 ORDER BY 1",
        "SELECT count(*), sum(a.value) FROM plants a JOIN plants b ON a.site = b.site AND a.sensor = b.sensor AND a.ts = b.ts",
        "SELECT count(*) FROM plants a FULL JOIN (SELECT * FROM plants WHERE site = 2) b
             ON a.site = b.site AND a.sensor = b.sensor AND a.ts = b.ts",
        "SELECT count(DISTINCT sensor), count(DISTINCT ts) FROM plants WHERE site + 0 = 3",
    ] {
        let plain = database.ask(&query.replace("plants", "plain"));
        assert_eq!(database.ask(query), plain, "{query}");
        assert!(!plain.starts_with("error"), "{query}: {plain}");
    }
}
