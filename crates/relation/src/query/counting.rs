//! How many rows there are, where the entries of one index say all that is asked of them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::named::{TABLE_ROWS_MIN, TABLE_SHARE};
use super::plan::{Access, Output, Plan};
use super::ranges::{Way, any_ways, flatten};
use super::told::{index_name, told};
use super::{Source, select};
use crate::counted::Counting;
use crate::key::ByteRange;
use crate::relations::kinds;
use crate::{Error, Relations, RowId};

/// Rows that are looked at together.
const PIECE_ROWS: usize = 1024;
/// Words of bits, at most, however much memory there is: more take longer to come by than most counts.
const WORDS_MAX: usize = 1 << 20;

/// A number of rows, and what told it.
#[derive(Clone, Debug)]
pub struct Count {
    /// How many rows.
    pub rows: u64,
    /// What told it, as an answer says it.
    pub by: String,
}

impl Plan {
    /// The table of which rows are counted, if nothing else is asked.
    fn only_counts(&self) -> Option<&Source> {
        let counts = !self.outputs.is_empty() && self.outputs.iter().all(|output| *output == Output::CountRows);
        let is_plain = self.groups.is_empty() && self.conditions.is_empty() && self.access != Access::Scan;
        match &self.sources[..] {
            [source] if counts && is_plain => Some(source),
            _ => None,
        }
    }
}

impl Relations {
    /// How many rows a question counts, if an index alone says it in so many bytes.
    pub(super) fn counted(&self, view: &dyn View, plan: &Plan, room_bytes: usize) -> Result<Option<Count>, Error> {
        plan.only_counts().map_or(Ok(None), |source| self.count_by_index(view, source, room_bytes))
    }

    /// How many rows of a table there are of which tests are true, if an index alone says it in so many bytes of memory; rows that were
    /// changed since are looked at. `None` where reading rows is the better way, or the only one.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn count_by_index(&self, view: &dyn View, source: &Source, room_bytes: usize) -> Result<Option<Count>, Error> {
        let mut flat = Vec::new();
        source.tests.iter().for_each(|test| flatten(test, &mut flat));
        let way = any_ways(&flat, &source.table).into_iter().find(|way| way.says_all(&flat, &source.table));
        let Some(way) = way else { return Ok(None) };
        let Some((rows, doubtful)) = self.by_entries(view, source, &way, room_bytes)? else { return Ok(None) };
        let Some(more) = self.looked_at(view, source, &doubtful, room_bytes)? else { return Ok(None) };
        let by = told(|| format!("entries of {}", index_name(&source.table, way.index)));
        Ok(Some(Count { rows: rows + more, by }))
    }

    /// How many rows entries in some ranges name, and the rows besides of which they do not say enough.
    fn by_entries(
        &self,
        view: &dyn View,
        source: &Source,
        way: &Way,
        room_bytes: usize,
    ) -> Result<Option<(u64, Vec<RowId>)>, Error> {
        let access = self.shared.access(view, source.table.id)?;
        let room = room_bytes / size_of::<u64>() / 2;
        let doubtful_max = usize::try_from(access.count() / TABLE_SHARE).unwrap_or(usize::MAX).max(TABLE_ROWS_MIN);
        let Some(index) = access.table.index(way.index) else { return Ok(None) };
        let (kinds, reader) = (kinds(&access.table, index), self.shared.index(view, &access, index, false)?);
        let ranges = way.ranges.iter().map(|range| range.encode(&kinds)).collect::<Result<Vec<ByteRange>, Error>>()?;
        // Entries tell no more of a key than its first bytes.
        if ranges.iter().any(|range| range.of_entries() != *range) {
            return Ok(None);
        }
        if ranges.iter().all(|range| reader.has_each_once(range)) {
            let mut counting = Counting::of_entries(view, &access);
            if reader.visit_each(&ranges, &mut |_, row, renewals| counting.take(row, renewals))? {
                return Ok(Some(counting.finish()));
            }
        }
        let counting = Counting::of_rows((view, &access), room.min(WORDS_MAX), doubtful_max.min(room));
        let Some(mut counting) = counting else { return Ok(None) };
        let is_all = reader.visit_each(&ranges, &mut |_, row, renewals| counting.take(row, renewals))?;
        Ok(is_all.then(|| counting.finish()))
    }

    /// Of some rows the number of those of which the tests are true; none where they have long values for which there is no room.
    fn looked_at(
        &self,
        view: &dyn View,
        source: &Source,
        rows: &[RowId],
        room_bytes: usize,
    ) -> Result<Option<u64>, Error> {
        let columns = source.tested_columns();
        let mut count = 0;
        let step = (room_bytes / (4 * source.table.layout().width().max(1))).clamp(1, PIECE_ROWS);
        for some in rows.chunks(step) {
            match self.fetch_within(view, &source.table, some, &columns, (room_bytes / 8) as u64) {
                Err(error) if error.is_memory() => return Ok(None),
                block => count += select(&block?, &source.tests)?.count() as u64,
            }
        }
        Ok(Some(count))
    }
}
