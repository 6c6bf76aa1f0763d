//! Rows come back as they went in: through batches, through a table, in whatever order and size.

use counterfoil_relation::{ColumnId, Layout, NewColumn, NewTable, RowBatch, RowBuilder, RowId, Type, Value, ValueRef};
use proptest::prelude::*;
use std::sync::Arc;

use crate::bench::Bench;

const TYPES: [Type; 19] = [
    Type::Boolean,
    Type::SmallInt,
    Type::Integer,
    Type::BigInt,
    Type::Real,
    Type::Double,
    Type::Numeric { precision: 38, scale: 4 },
    Type::Text,
    Type::VarChar(100_000),
    Type::Char(100_000),
    Type::Char(5),
    Type::Char(20),
    Type::Bytea,
    Type::Date,
    Type::Time,
    Type::Timestamp { nanoseconds: false },
    Type::Timestamp { nanoseconds: true },
    Type::TimestampTz,
    Type::Uuid,
];

fn some_value(kind: Type) -> BoxedStrategy<Value> {
    let text = prop_oneof![".{0,6}", ".{10,14}", ".{100,200}"];
    match kind {
        Type::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        Type::SmallInt => any::<i16>().prop_map(Value::SmallInt).boxed(),
        Type::Integer => any::<i32>().prop_map(Value::Integer).boxed(),
        Type::BigInt => any::<i64>().prop_map(Value::BigInt).boxed(),
        Type::Real => any::<f32>().prop_map(Value::Real).boxed(),
        Type::Double => any::<f64>().prop_map(Value::Double).boxed(),
        Type::Numeric { .. } => (-(10_i128.pow(38) - 1)..10_i128.pow(38)).prop_map(Value::Numeric).boxed(),
        Type::Char(5) => ".{0,5}".prop_map(Value::Text).boxed(),
        // Letters of several bytes do not fit in the width.
        Type::Char(20) => prop_oneof!["[a-z]{0,20}", ".{0,20}"].prop_map(Value::Text).boxed(),
        Type::Text | Type::VarChar(_) | Type::Char(_) => text.prop_map(Value::Text).boxed(),
        Type::Bytea => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytea).boxed(),
        Type::Date => any::<i32>().prop_map(Value::Date).boxed(),
        Type::Time => any::<i64>().prop_map(Value::Time).boxed(),
        Type::Timestamp { .. } => any::<i64>().prop_map(Value::Timestamp).boxed(),
        Type::TimestampTz => any::<i64>().prop_map(Value::TimestampTz).boxed(),
        Type::Uuid => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
    }
}

fn row() -> impl Strategy<Value = Vec<Value>> {
    TYPES.map(|kind| prop_oneof![1 => Just(Value::Null), 4 => some_value(kind)].boxed()).to_vec()
}

/// Whether two values have the same bytes (NaN equals itself here).
fn same(one: &[Value], two: &[Value]) -> bool {
    one.iter().zip(two).all(|(one, two)| match (one, two) {
        (Value::Real(one), Value::Real(two)) => one.to_bits() == two.to_bits(),
        (Value::Double(one), Value::Double(two)) => one.to_bits() == two.to_bits(),
        (one, two) => one == two,
    })
}

fn borrowed(row: &[Value]) -> Vec<ValueRef<'_>> {
    row.iter().map(Value::borrow).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_batch_holds_what_was_put_in(rows in proptest::collection::vec(row(), 0..20), again in row()) {
        let layout = Arc::new(Layout::new(TYPES.iter().enumerate().map(|(id, kind)| (ColumnId(id as u32), *kind))));
        let mut builder = RowBuilder::new(layout.clone());
        for row in &rows {
            builder.push(&borrowed(row)).unwrap();
        }
        let mut batch = builder.finish();
        prop_assert_eq!(batch.bytes().len(), rows.len() * layout.width());
        for (place, row) in rows.iter().enumerate() {
            prop_assert!(same(&batch.row(place).unwrap(), row));
        }
        let mut copy = RowBatch::new(layout, 0);
        for place in (0..rows.len()).rev() {
            copy.push_from(&batch, place).unwrap();
            prop_assert!(same(&copy.row(copy.count() - 1).unwrap(), &rows[place]));
        }
        for place in 0..rows.len() {
            for (column, value) in again.iter().enumerate() {
                batch.set(place, column, value.borrow()).unwrap();
            }
            prop_assert!(same(&batch.row(place).unwrap(), &again));
        }
    }

    #[test]
    fn a_table_holds_what_was_put_in(rows in proptest::collection::vec(row(), 1..20), changed in row(), rows_max in 1..30_usize) {
        let mut bench = Bench::new(1);
        let columns = TYPES.iter().enumerate().map(|(place, kind)| NewColumn::new(format!("c{place}"), *kind)).collect();
        let table = bench.create(&NewTable { name: "t".into(), columns, ..NewTable::default() });
        bench.insert("t", &rows).unwrap();
        bench.insert("t", &rows).unwrap();
        let last = RowId(2 * rows.len() as u64 - 1);
        bench.update("t", &[last], std::slice::from_ref(&changed)).unwrap();
        bench.reopen();
        let view = bench.writer.snapshot();
        let mut scan = bench.relations.scan(view, &table).unwrap();
        let mut read = Vec::new();
        while let Some(block) = scan.next(rows_max).unwrap() {
            prop_assert!(block.count() <= rows_max);
            read.extend((0..block.count()).map(|row| block.rows.row(row).unwrap()));
        }
        let mut expected = [rows.clone(), rows].concat();
        *expected.last_mut().unwrap() = changed;
        prop_assert_eq!(read.len(), expected.len());
        prop_assert!(read.iter().zip(&expected).all(|(one, two)| same(one, two)));
        bench.verify();
    }
}

#[test]
fn the_image_of_the_specification() {
    let kinds = [Type::Integer, Type::Text, Type::Boolean, Type::Text, Type::BigInt];
    let layout = Arc::new(Layout::new(kinds.iter().enumerate().map(|(id, kind)| (ColumnId(id as u32), *kind))));
    let mut batch = RowBatch::new(layout, 1);
    batch.set(0, 0, ValueRef::Integer(-2)).unwrap();
    batch.set(0, 1, ValueRef::Text("short")).unwrap();
    batch.set(0, 3, ValueRef::Text("thirteen long")).unwrap();
    batch.set(0, 4, ValueRef::BigInt(258)).unwrap();
    let mut expected = vec![0b100];
    expected.extend_from_slice(&[0xFE, 0xFF, 0xFF, 0xFF]);
    expected.extend_from_slice(&[5, 0, 0, 0, b's', b'h', b'o', b'r', b't', 0, 0, 0, 0, 0, 0, 0]);
    expected.push(0);
    expected.extend_from_slice(&[13, 0, 0, 0, b't', b'h', b'i', b'r', 0, 0, 0, 0, 0, 0, 0, 0]);
    expected.extend_from_slice(&[2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(batch.bytes(), expected);
    assert_eq!(batch.heap(), b"thirteen long");
    assert_eq!(batch.width(), 46);
}

#[test]
fn a_char_has_its_width_in_the_image() {
    let layout = Arc::new(Layout::new([(ColumnId(0), Type::Char(13))]));
    let mut batch = RowBatch::new(layout, 1);
    batch.set(0, 0, ValueRef::Text("thirteen long")).unwrap();
    assert_eq!(batch.bytes(), [&[0, 13, 0, 0, 0], b"thirteen long".as_slice()].concat());
    assert_eq!((batch.heap(), batch.width()), (b"".as_slice(), 18));
    // Letters of two bytes: the heap has them, and nothing of the text before is left in the image.
    batch.set(0, 0, ValueRef::Text("dreizehn \u{e4}\u{f6}\u{fc}\u{df}")).unwrap();
    let expected = [[0, 17, 0, 0, 0].as_slice(), b"drei", &[0; 9]].concat();
    assert_eq!((batch.bytes(), batch.heap().len()), (expected.as_slice(), 17));
    assert!(batch.value(0, 0).unwrap() == ValueRef::Text("dreizehn \u{e4}\u{f6}\u{fc}\u{df}"));
    batch.set(0, 0, ValueRef::Text("")).unwrap();
    assert_eq!(batch.bytes(), [0; 18]);
    assert_eq!(Layout::new([(ColumnId(0), Type::Char(127))]).width(), 132);
    assert_eq!(Layout::new([(ColumnId(0), Type::Char(128)), (ColumnId(1), Type::Char(1))]).width(), 33);
}

#[test]
fn a_table_without_columns_has_rows() {
    let mut bench = Bench::new(2);
    bench.create(&NewTable { name: "t".into(), ..NewTable::default() });
    bench.insert("t", &[vec![], vec![], vec![]]).unwrap();
    bench.delete("t", &[RowId(1)]).unwrap();
    assert_eq!(bench.rows("t").len(), 2);
    bench.verify();
}

#[test]
fn only_the_long_values_asked_for_are_read() {
    let mut bench = Bench::new(3);
    let columns = vec![NewColumn::new("a", Type::Text), NewColumn::new("b", Type::Text)];
    let table = bench.create(&NewTable { name: "t".into(), columns, ..NewTable::default() });
    let long = |letter: &str| Value::Text(letter.repeat(50));
    bench.insert("t", &[vec![long("a"), long("b")], vec![Value::Text("a".into()), long("b")]]).unwrap();
    let view = bench.writer.snapshot();
    let block = bench.relations.scan(view, &table).unwrap().with_columns(&[0]).next(10).unwrap().unwrap();
    assert!(block.rows.value(0, 0).unwrap() == long("a").borrow());
    assert!(block.rows.value(1, 0).unwrap() == ValueRef::Text("a"));
    assert!(block.rows.value(0, 1).is_err());
}
