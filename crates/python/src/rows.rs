//! Rows on their way to Python: as tuples, or as an Arrow stream.

use std::sync::Arc;

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::datatypes::{DataType, SchemaRef};
use counterfoil::{Error, field_name, is_uuid};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::cells::{cell, uuid};
use crate::errors::{about, exception};
use crate::held::Held;
use crate::session::Place;
use crate::stream;
use crate::waiting::{ended, is_called_off, wait};

/// Where batches come from.
pub type Source = Box<dyn Iterator<Item = Result<RecordBatch, Error>> + Send>;

/// The rows of a query. They are read while they are taken, and taken once.
#[pyclass(frozen, module = "counterfoil._counterfoil")]
pub struct Rows {
    schema: SchemaRef,
    reading: Arc<Held<Reading>>,
}

/// How far they were read.
pub struct Reading {
    source: Source,
    batch: Option<RecordBatch>,
    place: usize,
    of: Place,
    /// What ended them.
    failed: Option<Error>,
}

impl Reading {
    /// Some of the rows that come next, at most `most`; none at the end.
    pub fn take(&mut self, most: usize) -> Result<Option<RecordBatch>, Error> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        if is_called_off() {
            return Err(ended());
        }
        self.fill()?;
        Ok(self.read(most))
    }

    /// Some of the rows that were read and not taken yet.
    fn read(&mut self, most: usize) -> Option<RecordBatch> {
        let batch = self.batch.as_ref().filter(|batch| self.place < batch.num_rows())?;
        let taken = batch.slice(self.place, most.min(batch.num_rows() - self.place));
        self.place += taken.num_rows();
        Some(taken)
    }

    /// Reads on until there are rows to take, or no more.
    fn fill(&mut self) -> Result<(), Error> {
        while self.batch.as_ref().is_none_or(|batch| self.place == batch.num_rows()) {
            self.place = 0;
            self.batch = match self.source.next() {
                None => {
                    self.batch = None;
                    break;
                }
                Some(Ok(batch)) => Some(batch),
                Some(Err(error)) => {
                    let error = about(error, self.of.as_deref());
                    self.batch = None;
                    self.failed = Some(error.clone());
                    return Err(error);
                }
            };
        }
        Ok(())
    }
}

impl Rows {
    /// Rows of a database that a source gives, of which the first are read at once: most errors of a query are told when it
    /// is run.
    ///
    /// # Errors
    /// The source's.
    pub fn begin(schema: SchemaRef, source: Source, of: Place) -> Result<Self, Error> {
        let mut reading = Reading { source, batch: None, place: 0, of, failed: None };
        reading.fill()?;
        Ok(Self { schema, reading: Arc::new(Held::new("result", reading)) })
    }

    fn take(&self, py: Python<'_>, most: usize) -> PyResult<Option<RecordBatch>> {
        if let Some(batch) = self.reading.at_once(|reading| reading.read(most)) {
            return Ok(Some(batch));
        }
        wait(py, || self.reading.with(|reading| reading.take(most)))
    }
}

#[pymethods]
impl Rows {
    /// Of each column: name, SQL type, precision and scale of numbers.
    fn columns(&self) -> Vec<(String, String, Option<u8>, Option<i8>)> {
        let column = |field: &Arc<counterfoil::arrow::datatypes::Field>| {
            let (precision, scale) = match field.data_type() {
                DataType::Decimal128(precision, scale) => (Some(*precision), Some(*scale)),
                _ => (None, None),
            };
            (field.name().clone(), field_name(field), precision, scale)
        };
        self.schema.fields().iter().map(column).collect()
    }

    /// The rows that come next, at most `count`, or all of them.
    #[pyo3(signature = (count=None))]
    fn fetch<'py>(&self, py: Python<'py>, count: Option<usize>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut rows = Vec::new();
        let most = count.unwrap_or(usize::MAX);
        while rows.len() < most {
            let Some(batch) = self.take(py, most - rows.len())? else { break };
            if let Err(error) = tuples(py, &self.schema, &batch, &mut rows) {
                // Rows behind it were taken with it: none comes any more, rather than others than those that follow.
                self.close(py);
                return Err(error);
            }
        }
        Ok(rows)
    }

    /// What ended the rows early, if anything did: raised again.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match wait(py, || self.reading.with(|reading| Ok(reading.failed.clone()))) {
            Ok(Some(error)) => Err(exception(py, &error)),
            // Closed is no failure.
            _ => Ok(()),
        }
    }

    /// Ends the query.
    fn close(&self, py: Python<'_>) {
        // What cannot be closed was closed, or is another process's.
        py.detach(|| drop(self.reading.take()));
    }

    /// The rows that were not taken yet, for whoever reads Arrow's C streams.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream::capsule(py, &self.schema, self.reading.clone(), requested_schema)
    }

    /// Names and types of the columns, as Arrow has them.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        stream::schema_capsule(py, &self.schema)
    }
}

fn tuples<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batch: &RecordBatch,
    rows: &mut Vec<Bound<'py, PyTuple>>,
) -> PyResult<()> {
    rows.reserve(batch.num_rows());
    let mut cells = Vec::with_capacity(batch.num_columns());
    let columns: Vec<_> = batch.columns().iter().zip(schema.fields().iter().map(|field| is_uuid(field))).collect();
    for row in 0..batch.num_rows() {
        for (column, is_uuid) in &columns {
            cells.push(if *is_uuid { uuid(py, column, row) } else { cell(py, column, row) }?);
        }
        rows.push(PyTuple::new(py, cells.drain(..))?);
    }
    Ok(())
}
