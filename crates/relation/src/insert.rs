//! Adding rows.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::Sealing;

use crate::access::{Access, Part, Shared};
use crate::batch::Piece;
use crate::files::{LAYOUTS_MAX, ROW_NUMBERS_MAX, Segment, form};
use crate::grain::Grain;
use crate::join::Joined;
use crate::key::Keys;
use crate::reference::check_inserted;
use crate::state::SharedFresh;
use crate::{
    Error, ForeignKey, IndexDef, Layout, RowBatch, RowId, Rule, Statement, Storage, Table, catalog, few_or_many,
    identity, settle,
};

/// Rows whose images are made together.
const PIECE_ROWS: usize = few_or_many(2, usize::MAX);

/// The keys of the rows that come in, in one index.
struct Incoming {
    keys: Keys,
    fresh: SharedFresh,
}

/// Adds rows; what is checked and what may wait is told at [`crate::Relations::insert_in`].
pub(crate) fn insert(
    shared: &Shared,
    statement: &mut Statement<'_>,
    writer: &mut dyn Storage,
    table: &Table,
    batch: &RowBatch,
) -> Result<RowId, Error> {
    let access = open_segment(shared, writer, table)?;
    access.table.check(batch)?;
    let first = RowId(access.next_row());
    if first.0.checked_add(batch.count() as u64).is_none_or(|end| end > ROW_NUMBERS_MAX) {
        return Err(Error::not_supported("more than 2^47 rows in the life of a table".into()));
    }
    if batch.count() == 0 {
        return Ok(first);
    }
    let joined = Joined::find(shared, writer, &access, batch, true)?;
    let stored = joined.stored(batch, &access.shape.newest);
    let incoming = check_keys(shared, writer, &access, &stored)?;
    check_inserted(statement, &access, batch, &joined, first)?;
    drop(joined);
    if cfg!(feature = "small") {
        // What was decoded of the tables that it references.
        shared.catalog.relieve();
    }
    // As many rows as become a run by themselves do not go through the tree of a fresh part.
    let in_bulk = !cfg!(feature = "small") && batch.count() >= shared.fresh_rows;
    if in_bulk {
        for (index, one) in access.table.indexes.iter().zip(&incoming) {
            settle::empty_fresh(shared, writer, (table.id, index), &one.fresh)?;
        }
    }
    append(writer, &access, &stored)?;
    // They are in the log, and not needed beside their entries.
    drop(stored);
    identity::raise(writer, &access.table, batch)?;
    let defined = access.table.clone();
    // What follows works with the table as it is then, and may need the memory.
    drop(access);
    for (index, one) in defined.indexes.iter().zip(incoming) {
        match in_bulk {
            true => settle::add_in_bulk(shared, writer, (table.id, index), (&one.keys, first))?,
            false => one.fresh.add_inserted(&one.keys, first),
        }
    }
    note_earlier_children(shared, statement, writer, table, batch)?;
    let access = shared.access_to_write(writer, table.id)?;
    settle::after_statement(shared, writer, access)?;
    Ok(first)
}

/// Rows may have come before the rows that they reference, where nobody enforces it: now they join them.
fn note_earlier_children(
    shared: &Shared,
    statement: &mut Statement<'_>,
    writer: &mut dyn Storage,
    table: &Table,
    batch: &RowBatch,
) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table.id)?;
    let every: Vec<usize> = (0..batch.count()).collect();
    let asked = |_: &Table, key: &ForeignKey| !key.enforced;
    statement.rejoin.note_children(shared, writer, &access, (batch, &every), &asked)?;
    statement.rejoin.relieve(shared, writer)
}

/// Works out all keys and refuses those that are there already, in the table or twice in the batch.
fn check_keys(
    shared: &Shared,
    writer: &mut dyn Storage,
    access: &Access,
    batch: &RowBatch,
) -> Result<Vec<Incoming>, Error> {
    let mut incoming = Vec::with_capacity(access.table.indexes.len());
    for index in &access.table.indexes {
        let keys = Keys::of_parts(batch, &access.key_parts(index)?)?;
        let reader = shared.index(writer, access, index, true)?;
        if index.unique {
            let sorted = keys.sorted();
            let twice = sorted.windows(2).any(|pair| keys.key(pair[0]) == keys.key(pair[1]));
            if twice || !reader.matches(&keys, &sorted)?.is_empty() {
                return Err(not_unique(&access.table, index));
            }
        }
        incoming.push(Incoming { keys, fresh: reader.fresh.clone() });
    }
    Ok(incoming)
}

pub(crate) fn not_unique(table: &Table, index: &IndexDef) -> Error {
    Error::violation(Rule::Unique, &index.name, &table.name, table.names(&index.columns))
}

/// The table with a segment that grows and has the newest layout.
fn open_segment(shared: &Shared, writer: &mut dyn Storage, table: &Table) -> Result<Access, Error> {
    let access = shared.access_to_write(writer, table.id)?;
    let newest = access.table.layouts.len() - 1;
    let last = access.parts.last();
    let segment_bytes = access.segment_bytes(shared);
    let grows = |part: &Part| part.segment.span.is_none() && part.bytes() < segment_bytes;
    if last.is_some_and(|part| grows(part) && part.segment.layout() == newest) {
        return Ok(access);
    }
    let mut files = (*access.files).clone();
    files.next_row = access.next_row();
    if let (Some(segment), Some(part)) = (files.segments.last_mut(), last) {
        segment.span = Some(part.span);
    }
    let form = (access.grain, &*access.shape.newest);
    files.segments.push(new_segment(writer, files.next_row, newest as u32, form)?);
    catalog::put_files(writer, table.id, &files)?;
    shared.access_to_write(writer, table.id)
}

/// A segment without rows. Nothing of it reaches the medium before there is a page of something.
pub(crate) fn new_segment(
    writer: &mut dyn Storage,
    first: u64,
    place: u32,
    (grain, layout): (Grain, &Layout),
) -> Result<Segment, Error> {
    if place as usize >= LAYOUTS_MAX {
        return Err(Error::misuse("a table that was altered too often: VACUUM makes its layouts one"));
    }
    let sealing = grain.sealing(layout);
    let stride = grain.stride(layout, sealing.rows.page_payload(writer.page_bytes()));
    let group = writer.create_group().map_err(Error::log(""))?;
    let mut container = |sealing| writer.create_container_sealed(group, sealing).map(|id| id.0).map_err(Error::log(""));
    let (rows, heap) = (container(sealing.rows)?, container(sealing.heap)?);
    let (deletes, updates) = (container(Sealing::Whole)?, container(sealing.updates)?);
    Ok(Segment {
        first,
        span: None,
        form: form(place, stride),
        group: group.0,
        rows,
        heap,
        deletes,
        updates,
        presence: None,
        renewed: None,
    })
}

/// Appends a batch to the last segment. Long values first: a row never points to what is not there.
fn append(writer: &mut dyn Storage, access: &Access, batch: &RowBatch) -> Result<(), Error> {
    let log = Error::log(&access.table.name);
    let part = access.parts.last().ok_or_else(|| Error::corrupt(&access.table.name, "catalog of segments"))?;
    let base = if batch.heap().is_empty() {
        if part.stride == batch.width() {
            return writer.append(part.segment.rows(), batch.bytes()).map(|_| ()).map_err(log);
        }
        0
    } else {
        writer.append(part.segment.heap(), batch.heap()).map_err(&log)?
    };
    (0..batch.count()).step_by(PIECE_ROWS).try_for_each(|first| {
        let rows = first..batch.count().min(first.saturating_add(PIECE_ROWS));
        writer.append(part.segment.rows(), &moved_images(batch, rows, base, part.stride)).map(|_| ()).map_err(&log)
    })
}

/// The images of some rows of a batch whose heap begins at `base` of the segment's, with so many bytes from one to the next.
pub(crate) fn moved_images(batch: &RowBatch, rows: Range<usize>, base: u64, stride: usize) -> Vec<u8> {
    let mut images = vec![0; rows.len() * stride];
    for (stored, row) in images.chunks_exact_mut(stride).zip(rows) {
        let image = batch.image(row);
        stored[..image.len()].copy_from_slice(image);
        for column in batch.layout().columns().iter().filter(|column| column.kind.is_variable()) {
            let cell = &mut stored[column.offset..column.offset + column.kind.bytes()];
            if let Piece::Long { offset, .. } = Piece::read(cell) {
                cell[8..16].copy_from_slice(&(base + offset).to_le_bytes());
            }
        }
    }
    images
}
