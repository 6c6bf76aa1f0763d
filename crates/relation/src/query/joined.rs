//! Rows of a root together with the rows that they join.

use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use super::test::select;
use super::{Condition, KeptRows, Source};
use crate::{Error, Relations, RowBlock, RowId};

/// The place of a row that an optional source does not have.
pub const NO_ROW: u32 = u32::MAX;

/// Rows of one source.
pub struct Side {
    /// Rows of its table.
    pub block: RowBlock,
    /// For each row of the answer its place there, or [`NO_ROW`].
    pub places: Vec<u32>,
}

/// Rows of an answer.
pub struct JoinedRows {
    /// For each source its rows; none where nothing of it was wanted.
    pub sides: Vec<Option<Side>>,
    /// How many rows.
    pub count: usize,
}

impl JoinedRows {
    /// Keeps those that stay.
    fn retain(&mut self, stay: &[bool]) {
        self.sides.iter_mut().flatten().for_each(|side| retain(&mut side.places, stay));
        self.count = stay.iter().filter(|stays| **stays).count();
    }
}

impl Relations {
    /// Reads rows of the root and, source by source, what those join that are still in question. `columns`: for each source the
    /// columns whose values are needed, those tested among them.
    ///
    /// # Errors
    /// [`Error::misuse`] without a root, [`crate::Cause::Log`], [`Error::corrupt`].
    pub fn read_joined(
        &self,
        view: &dyn View,
        sources: &[Source],
        columns: &[Vec<usize>],
        rows: &[RowId],
    ) -> Result<JoinedRows, Error> {
        self.read_where(view, sources, &[], columns, rows)
    }

    /// As [`Relations::read_joined`], where conditions hold besides that are of several tables; the columns that they look at are
    /// among those needed.
    ///
    /// # Errors
    /// As [`Relations::read_joined`].
    pub fn read_where(
        &self,
        view: &dyn View,
        sources: &[Source],
        conditions: &[Condition],
        columns: &[Vec<usize>],
        rows: &[RowId],
    ) -> Result<JoinedRows, Error> {
        self.read_kept(view, (sources, conditions), columns, rows, &mut KeptRows::default())
    }

    /// As [`Relations::read_where`], where joined rows may have been kept of rows that were read before.
    ///
    /// # Errors
    /// As [`Relations::read_joined`].
    pub fn read_kept(
        &self,
        view: &dyn View,
        (sources, conditions): (&[Source], &[Condition]),
        columns: &[Vec<usize>],
        rows: &[RowId],
        kept: &mut KeptRows,
    ) -> Result<JoinedRows, Error> {
        let root = root_of(sources)?;
        let wanted = (sources.len() > 1, u64::MAX);
        let block = self.fetch_apart(view, &sources[root].table, rows, &columns[root], wanted)?;
        self.join_block(view, (sources, conditions), columns, block, (u64::MAX, kept))
    }

    /// Adds to rows of the root, source by source, what those join that are still in question: of each source so many bytes of long
    /// values at most.
    pub(super) fn join_block(
        &self,
        view: &dyn View,
        (sources, conditions): (&[Source], &[Condition]),
        columns: &[Vec<usize>],
        block: RowBlock,
        (heap_bytes, known): (u64, &mut KeptRows),
    ) -> Result<JoinedRows, Error> {
        let root = root_of(sources)?;
        let kept = select(&block, &sources[root].tests)?.into_places();
        let mut rows = JoinedRows { sides: sources.iter().map(|_| None).collect(), count: kept.len() };
        rows.sides[root] = Some(Side { block, places: kept });
        let is_asked = |number: &usize| {
            !sources[*number].tests.is_empty() || conditions.iter().any(|condition| condition.names(*number))
        };
        // Those of which something is asked come first: the others are not read for rows that do not stay.
        let (asked, others): (Vec<usize>, Vec<usize>) = (0..sources.len()).partition(is_asked);
        for (numbers, conditions) in [(asked, conditions), (others, &[])] {
            for number in numbers {
                let Some(path) = sources[number].path else { continue };
                let Some(Side { block, places }) = &rows.sides[root] else { continue };
                let ends: Vec<Option<RowId>> = places.iter().map(|row| block.joined(*row as usize, path)).collect();
                let asked = (&columns[number][..], heap_bytes);
                let (side, stay) = self.look_up(view, (number, &sources[number]), asked, &ends, known)?;
                rows.retain(&stay);
                rows.sides[number] = side;
            }
            for condition in conditions {
                let stay = condition.holds(&rows)?;
                rows.retain(&stay);
            }
        }
        Ok(rows)
    }

    /// The rows of a source at the ends of paths, and which paths lead to one of which the tests are true.
    fn look_up(
        &self,
        view: &dyn View,
        (number, source): (usize, &Source),
        (columns, heap_bytes): (&[usize], u64),
        ends: &[Option<RowId>],
        known: &mut KeptRows,
    ) -> Result<(Option<Side>, Vec<bool>), Error> {
        if columns.is_empty() && source.tests.is_empty() {
            return Ok((None, ends.iter().map(|end| source.is_optional || end.is_some()).collect()));
        }
        let mut distinct: Vec<RowId> = ends.iter().copied().flatten().collect();
        distinct.order();
        distinct.dedup();
        let missing = known.missing(number, &distinct);
        let block = self.fetch_apart(view, &source.table, &missing, columns, (false, heap_bytes))?;
        if block.visible_count() < missing.len() {
            return Err(Error::corrupt(&source.table.name, "row that is joined along a foreign key"));
        }
        let block = known.complete((number, source), columns, &distinct, block);
        let mut holds = vec![false; distinct.len()];
        select(&block, &source.tests)?.each(|place| holds[place] = true);
        let place = |end: &Option<RowId>| end.and_then(|end| distinct.binary_search(&end).ok());
        let places = ends.iter().map(|end| place(end).filter(|place| holds[*place]));
        let mut places: Vec<u32> = places.map(|place| place.map_or(NO_ROW, |place| place as u32)).collect();
        let stay: Vec<bool> = places.iter().map(|place| source.is_optional || *place != NO_ROW).collect();
        retain(&mut places, &stay);
        Ok((Some(Side { block, places }), stay))
    }
}

/// The place of the root.
pub(super) fn root_of(sources: &[Source]) -> Result<usize, Error> {
    sources.iter().position(|source| source.path.is_none()).ok_or_else(|| Error::misuse("a question without a root"))
}

/// Keeps those that stay.
fn retain(places: &mut Vec<u32>, stay: &[bool]) {
    let mut stay = stay.iter();
    places.retain(|_| stay.next().copied().unwrap_or(false));
}
