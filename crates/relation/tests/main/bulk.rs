//! Rows that come many at a time: their index entries become a run at once, whatever was fresh before.

use counterfoil_relation::{NewColumn, NewIndex, NewKey, NewTable, RowId, Type, Value};

use crate::bench::{Bench, int, text};

/// Rows after which entries become a run.
const FRESH_ROWS: usize = 50;

fn bench() -> Bench {
    let mut bench = Bench::with_fresh_rows(2, FRESH_ROWS);
    bench.create(&NewTable {
        name: "t".into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("name", Type::Text)],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        ..NewTable::default()
    });
    let table = bench.table("t");
    let index = NewIndex { columns: vec!["name".into()], ..NewIndex::default() };
    bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    bench
}

/// Names that are told apart late or not at all, and some that are NULL, in no order.
fn rows(ids: std::ops::Range<i32>) -> Vec<Vec<Value>> {
    let name = |id: i32| match id % 7 {
        0 => Value::Null,
        1 => text(""),
        2 => text("the same to its end"),
        _ => text(&format!("the same for sixteen letters, then {}", id * 37 % 100)),
    };
    ids.map(|id| vec![int(id * 31 % 1009), name(id)]).collect()
}

/// For each index its runs, and rows that are in none of them.
fn indexes(bench: &mut Bench) -> Vec<(usize, u64)> {
    let table = bench.table("t");
    let view = bench.writer.pending();
    let told = bench.relations.figures(&view, &table).unwrap();
    told.indexes.iter().map(|index| (index.runs.len(), index.fresh_rows)).collect()
}

#[test]
fn what_was_fresh_before_becomes_a_run_of_its_own() {
    let mut bench = bench();
    bench.insert("t", &rows(0..10)).unwrap();
    assert_eq!(indexes(&mut bench), [(0, 10), (0, 10)]);
    bench.insert("t", &rows(10..100)).unwrap();
    let in_runs = if cfg!(feature = "small") { [(1, 0), (1, 0)] } else { [(2, 0), (2, 0)] };
    assert_eq!(indexes(&mut bench), in_runs);
    bench.verify();
    // What was updated waits as well, and is found by what it was and by what it became.
    bench.update("t", &[RowId(3), RowId(40)], &[vec![int(5000), text("a")], vec![int(5001), Value::Null]]).unwrap();
    bench.delete("t", &[RowId(4)]).unwrap();
    bench.insert("t", &rows(100..200)).unwrap();
    bench.verify();
    bench.insert("t", &rows(200..210)).unwrap();
    assert!(indexes(&mut bench).iter().all(|(_, fresh)| *fresh == 10));
    bench.verify();
    bench.reopen();
    bench.verify();
    assert_eq!(bench.rows("t").len(), 209);
}

#[test]
fn many_rows_that_are_rolled_back_leave_nothing() {
    let mut bench = bench();
    bench.insert("t", &rows(0..70)).unwrap();
    bench.begin();
    bench.insert("t", &rows(70..75)).unwrap();
    bench.insert("t", &rows(75..200)).unwrap();
    bench.rollback();
    assert!(indexes(&mut bench).iter().all(|index| *index == (1, 0)));
    // Others get their numbers.
    bench.insert("t", &rows(300..400)).unwrap();
    bench.verify();
    // A key that is there, or comes twice, is refused with all that came with it.
    let twice = [rows(500..600), rows(599..600)].concat();
    assert!(bench.insert("t", &twice).is_err());
    assert!(bench.insert("t", &[rows(600..700), rows(20..21)].concat()).is_err());
    bench.verify();
    assert_eq!(bench.rows("t").len(), 170);
}

#[test]
fn runs_of_many_rows_and_of_few_are_merged_however_they_follow_each_other() {
    let mut bench = bench();
    let mut next = 0;
    let mut rows = |count: i32| {
        let ids = next..next + count;
        next += count;
        ids.map(|id| vec![int(id), text(&format!("name {}", id % 10))]).collect::<Vec<_>>()
    };
    for round in 0..40 {
        // More than eight times as many as become a run, alone, or behind one row that was fresh.
        bench.insert("t", &rows(450)).unwrap();
        if round % 3 > 0 {
            bench.insert("t", &rows(1)).unwrap();
        }
        while bench.statement(|relations, writer| relations.maintain(writer)).unwrap() {}
        let most = indexes(&mut bench).into_iter().map(|(runs, _)| runs).max();
        assert!(most.is_some_and(|runs| runs < 20), "{most:?} runs after {round}");
    }
    bench.verify();
    bench.reopen();
    bench.verify();
}
