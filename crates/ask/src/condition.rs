//! Conditions in SQL's logic of three values, on rows and on all values that a column can have.

use counterfoil_proof::{Definition, Value};

use crate::error::Error;
use crate::like::Pattern;
use crate::literal::Comparison;
use crate::set::{NULL, Set};

/// A condition on a row. Depth is bounded by the parser's: chains of AND and OR are flat.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// TRUE, FALSE or NULL.
    Constant(Option<bool>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Not(Box<Condition>),
    /// Whether a condition has a value: never NULL itself.
    Is(Box<Condition>, Option<bool>),
    IsNull(u16),
    /// Whether a column is among these values; NULL for NULL.
    Within(u16, Set),
    Like(u16, Pattern),
    /// Two columns of one type.
    Columns(u16, Comparison, u16),
}

/// Values of a column for which a condition can have a certain value.
pub(crate) struct Possible {
    pub(crate) set: Set,
    /// Whether the condition has that value for all of them, whatever the other columns hold.
    pub(crate) is_exact: bool,
}

/// A row as the question has it: numbers of columns, sorted, and their values.
pub(crate) struct Row<'a> {
    pub(crate) definition: &'a Definition,
    pub(crate) columns: &'a [u16],
    pub(crate) values: &'a [Value],
}

impl Row<'_> {
    pub(crate) fn value(&self, column: u16) -> Result<&Value, Error> {
        let at = self.columns.binary_search(&column).ok();
        at.and_then(|at| self.values.get(at)).ok_or(Error::OtherRows("a column is missing"))
    }

    /// The encoding of a value, which sorts as values do.
    pub(crate) fn encoded(&self, column: u16) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let kind = self.definition.columns[usize::from(column)].kind;
        kind.encode(self.value(column)?, &mut bytes).map_err(|_| Error::OtherRows("a value of another type"))?;
        Ok(bytes)
    }
}

/// Values of columns that are known while intervals are made, encoded, and how much work may still be done.
pub(crate) struct Known {
    pub(crate) values: Vec<(u16, Vec<u8>)>,
    pub(crate) work: usize,
}

impl Known {
    fn of(&self, column: u16) -> Option<&[u8]> {
        self.values.iter().find(|(known, _)| *known == column).map(|(_, encoded)| &encoded[..])
    }
}

impl Condition {
    /// Appends the columns it is about.
    pub(crate) fn columns(&self, into: &mut Vec<u16>) {
        match self {
            Self::Constant(_) => {}
            Self::And(parts) | Self::Or(parts) => parts.iter().for_each(|part| part.columns(into)),
            Self::Not(inner) | Self::Is(inner, _) => inner.columns(into),
            Self::IsNull(column) | Self::Within(column, _) | Self::Like(column, _) => into.push(*column),
            Self::Columns(left, _, right) => into.extend([*left, *right]),
        }
    }

    /// The parts of which all must be true.
    pub(crate) fn parts(&self) -> Vec<&Condition> {
        match self {
            Self::And(parts) => parts.iter().flat_map(Self::parts).collect(),
            other => vec![other],
        }
    }

    /// Its value on a row; none: NULL.
    pub(crate) fn on(&self, row: &Row<'_>) -> Result<Option<bool>, Error> {
        Ok(match self {
            Self::Constant(value) => *value,
            Self::And(parts) => all(parts, row, false)?,
            Self::Or(parts) => all(parts, row, true)?,
            Self::Not(inner) => inner.on(row)?.map(|value| !value),
            Self::Is(inner, value) => Some(inner.on(row)? == *value),
            Self::IsNull(column) => Some(*row.value(*column)? == Value::Null),
            Self::Within(column, set) => {
                let encoded = row.encoded(*column)?;
                if encoded == NULL { None } else { Some(set.contains(&encoded)) }
            }
            Self::Like(column, pattern) => match row.value(*column)? {
                Value::Null => None,
                Value::Text(text) => Some(pattern.matches(text)),
                _ => return Err(Error::OtherRows("a value of another type")),
            },
            Self::Columns(left, comparison, right) => {
                let (left, right) = (row.encoded(*left)?, row.encoded(*right)?);
                if left == NULL || right == NULL { None } else { Some(holds(*comparison, &left, &right)) }
            }
        })
    }

    /// The values of `column` for which it can be `wanted`, when the columns in `known` have their values there.
    pub(crate) fn possible(&self, wanted: bool, column: u16, known: &mut Known) -> Possible {
        known.work = known.work.saturating_sub(1);
        match self {
            Self::Constant(value) => decided(*value == Some(wanted)),
            Self::And(parts) => parts_possible(parts, wanted, !wanted, column, known),
            Self::Or(parts) => parts_possible(parts, wanted, wanted, column, known),
            Self::Not(inner) => inner.possible(!wanted, column, known),
            Self::Is(inner, value) => is_possible(inner, *value, wanted, column, known),
            Self::IsNull(of) => {
                leaf(*of, column, known, wanted, |wanted| (if wanted { Set::null() } else { Set::values() }, true))
            }
            Self::Within(of, set) => {
                if *of == column {
                    known.work = known.work.saturating_sub(set.ranges().len());
                }
                leaf(*of, column, known, wanted, |wanted| (if wanted { set.clone() } else { set.complement() }, true))
            }
            Self::Like(of, pattern) => leaf(*of, column, known, wanted, |wanted| match (wanted, pattern.is_prefix) {
                (true, is_prefix) => (pattern.prefixed.clone(), is_prefix),
                (false, true) => (pattern.prefixed.complement(), true),
                (false, false) => (Set::values(), false),
            }),
            Self::Columns(..) => Possible { set: Set::all(), is_exact: false },
        }
    }
}

/// AND (`decisive` false) and OR (`decisive` true): one part that is `decisive` decides.
fn all(parts: &[Condition], row: &Row<'_>, decisive: bool) -> Result<Option<bool>, Error> {
    let mut value = Some(!decisive);
    for part in parts {
        match part.on(row)? {
            Some(part) if part == decisive => return Ok(Some(decisive)),
            None => value = None,
            Some(_) => {}
        }
    }
    Ok(value)
}

fn holds(comparison: Comparison, left: &[u8], right: &[u8]) -> bool {
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
    }
}

fn decided(is_possible: bool) -> Possible {
    Possible { set: if is_possible { Set::all() } else { Set::default() }, is_exact: true }
}

/// A condition on the column `of`: about the one asked for, about a known one, or about another, which says nothing.
fn leaf(of: u16, column: u16, known: &Known, wanted: bool, set: impl Fn(bool) -> (Set, bool)) -> Possible {
    if of == column {
        let (set, is_exact) = set(wanted);
        return Possible { set, is_exact };
    }
    match known.of(of) {
        Some(encoded) => {
            let (set, is_exact) = set(wanted);
            let is_possible = set.contains(encoded);
            Possible { is_exact: is_exact || !is_possible, ..decided(is_possible) }
        }
        None => Possible { set: Set::all(), is_exact: false },
    }
}

/// What is possible for parts of which any may have the wanted value (`is_any`), or all must.
fn parts_possible(parts: &[Condition], wanted: bool, is_any: bool, column: u16, known: &mut Known) -> Possible {
    let mut is_exact = true;
    let mut sets = Vec::new();
    let mut common = Set::all();
    for part in parts {
        let possible = part.possible(wanted, column, known);
        is_exact &= possible.is_exact;
        if is_any {
            sets.push(possible.set);
        } else {
            common = common.intersection(&possible.set);
            if common.is_empty() {
                return decided(false);
            }
        }
    }
    Possible { set: if is_any { Set::union(sets) } else { common }, is_exact }
}

fn is_possible(inner: &Condition, value: Option<bool>, wanted: bool, column: u16, known: &mut Known) -> Possible {
    let is_value = match value {
        Some(value) => inner.possible(value, column, known),
        None => {
            let (yes, no) = (inner.possible(true, column, known), inner.possible(false, column, known));
            if !yes.is_exact || !no.is_exact {
                return Possible { set: Set::all(), is_exact: false };
            }
            Possible { set: Set::union(vec![yes.set, no.set]).complement_with_null(), is_exact: true }
        }
    };
    match (wanted, is_value.is_exact) {
        (true, _) => is_value,
        (false, true) => Possible { set: is_value.set.complement_with_null(), is_exact: true },
        (false, false) => Possible { set: Set::all(), is_exact: false },
    }
}
