//! Reading rows by number.

use alloc::vec::Vec;

use counterfoil_log::View;

use crate::access::Access;
use crate::read::Wanted;
use crate::{Error, RowBatch, RowBlock, RowId, RowIds};

impl Access {
    /// Reads rows by number, in the order given. Rows that are not there are NULLs and not visible.
    pub(crate) fn fetch(&self, view: &dyn View, rows: &[RowId], wanted: &Wanted) -> Result<RowBlock, Error> {
        let located: Vec<Option<(usize, u64)>> = rows.iter().map(|row| self.locate(*row)).collect();
        let first_part = located.first().copied().flatten().map(|(part, _)| part);
        let together = first_part.is_some() && located.iter().all(|place| place.map(|(part, _)| part) == first_part);
        if let (Some(part), true) = (first_part, together) {
            let places: Vec<_> =
                rows.iter().zip(&located).filter_map(|(row, place)| Some((*row, (*place)?.1))).collect();
            return self.read_at(view, part, &places, wanted);
        }
        self.fetch_scattered(view, rows, &located, wanted)
    }

    /// Rows of several segments, or some that are nowhere.
    fn fetch_scattered(
        &self,
        view: &dyn View,
        rows: &[RowId],
        located: &[Option<(usize, u64)>],
        wanted: &Wanted,
    ) -> Result<RowBlock, Error> {
        let mut blocks: Vec<RowBlock> = Vec::with_capacity(self.parts.len());
        for number in 0..self.parts.len() {
            let of_part = rows.iter().zip(located).filter_map(|(row, place)| {
                place.filter(|(part, _)| *part == number).map(|(_, position)| (*row, position))
            });
            blocks.push(self.read_at(view, number, &of_part.collect::<Vec<_>>(), wanted)?);
        }
        let mut taken = alloc::vec![0; blocks.len()];
        let batch = RowBatch::new(self.shape.newest.clone(), 0);
        let mut result = RowBlock { rows: batch, ids: RowIds::List(rows.to_vec()), visible: None };
        let mut hidden = Vec::new();
        for (place, located) in located.iter().enumerate() {
            let found = located.map(|(part, _)| {
                let row = taken[part];
                taken[part] += 1;
                (&blocks[part], row)
            });
            match found.filter(|(block, row)| block.is_visible(*row)) {
                Some((block, row)) => result.rows.push_moved(&block.rows, row),
                None => {
                    result.rows.grow(1);
                    hidden.push(place);
                }
            }
        }
        hidden.into_iter().for_each(|row| result.hide(row));
        Ok(result)
    }
}
