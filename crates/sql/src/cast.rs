//! Whole columns on their way into a table: Arrow arrays of any type turned into the type of the column.

use std::sync::Arc;

use counterfoil_relation::{ColumnId, Layout, RowBatch, Selection, Type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray, TimestampNanosecondArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};

use crate::assign::{self, Misfit};
use crate::error::{Error, Result};
use crate::rows;
use crate::types;
use crate::value::{Value, to_microseconds};

/// Turns `array` into exactly the Arrow type of a column of type `kind`, checking ranges and lengths.
///
/// # Errors
/// [`Error::Constraint`] for values that do not fit, [`Error::Sql`] for kinds of values that do not go there, both
/// naming the column.
pub fn to_column(array: &ArrayRef, kind: &Type, name: &str) -> Result<ArrayRef> {
    let wanted = types::arrow(kind);
    if array.data_type() == &wanted && is_within(array, kind) {
        return Ok(array.clone());
    }
    if array.data_type() == &DataType::Null {
        return Ok(datafusion::arrow::array::new_null_array(&wanted, array.len()));
    }
    if let Some(array) = quick(array, kind, &wanted)? {
        return Ok(array);
    }
    if let Some(array) = instants(array, kind) {
        return Ok(array);
    }
    one_by_one(array, kind, name)
}

/// Whether all values of an array of the right type are values of the column: programs that hand them over need not have looked.
fn is_within(array: &ArrayRef, kind: &Type) -> bool {
    match kind {
        Type::VarChar(_) | Type::Char(_) | Type::Uuid => false,
        Type::Text => has_no_zero(array.as_ref()),
        Type::Numeric { precision, .. } => {
            array.as_primitive::<Decimal128Type>().validate_decimal_precision(*precision).is_ok()
        }
        Type::Time => {
            array.as_primitive::<Time64MicrosecondType>().iter().flatten().all(|time| assign::DAY.contains(&time))
        }
        _ => true,
    }
}

/// Whether no text of a column of the library's has a zero byte in it.
fn has_no_zero(array: &dyn Array) -> bool {
    array.as_string_view_opt().is_none_or(|texts| !texts.iter().flatten().any(|text| text.as_bytes().contains(&0)))
}

/// The conversions that the library does as we would: widening numbers, texts to TEXT (also those of a dictionary), bytes to BYTEA.
fn quick(array: &ArrayRef, kind: &Type, wanted: &DataType) -> Result<Option<ArrayRef>> {
    use DataType::{
        Binary, BinaryView, Dictionary, Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8, UInt8, UInt16, UInt32, Utf8,
        Utf8View,
    };
    let whole = matches!(array.data_type(), Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32);
    let like = match kind {
        Type::SmallInt | Type::Integer | Type::BigInt | Type::Real | Type::Double => whole,
        Type::Text => match array.data_type() {
            Dictionary(_, texts) => matches!(**texts, Utf8 | LargeUtf8 | Utf8View),
            texts => matches!(texts, Utf8 | LargeUtf8 | Utf8View),
        },
        Type::Bytea => matches!(array.data_type(), Binary | LargeBinary | BinaryView),
        _ => false,
    };
    if !like {
        return Ok(None);
    }
    let options = CastOptions { safe: true, ..CastOptions::default() };
    let cast = cast_with_options(array, wanted, &options)?;
    if *kind == Type::Text && !has_no_zero(cast.as_ref()) {
        return Err(Error::ZeroInText);
    }
    // A value that did not fit has become NULL: the slow way finds it and says so.
    Ok((cast.null_count() == array.null_count()).then_some(cast))
}

/// Points in time in the unit of a column, finer ones to the nearest. None where one does not fit, which the slow way says.
fn instants(array: &ArrayRef, kind: &Type) -> Option<ArrayRef> {
    let DataType::Timestamp(unit, _) = array.data_type() else { return None };
    let nanoseconds = matches!(kind, Type::Timestamp { nanoseconds: true });
    if !nanoseconds && !matches!(kind, Type::Timestamp { .. } | Type::TimestampTz) {
        return None;
    }
    let (times, a_second) = match unit {
        TimeUnit::Second => (array.as_primitive::<TimestampSecondType>().values(), 1_i64),
        TimeUnit::Millisecond => (array.as_primitive::<TimestampMillisecondType>().values(), 1_000),
        TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().values(), 1_000_000),
        TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().values(), 1_000_000_000),
    };
    let wanted = if nanoseconds { 1_000_000_000 } else { 1_000_000 };
    let in_unit = |time: i64| match wanted >= a_second {
        true => time.checked_mul(wanted / a_second),
        // Nanoseconds are the one unit that is finer than a column's.
        false => i64::try_from(to_microseconds(i128::from(time))).ok(),
    };
    let is_there = |row: usize| array.is_valid(row);
    let times = times.iter().enumerate().map(|(row, time)| if is_there(row) { in_unit(*time) } else { Some(0) });
    let (times, nulls) = (times.collect::<Option<Vec<i64>>>()?, array.nulls().cloned());
    Some(match kind {
        Type::Timestamp { nanoseconds: true } => Arc::new(TimestampNanosecondArray::new(times.into(), nulls)),
        Type::TimestampTz => Arc::new(TimestampMicrosecondArray::new(times.into(), nulls).with_timezone(types::UTC)),
        _ => Arc::new(TimestampMicrosecondArray::new(times.into(), nulls)),
    })
}

fn one_by_one(array: &ArrayRef, kind: &Type, name: &str) -> Result<ArrayRef> {
    let layout = Arc::new(Layout::new([(ColumnId(0), *kind)]));
    let mut batch = RowBatch::new(layout, array.len());
    for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
        let stored = match text_of(array.as_ref(), row) {
            Some(text) => assign::text_as(text, kind).map_err(|misfit| misfit.error(name, kind, "text"))?,
            None => {
                let value = element(array.as_ref(), row)
                    .map_err(|_| Misfit::Kind.error(name, kind, &types::result_name(array.data_type())))?;
                assign::assign(&value, kind).map_err(|misfit| misfit.error(name, kind, value.kind()))?
            }
        };
        batch.set(row, 0, stored.borrow()).map_err(Error::Relation)?;
    }
    rows::decode(&batch, 0, &Selection::All(array.len()))
}

fn text_of(array: &dyn Array, row: usize) -> Option<&str> {
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Some(array.as_string_view().value(row)),
        _ => None,
    }
}

/// One cell as a value.
///
/// # Errors
/// [`Error::NotSupported`] for lists, structures, intervals and durations.
pub fn element(array: &dyn Array, row: usize) -> Result<Value> {
    if array.is_null(row) {
        return Ok(Value::Null);
    }
    if let Some(text) = text_of(array, row) {
        return Ok(Value::Text(text.to_owned()));
    }
    Ok(match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        DataType::Int8 => Value::Integer(array.as_primitive::<Int8Type>().value(row).into()),
        DataType::Int16 => Value::Integer(array.as_primitive::<Int16Type>().value(row).into()),
        DataType::Int32 => Value::Integer(array.as_primitive::<Int32Type>().value(row).into()),
        DataType::Int64 => Value::Integer(array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => Value::Integer(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Value::Integer(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Value::Integer(array.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => Value::Decimal { unscaled: array.as_primitive::<UInt64Type>().value(row).into(), scale: 0 },
        DataType::Float32 => Value::Double(shortest(array.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => Value::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) if *scale >= 0 => {
            Value::Decimal { unscaled: array.as_primitive::<Decimal128Type>().value(row), scale: scale.unsigned_abs() }
        }
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::LargeBinary => Value::Bytes(array.as_binary::<i64>().value(row).to_vec()),
        DataType::BinaryView => Value::Bytes(array.as_binary_view().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => Value::Bytes(array.as_fixed_size_binary().value(row).to_vec()),
        DataType::Date32 => Value::Date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Date64 => Value::Date((array.as_primitive::<Date64Type>().value(row).div_euclid(86_400_000)) as i32),
        DataType::Time32(TimeUnit::Second) => {
            Value::Time(i64::from(array.as_primitive::<Time32SecondType>().value(row)) * 1_000_000)
        }
        DataType::Time32(TimeUnit::Millisecond) => {
            Value::Time(i64::from(array.as_primitive::<Time32MillisecondType>().value(row)) * 1000)
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            Value::Time(array.as_primitive::<Time64MicrosecondType>().value(row))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            Value::Time(to_microseconds(array.as_primitive::<Time64NanosecondType>().value(row).into()) as i64)
        }
        DataType::Timestamp(unit, zone) => {
            let (ticks, scale) = match unit {
                TimeUnit::Second => (array.as_primitive::<TimestampSecondType>().value(row), 1_000_000_000),
                TimeUnit::Millisecond => (array.as_primitive::<TimestampMillisecondType>().value(row), 1_000_000),
                TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().value(row), 1000),
                TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().value(row), 1),
            };
            let nanoseconds = i128::from(ticks) * scale;
            if zone.is_some() { Value::TimestampTz(nanoseconds) } else { Value::Timestamp(nanoseconds) }
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            element(dictionary.values().as_ref(), dictionary.normalized_keys()[row])?
        }
        DataType::Decimal256(_, _)
        | DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Decimal128(_, _) => {
            let text = crate::text::cell(array, row)?.unwrap_or_default();
            Value::Text(text)
        }
        other => return Err(Error::NotSupported(format!("a value of type {}", types::result_name(other)))),
    })
}

/// The double with the same shortest digits: 0.1 stays 0.1 and does not become 0.10000000149.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, StringArray};

    #[test]
    fn a_number_out_of_range_names_its_column() {
        let array: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(1 << 40)]));
        let error = to_column(&array, &Type::Integer, "age").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a integer is out of range (column age, integer)".replace("a integer", "an integer")
        );
        let narrow = to_column(&array, &Type::BigInt, "age").unwrap();
        assert_eq!(narrow.null_count(), 1);
    }

    #[test]
    fn finer_times_are_rounded_and_those_of_the_column_stay() {
        let array: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![Some(1_999), Some(-1), None]));
        let coarse = to_column(&array, &Type::Timestamp { nanoseconds: false }, "at").unwrap();
        assert_eq!(coarse.as_primitive::<TimestampMicrosecondType>().values()[..2], [2, 0]);
        assert_eq!(&to_column(&array, &Type::Timestamp { nanoseconds: true }, "at").unwrap(), &array);
    }

    #[test]
    fn no_text_has_a_zero_byte() {
        let texts = || StringArray::from(vec!["a", "b\0"]);
        let views: ArrayRef = Arc::new(datafusion::arrow::array::StringViewArray::from(vec!["a", "b\0"]));
        for array in [Arc::new(texts()) as ArrayRef, views] {
            for kind in [Type::Text, Type::VarChar(5), Type::Char(5)] {
                assert_eq!(to_column(&array, &kind, "t"), Err(Error::ZeroInText), "{kind:?}");
            }
        }
    }

    #[test]
    fn texts_become_what_the_column_holds() {
        let array: ArrayRef = Arc::new(StringArray::from(vec![Some("2024-02-29"), None]));
        let dates = to_column(&array, &Type::Date, "day").unwrap();
        assert_eq!(dates.as_primitive::<Date32Type>().value(0), 19_782);
        assert!(to_column(&array, &Type::Uuid, "id").is_err());
    }
}
