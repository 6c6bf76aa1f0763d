//! Questions to a table and what its rows join, against loops over all rows.

use std::collections::BTreeMap;

use counterfoil_relation::{
    Comparison, Condition, Constant, KeptRows, NO_ROW, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, RowId,
    Source, Test, Type, Value,
};

use crate::bench::{Bench, int, rounds};

/// far <- near <- root, each with a key, two columns with an index each and one without.
fn populated(seed: u64) -> Bench {
    let mut bench = Bench::with_fresh_rows(seed, 200);
    for (name, parent, count) in
        [("far", None, 60), ("near", Some(("far", 60)), 300), ("root", Some(("near", 300)), 3000)]
    {
        let columns = ["id", "parent", "a", "b", "c"].map(|column| NewColumn::new(column, Type::Integer)).to_vec();
        let reference = |(parent, _): (&str, i32)| NewForeignKey {
            columns: vec!["parent".into()],
            parent: parent.into(),
            ..NewForeignKey::default()
        };
        bench.create(&NewTable {
            name: name.into(),
            columns,
            primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
            foreign_keys: parent.map(reference).into_iter().collect(),
            ..NewTable::default()
        });
        for columns in [vec!["a"], vec!["b"], vec!["b", "c"]] {
            let table = bench.table(name);
            let columns = columns.into_iter().map(String::from).collect();
            let index = NewIndex { columns, ..NewIndex::default() };
            bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
        }
        let rows: Vec<_> = (0..count).map(|id| row(&mut bench, id, parent.map(|(_, count)| count))).collect();
        bench.insert(name, &rows).unwrap();
    }
    bench
}

fn row(bench: &mut Bench, id: i32, parents: Option<i32>) -> Vec<Value> {
    let parent = match parents {
        Some(parents) if bench.dice(10) > 0 => int(bench.dice(parents as u64) as i32),
        _ => Value::Null,
    };
    let mut some = |sides: u64| if bench.dice(12) == 0 { Value::Null } else { int(bench.dice(sides) as i32) };
    vec![int(id), parent, some(40), some(100), some(5)]
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(i64::from(*number)),
        Value::BigInt(number) => Some(*number),
        _ => None,
    }
}

/// What a test says of a row, by its own words.
fn is_true(test: &Test, row: &[Value]) -> bool {
    match test {
        Test::Null { column, wanted } => (row[*column] == Value::Null) == *wanted,
        Test::Compare { column, comparison, constant: Constant::Whole(number) } => {
            whole(&row[*column]).is_some_and(|value| match comparison {
                Comparison::Equal => value == *number,
                Comparison::Unequal => value != *number,
                Comparison::Less => value < *number,
                Comparison::AtMost => value <= *number,
                Comparison::Greater => value > *number,
                Comparison::AtLeast => value >= *number,
            })
        }
        Test::In { column, constants } => {
            whole(&row[*column]).is_some_and(|value| constants.contains(&Constant::Whole(value)))
        }
        Test::All(tests) => tests.iter().all(|test| is_true(test, row)),
        Test::Any(tests) => tests.iter().any(|test| is_true(test, row)),
        _ => false,
    }
}

fn some_test(bench: &mut Bench, depth: u32) -> Test {
    let column = [0, 2, 2, 3, 3, 4][bench.dice(6) as usize];
    let constant = |bench: &mut Bench| Constant::Whole(bench.dice([3000, 0, 40, 100, 5][column]) as i64);
    match bench.dice(if depth == 0 { 8 } else { 11 }) {
        0 => Test::Null { column, wanted: bench.dice(3) > 0 },
        1 => Test::In { column, constants: (0..bench.dice(5)).map(|_| constant(bench)).collect() },
        2 => Test::Never,
        3 | 4 => {
            let all =
                [Comparison::Unequal, Comparison::Less, Comparison::AtMost, Comparison::Greater, Comparison::AtLeast];
            Test::Compare { column, comparison: all[bench.dice(5) as usize], constant: constant(bench) }
        }
        5..=7 => Test::Compare { column, comparison: Comparison::Equal, constant: constant(bench) },
        8 => some_test(bench, depth - 1).or(some_test(bench, depth - 1)),
        9 => Test::All((0..1 + bench.dice(3)).map(|_| some_test(bench, depth - 1)).collect()),
        _ => Test::Any((0..1 + bench.dice(3)).map(|_| some_test(bench, depth - 1)).collect()),
    }
}

/// A condition on rows of all three.
fn some_condition(bench: &mut Bench, depth: u32) -> Condition {
    match bench.dice(if depth == 0 { 4 } else { 10 }) {
        0..4 => Condition::Of(bench.dice(3) as usize, some_test(bench, 1)),
        4 | 5 => Condition::All((0..1 + bench.dice(3)).map(|_| some_condition(bench, depth - 1)).collect()),
        6 => Condition::Any((0..1 + bench.dice(3)).map(|_| some_condition(bench, depth - 1)).collect()),
        _ => some_condition(bench, depth - 1).or(some_condition(bench, depth - 1)),
    }
}

/// Alternatives that name few rows each, some of them of two tables.
fn few_alternatives(bench: &mut Bench) -> Condition {
    let equal = |bench: &mut Bench| {
        let (source, column) = (bench.dice(3) as usize, [0, 2, 3][bench.dice(3) as usize]);
        let constant = Constant::Whole(bench.dice([60, 0, 40, 100][column]) as i64);
        Condition::Of(source, Test::Compare { column, comparison: Comparison::Equal, constant })
    };
    let one = |bench: &mut Bench| match bench.dice(3) {
        0 => Condition::All(vec![equal(bench), some_condition(bench, 1)]),
        _ => equal(bench),
    };
    (0..1 + bench.dice(2)).fold(one(bench), |any, _| any.or(one(bench)))
}

/// What a condition says of rows, by its own words: one that is not there is one of NULLs.
fn holds(condition: &Condition, rows: &[Option<&Vec<Value>>]) -> bool {
    match condition {
        Condition::Of(source, test) => is_true(test, rows[*source].unwrap_or(&vec![Value::Null; 5])),
        Condition::All(all) => all.iter().all(|condition| holds(condition, rows)),
        Condition::Any(any) => any.iter().any(|condition| holds(condition, rows)),
    }
}

type Rows = BTreeMap<RowId, Vec<Value>>;

/// The row that a row joins: the one whose key it has.
fn parent_of(rows: &Rows, row: &[Value]) -> Option<RowId> {
    let wanted = &row[1];
    rows.iter().find(|(_, parent)| *wanted != Value::Null && parent[0] == *wanted).map(|(id, _)| *id)
}

#[test]
fn indexes_name_all_rows_and_the_rows_decide() {
    let (mut named_often, mut joined_often, mut merged_often) = (0, 0, 0);
    for seed in 0..rounds(2, 20) {
        let mut bench = populated(seed);
        change(&mut bench);
        let names = ["root", "near", "far"];
        let all: Vec<Rows> = names.iter().map(|name| bench.rows(name).into_iter().collect()).collect();
        let tables = names.map(|name| bench.table(name));
        for _ in 0..rounds(60, 400) {
            // Without tests of their own alternatives alone say which rows there are.
            let tests_max = if bench.dice(3) == 0 { 1 } else { 3 };
            let sources: Vec<Source> = tables
                .iter()
                .enumerate()
                .map(|(number, table)| Source {
                    table: table.clone(),
                    path: number.checked_sub(1),
                    tests: (0..bench.dice(tests_max)).map(|_| some_test(&mut bench, 2)).collect(),
                    is_optional: number > 0 && bench.dice(4) == 0,
                })
                .collect();
            let condition = |bench: &mut Bench| match bench.dice(3) {
                0 => some_condition(bench, 2),
                _ => few_alternatives(bench),
            };
            let conditions: Vec<Condition> = (0..bench.dice(3)).map(|_| condition(&mut bench)).collect();
            let view = bench.writer.pending();
            let named: Vec<_> = sources
                .iter()
                .map(|source| bench.relations.named_rows(&view, &source.table, &source.tests).unwrap())
                .collect();
            for ((source, named), rows) in sources.iter().zip(&named).zip(&all) {
                let Some(named) = named else { continue };
                named_often += 1;
                assert!(named.rows.is_sorted_by(|one, other| one < other), "ascending, each once");
                let missing = rows.iter().find(|(id, row)| {
                    source.tests.iter().all(|test| is_true(test, row)) && named.rows.binary_search(id).is_err()
                });
                assert!(missing.is_none(), "{missing:?} by {}", named.index);
            }
            let expected = expected(&sources, &conditions, &all);
            let named: Vec<_> = named.iter().map(Option::as_ref).collect();
            let every: Vec<RowId> = all[0].keys().copied().collect();
            assert_eq!(read(&mut bench, &sources, &conditions, &every), expected);
            let candidates =
                bench.relations.candidates_where(&view, &sources, &conditions, &named, usize::MAX).unwrap();
            if let Some(candidates) = candidates {
                joined_often += 1;
                merged_often += usize::from(candidates.by.iter().any(|by| by.contains(" or ")));
                assert!(candidates.rows.is_sorted_by(|one, other| one < other), "ascending, each once");
                assert_eq!(read(&mut bench, &sources, &conditions, &candidates.rows), expected, "{:?}", candidates.by);
                let mut in_reading_order = candidates.in_reading_order();
                in_reading_order.sort_unstable();
                assert_eq!(in_reading_order, candidates.rows, "{:?}", candidates.by);
            }
        }
    }
    assert!(named_often > 50 && joined_often > 20, "{named_often}, {joined_often}");
    assert!(merged_often > 10, "{merged_often} of {joined_often} by alternatives");
}

#[test]
fn what_an_outer_join_does_not_find_is_a_row_of_nulls() {
    let mut bench = populated(3);
    let all: Vec<Rows> = ["root", "near", "far"].iter().map(|name| bench.rows(name).into_iter().collect()).collect();
    let equal = |column: usize, number: i64| Test::Compare {
        column,
        comparison: Comparison::Equal,
        constant: Constant::Whole(number),
    };
    // No row that is there has no key.
    let is_none = |source| Condition::Of(source, Test::Null { column: 0, wanted: true });
    let sources = ["root", "near", "far"].iter().enumerate().map(|(number, name)| Source {
        table: bench.table(name),
        path: number.checked_sub(1),
        tests: if number == 1 { vec![equal(2, 5)] } else { Vec::new() },
        is_optional: number > 0,
    });
    let sources: Vec<Source> = sources.collect();
    let view = bench.writer.pending();
    for conditions in [
        vec![is_none(1)],
        vec![is_none(1).or(Condition::Of(0, equal(2, 3)))],
        vec![is_none(2).or(Condition::Of(1, equal(3, 7))), Condition::Of(0, equal(3, 9))],
        vec![Condition::Of(1, Test::Null { column: 0, wanted: false })],
    ] {
        let expected = expected(&sources, &conditions, &all);
        assert!(!expected.is_empty());
        let every: Vec<RowId> = all[0].keys().copied().collect();
        assert_eq!(read(&mut bench, &sources, &conditions, &every), expected);
        let candidates =
            bench.relations.candidates_where(&view, &sources, &conditions, &[None; 3], usize::MAX).unwrap();
        let rows = candidates.map_or(every, |candidates| candidates.rows);
        assert_eq!(read(&mut bench, &sources, &conditions, &rows), expected);
    }
}

/// Deletes, and keys that change.
fn change(bench: &mut Bench) {
    let rows = bench.rows("root");
    let gone: Vec<RowId> = rows.iter().map(|(id, _)| *id).filter(|id| id.0 % 17 == 3).collect();
    bench.delete("root", &gone).unwrap();
    let moved: Vec<_> = rows.into_iter().filter(|(id, _)| id.0 % 13 == 5 && id.0 % 17 != 3).collect();
    let ids: Vec<RowId> = moved.iter().map(|(id, _)| *id).collect();
    let images: Vec<_> = moved.iter().map(|(id, _)| row(bench, id.0 as i32, Some(300))).collect();
    bench.update("root", &ids, &images).unwrap();
}

/// The rows of the answer: of each source the row, or none.
fn expected(sources: &[Source], conditions: &[Condition], all: &[Rows]) -> Vec<Vec<Option<RowId>>> {
    let mut answer = Vec::new();
    'rows: for (id, row) in &all[0] {
        let near = parent_of(&all[1], row);
        let far = near.and_then(|near| parent_of(&all[2], &all[1][&near]));
        let mut line = Vec::new();
        for ((source, rows), at) in sources.iter().zip(all).zip([Some(*id), near, far]) {
            let at = at.filter(|at| source.tests.iter().all(|test| is_true(test, &rows[at])));
            if at.is_none() && !source.is_optional {
                continue 'rows;
            }
            line.push(at);
        }
        let rows: Vec<_> = line.iter().zip(all).map(|(at, rows)| at.map(|at| &rows[&at])).collect();
        if conditions.iter().all(|condition| holds(condition, &rows)) {
            answer.push(line);
        }
    }
    answer
}

/// Reads some rows a few at a time, of each source what is tested and some columns more, and holds those against the rows themselves.
fn read(bench: &mut Bench, sources: &[Source], conditions: &[Condition], rows: &[RowId]) -> Vec<Vec<Option<RowId>>> {
    let columns: Vec<Vec<usize>> = sources
        .iter()
        .map(|source| match conditions.is_empty() {
            true => (0..5).filter(|column| source.tested_columns().contains(column) || bench.dice(2) == 0).collect(),
            false => (0..5).collect(),
        })
        .map(|columns: Vec<usize>| if columns.is_empty() { vec![2] } else { columns })
        .collect();
    let mut kept = KeptRows::within(bench.dice(3) as usize * 2000);
    let piece_rows = 1 + bench.dice(501) as usize;
    let view = bench.writer.pending();
    let mut answer = Vec::new();
    for piece in rows.chunks(piece_rows) {
        let asked = (sources, conditions);
        let joined = bench.relations.read_kept(&view, asked, &columns, piece, &mut kept).unwrap();
        for row in 0..joined.count {
            let of_side = |side: &Option<counterfoil_relation::Side>| {
                let side = side.as_ref().unwrap();
                Some(side.places[row]).filter(|place| *place != NO_ROW).map(|place| side.block.id(place as usize))
            };
            answer.push(joined.sides.iter().map(of_side).collect());
        }
        for ((side, source), columns) in joined.sides.iter().zip(sources).zip(&columns) {
            let block = &side.as_ref().unwrap().block;
            let ids: Vec<RowId> = (0..block.count()).map(|row| block.id(row)).collect();
            let whole = bench.relations.fetch(&view, &source.table, &ids, None).unwrap();
            for (row, column) in block.visible_rows().flat_map(|row| columns.iter().map(move |column| (row, *column))) {
                assert_eq!(block.rows.value(row, column).unwrap(), whole.rows.value(row, column).unwrap());
            }
        }
    }
    answer
}
