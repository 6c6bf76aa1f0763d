//! Reading images of older layouts as rows of the newest.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::batch::Piece;
use crate::layout::JOIN_BYTES;
use crate::{ColumnId, Error, Layout, RowBatch, Table, Type};

/// Set in the offset of a long value that comes from a column's default rather than from a segment's heap.
pub(crate) const FROM_DEFAULTS: u64 = 1 << 63;

/// What follows from a table's definition for its images.
#[derive(Debug, PartialEq)]
pub(crate) struct Shape {
    /// What rows have when they are brought: columns.
    pub(crate) brought: Arc<Layout>,
    /// What they have when they are stored: columns and joins.
    pub(crate) newest: Arc<Layout>,
    pub(crate) layouts: Vec<Arc<Layout>>,
    /// For each layout how to make a newest image of one of its images; `None`: it is one.
    pub(crate) conversions: Vec<Option<Conversion>>,
    /// Long values of defaults; offsets with [`FROM_DEFAULTS`] point here.
    pub(crate) defaults: Vec<u8>,
}

/// How to make a newest image of an older one.
#[derive(Debug, PartialEq)]
pub(crate) struct Conversion {
    /// What columns have that the older layout lacks.
    template: Vec<u8>,
    moves: Vec<Move>,
    /// Where joins stand in the older image, and in the newest.
    joins: Vec<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Move {
    from_column: usize,
    from: usize,
    to_column: usize,
    to: usize,
    bytes: usize,
}

impl Shape {
    /// Works it out; fails if the table's layouts name columns that it never had.
    pub(crate) fn of(table: &Table) -> Result<Self, Error> {
        let columns = || table.columns.iter().map(|column| (column.id, column.kind));
        let newest = Arc::new(Layout::with_joins(columns(), table.joins.iter().map(|join| join.id).collect()));
        let brought = if table.joins.is_empty() { newest.clone() } else { Arc::new(Layout::new(columns())) };
        let mut defaults = RowBatch::new(newest.clone(), 1);
        for (place, column) in table.columns.iter().enumerate() {
            if let Some(value) = &column.added_default {
                let wrong = |_| Error::corrupt(&table.name, "default of a column");
                defaults.set(0, place, value.borrow()).map_err(wrong)?;
            }
        }
        flag_long_values(&mut defaults);
        let kind_of = |id: &ColumnId| kind_of(table, *id).map(|kind| (*id, kind));
        let mut layouts = Vec::with_capacity(table.layouts.len());
        let mut conversions = Vec::with_capacity(table.layouts.len());
        for stored in &table.layouts {
            let known: Option<Vec<_>> = stored.columns.iter().map(kind_of).collect();
            let known = known.ok_or_else(|| Error::corrupt(&table.name, "list of layouts"))?;
            let layout = Layout::with_joins(known, stored.joins.clone());
            let is_newest = layout == *newest;
            conversions.push((!is_newest).then(|| Conversion::new(&layout, &newest, defaults.bytes())));
            layouts.push(if is_newest { newest.clone() } else { Arc::new(layout) });
        }
        Ok(Shape { brought, newest, layouts, conversions, defaults: defaults.heap().to_vec() })
    }
}

fn kind_of(table: &Table, id: ColumnId) -> Option<Type> {
    let visible = table.columns.iter().map(|column| (column.id, column.kind));
    let retired = table.retired.iter().map(|column| (column.id, column.kind));
    visible.chain(retired).find(|(column, _)| *column == id).map(|(_, kind)| kind)
}

fn flag_long_values(defaults: &mut RowBatch) {
    let layout = defaults.layout().clone();
    for column in layout.columns().iter().filter(|column| column.kind.is_variable()) {
        let cell = &mut defaults.bytes_mut()[column.offset..column.offset + column.kind.bytes()];
        if let Piece::Long { offset, .. } = Piece::read(cell) {
            cell[8..16].copy_from_slice(&(offset | FROM_DEFAULTS).to_le_bytes());
        }
    }
}

impl Conversion {
    fn new(from: &Layout, to: &Layout, defaults: &[u8]) -> Self {
        let moves = to.columns().iter().enumerate().filter_map(|(to_column, column)| {
            let from_column = from.position(column.id)?;
            let bytes = column.kind.bytes();
            Some(Move { from_column, from: from.columns()[from_column].offset, to_column, to: column.offset, bytes })
        });
        let joins = to.joins().iter().enumerate().filter_map(|(place, join)| {
            let from_place = from.joins().iter().position(|older| older == join)?;
            Some((from.join_offset(from_place), to.join_offset(place)))
        });
        Conversion { template: defaults.to_vec(), moves: moves.collect(), joins: joins.collect() }
    }

    /// Appends the newest image of an older one.
    pub(crate) fn convert(&self, image: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.template);
        let new = &mut out[start..];
        for step in &self.moves {
            let is_null = image[step.from_column / 8] & (1 << (step.from_column % 8)) != 0;
            let bit = 1 << (step.to_column % 8);
            if is_null {
                new[step.to_column / 8] |= bit;
            } else {
                new[step.to_column / 8] &= !bit;
            }
            new[step.to..step.to + step.bytes].copy_from_slice(&image[step.from..step.from + step.bytes]);
        }
        for (from, to) in &self.joins {
            new[*to..*to + JOIN_BYTES].copy_from_slice(&image[*from..*from + JOIN_BYTES]);
        }
    }
}
