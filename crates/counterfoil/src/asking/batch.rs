//! Verified rows as Arrow columns, so that they are shown like all other rows.

use std::sync::Arc;

use counterfoil_ask::Table;
use counterfoil_proof::Type;
use counterfoil_sql::with_uuid;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use crate::error::{Error, Kind, Result};
use crate::publishing::column;

/// Verified rows as one batch.
///
/// # Errors
/// [`Kind::Bug`]: columns of different lengths.
pub fn batch(table: &Table) -> Result<RecordBatch> {
    let arrays: Vec<ArrayRef> = (0..table.kinds.len()).map(|at| array(table, at)).collect::<Result<_>>()?;
    let field = |((name, kind), array): ((&String, &Type), &ArrayRef)| {
        let field = Field::new(name, array.data_type().clone(), true);
        if *kind == Type::Uuid { with_uuid(field) } else { field }
    };
    let fields: Vec<Field> = table.names.iter().zip(&table.kinds).zip(&arrays).map(field).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(table.rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
        .map_err(|_| Error::new(Kind::Bug, "columns of one length").advise("please report it"))
}

/// A column as it was given since before there were views: programs know it by these types.
fn array(table: &Table, at: usize) -> Result<ArrayRef> {
    let array = column(table.kinds[at], table.rows.iter().map(|row| &row[at]));
    let kind = match array.data_type() {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("UTC".into())),
        _ => return Ok(array),
    };
    cast(&array, &kind).map_err(|_| Error::new(Kind::Bug, "a column of another type").advise("please report it"))
}
