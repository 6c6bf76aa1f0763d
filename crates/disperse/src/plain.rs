//! Values as people have them, a column at a time, and the forms in which they are coded.

use crate::declaration::Kind;
use crate::fragments::Strings;

/// Values of some rows in one column. Never printed: they are what nobody else is to see.
#[derive(Clone, PartialEq)]
pub enum Plain {
    /// Of [`Kind::Number`]; of [`Kind::Float`] as [`from_float`] makes them.
    Numbers(Vec<Option<i128>>),
    /// Of [`Kind::Text`] and [`Kind::Bytes`]; NULL is an empty string that is marked.
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
            Kind::Text | Kind::Bytes => Self::Strings { values: Strings::default(), nulls: Vec::new() },
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
                kind != Kind::Text || value.is_none_or(|bytes| std::str::from_utf8(bytes).is_ok())
            }
        }
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
    /// Its canonical form.
    pub(crate) fn canonical(&self, kind: Kind) -> Vec<u8> {
        match self {
            Self::Number(number) => canonical_number(kind, *number, &mut [0; 16]).to_vec(),
            Self::String(bytes) => bytes.clone(),
        }
    }

    /// Where it is in the order of its kind, as far as 64 bits go: greater values never have less.
    pub(crate) fn ordinal(&self, kind: Kind) -> u64 {
        match self {
            Self::Number(number) => ordinal_of_number(kind, *number),
            Self::String(bytes) => ordinal_of_string(bytes),
        }
    }
}

/// See [`Value::ordinal`].
pub(crate) fn ordinal_of_number(kind: Kind, number: i128) -> u64 {
    if kind == Kind::Float { number as u64 } else { (number as i64 as u64) ^ 1 << 63 }
}

/// See [`Value::ordinal`]: of a text the first eight bytes, so that texts that agree in them are to be compared by whoever asks.
pub(crate) fn ordinal_of_string(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

/// A float as a number: greater floats have greater ones, NaN the greatest, and both zeros the same.
#[must_use]
pub fn from_float(float: f64) -> i128 {
    let float = if float == 0.0 { 0.0 } else { float };
    let bits = if float.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { float.to_bits() };
    i128::from(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
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

    use super::{Plain, Value, from_float, to_float};
    use crate::declaration::Kind;

    proptest! {
        #[test]
        fn numbers_come_back_and_stay_in_order(one in any::<i64>(), other in any::<i64>(), wide in any::<i128>()) {
            let kinds = [(Kind::Number { bits: 64, wide: false, adds: true }, i128::from(one)), (Kind::Number { bits: 127, wide: true, adds: true }, wide)];
            for (kind, number) in kinds {
                let mut scratch = [0; 16];
                let plain = Plain::Numbers(vec![Some(number)]);
                let bytes = plain.canonical(kind, 0, &mut scratch).expect("a value").to_vec();
                prop_assert_eq!(&bytes, &Value::Number(number).canonical(kind));
                let mut read = Plain::empty(kind);
                prop_assert!(read.push(kind, Some(&bytes)));
                prop_assert!(read == plain);
            }
            let ordinal = |number: i64| Value::Number(i128::from(number)).ordinal(kinds[0].0);
            prop_assert_eq!(ordinal(one).cmp(&ordinal(other)), one.cmp(&other));
        }

        #[test]
        fn floats_come_back_and_stay_in_order(one in any::<f64>(), other in any::<f64>()) {
            prop_assert_eq!(to_float(from_float(one)).to_bits(), (one + 0.0).to_bits());
            if one != other {
                prop_assert_eq!(Some(from_float(one).cmp(&from_float(other))), one.partial_cmp(&other));
            }
        }

        #[test]
        fn texts_never_change_their_order(one in ".{0,12}", other in ".{0,12}") {
            let ordinal = |text: &str| Value::String(text.as_bytes().to_vec()).ordinal(Kind::Text);
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
        assert!(to_float(from_float(f64::NAN)).is_nan() && from_float(f64::NAN) > from_float(f64::INFINITY));
        assert_eq!(from_float(0.0), from_float(-0.0));
    }
}
