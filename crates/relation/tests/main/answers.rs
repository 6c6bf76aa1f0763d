//! Questions answered within a budget, against loops over all rows: grouped, each row once, in order, and of any budget alike.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use counterfoil_relation::{
    Answer, BUDGET_BYTES_MIN, Cause, Comparison, Condition, Constant, ContainerScratch, Error, Function, NoScratch,
    Order, Output, Place, Plan, Scratch, Source, Test, Type, Value,
};

use crate::bench::{Bench, int, rounds, text};
use crate::plans::{KINDS, of_many, populated, some_plan};

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::SmallInt(number) => Some((*number).into()),
        Value::Integer(number) => Some((*number).into()),
        Value::BigInt(number) => Some((*number).into()),
        Value::Numeric(number) => Some(*number),
        _ => None,
    }
}

fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        (Value::Double(one), Value::Double(other)) => one.total_cmp(other),
        (one, other) => whole(one).cmp(&whole(other)),
    }
}

/// An aggregate by its own words.
fn aggregate(function: Function, kind: Type, values: &[&Value]) -> Value {
    let there = || values.iter().copied().filter(|value| **value != Value::Null);
    let sum = || there().filter_map(whole).sum::<i128>();
    let (count, is_numeric) = (there().count() as i128, matches!(kind, Type::Numeric { .. }));
    match function {
        Function::Count => Value::BigInt(count as i64),
        _ if count == 0 => Value::Null,
        Function::Sum if is_numeric => Value::Numeric(sum()),
        Function::Sum => Value::BigInt(sum() as i64),
        Function::Mean if is_numeric => {
            // Enough digits for any of these types, and then rounded to those that it has.
            let Type::Numeric { precision, scale } = kind else { unreachable!() };
            let more = u32::from(counterfoil_relation::mean_digits(precision, scale).1 - scale);
            let halves = sum() * 10_i128.pow(more) * 2;
            Value::Numeric((halves + halves.signum() * count) / (count * 2))
        }
        Function::Mean => Value::Double(sum() as f64 / count as f64),
        Function::Least => there().min_by(|one, other| compare(one, other)).unwrap().clone(),
        Function::Greatest => there().max_by(|one, other| compare(one, other)).unwrap().clone(),
    }
}

/// A row in words, to be compared: values do not print themselves.
fn words(row: &[Value]) -> String {
    let word = |value: &Value| match value {
        Value::Null => "-".into(),
        Value::Text(text) => text.clone(),
        Value::Double(number) => number.to_string(),
        other => whole(other).map_or("?".into(), |number| number.to_string()),
    };
    row.iter().map(word).collect::<Vec<_>>().join("|")
}

type Line = Vec<Option<Vec<Value>>>;

/// Rows of root with what they join, or those of which the tests are true.
fn lines(bench: &mut Bench, plan: &Plan) -> Vec<Line> {
    let all: Vec<Vec<Vec<Value>>> = ["root", "near", "far"].iter().map(|name| bench.values(name)).collect();
    let parent = |table: usize, row: &Option<Vec<Value>>| {
        let wanted = row.as_ref().map(|row| row[1].clone()).filter(|wanted| *wanted != Value::Null)?;
        all[table].iter().find(|row| row[0] == wanted).cloned()
    };
    let mut lines = Vec::new();
    'rows: for row in &all[0] {
        let root = Some(row.clone());
        let near = parent(1, &root);
        let far = parent(2, &near);
        let mut line: Line = Vec::new();
        for (source, row) in plan.sources.iter().zip([root, near, far]) {
            let row = row.filter(|row| source.tests.iter().all(|test| is_true(test, row)));
            if row.is_none() && !source.is_optional {
                continue 'rows;
            }
            line.push(row);
        }
        if plan.conditions.iter().all(|condition| holds(condition, &line)) {
            lines.push(line);
        }
    }
    lines
}

/// Here nothing asks for NULLs, so nothing is true of a row that is not there.
fn holds(condition: &Condition, line: &Line) -> bool {
    match condition {
        Condition::Of(source, test) => line[*source].as_ref().is_some_and(|row| is_true(test, row)),
        Condition::All(all) => all.iter().all(|condition| holds(condition, line)),
        Condition::Any(any) => any.iter().any(|condition| holds(condition, line)),
    }
}

fn is_true(test: &Test, row: &[Value]) -> bool {
    match test {
        Test::Compare { column, comparison, constant: Constant::Whole(number) } => {
            whole(&row[*column]).is_some_and(|value| match comparison {
                Comparison::Equal => value == i128::from(*number),
                Comparison::AtMost => value <= i128::from(*number),
                _ => value > i128::from(*number),
            })
        }
        Test::In { column, constants } => whole(&row[*column]).is_some_and(|value| {
            constants.iter().any(|constant| matches!(constant, Constant::Whole(number) if i128::from(*number) == value))
        }),
        Test::Any(tests) => tests.iter().any(|test| is_true(test, row)),
        _ => panic!("not asked here"),
    }
}

/// The answer by loops; where nothing is sorted, in any order.
fn expected(bench: &mut Bench, plan: &Plan) -> Vec<Vec<Value>> {
    let lines = lines(bench, plan);
    let cell =
        |line: &Line, place: &Place| line[place.source].as_ref().map_or(Value::Null, |row| row[place.column].clone());
    let is_grouped = !plan.groups.is_empty() || plan.outputs.iter().any(|output| !matches!(output, Output::Column(_)));
    let mut rows: Vec<Vec<Value>> = Vec::new();
    if is_grouped {
        let mut places = plan.groups.clone();
        places.extend(
            plan.outputs
                .iter()
                .filter_map(|output| if let Output::Column(place) = output { Some(*place) } else { None }),
        );
        let mut groups: BTreeMap<String, Vec<&Line>> = BTreeMap::new();
        if places.is_empty() {
            groups.insert(String::new(), Vec::new());
        }
        for line in &lines {
            let key: Vec<Value> = places.iter().map(|place| cell(line, place)).collect();
            groups.entry(words(&key)).or_default().push(line);
        }
        for group in groups.values() {
            let output = |output: &Output| match output {
                Output::Column(place) => cell(group[0], place),
                Output::CountRows => Value::BigInt(group.len() as i64),
                Output::Aggregate(function, place) => {
                    let values: Vec<Value> = group.iter().map(|line| cell(line, place)).collect();
                    aggregate(*function, KINDS[place.column], &values.iter().collect::<Vec<_>>())
                }
            };
            rows.push(plan.outputs.iter().map(output).collect());
        }
        rows.retain(|row| plan.having.iter().all(|test| is_true(test, row)));
    } else {
        let output = |line: &Line, output: &Output| match output {
            Output::Column(place) => cell(line, place),
            _ => panic!("an aggregate"),
        };
        rows.extend(lines.iter().map(|line| plan.outputs.iter().map(|one| output(line, one)).collect()));
    }
    if plan.is_distinct {
        let mut seen = std::collections::BTreeSet::new();
        rows.retain(|row| seen.insert(words(row)));
    }
    rows.sort_by(|one, other| in_order(plan, one, other));
    rows
}

fn in_order(plan: &Plan, one: &[Value], other: &[Value]) -> Ordering {
    for Order { output, is_descending, nulls_first } in &plan.order {
        let (one, other) = (&one[*output], &other[*output]);
        let nulls = (*one == Value::Null).cmp(&(*other == Value::Null));
        let nulls = if *nulls_first { nulls.reverse() } else { nulls };
        let values = compare(one, other);
        let values = if *is_descending { values.reverse() } else { values };
        if nulls.then(values).is_ne() {
            return nulls.then(values);
        }
    }
    Ordering::Equal
}

fn all_of(bench: &mut Bench, plan: &Plan, budget: usize) -> Result<Vec<Vec<Value>>, Error> {
    bench.begin();
    let view = bench.writer.snapshot();
    let answered = bench.relations.answer(view, plan.clone(), budget).and_then(|mut answer: Answer<_>| {
        let mut scratch = ContainerScratch::create(&mut bench.writer)?;
        let mut rows = Vec::new();
        while let Some(batch) = answer.next(&bench.relations, &mut scratch)? {
            rows.extend((0..batch.count()).map(|row| batch.row(row).unwrap()));
        }
        Ok(rows)
    });
    bench.rollback();
    answered
}

/// The answer in the least budget, or in the one that it is said to need: rows with long texts need more.
fn in_little(bench: &mut Bench, plan: &Plan) -> Vec<Vec<Value>> {
    let mut budget = BUDGET_BYTES_MIN;
    loop {
        let answered = all_of(bench, plan, budget);
        match answered.as_ref().map_err(Error::cause) {
            Err(Cause::Memory { needed: Some(needed) }) if *needed > budget => budget = *needed,
            _ => return answered.unwrap(),
        }
    }
}

#[test]
fn an_answer_is_the_same_in_any_budget() {
    for seed in 0..rounds(2, 20) {
        let mut bench = populated(seed);
        for _ in 0..rounds(100, 400) {
            let plan = some_plan(&mut bench);
            let full = all_of(&mut bench, &plan, 64 << 20).unwrap();
            assert_eq!(in_little(&mut bench, &plan), full, "in little memory");
            assert_eq!(all_of(&mut bench, &plan, 150_000).unwrap(), full, "in 150,000 bytes");
            in_any_order(&mut bench, &plan, &full);
            check(&mut bench, &plan, full);
        }
    }
}

/// Where nobody minds the order, the same rows come, each as often.
fn in_any_order(bench: &mut Bench, plan: &Plan, rows: &[Vec<Value>]) {
    if plan.limit.is_some() || plan.offset > 0 {
        return;
    }
    let plan = Plan { in_any_order: true, ..plan.clone() };
    let mut answer: Vec<_> = in_little(bench, &plan).iter().map(|row| words(row)).collect();
    let mut rows: Vec<_> = rows.iter().map(|row| words(row)).collect();
    answer.sort_unstable();
    rows.sort_unstable();
    assert!(answer == rows, "other rows in any order");
}

/// An answer against the loops'.
fn check(bench: &mut Bench, plan: &Plan, answer: Vec<Vec<Value>>) {
    let whole = expected(bench, plan);
    let left = whole.len().saturating_sub(plan.offset as usize);
    let count = plan.limit.map_or(left, |limit| left.min(limit as usize));
    assert_eq!(answer.len(), count);
    assert!(answer.is_sorted_by(|one, next| in_order(plan, one, next).is_le()), "in another order");
    // Which of those that are sorted alike come is nobody's business.
    let sorted: Vec<_> = whole.iter().skip(plan.offset as usize).take(count).collect();
    for (ours, theirs) in answer.iter().zip(&sorted) {
        assert!(plan.order.is_empty() || in_order(plan, ours, theirs).is_eq(), "another row here");
    }
    let counted = |rows: &mut dyn Iterator<Item = &Vec<Value>>| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        rows.for_each(|row| *counts.entry(words(row)).or_default() += 1);
        counts
    };
    let (ours, theirs) = (counted(&mut answer.iter()), counted(&mut whole.iter()));
    assert!(ours.iter().all(|(row, count)| theirs.get(row).is_some_and(|there| count <= there)), "a row that is none");
    if count == whole.len() {
        assert_eq!(ours, theirs);
    }
}

/// All of a table, with every column.
fn everything(bench: &mut Bench, name: &str) -> Plan {
    let source = Source { table: bench.table(name), path: None, tests: Vec::new(), is_optional: false };
    let outputs: Vec<Output> = (0..6).map(|column| Output::Column(Place { source: 0, column })).collect();
    Plan { sources: vec![source], shown: outputs.len(), outputs, ..Plan::default() }
}

#[test]
fn what_does_not_fit_says_how_much_it_needs() {
    let mut bench = populated(1);
    let mut plan = everything(&mut bench, "root");
    assert!(matches!(
        all_of(&mut bench, &plan, 1000).as_ref().map_err(Error::cause),
        Err(Cause::Memory { needed: Some(BUDGET_BYTES_MIN) })
    ));
    // A value that is larger than the budget.
    let value = "x".repeat(100_000);
    bench.insert("root", &[vec![int(9999), Value::Null, Value::Null, Value::Null, Value::Null, text(&value)]]).unwrap();
    let needed = all_of(&mut bench, &plan, 64 << 10).unwrap_err().memory_needed().expect("it fits");
    assert!(needed > 100_000);
    assert_eq!(all_of(&mut bench, &plan, needed).unwrap().len(), 1801);
    plan.order = vec![Order { output: 5, is_descending: true, nulls_first: false }];
    // To be sorted it needs more than to be read.
    let needed = all_of(&mut bench, &plan, needed).unwrap_err().memory_needed().expect("it fits");
    assert_eq!(all_of(&mut bench, &plan, needed).unwrap()[0][0], int(9999));
}

#[test]
fn a_limit_counts_the_groups_that_having_leaves() {
    let mut bench = populated(1);
    let mut plan = everything(&mut bench, "root");
    let key = |column| Place { source: 0, column };
    plan.outputs = vec![Output::Column(key(5)), Output::CountRows];
    plan.shown = 2;
    plan.having = vec![Test::Compare { column: 1, comparison: Comparison::Greater, constant: Constant::Whole(100) }];
    let whole = all_of(&mut bench, &plan, 1 << 20).unwrap();
    assert_eq!(whole.len(), 1, "the rows without a note");
    // It is the last in the order of its values.
    plan.limit = Some(1);
    assert_eq!(all_of(&mut bench, &plan, 1 << 20).unwrap(), whole);
}

#[test]
fn rows_with_long_texts_are_read_few_at_a_time() {
    let mut bench = populated(1);
    let note = |id: i32| format!("{id} {}", "long ".repeat(250));
    let row = |id: i32| vec![int(id), int(id % 300), Value::SmallInt(99), Value::Null, Value::Null, text(&note(id))];
    let rows: Vec<_> = (3000..3060).map(row).collect();
    bench.insert("root", &rows).unwrap();
    let mut plan = everything(&mut bench, "root");
    plan.sources[0].tests =
        vec![Test::Compare { column: 0, comparison: Comparison::Greater, constant: Constant::Whole(2999) }];
    assert!(all_of(&mut bench, &plan, 2 * BUDGET_BYTES_MIN).unwrap() == rows);
    // By an index.
    plan.sources[0].tests =
        vec![Test::Compare { column: 2, comparison: Comparison::Equal, constant: Constant::Whole(99) }];
    assert!(all_of(&mut bench, &plan, 2 * BUDGET_BYTES_MIN).unwrap() == rows);
}

#[test]
fn without_a_place_to_put_rows_aside_what_fits_is_sorted() {
    let mut bench = populated(1);
    let mut plan = everything(&mut bench, "root");
    plan.order = vec![Order { output: 0, is_descending: true, nulls_first: false }];
    let mut ask = |plan: &Plan, budget: usize| -> Result<usize, Error> {
        let view = bench.writer.pending();
        let mut answer = bench.relations.answer(view, plan.clone(), budget)?;
        let mut count = 0;
        while let Some(batch) = answer.next(&bench.relations, &mut NoScratch)? {
            count += batch.count();
        }
        Ok(count)
    };
    assert_eq!(ask(&plan, 64 << 10), Err(Error::memory(None)));
    assert_eq!(ask(&plan, 8 << 20), Ok(1800));
    // The first ten are never more than twenty at a time.
    plan.limit = Some(10);
    assert_eq!(ask(&plan, 64 << 10), Ok(10));
}

#[test]
fn a_sum_out_of_range_and_a_question_that_makes_no_sense_are_refused() {
    let mut bench = populated(1);
    let rows = (0..2)
        .map(|id| vec![int(5000 + id), Value::Null, Value::Null, Value::BigInt(i64::MAX), Value::Null, Value::Null]);
    let rows: Vec<_> = rows.collect();
    bench.insert("root", &rows).unwrap();
    let mut plan = everything(&mut bench, "root");
    let aggregate = |column| Output::Aggregate(Function::Sum, Place { source: 0, column });
    (plan.outputs, plan.shown) = (vec![aggregate(3)], 1);
    assert!(matches!(all_of(&mut bench, &plan, 1 << 20).as_ref().map_err(Error::cause), Err(Cause::Sql(_))));
    plan.outputs = vec![aggregate(5)];
    assert!(matches!(all_of(&mut bench, &plan, 1 << 20).as_ref().map_err(Error::cause), Err(Cause::NotSupported(_))));
    for spoil in [
        |plan: &mut Plan| plan.shown = 2,
        |plan: &mut Plan| plan.sources.clear(),
        |plan: &mut Plan| plan.conditions = vec![Condition::Of(1, Test::Never)],
        |plan: &mut Plan| plan.conditions = vec![Condition::Of(0, Test::Null { column: 77, wanted: true })],
        |plan: &mut Plan| plan.sources[0].tests = vec![Test::Null { column: 77, wanted: true }],
        |plan: &mut Plan| plan.outputs = vec![Output::Column(Place { source: 0, column: 77 })],
        |plan: &mut Plan| plan.order = vec![Order { output: 6, is_descending: false, nulls_first: false }],
        |plan: &mut Plan| {
            plan.having = vec![Test::Never];
            plan.outputs = vec![Output::Column(Place { source: 0, column: 0 })];
        },
    ] {
        let mut plan = plan.clone();
        plan.outputs = vec![aggregate(3)];
        spoil(&mut plan);
        assert!(matches!(all_of(&mut bench, &plan, 1 << 20).as_ref().map_err(Error::cause), Err(Cause::Misuse(_))));
    }
}

/// What a question puts aside, counted; with a bound, as a medium has one.
struct Counted {
    bytes: Vec<u8>,
    bytes_max: usize,
    was_refused: bool,
}

impl Scratch for Counted {
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Error> {
        let start = self.bytes.len();
        if start + bytes.len() > self.bytes_max {
            self.was_refused = true;
            return Err(Error::memory(None));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(start as u64)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        buffer.copy_from_slice(&self.bytes[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

#[test]
fn paths_are_followed_once_where_there_is_room_for_what_they_name() {
    let mut bench = of_many(70_000);
    let many = Source { table: bench.table("many"), path: None, tests: Vec::new(), is_optional: false };
    let few = bench.table("few");
    let some = |from: i64| {
        let tests = vec![Test::In { column: 0, constants: (from..from + 7).map(Constant::Whole).collect() }];
        Source { table: few.clone(), path: Some(0), tests, is_optional: false }
    };
    let outputs: Vec<Output> = (0..3).map(|column| Output::Column(Place { source: 0, column })).collect();
    let sources = vec![many, some(3), some(5)];
    let plan = Plan { sources, shown: 3, outputs, ..Plan::default() };
    let expected = all_of(&mut bench, &plan, 8 << 20).unwrap();
    assert!(expected.len() > 8000);
    for (bytes_max, is_aside) in [(1 << 20, true), (20_000, false), (0, false)] {
        let mut scratch = Counted { bytes: Vec::new(), bytes_max, was_refused: false };
        let view = bench.writer.snapshot();
        let mut answer = bench.relations.answer(view, plan.clone(), BUDGET_BYTES_MIN).unwrap();
        let mut rows = Vec::new();
        while let Some(batch) = answer.next(&bench.relations, &mut scratch).unwrap() {
            rows.extend((0..batch.count()).map(|row| batch.row(row).unwrap()));
        }
        assert!(rows == expected, "with room for {bytes_max} bytes");
        // Two bytes for each number that a path names, and some for their blocks.
        assert_eq!((is_aside, !is_aside), ((45_000..60_000).contains(&scratch.bytes.len()), scratch.was_refused));
    }
}

#[test]
fn more_rows_than_there_is_room_for_are_named_in_passes() {
    let mut bench = of_many(16_000);
    let equal = |column: usize, number: i64| Test::Compare {
        column,
        comparison: Comparison::Equal,
        constant: Constant::Whole(number),
    };
    let many = Source { table: bench.table("many"), path: None, tests: Vec::new(), is_optional: false };
    let few = Source { table: bench.table("few"), path: Some(0), tests: Vec::new(), is_optional: false };
    let by_index = Source { tests: vec![equal(2, 4)], ..many.clone() };
    let some = Test::In { column: 0, constants: (3..8).map(Constant::Whole).collect() };
    let along = Source { tests: vec![some], ..few.clone() };
    let others = Test::In { column: 0, constants: (5..12).map(Constant::Whole).collect() };
    let outputs: Vec<Output> = (0..3).map(|column| Output::Column(Place { source: 0, column })).collect();
    // Alternatives of both tables: with a list of theirs that takes more room than there is, and with rows that lie close.
    let close = Test::Compare { column: 0, comparison: Comparison::Less, constant: Constant::Whole(600) };
    let any = Condition::Of(0, equal(2, 4)).or(Condition::Of(1, along.tests[0].clone()));
    let more = any.clone().or(Condition::Of(0, close));
    let none = Vec::new;
    for (sources, conditions) in [
        (vec![by_index.clone()], none()),
        (vec![many.clone(), along.clone()], none()),
        (vec![by_index, along.clone()], none()),
        // Two lists: what one names is looked for again by the other.
        (vec![many.clone(), along, Source { tests: vec![others], ..few.clone() }], none()),
        (vec![many.clone(), few.clone()], vec![any]),
        (vec![many.clone(), few.clone()], vec![more]),
        (vec![Source { tests: vec![equal(2, 4).or(equal(0, 77))], ..many.clone() }], none()),
    ] {
        let plan = Plan { sources, conditions, shown: 3, outputs: outputs.clone(), ..Plan::default() };
        let rows = all_of(&mut bench, &plan, 8 << 20).unwrap();
        assert!(rows.len() > 60);
        // Without an order rows come as they are numbered, also where a limit takes the first.
        assert!(all_of(&mut bench, &plan, BUDGET_BYTES_MIN).unwrap() == rows);
        in_any_order(&mut bench, &plan, &rows);
        let first = Plan { limit: Some(50), ..plan.clone() };
        assert!(all_of(&mut bench, &first, BUDGET_BYTES_MIN).unwrap() == rows[..50]);
        let view = bench.writer.snapshot();
        let answer = bench.relations.answer(view, plan, BUDGET_BYTES_MIN).unwrap();
        assert!(answer.by().iter().any(|by| by.ends_with(" in passes")), "{:?}", answer.by());
        assert!(answer.candidates().is_some_and(|rows| rows < 3000));
    }
    // What names too many rows is still read past.
    let any = Test::Compare { column: 2, comparison: Comparison::Greater, constant: Constant::Whole(4) };
    let all = Source { table: bench.table("many"), path: None, tests: vec![any], is_optional: false };
    let plan = Plan { sources: vec![all], shown: 3, outputs, ..Plan::default() };
    let view = bench.writer.snapshot();
    let answer = bench.relations.answer(view, plan, BUDGET_BYTES_MIN).unwrap();
    assert!(answer.by().is_empty() && answer.candidates().is_none());
}
