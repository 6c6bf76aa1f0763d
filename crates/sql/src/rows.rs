//! Between row images and Arrow arrays: whole columns by strided loads, one type at a time.
//!
//! A text's 16 bytes in an image are an Arrow string view except for the place of a long value, so decoding a text
//! column copies 16 bytes a row and shares one buffer for the long values.

use std::sync::Arc;

use counterfoil_relation::{Layout, LayoutColumn, RowBatch, Selection, Type};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, GenericByteViewArray, PrimitiveArray, StringViewArray,
    StringViewBuilder,
};
use datafusion::arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, ByteViewType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};

use crate::error::{Error, Result};
use crate::types;

/// Bytes of a text that lie in the image itself.
const INLINE_BYTES: u32 = 12;
/// Bytes of the length in front of a text.
const LENGTH_BYTES: usize = 4;

/// One column of a batch as an Arrow array.
///
/// # Errors
/// [`Error::Relation`] for images that make no sense.
pub fn decode(batch: &RowBatch, column: usize, rows: &Selection) -> Result<ArrayRef> {
    let place = batch.layout().columns()[column];
    Ok(match place.kind {
        Type::Boolean => boolean(batch, column, rows),
        Type::SmallInt => fixed::<Int16Type, 2>(batch, column, rows, i16::from_le_bytes),
        Type::Integer => fixed::<Int32Type, 4>(batch, column, rows, i32::from_le_bytes),
        Type::BigInt => fixed::<Int64Type, 8>(batch, column, rows, i64::from_le_bytes),
        Type::Real => fixed::<Float32Type, 4>(batch, column, rows, f32::from_le_bytes),
        Type::Double => fixed::<Float64Type, 8>(batch, column, rows, f64::from_le_bytes),
        Type::Date => fixed::<Date32Type, 4>(batch, column, rows, i32::from_le_bytes),
        Type::Time => fixed::<Time64MicrosecondType, 8>(batch, column, rows, i64::from_le_bytes),
        Type::Timestamp { nanoseconds: false } => {
            fixed::<TimestampMicrosecondType, 8>(batch, column, rows, i64::from_le_bytes)
        }
        Type::Timestamp { nanoseconds: true } => {
            fixed::<TimestampNanosecondType, 8>(batch, column, rows, i64::from_le_bytes)
        }
        Type::TimestampTz => {
            let array = primitive::<TimestampMicrosecondType, 8>(batch, column, rows, i64::from_le_bytes);
            Arc::new(array.with_timezone(types::UTC))
        }
        Type::Numeric { precision, scale } => {
            let array = primitive::<Decimal128Type, 16>(batch, column, rows, i128::from_le_bytes);
            Arc::new(array.with_precision_and_scale(precision, scale as i8)?)
        }
        Type::Uuid => uuid(batch, column, rows),
        Type::Text | Type::VarChar(_) | Type::Char(_) => {
            let (views, buffers, nulls) = views(batch, column, rows)?;
            Arc::new(checked(StringViewArray::try_new(views, buffers, nulls))?)
        }
        Type::Bytea => {
            let (views, buffers, nulls) = views(batch, column, rows)?;
            Arc::new(checked(BinaryViewArray::try_new(views, buffers, nulls))?)
        }
    })
}

fn checked<T: ByteViewType>(
    array: Result<GenericByteViewArray<T>, datafusion::arrow::error::ArrowError>,
) -> Result<GenericByteViewArray<T>> {
    array.map_err(|_| corrupt("a text"))
}

fn corrupt(what: &'static str) -> Error {
    Error::Relation(counterfoil_relation::Error::corrupt("", what))
}

fn nulls(batch: &RowBatch, column: usize, rows: &Selection) -> Option<NullBuffer> {
    let (bytes, width) = (batch.bytes(), batch.width());
    let (byte, bit) = (column / 8, 1_u8 << (column % 8));
    let mut any = 0;
    rows.each(|row| any |= bytes[row * width + byte] & bit);
    if any == 0 {
        return None;
    }
    let mut valid = Vec::with_capacity(rows.count());
    rows.each(|row| valid.push(bytes[row * width + byte] & bit == 0));
    Some(NullBuffer::from(valid))
}

fn primitive<T: ArrowPrimitiveType, const N: usize>(
    batch: &RowBatch,
    column: usize,
    rows: &Selection,
    load: impl Fn([u8; N]) -> T::Native,
) -> PrimitiveArray<T> {
    let (bytes, width) = (batch.bytes(), batch.width());
    let offset = batch.layout().columns()[column].offset;
    let mut values: Vec<T::Native> = Vec::with_capacity(rows.count());
    rows.each(|row| {
        let start = row * width + offset;
        let mut value = [0; N];
        value.copy_from_slice(&bytes[start..start + N]);
        values.push(load(value));
    });
    PrimitiveArray::new(ScalarBuffer::from(values), nulls(batch, column, rows))
}

fn fixed<T: ArrowPrimitiveType, const N: usize>(
    batch: &RowBatch,
    column: usize,
    rows: &Selection,
    load: impl Fn([u8; N]) -> T::Native,
) -> ArrayRef {
    Arc::new(primitive::<T, N>(batch, column, rows, load))
}

fn boolean(batch: &RowBatch, column: usize, rows: &Selection) -> ArrayRef {
    let (bytes, width) = (batch.bytes(), batch.width());
    let offset = batch.layout().columns()[column].offset;
    let mut values = Vec::with_capacity(rows.count());
    rows.each(|row| values.push(bytes[row * width + offset] != 0));
    Arc::new(BooleanArray::new(values.into(), nulls(batch, column, rows)))
}

fn uuid(batch: &RowBatch, column: usize, rows: &Selection) -> ArrayRef {
    let mut builder = StringViewBuilder::with_capacity(rows.count());
    let mut text = String::with_capacity(36);
    rows.each(|row| {
        if batch.is_null(row, column) {
            return builder.append_null();
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(batch.fixed(row, column));
        text.clear();
        crate::text::uuid(&mut text, &bytes);
        builder.append_value(&text);
    });
    Arc::new(builder.finish())
}

type Views = (ScalarBuffer<u128>, Vec<Buffer>, Option<NullBuffer>);

/// Views of a variable column. Of all rows, the whole heap is shared; of some, only what they need is copied.
fn views(batch: &RowBatch, column: usize, rows: &Selection) -> Result<Views> {
    let (bytes, width) = (batch.bytes(), batch.width());
    let LayoutColumn { offset, kind, .. } = batch.layout().columns()[column];
    let cell_bytes = kind.bytes();
    let heap = batch.heap();
    let shared = matches!(rows, Selection::All(_)) && heap.len() <= i32::MAX as usize;
    let mut buffers = if shared && !heap.is_empty() { vec![heap.to_vec()] } else { Vec::new() };
    let mut views: Vec<u128> = Vec::with_capacity(rows.count());
    let mut failed = false;
    rows.each(|row| {
        let start = row * width + offset;
        let mut cell = [0; 16];
        cell.copy_from_slice(&bytes[start..start + 16]);
        let view = u128::from_le_bytes(cell);
        let length = view as u32;
        if length <= INLINE_BYTES {
            return views.push(view);
        }
        let place = (view >> 64) as u64;
        let (buffer, place) = if length as usize <= cell_bytes - LENGTH_BYTES {
            // A CHAR(n) in its width: behind the heap, if that is here.
            match copied(&mut buffers, bytes, (start + LENGTH_BYTES) as u64, length) {
                Some(copy) => copy,
                None => return failed = true,
            }
        } else if shared {
            (0, place)
        } else {
            match copied(&mut buffers, heap, place, length) {
                Some(copy) => copy,
                None => return failed = true,
            }
        };
        match u32::try_from(place) {
            Ok(place) => views.push(u128::from(place) << 96 | u128::from(buffer) << 64 | view & u128::from(u64::MAX)),
            Err(_) => failed = true,
        }
    });
    if failed {
        return Err(corrupt("the place of a long value"));
    }
    let buffers = buffers.into_iter().map(Buffer::from_vec).collect();
    Ok((ScalarBuffer::from(views), buffers, nulls(batch, column, rows)))
}

/// Copies a long value behind the last buffer, or into a new one where that would grow past what a view can address.
fn copied(buffers: &mut Vec<Vec<u8>>, heap: &[u8], place: u64, length: u32) -> Option<(u32, u64)> {
    let start = usize::try_from(place).ok()?;
    let value = heap.get(start..start.checked_add(length as usize)?)?;
    if buffers.last().is_none_or(|buffer| buffer.len() + value.len() > i32::MAX as usize) {
        buffers.push(Vec::new());
    }
    let buffer = buffers.len() as u32 - 1;
    let last = buffers.last_mut()?;
    let place = last.len() as u64;
    last.extend_from_slice(value);
    Some((buffer, place))
}

/// Row images of arrays that have exactly the types of the layout's columns, in its order. A column given as `None`
/// is NULL throughout.
///
/// # Errors
/// [`Error::Bug`] for an array of another type; [`Error::Relation`] for a value that is too long.
pub fn encode(layout: &Arc<Layout>, columns: &[Option<ArrayRef>], count: usize) -> Result<RowBatch> {
    let mut batch = RowBatch::new(layout.clone(), count);
    for (position, array) in columns.iter().enumerate() {
        if let Some(array) = array {
            encode_column(&mut batch, position, array.as_ref())?;
        }
    }
    Ok(batch)
}

fn encode_column(batch: &mut RowBatch, column: usize, array: &dyn Array) -> Result<()> {
    let kind = batch.layout().columns()[column].kind;
    if array.data_type() != &types::arrow(&kind) || array.len() != batch.count() {
        return Err(Error::Bug(format!("a column of {} where {} was due", array.data_type(), types::name(&kind))));
    }
    match kind {
        Type::Boolean => {
            let array = array.as_boolean();
            each_valid(array, |row| batch.set_fixed(row, column, [u8::from(array.value(row))]));
        }
        Type::SmallInt => store::<Int16Type, 2>(batch, column, array, i16::to_le_bytes),
        Type::Integer => store::<Int32Type, 4>(batch, column, array, i32::to_le_bytes),
        Type::BigInt => store::<Int64Type, 8>(batch, column, array, i64::to_le_bytes),
        // Adding 0.0 turns -0.0 into 0.0 and leaves every other number alone.
        Type::Real => store::<Float32Type, 4>(batch, column, array, |number| (number + 0.0).to_le_bytes()),
        Type::Double => store::<Float64Type, 8>(batch, column, array, |number| (number + 0.0).to_le_bytes()),
        Type::Date => store::<Date32Type, 4>(batch, column, array, i32::to_le_bytes),
        Type::Time => store::<Time64MicrosecondType, 8>(batch, column, array, i64::to_le_bytes),
        Type::Timestamp { nanoseconds: true } => {
            store::<TimestampNanosecondType, 8>(batch, column, array, i64::to_le_bytes);
        }
        Type::Timestamp { nanoseconds: false } | Type::TimestampTz => {
            store::<TimestampMicrosecondType, 8>(batch, column, array, i64::to_le_bytes);
        }
        Type::Numeric { .. } => store::<Decimal128Type, 16>(batch, column, array, i128::to_le_bytes),
        Type::Uuid => store_uuids(batch, column, array.as_string_view())?,
        Type::Bytea => {
            let array = array.as_binary_view();
            for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
                batch.set_variable(row, column, array.value(row)).map_err(Error::Relation)?;
            }
        }
        Type::Text | Type::VarChar(_) | Type::Char(_) => {
            let array = array.as_string_view();
            for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
                batch.set_variable(row, column, array.value(row).as_bytes()).map_err(Error::Relation)?;
            }
        }
    }
    Ok(())
}

/// Puts a value into a row whose bytes are those of its type in an image, or of its text.
///
/// # Errors
/// [`Error::Relation`] for a text that is too long, or bytes of another number than the type has.
pub fn set_bytes(batch: &mut RowBatch, row: usize, column: usize, value: &[u8]) -> Result<()> {
    let kind = batch.layout().columns()[column].kind;
    if kind.is_variable() {
        return batch.set_variable(row, column, value).map_err(Error::Relation);
    }
    match *value {
        [a] => batch.set_fixed(row, column, [a]),
        [a, b] => batch.set_fixed(row, column, [a, b]),
        [a, b, c, d] => batch.set_fixed(row, column, [a, b, c, d]),
        _ => match (<[u8; 8]>::try_from(value), <[u8; 16]>::try_from(value)) {
            (Ok(eight), _) => batch.set_fixed(row, column, eight),
            (_, Ok(sixteen)) => batch.set_fixed(row, column, sixteen),
            _ => return Err(corrupt("a value")),
        },
    }
    Ok(())
}

fn each_valid(array: &dyn Array, visit: impl FnMut(usize)) {
    match array.nulls() {
        None => (0..array.len()).for_each(visit),
        Some(nulls) => nulls.valid_indices().for_each(visit),
    }
}

fn store<T: ArrowPrimitiveType, const N: usize>(
    batch: &mut RowBatch,
    column: usize,
    array: &dyn Array,
    bytes: impl Fn(T::Native) -> [u8; N],
) {
    let array = array.as_primitive::<T>();
    let values = array.values();
    each_valid(array, |row| batch.set_fixed(row, column, bytes(values[row])));
}

fn store_uuids(batch: &mut RowBatch, column: usize, array: &StringViewArray) -> Result<()> {
    for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
        let bytes =
            crate::value::parse::uuid(array.value(row)).ok_or_else(|| Error::Bug("a text that is no uuid".into()))?;
        batch.set_fixed(row, column, bytes);
    }
    Ok(())
}
