//! Which ranges of which index hold all rows of which tests are true.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
#[cfg(not(feature = "small"))]
use core::cmp::Ordering;

use super::test::{Comparison, Constant, Test};
#[cfg(not(feature = "small"))]
use crate::key::push_value;
use crate::{IndexDef, IndexId, KeyBound, KeyRange, Table, Type, Value};
use counterfoil_log::Order as _;

/// Most values of an IN list that are looked up one by one, in a table where so many rows may be named.
const LOOKUPS_MAX: usize = 1024;

/// A way to rows of which tests may be true: ranges of an index.
pub(super) struct Way {
    pub(super) index: IndexId,
    /// All rows of which the tests are true have keys in them.
    pub(super) ranges: Vec<KeyRange>,
    /// The columns of which the ranges say something.
    pub(super) columns: Vec<usize>,
    /// How much they say: 2 for each value, 1 for bounds, and one half more for a key of which there is one.
    weight: usize,
}

#[cfg(not(feature = "small"))]
impl Way {
    /// Whether all rows whose keys lie in its ranges are rows of which the tests are true, and it is not one row that is looked for.
    pub(super) fn says_all(&self, tests: &[&Test], table: &Table) -> bool {
        let known = self.ranges.first().map_or(0, |range| range.prefix.len());
        let is_said = |(place, column): (usize, &usize)| {
            let mut said = tests.iter().filter(|test| test.is_of(*column));
            match place < known {
                true => said.next().is_some_and(|test| test.is_of_values()) && said.next().is_none(),
                false => are_bounds(said, &table.columns[*column].kind),
            }
        };
        let is_exact = |column: &usize| !matches!(table.columns[*column].kind, Type::Real | Type::Double);
        self.weight.is_multiple_of(2)
            && tests.iter().all(|test| self.columns.iter().any(|column| test.is_of(*column)))
            // Zeros of both signs have one key, and are not the same.
            && self.columns.iter().all(is_exact)
            && self.columns.iter().enumerate().all(is_said)
    }
}

/// Whether tests are two bounds at most, one on each side.
#[cfg(not(feature = "small"))]
fn are_bounds<'t>(tests: impl Iterator<Item = &'t &'t Test>, kind: &Type) -> bool {
    let (mut lows, mut highs) = (0, 0);
    for test in tests {
        let Test::Compare { comparison, constant, .. } = test else {
            // Where there are bounds, NULL is not within them.
            let is_there = matches!(test, Test::Null { wanted: false, .. });
            if is_there { continue } else { return false }
        };
        match comparison {
            Comparison::Less | Comparison::AtMost => highs += 1,
            Comparison::Greater | Comparison::AtLeast => lows += 1,
            Comparison::Equal | Comparison::Unequal => return false,
        }
        if stored(kind, constant).is_none() {
            return false;
        }
    }
    lows <= 1 && highs <= 1
}

/// The ways to rows of which all of these tests are true, those that say most first.
pub(super) fn ways(tests: &[&Test], table: &Table) -> Vec<Way> {
    // Indexes of paths have no columns.
    let indexes = table.indexes.iter().filter(|index| !index.columns.is_empty());
    let mut ways: Vec<Way> = indexes.filter_map(|index| way(tests, table, index)).collect();
    ways.order_stably_by_key(|way| core::cmp::Reverse(way.weight));
    ways
}

/// The same, and where there is none, those to rows in which a column is not NULL: of most columns that says little.
pub(super) fn any_ways(tests: &[&Test], table: &Table) -> Vec<Way> {
    let known = ways(tests, table);
    if !known.is_empty() {
        return known;
    }
    table.indexes.iter().filter_map(|index| there(tests, table, index)).collect()
}

/// The way to rows in which the first column of an index is not NULL.
fn there(tests: &[&Test], table: &Table, index: &IndexDef) -> Option<Way> {
    let column = table.position(*index.columns.first()?)?;
    let is_it = |test: &&Test| matches!(test, Test::Null { column: of, wanted: false } if *of == column);
    let is_wanted = !table.columns[column].not_null && tests.iter().any(is_it);
    let range = KeyRange { prefix: Vec::new(), bounds: Some((KeyBound::Unbounded, KeyBound::Unbounded)) };
    is_wanted.then(|| Way { index: index.id, ranges: vec![range], columns: vec![column], weight: 0 })
}

fn way(tests: &[&Test], table: &Table, index: &IndexDef) -> Option<Way> {
    let columns: Vec<usize> = index.columns.iter().map(|id| table.position(*id)).collect::<Option<_>>()?;
    let prefix: Vec<Value> = columns.iter().map_while(|column| equal(tests, table, *column)).collect();
    let is_one = index.unique && prefix.len() == columns.len();
    let way = |ranges, said: usize, weight: usize| Way {
        index: index.id,
        ranges,
        columns: columns[..said].to_vec(),
        weight: 2 * weight + usize::from(is_one),
    };
    let known = prefix.len();
    let Some(next) = columns.get(known).copied() else {
        return Some(way(vec![KeyRange::equal(prefix)], known, 2 * known));
    };
    if let Some(values) = listed(tests, table, next) {
        let with = |value: Value| KeyRange::equal(prefix.iter().cloned().chain([value]).collect());
        return Some(way(values.into_iter().map(with).collect(), known + 1, 2 * known + 2));
    }
    match bounds(tests, table, next) {
        None if known == 0 => None,
        None => Some(way(vec![KeyRange::equal(prefix)], known, 2 * known)),
        bounds => Some(way(vec![KeyRange { prefix, bounds }], known + 1, 2 * known + 1)),
    }
}

/// An index in which the rows of which all of these tests are true lie in the order of a column, and the range of their keys: the index
/// that has most values before it.
pub(super) fn in_order_of(tests: &[&Test], table: &Table, wanted: usize) -> Option<(IndexId, KeyRange)> {
    let ordered = table.indexes.iter().filter_map(|index| {
        let columns: Vec<usize> = index.columns.iter().map(|id| table.position(*id)).collect::<Option<_>>()?;
        let place = columns.iter().position(|column| *column == wanted)?;
        let prefix =
            columns[..place].iter().map(|column| equal(tests, table, *column)).collect::<Option<Vec<Value>>>()?;
        Some((index.id, prefix))
    });
    let (index, prefix) = ordered.max_by_key(|(_, prefix)| prefix.len())?;
    let bounds = bounds(tests, table, wanted).or(Some((KeyBound::Unbounded, KeyBound::Unbounded)));
    Some((index, KeyRange { prefix, bounds }))
}

/// Takes a conjunction apart.
pub(super) fn flatten<'a>(test: &'a Test, flat: &mut Vec<&'a Test>) {
    match test {
        Test::All(tests) => tests.iter().for_each(|test| flatten(test, flat)),
        other => flat.push(other),
    }
}

fn equal(tests: &[&Test], table: &Table, wanted: usize) -> Option<Value> {
    tests.iter().find_map(|test| match test {
        Test::Compare { column, comparison: Comparison::Equal, constant } if *column == wanted => {
            stored(&table.columns[wanted].kind, constant)
        }
        Test::Null { column, wanted: true } if *column == wanted => Some(Value::Null),
        _ => None,
    })
}

fn listed(tests: &[&Test], table: &Table, wanted: usize) -> Option<Vec<Value>> {
    let constants = tests.iter().find_map(|test| match test {
        Test::In { column, constants } if *column == wanted && constants.len() <= LOOKUPS_MAX => Some(constants),
        _ => None,
    })?;
    let mut once: Vec<&Constant> = Vec::new();
    constants.iter().for_each(|constant| {
        if !once.contains(&constant) {
            once.push(constant);
        }
    });
    once.into_iter().map(|constant| stored(&table.columns[wanted].kind, constant)).collect()
}

fn bounds(tests: &[&Test], table: &Table, wanted: usize) -> Option<(KeyBound, KeyBound)> {
    let (mut low, mut high) = (KeyBound::Unbounded, KeyBound::Unbounded);
    #[cfg(not(feature = "small"))]
    tests.iter().filter_map(|test| around(test, table, wanted)).for_each(|around| (low, high) = around);
    for test in tests {
        let Test::Compare { column, comparison, constant } = test else { continue };
        if *column != wanted {
            continue;
        }
        // Several bounds on one side: any of them is right, since every test is asked again of each row.
        let Some(value) = stored(&table.columns[wanted].kind, constant) else { continue };
        match comparison {
            Comparison::Less => high = KeyBound::Excluded(value),
            Comparison::AtMost => high = KeyBound::Included(value),
            Comparison::Greater => low = KeyBound::Excluded(value),
            Comparison::AtLeast => low = KeyBound::Included(value),
            Comparison::Equal | Comparison::Unequal => {}
        }
    }
    (low != KeyBound::Unbounded || high != KeyBound::Unbounded).then_some((low, high))
}

/// The bounds between which a column lies whichever of some alternatives is true: `a > 5 OR (a = 5 AND b > 7)` is `a >= 5` and more.
#[cfg(not(feature = "small"))]
fn around(test: &Test, table: &Table, wanted: usize) -> Option<(KeyBound, KeyBound)> {
    let Test::Any(alternatives) = test else { return None };
    let mut all: Option<(KeyBound, KeyBound)> = None;
    for alternative in alternatives {
        let mut flat = Vec::new();
        flatten(alternative, &mut flat);
        // NULL lies between no bounds.
        let one = match equal(&flat, table, wanted) {
            Some(value) if value != Value::Null => (KeyBound::Included(value.clone()), KeyBound::Included(value)),
            Some(_) => return None,
            None => bounds(&flat, table, wanted)?,
        };
        all = Some(match all {
            None => one,
            Some((low, high)) => (wider(low, one.0, Ordering::Less), wider(high, one.1, Ordering::Greater)),
        });
    }
    all.filter(|bounds| *bounds != (KeyBound::Unbounded, KeyBound::Unbounded))
}

/// Of two bounds the one that lies further out, with its value.
#[cfg(not(feature = "small"))]
fn wider(one: KeyBound, other: KeyBound, outwards: Ordering) -> KeyBound {
    let value = |bound: KeyBound| match bound {
        KeyBound::Unbounded => None,
        KeyBound::Included(value) | KeyBound::Excluded(value) => Some(value),
    };
    let (Some(one), Some(other)) = (value(one), value(other)) else { return KeyBound::Unbounded };
    let key = |value: &Value| {
        let mut key = Vec::new();
        push_value(value.borrow(), &mut key);
        key
    };
    KeyBound::Included(if key(&one).cmp(&key(&other)) == outwards { one } else { other })
}

/// The constant as a value of a key.
fn stored(kind: &Type, constant: &Constant) -> Option<Value> {
    Some(match (kind, constant) {
        (Type::Boolean, Constant::Whole(number)) => Value::Boolean(*number != 0),
        (Type::SmallInt | Type::Integer | Type::BigInt, Constant::Whole(number)) => Value::BigInt(*number),
        (Type::Date, Constant::Whole(days)) => Value::Date(i32::try_from(*days).ok()?),
        (Type::Time, Constant::Whole(ticks)) => Value::Time(*ticks),
        (Type::Timestamp { .. }, Constant::Whole(ticks)) => Value::Timestamp(*ticks),
        (Type::TimestampTz, Constant::Whole(ticks)) => Value::TimestampTz(*ticks),
        (Type::Real | Type::Double, Constant::Float(number)) => Value::Double(*number),
        (Type::Numeric { .. }, Constant::Decimal(number)) => Value::Numeric(*number),
        (Type::Bytea, Constant::Bytes(bytes)) => Value::Bytea(bytes.clone()),
        (Type::Uuid, Constant::Bytes(bytes)) => Value::Uuid(bytes.as_slice().try_into().ok()?),
        (_, Constant::Bytes(bytes)) => Value::Text(String::from_utf8(bytes.clone()).ok()?),
        _ => return None,
    })
}
