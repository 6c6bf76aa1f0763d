//! The memory of all queries as one session has it, and waiting for what others have of it.
//!
//! ```text
//! statement -> refused what others have -> nothing of it is left -> its turn -> others give some back -> once more
//!                                                                     |------- lock_timeout at most ------|
//! ```
//! With 64 KB one question is answered at a time: a second one would be told to get more memory, where a moment later there is enough.
//! Whoever waits holds nothing, but for what the session's cursors have and the writer of its transaction; so the wait is bounded.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::error::{Error, Result};
use crate::memory::Shared;
use crate::session::Session;

/// How long between two looks at what others have.
const PAUSE: Duration = Duration::from_millis(1);

/// Whose turn it is to wait for memory: of those that wait one tries again at a time.
pub(crate) type Turn = Arc<Mutex<()>>;

/// A session's part of the memory of all queries: what is taken of it is taken of both.
#[derive(Debug)]
pub(crate) struct Part {
    own: Arc<Shared>,
    of: Arc<dyn MemoryPool>,
    /// Whether others had what was refused here.
    is_with_others: AtomicBool,
}

impl Part {
    pub(crate) fn new(own: Arc<Shared>, of: Arc<dyn MemoryPool>) -> Arc<Self> {
        Arc::new(Part { own, of, is_with_others: AtomicBool::new(false) })
    }

    /// Bytes that others have.
    fn of_others(&self) -> usize {
        self.of.reserved().saturating_sub(self.own.reserved())
    }

    /// Whether others had what was refused here since the last call.
    fn take_is_with_others(&self) -> bool {
        self.is_with_others.swap(false, Ordering::SeqCst)
    }

    /// Waits until others have less than they ever had from `most` bytes on, a moment at least.
    async fn others_have_less(&self, mut most: usize) {
        loop {
            tokio::time::sleep(PAUSE).await;
            let now = self.of_others();
            if now < most || now == 0 {
                return;
            }
            most = now;
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.own, self.of)
    }
}

impl MemoryPool for Part {
    fn name(&self) -> &str {
        "part"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.own.register(consumer);
        self.of.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.own.unregister(consumer);
        self.of.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        self.of.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.of.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        // The last refusal says it: one before may have been got over. What is granted meanwhile, to another thread of the query, says nothing.
        self.own
            .try_grow(reservation, additional)
            .inspect_err(|_| self.is_with_others.store(false, Ordering::SeqCst))?;
        self.of.try_grow(reservation, additional).inspect_err(|_| {
            self.own.shrink(reservation, additional);
            self.is_with_others.store(true, Ordering::SeqCst);
        })
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.own.memory_limit()
    }
}

impl Session {
    /// Does something that leaves nothing behind where it fails; again, as long as others have the memory for it and give it back in time.
    pub(crate) fn with_memory<T>(&mut self, mut body: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        let (began, mut turn, mut tries_alone) = (Instant::now(), None, 0);
        loop {
            self.planner.part.take_is_with_others();
            let refused = match body(self) {
                Err(refused @ Error::Memory(_)) => refused,
                done => return done,
            };
            if !self.planner.part.take_is_with_others() {
                return Err(refused);
            }
            // Whoever has nothing and may still take some makes the shares of all smaller: waiting for that one is in vain. That others have
            // nothing any more where they had something is a try worth.
            tries_alone += u32::from(self.planner.part.of_others() == 0);
            if tries_alone > 1 {
                return Err(refused);
            }
            self.planner.interrupt.check()?;
            if began.elapsed() >= self.settings.lock_timeout {
                return Err(with_others(self.planner.part.of_others()));
            }
            turn = Some(self.wait_for_others(turn, began)?);
        }
    }

    fn wait_for_others(&self, turn: Option<OwnedMutexGuard<()>>, began: Instant) -> Result<OwnedMutexGuard<()>> {
        let part = &self.planner.part;
        let most = part.of_others();
        let less = async {
            let turn = match turn {
                Some(turn) => turn,
                None => self.guard.engine.turn.clone().lock_owned().await,
            };
            part.others_have_less(most).await;
            turn
        };
        let left = self.settings.lock_timeout.saturating_sub(began.elapsed());
        let in_time = async { tokio::time::timeout(left, less).await.map_err(|_| with_others(part.of_others())) };
        self.guard.engine.executor.run(&self.planner.interrupt, in_time)
    }
}

fn with_others(bytes: usize) -> Error {
    Error::Memory(format!(
        "queries of other connections have the memory that this one needs ({bytes} bytes), and did not end in time: try again (SET \
         lock_timeout waits longer), or give all more (--ram)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(pool: &Arc<dyn MemoryPool>, name: &str) -> MemoryReservation {
        MemoryConsumer::new(name).register(pool)
    }

    #[test]
    fn what_is_taken_of_a_part_is_taken_of_the_whole() {
        let whole: Arc<dyn MemoryPool> = Shared::new(1000, 1);
        let part = Part::new(Shared::new(600, 1), whole.clone());
        let pool: Arc<dyn MemoryPool> = part.clone();
        let (mine, others) = (reserve(&pool, "mine"), reserve(&whole, "others"));
        assert!(mine.try_grow(601).is_err());
        assert!(!part.take_is_with_others(), "more than there is for it alone");
        mine.try_grow(600).unwrap();
        assert!(others.try_grow(401).is_err());
        drop(mine);
        others.try_grow(900).unwrap();
        let mine = reserve(&pool, "mine");
        assert!(mine.try_grow(101).is_err());
        assert!(part.take_is_with_others() && !part.take_is_with_others());
        assert_eq!((pool.reserved(), whole.reserved(), part.of_others()), (0, 900, 900));
        assert!(mine.try_grow(101).is_err());
        mine.try_grow(100).unwrap();
        assert!(part.take_is_with_others(), "another thread of the query was granted some");
        assert!(mine.try_grow(101).is_err() && mine.try_grow(601).is_err());
        assert!(!part.take_is_with_others(), "the last one was for more than it may ever have");
        drop(mine);
        assert_eq!((pool.reserved(), whole.reserved()), (0, 900));
    }
}
