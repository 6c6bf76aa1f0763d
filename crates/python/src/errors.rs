//! The errors of the facade as exceptions. Their classes are written in Python (`counterfoil/errors.py`).

use counterfoil::{Error, Kind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// The exception for an error: its class says the kind, its text is the shell's.
pub fn exception(py: Python<'_>, error: &Error) -> PyErr {
    made(py, error).map_or_else(|failed| failed, PyErr::from_value)
}

fn made<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let made = class(py, error.kind())?.call1((error.to_string(),))?;
    if let Some(verdict) = error.verdict() {
        made.setattr("verdict", verdict)?;
    }
    Ok(made)
}

fn class(py: Python<'_>, kind: Kind) -> PyResult<Bound<'_, PyAny>> {
    let classes = CLASSES.get_or_try_init(py, || {
        let classes = py.import("counterfoil.errors")?.getattr("BY_KIND")?;
        Ok::<_, PyErr>(classes.cast_into::<PyDict>()?.unbind())
    })?;
    classes.bind(py).as_any().get_item(kind.name())
}

/// The error, saying which database it was where it is of the database and says no place of its own: as the shell does.
pub fn about(error: Error, database: Option<&str>) -> Error {
    match database {
        Some(database) if matches!(error.exit_code(), 2..=4) => error.at(database),
        _ => error,
    }
}

/// An error of this package's own use.
pub fn misuse(text: impl Into<String>) -> Error {
    Error::new(Kind::Misuse, text.into())
}

/// A result of the facade, as Python gets it.
pub fn told<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| exception(py, &error))
}
