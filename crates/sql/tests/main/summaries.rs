//! Aggregations over series tables: answered from summaries, from points, and from a relation of the same rows, they are the same.

use crate::database::Database;

const COLUMNS: &str = "(site INTEGER, sensor TEXT, ts TIMESTAMPTZ, value DOUBLE PRECISION, state SMALLINT, note TEXT,
     paid NUMERIC(9,2), PRIMARY KEY (site, sensor, ts))";

/// A number that looks drawn by lot, below `below`.
fn dice(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    (*seed >> 33) % below
}

/// An instant.
fn at(second: u64) -> String {
    format!("TIMESTAMPTZ '2026-03-01 00:00:00Z' + INTERVAL '{second} seconds'")
}

/// What summaries answer, over a table `t` and conditions `w`.
const ANSWERED: [&str; 10] = [
    "SELECT count(*), count(value), sum(value), min(value), max(value), avg(value), sum(state), avg(state), min(ts), max(ts) FROM t WHERE w",
    "SELECT site, sensor, sum(paid), avg(paid), min(paid), max(state), count(site), avg(value) FROM t WHERE w GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT sensor, count(*), min(value), max(value), sum(value), max(ts) FROM t WHERE w GROUP BY sensor ORDER BY sensor",
    "SELECT date_bin('1 hour', ts) AS hour, count(*), sum(value), max(value), count(state) FROM t WHERE w GROUP BY 1 ORDER BY 1",
    "SELECT sensor, date_bin('37 minutes', ts, TIMESTAMPTZ '2026-03-01 00:00:30Z') AS bin, site, min(value), avg(value),
     first_value(value ORDER BY ts), last_value(value ORDER BY ts), last_value(note ORDER BY ts) FROM t WHERE w GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT site, date_bin('1 day', ts) AS day, avg(paid), max(ts) FROM t WHERE w GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT site, sensor, first_value(note ORDER BY ts), last_value(value ORDER BY ts), last_value(ts ORDER BY ts) FROM t WHERE w GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT DISTINCT ON (site, sensor) site, sensor, ts, value, note FROM t WHERE w ORDER BY site, sensor, ts DESC",
    "SELECT last_value(value ORDER BY ts), first_value(state ORDER BY ts DESC), count(*) FROM t WHERE w AND site = 1 AND sensor = 's1'",
    "SELECT sensor, sum(value) FROM t WHERE w GROUP BY sensor HAVING count(*) > 2 ORDER BY sum(value) DESC, sensor LIMIT 2",
];

/// What only points answer.
const NOT_ANSWERED: [&str; 8] = [
    "SELECT max(note), count(*) FROM t WHERE w",
    "SELECT sum(value * 2), count(*) FROM t WHERE w",
    "SELECT sensor, count(DISTINCT state) FROM t WHERE w GROUP BY sensor ORDER BY sensor",
    "SELECT count(*) FILTER (WHERE state = 64), count(value) FROM t WHERE w",
    "SELECT sum(value) FROM t WHERE w AND state = 64",
    "SELECT sensor, last_value(value ORDER BY ts, site) FROM t WHERE w GROUP BY sensor ORDER BY sensor",
    "SELECT DISTINCT site, sensor FROM t WHERE w ORDER BY 1, 2",
    "SELECT sensor, last_value(ts ORDER BY ts) FROM t WHERE w GROUP BY sensor ORDER BY sensor",
];

/// Asks a question of the relation, and of the series with summaries and without.
fn compare(database: &mut Database, question: &str, condition: &str, answered: bool) {
    let of = |table: &str| question.replace("FROM t", &format!("FROM {table}")).replace("WHERE w", condition);
    let wanted = database.ask(&of("r"));
    let plan = database.ask(&format!("EXPLAIN {}", of("s")));
    assert_eq!(plan.contains("SeriesSummaries: s"), answered, "{}\n{plan}", of("s"));
    let from_summaries = database.ask(&of("s"));
    database.expect(&[("SET enable_summaries = off", "SET")]);
    let plan = database.ask(&format!("EXPLAIN {}", of("s")));
    assert!(!plan.contains("SeriesSummaries"), "{plan}");
    let from_points = database.ask(&of("s"));
    database.expect(&[("SET enable_summaries = on", "SET")]);
    for (how, found) in [("points", from_points), ("summaries", from_summaries)] {
        let (found, wanted) = (&found[..found.len().min(900)], &wanted[..wanted.len().min(900)]);
        assert!(found == wanted, "from {how}: {}\n{found}\n---\n{wanted}", of("s"));
    }
}

/// Rows with different keys, some of them late.
fn rows(seed: &mut u64, count: u64, spread: u64) -> String {
    let from = dice(seed, 40_000);
    let mut seen = std::collections::BTreeMap::new();
    for place in 0..count {
        let (site, sensor) = (dice(seed, 2), dice(seed, 3));
        let second = if dice(seed, 10) == 0 { dice(seed, 50_000) } else { from + place * spread };
        let value = match dice(seed, 60) {
            0..=5 => "NULL".into(),
            6 => "'NaN'".into(),
            7 => "'-Infinity'".into(),
            _ => format!("{}.{}", dice(seed, 1000), ["125", "5", "0", "25"][dice(seed, 4) as usize]),
        };
        let note = ["NULL", "'ok'", "'a longer note that does not fit into twelve bytes'"][dice(seed, 3) as usize];
        let paid = format!("{}.{:02}", dice(seed, 1000), dice(seed, 100));
        let row = format!("({site}, 's{sensor}', {}, {value}, {}, {note}, {paid})", at(second), dice(seed, 3) * 64);
        seen.insert((site, sensor, second), row);
    }
    seen.into_values().collect::<Vec<_>>().join(", ")
}

fn tables(option: &str) -> Database {
    let mut database = Database::after(&format!(
        "CREATE TABLE r {COLUMNS}; CREATE TABLE s {COLUMNS} WITH (engine = 'series', summaries = '{option}', quality = 'state')"
    ));
    // One series that has leaves under nodes, and changes of its state now and then.
    for table in ["r", "s"] {
        let sql = format!(
            "INSERT INTO {table} SELECT 1, 's1', to_timestamp(1772323200 + i),
             (i * 7919 % 4001)::DOUBLE PRECISION / 8, (i / 1000 % 3 * 64)::SMALLINT, CASE WHEN i % 500 = 0 THEN 'mark' END,
             (i * 31 % 9999)::NUMERIC(9,2) / 100 FROM generate_series(0, 11999) AS g(i)"
        );
        assert_eq!(database.ask(&sql), "INSERT 12000");
        let more =
            [(0, 1), (0, 2), (1, 2)].map(|(site, sensor)| format!("({site}, 's{sensor}', {}, 1.5, 64)", at(10_000)));
        let sql = format!("INSERT INTO {table} (site, sensor, ts, value, state) VALUES {}", more.join(", "));
        assert_eq!(database.ask(&sql), "INSERT 3");
    }
    database
}

#[test]
fn summaries_answer_as_points_do() {
    let mut database = tables("value, state, paid");
    let mut seed = 11;
    for round in 0..10 {
        let (from, until) = (dice(&mut seed, 50_000), dice(&mut seed, 20_000));
        let span = format!("ts >= {} AND ts < {}", at(from), at(from + until));
        let changes = match dice(&mut seed, 8) {
            0..=4 => {
                let (count, spread) = (1 + dice(&mut seed, 400), 1 + dice(&mut seed, 30));
                let rows = rows(&mut seed, count, spread);
                [
                    format!(
                        "INSERT INTO r VALUES {rows} ON CONFLICT (site, sensor, ts) DO UPDATE SET value = excluded.value,
                         state = excluded.state, note = excluded.note, paid = excluded.paid"
                    ),
                    format!("INSERT INTO s VALUES {rows}"),
                ]
            }
            5 => ["r", "s"].map(|t| format!("DELETE FROM {t} WHERE {span} AND state = 0")),
            6 => ["r", "s"].map(|t| format!("UPDATE {t} SET value = value + 0.5, note = 'changed' WHERE {span}")),
            _ => ["r", "s"].map(|t| format!("DELETE FROM {t} WHERE {span} AND site = 1")),
        };
        let answers = changes.each_ref().map(|sql| database.ask(sql));
        assert_eq!(answers[0], answers[1], "round {round}");
        let half = format!("WHERE {span} AND sensor <> 's0'");
        let conditions = ["WHERE true".to_owned(), format!("WHERE {span}"), half];
        for (at, question) in ANSWERED.iter().chain(&NOT_ANSWERED).enumerate() {
            // Each question meets each condition in every third round.
            compare(&mut database, question, &conditions[(round + at) % 3], at < ANSWERED.len());
        }
    }
}

#[test]
fn without_summaries_rows_times_and_ends_are_answered_all_the_same() {
    let mut database = Database::after(&format!(
        "CREATE TABLE r {COLUMNS}; CREATE TABLE s {COLUMNS} WITH (engine = 'series');
         INSERT INTO r VALUES {rows}; INSERT INTO s VALUES {rows}",
        rows = rows(&mut 3, 300, 40)
    ));
    for question in [
        "SELECT count(*), max(ts), min(ts) FROM t WHERE w",
        "SELECT site, sensor, count(ts), last_value(value ORDER BY ts), last_value(note ORDER BY ts) FROM t WHERE w GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT DISTINCT ON (site, sensor) * FROM t WHERE w ORDER BY site, sensor, ts DESC",
        "SELECT date_bin('5 minutes', ts) AS bin, count(*) FROM t WHERE w GROUP BY 1 ORDER BY 1",
    ] {
        for condition in [format!("WHERE ts > {}", at(7000)), format!("WHERE ts < {}", at(0))] {
            compare(&mut database, question, &condition, true);
        }
    }
    compare(&mut database, "SELECT sum(value) FROM t WHERE w", "WHERE true", false);
}

#[test]
fn sums_of_doubles_are_rounded_once() {
    let mut database = Database::after(
        "CREATE TABLE s (ts TIMESTAMP, value DOUBLE PRECISION, PRIMARY KEY (ts)) WITH (engine = 'series', summaries = 'all');
         INSERT INTO s SELECT to_timestamp(i), 0.1 FROM generate_series(1, 10) AS g(i)",
    );
    database.expect(&[("SELECT sum(value), avg(value) FROM s", "1|0.1")]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mut database = Database::new();
    let key = "s TEXT, ts TIMESTAMP, v INTEGER, note TEXT, PRIMARY KEY (s, ts)";
    for (options, expected) in [
        ("summaries = 'note'", "summaries = '...': note is no column of numbers beside the key (series table t)"),
        ("summaries = 'v, w'", "summaries = '...': w is no column of numbers beside the key (series table t)"),
        ("summaries = 'ts'", "summaries = '...': ts is no column of numbers beside the key (series table t)"),
        (
            "summaries = 'v', quality = 'note'",
            "quality = 'note' is no column of integers beside the key (series table t)",
        ),
        ("quality = 'v'", "quality = '...' goes with summaries = '...' (series table t)"),
    ] {
        let sql = format!("CREATE TABLE t ({key}) WITH (engine = 'series', {options})");
        assert_eq!(database.ask(&sql), format!("error: {expected}"), "{options}");
    }
    let many = (0..9).map(|at| format!("v{at} INTEGER")).collect::<Vec<_>>().join(", ");
    let named = (0..9).map(|at| format!("v{at}")).collect::<Vec<_>>().join(", ");
    let create = |summaries: &str| {
        format!("CREATE TABLE t (ts TIMESTAMP PRIMARY KEY, {many}) WITH (engine = 'series', summaries = '{summaries}')")
    };
    database.expect(&[
        (&create(&named), "error: with pages of this size 8 columns of a series table may have summaries (table t)"),
        (&create("all"), "CREATE TABLE"),
        ("ALTER TABLE t RENAME COLUMN v0 TO w", "ALTER TABLE"),
        ("DROP TABLE t", "DROP TABLE"),
        (&create("v0, v1"), "CREATE TABLE"),
        (
            "ALTER TABLE t RENAME COLUMN v0 TO w",
            "error: not supported: renaming or dropping column v0, which summaries of series table t are told by",
        ),
        (
            "ALTER TABLE t DROP COLUMN v1",
            "error: not supported: renaming or dropping column v1, which summaries of series table t are told by",
        ),
        ("ALTER TABLE t DROP COLUMN v2", "ALTER TABLE"),
    ]);
}
