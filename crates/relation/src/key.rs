//! Keys as bytes whose order is the order of the values.
//!
//! ```text
//! a key:     its columns one after another, the most significant first
//! a column:  01 and the value, or 02 for NULL (NULLs come last)
//!
//! integers (all of them)   8 bytes big-endian, sign bit flipped
//! REAL, DOUBLE             8 bytes of the double, big-endian; negative: all bits flipped, else the sign bit;
//!                          -0 is written as 0, every NaN as the one with no sign and payload 8000000000000, the largest
//! NUMERIC                  16 bytes big-endian, sign bit flipped
//! BOOLEAN                  1 byte
//! DATE, TIME, TIMESTAMP    as integers
//! UUID                     its 16 bytes
//! texts, BYTEA             each 00 as 00 FF, then 00 00
//!
//! a row that is joined     01 and its number, 6 bytes big-endian, or 02 for none: the whole key of an index of a path
//!
//! an entry of an index:    the key, cut after 512 bytes, and the row's number, 8 bytes big-endian
//! ```
//!
//! Invariants:
//! 1. keys of one index compare as bytes the way their values compare column by column;
//! 2. no key is the beginning of another key of the same index, so entries sort by key first, cut or not;
//! 3. a key that was cut tells less than its row: whoever finds an entry looks at the row.

use alloc::vec::Vec;

use crate::layout::JOIN_BYTES;
use crate::{Error, RowBatch, RowId, Type, Value, ValueRef, few_or_many};
use counterfoil_log::Order as _;

/// Bytes of a key that an index entry holds.
pub(crate) const KEY_BYTES_MAX: usize = 512;
/// Bytes of an index entry.
pub(crate) const ENTRY_BYTES_MAX: usize = KEY_BYTES_MAX + ROW_BYTES;
pub(crate) const ROW_BYTES: usize = 8;

const PRESENT: u8 = 1;
const ABSENT: u8 = 2;

/// One end of a range of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyBound {
    /// No end; NULLs are not part of the range.
    Unbounded,
    /// The value is part of the range.
    Included(Value),
    /// The value is not part of the range.
    Excluded(Value),
}

/// A range of an index: equal values for its first columns, and optionally bounds for the column after them.
///
/// Integers of any width fit an integer column, and either sort of float a float column.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRange {
    /// Values of the index's first columns; NULL stands for IS NULL.
    pub prefix: Vec<Value>,
    /// Bounds of the next column (which then is not NULL).
    pub bounds: Option<(KeyBound, KeyBound)>,
}

impl KeyRange {
    /// Keys that begin with these values.
    #[must_use]
    pub fn equal(prefix: Vec<Value>) -> Self {
        KeyRange { prefix, bounds: None }
    }

    /// The range as bytes, for an index whose columns have these types.
    pub(crate) fn encode(&self, kinds: &[Type]) -> Result<ByteRange, Error> {
        let needed = self.prefix.len() + usize::from(self.bounds.is_some());
        if needed > kinds.len() {
            return Err(Error::misuse("a range over more columns than the index has"));
        }
        let mut prefix = Vec::new();
        for (value, kind) in self.prefix.iter().zip(kinds) {
            push_checked(*kind, value, &mut prefix)?;
        }
        let Some((low, high)) = &self.bounds else {
            let high = successor(&prefix);
            let exact = self.prefix.len() == kinds.len();
            return Ok(ByteRange { low: prefix, high, exact });
        };
        let kind = kinds[self.prefix.len()];
        let with = |value: &Value| {
            let mut bytes = prefix.clone();
            push_checked(kind, value, &mut bytes).map(|()| bytes)
        };
        let low = match low {
            KeyBound::Unbounded => joined(&prefix, PRESENT),
            KeyBound::Included(value) => with(value)?,
            KeyBound::Excluded(value) => past(with(value)?),
        };
        let high = match high {
            KeyBound::Unbounded => joined(&prefix, ABSENT),
            KeyBound::Included(value) => past(with(value)?),
            KeyBound::Excluded(value) => with(value)?,
        };
        Ok(ByteRange { low, high: Some(high), exact: false })
    }
}

/// Keys from `low` to before `high` (to the end without one).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) low: Vec<u8>,
    pub(crate) high: Option<Vec<u8>>,
    /// Whether it holds one whole key and nothing else.
    pub(crate) exact: bool,
}

impl ByteRange {
    /// One whole key.
    pub(crate) fn exactly(key: &[u8]) -> Self {
        ByteRange { low: key.to_vec(), high: successor(key), exact: true }
    }

    /// Whether a whole key lies in it.
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        key >= self.low.as_slice() && self.high.as_ref().is_none_or(|high| key < high.as_slice())
    }

    /// The range of entries in which all its keys lie, cut keys included.
    pub(crate) fn of_entries(&self) -> ByteRange {
        let low = stored(&self.low).to_vec();
        let high = match &self.high {
            Some(high) if high.len() > KEY_BYTES_MAX => successor(stored(high)),
            high => high.clone(),
        };
        ByteRange { low, high, exact: self.exact }
    }
}

/// Words of what a key or an entry begins with, where that is kept beside it: as many as a number or a short text has, and a row behind
/// it. Where memory is little its bytes are looked at.
const HEAD_WORDS: usize = few_or_many(0, 3);

/// What a key or an entry begins with. Those of others in order are in order, or equal.
pub(crate) type Head = [u64; HEAD_WORDS];

/// What some bytes begin with.
pub(crate) fn head(bytes: &[u8]) -> Head {
    let mut first = [0; HEAD_WORDS * size_of::<u64>()];
    let length = bytes.len().min(first.len());
    first[..length].copy_from_slice(&bytes[..length]);
    let mut words = first.chunks_exact(size_of::<u64>());
    core::array::from_fn(|_| {
        words.next().and_then(|word| word.first_chunk()).map_or(0, |word| u64::from_be_bytes(*word))
    })
}

/// The part of a key that entries hold.
pub(crate) fn stored(key: &[u8]) -> &[u8] {
    &key[..key.len().min(KEY_BYTES_MAX)]
}

/// The entry of a row under a key.
pub(crate) fn entry(key: &[u8], row: RowId) -> Vec<u8> {
    let key = stored(key);
    let mut bytes = Vec::with_capacity(key.len() + ROW_BYTES);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(&row.0.to_be_bytes());
    bytes
}

/// The key and the row of an entry; `None` for bytes too short to be one.
pub(crate) fn split_entry(entry: &[u8]) -> Option<(&[u8], RowId)> {
    let (key, row) = entry.split_last_chunk::<ROW_BYTES>()?;
    Some((key, RowId(u64::from_be_bytes(*row))))
}

/// The least byte string after all that begin with `prefix`; none if there is no such string.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut bytes = prefix[..=last].to_vec();
    bytes[last] += 1;
    Some(bytes)
}

/// As [`successor`], for bytes that hold a column.
fn past(bytes: Vec<u8>) -> Vec<u8> {
    successor(&bytes).expect("a column begins with 1 or 2, so something comes after it")
}

fn joined(prefix: &[u8], byte: u8) -> Vec<u8> {
    let mut bytes = prefix.to_vec();
    bytes.push(byte);
    bytes
}

fn push_checked(kind: Type, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
    use Value::{BigInt, Double, Integer, Real, SmallInt};
    let alike = match value {
        SmallInt(_) | Integer(_) | BigInt(_) => kind.keys_like(&Type::BigInt),
        Real(_) | Double(_) => kind.keys_like(&Type::Double),
        value => value.fits(kind),
    };
    if !alike {
        return Err(Error::misuse("a key of another type than its column"));
    }
    push_value(value.borrow(), out);
    Ok(())
}

/// Appends one column of a key.
pub(crate) fn push_value(value: ValueRef<'_>, out: &mut Vec<u8>) {
    if value == ValueRef::Null {
        out.push(ABSENT);
        return;
    }
    out.push(PRESENT);
    match value {
        ValueRef::Null => {}
        ValueRef::Boolean(value) => out.push(u8::from(value)),
        ValueRef::SmallInt(value) => push_integer(value.into(), out),
        ValueRef::Integer(value) | ValueRef::Date(value) => push_integer(value.into(), out),
        ValueRef::BigInt(value) | ValueRef::Time(value) | ValueRef::Timestamp(value) | ValueRef::TimestampTz(value) => {
            push_integer(value, out)
        }
        ValueRef::Real(value) => push_float(value.into(), out),
        ValueRef::Double(value) => push_float(value, out),
        ValueRef::Numeric(value) => out.extend_from_slice(&(value ^ i128::MIN).to_be_bytes()),
        ValueRef::Uuid(value) => out.extend_from_slice(&value),
        ValueRef::Text(value) => push_bytes(value.as_bytes(), out),
        ValueRef::Bytea(value) => push_bytes(value, out),
    }
}

fn push_integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
}

fn push_float(value: f64, out: &mut Vec<u8>) {
    const NAN: u64 = 0x7FF8_0000_0000_0000;
    const SIGN: u64 = 1 << 63;
    let bits = if value.is_nan() { NAN } else { (value + 0.0).to_bits() };
    let ordered = if bits & SIGN != 0 { !bits } else { bits ^ SIGN };
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn push_bytes(value: &[u8], out: &mut Vec<u8>) {
    for (place, piece) in value.split(|byte| *byte == 0).enumerate() {
        if place > 0 {
            out.extend_from_slice(&[0, 0xFF]);
        }
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(&[0, 0]);
}

/// What the keys of an index are made of, by places in the layout that rows are stored in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyParts {
    /// Columns.
    Columns(Vec<usize>),
    /// What rows join along a path.
    Join(usize),
}

impl KeyParts {
    /// The columns whose values are needed.
    pub(crate) fn columns(&self) -> &[usize] {
        match self {
            KeyParts::Columns(columns) => columns,
            KeyParts::Join(_) => &[],
        }
    }
}

/// Bytes of the key of rows that join a row, at most.
pub(crate) const JOIN_KEY_BYTES: usize = 1 + JOIN_BYTES;

/// Bytes that a value of a type has in a key at most: one more before it and two behind it, and every letter four.
pub(crate) fn key_bytes_max(kind: Type) -> usize {
    match kind {
        Type::VarChar(letters) | Type::Char(letters) => (letters as usize).saturating_mul(4).saturating_add(3),
        Type::Text | Type::Bytea => KEY_BYTES_MAX,
        kind => 1 + kind.bytes().max(size_of::<u64>()),
    }
}

/// The key of rows that join a row.
pub(crate) fn join_key(to: Option<RowId>) -> Vec<u8> {
    match to {
        Some(to) => [&[PRESENT], &to.0.to_be_bytes()[ROW_BYTES - JOIN_BYTES..]].concat(),
        None => Vec::from([ABSENT]),
    }
}

/// The keys of the rows of a batch in one index.
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// Where each key ends, and whether it has a NULL.
    ends: Vec<(usize, bool)>,
}

impl Keys {
    /// Works them out; `columns` are places in the batch's layout.
    pub(crate) fn of(batch: &RowBatch, columns: &[usize]) -> Result<Self, Error> {
        let mut keys = Keys { bytes: Vec::with_capacity(batch.count() * 10), ends: Vec::with_capacity(batch.count()) };
        for row in 0..batch.count() {
            let mut has_null = false;
            for column in columns {
                let value = batch.value(row, *column)?;
                has_null |= value == ValueRef::Null;
                push_value(value, &mut keys.bytes);
            }
            keys.ends.push((keys.bytes.len(), has_null));
        }
        Ok(keys)
    }

    /// Works out the keys of rows as they are stored.
    pub(crate) fn of_parts(batch: &RowBatch, parts: &KeyParts) -> Result<Self, Error> {
        let join = match parts {
            KeyParts::Columns(columns) => return Keys::of(batch, columns),
            KeyParts::Join(place) => *place,
        };
        let mut keys = Keys { bytes: Vec::new(), ends: Vec::with_capacity(batch.count()) };
        for row in 0..batch.count() {
            let to = batch.join(row, join);
            keys.bytes.extend_from_slice(&join_key(to));
            keys.ends.push((keys.bytes.len(), to.is_none()));
        }
        Ok(keys)
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// The key of a row.
    pub(crate) fn key(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before].0);
        &self.bytes[start..self.ends[row].0]
    }

    /// Whether a column of the key of a row is NULL.
    pub(crate) fn has_null(&self, row: usize) -> bool {
        self.ends[row].1
    }

    /// One row for each key without a NULL, in the order of the keys.
    pub(crate) fn distinct(&self, rows: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut distinct = self.in_order(rows.filter(|row| !self.has_null(*row)).collect());
        distinct.dedup_by(|later, earlier| self.key(*later) == self.key(*earlier));
        distinct
    }

    /// Rows whose keys have no NULL, in the order of their keys; equal keys in the order of their rows.
    pub(crate) fn sorted(&self) -> Vec<usize> {
        self.in_order((0..self.count()).filter(|row| !self.has_null(*row)).collect())
    }

    /// Rows in the order of their keys; those with equal keys stay in their order.
    fn in_order(&self, mut rows: Vec<usize>) -> Vec<usize> {
        if rows.is_sorted_by(|one, two| self.key(*one) <= self.key(*two)) {
            return rows;
        }
        if cfg!(feature = "small") {
            rows.order_stably_by(|one, two| self.key(*one).cmp(self.key(*two)));
            return rows;
        }
        let heads = rows.iter().enumerate().map(|(place, row)| (head(self.key(*row)), place, *row));
        let mut heads: Vec<(Head, usize, usize)> = heads.collect();
        heads.order_by(|one, two| {
            one.0.cmp(&two.0).then_with(|| self.key(one.2).cmp(self.key(two.2))).then(one.1.cmp(&two.1))
        });
        heads.into_iter().map(|(_, _, row)| row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn key(value: ValueRef<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_value(value, &mut bytes);
        bytes
    }

    #[test]
    fn keys_of_the_specification() {
        assert_eq!(key(ValueRef::Integer(1)), [1, 0x80, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(key(ValueRef::SmallInt(-1)), [1, 0x7F, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(key(ValueRef::Null), [2]);
        assert_eq!(key(ValueRef::Text("a\0b")), [1, b'a', 0, 0xFF, b'b', 0, 0]);
        assert_eq!(key(ValueRef::Text("")), [1, 0, 0]);
        assert_eq!(key(ValueRef::Double(-0.0)), key(ValueRef::Double(0.0)));
        assert_eq!(key(ValueRef::Double(1.0)), [1, 0xBF, 0xF0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(key(ValueRef::Double(-1.0)), [1, 0x40, 0x0F, 255, 255, 255, 255, 255, 255]);
    }

    #[test]
    fn keys_that_begin_alike_are_put_in_order_by_their_ends() {
        let alike = "the same for sixteen letters, and more ";
        let ends = ["b", "", "a", "b", "c", "a"];
        let keys: Vec<Vec<u8>> = ends.iter().map(|end| key(ValueRef::Text(&[alike, end].concat()))).collect();
        let mut of_rows = Keys { bytes: Vec::new(), ends: Vec::new() };
        for key in &keys {
            of_rows.bytes.extend_from_slice(key);
            of_rows.ends.push((of_rows.bytes.len(), false));
        }
        assert_eq!(of_rows.sorted(), [1, 2, 5, 0, 3, 4]);
        assert_eq!(of_rows.distinct(0..6), [1, 2, 0, 4]);
    }

    #[test]
    fn a_range_without_bounds_holds_every_longer_key() {
        let range = KeyRange::equal(vec![Value::Integer(7)]).encode(&[Type::Integer, Type::Text]).unwrap();
        assert!(!range.exact);
        let mut whole = key(ValueRef::Integer(7));
        push_value(ValueRef::Null, &mut whole);
        assert!(range.contains(&whole));
        assert!(!range.contains(&key(ValueRef::Integer(8))));
    }

    #[test]
    fn bounds_leave_nulls_out() {
        let bounds = Some((KeyBound::Excluded(Value::Integer(3)), KeyBound::Unbounded));
        let range = KeyRange { prefix: vec![], bounds }.encode(&[Type::BigInt]).unwrap();
        assert!(!range.contains(&key(ValueRef::BigInt(3))));
        assert!(range.contains(&key(ValueRef::BigInt(4))));
        assert!(range.contains(&key(ValueRef::BigInt(i64::MAX))));
        assert!(!range.contains(&key(ValueRef::Null)));
    }

    #[test]
    fn a_key_of_another_type_is_refused() {
        assert!(KeyRange::equal(vec![Value::Text("x".into())]).encode(&[Type::Integer]).is_err());
        assert!(KeyRange::equal(vec![Value::Null, Value::Null]).encode(&[Type::Integer]).is_err());
    }

    use proptest::prelude::*;

    fn any_value(kind: u8) -> BoxedStrategy<Value> {
        let some = match kind {
            0 => any::<bool>().prop_map(Value::Boolean).boxed(),
            1 => any::<i32>().prop_map(Value::Integer).boxed(),
            2 => any::<i64>().prop_map(Value::BigInt).boxed(),
            3 => any::<f64>().prop_map(Value::Double).boxed(),
            4 => any::<i128>().prop_map(Value::Numeric).boxed(),
            5 => "[a-c\0]{0,6}".prop_map(Value::Text).boxed(),
            6 => proptest::collection::vec(0..3_u8, 0..6).prop_map(Value::Bytea).boxed(),
            _ => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        };
        prop_oneof![1 => Just(Value::Null), 6 => some].boxed()
    }

    /// The order that keys must have: by value, NULL last, NaN the largest number, zeros alike.
    fn order(one: &Value, two: &Value) -> core::cmp::Ordering {
        use core::cmp::Ordering::{Equal, Greater, Less};
        match (one, two) {
            (Value::Null, Value::Null) => Equal,
            (Value::Null, _) => Greater,
            (_, Value::Null) => Less,
            (Value::Boolean(one), Value::Boolean(two)) => one.cmp(two),
            (Value::Integer(one), Value::Integer(two)) => one.cmp(two),
            (Value::BigInt(one), Value::BigInt(two)) => one.cmp(two),
            (Value::Double(one), Value::Double(two)) => match (one.is_nan(), two.is_nan()) {
                (false, false) => one.partial_cmp(two).unwrap(),
                (one, two) => one.cmp(&two),
            },
            (Value::Numeric(one), Value::Numeric(two)) => one.cmp(two),
            (Value::Text(one), Value::Text(two)) => one.cmp(two),
            (Value::Bytea(one), Value::Bytea(two)) => one.cmp(two),
            (Value::Uuid(one), Value::Uuid(two)) => one.cmp(two),
            _ => unreachable!("values of one column have one type"),
        }
    }

    fn two_rows() -> impl Strategy<Value = (Vec<Value>, Vec<Value>)> {
        proptest::collection::vec(0..8_u8, 1..4).prop_flat_map(|kinds| {
            let row = move || kinds.iter().map(|kind| any_value(*kind)).collect::<Vec<_>>();
            (row(), row())
        })
    }

    fn whole(values: &[Value]) -> Vec<u8> {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| push_value(value.borrow(), &mut bytes));
        bytes
    }

    proptest! {
        #[test]
        fn keys_compare_as_their_values((one, two) in two_rows()) {
            let by_value = one.iter().zip(&two).map(|(one, two)| order(one, two)).find(|order| order.is_ne());
            let by_value = by_value.unwrap_or(core::cmp::Ordering::Equal);
            prop_assert_eq!(whole(&one).cmp(&whole(&two)), by_value);
            let alike = by_value.is_eq();
            prop_assert_eq!(whole(&two).starts_with(&whole(&one)), alike);
        }

        #[test]
        fn entries_of_a_range_hold_all_its_keys((mut one, mut two) in two_rows(), long in 0..2000_usize) {
            for row in [&mut one, &mut two] {
                if let Some(Value::Text(text)) = row.last_mut() {
                    text.insert_str(0, &"a".repeat(long));
                }
            }
            let (one, two) = (whole(&one), whole(&two));
            let range = ByteRange { low: one.clone(), high: Some(two.clone()), exact: false };
            let entries = range.of_entries();
            for key in [&one, &two] {
                let there = entry(key, RowId(7));
                let inside = there >= entries.low && entries.high.as_ref().is_none_or(|high| there < *high);
                prop_assert!(inside || !range.contains(key));
            }
        }
    }
}
