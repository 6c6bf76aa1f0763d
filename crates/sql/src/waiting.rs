//! Waiting for a future on the thread that wants it.
//!
//! Not by the clock of the runtime: while all of its threads compute, nobody looks at that, and whoever waited for it would ask
//! seconds too late whether the statement is still wanted.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Wakes the thread that waits.
struct Bell {
    /// Whether it rang since it was last looked at: what the future does on this thread may take a wake-up that is not its own.
    rang: AtomicBool,
    thread: Thread,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Polls a future of a runtime until it is done. Whenever `patience` is over, `look` is asked, outside of the runtime, and may end
/// the wait; without patience it never is.
pub(crate) fn wait<T>(
    runtime: &Handle,
    future: impl Future<Output = T>,
    patience: impl Fn() -> Option<Duration>,
    look: impl Fn() -> Option<T>,
) -> T {
    let bell = Arc::new(Bell { rang: AtomicBool::new(false), thread: std::thread::current() });
    let waker = bell.clone().into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let mut looked = Instant::now();
    loop {
        {
            let _inside = runtime.enter();
            if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
                return done;
            }
        }
        while !bell.rang.swap(false, Ordering::SeqCst) {
            let Some(patience) = patience() else {
                std::thread::park();
                continue;
            };
            let left = patience.saturating_sub(looked.elapsed());
            if !left.is_zero() {
                std::thread::park_timeout(left);
                continue;
            }
            if let Some(answer) = look() {
                return answer;
            }
            looked = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_asked_also_while_every_thread_computes() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let is_over = Arc::new(AtomicBool::new(false));
        let busy = runtime.spawn({
            let is_over = is_over.clone();
            async move { while !is_over.load(Ordering::SeqCst) {} }
        });
        let asked = AtomicBool::new(false);
        let look = || {
            asked.store(true, Ordering::SeqCst);
            Some("called off")
        };
        let never = async {
            std::future::pending::<()>().await;
            "done"
        };
        assert_eq!(wait(runtime.handle(), never, || Some(Duration::from_millis(10)), look), "called off");
        assert!(asked.load(Ordering::SeqCst));
        is_over.store(true, Ordering::SeqCst);
        let done = async {
            busy.await.expect("it ends");
            "done"
        };
        assert_eq!(wait(runtime.handle(), done, || None, || None), "done");
    }
}
