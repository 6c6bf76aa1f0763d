//! Values one behind the other, as a query keeps them while it sorts and groups.
//!
//! ```text
//! a value: 0, or 1 and its bytes: those of its type, little-endian, or length u32 and a text's
//! ```

use alloc::vec::Vec;

use crate::{Error, Type, ValueRef};

const NULL: u8 = 0;
const PRESENT: u8 = 1;

/// Appends a value.
pub(super) fn push(value: ValueRef<'_>, out: &mut Vec<u8>) {
    let mut put = |bytes: &[u8]| {
        out.push(PRESENT);
        out.extend_from_slice(bytes);
    };
    match value {
        ValueRef::Null => out.push(NULL),
        ValueRef::Boolean(value) => put(&[u8::from(value)]),
        ValueRef::SmallInt(value) => put(&value.to_le_bytes()),
        ValueRef::Integer(value) | ValueRef::Date(value) => put(&value.to_le_bytes()),
        ValueRef::BigInt(value) | ValueRef::Time(value) | ValueRef::Timestamp(value) | ValueRef::TimestampTz(value) => {
            put(&value.to_le_bytes())
        }
        ValueRef::Real(value) => put(&value.to_le_bytes()),
        ValueRef::Double(value) => put(&value.to_le_bytes()),
        ValueRef::Numeric(value) => put(&value.to_le_bytes()),
        ValueRef::Uuid(value) => put(&value),
        ValueRef::Text(value) => {
            put(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(value.as_bytes());
        }
        ValueRef::Bytea(value) => {
            put(&(value.len() as u32).to_le_bytes());
            out.extend_from_slice(value);
        }
    }
}

/// Takes the bytes of the first value, its mark and length among them.
pub(super) fn split<'b>(kind: Type, bytes: &mut &'b [u8]) -> Result<&'b [u8], Error> {
    let all = *bytes;
    let is_null = all.first() == Some(&NULL);
    let length = match () {
        () if is_null => Some(1),
        () if kind.is_variable() => {
            let length =
                all.get(1..5).and_then(|length| length.first_chunk()).map(|length| u32::from_le_bytes(*length));
            length.map(|length| length as usize + 5)
        }
        () => Some(1 + kind.bytes()),
    };
    let (value, rest) = length.and_then(|length| all.split_at_checked(length)).ok_or_else(wrong)?;
    *bytes = rest;
    Ok(value)
}

/// Reads the first value.
pub(super) fn read<'b>(kind: Type, bytes: &mut &'b [u8]) -> Result<ValueRef<'b>, Error> {
    let Some((_, cell)) = split(kind, bytes)?.split_first().filter(|(mark, _)| **mark == PRESENT) else {
        return Ok(ValueRef::Null);
    };
    Ok(match kind {
        Type::Boolean => ValueRef::Boolean(cell[0] != 0),
        Type::SmallInt => ValueRef::SmallInt(i16::from_le_bytes(fixed(cell)?)),
        Type::Integer => ValueRef::Integer(i32::from_le_bytes(fixed(cell)?)),
        Type::BigInt => ValueRef::BigInt(i64::from_le_bytes(fixed(cell)?)),
        Type::Real => ValueRef::Real(f32::from_le_bytes(fixed(cell)?)),
        Type::Double => ValueRef::Double(f64::from_le_bytes(fixed(cell)?)),
        Type::Numeric { .. } => ValueRef::Numeric(i128::from_le_bytes(fixed(cell)?)),
        Type::Date => ValueRef::Date(i32::from_le_bytes(fixed(cell)?)),
        Type::Time => ValueRef::Time(i64::from_le_bytes(fixed(cell)?)),
        Type::Timestamp { .. } => ValueRef::Timestamp(i64::from_le_bytes(fixed(cell)?)),
        Type::TimestampTz => ValueRef::TimestampTz(i64::from_le_bytes(fixed(cell)?)),
        Type::Uuid => ValueRef::Uuid(fixed(cell)?),
        Type::Bytea => ValueRef::Bytea(&cell[4..]),
        Type::Text | Type::VarChar(_) | Type::Char(_) => {
            ValueRef::Text(core::str::from_utf8(&cell[4..]).map_err(|_| wrong())?)
        }
    })
}

fn fixed<const N: usize>(cell: &[u8]) -> Result<[u8; N], Error> {
    cell.try_into().map_err(|_| wrong())
}

/// What was put aside came back as something else.
pub(super) fn wrong() -> Error {
    Error::corrupt("", "what a query had put aside")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_went() {
        let values = [
            (Type::Boolean, ValueRef::Boolean(true)),
            (Type::SmallInt, ValueRef::SmallInt(-3)),
            (Type::Integer, ValueRef::Integer(i32::MIN)),
            (Type::BigInt, ValueRef::Null),
            (Type::Numeric { precision: 38, scale: 2 }, ValueRef::Numeric(-(1 << 100))),
            (Type::Double, ValueRef::Double(-0.0)),
            (Type::Date, ValueRef::Date(19_000)),
            (Type::TimestampTz, ValueRef::TimestampTz(-1)),
            (Type::Uuid, ValueRef::Uuid([7; 16])),
            (Type::Text, ValueRef::Text("né")),
            (Type::Bytea, ValueRef::Bytea(&[0, 255])),
            (Type::Text, ValueRef::Text("")),
        ];
        let mut bytes = Vec::new();
        values.iter().for_each(|(_, value)| push(*value, &mut bytes));
        let mut rest = bytes.as_slice();
        for (kind, value) in values {
            assert_eq!(read(kind, &mut rest), Ok(value));
        }
        assert!(rest.is_empty());
        assert!((0..bytes.len()).all(|cut| {
            let mut rest = &bytes[..cut];
            values.iter().any(|(kind, _)| read(*kind, &mut rest).is_err())
        }));
    }
}
