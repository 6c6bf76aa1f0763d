//! Work on all cores.

use alloc::vec::Vec;
#[cfg(feature = "threads")]
use std::sync::OnceLock;
#[cfg(feature = "threads")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// The results of `work` for 0 to `count`, in that order, on all cores if the build knows threads and the system lends
/// them; on this one otherwise.
#[cfg(feature = "threads")]
pub(crate) fn spread<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    // The system is asked once: it looks through files for the answer, which takes as long as hashing thirty rows.
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = || *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()));
    let workers = if count < 2 { 1 } else { cores().min(count) };
    if workers < 2 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return done;
            }
            done.push((index, work(index)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        // A thread that the system refuses is done without: its share is taken by the others.
        let others: Vec<_> =
            (1..workers).filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, share).ok()).collect();
        let mut all = share();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(not(feature = "threads"))]
pub(crate) fn spread<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    (0..count).map(work).collect()
}
