//! What little memory costs in space: runs are short then, and many.

use counterfoil_log::Owner;
use counterfoil_relation::{NewColumn, NewIndex, NewKey, NewTable, Type};

use crate::bench::{Bench, int};

const ROWS: i32 = 20_000;
/// Of 512 bytes: a run of forty entries takes three of them.
const EXTENT_PAGES: u64 = 64;

fn table(fresh_rows: usize) -> Bench {
    let mut bench = Bench::with_extents(fresh_rows, EXTENT_PAGES);
    bench.create(&NewTable {
        name: "t".into(),
        columns: ["id", "x", "y"].map(|name| NewColumn::new(name, Type::Integer)).into(),
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    });
    let table = bench.table("t");
    for column in ["x", "y"] {
        let index = NewIndex { columns: vec![column.into()], ..NewIndex::default() };
        bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    }
    bench
}

fn row(id: i32) -> Vec<counterfoil_relation::Value> {
    vec![int(id), int(id % 5000), int(id % 77)]
}

/// Extents that tables and indexes take when all rows were inserted in statements of so many, each a commit.
fn extents(fresh_rows: usize, rows: i32) -> usize {
    let mut bench = table(fresh_rows);
    for from in (0..ROWS).step_by(rows as usize) {
        bench.insert("t", &(from..from + rows).map(row).collect::<Vec<_>>()).unwrap();
    }
    let report = bench.writer.report();
    report.extents.iter().filter(|used| matches!(used.owner, Owner::Group(_))).count()
}

#[test]
fn little_memory_takes_little_more_space() {
    let much = extents(1 << 20, ROWS);
    for rows in [100, 1000, ROWS] {
        let little = extents(40, rows);
        assert!(little <= much + 55, "{little} extents in statements of {rows}, {much} at once in much memory");
    }
}
