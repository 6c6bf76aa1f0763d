//! `date_bin` over all times that a timestamp says, as PostgreSQL answers it, in the order of the times.

use crate::database::Database;

/// The same rows in a series table, with summaries, and in a relation: some before 1677 and after 2262, where nanoseconds do not reach.
fn ages() -> Database {
    let columns = "(sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, PRIMARY KEY (sensor, ts))";
    let mut database = Database::after(&format!(
        "CREATE TABLE r {columns}; CREATE TABLE s {columns} WITH (engine = 'series', summaries = 'value', future_max = 'none');"
    ));
    let times = [
        "0044-03-15 12:00:00 BC",
        "1492-10-12 02:00:00",
        "1676-12-31 23:59:59",
        "1677-09-21 00:12:43",
        "1969-12-31 23:59:59.999999",
        "1970-01-01 00:00:00",
        "2026-02-28 13:30:00",
        "2262-04-11 23:47:17",
        "2263-01-01 00:30:00",
        "9999-12-31 23:59:59",
    ];
    for sensor in ["a", "b"] {
        let rows = times.iter().enumerate().map(|(at, time)| format!("('{sensor}', '{time}', {at})"));
        let rows = rows.collect::<Vec<_>>().join(", ");
        database.expect(&[
            (&format!("INSERT INTO r VALUES {rows}"), "INSERT 10"),
            (&format!("INSERT INTO s VALUES {rows}"), "INSERT 10"),
        ]);
    }
    database
}

#[test]
fn times_that_nanoseconds_do_not_reach_are_binned_and_ordered_as_all_others() {
    let mut database = ages();
    let days = "0044-03-15 00:00:00 BC|0\n1492-10-12 00:00:00|1\n1676-12-31 00:00:00|2\n1677-09-21 00:00:00|3\n\
                1969-12-31 00:00:00|4\n1970-01-01 00:00:00|5\n2026-02-28 00:00:00|6\n2262-04-11 00:00:00|7\n\
                2263-01-01 00:00:00|8\n9999-12-31 00:00:00|9";
    for table in ["r", "s"] {
        for day in [
            "date_bin('1 day', ts)",
            "date_bin(INTERVAL '1 day', ts, '2001-01-01')",
            "date_bin('1 day', ts, TIMESTAMP '0001-01-01')",
        ] {
            let query = format!("SELECT {day} AS day, value FROM {table} WHERE sensor = 'a' ORDER BY day");
            database.expect(&[(&query, days)]);
        }
    }
}

#[test]
fn groups_of_them_are_the_same_from_summaries_from_points_and_from_a_relation() {
    let mut database = ages();
    for width in ["1 hour", "1 day", "7 days", "1 month", "1 year", "400 years"] {
        for origin in ["", ", TIMESTAMP '2000-01-31 06:00:00'"] {
            let bin = format!("date_bin('{width}', ts{origin})");
            for query in [
                format!("SELECT {bin} AS bin, count(*), sum(value), min(ts) FROM t GROUP BY bin ORDER BY bin"),
                format!("SELECT sensor, {bin} AS bin, max(value) FROM t GROUP BY 1, 2 ORDER BY 1, 2 DESC"),
                format!(
                    "SELECT {bin} AS bin, count(*) FROM t WHERE ts > TIMESTAMP '1600-01-01' GROUP BY bin ORDER BY bin LIMIT 3"
                ),
            ] {
                let of = |table: &str| query.replace("FROM t", &format!("FROM {table}"));
                let plan = database.ask(&format!("EXPLAIN {}", of("s")));
                assert!(plan.contains("SeriesSummaries: s"), "{query}\n{plan}");
                let wanted = database.ask(&of("r"));
                assert!(!wanted.contains("NULL") && !wanted.contains("error"), "{query}: {wanted}");
                assert_eq!(database.ask(&of("s")), wanted, "{query}");
                database.expect(&[
                    ("SET enable_summaries = off", "SET"),
                    (&of("s"), &wanted),
                    ("SET enable_summaries = on", "SET"),
                ]);
            }
        }
    }
}

/// The first three are examples in the documentation of PostgreSQL; DuckDB (`time_bucket`) answers the second so, too.
#[test]
fn it_answers_as_others_do() {
    let mut database = Database::new();
    for (call, expected) in [
        ("date_bin('15 minutes', TIMESTAMP '2020-02-11 15:44:17', TIMESTAMP '2001-01-01')", "2020-02-11 15:30:00"),
        (
            "date_bin('15 minutes', TIMESTAMP '2020-02-11 15:44:17', TIMESTAMP '2001-01-01 00:02:30')",
            "2020-02-11 15:32:30",
        ),
        ("date_bin('5 min', TIMESTAMP '2020-02-01 01:01:01', TIMESTAMP '2020-02-01 00:02:30')", "2020-02-01 00:57:30"),
        (
            "date_bin('30 minutes', TIMESTAMP '2024-02-01 15:00:00', TIMESTAMP '2024-02-01 17:00:00')",
            "2024-02-01 15:00:00",
        ),
        ("date_bin('1 hour', TIMESTAMPTZ '2263-02-01 15:44:00+01')", "2263-02-01 14:00:00+00"),
        ("date_bin('1 hour', DATE '1066-10-14')", "1066-10-14 00:00:00"),
        ("date_bin('1 microsecond', TIMESTAMP(9) '2026-01-01 00:00:00.123456789')", "2026-01-01 00:00:00.123456"),
        ("date_bin('1 month', TIMESTAMP '1669-12-31 12:00:00')", "1669-12-01 00:00:00"),
        ("date_bin('3 months', TIMESTAMP '2026-05-31')", "2026-04-01 00:00:00"),
        ("date_bin('15 minutes', TIME '10:44:00')", "10:30:00"),
        ("date_bin(NULL, TIMESTAMP '2026-05-31')", "NULL"),
        ("date_bin('1 day', NULL)", "NULL"),
        ("date_bin('0 days', TIMESTAMP '2026-05-31')", "error: date_bin: must be longer than nothing"),
        ("date_bin('-2 days', TIMESTAMP '2026-05-31')", "error: date_bin: must be longer than nothing"),
        (
            "date_bin('1 month 1 day', TIMESTAMP '2026-05-31')",
            "error: date_bin: whole months, or days and less, and more than nothing",
        ),
        ("date_bin('1 day', 7)", "error: function date_bin does not take these arguments"),
    ] {
        database.expect(&[(&format!("SELECT {call}"), expected)]);
    }
}
