//! Rows outside the database: on their way in, or read out of it.
//!
//! A [`RowBatch`] is row images side by side, as they lie in a container, and a heap of their long values. The offset
//! in the image of a long value counts from the beginning of this heap; insertion moves it to where the value comes to
//! lie in the table's heap.
//!
//! Invariant: the images are well formed, since only [`RowBatch::set`] and its kin write them; `bytes` has
//! `count` x `width` bytes. Images read from a table are checked value by value when they are asked for.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::layout::{JOIN_BYTES, LENGTH_BYTES};
use crate::{Error, Layout, RowId, Type, Value, ValueRef};

/// Bytes that a value may have.
pub const VALUE_BYTES_MAX: usize = (1 << 30) - 1;

/// Rows of one layout.
#[derive(Clone)]
pub struct RowBatch {
    layout: Arc<Layout>,
    count: usize,
    bytes: Vec<u8>,
    heap: Vec<u8>,
}

impl RowBatch {
    /// `count` rows of NULLs.
    #[must_use]
    pub fn new(layout: Arc<Layout>, count: usize) -> Self {
        let mut batch = RowBatch { layout, count: 0, bytes: Vec::new(), heap: Vec::new() };
        batch.grow(count);
        batch
    }

    pub(crate) fn from_parts(layout: Arc<Layout>, count: usize, bytes: Vec<u8>, heap: Vec<u8>) -> Self {
        assert_eq!(bytes.len(), count * layout.width(), "as many images as rows");
        RowBatch { layout, count, bytes, heap }
    }

    /// Adds `count` rows of NULLs; returns the place of the first of them.
    pub fn grow(&mut self, count: usize) -> usize {
        let first = self.count;
        let layout = &self.layout;
        let mut empty = vec![0; layout.width()];
        for column in 0..layout.columns().len() {
            empty[column / 8] |= 1 << (column % 8);
        }
        self.bytes.reserve(count * empty.len());
        (0..count).for_each(|_| self.bytes.extend_from_slice(&empty));
        self.count += count;
        first
    }

    /// The layout of its rows.
    #[must_use]
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Rows there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes from one row to the next.
    #[must_use]
    pub fn width(&self) -> usize {
        self.layout.width()
    }

    /// All images, `width` bytes each.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The long values.
    #[must_use]
    pub fn heap(&self) -> &[u8] {
        &self.heap
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub(crate) fn heap_mut(&mut self) -> &mut Vec<u8> {
        &mut self.heap
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.bytes.truncate(count * self.width());
        self.count = self.count.min(count);
    }

    /// The image of one row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn image(&self, row: usize) -> &[u8] {
        &self.bytes[row * self.width()..(row + 1) * self.width()]
    }

    /// Whether a value is NULL.
    ///
    /// # Panics
    /// If there is no such row or column.
    #[must_use]
    pub fn is_null(&self, row: usize, column: usize) -> bool {
        assert!(column < self.layout.columns().len() && row < self.count, "no such value");
        self.bytes[row * self.width() + column / 8] & (1 << (column % 8)) != 0
    }

    /// The bytes of a value within its image, of its type's size, little-endian: all there is to read of a number.
    ///
    /// # Panics
    /// If there is no such row or column.
    #[must_use]
    pub fn fixed(&self, row: usize, column: usize) -> &[u8] {
        let column = &self.layout.columns()[column];
        let start = row * self.width() + column.offset;
        &self.bytes[start..start + column.kind.bytes()]
    }

    /// The bytes of a text or BYTEA; empty for NULL.
    ///
    /// # Errors
    /// [`Error::corrupt`] for an image that points outside the heap, or whose heap was not asked for.
    ///
    /// # Panics
    /// If there is no such row or column, or it is of another type.
    pub fn variable(&self, row: usize, column: usize) -> Result<&[u8], Error> {
        assert!(self.layout.columns()[column].kind.is_variable(), "not a text");
        let piece = Piece::read(self.fixed(row, column));
        match piece {
            Piece::Inline { length } => Ok(&self.fixed(row, column)[LENGTH_BYTES..LENGTH_BYTES + length]),
            Piece::Long { offset, length } => {
                let start = usize::try_from(offset).ok();
                start
                    .and_then(|start| self.heap.get(start..start.checked_add(length)?))
                    .ok_or_else(|| Error::corrupt("", "place of a long value"))
            }
        }
    }

    /// One value.
    ///
    /// # Errors
    /// [`Error::corrupt`] for bytes that are none.
    ///
    /// # Panics
    /// If there is no such row or column.
    pub fn value(&self, row: usize, column: usize) -> Result<ValueRef<'_>, Error> {
        if self.is_null(row, column) {
            return Ok(ValueRef::Null);
        }
        let kind = self.layout.columns()[column].kind;
        if kind.is_variable() {
            let bytes = self.variable(row, column)?;
            if kind == Type::Bytea {
                return Ok(ValueRef::Bytea(bytes));
            }
            let text = core::str::from_utf8(bytes).map_err(|_| Error::corrupt("", "encoding of a text"))?;
            return Ok(ValueRef::Text(text));
        }
        fixed_value(kind, self.fixed(row, column))
    }

    /// Writes one value.
    ///
    /// # Errors
    /// [`Error::misuse`] if the column's type is another, or the value has more than [`VALUE_BYTES_MAX`] bytes.
    ///
    /// # Panics
    /// If there is no such row or column.
    pub fn set(&mut self, row: usize, column: usize, value: ValueRef<'_>) -> Result<(), Error> {
        if !value.fits(self.layout.columns()[column].kind) {
            return Err(Error::misuse("a value of another type than its column"));
        }
        match value {
            ValueRef::Null => self.set_null(row, column),
            ValueRef::Boolean(value) => self.set_fixed(row, column, [u8::from(value)]),
            ValueRef::SmallInt(value) => self.set_fixed(row, column, value.to_le_bytes()),
            ValueRef::Integer(value) | ValueRef::Date(value) => self.set_fixed(row, column, value.to_le_bytes()),
            ValueRef::Real(value) => self.set_fixed(row, column, value.to_le_bytes()),
            ValueRef::Double(value) => self.set_fixed(row, column, value.to_le_bytes()),
            ValueRef::BigInt(value)
            | ValueRef::Time(value)
            | ValueRef::Timestamp(value)
            | ValueRef::TimestampTz(value) => self.set_fixed(row, column, value.to_le_bytes()),
            ValueRef::Numeric(value) => self.set_fixed(row, column, value.to_le_bytes()),
            ValueRef::Uuid(value) => self.set_fixed(row, column, value),
            ValueRef::Text(value) => return self.set_variable(row, column, value.as_bytes()),
            ValueRef::Bytea(value) => return self.set_variable(row, column, value),
        }
        Ok(())
    }

    /// Writes NULL.
    ///
    /// # Panics
    /// If there is no such row or column.
    pub fn set_null(&mut self, row: usize, column: usize) {
        let width = self.width();
        let place = self.layout.columns()[column];
        let image = &mut self.bytes[row * width..(row + 1) * width];
        image[column / 8] |= 1 << (column % 8);
        image[place.offset..place.offset + place.kind.bytes()].fill(0);
    }

    /// Writes the little-endian bytes of a value of fixed size: the quick way for whole columns.
    ///
    /// # Panics
    /// If there is no such row or column, or its type has another size.
    pub fn set_fixed<const N: usize>(&mut self, row: usize, column: usize, value: [u8; N]) {
        let width = self.width();
        let place = self.layout.columns()[column];
        assert!(place.kind.bytes() == N && !place.kind.is_variable(), "a value of another size than its column");
        let image = &mut self.bytes[row * width..(row + 1) * width];
        image[column / 8] &= !(1 << (column % 8));
        image[place.offset..place.offset + N].copy_from_slice(&value);
    }

    /// Writes the bytes of a text (the caller vouches that they are UTF-8) or BYTEA.
    ///
    /// # Errors
    /// [`Error::misuse`] for more than [`VALUE_BYTES_MAX`] bytes.
    ///
    /// # Panics
    /// If there is no such row or column, or it is of another type.
    pub fn set_variable(&mut self, row: usize, column: usize, value: &[u8]) -> Result<(), Error> {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::misuse("a value of more than 1 GiB"));
        }
        let width = self.width();
        let place = self.layout.columns()[column];
        assert!(place.kind.is_variable(), "not a text");
        let image = &mut self.bytes[row * width..(row + 1) * width];
        image[column / 8] &= !(1 << (column % 8));
        let cell = &mut image[place.offset..place.offset + place.kind.bytes()];
        cell[..LENGTH_BYTES].copy_from_slice(&(value.len() as u32).to_le_bytes());
        cell[LENGTH_BYTES..].fill(0);
        if value.len() <= cell.len() - LENGTH_BYTES {
            cell[LENGTH_BYTES..LENGTH_BYTES + value.len()].copy_from_slice(value);
        } else {
            cell[4..8].copy_from_slice(&value[..4]);
            cell[8..16].copy_from_slice(&(self.heap.len() as u64).to_le_bytes());
            if cfg!(feature = "small") && self.heap.capacity() - self.heap.len() < value.len() {
                // A vector that doubles has room to spare in every batch.
                self.heap.reserve_exact(value.len() + self.heap.len() / 4);
            }
            self.heap.extend_from_slice(value);
        }
        Ok(())
    }

    /// The row at the end of a path, by the path's place in the layout.
    ///
    /// # Panics
    /// If there is no such row or path.
    pub(crate) fn join(&self, row: usize, place: usize) -> Option<RowId> {
        let start = row * self.width() + self.layout.join_offset(place);
        let mut number = [0; 8];
        number[..JOIN_BYTES].copy_from_slice(&self.bytes[start..start + JOIN_BYTES]);
        u64::from_le_bytes(number).checked_sub(1).map(RowId)
    }

    /// Writes the row at the end of a path. Row numbers are small enough ([`crate::files::ROW_NUMBERS_MAX`]).
    pub(crate) fn set_join(&mut self, row: usize, place: usize, to: Option<RowId>) {
        let start = row * self.width() + self.layout.join_offset(place);
        let number = to.map_or(0, |to| to.0 + 1).to_le_bytes();
        assert!(number[JOIN_BYTES..] == [0; 8 - JOIN_BYTES], "row numbers stay below their bound");
        self.bytes[start..start + JOIN_BYTES].copy_from_slice(&number[..JOIN_BYTES]);
    }

    /// The same rows in another layout with the same columns, every join none.
    pub(crate) fn with_layout(&self, layout: &Arc<Layout>) -> RowBatch {
        assert!(layout.columns() == self.layout.columns(), "a layout with the same columns");
        let columns = layout.width() - layout.joins().len() * JOIN_BYTES;
        let mut bytes = vec![0; self.count * layout.width()];
        for (image, own) in bytes.chunks_exact_mut(layout.width()).zip(self.bytes.chunks_exact(self.width())) {
            image[..columns].copy_from_slice(&own[..columns]);
        }
        RowBatch { layout: layout.clone(), count: self.count, bytes, heap: self.heap.clone() }
    }

    /// Copies the joins of all rows of a batch with the same layout.
    pub(crate) fn take_joins(&mut self, other: &RowBatch) {
        assert!(self.layout == other.layout && self.count == other.count, "rows of the same layout");
        let (width, joins) = (self.width(), self.layout.joins().len() * JOIN_BYTES);
        let images = self.bytes.chunks_exact_mut(width).zip(other.bytes.chunks_exact(width));
        images.for_each(|(own, other)| own[width - joins..].copy_from_slice(&other[width - joins..]));
    }

    /// Whether a row joins the same rows as that of another batch with the same layout.
    pub(crate) fn joins_alike(&self, other: &RowBatch, row: usize) -> bool {
        (0..self.layout.joins().len()).all(|place| self.join(row, place) == other.join(row, place))
    }

    /// One row, as values that own their bytes.
    ///
    /// # Errors
    /// [`Error::corrupt`] for bytes that are no values.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> Result<Vec<Value>, Error> {
        (0..self.layout.columns().len()).map(|column| Ok(self.value(row, column)?.to_owned())).collect()
    }

    /// As [`RowBatch::push_from`], for rows of the same table: long values that were not asked for stay so.
    pub(crate) fn push_moved(&mut self, other: &RowBatch, row: usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(other.image(row));
        let layout = self.layout.clone();
        for (column, place) in layout.columns().iter().enumerate().filter(|(_, place)| place.kind.is_variable()) {
            let cell = start + place.offset;
            if let (Piece::Long { .. }, Ok(value)) =
                (Piece::read(&self.bytes[cell..cell + place.kind.bytes()]), other.variable(row, column))
            {
                self.bytes[cell + 8..cell + 16].copy_from_slice(&(self.heap.len() as u64).to_le_bytes());
                self.heap.extend_from_slice(value);
            }
        }
        self.count += 1;
    }

    /// Copies a row of another batch with the same layout to the end of this one.
    ///
    /// # Errors
    /// [`Error::corrupt`] if its long values are not there, [`Error::misuse`] for another layout.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn push_from(&mut self, other: &RowBatch, row: usize) -> Result<(), Error> {
        if self.layout != other.layout {
            return Err(Error::misuse("rows of another layout"));
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(other.image(row));
        for (column, place) in self.layout.columns().iter().enumerate().filter(|(_, place)| place.kind.is_variable()) {
            let cell = start + place.offset;
            if let Piece::Long { .. } = Piece::read(&self.bytes[cell..cell + place.kind.bytes()]) {
                let value = other.variable(row, column)?;
                self.bytes[cell + 8..cell + 16].copy_from_slice(&(self.heap.len() as u64).to_le_bytes());
                self.heap.extend_from_slice(value);
            }
        }
        self.count += 1;
        Ok(())
    }
}

/// Where the bytes of a text lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Inline { length: usize },
    Long { offset: u64, length: usize },
}

impl Piece {
    /// Reads a text's cell, of which there are 16 bytes at least.
    pub(crate) fn read(cell: &[u8]) -> Piece {
        let length = u32::from_le_bytes([cell[0], cell[1], cell[2], cell[3]]) as usize;
        if length <= cell.len() - LENGTH_BYTES {
            return Piece::Inline { length };
        }
        let mut offset = [0; 8];
        offset.copy_from_slice(&cell[8..16]);
        Piece::Long { offset: u64::from_le_bytes(offset), length }
    }
}

fn fixed_value(kind: Type, bytes: &[u8]) -> Result<ValueRef<'static>, Error> {
    let value = match kind {
        Type::Boolean => match bytes {
            [0] => ValueRef::Boolean(false),
            [1] => ValueRef::Boolean(true),
            _ => return Err(Error::corrupt("", "value of a BOOLEAN")),
        },
        Type::SmallInt => ValueRef::SmallInt(i16::from_le_bytes(array(bytes))),
        Type::Integer => ValueRef::Integer(i32::from_le_bytes(array(bytes))),
        Type::Date => ValueRef::Date(i32::from_le_bytes(array(bytes))),
        Type::Real => ValueRef::Real(f32::from_le_bytes(array(bytes))),
        Type::Double => ValueRef::Double(f64::from_le_bytes(array(bytes))),
        Type::BigInt => ValueRef::BigInt(i64::from_le_bytes(array(bytes))),
        Type::Time => ValueRef::Time(i64::from_le_bytes(array(bytes))),
        Type::Timestamp { .. } => ValueRef::Timestamp(i64::from_le_bytes(array(bytes))),
        Type::TimestampTz => ValueRef::TimestampTz(i64::from_le_bytes(array(bytes))),
        Type::Numeric { .. } => ValueRef::Numeric(i128::from_le_bytes(array(bytes))),
        Type::Uuid => ValueRef::Uuid(array(bytes)),
        Type::Text | Type::VarChar(_) | Type::Char(_) | Type::Bytea => unreachable!("texts are read elsewhere"),
    };
    Ok(value)
}

/// The bytes of a value, of which there are as many as its type has.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a value has the size of its type")
}

/// Fills a batch row by row.
pub struct RowBuilder {
    batch: RowBatch,
}

impl RowBuilder {
    /// An empty batch.
    #[must_use]
    pub fn new(layout: Arc<Layout>) -> Self {
        RowBuilder { batch: RowBatch::new(layout, 0) }
    }

    /// An empty batch with room for so many rows: one that grows is in memory twice.
    pub(crate) fn with_room(layout: Arc<Layout>, rows: usize) -> Self {
        let bytes = Vec::with_capacity(rows * layout.width());
        RowBuilder { batch: RowBatch { layout, count: 0, bytes, heap: Vec::new() } }
    }

    /// Adds a row; values that are not given are NULL.
    ///
    /// # Errors
    /// [`Error::misuse`] for too many values, or one of another type than its column.
    pub fn push(&mut self, values: &[ValueRef<'_>]) -> Result<(), Error> {
        if values.len() > self.batch.layout.columns().len() {
            return Err(Error::misuse("more values than columns"));
        }
        let row = self.batch.grow(1);
        values.iter().enumerate().try_for_each(|(column, value)| self.batch.set(row, column, *value))
    }

    /// Rows so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.batch.count
    }

    /// Bytes so far, images and long values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.batch.bytes.len() + self.batch.heap.len()
    }

    /// The rows.
    #[must_use]
    pub fn finish(self) -> RowBatch {
        self.batch
    }
}

/// Says how much there is, not what: row values stay out of logs.
impl core::fmt::Debug for RowBatch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RowBatch").field("rows", &self.count).field("heap", &self.heap.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnId, JoinId};

    #[test]
    fn the_joins_of_the_specification() {
        let columns = || [(ColumnId(1), Type::Integer)];
        let mut brought = RowBatch::new(Arc::new(Layout::new(columns())), 1);
        brought.set(0, 0, ValueRef::Integer(7)).unwrap();
        let layout = Arc::new(Layout::with_joins(columns(), Vec::from([JoinId(1), JoinId(2)])));
        let mut stored = brought.with_layout(&layout);
        assert_eq!((stored.join(0, 0), stored.join(0, 1)), (None, None));
        stored.set_join(0, 0, Some(RowId(0)));
        assert_eq!(stored.bytes(), [0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((stored.join(0, 0), stored.join(0, 1)), (Some(RowId(0)), None));
        assert_eq!(stored.value(0, 0).unwrap(), ValueRef::Integer(7));
        assert_eq!(stored.with_layout(brought.layout()).bytes(), brought.bytes());
    }
}
