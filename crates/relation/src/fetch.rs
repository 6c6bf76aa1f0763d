//! Reading rows by number.

use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use crate::access::Access;
use crate::read::Wanted;
use crate::{Error, RowBatch, RowBlock, RowId, RowIds};

impl Access {
    /// Reads rows by number, in the order given. Rows that are not there are NULLs and not visible.
    pub(crate) fn fetch(&self, view: &dyn View, rows: &[RowId], wanted: &Wanted) -> Result<RowBlock, Error> {
        let located = rows.iter().map(|row| self.locate(view, *row)).collect::<Result<Vec<_>, Error>>()?;
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
        // Places of the rows, those of a segment together.
        let mut places: Vec<usize> = (0..rows.len()).collect();
        places.order_stably_by_key(|place| located[*place].map(|(part, _)| part));
        // For each row its block, and where it is in it.
        let mut found: Vec<Option<(usize, usize)>> = alloc::vec![None; rows.len()];
        let mut blocks: Vec<RowBlock> = Vec::new();
        for together in places.chunk_by(|one, next| part_of(located[*one]) == part_of(located[*next])) {
            let Some(part) = part_of(located[together[0]]) else { continue };
            let of_part = together.iter().filter_map(|place| Some((rows[*place], located[*place]?.1)));
            let block = self.read_at(view, part, &of_part.collect::<Vec<_>>(), wanted)?;
            together.iter().enumerate().for_each(|(row, place)| found[*place] = Some((blocks.len(), row)));
            blocks.push(block);
        }
        let batch = RowBatch::new(self.shape.newest.clone(), 0);
        let mut result = RowBlock { rows: batch, ids: RowIds::List(rows.to_vec()), visible: None };
        let mut hidden = Vec::new();
        for (place, found) in found.into_iter().enumerate() {
            let found = found.map(|(block, row)| (&blocks[block], row));
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

/// The segment in which a row lies.
fn part_of(located: Option<(usize, u64)>) -> Option<usize> {
    located.map(|(part, _)| part)
}
