//! Foreign keys and their actions.

use counterfoil_relation::{
    Action, Cause, Error, NewColumn, NewForeignKey, NewKey, NewTable, RowBatch, RowId, Rule, Statement, Table, Type,
    Value,
};

use crate::bench::{Bench, batch, int, rule, text};

fn key(columns: &[&str]) -> Option<NewKey> {
    Some(NewKey { name: None, columns: columns.iter().map(|column| (*column).into()).collect() })
}

fn parent() -> NewTable {
    NewTable {
        name: "parent".into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("name", Type::Text)],
        primary_key: key(&["id"]),
        ..NewTable::default()
    }
}

/// A child whose column `parent` references the parent; its default is 0.
fn child(name: &str, on_delete: Action, on_update: Action) -> NewTable {
    let reference = NewForeignKey {
        columns: vec!["parent".into()],
        parent: "parent".into(),
        on_delete,
        on_update,
        ..NewForeignKey::default()
    };
    let column = NewColumn {
        default: Some("0".into()),
        default_value: Some(Value::BigInt(0)),
        ..NewColumn::new("parent", Type::BigInt)
    };
    NewTable {
        name: name.into(),
        columns: vec![NewColumn::new("id", Type::Integer), column],
        primary_key: key(&["id"]),
        foreign_keys: vec![reference],
        ..NewTable::default()
    }
}

fn big(value: i64) -> Value {
    Value::BigInt(value)
}

/// Parents 0 to 3, children 10, 11 of 1 and 20 of 2, and 30 of nobody.
fn family(on_delete: Action, on_update: Action, fresh_rows: usize) -> Bench {
    let mut bench = Bench::with_fresh_rows(1, fresh_rows);
    bench.create(&parent());
    bench.create(&child("child", on_delete, on_update));
    let parents: Vec<_> = (0..4).map(|id| vec![int(id), text("p")]).collect();
    bench.insert("parent", &parents).unwrap();
    let children = [(10, big(1)), (11, big(1)), (20, big(2)), (30, Value::Null)];
    bench.insert("child", &children.map(|(id, parent)| vec![int(id), parent])).unwrap();
    bench
}

fn references(bench: &mut Bench) -> Vec<(i32, Option<i64>)> {
    let rows = bench.values("child").into_iter().map(|row| match (&row[0], &row[1]) {
        (Value::Integer(id), Value::BigInt(parent)) => (*id, Some(*parent)),
        (Value::Integer(id), Value::Null) => (*id, None),
        _ => unreachable!(),
    });
    rows.collect()
}

const UNTOUCHED: [(i32, Option<i64>); 4] = [(10, Some(1)), (11, Some(1)), (20, Some(2)), (30, None)];

#[test]
fn a_reference_needs_its_row() {
    for fresh_rows in [1, 100] {
        let mut bench = family(Action::NoAction, Action::NoAction, fresh_rows);
        assert_eq!(rule(bench.insert("child", &[vec![int(40), big(7)]])), Rule::Reference);
        assert_eq!(rule(bench.update("child", &[RowId(2)], &[vec![int(20), big(7)]])), Rule::Reference);
        bench.update("child", &[RowId(2)], &[vec![int(20), big(3)]]).unwrap();
        bench.insert("child", &[vec![int(40), Value::Null]]).unwrap();
        bench.delete("parent", &[RowId(2)]).unwrap();
        bench.verify();
    }
}

#[test]
fn no_action_and_restrict_refuse() {
    for (action, fresh_rows) in
        [(Action::NoAction, 1), (Action::NoAction, 100), (Action::Restrict, 1), (Action::Restrict, 100)]
    {
        let mut bench = family(action, action, fresh_rows);
        assert_eq!(rule(bench.delete("parent", &[RowId(1)])), Rule::Referenced);
        assert_eq!(rule(bench.update("parent", &[RowId(2)], &[vec![int(9), text("p")]])), Rule::Referenced);
        bench.update("parent", &[RowId(2)], &[vec![int(2), text("q")]]).unwrap();
        bench.update("parent", &[RowId(3)], &[vec![int(9), text("p")]]).unwrap();
        bench.delete("parent", &[RowId(3)]).unwrap();
        bench.delete("child", &[RowId(0), RowId(1)]).unwrap();
        bench.delete("parent", &[RowId(1)]).unwrap();
        assert_eq!(references(&mut bench), [(20, Some(2)), (30, None)]);
        bench.verify();
    }
}

#[test]
fn no_action_looks_at_the_end_of_the_statement_and_restrict_does_not() {
    let swapped = [vec![int(2), text("was 1")], vec![int(1), text("was 2")]];
    let mut bench = family(Action::NoAction, Action::NoAction, 100);
    bench.update("parent", &[RowId(1), RowId(2)], &swapped).unwrap();
    assert_eq!(references(&mut bench), UNTOUCHED);
    bench.verify();
    let mut bench = family(Action::Restrict, Action::Restrict, 100);
    assert_eq!(rule(bench.update("parent", &[RowId(1), RowId(2)], &swapped)), Rule::Referenced);
}

#[test]
fn cascade_follows() {
    for fresh_rows in [1, 100] {
        let mut bench = family(Action::Cascade, Action::Cascade, fresh_rows);
        let swapped = [vec![int(2), text("was 1")], vec![int(1), text("was 2")]];
        bench.update("parent", &[RowId(1), RowId(2)], &swapped).unwrap();
        assert_eq!(references(&mut bench), [(10, Some(2)), (11, Some(2)), (20, Some(1)), (30, None)]);
        bench.delete("parent", &[RowId(1)]).unwrap();
        assert_eq!(references(&mut bench), [(20, Some(1)), (30, None)]);
        bench.verify();
    }
}

#[test]
fn set_null_and_set_default() {
    let mut bench = family(Action::SetNull, Action::SetNull, 100);
    bench.delete("parent", &[RowId(1)]).unwrap();
    bench.update("parent", &[RowId(2)], &[vec![int(9), text("p")]]).unwrap();
    assert_eq!(references(&mut bench), [(10, None), (11, None), (20, None), (30, None)]);
    bench.verify();
    let mut bench = family(Action::SetDefault, Action::SetDefault, 100);
    bench.delete("parent", &[RowId(1)]).unwrap();
    assert_eq!(references(&mut bench), [(10, Some(0)), (11, Some(0)), (20, Some(2)), (30, None)]);
    assert_eq!(rule(bench.delete("parent", &[RowId(0)])), Rule::Referenced, "the default must exist, too");
    bench.verify();
}

#[test]
fn a_refused_statement_leaves_everything_as_it_was() {
    let mut bench = family(Action::Cascade, Action::Cascade, 100);
    bench.create(&NewTable {
        foreign_keys: vec![NewForeignKey {
            columns: vec!["parent".into()],
            parent: "child".into(),
            ..NewForeignKey::default()
        }],
        ..child("grandchild", Action::NoAction, Action::NoAction)
    });
    bench.insert("grandchild", &[vec![int(1), big(11)]]).unwrap();
    assert_eq!(rule(bench.delete("parent", &[RowId(1)])), Rule::Referenced);
    assert_eq!(references(&mut bench), UNTOUCHED);
    assert_eq!(bench.rows("parent").len(), 4);
    bench.verify();
    bench.delete("grandchild", &[RowId(0)]).unwrap();
    bench.delete("parent", &[RowId(1)]).unwrap();
    assert_eq!(references(&mut bench), [(20, Some(2)), (30, None)]);
    bench.reopen();
    bench.verify();
}

/// A list: each row references the one before it.
fn list(on_delete: Action) -> NewTable {
    NewTable {
        name: "list".into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("before", Type::Integer)],
        primary_key: key(&["id"]),
        foreign_keys: vec![NewForeignKey {
            columns: vec!["before".into()],
            parent: "list".into(),
            on_delete,
            on_update: Action::Cascade,
            ..NewForeignKey::default()
        }],
        ..NewTable::default()
    }
}

fn links(count: i32) -> Vec<Vec<Value>> {
    (0..count).map(|id| vec![int(id), if id == 0 { Value::Null } else { int(id - 1) }]).collect()
}

#[test]
fn a_long_chain_cascades_without_recursion() {
    let mut bench = Bench::new(2);
    bench.create(&list(Action::Cascade));
    bench.insert("list", &links(3000)).unwrap();
    bench.delete("list", &[RowId(1)]).unwrap();
    assert_eq!(bench.values("list").len(), 1);
    bench.verify();
}

#[test]
fn rows_may_reference_rows_of_the_same_statement() {
    let mut bench = Bench::new(3);
    let table = bench.create(&list(Action::NoAction));
    let mut rows = links(10);
    rows.reverse();
    bench.insert("list", &rows).unwrap();
    assert_eq!(rule(bench.insert("list", &[vec![int(50), int(51)]])), Rule::Reference);

    // In several batches, the reference first.
    let (first, second) = (batch(&table, &[vec![int(50), int(51)]]), batch(&table, &[vec![int(51), int(9)]]));
    let insert = |bench: &mut Bench, batches: &[&RowBatch]| {
        bench.statement(|relations, writer| {
            let mut statement = Statement::new();
            for batch in batches {
                relations.insert_in(&mut statement, writer, &table, batch)?;
            }
            relations.finish(statement, writer)
        })
    };
    assert_eq!(rule(insert(&mut bench, &[&first])), Rule::Reference);
    insert(&mut bench, &[&first, &second]).unwrap();
    // All at once they may go, and all at once they may be renumbered.
    let all: Vec<_> = bench.rows("list");
    let ids: Vec<_> = all.iter().map(|(id, _)| *id).collect();
    let up = |value: &Value| match value {
        Value::Integer(value) => int(value + 1),
        other => other.clone(),
    };
    let renumbered: Vec<_> = all.iter().map(|(_, row)| row.iter().map(up).collect()).collect();
    bench.update("list", &ids, &renumbered).unwrap();
    bench.verify();
    bench.delete("list", &ids).unwrap();
    assert!(bench.rows("list").is_empty());
}

#[test]
fn a_row_may_reference_itself() {
    let mut bench = Bench::new(4);
    bench.create(&list(Action::NoAction));
    bench.insert("list", &[vec![int(1), int(1)]]).unwrap();
    bench.update("list", &[RowId(0)], &[vec![int(5), int(1)]]).unwrap();
    assert!(bench.values("list") == [vec![int(5), int(5)]]);
    bench.delete("list", &[RowId(0)]).unwrap();
    bench.verify();
}

#[test]
fn composite_keys_pair_columns_whatever_their_order() {
    let mut bench = Bench::new(5);
    bench.create(&NewTable {
        name: "parent".into(),
        columns: vec![NewColumn::new("a", Type::Integer), NewColumn::new("b", Type::Text)],
        primary_key: key(&["b", "a"]),
        ..NewTable::default()
    });
    bench.create(&NewTable {
        name: "child".into(),
        columns: vec![NewColumn::new("x", Type::Integer), NewColumn::new("y", Type::VarChar(5))],
        foreign_keys: vec![NewForeignKey {
            columns: vec!["x".into(), "y".into()],
            parent: "parent".into(),
            parent_columns: vec!["a".into(), "b".into()],
            on_update: Action::Cascade,
            on_delete: Action::SetNull,
            ..NewForeignKey::default()
        }],
        ..NewTable::default()
    });
    bench.insert("parent", &[vec![int(1), text("one")], vec![int(2), text("two")]]).unwrap();
    bench.insert("child", &[vec![int(1), text("one")], vec![int(7), Value::Null]]).unwrap();
    assert_eq!(rule(bench.insert("child", &[vec![int(1), text("two")]])), Rule::Reference);
    bench.update("parent", &[RowId(0)], &[vec![int(1), text("uno")]]).unwrap();
    assert!(bench.values("child")[0] == [int(1), text("uno")]);
    // Too long for the child: refused, and nothing changes.
    assert_eq!(rule(bench.update("parent", &[RowId(0)], &[vec![int(1), text("eleven")]])), Rule::Length(5));
    bench.delete("parent", &[RowId(0)]).unwrap();
    assert!(bench.values("child") == [[Value::Null, Value::Null], [int(7), Value::Null]]);
    bench.verify();
}

#[test]
fn two_paths_to_one_row_do_not_undo_each_other() {
    let mut bench = Bench::new(6);
    bench.create(&parent());
    let reference = |column: &str, on_delete| NewForeignKey {
        columns: vec![column.into()],
        parent: "parent".into(),
        on_delete,
        ..NewForeignKey::default()
    };
    bench.create(&NewTable {
        name: "child".into(),
        columns: vec![NewColumn::new("a", Type::Integer), NewColumn::new("b", Type::Integer)],
        foreign_keys: vec![reference("a", Action::SetNull), reference("b", Action::SetNull)],
        ..NewTable::default()
    });
    bench.insert("parent", &[vec![int(1), text("")], vec![int(2), text("")]]).unwrap();
    bench.insert("child", &[vec![int(1), int(1)], vec![int(1), int(2)]]).unwrap();
    bench.delete("parent", &[RowId(0)]).unwrap();
    assert!(bench.values("child") == [[Value::Null, Value::Null], [Value::Null, int(2)]]);
    bench.verify();
}

#[test]
fn an_observer_sees_cascading_changes_and_can_refuse_them() {
    let mut bench = family(Action::SetNull, Action::Cascade, 100);
    let table = bench.table("parent");
    let mut seen = Vec::new();
    let mut observer = |table: &Table, rows: &RowBatch| {
        seen.push((table.name.clone(), rows.count()));
        Err(Error::not_supported("this".into()))
    };
    let result = bench.statement(|relations, writer| {
        let mut statement = Statement::observed(&mut observer);
        relations.delete_in(&mut statement, writer, &table, &[RowId(1)])
    });
    assert_eq!(result, Err(Error::not_supported("this".into())));
    assert_eq!(seen, [("child".into(), 2)]);
    assert_eq!(references(&mut bench), UNTOUCHED);
}

#[test]
fn not_enforced_is_recorded_and_nothing_else() {
    let mut bench = Bench::new(7);
    bench.create(&parent());
    let mut new = child("child", Action::NoAction, Action::NoAction);
    new.foreign_keys[0].not_enforced = true;
    let table = bench.create(&new);
    assert!(!table.foreign_keys[0].enforced);
    bench.insert("child", &[vec![int(1), big(77)]]).unwrap();
    bench.insert("parent", &[vec![int(1), text("")]]).unwrap();
    bench.delete("parent", &[RowId(0)]).unwrap();
    bench.verify();
}

#[test]
fn definitions_that_make_no_sense_are_refused() {
    let mut bench = Bench::new(8);
    bench.create(&parent());
    let refused = |bench: &mut Bench, change: &dyn Fn(&mut NewForeignKey)| {
        let mut new = child("child", Action::NoAction, Action::NoAction);
        change(&mut new.foreign_keys[0]);
        bench.statement(|relations, writer| relations.create_table(writer, &new).map(drop)).unwrap_err()
    };
    let is_sql = |error: Error| assert!(matches!(error.cause(), Cause::Sql(_)), "{error:?}");
    is_sql(refused(&mut bench, &|key| key.parent = "nobody".into()));
    is_sql(refused(&mut bench, &|key| key.columns = vec!["nothing".into()]));
    is_sql(refused(&mut bench, &|key| key.columns = vec!["id".into(), "parent".into()]));
    let unlike = refused(&mut bench, &|key| key.parent_columns = vec!["name".into()]);
    assert!(matches!(unlike.cause(), Cause::NotSupported(_)), "{unlike:?}");
    bench.create(&child("child", Action::NoAction, Action::NoAction));
    let parent = bench.table("parent");
    let drop_it = |bench: &mut Bench, cascade| {
        bench.statement(|relations, writer| relations.drop_table(writer, &parent, cascade))
    };
    is_sql(drop_it(&mut bench, false).unwrap_err());
    is_sql(bench.statement(|relations, writer| relations.truncate(writer, &parent, false)).unwrap_err());
    is_sql(bench.statement(|relations, writer| relations.drop_column(writer, &parent, "id", false)).unwrap_err());
    drop_it(&mut bench, true).unwrap();
    assert!(bench.table("child").foreign_keys.is_empty());
    bench.insert("child", &[vec![int(1), big(77)]]).unwrap();
    bench.verify();
}

/// Three tables in a row, the last also referencing itself, with whatever actions the dice choose.
fn random_family(bench: &mut Bench) {
    const ACTIONS: [Action; 5] =
        [Action::NoAction, Action::Restrict, Action::Cascade, Action::SetNull, Action::SetDefault];
    for (name, parents) in [("a", vec![]), ("b", vec!["a"]), ("c", vec!["b", "c"])] {
        let mut columns = vec![NewColumn::new("id", Type::Integer)];
        let mut foreign_keys = Vec::new();
        for parent in parents {
            let default = Some(Value::Integer(0));
            columns.push(NewColumn {
                default: Some("0".into()),
                default_value: default,
                ..NewColumn::new(parent, Type::Integer)
            });
            foreign_keys.push(NewForeignKey {
                columns: vec![parent.into()],
                parent: parent.into(),
                on_delete: ACTIONS[bench.dice(5) as usize],
                on_update: ACTIONS[bench.dice(5) as usize],
                ..NewForeignKey::default()
            });
        }
        bench.create(&NewTable {
            name: name.into(),
            columns,
            primary_key: key(&["id"]),
            foreign_keys,
            ..NewTable::default()
        });
    }
}

fn random_statement(bench: &mut Bench) -> Result<u64, Error> {
    let table = ["a", "b", "c"][bench.dice(3) as usize];
    let width = bench.table(table).columns.len() as u64;
    let small = |bench: &mut Bench| match bench.dice(12) {
        0 => Value::Null,
        number => int(number as i32 - 1),
    };
    let row = |bench: &mut Bench| {
        let mut row: Vec<_> = (0..width).map(|_| small(bench)).collect();
        row[0] = int(bench.dice(11) as i32);
        row
    };
    let there = bench.rows(table);
    let one_in = [1, 2, 6][bench.dice(3) as usize];
    let some: Vec<_> = there.into_iter().map(|(id, _)| id).filter(|_| bench.dice(one_in) == 0).collect();
    match bench.dice(4) {
        0 | 1 => {
            let rows: Vec<_> = (0..1 + bench.dice(3)).map(|_| row(bench)).collect();
            bench.insert(table, &rows).map(|_| 0)
        }
        2 => {
            let rows: Vec<_> = some.iter().map(|_| row(bench)).collect();
            bench.update(table, &some, &rows)
        }
        _ => bench.delete(table, &some),
    }
}

#[test]
fn whatever_is_done_no_reference_dangles_and_what_is_refused_changes_nothing() {
    for seed in 0..crate::bench::rounds(25, 1000) {
        let mut bench = Bench::with_fresh_rows(seed, 1 + seed as usize % 9);
        random_family(&mut bench);
        let (mut done, mut refused) = (0, 0);
        for _ in 0..120 {
            let before = ["a", "b", "c"].map(|table| bench.rows(table));
            match random_statement(&mut bench).map_err(Error::into_cause) {
                Ok(_) => done += 1,
                Err(Cause::Constraint(_)) => {
                    refused += 1;
                    assert!(["a", "b", "c"].map(|table| bench.rows(table)) == before);
                }
                Err(error) => panic!("{error:?}"),
            }
            bench.verify();
        }
        assert!(done > 10 && refused > 3, "{done} done, {refused} refused");
    }
}
