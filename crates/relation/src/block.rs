//! Rows read from a table, with their numbers.

use alloc::vec::Vec;

use crate::{RowBatch, RowId};

/// The numbers of the rows of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowIds {
    /// Consecutive numbers from this one on.
    From(RowId),
    /// One for each row.
    List(Vec<RowId>),
}

/// Rows of a table in its newest layout, every value as the view sees it.
#[derive(Clone, Debug)]
pub struct RowBlock {
    /// The rows, visible or not.
    pub rows: RowBatch,
    /// Their numbers.
    pub ids: RowIds,
    /// Which rows are there: bit r % 64 of word r / 64. `None`: all of them.
    pub visible: Option<Vec<u64>>,
}

impl RowBlock {
    /// Rows in the block, visible or not.
    #[must_use]
    pub fn count(&self) -> usize {
        self.rows.count()
    }

    /// The number of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn id(&self, row: usize) -> RowId {
        assert!(row < self.count(), "no such row");
        match &self.ids {
            RowIds::From(first) => RowId(first.0 + row as u64),
            RowIds::List(ids) => ids[row],
        }
    }

    /// Whether the view sees a row: it exists and is not deleted.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn is_visible(&self, row: usize) -> bool {
        assert!(row < self.count(), "no such row");
        self.visible.as_ref().is_none_or(|words| words[row / 64] & (1 << (row % 64)) != 0)
    }

    /// Rows the view sees.
    #[must_use]
    pub fn visible_count(&self) -> usize {
        match &self.visible {
            None => self.count(),
            Some(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The rows the view sees, by their places in the block.
    pub fn visible_rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count()).filter(|row| self.is_visible(*row))
    }

    /// The row at the end of a path of foreign keys, by the path's place among the table's joins; none where the path
    /// leads nowhere.
    ///
    /// # Panics
    /// If there is no such row or path.
    #[must_use]
    pub fn joined(&self, row: usize, path: usize) -> Option<RowId> {
        assert!(row < self.count(), "no such row");
        self.rows.join(row, path)
    }

    /// Keeps the first rows only.
    pub(crate) fn truncate(&mut self, count: usize) {
        if count >= self.count() {
            return;
        }
        self.rows.truncate(count);
        if let RowIds::List(ids) = &mut self.ids {
            ids.truncate(count);
        }
        if let Some(words) = &mut self.visible {
            words.truncate(count.div_ceil(64));
            if let (Some(last), false) = (words.last_mut(), count.is_multiple_of(64)) {
                *last &= (1 << (count % 64)) - 1;
            }
        }
    }

    /// Hides a row.
    pub(crate) fn hide(&mut self, row: usize) {
        let count = self.count();
        let words = self.visible.get_or_insert_with(|| all_visible(count));
        words[row / 64] &= !(1 << (row % 64));
    }
}

fn all_visible(count: usize) -> Vec<u64> {
    let mut words = alloc::vec![u64::MAX; count.div_ceil(64)];
    if let Some(last) = words.last_mut()
        && !count.is_multiple_of(64)
    {
        *last = (1 << (count % 64)) - 1;
    }
    words
}
