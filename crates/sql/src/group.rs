//! Commits that several statements make together (`commit_every` of a series table).
//!
//! ```text
//! A: writer -> savepoint -> insert -> writer given back, uncommitted ............... durable: answered
//! B:                                   writer -> savepoint -> insert -> given back ... durable: answered
//!                                                            whoever waited longest: writer -> commit
//! ```
//! A statement that joins a group is a transaction of its own in all but the frame it is committed in:
//! 1. It is answered when the group's commit is durable, and not before. A cut, or a commit that fails, leaves nothing of any member,
//!    and each is told so.
//! 2. It undoes itself alone: a member that fails goes back to its savepoint. As it may have met rows that were not durable, the group
//!    is committed before its error is answered.
//! 3. A member that never ended (its thread died) is undone by whoever takes the writer next; members before it stay.
//! 4. Nobody but members sees the writer with a group open. Whoever takes it for anything else (BEGIN and its first change, every
//!    other statement, an owner's chore) commits the group first.
//! 5. Each member waits for as long as its own table says and then commits the group itself, so no thread has to live for that; an
//!    interrupt ends the wait in the same way. A member that finds the time of an earlier one over commits at once.
//! 6. A writer that was closed with a group open has undone it, and every member is told: never is an empty commit taken for theirs.

use std::time::{Duration, Instant};

use counterfoil_log::Savepoint;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::patience::Patience;
use crate::store::Lease;
use crate::transaction;

/// How long a member whose time is over waits for the writer before it looks whether another one has committed the group.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What became of a group; nothing yet.
type Told = Option<Result<()>>;

/// The group that is open, if one is.
#[derive(Default)]
pub(crate) struct Groups(Mutex<State>);

#[derive(Default)]
struct State {
    groups: u64,
    open: Option<Open>,
}

struct Open {
    number: u64,
    /// Statements that wait.
    members: usize,
    told: watch::Sender<Told>,
    /// When the first of them must be answered.
    due: Option<Instant>,
    /// Before the statement that is under way, or that never ended.
    before: Option<Savepoint>,
}

/// A statement that is under way in a group.
pub(crate) struct Member {
    point: Savepoint,
}

impl Groups {
    /// Members that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.0.lock().open.as_ref().map_or(0, |open| open.members)
    }

    /// Takes the writer for a statement of a group: the one that is open, or one that begins.
    ///
    /// # Errors
    /// What taking and beginning answer.
    pub(crate) fn join(&self, engine: &Engine, mut lease: Lease) -> Result<(Lease, Member)> {
        let mut state = self.0.lock();
        if state.open.is_none() || !lease.is_active() {
            state.lose();
            undo(engine, &mut lease);
            lease.begin()?;
            state.begin();
        }
        let Some(open) = &mut state.open else { return Err(Error::Bug("a group that was just begun".into())) };
        if let Some(point) = open.before.take() {
            lease.rollback_to(&point)?;
            engine.rolled_back(&*lease);
        }
        lease.no_longer_only_frees();
        let point = lease.savepoint()?;
        open.before = Some(point.clone());
        Ok((lease, Member { point }))
    }

    /// A member ended well: waits until its group is durable, at most as long as `every`, and then sees to it.
    ///
    /// # Errors
    /// That of the commit: then nothing of the statement is there.
    pub(crate) fn wait(&self, engine: &Engine, mut lease: Lease, every: Duration, interrupt: &Interrupt) -> Result<()> {
        let now = Instant::now();
        let (number, mut told, overdue) = {
            let mut state = self.0.lock();
            let Some(open) = &mut state.open else { return Err(Error::Bug("a member without a group".into())) };
            open.before = None;
            open.members += 1;
            let due = open.due.map_or(now + every, |due| due.min(now + every));
            open.due = Some(due);
            (open.number, open.told.subscribe(), due <= now)
        };
        if overdue {
            self.close(engine, &mut lease);
            return answer(&told);
        }
        drop(lease);
        let waiting = async {
            let answered = tokio::time::timeout(every, told.wait_for(Option::is_some)).await;
            Ok(answered.is_ok())
        };
        // Interrupted or out of time: what was done cannot be taken back alone, so it is made durable.
        let _ = engine.executor.run(interrupt, waiting);
        self.see_to(engine, number, &told)
    }

    /// Commits a group unless that was done.
    fn see_to(&self, engine: &Engine, number: u64, told: &watch::Receiver<Told>) -> Result<()> {
        while told.borrow().is_none() {
            match engine.store.writer(Patience::of(LOOK_AGAIN_AFTER)) {
                Ok(mut lease) if self.0.lock().open.as_ref().is_some_and(|open| open.number == number) => {
                    self.close(engine, &mut lease);
                }
                Ok(_) | Err(Error::Locked(_)) => {}
                Err(error) => return Err(error),
            }
        }
        answer(told)
    }

    /// A member failed: undoes it, and commits what others wait for.
    ///
    /// # Errors
    /// Those of undoing.
    pub(crate) fn leave(&self, engine: &Engine, mut lease: Lease, member: Member, error: &Error) -> Result<()> {
        lease.rollback_to(&member.point)?;
        engine.rolled_back(&*lease);
        self.0.lock().open.iter_mut().for_each(|open| open.before = None);
        self.close(engine, &mut lease);
        transaction::make_room(engine, &mut lease, error);
        Ok(())
    }

    /// Ends the group.
    fn close(&self, engine: &Engine, lease: &mut Lease) {
        if self.settle(engine, lease) {
            transaction::keep_house(engine, lease);
        }
    }

    /// Leaves the writer as whoever is no member wants it: the group that waits is committed, and what a crashed user left is undone.
    /// Whether something was committed.
    pub(crate) fn settle(&self, engine: &Engine, lease: &mut Lease) -> bool {
        let mut state = self.0.lock();
        if !lease.is_active() {
            state.lose();
            return false;
        }
        let Some(open) = state.open.take() else {
            undo(engine, lease);
            return false;
        };
        let done = match &open.before {
            Some(point) => lease.rollback_to(point).map(|()| engine.rolled_back(&**lease)),
            None => Ok(()),
        };
        let committed = match open.members {
            0 => Ok(false),
            _ => done.and_then(|()| lease.commit()).map(|_| true),
        };
        match &committed {
            Ok(true) => {
                engine.committed(&**lease);
                engine.store.committed(lease.snapshot());
            }
            Ok(false) => undo(engine, lease),
            Err(error) => {
                undo(engine, lease);
                transaction::make_room(engine, lease, &Error::from(error.clone()));
            }
        }
        let is_done = matches!(committed, Ok(true));
        // Nobody may wait for it: then nobody is told.
        open.told.send_replace(Some(committed.map(drop).map_err(Error::from)));
        is_done
    }
}

impl State {
    fn begin(&mut self) {
        self.groups += 1;
        let told = watch::Sender::new(None);
        self.open = Some(Open { number: self.groups, members: 0, told, due: None, before: None });
    }

    /// The writer knows nothing of the group that was open: it was closed, and another one stands in its place.
    fn lose(&mut self) {
        if let Some(open) = self.open.take() {
            let lost =
                Error::Misuse("the database was closed before the commit: nothing of the statement is there".into());
            open.told.send_replace(Some(Err(lost)));
        }
    }
}

fn answer(told: &watch::Receiver<Told>) -> Result<()> {
    told.borrow().clone().unwrap_or_else(|| Err(Error::Bug("a group that was not answered".into())))
}

fn undo(engine: &Engine, lease: &mut Lease) {
    if lease.is_active() {
        lease.rollback();
        engine.rolled_back(&**lease);
    }
}
