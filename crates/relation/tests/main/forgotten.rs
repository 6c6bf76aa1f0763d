//! Entries of new rows are forgotten once they are a run. Whoever still needs them, an older view or one who rolls back, works them out
//! again from the rows, and finds the same.

use counterfoil_log::Snapshot;
use counterfoil_relation::{Error, KeyRange, NewColumn, NewIndex, NewKey, NewTable, RowId, Type, Value};

use crate::bench::{Bench, int, rows_of};

/// Numbers under which rows are.
const NUMBERS: i32 = 7;
/// Rows with which a fresh part is due.
const FRESH_ROWS: usize = 8;

fn row(id: i32) -> Vec<Value> {
    vec![int(id), int(id % NUMBERS)]
}

/// A table with five rows, of which one was changed.
fn populated(seed: u64) -> Bench {
    let mut bench = Bench::with_fresh_rows(seed, FRESH_ROWS);
    bench.create(&NewTable {
        name: "t".into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("number", Type::Integer)],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    });
    let table = bench.table("t");
    let index = NewIndex { columns: vec!["number".into()], ..NewIndex::default() };
    bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    bench.insert("t", &(0..5).map(row).collect::<Vec<_>>()).unwrap();
    bench.update("t", &[RowId(2)], &[vec![int(2), int(5)]]).unwrap();
    bench
}

/// What is found under each number, which is what is there.
fn found(bench: &Bench, view: &Snapshot) -> Vec<Vec<RowId>> {
    let table = bench.relations.table(view, "t").unwrap().unwrap();
    let index = table.indexes.last().unwrap().id;
    let rows = rows_of(&bench.relations, view.clone(), &table);
    let under = |number: i32| {
        let range = KeyRange::equal(vec![int(number)]);
        let mut found = bench.relations.lookup(view, &table, index, &range, 1000).unwrap().unwrap();
        found.sort();
        let there = rows.iter().filter(|(_, values)| values[1] == int(number)).map(|(id, _)| *id);
        assert_eq!(found, there.collect::<Vec<_>>(), "number {number}");
        found
    };
    (0..NUMBERS).map(under).collect()
}

/// Changes rows, then inserts so many that every index becomes a run, and changes one of those.
fn grow(bench: &mut Bench, first: i32) -> Result<(), Error> {
    bench.update("t", &[RowId(1), RowId(3)], &[vec![int(1), int(6)], vec![int(3), int(6)]])?;
    let last = first + 2 * FRESH_ROWS as i32;
    for id in first..last {
        bench.insert("t", &[row(id)])?;
    }
    let newest = bench.insert("t", &[row(last)])?;
    bench.update("t", &[newest], &[vec![int(last), int(0)]]).map(drop)
}

#[test]
fn older_views_find_what_they_found() {
    for seed in [0, 1] {
        let mut bench = populated(seed);
        let (view, table) = (bench.writer.snapshot(), bench.table("t"));
        let before = found(&bench, &view);
        bench.begin();
        grow(&mut bench, 5).unwrap();
        let pending = bench.writer.pending();
        assert_ne!(found(&bench, &pending), before);
        assert_eq!(found(&bench, &view), before);
        bench.commit();
        // The writer goes on beside one who reads what was.
        grow(&mut bench, 100).unwrap();
        assert_eq!(found(&bench, &view), before);
        assert_eq!(rows_of(&bench.relations, view, &table).len(), 5);
        let now = bench.writer.snapshot();
        let after = found(&bench, &now);
        drop(now);
        bench.verify();
        bench.reopen();
        let now = bench.writer.snapshot();
        assert_eq!(found(&bench, &now), after);
    }
}

#[test]
fn a_rollback_finds_what_was_there() {
    for seed in [0, 1] {
        let mut bench = populated(seed);
        let view = bench.writer.snapshot();
        let before = found(&bench, &view);
        for round in 0..4 {
            bench.begin();
            let savepoint = bench.writer.savepoint().unwrap();
            // Every other time somebody looks in between.
            grow(&mut bench, 5 + round).unwrap();
            if round % 2 == 1 {
                assert_eq!(found(&bench, &view), before);
            }
            bench.writer.rollback_to(&savepoint).unwrap();
            bench.relations.rolled_back(&bench.writer);
            let pending = bench.writer.pending();
            assert_eq!(found(&bench, &pending), before);
            drop(pending);
            // Other rows take the numbers of those.
            grow(&mut bench, 200 - round).unwrap();
            bench.rollback();
            let now = bench.writer.snapshot();
            assert_eq!(found(&bench, &now), before);
        }
        bench.insert("t", &[row(3000)]).unwrap();
        // Its key is known, though what knew it was forgotten.
        bench.insert("t", &[row(3000)]).unwrap_err();
        grow(&mut bench, 300).unwrap();
        bench.insert("t", &[row(310)]).unwrap_err();
        let now = bench.writer.snapshot();
        assert_ne!(found(&bench, &now), before);
        assert_eq!(found(&bench, &view), before);
        drop(now);
        bench.verify();
    }
}
