//! Values as PostgreSQL keeps them, for clients that ask for it.

use counterfoil::arrow::array::{Array, AsArray};
use counterfoil::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Field, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType, UInt32Type,
};

use counterfoil::is_uuid;
use counterfoil::value::parse;

use crate::parameter::{EPOCH_DAYS, EPOCH_MICROSECONDS};
use crate::types::Told;

/// Appends a cell that is not NULL; false for types that are sent as text alone.
pub fn put(out: &mut Vec<u8>, field: &Field, column: &dyn Array, row: usize) -> bool {
    match column.data_type() {
        DataType::Utf8View if is_uuid(field) => {
            let Some(bytes) = parse::uuid(column.as_string_view().value(row)) else { return false };
            out.extend(bytes);
        }
        DataType::Boolean => out.push(column.as_boolean().value(row).into()),
        DataType::Int16 => out.extend(column.as_primitive::<Int16Type>().value(row).to_be_bytes()),
        DataType::Int32 => out.extend(column.as_primitive::<Int32Type>().value(row).to_be_bytes()),
        DataType::Int64 => out.extend(column.as_primitive::<Int64Type>().value(row).to_be_bytes()),
        DataType::Float32 => out.extend(column.as_primitive::<Float32Type>().value(row).to_be_bytes()),
        DataType::Float64 => out.extend(column.as_primitive::<Float64Type>().value(row).to_be_bytes()),
        DataType::Utf8 => out.extend(column.as_string::<i32>().value(row).bytes()),
        DataType::LargeUtf8 => out.extend(column.as_string::<i64>().value(row).bytes()),
        DataType::Utf8View => out.extend(column.as_string_view().value(row).bytes()),
        DataType::Binary => out.extend(column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => out.extend(column.as_binary::<i64>().value(row)),
        DataType::BinaryView => out.extend(column.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => out.extend(column.as_fixed_size_binary().value(row)),
        DataType::Date32 => {
            out.extend(column.as_primitive::<Date32Type>().value(row).saturating_sub(EPOCH_DAYS).to_be_bytes());
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            out.extend(column.as_primitive::<Time64MicrosecondType>().value(row).to_be_bytes());
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            put_instant(out, column.as_primitive::<TimestampMicrosecondType>().value(row));
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            put_instant(out, column.as_primitive::<TimestampNanosecondType>().value(row).div_euclid(1000));
        }
        DataType::Decimal128(_, scale) if *scale >= 0 => {
            put_numeric(out, column.as_primitive::<Decimal128Type>().value(row), *scale as u32);
        }
        DataType::UInt32 => out.extend(column.as_primitive::<UInt32Type>().value(row).to_be_bytes()),
        DataType::List(of) => return put_list(out, of, column.as_list::<i32>().value(row).as_ref()),
        _ => return false,
    }
    true
}

/// One dimension, whether there are NULLs, the type of the parts, how many there are and that they count from 1, and each of them
/// behind its length.
fn put_list(out: &mut Vec<u8>, of: &Field, parts: &dyn Array) -> bool {
    let dimensions = i32::from(!parts.is_empty());
    out.extend(dimensions.to_be_bytes());
    out.extend(i32::from(parts.null_count() > 0).to_be_bytes());
    out.extend(Told::of(of).oid.to_be_bytes());
    if parts.is_empty() {
        return true;
    }
    let Ok(count) = i32::try_from(parts.len()) else { return false };
    out.extend(count.to_be_bytes());
    out.extend(1i32.to_be_bytes());
    for row in 0..parts.len() {
        if parts.is_null(row) {
            out.extend((-1i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend([0; 4]);
        if !put(out, of, parts, row) {
            return false;
        }
        let length = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    true
}

fn put_instant(out: &mut Vec<u8>, microseconds: i64) {
    out.extend(microseconds.saturating_sub(EPOCH_MICROSECONDS).to_be_bytes());
}

/// Digits to base 10,000, those of the whole first, without zeros at either end.
fn put_numeric(out: &mut Vec<u8>, unscaled: i128, scale: u32) {
    // So that four digits stand together on both sides of the point.
    let filling = (4 - scale % 4) % 4;
    let behind = i16::try_from(scale.div_ceil(4)).unwrap_or(i16::MAX);
    let mut left = unscaled.unsigned_abs();
    let mut digits = Vec::with_capacity(12);
    if filling > 0 {
        let part = 10u128.pow(4 - filling);
        digits.push((left % part) as i16 * 10i16.pow(filling));
        left /= part;
    }
    while left > 0 {
        digits.push((left % 10_000) as i16);
        left /= 10_000;
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    // The last one has the greatest weight, and so many stand behind the point.
    let weight = if digits.is_empty() { 0 } else { digits.len() as i16 - behind - 1 };
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = &digits[zeros..];
    out.extend((digits.len() as i16).to_be_bytes());
    out.extend(weight.to_be_bytes());
    out.extend((if unscaled < 0 { 0x4000i16 } else { 0 }).to_be_bytes());
    out.extend((scale as i16).to_be_bytes());
    digits.iter().rev().for_each(|digit| out.extend(digit.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use counterfoil::Value;
    use counterfoil::arrow::array::Int16Array;

    use super::*;
    use crate::parameter;
    use crate::rows::Format;
    use crate::types::oid;

    fn bytes(unscaled: i128, scale: u32) -> Vec<u8> {
        let mut out = Vec::new();
        put_numeric(&mut out, unscaled, scale);
        out
    }

    #[test]
    fn lists_have_their_parts_behind_what_they_are() {
        let list = Int16Array::from(vec![Some(7), None]);
        let of = Field::new("item", DataType::Int16, true);
        let mut out = Vec::new();
        assert!(put_list(&mut out, &of, &list));
        let header = [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 21, 0, 0, 0, 2, 0, 0, 0, 1];
        assert_eq!(out, [&header[..], &[0, 0, 0, 2, 0, 7, 255, 255, 255, 255]].concat());
        out.clear();
        assert!(put_list(&mut out, &of, &Int16Array::from(Vec::<i16>::new())));
        assert_eq!(out, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 21]);
    }

    #[test]
    fn numbers_have_the_digits_that_postgresql_gives_them() {
        assert_eq!(bytes(12_345_678, 3), [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c]);
        assert_eq!(bytes(0, 2), [0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(bytes(-1, 4), [0, 1, 0xff, 0xff, 0x40, 0, 0, 4, 0, 1]);
        assert_eq!(bytes(10_000, 0), [0, 1, 0, 1, 0, 0, 0, 0, 0, 1]);
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(unscaled in -(10i128.pow(38) - 1)..10i128.pow(38), scale in 0u32..=38) {
            let read = parameter::read(oid::NUMERIC, Format::Binary, &bytes(unscaled, scale)).ok();
            proptest::prop_assert_eq!(read, Some(Value::Decimal { unscaled, scale: scale as u8 }));
        }
    }
}
