//! Maps of the rows that are there answer alike where memory keeps them and where they are read in pieces.

use counterfoil_log::Snapshot;
use counterfoil_relation::{KeyRange, NewColumn, NewIndex, NewKey, NewTable, Relations, RowId, Type, Value};

use crate::bench::{Bench, batch, int, rows_of};

/// Rows of a table: five pieces of a map.
const ROWS: i32 = 18_000;

fn row(id: i32, number: i32) -> Vec<Value> {
    vec![int(id), int(number), Value::Text(format!("{id:06}"))]
}

fn filled() -> Bench {
    let mut bench = Bench::with_segments(2, 4000, 64 << 20);
    bench.create(&NewTable {
        name: "t".into(),
        columns: vec![
            NewColumn::new("id", Type::Integer),
            NewColumn::new("number", Type::Integer),
            NewColumn::new("name", Type::Char(6)),
        ],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    });
    let index = NewIndex { columns: vec!["number".into()], ..NewIndex::default() };
    bench
        .statement(|relations, writer| {
            let table = relations.table(writer, "t")?.expect("a table");
            relations.create_index(writer, &table, &index)
        })
        .expect("an index");
    let all: Vec<_> = (0..ROWS).map(|id| row(id, id % 50)).collect();
    bench.insert("t", &all).expect("inserted");
    bench
}

/// Deletes some rows and updates others, here and there and all of a stretch.
fn change(bench: &mut Bench, salt: u64) {
    let table = bench.table("t");
    let stretch = 5000 + salt * 1000..9500 + salt * 1000;
    let gone: Vec<_> = (0..ROWS as u64).filter(|id| id % 41 == salt || stretch.contains(id)).map(RowId).collect();
    bench.statement(|relations, writer| relations.delete(writer, &table, &gone)).expect("deleted");
    let there = bench.rows("t");
    let changed = there.iter().filter(|(id, _)| id.0 % 17 == salt);
    let (ids, rows): (Vec<_>, Vec<_>) = changed.map(|(id, _)| (*id, row(id.0 as i32, 100 + salt as i32))).unzip();
    let changed = batch(&table, &rows);
    bench.statement(|relations, writer| relations.update(writer, &table, &ids, &changed)).expect("updated");
}

fn vacuum(bench: &mut Bench) {
    let table = bench.table("t");
    bench.statement(|relations, writer| relations.vacuum(writer, Some(&table))).expect("vacuumed");
}

/// What tables say of rows: by scan, by number, by key, counted, verified, and saved from damage.
fn said(view: &Snapshot, relations: &Relations) -> Vec<String> {
    let table = relations.table(view, "t").expect("read").expect("a table");
    let mut said = vec![format!("{:?}", rows_of(relations, view.clone(), &table))];
    let ids: Vec<_> = (0..2000).map(|place| RowId(place * 7919 % (ROWS as u64 + 100))).collect();
    let block = relations.fetch(view, &table, &ids, Some(&[0, 1, 2])).expect("fetched");
    said.push(format!("{:?}", block.visible_rows().map(|row| block.rows.row(row)).collect::<Vec<_>>()));
    for number in 0..110 {
        let range = KeyRange::equal(vec![int(number)]);
        let found = relations.lookup(view, &table, table.indexes[1].id, &range, usize::MAX).expect("found");
        said.push(format!("{found:?}"));
    }
    said.push(relations.count(view, &table).expect("counted").to_string());
    let report = relations.verify(view, &mut |_| {}).expect("verified");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let mut salvage = relations.salvage(view.clone(), &table).expect("salvaged");
    while let Some(block) = salvage.next(1000).expect("no damage") {
        said.push(format!("{:?}", block.visible_rows().map(|row| block.id(row)).collect::<Vec<_>>()));
    }
    said
}

/// Tables that keep no map.
fn without_room() -> Relations {
    Relations::with_fresh_rows(4000).with_new_bytes(0)
}

fn compare(bench: &mut Bench, reading: &Relations) {
    let view = bench.writer.snapshot();
    let (kept, read) = (said(&view, &bench.relations), said(&view, reading));
    assert_eq!(kept.len(), read.len());
    let differing = (0..kept.len()).filter(|place| kept[*place] != read[*place]);
    assert_eq!(differing.collect::<Vec<_>>(), Vec::<usize>::new());
}

#[test]
fn rows_are_found_alike_by_maps_that_are_kept_and_maps_that_are_read() {
    let mut bench = filled();
    change(&mut bench, 1);
    vacuum(&mut bench);
    compare(&mut bench, &without_room());
    change(&mut bench, 2);
    compare(&mut bench, &without_room());
    vacuum(&mut bench);
    compare(&mut bench, &without_room());
}

/// What is rolled back may give its numbers to another map.
#[test]
fn a_map_that_is_read_is_not_that_of_a_transaction_that_was_rolled_back() {
    let mut bench = filled();
    change(&mut bench, 1);
    bench.relations = without_room();
    let mut twin = without_room();
    for salt in [2, 3] {
        bench.begin();
        change(&mut bench, salt);
        vacuum(&mut bench);
        // Whoever reads it now keeps what was read last.
        assert!(!bench.rows("t").is_empty());
        if salt == 2 {
            bench.rollback();
        } else {
            bench.commit();
        }
    }
    std::mem::swap(&mut bench.relations, &mut twin);
    bench.relations = Relations::with_fresh_rows(4000);
    compare(&mut bench, &twin);
}
