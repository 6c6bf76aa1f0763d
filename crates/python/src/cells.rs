//! Cells of Arrow columns as Python's values.

use chrono::{Datelike, NaiveDateTime, Timelike};
use counterfoil::arrow::array::temporal_conversions as temporal;
use counterfoil::arrow::array::types::{
    Date32Type, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use counterfoil::arrow::array::{Array, ArrayRef, AsArray};
use counterfoil::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use counterfoil::value::parse;
use counterfoil::{Error, Kind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyList, PyString, PyTime, PyType, PyTzInfo};

use crate::errors::{exception, told};

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// One cell.
///
/// # Errors
/// An exception where Python has no value for it: dates before the year 1 and after 9999.
pub fn cell<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($kind:ty) => {
            Ok(array.as_primitive::<$kind>().value(row).into_pyobject(py)?.into_any())
        };
    }
    match array.data_type() {
        DataType::Boolean => Ok(array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any()),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Utf8View => Ok(PyString::new(py, array.as_string_view().value(row)).into_any()),
        DataType::Utf8 => Ok(PyString::new(py, array.as_string::<i32>().value(row)).into_any()),
        DataType::LargeUtf8 => Ok(PyString::new(py, array.as_string::<i64>().value(row)).into_any()),
        DataType::BinaryView => Ok(PyBytes::new(py, array.as_binary_view().value(row)).into_any()),
        DataType::Binary => Ok(PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any()),
        DataType::LargeBinary => Ok(PyBytes::new(py, array.as_binary::<i64>().value(row)).into_any()),
        DataType::Decimal128(_, _) => decimal(py, array, row),
        DataType::Date32 => date(py, array.as_primitive::<Date32Type>().value(row)),
        DataType::Time64(unit) => time(py, array, row, *unit),
        DataType::Timestamp(unit, zone) => moment(py, array, row, *unit, zone.is_some()),
        DataType::Duration(unit) => duration(py, array, row, *unit),
        DataType::Interval(IntervalUnit::MonthDayNano) => interval(py, array, row),
        DataType::List(_) => list(py, &array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(py, &array.as_list::<i64>().value(row)),
        DataType::Struct(_) => structure(py, array, row),
        _ => text(py, array, row),
    }
}

/// One cell of a column of UUIDs, which are texts in Arrow. A UNION may have put other texts among them: these stay.
///
/// # Errors
/// As [`cell`].
pub fn uuid<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let text = cell(py, array, row)?;
    match text.extract::<&str>() {
        Ok(uuid) if parse::uuid(uuid).is_some() => UUID.import(py, "uuid", "UUID")?.call1((text,)),
        _ => Ok(text),
    }
}

/// What Python has no type for, as the shell writes it.
fn text<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let mut text = String::new();
    told(py, counterfoil::write_cell(&mut text, array, row))?;
    Ok(PyString::new(py, &text).into_any())
}

fn decimal<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    // By its text: arithmetic of decimals would round to the digits of the thread's context.
    let text = array.as_primitive::<Decimal128Type>().value_as_string(row);
    DECIMAL.import(py, "decimal", "Decimal")?.call1((text,))
}

/// Dates of PostgreSQL reach farther than those of Python.
fn out_of_reach(py: Python<'_>) -> PyErr {
    let error = Error::new(Kind::Input, "Python's dates reach from the year 1 to 9999, and this one does not");
    exception(py, &error.advise("take the column as Arrow, or CAST it to text"))
}

fn within(py: Python<'_>, moment: Option<NaiveDateTime>) -> PyResult<NaiveDateTime> {
    moment.filter(|moment| (1..=9999).contains(&moment.year())).ok_or_else(|| out_of_reach(py))
}

fn date(py: Python<'_>, days: i32) -> PyResult<Bound<'_, PyAny>> {
    let date = within(py, temporal::date32_to_datetime(days))?;
    Ok(PyDate::new(py, date.year(), date.month() as u8, date.day() as u8)?.into_any())
}

fn time<'py>(py: Python<'py>, array: &ArrayRef, row: usize, unit: TimeUnit) -> PyResult<Bound<'py, PyAny>> {
    let microseconds = match unit {
        TimeUnit::Nanosecond => array.as_primitive::<Time64NanosecondType>().value(row) / 1000,
        _ => array.as_primitive::<Time64MicrosecondType>().value(row),
    };
    let time = temporal::time64us_to_time(microseconds).ok_or_else(|| {
        let error = Error::new(Kind::Input, "Python has no time of day like 24:00:00");
        exception(py, &error.advise("take the column as Arrow, or CAST it to text"))
    })?;
    let (hour, minute, second) = (time.hour() as u8, time.minute() as u8, time.second() as u8);
    Ok(PyTime::new(py, hour, minute, second, time.nanosecond() / 1000, None)?.into_any())
}

fn moment<'py>(
    py: Python<'py>,
    array: &ArrayRef,
    row: usize,
    unit: TimeUnit,
    zoned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let moment = match unit {
        TimeUnit::Second => temporal::timestamp_s_to_datetime(array.as_primitive::<TimestampSecondType>().value(row)),
        TimeUnit::Millisecond => {
            temporal::timestamp_ms_to_datetime(array.as_primitive::<TimestampMillisecondType>().value(row))
        }
        TimeUnit::Microsecond => {
            temporal::timestamp_us_to_datetime(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        TimeUnit::Nanosecond => {
            temporal::timestamp_ns_to_datetime(array.as_primitive::<TimestampNanosecondType>().value(row))
        }
    };
    let moment = within(py, moment)?;
    let (month, day) = (moment.month() as u8, moment.day() as u8);
    let (hour, minute, second) = (moment.hour() as u8, moment.minute() as u8, moment.second() as u8);
    let zone = if zoned { Some(PyTzInfo::utc(py)?.to_owned()) } else { None };
    let microsecond = moment.nanosecond() / 1000;
    let made = PyDateTime::new(py, moment.year(), month, day, hour, minute, second, microsecond, zone.as_ref())?;
    Ok(made.into_any())
}

fn duration<'py>(py: Python<'py>, array: &ArrayRef, row: usize, unit: TimeUnit) -> PyResult<Bound<'py, PyAny>> {
    let nanoseconds = match unit {
        TimeUnit::Second => i128::from(array.as_primitive::<DurationSecondType>().value(row)) * 1_000_000_000,
        TimeUnit::Millisecond => i128::from(array.as_primitive::<DurationMillisecondType>().value(row)) * 1_000_000,
        TimeUnit::Microsecond => i128::from(array.as_primitive::<DurationMicrosecondType>().value(row)) * 1000,
        TimeUnit::Nanosecond => i128::from(array.as_primitive::<DurationNanosecondType>().value(row)),
    };
    delta(py, nanoseconds)
}

/// Months have no length: an interval with some is its text.
fn interval<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
    if interval.months != 0 {
        return text(py, array, row);
    }
    delta(py, i128::from(interval.days) * 86_400_000_000_000 + i128::from(interval.nanoseconds))
}

fn delta(py: Python<'_>, nanoseconds: i128) -> PyResult<Bound<'_, PyAny>> {
    let microseconds = nanoseconds.div_euclid(1000);
    let (days, rest) = (microseconds.div_euclid(86_400_000_000), microseconds.rem_euclid(86_400_000_000));
    let days = i32::try_from(days).map_err(|_| out_of_reach(py))?;
    let delta = PyDelta::new(py, days, (rest / 1_000_000) as i32, (rest % 1_000_000) as i32, false);
    Ok(delta.map_err(|_| out_of_reach(py))?.into_any())
}

fn list<'py>(py: Python<'py>, items: &ArrayRef) -> PyResult<Bound<'py, PyAny>> {
    let cells: Vec<Bound<'py, PyAny>> = (0..items.len()).map(|row| cell(py, items, row)).collect::<PyResult<_>>()?;
    Ok(PyList::new(py, cells)?.into_any())
}

fn structure<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    let structure = array.as_struct();
    let fields = PyDict::new(py);
    for (field, column) in structure.fields().iter().zip(structure.columns()) {
        fields.set_item(field.name(), cell(py, column, row)?)?;
    }
    Ok(fields.into_any())
}
