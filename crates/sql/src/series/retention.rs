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

/// Tables that were written to and have a retention.
#[derive(Default)]
pub(crate) struct Keeper(Mutex<BTreeMap<TableId, Due>>);

/// When there is something to do for a table.
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
        self.0.lock().entry(table.id).or_insert(Due { is_written: true, from: i64::MIN }).is_written = true;
        Ok(())
    }

    /// Notes that a table was told something else: what is due is asked anew.
    pub(super) fn note_told(&self, table: &Table) -> Result<()> {
        self.0.lock().remove(&table.id);
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

    /// Lets go what is due, in a commit under way of its own; whether there is anything to commit.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn keep(&self, engine: &Engine, writer: &mut Writer) -> Result<bool> {
        let written = |(id, due): (&TableId, &mut Due)| std::mem::take(&mut due.is_written).then_some(*id);
        let ids: Vec<TableId> = self.0.lock().iter_mut().filter_map(written).collect();
        let mut is_any = false;
        for id in ids {
            let table = engine.relations.table_by_id(&*writer, id).map_err(Error::Relation)?;
            let Some(table) = table.filter(|table| is_series(table)) else {
                self.0.lock().remove(&id);
                continue;
            };
            is_any |= match Told::table(&table).retention()? {
                Retention::None => false,
                Retention::Time(span) => self.keep_by_time(engine, writer, &table, span)?,
                Retention::Space => keep_by_space(engine, writer, &table)?,
            };
        }
        Ok(is_any)
    }

    fn keep_by_time(&self, engine: &Engine, writer: &mut Writer, table: &Arc<Table>, span: i64) -> Result<bool> {
        let form = Form::of(table)?;
        let ticks = |microseconds| options::ticks(&table.columns[form.time].kind, microseconds);
        let clock = ticks(engine.options.clock.microseconds());
        let from = self.0.lock().get(&table.id).map_or(i64::MIN, |due| due.from);
        if clock < from {
            return Ok(false);
        }
        let series = &engine.series;
        let newest = series.newest_of_all(&*writer, form.number).map_err(told(table))?;
        let Some(now) = newest.map(|newest| newest.min(clock)).filter(|now| from <= *now) else { return Ok(false) };
        let mark = now.saturating_sub(ticks(span));
        let dropped = series.retain_from(&mut *writer, form.number, mark, PAGES_AT_ONCE).map_err(told(table))?;
        let step = ticks((span / STEPS).clamp(1, STEP_MAX));
        if let Some(due) = self.0.lock().get_mut(&table.id) {
            due.from = if dropped.more { i64::MIN } else { now.saturating_add(step) };
            due.is_written |= dropped.more;
        }
        Ok(true)
    }
}

/// Lets the oldest points go if there is little room for those of a table that come next.
fn keep_by_space(engine: &Engine, writer: &mut Writer, table: &Arc<Table>) -> Result<bool> {
    let room = pages_of(engine, writer, table)?.spare + writer.pages_left();
    let wanted = (ROOM_BYTES_MAX / writer.payload_bytes() as u64).min(writer.pages_max() / ROOM_PART);
    if room >= wanted {
        return Ok(false);
    }
    let Some((greatest, live)) = greatest(engine, writer)? else { return Ok(false) };
    // Never all of a table at once: if that was not enough, the next commit goes on.
    let pages = (wanted - room).min(live / 2 + 1);
    let form = Form::of(&greatest)?;
    let dropped = engine.series.drop_oldest(&mut *writer, form.number, pages).map_err(told(&greatest))?;
    Ok(dropped != Dropped::default())
}

/// Pages of a table.
struct Pages {
    live: u64,
    /// Free, or on the way to become so.
    spare: u64,
}

fn pages_of(engine: &Engine, writer: &Writer, table: &Arc<Table>) -> Result<Pages> {
    let pool = engine.series.pool(writer, Form::of(table)?.number).map_err(told(table))?;
    let pool = writer.pool_use(pool)?;
    Ok(Pages { live: pool.live_pages, spare: pool.pages - pool.live_pages })
}

/// Of the tables whose oldest points go where there is no room the one with most pages, and how many these are.
fn greatest(engine: &Engine, writer: &Writer) -> Result<Option<(Arc<Table>, u64)>> {
    let mut greatest: Option<(Arc<Table>, u64)> = None;
    for table in engine.relations.tables(writer).map_err(Error::Relation)? {
        if !is_series(&table) || Told::table(&table).retention()? != Retention::Space {
            continue;
        }
        let live = pages_of(engine, writer, &table)?.live;
        if greatest.as_ref().is_none_or(|(_, most)| live > *most) {
            greatest = Some((table, live));
        }
    }
    Ok(greatest)
}

/// What the writer of a statement is told of rows that were not stored.
pub(crate) fn notice(table: &Table, rows: u64) -> String {
    let (counted, verb) = if rows == 1 { ("1 point", "is") } else { (&*format!("{rows} points"), "are") };
    format!("{counted} of table {} {verb} older than what it keeps: not stored (retention)", table.name)
}
