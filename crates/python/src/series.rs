//! Series tables without SQL: points in one by one, points out as Arrow.

use std::ops::RangeInclusive;
use std::sync::Arc;

use counterfoil::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use counterfoil::{ColumnInfo, Cursor, Error, Value, with_uuid};
use pyo3::prelude::*;

use crate::errors::misuse;
use crate::held::Held;
use crate::rows::Rows;
use crate::session::Place;
use crate::waiting::wait;
use crate::{instants, values};

/// A series table.
#[pyclass(frozen, module = "counterfoil._counterfoil")]
pub struct Series {
    series: counterfoil::Series,
    place: Place,
    nanoseconds: bool,
}

impl Series {
    /// Of the facade's.
    pub fn new(series: counterfoil::Series, place: Place) -> Self {
        let in_nanoseconds =
            |column: &ColumnInfo| column.is_key && matches!(column.arrow, DataType::Timestamp(TimeUnit::Nanosecond, _));
        let nanoseconds = series.columns().iter().any(in_nanoseconds);
        Self { series, place, nanoseconds }
    }

    fn schema(&self) -> SchemaRef {
        let field = |column: ColumnInfo| {
            let field = Field::new(column.name, column.arrow, true);
            if column.kind == "uuid" { with_uuid(field) } else { field }
        };
        Arc::new(Schema::new(self.series.columns().into_iter().map(field).collect::<Vec<_>>()))
    }

    fn span(&self, first: Option<&Bound<'_, PyAny>>, last: Option<&Bound<'_, PyAny>>) -> PyResult<RangeInclusive<i64>> {
        let bound = |given: Option<&Bound<'_, PyAny>>, otherwise| match given {
            Some(given) => instants::counted(given, self.nanoseconds),
            None => Ok(otherwise),
        };
        Ok(bound(first, i64::MIN)?..=bound(last, i64::MAX)?)
    }
}

#[pymethods]
impl Series {
    /// Its name.
    #[getter]
    fn name(&self) -> String {
        self.series.name().to_owned()
    }

    /// Names and SQL types of its columns, and whether they belong to the key.
    fn columns(&self) -> Vec<(String, String, bool)> {
        self.series.columns().into_iter().map(|column| (column.name, column.kind, column.is_key)).collect()
    }

    /// Points in it, and whether that is exact.
    fn count(&self, py: Python<'_>) -> PyResult<(u64, bool)> {
        wait(py, || self.series.count())
    }

    /// The points of one series, or of all of them, from `first` to `last`, both included.
    #[pyo3(signature = (key=None, first=None, last=None))]
    fn read(
        &self,
        py: Python<'_>,
        key: Option<&Bound<'_, PyAny>>,
        first: Option<&Bound<'_, PyAny>>,
        last: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Rows> {
        let key = key.map(values::row).transpose()?;
        let (span, schema) = (self.span(first, last)?, self.schema());
        wait(py, || {
            let rows = self.series.read(key.as_deref(), span)?;
            Rows::begin(schema, Box::new(rows), self.place.clone())
        })
    }

    /// The newest point of a series: rows with one, or none.
    fn newest(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Rows> {
        let (key, schema) = (values::row(key)?, self.schema());
        wait(py, || {
            let newest = self.series.newest(&key)?;
            Rows::begin(schema, Box::new(newest.into_iter().map(Ok)), self.place.clone())
        })
    }

    /// Begins to write.
    fn writer(&self, py: Python<'_>) -> PyResult<SeriesWriter> {
        let writer = wait(py, || self.series.writer())?;
        Ok(SeriesWriter { writer: Held::new("writer", writer), nanoseconds: self.nanoseconds })
    }
}

/// Where points of one series go.
#[pyclass(frozen, module = "counterfoil._counterfoil")]
pub struct SeriesCursor(Cursor);

/// Writes points.
#[pyclass(frozen, module = "counterfoil._counterfoil")]
pub struct SeriesWriter {
    writer: Held<counterfoil::SeriesWriter>,
    nanoseconds: bool,
}

impl SeriesWriter {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut counterfoil::SeriesWriter) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        wait(py, || self.writer.with(body))
    }
}

#[pymethods]
impl SeriesWriter {
    /// The cursor of a series: a value for each column of the key but the time.
    fn cursor(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<SeriesCursor> {
        let key = values::row(key)?;
        self.with(py, move |writer| writer.cursor(&key)).map(SeriesCursor)
    }

    /// Adds a point: its time, and a value for each column that is not of the key.
    fn push(
        &self,
        py: Python<'_>,
        cursor: &SeriesCursor,
        time: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (cursor, time, values) = (cursor.0, instants::counted(time, self.nanoseconds)?, values::row(values)?);
        self.with(py, move |writer| writer.push(cursor, time, &values))
    }

    /// Adds many points of one series.
    fn extend(&self, py: Python<'_>, cursor: &SeriesCursor, points: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut taken: Vec<(i64, Vec<Value>)> = Vec::new();
        for point in points.try_iter()? {
            let mut row = point?.try_iter()?.collect::<PyResult<Vec<_>>>()?.into_iter();
            let Some(time) = row.next() else {
                return crate::errors::told(py, Err(misuse("a point without a time")));
            };
            let values = row.map(|value| values::value(&value)).collect::<PyResult<_>>()?;
            taken.push((instants::counted(&time, self.nanoseconds)?, values));
        }
        let (cursor, count) = (cursor.0, taken.len());
        self.with(py, move |writer| {
            taken.into_iter().try_for_each(|(time, values)| writer.push(cursor, time, &values))?;
            Ok(count)
        })
    }

    /// Makes all that was pushed durable: points stored, of these kept apart as ahead of the clock, and points too old.
    fn commit(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        self.with(py, |writer| {
            let written = writer.commit()?;
            Ok((written.points, written.kept_apart, written.expired))
        })
    }

    /// Points that wait.
    fn waiting(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |writer| Ok(writer.waiting()))
    }

    /// Forgets what waits.
    fn discard(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |writer| {
            writer.discard();
            Ok(())
        })
    }

    /// Ends it: what waits is not stored.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        wait(py, || self.writer.take().map(drop))
    }
}
