//! Tables and questions to them, of all sorts.

use std::sync::Arc;

use counterfoil_relation::{
    Access, Comparison, Condition, Constant, Function, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, Order,
    Output, Place, Plan, RowId, Source, Table, Test, Type, Value,
};

use crate::bench::{Bench, int, text};

const SOURCES: [(&str, Option<&str>, i32); 3] =
    [("far", None, 40), ("near", Some("far"), 300), ("root", Some("near"), 2000)];
/// The columns of each table: its key, its parent's, a number, a larger one, an amount, a text that is sometimes long.
pub const KINDS: [Type; 6] =
    [Type::Integer, Type::Integer, Type::SmallInt, Type::BigInt, Type::Numeric { precision: 12, scale: 2 }, Type::Text];

/// far <- near <- root.
pub fn populated(seed: u64) -> Bench {
    let mut bench = Bench::with_fresh_rows(seed, 200);
    for (name, parent, count) in SOURCES {
        let columns =
            ["id", "parent", "a", "b", "n", "t"].iter().zip(KINDS).map(|(name, kind)| NewColumn::new(*name, kind));
        let reference = |parent: &str| NewForeignKey {
            columns: vec!["parent".into()],
            parent: parent.into(),
            ..NewForeignKey::default()
        };
        bench.create(&NewTable {
            name: name.into(),
            columns: columns.collect(),
            primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
            foreign_keys: parent.map(reference).into_iter().collect(),
            ..NewTable::default()
        });
        let table = bench.table(name);
        let index = NewIndex { columns: vec!["a".into()], ..NewIndex::default() };
        bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
        let parents = SOURCES.iter().find(|(other, ..)| Some(*other) == parent).map(|(.., count)| *count);
        let rows: Vec<_> = (0..count).map(|id| row(&mut bench, id, parents)).collect();
        bench.insert(name, &rows).unwrap();
    }
    let gone: Vec<_> = (0..200).map(|place| RowId(place * 7 + 3)).collect();
    bench.delete("root", &gone).unwrap();
    bench
}

fn row(bench: &mut Bench, id: i32, parents: Option<i32>) -> Vec<Value> {
    let parent = match parents {
        Some(parents) if bench.dice(10) > 0 => int(bench.dice(parents as u64) as i32),
        _ => Value::Null,
    };
    let mut some = |value: Value| if bench.dice(10) == 0 { Value::Null } else { value };
    let id_text = (id * 7919) % 23;
    let note = match id_text {
        0 => "a long note, ".repeat(12),
        other => format!("note {other}"),
    };
    let (a, n) = ((id * 31 % 17) as i16 - 5, i128::from(id * 37 % 1009) - 300);
    vec![
        int(id),
        parent,
        some(Value::SmallInt(a)),
        some(Value::BigInt(i64::from(id % 7) << 40)),
        some(Value::Numeric(n)),
        some(text(&note)),
    ]
}

pub fn some_plan(bench: &mut Bench) -> Plan {
    let tables = ["root", "near", "far"].map(|name| bench.table(name));
    let test = |bench: &mut Bench| {
        let comparison = [Comparison::Equal, Comparison::AtMost, Comparison::Greater][bench.dice(3) as usize];
        let column = [0, 2][bench.dice(2) as usize];
        let constant = Constant::Whole(bench.dice(if column == 0 { 2000 } else { 17 }) as i64 - 5);
        Test::Compare { column, comparison, constant }
    };
    let source = |bench: &mut Bench, (number, table): (usize, &Arc<Table>)| Source {
        table: table.clone(),
        path: number.checked_sub(1),
        tests: (0..bench.dice(2)).map(|_| test(bench)).collect(),
        is_optional: number > 0 && bench.dice(3) == 0,
    };
    let sources = tables.iter().enumerate().map(|table| source(bench, table)).collect();
    let alternative = |bench: &mut Bench| match bench.dice(3) {
        0 => Condition::All((0..2).map(|source| Condition::Of(source, test(bench))).collect()),
        _ => Condition::Of(bench.dice(3) as usize, test(bench)),
    };
    let any = |bench: &mut Bench| (0..2).fold(alternative(bench), |any, _| any.or(alternative(bench)));
    let conditions = (0..bench.dice(6).saturating_sub(3)).map(|_| any(bench)).collect();
    let place = |bench: &mut Bench| Place { source: bench.dice(3) as usize, column: bench.dice(6) as usize };
    let is_grouped = bench.dice(2) == 0;
    let output = |bench: &mut Bench| match bench.dice(if is_grouped { 6 } else { 1 }) {
        0 | 1 => Output::Column(place(bench)),
        2 => Output::CountRows,
        _ => {
            let place = place(bench);
            let functions = [Function::Count, Function::Least, Function::Greatest, Function::Sum, Function::Mean];
            let count = if KINDS[place.column] == Type::Text { 3 } else { 5 };
            Output::Aggregate(functions[bench.dice(count) as usize], place)
        }
    };
    let outputs: Vec<Output> = (0..1 + bench.dice(4)).map(|_| output(bench)).collect();
    let is_aggregate = outputs.iter().any(|output| !matches!(output, Output::Column(_)));
    let order = (0..bench.dice(3)).map(|_| Order {
        output: bench.dice(outputs.len() as u64) as usize,
        is_descending: bench.dice(2) == 0,
        nulls_first: bench.dice(2) == 0,
    });
    let order: Vec<Order> = order.collect();
    let counted = outputs.iter().position(|output| *output == Output::CountRows);
    let having = counted.filter(|_| bench.dice(2) == 0).map(|column| Test::Compare {
        column,
        comparison: Comparison::Greater,
        constant: Constant::Whole(bench.dice(6) as i64),
    });
    Plan {
        sources,
        conditions,
        access: Access::Cheaper,
        groups: if is_aggregate && bench.dice(3) == 0 { vec![place(bench)] } else { Vec::new() },
        having: having.into_iter().collect(),
        is_distinct: bench.dice(4) == 0,
        order,
        in_any_order: false,
        offset: if bench.dice(4) == 0 { bench.dice(30) } else { 0 },
        limit: (bench.dice(3) == 0).then(|| bench.dice(40)),
        shown: outputs.len(),
        outputs,
    }
}

/// A table of many rows, of which each references one of 40, with an index on a number that many have.
pub fn of_many(count: i32) -> Bench {
    let mut bench = Bench::with_fresh_rows(7, 1000);
    let columns = |names: &[&str]| names.iter().map(|name| NewColumn::new(*name, Type::Integer)).collect();
    let key = || Some(NewKey { name: None, columns: vec!["id".into()] });
    bench.create(&NewTable {
        name: "few".into(),
        columns: columns(&["id"]),
        primary_key: key(),
        ..NewTable::default()
    });
    let reference = NewForeignKey { columns: vec!["few".into()], parent: "few".into(), ..NewForeignKey::default() };
    bench.create(&NewTable {
        name: "many".into(),
        columns: columns(&["id", "few", "a"]),
        primary_key: key(),
        foreign_keys: vec![reference],
        ..NewTable::default()
    });
    let table = bench.table("many");
    let index = NewIndex { columns: vec!["a".into()], ..NewIndex::default() };
    bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    bench.insert("few", &(0..40).map(|id| vec![int(id)]).collect::<Vec<_>>()).unwrap();
    for piece in (0..count).collect::<Vec<_>>().chunks(4000) {
        let row = |id: &i32| vec![int(*id), int(id * 7 % 40), int(id * 31 % 25)];
        bench.insert("many", &piece.iter().map(row).collect::<Vec<_>>()).unwrap();
    }
    let gone: Vec<_> = (0..100).map(|place| RowId(place * 111)).collect();
    bench.delete("many", &gone).unwrap();
    bench
}
