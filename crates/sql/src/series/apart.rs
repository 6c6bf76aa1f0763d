//! Samples that are further ahead of the clock than a table allows: counted and kept apart.
//!
//! ```text
//! INSERT --> time <= clock + future_max --> the table
//!       \--> later -----------------------> future.TABLE, a table of the same columns
//! ```
//! To the engine they are a second series table, whose number is the first one's with its highest bit set; it is made when the first
//! such sample comes, gets the columns that the first one gets, and goes with it. To a statement it is the table's definition under
//! that number: it is read, changed and deleted from as the table is. Rows that are put there are asked for no clock.

use std::borrow::Cow;
use std::sync::Arc;

use counterfoil_log::View;
use counterfoil_relation::{RowBatch, Table, TableId};
use counterfoil_series::{Batch, SeriesTables, TableNumber};

use super::options::{self, Told};
use super::{Form, is_series, rows, told};
use crate::clock::Clock;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::store::Lease;

/// The schema that names what is kept apart.
pub(crate) const FUTURE: &str = "future";

/// The bit that tells its number from the table's.
const BIT: u64 = 1 << 63;

/// What is kept apart of a series table, as a table of its own; none for a table of another kind.
pub fn kept_apart(table: &Table) -> Option<Arc<Table>> {
    is_series(table).then(|| {
        let mut apart = table.clone();
        apart.id = TableId(table.id.0 | BIT);
        Arc::new(apart)
    })
}

/// Whether a table is what is kept apart of another one.
pub(crate) fn is_apart(table: &Table) -> bool {
    table.id.0 & BIT != 0
}

/// The engine's number of the table that something is kept apart of.
pub(super) fn table_of(apart: &Table) -> TableNumber {
    TableNumber(apart.id.0 & !BIT)
}

/// Whether there is an engine's side to a series table: what is kept apart has none until something is.
pub(crate) fn is_there(tables: &SeriesTables, view: &dyn View, table: &Table) -> Result<bool> {
    if !is_apart(table) {
        return Ok(true);
    }
    tables.is_there(view, TableNumber(table.id.0)).map_err(super::error)
}

/// Samples kept apart from a series table.
///
/// # Errors
/// Those of reading.
pub fn count_apart(tables: &SeriesTables, view: &dyn View, table: &Table) -> Result<u64> {
    let Some(apart) = kept_apart(table) else { return Ok(0) };
    if !is_there(tables, view, &apart)? {
        return Ok(0);
    }
    let (count, _) = tables.count(view, TableNumber(apart.id.0)).map_err(told(&apart))?;
    Ok(count)
}

/// Tells rows that a table takes from those that are too far ahead.
///
/// # Errors
/// [`Error::Bug`] for options that were not checked.
pub(crate) fn divide(engine: &Engine, table: &Table, batch: &RowBatch) -> Result<Option<(RowBatch, RowBatch)>> {
    let form = Form::of(table)?;
    let Some(last) = last(table, &form, &engine.options.clock)? else { return Ok(None) };
    let times = rows::times(&form, batch);
    if times.iter().all(|time| *time <= last) {
        return Ok(None);
    }
    let mut parts = [RowBatch::new(batch.layout().clone(), 0), RowBatch::new(batch.layout().clone(), 0)];
    for (row, time) in times.iter().enumerate() {
        parts[usize::from(*time > last)].push_from(batch, row).map_err(Error::Relation)?;
    }
    let [taken, apart] = parts;
    Ok(Some((taken, apart)))
}

/// The last time that a table takes; none where it takes all.
pub(super) fn last(table: &Table, form: &Form, clock: &Clock) -> Result<Option<i64>> {
    let span = Told::table(table).future_max()?.filter(|_| !is_apart(table));
    let ticks = |span| options::ticks(&table.columns[form.time].kind, clock.microseconds().saturating_add(span));
    Ok(span.map(ticks))
}

/// Takes the points that are too far ahead out of a batch and keeps them apart.
pub(super) fn keep_apart<'b>(
    engine: &Engine,
    lease: &mut Lease,
    (table, form): (&Table, &Form),
    batch: Cow<'b, Batch>,
) -> Result<Cow<'b, Batch>> {
    let Some(last) = last(table, form, &engine.options.clock)? else { return Ok(batch) };
    if batch.rows.times.iter().all(|time| *time <= last) {
        return Ok(batch);
    }
    let apart = kept_apart(table).ok_or_else(|| Error::Bug("no series table".into()))?;
    let (tables, number) = (&engine.series, TableNumber(apart.id.0));
    super::define::create_apart(tables, lease, &apart)?;
    let (taken, mut ahead) = batch.split(|time| time <= last);
    // A series has another number there.
    let names = tables.keys(&**lease, form.number).map_err(told(&apart))?;
    let name = |series: &u32| names.get(*series as usize).map(|name| &**name);
    let keys = ahead.series.iter().map(name).collect::<Option<Vec<_>>>();
    let keys = keys.ok_or_else(|| Error::Bug("a point without a series".into()))?;
    ahead.series = tables.number(&mut **lease, number, keys).map_err(told(&apart))?;
    tables.insert(&mut **lease, number, &ahead).map_err(told(&apart))?;
    Ok(Cow::Owned(taken))
}

/// Places of points, and the series and time of each.
pub(super) type Wanted = (Vec<usize>, Vec<(u32, i64)>);

/// Of points at these places, with their series and times, those that lie too far ahead and whose series has others kept
/// apart: under which number these are, and the keys that the points have there.
pub(super) fn where_kept(
    engine: &Engine,
    lease: &Lease,
    (table, form): (&Table, &Form),
    places: &[usize],
    key: impl Fn(usize) -> (u32, i64),
) -> Result<Option<(TableNumber, Wanted)>> {
    let Some(last) = last(table, form, &engine.options.clock)? else { return Ok(None) };
    let Some(apart) = kept_apart(table) else { return Ok(None) };
    let ahead: Vec<usize> = places.iter().copied().filter(|at| key(*at).1 > last).collect();
    if ahead.is_empty() || !is_there(&engine.series, &**lease, &apart)? {
        return Ok(None);
    }
    let (tables, number) = (&engine.series, TableNumber(apart.id.0));
    let names = tables.keys(&**lease, form.number).map_err(told(&apart))?;
    let name = |at: &usize| names.get(key(*at).0 as usize).map(|name| &**name);
    let named = ahead.iter().map(name).collect::<Option<Vec<_>>>();
    let named = named.ok_or_else(|| Error::Bug("a point without a series".into()))?;
    let series = tables.numbers(&**lease, number, named).map_err(told(&apart))?;
    let known = ahead.into_iter().zip(series).filter_map(|(at, series)| Some((at, (series?, key(at).1))));
    Ok(Some((number, known.unzip())))
}

/// What the writer of a statement is told of rows that were kept apart.
pub(crate) fn notice(table: &Table, rows: u64) -> String {
    let (counted, verb) = if rows == 1 { ("1 point", "is") } else { (&*format!("{rows} points"), "are") };
    let span = Told::table(table).future_max_text();
    format!(
        "{counted} of table {} {verb} more than {span} ahead of the clock: kept apart, in {FUTURE}.{} (future_max)",
        table.name,
        crate::show::quoted(&table.name)
    )
}
