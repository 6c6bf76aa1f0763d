//! Verified values as Arrow columns, as all other rows have them.

use std::sync::Arc;

use counterfoil_ask::text;
use counterfoil_proof::{Type, Value};
use datafusion::arrow::array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use datafusion::arrow::datatypes::DataType;

/// Values of a column of this type as an array. What is none of the type is NULL: verified values all are.
pub(crate) fn column<'v>(kind: Type, values: impl Iterator<Item = &'v Value>) -> ArrayRef {
    match kind {
        Type::Boolean => Arc::new(values.map(boolean).collect::<BooleanArray>()),
        Type::Real => Arc::new(values.map(|value| double(value).map(|value| value as f32)).collect::<Float32Array>()),
        Type::Double => Arc::new(values.map(double).collect::<Float64Array>()),
        Type::Numeric(precision, scale) => {
            let array: Decimal128Array = values.map(numeric).collect();
            // Both were checked when the definition was.
            Arc::new(array.with_data_type(DataType::Decimal128(precision, scale as i8)))
        }
        Type::Bytea => Arc::new(values.map(bytes).collect::<BinaryViewArray>()),
        Type::Text => Arc::new(values.map(characters).collect::<StringViewArray>()),
        kind if kind.holds_integers() => whole(kind, values.map(integer)),
        _ => Arc::new(values.map(|value| text(kind, value)).collect::<StringViewArray>()),
    }
}

fn whole(kind: Type, values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    match kind {
        Type::SmallInt => Arc::new(values.map(|value| value.map(|value| value as i16)).collect::<Int16Array>()),
        Type::Integer => Arc::new(values.map(|value| value.map(|value| value as i32)).collect::<Int32Array>()),
        Type::Date => Arc::new(values.map(|value| value.map(|value| value as i32)).collect::<Date32Array>()),
        Type::Time => Arc::new(values.collect::<Time64MicrosecondArray>()),
        Type::Timestamp => Arc::new(values.collect::<TimestampMicrosecondArray>()),
        Type::TimestampTz => {
            Arc::new(values.collect::<TimestampMicrosecondArray>().with_timezone(counterfoil_sql::UTC))
        }
        Type::TimestampNanos => Arc::new(values.collect::<TimestampNanosecondArray>()),
        _ => Arc::new(values.collect::<Int64Array>()),
    }
}

fn boolean(value: &Value) -> Option<bool> {
    if let Value::Boolean(value) = value { Some(*value) } else { None }
}

fn integer(value: &Value) -> Option<i64> {
    if let Value::Integer(value) = value { Some(*value) } else { None }
}

fn numeric(value: &Value) -> Option<i128> {
    if let Value::Numeric(value) = value { Some(*value) } else { None }
}

fn double(value: &Value) -> Option<f64> {
    if let Value::Double(value) = value { Some(*value) } else { None }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    if let Value::Bytes(value) = value { Some(value) } else { None }
}

fn characters(value: &Value) -> Option<&str> {
    if let Value::Text(value) = value { Some(value) } else { None }
}
