//! Reading what can still be read of a damaged table.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::View;

use crate::access::{Access, Part, Shared, length, measure};
use crate::careful::{Careful, Piece};
use crate::files::Segment;
use crate::shape::Shape;
use crate::state::Lengths;
use crate::{Error, RowBlock, RowId, TableId};

/// A salvage under way: blocks of rows that still authenticate.
pub struct Salvage<V> {
    view: V,
    access: Access,
    careful: Careful,
    missing: Vec<Range<RowId>>,
    notes: Vec<String>,
}

impl<V: View> Salvage<V> {
    /// Opens what there is of a table. What memory may know of it already is not used.
    pub(crate) fn open(shared: &Shared, view: V, id: TableId) -> Result<Self, Error> {
        let own = Shared::new(shared.fresh_rows);
        let table = shared.catalog.table(&view, id)?.ok_or_else(|| Error::sql("this table no longer exists"))?;
        let files = shared.catalog.files(&view, &table)?;
        let shape = match &table.shape {
            Some(shape) => shape.clone(),
            None => Arc::new(Shape::of(&table)?),
        };
        let (files_of, parts, grain) = (files.clone(), Vec::new(), shared.grain);
        let mut access = Access { table, shape, files: files_of, parts, grain };
        let mut notes = Vec::new();
        for segment in &files.segments {
            match open_part(&own, &view, &access, segment, &mut notes) {
                Ok(part) => access.parts.push(part),
                Err(error) if error.is_damage() => {
                    notes.push(format!("rows from number {} on: {error}", segment.first))
                }
                Err(error) => return Err(error),
            }
        }
        let careful = Careful::new(&access);
        Ok(Salvage { view, access, careful, missing: Vec::new(), notes })
    }

    /// The next rows that can be read; `None` at the end.
    ///
    /// # Errors
    /// Only what is no damage: a broken promise of the caller.
    pub fn next(&mut self, rows_max: usize) -> Result<Option<RowBlock>, Error> {
        while let Some(piece) = self.careful.next(&self.view, &self.access, rows_max)? {
            match piece {
                Piece::Rows(block) if block.visible_count() > 0 => return Ok(Some(block)),
                Piece::Rows(_) => {}
                Piece::Damaged { part, positions, .. } => self.note_missing(part, positions)?,
            }
        }
        Ok(None)
    }

    fn note_missing(&mut self, part: usize, positions: Range<u64>) -> Result<(), Error> {
        let part = &self.access.parts[part];
        for position in positions {
            let Some(row) = part.row_at(&self.view, position)? else { continue };
            if part.state.read(|state| state.is_deleted(row.0, part.lengths)) {
                continue;
            }
            let end = RowId(row.0 + 1);
            match self.missing.last_mut() {
                Some(last) if last.end == row => last.end = end,
                _ => self.missing.push(row..end),
            }
        }
        Ok(())
    }

    /// Row numbers that were not readable so far, in order.
    #[must_use]
    pub fn missing(&self) -> &[Range<RowId>] {
        &self.missing
    }

    /// What else is lost: deletions or updates that cannot be read, so that rows appear as they once were.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// A segment with as much of its logs as can be read.
fn open_part(
    own: &Shared,
    view: &dyn View,
    access: &Access,
    segment: &Segment,
    notes: &mut Vec<String>,
) -> Result<Part, Error> {
    let (layout, lengths, count, span) = measure(view, &access.table, &access.shape, segment)?;
    let heap_bytes = length(view, &access.table, segment.heap())?;
    let first = segment.first;
    let none = Lengths { deletes: 0, updates: 0 };
    let mut lengths = lengths;
    if let Err(error) = own.states.segment(view, segment, &access.shape, lengths, false) {
        notes.push(format!("deletes and updates of rows from number {first} on are known in part: {error}"));
        lengths = own.states.known(segment);
    }
    let state = own.states.segment(view, segment, &access.shape, none, false).and_then(|state| {
        let presence = state.read(|state| state.presence()).filter(|_| segment.presence.is_some());
        presence.iter().try_for_each(|presence| presence.check(view))?;
        Ok((state, presence))
    });
    let (state, presence) = match state {
        Ok((state, presence)) => (state, presence.filter(|presence| presence.count() == count)),
        Err(error) if error.is_damage() => {
            notes.push(format!("the numbers of rows from {first} on are lost: {error}"));
            (Default::default(), None)
        }
        Err(error) => return Err(error),
    };
    if segment.presence.is_some() && presence.is_none() {
        // Without their numbers nobody knows which rows were deleted or updated.
        lengths = none;
    }
    let stride = segment.stride(layout.width());
    Ok(Part { segment: segment.clone(), layout, stride, count, span, lengths, heap_bytes, presence, state })
}
