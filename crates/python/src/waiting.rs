//! Waiting for a statement without stopping Python: detached, and open to signals.
//!
//! Python tells its main thread of Ctrl-C and of no other thread, and only while that thread asks. So a statement runs on the
//! thread that wants it, and the engine asks back ten times a second, on that very thread, whether it is called off. Nobody
//! else is woken for a statement, and none that is short is asked about.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use counterfoil::{Error, Kind};
use pyo3::prelude::*;

use crate::errors::told;

thread_local! {
    /// What Python raised while this thread did a job: a signal's exception, or that of a file that a job reads.
    static RAISED: Cell<Option<PyErr>> = const { Cell::new(None) };
}

/// Does a job detached, on this thread.
///
/// # Errors
/// What Python raised meanwhile, else the job's error as an exception.
pub fn wait<T: Send>(py: Python<'_>, job: impl FnOnce() -> Result<T, Error> + Send) -> PyResult<T> {
    let done = py.detach(|| {
        // What a job leaves half done is behind locks that do not poison.
        catch_unwind(AssertUnwindSafe(job))
            .unwrap_or_else(|_| Err(Error::new(Kind::Bug, "a statement panicked").advise("please report it")))
    });
    match RAISED.take() {
        Some(raised) => Err(raised),
        None => told(py, done),
    }
}

/// Whether the job that this thread does is called off: by a signal that Python turns into an exception. The exception is what
/// [`wait`] answers then. This thread is not attached.
pub fn is_called_off() -> bool {
    let signal = Python::attach(|py| py.check_signals()).err();
    let is_called_off = signal.is_some();
    if let Some(signal) = signal {
        raise(signal);
    }
    is_called_off
}

/// Has [`wait`] answer an exception, whatever becomes of the job.
pub fn raise(exception: PyErr) {
    RAISED.set(Some(exception));
}

/// The error of a job that ends because of an exception. Nobody sees it: the exception is seen.
pub fn ended() -> Error {
    Error::new(Kind::Interrupted, "interrupted")
}
