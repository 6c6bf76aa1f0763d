//! Rows as points, and points as Arrow columns.

use std::sync::Arc;

use counterfoil_relation::{RowBatch, Table, Type};
use counterfoil_series::{Batch, Block, Column, Kind, Points, Text, Values};
use datafusion::arrow::array::{
    ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, PrimitiveArray, StringViewArray, UInt32Array,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampNanosecondType,
};

use super::Form;
use crate::error::{Error, Result};
use crate::types;

/// The times of rows.
pub(crate) fn times(form: &Form, batch: &RowBatch) -> Vec<i64> {
    let mut bytes = [0; 8];
    let mut time = |row| {
        bytes.copy_from_slice(batch.fixed(row, form.time));
        i64::from_le_bytes(bytes)
    };
    (0..batch.count()).map(&mut time).collect()
}

/// Rows as points of these series, for a table of these columns.
pub(crate) fn points(form: &Form, kinds: &[Kind], batch: &RowBatch, series: Vec<u32>) -> Result<Batch> {
    let mut columns: Vec<Column> = kinds
        .iter()
        .map(|kind| {
            let mut column = Column::new(*kind);
            column.append_nothing(batch.count());
            column
        })
        .collect();
    for (place, slot) in &form.values {
        let column =
            columns.get_mut(*slot).ok_or_else(|| Error::Bug("a column that the engine does not have".into()))?;
        *column = column_of(batch, *place)?;
    }
    Ok(Batch { series, rows: Points { times: times(form, batch), columns } })
}

/// A column of a batch as the engine holds it.
pub(super) fn column_of(batch: &RowBatch, place: usize) -> Result<Column> {
    let kind = batch.layout().columns()[place].kind;
    let rows = 0..batch.count();
    let values = match super::kind(&kind) {
        Some(Kind::Integer) => Values::Integers(rows.map(|row| whole(batch.fixed(row, place))).collect()),
        Some(Kind::Double) => Values::Doubles(rows.map(|row| double(batch.fixed(row, place))).collect()),
        Some(Kind::Text) => {
            let text = |row| Ok(Text::from(batch.variable(row, place).map_err(Error::Relation)?));
            Values::Texts(rows.map(text).collect::<Result<_>>()?)
        }
        None => return Err(Error::Bug("a type that series do not have".into())),
    };
    let present: Vec<bool> = (0..batch.count()).map(|row| !batch.is_null(row, place)).collect();
    Ok(Column { values, present: Some(present).filter(|present| present.contains(&false)) })
}

/// An integer of 1 to 16 bytes that is known to fit.
pub(super) fn whole(bytes: &[u8]) -> i64 {
    match *bytes {
        [one] => i64::from(one),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => {
            let mut low = [0; 8];
            low.copy_from_slice(&bytes[..8]);
            i64::from_le_bytes(low)
        }
    }
}

pub(super) fn double(bytes: &[u8]) -> f64 {
    match *bytes {
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => {
            let mut all = [0; 8];
            all.copy_from_slice(&bytes[..8]);
            f64::from_le_bytes(all)
        }
    }
}

/// The columns of a block at these places of the table; `keys` has the columns that name series, one row each.
pub(crate) fn arrays(
    table: &Table,
    form: &Form,
    block: &Block,
    places: &[usize],
    keys: &[Option<ArrayRef>],
) -> Result<Vec<ArrayRef>> {
    let count = block.points.len();
    let array = |place: &usize| {
        let kind = &table.columns[*place].kind;
        if *place == form.time {
            return integers(kind, &block.points.times, None);
        }
        if let Some(key) = keys.get(*place).and_then(Option::as_ref) {
            return Ok(take(key.as_ref(), &UInt32Array::from_value(block.series, count), None)?);
        }
        let slot = form.values.iter().find(|(other, _)| other == place).map(|(_, slot)| *slot);
        match slot.and_then(|slot| block.points.columns.get(slot)) {
            Some(column) => values(kind, column),
            None => Err(Error::Bug("a column that the engine does not have".into())),
        }
    };
    places.iter().map(array).collect()
}

/// A column of the engine as one of a type.
pub(crate) fn values(kind: &Type, column: &Column) -> Result<ArrayRef> {
    let nulls = column.present.as_ref().map(|present| NullBuffer::from(present.clone()));
    match &column.values {
        Values::Integers(values) => integers(kind, values, nulls),
        Values::Doubles(values) => Ok(match kind {
            Type::Real => primitive::<Float32Type>(values.iter().map(|value| *value as f32).collect(), nulls),
            _ => primitive::<Float64Type>(values.clone(), nulls),
        }),
        Values::Texts(values) => texts(kind, values, nulls),
    }
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls))
}

/// Integers as a column of a type that the engine holds as integers.
pub(crate) fn integers(kind: &Type, values: &[i64], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    Ok(match kind {
        Type::Boolean => {
            let values: Vec<bool> = values.iter().map(|value| *value != 0).collect();
            Arc::new(BooleanArray::new(values.into(), nulls))
        }
        Type::SmallInt => primitive::<Int16Type>(values.iter().map(|value| *value as i16).collect(), nulls),
        Type::Integer => primitive::<Int32Type>(values.iter().map(|value| *value as i32).collect(), nulls),
        Type::Date => primitive::<Date32Type>(values.iter().map(|value| *value as i32).collect(), nulls),
        Type::BigInt => primitive::<Int64Type>(values.to_vec(), nulls),
        Type::Time => primitive::<Time64MicrosecondType>(values.to_vec(), nulls),
        Type::Timestamp { nanoseconds: false } => primitive::<TimestampMicrosecondType>(values.to_vec(), nulls),
        Type::Timestamp { nanoseconds: true } => primitive::<TimestampNanosecondType>(values.to_vec(), nulls),
        Type::TimestampTz => {
            let array = PrimitiveArray::<TimestampMicrosecondType>::new(values.to_vec().into(), nulls);
            Arc::new(array.with_timezone(types::UTC))
        }
        Type::Numeric { precision, scale } => {
            let values: Vec<i128> = values.iter().map(|value| i128::from(*value)).collect();
            let array = PrimitiveArray::<Decimal128Type>::new(values.into(), nulls);
            Arc::new(array.with_precision_and_scale(*precision, *scale as i8)?)
        }
        _ => return Err(Error::Bug(format!("integers for a column of {}", types::name(kind)))),
    })
}

fn texts(kind: &Type, values: &[Text], nulls: Option<NullBuffer>) -> Result<ArrayRef> {
    let is_there = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
    let bytes = values.iter().enumerate().map(|(at, value)| is_there(at).then_some(value));
    if matches!(kind, Type::Bytea) {
        return Ok(Arc::new(bytes.map(|value| value.map(|value| value.as_ref())).collect::<BinaryViewArray>()));
    }
    let wrong = || Error::Relation(counterfoil_relation::Error::corrupt("", "encoding of a text"));
    let text = |value: Option<&Text>| match value {
        Some(value) => std::str::from_utf8(value).map(|text| Some(text.to_owned())).map_err(|_| wrong()),
        None => Ok(None),
    };
    let texts: Vec<Option<String>> = bytes.map(text).collect::<Result<_>>()?;
    Ok(Arc::new(StringViewArray::from(texts.iter().map(Option::as_deref).collect::<Vec<_>>())))
}
