//! Reading rows of one segment: images, then what changed since, then long values.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::Order as _;
use counterfoil_log::{ContainerId, Piece as PieceOf, View};

use crate::access::{Access, Part};
use crate::batch::Piece;
use crate::grain::{self, Grain};
use crate::shape::{Conversion, FROM_DEFAULTS};
use crate::state::{UPDATE_HEAD_BYTES, UpdateAt, split_update_head};
use crate::{Error, Layout, RowBatch, RowBlock, RowId, RowIds, Table};

/// Long values of a block may have so many bytes before the block is cut short.
const HEAP_BYTES_MAX: u64 = 32 << 20;
/// Where long values may have only so much room, those between them are read along up to this part of it.
const GAP_PART: u64 = 64;
/// One row alone may have so many times as much of them as several together.
pub(crate) const ONE_ROW_TIMES: u64 = 4;
/// Updates side by side are read together up to so many bytes.
const SPAN_BYTES_MAX: u64 = 1 << 20;
/// Rows of which pieces are read together.
const PIECES_ROWS: usize = 64;
/// Pieces of an image that are nearer to each other than this are one.
const PIECE_GAP_BYTES: usize = 16;
/// In an image: this long value was not asked for.
const NOT_ASKED: u64 = u64::MAX;

/// Which columns' long values are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// None: all.
    columns: Option<Vec<usize>>,
    /// How many bytes of them there may be; one row alone may have [`ONE_ROW_TIMES`] as many.
    heap_bytes: Option<u64>,
    /// Whether nothing else is wanted of the images, and then whether their joins are.
    apart: Option<bool>,
}

impl Wanted {
    pub(crate) fn all() -> Self {
        Wanted::default()
    }

    pub(crate) fn only(columns: &[usize]) -> Self {
        Wanted { columns: Some(columns.to_vec()), ..Wanted::default() }
    }

    /// The same, and of the images what else there is need not be read, nor the joins unless they are wanted.
    pub(crate) fn apart(self, joins: bool) -> Self {
        Wanted { apart: Some(joins), ..self }
    }

    /// The same, if they have so many bytes at most, or one row alone [`ONE_ROW_TIMES`] as many.
    pub(crate) fn within(self, heap_bytes: u64) -> Self {
        Wanted { heap_bytes: Some(heap_bytes), ..self }
    }

    fn has(&self, column: usize) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.contains(&column))
    }
}

/// A long value and the cell that points to it.
struct LongValue {
    offset: u64,
    bytes: u64,
    /// Where in the images the offset stands.
    cell: usize,
}

/// The pieces of an image in a table's newest layout that hold some columns, and the joins if they are wanted.
pub(crate) fn pieces(layout: &Layout, table: &Table, columns: &[usize], joins: bool) -> Vec<Range<usize>> {
    let mut pieces = Vec::with_capacity(2 * columns.len() + 1);
    for place in columns {
        let Some(column) = layout.columns().get(*place) else { continue };
        pieces.push(column.offset..column.offset + column.kind.bytes());
        // What is never NULL needs no bit that says so.
        if table.columns.get(*place).is_none_or(|column| !column.not_null) {
            pieces.push(place / 8..place / 8 + 1);
        }
    }
    if joins && !layout.joins().is_empty() {
        pieces.push(layout.join_offset(0)..layout.width());
    }
    pieces.order_by_key(|piece| piece.start);
    pieces.dedup_by(|next, piece| {
        let is_near = next.start <= piece.end + PIECE_GAP_BYTES;
        piece.end = if is_near { piece.end.max(next.end) } else { piece.end };
        is_near
    });
    pieces
}

/// Refuses a row that a segment does not have.
fn within(part: &Part, position: u64) -> Result<(), Error> {
    if position < part.count { Ok(()) } else { Err(Error::misuse("rows past the end of their segment")) }
}

impl Access {
    /// Reads `count` rows of a segment from a position on, or fewer if their long values are many.
    pub(crate) fn read(
        &self,
        view: &dyn View,
        part: usize,
        from: u64,
        count: usize,
        wanted: &Wanted,
    ) -> Result<RowBlock, Error> {
        let part = &self.parts[part];
        let rows = self.images(view, part, from, count)?;
        let ids = match &part.presence {
            None => RowIds::From(RowId(part.segment.first + from)),
            Some(presence) => {
                let numbers = presence.numbers(view, from, count).map_err(self.named())?;
                RowIds::List(numbers.into_iter().map(|number| RowId(part.segment.first + number)).collect())
            }
        };
        let mut block = RowBlock { rows, ids, visible: None };
        self.bring_up_to_date(view, part, &mut block)?;
        self.fill_heap(view, part, &mut block, wanted, wanted.heap_bytes.unwrap_or(HEAP_BYTES_MAX))?;
        Ok(block)
    }

    /// Reads rows of a segment by position, in any order.
    pub(crate) fn read_at(
        &self,
        view: &dyn View,
        part: usize,
        rows: &[(RowId, u64)],
        wanted: &Wanted,
    ) -> Result<RowBlock, Error> {
        let part = &self.parts[part];
        let bytes = match self.grain {
            Grain::Pages => self.images_near(view, part, rows)?,
            Grain::Cells => self.images_apart(view, part, rows, &self.pieces_of(part, wanted))?,
        };
        let rows_read = self.newest(part, rows.len(), bytes);
        let ids = RowIds::List(rows.iter().map(|(row, _)| *row).collect());
        let mut block = RowBlock { rows: rows_read, ids, visible: None };
        self.bring_up_to_date(view, part, &mut block)?;
        self.fill_heap(view, part, &mut block, wanted, wanted.heap_bytes.unwrap_or(u64::MAX))?;
        if block.count() < rows.len() {
            // With fewer rows it may do.
            return Err(Error::memory(None));
        }
        Ok(block)
    }

    /// Rows as they were inserted, whatever became of them.
    pub(crate) fn read_inserted(
        &self,
        view: &dyn View,
        part: usize,
        from: u64,
        count: usize,
        wanted: &Wanted,
    ) -> Result<RowBatch, Error> {
        let part = &self.parts[part];
        let rows = self.images(view, part, from, count)?;
        let mut block = RowBlock { rows, ids: RowIds::From(RowId(0)), visible: None };
        self.fill_heap(view, part, &mut block, wanted, u64::MAX)?;
        Ok(block.rows)
    }

    /// Newer images of rows, whatever became of them.
    pub(crate) fn read_updates(
        &self,
        view: &dyn View,
        part: usize,
        updates: &[UpdateAt],
        wanted: &Wanted,
    ) -> Result<RowBatch, Error> {
        let part = &self.parts[part];
        let mut rows = RowBatch::new(self.shape.newest.clone(), updates.len());
        let targets: Vec<_> = updates.iter().copied().enumerate().collect();
        self.patch(view, part, &mut rows, targets)?;
        let mut block = RowBlock { rows, ids: RowIds::From(RowId(0)), visible: None };
        self.fill_heap(view, part, &mut block, wanted, u64::MAX)?;
        Ok(block.rows)
    }

    /// Images in the newest layout; long values still point into the segment's heap.
    fn images(&self, view: &dyn View, part: &Part, from: u64, count: usize) -> Result<RowBatch, Error> {
        let width = part.layout.width();
        let end = from.checked_add(count as u64).filter(|end| *end <= part.count);
        end.ok_or_else(|| Error::misuse("rows past the end of their segment"))?;
        let stride = part.stride;
        let mut bytes = vec![0; count * stride];
        self.read_bytes(view, part.segment.rows(), from * stride as u64, &mut bytes)?;
        if stride > width {
            (1..count).for_each(|row| bytes.copy_within(row * stride..row * stride + width, row * width));
            bytes.truncate(count * width);
        }
        Ok(self.newest(part, count, bytes))
    }

    /// Images as they are stored, of rows by position: those that are near each other are read together.
    fn images_near(&self, view: &dyn View, part: &Part, rows: &[(RowId, u64)]) -> Result<Vec<u8>, Error> {
        let (width, stride) = (part.layout.width(), part.stride);
        let (mut all, mut together) = (Vec::with_capacity(rows.len() * width), Vec::new());
        let mut rest = rows;
        while let Some((_, first)) = rest.first() {
            let (near, others) = rest.split_at(grain::near(rest, stride as u64));
            let last = near.last().map_or(*first, |(_, last)| *last);
            within(part, last)?;
            let bytes = (last - first) as usize * stride + width;
            together.clear();
            together.reserve_exact(bytes);
            together.resize(bytes, 0);
            self.read_bytes(view, part.segment.rows(), first * stride as u64, &mut together)?;
            for (_, position) in near {
                let start = (position - first) as usize * stride;
                all.extend_from_slice(&together[start..start + width]);
            }
            rest = others;
        }
        Ok(all)
    }

    /// Pieces of images as they are stored, of rows by position; the others of their bytes are zeros.
    fn images_apart(
        &self,
        view: &dyn View,
        part: &Part,
        rows: &[(RowId, u64)],
        pieces: &[Range<usize>],
    ) -> Result<Vec<u8>, Error> {
        let width = part.layout.width();
        let mut bytes = vec![0; rows.len() * width];
        let mut places = Vec::with_capacity(rows.len().min(PIECES_ROWS) * pieces.len());
        for (some, bytes) in rows.chunks(PIECES_ROWS).zip(bytes.chunks_mut(PIECES_ROWS * width)) {
            places.clear();
            for (row, (_, position)) in some.iter().enumerate() {
                within(part, *position)?;
                let of = |piece: &Range<usize>| PieceOf {
                    offset: position * part.stride as u64 + piece.start as u64,
                    bytes: piece.len(),
                    at: row * width + piece.start,
                };
                places.extend(pieces.iter().map(of));
            }
            let read = view.read_pieces(part.segment.rows(), &places, bytes);
            read.map_err(Error::log(&self.table.name))?;
        }
        Ok(bytes)
    }

    /// The pieces of an image that are wanted.
    fn pieces_of(&self, part: &Part, wanted: &Wanted) -> Vec<Range<usize>> {
        match (&wanted.columns, wanted.apart, self.conversion(part)) {
            (Some(columns), Some(joins), None) => pieces(&part.layout, &self.table, columns, joins),
            _ => core::iter::once(0..part.layout.width()).collect(),
        }
    }

    fn conversion(&self, part: &Part) -> Option<&Conversion> {
        self.shape.conversions.get(part.segment.layout()).and_then(Option::as_ref)
    }

    /// Images as they are stored, in the newest layout.
    fn newest(&self, part: &Part, count: usize, bytes: Vec<u8>) -> RowBatch {
        let mut converted = bytes;
        if let Some(conversion) = self.conversion(part) {
            let images = core::mem::replace(&mut converted, Vec::with_capacity(count * self.shape.newest.width()));
            images.chunks_exact(part.layout.width()).for_each(|image| conversion.convert(image, &mut converted));
        }
        RowBatch::from_parts(self.shape.newest.clone(), count, converted, Vec::new())
    }

    fn read_bytes(&self, view: &dyn View, from: ContainerId, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        view.read(from, offset, bytes).map_err(Error::log(&self.table.name))
    }

    /// Hides deleted rows and replaces images that have newer ones.
    fn bring_up_to_date(&self, view: &dyn View, part: &Part, block: &mut RowBlock) -> Result<(), Error> {
        if part.lengths.deletes == 0 && part.lengths.updates == 0 || block.count() == 0 {
            return Ok(());
        }
        let (deleted, updated) = part.state.read(|state| match &block.ids {
            RowIds::From(first) => {
                let end = first.0 + block.rows.count() as u64;
                let deleted: Vec<_> =
                    state.deleted(first.0, end, part.lengths).map(|row| (row - first.0) as usize).collect();
                let updated = state.updated(first.0, end, part.lengths);
                let updated: Vec<_> =
                    updated.into_iter().map(|update| ((update.row - first.0) as usize, update)).collect();
                (deleted, updated)
            }
            RowIds::List(ids) => {
                let numbered = || ids.iter().enumerate();
                let deleted =
                    numbered().filter(|(_, id)| state.is_deleted(id.0, part.lengths)).map(|(place, _)| place).collect();
                let update = |(place, id): (usize, &RowId)| Some((place, state.update_of(id.0, part.lengths)?));
                (deleted, numbered().filter_map(update).collect())
            }
        });
        deleted.into_iter().for_each(|row| block.hide(row));
        let targets = updated.into_iter().filter(|(row, _)| block.is_visible(*row)).collect();
        self.patch(view, part, &mut block.rows, targets)
    }

    /// Replaces images by those of the update log.
    fn patch(
        &self,
        view: &dyn View,
        part: &Part,
        rows: &mut RowBatch,
        mut targets: Vec<(usize, UpdateAt)>,
    ) -> Result<(), Error> {
        targets.order_by_key(|(_, update)| update.offset);
        let mut rest = targets.as_slice();
        let mut bytes = Vec::new();
        while let Some((_, first)) = rest.first() {
            let start = first.offset;
            let mut end = start;
            let mut taken = 0;
            for (_, update) in rest {
                if update.offset != end || end - start > SPAN_BYTES_MAX {
                    break;
                }
                end += (UPDATE_HEAD_BYTES + self.width_of(update.layout)?) as u64;
                taken += 1;
            }
            bytes.resize((end - start) as usize, 0);
            self.read_bytes(view, part.segment.updates(), start, &mut bytes)?;
            let (span, others) = rest.split_at(taken);
            self.patch_span(rows, &bytes, span)?;
            rest = others;
        }
        Ok(())
    }

    fn width_of(&self, layout: u32) -> Result<usize, Error> {
        let layout = self.shape.layouts.get(layout as usize);
        layout.map(|layout| layout.width()).ok_or_else(|| Error::corrupt(&self.table.name, "update log"))
    }

    /// Replaces images by neighbouring entries of the update log.
    fn patch_span(&self, rows: &mut RowBatch, bytes: &[u8], span: &[(usize, UpdateAt)]) -> Result<(), Error> {
        let wrong = || Error::corrupt(&self.table.name, "update log");
        let new_width = self.shape.newest.width();
        let mut rest = bytes;
        let mut converted = Vec::new();
        for (row, update) in span {
            let (head, tail) = rest.split_first_chunk::<UPDATE_HEAD_BYTES>().ok_or_else(wrong)?;
            if split_update_head(head) != (update.row, update.layout) {
                return Err(wrong());
            }
            let (image, tail) = tail.split_at_checked(self.width_of(update.layout)?).ok_or_else(wrong)?;
            rest = tail;
            let conversion = self.shape.conversions.get(update.layout as usize).and_then(Option::as_ref);
            let image = match conversion {
                None => image,
                Some(conversion) => {
                    converted.clear();
                    conversion.convert(image, &mut converted);
                    &converted
                }
            };
            rows.bytes_mut()[row * new_width..(row + 1) * new_width].copy_from_slice(image);
        }
        Ok(())
    }

    /// Brings the long values that are wanted into the block's own heap and points the images there; cuts the block
    /// short before the row with which they would become more than `bytes_max`.
    fn fill_heap(
        &self,
        view: &dyn View,
        part: &Part,
        block: &mut RowBlock,
        wanted: &Wanted,
        bytes_max: u64,
    ) -> Result<(), Error> {
        let variable = self.shape.newest.columns().iter().enumerate().filter(|(_, column)| column.kind.is_variable());
        let cells: Vec<_> =
            variable.map(|(place, column)| (column.offset, column.kind.bytes(), wanted.has(place))).collect();
        if cells.is_empty() {
            return Ok(());
        }
        let (values, rows) = self.long_values(part, block, &cells, bytes_max)?;
        if let Some(bytes_max) = wanted.heap_bytes {
            let bytes = values.iter().fold(0_u64, |sum, value| sum.saturating_add(value.bytes));
            let times = if rows == 1 { ONE_ROW_TIMES } else { 1 };
            if bytes > bytes_max.saturating_mul(times) {
                return Err(Error::memory(usize::try_from(bytes).ok()));
            }
        }
        block.truncate(rows);
        let gap = self.grain.gap_bytes();
        let gap = wanted.heap_bytes.map_or(gap, |bytes| gap.min(bytes / GAP_PART));
        self.place_values(view, part, &mut block.rows, (values, gap))
    }

    /// The long values of the first rows of a block, and how many rows that is.
    fn long_values(
        &self,
        part: &Part,
        block: &mut RowBlock,
        cells: &[(usize, usize, bool)],
        bytes_max: u64,
    ) -> Result<(Vec<LongValue>, usize), Error> {
        let width = block.rows.width();
        let mut values = Vec::new();
        let mut total = 0_u64;
        for row in 0..block.count() {
            let visible = block.is_visible(row);
            let before = values.len();
            for (offset, cell_bytes, is_wanted) in cells {
                let cell = row * width + offset;
                let piece = Piece::read(&block.rows.bytes()[cell..cell + cell_bytes]);
                let Piece::Long { offset, length } = piece else { continue };
                if !visible {
                    block.rows.bytes_mut()[cell..cell + cell_bytes].fill(0);
                    continue;
                }
                if !is_wanted {
                    block.rows.bytes_mut()[cell + 8..cell + 16].copy_from_slice(&NOT_ASKED.to_le_bytes());
                    continue;
                }
                let bytes = length as u64;
                self.check_value(part, offset, bytes)?;
                total = total.saturating_add(bytes);
                values.push(LongValue { offset, bytes, cell: cell + 8 });
            }
            if total > bytes_max && row > 0 {
                values.truncate(before);
                return Ok((values, row));
            }
        }
        Ok((values, block.count()))
    }

    fn check_value(&self, part: &Part, offset: u64, bytes: u64) -> Result<(), Error> {
        let (start, there) = match offset & FROM_DEFAULTS {
            0 => (offset, part.heap_bytes),
            _ => (offset & !FROM_DEFAULTS, self.shape.defaults.len() as u64),
        };
        let inside = start.checked_add(bytes).is_some_and(|end| end <= there);
        if inside { Ok(()) } else { Err(Error::corrupt(&self.table.name, "place of a long value")) }
    }

    fn place_values(
        &self,
        view: &dyn View,
        part: &Part,
        rows: &mut RowBatch,
        (mut values, gap): (Vec<LongValue>, u64),
    ) -> Result<(), Error> {
        if !values.is_sorted_by_key(|value| value.offset) {
            values.order_by_key(|value| value.offset);
        }
        // About as many: what grows step by step is in memory twice.
        let bytes = values.iter().fold(0_u64, |sum, value| sum.saturating_add(value.bytes));
        rows.heap_mut().reserve_exact(usize::try_from(bytes).unwrap_or(0));
        let near = |reach: u64, next: &LongValue| next.offset <= reach.saturating_add(gap);
        let mut rest = values.as_slice();
        while let Some(first) = rest.first() {
            let mut reach = first.offset + first.bytes;
            let taken = rest.iter().position(|value| {
                let outside = !near(reach, value);
                reach = if outside { reach } else { reach.max(value.offset + value.bytes) };
                outside
            });
            let (together, others) = rest.split_at(taken.unwrap_or(rest.len()));
            self.place_together(view, part, rows, together, first.offset..reach)?;
            rest = others;
        }
        Ok(())
    }

    /// Brings in long values that lie near each other.
    fn place_together(
        &self,
        view: &dyn View,
        part: &Part,
        rows: &mut RowBatch,
        values: &[LongValue],
        range: Range<u64>,
    ) -> Result<(), Error> {
        let base = rows.heap().len();
        if range.start & FROM_DEFAULTS != 0 {
            let start = (range.start & !FROM_DEFAULTS) as usize;
            let bytes = &self.shape.defaults[start..start + (range.end - range.start) as usize];
            rows.heap_mut().extend_from_slice(bytes);
        } else {
            let bytes = usize::try_from(range.end - range.start).ok();
            let end = bytes.and_then(|bytes| base.checked_add(bytes));
            let end = end.ok_or_else(|| Error::corrupt(&self.table.name, "place of a long value"))?;
            rows.heap_mut().resize(end, 0);
            self.read_bytes(view, part.segment.heap(), range.start, &mut rows.heap_mut()[base..])?;
        }
        for value in values {
            let place = base as u64 + (value.offset - range.start);
            rows.bytes_mut()[value.cell..value.cell + 8].copy_from_slice(&place.to_le_bytes());
        }
        Ok(())
    }
}
