//! Rows of a table at the end of a path that come into question: a list, or a bit for each number where there is no room for one.

use alloc::string::String;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::named::TABLE_ROWS_MIN;
use super::ranges::{flatten, ways};
use super::told::index_name;
use super::{Access, Source};
use crate::found::{Found, FoundRows, span_of};
use crate::{Error, NamedRows, Relations, RowId};

/// Rows at the end of a path.
pub(super) struct Ends {
    /// The path, by its place among the root's joins.
    pub(super) path: usize,
    /// What named them.
    pub(super) index: String,
    /// How many rows of the root join them, about.
    pub(super) joined: u64,
    rows: Rows,
}

enum Rows {
    List(Vec<RowId>),
    /// A bit for each number from 0 on.
    Bits(Vec<u64>),
}

impl Ends {
    /// Those of a source, which indexes have named or name now: as bits, if they have room for so many words.
    pub(super) fn of(
        relations: &Relations,
        view: &dyn View,
        (source, named): (&Source, Option<NamedRows>),
        (total, words, access): (u64, usize, Access),
    ) -> Result<Option<Self>, Error> {
        let Some(path) = source.path.filter(|_| !source.is_optional) else { return Ok(None) };
        let (rows, index) = match named {
            Some(NamedRows { rows, index }) => (Rows::List(rows), index),
            None => match bits(relations, view, source, (words, access))? {
                Some((words, index)) => (Rows::Bits(words), index),
                None => return Ok(None),
            },
        };
        let count = relations.count(view, &source.table)?.max(1);
        let mut ends = Ends { path, index, joined: 0, rows };
        ends.joined = (ends.count() as u64).saturating_mul(total).div_ceil(count);
        Ok(Some(ends))
    }

    /// How many they are.
    pub(super) fn count(&self) -> usize {
        match &self.rows {
            Rows::List(rows) => rows.len(),
            Rows::Bits(words) => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// Words of memory that bits take.
    pub(super) fn words(&self) -> usize {
        match &self.rows {
            Rows::List(_) => 0,
            Rows::Bits(words) => words.len(),
        }
    }

    /// So many of them at most, from a number on.
    pub(super) fn piece(&self, from: RowId, count: usize) -> Vec<RowId> {
        match &self.rows {
            Rows::List(rows) => {
                let start = rows.partition_point(|row| *row < from);
                rows[start..].iter().copied().take(count).collect()
            }
            Rows::Bits(words) => {
                let first = usize::try_from(from.0 / 64).unwrap_or(usize::MAX);
                let all = words.iter().enumerate().skip(first).flat_map(|(place, word)| {
                    (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| RowId(place as u64 * 64 + bit))
                });
                all.skip_while(|row| *row < from).take(count).collect()
            }
        }
    }
}

/// The rows of a source's table that an index names, as bits.
fn bits(
    relations: &Relations,
    view: &dyn View,
    source: &Source,
    (words, access): (usize, Access),
) -> Result<Option<(Vec<u64>, String)>, Error> {
    let table = &source.table;
    let mut flat = Vec::new();
    source.tests.iter().for_each(|test| flatten(test, &mut flat));
    let Some(way) = ways(&flat, table).into_iter().next() else { return Ok(None) };
    // Half as much room as bits of all numbers take is that of a list that may be there twice.
    let room =
        usize::try_from(relations.shared.access(view, table.id)?.next_row().div_ceil(span_of(1))).unwrap_or(usize::MAX);
    if room.saturating_mul(2) > words {
        return Ok(None);
    }
    let entries_max = access.rows_max(relations.count(view, table)?, relations.root_share(), TABLE_ROWS_MIN);
    let mut found = Found::close(RowId(0), room, entries_max);
    if !relations.find_in(view, table, (way.index, &way.ranges), &mut found)? {
        return Ok(None);
    }
    let index = index_name(table, way.index);
    Ok(match found.finish() {
        (FoundRows::Bits { words, .. }, None) => Some((words, index)),
        _ => None,
    })
}
