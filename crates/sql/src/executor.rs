//! The threads on which queries run.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Handle, Runtime};

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::session::STACK_BYTES;
use crate::waiting;

/// How long whoever closes a database waits for what its queries left running.
const PATIENCE: Duration = Duration::from_secs(1);

/// The threads on which queries run.
pub(crate) struct Executor {
    runtime: Option<Runtime>,
}

impl Executor {
    pub(crate) fn new(parallelism: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_time()
            .worker_threads(parallelism.max(1))
            .max_blocking_threads(parallelism.max(1) * 4)
            .thread_stack_size(STACK_BYTES)
            .thread_name("counterfoil-query")
            .build()
            .map_err(|error| Error::Host(format!("cannot start the threads of the query engine: {error}")))?;
        Ok(Executor { runtime: Some(runtime) })
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("the runtime lives as long as its executor").handle()
    }

    /// Runs a future to its end, or to the interrupt. A panic of the query library ends the statement, not the
    /// program.
    pub(crate) fn run<T>(&self, interrupt: &Interrupt, future: impl Future<Output = Result<T>>) -> Result<T> {
        let run = || {
            let mut raised = interrupt.listen();
            let either = async {
                tokio::select! {
                    biased;
                    _ = raised.wait_for(|raised| *raised) => Err(Error::Interrupted),
                    done = future => done,
                }
            };
            waiting::wait(self.handle(), either, || interrupt.patience(), || interrupt.called_off().map(Err))
        };
        // What the future leaves half done is dropped with it; what it shares is behind locks that do not poison.
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
            .unwrap_or_else(|_| Err(Error::Bug("the query engine met a case it does not know".into())))
    }
}

impl Drop for Executor {
    /// Waits for the threads. Left to themselves they would end at the same time as they are let go of, and `pthread_detach` of glibc
    /// 2.36 then looks once more at a stack that is not there any more: a program was seen to end by a signal after all of its
    /// work was done.
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if Handle::try_current().is_err() {
            return runtime.shutdown_timeout(PATIENCE);
        }
        // A thread of a runtime may not wait: another one does.
        let held = Arc::new(Mutex::new(Some(runtime)));
        let theirs = held.clone();
        let thread = std::thread::Builder::new().name("counterfoil-closing".into());
        let started = thread.spawn(move || theirs.lock().take().map(|runtime| runtime.shutdown_timeout(PATIENCE)));
        if started.is_err()
            && let Some(runtime) = held.lock().take()
        {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    use super::*;

    /// Something that is still running, and whether it has come to its end.
    fn running(executor: &Executor) -> Arc<AtomicBool> {
        let is_done = Arc::new(AtomicBool::new(false));
        let (theirs, (begins, begun)) = (is_done.clone(), channel());
        executor.handle().spawn_blocking(move || {
            begins.send(()).expect("somebody listens");
            std::thread::sleep(Duration::from_millis(50));
            theirs.store(true, Ordering::SeqCst);
        });
        begun.recv().expect("it begins");
        is_done
    }

    #[test]
    fn whoever_ends_it_waits_for_its_threads() {
        let executor = Executor::new(2).expect("threads");
        let is_done = running(&executor);
        drop(executor);
        assert!(is_done.load(Ordering::SeqCst));
    }

    #[test]
    fn it_may_end_on_a_thread_of_a_runtime() {
        let executor = Executor::new(1).expect("threads");
        let is_done = running(&executor);
        let other = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        other.block_on(async { drop(executor) });
        while !is_done.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}
