//! What a coalition is said to learn (`leakage::learned`) of values and questions, and nothing else of them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use counterfoil_disperse::coding::cells::class;
use counterfoil_disperse::leakage::{Learned, What};
use counterfoil_disperse::{Column, Condition, Kind, PREFIX_CHARACTERS_MAX, Value, from_float, to_float};

use crate::owner::{Deed, Line};

/// Bytes of a seal.
const SEAL_BYTES: usize = 16;

/// A constant in a question: which deed it is, and whether it is the low one or the high one.
pub type Constant = (usize, usize);

/// What is learned of a column. What is not learned is none.
#[derive(Debug, Default, PartialEq)]
pub struct Facts {
    /// Of each row, bytes of its cell.
    pub lengths: Option<BTreeMap<u64, usize>>,
    /// Rows without a value.
    pub nulls: Option<BTreeSet<u64>>,
    /// Groups of equal values: of rows that have one, and of what is asked for.
    pub equal: Option<Groups>,
    /// Groups of texts that begin alike, for each number of characters from 1 on.
    pub begins: Option<Vec<Groups>>,
    /// How many characters are asked for, by deed.
    pub characters: BTreeMap<usize, usize>,
    /// How constants compare.
    pub order: Option<Compared>,
    /// Where rows and constants are in the order of all, from 0 on.
    pub ranks: Option<(BTreeMap<u64, usize>, BTreeMap<Constant, usize>)>,
}

#[derive(Debug, Default, PartialEq)]
pub struct Groups {
    pub rows: BTreeMap<u64, usize>,
    pub asked: BTreeMap<usize, Vec<usize>>,
}

#[derive(Debug, Default, PartialEq)]
pub struct Compared {
    /// With each row: in which block of four bits they differ first, and how.
    pub rows: BTreeMap<(Constant, u64), (usize, Ordering)>,
    /// With each other constant: how many blocks they have in common.
    pub constants: BTreeMap<(Constant, Constant), usize>,
}

/// The bounds of a condition on a column, each with whether it counts: what is asked of an order.
pub fn bounds(condition: &Condition) -> [Option<(&Value, bool)>; 2] {
    match condition {
        Condition::Range { low, high, .. } => {
            [low, high].map(|bound| bound.as_ref().map(|(value, counts)| (value, *counts)))
        }
        Condition::Equal { values, .. } if values.len() == 1 => [Some((&values[0], true)), Some((&values[0], true))],
        _ => [None, None],
    }
}

/// Bytes of a cell of a value of so many.
pub fn cell_bytes(value_bytes: usize) -> usize {
    // In front of the value it says whether there is one, and behind it where it ends.
    class(value_bytes + 2) + SEAL_BYTES
}

/// Bytes of values that all have as many.
pub fn width(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Number { wide: true, .. } => Some(16),
        Kind::Number { .. } | Kind::Float => Some(8),
        Kind::Uuid => Some(36),
        Kind::Text | Kind::Bytes => None,
    }
}

/// What is learned of a column at some layout, of rows and questions.
pub fn facts(
    learned: &BTreeSet<Learned>,
    (at, column): (usize, &Column),
    lines: &BTreeMap<u64, &Line>,
    deeds: &[(usize, &Condition)],
) -> Facts {
    let values: BTreeMap<u64, Option<&Value>> = lines.iter().map(|(row, line)| (*row, line[at].as_ref())).collect();
    let asked: Vec<(usize, &Condition)> = deeds.iter().copied().filter(|(_, of)| of.column() == column.id).collect();
    // Where there are tags, equality is asked of them.
    let of_order =
        |(_, of): &(usize, &Condition)| !column.operations.equality || !matches!(of, Condition::Equal { .. });
    let ordered: Vec<(usize, &Condition)> = asked.iter().copied().filter(of_order).collect();
    let mut facts = Facts::default();
    for what in learned.iter().filter(|of| of.column == column.id).map(|of| of.what) {
        match what {
            What::Length => facts.lengths = Some(lengths(&values)),
            What::Nulls => {
                facts.nulls = Some(values.iter().filter(|(_, value)| value.is_none()).map(|(row, _)| *row).collect());
            }
            What::Equality => facts.equal = Some(equal(column.kind, &values, &asked)),
            What::Prefixes => {
                facts.begins = Some((1..=PREFIX_CHARACTERS_MAX).map(|of| begins(of, &values, &asked)).collect());
                facts.characters = asked.iter().filter_map(|(deed, of)| Some((*deed, characters(of)?.1))).collect();
            }
            What::Order => facts.order = Some(compared(column.kind, &values, &ordered)),
            What::TotalOrder => facts.ranks = Some(ranks(column.kind, &values, &ordered)),
            // How large values nearly are is not drawn: the order is.
            What::Beginnings => {}
            What::Values => panic!("more than may collude"),
        }
    }
    facts
}

fn lengths(values: &BTreeMap<u64, Option<&Value>>) -> BTreeMap<u64, usize> {
    let bytes = |value: &Option<&Value>| match value {
        Some(Value::String(bytes)) => bytes.len(),
        Some(Value::Number(_)) => panic!("numbers are of one length"),
        None => 0,
    };
    values.iter().map(|(row, value)| (*row, cell_bytes(bytes(value)))).collect()
}

/// Values by which equal ones are known.
fn comparable(kind: Kind, value: &Value) -> Value {
    match value {
        Value::Number(number) if kind == Kind::Float => {
            Value::Number(i128::from(ordinal(kind, &Value::Number(*number))))
        }
        other => other.clone(),
    }
}

fn equal(kind: Kind, values: &BTreeMap<u64, Option<&Value>>, asked: &[(usize, &Condition)]) -> Groups {
    let (mut known, mut groups) = (Numbered::default(), Groups::default());
    for (row, value) in values {
        groups.rows.extend(value.map(|value| (*row, known.number(comparable(kind, value)))));
    }
    for (deed, condition) in asked {
        if let Condition::Equal { values, .. } = condition {
            let own = values.iter().map(|value| known.number(comparable(kind, value))).collect();
            groups.asked.insert(*deed, own);
        }
    }
    groups
}

/// The first characters that are asked for, and how many they are.
fn characters(condition: &Condition) -> Option<(String, usize)> {
    let Condition::Prefix { text, .. } = condition else { return None };
    let first: String = text.chars().take(PREFIX_CHARACTERS_MAX).collect();
    let count = first.chars().count();
    (count > 0).then_some((first, count))
}

fn begins(count: usize, values: &BTreeMap<u64, Option<&Value>>, asked: &[(usize, &Condition)]) -> Groups {
    let (mut known, mut groups) = (Numbered::default(), Groups::default());
    let first = |value: &Value| match value {
        Value::String(bytes) => {
            let text = std::str::from_utf8(bytes).expect("a text");
            (text.chars().count() >= count).then(|| text.chars().take(count).collect::<String>())
        }
        Value::Number(_) => None,
    };
    for (row, value) in values {
        groups.rows.extend(value.and_then(first).map(|first| (*row, known.number(first))));
    }
    for (deed, condition) in asked {
        if let Some((first, _)) = characters(condition).filter(|(_, own)| *own == count) {
            groups.asked.insert(*deed, vec![known.number(first)]);
        }
    }
    groups
}

/// Where a value is in the order of its kind, as far as 64 bits go.
pub fn ordinal(kind: Kind, value: &Value) -> u64 {
    match value {
        Value::Number(number) if kind == Kind::Float => match to_float(*number) {
            float if float.is_nan() => u64::MAX,
            0.0 => from_float(0.0) as u64,
            _ => *number as u64,
        },
        Value::Number(number) => {
            let nearest = i64::try_from(*number).unwrap_or(if *number < 0 { i64::MIN } else { i64::MAX });
            nearest as u64 ^ 1 << 63
        }
        Value::String(bytes) => u64::from_be_bytes(std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))),
    }
}

/// How many blocks of four bits two have in common, of sixteen.
fn common(one: u64, other: u64) -> usize {
    (one ^ other).leading_zeros() as usize / 4
}

fn constants(kind: Kind, asked: &[(usize, &Condition)]) -> Vec<(Constant, u64)> {
    let of = |(deed, condition): &(usize, &Condition)| {
        let bounds = bounds(condition).into_iter().enumerate();
        bounds.filter_map(|(side, bound)| Some(((*deed, side), ordinal(kind, bound?.0)))).collect::<Vec<_>>()
    };
    asked.iter().flat_map(of).collect()
}

fn compared(kind: Kind, values: &BTreeMap<u64, Option<&Value>>, asked: &[(usize, &Condition)]) -> Compared {
    let (mut compared, constants) = (Compared::default(), constants(kind, asked));
    for (constant, own) in &constants {
        for (row, value) in values {
            let Some(other) = value.map(|value| ordinal(kind, value)) else { continue };
            compared.rows.insert((*constant, *row), (common(*own, other), own.cmp(&other)));
        }
        for (other, value) in &constants {
            compared.constants.insert((*constant, *other), common(*own, *value));
        }
    }
    compared
}

/// Of numbers a bound that does not count is the next one's or the last one's.
fn ranks(
    kind: Kind,
    values: &BTreeMap<u64, Option<&Value>>,
    asked: &[(usize, &Condition)],
) -> (BTreeMap<u64, usize>, BTreeMap<Constant, usize>) {
    let is_alone = width(kind).is_some();
    let mut bounds_of = BTreeMap::new();
    for (deed, condition) in asked {
        for (side, bound) in bounds(condition).into_iter().enumerate() {
            let Some((value, counts)) = bound else { continue };
            let own = ordinal(kind, value);
            let own = match (counts || !is_alone, side) {
                (true, _) => own,
                (false, 0) => own + 1,
                (false, _) => own - 1,
            };
            bounds_of.insert((*deed, side), own);
        }
    }
    let rows: BTreeMap<u64, u64> =
        values.iter().filter_map(|(row, value)| Some((*row, ordinal(kind, (*value)?)))).collect();
    let all: BTreeSet<u64> = rows.values().chain(bounds_of.values()).copied().collect();
    let rank = |own: &u64| all.range(..own).count();
    (
        rows.iter().map(|(row, own)| (*row, rank(own))).collect(),
        bounds_of.iter().map(|(at, own)| (*at, rank(own))).collect(),
    )
}

/// Numbers of what comes, by when it came first.
struct Numbered<T>(Vec<T>);

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: PartialEq> Numbered<T> {
    fn number(&mut self, own: T) -> usize {
        self.0.iter().position(|known| *known == own).unwrap_or_else(|| {
            self.0.push(own);
            self.0.len() - 1
        })
    }
}

/// The conditions that clouds of a layout were asked for, by deed.
pub fn conditions(deeds: &[Deed], of: u32) -> Vec<(usize, &Condition)> {
    let asked = deeds.iter().enumerate().filter_map(|(at, deed)| match deed {
        Deed::Asked { layout, condition } if *layout == of => Some((at, condition)),
        _ => None,
    });
    asked.collect()
}

/// The rows that were put at clouds of a layout, with their values.
pub fn put<'a>(deeds: &[Deed], lines: &'a BTreeMap<u64, Line>, of: u32) -> BTreeMap<u64, &'a Line> {
    let rows = deeds.iter().filter_map(|deed| match deed {
        Deed::Put { layout, rows, .. } if *layout == of => Some(rows),
        _ => None,
    });
    rows.flatten().map(|row| (*row, &lines[row])).collect()
}
