//! Settling: fresh parts become runs, runs of a tier become one of the next, rows of many segments become one segment.
//!
//! ```text
//! fresh --16384 rows--> tier 0 --8 runs--> tier 1 --8 runs--> tier 2 ...
//! ```
//!
//! All of it happens inside a transaction of the caller; what it replaces is dropped by the same commit, and views from
//! before keep reading what they had.

use alloc::vec::Vec;

use counterfoil_log::View;

use crate::access::{Access, Shared};
use crate::files::Coverage;
use crate::fresh;
use crate::key::{Keys, split_entry, stored};
use crate::read::Wanted;
use crate::run::{Merge, Run, RunWriter};
use crate::state::UPDATE_HEAD_BYTES;
use crate::vacuum::{self, Joins};
use crate::{Error, IndexDef, RowId, Storage, TableId, catalog};

/// Runs of a tier that are merged into one of the next.
const TIER_RUNS: usize = 8;
/// Entries sorted in memory while an index is built.
const BUILD_ENTRIES: usize = 1 << 17;
/// Entries looked at together.
const PIECE_ENTRIES: usize = 4096;
/// Log entries from which on a table may be mostly dead, in rows of a fresh part.
const DEAD_FRESH_PARTS: u64 = 4;
/// Log entries for each row that is there, from which on a table is mostly dead.
const DEAD_PER_ROW: u64 = 4;

/// Notes that a table has changed, so that [`maintain`] looks at it.
pub(crate) fn note(shared: &Shared, table: TableId) {
    shared.touched.write(|touched| touched.insert(table));
}

/// What a statement leaves in the fresh parts is kept within bounds before the next one comes.
pub(crate) fn after_statement(shared: &Shared, writer: &mut dyn Storage, access: &Access) -> Result<(), Error> {
    note(shared, access.table.id);
    let due: Vec<_> = access.table.indexes.iter().filter(|index| is_due(shared, writer, access, index)).collect();
    for index in due {
        flush(shared, writer, access.table.id, index)?;
        // Within a long transaction runs would become too many; otherwise `maintain` sees to it.
        merge_tiers(shared, writer, access.table.id, index, 2 * TIER_RUNS)?;
    }
    Ok(())
}

/// Whether so many rows or updates came in since the last run that reading them again would take too long.
fn is_due(shared: &Shared, writer: &dyn View, access: &Access, index: &IndexDef) -> bool {
    let Some(files) = access.files.index(index.id) else { return false };
    let rows = access.next_row().saturating_sub(files.coverage.rows);
    let entry_bytes = (UPDATE_HEAD_BYTES + access.shape.newest.width()) as u64;
    let new_bytes = access
        .parts
        .iter()
        .map(|part| part.lengths.updates - files.coverage.of_updates(&part.segment).min(part.lengths.updates));
    let updates: u64 = new_bytes.sum::<u64>() / entry_bytes;
    let entries = fresh::of(&shared.states.fresh, writer, access, index, true).map_or(0, |fresh| fresh.count());
    entries >= shared.fresh_rows || rows + updates >= 4 * shared.fresh_rows as u64
}

/// What the runs of an index know once its fresh part is one of them.
fn coverage_now(access: &Access) -> Coverage {
    let updates = access.parts.iter().map(|part| (part.segment.group, part.lengths.updates));
    Coverage {
        rewrites: access.files.rewrites,
        rows: access.next_row(),
        updates: updates.filter(|(_, bytes)| *bytes > 0).collect(),
    }
}

/// Turns the fresh part of an index into a run.
fn flush(shared: &Shared, writer: &mut dyn Storage, table: TableId, index: &IndexDef) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table)?;
    let fresh = fresh::of(&shared.states.fresh, writer, &access, index, true)?;
    let (entries, doubtful) = (fresh.entries(), fresh.is_doubtful());
    let mut run = RunWriter::create(writer, 0, entries.len() as u64)?;
    for piece in entries.chunks(PIECE_ENTRIES) {
        for entry in current(writer, &access, index, piece, doubtful)? {
            run.push(writer, entry)?;
        }
    }
    let run = run.finish(writer)?;
    let mut files = (*access.files).clone();
    if let Some(files) = files.index_mut(index.id) {
        files.coverage = coverage_now(&access);
        files.runs.extend(run);
    }
    catalog::put_files(writer, table, &files)
}

/// Of some entries, those of rows that are there and have this key now. The others may go: whoever reads the runs this
/// transaction leaves sees the rows as they are now, or newer.
fn current<'e, E: AsRef<[u8]>>(
    view: &dyn View,
    access: &Access,
    index: &IndexDef,
    entries: &'e [E],
    doubt_all: bool,
) -> Result<Vec<&'e [u8]>, Error> {
    let wrong = || Error::corrupt(&access.table.name, "entry of an index run");
    let mut kept = Vec::with_capacity(entries.len());
    // Entries whose rows have to be asked.
    let mut doubtful: Vec<(usize, RowId)> = Vec::new();
    for entry in entries.iter().map(AsRef::as_ref) {
        let (_, row) = split_entry(entry).ok_or_else(wrong)?;
        let Some((part, _)) = access.locate(row) else { continue };
        let part = &access.parts[part];
        let (deleted, updated) =
            part.state.read(|state| (state.is_deleted(row.0, part.lengths), state.update_of(row.0, part.lengths)));
        if deleted {
            continue;
        }
        if doubt_all || updated.is_some() {
            doubtful.push((kept.len(), row));
        }
        kept.push(entry);
    }
    if doubtful.is_empty() {
        return Ok(kept);
    }
    let parts = access.key_parts(index)?;
    let rows: Vec<_> = doubtful.iter().map(|(_, row)| *row).collect();
    let block = access.fetch(view, &rows, &Wanted::only(parts.columns()))?;
    let keys = Keys::of_parts(&block.rows, &parts).map_err(access.named())?;
    let is_stale = |(row, (place, _)): &(usize, &(usize, RowId))| {
        split_entry(kept[*place]).is_none_or(|(key, _)| key != stored(keys.key(*row)))
    };
    let stale: Vec<usize> = doubtful.iter().enumerate().filter(is_stale).map(|(_, (place, _))| *place).collect();
    let mut stale = stale.into_iter().peekable();
    let kept = kept.into_iter().enumerate().filter(|(place, _)| stale.next_if_eq(place).is_none());
    Ok(kept.map(|(_, entry)| entry).collect())
}

/// Merges runs, tier by tier, while a tier has `runs_max` of them. Whether any was.
fn merge_tiers(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: TableId,
    index: &IndexDef,
    runs_max: usize,
) -> Result<bool, Error> {
    let mut merged = false;
    loop {
        let access = shared.access_to_write(writer, table)?;
        let runs = access.files.index(index.id).map_or(&[][..], |files| &files.runs);
        let full = |tier: u8| runs.iter().filter(|run| run.tier == tier).count() >= runs_max;
        let Some(tier) =
            (0..u8::MAX).take_while(|tier| runs.iter().any(|run| run.tier >= *tier)).find(|tier| full(*tier))
        else {
            return Ok(merged);
        };
        let inputs: Vec<Run> = runs.iter().filter(|run| run.tier == tier).cloned().collect();
        let run = merge(shared, writer, &access, index, &inputs, tier + 1)?;
        let mut files = (*access.files).clone();
        if let Some(files) = files.index_mut(index.id) {
            let place = files.runs.iter().position(|run| run.tier == tier).unwrap_or(0);
            files.runs.retain(|run| run.tier != tier);
            run.into_iter().for_each(|run| files.runs.insert(place, run));
        }
        catalog::put_files(writer, table, &files)?;
        merged = true;
    }
}

/// Makes one run of all that an index has.
pub(crate) fn merge_all(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: TableId,
    index: &IndexDef,
) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table)?;
    let runs = access.files.index(index.id).map_or(&[][..], |files| &files.runs);
    if runs.len() <= 1 {
        return Ok(());
    }
    let entries = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.entries));
    let tier = tier_of(entries, shared.fresh_rows);
    let run = merge(shared, writer, &access, index, runs, tier)?;
    let mut files = (*access.files).clone();
    if let Some(files) = files.index_mut(index.id) {
        files.runs = run.into_iter().collect();
    }
    catalog::put_files(writer, table, &files)
}

/// Makes one run of several and drops them.
fn merge(
    shared: &Shared,
    writer: &mut dyn Storage,
    access: &Access,
    index: &IndexDef,
    inputs: &[Run],
    tier: u8,
) -> Result<Option<Run>, Error> {
    let named = access.named();
    let entries_max = inputs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.entries));
    let mut output = RunWriter::create(writer, tier, entries_max)?;
    let mut merge = Merge::new(writer, &inputs.iter().collect::<Vec<_>>()).map_err(&named)?;
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(PIECE_ENTRIES));
    loop {
        bytes.clear();
        ends.clear();
        while ends.len() < PIECE_ENTRIES && merge.next(writer, &mut bytes).map_err(&named)? {
            ends.push(bytes.len());
        }
        if ends.is_empty() {
            break;
        }
        let starts = core::iter::once(0).chain(ends.iter().copied());
        let piece: Vec<&[u8]> = starts.zip(&ends).map(|(start, end)| &bytes[start..*end]).collect();
        for entry in current(writer, access, index, &piece, false)? {
            output.push(writer, entry)?;
        }
    }
    for run in inputs {
        shared.drop_group(writer, &access.table.name, run.group())?;
    }
    output.finish(writer)
}

/// Makes runs of all rows of a table for an index that has none.
pub(crate) fn build(shared: &Shared, writer: &mut dyn Storage, table: TableId, index: &IndexDef) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table)?;
    let parts = access.key_parts(index)?;
    let wanted = Wanted::only(parts.columns());
    let mut runs: Vec<Run> = Vec::new();
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for part in 0..access.parts.len() {
        let mut position = 0;
        while position < access.parts[part].count {
            let count = (access.parts[part].count - position).min(PIECE_ENTRIES as u64) as usize;
            let block = access.read(writer, part, position, count, &wanted)?;
            let keys = Keys::of_parts(&block.rows, &parts).map_err(access.named())?;
            entries.extend(block.visible_rows().map(|row| crate::key::entry(keys.key(row), block.id(row))));
            position += block.count() as u64;
            if entries.len() >= BUILD_ENTRIES {
                runs.extend(sorted_run(writer, &mut entries)?);
            }
        }
    }
    runs.extend(sorted_run(writer, &mut entries)?);
    let run = match runs.len() {
        0 | 1 => runs.pop(),
        _ => merge(shared, writer, &access, index, &runs, 1)?,
    };
    let mut files = (*access.files).clone();
    if let Some(files) = files.index_mut(index.id) {
        let tier = run.as_ref().map_or(0, |run| tier_of(run.entries, shared.fresh_rows));
        files.coverage = coverage_now(&access);
        files.runs = run.into_iter().map(|run| run.with_tier(tier)).collect();
    }
    catalog::put_files(writer, table, &files)
}

/// The tier of a run of so many entries.
fn tier_of(entries: u64, fresh_rows: usize) -> u8 {
    let mut tier = 0;
    let mut size = fresh_rows.max(1) as u64;
    while size.saturating_mul(TIER_RUNS as u64) <= entries {
        size *= TIER_RUNS as u64;
        tier += 1;
    }
    tier
}

fn sorted_run(writer: &mut dyn Storage, entries: &mut Vec<Vec<u8>>) -> Result<Option<Run>, Error> {
    entries.sort_unstable();
    let mut run = RunWriter::create(writer, 0, entries.len() as u64)?;
    for entry in entries.drain(..) {
        run.push(writer, &entry)?;
    }
    run.finish(writer)
}

/// What is due in tables that have changed; whether anything was done.
pub(crate) fn maintain(shared: &Shared, writer: &mut dyn Storage) -> Result<bool, Error> {
    let mut done = false;
    for id in shared.touched.write(core::mem::take) {
        let Some(table) = shared.catalog.table(writer, id)? else { continue };
        if is_mostly_dead(shared, &shared.access_to_write(writer, id)?) {
            vacuum::rewrite(shared, writer, id, Joins::Kept)?;
            done = true;
            continue;
        }
        for index in &table.indexes {
            done |= merge_tiers(shared, writer, id, index, TIER_RUNS)?;
        }
    }
    Ok(done)
}

fn is_mostly_dead(shared: &Shared, access: &Access) -> bool {
    let dead: u64 = access.parts.iter().map(|part| part.state.read(|state| state.entries())).sum();
    dead >= DEAD_FRESH_PARTS * shared.fresh_rows as u64 && dead / DEAD_PER_ROW >= access.count()
}
