//! A table as one view sees it: its definition, where its rows lie, how many there are.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::{ContainerId, GroupId, View};

use crate::files::{Files, IndexFiles, ROW_NUMBERS_MAX, Segment};
use crate::grain::Grain;
use crate::heads::Heads;
use crate::key::{JOIN_KEY_BYTES, KeyParts, key_bytes_max};
use crate::layout::Layout;
use crate::presence::Presence;
use crate::run::Blocks;
use crate::shape::Shape;
use crate::state::{DELETE_BYTES, Lengths, SharedState, States};
use crate::{Cause, Error, IndexDef, IndexId, IndexOrigin, RowId, Storage, Table, TableId};
use counterfoil_log::Lock;
use counterfoil_log::Set;

/// Bytes from which on a segment is closed, unless [`crate::Relations::with_segment_bytes`] says otherwise.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;

/// Segments of a table, about, at most.
const SEGMENTS_MAX: u64 = 256;

/// Everything the crate keeps in memory about one database.
pub(crate) struct Shared {
    /// Rows after which the fresh part of an index becomes a run.
    pub(crate) fresh_rows: usize,
    /// About so many bytes of memory may index entries of new rows, deletes and updates take, of all tables together.
    pub(crate) new_bytes: usize,
    /// Bytes of entries that are sorted at once while an index is built, where there are more of them than a few fresh parts have.
    pub(crate) build_bytes: usize,
    /// Sorted runs of a tier that are merged into one of the next.
    pub(crate) tier_runs: usize,
    /// How much larger runs of a tier are than those below, if it is not as much as so many runs are.
    pub(crate) tier_growth: Option<usize>,
    /// Entries that a step of a merge looks at, at least.
    pub(crate) step_entries: usize,
    /// Bytes of runs that a merge reads ahead, about.
    pub(crate) merge_bytes: usize,
    /// Bytes from which on a segment is closed and another one begun.
    pub(crate) segment_bytes: u64,
    /// How rows are sealed and read.
    pub(crate) grain: Grain,
    pub(crate) catalog: crate::catalog::Catalog,
    pub(crate) states: States,
    pub(crate) heads: Heads,
    /// Tables that have changed since it was last asked what is pressing.
    pub(crate) touched: Lock<Set<TableId>>,
    /// Tables that may have to be tidied.
    pub(crate) untidy: Lock<Set<TableId>>,
    /// Whether groups were dropped of which memory may still know something.
    pub(crate) dropped: Lock<bool>,
}

impl Shared {
    pub(crate) fn new(fresh_rows: usize) -> Self {
        Shared {
            fresh_rows: fresh_rows.max(1),
            new_bytes: usize::MAX,
            build_bytes: 0,
            tier_runs: crate::merge::TIER_RUNS,
            tier_growth: None,
            step_entries: 1,
            merge_bytes: usize::MAX,
            segment_bytes: SEGMENT_BYTES,
            grain: Grain::default(),
            catalog: Default::default(),
            states: Default::default(),
            heads: Default::default(),
            touched: Default::default(),
            untidy: Default::default(),
            dropped: Default::default(),
        }
    }
}

/// A table opened for one view.
pub(crate) struct Access {
    pub(crate) table: Arc<Table>,
    pub(crate) shape: Arc<Shape>,
    pub(crate) files: Arc<Files>,
    pub(crate) parts: Vec<Part>,
    pub(crate) grain: Grain,
}

/// A segment, with what the view sees of it.
pub(crate) struct Part {
    pub(crate) segment: Segment,
    pub(crate) layout: Arc<Layout>,
    /// Bytes from one row to the next.
    pub(crate) stride: usize,
    /// Rows stored.
    pub(crate) count: u64,
    /// Row numbers covered.
    pub(crate) span: u64,
    pub(crate) lengths: Lengths,
    pub(crate) heap_bytes: u64,
    pub(crate) presence: Option<Arc<Presence>>,
    pub(crate) state: SharedState,
}

impl Part {
    /// The number of the row at a position.
    pub(crate) fn row_at(&self, view: &dyn View, position: u64) -> Result<Option<RowId>, Error> {
        if position >= self.count {
            return Ok(None);
        }
        let number = match &self.presence {
            Some(presence) => presence.number(view, position)?,
            None => Some(position),
        };
        Ok(number.map(|number| RowId(self.segment.first + number)))
    }

    /// Where a row lies in this segment.
    pub(crate) fn position_of(&self, view: &dyn View, row: RowId) -> Result<Option<u64>, Error> {
        let number = row.0.checked_sub(self.segment.first).filter(|number| *number < self.span);
        let position = match (&self.presence, number) {
            (Some(presence), Some(number)) => presence.position(view, number)?,
            (_, number) => number,
        };
        Ok(position.filter(|position| *position < self.count))
    }

    /// Whether runs that have seen so many renewals may know a row under a key that it no longer has.
    pub(crate) fn may_have_had_other_keys(&self, view: &dyn View, row: RowId, renewals: u64) -> Result<bool, Error> {
        let has_looked = self.segment.renewed.is_none_or(|renewed| renewed.number <= renewals);
        let is_updated = self.state.read(|state| state.update_of(row.0, self.lengths).is_some());
        if is_updated || has_looked {
            return Ok(is_updated);
        }
        match self.state.read(|state| state.renewed()) {
            Some(renewed) => Ok(renewed.position(view, row.0.saturating_sub(self.segment.first))?.is_some()),
            None => Ok(false),
        }
    }

    /// Reads the maps of its rows as a whole.
    pub(crate) fn check_maps(&self, view: &dyn View) -> Result<(), Error> {
        let renewed = self.state.read(|state| state.renewed());
        [&self.presence, &renewed].into_iter().flatten().try_for_each(|map| map.check(view))
    }

    /// Bytes of its rows and their long values.
    pub(crate) fn bytes(&self) -> u64 {
        (self.count * self.stride as u64).saturating_add(self.heap_bytes)
    }

    /// Rows that the view sees.
    pub(crate) fn visible(&self) -> u64 {
        self.count.saturating_sub(self.lengths.deletes / DELETE_BYTES as u64)
    }

    /// The first row number after this segment.
    pub(crate) fn end(&self) -> u64 {
        self.segment.first + self.span
    }
}

impl Shared {
    /// Whether deletes and updates take more than half of the memory that there is for what is new: then segments are renewed, since
    /// runs of the other half would become too short.
    pub(crate) fn has_many_changes(&self) -> bool {
        self.new_bytes < usize::MAX && self.states.change_bytes() > self.new_bytes / 2
    }

    /// Drops a group of a table's containers.
    pub(crate) fn drop_group(&self, writer: &mut dyn Storage, table: &str, group: GroupId) -> Result<(), Error> {
        self.dropped.write(|dropped| *dropped = true);
        writer.drop_group(group).map_err(Error::log(table))
    }

    /// Follows a commit: what is known of containers that are gone is of use to older views only, and they can read it
    /// again.
    pub(crate) fn committed(&self, view: &dyn View) {
        if cfg!(feature = "small") {
            self.catalog.relieve();
        }
        if self.dropped.write(core::mem::take) {
            self.heads.prune(view);
            self.states.prune(view, |table, index| {
                let table = self.catalog.table(view, table).ok().flatten();
                table.is_some_and(|table| table.index(index).is_some())
            });
        }
    }

    /// Follows a rollback, which may give the numbers of what is gone to what comes next.
    pub(crate) fn rolled_back(&self, view: &dyn View) {
        self.heads.prune(view);
        self.states.cut_back(view, |table, fresh| {
            let Ok(Some(table)) = self.catalog.table(view, table) else { return false };
            let Ok(files) = self.catalog.files(view, &table) else { return false };
            let index = self.catalog.index(view, (&table, &files), fresh.index);
            index.is_ok_and(|index| index.coverage == fresh.coverage)
        });
    }

    /// Opens a table, as it is in the view.
    pub(crate) fn access(&self, view: &dyn View, id: TableId) -> Result<Access, Error> {
        self.open(view, id, false)
    }

    /// Opens a table for the writer, whose view is the newest there is.
    pub(crate) fn access_to_write(&self, view: &dyn View, id: TableId) -> Result<Access, Error> {
        self.open(view, id, true)
    }

    /// What is written of an index of a table.
    pub(crate) fn index_files(
        &self,
        view: &dyn View,
        access: &Access,
        index: IndexId,
    ) -> Result<Arc<IndexFiles>, Error> {
        self.catalog.index(view, (&access.table, &access.files), index)
    }

    /// The same, to be changed and put into the catalog.
    pub(crate) fn take_index(&self, view: &dyn View, access: &Access, index: IndexId) -> Result<IndexFiles, Error> {
        self.catalog.take_index(view, (&access.table, &access.files), index)
    }

    fn open(&self, view: &dyn View, id: TableId, writing: bool) -> Result<Access, Error> {
        let table = self.catalog.table(view, id)?.ok_or_else(|| Error::sql("this table no longer exists"))?;
        let files = self.catalog.files(view, &table)?;
        let shape = match &table.shape {
            Some(shape) => shape.clone(),
            None => Arc::new(Shape::of(&table)?),
        };
        // A vector that is collected has room for four of them.
        let mut parts = Vec::with_capacity(files.segments.len());
        for segment in &files.segments {
            parts.push(self.open_part(view, &table, &shape, segment, writing)?);
        }
        Ok(Access { table, shape, files, parts, grain: self.grain })
    }

    fn open_part(
        &self,
        view: &dyn View,
        table: &Table,
        shape: &Shape,
        segment: &Segment,
        writing: bool,
    ) -> Result<Part, Error> {
        let wrong = |what| Error::corrupt(&table.name, what);
        let (layout, lengths, count, span) = measure(view, table, shape, segment)?;
        let stride = segment.stride(layout.width());
        let state = self.states.segment(view, segment, shape, lengths, writing).map_err(|error| name(error, table))?;
        let presence = match segment.presence {
            Some(_) => state.read(|state| state.presence()),
            None => None,
        };
        if presence.as_ref().is_some_and(|presence| presence.count() != count) {
            return Err(wrong("map of the rows of a segment"));
        }
        let heap_bytes = length(view, table, segment.heap())?;
        Ok(Part { segment: segment.clone(), layout, stride, count, span, lengths, heap_bytes, presence, state })
    }
}

/// The layout of a segment, what a view sees of its logs, its rows and the row numbers it covers.
pub(crate) fn measure(
    view: &dyn View,
    table: &Table,
    shape: &Shape,
    segment: &Segment,
) -> Result<(Arc<Layout>, Lengths, u64, u64), Error> {
    let wrong = |what| Error::corrupt(&table.name, what);
    let layout = shape.layouts.get(segment.layout()).ok_or_else(|| wrong("layout of a segment"))?;
    let deletes = length(view, table, segment.deletes())?;
    let updates = length(view, table, segment.updates())?;
    let bytes = length(view, table, segment.rows())?;
    let stride = segment.stride(layout.width());
    if stride < layout.width() {
        return Err(wrong("length of a segment"));
    }
    let stride = stride as u64;
    let count = bytes / stride;
    let span = segment.span.unwrap_or(count);
    let dense = segment.presence.is_some() || span == count;
    let ends = segment.first.checked_add(span).is_some_and(|end| end <= ROW_NUMBERS_MAX);
    if !bytes.is_multiple_of(stride) || !dense || !ends {
        return Err(wrong("length of a segment"));
    }
    Ok((layout.clone(), Lengths { deletes, updates }, count, span))
}

pub(crate) fn length(view: &dyn View, table: &Table, container: ContainerId) -> Result<u64, Error> {
    view.length(container).map_err(Error::log(&table.name))
}

/// Gives an error from further down, where tables have no names, the name of its table.
pub(crate) fn name(error: Error, table: &Table) -> Error {
    match error.cause() {
        Cause::Corrupt { table: none, what } if none.is_empty() => Error::corrupt(&table.name, what),
        Cause::Log { table: none, source } if none.is_empty() => Error::of_log(&table.name, source.clone()),
        _ => error,
    }
}

impl Access {
    /// Bytes from which on a segment of this table is closed: the catalog says of each where it is, so a large table has larger ones.
    pub(crate) fn segment_bytes(&self, shared: &Shared) -> u64 {
        let bytes = self.parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.bytes()));
        shared.segment_bytes.max(bytes / SEGMENTS_MAX)
    }

    /// The number of the next row to be inserted.
    pub(crate) fn next_row(&self) -> u64 {
        let grown = self.parts.last().map_or(0, Part::end);
        grown.max(self.files.next_row)
    }

    /// The rows that the view sees, where they are as they were inserted and none is missing: none if one may not be.
    pub(crate) fn unchanged_rows(&self) -> Option<Range<u64>> {
        let nothing = Lengths { deletes: 0, updates: 0 };
        let is_as_inserted =
            |part: &Part| part.lengths == nothing && part.presence.is_none() && part.segment.renewed.is_none();
        let follow = self.parts.is_sorted_by(|one, other| one.end() == other.segment.first);
        let (first, last) = self.parts.first().zip(self.parts.last())?;
        (follow && self.parts.iter().all(is_as_inserted)).then(|| first.segment.first..last.end())
    }

    /// Where a row lies.
    pub(crate) fn locate(&self, view: &dyn View, row: RowId) -> Result<Option<(usize, u64)>, Error> {
        let part = self.parts.partition_point(|part| part.segment.first <= row.0).checked_sub(1);
        let Some(part) = part else { return Ok(None) };
        let position = self.parts[part].position_of(view, row).map_err(self.named())?;
        Ok(position.map(|position| (part, position)))
    }

    /// Rows the view sees.
    pub(crate) fn count(&self) -> u64 {
        self.parts.iter().map(Part::visible).sum()
    }

    /// Whether the view sees a row.
    pub(crate) fn is_visible(&self, view: &dyn View, row: RowId) -> Result<bool, Error> {
        Ok(self.locate(view, row)?.is_some_and(|(part, _)| {
            let part = &self.parts[part];
            part.state.read(|state| !state.is_deleted(row.0, part.lengths))
        }))
    }

    /// The places of columns in the newest layout.
    pub(crate) fn places(&self, columns: &[crate::ColumnId]) -> Result<Vec<usize>, Error> {
        let place = |id: &crate::ColumnId| self.table.position(*id);
        let places: Option<Vec<_>> = columns.iter().map(place).collect();
        places.ok_or_else(|| Error::corrupt(&self.table.name, "columns of an index"))
    }

    /// What the keys of an index are made of.
    pub(crate) fn key_parts(&self, index: &IndexDef) -> Result<KeyParts, Error> {
        let IndexOrigin::Path(join) = index.origin else { return self.places(&index.columns).map(KeyParts::Columns) };
        let place = self.table.joins.iter().position(|known| known.id == join);
        place.map(KeyParts::Join).ok_or_else(|| Error::corrupt(&self.table.name, "path of an index"))
    }

    /// How the blocks of an index's runs are sealed, and how large they are.
    pub(crate) fn blocks(&self, index: &IndexDef, writer: &dyn Storage) -> Result<Blocks, Error> {
        if self.grain == Grain::Pages {
            return Ok(Blocks::in_pages(writer.page_bytes()));
        }
        let parts = self.key_parts(index)?;
        let kinds = parts.columns().iter().filter_map(|place| self.table.columns.get(*place)).map(|column| column.kind);
        Ok(Blocks::in_sectors(kinds.fold(JOIN_KEY_BYTES, |bytes, kind| bytes.saturating_add(key_bytes_max(kind)))))
    }

    /// Names this table in an error from further down.
    pub(crate) fn named(&self) -> impl Fn(Error) -> Error + '_ {
        |error| name(error, &self.table)
    }
}
