//! A table with a column of each kind and coding, and what is in it.

use counterfoil_disperse::{
    Column, Condition, Declaration, Distribution, Kind, Operations, ROWS_MAX_DEFAULT, Value, from_float,
};

use crate::owner::Line;
use crate::random::Random;

pub const ID: u16 = 0;
pub const NAME: u16 = 1;
pub const SALARY: u16 = 2;
pub const NOTE: u16 = 3;
pub const TOTAL: u16 = 4;
pub const RATE: u16 = 5;
pub const PHOTO: u16 = 6;
pub const GRADE: u16 = 7;
pub const CITY: u16 = 8;
pub const ACCOUNT: u16 = 9;
pub const BORN: u16 = 10;
pub const ALL: [u16; 11] = [ID, NAME, SALARY, NOTE, TOTAL, RATE, PHOTO, GRADE, CITY, ACCOUNT, BORN];

/// At so many clouds, of which so many may fail and collude.
pub fn ledger((count, may_fail, may_collude): (usize, usize, usize)) -> Declaration {
    use Distribution::{Dispersed, Replicated, Spare};
    let number = |bits| Kind::Number { bits, wide: false, adds: true };
    let wide = Kind::Number { bits: 100, wide: true, adds: true };
    let none = Operations::default();
    let equality = Operations { equality: true, ..none };
    let columns = [
        ("id", number(64), equality, Spare),
        ("name", Kind::Text, Operations { equality: true, prefix: true, range: true, ..none }, Spare),
        ("salary", number(34), Operations { sum: true, range: true, ..none }, Spare),
        ("note", Kind::Text, none, Spare),
        ("total", wide, Operations { sum: true, ..none }, Spare),
        ("rate", Kind::Float, Operations { equality: true, range: true, ..none }, Replicated),
        ("photo", Kind::Bytes, none, Dispersed),
        ("grade", number(64), Operations { danger_order: true, ..none }, Spare),
        ("city", Kind::Text, Operations { danger_order: true, ..none }, Replicated),
        ("account", wide, equality, Dispersed),
        ("born", number(64), Operations { range: true, ..none }, Spare),
    ];
    let column = |(id, (name, kind, operations, distribution)): (u16, (&str, Kind, Operations, Distribution))| Column {
        id,
        name: name.into(),
        kind,
        nullable: id != ID,
        operations,
        distribution,
        clouds: (0..count as u16).collect(),
    };
    Declaration {
        table: [42; 16],
        columns: (0..).zip(columns).map(column).collect(),
        clouds: ["a", "b", "c", "d", "e"][..count].iter().map(|name| (*name).to_owned()).collect(),
        may_fail,
        may_collude,
        rows_max: ROWS_MAX_DEFAULT,
    }
}

pub fn text(text: &str) -> Value {
    Value::String(text.as_bytes().to_vec())
}

pub fn number(number: i128) -> Value {
    Value::Number(number)
}

/// Lines that are drawn: many values are equal, near one another, or not there.
pub fn drawn(random: &mut Random, count: usize) -> Vec<Line> {
    (0..count).map(|_| line(random)).collect()
}

fn line(random: &mut Random) -> Line {
    let names = ["", "A", "Al", "Ada", "Adam", "Adamant", "Adamantine", "Zoë", "Zoëlle", "日本語の名前です"];
    let cities = ["", "Ulm", "Ulmen", "Bonn", "Bonndorf im Schwarzwald"];
    let floats = [0.0, -0.0, 1.5, -1.5, f64::NAN, f64::INFINITY];
    let salary = random.below(5) as i128 * 16 + random.below(3) as i128 + 44;
    let total = (random.below(7) as i128 - 3) << 80;
    let bytes = random.below(100);
    let photo = random.bytes(bytes);
    let values = [
        number(random.below(1 << 30) as i128),
        text(names[random.below(names.len())]),
        number(salary),
        text(&"n".repeat(random.below(150))),
        number(total),
        number(from_float(floats[random.below(floats.len())])),
        Value::String(photo),
        number(random.below(20) as i128 - 10),
        text(cities[random.below(cities.len())]),
        number(total / 3),
        number(random.below(1 << 12) as i128),
    ];
    let kept = |(at, value): (usize, Value)| (at == usize::from(ID) || random.below(4) > 0).then_some(value);
    values.into_iter().enumerate().map(kept).collect()
}

/// Questions of each kind about lines, some of them twice.
pub fn questions(lines: &[Line]) -> Vec<Condition> {
    let of = |column: u16, row: usize| lines[row][usize::from(column)].clone();
    let id = |row: usize| of(ID, row).expect("an id");
    let equal = |column, values: &[Value]| Condition::Equal { column, values: values.to_vec() };
    let range = |column, low: Option<(Value, bool)>, high| Condition::Range { column, low, high };
    let prefix = |text: &str| Condition::Prefix { column: NAME, text: text.into() };
    vec![
        equal(ID, &[id(3)]),
        equal(ID, &[id(0), id(1), id(5)]),
        equal(ID, &[number(-1)]),
        equal(NAME, &[text("Ada")]),
        equal(NAME, &[text("nobody")]),
        prefix("A"),
        prefix("Ada"),
        prefix("Adamantin"),
        prefix("Zoë"),
        prefix("x"),
        range(SALARY, Some((number(61), true)), Some((number(94), false))),
        range(SALARY, Some((number(77), false)), None),
        range(SALARY, None, Some((number(61), true))),
        range(NAME, Some((text("Ad"), false)), Some((text("Z"), false))),
        range(RATE, Some((number(from_float(0.0)), false)), None),
        equal(RATE, &[number(from_float(-0.0))]),
        range(GRADE, Some((number(-2), true)), Some((number(5), false))),
        range(GRADE, Some((number(3), false)), None),
        equal(GRADE, &[number(4)]),
        range(CITY, Some((text("Ulm"), true)), Some((text("Ulmen"), true))),
        equal(ACCOUNT, &[number((2_i128 << 80) / 3)]),
        equal(BORN, &[number(77)]),
        range(BORN, Some((number(1024), true)), Some((number(2048), true))),
        range(NOTE, Some((text("nnn"), true)), None),
        equal(NAME, &[text("Ada")]),
        range(SALARY, Some((number(77), true)), None),
    ]
}

/// A value of the same leakage: the same lengths, equalities and beginnings, the same order and the same blocks in which two differ first.
fn twin(column: u16, value: &Value) -> Value {
    let other_case = |byte: &u8| if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { *byte };
    match (column, value) {
        (ID, Value::Number(own)) => number(own + (1 << 40)),
        (SALARY, Value::Number(own)) => number(own + (1 << 16)),
        (TOTAL, Value::Number(own)) => number(1 - own),
        (RATE, Value::Number(own)) if *own == from_float(1.5) => number(from_float(1.625)),
        (GRADE, Value::Number(own)) => number(own + 1_000_000),
        (ACCOUNT, Value::Number(own)) => number(own + 1),
        (BORN, Value::Number(own)) => number(own + (1 << 16)),
        (PHOTO, Value::String(own)) => Value::String(own.iter().map(|byte| byte ^ 0x5A).collect()),
        (_, Value::String(own)) => Value::String(own.iter().map(other_case).collect()),
        _ => value.clone(),
    }
}

/// Lines of the same leakage.
pub fn twins(lines: &[Line]) -> Vec<Line> {
    let line =
        |line: &Line| (0..).zip(line).map(|(column, value)| value.as_ref().map(|own| twin(column, own))).collect();
    lines.iter().map(line).collect()
}

/// Questions of the same leakage about them.
pub fn twin_questions(questions: &[Condition]) -> Vec<Condition> {
    let question = |question: &Condition| match question.clone() {
        Condition::Equal { column, values } => {
            Condition::Equal { column, values: values.iter().map(|value| twin(column, value)).collect() }
        }
        Condition::Range { column, low, high } => {
            let [low, high] = [low, high].map(|bound| bound.map(|(value, counts)| (twin(column, &value), counts)));
            Condition::Range { column, low, high }
        }
        Condition::Prefix { column, text: own } => match twin(column, &text(&own)) {
            Value::String(bytes) => Condition::Prefix { column, text: String::from_utf8(bytes).expect("a text") },
            Value::Number(_) => panic!("a text"),
        },
    };
    questions.iter().map(question).collect()
}
