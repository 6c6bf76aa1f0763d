//! Tidying by steps: each is small, each may be the last, and what they come to is what VACUUM comes to.

use counterfoil_flash::{PageNumber, Read};
use counterfoil_relation::{
    KeyRange, NewColumn, NewIndex, NewKey, NewTable, Relations, RowId, TableUse, Type, Vacuum, Value,
};

use crate::bench::{Bench, int, text};

const PAGE_BYTES: u64 = 512;

/// Rows of a key, a number and a long note, with an index on the number.
fn filled(fresh_rows: usize, segment_bytes: u64, count: i32) -> Bench {
    let mut bench = Bench::with_segments(1, fresh_rows, segment_bytes);
    bench.create(&NewTable {
        name: "t".into(),
        columns: vec![
            NewColumn::new("id", Type::Integer),
            NewColumn::new("number", Type::Integer),
            NewColumn::new("note", Type::Text),
        ],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    });
    let table = bench.table("t");
    let index = NewIndex { columns: vec!["number".into()], ..NewIndex::default() };
    bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    for piece in 0..count / 100 {
        let rows: Vec<_> = (0..100).map(|row| row_of(piece * 100 + row)).collect();
        bench.insert("t", &rows).unwrap();
    }
    bench
}

fn row_of(id: i32) -> Vec<Value> {
    vec![int(id), int(id * 7919 % 10_007), text("a note of some length")]
}

fn figures(bench: &mut Bench) -> TableUse {
    let table = bench.table("t");
    let view = bench.writer.pending();
    bench.relations.figures(&view, &table).unwrap()
}

fn maintain(bench: &mut Bench) -> bool {
    bench.statement(|relations, writer| relations.maintain(writer)).unwrap()
}

fn vacuum_step(bench: &mut Bench) -> bool {
    let table = bench.table("t");
    bench.statement(|relations, writer| relations.vacuum_step(writer, &mut Vacuum::of(table.id))).unwrap()
}

/// Pages that something writes.
fn written(bench: &mut Bench, write: impl FnOnce(&mut Bench)) -> u64 {
    let pages = |bench: &Bench| -> Vec<Vec<u8>> {
        let read = |page| {
            let mut bytes = vec![0; PAGE_BYTES as usize];
            bench.device.read(PageNumber(page), 0, &mut bytes).unwrap();
            bytes
        };
        bench.pages().map(read).collect()
    };
    let before: std::collections::BTreeSet<_> = pages(bench).into_iter().collect();
    write(bench);
    pages(bench).iter().filter(|page| !before.contains(*page)).count() as u64
}

#[test]
fn a_segment_is_closed_when_it_is_full_and_renewed_alone() {
    let mut bench = filled(100, 20_000, 3000);
    let before = figures(&mut bench);
    assert!((6..10).contains(&before.segments), "{}", before.segments);
    let gone: Vec<_> = (900..1500).map(RowId).collect();
    bench.delete("t", &gone).unwrap();
    let bytes = written(&mut bench, |bench| assert!(maintain(bench))) * PAGE_BYTES;
    assert!(bytes < 40_000, "{bytes} bytes written where {} lie", before.row_bytes);
    while maintain(&mut bench) {}
    let after = figures(&mut bench);
    assert!(after.deleted < 300, "{} rows of those deleted are there", after.deleted);
    assert!(after.row_bytes < before.row_bytes * 9 / 10);
    bench.verify();
}

#[test]
fn a_merge_goes_on_where_it_was() {
    // Steps of 64 entries, on a device of 256.
    let count = |reopens: bool| {
        let mut bench = filled(4, 1 << 20, 2000);
        let whole = figures(&mut bench);
        assert!(whole.indexes.iter().all(|index| index.runs.len() > 1));
        let mut steps = 0;
        let mut half_done = 0;
        while vacuum_step(&mut bench) {
            steps += 1;
            half_done += u64::from(figures(&mut bench).indexes.iter().any(|index| index.made_bytes > 0));
            bench.verify();
            if reopens {
                bench.reopen();
            }
        }
        let after = figures(&mut bench);
        assert!(after.indexes.iter().all(|index| index.runs.len() == 1 && index.made_bytes == 0), "{after:?}");
        assert!(half_done > 10, "{half_done} of {steps}");
        steps
    };
    assert_eq!(count(true), count(false));
}

#[test]
fn a_vacuum_merges_all_runs_where_others_began_to_merge_some() {
    let mut bench = filled(4, 1 << 20, 2000);
    let is_half_done = |bench: &mut Bench| figures(bench).indexes.iter().any(|index| index.made_bytes > 0);
    while !is_half_done(&mut bench) {
        assert!(maintain(&mut bench), "a merge takes several steps");
    }
    let table = bench.table("t");
    bench.statement(|relations, writer| relations.vacuum(writer, Some(&table))).unwrap();
    let runs: Vec<_> = figures(&mut bench).indexes.iter().map(|index| index.runs.len()).collect();
    assert_eq!(runs, [1, 1]);
    bench.verify();
}

#[test]
fn tiers_that_grow_faster_have_fewer_runs() {
    let most_runs = |growth: Option<usize>| {
        let mut bench = filled(10, 1 << 20, 0);
        let relations = Relations::with_fresh_rows(10).with_tier_runs(2);
        bench.relations = growth.into_iter().fold(relations, Relations::with_tier_growth);
        let mut most = 0;
        for piece in 0..100 {
            let rows: Vec<_> = (0..10).map(|row| row_of(piece * 10 + row)).collect();
            bench.insert("t", &rows).unwrap();
            while maintain(&mut bench) {}
            let figures = figures(&mut bench);
            most = most.max(figures.indexes.iter().map(|index| index.runs.len()).max().unwrap());
        }
        bench.verify();
        most
    };
    // A hundred fresh parts: tiers of 2, 4, ... 64 of them, or of 16.
    assert_eq!((most_runs(None), most_runs(Some(16))), (6, 2));
}

#[test]
fn a_database_just_opened_is_tidied_where_it_was_left() {
    let mut bench = filled(10, 1 << 20, 2000);
    let gone: Vec<_> = (0..1500).map(RowId).collect();
    bench.delete("t", &gone).unwrap();
    bench.reopen();
    assert!(!maintain(&mut bench), "nobody has looked");
    bench.relations.note_all(&bench.writer).unwrap();
    let mut steps = 0;
    while maintain(&mut bench) {
        steps += 1;
    }
    assert!(steps > 0);
    assert_eq!(figures(&mut bench).deleted, 0);
}

#[test]
fn a_step_writes_as_little_however_large_the_table_is() {
    let most = |count: i32| {
        let mut bench = filled(20, 4000, count);
        let gone: Vec<_> = (0..count as u64).filter(|id| id % 3 > 0).map(RowId).collect();
        bench.delete("t", &gone).unwrap();
        let mut most = 0;
        loop {
            let mut more = false;
            let pages = written(&mut bench, |bench| more = vacuum_step(bench));
            most = most.max(pages);
            if !more {
                return most;
            }
        }
    };
    let (small, large) = (most(1000), most(4000));
    assert!(large <= small * 2, "{large} pages at once, and {small} in a quarter of the rows");
}

#[test]
fn vacuum_ends_beside_somebody_who_writes() {
    let mut bench = filled(10, 4000, 1000);
    let gone: Vec<_> = (0..500).map(RowId).collect();
    bench.delete("t", &gone).unwrap();
    let mut vacuum = Vacuum::of(bench.table("t").id);
    let mut steps = 0;
    while bench.statement(|relations, writer| relations.vacuum_step(writer, &mut vacuum)).unwrap() {
        // A segment and more of new rows, and some that are gone again.
        let rows: Vec<_> = (0..100).map(|row| row_of(2000 + steps * 100 + row)).collect();
        let first = bench.insert("t", &rows).unwrap();
        bench.delete("t", &[RowId(first.0 + 2), RowId(first.0 + 3)]).unwrap();
        steps += 1;
        assert!(steps < 200, "{:?}", figures(&mut bench));
    }
    let left = figures(&mut bench);
    assert!(steps > 5 && left.deleted <= 2 * steps as u64, "{left:?}");
    bench.verify();
}

#[test]
fn an_index_of_a_large_table_is_built_of_few_runs_at_a_time() {
    let mut bench = filled(2, 1 << 20, 2000);
    let table = bench.table("t");
    let index = NewIndex { columns: vec!["note".into(), "id".into()], ..NewIndex::default() };
    bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    bench.verify();
    assert_eq!(figures(&mut bench).indexes.last().unwrap().runs.len(), 1);
}

#[test]
fn keys_that_rows_once_had_leave_the_index() {
    let mut bench = filled(50, 4000, 600);
    let change = |bench: &mut Bench, shift: i32| {
        let rows: Vec<_> = (0..600).map(RowId).collect();
        let new: Vec<_> = (0..600).map(|id| vec![int(id), int(20_000 + shift + id), text("")]).collect();
        bench.update("t", &rows, &new).unwrap();
    };
    change(&mut bench, 0);
    change(&mut bench, 1000);
    while vacuum_step(&mut bench) {}
    bench.verify();
    let told = figures(&mut bench);
    assert!(told.indexes.iter().all(|index| index.runs[0].entries + index.fresh_rows == 600), "{told:?}");
    let table = bench.table("t");
    let index = table.indexes.iter().find(|index| !index.unique).unwrap().id;
    let view = bench.writer.pending();
    for key in [0, 7919, 20_000, 20_999] {
        let found =
            bench.relations.candidates(&view, &table, index, &KeyRange::equal(vec![int(key)]), 100).unwrap().unwrap();
        assert!(found.is_empty(), "{key}: {found:?}");
    }
}

#[test]
fn what_was_fresh_before_a_renewal_is_not_taken_for_what_is_fresh_now() {
    let mut bench = filled(50, 4000, 100);
    let rows: Vec<_> = (0..20).map(RowId).collect();
    for shift in [200, 400] {
        let new: Vec<_> = (0..20).map(|id| vec![int(id + shift), int(id), text("")]).collect();
        bench.update("t", &rows, &new).unwrap();
    }
    while vacuum_step(&mut bench) {}
    let more: Vec<_> = (1000..1100).map(row_of).collect();
    bench.insert("t", &more).unwrap();
    bench.verify();
    bench.reopen();
    bench.verify();
}

/// Where there is memory for few runs at a time the newest are merged first, and what it comes to is the same. (A device merges all.)
#[cfg(not(feature = "small"))]
#[test]
fn runs_that_cannot_be_read_side_by_side_are_merged_some_at_a_time() {
    let steps = |bounded: bool| {
        let mut bench = filled(20, 1 << 20, 3000);
        let runs =
            |bench: &mut Bench| -> Vec<usize> { figures(bench).indexes.iter().map(|index| index.runs.len()).collect() };
        assert!(runs(&mut bench).iter().all(|count| *count > 8), "{:?}", runs(&mut bench));
        let relations = Relations::with_fresh_rows(20).with_step_entries(10_000);
        bench.relations = if bounded { relations.with_tier_runs(3).with_merge_bytes(1) } else { relations };
        let (mut steps, mut vacuum) = (0, Vacuum::of(bench.table("t").id));
        while bench.statement(|relations, writer| relations.vacuum_step(writer, &mut vacuum)).unwrap() {
            steps += 1;
        }
        assert_eq!(runs(&mut bench), [1, 1]);
        bench.verify();
        let rows = bench.values("t");
        assert_eq!(rows.len(), 3000);
        steps
    };
    assert_eq!(steps(false), 2);
    let bounded = steps(true);
    assert!(bounded > 6, "{bounded} merges");
}
