//! Series tables: what a person sees of them, and that they answer as a relation of the same rows does.

use crate::database::{Database, is_full};

const READINGS: &str = "CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT,
     PRIMARY KEY (sensor, ts)) WITH (engine = 'series')";

fn readings() -> Database {
    let mut database = Database::after(READINGS);
    database.expect(&[(
        "INSERT INTO readings VALUES ('b', '2026-01-01 00:00:02', 2.5, 192), ('a', '2026-01-01 00:00:01', 1.5, 192),
         ('a', '2026-01-01 00:00:03', NULL, 0), ('a', '2026-01-01 00:00:02', 'NaN', 64)",
        "INSERT 4",
    )]);
    database
}

#[test]
fn points_are_stored_in_order_of_series_and_time() {
    readings().expect(&[
        ("SELECT * FROM readings ORDER BY sensor, ts",
         "a|2026-01-01 00:00:01|1.5|192\na|2026-01-01 00:00:02|NaN|64\na|2026-01-01 00:00:03|NULL|0\nb|2026-01-01 00:00:02|2.5|192"),
        ("SELECT count(*), count(value), min(quality) FROM readings", "4|3|0"),
        ("SELECT value FROM readings WHERE sensor = 'a' AND ts < '2026-01-01 00:00:02'", "1.5"),
        ("SELECT sensor FROM readings WHERE sensor LIKE 'b%' OR sensor IS NULL", "b"),
        ("SELECT sensor FROM readings WHERE quality = 64", "a"),
        ("SELECT count(*) FROM readings WHERE ts BETWEEN '2026-01-01 00:00:02' AND '2026-01-01 00:00:03'", "3"),
        ("SELECT count(*) FROM readings WHERE ts = '2026-01-01 00:00:02' AND NOT (sensor = 'a')", "1"),
        ("SELECT sensor FROM readings WHERE ts <> '2026-01-01 00:00:02' ORDER BY ts LIMIT 1", "a"),
    ]);
}

#[test]
fn the_last_value_of_a_key_counts_unless_a_second_one_is_refused() {
    let mut database = readings();
    database.expect(&[
        ("INSERT INTO readings VALUES ('a', '2026-01-01 00:00:01', 7, 192)", "INSERT 1"),
        ("SELECT value FROM readings WHERE sensor = 'a' AND ts = '2026-01-01 00:00:01'", "7"),
        ("INSERT INTO readings VALUES ('a', '2026-01-01 00:00:01', 8, 192), ('a', '2026-01-01 00:00:09', 9, 192)
          ON CONFLICT DO NOTHING", "INSERT 1"),
        ("INSERT INTO readings VALUES ('a', '2026-01-01 00:00:01', 8, 0), ('c', '2026-01-01 00:00:09', 9, 0)
          ON CONFLICT (sensor, ts) DO UPDATE SET value = readings.value + excluded.value RETURNING sensor, value, quality",
         "a|15|192\nc|9|0"),
        ("CREATE TABLE once (s TEXT, ts TIMESTAMP, v INTEGER, PRIMARY KEY (s, ts)) WITH (engine = 'series', on_duplicate = 'error')",
         "CREATE TABLE"),
        ("INSERT INTO once VALUES ('a', '2026-01-01', 1)", "INSERT 1"),
        ("INSERT INTO once VALUES ('a', '2026-01-02', 1), ('a', '2026-01-01', 2)",
         "error: duplicate key: a row of table once has this key already (constraint once_pkey, on_duplicate = 'error')"),
        ("INSERT INTO once VALUES ('b', '2026-01-02', 1), ('b', '2026-01-02', 2)",
         "error: duplicate key: a row of table once has this key already (constraint once_pkey, on_duplicate = 'error')"),
        ("SELECT count(*) FROM once", "1"),
    ]);
}

#[test]
fn points_are_updated_deleted_and_rolled_back() {
    let mut database = readings();
    database.expect(&[
        ("UPDATE readings SET value = 0.25 WHERE value IS NULL", "UPDATE 1"),
        ("UPDATE readings SET sensor = 'z', ts = ts + INTERVAL '1 day' WHERE sensor = 'b' RETURNING *",
         "z|2026-01-02 00:00:02|2.5|192"),
        ("UPDATE readings SET sensor = 'q', ts = '2026-01-01'",
         "error: duplicate key: two rows of table readings would have the same key"),
        ("DELETE FROM readings WHERE sensor IN (SELECT sensor FROM readings WHERE quality = 64) AND quality <> 0 RETURNING ts",
         "2026-01-01 00:00:01\n2026-01-01 00:00:02"),
        ("SELECT sensor, value FROM readings ORDER BY sensor", "a|0.25\nz|2.5"),
        ("BEGIN", "BEGIN"),
        ("INSERT INTO readings VALUES ('new', '2026-01-01', 1, 192)", "INSERT 1"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("DELETE FROM readings", "DELETE 3"),
        ("SELECT count(*) FROM readings", "0"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("SELECT count(*) FROM readings", "3"),
        ("ROLLBACK", "ROLLBACK"),
        ("SELECT count(*) FROM readings", "2"),
        ("INSERT INTO readings VALUES ('other', '2026-01-01', 1, 192)", "INSERT 1"),
        ("SELECT sensor FROM readings ORDER BY sensor", "a\nother\nz"),
        ("TRUNCATE readings", "TRUNCATE TABLE"),
        ("SELECT count(*) FROM readings", "0"),
    ]);
}

#[test]
fn columns_come_and_go() {
    let mut database = readings();
    database.expect(&[
        ("ALTER TABLE readings ADD COLUMN unit TEXT", "ALTER TABLE"),
        ("ALTER TABLE readings DROP COLUMN quality", "ALTER TABLE"),
        ("ALTER TABLE readings ADD COLUMN state BOOLEAN", "ALTER TABLE"),
        ("ALTER TABLE readings RENAME TO measured", "ALTER TABLE"),
        ("INSERT INTO measured VALUES ('c', '2026-01-01', 1, 'bar', true)", "INSERT 1"),
        (
            "SELECT * FROM measured ORDER BY sensor DESC, ts LIMIT 2",
            "c|2026-01-01 00:00:00|1|bar|true\nb|2026-01-01 00:00:02|2.5|NULL|NULL",
        ),
        ("DROP TABLE measured", "DROP TABLE"),
        ("SELECT 1 FROM measured", "error: table 'measured' not found"),
    ]);
}

#[test]
fn what_a_series_table_cannot_be_is_said() {
    let mut database = Database::new();
    let with = |columns: &str, options: &str| format!("CREATE TABLE t ({columns}) WITH (engine = 'series'{options})");
    let key = "s TEXT, ts TIMESTAMP, v INTEGER, PRIMARY KEY (s, ts)";
    for (sql, expected) in [
        (
            with("s TEXT, ts TIMESTAMP", ""),
            "a series table has a PRIMARY KEY: the columns that name a series, and last the time (series table t)",
        ),
        (
            with("s TEXT, ts TIMESTAMP, PRIMARY KEY (ts, s)", ""),
            "column s is the last of the PRIMARY KEY: it must be a TIMESTAMP or TIMESTAMPTZ (series table t)",
        ),
        (
            with(&format!("{key}, UNIQUE (v)"), ""),
            "not supported: UNIQUE and REFERENCES: a series table has a primary key alone (series table t)",
        ),
        (
            with("s TEXT, ts TIMESTAMP, v NUMERIC(30,2), PRIMARY KEY (s, ts)", ""),
            "not supported: column v of type numeric(30,2) (series table t)",
        ),
        (with(key, ", reorder = 'soon'"), "reorder = 'soon': a span of time is due, such as '500 ms' or '2 s'"),
        (with(key, ", on_duplicate = 'x'"), "on_duplicate is 'last' or 'error'"),
        (with(key, ", colour = 'x'"), "not supported: the table option colour (engine series)"),
        (
            format!("CREATE TABLE t ({key}) WITH (engine = 'heap')"),
            "not supported: engine = 'heap': 'relation', 'series', 'published' or 'dispersed'",
        ),
    ] {
        assert_eq!(database.ask(&sql), format!("error: {expected}"), "{sql}");
    }
    database.expect(&[
        (READINGS, "CREATE TABLE"),
        (
            "CREATE INDEX i ON readings (value)",
            "error: not supported: CREATE INDEX on a series table: it is ordered by series and time",
        ),
    ]);
}

/// A number that looks drawn by lot, below `below`.
fn dice(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    (*seed >> 33) % below
}

const COLUMNS: &str = "(site INTEGER, sensor TEXT, ts TIMESTAMPTZ, value DOUBLE PRECISION, state SMALLINT, note TEXT,
     paid NUMERIC(9,2), PRIMARY KEY (site, sensor, ts))";

/// Rows with different keys.
fn rows(seed: &mut u64, count: u64, spread: u64) -> String {
    let from = dice(seed, 40_000);
    let mut seen = std::collections::BTreeMap::new();
    for at in 0..count {
        let (site, sensor) = (dice(seed, 2), dice(seed, 3));
        let second = if dice(seed, 10) == 0 { dice(seed, 50_000) } else { from + at * spread };
        let value = match dice(seed, 12) {
            0 => "NULL".into(),
            1 => "'NaN'".into(),
            _ => format!("{}.{}", dice(seed, 100), dice(seed, 10)),
        };
        let note = ["NULL", "'ok'", "'a longer note that does not fit into twelve bytes'"][dice(seed, 3) as usize];
        let row = format!(
            "({site}, 's{sensor}', TIMESTAMPTZ '2026-03-01 00:00:00Z' + INTERVAL '{second} seconds', {value}, {}, {note}, {}.{:02})",
            dice(seed, 3) * 64,
            dice(seed, 1000),
            dice(seed, 100),
        );
        seen.insert((site, sensor, second), row);
    }
    seen.into_values().collect::<Vec<_>>().join(", ")
}

/// What is asked of both tables after every change.
const QUESTIONS: [&str; 8] = [
    "SELECT * FROM t ORDER BY site, sensor, ts",
    "SELECT site, sensor, count(*), count(value), min(ts), max(ts), sum(paid), max(note) FROM t GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT * FROM t WHERE sensor = 's1' AND ts >= '2026-03-01 05:00:00Z' AND ts < '2026-03-01 09:00:00Z' ORDER BY site, ts",
    "SELECT count(*) FROM t WHERE ts > '2026-03-01 11:00:00Z'",
    "SELECT ts, value FROM t WHERE site = 1 AND sensor IN ('s0', 's2') AND state = 64 ORDER BY sensor, ts DESC LIMIT 30",
    "SELECT count(*), sum(a.paid) FROM t a JOIN t b ON a.sensor = b.sensor AND a.ts = b.ts AND a.site < b.site",
    "SELECT count(*) FROM t WHERE note IS NULL AND (value > 50 OR value = 'NaN')",
    "SELECT count(*) FROM t WHERE ts <> '2026-03-01 03:00:00Z' AND site + 0 = 1",
];

#[test]
fn a_series_answers_as_a_relation_of_the_same_rows() {
    let mut database =
        Database::after(&format!("CREATE TABLE r {COLUMNS}; CREATE TABLE s {COLUMNS} WITH (engine = 'series')"));
    let mut seed = 7;
    for round in 0..if is_full() { 120 } else { 40 } {
        let (from, until) = (dice(&mut seed, 50_000), dice(&mut seed, 9000));
        let span = format!(
            "ts >= TIMESTAMPTZ '2026-03-01 00:00:00Z' + INTERVAL '{from} seconds'
             AND ts < TIMESTAMPTZ '2026-03-01 00:00:00Z' + INTERVAL '{} seconds'",
            from + until
        );
        let changes = match dice(&mut seed, 10) {
            0..=5 => {
                let (count, spread) = (1 + dice(&mut seed, 400), 1 + dice(&mut seed, 30));
                let rows = rows(&mut seed, count, spread);
                [format!("INSERT INTO r VALUES {rows} ON CONFLICT (site, sensor, ts) DO UPDATE SET value = excluded.value,
                          state = excluded.state, note = excluded.note, paid = excluded.paid"),
                 format!("INSERT INTO s VALUES {rows}")]
            }
            6 => ["r", "s"].map(|t| format!("DELETE FROM {t} WHERE {span} AND state = 0")),
            7 => ["r", "s"].map(|t| format!("UPDATE {t} SET value = value + 1, note = 'changed' WHERE {span}")),
            8 => ["r", "s"]
                .map(|t| format!("UPDATE {t} SET ts = ts + INTERVAL '100000 seconds' WHERE {span} AND site = 0")),
            _ => ["r", "s"].map(|t| format!("DELETE FROM {t} WHERE ts > '2026-03-02 00:00:00Z' AND site = 0")),
        };
        let undone = dice(&mut seed, 5) == 0;
        if undone {
            database.ask("BEGIN");
        }
        let answers = changes.each_ref().map(|sql| database.ask(sql));
        assert!(!answers[1].starts_with("error") || answers[0].starts_with("error"), "{}: {}", changes[1], answers[1]);
        assert_eq!(answers[0].starts_with("error"), answers[1].starts_with("error"), "round {round}: {answers:?}");
        if !answers[0].starts_with("error") {
            assert_eq!(answers[0], answers[1], "round {round}");
        }
        for end in [undone, false].into_iter().take(1 + usize::from(undone)) {
            if !answers[0].starts_with("error") || !end {
                for question in QUESTIONS {
                    let [r, s] = ["r", "s"].map(|t| {
                        database.ask(
                            &question.replace("FROM t", &format!("FROM {t}")).replace("JOIN t", &format!("JOIN {t}")),
                        )
                    });
                    assert!(
                        r == s,
                        "round {round}: {question}\n{}\n{}",
                        &r[..r.len().min(500)],
                        &s[..s.len().min(500)]
                    );
                }
            }
            if end {
                database.ask("ROLLBACK");
            }
        }
    }
    assert_ne!(database.ask("SELECT count(*) FROM s"), "0");
}

/// What a column was before a rollback is forgotten with it.
#[test]
fn a_column_that_was_rolled_back_may_come_again_as_another_type() {
    let mut database = Database::new();
    database.expect(&[
        ("BEGIN", "BEGIN"),
        (READINGS, "CREATE TABLE"),
        ("INSERT INTO readings VALUES ('a', '2026-01-01', 1, 192)", "INSERT 1"),
        ("SAVEPOINT s", "SAVEPOINT"),
        ("ALTER TABLE readings ADD COLUMN extra TEXT", "ALTER TABLE"),
        ("INSERT INTO readings VALUES ('y', '2026-01-01', 1, 192, 'text')", "INSERT 1"),
        ("ROLLBACK TO s", "ROLLBACK"),
        ("ALTER TABLE readings ADD COLUMN extra DOUBLE PRECISION", "ALTER TABLE"),
        ("INSERT INTO readings VALUES ('z', '2026-01-01', 1, 192, 2.5)", "INSERT 1"),
        ("COMMIT", "COMMIT"),
        ("SELECT sensor, extra FROM readings ORDER BY sensor", "a|NULL\nz|2.5"),
    ]);
}

#[test]
fn names_of_series_that_are_uuids_are_compared_as_such() {
    let mut database = Database::after(
        "CREATE TABLE meters (meter UUID, ts TIMESTAMP, value INTEGER, PRIMARY KEY (meter, ts)) WITH (engine = 'series')",
    );
    database.expect(&[
        (
            "INSERT INTO meters VALUES ('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '2026-01-01', 1),
             ('{b0eebc999c0b4ef8bb6d6bb9bd380a11}', '2026-01-01', 2)",
            "INSERT 2",
        ),
        ("SELECT value FROM meters WHERE meter = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "1"),
        ("SELECT value FROM meters WHERE 'B0EEBC999c0b4ef8bb6d6bb9bd380a11' <= meter", "2"),
        ("SELECT count(*) FROM meters WHERE meter <> 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "1"),
        (
            "SELECT sum(value) FROM meters WHERE meter IN ('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
             'B0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'C0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'no uuid')",
            "3",
        ),
        ("SELECT value FROM meters WHERE meter BETWEEN 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A10' AND 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12'", "1"),
        ("SELECT value FROM meters WHERE meter = 'no uuid' OR meter LIKE 'b0ee%'", "2"),
        ("DELETE FROM meters WHERE meter = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "DELETE 1"),
    ]);
}
