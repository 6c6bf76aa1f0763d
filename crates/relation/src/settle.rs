//! Settling: the fresh part of an index becomes a run, and the rows of a table become runs of a new index.
//!
//! All of it happens inside a transaction of the caller; views from before keep reading what they had.

use alloc::vec::Vec;
use core::mem;

use counterfoil_log::View;

use crate::access::{Access, Shared};
use crate::files::Coverage;
use crate::fresh;
use crate::gathered::Gathered;
use crate::key::{KeyParts, Keys, split_entry, stored};
use crate::merge::{self, Due};
use crate::read::Wanted;
use crate::run::RunWriter;
use crate::state::{SharedFresh, UPDATE_HEAD_BYTES};
use crate::{Error, IndexDef, RowId, Storage, TableId, catalog, few_or_many};

/// Entries sorted in memory while an index is built, at least, in rows of a fresh part.
const BUILD_FRESH_PARTS: usize = 8;
/// Entries looked at together.
const PIECE_ENTRIES: usize = few_or_many(16, 4096);

/// Notes that a table has changed, so that [`crate::Relations::maintain`] looks at it.
pub(crate) fn note(shared: &Shared, table: TableId) {
    shared.touched.write(|touched| touched.insert(table));
}

/// What a statement leaves in the fresh parts is kept within bounds before the next one comes.
pub(crate) fn after_statement(shared: &Shared, writer: &mut dyn Storage, access: Access) -> Result<(), Error> {
    let table = access.table.clone();
    note(shared, table.id);
    let due: Vec<_> = table.indexes.iter().filter(|index| is_due(shared, writer, &access, index)).collect();
    // It says where the runs were.
    drop(access);
    for index in due {
        flush(shared, writer, table.id, index)?;
        // Within a long transaction runs would become too many; otherwise `maintain` sees to it. A step looks at more entries than
        // the run has that just came.
        merge::step(shared, writer, table.id, index, Due::Crowded)?;
    }
    relieve_memory(shared, writer)
}

/// Keeps what fresh parts take within what deletes and updates leave of the memory for them: the one that takes the most becomes a run,
/// until the others have room. A quarter is theirs in any case.
fn relieve_memory(shared: &Shared, writer: &mut dyn Storage) -> Result<(), Error> {
    if shared.new_bytes == usize::MAX {
        return Ok(());
    }
    let taken = shared.states.change_bytes().saturating_add(shared.states.map_bytes());
    let room = shared.new_bytes.saturating_sub(taken).max(shared.new_bytes / 4);
    if shared.states.fresh_bytes() > room {
        shared.states.forget_fresh(|_, fresh| !fresh.is_written());
    }
    while shared.states.fresh_bytes() > room {
        let Some((id, index)) = shared.states.fullest_fresh() else { return Ok(()) };
        let table = shared.catalog.table(writer, id)?;
        if let Some(index) = table.as_ref().and_then(|table| table.index(index)) {
            flush(shared, writer, id, index)?;
            merge::step(shared, writer, id, index, Due::Crowded)?;
        }
        // What older views had of it too: they read it again.
        shared.states.forget_fresh(|table, fresh| table == id && fresh.index == index);
    }
    Ok(())
}

/// Whether so many rows or updates came in since the last run that reading them again would take too long.
fn is_due(shared: &Shared, writer: &dyn View, access: &Access, index: &IndexDef) -> bool {
    let Ok(files) = shared.index_files(writer, access, index.id) else { return false };
    let rows = access.next_row().saturating_sub(files.coverage.rows);
    let entry_bytes = (UPDATE_HEAD_BYTES + access.shape.newest.width()) as u64;
    let new_bytes = access
        .parts
        .iter()
        .map(|part| part.lengths.updates - files.coverage.of_updates(&part.segment).min(part.lengths.updates));
    let updates: u64 = new_bytes.sum::<u64>() / entry_bytes;
    let entries = fresh::of(&shared.states.fresh, writer, access, (index, &files.coverage), true)
        .map_or(0, |fresh| fresh.count());
    entries >= shared.fresh_rows || rows + updates >= 4 * shared.fresh_rows as u64
}

/// What the runs of an index know once its fresh part is one of them.
fn coverage_now(access: &Access) -> Coverage {
    let updates = access.parts.iter().map(|part| (part.segment.group, part.lengths.updates));
    Coverage {
        rewrites: access.files.rewrites,
        renewals: access.files.renewals,
        rows: access.next_row(),
        updates: updates.filter(|(_, bytes)| *bytes > 0).collect(),
    }
}

/// Turns the fresh part of an index into a run.
pub(crate) fn flush(shared: &Shared, writer: &mut dyn Storage, table: TableId, index: &IndexDef) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table)?;
    let files = shared.index_files(writer, &access, index.id)?;
    let fresh = fresh::of(&shared.states.fresh, writer, &access, (index, &files.coverage), true)?;
    let beside = files.group_beside(files.runs.len(), 0);
    drop(files);
    if cfg!(feature = "small") {
        // Views from before read again what this was; where it would be kept for them, it would take what others could.
        shared.states.forget_fresh(|id, fresh| id == table && fresh.index == index.id);
    }
    let (count, doubtful) = (fresh.count(), fresh.is_doubtful());
    let renewals = access.files.renewals;
    let blocks = access.blocks(index, writer)?;
    let run = RunWriter::new(blocks, beside, (0, renewals), count as u64);
    let mut run = run.buffering(shared.merge_bytes);
    for from in (0..count).step_by(PIECE_ENTRIES) {
        let doubt = if doubtful { Doubt::All } else { Doubt::Since(renewals) };
        for entry in current(writer, &access, index, &fresh.piece(from, PIECE_ENTRIES), doubt)? {
            run.push(writer, entry)?;
        }
    }
    drop(fresh);
    add_run(shared, writer, &access, index, run)
}

/// Finishes a run of all rows that there are, and makes it the newest of an index.
fn add_run(
    shared: &Shared,
    writer: &mut dyn Storage,
    access: &Access,
    index: &IndexDef,
    run: RunWriter,
) -> Result<(), Error> {
    let run = run.finish(writer)?;
    let mut files = shared.take_index(writer, access, index.id)?;
    files.coverage = coverage_now(access);
    if let (Some(before), Some(run)) = (files.runs.last(), &run) {
        assert!(run.tier <= before.tier, "tiers do not rise");
    }
    files.runs.extend(run);
    catalog::put_index(writer, access.table.id, index.id, &files)
}

/// Which entries are held against their rows.
#[derive(Clone, Copy)]
pub(crate) enum Doubt {
    All,
    /// Those of rows that were updated since the entries, from before so many renewals, were looked at.
    Since(u64),
}

/// Of some entries, those of rows that are there and have this key now. The others may go: whoever reads the runs this
/// transaction leaves sees the rows as they are now, or newer.
pub(crate) fn current<'e, E: AsRef<[u8]>>(
    view: &dyn View,
    access: &Access,
    index: &IndexDef,
    entries: &'e [E],
    doubt: Doubt,
) -> Result<Vec<&'e [u8]>, Error> {
    let wrong = || Error::corrupt(&access.table.name, "entry of an index run");
    let mut kept = Vec::with_capacity(entries.len());
    if let (Doubt::Since(_), Some(rows)) = (doubt, access.unchanged_rows()) {
        for entry in entries.iter().map(AsRef::as_ref) {
            let (_, row) = split_entry(entry).ok_or_else(wrong)?;
            if rows.contains(&row.0) {
                kept.push(entry);
            }
        }
        return Ok(kept);
    }
    // Entries whose rows have to be asked.
    let mut doubtful: Vec<(usize, RowId)> = Vec::new();
    for entry in entries.iter().map(AsRef::as_ref) {
        let (_, row) = split_entry(entry).ok_or_else(wrong)?;
        let Some((part, _)) = access.locate(view, row)? else { continue };
        let part = &access.parts[part];
        if part.state.read(|state| state.is_deleted(row.0, part.lengths)) {
            continue;
        }
        let is_doubtful = match doubt {
            Doubt::All => true,
            Doubt::Since(renewals) => part.may_have_had_other_keys(view, row, renewals).map_err(access.named())?,
        };
        if is_doubtful {
            doubtful.push((kept.len(), row));
        }
        kept.push(entry);
    }
    if doubtful.is_empty() {
        return Ok(kept);
    }
    let parts = access.key_parts(index)?;
    let rows: Vec<_> = doubtful.iter().map(|(_, row)| *row).collect();
    let wanted = Wanted::only(parts.columns()).apart(matches!(parts, KeyParts::Join(_)));
    let block = access.fetch(view, &rows, &wanted)?;
    let keys = Keys::of_parts(&block.rows, &parts).map_err(access.named())?;
    let is_stale = |(row, (place, _)): &(usize, &(usize, RowId))| {
        split_entry(kept[*place]).is_none_or(|(key, _)| key != stored(keys.key(*row)))
    };
    let stale: Vec<usize> = doubtful.iter().enumerate().filter(is_stale).map(|(_, (place, _))| *place).collect();
    let mut stale = stale.into_iter().peekable();
    let kept = kept.into_iter().enumerate().filter(|(place, _)| stale.next_if_eq(place).is_none());
    Ok(kept.map(|(_, entry)| entry).collect())
}

/// Makes runs of all rows of a table for an index that has none.
pub(crate) fn build(shared: &Shared, writer: &mut dyn Storage, table: TableId, index: &IndexDef) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table)?;
    let parts = access.key_parts(index)?;
    let wanted = Wanted::only(parts.columns());
    let mut built = Building { shared, table, index, entries: Gathered::default() };
    let piece_entries = PIECE_ENTRIES.min(built.entries_least());
    for part in 0..access.parts.len() {
        let mut position = 0;
        while position < access.parts[part].count {
            let count = (access.parts[part].count - position).min(piece_entries as u64) as usize;
            let block = access.read(writer, part, position, count, &wanted)?;
            let keys = Keys::of_parts(&block.rows, &parts).map_err(access.named())?;
            for row in block.visible_rows() {
                if built.is_full() {
                    built.add_run(writer)?;
                }
                built.entries.push(keys.key(row), block.id(row));
            }
            position += block.count() as u64;
        }
    }
    built.add_run(writer)?;
    while merge::step(shared, writer, table, index, Due::Several)? {}
    Ok(())
}

/// An index being built: nobody asks it before the end, though the catalog of this transaction has its runs.
struct Building<'a> {
    shared: &'a Shared,
    table: TableId,
    index: &'a IndexDef,
    entries: Gathered,
}

impl Building<'_> {
    /// Entries that a run is made of at least.
    fn entries_least(&self) -> usize {
        self.shared.fresh_rows.saturating_mul(BUILD_FRESH_PARTS)
    }

    /// Whether what was gathered is as much as a run is made of: the fewer there are, the fewer are merged.
    fn is_full(&self) -> bool {
        let is_enough =
            self.entries.len() >= self.entries_least() && self.entries.memory_bytes() >= self.shared.build_bytes;
        is_enough || self.entries.is_full()
    }

    /// Makes a run of what was gathered. They do not become more than the catalog can hold.
    fn add_run(&mut self, writer: &mut dyn Storage) -> Result<(), Error> {
        let mut entries = mem::take(&mut self.entries);
        sorted_run(self.shared, writer, (self.table, self.index), &mut entries)?;
        drop(entries);
        while merge::step(self.shared, writer, self.table, self.index, Due::Wide)? {}
        Ok(())
    }
}

/// Makes a run of entries in whatever order, which are those of all rows that no run of the index knows.
fn sorted_run(
    shared: &Shared,
    writer: &mut dyn Storage,
    (table, index): (TableId, &IndexDef),
    entries: &mut Gathered,
) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table)?;
    let count = entries.len() as u64;
    let blocks = access.blocks(index, writer)?;
    let files = shared.index_files(writer, &access, index.id)?;
    // Tiers do not rise from one run to the next: whatever its size, it is merged with those that came just before it.
    let tier = files.runs.last().map_or(u8::MAX, |last| last.tier).min(merge::tier_of(shared, count));
    let beside = files.group_beside(files.runs.len(), tier);
    drop(files);
    let run = RunWriter::new(blocks, beside, (tier, access.files.renewals), count);
    let mut run = run.buffering(shared.merge_bytes);
    for entry in entries.in_order() {
        run.push(writer, entry)?;
    }
    add_run(shared, writer, &access, index, run)
}

/// Makes a run of the rows of a statement, the newest there are and all that no run knows: so many that they would become one
/// right behind it, as entries by themselves.
pub(crate) fn add_in_bulk(
    shared: &Shared,
    writer: &mut dyn Storage,
    (table, index): (TableId, &IndexDef),
    (keys, first): (&Keys, RowId),
) -> Result<(), Error> {
    let mut entries = Gathered::default();
    for row in 0..keys.count() {
        // Of more than fit all are read from the table.
        if entries.is_full() {
            return Ok(());
        }
        entries.push(keys.key(row), RowId(first.0 + row as u64));
    }
    sorted_run(shared, writer, (table, index), &mut entries)?;
    merge::step(shared, writer, table, index, Due::Crowded).map(drop)
}

/// Has nothing in the fresh part of an index, so that a run can be made of what comes next.
pub(crate) fn empty_fresh(
    shared: &Shared,
    writer: &mut dyn Storage,
    (table, index): (TableId, &IndexDef),
    fresh: &SharedFresh,
) -> Result<(), Error> {
    if fresh.count() == 0 { Ok(()) } else { flush(shared, writer, table, index) }
}

#[cfg(test)]
mod tests {
    use counterfoil_log::Memory;

    use super::*;
    use crate::{NewColumn, NewKey, NewTable, Relations, RowBuilder, Type, ValueRef};

    #[test]
    fn what_became_a_run_is_not_kept_beside_it() {
        let mut storage = Memory::default();
        let relations = Relations::with_fresh_rows(8);
        let columns = Vec::from([NewColumn::new("id", Type::Integer).not_null()]);
        let primary_key = Some(NewKey { name: None, columns: Vec::from(["id".into()]) });
        let new = NewTable { name: "t".into(), columns, primary_key, ..NewTable::default() };
        let table = relations.create_table(&mut storage, &new).unwrap();
        let shared = &relations.shared;
        let runs = |storage: &Memory| {
            let access = shared.access(storage, table.id).unwrap();
            shared.index_files(storage, &access, table.indexes[0].id).unwrap().runs.len()
        };
        for id in 0..8 {
            assert_eq!((runs(&storage), shared.states.fresh_bytes() > 0), (0, id > 0), "row {id}");
            let mut rows = RowBuilder::new(table.layout());
            rows.push(&[ValueRef::Integer(id)]).unwrap();
            relations.insert(&mut storage, &table, &rows.finish()).unwrap();
        }
        assert_eq!(runs(&storage), 1);
        assert_eq!(shared.states.fresh_bytes() > 0, !cfg!(feature = "small"));
        relations.committed(&storage);
        assert_eq!(runs(&storage), 1);
    }
}
