//! Moving a dispersed table to other clouds, codings and keys: ALTER TABLE and REFRESH TABLE.
//!
//! ```text
//! 1  commit: the table has another layout, to which rows come from here on      cut before: nothing; behind: all rows lie in the old one
//! 2  commit: some rows are noted as leaving for it                              cut: they lie in the old one
//! 3  they are read from the old one, and put at every cloud of the new one      cut: likewise; what clouds have is put again, the same
//! 4  commit: clouds that have them are noted; those that all have lie there     cut before: 3 is done again
//! 5  when none is left: the catalogue is told, then clouds drop the old one     cut: 5 is done again
//! 6  commit: which have; when all have, its secret is forgotten
//! ```
//! Whoever reads meanwhile asks both (reading.rs). What a cut or an interruption leaves goes on with whatever is changed next, some rows at
//! a time; REPAIR TABLE brings it to its end.
//! 5 waits for the catalogue: a cloud must not let go of what the only catalogue at clouds still leads to.

use std::sync::Arc;

use counterfoil_disperse::{Epoch, Found, Kept, Layout, Plain, Rows, Secret, Table as Away};
use counterfoil_log::View;
use counterfoil_relation::Table;
use parking_lot::MutexGuard;

use super::clouds::Cloud;
use super::push::{Told, each, put_at};
use super::readable::{Place, UNREAD_MOST};
use super::words::Relaid;
use super::{before, catalogue, clouds, define, is_put_back, keep, kept, opened, shared};
use crate::error::{Error, Result};
use crate::planner;
use crate::session::{Outcome, Session};
use crate::transaction::Change;

/// Rows that move at once, at first; bytes of them that are held at once, unless one row has more; and rows at most.
const ROWS_FIRST: usize = 1 << 10;
const ROWS_BYTES: usize = 32 << 20;
const ROWS_MOST: usize = 1 << 16;

const LIE_AS_BEFORE: &str = "rows lie as before, and move when all of their clouds answer, or with REPAIR TABLE";

/// How many rows move before somebody else has a turn: as many as fit, which is known when some have moved.
pub(super) struct Pace {
    rows: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rows: ROWS_FIRST }
    }
}

impl Pace {
    fn after(&mut self, rows: u64, bytes: usize) {
        if bytes > ROWS_BYTES {
            self.rows = (self.rows / 2).max(1);
        } else if rows >= self.rows as u64 && bytes <= ROWS_BYTES / 2 {
            self.rows = (self.rows * 2).min(ROWS_MOST);
        }
    }
}

/// Rows that move, and from where.
struct Moving {
    kept: Kept,
    from: Layout,
    rows: Rows,
}

impl Session {
    /// Has a table lie otherwise, and moves its rows.
    pub(crate) fn relay(&mut self, name: &str, relaid: &Relaid) -> Result<Outcome> {
        let statement = if *relaid == Relaid::Refreshed { "REFRESH TABLE" } else { "ALTER TABLE" };
        self.guard.transaction.allows_alone(&format!("{statement} of a dispersed table"))?;
        self.to_write()?;
        self.lease_named(name)?;
        let dispersed = shared(self.engine()).clone();
        let table = {
            // Nobody is on the way with rows of the layout before.
            let _one_at_a_time = dispersed.telling.lock();
            let mut lines = Vec::new();
            let table = self.change(|session, change| {
                let table = planner::table(session.engine(), &*change.lease, name)?;
                if super::is_dispersed(&table) {
                    session.is_leased_still(change, &table)?;
                }
                relay(session, change, (name, relaid), &mut lines)
            })?;
            self.notices.extend(lines);
            table
        };
        self.engine().doors.forget();
        // It lies otherwise from here on, whatever becomes of its rows now.
        if let Err(error) = self.move_all(&table) {
            dispersed.note_told(table.id, false);
            if matches!(error, Error::Interrupted | Error::TimedOut) {
                return Err(error);
            }
            let text = "the change stands, and rows move later, or with REPAIR TABLE";
            self.notices.push(format!("table {}: {text}: {error}", table.name));
        }
        Ok(Outcome::Done(statement))
    }

    /// Tells the clouds of a table everything, and has all of its rows move, in turns: others write in between.
    pub(super) fn move_all(&mut self, table: &Arc<Table>) -> Result<()> {
        let (dispersed, mut pace) = (shared(self.engine()).clone(), Pace::default());
        loop {
            self.planner.interrupt.check()?;
            let (before, pieces) = (self.left_to_move(table)?, pace.rows);
            let one_at_a_time = dispersed.telling.lock();
            let is_told = self.tell(table.id, &mut pace)?;
            MutexGuard::unlock_fair(one_at_a_time);
            let left = self.left_to_move(table)?;
            // Where the first of them cannot be read, those behind them are in a larger piece.
            if left > 0 && (left < before || pace.rows > pieces) {
                continue;
            }
            if left > 0 {
                self.notices.push(format!("table {}: {LIE_AS_BEFORE}: {left}", table.name));
            }
            dispersed.note_told(table.id, is_told && left == 0);
            return Ok(());
        }
    }

    /// What was said of rows that have moved after all is not said.
    pub(super) fn note_moved_after_all(&mut self, table: &Table) -> Result<()> {
        if self.left_to_move(table)? == 0 {
            self.notices.retain(|notice| !notice.contains(LIE_AS_BEFORE));
        }
        Ok(())
    }

    fn left_to_move(&self, table: &Table) -> Result<u64> {
        let kept = kept(&self.guard.engine.store.snapshot()?, table)?;
        Ok((kept.live() - &kept.current().state.live).len())
    }

    /// Steps 2 to 4, for as many rows as the pace allows.
    pub(super) fn move_rows(&mut self, table: &Arc<Table>, pace: &mut Pace, told: &mut Told) -> Result<()> {
        // Rows lie there when every cloud has them: with one that does not answer nothing is won.
        if told.iter().any(Result::is_err) {
            return Ok(());
        }
        let most = pace.rows;
        let moving = self.change(|session, change| moving(session, change, table, most))?;
        if let Some(moving) = moving {
            let bytes = self.move_these(table, &moving, told)?;
            pace.after(moving.rows.len(), bytes);
        }
        Ok(())
    }

    /// Steps 3 and 4, of rows that can be read; how many bytes they are.
    fn move_these(&mut self, table: &Arc<Table>, moving: &Moving, told: &mut Told) -> Result<usize> {
        let Moving { kept, from, rows } = moving;
        let view = self.guard.engine.store.snapshot()?;
        let (before, after) = (
            opened(&self.engine().dispersed, &view, table, from)?,
            opened(&self.engine().dispersed, &view, table, kept.current())?,
        );
        drop(view);
        let place = Place { layout: from, state: &from.state, away: &before };
        let readable = self.read_what_can_be(table, place, (rows, UNREAD_MOST))?;
        if let Some(text) = readable.unread.text(&table.name) {
            self.notices.push(format!("table {}: {text}", table.name));
        }
        let mut bytes = 0;
        for found in &readable.found {
            self.move_found((table, moving), &after, found, told)?;
            bytes += found.columns.iter().map(Plain::bytes).sum::<usize>();
        }
        Ok(bytes)
    }

    /// The same of rows that could be read.
    fn move_found(
        &mut self,
        (table, moving): (&Arc<Table>, &Moving),
        after: &Away,
        found: &Found,
        told: &mut Told,
    ) -> Result<()> {
        let (Moving { kept, from, .. }, rows) = (moving, found.rows.iter().copied().collect::<Rows>());
        let put = put_at(after, &kept.current().state, (&found.rows, &found.columns), told);
        self.change(|session, change| {
            session.guard.transaction.be_durable();
            let mut now = super::kept(&*change.lease, table)?;
            if now.current().number != kept.current().number {
                return Ok(());
            }
            for cloud in (0..put.len()).filter(|cloud| put[*cloud].is_ok()) {
                now.current_mut().state.arrived(cloud, &rows);
            }
            now.moved(from.number, &rows);
            keep(&mut change.lease, table.id, &now)
        })?;
        *told = put;
        Ok(())
    }

    /// Steps 5 and 6. Whether something was dropped.
    pub(super) fn drop_layouts(&mut self, table: &Arc<Table>) -> Result<bool> {
        let view = self.guard.engine.store.snapshot()?;
        let kept = kept(&view, table)?;
        let Some((current, before)) = kept.layouts().split_last() else { return Ok(false) };
        let mut is_changed = false;
        for layout in before.iter().filter(|layout| layout.state.live.is_empty()) {
            let dropped = self.drop_layout(&view, table, (layout, current))?;
            self.note_dropped(table, layout, &dropped)?;
            is_changed = true;
        }
        Ok(is_changed)
    }

    /// Has each cloud of a layout let go of it; and of what brings the table back, if it has nothing of the current one.
    fn drop_layout(&self, view: &dyn View, table: &Table, (layout, current): (&Layout, &Layout)) -> Result<Told> {
        let dispersed = shared(self.engine());
        let away = opened(dispersed, view, table, layout)?;
        let clouds = &layout.declaration.clouds;
        let is_left = |cloud: usize| !current.declaration.clouds.contains(&clouds[cloud]);
        let (own, named) = (catalogue::own(dispersed, table), of_layout(view, layout)?);
        let catalogues = own.map_or_else(Vec::new, |_| before::all(dispersed, view));
        Ok(each(clouds.len(), |cloud| {
            if layout.dropped.contains(&(cloud as u16)) {
                return Ok(());
            }
            let shown = match named[cloud].as_ref().filter(|_| is_left(cloud)) {
                Some(named) => catalogue::let_go_at(dispersed, &catalogues, (named, &layout.declaration.table)),
                None => Ok(()),
            };
            match &shown {
                Err(failure) if !catalogue::leads_nowhere(failure) => shown,
                _ => away.drop_at(cloud).and(shown),
            }
        }))
    }

    /// Step 6.
    fn note_dropped(&mut self, table: &Table, layout: &Layout, dropped: &Told) -> Result<()> {
        self.change(|session, change| {
            session.guard.transaction.be_durable();
            let mut now = kept(&*change.lease, table)?;
            for cloud in (0..dropped.len()).filter(|cloud| dropped[*cloud].is_ok()) {
                now.dropped(layout.number, cloud);
            }
            keep(&mut change.lease, table.id, &now)
        })?;
        let what = "keeps what has moved away, and lets go of it later";
        self.note_failures(&table.name, &layout.declaration.clouds, dropped, what);
        Ok(())
    }
}

/// The clouds of a layout; none of one that is gone.
fn of_layout(view: &dyn View, layout: &Layout) -> Result<Vec<Option<Cloud>>> {
    layout.declaration.clouds.iter().map(|name| clouds::named(view, name)).collect()
}

/// Step 1.
fn relay(
    session: &mut Session,
    change: &mut Change,
    (name, relaid): (&str, &Relaid),
    lines: &mut Vec<String>,
) -> Result<Arc<Table>> {
    let table = planner::table(session.engine(), &*change.lease, name)?;
    if !super::is_dispersed(&table) {
        return Err(Error::Misuse(format!("table {name} is not dispersed: it lies at no clouds")));
    }
    let relations = session.engine().relations.clone();
    let told = define::with_options(&table, relaid)?;
    let table = relations.set_engine(&mut *change.lease, &table, told).map_err(Error::Relation)?;
    let mut kept = kept(&*change.lease, &table)?;
    if is_put_back(&*change.lease, &kept)? && !catalogue::is_learned(&kept) {
        return Err(Error::Misuse(format!(
            "table {name}: this database was put back, and may not know how the table lies at its clouds by now: REPAIR TABLE {name} \
             compares them; nothing has changed"
        )));
    }
    let (declaration, learned) = define::declared(&*change.lease, &table, kept.declaration().table)?;
    if *relaid != Relaid::Refreshed && declaration == *kept.declaration() {
        return Ok(table);
    }
    let rows = kept.live().len() + relations.count(&*change.lease, &table).map_err(Error::Relation)?;
    if rows > declaration.rows_max {
        // The sum of so many would not fit between what hides it.
        return Err(Error::TooLarge(format!(
            "table {name} has {rows} rows, more than max_rows = {}: nothing has changed",
            declaration.rows_max
        )));
    }
    if !kept.live().is_empty() {
        catalogue::require_backup(shared(session.engine()), &*change.lease, &table)?;
        lines.push(format!(
            "table {name}: backups from before now cannot read it any more when it has moved: make a new one then"
        ));
    }
    lines.extend(learned);
    kept.begin(Secret::new(define::random()?), declaration, Epoch(define::random()?));
    keep(&mut change.lease, table.id, &kept)?;
    session.guard.transaction.be_durable();
    shared(session.engine()).note_untold(table.id);
    Ok(table)
}

/// Step 2.
fn moving(session: &mut Session, change: &mut Change, table: &Arc<Table>, most: usize) -> Result<Option<Moving>> {
    let mut kept = kept(&*change.lease, table)?;
    let Some((from, rows)) = kept.to_move(most) else { return Ok(None) };
    session.guard.transaction.be_durable();
    let rows = kept.moving(from, &rows);
    keep(&mut change.lease, table.id, &kept)?;
    let from = kept.layouts().iter().find(|layout| layout.number == from).cloned();
    Ok(from.map(|from| Moving { kept, from, rows }))
}
