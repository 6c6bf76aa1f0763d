//! Values as people have them, a column at a time, and the forms in which they are coded.

use std::cmp::Ordering;

use crate::declaration::Kind;
use crate::fragments::Strings;

/// Values of some rows in one column. Never printed: they are what nobody else is to see.
#[derive(Clone, PartialEq)]
pub enum Plain {
    /// Of [`Kind::Number`]; of [`Kind::Float`] as [`from_float`] makes them.
    Numbers(Vec<Option<i128>>),
    /// Of [`Kind::Text`], [`Kind::Bytes`] and [`Kind::Uuid`]; NULL is an empty string that is marked.
    Strings {
        /// The values.
        values: Strings,
        /// Which of them are NULL.
        nulls: Vec<bool>,
    },
}

/// A value that is compared with.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Value {
    /// A number, or a float as [`from_float`] makes it.
    Number(i128),
    /// A text's or value's bytes.
    String(Vec<u8>),
}

impl Plain {
    /// No rows yet.
    #[must_use]
    pub fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Number { .. } | Kind::Float => Self::Numbers(Vec::new()),
            Kind::Text | Kind::Bytes | Kind::Uuid => Self::Strings { values: Strings::default(), nulls: Vec::new() },
        }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Strings { nulls, .. } => nulls.len(),
        }
    }

    /// Bytes that the values take here, or nearly so.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Numbers(numbers) => size_of_val(&numbers[..]),
            Self::Strings { values, nulls } => values.all().len() + nulls.len() * (size_of::<usize>() + 1),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A row's value; none: NULL.
    #[must_use]
    pub fn value(&self, row: usize) -> Option<Value> {
        match self {
            Self::Numbers(numbers) => numbers[row].map(Value::Number),
            Self::Strings { values, nulls } => (!nulls[row]).then(|| Value::String(values.get(row).to_vec())),
        }
    }

    /// A row's number, of a column of them.
    pub(crate) fn number(&self, row: usize) -> Option<i128> {
        match self {
            Self::Numbers(numbers) => numbers[row],
            Self::Strings { .. } => None,
        }
    }

    /// A row's value in its canonical form; none: NULL. `scratch` is where numbers are written.
    pub(crate) fn canonical<'a>(&'a self, kind: Kind, row: usize, scratch: &'a mut [u8; 16]) -> Option<&'a [u8]> {
        match self {
            Self::Numbers(numbers) => numbers[row].map(|number| canonical_number(kind, number, scratch)),
            Self::Strings { values, nulls } => (!nulls[row]).then(|| values.get(row)),
        }
    }

    /// A row's value in the form in which equal ones are the same; none: NULL.
    pub(crate) fn comparable<'a>(&'a self, kind: Kind, row: usize, scratch: &'a mut [u8; 16]) -> Option<&'a [u8]> {
        match (self, kind) {
            (Self::Numbers(numbers), Kind::Float) => {
                numbers[row].map(|number| canonical_number(kind, compared(number), scratch))
            }
            _ => self.canonical(kind, row, scratch),
        }
    }

    /// Adds a value in its canonical form; whether it is one.
    pub(crate) fn push(&mut self, kind: Kind, value: Option<&[u8]>) -> bool {
        match self {
            Self::Numbers(numbers) => {
                let number = value.map(|bytes| parse_number(kind, bytes));
                let is_one = number != Some(None);
                numbers.push(number.flatten());
                is_one
            }
            Self::Strings { values, nulls } => {
                values.push(value.unwrap_or_default());
                nulls.push(value.is_none());
                kind == Kind::Bytes || value.is_none_or(|bytes| std::str::from_utf8(bytes).is_ok())
            }
        }
    }

    /// Values from several, each by its number there and the row in it; of parts that are all of this kind.
    pub(crate) fn picked(kind: Kind, parts: &[&Self], picked: &[(u32, u32)]) -> Self {
        let mut all = Self::empty(kind);
        match &mut all {
            Self::Numbers(all) => all.extend(picked.iter().map(|(part, row)| match parts[*part as usize] {
                Self::Numbers(numbers) => numbers[*row as usize],
                Self::Strings { .. } => None,
            })),
            Self::Strings { values: all, nulls: are_null } => {
                for (part, row) in picked {
                    let Self::Strings { values, nulls } = parts[*part as usize] else { continue };
                    all.push(values.get(*row as usize));
                    are_null.push(nulls[*row as usize]);
                }
            }
        }
        all
    }

    /// The values of some rows, in the order in which they are named.
    #[must_use]
    pub fn chosen(&self, rows: &[usize]) -> Self {
        match self {
            Self::Numbers(numbers) => Self::Numbers(rows.iter().map(|row| numbers[*row]).collect()),
            Self::Strings { values, nulls } => {
                let mut chosen = Strings::default();
                rows.iter().for_each(|row| chosen.push(values.get(*row)));
                Self::Strings { values: chosen, nulls: rows.iter().map(|row| nulls[*row]).collect() }
            }
        }
    }
}

fn canonical_number(kind: Kind, number: i128, scratch: &mut [u8; 16]) -> &[u8] {
    *scratch = number.to_be_bytes();
    // Of numbers that fit into eight bytes these are all that differ, the sign among them.
    if kind.width() == Some(8) { &scratch[8..] } else { &scratch[..] }
}

fn parse_number(kind: Kind, bytes: &[u8]) -> Option<i128> {
    match (kind, bytes.len()) {
        (Kind::Float, 8) => Some(i128::from(u64::from_be_bytes(bytes.try_into().ok()?))),
        (_, 8) => Some(i128::from(i64::from_be_bytes(bytes.try_into().ok()?))),
        (_, 16) => Some(i128::from_be_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

impl Value {
    /// Which of two values of a kind comes first: numbers as they are, texts by their bytes.
    pub(crate) fn in_order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.cmp(other),
            (Self::String(one), Self::String(other)) => one.cmp(other),
            (Self::Number(_), Self::String(_)) => Ordering::Less,
            (Self::String(_), Self::Number(_)) => Ordering::Greater,
        }
    }

    /// The form in which equal ones are the same; none: a number that no value of its kind is.
    pub(crate) fn comparable(&self, kind: Kind) -> Option<Vec<u8>> {
        Some(match self {
            Self::Number(number) if kind == Kind::Float => {
                canonical_number(kind, compared(*number), &mut [0; 16]).to_vec()
            }
            Self::Number(number) if kind.width() == Some(8) && i64::try_from(*number).is_err() => return None,
            Self::Number(number) => canonical_number(kind, *number, &mut [0; 16]).to_vec(),
            Self::String(bytes) => bytes.clone(),
        })
    }

    /// Where it is in the order of its kind, as far as 64 bits go: greater values never have less. And whether no other value is there.
    pub(crate) fn ordinal(&self, kind: Kind) -> (u64, bool) {
        match self {
            Self::Number(number) if kind == Kind::Float => (ordinal_of_number(kind, *number), true),
            // What is beyond 64 bits is where the last one is.
            Self::Number(number) => {
                let nearest = i64::try_from(*number).unwrap_or(if *number < 0 { i64::MIN } else { i64::MAX });
                (ordinal_of_number(kind, nearest.into()), i128::from(nearest) == *number)
            }
            Self::String(bytes) => (ordinal_of_string(bytes), false),
        }
    }
}

/// See [`Value::ordinal`].
pub(crate) fn ordinal_of_number(kind: Kind, number: i128) -> u64 {
    if kind == Kind::Float { compared(number) as u64 } else { (number as i64 as u64) ^ 1 << 63 }
}

/// See [`Value::ordinal`]: of a text the first eight bytes, so that texts that agree in them are to be compared by whoever asks.
pub(crate) fn ordinal_of_string(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

/// A float as a number: greater floats have greater ones.
#[must_use]
pub fn from_float(float: f64) -> i128 {
    let bits = float.to_bits();
    i128::from(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
}

/// The float's number by which it is compared: both zeros have the same, and every NaN that of the greatest.
fn compared(number: i128) -> i128 {
    let float = to_float(number);
    match (float.is_nan(), float == 0.0) {
        (true, _) => i128::from(u64::MAX),
        (_, true) => from_float(0.0),
        _ => number,
    }
}

/// The float of such a number.
#[must_use]
pub fn to_float(number: i128) -> f64 {
    let bits = number as u64;
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Plain, Value, from_float, ordinal_of_number, to_float};
    use crate::declaration::Kind;

    proptest! {
        #[test]
        fn numbers_come_back_and_stay_in_order(one in any::<i64>(), other in any::<i64>(), wide in any::<i128>()) {
            let kinds = [(Kind::Number { bits: 64, wide: false, adds: true }, i128::from(one)), (Kind::Number { bits: 127, wide: true, adds: true }, wide)];
            for (kind, number) in kinds {
                let mut scratch = [0; 16];
                let plain = Plain::Numbers(vec![Some(number)]);
                let bytes = plain.canonical(kind, 0, &mut scratch).expect("a value").to_vec();
                prop_assert_eq!(Some(bytes.clone()), Value::Number(number).comparable(kind));
                let mut read = Plain::empty(kind);
                prop_assert!(read.push(kind, Some(&bytes)));
                prop_assert!(read == plain);
            }
            let ordinal = |number: i128| Value::Number(number).ordinal(kinds[0].0);
            prop_assert_eq!(ordinal(one.into()).0.cmp(&ordinal(other.into()).0), one.cmp(&other));
            // What is beyond is not less than what is within, and says that it is not alone there.
            let (beyond, is_alone) = ordinal(wide);
            prop_assert!(i128::from(one) > wide || ordinal(one.into()).0 <= beyond);
            prop_assert_eq!(is_alone, i64::try_from(wide).is_ok());
        }

        #[test]
        fn floats_come_back_and_stay_in_order(one in any::<f64>(), other in any::<f64>()) {
            prop_assert_eq!(to_float(from_float(one)).to_bits(), one.to_bits());
            if let Some(order) = one.partial_cmp(&other) {
                let ordinal = |float| ordinal_of_number(Kind::Float, from_float(float));
                prop_assert_eq!(ordinal(one).cmp(&ordinal(other)), order);
            }
        }

        #[test]
        fn texts_never_change_their_order(one in ".{0,12}", other in ".{0,12}") {
            let ordinal = |text: &str| Value::String(text.as_bytes().to_vec()).ordinal(Kind::Text).0;
            prop_assert!(one.as_bytes() > other.as_bytes() || ordinal(&one) <= ordinal(&other));
        }
    }

    #[test]
    fn what_is_no_value_of_its_kind_is_told() {
        let number = Kind::Number { bits: 32, wide: false, adds: true };
        assert!(!Plain::empty(number).push(number, Some(&[1, 2, 3])));
        assert!(Plain::empty(number).push(number, None));
        assert!(!Plain::empty(Kind::Text).push(Kind::Text, Some(&[0xFF])));
        assert!(Plain::empty(Kind::Bytes).push(Kind::Bytes, Some(&[0xFF])));
    }

    #[test]
    fn zeros_and_nans_are_kept_apart_and_compared_as_one() {
        let comparable = |float| Value::Number(from_float(float)).comparable(Kind::Float);
        let ordinal = |float| ordinal_of_number(Kind::Float, from_float(float));
        assert_ne!(from_float(0.0), from_float(-0.0));
        assert_eq!((comparable(0.0), ordinal(0.0)), (comparable(-0.0), ordinal(-0.0)));
        assert_eq!((comparable(f64::NAN), ordinal(f64::NAN)), (comparable(-f64::NAN), ordinal(-f64::NAN)));
        assert!(ordinal(-f64::NAN) > ordinal(f64::INFINITY));
        assert_eq!(Value::Number(1 << 64).comparable(Kind::Number { bits: 64, wide: false, adds: true }), None);
    }
}
