//! What rows join, against loops over all rows.

use std::collections::BTreeMap;

use counterfoil_relation::{
    Action, Cause, Error, NewColumn, NewConstraint, NewForeignKey, NewKey, NewTable, RowId, Step, Table, TableId, Type,
    Value,
};

use crate::bench::{Bench, int, rounds};

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).into()).collect()
}

fn reference(columns: &[&str], parent: &str) -> NewForeignKey {
    NewForeignKey { columns: names(columns), parent: parent.into(), ..NewForeignKey::default() }
}

fn loose(columns: &[&str], parent: &str) -> NewForeignKey {
    NewForeignKey { not_enforced: true, ..reference(columns, parent) }
}

/// A table of integers whose first `key` columns are its primary key.
fn table(name: &str, columns: &[&str], key: usize, foreign_keys: Vec<NewForeignKey>) -> NewTable {
    NewTable {
        name: name.into(),
        columns: columns.iter().map(|column| NewColumn::new(*column, Type::Integer)).collect(),
        primary_key: Some(NewKey { name: None, columns: names(&columns[..key]) }),
        foreign_keys,
        ..NewTable::default()
    }
}

/// Every row, by table and number.
type Rows = BTreeMap<TableId, BTreeMap<RowId, Vec<Value>>>;

fn all(bench: &mut Bench) -> (Vec<std::sync::Arc<Table>>, Rows) {
    let tables = bench.relations.tables(&bench.writer).unwrap();
    let rows = tables.iter().map(|table| (table.id, bench.rows(&table.name).into_iter().collect())).collect();
    (tables, rows)
}

/// The row to which a step leads, by looking at all of them.
fn follow(tables: &[std::sync::Arc<Table>], rows: &Rows, from: TableId, row: RowId, step: &Step) -> Option<RowId> {
    let child = tables.iter().find(|table| table.id == from).unwrap();
    let parent = tables.iter().find(|table| table.id == step.to).unwrap();
    let key = child.foreign_key(step.key).unwrap();
    let own = &rows[&from][&row];
    let pairs: Vec<_> = key.columns.iter().zip(&key.parent_columns).collect();
    let is_it = |values: &Vec<Value>| {
        pairs.iter().all(|(column, other)| {
            let own = &own[child.position(**column).unwrap()];
            *own != Value::Null && *own == values[parent.position(**other).unwrap()]
        })
    };
    rows[&step.to].iter().find(|(_, values)| is_it(values)).map(|(row, _)| *row)
}

/// Every row joins what the loops find, forth and back.
fn check(bench: &mut Bench) -> usize {
    let (tables, rows) = all(bench);
    let view = bench.writer.pending();
    let mut joined = 0;
    for table in &tables {
        let mut found: Vec<BTreeMap<RowId, Vec<RowId>>> = vec![BTreeMap::new(); table.joins.len()];
        let mut scan = bench.relations.scan(view.clone(), table).unwrap();
        while let Some(block) = scan.next(7).unwrap() {
            for row in block.visible_rows() {
                for (place, join) in table.joins.iter().enumerate() {
                    let mut at = Some((table.id, block.id(row)));
                    for step in &join.steps {
                        at = at
                            .and_then(|(from, row)| follow(&tables, &rows, from, row, step).map(|row| (step.to, row)));
                    }
                    let expected = at.map(|(_, row)| row);
                    assert_eq!(block.joined(row, place), expected, "row {:?} of {}", block.id(row), table.name);
                    if let Some(end) = expected {
                        found[place].entry(end).or_default().push(block.id(row));
                    }
                    joined += usize::from(expected.is_some());
                }
            }
        }
        for (place, join) in table.joins.iter().enumerate() {
            let end = join.steps.last().unwrap().to;
            for row in rows[&end].keys() {
                let back = bench.relations.joined_to(&view, table, place, &[*row], usize::MAX).unwrap().unwrap();
                let mut expected = found[place].remove(row).unwrap_or_default();
                expected.sort_unstable();
                // There may be some that joined it once.
                assert!(back.is_sorted_by(|one, other| one < other));
                assert!(expected.iter().all(|row| back.binary_search(row).is_ok()), "{back:?} for {expected:?}");
            }
        }
    }
    joined
}

fn paths(bench: &Bench, name: &str) -> Vec<String> {
    let table = bench.table(name);
    let tables = bench.relations.tables(&bench.writer).unwrap();
    let name_of = |step: &Step| tables.iter().find(|table| table.id == step.to).unwrap().name.clone();
    table.joins.iter().map(|join| join.steps.iter().map(name_of).collect::<Vec<_>>().join(".")).collect()
}

/// Figure 7 of the paper: T0 references T1 and T3, T1 references T2, T3 references T4 and T5.
#[test]
fn a_row_holds_the_end_of_every_path() {
    let mut bench = Bench::new(1);
    for (name, parents) in [
        ("t2", vec![]),
        ("t4", vec![]),
        ("t5", vec![]),
        ("t1", vec!["t2"]),
        ("t3", vec!["t4", "t5"]),
        ("t0", vec!["t1", "t3"]),
    ] {
        let columns: Vec<&str> = ["id"].into_iter().chain(parents.iter().copied()).collect();
        let keys = parents.iter().map(|parent| reference(&[parent], parent)).collect();
        bench.create(&table(name, &columns, 1, keys));
    }
    assert_eq!(paths(&bench, "t0"), ["t1", "t3", "t1.t2", "t3.t4", "t3.t5"]);
    for name in ["t2", "t4", "t5"] {
        bench.insert(name, &(0..4).map(|id| vec![int(id)]).collect::<Vec<_>>()).unwrap();
    }
    bench.insert("t1", &(0..6).map(|id| vec![int(id), int(id % 4)]).collect::<Vec<_>>()).unwrap();
    bench.insert("t3", &(0..6).map(|id| vec![int(id), int(id % 4), int(3 - id % 4)]).collect::<Vec<_>>()).unwrap();
    bench.insert("t0", &(0..30).map(|id| vec![int(id), int(id % 6), int(id % 5)]).collect::<Vec<_>>()).unwrap();
    assert_eq!(check(&mut bench), 6 + 12 + 150);
    bench.verify();
    bench.reopen();
    check(&mut bench);
    // What lies between changes: the rows of T0 join something else at the far end.
    bench
        .update("t3", &[RowId(1), RowId(2)], &[vec![int(1), int(0), Value::Null], vec![int(2), int(0), int(0)]])
        .unwrap();
    check(&mut bench);
    bench.verify();
}

#[test]
fn a_child_may_come_before_its_parent_where_nobody_enforces_it() {
    let mut bench = Bench::with_fresh_rows(2, 3);
    bench.create(&table("far", &["id"], 1, vec![]));
    bench.create(&table("parent", &["id", "far"], 1, vec![loose(&["far"], "far")]));
    bench.create(&table("child", &["id", "parent"], 1, vec![loose(&["parent"], "parent")]));
    bench.insert("child", &(0..9).map(|id| vec![int(id), int(id % 3)]).collect::<Vec<_>>()).unwrap();
    bench.insert("parent", &(0..3).map(|id| vec![int(id), int(7)]).collect::<Vec<_>>()).unwrap();
    assert_eq!(check(&mut bench), 9);
    bench.insert("far", &[vec![int(7)]]).unwrap();
    assert_eq!(check(&mut bench), 9 + 9 + 3);
    let far = bench.table("far");
    bench.statement(|relations, writer| relations.truncate(writer, &far, false)).unwrap();
    assert_eq!(check(&mut bench), 9);
    bench.delete("parent", &[RowId(1)]).unwrap();
    assert_eq!(check(&mut bench), 6);
    bench.update("parent", &[RowId(0)], &[vec![int(1), Value::Null]]).unwrap();
    assert_eq!(check(&mut bench), 6);
    bench.verify();
}

#[test]
fn a_cycle_is_refused_and_named() {
    let mut bench = Bench::new(3);
    bench.create(&table("a", &["id", "c"], 1, vec![]));
    bench.create(&table("b", &["id", "a", "b"], 1, vec![reference(&["a"], "a"), reference(&["b"], "b")]));
    bench.create(&table("c", &["id", "b"], 1, vec![reference(&["b"], "b")]));
    let a = bench.table("a");
    let closing = NewConstraint::ForeignKey(reference(&["c"], "c"));
    let error = bench.statement(|relations, writer| relations.add_constraint(writer, &a, &closing)).unwrap_err();
    let said = "foreign key a_c_fkey would close a cycle: a references c, c references b, b references a: leave one of them out";
    assert_eq!(error, Error::sql(said));
    assert_eq!(paths(&bench, "c"), ["b", "b.a"], "a reference to the own table is part of no other path");
    assert_eq!(paths(&bench, "b"), ["a", "b"]);
}

#[test]
fn more_foreign_keys_than_a_row_can_hold_are_refused() {
    let mut bench = Bench::new(4);
    bench.create(&table("parent", &["id"], 1, vec![]));
    let columns: Vec<String> = (0..65).map(|number| format!("c{number}")).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let many = |count: usize| columns[..count].iter().map(|column| loose(&[column], "parent")).collect();
    bench.create(&table("child", &columns, 1, many(64)));
    // The shorter paths are kept, and those of its own table come first.
    bench.create(&table("grandchild", &["id", "child"], 1, vec![reference(&["child"], "child")]));
    assert_eq!(paths(&bench, "grandchild").len(), 64);
    let error =
        bench.statement(|relations, writer| relations.create_table(writer, &table("worse", &columns, 1, many(65))));
    assert!(matches!(error.unwrap_err().cause(), Cause::Sql(said) if said == "a table has at most 64 foreign keys"));
    bench.insert("parent", &[vec![int(1)], vec![int(2)]]).unwrap();
    bench.insert("child", &[vec![int(1); 65], vec![int(2); 65]]).unwrap();
    bench.insert("grandchild", &[vec![int(5), int(2)]]).unwrap();
    assert_eq!(check(&mut bench), 64 + 64 + 64);
}

#[test]
fn tables_that_are_referenced_on_several_ways_are_dropped_with_their_keys() {
    let mut bench = Bench::new(6);
    bench.create(&table("t", &["id", "x"], 1, vec![]));
    bench.create(&table("a", &["id", "t"], 1, vec![reference(&["t"], "t")]));
    bench.create(&table("b", &["id", "a", "t"], 1, vec![reference(&["a"], "a"), reference(&["t"], "t")]));
    bench.create(&table("c", &["id", "b"], 1, vec![reference(&["b"], "b")]));
    assert_eq!(paths(&bench, "c"), ["b", "b.a", "b.t", "b.a.t"]);
    for name in ["t", "a", "b", "c"] {
        let width = bench.table(name).columns.len();
        bench.insert(name, &(0..5).map(|id| vec![int(id); width]).collect::<Vec<_>>()).unwrap();
    }
    check(&mut bench);
    let t = bench.table("t");
    bench.begin();
    bench.statement(|relations, writer| relations.drop_column(writer, &t, "id", true)).unwrap();
    assert_eq!(
        (paths(&bench, "b"), paths(&bench, "c")),
        (vec!["a".to_owned()], vec!["b".to_owned(), "b.a".to_owned()])
    );
    bench.rollback();
    bench.statement(|relations, writer| relations.drop_table(writer, &t, true)).unwrap();
    assert_eq!(paths(&bench, "c"), ["b", "b.a"]);
    assert_eq!(check(&mut bench), 5 + 10);
    bench.verify();
}

#[test]
fn a_table_joins_along_what_its_parent_joins_along_and_no_further() {
    let mut bench = Bench::new(7);
    bench.create(&table("l0", &["id"], 1, vec![]));
    // Two references to the table before, on each of six levels, and two of the last to itself.
    for level in 1..=6 {
        let (name, parent) = (format!("l{level}"), format!("l{}", level - 1));
        let mut keys = vec![reference(&["one"], &parent), reference(&["two"], &parent)];
        if level == 6 {
            keys.extend([reference(&["own"], "l6"), reference(&["again"], "l6")]);
        }
        bench.create(&table(&name, &["id", "one", "two", "own", "again"], 1, keys));
    }
    bench.create(&table("last", &["id", "l6"], 1, vec![reference(&["l6"], "l6")]));
    assert_eq!(paths(&bench, "l6").len(), 64);
    assert_eq!(paths(&bench, "last").len(), 63, "its reference, and the parent's paths but those to itself");
    bench.insert("l0", &[vec![int(0)], vec![int(1)]]).unwrap();
    for level in 1..=6 {
        bench.insert(&format!("l{level}"), &[vec![int(0), int(0), int(1), int(0), int(0)]]).unwrap();
        if level < 6 {
            bench.insert(&format!("l{level}"), &[vec![int(1), int(1), int(0), int(0), int(0)]]).unwrap();
        }
    }
    bench.insert("last", &[vec![int(0), int(0)]]).unwrap();
    check(&mut bench);
    bench.verify();
}

#[test]
fn rows_of_before_join_along_a_foreign_key_of_after() {
    for fresh_rows in [2, 100] {
        let mut bench = Bench::with_fresh_rows(5, fresh_rows);
        bench.create(&table("far", &["id"], 1, vec![]));
        bench.create(&table("parent", &["id", "far"], 1, vec![]));
        bench.create(&table("child", &["id", "parent"], 1, vec![reference(&["parent"], "parent")]));
        bench.insert("far", &[vec![int(1)], vec![int(2)]]).unwrap();
        bench.insert("parent", &[vec![int(1), int(2)], vec![int(2), int(1)], vec![int(3), Value::Null]]).unwrap();
        bench.insert("child", &(0..9).map(|id| vec![int(id), int(1 + id % 3)]).collect::<Vec<_>>()).unwrap();
        bench.delete("child", &[RowId(4)]).unwrap();
        bench.update("child", &[RowId(5)], &[vec![int(50), int(1)]]).unwrap();
        let before = bench.writer.pending();
        let parent = bench.table("parent");
        let new = NewConstraint::ForeignKey(NewForeignKey { name: Some("on".into()), ..reference(&["far"], "far") });
        bench.statement(|relations, writer| relations.add_constraint(writer, &parent, &new)).unwrap();
        assert_eq!(paths(&bench, "child"), ["parent", "parent.far"]);
        assert_eq!(check(&mut bench), 8 + 2 + 6);
        bench.verify();
        let old = bench.relations.table(&before, "child").unwrap().unwrap();
        assert_eq!(crate::bench::rows_of(&bench.relations, before, &old).len(), 8, "older views read what they had");
        // And without it again: rows that hold more than they need are read as those that do not.
        let far = bench.table("far");
        bench.statement(|relations, writer| relations.drop_table(writer, &far, true)).unwrap();
        assert_eq!(paths(&bench, "child"), ["parent"]);
        bench.insert("child", &[vec![int(9), int(1)]]).unwrap();
        assert_eq!(check(&mut bench), 9);
        bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
        assert_eq!(check(&mut bench), 9);
        bench.verify();
    }
}

const TABLES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// a <- b <- c (also to itself), d references b and c, e references d by a key of two columns and a.
fn random_schema(bench: &mut Bench) {
    const ACTIONS: [Action; 4] = [Action::NoAction, Action::Cascade, Action::SetNull, Action::Restrict];
    let mut key = |columns: &[&str], parent: &str| NewForeignKey {
        on_delete: ACTIONS[bench.dice(4) as usize],
        on_update: ACTIONS[bench.dice(4) as usize],
        not_enforced: bench.dice(2) == 0,
        ..reference(columns, parent)
    };
    let tables = [
        table("a", &["id", "x"], 1, vec![]),
        table("b", &["id", "a"], 1, vec![key(&["a"], "a")]),
        table("c", &["id", "b", "c"], 1, vec![key(&["b"], "b"), key(&["c"], "c")]),
        table("d", &["one", "two", "b", "c"], 2, vec![key(&["b"], "b"), key(&["c"], "c")]),
        table(
            "e",
            &["id", "two", "one", "a"],
            1,
            vec![
                NewForeignKey { parent_columns: names(&["two", "one"]), ..key(&["two", "one"], "d") },
                key(&["a"], "a"),
            ],
        ),
    ];
    tables.iter().for_each(|table| drop(bench.create(table)));
}

fn small(bench: &mut Bench) -> Value {
    match bench.dice(8) {
        0 => Value::Null,
        number => int(number as i32 - 1),
    }
}

fn random_row(bench: &mut Bench, table: &Table) -> Vec<Value> {
    let key = table.primary_key.as_ref().unwrap().columns.len();
    let width = table.columns.len();
    (0..width).map(|place| if place < key { int(bench.dice(6) as i32) } else { small(bench) }).collect()
}

fn random_change(bench: &mut Bench, name: &str) -> Result<u64, Error> {
    let table = bench.table(name);
    let one_in = [1, 3][bench.dice(2) as usize];
    let there: Vec<RowId> = bench.rows(name).into_iter().map(|(id, _)| id).collect();
    let some: Vec<RowId> = there.into_iter().filter(|_| bench.dice(one_in) == 0).collect();
    match bench.dice(5) {
        0 => bench.delete(name, &some),
        1 | 2 => {
            // Mostly the references change, sometimes the keys do, among themselves or to others.
            let all: std::collections::BTreeMap<RowId, Vec<Value>> = bench.rows(name).into_iter().collect();
            let key = table.primary_key.as_ref().unwrap().columns.len();
            let (shift, keeps) = (bench.dice(3) as usize, bench.dice(3) > 0);
            let row = |(place, id): (usize, &RowId)| {
                let mut row = random_row(bench, &table);
                if keeps {
                    row = all[id].clone();
                }
                if bench.dice(8) > 0 {
                    row[..key].clone_from_slice(&all[&some[(place + shift) % some.len()]][..key]);
                }
                row
            };
            let rows: Vec<_> = some.iter().enumerate().map(row).collect();
            bench.update(name, &some, &rows)
        }
        _ => {
            let rows: Vec<_> = (0..1 + bench.dice(4)).map(|_| random_row(bench, &table)).collect();
            bench.insert(name, &rows).map(|_| 0)
        }
    }
}

fn random_definition(bench: &mut Bench, name: &str) -> Result<(), Error> {
    let table = bench.table(name);
    match bench.dice(6) {
        0 => bench.statement(|relations, writer| relations.truncate(writer, &table, false)),
        1 => bench.statement(|relations, writer| relations.vacuum(writer, Some(&table))),
        2 if bench.table("a").column("y").is_none() => {
            let a = bench.table("a");
            let column = NewColumn::new("y", Type::Integer);
            bench.statement(|relations, writer| relations.add_column(writer, &a, &column, &int(1))).map(drop)
        }
        3 => {
            // c loses its way to b; then d has one path less, and e with it.
            let c = bench.table("c");
            let Some(_) = c.column("b") else {
                let column = NewColumn::new("b", Type::Integer);
                bench.statement(|relations, writer| relations.add_column(writer, &c, &column, &int(2)))?;
                let c = bench.table("c");
                let key = NewConstraint::ForeignKey(loose(&["b"], "b"));
                return bench.statement(|relations, writer| relations.add_constraint(writer, &c, &key)).map(drop);
            };
            bench.statement(|relations, writer| relations.drop_column(writer, &c, "b", false)).map(drop)
        }
        4 => {
            bench.reopen();
            Ok(())
        }
        _ => Ok(()),
    }
}

#[test]
fn whatever_is_done_rows_join_what_their_keys_name() {
    let (seeds, mut joined) = (rounds(40, 2000), 0);
    for seed in 0..seeds {
        let mut bench = Bench::with_fresh_rows(seed, 1 + seed as usize % 9);
        random_schema(&mut bench);
        for name in TABLES {
            let table = bench.table(name);
            for _ in 0..12 {
                let row = random_row(&mut bench, &table);
                drop(bench.insert(name, &[row]));
            }
        }
        for round in 0..60 {
            let name = TABLES[bench.dice(5) as usize];
            let outcome = match bench.dice(8) {
                0 => random_definition(&mut bench, name),
                1 => {
                    bench.begin();
                    for _ in 0..3 {
                        let name = TABLES[bench.dice(5) as usize];
                        drop(random_change(&mut bench, name));
                    }
                    joined += check(&mut bench);
                    bench.rollback();
                    Ok(())
                }
                _ => random_change(&mut bench, name).map(drop),
            };
            match outcome.map_err(Error::into_cause) {
                Ok(()) | Err(Cause::Constraint(_) | Cause::Sql(_)) => {}
                Err(error) => panic!("{error:?}"),
            }
            joined += check(&mut bench);
            if round % 6 == 0 {
                bench.verify();
            }
        }
    }
    assert!(joined as u64 > 500 * seeds, "{joined} joins seen in {seeds} histories");
}

/// Rows that came in the order of their keys are found without the index; those whose key has changed, or whose place another has
/// taken, are found all the same.
#[test]
fn a_parent_is_found_where_its_key_says_and_elsewhere() {
    let mut bench = Bench::with_fresh_rows(3, 64);
    bench.create(&table("parent", &["id", "other"], 1, vec![]));
    bench.create(&table("child", &["id", "parent"], 1, vec![loose(&["parent"], "parent")]));
    bench.insert("parent", &(0..1000).map(|id| vec![int(id), int(0)]).collect::<Vec<_>>()).unwrap();
    let parent = bench.table("parent");
    bench.statement(|relations, writer| relations.vacuum(writer, Some(&parent))).unwrap();
    // 5 and 6 change places, 7 goes to the end, 8 goes, 9 goes and comes anew.
    let moved = [vec![int(6), int(1)], vec![int(5), int(1)], vec![int(5000), int(1)]];
    bench.update("parent", &[RowId(5), RowId(6), RowId(7)], &moved).unwrap();
    bench.delete("parent", &[RowId(8), RowId(9)]).unwrap();
    bench.insert("parent", &[vec![int(9), int(2)]]).unwrap();
    let asked = [4, 5, 6, 7, 8, 9, 10, 999, 1000, 5000, -1];
    bench
        .insert(
            "child",
            &asked.iter().enumerate().map(|(id, parent)| vec![int(id as i32), int(*parent)]).collect::<Vec<_>>(),
        )
        .unwrap();
    check(&mut bench);
    let child = bench.table("child");
    let view = bench.writer.pending();
    let block = bench.relations.fetch(&view, &child, &(0..11).map(RowId).collect::<Vec<_>>(), None).unwrap();
    let joined: Vec<_> = (0..11).map(|row| block.joined(row, 0).map(|row| row.0)).collect();
    let expected = [Some(4), Some(6), Some(5), None, None, Some(1000), Some(10), Some(999), None, Some(7), None];
    assert_eq!(joined, expected);
    bench.verify();
}
