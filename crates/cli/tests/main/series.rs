//! Series tables in a file: across processes, copies and new keys, beside relations, and on real data.

use super::stage::Stage;

/// Three sensors, a point a second for hours, some of them late, changed and deleted, over several commits.
fn filled() -> Stage {
    let stage = Stage::with_database();
    stage.good(&[
        "db",
        "CREATE TABLE r (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT,
         PRIMARY KEY (sensor, ts)) WITH (engine = 'series', reorder = '2 s')",
    ]);
    for part in 0..3 {
        stage.good(&[
            "db",
            &format!(
            "INSERT INTO r SELECT 's' || i % 3, CAST(to_timestamp(1767225600 + i) AS TIMESTAMP), i * 7919 % 65537 / 16.0, 192
             FROM generate_series({}, {}) g(i)", part * 20_000, part * 20_000 + 19_999),
        ]);
    }
    stage.good(&[
        "db",
        "INSERT INTO r SELECT 's1', CAST(to_timestamp(1767225600 + 7 * i) AS TIMESTAMP) + INTERVAL '1 millisecond', -1, 0
                        FROM generate_series(1, 8000) g(i)",
    ]);
    stage.good(&["db", "UPDATE r SET value = value + 1000 WHERE sensor = 's2' AND ts < '2026-01-01 01:00:00'"]);
    stage.good(&["db", "DELETE FROM r WHERE sensor = 's0' AND ts >= '2026-01-01 10:00:00'"]);
    stage
}

const QUESTIONS: [&str; 3] = [
    "SELECT sensor, count(*), sum(value), min(ts), max(ts) FROM r GROUP BY sensor ORDER BY sensor",
    "SELECT count(*), count(DISTINCT ts), sum(quality) FROM r WHERE ts BETWEEN '2026-01-01 00:30:00' AND '2026-01-01 01:30:00'",
    "SELECT ts, value FROM r WHERE sensor = 's1' AND quality = 0 ORDER BY ts DESC LIMIT 2",
];

fn answers(stage: &Stage, database: &str) -> Vec<String> {
    QUESTIONS.iter().map(|question| stage.good(&[database, question, "--no-header"])).collect()
}

/// What follows `name` on the line that begins with it.
fn told<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find(|line| line.starts_with(name));
    line.unwrap_or_else(|| panic!("no line {name} in {text}")).trim_start_matches(name).trim_start()
}

#[test]
fn inspect_tells_how_series_were_written() {
    let stage = filled();
    stage.good(&["db", "UPDATE r SET value = value + 1 WHERE sensor = 's1'"]);
    let text = stage.good(&["inspect", "db", "--svg", "map.svg"]);
    let number = |text: &str, after: &str| -> f64 {
        let from = text.find(after).unwrap_or_else(|| panic!("no {after} in {text}")) + after.len();
        let digits: String =
            text[from..].trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        digits.parse().unwrap_or_else(|_| panic!("no number after {after} in {text}"))
    };
    let series = told(&text, "series");
    assert!(series.starts_with("r: 3 series, "), "{series}");
    let bytes = number(series, "on the medium, ");
    assert!((0.5..20.0).contains(&bytes), "{bytes} bytes a point: {series}");
    let pages = told(&text, "pages");
    let (leaves, written) = (number(pages, "r:"), number(pages, "%);"));
    assert!(leaves > 10.0 && written > leaves, "new values had leaves written anew: {pages}");
    let distance = number(told(&text, "write distance"), "r:");
    assert!((1.0..50.0).contains(&distance), "{distance} pages from write to write");
    let picture = stage.text("map.svg");
    assert!(picture.contains("bytes a point") && picture.matches("<rect").count() > leaves as usize);
}

#[test]
fn points_stay_through_processes_copies_and_new_keys() {
    let stage = filled();
    let wanted = answers(&stage, "db");
    assert_eq!(
        wanted[0].lines().map(|line| line.split(',').nth(1).unwrap_or("")).collect::<Vec<_>>(),
        ["12000", "28000", "20000"]
    );
    assert!(stage.good(&["verify", "db"]).contains("r"));
    stage.good(&["inspect", "db"]);
    stage.good(&["reorganize", "db"]);
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["restore", "copy", "new", "--as-new"]);
    assert_eq!(answers(&stage, "new"), wanted, "restored as a new database");
    stage.good(&["rekey", "db", "--data"]);
    assert_eq!(answers(&stage, "db"), wanted, "under a new key");
    stage.good(&["export", "db", "--all", "out"]);
    assert!(stage.text("out/schema.sql").contains("WITH (engine = 'series', reorder = '2 s')"));
    stage.good(&["init", "again"]);
    stage.good(&["import", "again", "--all", "out"]);
    assert_eq!(answers(&stage, "again"), wanted, "exported and imported");
    stage.good(&["salvage", "db", "saved"]);
    stage.good(&["init", "rescued"]);
    stage.good(&["rescued", "CREATE TABLE r (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT)"]);
    let saved = std::fs::read_dir(stage.path("saved")).expect("a folder").map(|entry| entry.expect("one").path());
    let saved = saved.into_iter().find(|path| path.to_string_lossy().contains("r.")).expect("a file of the table");
    stage.good(&["import", "rescued", "r", &saved.to_string_lossy()]);
    assert_eq!(answers(&stage, "rescued"), wanted, "salvaged");
    for database in ["db", "new", "again"] {
        stage.good(&["verify", database]);
    }
}

/// What a table was told goes where the table goes, and so does what it keeps apart. What it has stored is not thinned again.
#[test]
fn options_and_what_is_kept_apart_go_along() {
    let stage = Stage::with_database();
    stage.good(&[
        "db",
        "CREATE TABLE r (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, PRIMARY KEY (sensor, ts)) WITH (engine = 'series',
         future_max = '2 days', commit_every = '1 ms', swinging_door = 'value 0.5', swinging_door_gap = '1 h')",
    ]);
    stage.good(&[
        "db",
        "INSERT INTO r SELECT 's', CAST(to_timestamp(1767225600 + i) AS TIMESTAMP), 10 * sin(CAST(i AS DOUBLE PRECISION) / 50)
         FROM generate_series(1, 3000) g(i) ORDER BY i",
    ]);
    let told = stage.run(&["db", "INSERT INTO r VALUES ('s', '2999-01-01', 1), ('t', '2999-01-02', 2)"]);
    assert!(told.err.contains("2 points of table r are more than 2 days ahead of the clock"), "{}", told.err);
    let questions = [
        "SELECT count(*), sum(value), max(ts) FROM r",
        "SELECT * FROM future.r ORDER BY sensor",
        "SELECT * FROM counterfoil.error_bounds",
        "SELECT * FROM counterfoil.series_options ORDER BY option_name",
    ];
    let answers = |database: &str| questions.map(|question| stage.good(&[database, question, "--no-header"]));
    let wanted = answers("db");
    let stored: u32 = wanted[0].split(',').next().and_then(|count| count.parse().ok()).expect("a count");
    assert!((30..300).contains(&stored), "{stored} of 3000 points stored");
    assert!(stage.good(&["verify", "db"]).contains("future.r"));
    assert!(stage.good(&["inspect", "db"]).contains("2 points ahead of the clock, of table r"));
    stage.good(&["backup", "db", "copy"]);
    stage.good(&["restore", "copy", "new", "--as-new"]);
    stage.good(&["export", "db", "--all", "out"]);
    stage.good(&["init", "again"]);
    stage.good(&["import", "again", "--all", "out"]);
    for database in ["new", "again"] {
        assert_eq!(answers(database), wanted, "{database}");
    }
    stage.good(&["salvage", "db", "saved"]);
    let saved = std::fs::read_dir(stage.path("saved")).expect("a folder").map(|entry| entry.expect("one").file_name());
    assert!(saved.into_iter().any(|name| name.to_string_lossy().contains("future")));
}

#[test]
fn the_weather_is_a_series_that_joins_the_flights() {
    let stage = Stage::with_database();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/nycflights13/");
    let file = |name: &str| format!("{data}{name}");
    stage.good(&[
        "import",
        "db",
        "weather",
        &file("weather.csv.gz"),
        "--create",
        "--null",
        "NA",
        "--key",
        "origin,time_hour",
        "--engine",
        "series",
    ]);
    stage.good(&["import", "db", "plain", &file("weather.csv.gz"), "--create", "--null", "NA"]);
    stage.good(&["import", "db", "flights", &file("flights-2013-01.csv.gz"), "--create", "--null", "NA"]);
    let asked = |table: &str| {
        stage.ask(&format!(
            "SELECT f.origin, count(*), round(avg(f.dep_delay), 3), round(avg(w.temp), 3) FROM flights f
         JOIN {table} w ON f.origin = w.origin AND f.time_hour = w.time_hour
         WHERE w.time_hour < '2013-01-15 00:00:00Z' GROUP BY f.origin ORDER BY f.origin"
        ))
    };
    assert_eq!(asked("weather"), asked("plain"));
    assert!(asked("weather").starts_with("EWR,"));
    assert_eq!(
        stage.ask("SELECT count(*) FROM weather"),
        stage.ask("SELECT count(DISTINCT (origin, time_hour)) FROM plain")
    );
}

/// Whoever holds the file changes a page of points: the answer is an error, never another value.
#[test]
fn a_changed_page_of_points_is_noticed() {
    let stage = filled();
    let good = answers(&stage, "db");
    let image = stage.read("db");
    let (mut noticed, pages) = (0, image.len() / 4096);
    // The end of the file is kept for commits that free space: nothing is there yet.
    let is_used = |page: &usize| image[page * 4096..][..4096].iter().any(|byte| *byte != 0);
    for page in (0..pages).rev().filter(is_used).step_by(7) {
        let mut changed = image.clone();
        changed[page * 4096 + 2000] ^= 1;
        stage.write("db", changed);
        for (question, wanted) in QUESTIONS.iter().zip(&good) {
            let ended = stage.run(&["db", question, "--no-header"]);
            match ended.code {
                0 => assert_eq!(&ended.out, wanted, "page {page}"),
                _ => noticed += 1,
            }
        }
    }
    stage.write("db", image);
    assert!(noticed > 3, "{noticed} of {pages} pages");
    assert_eq!(answers(&stage, "db"), good);
}
