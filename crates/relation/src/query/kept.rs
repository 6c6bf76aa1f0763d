//! Joined rows that were read last: many rows of a root join the same ones, and those of small tables are joined by most.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use counterfoil_log::Map;

use super::Source;
use crate::read::pieces;
use crate::{RowBatch, RowBlock, RowId, RowIds};

/// What a row takes beside its bytes, about.
const ENTRY_BYTES: usize = size_of::<((usize, RowId), Kept)>();

/// Joined rows that were read last, up to a bound of memory: of one view, with the same sources and columns each time.
#[derive(Default)]
pub struct KeptRows {
    bytes_max: usize,
    bytes: usize,
    rows: Map<(usize, RowId), Kept>,
    /// Rows asked for so far.
    asked: u64,
}

struct Kept {
    /// The pieces of its image that are needed.
    bytes: Vec<u8>,
    /// When it was asked for last.
    asked: u64,
}

impl KeptRows {
    /// None yet, and never more than so many bytes of them.
    #[must_use]
    pub fn within(bytes_max: usize) -> Self {
        KeptRows { bytes_max, ..KeptRows::default() }
    }

    /// Of some rows of a source those that are not kept.
    pub(super) fn missing(&self, number: usize, rows: &[RowId]) -> Vec<RowId> {
        rows.iter().filter(|row| !self.rows.contains_key(&(number, **row))).copied().collect()
    }

    /// Some rows of a source, of which those that were missing have been read: the others join them, and all are kept.
    pub(super) fn complete(
        &mut self,
        (number, source): (usize, &Source),
        columns: &[usize],
        rows: &[RowId],
        read: RowBlock,
    ) -> RowBlock {
        if self.bytes_max == 0 {
            return read;
        }
        // What points to long values is not kept.
        let is_kept = read.rows.heap().is_empty();
        let pieces = pieces(read.rows.layout(), &source.table, columns, false);
        let mut all = Vec::with_capacity(rows.len() * read.rows.width());
        let (mut images, mut new) = (read.rows.bytes().chunks_exact(read.rows.width()), Vec::new());
        for row in rows {
            self.asked += 1;
            match self.rows.get_mut(&(number, *row)) {
                Some(kept) => {
                    kept.asked = self.asked;
                    spread(&pieces, &kept.bytes, &mut all, read.rows.width());
                }
                None => {
                    let image = images.next().unwrap_or_default();
                    all.extend_from_slice(image);
                    new.push((
                        *row,
                        pieces.iter().flat_map(|piece| image.get(piece.clone()).unwrap_or_default()).copied().collect(),
                    ));
                }
            }
        }
        new.into_iter().filter(|_| is_kept).for_each(|(row, bytes)| self.keep((number, row), bytes));
        let heap = read.rows.heap().to_vec();
        let rows_read = RowBatch::from_parts(read.rows.layout().clone(), rows.len(), all, heap);
        RowBlock { rows: rows_read, ids: RowIds::List(rows.to_vec()), visible: None }
    }

    /// Keeps a row, in the place of those that were asked for the longest time ago.
    fn keep(&mut self, place: (usize, RowId), bytes: Vec<u8>) {
        let taken = |bytes: &Vec<u8>| bytes.len() + ENTRY_BYTES;
        if taken(&bytes) > self.bytes_max {
            return;
        }
        while self.bytes + taken(&bytes) > self.bytes_max {
            let oldest = self.rows.iter().min_by_key(|(_, kept)| kept.asked).map(|(place, _)| *place);
            let Some(oldest) = oldest.and_then(|oldest| self.rows.remove(&oldest)) else { return };
            self.bytes -= taken(&oldest.bytes);
        }
        self.bytes += taken(&bytes);
        self.rows.insert(place, Kept { bytes, asked: self.asked });
    }
}

/// Adds an image of which these are pieces.
fn spread(pieces: &[Range<usize>], mut bytes: &[u8], images: &mut Vec<u8>, width: usize) {
    let start = images.len();
    images.extend(vec![0; width]);
    for piece in pieces {
        let (own, rest) = bytes.split_at(piece.len().min(bytes.len()));
        images[start + piece.start..start + piece.start + own.len()].copy_from_slice(own);
        bytes = rest;
    }
}
