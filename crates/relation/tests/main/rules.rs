//! NOT NULL, bounds, keys, identity columns, and what a statement may and may not do.

use counterfoil_relation::{Cause, Error, Identity, NewColumn, NewKey, NewTable, RowId, Rule, Type, Value};

use crate::bench::{Bench, batch, int, rule, text};

fn table(columns: Vec<NewColumn>, primary_key: &[&str], uniques: &[&[&str]]) -> NewTable {
    let key = |columns: &[&str]| NewKey { name: None, columns: columns.iter().map(|c| (*c).into()).collect() };
    NewTable {
        name: "t".into(),
        columns,
        primary_key: (!primary_key.is_empty()).then(|| key(primary_key)),
        uniques: uniques.iter().map(|columns| key(columns)).collect(),
        ..NewTable::default()
    }
}

#[test]
fn a_primary_key_is_not_null_and_unique() {
    let mut bench = Bench::new(1);
    let columns = vec![NewColumn::new("id", Type::Integer), NewColumn::new("x", Type::Text)];
    bench.create(&table(columns, &["id"], &[]));
    assert_eq!(rule(bench.insert("t", &[vec![Value::Null, text("")]])), Rule::NotNull);
    assert_eq!(rule(bench.insert("t", &[vec![int(1), text("")], vec![int(1), text("")]])), Rule::Unique);
    bench.insert("t", &[vec![int(1), text("")]]).unwrap();
    assert_eq!(rule(bench.insert("t", &[vec![int(1), text("")]])), Rule::Unique);
    let error = bench.insert("t", &[vec![int(1), text("secret")]]).unwrap_err();
    let Cause::Constraint(violation) = error.into_cause() else { panic!() };
    assert_eq!((violation.constraint.as_str(), violation.table.as_str()), ("t_pkey", "t"));
    assert_eq!(violation.columns, ["id"]);
    bench.delete("t", &[RowId(0)]).unwrap();
    bench.insert("t", &[vec![int(1), text("")]]).unwrap();
    bench.verify();
}

#[test]
fn nulls_are_distinct_in_unique_keys() {
    let mut bench = Bench::new(2);
    let columns = vec![NewColumn::new("a", Type::Integer), NewColumn::new("b", Type::Integer)];
    bench.create(&table(columns, &[], &[&["a", "b"]]));
    bench.insert("t", &[vec![int(1), Value::Null], vec![int(1), Value::Null], vec![int(1), int(2)]]).unwrap();
    bench.insert("t", &[vec![Value::Null, Value::Null]]).unwrap();
    assert_eq!(rule(bench.insert("t", &[vec![int(1), int(2)]])), Rule::Unique);
    assert_eq!(rule(bench.update("t", &[RowId(0)], &[vec![int(1), int(2)]])), Rule::Unique);
    bench.verify();
}

#[test]
fn all_keys_may_move_at_once() {
    for fresh_rows in [1, 4, 1000] {
        let mut bench = Bench::with_fresh_rows(3, fresh_rows);
        bench.create(&table(vec![NewColumn::new("id", Type::Integer)], &["id"], &[]));
        let rows = |shift: i32| (0..50).map(|id| vec![int(id + shift)]).collect::<Vec<_>>();
        bench.insert("t", &rows(0)).unwrap();
        let ids: Vec<_> = (0..50).map(RowId).collect();
        bench.update("t", &ids, &rows(1)).unwrap();
        assert!(bench.values("t") == rows(1));
        bench.update("t", &ids, &rows(0)).unwrap();
        assert_eq!(rule(bench.update("t", &ids[..49], &rows(1)[..49])), Rule::Unique);
        assert!(bench.values("t") == rows(0));
        bench.verify();
    }
}

#[test]
fn types_have_bounds() {
    let mut bench = Bench::new(4);
    let columns = vec![
        NewColumn::new("v", Type::VarChar(3)),
        NewColumn::new("c", Type::Char(14)),
        NewColumn::new("n", Type::Numeric { precision: 4, scale: 2 }),
    ];
    bench.create(&table(columns, &[], &[]));
    let row = |v: &str, c: &str, n: i128| vec![vec![text(v), text(c), Value::Numeric(n)]];
    bench.insert("t", &row("äöü", "fourteen bytes", 9999)).unwrap();
    bench.insert("t", &row("", "ääääääääääääää", -9999)).unwrap();
    assert_eq!(rule(bench.insert("t", &row("abcd", "", 0))), Rule::Length(3));
    assert_eq!(rule(bench.insert("t", &row("", "fifteen letters", 0))), Rule::Length(14));
    assert_eq!(rule(bench.insert("t", &row("", "", 10_000))), Rule::Range(4, 2));
    assert_eq!(rule(bench.insert("t", &row("", "", i128::MIN))), Rule::Range(4, 2));
    assert_eq!(rule(bench.update("t", &[RowId(0)], &row("abcd", "", 0))), Rule::Length(3));
    bench.verify();
}

#[test]
fn identities_go_one_way() {
    let mut bench = Bench::new(5);
    let identity = |start, increment| Some(Identity { always: false, start, increment });
    let columns = vec![
        NewColumn { identity: identity(1, 1), ..NewColumn::new("up", Type::SmallInt) },
        NewColumn { identity: identity(-1, -3), ..NewColumn::new("down", Type::BigInt) },
    ];
    let table = bench.create(&table(columns, &[], &[]));
    let (up, down) = (table.columns[0].id, table.columns[1].id);
    let next = |bench: &mut Bench, column, count| {
        bench.statement(|relations, writer| relations.next_identity(writer, &table, column, count))
    };
    assert_eq!(next(&mut bench, up, 3), Ok(1));
    assert_eq!(next(&mut bench, up, 1), Ok(4));
    assert_eq!(next(&mut bench, down, 2), Ok(-1));
    assert_eq!(next(&mut bench, down, 1), Ok(-7));
    bench
        .insert("t", &[vec![Value::SmallInt(100), Value::BigInt(-20)], vec![Value::SmallInt(7), Value::BigInt(50)]])
        .unwrap();
    bench.reopen();
    assert_eq!(next(&mut bench, up, 1), Ok(101));
    assert_eq!(next(&mut bench, down, 1), Ok(-22));
    bench.statement(|relations, writer| relations.truncate(writer, &table, false)).unwrap();
    assert_eq!(next(&mut bench, up, 1), Ok(102));
    assert_eq!(rule(next(&mut bench, up, 40_000)), Rule::Identity);
    bench.insert("t", &[vec![Value::SmallInt(i16::MAX), Value::BigInt(i64::MIN)]]).unwrap();
    assert_eq!(rule(next(&mut bench, up, 1)), Rule::Identity);
    assert_eq!(rule(next(&mut bench, down, 1)), Rule::Identity);
    bench.statement(|relations, writer| relations.truncate(writer, &table, true)).unwrap();
    assert_eq!(next(&mut bench, up, 1), Ok(1));
    assert!(matches!(rule(bench.insert("t", &[vec![Value::Null, Value::BigInt(1)]])), Rule::NotNull));
}

#[test]
fn misuse_is_told() {
    let mut bench = Bench::new(6);
    let columns = vec![NewColumn::new("id", Type::Integer)];
    let t = bench.create(&table(columns, &["id"], &[]));
    bench.insert("t", &[vec![int(1)], vec![int(2)]]).unwrap();
    let is_misuse = |error: Error| assert!(matches!(error.cause(), Cause::Misuse(_)), "{error:?}");
    is_misuse(bench.update("t", &[RowId(0)], &[]).unwrap_err());
    is_misuse(bench.update("t", &[RowId(0), RowId(0)], &[vec![int(3)], vec![int(4)]]).unwrap_err());
    is_misuse(bench.update("t", &[RowId(9)], &[vec![int(3)]]).unwrap_err());
    let old = batch(&t, &[vec![int(5)]]);
    bench
        .statement(|relations, writer| relations.add_column(writer, &t, &NewColumn::new("x", Type::Text), &Value::Null))
        .unwrap();
    is_misuse(bench.statement(|relations, writer| relations.insert(writer, &t, &old)).unwrap_err());
    assert!(bench.values("t") == [[int(1), Value::Null], [int(2), Value::Null]]);
}

#[test]
fn rows_of_a_batch_that_repeat_a_key_are_found() {
    let mut bench = Bench::new(7);
    let t = bench.create(&table(vec![NewColumn::new("a", Type::Integer)], &[], &[&["a"]]));
    bench.insert("t", &[vec![int(1)], vec![Value::Null]]).unwrap();
    let rows = batch(&t, &[3, 1, 3, 2, 1, 3].map(|a| vec![int(a)]));
    let index = t.uniques[0].index;
    let repeats = bench.relations.repeats(&t, index, &rows).unwrap();
    assert_eq!(repeats, [None, None, Some(0), None, Some(1), Some(0)]);
    let conflicts = bench.relations.conflicts(&bench.writer, &t, index, &rows).unwrap();
    assert_eq!(conflicts, [None, Some(RowId(0)), None, None, Some(RowId(0)), None]);
    let nulls = batch(&t, &[vec![Value::Null], vec![Value::Null]]);
    assert_eq!(bench.relations.repeats(&t, index, &nulls).unwrap(), [None, None]);
    assert_eq!(bench.relations.conflicts(&bench.writer, &t, index, &nulls).unwrap(), [None, None]);
}
