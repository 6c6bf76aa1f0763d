//! The first rows of an order, and least and greatest values, by what an index says of its ends: as reading all rows has them.

use counterfoil_relation::{
    Access, Comparison, Constant, Function, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, NoScratch, Order,
    Output, Place, Plan, RowId, Source, Test, Type, Value,
};

use crate::bench::{Bench, int, rounds, text};

/// Rows of the parent.
const PARENTS: i32 = 40;
/// Enough for rows in question, far from enough for all.
const BUDGET: usize = 1 << 20;

/// readings -> devices, with indexes in several orders: many values alike, some NULL, some not a number.
fn populated(seed: u64, rows: i32) -> Bench {
    let mut bench = Bench::with_fresh_rows(seed, 300);
    let key = Some(NewKey { name: None, columns: vec!["id".into()] });
    bench.create(&NewTable {
        name: "devices".into(),
        columns: vec![NewColumn::new("id", Type::Integer), NewColumn::new("site", Type::Integer)],
        primary_key: key.clone(),
        ..NewTable::default()
    });
    let parents: Vec<_> = (0..PARENTS).map(|id| vec![int(id), int(id % 5)]).collect();
    bench.insert("devices", &parents).unwrap();
    let kinds = [Type::Integer, Type::Integer, Type::Integer, Type::Text, Type::Double];
    let names = ["id", "device", "number", "note", "weight"];
    bench.create(&NewTable {
        name: "readings".into(),
        columns: names.iter().zip(kinds).map(|(name, kind)| NewColumn::new(*name, kind)).collect(),
        primary_key: key,
        foreign_keys: vec![NewForeignKey {
            columns: vec!["device".into()],
            parent: "devices".into(),
            ..NewForeignKey::default()
        }],
        ..NewTable::default()
    });
    for columns in [vec!["number"], vec!["note"], vec!["weight"], vec!["device", "number"]] {
        let table = bench.table("readings");
        let index = NewIndex { columns: columns.into_iter().map(String::from).collect(), ..NewIndex::default() };
        bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    }
    let rows: Vec<_> = (0..rows).map(|id| row(&mut bench, id)).collect();
    bench.insert("readings", &rows).unwrap();
    bench
}

fn row(bench: &mut Bench, id: i32) -> Vec<Value> {
    let device = if bench.dice(9) == 0 { Value::Null } else { int(bench.dice(PARENTS as u64) as i32) };
    let number = if bench.dice(40) == 0 { Value::Null } else { int(bench.dice(2000) as i32 - 1000) };
    let note = if bench.dice(50) == 0 { Value::Null } else { text(&format!("note {}", bench.dice(5000))) };
    let weight = match bench.dice(300) {
        0 => f64::NAN,
        1 => -0.0,
        2 | 3 => 0.0,
        _ => bench.dice(4000) as f64 / 16.0 - if bench.dice(2) == 0 { 0.0 } else { 250.0 },
    };
    vec![int(id), device, number, note, Value::Double(weight)]
}

/// Some keys move to an end or away from it, some rows go.
fn change(bench: &mut Bench) {
    let rows = bench.rows("readings");
    let gone: Vec<RowId> = rows.iter().map(|(id, _)| *id).filter(|id| id.0 % 11 == bench.dice(11)).collect();
    bench.delete("readings", &gone).unwrap();
    let moved: Vec<_> = rows.into_iter().filter(|(id, _)| id.0 % 7 == 3 && !gone.contains(id)).collect();
    let ids: Vec<RowId> = moved.iter().map(|(id, _)| *id).collect();
    let images: Vec<_> = moved
        .into_iter()
        .map(|(_, old)| {
            let Value::Integer(id) = old[0] else { unreachable!("a key is a number") };
            let mut new = row(bench, id);
            // Some lie inside of their old entries, and some have several at an end.
            new[2] = match bench.dice(3) {
                0 => int(bench.dice(20) as i32),
                1 => int(990 + bench.dice(20) as i32),
                _ => int(-1010 + bench.dice(20) as i32),
            };
            new
        })
        .collect();
    bench.update("readings", &ids, &images).unwrap();
}

/// What is asked: the first of an order, or values at its ends, of readings or of what they join as well.
fn some_plan(bench: &mut Bench) -> Plan {
    let place = |column| Place { source: 0, column };
    let column = [0, 2, 2, 3, 4][bench.dice(5) as usize];
    let mut sources =
        vec![Source { table: bench.table("readings"), path: None, tests: Vec::new(), is_optional: false }];
    let compare = |column, comparison, number| Test::Compare { column, comparison, constant: Constant::Whole(number) };
    match bench.dice(6) {
        0 => sources[0].tests.push(compare(1, Comparison::Equal, bench.dice(PARENTS as u64) as i64)),
        1 => sources[0].tests.push(compare(2, Comparison::Greater, bench.dice(2000) as i64 - 1000)),
        2 => sources[0].tests.push(compare(0, Comparison::Unequal, 5)),
        // From here on or down to here the nearest are zeros.
        3 if column == 4 => {
            let (comparison, constant) =
                [(Comparison::Greater, -0.01), (Comparison::Less, 0.01)][bench.dice(2) as usize];
            sources[0].tests.push(Test::Compare { column, comparison, constant: Constant::Float(constant) });
        }
        _ => {}
    }
    if bench.dice(3) == 0 {
        let tests = if bench.dice(2) == 0 { vec![compare(1, Comparison::Equal, 3)] } else { Vec::new() };
        let is_optional = bench.dice(2) == 0;
        sources.push(Source { table: bench.table("devices"), path: Some(0), tests, is_optional });
    }
    let mut plan = Plan { sources, ..Plan::default() };
    if bench.dice(3) == 0 {
        let functions = [Function::Least, Function::Greatest];
        let count = 1 + bench.dice(2) as usize;
        plan.outputs = functions
            .into_iter()
            .cycle()
            .skip(bench.dice(2) as usize)
            .take(count)
            .map(|function| Output::Aggregate(function, place(column)))
            .collect();
    } else {
        plan.outputs = [column, 0, 1].map(|column| Output::Column(place(column))).to_vec();
        if plan.sources.len() > 1 {
            plan.outputs.push(Output::Column(Place { source: 1, column: 1 }));
        }
        let (is_descending, nulls_first) = (bench.dice(2) == 0, bench.dice(2) == 0);
        plan.order.push(Order { output: 0, is_descending, nulls_first });
        plan.order.push(Order { output: 1, is_descending: bench.dice(2) == 0, nulls_first });
        plan.limit = Some(1 + bench.dice(30));
        plan.offset = if bench.dice(3) == 0 { bench.dice(20) } else { 0 };
    }
    plan.shown = plan.outputs.len();
    plan
}

/// The answer in words, and whether an index named its rows.
fn answer(bench: &mut Bench, plan: Plan, kinds: &[Type]) -> (Vec<String>, bool) {
    let mut answer = bench.relations.answer(bench.writer.pending(), plan, BUDGET).unwrap();
    let by_index = answer.candidates().is_some();
    let mut lines = Vec::new();
    while let Some(rows) = answer.next(&bench.relations, &mut NoScratch).unwrap() {
        for row in 0..rows.count() {
            let word = |column: usize| match rows.value(row, column).unwrap().to_owned() {
                Value::Null => "-".into(),
                Value::Text(text) => text,
                // Zeros are alike, and so is whatever is not a number.
                Value::Double(number) => (number + 0.0).to_string(),
                Value::Integer(number) => number.to_string(),
                _ => unreachable!("a value of another type"),
            };
            lines.push((0..kinds.len()).map(word).collect::<Vec<_>>().join("|"));
        }
    }
    (lines, by_index)
}

#[test]
fn the_first_of_an_order_are_found_at_its_end() {
    let mut bounded = 0;
    for seed in 0..rounds(3, 12) {
        let mut bench = populated(seed, 3000);
        for round in 0..3 {
            for _ in 0..rounds(60, 400) {
                let plan = some_plan(&mut bench);
                let kinds: Vec<Type> = plan.outputs.iter().map(|output| plan.kind_of(*output).unwrap()).collect();
                let all = Plan { access: Access::Scan, ..plan.clone() };
                let is_free = plan.sources.iter().all(|source| source.tests.is_empty());
                let (found, by_index) = answer(&mut bench, plan, &kinds);
                let (expected, _) = answer(&mut bench, all, &kinds);
                assert_eq!(found, expected, "seed {seed}, round {round}");
                bounded += u32::from(is_free && by_index);
            }
            change(&mut bench);
            if round == 0 {
                bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
            }
        }
    }
    assert!(bounded > 100, "{bounded} by an index");
}
