//! What new rows, deletes and updates take of memory, counted by the allocator: no more than their bound. Alone in its process,
//! since what others take would be counted too.

#[allow(dead_code, reason = "the words of other tests")]
#[path = "main/bench.rs"]
mod bench;

use std::collections::HashSet;

use counterfoil_relation::{NewColumn, NewIndex, NewKey, NewTable, Relations, RowId, Type, Value};
use peak_alloc::PeakAlloc;

use bench::{Bench, rounds};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a database keeps of what is new: bytes that are there no more when it is forgotten. Nothing is lost by that.
fn held(bench: &mut Bench, new: impl Fn() -> Relations) -> usize {
    let before = MEMORY.current_usage();
    bench.relations = new();
    before - MEMORY.current_usage()
}

/// Rows that are there before.
const OLD_ROWS: i64 = 200_000;

/// Rows come, change and go, a few with a commit; the most that was ever kept in memory of what was new.
fn most_held(new: impl Fn() -> Relations) -> usize {
    let mut bench = Bench::new(3);
    bench.relations = new();
    let table = NewTable {
        name: "t".into(),
        columns: vec![
            NewColumn::new("id", Type::BigInt),
            NewColumn::new("a", Type::Integer),
            NewColumn::new("b", Type::Char(10)),
        ],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    };
    bench.create(&table);
    for column in ["a", "b"] {
        let index = NewIndex { columns: vec![column.into()], ..NewIndex::default() };
        bench
            .statement(|relations, writer| {
                let table = relations.table(writer, "t")?.unwrap();
                relations.create_index(writer, &table, &index)
            })
            .unwrap();
    }
    let row = |id: i64| vec![Value::BigInt(id), Value::Integer(id as i32 % 97), Value::Text(format!("{id:010}"))];
    // So many that maps of those that are left of them would take more than the bound.
    bench.insert("t", &(0..OLD_ROWS).map(row).collect::<Vec<_>>()).unwrap();
    let (mut next, mut gone, mut most) = (OLD_ROWS, HashSet::new(), 0);
    for round in 0..rounds(300, 3000) {
        let rows: Vec<_> = (next..next + 20).map(row).collect();
        next += 20;
        bench.insert("t", &rows).unwrap();
        let table = bench.table("t");
        for _ in 0..4 {
            let (id, other) = (bench.dice(next as u64), bench.dice(next as u64));
            if gone.insert(id) {
                bench.statement(|relations, writer| relations.delete(writer, &table, &[RowId(id)])).unwrap();
            }
            if !gone.contains(&other) {
                let changed = bench::batch(&table, &[row(other as i64)]);
                bench
                    .statement(|relations, writer| relations.update(writer, &table, &[RowId(other)], &changed))
                    .unwrap();
            }
        }
        for _ in 0..4 {
            bench.begin();
            bench.relations.maintain(&mut bench.writer).unwrap();
            bench.commit();
        }
        if round % 25 == 24 {
            most = most.max(held(&mut bench, &new));
        }
        assert_eq!(bench.relations.count(&bench.writer, &table).unwrap(), next as u64 - gone.len() as u64);
    }
    most
}

#[test]
fn what_is_new_takes_no_more_than_its_bound() {
    const BOUND: usize = 48 << 10;
    /// The descriptions of a table and of where it lies, which are kept too.
    const DESCRIPTIONS: usize = 8 << 10;
    let bounded = most_held(|| Relations::new().with_head_bytes(0).with_new_bytes(BOUND));
    let free = most_held(|| Relations::new().with_head_bytes(0));
    assert!((BOUND / 4..=BOUND + DESCRIPTIONS).contains(&bounded), "{bounded} bytes of {BOUND}");
    assert!(free > 2 * (BOUND + DESCRIPTIONS), "{free} bytes without a bound: nothing is shown by this");
}
