//! Questions about published tables. No database takes part in them, so they need no session.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use counterfoil::arrow::array::RecordBatch;
use counterfoil::asking::{self, Asking, CLOCK_ERROR, TIMEOUT, Verdict};
use counterfoil::publishing::Authorities;
use counterfoil::{Error, Kind};
use pyo3::prelude::*;

use crate::errors::{exception, misuse};
use crate::rows::Rows;
use crate::waiting::{ended, is_called_off, wait};

/// How often it is looked whether a question was called off.
const TURN: Duration = Duration::from_millis(50);

/// Of a verdict: its text, milliseconds since 1970 as of which, milliseconds of age, signatures.
type Told = (String, u64, u64, u64);

/// Asks a server, or two about two tables: the rows, the verdict, the plan, and whether it is remembered what was seen.
///
/// # Errors
/// Those of [`Asking::ask`], as exceptions.
#[pyfunction]
#[pyo3(signature = (servers, owner, sql, *, max_age=None, compact=false, state=None, clock_error=None, timeout=None, save=None, tls_ca=None))]
#[allow(clippy::too_many_arguments)] // They are keywords, and Python checks them.
pub fn ask(
    py: Python<'_>,
    servers: Vec<String>,
    owner: &str,
    sql: String,
    max_age: Option<f64>,
    compact: bool,
    state: Option<PathBuf>,
    clock_error: Option<f64>,
    timeout: Option<f64>,
    save: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
) -> PyResult<(Rows, Told, String, bool)> {
    let told = |error: Error| exception(py, &error);
    let mut asking = Asking::of(owner).map_err(told)?;
    asking.servers = servers;
    asking.max_age = max_age.map(|seconds| span(seconds, "max_age")).transpose().map_err(told)?;
    asking.clock_error = clock_error.map_or(Ok(CLOCK_ERROR), |seconds| span(seconds, "clock_error")).map_err(told)?;
    asking.timeout = timeout.map_or(Ok(TIMEOUT), |seconds| span(seconds, "timeout")).map_err(told)?;
    asking.compact = compact;
    if state.is_some() {
        asking.state = state;
    }
    if let Some(file) = tls_ca {
        asking.authorities = Authorities::from_file(file).map_err(|error| told(error.into()))?;
    }
    let called_off = asking.called_off.clone();
    let answer = wait(py, || {
        if let Some(path) = &save {
            asking::refuse_to_overwrite(path)?;
        }
        let answer = elsewhere(&called_off, move || asking.ask(&sql))?;
        save.as_ref().map_or(Ok(()), |path| answer.save(path))?;
        Ok(answer)
    })?;
    let rows = told_rows(answer.rows).map_err(told)?;
    Ok((rows, told_of(&answer.verdict), answer.plan, answer.is_remembered))
}

/// Looks at a kept answer again: the rows, the verdict, when it was asked (milliseconds since 1970), and what.
///
/// # Errors
/// Those of [`asking::check`], as exceptions.
#[pyfunction]
#[pyo3(signature = (file, owner, *, clock_error=None))]
pub fn check(
    py: Python<'_>,
    file: PathBuf,
    owner: String,
    clock_error: Option<f64>,
) -> PyResult<(Rows, Told, u64, String)> {
    let told = |error: Error| exception(py, &error);
    let clock_error = clock_error.map_or(Ok(CLOCK_ERROR), |seconds| span(seconds, "clock_error")).map_err(told)?;
    let checked = wait(py, || elsewhere(&Arc::default(), move || asking::check(&file, &owner, clock_error)))?;
    let rows = told_rows(checked.rows).map_err(told)?;
    Ok((rows, told_of(&checked.verdict), checked.at, checked.sql))
}

/// Does a job on a thread of its own, while this one listens for signals: a server may be silent for a minute, and Python's main
/// thread is the one that hears of Ctrl-C. What was called off ends by itself, and nobody hears of it.
fn elsewhere<T: Send + 'static>(
    called_off: &Arc<AtomicBool>,
    job: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (done, answer) = channel();
    let thread = thread::Builder::new().name("counterfoil-ask".into());
    // Whoever called it off does not wait any more.
    let started = thread.spawn(move || drop(done.send(job())));
    started.map_err(|error| Error::host("start a thread", "this process", &error))?;
    loop {
        match answer.recv_timeout(TURN) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(Kind::Bug, "a question panicked").advise("please report it"));
            }
            Err(RecvTimeoutError::Timeout) if is_called_off() => {
                called_off.store(true, Ordering::Relaxed);
                return Err(ended());
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn span(seconds: f64, name: &str) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(seconds).map_err(|_| misuse(format!("{name} is no number of seconds")))
}

fn told_rows(batch: RecordBatch) -> Result<Rows, Error> {
    Rows::begin(batch.schema(), Box::new(std::iter::once(Ok(batch))), None)
}

fn told_of(verdict: &Verdict) -> Told {
    (verdict.to_string(), verdict.as_of, verdict.age, verdict.signatures)
}
