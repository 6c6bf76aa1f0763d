//! The place the writer stands at while nobody writes, and the queue in front of it.
//!
//! 1. One at a time has the writer. It stands here between two of them, and is made when it is first wanted.
//! 2. Whoever comes while it stands here takes it, so that a session that writes again and again need not wait for others to wake
//!    up; but once the first of the queue has waited for [`FAIR_AFTER`], its turn is next.
//! 3. Who waits keeps its place while it looks whether it is still wanted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

use counterfoil_log::Writer;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::patience::Patience;
use crate::store::Lease;

/// How long the first of the queue is passed by.
const FAIR_AFTER: Duration = Duration::from_millis(20);

/// Makes the writer when the first one to write asks for it: opening for writing is a commit of its own.
pub type OpenWriter = Box<dyn FnMut(Patience<'_>) -> Result<Writer> + Send>;

/// The place the writer stands at while nobody writes.
pub struct WriterSlot {
    state: Mutex<State>,
    open: Mutex<OpenWriter>,
}

struct State {
    writer: Option<Box<Writer>>,
    loan: Loan,
    queue: VecDeque<Waiter>,
    tickets: u64,
}

/// What the writer is lent for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loan {
    Nothing,
    Transaction,
    /// Something short in between: whoever comes waits for it, however impatient.
    Chore,
}

/// Somebody who waits.
struct Waiter {
    ticket: u64,
    thread: Thread,
    since: Instant,
}

/// What became of asking for the writer for something short in between.
pub enum Chore {
    /// Nobody had it.
    Lease(Lease),
    /// A transaction has it, or has left something in it that is not committed.
    Busy,
    /// There is none.
    NoWriter,
}

impl WriterSlot {
    /// A slot whose writer is made by `open` when it is first wanted.
    pub fn new(open: OpenWriter) -> Arc<Self> {
        let state = State { writer: None, loan: Loan::Nothing, queue: VecDeque::new(), tickets: 0 };
        Arc::new(WriterSlot { state: Mutex::new(state), open: Mutex::new(open) })
    }

    /// Takes the writer.
    ///
    /// # Errors
    /// [`Error::Locked`] where somebody has it for longer than there is patience, what calls the waiting off, or what opening the
    /// writer answers.
    pub fn lease(self: &Arc<Self>, patience: Patience<'_>) -> Result<Lease> {
        self.wait_for_turn(patience)?;
        let turn = Turn(self);
        let standing = self.state.lock().writer.take();
        // It is opened while it is ours: others wait in the queue, and may be called off there.
        let writer = match standing {
            Some(writer) => writer,
            None => Box::new(self.open.lock()(patience)?),
        };
        // From here on the lease gives it back.
        std::mem::forget(turn);
        Ok(Lease::of(writer, self.clone()))
    }

    fn wait_for_turn(&self, patience: Patience<'_>) -> Result<()> {
        let mut state = self.state.lock();
        if state.may_pass() {
            state.loan = Loan::Transaction;
            return Ok(());
        }
        let queued = Queued { slot: self, ticket: state.queue_up() };
        // The place in the queue is left with the state unlocked.
        drop(state);
        let mut state = self.state.lock();
        let mut looked = Instant::now();
        loop {
            if state.is_turn_of(queued.ticket) {
                state.loan = Loan::Transaction;
                return Ok(());
            }
            let is_over = patience.left().is_zero() && state.loan != Loan::Chore;
            let called_off = match patience.piece() {
                _ if is_over => Err(Error::Locked(
                    "another connection of this process is writing: wait for its COMMIT, or raise lock_timeout".into(),
                )),
                piece if looked.elapsed() >= piece && !piece.is_zero() => {
                    looked = Instant::now();
                    parking_lot::MutexGuard::unlocked(&mut state, || patience.look())
                }
                _ => Ok(()),
            };
            called_off?;
            let piece = patience.piece().max(Duration::from_millis(1));
            parking_lot::MutexGuard::unlocked(&mut state, || std::thread::park_timeout(piece));
        }
    }

    /// Takes the writer for something short, if there is one and nobody has it.
    pub fn lease_for_chore(self: &Arc<Self>) -> Chore {
        let mut state = self.state.lock();
        match state.writer.take() {
            // Statements wait for a commit that they make together, which a chore has no part in; or somebody's turn is next.
            Some(writer) if writer.is_active() || state.loan != Loan::Nothing || !state.queue.is_empty() => {
                state.writer = Some(writer);
                Chore::Busy
            }
            Some(writer) => {
                state.loan = Loan::Chore;
                Chore::Lease(Lease::of(writer, self.clone()))
            }
            None if state.loan == Loan::Nothing => Chore::NoWriter,
            None => Chore::Busy,
        }
    }

    /// Puts the writer back.
    pub(crate) fn give_back(&self, writer: Box<Writer>) {
        let mut state = self.state.lock();
        state.writer = Some(writer);
        state.is_free();
    }

    /// Takes the writer out for good, to close it. `None` if there never was one, or it is lent.
    pub fn retire(&self) -> Option<Box<Writer>> {
        self.state.lock().writer.take()
    }
}

/// Somebody's turn before there is a lease: it ends where opening the writer fails, also by a panic.
struct Turn<'a>(&'a WriterSlot);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_free();
    }
}

/// A place in the queue: it is left when the waiting ends, however it does.
struct Queued<'a> {
    slot: &'a WriterSlot,
    ticket: u64,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.slot.state.lock().leave(self.ticket);
    }
}

impl State {
    /// Whether somebody who comes now takes the writer at once.
    fn may_pass(&self) -> bool {
        let is_due = |first: &Waiter| first.since.elapsed() >= FAIR_AFTER;
        self.loan == Loan::Nothing && !self.queue.front().is_some_and(is_due)
    }

    fn is_turn_of(&self, ticket: u64) -> bool {
        self.loan == Loan::Nothing && self.queue.front().is_some_and(|first| first.ticket == ticket)
    }

    fn queue_up(&mut self) -> u64 {
        self.tickets += 1;
        let thread = std::thread::current();
        self.queue.push_back(Waiter { ticket: self.tickets, thread, since: Instant::now() });
        self.tickets
    }

    /// Somebody waits no longer. Whoever has moved up may not have been told that the writer is there.
    fn leave(&mut self, ticket: u64) {
        self.queue.retain(|waiter| waiter.ticket != ticket);
        self.tell_first();
    }

    /// Nobody has the writer now.
    fn is_free(&mut self) {
        self.loan = Loan::Nothing;
        self.tell_first();
    }

    fn tell_first(&self) {
        if let (Loan::Nothing, Some(first)) = (self.loan, self.queue.front()) {
            first.thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn nobody() -> Arc<WriterSlot> {
        WriterSlot::new(Box::new(|_| Err(Error::Misuse("there is no writer".into()))))
    }

    /// Whoever takes it again and again does not keep it from those who wait.
    #[test]
    fn the_first_of_the_queue_is_not_passed_by_for_long() {
        let slot = nobody();
        let (turns, most) = (AtomicUsize::new(0), 20_usize);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while turns.load(Ordering::SeqCst) < most {
                        slot.wait_for_turn(Patience::of(Duration::from_secs(600))).expect("a turn");
                        std::thread::sleep(Duration::from_millis(1));
                        slot.state.lock().is_free();
                    }
                });
            }
            for _ in 0..most {
                scope.spawn(|| {
                    slot.wait_for_turn(Patience::of(Duration::from_secs(600))).expect("a turn");
                    turns.fetch_add(1, Ordering::SeqCst);
                    slot.state.lock().is_free();
                });
            }
        });
        assert_eq!(turns.load(Ordering::SeqCst), most);
        assert!(slot.state.lock().queue.is_empty());
    }

    #[test]
    fn who_waits_is_called_off_and_leaves_the_queue_as_it_was() {
        let slot = nobody();
        slot.wait_for_turn(Patience::of(Duration::ZERO)).expect("nobody has it");
        let late = slot.wait_for_turn(Patience::of(Duration::from_millis(10)));
        assert!(matches!(late, Err(Error::Locked(_))));
        let ended = slot.wait_for_turn(Patience::asking(Duration::MAX, &|| Err(Error::Interrupted)));
        assert_eq!(ended, Err(Error::Interrupted));
        assert!(slot.state.lock().queue.is_empty());
        slot.state.lock().is_free();
        // Whoever panics while it waits has left, too.
        slot.wait_for_turn(Patience::of(Duration::ZERO)).expect("nobody has it");
        let panics = || slot.wait_for_turn(Patience::asking(Duration::MAX, &|| panic!("of the one who waits")));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert!(slot.state.lock().queue.is_empty());
        slot.state.lock().is_free();
        // One that cannot be opened is not lent.
        assert!(matches!(slot.lease(Patience::of(Duration::ZERO)), Err(Error::Misuse(_))));
        assert!(matches!(slot.lease(Patience::of(Duration::ZERO)), Err(Error::Misuse(_))));
    }

    #[test]
    fn a_panic_while_the_writer_is_opened_ends_the_turn() {
        let mut tries = 0;
        let slot = WriterSlot::new(Box::new(move |_| {
            tries += 1;
            assert!(tries > 1, "the first one panics");
            Err(Error::Misuse("there is no writer".into()))
        }));
        let first = || drop(slot.lease(Patience::of(Duration::ZERO)));
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(first)).is_err());
        assert!(matches!(slot.lease(Patience::of(Duration::ZERO)), Err(Error::Misuse(_))));
    }
}
