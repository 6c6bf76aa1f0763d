//! Tidying a table: the rows that are there into one segment of the newest layout, its indexes into one run each.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::access::{Access, Shared};
use crate::files::{Coverage, Files, IndexFiles, Segment};
use crate::insert::{moved_images, new_segment};
use crate::join::Joined;
use crate::presence::PresenceBuilder;
use crate::read::Wanted;
use crate::{Error, RowBatch, RowBlock, Storage, Table, TableId, catalog, settle};

const PIECE_ROWS: usize = 4096;

/// Brings a table and its indexes into one piece each. Rows that are in one already stay where they are.
pub(crate) fn vacuum(shared: &Shared, writer: &mut dyn Storage, table: TableId) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table)?;
    if !are_rows_tidy(&access) {
        return rewrite(shared, writer, table, Joins::Kept);
    }
    access.table.indexes.iter().try_for_each(|index| settle::merge_all(shared, writer, table, index))
}

/// Whether a rewrite of the rows would gain nothing.
pub(crate) fn are_rows_tidy(access: &Access) -> bool {
    let parts = access.parts.iter().all(|part| part.lengths.deletes == 0 && part.lengths.updates == 0);
    parts && access.parts.len() <= 1 && access.table.layouts.len() == 1
}

/// What rewritten rows join.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joins {
    /// What they joined.
    Kept,
    /// What is found anew.
    Found,
}

/// Rewrites a table. Row numbers stay. Nobody sees any of it before the commit; views from before keep what they had.
pub(crate) fn rewrite(shared: &Shared, writer: &mut dyn Storage, id: TableId, joins: Joins) -> Result<(), Error> {
    let access = shared.access_to_write(writer, id)?;
    let layouts = Vec::from([access.table.stored_layout()]);
    let table = Table { layouts, retired: Vec::new(), ..(*access.table).clone() };
    let rewrites = access.files.rewrites.wrapping_add(1);
    let segments = write_segment(shared, writer, &access, joins)?;
    let drop_group = |group| shared.drop_group(writer, &table.name, group);
    let runs = access.files.indexes.iter().flat_map(|index| &index.runs).map(|run| run.group());
    access.files.segments.iter().map(Segment::group).chain(runs).try_for_each(drop_group)?;
    let indexes = table.indexes.iter().map(|index| IndexFiles {
        index: index.id,
        coverage: Coverage::none(rewrites),
        runs: Vec::new(),
    });
    let files = Files { next_row: access.next_row(), rewrites, segments, indexes: indexes.collect() };
    catalog::put_table(writer, &table)?;
    catalog::put_files(writer, id, &files)?;
    if access.count() > shared.fresh_rows as u64 {
        // Fewer rows are fresh: they are read when an index is first asked.
        table.indexes.iter().try_for_each(|index| settle::build(shared, writer, id, index))?;
    }
    Ok(())
}

/// Copies the rows that are there.
fn write_segment(
    shared: &Shared,
    writer: &mut dyn Storage,
    access: &Access,
    joins: Joins,
) -> Result<Vec<Segment>, Error> {
    let mut copy: Option<Copy> = None;
    for part in 0..access.parts.len() {
        let mut position = 0;
        while position < access.parts[part].count {
            let count = (access.parts[part].count - position).min(PIECE_ROWS as u64) as usize;
            let mut block = access.read(writer, part, position, count, &Wanted::all())?;
            position += block.count() as u64;
            if joins == Joins::Found {
                Joined::find(shared, writer, access, &block.rows, true)?.write_into(&mut block.rows);
            }
            let Some(first) = block.visible_rows().next().map(|row| block.id(row)) else { continue };
            if copy.is_none() {
                copy = Some(Copy { segment: new_segment(writer, first.0, 0)?, presence: Default::default(), last: 0 });
            }
            if let Some(copy) = &mut copy {
                copy.add(writer, access, &block)?;
            }
        }
    }
    copy.map_or(Ok(Vec::new()), |copy| Ok(Vec::from([copy.finish(writer, access)?])))
}

/// A segment being written.
struct Copy {
    segment: Segment,
    presence: PresenceBuilder,
    last: u64,
}

impl Copy {
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
        writer.append(self.segment.rows(), &moved_images(&batch, base)).map_err(log)?;
        Ok(())
    }

    fn finish(mut self, writer: &mut dyn Storage, access: &Access) -> Result<Segment, Error> {
        let log = Error::log(&access.table.name);
        self.segment.span = Some(self.last - self.segment.first + 1);
        if let Some(map) = self.presence.finish() {
            let container = writer.create_container(self.segment.group()).map_err(log)?;
            writer.append(container, &map).map_err(log)?;
            self.segment.presence = Some(container.0);
        }
        Ok(self.segment)
    }
}
