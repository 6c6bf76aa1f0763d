//! What is told of a table's keeping is what VACUUM then does.

use counterfoil_flash::{PageNumber, Read};
use counterfoil_relation::{NewColumn, NewIndex, NewKey, NewTable, RowId, TableUse, Type};

use crate::bench::{Bench, int, text};

fn figures(bench: &mut Bench) -> TableUse {
    let table = bench.table("t");
    let view = bench.writer.pending();
    bench.relations.figures(&view, &table).unwrap()
}

fn filled(fresh_rows: usize) -> Bench {
    let mut bench = Bench::with_fresh_rows(2, fresh_rows);
    bench.create(&NewTable {
        name: "t".into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("note", Type::Text)],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    });
    let table = bench.table("t");
    let index = NewIndex { columns: vec!["note".into()], ..NewIndex::default() };
    bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    for piece in 0..20 {
        let rows: Vec<_> = (0..1000).map(|row| vec![int(piece * 1000 + row), text(&"note ".repeat(5))]).collect();
        bench.insert("t", &rows).unwrap();
    }
    bench
}

#[test]
fn a_tidy_table_has_nothing_to_gain() {
    // As many new rows as come stay in memory.
    let mut bench = filled(1 << 20);
    let told = figures(&mut bench);
    assert_eq!((told.rows, told.deleted, told.updates, told.segments), (20_000, 0, 0, 1));
    assert_eq!(told.row_bytes, 20_000 * (1 + 4 + 16 + 25));
    assert_eq!((told.rewrite_bytes(), told.freed_bytes()), (0, 0));
    assert!(told.indexes.iter().all(|index| index.runs.is_empty() && index.fresh_rows == 20_000));
}

#[test]
fn what_a_rewrite_costs_and_gains_is_what_it_then_does() {
    let mut bench = filled(1500);
    let rows: Vec<RowId> = (0..20_000).map(RowId).collect();
    bench.delete("t", &rows[..9000]).unwrap();
    let changed: Vec<_> = (9000..12_000).map(|row| vec![int(row), text(&"other".repeat(5))]).collect();
    bench.update("t", &rows[9000..12_000], &changed).unwrap();
    let before = figures(&mut bench);
    assert_eq!((before.rows, before.deleted, before.updates), (11_000, 9000, 3000));
    assert!(before.indexes.iter().all(|index| index.runs.len() > 1), "{before:?}");
    let table = bench.table("t");
    bench.statement(|relations, writer| relations.vacuum(writer, Some(&table))).unwrap();
    let after = figures(&mut bench);
    assert_eq!((after.rows, after.deleted, after.updates, after.log_bytes), (11_000, 0, 0, 0));
    let near = |told: u64, is: u64| told.abs_diff(is) * 5 < is;
    assert!(near(before.rewrite_bytes(), after.bytes()), "{} told, {} written", before.rewrite_bytes(), after.bytes());
    assert!(near(before.freed_bytes(), before.bytes() - after.bytes()));
    assert_eq!(after.rewrite_bytes(), 0);
}

#[test]
fn rows_in_one_piece_stay_where_they_are() {
    let mut bench = filled(1500);
    let before = figures(&mut bench);
    assert!(before.rewrite_bytes() > 0 && before.rewrite_bytes() < before.row_bytes, "{before:?}");
    let table = bench.table("t");
    let pages = pages(&bench);
    bench.statement(|relations, writer| relations.vacuum(writer, Some(&table))).unwrap();
    let there: std::collections::BTreeSet<_> = pages.into_iter().collect();
    let written = self::pages(&bench).iter().filter(|page| !there.contains(*page)).count() as u64 * 512;
    let after = figures(&mut bench);
    assert!(written < before.row_bytes, "{written} bytes for {} of rows", before.row_bytes);
    assert!(after.indexes.iter().all(|index| index.runs.len() == 1), "{after:?}");
    assert_eq!((after.rows, after.row_bytes), (before.rows, before.row_bytes));
    assert_eq!((after.rewrite_bytes(), after.freed_bytes()), (0, 0));
    let fresh =
        |told: &counterfoil_relation::TableUse| told.indexes.iter().map(|index| index.fresh_rows).collect::<Vec<_>>();
    assert_eq!(fresh(&after), fresh(&before));
    bench.verify();
}

/// What verification says of an index does not depend on how much of it is in runs.
#[test]
fn entries_are_checked_whether_or_not_a_run_has_them() {
    for fresh_rows in [1500, 15_000, 1 << 20] {
        let mut bench = filled(fresh_rows);
        let view = bench.writer.pending();
        let report = bench.relations.verify(&view, &mut |_| {}).unwrap();
        assert_eq!((report.tables[0].rows, report.tables[0].entries), (20_000, 40_000), "{fresh_rows} fresh rows");
    }
}

/// All pages in which containers may lie.
fn pages(bench: &Bench) -> Vec<Vec<u8>> {
    let read = |page| {
        let mut bytes = vec![0; 512];
        bench.device.read(PageNumber(page), 0, &mut bytes).unwrap();
        bytes
    };
    bench.pages().map(read).collect()
}
