//! Arrow batches into series tables: as columns and row by row they become the same table.

use std::sync::Arc;

use counterfoil_sql::Result;
use counterfoil_sql::arrow::array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringArray, Time64MicrosecondArray, TimestampNanosecondArray,
};
use counterfoil_sql::arrow::buffer::{NullBuffer, ScalarBuffer};
use counterfoil_sql::arrow::datatypes::{Field, Int8Type, Schema};
use proptest::prelude::*;

use crate::database::Database;

const COLUMNS: &str =
    "a TEXT, b INTEGER, c BOOLEAN, d DATE, flag BOOLEAN, small SMALLINT, big BIGINT, day DATE, moment TIME,
    seen TIMESTAMPTZ, exact TIMESTAMP(9), single REAL, number DOUBLE PRECISION, note TEXT, raw BYTEA, ts TIMESTAMP,
    PRIMARY KEY (a, b, c, d, ts)";

/// `plain` takes columns as they are; a CHECK has the rows of `checked` looked at one by one.
fn database(options: &str) -> Database {
    let mut database = Database::new();
    database.ask(&format!("CREATE TABLE plain ({COLUMNS}) WITH (engine = 'series'{options})"));
    database.ask(&format!("CREATE TABLE checked ({COLUMNS}, CHECK (b < 1000000)) WITH (engine = 'series'{options})"));
    database
}

/// Rows that follow from seeds: keys that repeat, values at the ends of their types, and something behind each NULL.
fn batch(seeds: &[u32]) -> RecordBatch {
    let at = |row: usize, bits: u32| (u64::from(seeds[row]).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> bits) as i64;
    let rows = 0..seeds.len();
    let nulls = |bits: u32| NullBuffer::from(rows.clone().map(|row| at(row, bits) % 5 != 0).collect::<Vec<_>>());
    let whole = |bits: u32| rows.clone().map(|row| at(row, bits)).collect::<Vec<i64>>();
    let text = |row: usize, bits: u32| {
        ["", "pump", "a name that does not fit beside its length", "x"][at(row, bits) as usize & 3]
    };
    let double = |row: usize, bits: u32| match at(row, bits) % 7 {
        0 => f64::NAN,
        1 => -0.0,
        2 => f64::NEG_INFINITY,
        other => other as f64 * 1.25,
    };
    let names: DictionaryArray<Int8Type> = rows.clone().map(|row| Some(text(row, 3))).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", Arc::new(names)),
        ("b", Arc::new(Int32Array::from_iter_values(rows.clone().map(|row| at(row, 7) as i32 & 1)))),
        ("c", Arc::new(BooleanArray::from(rows.clone().map(|row| at(row, 9) & 3 == 0).collect::<Vec<_>>()))),
        ("d", Arc::new(Date32Array::from_iter_values(rows.clone().map(|row| (at(row, 11) as i32 & 1) - 1)))),
        ("flag", Arc::new(BooleanArray::new(rows.clone().map(|row| at(row, 13) & 1 == 1).collect(), Some(nulls(14))))),
        ("small", Arc::new(Int16Array::new(whole(15).iter().map(|value| *value as i16).collect(), Some(nulls(16))))),
        ("big", Arc::new(Int64Array::new(ScalarBuffer::from(whole(0)), Some(nulls(17))))),
        (
            "day",
            Arc::new(Date32Array::new(whole(18).iter().map(|value| *value as i32 >> 12).collect(), Some(nulls(19)))),
        ),
        (
            "moment",
            Arc::new(Time64MicrosecondArray::new(
                whole(20).iter().map(|value| *value % 86_400_000_000).collect(),
                Some(nulls(21)),
            )),
        ),
        (
            "seen",
            Arc::new(TimestampNanosecondArray::new(whole(6).into(), Some(nulls(22))).with_timezone("Europe/Oslo")),
        ),
        ("exact", Arc::new(TimestampNanosecondArray::new(whole(5).into(), Some(nulls(23))))),
        (
            "single",
            Arc::new(Float32Array::new(rows.clone().map(|row| double(row, 24) as f32).collect(), Some(nulls(25)))),
        ),
        ("number", Arc::new(Float64Array::new(rows.clone().map(|row| double(row, 26)).collect(), Some(nulls(27))))),
        (
            "note",
            Arc::new(rows.clone().map(|row| (at(row, 28) & 3 != 0).then(|| text(row, 30))).collect::<StringArray>()),
        ),
        (
            "raw",
            Arc::new(BinaryViewArray::from_iter(
                rows.clone().map(|row| (at(row, 31) & 3 != 0).then(|| text(row, 33).as_bytes())),
            )),
        ),
        (
            "ts",
            Arc::new(TimestampNanosecondArray::from_iter_values(rows.clone().map(|row| at(row, 35) % 40_000 - 9_999))),
        ),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn load(database: &mut Database, table: &str, batch: &RecordBatch) -> Result<u64> {
    let columns: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    database.session.load(table, &columns, &mut std::iter::once(Ok(batch.clone())))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn columns_and_rows_become_the_same_table(
        batches in prop::collection::vec(prop::collection::vec(any::<u32>(), 1..200), 1..5),
        cut in 0_usize..50,
        left_out in prop::sample::subsequence((4_usize..15).collect::<Vec<_>>(), 0..5),
        thins in any::<bool>(),
    ) {
        let door = if thins { ", swinging_door = 'number 0.5, single 0'" } else { "" };
        let mut database = database(&format!(", future_max = '1 h'{door}"));
        for seeds in &batches {
            let all = batch(seeds);
            let kept: Vec<usize> = (0..16).filter(|place| !left_out.contains(place)).collect();
            let part = cut.min(all.num_rows() - 1);
            let given = all.project(&kept).unwrap().slice(part, all.num_rows() - part);
            let rows = given.num_rows() as u64;
            prop_assert_eq!(load(&mut database, "plain", &given), Ok(rows));
            prop_assert_eq!(load(&mut database, "checked", &given), Ok(rows));
        }
        for order in ["a, b, c, d, ts", "ts, a, b, c, d"] {
            let rows = |database: &mut Database, table| database.ask(&format!("SELECT * FROM {table} ORDER BY {order}"));
            prop_assert_eq!(rows(&mut database, "plain"), rows(&mut database, "checked"));
        }
    }
}

#[test]
fn what_breaks_a_rule_is_told_in_the_same_words() {
    let mut database = database("");
    let good = batch(&[1, 2, 3]);
    let with = |place: usize, array: ArrayRef| {
        let mut columns = good.columns().to_vec();
        columns[place] = array;
        let field =
            |(field, array): (&Arc<Field>, &ArrayRef)| Field::new(field.name(), array.data_type().clone(), true);
        let fields: Vec<Field> = good.schema().fields().iter().zip(&columns).map(field).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    };
    let long = "x".repeat(70_000);
    let wrong: [(ArrayRef, usize); 6] = [
        (Arc::new(StringArray::from(vec![Some("a"), None, Some("b")])), 0),
        (Arc::new(StringArray::from(vec!["a", &long, "b"])), 0),
        (Arc::new(TimestampNanosecondArray::from(vec![Some(1), None, Some(2)])), 15),
        (Arc::new(Int64Array::from(vec![1, 40_000, 2])), 5),
        (Arc::new(StringArray::from(vec!["1", "two", "3"])), 6),
        (Arc::new(StringArray::from(vec!["a", &long, "b"])), 13),
    ];
    for (array, place) in wrong {
        let given = with(place, array);
        let plain = load(&mut database, "plain", &given).unwrap_err().to_string().replace("plain", "TABLE");
        let checked = load(&mut database, "checked", &given).unwrap_err().to_string().replace("checked", "TABLE");
        assert_eq!(plain, checked);
        database.expect(&[("SELECT count(*) FROM plain", "0"), ("SELECT count(*) FROM checked", "0")]);
    }
    assert_eq!(load(&mut database, "plain", &good), Ok(3));
}

#[test]
fn insert_select_goes_as_columns_and_answers_the_same() {
    let mut database = Database::new();
    database.expect(&[
        (
            "CREATE TABLE r (s TEXT, ts TIMESTAMP, v DOUBLE PRECISION DEFAULT 7, w INTEGER, PRIMARY KEY (s, ts))
                 WITH (engine = 'series')",
            "CREATE TABLE",
        ),
        (
            "INSERT INTO r (s, ts, w) SELECT 's' || n % 3, to_timestamp(n), n FROM generate_series(1, 20000) AS g(n)",
            "INSERT 20000",
        ),
        (
            "SELECT s, count(*), sum(v), sum(w) FROM r GROUP BY s ORDER BY s",
            "s0|6666|46662|66663333\ns1|6667|46669|66670000\ns2|6667|46669|66676667",
        ),
        (
            "INSERT INTO r (s, ts, v, w) SELECT s, ts, w, NULL FROM r WHERE w <= 3 ORDER BY s RETURNING s, v",
            "s0|3\ns1|1\ns2|2",
        ),
        ("INSERT INTO r SELECT s, ts, v + 1, 5 FROM r WHERE w IS NULL ON CONFLICT DO NOTHING", "INSERT 0"),
        ("INSERT INTO r SELECT s, ts, v + 1, 5 FROM r WHERE w IS NULL", "INSERT 3"),
        ("SELECT s, v, w FROM r WHERE ts <= '1970-01-01 00:00:03' ORDER BY s", "s0|4|5\ns1|2|5\ns2|3|5"),
        ("BEGIN", "BEGIN"),
        ("INSERT INTO r SELECT s, ts + INTERVAL '1 day', v, w FROM r", "INSERT 20000"),
        ("ROLLBACK", "ROLLBACK"),
        ("SELECT count(*) FROM r", "20000"),
    ]);
}
