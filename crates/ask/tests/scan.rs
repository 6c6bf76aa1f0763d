//! Random filters, keys and limits over random rows: what a program gets are the rows that a naive reading finds, sorted and counted
//! where the scan says so.

use counterfoil_ask::{Comparison, Filter, Scan, SortKey, Wanted};
use counterfoil_proof::{Column, Definition, Direction, Question, Scheme, Type, Value};
use proptest::prelude::*;

const KINDS: [Type; 6] = [Type::Integer, Type::Text, Type::Numeric(3, 1), Type::Double, Type::Boolean, Type::Real];

fn definition(orders: Vec<Vec<u16>>) -> Definition {
    let columns = KINDS.iter().enumerate().map(|(at, kind)| Column { name: format!("c{at}"), kind: *kind }).collect();
    let (scheme, nodes, filters) = (Scheme::PerRecord, Vec::new(), Vec::new());
    Definition { table: [1; 16], name: "t".into(), columns, orders, scheme, nodes, filters }
}

/// A value of a column; `is_wide`: or one of its sort that it cannot hold.
fn value(column: usize, is_wide: bool) -> BoxedStrategy<Value> {
    let values = match KINDS[column] {
        Type::Integer => (-3i64..4).prop_map(Value::Integer).boxed(),
        Type::Text => "[ab\u{0}\u{ff}]{0,2}".prop_map(Value::Text).boxed(),
        Type::Numeric(..) => {
            let held = prop_oneof![Just(999i128), Just(-999), -3i128..4];
            let wide = prop_oneof![held.clone(), Just(1000), Just(-1000), Just(i128::MAX), Just(i128::MIN)];
            if is_wide { wide.prop_map(Value::Numeric).boxed() } else { held.prop_map(Value::Numeric).boxed() }
        }
        Type::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        _ => prop_oneof![
            (-3i32..4).prop_map(|n| f64::from(n) / 2.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY)
        ]
        .prop_map(Value::Double)
        .boxed(),
    };
    prop_oneof![6 => values, 1 => Just(Value::Null)].boxed()
}

fn column() -> impl Strategy<Value = usize> {
    0..KINDS.len()
}

fn filter() -> impl Strategy<Value = Filter> {
    let comparison = prop::sample::select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ]);
    let compare = (column(), comparison).prop_flat_map(|(column, comparison)| {
        value(column, true).prop_map(move |value| Filter::Compare { column: column as u16, comparison, value })
    });
    let among = column().prop_flat_map(|column| {
        prop::collection::vec(value(column, true), 0..4)
            .prop_map(move |values| Filter::In { column: column as u16, values })
    });
    let null = (column(), any::<bool>()).prop_map(|(column, wanted)| Filter::Null { column: column as u16, wanted });
    let leaf = prop_oneof![4 => compare, 2 => among, 1 => null, 1 => Just(Filter::Never)];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let parts = prop::collection::vec(inner, 0..3);
        prop_oneof![parts.clone().prop_map(Filter::All), parts.prop_map(Filter::Any)]
    })
}

/// How values sort, NULL last.
fn rank(column: usize, value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    KINDS[column].encode(value, &mut bytes).expect("a value of the column");
    bytes
}

fn order(value: &Value, other: &Value) -> std::cmp::Ordering {
    match (value, other) {
        (Value::Boolean(value), Value::Boolean(other)) => value.cmp(other),
        (Value::Integer(value), Value::Integer(other)) => value.cmp(other),
        (Value::Numeric(value), Value::Numeric(other)) => value.cmp(other),
        (Value::Text(value), Value::Text(other)) => value.as_bytes().cmp(other.as_bytes()),
        // NaN is the greatest, and equals itself.
        (Value::Double(value), Value::Double(other)) => {
            value.partial_cmp(other).unwrap_or_else(|| value.is_nan().cmp(&other.is_nan()))
        }
        _ => unreachable!("two values of one column"),
    }
}

fn holds(filter: &Filter, row: &[Value]) -> bool {
    let is_null = |value: &Value| matches!(value, Value::Null);
    let compares = |column: u16, value: &Value| {
        let own = &row[usize::from(column)];
        (!is_null(own) && !is_null(value)).then(|| order(own, value))
    };
    match filter {
        Filter::Never => false,
        Filter::All(parts) => parts.iter().all(|part| holds(part, row)),
        Filter::Any(parts) => parts.iter().any(|part| holds(part, row)),
        Filter::Null { column, wanted } => is_null(&row[usize::from(*column)]) == *wanted,
        Filter::In { column, values } => {
            values.iter().any(|value| compares(*column, value).is_some_and(|is| is.is_eq()))
        }
        Filter::Compare { column, comparison, value } => compares(*column, value).is_some_and(|is| match comparison {
            Comparison::Equal => is.is_eq(),
            Comparison::NotEqual => is.is_ne(),
            Comparison::Less => is.is_lt(),
            Comparison::LessOrEqual => is.is_le(),
            Comparison::Greater => is.is_gt(),
            Comparison::GreaterOrEqual => is.is_ge(),
        }),
    }
}

/// What an honest mirror sends.
fn mirror(definition: &Definition, question: &Question, rows: &[Vec<Value>]) -> Vec<Vec<Value>> {
    let order = usize::from(question.order());
    let mut found = Vec::new();
    for (rid, row) in rows.iter().enumerate() {
        let position = definition.position(order, |column| &row[usize::from(column)], rid as u64).expect("a short key");
        if question.intervals().iter().any(|interval| interval.contains(&position)) {
            let shown = question.columns().iter().map(|column| row[usize::from(*column)].clone()).collect();
            found.push((position, shown));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    if question.direction() == Direction::Descending {
        found.reverse();
    }
    found.truncate(question.limit().unwrap_or(u64::MAX) as usize);
    found.into_iter().map(|(_, shown)| shown).collect()
}

/// How rows are sorted by keys.
fn keyed(row: &[Value], keys: &[SortKey]) -> Vec<(bool, Vec<u8>)> {
    let key = |key: &SortKey| {
        let value = &row[usize::from(key.column)];
        let mut bytes = rank(usize::from(key.column), value);
        if key.is_descending {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        (matches!(value, Value::Null) != key.nulls_first, bytes)
    };
    keys.iter().map(key).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn rows_are_those_that_the_filter_says_sorted_and_counted_as_promised(
        filter in filter(),
        rows in {
            let row: Vec<BoxedStrategy<Value>> = (0..KINDS.len()).map(|column| value(column, false)).collect();
            prop::collection::vec(row, 0..30)
        },
        orders in {
            let all: Vec<u16> = (0..KINDS.len() as u16).collect();
            prop::collection::vec(prop::sample::subsequence(all, 0..4).prop_shuffle(), 1..4)
        },
        columns in prop::collection::vec(0..KINDS.len() as u16, 0..4),
        keys in prop::collection::vec((0..KINDS.len() as u16, any::<bool>(), any::<bool>()), 0..3),
        is_usual in any::<bool>(),
        limit in prop::option::of(0u64..8),
    ) {
        let definition = definition(orders);
        let key = |(column, is_descending, first): (u16, bool, bool)| {
            SortKey { column, is_descending, nulls_first: if is_usual { is_descending } else { first } }
        };
        let sort_keys: Vec<SortKey> = keys.into_iter().map(key).collect();
        // Whoever has to sort the rows counts them, too.
        let unlimited = Wanted { filter: filter.clone(), columns: columns.clone(), sort_keys: sort_keys.clone(), limit: None };
        let is_sorted = Scan::of(&definition, &unlimited).expect("a scan").is_sorted();
        let limit = limit.filter(|_| is_sorted);
        let scan = Scan::of(&definition, &Wanted { limit, ..unlimited }).expect("a scan");
        prop_assert!(scan.is_sorted() || !is_sorted, "a limit takes nothing back");
        let sent = scan.question().map_or(Vec::new(), |question| {
            assert_eq!(Question::from_bytes(&question.to_bytes(), &definition).as_ref(), Ok(question));
            mirror(&definition, question, &rows)
        });
        let found = scan.rows(sent).expect("rows of the question");
        let expected: Vec<&Vec<Value>> = rows.iter().filter(|row| holds(&filter, row)).collect();
        let most = limit.map_or(usize::MAX, |limit| limit as usize);
        prop_assert_eq!(found.len(), expected.len().min(most));
        // The columns that are wanted, where the scan says that they are: as sets where nothing is counted.
        let places = scan.places();
        if !found.is_empty() {
            prop_assert_eq!(places.len(), columns.len());
        }
        let shown = |row: &[Value], at: &dyn Fn(usize) -> usize| -> Vec<Vec<u8>> {
            columns.iter().enumerate().map(|(n, column)| rank(usize::from(*column), &row[at(n)])).collect()
        };
        let mut ours: Vec<_> = found.iter().map(|row| shown(row, &|n| places[n])).collect();
        let mut theirs: Vec<_> = expected.iter().map(|row| shown(row, &|n| usize::from(columns[n]))).collect();
        ours.sort();
        theirs.sort();
        if limit.is_none() {
            prop_assert_eq!(&ours, &theirs);
        } else {
            prop_assert!(ours.iter().all(|row| theirs.contains(row)));
        }
        // Sorted by the keys among them that are shown, and the right ones where they are counted.
        let are_shown = sort_keys.iter().all(|key| columns.contains(&key.column));
        if is_sorted && are_shown && !sort_keys.is_empty() {
            let mut expected: Vec<_> = expected.iter().map(|row| keyed(row, &sort_keys)).collect();
            expected.sort();
            expected.truncate(most);
            let whole = |row: &Vec<Value>| {
                let mut values = vec![Value::Null; KINDS.len()];
                columns.iter().zip(&places).for_each(|(column, place)| values[usize::from(*column)] = row[*place].clone());
                values
            };
            let found: Vec<_> = found.iter().map(|row| keyed(&whole(row), &sort_keys)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn of_orders_that_serve_equally_well_one_that_sorts_is_asked() {
    let definition = definition(vec![vec![0], vec![1]]);
    for (column, order) in [(0, 0), (1, 1), (2, 0)] {
        let sort_keys = vec![SortKey { column, is_descending: false, nulls_first: false }];
        let wanted = Wanted { filter: Filter::All(Vec::new()), columns: vec![0], sort_keys, limit: None };
        let scan = Scan::of(&definition, &wanted).expect("a scan");
        assert_eq!(scan.question().map(Question::order), Some(order), "by column {column}");
        assert_eq!(scan.is_sorted(), column < 2);
    }
}

#[test]
fn what_is_no_value_or_column_is_refused() {
    let definition = definition(vec![vec![0]]);
    let wanted = |filter| Wanted { filter, columns: vec![0], sort_keys: Vec::new(), limit: None };
    let text = Value::Text("7".into());
    let odd = Filter::Compare { column: 0, comparison: Comparison::Equal, value: text };
    assert!(Scan::of(&definition, &wanted(odd)).is_err());
    assert!(Scan::of(&definition, &wanted(Filter::Null { column: 9, wanted: true })).is_err());
    let scan = Scan::of(&definition, &wanted(Filter::Never)).expect("a scan");
    assert!(scan.question().is_none() && scan.rows(vec![vec![Value::Null]]).is_err());
    let scan = Scan::of(&definition, &wanted(Filter::All(Vec::new()))).expect("a scan");
    assert!(scan.rows(vec![Vec::new()]).is_err(), "a row without columns");
}
