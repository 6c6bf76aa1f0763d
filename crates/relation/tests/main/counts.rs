//! Rows that are counted by entries of an index are those that are there.

use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{
    BUDGET_BYTES_MIN, Comparison, Constant, IndexId, KeyBound, KeyRange, NewColumn, NewIndex, NewTable, NoScratch,
    Output, Plan, Progress, Relations, RowId, Source, Table, Test, Type, Vacuum, Value,
};

use crate::bench::{Bench, int, rounds};

/// How many rows there are of which tests are true, and whether entries of an index said so.
pub fn count(relations: &Relations, view: &Snapshot, table: &Table, tests: Vec<Test>, budget: usize) -> (u64, bool) {
    let source = Source { table: Arc::new(table.clone()), path: None, tests, is_optional: false };
    let plan = Plan { sources: vec![source], outputs: vec![Output::CountRows; 2], shown: 2, ..Plan::default() };
    let mut answer = relations.answer(view.clone(), plan, budget).unwrap();
    let by_entries = answer.by().iter().any(|by| by.starts_with("entries of "));
    let mut told = None;
    loop {
        match answer.step(relations, &mut NoScratch).unwrap() {
            Progress::Working => {}
            Progress::Rows(rows) => assert!(told.replace(rows.row(0).unwrap()).is_none() && rows.count() == 1),
            Progress::End => break,
        }
    }
    let told = told.expect("a count of no rows is a row");
    let Value::BigInt(count) = told[0] else { panic!("{told:?}") };
    assert_eq!(told[0], told[1]);
    (count as u64, by_entries)
}

/// A range of an index, as a condition says it.
pub fn tests_of(table: &Table, index: IndexId, range: &KeyRange) -> Vec<Test> {
    let columns: Vec<usize> =
        table.index(index).unwrap().columns.iter().map(|id| table.position(*id).unwrap()).collect();
    let compare =
        |column: usize, comparison, value: &Value| Test::Compare { column, comparison, constant: constant(value) };
    let of_prefix = |(column, value): (&usize, &Value)| match value {
        Value::Null => Test::Null { column: *column, wanted: true },
        value => compare(*column, Comparison::Equal, value),
    };
    let mut tests: Vec<Test> = columns.iter().zip(&range.prefix).map(of_prefix).collect();
    if let Some((low, high)) = &range.bounds {
        let next = columns[range.prefix.len()];
        match low {
            KeyBound::Unbounded => {}
            KeyBound::Included(value) => tests.push(compare(next, Comparison::AtLeast, value)),
            KeyBound::Excluded(value) => tests.push(compare(next, Comparison::Greater, value)),
        }
        match high {
            KeyBound::Unbounded => {}
            KeyBound::Included(value) => tests.push(compare(next, Comparison::AtMost, value)),
            KeyBound::Excluded(value) => tests.push(compare(next, Comparison::Less, value)),
        }
    }
    tests
}

fn constant(value: &Value) -> Constant {
    match value {
        Value::Integer(number) => Constant::Whole((*number).into()),
        Value::BigInt(number) => Constant::Whole(*number),
        Value::Double(number) => Constant::Float(*number),
        Value::Text(text) => Constant::Bytes(text.clone().into_bytes()),
        other => panic!("{other:?}"),
    }
}

/// a number, a text and a double, each with an index.
fn bench(seed: u64, fresh_rows: usize) -> (Bench, Arc<Table>) {
    let mut bench = Bench::with_fresh_rows(seed, fresh_rows);
    let columns =
        vec![NewColumn::new("n", Type::Integer), NewColumn::new("t", Type::Text), NewColumn::new("d", Type::Double)];
    let table = bench.create(&NewTable { name: "t".into(), columns, ..NewTable::default() });
    for column in ["n", "t", "d"] {
        let new = NewIndex { name: None, columns: vec![column.into()], unique: false };
        bench.statement(|relations, writer| relations.create_index(writer, &table, &new)).unwrap();
    }
    let table = bench.table("t");
    (bench, table)
}

fn row(number: i32) -> Vec<Value> {
    vec![int(number), Value::Text(format!("text {number}")), Value::Double(number.into())]
}

fn equal(column: usize, value: &Value) -> Test {
    Test::Compare { column, comparison: Comparison::Equal, constant: constant(value) }
}

fn counted(bench: &mut Bench, table: &Table, tests: Vec<Test>) -> (u64, bool) {
    count(&bench.relations, &bench.writer.snapshot(), table, tests, 1 << 20)
}

/// What is told by entries, where the engine counts by them: a device looks at rows.
fn by_entries(count: u64) -> (u64, bool) {
    (count, !cfg!(feature = "small"))
}

#[test]
fn what_one_index_says_whole_is_counted_by_its_entries() {
    let (mut bench, table) = bench(0, 16);
    bench.insert("t", &(0..200).map(|number| row(number % 20)).collect::<Vec<_>>()).unwrap();
    let table = bench.table(&table.name);
    let n = |comparison, number: i64| Test::Compare { column: 0, comparison, constant: Constant::Whole(number) };
    assert_eq!(counted(&mut bench, &table, vec![n(Comparison::Equal, 7)]), by_entries(10));
    assert_eq!(counted(&mut bench, &table, vec![n(Comparison::Equal, 99)]), by_entries(0));
    assert_eq!(counted(&mut bench, &table, vec![n(Comparison::AtLeast, 3), n(Comparison::Less, 5)]), by_entries(20));
    let listed = Test::In { column: 0, constants: [1, 2, 2, 50].map(Constant::Whole).to_vec() };
    assert_eq!(counted(&mut bench, &table, vec![Test::All(vec![listed])]), by_entries(20));
    assert_eq!(counted(&mut bench, &table, vec![Test::Null { column: 1, wanted: true }]), by_entries(0));
    // NULL is between no bounds.
    let is_there = Test::Null { column: 0, wanted: false };
    assert_eq!(counted(&mut bench, &table, vec![n(Comparison::Less, 9), is_there]), by_entries(90));
    // What an index does not say, or not whole, is asked of rows.
    for (tests, expected) in [
        (vec![n(Comparison::Equal, 7), equal(1, &Value::Text("text 7".into()))], 10),
        (vec![n(Comparison::Equal, 7), n(Comparison::Equal, 8)], 0),
        (vec![n(Comparison::Less, 9), n(Comparison::Less, 2)], 20),
        (vec![n(Comparison::Equal, 7), n(Comparison::Unequal, 7)], 0),
        (vec![Test::Any(vec![n(Comparison::Equal, 7), equal(2, &Value::Double(8.0))])], 20),
        (vec![Test::Never], 0),
        (vec![], 200),
    ] {
        assert_eq!(counted(&mut bench, &table, tests), (expected, false));
    }
}

#[test]
fn zeros_of_both_signs_and_long_texts_are_told_apart_by_rows() {
    let (mut bench, table) = bench(0, 16);
    let long = |last: &str| Value::Text("x".repeat(600) + last);
    let doubles = [0.0, -0.0, 0.0, 1.0, f64::NAN, -f64::NAN];
    let rows = doubles.iter().map(|double| vec![int(1), long("a"), Value::Double(*double)]);
    bench.insert("t", &rows.chain([vec![int(1), long("b"), Value::Null]]).collect::<Vec<_>>()).unwrap();
    let table = bench.table(&table.name);
    assert_eq!(counted(&mut bench, &table, vec![equal(2, &Value::Double(0.0))]), (2, false));
    assert_eq!(counted(&mut bench, &table, vec![equal(1, &long("a"))]), (6, false));
    assert_eq!(counted(&mut bench, &table, vec![equal(1, &long("b"))]), (1, false));
}

/// A row that was updated away and back has the same entry in two runs, and once both were merged since, neither knows of a change. Which
/// runs are merged when is left to the dice.
#[test]
fn a_row_that_two_runs_name_is_counted_once() {
    for seed in 0..rounds(400, 4000) {
        // One row after another, or some again and again among those that come.
        let (again, seed) = (seed % 2 == 1, seed / 2);
        let (mut bench, table) = bench(seed, 1 + (seed % 3) as usize);
        let first = bench.insert("t", &(0..12).map(|number| row(number % 3)).collect::<Vec<_>>()).unwrap();
        let mut there: Vec<i32> = (0..12).map(|number| number % 3).collect();
        for _ in 0..if again { 60 } else { 120 } {
            let few = if again { 4 + bench.dice(there.len() as u64 - 4) } else { there.len() as u64 };
            let place = bench.dice(few) as usize;
            let before = there[place];
            for step in 0..1 + u64::from(again) {
                there[place] = if step > 0 && bench.dice(2) == 0 { before } else { bench.dice(3) as i32 };
                bench.update("t", &[RowId(first.0 + place as u64)], &[row(there[place])]).unwrap();
            }
            if again && bench.dice(8) == 0 {
                bench.statement(|relations, writer| relations.maintain(writer)).unwrap();
            }
            if again && bench.dice(4) == 0 {
                there.push(bench.dice(3) as i32);
                bench.insert("t", &[row(there[there.len() - 1])]).unwrap();
            }
            let table = bench.table(&table.name);
            if bench.dice(6) == 0 {
                let mut vacuum = Vacuum::of(table.id);
                bench.statement(|relations, writer| relations.vacuum_step(writer, &mut vacuum)).unwrap();
            }
            // One value, several, or all between two: what one run says of a row is counted beside what another says of it no more.
            let (low, high) = (bench.dice(3) as i32, bench.dice(3) as i32);
            let compare = |comparison, number: i32| Test::Compare {
                column: 0,
                comparison,
                constant: Constant::Whole(number.into()),
            };
            let listed = [low, high].map(|number| Constant::Whole(number.into())).to_vec();
            let asked = [
                (compare(Comparison::Equal, low), vec![low]),
                (Test::In { column: 0, constants: listed }, vec![low, high]),
                (
                    Test::All(vec![compare(Comparison::AtLeast, low), compare(Comparison::Less, high)]),
                    (low..high).collect(),
                ),
            ];
            for (test, wanted) in asked {
                let expected = there.iter().filter(|number| wanted.contains(number)).count() as u64;
                for budget in [BUDGET_BYTES_MIN, 1 << 20] {
                    let view = bench.writer.snapshot();
                    let (rows, _) = count(&bench.relations, &view, &table, vec![test.clone()], budget);
                    assert_eq!(rows, expected, "seed {seed}");
                }
            }
        }
        bench.verify();
    }
}

#[test]
fn rows_that_are_gone_or_rolled_back_are_not_counted() {
    let (mut bench, table) = bench(0, 4);
    let first = bench.insert("t", &(0..40).map(|number| row(number % 2)).collect::<Vec<_>>()).unwrap();
    let before = bench.writer.snapshot();
    let gone: Vec<RowId> = (0..10).map(|place| RowId(first.0 + 2 * place)).collect();
    bench.delete("t", &gone).unwrap();
    bench.begin();
    bench.insert("t", &[row(0), row(0)]).unwrap();
    bench.rollback();
    bench.insert("t", &[row(1)]).unwrap();
    let table = bench.table(&table.name);
    assert_eq!(counted(&mut bench, &table, vec![equal(0, &int(0))]).0, 10);
    assert_eq!(counted(&mut bench, &table, vec![equal(0, &int(1))]).0, 21);
    assert_eq!(count(&bench.relations, &before, &table, vec![equal(0, &int(0))], 1 << 20).0, 20);
}
