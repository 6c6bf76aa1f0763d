//! Between Arrow arrays and what codings take: a column at a time.

use std::ops::Range;
use std::sync::Arc;

use counterfoil_disperse::fragments::Strings;
use counterfoil_disperse::{Kind, Plain, from_float, to_float};
use counterfoil_relation::Type;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray, Float32Array, Float64Array, PrimitiveArray,
    StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Float64Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};

use crate::error::{Error, Result};
use crate::types;

/// What a column's values are to codings.
pub(super) fn kind(column: &Type) -> Kind {
    let number = |bits, adds| Kind::Number { bits, wide: bits > 64, adds };
    match column {
        Type::Boolean => number(1, false),
        Type::SmallInt => number(16, true),
        Type::Integer => number(32, true),
        Type::BigInt => number(64, true),
        Type::Date => number(32, false),
        Type::Time | Type::Timestamp { .. } | Type::TimestampTz => number(64, false),
        // The greatest number of so many digits.
        Type::Numeric { precision, .. } => {
            let bits = (128 - (10_u128.pow(u32::from(*precision)) - 1).leading_zeros()) as u8;
            Kind::Number { bits, wide: bits > 63, adds: true }
        }
        Type::Real | Type::Double => Kind::Float,
        Type::Bytea => Kind::Bytes,
        Type::Uuid => Kind::Uuid,
        _ => Kind::Text,
    }
}

/// A column's values as codings take them.
///
/// # Errors
/// [`Error::Bug`] for an array of another type than the column's.
pub(super) fn plain(column: &Type, array: &ArrayRef) -> Result<Plain> {
    let wrong = |_| Error::Bug("an array of another type than its column".into());
    Ok(match kind(column) {
        Kind::Number { .. } if *column == Type::Boolean => {
            Plain::Numbers(array.as_boolean().iter().map(|truth| truth.map(i128::from)).collect())
        }
        Kind::Number { .. } => match array.data_type() {
            DataType::Decimal128(..) => Plain::Numbers(array.as_primitive::<Decimal128Type>().iter().collect()),
            _ => {
                let whole = cast(array, &DataType::Int64).map_err(wrong)?;
                Plain::Numbers(whole.as_primitive::<Int64Type>().iter().map(|number| number.map(i128::from)).collect())
            }
        },
        Kind::Float => {
            let floats = cast(array, &DataType::Float64).map_err(wrong)?;
            Plain::Numbers(floats.as_primitive::<Float64Type>().iter().map(|float| float.map(from_float)).collect())
        }
        Kind::Text | Kind::Bytes | Kind::Uuid => {
            let bytes = cast(array, &DataType::LargeBinary).map_err(wrong)?;
            let (bytes, mut values) = (bytes.as_binary::<i64>(), Strings::default());
            (0..bytes.len()).for_each(|row| values.push(if bytes.is_null(row) { &[] } else { bytes.value(row) }));
            Plain::Strings { values, nulls: (0..bytes.len()).map(|row| bytes.is_null(row)).collect() }
        }
    })
}

/// A column's values in some rows, as queries take them.
///
/// # Errors
/// [`Error::Bug`]: values of another kind, or such as the type does not have. Cells open for what was sealed here alone.
pub(super) fn array(column: &Type, plain: &Plain, rows: Range<usize>) -> Result<ArrayRef> {
    let wrong = || Error::Bug("a value that its column's type does not have".into());
    match plain {
        Plain::Numbers(numbers) => array_of_numbers(column, &numbers[rows]).ok_or_else(wrong),
        Plain::Strings { values, nulls } if *column == Type::Bytea => {
            let mut builder = BinaryViewBuilder::with_capacity(rows.len());
            rows.for_each(|row| builder.append_option((!nulls[row]).then(|| values.get(row))));
            Ok(Arc::new(builder.finish()))
        }
        Plain::Strings { values, nulls } => {
            let mut builder = StringViewBuilder::with_capacity(rows.len());
            for row in rows {
                let text = std::str::from_utf8(values.get(row)).map_err(|_| wrong())?;
                builder.append_option((!nulls[row]).then_some(text));
            }
            Ok(Arc::new(builder.finish()))
        }
    }
}

fn array_of_numbers(column: &Type, numbers: &[Option<i128>]) -> Option<ArrayRef> {
    let floats = || numbers.iter().map(|number| number.map(to_float));
    Some(match column {
        Type::Boolean => Arc::new(BooleanArray::from_iter(numbers.iter().map(|number| number.map(|of| of == 1)))),
        Type::SmallInt => primitive::<Int16Type>(numbers)?,
        Type::Integer => primitive::<Int32Type>(numbers)?,
        Type::BigInt => primitive::<Int64Type>(numbers)?,
        Type::Date => primitive::<Date32Type>(numbers)?,
        Type::Time => primitive::<Time64MicrosecondType>(numbers)?,
        Type::Timestamp { nanoseconds: false } => primitive::<TimestampMicrosecondType>(numbers)?,
        Type::Timestamp { nanoseconds: true } => primitive::<TimestampNanosecondType>(numbers)?,
        Type::TimestampTz => {
            let array = PrimitiveArray::<TimestampMicrosecondType>::from_iter(narrow::<i64>(numbers)?);
            Arc::new(array.with_timezone(types::UTC))
        }
        Type::Numeric { precision, scale } => {
            let array = PrimitiveArray::<Decimal128Type>::from_iter(numbers.iter().copied());
            Arc::new(array.with_precision_and_scale(*precision, *scale as i8).ok()?)
        }
        Type::Real => Arc::new(Float32Array::from_iter(floats().map(|float| float.map(|float| float as f32)))),
        Type::Double => Arc::new(Float64Array::from_iter(floats())),
        _ => return None,
    })
}

fn narrow<T: TryFrom<i128>>(numbers: &[Option<i128>]) -> Option<Vec<Option<T>>> {
    numbers
        .iter()
        .map(|number| number.map(|number| T::try_from(number).ok()).map_or(Some(None), |of| of.map(Some)))
        .collect()
}

fn primitive<T: ArrowPrimitiveType>(numbers: &[Option<i128>]) -> Option<ArrayRef>
where
    T::Native: TryFrom<i128>,
{
    Some(Arc::new(PrimitiveArray::<T>::from_iter(narrow::<T::Native>(numbers)?)))
}
