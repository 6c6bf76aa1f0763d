//! `resample` and `value_at` over a series table begin with the last sample before their range, and answer as over all rows.

use crate::database::Database;

/// A number that looks drawn by lot, below `below`.
fn dice(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    (*seed >> 33) % below
}

fn at(second: u64) -> String {
    format!("TIMESTAMP '2026-03-01' + INTERVAL '{second} seconds'")
}

/// Samples of which many are none, of a few series, some of them in long rows: there the last one is many pages back.
fn rows(seed: &mut u64, count: u64) -> String {
    let from = dice(seed, 20_000);
    let silent = dice(seed, 3) == 0;
    let mut seen = std::collections::BTreeMap::new();
    for place in 0..count {
        let (site, sensor) = (dice(seed, 2), dice(seed, 3));
        let second = if dice(seed, 10) == 0 { dice(seed, 30_000) } else { from + place };
        let value = match dice(seed, if silent { 1 } else { 8 }) {
            0 => "NULL".to_owned(),
            _ => format!("{}.5", dice(seed, 100)),
        };
        let quality = match dice(seed, 20) {
            0 if !silent => "0",
            1 => "64",
            2 => "NULL",
            _ => "192",
        };
        seen.insert((site, sensor, second), format!("({site}, 's{sensor}', {}, {value}, {quality})", at(second)));
    }
    seen.into_values().collect::<Vec<_>>().join(", ")
}

fn filled(mut database: Database) -> Database {
    let create = "CREATE TABLE s (site INTEGER, sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT,
         PRIMARY KEY (site, sensor, ts)) WITH (engine = 'series')";
    assert_eq!(database.ask(create), "CREATE TABLE");
    // Series with leaves under nodes: one that says something now and then, and one that fell silent.
    let filled = database.ask(
        "INSERT INTO s SELECT i % 2, 's1', to_timestamp(1772323200 + i / 2),
             CASE WHEN i % 2 = 0 AND i % 1000 = 0 OR i % 2 = 1 AND i < 3000 THEN (i * 7919 % 4001)::DOUBLE PRECISION / 8 END,
             192 + floor(random() * 60) FROM generate_series(0, 99999) AS g(i)",
    );
    assert_eq!(filled, "INSERT 100000");
    database
}

/// A call, its arguments drawn by lot; and whether it can begin with the last sample.
fn call(seed: &mut u64) -> (String, bool) {
    let input = [
        ("s", "site, sensor", true),
        ("(SELECT * FROM s WHERE sensor <> 's0')", "site, sensor", true),
        ("(SELECT * FROM s WHERE is_good(quality))", "site, sensor", true),
        (
            "(SELECT site, sensor, ts, value FROM s WHERE value > 20 AND ts > '2026-03-01 00:30:00')",
            "site, sensor",
            true,
        ),
        ("(SELECT sensor, ts, quality, NULLIF(value, 7.5) * 2 AS value FROM s)", "sensor", true),
        ("(SELECT ts, value, quality FROM s WHERE site = 1)", "''", true),
        // What tells series apart is in the rows, or the times are others: everything is read.
        ("(SELECT site, quality AS state, ts, value FROM s)", "site, state", false),
        ("(SELECT site, sensor, ts + INTERVAL '1 second' AS ts, value FROM s)", "site, sensor", false),
    ];
    let (input, by, narrow) = input[dice(seed, input.len() as u64) as usize];
    let by = if by.contains(',') { format!("({by})") } else { by.to_owned() };
    let method = ["step", "linear"][dice(seed, 2) as usize];
    let age = ["", ", max_age => '90 seconds'", ", max_age => '2 hours'"][dice(seed, 3) as usize];
    let (start, long) = (dice(seed, 32_000), 1 + dice(seed, 3000));
    let common = format!("by => {by}, method => '{method}'{age}");
    let call = match dice(seed, 2) {
        0 => format!("value_at({input}, {}, {common})", at(start)),
        _ => format!("resample({input}, '{} seconds', {}, {}, {common})", 1 + long / 7, at(start), at(start + long)),
    };
    (call, narrow)
}

#[test]
fn answers_are_those_of_all_rows() {
    let mut database = filled(Database::new());
    let mut seed = 5;
    let mut answered = 0;
    for round in 0..60 {
        let (from, until) = (dice(&mut seed, 30_000), dice(&mut seed, 4000));
        let change = match round % 6 {
            0 => {
                let count = 1 + dice(&mut seed, 600);
                format!("INSERT INTO s VALUES {}", rows(&mut seed, count))
            }
            3 => format!("DELETE FROM s WHERE ts >= {} AND ts < {}", at(from), at(from + until)),
            _ => "SELECT 1".into(),
        };
        assert!(!database.ask(&change).starts_with("error"), "{change}");
        let (call, narrow) = call(&mut seed);
        let query = format!("SELECT * FROM {call}");
        let plan = database.ask(&format!("EXPLAIN {query}"));
        assert_eq!(plan.contains("from the last sample up to 2026-03-01 "), narrow, "{query}\n{plan}");
        // Series come in any order where parts are read at once.
        let ask = |database: &mut Database| {
            let mut rows: Vec<_> = database.ask(&query).lines().map(str::to_owned).collect();
            rows.sort();
            rows.join("\n")
        };
        let found = ask(&mut database);
        database.expect(&[("SET enable_summaries = off", "SET")]);
        assert!(!database.ask(&format!("EXPLAIN {query}")).contains("from the last sample"));
        let wanted = ask(&mut database);
        database.expect(&[("SET enable_summaries = on", "SET")]);
        assert!(!wanted.starts_with("error"), "{query}: {wanted}");
        let shown = |answer: &str| answer[..answer.len().min(900)].to_owned();
        assert!(found == wanted, "{query}\n{}\n---\n{}", shown(&found), shown(&wanted));
        answered += usize::from(!wanted.is_empty());
    }
    assert!(answered > 40, "{answered} of 60 have rows");
}

#[test]
fn the_value_at_a_time_is_a_few_pages_of_each_series() {
    let mut database = filled(Database::without_cache());
    let ask = "SELECT site, value, sample_ts FROM value_at((SELECT * FROM s WHERE sensor = 's1'), '2026-03-01 06:00:00', by => site) ORDER BY site";
    let answer = "0|486.625|2026-03-01 05:58:20\n1|393.25|2026-03-01 00:24:59";
    let pages = |database: &mut Database, sql: &str, expected: &str| {
        let before = database.reads();
        database.expect(&[(sql, expected)]);
        database.reads() - before
    };
    let _ = pages(&mut database, "SELECT 1", "1");
    let few = pages(
        &mut database,
        "SELECT value FROM value_at((SELECT * FROM s WHERE sensor = 's1' AND site = 0), '2026-03-01 06:00:00', by => '')",
        "486.625",
    );
    let some = pages(&mut database, ask, answer);
    database.expect(&[("SET enable_summaries = off", "SET")]);
    let all = pages(&mut database, ask, answer);
    eprintln!("pages read: {few} for one series, {some} where one fell silent, {all} of all rows");
    assert!(few <= 3 && 2 * few < some && 4 * few < all, "{few} {some} {all}");
}
