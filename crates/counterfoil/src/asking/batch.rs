//! Verified rows as Arrow columns, so that they are shown like all other rows.

use std::sync::Arc;

use counterfoil_ask::{Table, text};
use counterfoil_proof::{Type, Value};
use counterfoil_sql::with_uuid;
use datafusion::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use crate::error::{Error, Kind, Result};

/// Verified rows as one batch.
///
/// # Errors
/// [`Kind::Bug`]: columns of different lengths.
pub fn batch(table: &Table) -> Result<RecordBatch> {
    let arrays: Vec<ArrayRef> = (0..table.kinds.len()).map(|column| array(table, column)).collect();
    let field = |((name, kind), array): ((&String, &Type), &ArrayRef)| {
        let field = Field::new(name, array.data_type().clone(), true);
        if *kind == Type::Uuid { with_uuid(field) } else { field }
    };
    let fields: Vec<Field> = table.names.iter().zip(&table.kinds).zip(&arrays).map(field).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(table.rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|_| Error::new(Kind::Bug, "columns of one length").advise("please report it"))
}

fn array(table: &Table, column: usize) -> ArrayRef {
    let kind = table.kinds[column];
    let values = || table.rows.iter().map(|row| &row[column]);
    let integers = || values().map(integer);
    let micros = |zone: Option<&str>| match zone {
        Some(zone) => integers().collect::<TimestampMicrosecondArray>().with_timezone(zone),
        None => integers().collect(),
    };
    match kind {
        Type::Boolean => Arc::new(values().map(boolean).collect::<BooleanArray>()),
        Type::SmallInt => Arc::new(integers().map(|value| value.map(|value| value as i16)).collect::<Int16Array>()),
        Type::Integer => Arc::new(integers().map(|value| value.map(|value| value as i32)).collect::<Int32Array>()),
        Type::BigInt => Arc::new(integers().collect::<Int64Array>()),
        Type::Real => Arc::new(values().map(|value| double(value).map(|value| value as f32)).collect::<Float32Array>()),
        Type::Double => Arc::new(values().map(double).collect::<Float64Array>()),
        Type::Numeric(precision, scale) => {
            let array: Decimal128Array = values().map(numeric).collect();
            // Both were checked when the definition was.
            Arc::new(array.with_data_type(DataType::Decimal128(precision, scale as i8)))
        }
        Type::Bytea => Arc::new(values().map(bytes).collect::<BinaryArray>()),
        Type::Date => Arc::new(integers().map(|value| value.map(|value| value as i32)).collect::<Date32Array>()),
        Type::Time => Arc::new(integers().collect::<Time64MicrosecondArray>()),
        Type::Timestamp => Arc::new(micros(None)),
        Type::TimestampTz => Arc::new(micros(Some("UTC"))),
        Type::TimestampNanos => Arc::new(integers().collect::<TimestampNanosecondArray>()),
        _ => Arc::new(values().map(|value| text(kind, value)).collect::<StringArray>()),
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
