//! Telling clouds what has been committed: rows that came, and rows that went.
//!
//! ```text
//! 1  commit: some rows are noted as leaving (and the epoch, if it begins)      cut before: they are here; behind: they are here
//! 2  they are put at every cloud that answers                                  cut: some clouds have some of them, as is noted
//! 3  commit: clouds that have some are noted, but of rows that all have       cut before: 2 is done again, which changes nothing
//! 4  what brings the table back is put there (catalogue), those rows in it    cut: it is that of before, and they are here
//! 5  commit: what was told is noted; rows that all have are live, and no
//!    longer here                                                               cut before: 2 to 4 are done again
//! 6  rows that are gone are let go of at every cloud that has heard of it      cut: likewise
//! 7  commit: clouds that have let go of them are noted
//! ```
//! A row is let go of here when more clouds than may fail show a catalogue that leads to it: to others it would be a stray.
//! Between 3 and 4 clouds get what they are owed (owed.rs), and some rows move to where they are to lie, if the table was altered; behind 7
//! what they left is dropped (moving.rs).
//! Other clients read by the catalogue that they know: until there is a later one, what it leads to is there (lease.rs).
//! Commits that clouds are told of are durable, whatever `synchronous_commit` says: what they let go of must be gone after a cut, and what
//! they have must be noted.
//! Whoever deletes rows meanwhile takes them out of what is noted: then 5 finds them gone here, and 6 lets go of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use counterfoil_disperse::{self as disperse, Declaration, Epoch, Failure, Kept, Layout, Plain, Rows, State};
use counterfoil_log::View;
use counterfoil_relation::{RowId, Table, TableId};

use super::catalogue;
use super::lease::{both, claiming};
use super::moving::Pace;
use super::{Dispersed, define, foreign, is_put_back, keep, kept, opened, shared};
use crate::error::{Error, Result};
use crate::session::Session;
use crate::transaction::Change;

/// Rows that leave at once, and their bytes, unless one row has more.
const ROWS: usize = 1 << 16;
const ROWS_BYTES: usize = 32 << 20;
/// Rows that are read at once, and bytes of their long values; one row alone may have four times as many.
const BLOCK_ROWS: usize = 1 << 12;
const HEAP_BYTES: u64 = 64 << 20;

/// After a failure clouds are not told again for so long, unless something else changes.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

/// What clouds answered when they were told: for each, what speaks against it.
pub(super) type Told = Vec<Result<(), Failure>>;

/// Whether too few clouds have heard of a change for whoever meets the others to count on it. Where none did nobody knows.
fn is_known_to_few(heard: usize, declaration: &Declaration) -> bool {
    heard > 0 && heard + declaration.may_fail < declaration.clouds.len()
}

impl Session {
    /// Tells clouds what they have not been told yet of tables that were changed, and says what waits: behind each statement that is no
    /// part of a transaction, and behind COMMIT.
    pub(crate) fn tell_clouds(&mut self) {
        if self.guard.transaction.in_block() {
            return;
        }
        self.note_committed();
        self.of_itself(Self::tell_the_untold);
        self.of_itself(Self::give_back_leases);
    }

    /// Notes that a transaction under way has something to tell of a table. Another session that looks before it is committed finds nothing:
    /// so it is noted again behind that.
    pub(super) fn note_untold(&mut self, table: TableId) {
        shared(self.engine()).note_untold(table);
        self.untold.insert(table);
    }

    fn note_committed(&mut self) {
        let dispersed = shared(self.engine()).clone();
        std::mem::take(&mut self.untold).into_iter().for_each(|table| dispersed.note_untold(table));
        if !self.dropped.is_empty() {
            dispersed.dropped.set(Instant::now());
        }
    }

    fn tell_the_untold(&mut self) {
        let engine = self.engine().clone();
        let dispersed = shared(&engine).clone();
        if let Err(error) = self.tell_dropped() {
            dispersed.dropped.set(Instant::now() + PAUSE);
            self.notices.push(format!("clouds let go of dropped tables later: {error}"));
        }
        // What others have not told is not told by one who may not write.
        if !self.rights.writes || shared(&engine).untold.lock().is_empty() {
            return;
        }
        let _one_at_a_time = dispersed.telling.lock();
        if let Err(error) = self.check_all() {
            self.notices.push(format!("clouds are told later: {error}"));
        }
        let now = Instant::now();
        let due = |(id, at): (&TableId, &Instant)| (*at <= now).then_some(*id);
        let untold: Vec<TableId> = dispersed.untold.lock().iter().filter_map(due).collect();
        for id in untold {
            dispersed.untold.lock().remove(&id);
            let is_told = self.tell(id, &mut Pace::default()).unwrap_or_else(|error| {
                // The commit stands whatever happens here: what was not told is told later.
                self.notices.push(format!("clouds are told later: {error}"));
                false
            });
            if !is_told {
                dispersed.note_told(id, false);
            }
        }
    }

    /// When something was written the first time since the database was opened: what was not told before is told as well.
    fn check_all(&mut self) -> Result<()> {
        let engine = self.engine().clone();
        let dispersed = shared(&engine);
        if !dispersed.is_checked.swap(true, Ordering::Relaxed) {
            let view = engine.store.snapshot()?;
            define::tables(&engine, &view)?.iter().for_each(|table| dispersed.note_untold(table.id));
        }
        Ok(())
    }

    /// Tells the clouds of a table, and has some rows move if they lie otherwise than they are to; whether there is nothing left to do.
    pub(super) fn tell(&mut self, id: TableId, pace: &mut Pace) -> Result<bool> {
        let view = self.guard.engine.store.snapshot()?;
        let relations = self.engine().relations.clone();
        let Some(table) = relations.table_by_id(&view, id).map_err(Error::Relation)? else { return Ok(true) };
        let kept = kept(&view, &table)?;
        // Of what is another database's that one tells.
        if foreign::is_noted(&view, id) || !self.has_something_to_tell(&view, &table, &kept)? {
            return Ok(true);
        }
        if catalogue::waits_for_shares(shared(self.engine()), &view, &table) {
            // All tables wait for the same.
            let waits =
                "clouds are told what has changed when there are shares of the new key: `counterfoil key split`";
            if !self.notices.iter().any(|notice| notice == waits) {
                self.notices.push(waits.to_owned());
            }
            // Nothing is left to do before that, which has all tables told.
            return Ok(true);
        }
        if !self.has_rows_to_tell(&view, &table, &kept)? && is_older(shared(self.engine()), &view, &table, &kept)? {
            return Ok(true);
        }
        drop(view);
        let (mut told, mut freed) = self.tell_once(&table, pace)?;
        let heard = told.iter().filter(|told| told.is_ok()).count();
        // Others who do not meet the few that heard of it would go on without. Where none did nobody knows, and nobody waits twice.
        let is_known_to_few = is_known_to_few(heard, kept.declaration());
        if is_known_to_few {
            // One that failed when the lease was taken may be back.
            shared(self.engine()).leases.look_again();
        }
        if freed || is_known_to_few {
            // One that was full may have room for the rest.
            (told, freed) = self.tell_once(&table, pace)?;
        }
        self.note_failures(&table.name, &kept.declaration().clouds, &told, "is told later what has changed");
        let view = self.guard.engine.store.snapshot()?;
        Ok(!freed && told.iter().all(Result::is_ok) && super::kept(&view, &table)?.layouts().len() == 1)
    }

    /// Tells the clouds of a table what there is to be told: for each what speaks against it, and whether one that refused something has let
    /// go of something.
    fn tell_once(&mut self, table: &Arc<Table>, pace: &mut Pace) -> Result<(Told, bool)> {
        let mut told = self.lease_at_once(table, 0)?;
        // What one cloud is not told it has not been told from here on; the others go on to the end.
        let (mut from, mut arrived) = (Some(0), Vec::new());
        while let Some(first) = from.filter(|_| told.iter().any(Result::is_ok)) {
            self.planner.interrupt.check()?;
            from = self.put(table, first, &mut told, &mut arrived)?;
        }
        self.put_what_is_owed(table, &mut told)?;
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        // A database that was put back may not know where rows lie by now.
        let moves = kept.layouts().len() > 1 && !is_put_back(&view, &kept)?;
        drop(view);
        if moves {
            self.move_rows(table, pace, &mut told)?;
        }
        let mut told = self.tell_catalogue(table, &told, &arrived)?;
        let freed = self.remove_all(table, &mut told)?;
        // Whoever has told clouds something since does it himself. What is noted of it and not told stands in nobody's way.
        if moves && told.iter().all(Result::is_ok) && self.has_lease(table)? && self.drop_layouts(table)? {
            told = self.tell_catalogue(table, &told, &[])?;
        }
        Ok((told, freed))
    }

    /// Steps 6 and 7 of all layouts, at clouds that have heard of it; and at one that is full, which has room then. Whether there is one.
    fn remove_all(&mut self, table: &Arc<Table>, told: &mut Told) -> Result<bool> {
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        drop(view);
        let may_be_told = |told: &Result<(), Failure>| told.as_ref().err().is_none_or(is_full);
        // Clouds of a layout before may not be among those that are told of the next one.
        if !told.iter().any(may_be_told) {
            return Ok(false);
        }
        let mut freed = false;
        for layout in kept.layouts() {
            let is_current = layout.number == kept.current().number;
            let before: Told = match is_current {
                true => told.iter().map(|told| if may_be_told(told) { Ok(()) } else { told.clone() }).collect(),
                false => vec![Ok(()); layout.state.untold.len()],
            };
            let removed = self.remove(table, layout, &before)?;
            if is_current {
                let has_kept = layout.state.untold.iter().map(|untold| !untold.keeps.is_empty());
                let pairs = told.iter().zip(&removed).zip(has_kept);
                freed =
                    pairs.fold(freed, |all, ((told, removed), kept)| all || (told.is_err() && removed.is_ok() && kept));
                *told = both(std::mem::take(told), removed);
            } else {
                let what = "lets go of rows that are gone later";
                self.note_failures(&table.name, &layout.declaration.clouds, &removed, what);
            }
        }
        Ok(freed)
    }

    /// Whether rows of a table come or go or move, or its catalogue is another one than clouds were told of.
    fn has_something_to_tell(&mut self, view: &dyn View, table: &Arc<Table>, kept: &Kept) -> Result<bool> {
        // Of a database that was put back, or brought back, clouds hear once: then its catalogue is told, too.
        Ok(self.has_rows_to_tell(view, table, kept)? || !self.catalogue_is_told(view, table, kept)?)
    }

    /// Whether rows of a table come or go or move.
    fn has_rows_to_tell(&self, view: &dyn View, table: &Table, kept: &Kept) -> Result<bool> {
        let is_untold = |layout: &Layout| {
            layout.state.untold.iter().any(|untold| !(untold.lacks.is_empty() && untold.keeps.is_empty()))
        };
        let here = self.engine().relations.count(view, table).map_err(Error::Relation)?;
        let is_owed = !kept.current().state.owed().is_empty();
        Ok(here > 0 || kept.layouts().len() > 1 || is_owed || kept.layouts().iter().any(is_untold))
    }

    pub(super) fn note_failures(&mut self, table: &str, clouds: &[String], told: &Told, what: &str) {
        for (cloud, failure) in clouds.iter().zip(told).filter_map(|(cloud, told)| Some((cloud, told.as_ref().err()?)))
        {
            self.notices.push(format!("table {table}: cloud {cloud} {what}: {failure}"));
        }
    }

    /// Steps 6 and 7, of one layout, at clouds against which nothing speaks.
    fn remove(&mut self, table: &Arc<Table>, layout: &Layout, before: &Told) -> Result<Told> {
        let state = &layout.state;
        if state.untold.iter().all(|untold| untold.keeps.is_empty()) {
            return Ok(before.clone());
        }
        let view = self.guard.engine.store.snapshot()?;
        let opened = opened(&self.engine().dispersed, &view, table, layout)?;
        drop(view);
        let keeps = |cloud: usize| &state.untold[cloud].keeps;
        let told = each(state.untold.len(), |cloud| {
            before[cloud].clone()?;
            match keeps(cloud).is_empty() {
                true => Ok(()),
                false => opened.remove(state, cloud, keeps(cloud)),
            }
        });
        self.change(|session, change| {
            session.guard.transaction.be_durable();
            let mut kept = kept(&*change.lease, table)?;
            let Some(now) = kept.layout_mut(layout.number) else { return Ok(()) };
            for cloud in (0..told.len()).filter(|cloud| told[*cloud].is_ok()) {
                now.state.removed(cloud, keeps(cloud));
            }
            keep(&mut change.lease, table.id, &kept)
        })?;
        Ok(told)
    }

    /// Steps 1 to 3 for some rows, from a row on; behind the last of them, if there are others. Clouds that failed are not told.
    fn put(
        &mut self,
        table: &Arc<Table>,
        first: u64,
        told: &mut Told,
        arrived: &mut Vec<Arrived>,
    ) -> Result<Option<u64>> {
        let leaving = self.change(|session, change| leaving(session, change, table, first))?;
        let Some(Leaving { kept, rows, plains, next }) = leaving else { return Ok(None) };
        let numbers: Vec<u64> = rows.iter().collect();
        let view = self.guard.engine.store.snapshot()?;
        let opened = opened(&self.engine().dispersed, &view, table, kept.current())?;
        drop(view);
        let bytes = plains.iter().map(Plain::bytes).sum();
        *told = both(std::mem::take(told), self.lease_at_once(table, bytes)?);
        let put = put_at(&opened, &kept.current().state, (&numbers, &plains), told);
        let layout = kept.current().number;
        let rows = self.change(|session, change| note_put(session, change, (table, layout), &rows, &put))?;
        arrived.extend((!rows.is_empty()).then_some(Arrived { layout, rows }));
        *told = put;
        Ok(next)
    }
}

/// Whether this database was put back, and a cloud shows a later catalogue of a table: whoever has nothing to tell but its own, and was not asked
/// about that table, leaves the later one there.
fn is_older(dispersed: &Dispersed, view: &dyn View, table: &Table, kept: &Kept) -> Result<bool> {
    let Some((claiming, Some(_))) = claiming(dispersed, view, table, kept)? else { return Ok(false) };
    Ok(claiming.newest(&claiming.peek(dispersed)).is_some_and(|version| version > kept.version))
}

/// Whether a cloud answered that it will not, as one does that is full.
fn is_full(failure: &Failure) -> bool {
    matches!(failure, Failure::Refused(_))
}

/// Rows that leave, with what they are.
struct Leaving {
    kept: Kept,
    rows: Rows,
    plains: Vec<Plain>,
    /// Behind them, if there are others here.
    next: Option<u64>,
}

/// Step 1.
fn leaving(session: &mut Session, change: &mut Change, table: &Arc<Table>, first: u64) -> Result<Option<Leaving>> {
    session.guard.transaction.be_durable();
    let relations = session.engine().relations.clone();
    let scan = relations.scan(change.lease.pending(), table).map_err(Error::Relation)?;
    let mut scan = scan.with_heap_bytes(HEAP_BYTES);
    let (mut numbers, mut batches, mut bytes) = (Vec::new(), Vec::new(), 0);
    while numbers.len() < ROWS
        && bytes < ROWS_BYTES
        && let Some(block) = scan.next(BLOCK_ROWS).map_err(Error::Relation)?
    {
        let own: Vec<u64> = block.visible_rows().map(|row| block.id(row).0).collect();
        let before = own.partition_point(|row| *row < first);
        if before < own.len() {
            let batch = crate::load::table_batch(table, &block)?;
            numbers.extend(&own[before..]);
            bytes += batch.get_array_memory_size();
            batches.push(batch.slice(before, batch.num_rows() - before));
        }
    }
    let has_others = scan.rows_left() > 0;
    drop(scan);
    let Some(last) = numbers.last().copied() else { return Ok(None) };
    let mut kept = kept(&*change.lease, table)?;
    let new: Vec<u64> = numbers.iter().copied().filter(|row| !kept.current().state.has_left(*row)).collect();
    if let Some(first) = new.first() {
        begin_epoch(session, table.id, &mut kept, *first)?;
        kept.current_mut().state.leaving(new.iter().copied());
        keep(&mut change.lease, table.id, &kept)?;
    }
    let schema = batches[0].schema();
    let all = datafusion::arrow::compute::concat_batches(&schema, &batches)?;
    let plain = |(column, array): (&counterfoil_relation::Column, &_)| super::columns::plain(&column.kind, array);
    let plains = table.columns.iter().zip(all.columns()).map(plain).collect::<Result<_>>()?;
    let next = has_others.then_some(last + 1);
    Ok(Some(Leaving { kept, rows: numbers.into_iter().collect(), plains, next }))
}

/// Rows from here on are sealed under keys of this process alone, unless they are already.
fn begin_epoch(session: &Session, table: TableId, kept: &mut Kept, first: u64) -> Result<()> {
    let mut epochs = shared(session.engine()).epochs.lock();
    let state = &mut kept.current_mut().state;
    let last = state.epochs.iter().last().map(|(_, epoch)| epoch);
    if last.is_some() && last == epochs.get(&table).copied() {
        return Ok(());
    }
    let epoch = Epoch(define::random()?);
    epochs.insert(table, epoch);
    // What has left stays what it is: an epoch begins behind it.
    state.epochs.begin(first.max(state.after_all()), epoch);
    Ok(())
}

/// Rows that every cloud has, of a layout, and that are still here.
pub(super) struct Arrived {
    layout: u32,
    rows: Rows,
}

impl Arrived {
    /// What is known of a table once they are live; which of them are no longer needed here.
    pub(super) fn settle(all: &[Self], kept: &mut Kept) -> Rows {
        let current = kept.current_mut();
        let there = all.iter().filter(|arrived| arrived.layout == current.number);
        there.fold(Rows::new(), |settled, arrived| settled | current.state.all_have(&arrived.rows))
    }

    /// Step 5, in a commit that is under way.
    pub(super) fn let_go(all: &[Self], session: &Session, change: &mut Change, table: &Arc<Table>) -> Result<()> {
        let mut kept = kept(&*change.lease, table)?;
        let settled: Vec<RowId> = Self::settle(all, &mut kept).iter().map(RowId).collect();
        let relations = session.engine().relations.clone();
        relations.delete(&mut *change.lease, table, &settled).map_err(Error::Relation)?;
        keep(&mut change.lease, table.id, &kept)
    }

    pub(super) fn is_among(&self, rows: &Rows) -> bool {
        !self.rows.is_disjoint(rows)
    }

    fn count(all: &[Self]) -> u64 {
        all.iter().map(|arrived| arrived.rows.len()).sum()
    }

    /// Those that one commit lets go of with what clouds were told; of more there are commits of their own.
    pub(super) fn few(all: &[Self]) -> &[Self] {
        if Self::count(all) > ROWS as u64 { &[] } else { all }
    }
}

/// Step 3; the rows that every cloud has then, which is noted when clouds were told of it.
fn note_put(
    session: &mut Session,
    change: &mut Change,
    (table, layout): (&Arc<Table>, u32),
    rows: &Rows,
    told: &Told,
) -> Result<Rows> {
    session.guard.transaction.be_durable();
    let relations = session.engine().relations.clone();
    let mut kept = kept(&*change.lease, table)?;
    if kept.current().number != layout {
        // They are to go elsewhere meanwhile, and are still here.
        return Ok(Rows::new());
    }
    let state = &mut kept.current_mut().state;
    // Those that were deleted meanwhile are not here any more.
    let ids: Vec<RowId> = rows.iter().map(RowId).collect();
    let block = relations.fetch(&*change.lease, table, &ids, Some(&[])).map_err(Error::Relation)?;
    let here: Rows = block.visible_rows().map(|at| ids[at].0).collect();
    let settling = state.would_settle(&here, |cloud| told[cloud].is_ok());
    let others = rows - &settling;
    for cloud in (0..told.len()).filter(|cloud| told[*cloud].is_ok()) {
        state.arrived(cloud, &others);
    }
    keep(&mut change.lease, table.id, &kept)?;
    Ok(settling)
}

/// Puts rows at each cloud that has not failed yet, those that it may lack.
pub(super) fn put_at(
    opened: &disperse::Table,
    state: &State,
    (numbers, plains): (&[u64], &[Plain]),
    told: &Told,
) -> Told {
    let rows: Rows = numbers.iter().copied().collect();
    let whole = opened.code(state, numbers, plains);
    each(told.len(), |cloud| {
        told[cloud].clone()?;
        let lacking = &state.untold[cloud].lacks & &rows;
        if lacking.len() == rows.len() {
            return opened.put(state, cloud, whole.as_ref().map_err(Clone::clone)?);
        }
        let places: Vec<usize> = (0..numbers.len()).filter(|at| lacking.contains(numbers[*at])).collect();
        let some: Vec<u64> = places.iter().map(|at| numbers[*at]).collect();
        let plains: Vec<Plain> = plains.iter().map(|plain| plain.chosen(&places)).collect();
        if some.is_empty() {
            return Ok(());
        }
        opened.put(state, cloud, &opened.code(state, &some, &plains)?)
    })
}

/// Tells each cloud, all at once.
pub(super) fn each(clouds: usize, tell: impl Fn(usize) -> Result<(), Failure> + Sync) -> Told {
    let tell = &tell;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clouds).map(|cloud| scope.spawn(move || tell(cloud))).collect();
        let panicked = |_| Err(Failure::Refused("it cannot be told".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    })
}
