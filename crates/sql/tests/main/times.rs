//! Times beside what they are compared with: texts, dates and times of other units, in all of their range.

use crate::database::Database;

/// Rows whose times are 1: before what nanoseconds reach, 2: within, 3: behind.
fn ages() -> Database {
    let mut database = Database::after(
        "CREATE TABLE t (row INTEGER PRIMARY KEY, us TIMESTAMP, ns TIMESTAMP(9), tz TIMESTAMPTZ, day DATE);
         CREATE TABLE s (sensor TEXT, us TIMESTAMP, row INTEGER, PRIMARY KEY (sensor, us))
             WITH (engine = 'series', future_max = 'none');
         CREATE TABLE n (sensor TEXT, ns TIMESTAMP(9), row INTEGER, PRIMARY KEY (sensor, ns))
             WITH (engine = 'series', future_max = 'none')",
    );
    for (row, time, ns) in [
        (1, "'1500-01-01'", "'1970-01-01'"),
        (2, "'2020-01-01 12:00'", "'2020-01-01 12:00:00.000000001'"),
        (3, "'9999-12-31'", "'2262-04-11'"),
    ] {
        database.expect(&[
            (&format!("INSERT INTO t VALUES ({row}, {time}, {ns}, {time}, {time})"), "INSERT 1"),
            (&format!("INSERT INTO s VALUES ('a', {time}, {row})"), "INSERT 1"),
            (&format!("INSERT INTO n VALUES ('a', {ns}, {row})"), "INSERT 1"),
        ]);
    }
    database
}

/// Conditions and the rows for which they hold.
fn hold(database: &mut Database, table: &str, conditions: &[(&str, &str)]) {
    for (condition, rows) in conditions {
        let rows = rows.split(' ').filter(|row| !row.is_empty()).collect::<Vec<_>>().join("\n");
        database.expect(&[(&format!("SELECT row FROM {table} WHERE {condition} ORDER BY row"), &rows)]);
    }
}

/// As PostgreSQL says.
#[test]
fn intervals_are_multiplied_and_divided_by_numbers() {
    let mut database =
        Database::after("CREATE TABLE n (i BIGINT, x NUMERIC(4,1)); INSERT INTO n VALUES (36, 1.5), (NULL, NULL)");
    let at = "TIMESTAMP '2024-01-31 00:00:00'";
    for (sql, expected) in [
        (format!("SELECT {at} + i * INTERVAL '1 hour' FROM n"), "2024-02-01 12:00:00\nNULL"),
        (format!("SELECT {at} + INTERVAL '1 day' * x FROM n"), "2024-02-01 12:00:00\nNULL"),
        (format!("SELECT {at} + 2 * INTERVAL '1 month' - INTERVAL '1 day' / 2"), "2024-03-30 12:00:00"),
        // Half a month is 15 days.
        (format!("SELECT {at} + 0.5 * '3 months'::interval"), "2024-03-15 00:00:00"),
        (format!("SELECT {at} + -1 * INTERVAL '90 minutes' * 2"), "2024-01-30 21:00:00"),
        ("SELECT INTERVAL '1 day' / 0".into(), "error: division by zero"),
        ("SELECT INTERVAL '1 month' * 1e10".into(), "error: an interval is out of range"),
    ] {
        assert_eq!(database.ask(&sql), expected, "{sql}");
    }
}

#[test]
fn texts_are_read_as_what_they_are_compared_with() {
    let mut database = ages();
    for table in ["t", "s"] {
        hold(
            &mut database,
            table,
            &[
                ("us > '1600-01-01'", "2 3"),
                ("'1600-01-01' > us", "1"),
                ("us = '1500-01-01'", "1"),
                ("us <> '1500-01-01 00:00:00.000001'", "1 2 3"),
                ("us BETWEEN '1500-01-01' AND '2500-01-01'", "1 2"),
                ("us NOT BETWEEN '1500-01-01' AND '2500-01-01'", "3"),
                ("us + INTERVAL '1 day' BETWEEN '1500-01-02' AND '2500-01-01'", "1 2"),
                ("us IN ('1500-01-01', '9999-12-31')", "1 3"),
                ("us NOT IN ('1500-01-01', '9999-12-31')", "2"),
                ("CASE us WHEN '1500-01-01' THEN true ELSE false END", "1"),
                ("us IS DISTINCT FROM '1500-01-01'", "2 3"),
                ("us IS NOT DISTINCT FROM '1500-01-01'", "1"),
                ("us > TIMESTAMP '1600-01-01'", "2 3"),
                ("us >= '2020-01-01T12:00:00Z' AND us < '9999-12-31 03:00+02:00'", "2 3"),
            ],
        );
    }
    hold(
        &mut database,
        "t",
        &[
            ("tz > '1600-01-01 00:00+02'", "2 3"),
            ("tz = '2020-01-01 14:00+02'", "2"),
            ("day > '1600-01-01'", "2 3"),
            ("day IN ('1500-01-01')", "1"),
        ],
    );
    database.expect(&[(
        "SELECT row FROM t WHERE us > 'nonsense'",
        "error: a text is not a valid value of the type it is compared with",
    )]);
}

#[test]
fn what_nanoseconds_do_not_reach_is_before_or_behind_all_of_them() {
    let mut database = ages();
    for table in ["t", "n"] {
        hold(
            &mut database,
            table,
            &[
                ("ns > '1600-01-01'", "1 2 3"),
                ("ns > TIMESTAMP '1600-01-01'", "1 2 3"),
                ("ns < '1600-01-01'", ""),
                ("ns BETWEEN '0001-01-01' AND '9999-12-31'", "1 2 3"),
                ("ns NOT BETWEEN '0001-01-01' AND '9999-12-31'", ""),
                ("TIMESTAMP '9999-12-31' > ns AND ns > '2020-01-01 12:00:00'", "2 3"),
                ("ns > '2020-01-01 12:00:00.000000001'", "3"),
                ("ns = '2020-01-01 12:00:00.000000001'", "2"),
                ("ns <> '9999-12-31'", "1 2 3"),
            ],
        );
    }
}

#[test]
fn dates_are_compared_with_times_wherever_both_are() {
    let mut database = ages();
    hold(
        &mut database,
        "t",
        &[
            ("day = us", "1 3"),
            ("us > day", "2"),
            ("day < tz", "2"),
            ("us > DATE '1600-01-01'", "2 3"),
            ("ns < DATE '9999-12-31'", "1 2 3"),
        ],
    );
    database.expect(&[("SELECT a.row, b.row FROM t a JOIN s b ON a.day = b.us ORDER BY 1", "1|1\n3|3")]);
}
