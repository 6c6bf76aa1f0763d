//! Waiting for a statement without stopping Python: detached, and open to signals.
//!
//! Python delivers signals to its main thread alone, and only while that thread runs Python or asks for them. So what the
//! main thread is to run is run by one other thread, its stand-in, and the main thread asks ten times a second. Other
//! threads run theirs themselves.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use counterfoil::{Error, Interrupt, Kind};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::errors::exception;

/// How often signals are looked for.
const PATIENCE: Duration = Duration::from_millis(100);
/// Statements nest as deep here as on Python's main thread.
const STACK_BYTES: usize = 8 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// The main thread's stand-in, with the process it is a thread of: a child has none of its parent's.
static STAND_IN: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);

thread_local! {
    static IS_MAIN: OnceCell<bool> = const { OnceCell::new() };
}

/// Runs `job` detached. A signal that Python turns into an exception interrupts it; the exception is the answer then. The
/// job is told by its argument that nobody waits for it any more.
///
/// # Errors
/// The job's, as exceptions, and those of signals.
pub fn wait<T, F>(py: Python<'_>, interrupt: Option<&Interrupt>, job: F) -> PyResult<T>
where
    T: Send + 'static,
    F: FnOnce(&AtomicBool) -> Result<T, Error> + Send + 'static,
{
    let result =
        if is_main(py)? { by_stand_in(py, interrupt, job)? } else { py.detach(|| job(&AtomicBool::new(false))) };
    crate::errors::told(py, result)
}

fn is_main(py: Python<'_>) -> PyResult<bool> {
    let known = IS_MAIN.with(|is_main| is_main.get().copied());
    match known {
        Some(is_main) => Ok(is_main),
        None => {
            let threading = py.import("threading")?;
            let main = threading.call_method0("main_thread")?.getattr("ident")?;
            let is_main = threading.call_method0("get_ident")?.eq(main)?;
            IS_MAIN.with(|cell| *cell.get_or_init(|| is_main));
            Ok(is_main)
        }
    }
}

fn by_stand_in<T, F>(py: Python<'_>, interrupt: Option<&Interrupt>, job: F) -> PyResult<Result<T, Error>>
where
    T: Send + 'static,
    F: FnOnce(&AtomicBool) -> Result<T, Error> + Send + 'static,
{
    let (answer, mut answers) = mpsc::channel();
    let called_off = Arc::new(AtomicBool::new(false));
    let told = called_off.clone();
    hand_over(Box::new(move || drop(answer.send(job(&told))))).map_err(|error| exception(py, &error))?;
    let mut signal: Option<PyErr> = None;
    loop {
        let (receiver, answered) = py.detach(move || receive(answers));
        answers = receiver;
        match (answered, signal.take()) {
            (Err(RecvTimeoutError::Timeout), before) => {
                signal = before.or_else(|| py.check_signals().err());
                if signal.is_some() {
                    // Said again and again: a statement that begins just now forgets what was said before.
                    called_off.store(true, Ordering::Relaxed);
                    interrupt.inspect(|interrupt| interrupt.raise());
                }
            }
            (_, Some(signal)) => return Err(signal),
            (Ok(result), None) => return Ok(result),
            (Err(RecvTimeoutError::Disconnected), None) => {
                return Ok(Err(Error::new(Kind::Bug, "a statement panicked").advise("please report it")));
            }
        }
    }
}

fn receive<T>(answers: Receiver<T>) -> (Receiver<T>, Result<T, RecvTimeoutError>) {
    let answered = answers.recv_timeout(PATIENCE);
    (answers, answered)
}

/// Gives a job to the stand-in. This thread is attached; the lock is held for a moment, and only by the main thread.
fn hand_over(job: Job) -> Result<(), Error> {
    let mut stand_in = STAND_IN.lock();
    let process = std::process::id();
    let job = match stand_in.as_ref() {
        Some((of, sender)) if *of == process => match sender.send(job) {
            Ok(()) => return Ok(()),
            Err(returned) => returned.0,
        },
        _ => job,
    };
    let (sender, jobs) = mpsc::channel::<Job>();
    std::thread::Builder::new()
        .name("counterfoil".into())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            for job in jobs {
                // Whoever waits sees that no answer comes.
                let _ = catch_unwind(AssertUnwindSafe(job));
            }
        })
        .map_err(|error| Error::host("start a thread", "this process", &error))?;
    let _ = sender.send(job);
    *stand_in = Some((process, sender));
    Ok(())
}
