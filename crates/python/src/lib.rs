//! The compiled part of the Python package `counterfoil`.
//!
//! Python programs never see this module: `python/counterfoil` wraps it in DB-API 2.0 (PEP 249), in mappings and data
//! frames. Here is what needs the facade: sessions, rows, values both ways, Arrow both ways, series.
//!
//! Two rules keep threads apart:
//!
//! 1. A lock is taken only while this thread is not attached to the interpreter. Whoever holds one may have to attach (an
//!    Arrow stream may be written in Python), and would wait for a thread that waits for it.
//! 2. What may take long asks now and then whether a signal has come ([`waiting`]). So Ctrl-C ends a query as it ends
//!    everything else in Python.
#![forbid(unsafe_code)]

mod cells;
mod databases;
mod errors;
mod files;
mod held;
mod instants;
mod many;
mod placeholders;
mod published;
mod rows;
mod series;
mod session;
mod stream;
mod texts;
mod values;
mod waiting;

use counterfoil::Kind;
use pyo3::prelude::*;

/// Names of all kinds of errors with their exit codes: what `errors.py` must have a class for.
#[pyfunction]
fn kinds() -> Vec<(&'static str, u8)> {
    Kind::ALL.iter().map(|kind| (kind.name(), kind.exit_code())).collect()
}

/// Fills the module.
#[pymodule]
fn _counterfoil(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("RECORD_NAME_BYTES_MAX", counterfoil::Records::NAME_BYTES_MAX)?;
    module.add("RECORD_VALUE_BYTES_MAX", counterfoil::Records::VALUE_BYTES_MAX)?;
    module.add_class::<session::Session>()?;
    module.add_class::<rows::Rows>()?;
    module.add_class::<series::Series>()?;
    module.add_class::<series::SeriesWriter>()?;
    module.add_class::<series::SeriesCursor>()?;
    module.add_function(wrap_pyfunction!(kinds, module)?)?;
    module.add_function(wrap_pyfunction!(databases::open, module)?)?;
    module.add_function(wrap_pyfunction!(published::ask, module)?)?;
    module.add_function(wrap_pyfunction!(published::check, module)?)?;
    Ok(())
}
