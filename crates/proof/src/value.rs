//! Values and their one encoding, which sorts as the values do.
//!
//! ```text
//! 01 payload   a value       02   NULL, after all values
//! ```
//! Payloads: a boolean is a byte; integers are big-endian with their sign bit turned (2, 4 or 8 bytes by type; dates are
//! days in 4, times and timestamps in 8); a NUMERIC is its digits without the point, 16 bytes in the same way; floating
//! numbers are their bits, all turned below zero and the sign alone above, with one NaN after all numbers and no -0; texts
//! and bytes have each 00 followed by FF and end with 00 00; a UUID is its 16 bytes. Texts sort by their bytes: no collation
//! takes part, because two machines would not agree on it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::error::Malformed;

const VALUE: u8 = 1;
const NULL: u8 = 2;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// BOOLEAN.
    Boolean,
    /// SMALLINT, 2 bytes.
    SmallInt,
    /// INTEGER, 4 bytes.
    Integer,
    /// BIGINT, 8 bytes.
    BigInt,
    /// REAL.
    Real,
    /// DOUBLE PRECISION.
    Double,
    /// NUMERIC(precision, scale): at most 38 digits.
    Numeric(u8, u8),
    /// TEXT, and what else holds characters.
    Text,
    /// BYTEA.
    Bytea,
    /// DATE: days since 1970.
    Date,
    /// TIME: microseconds since midnight.
    Time,
    /// TIMESTAMP: microseconds since 1970, of no zone.
    Timestamp,
    /// TIMESTAMP(9): nanoseconds since 1970, of no zone.
    TimestampNanos,
    /// TIMESTAMPTZ: microseconds since 1970, UTC.
    TimestampTz,
    /// UUID.
    Uuid,
}

/// A value of a row.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// Of a BOOLEAN.
    Boolean(bool),
    /// Of an integer, a date (days), a time or a timestamp (its unit).
    Integer(i64),
    /// Of a NUMERIC: its digits without the point.
    Numeric(i128),
    /// Of a REAL or DOUBLE PRECISION; NaN is one value, and -0 is 0.
    Double(f64),
    /// Of a TEXT.
    Text(String),
    /// Of a BYTEA.
    Bytes(Vec<u8>),
    /// Of a UUID.
    Uuid([u8; 16]),
}

/// A value that does not belong to its column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// Values of rows never reach a log.
impl core::fmt::Debug for Value {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if matches!(self, Self::Null) { "NULL" } else { "Value(..)" })
    }
}

impl Type {
    /// Bytes of an integer of this type.
    fn width(self) -> usize {
        match self {
            Self::SmallInt => 2,
            Self::Integer | Self::Date => 4,
            _ => 8,
        }
    }

    /// Appends the encoding of `value`.
    ///
    /// # Errors
    /// [`WrongType`]: the value is none of this type, or lies outside it.
    pub fn encode(self, value: &Value, into: &mut Vec<u8>) -> Result<(), WrongType> {
        if *value == Value::Null {
            into.push(NULL);
            return Ok(());
        }
        into.push(VALUE);
        match (self, value) {
            (Self::Boolean, Value::Boolean(value)) => into.push(u8::from(*value)),
            (Self::Numeric(precision, _), Value::Numeric(value)) => {
                if value.unsigned_abs() >= 10u128.pow(u32::from(precision.min(38))) {
                    return Err(WrongType);
                }
                into.extend_from_slice(&(*value as u128 ^ 1 << 127).to_be_bytes());
            }
            (Self::Real, Value::Double(value)) => encode_real(*value, into)?,
            (Self::Double, Value::Double(value)) => into.extend_from_slice(&ordered(*value).to_be_bytes()),
            (Self::Text, Value::Text(value)) => escape(value.as_bytes(), into),
            (Self::Bytea, Value::Bytes(value)) => escape(value, into),
            (Self::Uuid, Value::Uuid(value)) => into.extend_from_slice(value),
            (_, Value::Integer(value)) if self.holds_integers() => encode_integer(*value, self.width(), into)?,
            _ => return Err(WrongType),
        }
        Ok(())
    }

    /// Whether its values are [`Value::Integer`]s.
    #[must_use]
    pub fn holds_integers(self) -> bool {
        !matches!(
            self,
            Self::Boolean | Self::Real | Self::Double | Self::Numeric(..) | Self::Text | Self::Bytea | Self::Uuid
        )
    }

    /// Reads a value; only the encoding that [`Type::encode`] writes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode(self, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
        match reader.byte()? {
            NULL => return Ok(Value::Null),
            VALUE => {}
            _ => return Err(reader.malformed()),
        }
        Ok(match self {
            Self::Boolean => match reader.byte()? {
                0 => Value::Boolean(false),
                1 => Value::Boolean(true),
                _ => return Err(reader.malformed()),
            },
            Self::Numeric(precision, _) => {
                let value = (u128::from_be_bytes(reader.array()?) ^ 1 << 127) as i128;
                if value.unsigned_abs() >= 10u128.pow(u32::from(precision.min(38))) {
                    return Err(reader.malformed());
                }
                Value::Numeric(value)
            }
            Self::Real | Self::Double => self.decode_floating(reader)?,
            Self::Text => Value::Text(String::from_utf8(unescape(reader)?).map_err(|_| reader.malformed())?),
            Self::Bytea => Value::Bytes(unescape(reader)?),
            Self::Uuid => Value::Uuid(reader.array()?),
            _ => Value::Integer(decode_integer(reader, self.width())?),
        })
    }

    fn decode_floating(self, reader: &mut Reader<'_>) -> Result<Value, Malformed> {
        let before = reader.clone();
        let value = match self {
            Self::Real => f64::from(real_of(u32::from_be_bytes(reader.array()?))),
            _ => double_of(u64::from_be_bytes(reader.array()?)),
        };
        let mut again = Vec::with_capacity(9);
        let same = self.encode(&Value::Double(value), &mut again);
        let read = before.clone().raw(again.len() - 1)?;
        if same.is_err() || read != &again[1..] { Err(before.malformed()) } else { Ok(Value::Double(value)) }
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        let (tag, precision, scale) = match self {
            Self::Boolean => (1, 0, 0),
            Self::SmallInt => (2, 0, 0),
            Self::Integer => (3, 0, 0),
            Self::BigInt => (4, 0, 0),
            Self::Real => (5, 0, 0),
            Self::Double => (6, 0, 0),
            Self::Numeric(precision, scale) => (7, precision, scale),
            Self::Text => (8, 0, 0),
            Self::Bytea => (9, 0, 0),
            Self::Date => (10, 0, 0),
            Self::Time => (11, 0, 0),
            Self::Timestamp => (12, 0, 0),
            Self::TimestampNanos => (13, 0, 0),
            Self::TimestampTz => (14, 0, 0),
            Self::Uuid => (15, 0, 0),
        };
        writer.byte(tag).byte(precision).byte(scale);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let [tag, precision, scale] = reader.array()?;
        let plain = |kind| if precision == 0 && scale == 0 { Ok(kind) } else { Err(reader.malformed()) };
        match tag {
            1 => plain(Self::Boolean),
            2 => plain(Self::SmallInt),
            3 => plain(Self::Integer),
            4 => plain(Self::BigInt),
            5 => plain(Self::Real),
            6 => plain(Self::Double),
            7 if (1..=38).contains(&precision) && scale <= precision => Ok(Self::Numeric(precision, scale)),
            8 => plain(Self::Text),
            9 => plain(Self::Bytea),
            10 => plain(Self::Date),
            11 => plain(Self::Time),
            12 => plain(Self::Timestamp),
            13 => plain(Self::TimestampNanos),
            14 => plain(Self::TimestampTz),
            15 => plain(Self::Uuid),
            _ => Err(reader.malformed()),
        }
    }
}

fn encode_integer(value: i64, width: usize, into: &mut Vec<u8>) -> Result<(), WrongType> {
    let bits = width as u32 * 8;
    if bits < 64 && (value >> (bits - 1) != 0 && value >> (bits - 1) != -1) {
        return Err(WrongType);
    }
    let turned = value as u64 ^ 1 << (bits - 1);
    into.extend_from_slice(&turned.to_be_bytes()[8 - width..]);
    Ok(())
}

fn decode_integer(reader: &mut Reader<'_>, width: usize) -> Result<i64, Malformed> {
    let mut bytes = [0; 8];
    bytes[8 - width..].copy_from_slice(reader.raw(width)?);
    let bits = width as u32 * 8;
    let turned = u64::from_be_bytes(bytes) ^ 1 << (bits - 1);
    // The sign fills what is left of the number.
    Ok(((turned << (64 - bits)) as i64) >> (64 - bits))
}

fn ordered(value: f64) -> u64 {
    let value = if value.is_nan() { f64::from_bits(0x7ff8 << 48) } else { value + 0.0 };
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 }
}

fn double_of(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered ^ 1 << 63 } else { !ordered })
}

fn encode_real(value: f64, into: &mut Vec<u8>) -> Result<(), WrongType> {
    let real = if value.is_nan() { f32::from_bits(0x7fc0 << 16) } else { value as f32 + 0.0 };
    if !value.is_nan() && f64::from(real) != value {
        return Err(WrongType);
    }
    let bits = real.to_bits();
    into.extend_from_slice(&(if bits >> 31 == 1 { !bits } else { bits ^ 1 << 31 }).to_be_bytes());
    Ok(())
}

fn real_of(ordered: u32) -> f32 {
    f32::from_bits(if ordered >> 31 == 1 { ordered ^ 1 << 31 } else { !ordered })
}

fn escape(bytes: &[u8], into: &mut Vec<u8>) {
    into.reserve(bytes.len() + 2);
    let mut rest = bytes;
    while let Some(zero) = first_zero(rest) {
        into.extend_from_slice(&rest[..=zero]);
        into.push(0xff);
        rest = &rest[zero + 1..];
    }
    into.extend_from_slice(rest);
    into.extend_from_slice(&[0, 0]);
}

/// Several bytes at a time: what is long has few zeros, or is rare.
fn first_zero(bytes: &[u8]) -> Option<usize> {
    let text = core::ffi::CStr::from_bytes_until_nul(bytes).ok()?;
    Some(text.count_bytes())
}

fn unescape(reader: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
    let mut bytes = Vec::new();
    loop {
        let zero = first_zero(reader.rest()).ok_or(reader.malformed())?;
        bytes.extend_from_slice(reader.raw(zero)?);
        reader.byte()?;
        match reader.byte()? {
            0 => return Ok(bytes),
            0xff => bytes.push(0),
            _ => return Err(reader.malformed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use core::cmp::Ordering;

    use proptest::prelude::*;

    use super::{Type, Value};
    use crate::bytes::Reader;

    fn encoded(kind: Type, value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        kind.encode(value, &mut bytes).expect("of this type");
        bytes
    }

    fn sorts(kind: Type, left: &Value, right: &Value, as_values: Ordering) {
        let (a, b) = (encoded(kind, left), encoded(kind, right));
        assert_eq!(a.cmp(&b), as_values, "{kind:?}");
        for (value, bytes) in [(left, &a), (right, &b)] {
            let mut reader = Reader::new(bytes, "test");
            let back = kind.decode(&mut reader).expect("what was written");
            assert!(
                back == *value
                    || matches!((back, value), (Value::Double(a), Value::Double(b)) if a.is_nan() && b.is_nan())
            );
            reader.end().expect("all of it");
            assert!(*bytes < encoded(kind, &Value::Null), "NULL is after all");
        }
    }

    proptest! {
        #[test]
        fn integers_sort(a: i16, b: i16, c: i64, d: i64) {
            sorts(Type::SmallInt, &Value::Integer(a.into()), &Value::Integer(b.into()), a.cmp(&b));
            sorts(Type::Integer, &Value::Integer(a.into()), &Value::Integer(b.into()), a.cmp(&b));
            sorts(Type::Timestamp, &Value::Integer(c), &Value::Integer(d), c.cmp(&d));
            sorts(Type::Numeric(38, 2), &Value::Numeric(c.into()), &Value::Numeric(d.into()), c.cmp(&d));
        }

        #[test]
        fn floating_numbers_sort(a: f64, b: f64, c: f32, d: f32) {
            let order = a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
            sorts(Type::Double, &Value::Double(a), &Value::Double(b), order);
            let order = c.partial_cmp(&d).unwrap_or_else(|| c.is_nan().cmp(&d.is_nan()));
            sorts(Type::Real, &Value::Double(c.into()), &Value::Double(d.into()), order);
        }

        #[test]
        fn texts_and_bytes_sort(a: Vec<u8>, b: Vec<u8>, c in "[a\u{0}é]{0,4}", d in "[a\u{0}é]{0,4}") {
            sorts(Type::Text, &Value::Text(c.clone()), &Value::Text(d.clone()), c.cmp(&d));
            sorts(Type::Bytea, &Value::Bytes(a.clone()), &Value::Bytes(b.clone()), a.cmp(&b));
        }

        #[test]
        fn what_parses_is_written_in_the_same_way(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            for kind in [Type::Boolean, Type::Integer, Type::Real, Type::Double, Type::Text, Type::Bytea, Type::Numeric(5, 1)] {
                let mut reader = Reader::new(&bytes, "test");
                if let Ok(value) = kind.decode(&mut reader) {
                    let read = bytes.len() - reader.left();
                    prop_assert_eq!(&encoded(kind, &value)[..], &bytes[..read]);
                }
            }
        }
    }

    #[test]
    fn there_is_one_nan_and_one_zero_and_nothing_outside_a_type() {
        let other = f64::from_bits(0xfff8_0000_0000_0001);
        assert_eq!(encoded(Type::Double, &Value::Double(other)), encoded(Type::Double, &Value::Double(f64::NAN)));
        assert_eq!(encoded(Type::Double, &Value::Double(-0.0)), encoded(Type::Double, &Value::Double(0.0)));
        let mut bytes = Vec::new();
        assert!(Type::SmallInt.encode(&Value::Integer(40_000), &mut bytes).is_err());
        assert!(Type::Real.encode(&Value::Double(0.1), &mut bytes).is_err());
        assert!(Type::Numeric(3, 1).encode(&Value::Numeric(1000), &mut bytes).is_err());
        assert!(Type::Integer.encode(&Value::Text("7".to_string()), &mut bytes).is_err());
    }
}
