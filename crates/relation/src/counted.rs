//! Counting rows by what the entries of an index say of them, without looking at the rows.
//!
//! ```text
//! an entry of a run -- its row is as the run knows it --> counted: a bit for its number, since another run may have it, too
//!                  \-- its row was updated since -----\
//! an entry that is new -------------------------------+-> the row is looked at
//! ```
//!
//! What merges keep without asking the row (settle.rs) is what is counted without asking it. Where no entry can be there twice, and no row
//! has to be looked at, no bits are needed. With one that has to be they are: another run may name it under another key, by which it is
//! counted.

use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use crate::access::Access;
use crate::{Error, RowId};

/// Entries that are read to count them, at most: a fraction of a second in which nobody can call it off.
const ENTRIES_MAX: usize = 1 << 20;
/// Numbers that a word of bits stands for.
const BITS: u64 = u64::BITS as u64;

/// Rows counted so far.
pub(crate) struct Counting<'a> {
    view: &'a dyn View,
    access: &'a Access,
    /// A bit for each number of a row that is counted; none where no row can be counted twice.
    counted: Option<Vec<u64>>,
    count: u64,
    /// Rows that have to be looked at.
    doubtful: Vec<RowId>,
    doubtful_max: usize,
    entries_left: usize,
}

impl<'a> Counting<'a> {
    /// Counts rows of a table of which no entry is there twice, none of which has to be looked at.
    pub(crate) fn of_entries(view: &'a dyn View, access: &'a Access) -> Self {
        let (doubtful, entries_left) = (Vec::new(), ENTRIES_MAX);
        Counting { view, access, counted: None, count: 0, doubtful, doubtful_max: 0, entries_left }
    }

    /// Counts rows of a table, of which so many may have to be looked at; none where there is no room for as many words as bits take.
    pub(crate) fn of_rows(
        (view, access): (&'a dyn View, &'a Access),
        words_max: usize,
        doubtful_max: usize,
    ) -> Option<Self> {
        let words = usize::try_from(access.next_row().div_ceil(BITS)).ok().filter(|words| *words <= words_max)?;
        Some(Counting { counted: Some(vec![0; words]), doubtful_max, ..Counting::of_entries(view, access) })
    }

    /// Takes the row of an entry, and how many renewals of rows its run has seen, none of one that is new; whether there are not too many.
    pub(crate) fn take(&mut self, row: RowId, renewals: Option<u64>) -> Result<bool, Error> {
        let Some(left) = self.entries_left.checked_sub(1) else { return Ok(false) };
        self.entries_left = left;
        // Rows of later views, and those that are gone.
        let Some((part, _)) = self.access.locate(self.view, row)? else { return Ok(true) };
        let part = &self.access.parts[part];
        if part.state.read(|state| state.is_deleted(row.0, part.lengths)) {
            return Ok(true);
        }
        match renewals {
            Some(renewals) if !part.may_have_had_other_keys(self.view, row, renewals)? => self.count(row),
            _ => self.doubtful.push(row),
        }
        Ok(self.doubtful.len() <= self.doubtful_max)
    }

    fn count(&mut self, row: RowId) {
        let bit = 1 << (row.0 % BITS);
        let word = self.counted.as_mut().map(|words| &mut words[(row.0 / BITS) as usize]);
        self.count += u64::from(word.as_ref().is_none_or(|word| **word & bit == 0));
        if let Some(word) = word {
            *word |= bit;
        }
    }

    fn is_counted(&self, row: RowId) -> bool {
        self.counted.as_ref().is_some_and(|words| words[(row.0 / BITS) as usize] >> (row.0 % BITS) & 1 == 1)
    }

    /// How many rows there are, and those besides that have to be looked at, ascending.
    pub(crate) fn finish(mut self) -> (u64, Vec<RowId>) {
        let mut doubtful = core::mem::take(&mut self.doubtful);
        doubtful.retain(|row| !self.is_counted(*row));
        doubtful.order();
        doubtful.dedup();
        (self.count, doubtful)
    }
}
