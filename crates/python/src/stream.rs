//! Arrow both ways, by the C interface that every data library of Python speaks (PyCapsules).

use std::sync::Arc;

use counterfoil::arrow::array::{ArrayRef, RecordBatch, RecordBatchReader, StructArray};
use counterfoil::arrow::datatypes::{Field, SchemaRef};
use counterfoil::arrow::error::ArrowError;
use counterfoil::{Connection, Error, Kind};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use pyo3_arrow::ffi::{ArrayIterator, to_schema_pycapsule, to_stream_pycapsule};
use pyo3_arrow::input::AnyRecordBatch;

use crate::errors::{exception, misuse};
use crate::held::Held;
use crate::rows::Reading;
use crate::waiting::wait;

/// A reader of rows from outside.
pub type Reader = Box<dyn RecordBatchReader + Send>;

/// The rows of a result as a stream.
pub fn capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    reading: Arc<Held<Reading>>,
    _requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let field = Arc::new(Field::new_struct("", schema.fields().clone(), false));
    let batches = std::iter::from_fn(move || next(&reading).transpose());
    // The library would cast to the schema that is asked for, and make NULL of what does not fit; whoever asks may cast.
    Ok(to_stream_pycapsule(py, Box::new(ArrayIterator::new(batches, field)), None)?)
}

/// Names and types of a result.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    Ok(to_schema_pycapsule(py, schema.as_ref())?)
}

/// The next batch. Whoever reads a stream may be attached or not, and on any thread.
fn next(reading: &Held<Reading>) -> Result<Option<ArrayRef>, ArrowError> {
    let take = || reading.with(|reading| Ok(reading.take(usize::MAX).map_err(|error| error.to_string())));
    let taken = Python::try_attach(|py| match wait(py, take) {
        Ok(taken) => taken.map_err(ArrowError::ComputeError),
        Err(error) => Err(passed_on(py, error)),
    });
    let batch = taken.unwrap_or_else(|| Err(ArrowError::ComputeError("Python has ended".into())))?;
    Ok(batch.map(|batch| Arc::new(StructArray::from(batch)) as ArrayRef))
}

/// A stream can say what went wrong and not raise: a signal is raised again when its reader is back in Python.
fn passed_on(py: Python<'_>, error: PyErr) -> ArrowError {
    if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
        let again = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
        return ArrowError::ComputeError(match again {
            Ok(_) => "interrupted".into(),
            Err(error) => error.to_string(),
        });
    }
    ArrowError::ComputeError(error.value(py).to_string())
}

/// A reader of whatever gives an Arrow stream or array.
pub fn reader(data: &Bound<'_, PyAny>) -> PyResult<Reader> {
    let py = data.py();
    if !data.hasattr("__arrow_c_stream__")? && !data.hasattr("__arrow_c_array__")? {
        let error = misuse(format!("a value of type {} gives no Arrow data", data.get_type().qualname()?));
        let advice = "give a pyarrow, pandas or polars table, or anything with __arrow_c_stream__";
        return Err(exception(py, &error.advise(advice)));
    }
    data.extract::<AnyRecordBatch>()?.into_reader()
}

/// Adds the rows of a reader to a table, as one statement. Its columns are named by the reader's schema unless `columns`
/// does.
pub fn load(
    connection: &mut Connection,
    table: &str,
    reader: Reader,
    columns: Option<Vec<String>>,
) -> Result<u64, Error> {
    let schema = reader.schema();
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let columns = columns.unwrap_or_else(|| names.clone());
    if columns.len() != names.len() {
        return Err(misuse(format!("{} columns are named, and the data has {}", columns.len(), names.len())));
    }
    let mut batches = reader.map(read);
    connection.load(table, &columns, &mut batches)
}

fn read(batch: Result<RecordBatch, ArrowError>) -> Result<RecordBatch, Error> {
    batch.map_err(|error| Error::new(Kind::Input, format!("the data could not be read: {error}")))
}
