//! Writing rows anew: without those that are gone, as they are now, in the newest layout.
//!
//! ```text
//! before   | segment, deletes, updates | segment | ...
//!           \__________ renewed ________________/            row numbers stay
//! after    | segment | segment | ...                        of at most so many bytes
//! ```
//!
//! Nobody sees any of it before the commit; views from before keep what they had. Index runs stay as they are, so a renewal knows
//! no key: entries of rows that are gone name nothing, and for the rows that had been updated the new segment keeps a map, by which
//! the next merge of runs from before looks at their rows.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use crate::access::{Access, Part, Shared};
use crate::files::{Coverage, Files, IndexFiles, LAYOUTS_MAX, Renewed, Segment};
use crate::insert::{moved_images, new_segment};
use crate::join::Joined;
use crate::presence::PresenceBuilder;
use crate::read::Wanted;
use crate::{Error, RowBatch, RowBlock, Storage, Table, TableId, catalog, define, few_or_many, settle};

const PIECE_ROWS: usize = few_or_many(16, 4096);
/// And at least, however long they are.
const ROWS_LEAST: u64 = 16;

/// What rows that are written anew join.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joins {
    /// What they joined.
    Kept,
    /// What is found anew.
    Found,
}

/// Rewrites a table and its indexes.
pub(crate) fn rewrite(shared: &Shared, writer: &mut dyn Storage, id: TableId, joins: Joins) -> Result<(), Error> {
    let access = shared.access_to_write(writer, id)?;
    let layouts = Vec::from([access.table.stored_layout()]);
    let table = Table { layouts, retired: Vec::new(), ..(*access.table).clone() };
    let rewrites = access.files.rewrites.wrapping_add(1);
    let mut copier = Copier::new(shared, writer, &access, 0)?;
    copier.copy(writer, 0..access.parts.len(), joins)?;
    let segments = copier.finish(writer, None)?;
    define::drop_groups(shared, writer, &access)?;
    catalog::put_table(writer, &table)?;
    catalog::put_files(writer, id, &Files { next_row: access.next_row(), rewrites, renewals: 0, segments })?;
    let empty = IndexFiles::empty(Coverage::none(rewrites));
    table.indexes.iter().try_for_each(|index| catalog::put_index(writer, id, index.id, &empty))?;
    if access.count() > shared.fresh_rows as u64 {
        // Fewer rows are fresh: they are read when an index is first asked.
        table.indexes.iter().try_for_each(|index| settle::build(shared, writer, id, index))?;
    }
    Ok(())
}

/// Renews segments that lie side by side.
pub(crate) fn renew(shared: &Shared, writer: &mut dyn Storage, id: TableId, places: Range<usize>) -> Result<(), Error> {
    let access = shared.access_to_write(writer, id)?;
    // Keys that no run knows yet come from the logs that go.
    for index in &access.table.indexes {
        let coverage = shared.index_files(writer, &access, index.id)?.coverage.clone();
        let has_unknown_keys = |part: &Part| coverage.of_updates(&part.segment) < part.lengths.updates;
        if access.parts[places.clone()].iter().any(has_unknown_keys) {
            settle::flush(shared, writer, id, index)?;
        }
    }
    let access = shared.access_to_write(writer, id)?;
    let newest = access.table.layouts.len() as u32 - 1;
    let mut copier = Copier::new(shared, writer, &access, newest)?;
    copier.copy(writer, places.clone(), Joins::Kept)?;
    let mut files = (*access.files).clone();
    files.renewals = files.renewals.wrapping_add(1);
    files.next_row = access.next_row();
    let segments = copier.finish(writer, Some(files.renewals))?;
    let gone: Vec<_> = files.segments.splice(places, segments).map(|segment| segment.group).collect();
    for index in &access.table.indexes {
        let mut of_index = shared.take_index(writer, &access, index.id)?;
        of_index.coverage.updates.retain(|(group, _)| !gone.contains(group));
        of_index.coverage.renewals = files.renewals;
        catalog::put_index(writer, id, index.id, &of_index)?;
    }
    for segment in access.files.segments.iter().filter(|segment| gone.contains(&segment.group)) {
        shared.drop_group(writer, &access.table.name, segment.group())?;
    }
    forget_layouts(writer, &access.table, &mut files)?;
    catalog::put_files(writer, id, &files)
}

/// Forgets the older layouts if no rows have them any more.
fn forget_layouts(writer: &mut dyn Storage, table: &Table, files: &mut Files) -> Result<(), Error> {
    let newest = table.layouts.len() - 1;
    let may_have_older = |segment: &Segment| {
        // Updates say their layout by its place.
        let updates = writer.length(segment.updates());
        segment.layout() != newest || updates.map_or(true, |bytes| bytes > 0)
    };
    if newest == 0 || files.segments.iter().any(may_have_older) {
        return Ok(());
    }
    files.segments.iter_mut().for_each(|segment| segment.form &= !(LAYOUTS_MAX as u32 - 1));
    let layouts = Vec::from([table.stored_layout()]);
    catalog::put_table(writer, &Table { layouts, retired: Vec::new(), ..table.clone() })
}

/// Copies the rows that are there into new segments.
struct Copier<'a> {
    shared: &'a Shared,
    access: &'a Access,
    layout: u32,
    segment_bytes: u64,
    /// The fewest renewals that a run of any index has seen.
    oldest_run: u64,
    done: Vec<Copy>,
}

impl<'a> Copier<'a> {
    fn new(shared: &'a Shared, view: &dyn Storage, access: &'a Access, layout: u32) -> Result<Self, Error> {
        let mut oldest_run = access.files.renewals;
        for index in &access.table.indexes {
            let files = shared.index_files(view, access, index.id)?;
            oldest_run = files.all_runs().fold(oldest_run, |oldest, run| oldest.min(run.renewals));
        }
        let segment_bytes = access.segment_bytes(shared);
        Ok(Copier { shared, access, layout, segment_bytes, oldest_run, done: Vec::new() })
    }

    fn copy(&mut self, writer: &mut dyn Storage, places: Range<usize>, joins: Joins) -> Result<(), Error> {
        let access = self.access;
        for place in places {
            let part = &access.parts[place];
            if part.visible() == 0 {
                continue;
            }
            let (mut position, rows_max) = (0, self.rows_at_once(part));
            while position < part.count {
                let count = (part.count - position).min(rows_max) as usize;
                let mut block = access.read(writer, place, position, count, &Wanted::all())?;
                position += block.count() as u64;
                if joins == Joins::Found {
                    Joined::find(self.shared, writer, access, &block.rows, true)?.write_into(&mut block.rows);
                }
                self.add(writer, part, &block)?;
            }
        }
        Ok(())
    }

    /// Rows of a segment that are read together: as many as there is memory for, as they are on average.
    fn rows_at_once(&self, part: &Part) -> u64 {
        if cfg!(feature = "small") {
            return PIECE_ROWS as u64;
        }
        let row_bytes = (part.stride as u64).saturating_add(part.heap_bytes / part.count.max(1)).max(1);
        (self.shared.merge_bytes as u64 / row_bytes).clamp(ROWS_LEAST, PIECE_ROWS as u64)
    }

    /// Adds what is visible of a block to the last copy, or to a new one if that is full.
    fn add(&mut self, writer: &mut dyn Storage, part: &Part, block: &RowBlock) -> Result<(), Error> {
        let Some(first) = block.visible_rows().next().map(|row| block.id(row)) else { return Ok(()) };
        let full = |copy: &Copy| copy.bytes >= self.segment_bytes;
        if self.done.last().is_none_or(full) {
            let segment = new_segment(writer, first.0, self.layout, (self.access.grain, &self.access.shape.newest))?;
            self.done.push(Copy::new(segment));
        }
        let Some(copy) = self.done.last_mut() else { return Ok(()) };
        copy.add(writer, self.access, block)?;
        for row in block.visible_rows().map(|row| block.id(row)) {
            if part.may_have_had_other_keys(writer, row, self.oldest_run)? {
                copy.updated.push(row.0 - copy.segment.first);
            }
        }
        Ok(())
    }

    /// The new segments. `renewal`: the number of the renewal; none where no index knows these rows.
    fn finish(self, writer: &mut dyn Storage, renewal: Option<u64>) -> Result<Vec<Segment>, Error> {
        self.done.into_iter().map(|copy| copy.finish(writer, self.access, renewal)).collect()
    }
}

/// A segment being written.
struct Copy {
    segment: Segment,
    bytes: u64,
    presence: PresenceBuilder,
    /// Rows that some run may know under another key.
    updated: PresenceBuilder,
    last: u64,
}

impl Copy {
    fn new(segment: Segment) -> Self {
        let (presence, updated) = Default::default();
        Copy { segment, bytes: 0, presence, updated, last: 0 }
    }

    fn add(&mut self, writer: &mut dyn Storage, access: &Access, block: &RowBlock) -> Result<(), Error> {
        let log = Error::log(&access.table.name);
        let mut batch = RowBatch::new(Arc::clone(block.rows.layout()), 0);
        for row in block.visible_rows() {
            batch.push_from(&block.rows, row).map_err(access.named())?;
            self.last = block.id(row).0;
            self.presence.push(self.last - self.segment.first);
        }
        let base = match batch.heap().is_empty() {
            true => 0,
            false => writer.append(self.segment.heap(), batch.heap()).map_err(log)?,
        };
        let stride = self.segment.stride(batch.width());
        writer.append(self.segment.rows(), &moved_images(&batch, 0..batch.count(), base, stride)).map_err(log)?;
        self.bytes += (batch.bytes().len() + batch.heap().len()) as u64;
        Ok(())
    }

    fn finish(mut self, writer: &mut dyn Storage, access: &Access, renewal: Option<u64>) -> Result<Segment, Error> {
        self.segment.span = Some(self.last - self.segment.first + 1);
        if let Some(map) = self.presence.finish() {
            self.segment.presence = Some(store_map(writer, access, &self.segment, &map)?);
        }
        if let (Some(map), Some(number)) = (self.updated.into_bytes(), renewal) {
            let rows = store_map(writer, access, &self.segment, &map)?;
            self.segment.renewed = Some(Renewed { number, rows });
        }
        Ok(self.segment)
    }
}

/// Stores a map of row numbers beside the rows of a segment.
fn store_map(writer: &mut dyn Storage, access: &Access, segment: &Segment, map: &[u8]) -> Result<u64, Error> {
    let log = Error::log(&access.table.name);
    let container = writer.create_container(segment.group()).map_err(log)?;
    writer.append(container, map).map_err(log)?;
    Ok(container.0)
}
