//! Random conditions over random rows: the rows in the intervals of the question, with what is left of the condition, are
//! those that a naive reading of WHERE finds, and they come sorted and counted as asked.

use std::cmp::Ordering;

use counterfoil_ask::{Asked, Table, text};
use counterfoil_proof::{Column, Definition, Direction, Question, Scheme, Type, Value};
use proptest::prelude::*;

/// A value as the model has it: numbers in thousandths, so that literals lie between those of a column.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum Plain {
    Null,
    Number(i64),
    Text(String),
}

/// A condition as the model has it.
#[derive(Clone, Debug)]
enum Said {
    Compare(usize, &'static str, Plain),
    Among(usize, Vec<Plain>),
    Between(usize, Plain, Plain),
    Like(String),
    IsNull(usize),
    Flag,
    Columns(&'static str),
    Not(Box<Said>),
    Is(Box<Said>, Option<bool>),
    And(Vec<Said>),
    Or(Vec<Said>),
}

const NAMES: [&str; 7] = ["id", "small", "price", "name", "day", "weight", "flag"];
const KINDS: [Type; 7] =
    [Type::Integer, Type::SmallInt, Type::Numeric(3, 2), Type::Text, Type::Date, Type::Real, Type::Boolean];
const FLAG: usize = 6;

fn definition(orders: Vec<Vec<u16>>) -> Definition {
    let columns = NAMES.iter().zip(KINDS).map(|(name, kind)| Column { name: (*name).into(), kind }).collect();
    let (scheme, nodes, filters) = (Scheme::PerRecord, Vec::new(), Vec::new());
    Definition { table: [1; 16], name: "t".into(), columns, orders, scheme, nodes, filters }
}

/// A value of a column, in both forms.
fn value(column: usize, plain: &Plain) -> Value {
    match (plain, KINDS[column]) {
        (Plain::Null, _) => Value::Null,
        (Plain::Number(n), Type::Boolean) => Value::Boolean(*n != 0),
        (Plain::Number(n), Type::Numeric(..)) => Value::Numeric(i128::from(n / 10)),
        (Plain::Number(n), Type::Real) => Value::Double(*n as f64 / 1000.0),
        (Plain::Number(n), _) => Value::Integer(n / 1000),
        (Plain::Text(text), _) => Value::Text(text.clone()),
    }
}

/// A value that the column holds.
fn held(column: usize) -> BoxedStrategy<Plain> {
    let number = |units: std::ops::Range<i64>, unit: i64| units.prop_map(move |n| Plain::Number(n * unit)).boxed();
    let values = match KINDS[column] {
        Type::Text => "[ab%\u{0}\u{ff}]{0,3}".prop_map(Plain::Text).boxed(),
        Type::Boolean => number(0..2, 1000),
        Type::Numeric(..) => {
            prop_oneof![Just(Plain::Number(9990)), Just(Plain::Number(-9990)), number(-20..20, 10)].boxed()
        }
        Type::Real => number(-6..6, 500),
        _ => number(-4..4, 1000),
    };
    prop_oneof![8 => values, 1 => Just(Plain::Null)].boxed()
}

/// What the column may be compared with, often none of its values.
fn compared(column: usize) -> BoxedStrategy<Plain> {
    let number = |units: std::ops::Range<i64>, unit: i64| units.prop_map(move |n| Plain::Number(n * unit)).boxed();
    let between = match KINDS[column] {
        Type::Integer | Type::SmallInt | Type::Real => {
            prop_oneof![number(-40..40, 100), Just(Plain::Number(50_000_000)), Just(Plain::Number(-50_000_000))].boxed()
        }
        Type::Numeric(..) => prop_oneof![number(-200..200, 1), number(-2..2, 10_000)].boxed(),
        _ => held(column),
    };
    prop_oneof![3 => held(column), 2 => between].boxed()
}

fn literal(column: usize, plain: &Plain) -> String {
    match (plain, KINDS[column]) {
        (Plain::Null, _) => "NULL".into(),
        (Plain::Number(n), Type::Boolean) => if *n != 0 { "TRUE" } else { "FALSE" }.into(),
        (Plain::Number(n), Type::Date) => {
            format!("DATE '{}'", text(Type::Date, &Value::Integer(n / 1000)).expect("a date"))
        }
        (Plain::Number(n), _) => format!("{}{}.{:03}", if *n < 0 { "-" } else { "" }, n.abs() / 1000, n.abs() % 1000),
        (Plain::Text(text), _) => format!("'{text}'"),
    }
}

fn said() -> impl Strategy<Value = Said> {
    let operator = || prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let leaf = prop_oneof![
        6 => (0..NAMES.len()).prop_flat_map(move |c| (Just(c), operator(), compared(c)))
            .prop_map(|(c, op, v)| Said::Compare(c, op, v)),
        2 => (0..NAMES.len()).prop_flat_map(|c| (Just(c), prop::collection::vec(compared(c), 1..4)))
            .prop_map(|(c, list)| Said::Among(c, list)),
        2 => (0..NAMES.len()).prop_flat_map(|c| (Just(c), compared(c), compared(c)))
            .prop_map(|(c, low, high)| Said::Between(c, low, high)),
        1 => "[ab%_]{0,4}".prop_map(Said::Like),
        1 => (0..NAMES.len()).prop_map(Said::IsNull),
        1 => Just(Said::Flag),
        1 => operator().prop_map(Said::Columns),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|said| Said::Not(Box::new(said))),
            (inner.clone(), prop::sample::select(vec![None, Some(true), Some(false)]))
                .prop_map(|(said, value)| Said::Is(Box::new(said), value)),
            prop::collection::vec(inner.clone(), 1..4).prop_map(Said::And),
            prop::collection::vec(inner, 1..4).prop_map(Said::Or),
        ]
    })
}

fn sql(said: &Said) -> String {
    let join =
        |parts: &[Said], by: &str| parts.iter().map(|part| format!("({})", sql(part))).collect::<Vec<_>>().join(by);
    match said {
        Said::Compare(column, operator, plain) => format!("{} {operator} {}", NAMES[*column], literal(*column, plain)),
        Said::Among(column, list) => {
            let list: Vec<String> = list.iter().map(|plain| literal(*column, plain)).collect();
            format!("{} IN ({})", NAMES[*column], list.join(", "))
        }
        Said::Between(column, low, high) => {
            format!("{} BETWEEN {} AND {}", NAMES[*column], literal(*column, low), literal(*column, high))
        }
        Said::Like(pattern) => format!("name LIKE '{pattern}'"),
        Said::IsNull(column) => format!("{} IS NULL", NAMES[*column]),
        Said::Flag => "flag".into(),
        Said::Columns(operator) => format!("id {operator} id"),
        Said::Not(inner) => format!("NOT ({})", sql(inner)),
        Said::Is(inner, None) => format!("({}) IS UNKNOWN", sql(inner)),
        Said::Is(inner, Some(true)) => format!("({}) IS TRUE", sql(inner)),
        Said::Is(inner, Some(false)) => format!("({}) IS FALSE", sql(inner)),
        Said::And(parts) => join(parts, " AND "),
        Said::Or(parts) => join(parts, " OR "),
    }
}

fn compare(left: &Plain, operator: &str, right: &Plain) -> Option<bool> {
    if *left == Plain::Null || *right == Plain::Null {
        return None;
    }
    let order = left.partial_cmp(right).expect("of one kind");
    Some(match operator {
        "=" => order == Ordering::Equal,
        "<>" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}

/// True if one is, unknown if else one is.
fn one_of(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let values: Vec<Option<bool>> = values.collect();
    if values.contains(&Some(true)) {
        Some(true)
    } else if values.contains(&None) {
        None
    } else {
        Some(false)
    }
}

fn like(pattern: &[char], text: &[char]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        (['%', rest @ ..], _) => like(rest, text) || (!text.is_empty() && like(pattern, &text[1..])),
        (['_', rest @ ..], [_, behind @ ..]) => like(rest, behind),
        ([wanted, rest @ ..], [character, behind @ ..]) => wanted == character && like(rest, behind),
        _ => false,
    }
}

fn holds(said: &Said, row: &[Plain]) -> Option<bool> {
    match said {
        Said::Compare(column, operator, plain) => compare(&row[*column], operator, plain),
        Said::Among(column, list) => one_of(list.iter().map(|plain| compare(&row[*column], "=", plain))),
        Said::Between(column, low, high) => and(compare(&row[*column], ">=", low), compare(&row[*column], "<=", high)),
        Said::Like(pattern) => match &row[3] {
            Plain::Text(text) => {
                let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
                Some(like(&pattern, &text))
            }
            _ => None,
        },
        Said::IsNull(column) => Some(row[*column] == Plain::Null),
        Said::Flag => compare(&row[FLAG], "=", &Plain::Number(1000)),
        Said::Columns(operator) => compare(&row[0], operator, &row[0]),
        Said::Not(inner) => not(holds(inner, row)),
        Said::Is(inner, value) => Some(holds(inner, row) == *value),
        Said::And(parts) => one_of(parts.iter().map(|part| not(holds(part, row)))).map(|value| !value),
        Said::Or(parts) => one_of(parts.iter().map(|part| holds(part, row))),
    }
}

/// What an honest mirror sends.
fn mirror(definition: &Definition, question: &Question, rows: &[Vec<Plain>]) -> Vec<Vec<Value>> {
    let mut found = Vec::new();
    for (rid, row) in rows.iter().enumerate() {
        let values: Vec<Value> = row.iter().enumerate().map(|(column, plain)| value(column, plain)).collect();
        let order = usize::from(question.order());
        let position =
            definition.position(order, |column| &values[usize::from(column)], rid as u64).expect("a short key");
        if question.intervals().iter().any(|interval| interval.contains(&position)) {
            let shown = question.columns().iter().map(|column| values[usize::from(*column)].clone()).collect();
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

fn ask(definition: &Definition, text: &str, rows: &[Vec<Plain>]) -> (Table, usize) {
    let asked = Asked::parse(text, definition).unwrap_or_else(|error| panic!("{text}: {error}"));
    let sent = asked.question().map_or(Vec::new(), |question| {
        // What a mirror parses is what was asked.
        assert_eq!(Question::from_bytes(&question.to_bytes(), definition).as_ref(), Ok(question));
        mirror(definition, question, rows)
    });
    let count = sent.len();
    (asked.answer(sent).unwrap_or_else(|error| panic!("{text}: {error}")), count)
}

/// The encodings of a row's columns, which sort as the values do.
fn keys(row: &[Plain], by: &[(usize, bool, bool)]) -> Vec<(bool, Vec<u8>)> {
    let key = |(column, is_descending, nulls_first): &(usize, bool, bool)| {
        let mut bytes = Vec::new();
        KINDS[*column].encode(&value(*column, &row[*column]), &mut bytes).expect("a value of the column");
        if *is_descending {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        ((row[*column] == Plain::Null) != *nulls_first, bytes)
    };
    by.iter().map(key).collect()
}

fn rows() -> impl Strategy<Value = Vec<Vec<Plain>>> {
    let row: Vec<BoxedStrategy<Plain>> = (0..NAMES.len()).map(held).collect();
    prop::collection::vec(row, 0..40)
}

fn orders() -> impl Strategy<Value = Vec<Vec<u16>>> {
    let all: Vec<u16> = (0..NAMES.len() as u16).collect();
    prop::collection::vec(prop::sample::subsequence(all, 0..4).prop_shuffle(), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_rows_are_those_that_where_says(said in said(), rows in rows(), orders in orders()) {
        let definition = definition(orders);
        let (table, _) = ask(&definition, &format!("SELECT * FROM t WHERE {}", sql(&said)), &rows);
        let all: Vec<(usize, bool, bool)> = (0..NAMES.len()).map(|column| (column, false, false)).collect();
        let mut expected: Vec<_> =
            rows.iter().filter(|row| holds(&said, row) == Some(true)).map(|row| keys(row, &all)).collect();
        let mut found: Vec<_> = table.rows.iter().map(|row| {
            let encode = |(column, value): (usize, &Value)| {
                let mut bytes = Vec::new();
                KINDS[column].encode(value, &mut bytes).expect("a value of the column");
                (*value != Value::Null || bytes != [2], bytes)
            };
            row.iter().enumerate().map(encode).map(|(_, bytes)| (bytes == [2], bytes)).collect::<Vec<_>>()
        }).collect();
        expected.sort();
        found.sort();
        prop_assert_eq!(found, expected, "{}", sql(&said));
    }

    #[test]
    fn rows_come_sorted_and_counted(
        said in prop::option::of(said()),
        rows in rows(),
        orders in orders(),
        by in prop::collection::vec((0..NAMES.len(), any::<bool>(), prop::option::of(any::<bool>())), 0..3),
        limit in prop::option::of(0u64..8),
        offset in 0u64..4,
    ) {
        let definition = definition(orders);
        let by: Vec<(usize, bool, bool)> =
            by.into_iter().map(|(column, down, nulls)| (column, down, nulls.unwrap_or(down))).collect();
        let mut text = format!("SELECT {} FROM t", NAMES.join(", "));
        if let Some(said) = &said {
            text += &format!(" WHERE {}", sql(said));
        }
        let words: Vec<String> = by.iter().map(|(column, down, nulls)| format!(
            "{} {} NULLS {}", NAMES[*column], if *down { "DESC" } else { "ASC" }, if *nulls { "FIRST" } else { "LAST" },
        )).collect();
        if !words.is_empty() {
            text += &format!(" ORDER BY {}", words.join(", "));
        }
        if let Some(limit) = limit {
            text += &format!(" LIMIT {limit}");
        }
        text += &format!(" OFFSET {offset}");
        let (table, _) = ask(&definition, &text, &rows);
        let mut expected: Vec<Vec<(bool, Vec<u8>)>> = rows
            .iter()
            .filter(|row| said.as_ref().is_none_or(|said| holds(said, row) == Some(true)))
            .map(|row| keys(row, &by))
            .collect();
        expected.sort();
        let size = limit.map_or(usize::MAX, |limit| limit as usize);
        let expected: Vec<_> = expected.into_iter().skip(offset as usize).take(size).collect();
        let found: Vec<_> = table.rows.iter().map(|row| {
            by.iter().map(|(column, down, nulls)| {
                let mut bytes = Vec::new();
                KINDS[*column].encode(&row[*column], &mut bytes).expect("a value of the column");
                let is_null = bytes == [2];
                if *down {
                    bytes.iter_mut().for_each(|byte| *byte = !*byte);
                }
                (is_null != *nulls, bytes)
            }).collect::<Vec<_>>()
        }).collect();
        prop_assert_eq!(found, expected, "{}", text);
    }
}

#[test]
fn no_more_is_asked_than_a_condition_needs() {
    let definition = definition(vec![vec![0], vec![1, 3], vec![2]]);
    let rows: Vec<Vec<Plain>> = (0..4000)
        .map(|n| {
            let number = |n: i64| Plain::Number(n * 1000);
            vec![
                number(n),
                number(n % 20),
                Plain::Number(n % 900 * 10),
                Plain::Text(format!("n{}", n % 7)),
                number(n),
                number(n),
                number(0),
            ]
        })
        .collect();
    for (condition, order, most) in [
        ("id = 17", 0, 1),
        ("id = 2.5 OR id BETWEEN 10 AND 12", 0, 3),
        ("small = 3 AND name = 'n4'", 1, 30),
        ("small IN (3, 5) AND name LIKE 'n4%'", 1, 60),
        ("(small = 3 AND name = 'n4') OR (small = 4 AND name = 'n5')", 1, 60),
        ("price < 0.005", 2, 5),
        ("NOT (price >= 0.02 OR price IS NULL)", 2, 10),
        ("small = 3 AND id > 3900", 1, 200),
    ] {
        let text = format!("SELECT id FROM t WHERE {condition}");
        let asked = Asked::parse(&text, &definition).expect("a SELECT");
        assert_eq!(asked.question().map(Question::order), Some(order), "{condition}: {}", asked.plan());
        let (table, sent) = ask(&definition, &text, &rows);
        assert!(!table.rows.is_empty() && sent <= most, "{condition}: {sent} rows sent");
    }
    let (table, sent) = ask(&definition, "SELECT id FROM t ORDER BY price DESC, id LIMIT 3", &rows);
    assert_eq!((table.rows.len(), sent), (3, 4000), "the order by price alone does not sort ties by id");
    let (table, sent) = ask(&definition, "SELECT id FROM t WHERE small = 3 ORDER BY name DESC LIMIT 3 OFFSET 2", &rows);
    assert_eq!((table.rows.len(), sent), (3, 5));
}

#[test]
fn contradictions_ask_nobody() {
    let definition = definition(vec![vec![0]]);
    for condition in
        ["id = 1 AND id = 2", "id = NULL", "id < 5 AND id > 5", "FALSE", "id IS NULL AND id > 0", "id = 0.5"]
    {
        let asked =
            Asked::parse(&format!("SELECT count(*), sum(id) FROM t WHERE {condition}"), &definition).expect("SQL");
        assert!(asked.question().is_none(), "{condition}");
        assert_eq!(asked.plan(), "nothing can match: nobody is asked");
        let table = asked.answer(Vec::new()).expect("no rows");
        assert!(table.rows == [[Value::Integer(0), Value::Null]]);
    }
}

#[test]
fn questions_stay_within_their_bounds() {
    let definition = definition(vec![vec![0, 1], vec![3]]);
    let list = |count: i32| (0..count).map(|n| (3 * n).to_string()).collect::<Vec<_>>().join(",");
    for condition in [
        format!("id IN ({})", list(6000)),
        format!("id IN ({}) AND small IN ({})", list(3000), list(3000)),
        format!("id IN ({}) AND small IN ({}) AND small < 0", list(3000), list(3000)),
        format!("name = '{}'", "x".repeat(5000)),
        format!("name > '{}' AND name < '{}'", "x".repeat(5000), "\u{10ffff}".repeat(5000)),
    ] {
        let asked = Asked::parse(&format!("SELECT id FROM t WHERE {condition}"), &definition).expect("SQL");
        if let Some(question) = asked.question() {
            assert_eq!(Question::from_bytes(&question.to_bytes(), &definition).as_ref(), Ok(question));
        }
    }
}
