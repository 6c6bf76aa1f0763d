//! Parquet, compressed with Zstandard.

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::datatypes::SchemaRef;
use counterfoil::{Error, Kind};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::ipc::{plain_schema, plain_types};
use super::{Rows, Sink};
use crate::failure::{Failure, Result};

pub struct Parquet<'a> {
    writer: ArrowWriter<Sink<'a>>,
    schema: SchemaRef,
}

impl<'a> Parquet<'a> {
    pub fn new(schema: &SchemaRef, sink: Sink<'a>) -> Result<Self> {
        let schema = plain_schema(schema);
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let writer = ArrowWriter::try_new(sink, schema.clone(), Some(properties)).map_err(refused)?;
        Ok(Self { writer, schema })
    }
}

impl Rows for Parquet<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = plain_types(&self.schema, batch)?;
        self.writer.write(&batch).map_err(refused)
    }

    fn finish(&mut self) -> Result<()> {
        self.writer.finish().map_err(refused)?;
        std::io::Write::flush(self.writer.inner_mut()).map_err(Failure::output)
    }
}

fn refused(error: ParquetError) -> Failure {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => Failure::output(*error),
            Err(other) => Error::new(Kind::NotSupported, format!("not supported: {other}")).into(),
        },
        other => Error::new(Kind::NotSupported, format!("not supported: {other}")).into(),
    }
}
