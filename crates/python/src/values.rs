//! Python's values as parameters of statements.

use counterfoil::value::parse;
use counterfoil::{Error, Kind, Value};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyFloat, PyInt, PyMemoryView, PyString, PyTime, PyType,
};

use crate::errors::{exception, misuse};
use crate::instants;

/// Digits that a NUMERIC has at most, and the first number that has more.
const DIGITS_MAX: i32 = 38;
const TOO_LARGE: u128 = 10_u128.pow(DIGITS_MAX as u32);

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static UUID: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// A row of parameters.
///
/// # Errors
/// An exception for what is no sequence of values: a text is one of letters.
pub fn row(values: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    let is_one = values.is_instance_of::<PyString>() || values.is_instance_of::<PyBytes>();
    match values.try_iter() {
        Ok(items) if !is_one => items.map(|item| value(&item?)).collect(),
        _ => {
            let error = misuse("parameters are a sequence or a mapping of values").advise("write one value as [value]");
            Err(exception(values.py(), &error))
        }
    }
}

/// One parameter.
///
/// # Errors
/// An exception that names its type, never its value, where the database has nothing for it.
pub fn value(any: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = any.py();
    if any.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = any.cast::<PyString>() {
        return Ok(Value::Text(text.to_str()?.to_owned()));
    }
    if let Ok(truth) = any.cast::<PyBool>() {
        return Ok(Value::Boolean(truth.is_true()));
    }
    if any.is_instance_of::<PyInt>() {
        return integer(any);
    }
    if let Ok(number) = any.cast::<PyFloat>() {
        return Ok(Value::Double(number.extract()?));
    }
    if let Ok(bytes) = any.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if any.is_instance_of::<PyByteArray>() || any.is_instance_of::<PyMemoryView>() {
        let bytes = py.get_type::<PyBytes>().call1((any,))?;
        return Ok(Value::Bytes(bytes.extract()?));
    }
    if is_missing(any)? {
        return Ok(Value::Null);
    }
    if let Ok(moment) = any.cast::<PyDateTime>() {
        return instants::moment(moment);
    }
    if let Ok(date) = any.cast::<PyDate>() {
        return Ok(Value::Date(instants::days(date)?));
    }
    if let Ok(time) = any.cast::<PyTime>() {
        return instants::time(time);
    }
    if any.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)? {
        return decimal(any);
    }
    if any.is_instance(UUID.import(py, "uuid", "UUID")?)? {
        return Ok(Value::Uuid(any.getattr("bytes")?.extract()?));
    }
    foreign(any)
}

/// What pandas has for NULL: they pass for moments, or for nothing else at all.
fn is_missing(any: &Bound<'_, PyAny>) -> PyResult<bool> {
    let name = any.get_type().name()?;
    Ok(name == "NaTType" || name == "NAType")
}

fn integer(any: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(number) = any.extract::<i64>() {
        return Ok(Value::Integer(number));
    }
    // More than a BIGINT holds: a NUMERIC may. Of numbers with thousands of digits Python writes no text.
    let text = any.str().map_err(|_| too_long(any.py()))?;
    numeric(any.py(), &text.to_string())
}

fn decimal(any: &Bound<'_, PyAny>) -> PyResult<Value> {
    if !any.call_method0("is_finite")?.is_truthy()? {
        return Err(refused(any.py(), "a number that is not finite"));
    }
    numeric(any.py(), &any.str()?.to_string())
}

fn numeric(py: Python<'_>, text: &str) -> PyResult<Value> {
    let digits = parse::decimal(text).and_then(|(unscaled, scale)| match scale {
        0..=DIGITS_MAX => Some((unscaled, scale as u8)),
        _ if unscaled == 0 => Some((0, scale.clamp(0, DIGITS_MAX) as u8)),
        ..0 => Some((10_i128.checked_pow(scale.unsigned_abs())?.checked_mul(unscaled)?, 0)),
        _ => None,
    });
    match digits {
        Some((unscaled, scale)) if unscaled.unsigned_abs() < TOO_LARGE => Ok(Value::Decimal { unscaled, scale }),
        _ => Err(too_long(py)),
    }
}

fn too_long(py: Python<'_>) -> PyErr {
    refused(py, "a number of more than 38 digits")
}

fn refused(py: Python<'_>, what: &'static str) -> PyErr {
    exception(py, &Error::new(Kind::Input, what).advise("NUMERIC has no room for it"))
}

/// Single values of numpy, and whatever else can say what it is in Python's own types.
fn foreign(any: &Bound<'_, PyAny>) -> PyResult<Value> {
    let kind = any.get_type();
    let module = kind.module()?;
    if module.to_str()? == "numpy" && kind.name()? != "ndarray" {
        if kind.name()? == "datetime64" {
            return instants::numpy(any);
        }
        let item = any.call_method0("item")?;
        if !item.is(any) && !item.get_type().is(&kind) {
            return value(&item);
        }
    }
    let text = format!("a value of type {} cannot be a parameter", kind.qualname()?);
    Err(exception(any.py(), &misuse(text).advise("convert it to a number, text, bytes, date or time")))
}
