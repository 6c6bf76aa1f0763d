//! Values as PostgreSQL keeps them, for clients that ask for it.

use counterfoil::arrow::array::{Array, ArrayAccessor, AsArray};
use counterfoil::arrow::buffer::NullBuffer;
use counterfoil::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Field, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};

use counterfoil::is_uuid;
use counterfoil::value::parse;

use crate::parameter::{EPOCH_DAYS, EPOCH_MICROSECONDS};
use crate::types::Told;

const MICROSECONDS_A_DAY: i128 = 86_400_000_000;

/// Appends a cell that is not NULL, of a column that was looked at before; false if it cannot be sent.
pub type Put<'a> = Box<dyn Fn(&mut Vec<u8>, usize) -> bool + 'a>;

/// What appends cells of a column; none for types that are sent as text alone. A column is looked at once for all its rows: what
/// type it has is asked no cell.
pub fn writer<'a>(field: &'a Field, column: &'a dyn Array) -> Option<Put<'a>> {
    Some(match column.data_type() {
        DataType::Utf8View if is_uuid(field) => {
            let column = column.as_string_view();
            Box::new(|out, row| parse::uuid(column.value(row)).map(|bytes| out.extend_from_slice(&bytes)).is_some())
        }
        DataType::Boolean => {
            let column = column.as_boolean();
            Box::new(|out, row| {
                out.push(column.value(row).into());
                true
            })
        }
        DataType::Int8 => numbers::<Int8Type, 2>(column, |number| i16::from(number).to_be_bytes()),
        DataType::UInt8 => numbers::<UInt8Type, 2>(column, |number| i16::from(number).to_be_bytes()),
        DataType::Int16 => numbers::<Int16Type, 2>(column, i16::to_be_bytes),
        DataType::UInt16 => numbers::<UInt16Type, 4>(column, |number| i32::from(number).to_be_bytes()),
        DataType::Int32 => numbers::<Int32Type, 4>(column, i32::to_be_bytes),
        DataType::UInt32 => numbers::<UInt32Type, 4>(column, u32::to_be_bytes),
        DataType::Int64 => numbers::<Int64Type, 8>(column, i64::to_be_bytes),
        DataType::Float32 => numbers::<Float32Type, 4>(column, f32::to_be_bytes),
        DataType::Float64 => numbers::<Float64Type, 8>(column, f64::to_be_bytes),
        DataType::Date32 => numbers::<Date32Type, 4>(column, |days| days.saturating_sub(EPOCH_DAYS).to_be_bytes()),
        DataType::Time64(TimeUnit::Microsecond) => numbers::<Time64MicrosecondType, 8>(column, i64::to_be_bytes),
        DataType::Interval(IntervalUnit::MonthDayNano) => numbers::<IntervalMonthDayNanoType, 16>(column, span),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers::<TimestampMicrosecondType, 8>(column, instant),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            numbers::<TimestampNanosecondType, 8>(column, |nanoseconds| instant(nanoseconds.div_euclid(1000)))
        }
        DataType::Duration(TimeUnit::Second) => numbers::<DurationSecondType, 16>(column, |it| between(it, 1_000_000)),
        DataType::Duration(TimeUnit::Millisecond) => {
            numbers::<DurationMillisecondType, 16>(column, |it| between(it, 1000))
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            numbers::<DurationMicrosecondType, 16>(column, |it| between(it, 1))
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            numbers::<DurationNanosecondType, 16>(column, |it| between(it / 1000, 1))
        }
        DataType::UInt64 => {
            let column = column.as_primitive::<UInt64Type>();
            Box::new(|out, row| {
                let count = i64::try_from(column.value(row));
                count.map(|count| out.extend_from_slice(&count.to_be_bytes())).is_ok()
            })
        }
        DataType::Decimal128(_, scale) if *scale >= 0 => {
            let (column, scale) = (column.as_primitive::<Decimal128Type>(), *scale as u32);
            Box::new(move |out, row| {
                put_numeric(out, column.value(row), scale);
                true
            })
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => texts(column)?,
        DataType::Binary => bytes(column.as_binary::<i32>()),
        DataType::LargeBinary => bytes(column.as_binary::<i64>()),
        DataType::BinaryView => bytes(column.as_binary_view()),
        DataType::FixedSizeBinary(_) => bytes(column.as_fixed_size_binary()),
        // All of it is NULL: nothing is ever appended.
        DataType::Null => Box::new(|_, _| false),
        // Of lists of lists clients would have to be told the dimensions, which may differ.
        DataType::List(of) if !matches!(of.data_type(), DataType::List(_)) => {
            let column = column.as_list::<i32>();
            Box::new(|out, row| put_list(out, of, column.value(row).as_ref()))
        }
        _ => return None,
    })
}

/// What appends the bytes of texts.
pub fn texts<'a>(column: &'a dyn Array) -> Option<Put<'a>> {
    Some(match column.data_type() {
        DataType::Utf8 => bytes(column.as_string::<i32>()),
        DataType::LargeUtf8 => bytes(column.as_string::<i64>()),
        DataType::Utf8View => bytes(column.as_string_view()),
        _ => return None,
    })
}

fn numbers<'a, T: ArrowPrimitiveType, const BYTES: usize>(
    column: &'a dyn Array,
    bytes: fn(T::Native) -> [u8; BYTES],
) -> Put<'a> {
    let column = column.as_primitive::<T>();
    Box::new(move |out, row| {
        out.extend_from_slice(&bytes(column.value(row)));
        true
    })
}

fn bytes<'a, A>(column: A) -> Put<'a>
where
    A: ArrayAccessor + 'a,
    A::Item: AsRef<[u8]>,
{
    Box::new(move |out, row| {
        out.extend_from_slice(column.value(row).as_ref());
        true
    })
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
    let (Ok(count), Some(put)) = (i32::try_from(parts.len()), writer(of, parts)) else { return false };
    out.extend(count.to_be_bytes());
    out.extend(1i32.to_be_bytes());
    let nulls = parts.logical_nulls();
    (0..parts.len()).all(|row| put_behind_length(out, nulls.as_ref(), row, &put))
}

/// Appends a cell behind its length, or that it is NULL; false if it cannot be sent.
pub fn put_behind_length(out: &mut Vec<u8>, nulls: Option<&NullBuffer>, row: usize, put: &Put<'_>) -> bool {
    if nulls.is_some_and(|nulls| nulls.is_null(row)) {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return true;
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    if !put(out, row) {
        return false;
    }
    // Values have less than 2 GiB: an Arrow array holds no longer ones.
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    true
}

/// Microseconds since 1970 as those since 2000.
fn instant(microseconds: i64) -> [u8; 8] {
    microseconds.saturating_sub(EPOCH_MICROSECONDS).to_be_bytes()
}

/// Microseconds, days and months.
fn span(interval: IntervalMonthDayNano) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(interval.nanoseconds / 1000).to_be_bytes());
    bytes[8..12].copy_from_slice(&interval.days.to_be_bytes());
    bytes[12..].copy_from_slice(&interval.months.to_be_bytes());
    bytes
}

/// What lies between two instants: whole days and a time, as it is shown.
fn between(ticks: i64, microseconds: i64) -> [u8; 16] {
    let elapsed = i128::from(ticks) * i128::from(microseconds);
    // Of 64 bits of seconds the days may be more than fit; what fits is more than the age of the world.
    let days = i32::try_from(elapsed / MICROSECONDS_A_DAY).unwrap_or(if elapsed < 0 { i32::MIN } else { i32::MAX });
    span(IntervalMonthDayNano::new(0, days, (elapsed % MICROSECONDS_A_DAY) as i64 * 1000))
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
