//! Arrow: an IPC stream.

use std::sync::Arc;

use counterfoil::Error;
use counterfoil::Kind;
use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::compute::cast;
use counterfoil::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use counterfoil::arrow::error::ArrowError;
use counterfoil::arrow::ipc::writer::StreamWriter;

use super::{Rows, Sink};
use crate::failure::{Failure, Result};

pub struct Ipc<'a> {
    writer: StreamWriter<Sink<'a>>,
    schema: SchemaRef,
}

impl<'a> Ipc<'a> {
    pub fn new(schema: &SchemaRef, sink: Sink<'a>) -> Result<Self> {
        let schema = plain_schema(schema);
        let writer = StreamWriter::try_new(sink, &schema).map_err(refused)?;
        Ok(Self { writer, schema })
    }
}

impl Rows for Ipc<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = plain_types(&self.schema, batch)?;
        self.writer.write(&batch).map_err(refused)
    }

    fn finish(&mut self) -> Result<()> {
        self.writer.finish().map_err(refused)?;
        std::io::Write::flush(self.writer.get_mut()).map_err(Failure::output)
    }
}

/// The schema without views, which many readers of Arrow and Parquet do not know yet.
pub(super) fn plain_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let kind = match field.data_type() {
            DataType::Utf8View => DataType::Utf8,
            DataType::BinaryView => DataType::Binary,
            other => other.clone(),
        };
        // Metadata of the query engine is nobody else's business.
        Field::new(field.name(), kind, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A batch in the types of a plain schema.
pub(super) fn plain_types(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let columns = columns.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    let options = counterfoil::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(refused)
}

pub(super) fn refused(error: ArrowError) -> Failure {
    match error {
        ArrowError::IoError(_, error) => Failure::output(error),
        other => Error::new(Kind::NotSupported, format!("not supported: {other}")).into(),
    }
}
