//! Defining tables, indexes and views, and changing them.

use counterfoil_relation::{
    Action, Cause, ColumnChange, Error, Identity, IndexOrigin, KeyRange, Named, NewCheck, NewColumn, NewConstraint,
    NewForeignKey, NewIndex, NewKey, NewTable, Retype, RowId, Rule, StoredView, Type, Value,
};

use crate::bench::{Bench, batch, int, rows_of, rule, text};

fn simple(name: &str) -> NewTable {
    NewTable {
        name: name.into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("name", Type::Text)],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        checks: vec![NewCheck { name: None, sql: "name <> ''".into(), columns: vec!["name".into()] }],
        ..NewTable::default()
    }
}

fn is_sql<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result.as_ref().map_err(Error::cause), Err(Cause::Sql(_))), "{result:?}");
}

#[test]
fn names_are_unique_among_tables_views_and_indexes() {
    let mut bench = Bench::new(1);
    bench.create(&simple("t"));
    is_sql(bench.statement(|relations, writer| relations.create_table(writer, &simple("t"))));
    is_sql(bench.statement(|relations, writer| relations.create_table(writer, &simple("t_pkey"))));
    let view = StoredView { name: "t".into(), sql: "SELECT 1".into(), columns: vec![] };
    is_sql(bench.statement(|relations, writer| relations.create_view(writer, &view, true)));
    let view = StoredView { name: "v".into(), ..view };
    bench.statement(|relations, writer| relations.create_view(writer, &view, false)).unwrap();
    is_sql(bench.statement(|relations, writer| relations.create_view(writer, &view, false)));
    let other = StoredView { sql: "SELECT 2".into(), ..view };
    bench.statement(|relations, writer| relations.create_view(writer, &other, true)).unwrap();
    assert_eq!(bench.relations.views(&bench.writer).unwrap(), [other]);
    assert!(matches!(bench.relations.named(&bench.writer, "v").unwrap(), Some(Named::View(_))));
    assert!(matches!(bench.relations.named(&bench.writer, "t_pkey").unwrap(), Some(Named::Index(..))));
    assert!(bench.relations.named(&bench.writer, "nothing").unwrap().is_none());
    is_sql(bench.statement(|relations, writer| relations.drop_index(writer, "t_pkey")));
    is_sql(bench.statement(|relations, writer| relations.drop_view(writer, "t")));
    bench.statement(|relations, writer| relations.drop_view(writer, "v")).unwrap();
    is_sql(bench.statement(|relations, writer| relations.drop_view(writer, "v")));
    is_sql(bench.statement(|relations, writer| relations.create_table(writer, &simple(""))));
    is_sql(bench.statement(|relations, writer| relations.create_table(writer, &simple(&"n".repeat(201)))));
    let long = bench.create(&simple(&"ä".repeat(100)));
    assert!(long.primary_key.as_ref().unwrap().name.len() <= 200);
}

#[test]
fn tables_that_make_no_sense_are_refused() {
    let mut bench = Bench::new(2);
    let mut refused = |change: fn(&mut NewTable)| {
        let mut new = simple("t");
        change(&mut new);
        is_sql(bench.statement(|relations, writer| relations.create_table(writer, &new)));
    };
    refused(|new| new.columns.push(NewColumn::new("id", Type::Text)));
    refused(|new| new.primary_key.as_mut().unwrap().columns.clear());
    refused(|new| new.primary_key.as_mut().unwrap().columns.push("id".into()));
    refused(|new| new.uniques.push(NewKey { name: None, columns: vec!["nothing".into()] }));
    refused(|new| new.uniques.push(NewKey { name: Some("t_pkey".into()), columns: vec!["name".into()] }));
    refused(|new| new.columns[0].kind = Type::Numeric { precision: 39, scale: 0 });
    refused(|new| new.columns[0].kind = Type::Numeric { precision: 3, scale: 4 });
    refused(|new| new.columns[1].kind = Type::VarChar(0));
    refused(|new| new.columns.extend((0..1600).map(|place| NewColumn::new(format!("c{place}"), Type::Text))));
    assert!(bench.relations.tables(&bench.writer).unwrap().is_empty());
}

#[test]
fn columns_come_and_go() {
    let mut bench = Bench::new(3);
    bench.create(&simple("t"));
    bench.insert("t", &[vec![int(1), text("one")], vec![int(2), text("two")]]).unwrap();
    let before = (bench.writer.snapshot(), bench.table("t"));
    let add = |bench: &mut Bench, column: NewColumn, value: Value| {
        let t = bench.table("t");
        bench.statement(|relations, writer| relations.add_column(writer, &t, &column, &value))
    };
    let long = text("a default too long to lie in the image");
    add(&mut bench, NewColumn::new("note", Type::Text).not_null(), long.clone()).unwrap();
    assert_eq!(rule(add(&mut bench, NewColumn::new("x", Type::Text).not_null(), Value::Null)), Rule::NotNull);
    assert_eq!(rule(add(&mut bench, NewColumn::new("x", Type::VarChar(2)), text("abc"))), Rule::Length(2));
    is_sql(add(&mut bench, NewColumn::new("name", Type::Text), Value::Null));
    bench.insert("t", &[vec![int(3), text("three"), text("own")]]).unwrap();
    bench.update("t", &[RowId(0)], &[vec![int(1), text("uno"), text("changed")]]).unwrap();
    add(&mut bench, NewColumn::new("n", Type::Integer), int(7)).unwrap();
    bench.update("t", &[RowId(2)], &[vec![int(3), text("tre"), text("own"), int(8)]]).unwrap();
    let expected = [
        vec![int(1), text("uno"), text("changed"), int(7)],
        vec![int(2), text("two"), long.clone(), int(7)],
        vec![int(3), text("tre"), text("own"), int(8)],
    ];
    assert!(bench.values("t") == expected);
    bench.verify();
    let t = bench.table("t");
    bench.statement(|relations, writer| relations.drop_column(writer, &t, "note", false)).unwrap();
    assert!(bench.values("t").iter().all(|row| row.len() == 3));
    bench.reopen();
    let t = bench.table("t");
    bench.statement(|relations, writer| relations.vacuum(writer, Some(&t))).unwrap();
    let without: Vec<_> = expected.iter().map(|row| [row[0].clone(), row[1].clone(), row[3].clone()]).collect();
    assert!(bench.values("t") == without);
    bench.verify();
    // A snapshot from before all that, in this process and without its memory.
    let own = counterfoil_relation::Relations::new();
    for relations in [&bench.relations, &own] {
        let rows = rows_of(relations, before.0.clone(), &before.1);
        assert!(rows == [(RowId(0), vec![int(1), text("one")]), (RowId(1), vec![int(2), text("two")])]);
    }
}

#[test]
fn what_is_said_of_a_column() {
    let mut bench = Bench::new(4);
    bench.create(&NewTable {
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("name", Type::VarChar(3))],
        ..simple("t")
    });
    bench.insert("t", &[vec![int(1), text("one")], vec![int(2), Value::Null]]).unwrap();
    let before = (bench.writer.snapshot(), bench.table("t"));
    let alter = |bench: &mut Bench, column: &str, change: ColumnChange| {
        let t = bench.table("t");
        bench.statement(|relations, writer| relations.alter_column(writer, &t, column, &change))
    };
    assert_eq!(rule(alter(&mut bench, "name", ColumnChange::NotNull)), Rule::NotNull);
    bench.delete("t", &[RowId(1)]).unwrap();
    alter(&mut bench, "name", ColumnChange::NotNull).unwrap();
    assert_eq!(rule(bench.insert("t", &[vec![int(3), Value::Null]])), Rule::NotNull);
    is_sql(alter(&mut bench, "id", ColumnChange::Nullable));
    is_sql(alter(&mut bench, "nothing", ColumnChange::Nullable));
    alter(&mut bench, "name", ColumnChange::Nullable).unwrap();
    bench.insert("t", &[vec![int(3), Value::Null]]).unwrap();
    let default = ColumnChange::Default { sql: "'x'".into(), value: Some(text("x")) };
    let t = alter(&mut bench, "name", default).unwrap();
    assert_eq!((t.columns[1].default.as_deref(), t.columns[1].default_value.as_ref()), (Some("'x'"), Some(&text("x"))));
    let t = alter(&mut bench, "name", ColumnChange::NoDefault).unwrap();
    assert_eq!((&t.columns[1].default, &t.columns[1].default_value), (&None, &None));
    // A longer text, beside images of the shorter one.
    assert_eq!(rule(bench.insert("t", &[vec![int(4), text("four")]])), Rule::Length(3));
    alter(&mut bench, "name", ColumnChange::Kind { kind: Type::Text, default_value: None }).unwrap();
    let long = text("longer than what lies in an image");
    bench.insert("t", &[vec![int(4), long.clone()]]).unwrap();
    let misuse = alter(&mut bench, "name", ColumnChange::Kind { kind: Type::Char(9), default_value: None });
    assert!(matches!(misuse.unwrap_err().cause(), Cause::Misuse(_)));
    bench.reopen();
    assert!(bench.values("t") == [vec![int(1), text("one")], vec![int(3), Value::Null], vec![int(4), long]]);
    bench.verify();
    let rows = rows_of(&bench.relations, before.0, &before.1);
    assert!(rows == [(RowId(0), vec![int(1), text("one")]), (RowId(1), vec![int(2), Value::Null])]);
}

/// Gives a column another type, and each row what `to` makes of its value.
fn retype(
    bench: &mut Bench,
    table: &str,
    column: &str,
    kind: Type,
    to: (bool, fn(&Value) -> Value),
) -> Result<(), Error> {
    let (keeps_values, to) = to;
    let retype = Retype { column, kind, default_value: None, keeps_values, aside: "aside" };
    let t = bench.table(table);
    let (place, rows) = (t.column(column).unwrap().0, bench.rows(table));
    bench.statement(|relations, writer| {
        let t = relations.begin_retype(writer, &t, &retype)?;
        let image = |row: &Vec<Value>| {
            let mut row = row.clone();
            row.insert(place, to(&row[place]));
            row
        };
        let (ids, images): (Vec<RowId>, Vec<_>) = rows.iter().map(|(id, row)| (*id, image(row))).unzip();
        relations.update(writer, &t, &ids, &batch(&t, &images))?;
        relations.end_retype(writer, &t, &retype).map(drop)
    })
}

#[test]
fn a_column_gets_another_type() {
    let mut bench = Bench::new(4);
    let index = NewKey { name: None, columns: vec!["name".into()] };
    let mut new = NewTable { uniques: vec![index], ..simple("t") };
    new.columns[0].identity = Some(Identity { always: true, start: 1, increment: 1 });
    bench.create(&new);
    let reference = NewForeignKey {
        name: None,
        columns: vec!["t".into()],
        parent: "t".into(),
        parent_columns: vec![],
        on_delete: Action::NoAction,
        on_update: Action::NoAction,
        not_enforced: false,
    };
    let child = NewTable {
        name: "c".into(),
        columns: vec![NewColumn::new("t", Type::Integer)],
        foreign_keys: vec![reference],
        ..NewTable::default()
    };
    bench.create(&child);
    bench.insert("t", &[vec![int(1), text("1")], vec![int(2), text("02")], vec![int(3), Value::Null]]).unwrap();
    bench.insert("c", &[vec![int(2)], vec![int(3)]]).unwrap();
    let before = (bench.writer.snapshot(), bench.table("t"));
    // Whole numbers have the same keys whatever their width, so that what references them goes on.
    let wide = |value: &Value| match value {
        Value::Integer(number) => Value::BigInt((*number).into()),
        _ => Value::Null,
    };
    retype(&mut bench, "t", "id", Type::BigInt, (true, wide)).unwrap();
    retype(&mut bench, "c", "t", Type::BigInt, (true, wide)).unwrap();
    bench.verify();
    let big = Value::BigInt;
    assert_eq!(rule(bench.insert("t", &[vec![big(2), Value::Null]])), Rule::Unique);
    assert_eq!(rule(bench.insert("c", &[vec![big(4)]])), Rule::Reference);
    assert_eq!(rule(bench.delete("t", &[RowId(1)])), Rule::Referenced);
    let t = bench.table("t");
    let next = bench.statement(|relations, writer| relations.next_identity(writer, &t, t.columns[0].id, 1));
    assert_eq!(next.unwrap(), 4);
    // Others may not: what references them would be left behind.
    let refused = retype(&mut bench, "t", "id", Type::Text, (true, |_| text("x")));
    assert!(matches!(refused.unwrap_err().cause(), Cause::NotSupported(_)));
    let refused = retype(&mut bench, "c", "t", Type::Text, (true, |_| text("x")));
    assert!(matches!(refused.unwrap_err().cause(), Cause::NotSupported(_)));
    // Indexes follow the values, and so do rules.
    let number = |value: &Value| match value {
        Value::Text(text) => int(text.parse().unwrap()),
        _ => Value::Null,
    };
    retype(&mut bench, "t", "name", Type::Integer, (false, number)).unwrap();
    assert_eq!(rule(bench.insert("t", &[vec![big(4), int(2)]])), Rule::Unique);
    bench.insert("t", &[vec![big(4), int(7)]]).unwrap();
    assert_eq!(rule(retype(&mut bench, "t", "name", Type::BigInt, (false, |_| Value::BigInt(1)))), Rule::Unique);
    let t = bench.table("t");
    assert_eq!((t.uniques[0].columns[0], t.checks[0].columns[0]), (t.columns[1].id, t.columns[1].id));
    for _ in 0..2 {
        let rows = [[big(1), int(1)], [big(2), int(2)], [big(3), Value::Null], [big(4), int(7)]];
        assert!(bench.values("t") == rows && bench.values("c") == [[big(2)], [big(3)]]);
        bench.verify();
        let t = bench.table("t");
        bench.statement(|relations, writer| relations.vacuum(writer, Some(&t))).unwrap();
        bench.reopen();
    }
    let rows: Vec<_> = rows_of(&bench.relations, before.0, &before.1).into_iter().map(|(_, row)| row).collect();
    assert!(rows == [[int(1), text("1")], [int(2), text("02")], [int(3), Value::Null]]);
}

#[test]
fn what_depends_on_a_column_goes_with_it() {
    let mut bench = Bench::new(4);
    bench.create(&simple("t"));
    let t = bench.table("t");
    let index = NewIndex { name: None, columns: vec!["name".into(), "id".into()], unique: false };
    let t = bench.statement(|relations, writer| relations.create_index(writer, &t, &index)).unwrap();
    assert_eq!(t.indexes[1].name, "t_name_id_idx");
    let t = bench.statement(|relations, writer| relations.drop_column(writer, &t, "name", false)).unwrap();
    assert!(t.checks.is_empty() && t.indexes.len() == 1);
    assert!(bench.relations.named(&bench.writer, "t_name_id_idx").unwrap().is_none());
    bench.insert("t", &[vec![int(1)]]).unwrap();
    assert_eq!(rule(bench.insert("t", &[vec![int(1)]])), Rule::Unique);
    let t = bench.statement(|relations, writer| relations.drop_column(writer, &t, "id", false)).unwrap();
    assert!(t.primary_key.is_none() && t.columns.is_empty());
    bench.insert("t", &[vec![]]).unwrap();
    assert_eq!(bench.values("t").len(), 2);
    bench.verify();
}

#[test]
fn renaming() {
    let mut bench = Bench::new(5);
    let t = bench.create(&simple("t"));
    bench.create(&simple("other"));
    bench.insert("t", &[vec![int(1), text("one")]]).unwrap();
    let rename =
        |bench: &mut Bench, name: &str| bench.statement(|relations, writer| relations.rename_table(writer, &t, name));
    is_sql(rename(&mut bench, "other"));
    rename(&mut bench, "u").unwrap();
    assert!(bench.relations.table(&bench.writer, "t").unwrap().is_none());
    assert_eq!(bench.values("u").len(), 1);
    let mut rewrite = |sql: &str| sql.replace("name", "title");
    let u = bench
        .statement(|relations, writer| relations.rename_column(writer, &t, "name", "title", &mut rewrite))
        .unwrap();
    assert_eq!((u.columns[1].name.as_str(), u.checks[0].sql.as_str()), ("title", "title <> ''"));
    is_sql(bench.statement(|relations, writer| relations.rename_column(writer, &t, "title", "id", &mut rewrite)));
    is_sql(bench.statement(|relations, writer| relations.rename_column(writer, &t, "name", "x", &mut rewrite)));
    rename(&mut bench, "t").unwrap();
    bench.create(&NewTable { primary_key: None, ..simple("u") });
}

#[test]
fn indexes_are_built_over_rows_that_are_there() {
    for (rows, fresh_rows) in [(10, 1000), (500, 16), (3000, 16)] {
        let mut bench = Bench::with_fresh_rows(6, fresh_rows);
        bench.create(&simple("t"));
        let all: Vec<_> = (0..rows).map(|id| vec![int(id), text(&format!("name {}", id % 7))]).collect();
        bench.insert("t", &all).unwrap();
        let t = bench.table("t");
        let by_name = |unique| NewIndex { name: Some("by_name".into()), columns: vec!["name".into()], unique };
        let refused = bench.statement(|relations, writer| relations.create_index(writer, &t, &by_name(true)));
        assert_eq!(rule(refused), Rule::Unique);
        assert_eq!(bench.table("t").indexes.len(), 1);
        let t = bench.statement(|relations, writer| relations.create_index(writer, &t, &by_name(false))).unwrap();
        let index = t.indexes[1].id;
        let found = |bench: &Bench, name: &str, rows_max| {
            let range = KeyRange::equal(vec![text(name)]);
            bench.relations.lookup(&bench.writer, &t, index, &range, rows_max).unwrap()
        };
        assert_eq!(found(&bench, "name 3", 5000).unwrap().len(), (0..rows).filter(|id| id % 7 == 3).count());
        assert_eq!(found(&bench, "name 3", 0), None);
        assert_eq!(found(&bench, "name 9", 0).unwrap(), []);
        bench.verify();
        bench.reopen();
        bench.verify();
        assert_eq!(t.indexes[1].origin, IndexOrigin::Created);
        bench.statement(|relations, writer| relations.drop_index(writer, "by_name")).unwrap();
        assert!(bench.relations.lookup(&bench.writer, &t, index, &KeyRange::equal(vec![]), 1).is_err());
        bench.verify();
    }
}

#[test]
fn what_is_dropped_leaves_nothing() {
    let mut bench = Bench::with_fresh_rows(7, 8);
    let containers = bench.writer.snapshot().containers().len();
    bench.create(&simple("t"));
    let all: Vec<_> = (0..100).map(|id| vec![int(id), text("a text too long for the image")]).collect();
    bench.insert("t", &all).unwrap();
    let t = bench.table("t");
    bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
    bench.statement(|relations, writer| relations.truncate(writer, &t, false)).unwrap();
    assert_eq!(bench.writer.snapshot().containers().len(), containers);
    assert_eq!(bench.insert("t", &all), Ok(RowId(100)));
    bench.verify();
    bench.statement(|relations, writer| relations.drop_table(writer, &t, false)).unwrap();
    assert_eq!(bench.writer.snapshot().containers().len(), containers);
    assert!(bench.relations.tables(&bench.writer).unwrap().is_empty());
    is_sql(bench.relations.count(&bench.writer, &t));
    let again = bench.create(&simple("t"));
    assert_ne!(again.id, t.id);
}

#[test]
fn vacuum_keeps_row_numbers_and_forgets_the_dead() {
    let mut bench = Bench::with_fresh_rows(8, 64);
    bench.create(&simple("t"));
    let all: Vec<_> = (0..9000).map(|id| vec![int(id), text("a text too long for the image")]).collect();
    bench.insert("t", &all).unwrap();
    let gone: Vec<_> = (0..9000).filter(|id| id % 3 != 1).map(RowId).collect();
    bench.delete("t", &gone).unwrap();
    let before = bench.rows("t");
    bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
    assert!(bench.rows("t") == before);
    bench.verify();
    bench.reopen();
    assert!(bench.rows("t") == before);
    bench.verify();
    assert_eq!(bench.insert("t", &[vec![int(0), text("again")]]), Ok(RowId(9000)));
    bench.delete("t", &[RowId(1), RowId(2)]).unwrap();
    assert_eq!(bench.rows("t").len(), before.len());
    bench.verify();
}

#[test]
fn a_table_that_is_mostly_dead_is_rewritten_by_maintenance() {
    let mut bench = Bench::with_fresh_rows(9, 16);
    bench.create(&simple("t"));
    bench.insert("t", &[vec![int(1), text("a counter")]]).unwrap();
    let bytes = |bench: &mut Bench| bench.writer.snapshot().containers().len();
    for round in 0..300 {
        bench.update("t", &[RowId(0)], &[vec![int(round), text("a counter")]]).unwrap();
        bench.statement(|relations, writer| relations.maintain(writer)).unwrap();
    }
    assert!(bytes(&mut bench) < 12, "{}", bytes(&mut bench));
    assert!(bench.values("t") == [[int(299), text("a counter")]]);
    bench.verify();
}

#[test]
fn constraints_come_to_tables_that_are_there() {
    // With few rows, which no index file holds, and with many.
    for (seed, rows) in [(40, 3), (41, 3000)] {
        let mut bench = Bench::with_fresh_rows(seed, 100);
        let columns = vec![NewColumn::new("id", Type::Integer), NewColumn::new("name", Type::Text)];
        bench.create(&NewTable { name: "t".into(), columns, ..NewTable::default() });
        let row = |id: i32| vec![int(id), text(&format!("n{}", id / 2))];
        bench.insert("t", &(0..rows).map(row).collect::<Vec<_>>()).unwrap();
        bench.insert("t", &[vec![Value::Null, text("none")]]).unwrap();
        let before = bench.table("t");
        let key = |name: &str| NewKey { name: None, columns: vec![name.into()] };
        let add = |bench: &mut Bench, constraint: NewConstraint| {
            let t = bench.table("t");
            bench.statement(|relations, writer| relations.add_constraint(writer, &t, &constraint))
        };
        assert_eq!(rule(add(&mut bench, NewConstraint::PrimaryKey(key("id")))), Rule::NotNull);
        assert_eq!(rule(add(&mut bench, NewConstraint::Unique(key("name")))), Rule::Unique);
        is_sql(add(&mut bench, NewConstraint::Unique(key("nothing"))));
        bench.reopen();
        assert!(*bench.table("t") == *before, "what was refused left nothing");
        let none = bench.rows("t").last().unwrap().0;
        bench.delete("t", &[none]).unwrap();
        add(&mut bench, NewConstraint::PrimaryKey(key("id"))).unwrap();
        is_sql(add(&mut bench, NewConstraint::PrimaryKey(key("id"))));
        bench.reopen();
        assert_eq!(rule(bench.insert("t", &[row(rows - 1)])), Rule::Unique);
        assert_eq!(rule(bench.insert("t", &[vec![Value::Null, text("x")]])), Rule::NotNull);
        bench.insert("t", &[row(rows)]).unwrap();
        let parent = NewForeignKey { columns: vec!["id".into()], parent: "t".into(), ..NewForeignKey::default() };
        add(&mut bench, NewConstraint::ForeignKey(parent)).unwrap();
        bench.verify();
        bench.reopen();
        assert_eq!(bench.rows("t").len() as i32, rows + 1);
        bench.verify();
    }
}
