//! Parquet: columns come with their types.

use counterfoil::{ColumnInfo, Error, sql_type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::source::Source;
use super::text::find;
use super::{BATCH_ROWS, Batches};
use crate::failure::input;

fn open(source: &Source) -> Result<ParquetRecordBatchReaderBuilder<std::fs::File>, Error> {
    ParquetRecordBatchReaderBuilder::try_new(source.file()?)
        .map_err(|error| input(format!("this is no Parquet that can be read: {error}")).at(source.place()))
}

/// Names and SQL types of the columns.
pub fn columns(source: &Source) -> Result<Vec<(String, String)>, Error> {
    let reader = open(source)?;
    let fields = reader.schema().fields().iter();
    fields
        .map(|field| {
            let kind = sql_type(field.data_type())
                .map_err(|error| error.at(format!("{}, column {}", source.place(), field.name())))?;
            Ok((field.name().to_lowercase(), kind))
        })
        .collect()
}

/// The rows, for a table with these columns.
pub fn read(source: &Source, columns: &[ColumnInfo]) -> Result<(Vec<String>, Batches), Error> {
    let reader = open(source)?;
    let fields = reader.schema().fields().iter();
    let names = fields.map(|field| find(columns, field.name()).map(|column| column.name.clone()));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let batches = reader.with_batch_size(BATCH_ROWS).build();
    let batches = batches.map_err(|error| input(format!("this is no Parquet that can be read: {error}")))?;
    let progress = source.progress();
    let bytes = source.bytes();
    Ok((
        names,
        Box::new(batches.map(move |batch| {
            // How far a Parquet file was read cannot be told in bytes: half of it is half way.
            progress.store(bytes / 2, std::sync::atomic::Ordering::Relaxed);
            batch.map_err(|error| input(format!("the Parquet cannot be read on: {error}")))
        })),
    ))
}
