//! A series table without SQL: points through cursors, and points read by series and time.

use counterfoil::arrow::array::{Array, AsArray, RecordBatch};
use counterfoil::arrow::datatypes::{Float64Type, Int16Type, TimestampMicrosecondType};
use counterfoil::{Database, Key, Kind, Options, Series, Value};

fn made(options: &str) -> (Database, Series) {
    let key = Key::from_hex(&"0123456789abcdef".repeat(4)).expect("a key");
    let database = Database::create(Options::memory().key(key)).expect("made");
    run(
        &database,
        &format!(
            "CREATE TABLE r (plant INTEGER, sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT,
                 PRIMARY KEY (plant, sensor, ts)) WITH (engine = 'series'{options})"
        ),
    );
    let series = database.series("r").expect("there");
    (database, series)
}

fn run(database: &Database, sql: &str) {
    database.connect().expect("connects").run(sql, &[]).expect(sql);
}

fn name(plant: i64, sensor: &str) -> [Value; 2] {
    [Value::Integer(plant), Value::Text(sensor.into())]
}

/// Time, value and quality of each row.
fn rows(batches: impl Iterator<Item = counterfoil::Result<RecordBatch>>) -> Vec<(i64, Option<f64>, Option<i16>)> {
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.expect("read");
        let times = batch.column(2).as_primitive::<TimestampMicrosecondType>();
        let values = batch.column(3).as_primitive::<Float64Type>();
        let qualities = batch.column(4).as_primitive::<Int16Type>();
        rows.extend((0..batch.num_rows()).map(|row| {
            let value = values.is_valid(row).then(|| values.value(row));
            let quality = qualities.is_valid(row).then(|| qualities.value(row));
            (times.value(row), value, quality)
        }));
    }
    rows
}

fn all(series: &Series, plant: i64, sensor: &str) -> Vec<(i64, Option<f64>, Option<i16>)> {
    rows(series.read(Some(&name(plant, sensor)), i64::MIN..=i64::MAX).expect("read"))
}

#[test]
fn points_go_through_cursors_and_come_back_by_series_and_time() {
    let (database, series) = made("");
    let mut writer = series.writer().expect("writes");
    let boiler = writer.cursor(&name(1, "boiler")).expect("named");
    let pump = writer.cursor(&name(1, "pump")).expect("named");
    assert_eq!(writer.cursor(&name(1, "boiler")).expect("named"), boiler);
    for second in 0..1000 {
        writer.push(boiler, second * 10, &[Value::Double(second as f64), Value::Integer(192)]).expect("pushed");
        writer.push(pump, second * 10 + 1, &[Value::Null, Value::Integer(second % 3)]).expect("pushed");
    }
    assert_eq!(
        (writer.waiting(), series.count().expect("counted")),
        (2000, (0, true)),
        "nothing is there before a commit"
    );
    let written = writer.commit().expect("committed");
    assert_eq!((written.points, written.kept_apart, written.expired, writer.waiting()), (2000, 0, 0, 0));
    assert_eq!(series.count().expect("counted"), (2000, true));

    let found = rows(series.read(Some(&name(1, "boiler")), 100..=130).expect("read"));
    let wanted: Vec<_> = (10..=13).map(|at| (at * 10, Some(at as f64), Some(192))).collect();
    assert_eq!(found, wanted);
    assert_eq!(all(&series, 1, "pump").len(), 1000);
    assert_eq!(all(&series, 2, "pump"), []);
    assert_eq!(rows(series.read(None, 9990..=9991).expect("read")).len(), 2);
    let newest = series.newest(&name(1, "pump")).expect("read").expect("there");
    assert_eq!(rows([Ok(newest)].into_iter()), [(9991, None, Some(0))]);
    assert!(series.newest(&name(3, "pump")).expect("read").is_none());

    // Late ones, and one in the place of another; SQL sees the same.
    writer.push(boiler, 5, &[Value::Integer(7), Value::Null]).expect("pushed");
    writer.push(boiler, 10, &[Value::Double(-0.0), Value::Integer(0)]).expect("pushed");
    assert_eq!(writer.commit().expect("committed").points, 2);
    let found = rows(series.read(Some(&name(1, "boiler")), 0..=10).expect("read"));
    assert_eq!(found, [(0, Some(0.0), Some(192)), (5, Some(7.0), None), (10, Some(0.0), Some(0))]);
    let mut connection = database.connect().expect("connects");
    let sql = "SELECT plant, sensor, ts, value, quality FROM r WHERE sensor = 'boiler' AND value = 0 AND quality = 0";
    assert_eq!(rows(connection.query(sql, &[]).expect("asked")), [(10, Some(0.0), Some(0))]);
    assert_eq!(
        connection.execute("DELETE FROM r WHERE sensor = 'pump' AND ts >= '1970-01-01 00:00:00.005'", &[]),
        Ok(500)
    );
    let newest = series.newest(&name(1, "pump")).expect("read").expect("there");
    assert_eq!(rows([Ok(newest)].into_iter()), [(4991, None, Some(1))]);
}

#[test]
fn what_does_not_fit_is_refused_and_not_among_what_waits() {
    let (database, series) = made("");
    let mut writer = series.writer().expect("writes");
    let pump = writer.cursor(&name(1, "pump")).expect("named");
    let mut other = series.writer().expect("writes");
    let elsewhere = other.cursor(&name(1, "pump")).expect("named");
    let kinds = [
        writer.push(elsewhere, 1, &[Value::Null, Value::Null]).expect_err("another's").kind(),
        writer.push(pump, 1, &[Value::Null]).expect_err("too few").kind(),
        writer.push(pump, 1, &[Value::Null, Value::Integer(40_000)]).expect_err("too large").kind(),
        writer.push(pump, 1, &[Value::Boolean(true), Value::Null]).expect_err("no number").kind(),
        writer.cursor(&[Value::Integer(1)]).expect_err("too few").kind(),
        writer.cursor(&[Value::Integer(1), Value::Null]).expect_err("NULL").kind(),
        writer.cursor(&name(1, &"x".repeat(5000))).expect_err("too long").kind(),
    ];
    use Kind::{Constraint, Misuse, Sql};
    assert_eq!(kinds, [Misuse, Misuse, Constraint, Sql, Misuse, Constraint, Constraint]);
    assert_eq!((writer.waiting(), writer.commit().expect("nothing to do").points), (0, 0));
    run(&database, "CREATE TABLE notes (ts TIMESTAMP PRIMARY KEY, note TEXT) WITH (engine = 'series')");
    let mut notes = database.series("notes").expect("there").writer().expect("writes");
    let only = notes.cursor(&[]).expect("named");
    assert_eq!(notes.push(only, 1, &[Value::Text("x".repeat(5000))]).expect_err("too long").kind(), Constraint);
    notes.push(only, 2, &[Value::Text("x".repeat(1000))]).expect("pushed");
    assert_eq!(notes.commit().expect("committed").points, 1);
    run(&database, "CREATE TABLE plain (a INTEGER)");
    assert_eq!(database.series("plain").expect_err("no series").kind(), Kind::Misuse);
    assert_eq!(database.series("none").expect_err("not there").kind(), Kind::NotFound);
}

#[test]
fn a_table_that_changes_meanwhile_is_noticed_and_what_waits_goes_on_waiting() {
    let (database, series) = made("");
    let mut writer = series.writer().expect("writes");
    let pump = writer.cursor(&name(1, "pump")).expect("named");
    writer.push(pump, 1, &[Value::Double(1.0), Value::Null]).expect("pushed");
    run(&database, "ALTER TABLE r SET (future_max = '2 h')");
    assert_eq!(writer.commit().expect("committed").points, 1, "options are no other table");
    writer.push(pump, 2, &[Value::Double(2.0), Value::Null]).expect("pushed");
    run(&database, "ALTER TABLE r ADD COLUMN note TEXT");
    assert_eq!(writer.commit().expect_err("changed").kind(), Kind::Misuse);
    assert_eq!(writer.waiting(), 1);
    run(&database, "ALTER TABLE r DROP COLUMN note");
    assert_eq!(writer.commit().expect("committed").points, 1);
    run(&database, "TRUNCATE r");
    writer.push(pump, 3, &[Value::Double(3.0), Value::Null]).expect("pushed");
    assert_eq!(writer.commit().expect("committed").points, 1);
    assert_eq!(all(&series, 1, "pump"), [(3, Some(3.0), None)]);
    writer.push(pump, 4, &[Value::Null, Value::Null]).expect("pushed");
    writer.discard();
    assert_eq!(writer.commit().expect("nothing").points, 0);
    run(&database, "DROP TABLE r");
    writer.push(pump, 5, &[Value::Null, Value::Null]).expect("pushed");
    assert_eq!(writer.commit().expect_err("gone").kind(), Kind::Misuse);
}

#[test]
fn rules_of_the_table_hold_for_points_too() {
    let (_database, series) = made(", on_duplicate = 'error'");
    let mut writer = series.writer().expect("writes");
    let pump = writer.cursor(&name(1, "pump")).expect("named");
    writer.push(pump, 1, &[Value::Double(1.0), Value::Null]).expect("pushed");
    assert_eq!(writer.commit().expect("committed").points, 1);
    writer.push(pump, 2, &[Value::Double(2.0), Value::Null]).expect("pushed");
    writer.push(pump, 1, &[Value::Double(3.0), Value::Null]).expect("pushed");
    assert_eq!(writer.commit().expect_err("there already").kind(), Kind::Constraint);
    assert_eq!(all(&series, 1, "pump"), [(1, Some(1.0), None)]);

    let (database, series) = made(", swinging_door = 'value 0.5'");
    let mut writer = series.writer().expect("writes");
    let pump = writer.cursor(&name(1, "pump")).expect("named");
    for second in 0..100 {
        writer.push(pump, second, &[Value::Double(second as f64), Value::Integer(192)]).expect("pushed");
    }
    assert_eq!(writer.commit().expect("committed").points, 100);
    assert_eq!(all(&series, 1, "pump"), [(0, Some(0.0), Some(192)), (99, Some(99.0), Some(192))]);
    run(
        &database,
        "CREATE TABLE c (ts TIMESTAMP PRIMARY KEY, v INTEGER NOT NULL CHECK (v > 0)) WITH (engine = 'series')",
    );
    let mut writer = database.series("c").expect("there").writer().expect("writes");
    let only = writer.cursor(&[]).expect("named");
    for value in [Value::Null, Value::Integer(0)] {
        writer.push(only, 1, &[value]).expect("pushed");
        assert_eq!(writer.commit().expect_err("a rule").kind(), Kind::Constraint);
        writer.discard();
    }
    writer.push(only, 1, &[Value::Integer(1)]).expect("pushed");
    assert_eq!(writer.commit().expect("committed").points, 1);
}

#[test]
fn points_of_the_future_are_told_and_many_are_committed_by_themselves() {
    let (database, series) = made("");
    let mut writer = series.writer().expect("writes");
    let pump = writer.cursor(&name(1, "pump")).expect("named");
    for at in 0..300_000 {
        writer.push(pump, at, &[Value::Double(1.0), Value::Null]).expect("pushed");
    }
    assert_eq!((writer.waiting(), series.count().expect("counted").0), (300_000 - 2 * 131_072, 2 * 131_072));
    writer.push(pump, i64::MAX, &[Value::Null, Value::Null]).expect("pushed");
    let written = writer.commit().expect("committed");
    assert_eq!((written.points, written.kept_apart), (300_001, 1));
    let mut connection = database.connect().expect("connects");
    let count =
        connection.query("SELECT count(*) FROM future.r", &[]).expect("asked").next().expect("a row").expect("read");
    assert_eq!(count.column(0).as_primitive::<counterfoil::arrow::datatypes::Int64Type>().value(0), 1);
}
