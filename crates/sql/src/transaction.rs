//! Transactions of one session: who holds the writer, what is seen, and what an error undoes.
//!
//! - Outside BEGIN every statement is a transaction of its own.
//! - The writer is taken at the first change and kept to COMMIT or ROLLBACK; until then a transaction only reads.
//! - A statement happens as a whole or not at all; inside BEGIN a failed statement undoes itself, and the transaction
//!   takes nothing but ROLLBACK (or ROLLBACK TO a savepoint) from then on.
//! - READ COMMITTED (the default): each statement sees what was committed before it. REPEATABLE READ and
//!   SERIALIZABLE: all see what the first one saw, and a change is refused if somebody else committed since.

use std::sync::Arc;

use counterfoil_log::{Savepoint, Snapshot, View};
use datafusion::logical_expr::execution_props::ExecutionProps;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::modes::Modes;
use crate::series;
use crate::store::Lease;

/// Where less than this part of the medium is left, what was deleted is tidied at once.
const ROOM_PART: u64 = 8;

/// What a session is in the middle of.
#[derive(Default)]
pub(crate) struct Transaction {
    lease: Option<Lease>,
    block: Option<Block>,
    /// Whether what failed had no room, and others have made some.
    has_room_now: bool,
    /// Whether its commit waits for the medium, whatever the session says.
    is_durable: bool,
}

/// BEGIN ... COMMIT.
#[derive(Default)]
pub(crate) struct Block {
    pub(crate) failed: bool,
    pub(crate) modes: Modes,
    /// Whether a statement has looked at tables, or changed them.
    pub(crate) has_asked: bool,
    seen: Option<Snapshot>,
    /// Whether a statement found no room.
    is_full: bool,
    marks: Vec<Mark>,
    /// The clock of the first statement: `now()` of all.
    pub(crate) clock: Option<ExecutionProps>,
}

/// SAVEPOINT; without a point, nothing had been written yet.
struct Mark {
    name: String,
    point: Option<Savepoint>,
}

/// What a change is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It stores something.
    Store,
    /// It only deletes, or tidies up after deletions: a full medium keeps some space for that.
    Free,
}

/// A change under way: the writer, and how to undo it.
pub(crate) struct Change {
    pub(crate) lease: Lease,
    point: Option<Savepoint>,
}

impl Block {
    pub(crate) fn of(modes: Modes) -> Self {
        Block { modes, ..Block::default() }
    }
}

impl Change {
    /// A change by a member of a group, which is undone by the group.
    pub(crate) fn of_member(lease: Lease) -> Change {
        Change { lease, point: None }
    }
}

impl Transaction {
    pub(crate) fn block(&mut self) -> Option<&mut Block> {
        self.block.as_mut()
    }

    /// What the transaction is that is open.
    pub(crate) fn modes(&self) -> Option<Modes> {
        self.block.as_ref().map(|block| block.modes)
    }

    pub(crate) fn in_block(&self) -> bool {
        self.block.is_some()
    }

    /// Refuses a statement that is no part of a transaction, as long as there is one.
    pub(crate) fn allows_alone(&self, statement: &str) -> Result<()> {
        let several = "COMMIT first, or run it alone (several statements in one text are a transaction, too)";
        match self.in_block() {
            true => Err(Error::Misuse(format!("{statement} is no part of a transaction: {several}"))),
            false => Ok(()),
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.block.as_ref().is_some_and(|block| block.failed)
    }

    /// Marks the transaction as failed, if there is one.
    pub(crate) fn fail(&mut self) {
        if let Some(block) = &mut self.block {
            block.failed = true;
        }
    }

    pub(crate) fn begin(&mut self, block: Block) -> Result<()> {
        if self.block.is_some() {
            return Err(Error::Misuse("there is a transaction already: COMMIT or ROLLBACK it first".into()));
        }
        self.block = Some(block);
        Ok(())
    }

    /// Has the next commit wait for the medium: somebody else is told of it.
    pub(crate) fn be_durable(&mut self) {
        self.is_durable = true;
    }

    /// Whether what this session sees is its own uncommitted state.
    pub(crate) fn is_writing(&self) -> bool {
        self.lease.is_some()
    }

    /// Whether the next statement sees all that is committed before it.
    pub(crate) fn sees_what_comes(&self) -> bool {
        let is_fixed =
            self.block.as_ref().is_some_and(|block| block.modes.isolation.is_stable() && block.seen.is_some());
        self.lease.is_none() && !is_fixed
    }

    /// Whether what the next statement sees is what all behind it see.
    pub(crate) fn fixes_what_it_sees(&self) -> bool {
        self.lease.is_none()
            && self.block.as_ref().is_some_and(|block| block.modes.isolation.is_stable() && block.seen.is_none())
    }

    /// What the next statement sees.
    pub(crate) fn view(&mut self, engine: &Engine) -> Result<Snapshot> {
        if let Some(lease) = &mut self.lease {
            return Ok(lease.pending());
        }
        match &mut self.block {
            Some(Block { modes, seen, .. }) if modes.isolation.is_stable() => match seen {
                Some(seen) => Ok(seen.clone()),
                None => {
                    let snapshot = engine.store.snapshot()?;
                    *seen = Some(snapshot.clone());
                    Ok(snapshot)
                }
            },
            _ => engine.store.snapshot(),
        }
    }

    /// Takes the writer for a statement that changes something.
    pub(crate) fn change(
        &mut self,
        engine: &Engine,
        writer: impl FnOnce() -> Result<Lease>,
        purpose: Purpose,
    ) -> Result<Change> {
        let mut lease = match self.lease.take() {
            Some(lease) => lease,
            None => fresh(engine, writer()?),
        };
        begin(&mut lease, purpose)?;
        let Some(block) = &mut self.block else { return Ok(Change { lease, point: None }) };
        let moved = block.seen.as_ref().is_some_and(|seen| seen.commit_number() != lease.commit_number());
        if block.modes.isolation.is_stable() && moved {
            lease.rollback();
            return Err(Error::Conflict(
                "another transaction committed since this one began: ROLLBACK and try again".into(),
            ));
        }
        // From here on nobody else commits, and what is seen is the writer's own state.
        block.seen = None;
        let point = Some(lease.savepoint()?);
        Ok(Change { lease, point })
    }

    /// Ends a statement that changed something well: commits it outside a block.
    pub(crate) fn keep(&mut self, engine: &Engine, change: Change, synchronous: bool) -> Result<()> {
        if self.block.is_some() {
            let Change { mut lease, point } = change;
            // Nobody goes back to before this statement alone: a savepoint of the session's is another one.
            point.iter().for_each(|point| lease.release(point));
            self.lease = Some(lease);
            return Ok(());
        }
        let is_durable = std::mem::take(&mut self.is_durable);
        commit(engine, change.lease, synchronous || is_durable, &mut self.has_room_now)
    }

    /// Ends a statement that failed with an error: nothing of it remains.
    pub(crate) fn undo(&mut self, engine: &Engine, change: Change, error: &Error) -> Result<()> {
        let Change { mut lease, point } = change;
        match point {
            Some(point) => {
                lease.rollback_to(&point)?;
                engine.rolled_back(&*lease);
                self.lease = Some(lease);
                // Room is made once the transaction is undone.
                self.block.iter_mut().for_each(|block| block.is_full |= error.is_full());
            }
            None => {
                lease.rollback();
                engine.rolled_back(&*lease);
                self.has_room_now = make_room(engine, &mut lease, error);
            }
        }
        Ok(())
    }

    /// Whether what was undone last had no room and may find some now: asked once.
    pub(crate) fn take_room(&mut self) -> bool {
        std::mem::take(&mut self.has_room_now)
    }

    /// COMMIT. Answers whether there was something to commit and it was not undone instead.
    pub(crate) fn commit(&mut self, engine: &Engine, synchronous: bool) -> Result<bool> {
        let failed = self.has_failed();
        if failed {
            self.rollback(engine);
            return Ok(false);
        }
        self.block = None;
        let is_durable = std::mem::take(&mut self.is_durable);
        let Some(lease) = self.lease.take() else { return Ok(true) };
        commit(engine, lease, synchronous || is_durable, &mut self.has_room_now)?;
        Ok(true)
    }

    /// ROLLBACK.
    pub(crate) fn rollback(&mut self, engine: &Engine) {
        let is_full = self.block.take().is_some_and(|block| block.is_full);
        if let Some(mut lease) = self.lease.take() {
            lease.rollback();
            engine.rolled_back(&*lease);
            if is_full {
                free_room(engine, &mut lease);
            }
        }
    }

    pub(crate) fn savepoint(&mut self, name: String) -> Result<()> {
        let point = self.lease.as_mut().map(|lease| lease.savepoint()).transpose()?;
        let block = self.block.as_mut().ok_or_else(|| outside("SAVEPOINT"))?;
        block.marks.push(Mark { name, point });
        Ok(())
    }

    /// How many savepoints there are.
    pub(crate) fn savepoints(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.marks.len())
    }

    pub(crate) fn rollback_to(&mut self, engine: &Engine, name: &str) -> Result<()> {
        let block = self.block.as_mut().ok_or_else(|| outside("ROLLBACK TO SAVEPOINT"))?;
        let place = place(block, name)?;
        block.marks.truncate(place + 1);
        block.failed = false;
        match (&block.marks[place].point, &mut self.lease) {
            (Some(point), Some(lease)) => {
                lease.rollback_to(point)?;
                engine.rolled_back(&**lease);
            }
            // Nothing had been written at the savepoint: all that was since is undone, and the writer is free.
            (None, Some(_)) => {
                if let Some(mut lease) = self.lease.take() {
                    lease.rollback();
                    engine.rolled_back(&*lease);
                }
            }
            (_, None) => {}
        }
        Ok(())
    }

    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let block = self.block.as_mut().ok_or_else(|| outside("RELEASE SAVEPOINT"))?;
        let place = place(block, name)?;
        block.marks.truncate(place);
        Ok(())
    }
}

fn outside(what: &str) -> Error {
    Error::Misuse(format!("{what} stands inside a transaction: BEGIN one first"))
}

fn place(block: &Block, name: &str) -> Result<usize> {
    let place = block.marks.iter().rposition(|mark| mark.name == name);
    place.ok_or_else(|| Error::NotFound(format!("no savepoint {name}")))
}

/// The writer, with what others wait for committed and whatever a crashed user of it left behind undone.
fn fresh(engine: &Engine, mut lease: Lease) -> Lease {
    engine.settle(&mut lease);
    lease
}

/// Begins a commit, or goes on with it. As long as all its changes only delete, it may be granted what is kept for
/// that; the first other one ends it.
fn begin(lease: &mut Lease, purpose: Purpose) -> Result<()> {
    match (lease.is_active(), purpose) {
        (false, Purpose::Store) => lease.begin()?,
        (false, Purpose::Free) => lease.begin_to_free()?,
        (true, Purpose::Store) => lease.no_longer_only_frees(),
        (true, Purpose::Free) => {}
    }
    Ok(())
}

/// Commits, shows the new state, and does the housework that became due. `has_room_now`: where there was no room, whether some was made.
fn commit(engine: &Engine, mut lease: Lease, synchronous: bool, has_room_now: &mut bool) -> Result<()> {
    let committed = if synchronous { lease.commit() } else { lease.commit_soon() };
    if let Err(error) = committed {
        lease.rollback();
        engine.rolled_back(&*lease);
        let error = error.into();
        *has_room_now = make_room(engine, &mut lease, &error);
        return Err(error);
    }
    engine.committed(&*lease);
    engine.store.committed(lease.snapshot());
    keep_house(engine, &mut lease);
    Ok(())
}

/// What is done after a commit: the oldest points of series tables go that their tables keep no longer, and what has become many
/// small pieces is merged. Each is a commit of its own. The one before is acknowledged whatever happens here, so a failure (a full
/// medium, say) is undone and left to the next one.
pub(crate) fn keep_house(engine: &Engine, lease: &mut Lease) {
    // After deletions it gives space back: it writes anew what they were in.
    let frees = lease.only_frees();
    let purpose = if frees { Purpose::Free } else { Purpose::Store };
    let is_short = |lease: &Lease| frees && lease.pages_left() < lease.pages_max() / ROOM_PART;
    keep_retention(engine, lease);
    let _ = do_chore(engine, lease, purpose, |lease| {
        let relations = &engine.relations;
        let done = match engine.options.is_tidied && !is_short(lease) {
            true => relations.relieve(&mut **lease),
            false => relations.maintain(&mut **lease),
        };
        let done = done.map_err(Error::Relation)?;
        Ok(engine.series.maintain(&mut **lease).map_err(series::error)? || done)
    });
    // What was deleted where there is little room is room at once, as long as each step makes some.
    let mut left = 0;
    while is_short(lease) && left < lease.pages_left() {
        left = lease.pages_left();
        if !tidy(engine, lease, Purpose::Free) {
            break;
        }
    }
}

/// A step in tidying tables; whether there was one.
pub(crate) fn tidy(engine: &Engine, lease: &mut Lease, purpose: Purpose) -> bool {
    do_chore(engine, lease, purpose, |lease| engine.relations.maintain(&mut **lease).map_err(Error::Relation))
}

/// Where something found no room, the oldest points go of tables that are kept for as long as there is some: what failed is not
/// there, but may be tried again. Whether some went.
pub(crate) fn make_room(engine: &Engine, lease: &mut Lease, error: &Error) -> bool {
    error.is_full() && free_room(engine, lease)
}

fn free_room(engine: &Engine, lease: &mut Lease) -> bool {
    let has_freed = keep_retention(engine, lease);
    // A merge begins anew when there is room for it.
    let relations = &engine.relations;
    let abandon = |lease: &mut Lease| relations.abandon_merges(&mut **lease).map_err(Error::Relation);
    let _ = do_chore(engine, lease, Purpose::Free, abandon);
    has_freed
}

/// Whether points went.
fn keep_retention(engine: &Engine, lease: &mut Lease) -> bool {
    let mut has_freed = false;
    for id in engine.retention.written() {
        has_freed |= do_chore(engine, lease, Purpose::Free, |lease| engine.retention.keep(engine, &mut *lease, id));
    }
    has_freed
}

/// Does something in a commit of its own, if there is anything to do. Whether there was and the commit stands.
fn do_chore(
    engine: &Engine,
    lease: &mut Lease,
    purpose: Purpose,
    chore: impl FnOnce(&mut Lease) -> Result<bool>,
) -> bool {
    if begin(lease, purpose).is_err() {
        return false;
    }
    match chore(lease) {
        Ok(true) if lease.commit().is_ok() => {
            engine.committed(&**lease);
            engine.store.committed(lease.snapshot());
            return true;
        }
        Ok(false) if !lease.has_changes() => lease.rollback(),
        _ => {
            lease.rollback();
            engine.rolled_back(&**lease);
        }
    }
    false
}

/// A session that ends undoes what it has not committed.
pub(crate) struct Guard {
    pub(crate) transaction: Transaction,
    pub(crate) engine: Arc<Engine>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.transaction.rollback(&self.engine);
    }
}
