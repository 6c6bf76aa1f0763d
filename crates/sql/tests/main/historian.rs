//! The functions for records of machines: examples worked out by hand, edges, and what is refused. The models are in
//! `historian_model`, the document's examples in `historian_document`.

use counterfoil_sql::{EngineOptions, MEMORY_BYTES_MIN, Value};

use crate::database::{Database, ask};

const READINGS: &str = "
    CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT, PRIMARY KEY (sensor, ts));
    INSERT INTO readings VALUES
        ('a', '2026-01-01 00:50', 10, 192),
        ('a', '2026-01-01 01:15', 20, 192),
        ('a', '2026-01-01 01:45', 40, 192),
        ('a', '2026-01-01 03:30', NULL, 0),
        ('a', '2026-01-01 03:45', 8, 192),
        ('b', '2026-01-01 02:00', 1, 64)";

const RANGE: &str = "'1 hour', '2026-01-01 00:00', '2026-01-01 05:00'";

#[test]
fn a_series_has_a_row_for_each_bucket_and_one_that_begins_later_has_none() {
    let mut database = Database::after(READINGS);
    let mut rows = |columns: &str, arguments: &str| {
        database.ask(&format!("SELECT {columns} FROM resample(readings, {arguments}) ORDER BY sensor, bucket"))
    };
    assert_eq!(
        rows("sensor, value, count, samples, worst_quality", RANGE),
        "a|NULL|1|1|192\na|10|2|2|192\na|40|0|0|192\na|40|1|2|0\na|8|0|0|192\n\
         b|NULL|0|0|NULL\nb|NULL|0|0|NULL\nb|NULL|0|1|64\nb|NULL|0|0|64\nb|NULL|0|0|64"
    );
    let early = "'30 minutes', '2026-01-01 00:30', '2026-01-01 01:45'";
    for method in ["", ", method => 'linear'"] {
        // The last bucket is cut, and b begins later.
        let answer = rows("sensor, bucket, percent_good", &format!("{early}{method}"));
        let expected = "a|2026-01-01 00:30:00|33.333333333333336\na|2026-01-01 01:00:00|100\na|2026-01-01 01:30:00|100";
        assert_eq!(answer, expected, "{method}");
    }
    assert_eq!(rows("*", "'1 hour', '2025-01-01', '2025-02-01'"), "");
    assert_eq!(rows("count(*) OVER (), bucket", "'1 day', '2026-02-01', '2026-02-02', max_age => '1 hour'"), "");
}

#[test]
fn what_is_asked_may_come_from_anywhere() {
    let mut database = Database::after(READINGS);
    let sum = |input: &str| format!("SELECT sum(time_integral) FROM resample({input}, {RANGE}, by => sensor)");
    database.expect(&[
        (&sum("readings"), "339000"),
        (&sum("public.readings"), "339000"),
        (&sum("'readings'"), "339000"),
        (&sum("READINGS"), "339000"),
        (&sum("(SELECT value, ts, sensor, quality FROM readings)"), "339000"),
        (&format!("WITH r AS (SELECT * FROM readings), s AS (SELECT * FROM r) {}", sum("s")), "339000"),
        (&format!("WITH r AS ({}) SELECT * FROM r", sum("readings")), "339000"),
        (&format!("WITH readings AS (SELECT * FROM readings WHERE sensor = 'b') {}", sum("readings")), "NULL"),
        (&format!("SELECT ({}) + 1", sum("readings")), "339001"),
        (
            &format!(
                "SELECT count(*) FROM resample(readings, {RANGE}) AS r JOIN resample(readings, {RANGE}) AS s \
                 ON r.sensor = s.sensor AND r.bucket = s.bucket"
            ),
            "10",
        ),
        // One function reads what another answers.
        (
            &format!(
                "SELECT ts, value FROM lttb((SELECT sensor, bucket AS ts, value FROM resample(readings, {RANGE})), \
                 2, by => sensor)"
            ),
            "2026-01-01 01:00:00|10\n2026-01-01 04:00:00|8",
        ),
        (&format!("CREATE TABLE kept AS SELECT * FROM resample(readings, {RANGE})"), "SELECT 10"),
        (&format!("INSERT INTO kept SELECT * FROM resample(readings, {RANGE}) WHERE sensor = 'a'"), "INSERT 5"),
        (&format!("CREATE VIEW hourly AS SELECT * FROM resample(readings, {RANGE})"), "CREATE VIEW"),
        ("SELECT sensor, sum(count) FROM hourly GROUP BY sensor ORDER BY sensor", "a|4\nb|0"),
        ("DROP TABLE readings", "error: view hourly depends on readings: drop it first, or add CASCADE"),
        ("DROP TABLE readings CASCADE", "DROP TABLE"),
        ("SELECT count(*) FROM hourly", "error: table 'hourly' not found"),
    ]);
}

#[test]
fn parameters_and_changes_not_yet_committed_are_seen() {
    let mut database = Database::after(READINGS);
    let sql = "SELECT value FROM value_at(readings, $1, max_age => $2) WHERE sensor = $3";
    let given = [Value::Text("2026-01-01 01:30".into()), Value::Text("20 minutes".into()), Value::Text("a".into())];
    assert_eq!(ask(&mut database.session, sql, &given), "20");
    database.expect(&[
        ("BEGIN", "BEGIN"),
        ("INSERT INTO readings VALUES ('a', '2026-01-01 01:20', 21, 192)", "INSERT 1"),
        ("SELECT value FROM value_at(readings, '2026-01-01 01:30') WHERE sensor = 'a'", "21"),
        ("ROLLBACK", "ROLLBACK"),
        ("SELECT value FROM value_at(readings, '2026-01-01 01:30') WHERE sensor = 'a'", "20"),
        ("SELECT count(*) FROM value_at(readings, now()) WHERE ts > now() - INTERVAL '1 hour'", "2"),
    ]);
}

#[test]
fn values_and_times_may_be_of_any_such_type() {
    let mut database = Database::after(
        "CREATE TABLE switch (time TIMESTAMPTZ, on_off BOOLEAN);
         INSERT INTO switch VALUES ('2026-01-01 00:00:00Z', true), ('2026-01-01 00:15:00Z', false);
         CREATE TABLE meter (ts TIMESTAMP(9), value NUMERIC(10,2), n BIGINT);
         INSERT INTO meter VALUES ('2026-01-01 00:00:00.000000001', 1.25, 7), ('2026-01-01 00:00:00.000000003', 2.25, 9)",
    );
    database.expect(&[
        (
            "SELECT bucket, time_weighted_average, time_integral FROM resample(switch, '1 hour', '2026-01-01', \
             '2026-01-01 01:00', value => on_off)",
            "2026-01-01 00:00:00+00|0.25|900",
        ),
        (
            "SELECT value, n FROM value_at(meter, '2026-01-01 00:00:00.000000002', method => linear, by => n) ORDER BY n",
            "NULL|7",
        ),
        ("SELECT value FROM value_at(meter, '2026-01-01 00:00:00.000000002', method => linear, by => '')", "1.75"),
        (
            "SELECT value FROM value_at(meter, '2026-01-01 00:00:00.000000002', method => linear, by => '', value => n)",
            "8",
        ),
        (
            "SELECT bucket, percent_good FROM resample(switch, '1 month', '2025-12-01', '2026-02-01', value => on_off)",
            "2025-12-01 00:00:00+00|0\n2026-01-01 00:00:00+00|100",
        ),
    ]);
}

#[test]
fn gaps_are_filled_and_rows_that_are_there_stay() {
    let mut database = Database::after(
        "CREATE TABLE g (site TEXT, unit INTEGER, day TIMESTAMP, mean REAL, note TEXT);
         INSERT INTO g VALUES ('x', 1, '2026-01-01', 1, 'one'), ('x', 1, '2026-01-04', 4, NULL),
             ('x', 2, '2025-12-01', 9, 'old'), ('y', 1, '2026-02-01', 5, 'new'), ('z', 1, NULL, 5, 'never')",
    );
    let range = "'1 day', '2026-01-01', '2026-01-05', by => (site, unit)";
    let mut rows = |fill: &str| {
        let sql = format!("SELECT site, unit, day, mean, note FROM gapfill(g, {range}{fill}) ORDER BY 1, 2, 3");
        let answer = database.ask(&sql);
        assert!(answer.lines().count() == 16, "{answer}");
        answer.lines().map(|line| line.replace("2026-01-", "").replace(" 00:00:00", "")).collect::<Vec<_>>()
    };
    assert_eq!(rows("")[..4], ["x|1|01|1|one", "x|1|02|NULL|NULL", "x|1|03|NULL|NULL", "x|1|04|4|NULL"]);
    let filled = rows(", fill => 'linear, locf'");
    assert_eq!(filled[..4], ["x|1|01|1|one", "x|1|02|2|one", "x|1|03|3|one", "x|1|04|4|NULL"]);
    assert_eq!(filled[4], "x|2|01|NULL|old");
    assert_eq!(filled[8], "y|1|01|NULL|NULL");
    assert_eq!(filled[15], "z|1|04|NULL|NULL");
    assert_eq!(rows(", fill => 'prev, none'")[4..6], ["x|2|01|9|none", "x|2|02|9|none"]);
    let day = |name: &str, by: &str| format!("SELECT * FROM gapfill(g, '{name}', '2026-01-01', '2026-01-05'{by})");
    for (sql, error) in [
        (day("2 days", ", by => (site, unit)"), "2026-01-04 00:00:00 begins no bucket (every 48 h from 2026-01-01"),
        (day("1 day", ", by => (site, unit), fill => 'linear'"), "no line goes through note, which is text"),
        (day("1 day", ", by => (site, unit), fill => 'a, b, c'"), "3 words for the columns mean, note"),
        (day("1 day", ", by => (site, unit), fill => 'a, b'"), "'a' is no real for mean"),
    ] {
        let answer = database.ask(&sql);
        assert!(answer.starts_with("error: gapfill: ") && answer.contains(error), "{sql}: {answer}");
    }
    database.ask("INSERT INTO g VALUES ('x', 2, '2026-01-01', 1, '')");
    let answer = database.ask(&day("1 day", ""));
    assert!(answer.contains("two rows of one series have the bucket 2026-01-01 00:00:00"), "{answer}");
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let mut database = Database::after(READINGS);
    database.ask("CREATE TABLE wide (host TEXT, seen TIMESTAMP, sent TIMESTAMP, idle REAL, state TEXT)");
    database.ask("CREATE TABLE named (bucket TEXT, ts TIMESTAMP, value REAL)");
    database.ask("CREATE TABLE dated (ts DATE, value REAL)");
    let resample = |arguments: &str| format!("SELECT * FROM resample({arguments})");
    for (sql, expected) in [
        (
            resample("readings, '1 hour', '2026-01-01'"),
            "stop is missing: write resample(input, width, start, stop [, by",
        ),
        (resample(&format!("readings, {RANGE}, 5")), "too many arguments without a name"),
        (resample(&format!("readings, {RANGE}, size => 5")), "there is no argument size"),
        (resample(&format!("readings, {RANGE}, width => '1 day'")), "width is given twice"),
        (resample("readings, '1 hour', 'noon', '2026-01-02'"), "start => 'noon': write a constant timestamp"),
        (resample("readings, '1 hour', 5, '2026-01-02'"), "start => 5: write a constant timestamp"),
        (resample("readings, '1 hour', NULL, '2026-01-02'"), "start => NULL: write a constant timestamp"),
        (resample("readings, '1 hour', ts, '2026-01-02'"), "start => ts: write a constant timestamp"),
        (resample("readings, 'wide', '2026-01-01', '2026-01-02'"), "width => 'wide': write a constant interval"),
        (resample("readings, '-1 hour', '2026-01-01', '2026-01-02'"), "must be longer than nothing"),
        (resample("readings, '1 hour', '2026-01-02', '2026-01-01'"), "is empty: stop must be after start"),
        (resample(&format!("readings, {RANGE}, max_age => '1 month'")), "max_age: months are not always as long"),
        (resample(&format!("readings, {RANGE}, method => 'cubic'")), "method => cubic: 'step'"),
        (resample(&format!("readings, {RANGE}, by => machine")), "readings has no column machine (it has sensor, ts,"),
        (resample(&format!("readings, {RANGE}, by => 1 + 1")), "write names of columns, as in by => (a, b)"),
        (resample(&format!("readings, {RANGE}, by => (sensor, sensor)")), "by names sensor twice"),
        (resample(&format!("readings, {RANGE}, by => ts")), "the time is no key"),
        (resample(&format!("readings, {RANGE}, value => sensor")), "sensor is text: values must be numbers or BOOLEAN"),
        (resample(&format!("readings, {RANGE}, quality => value")), "a quality is a SMALLINT from 0 to 255"),
        (resample(&format!("wide, {RANGE}")), "wide has 2 columns of times: say ts => name"),
        (
            resample(&format!("wide, {RANGE}, ts => seen")),
            "which columns of wide tell series apart? Write by => (a, b)",
        ),
        (resample(&format!("wide, {RANGE}, ts => seen, by => host")), "wide has no column value: say which holds"),
        (resample(&format!("named, {RANGE}, by => bucket")), "the answer has a column bucket of its own"),
        (resample(&format!("dated, {RANGE}, ts => ts")), "ts is date: the times must be TIMESTAMP"),
        (resample(&format!("nothing, {RANGE}")), "table 'nothing' not found"),
        (resample(&format!("1 + 1, {RANGE}")), "1 + 1 is no table: write the name of one, or a query in parentheses"),
        ("SELECT * FROM lttb(readings, 1)".into(), "points: how many points stay of each series, two at least"),
        ("SELECT * FROM lttb(readings, 'many')".into(), "points: how many points stay of each series, two at least"),
        ("SELECT * FROM value_at(readings, (SELECT 1 AS n))".into(), "the query has no column of type TIMESTAMP"),
        ("SELECT percent_good(value) FROM readings".into(), "percent_good takes a quality"),
        ("SELECT is_good('x') FROM readings".into(), "is_good takes a quality"),
    ] {
        let answer = database.ask(&sql);
        assert!(answer.starts_with("error: ") && answer.contains(expected), "{sql}\n{answer}\n{expected}");
    }
}

#[test]
fn qualities_are_summed_up_in_groups_of_any_size() {
    let mut database = Database::after(
        "CREATE TABLE q AS SELECT i % 1000 AS g, CASE WHEN i % 4 = 0 THEN NULL ELSE (i * 7 % 256)::smallint END AS q \
         FROM generate_series(1, 20000) s(i)",
    );
    database.expect(&[
        (
            "SELECT count(*) FROM (SELECT g, percent_good(q) AS p, \
             100.0 * count(*) FILTER (WHERE q IS NULL OR q >= 192) / count(*) AS e FROM q GROUP BY g) WHERE abs(p - e) > 1e-9",
            "0",
        ),
        (
            "SELECT count(*) FROM (SELECT g, worst_quality(q) AS w, coalesce(min(q) FILTER (WHERE q < 64 OR q BETWEEN 128 AND 191), \
             min(q) FILTER (WHERE q < 128), min(q)) AS e FROM q GROUP BY g) WHERE w IS DISTINCT FROM e",
            "0",
        ),
        ("SELECT percent_good(q), worst_quality(q) FROM q WHERE false", "NULL|NULL"),
        ("SELECT percent_good(NULL), worst_quality(NULL)", "100|NULL"),
        ("SELECT is_good(NULL), is_good(192), is_good(191), is_good(-64), is_good(64)", "true|true|false|true|false"),
        ("SELECT count(*) FROM q WHERE NOT is_good(q) AND q >= 192 AND q < 256", "0"),
    ]);
}

#[test]
fn explain_shows_what_is_done_and_nothing_is_sorted_twice() {
    let mut database = Database::after(READINGS);
    let plan = database.ask(&format!(
        "EXPLAIN SELECT * FROM resample(readings, {RANGE}, max_age => '90 minutes') WHERE sensor = 'a' AND count > 0"
    ));
    assert!(
        plan.contains(
            "Resample: every 1 h from 2026-01-01 00:00:00 to 2026-01-01 05:00:00, method: step, max_age: 90 min, by: [sensor]"
        ),
        "{plan}"
    );
    // What is asked of the key, and the range of time, go down to the table.
    assert!(plan.contains("readings_pkey") && plan.contains("tests: [sensor, ts]"), "{plan}");
    let plan = database.ask(&format!(
        "EXPLAIN SELECT * FROM lttb((SELECT sensor, bucket AS ts, value FROM resample(readings, {RANGE})), 9, by => sensor) \
         ORDER BY sensor, ts"
    ));
    assert_eq!(plan.matches("SortExec").count(), 1, "{plan}");
    assert!(plan.contains("LTTB: 9 points, by: [sensor]"), "{plan}");
    // One series in order stays so when it becomes one of many.
    database.ask("CREATE TABLE one (ts TIMESTAMP PRIMARY KEY, value INTEGER)");
    let plan = database.ask(
        "EXPLAIN SELECT * FROM lttb((SELECT 'x' AS key, ts, value FROM lttb(one, 9)), 5, by => key) ORDER BY key, ts",
    );
    assert_eq!(plan.matches("SortExec").count(), 1, "{plan}");
}

fn bounded() -> Database {
    let mut database =
        Database::with_options(EngineOptions { memory_bytes: MEMORY_BYTES_MIN, parallelism: 1, ..Default::default() });
    database.ask("CREATE TABLE t (ts TIMESTAMP PRIMARY KEY, value INTEGER)");
    for second in 0..10 {
        database.ask(&format!("INSERT INTO t VALUES ('2026-01-01 00:00:0{second}', {second})"));
    }
    database
}

const MILLISECONDS: &str = "'1 ms', '2026-01-01', '2026-01-01 00:50:00'";

#[test]
fn what_is_held_does_not_grow_with_what_is_answered() {
    let mut database = bounded();
    let one = format!("gapfill((SELECT * FROM t WHERE value < 1), {MILLISECONDS}, fill => 'previous')");
    database.expect(&[
        // Three million rows from ten, and from one.
        (
            &format!("SELECT count(*), sum(count), round(sum(time_integral)) FROM resample(t, {MILLISECONDS})"),
            "3000000|10|26955",
        ),
        (&format!("SELECT count(*), count(value) FROM {one}"), "3000000|3000000"),
        (&format!("SELECT count(value) FROM value_at(t, (SELECT ts AS at FROM {one}))"), "3000000"),
        ("SELECT percent_good FROM resample(t, '1 us', '2026-01-01', '9999-01-01') LIMIT 2", "100\n100"),
    ]);
}

#[test]
fn what_must_be_held_is_bounded() {
    let mut database = bounded();
    let many = format!("SELECT bucket AS ts, value FROM resample(t, {MILLISECONDS})");
    let outgrown = "error: the query needs more working memory than it may take: give it more (--ram";
    for query in [
        format!("SELECT count(*) FROM lttb(({many}), 5, by => '')"),
        // No sample follows these instants, and lines would need one.
        format!(
            "SELECT count(*) FROM value_at(t, (SELECT ts + INTERVAL '1 day' AS at FROM ({many})), method => 'linear')"
        ),
    ] {
        let said = database.ask(&query);
        assert!(said.starts_with(outgrown), "{query}: {said}");
    }
    database.expect(&[(
        &format!("SELECT count(*) FROM lttb(({many} WHERE bucket < '2026-01-01 00:05:00'), 5, by => '')"),
        "5",
    )]);
}

#[test]
fn an_answer_that_nobody_reads_on_ends() {
    let mut database = bounded();
    let sql = "SELECT * FROM resample(t, '1 us', '2026-01-01', '9999-01-01')";
    let mut outcomes = database.session.run(sql, &[]).unwrap();
    let Some(counterfoil_sql::Outcome::Rows(mut rows)) = outcomes.pop() else { panic!("no rows") };
    assert!(rows.next().unwrap().unwrap().num_rows() > 0);
    drop(rows);
    assert_eq!(database.ask("SELECT count(*) FROM t"), "10");
}
