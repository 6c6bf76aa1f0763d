//! Retention: after a commit, points go that are too old, or that keep new ones from finding room.
//!
//! ```text
//! rows are stored --> noted: which table --> COMMIT --> is anything due? --> a commit of its own: it goes
//! ```
//! 1. By time (`retention = '2 years'`): before the smaller of the clock and the newest stored time, less that span. A clock that is
//!    wrong drops nothing that newer points do not drop too, and a point from the future nothing before its time has come.
//! 2. It is done when the bound has moved by a hundredth of the span, an hour at most: a commit now and then, not each one.
//! 3. By space (`retention = 'space'`): a sixteenth of the medium, 64 MiB at most, is kept in reach of what comes next, or the oldest
//!    points of the greatest such table go. What was given back and waits (for the counter, for readers) counts as room, so that
//!    whoever reads for long keeps nothing dropping.
//! 4. Only tables are looked at that were written to since the database was opened, or told something else: no others have newer
//!    points.
//! 5. Each table is a commit of its own, and is due until that commit stands: one that cannot be read keeps no other waiting.
//!
//! A cut leaves what the last commit had: what is due is due again when the table is written next.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_log::{View, Writer};
use counterfoil_relation::{Table, TableId};
use counterfoil_series::Dropped;
use parking_lot::Mutex;

use super::options::{self, Retention, Told};
use super::{Form, is_apart, is_series, told};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Pages that one commit looks at or gives back by time; the next one goes on.
const PAGES_AT_ONCE: u64 = 1024;
/// The bound moves when it would by this part of the span, or by so many microseconds.
const STEPS: i64 = 100;
const STEP_MAX: i64 = 3_600_000_000;
/// This part of the medium is kept in reach, and so many bytes of it at most.
const ROOM_PART: u64 = 16;
const ROOM_BYTES_MAX: u64 = 64 << 20;
/// This part of that is kept in reach of whatever takes whole extents.
const EXTENTS_PART: u64 = 4;

/// Tables that were written to and have a retention.
#[derive(Default)]
pub(crate) struct Keeper(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    due: BTreeMap<TableId, Due>,
    /// What is due of a table once the commit under way stands that lets its points go.
    then: Option<(TableId, Due)>,
}

/// When there is something to do for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    /// Whether rows were stored since it was last looked.
    is_written: bool,
    /// When the clock, in the table's unit, is so far; before the first look at once.
    from: i64,
}

impl Keeper {
    /// Notes that rows come into a table, or that it was told something else.
    pub(super) fn note(&self, table: &Table) -> Result<()> {
        if Told::table(table).retention()? == Retention::None || is_apart(table) {
            return Ok(());
        }
        self.0.lock().note(table.id);
        Ok(())
    }

    /// Notes that a table was told something else: what is due is asked anew.
    pub(super) fn note_told(&self, table: &Table) -> Result<()> {
        self.0.lock().due.remove(&table.id);
        self.note(table)
    }

    /// Notes all tables that there are: what is due may be so since before the database was opened.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn note_all(&self, engine: &Engine, view: &dyn View) -> Result<()> {
        let tables = engine.relations.tables(view).map_err(Error::Relation)?;
        tables.iter().filter(|table| is_series(table)).try_for_each(|table| self.note(table))
    }

    /// The tables of which something may be due.
    pub(crate) fn written(&self) -> Vec<TableId> {
        let noted = self.0.lock();
        noted.due.iter().filter(|(_, due)| due.is_written).map(|(id, _)| *id).collect()
    }

    /// Lets go what is due of a table, in a commit under way of its own; whether there is anything to commit. It stays due until
    /// [`Keeper::committed`]; one that cannot be read is tried again when it is written next.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub(crate) fn keep(&self, engine: &Engine, writer: &mut Writer, id: TableId) -> Result<bool> {
        let kept = self.keep_one(engine, writer, id);
        if kept.as_ref().is_err_and(|error| !error.is_full()) {
            self.0.lock().put_off(id);
        }
        kept
    }

    fn keep_one(&self, engine: &Engine, writer: &mut Writer, id: TableId) -> Result<bool> {
        let table = engine.relations.table_by_id(&*writer, id).map_err(Error::Relation)?;
        let Some(table) = table.filter(|table| is_series(table)) else {
            self.0.lock().due.remove(&id);
            return Ok(false);
        };
        let then = match Told::table(&table).retention()? {
            Retention::None => None,
            Retention::Time(span) => self.keep_by_time(engine, writer, &table, span)?,
            Retention::Space => keep_by_space(engine, writer, &table)?,
        };
        Ok(self.0.lock().kept(id, then))
    }

    /// The commit under way stands.
    pub(crate) fn committed(&self) {
        self.0.lock().committed();
    }

    /// The commit under way was undone: what was due is.
    pub(crate) fn rolled_back(&self) {
        self.0.lock().then = None;
    }

    fn keep_by_time(&self, engine: &Engine, writer: &mut Writer, table: &Arc<Table>, span: i64) -> Result<Option<Due>> {
        let form = Form::of(table)?;
        let ticks = |microseconds| options::ticks(&table.columns[form.time].kind, microseconds);
        let clock = ticks(engine.options.clock.microseconds());
        let from = self.0.lock().due.get(&table.id).map_or(i64::MIN, |due| due.from);
        if clock < from {
            return Ok(None);
        }
        let series = &engine.series;
        let newest = series.newest_of_all(&*writer, form.number).map_err(told(table))?;
        let Some(now) = newest.map(|newest| newest.min(clock)).filter(|now| from <= *now) else { return Ok(None) };
        let mark = now.saturating_sub(ticks(span));
        let dropped = series.retain_from(&mut *writer, form.number, mark, PAGES_AT_ONCE).map_err(told(table))?;
        let step = ticks((span / STEPS).clamp(1, STEP_MAX));
        let from = if dropped.more { i64::MIN } else { now.saturating_add(step) };
        Ok(Some(Due { is_written: dropped.more, from }))
    }
}

impl Noted {
    fn note(&mut self, id: TableId) {
        self.due.entry(id).or_insert(Due { is_written: true, from: i64::MIN }).is_written = true;
    }

    /// Takes note of what is due of a table once the commit under way stands; without such a commit nothing is before it is
    /// written again. Whether there is one.
    fn kept(&mut self, id: TableId, then: Option<Due>) -> bool {
        if then.is_none() {
            self.put_off(id);
        }
        self.then = then.map(|due| (id, due));
        self.then.is_some()
    }

    /// Nothing is due of a table until it is written again.
    fn put_off(&mut self, id: TableId) {
        self.due.entry(id).and_modify(|due| due.is_written = false);
    }

    fn committed(&mut self) {
        if let Some((id, then)) = self.then.take()
            && let Some(due) = self.due.get_mut(&id)
        {
            *due = then;
        }
    }
}

/// Lets the oldest points go if there is little room for those of a table that come next.
fn keep_by_space(engine: &Engine, writer: &mut Writer, table: &Arc<Table>) -> Result<Option<Due>> {
    let (own, left) = (pages_of(engine, writer, table)?, writer.pages_left());
    let wanted = (ROOM_BYTES_MAX / writer.payload_bytes() as u64).min(writer.pages_max() / ROOM_PART);
    // Journals take extents, and a pool gives only those back that it has too many of.
    let for_extents = (wanted / EXTENTS_PART).saturating_sub(left + own.too_many);
    let missing = wanted.saturating_sub(left + own.spare).max(for_extents);
    if missing == 0 {
        return Ok(None);
    }
    let Some((greatest, its)) = greatest(engine, writer)? else { return Ok(None) };
    // What the greatest one has too much of comes to the others with its next empty extents, so it loses little as long as there is
    // room for half of what is wanted.
    let on_its_way = if greatest.id == table.id { 0 } else { its.too_many.min(wanted / 2) };
    // Never all of a table at once: if that was not enough, the next commit goes on.
    let pages = missing.saturating_sub(on_its_way).clamp(1, its.live / 2 + 1);
    let form = Form::of(&greatest)?;
    let dropped = engine.series.drop_oldest(&mut *writer, form.number, pages).map_err(told(&greatest))?;
    Ok((dropped != Dropped::default()).then_some(Due { is_written: false, from: i64::MIN }))
}

/// Pages of a table.
struct Pages {
    live: u64,
    /// Free, or on the way to become so.
    spare: u64,
    /// Those of them that its pool does not keep for itself.
    too_many: u64,
}

fn pages_of(engine: &Engine, writer: &Writer, table: &Arc<Table>) -> Result<Pages> {
    let pool = engine.series.pool(writer, Form::of(table)?.number).map_err(told(table))?;
    let pool = writer.pool_use(pool)?;
    let (live, spare) = (pool.live_pages, pool.pages - pool.live_pages);
    Ok(Pages { live, spare, too_many: spare.saturating_sub(pool.pages * u64::from(pool.free_percent) / 100) })
}

/// Of the tables whose oldest points go where there is no room the one with most pages. One that cannot be read gives none.
fn greatest(engine: &Engine, writer: &Writer) -> Result<Option<(Arc<Table>, Pages)>> {
    let mut greatest: Option<(Arc<Table>, Pages)> = None;
    for table in engine.relations.tables(writer).map_err(Error::Relation)? {
        if !is_series(&table) || Told::table(&table).retention()? != Retention::Space {
            continue;
        }
        let Ok(pages) = pages_of(engine, writer, &table) else { continue };
        if greatest.as_ref().is_none_or(|(_, most)| pages.live > most.live) {
            greatest = Some((table, pages));
        }
    }
    Ok(greatest)
}

/// What the writer of a statement is told of rows that were not stored.
pub(crate) fn notice(table: &Table, rows: u64) -> String {
    let (counted, verb) = if rows == 1 { ("1 point", "is") } else { (&*format!("{rows} points"), "are") };
    format!("{counted} of table {} {verb} older than what it keeps: not stored (retention)", table.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_stays_so_until_its_commit_stands() {
        let (keeper, one, other) = (Keeper::default(), TableId(1), TableId(2));
        let keep = |id, then| keeper.0.lock().kept(id, then);
        keeper.0.lock().note(one);
        keeper.0.lock().note(other);
        let later = Due { is_written: false, from: 100 };
        assert!(keep(one, Some(later)));
        keeper.rolled_back();
        keeper.committed();
        assert_eq!(keeper.written(), [one, other], "what was undone is due");
        assert!(keep(one, Some(later)));
        keeper.committed();
        assert_eq!(keeper.written(), [other]);
        assert_eq!(keeper.0.lock().due[&one], later);
        assert!(!keep(other, None));
        assert_eq!(keeper.written(), [], "where nothing is due there is nothing to commit");
        keeper.0.lock().note(one);
        assert_eq!(keeper.0.lock().due[&one], Due { is_written: true, from: 100 });
    }
}
