//! Types and values.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::layout::{INLINE_BYTES, LENGTH_BYTES, WIDE_CHARACTERS_MAX};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Type {
    /// True or false; 1 byte.
    Boolean,
    /// 2 bytes.
    SmallInt,
    /// 4 bytes.
    Integer,
    /// 8 bytes.
    BigInt,
    /// 4 bytes, IEEE 754.
    Real,
    /// 8 bytes, IEEE 754.
    Double,
    /// An unscaled integer of 16 bytes; the number is that integer / 10^scale.
    Numeric {
        /// Decimal digits in all, 1 to 38.
        precision: u8,
        /// Decimal digits after the point, at most `precision`.
        scale: u8,
    },
    /// UTF-8 of any length.
    Text,
    /// UTF-8 of at most so many characters.
    VarChar(u32),
    /// UTF-8 of at most so many characters. Stored as given; padding is the affair of whoever shows it. Up to
    /// [`WIDE_CHARACTERS_MAX`] it has its width in a row's image, so that it is read with the row.
    Char(u32),
    /// Bytes of any length.
    Bytea,
    /// Days since 1970-01-01; 4 bytes.
    Date,
    /// Microseconds since midnight; 8 bytes.
    Time,
    /// Microseconds (or nanoseconds) since 1970-01-01 00:00:00; 8 bytes.
    Timestamp {
        /// Whether the unit is a nanosecond.
        nanoseconds: bool,
    },
    /// Microseconds since 1970-01-01 00:00:00 UTC; 8 bytes.
    TimestampTz,
    /// 16 bytes.
    Uuid,
}

impl Type {
    /// Bytes of this type in a row image.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Type::Boolean => 1,
            Type::SmallInt => 2,
            Type::Integer | Type::Real | Type::Date => 4,
            Type::BigInt | Type::Double | Type::Time | Type::Timestamp { .. } | Type::TimestampTz => 8,
            Type::Char(characters @ 1..=WIDE_CHARACTERS_MAX) => LENGTH_BYTES + INLINE_BYTES.max(*characters as usize),
            Type::Numeric { .. } | Type::Text | Type::VarChar(_) | Type::Char(_) | Type::Bytea | Type::Uuid => 16,
        }
    }

    /// Whether values have a length of their own and may lie in the heap.
    #[must_use]
    pub fn is_variable(&self) -> bool {
        matches!(self, Type::Text | Type::VarChar(_) | Type::Char(_) | Type::Bytea)
    }

    /// Whether values are UTF-8.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, Type::Text | Type::VarChar(_) | Type::Char(_))
    }

    /// Whether keys of both types are written alike, so that one may reference the other.
    #[must_use]
    pub fn keys_like(&self, other: &Type) -> bool {
        use Type::{BigInt, Double, Integer, Numeric, Real, SmallInt};
        match (self, other) {
            (SmallInt | Integer | BigInt, SmallInt | Integer | BigInt) | (Real | Double, Real | Double) => true,
            (Numeric { scale: one, .. }, Numeric { scale: two, .. }) => one == two,
            (one, two) if one.is_text() && two.is_text() => true,
            (one, two) => one == two,
        }
    }

    /// Whether values of both types are stored alike, and keys of them written alike.
    #[must_use]
    pub fn is_stored_like(&self, other: &Type) -> bool {
        use Type::{Numeric, Text, VarChar};
        match (self, other) {
            (Text | VarChar(_), Text | VarChar(_)) => true,
            (Numeric { scale: one, .. }, Numeric { scale: two, .. }) => one == two,
            (one, two) => one == two,
        }
    }

    /// Whether a value of this type, made one of the other where it fits there, has the same key as before.
    #[must_use]
    pub fn is_keyed_like(&self, other: &Type) -> bool {
        use Type::{BigInt, Integer, SmallInt};
        // A REAL becomes the DOUBLE that is written alike, which is another number.
        matches!((self, other), (SmallInt | Integer | BigInt, SmallInt | Integer | BigInt))
    }

    /// Whether the parameters make sense.
    pub(crate) fn is_valid(&self) -> bool {
        match *self {
            Type::Numeric { precision, scale } => (1..=38).contains(&precision) && scale <= precision,
            Type::VarChar(characters) | Type::Char(characters) => characters >= 1,
            _ => true,
        }
    }
}

/// A value that owns its bytes.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// NULL of any type.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// BIGINT.
    BigInt(i64),
    /// REAL.
    Real(f32),
    /// DOUBLE PRECISION.
    Double(f64),
    /// NUMERIC: the unscaled integer, at the scale of the column.
    Numeric(i128),
    /// TEXT, VARCHAR(n), CHAR(n).
    Text(String),
    /// BYTEA.
    Bytea(Vec<u8>),
    /// DATE.
    Date(i32),
    /// TIME.
    Time(i64),
    /// TIMESTAMP, in the unit of the column.
    Timestamp(i64),
    /// TIMESTAMPTZ.
    TimestampTz(i64),
    /// UUID.
    Uuid([u8; 16]),
}

/// A value that borrows its bytes. The variants are those of [`Value`].
#[derive(Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub enum ValueRef<'a> {
    Null,
    Boolean(bool),
    SmallInt(i16),
    Integer(i32),
    BigInt(i64),
    Real(f32),
    Double(f64),
    Numeric(i128),
    Text(&'a str),
    Bytea(&'a [u8]),
    Date(i32),
    Time(i64),
    Timestamp(i64),
    TimestampTz(i64),
    Uuid([u8; 16]),
}

impl Value {
    /// Borrows it.
    #[must_use]
    pub fn borrow(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Boolean(value) => ValueRef::Boolean(*value),
            Value::SmallInt(value) => ValueRef::SmallInt(*value),
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::BigInt(value) => ValueRef::BigInt(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Double(value) => ValueRef::Double(*value),
            Value::Numeric(value) => ValueRef::Numeric(*value),
            Value::Text(value) => ValueRef::Text(value),
            Value::Bytea(value) => ValueRef::Bytea(value),
            Value::Date(value) => ValueRef::Date(*value),
            Value::Time(value) => ValueRef::Time(*value),
            Value::Timestamp(value) => ValueRef::Timestamp(*value),
            Value::TimestampTz(value) => ValueRef::TimestampTz(*value),
            Value::Uuid(value) => ValueRef::Uuid(*value),
        }
    }

    /// Whether a column of this type may hold it (NULL: always). Bounds such as VARCHAR's are not looked at.
    #[must_use]
    pub fn fits(&self, kind: Type) -> bool {
        self.borrow().fits(kind)
    }
}

impl ValueRef<'_> {
    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_owned(&self) -> Value {
        match *self {
            ValueRef::Null => Value::Null,
            ValueRef::Boolean(value) => Value::Boolean(value),
            ValueRef::SmallInt(value) => Value::SmallInt(value),
            ValueRef::Integer(value) => Value::Integer(value),
            ValueRef::BigInt(value) => Value::BigInt(value),
            ValueRef::Real(value) => Value::Real(value),
            ValueRef::Double(value) => Value::Double(value),
            ValueRef::Numeric(value) => Value::Numeric(value),
            ValueRef::Text(value) => Value::Text(value.into()),
            ValueRef::Bytea(value) => Value::Bytea(value.into()),
            ValueRef::Date(value) => Value::Date(value),
            ValueRef::Time(value) => Value::Time(value),
            ValueRef::Timestamp(value) => Value::Timestamp(value),
            ValueRef::TimestampTz(value) => Value::TimestampTz(value),
            ValueRef::Uuid(value) => Value::Uuid(value),
        }
    }

    /// Whether a column of this type may hold it (NULL: always). Bounds such as VARCHAR's are not looked at.
    #[must_use]
    pub fn fits(&self, kind: Type) -> bool {
        match self {
            ValueRef::Null => true,
            ValueRef::Boolean(_) => kind == Type::Boolean,
            ValueRef::SmallInt(_) => kind == Type::SmallInt,
            ValueRef::Integer(_) => kind == Type::Integer,
            ValueRef::BigInt(_) => kind == Type::BigInt,
            ValueRef::Real(_) => kind == Type::Real,
            ValueRef::Double(_) => kind == Type::Double,
            ValueRef::Numeric(_) => matches!(kind, Type::Numeric { .. }),
            ValueRef::Text(_) => kind.is_text(),
            ValueRef::Bytea(_) => kind == Type::Bytea,
            ValueRef::Date(_) => kind == Type::Date,
            ValueRef::Time(_) => kind == Type::Time,
            ValueRef::Timestamp(_) => matches!(kind, Type::Timestamp { .. }),
            ValueRef::TimestampTz(_) => kind == Type::TimestampTz,
            ValueRef::Uuid(_) => kind == Type::Uuid,
        }
    }
}

impl ValueRef<'_> {
    /// What sort of value it is; never the value itself.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            ValueRef::Null => "NULL",
            ValueRef::Boolean(_) => "BOOLEAN",
            ValueRef::SmallInt(_) => "SMALLINT",
            ValueRef::Integer(_) => "INTEGER",
            ValueRef::BigInt(_) => "BIGINT",
            ValueRef::Real(_) => "REAL",
            ValueRef::Double(_) => "DOUBLE PRECISION",
            ValueRef::Numeric(_) => "NUMERIC",
            ValueRef::Text(_) => "TEXT",
            ValueRef::Bytea(_) => "BYTEA",
            ValueRef::Date(_) => "DATE",
            ValueRef::Time(_) => "TIME",
            ValueRef::Timestamp(_) => "TIMESTAMP",
            ValueRef::TimestampTz(_) => "TIMESTAMPTZ",
            ValueRef::Uuid(_) => "UUID",
        }
    }
}

/// Says the type and not the value: row values stay out of logs.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.borrow().name())
    }
}

/// Says the type and not the value: row values stay out of logs.
impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
