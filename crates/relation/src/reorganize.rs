//! Reorganizing: which step of tidying a table is next.
//!
//! 1. A segment is renewed when half as many rows of it are gone or were updated as it has, together with neighbours that have
//!    become small. It is of bounded size, so a step is.
//! 2. Then indexes are merged, a step at a time (`merge.rs`).
//!
//! VACUUM takes the same steps, also where little is gained: until every segment that was there is as it would be written now, and
//! every index has been one sorted run without entries of rows that are gone.

use alloc::vec::Vec;
use core::ops::Range;

use crate::access::{Access, Part, Shared};
use crate::merge::{self, Due};
use crate::room::StepUse;
use crate::state::{DELETE_BYTES, UPDATE_HEAD_BYTES};
use crate::vacuum::{self, Joins};
use crate::{Error, IndexId, Storage, TableId, catalog, wide};
use counterfoil_log::Set;

/// A segment is renewed for at least so many changes, as a part of the rows of a fresh part.
const CHANGES_MIN_PART: u64 = 16;
/// Segments that are renewed together at most.
const TOGETHER_MAX: usize = 8;
/// So many times as worn as pays is pressing.
const PRESSING: u64 = 8;
/// Rows for each change from which on fewer are not worth a renewal.
const ROWS_PER_CHANGE: u64 = 2;

/// How tidy tables are to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// Only what would become too much while nobody finds the time for the rest.
    WherePressing,
    /// As far as it pays.
    WherePaying,
}

/// One step in some table that has changed; whether there was one. It may be called again at once.
pub(crate) fn maintain(shared: &Shared, writer: &mut dyn Storage) -> Result<bool, Error> {
    let mut touched = shared.touched.write(core::mem::take);
    shared.untidy.write(|untidy| untidy.append(&mut touched));
    if relieve_memory(shared, writer)? {
        return Ok(true);
    }
    loop {
        let Some(id) = shared.untidy.write(|untidy| untidy.pop_first()) else { return Ok(false) };
        // One that cannot be tidied is left alone until it changes again.
        if shared.catalog.table(writer, id)?.is_some() && step(shared, writer, id, Effort::WherePaying)? {
            shared.untidy.write(|untidy| untidy.insert(id));
            return Ok(true);
        }
    }
}

/// As [`maintain`], but only what is pressing: the rest waits for it. Whether there was anything.
pub(crate) fn relieve(shared: &Shared, writer: &mut dyn Storage) -> Result<bool, Error> {
    let touched = shared.touched.write(core::mem::take);
    shared.untidy.write(|untidy| untidy.extend(touched.iter().copied()));
    if relieve_memory(shared, writer)? {
        shared.touched.write(|all| all.extend(touched));
        return Ok(true);
    }
    for id in touched {
        if shared.catalog.table(writer, id)?.is_some() && step(shared, writer, id, Effort::WherePressing)? {
            shared.touched.write(|touched| touched.insert(id));
            return Ok(true);
        }
    }
    Ok(false)
}

/// Renews the segment with the most deletes and updates where all of them take too much memory; whether that was so.
fn relieve_memory(shared: &Shared, writer: &mut dyn Storage) -> Result<bool, Error> {
    if !shared.has_many_changes() {
        return Ok(false);
    }
    let mut fullest: Option<(usize, TableId, usize)> = None;
    for id in catalog::table_ids(writer)? {
        let access = shared.access_to_write(writer, id)?;
        for (place, part) in access.parts.iter().enumerate() {
            let bytes = part.state.read(|state| state.bytes());
            if fullest.is_none_or(|(most, ..)| bytes > most) && has_room(writer, &access.parts[place..=place]) {
                fullest = Some((bytes, id, place));
            }
        }
    }
    let Some((_, id, place)) = fullest.filter(|(bytes, ..)| *bytes > 0) else { return Ok(false) };
    let access = shared.access_to_write(writer, id)?;
    renew(shared, writer, &access, place..place + 1)?;
    shared.untidy.write(|untidy| untidy.insert(id));
    Ok(true)
}

/// One step in a table; whether there was one.
fn step(shared: &Shared, writer: &mut dyn Storage, id: TableId, effort: Effort) -> Result<bool, Error> {
    let access = shared.access_to_write(writer, id)?;
    let (due, times) = match effort {
        Effort::WherePressing => (Due::Crowded, PRESSING),
        Effort::WherePaying => (Due::Full, 1),
    };
    if let Some(places) = worn(shared, &access, times)
        && has_room(writer, &access.parts[places.clone()])
    {
        renew(shared, writer, &access, places)?;
        return Ok(true);
    }
    let table = access.table.clone();
    drop(access);
    for index in &table.indexes {
        if merge::step(shared, writer, id, index, due)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A VACUUM of one table, under way: what was there when it began is made tidy, and what others write meanwhile is left, so that
/// it ends.
#[derive(Debug)]
pub struct Vacuum {
    table: TableId,
    /// Groups of the segments that were there; none before its first step.
    segments: Option<Set<u64>>,
    /// Indexes that have been merged, and the one that is being.
    merged: Set<IndexId>,
    merging: Option<IndexId>,
}

impl Vacuum {
    /// Before its first step.
    #[must_use]
    pub fn of(table: TableId) -> Self {
        Vacuum { table, segments: None, merged: Set::new(), merging: None }
    }

    /// One step; whether there was one.
    pub(crate) fn step(&mut self, shared: &Shared, writer: &mut dyn Storage) -> Result<bool, Error> {
        let access = shared.access_to_write(writer, self.table)?;
        let there = || access.parts.iter().map(|part| part.segment.group).collect();
        let segments = &*self.segments.get_or_insert_with(there);
        if let Some(places) = untidy(shared, &access, &|part| segments.contains(&part.segment.group)).into_iter().next()
        {
            StepUse::renewal(shared, writer, &access, places.clone())?.require(writer, &access)?;
            renew(shared, writer, &access, places)?;
            return Ok(true);
        }
        let mut begun = Vec::new();
        for index in &access.table.indexes {
            if shared.index_files(writer, &access, index.id)?.merging.is_some() {
                begun.push(index.id);
            }
        }
        self.merged.extend(self.merging.filter(|index| !begun.contains(index)));
        let table = access.table.clone();
        drop(access);
        for index in &table.indexes {
            if !self.merged.contains(&index.id) && merge::step(shared, writer, self.table, index, Due::Untidy)? {
                // One that others began is of some runs only, as is one of more than are read side by side: once it has ended, that of
                // all of them begins.
                let is_ours = self.merging == Some(index.id) || !begun.contains(&index.id);
                let access = shared.access_to_write(writer, self.table)?;
                let is_whole = merge::is_whole(&*shared.index_files(writer, &access, index.id)?);
                self.merging = (is_ours && is_whole).then_some(index.id);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn renew(shared: &Shared, writer: &mut dyn Storage, access: &Access, places: Range<usize>) -> Result<(), Error> {
    match is_small(shared, access) {
        true => vacuum::rewrite(shared, writer, access.table.id, Joins::Kept),
        false => vacuum::renew(shared, writer, access.table.id, places),
    }
}

/// Whether a table is so small that its indexes would have no runs.
fn is_small(shared: &Shared, access: &Access) -> bool {
    let stored: u64 = access.parts.iter().map(|part| part.count).sum();
    let bytes = access.parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.bytes()));
    stored <= shared.fresh_rows as u64 && bytes <= shared.segment_bytes
}

/// Whether the rows of some segments find room beside themselves, and leave others some.
fn has_room(writer: &dyn Storage, parts: &[Part]) -> bool {
    let bytes = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(kept_bytes(part)));
    (bytes / writer.page_bytes() as u64).saturating_mul(2) <= writer.pages_left()
}

/// The next segment that is worn, with neighbours that are no larger: a large one is not written again and again for a small one.
fn worn(shared: &Shared, access: &Access, times: u64) -> Option<Range<usize>> {
    let due = access.parts.iter().position(|part| is_worn(shared, part, times))?;
    let segment_bytes = access.segment_bytes(shared);
    let bytes: Vec<u64> = access.parts.iter().map(kept_bytes).collect();
    let mut places = due..due + 1;
    let mut total = bytes[due];
    let joins = |places: &Range<usize>, total: u64, next: u64| {
        next <= total && total.saturating_add(next) <= segment_bytes && places.len() < TOGETHER_MAX
    };
    while places.start > 0 && joins(&places, total, bytes[places.start - 1]) {
        places.start -= 1;
        total += bytes[places.start];
    }
    while places.end < bytes.len() && joins(&places, total, bytes[places.end]) {
        total += bytes[places.end];
        places.end += 1;
    }
    Some(places)
}

/// Those of the segments meant that a VACUUM would renew, as they would be renewed together: each that is not as it would be written
/// now, and neighbours that are small enough to be one.
pub(crate) fn untidy(shared: &Shared, access: &Access, is_meant: &dyn Fn(&Part) -> bool) -> Vec<Range<usize>> {
    let segment_bytes = access.segment_bytes(shared);
    let mut found = Vec::new();
    let mut total = 0_u64;
    let mut places = 0..0;
    for (place, part) in access.parts.iter().enumerate() {
        let bytes = kept_bytes(part);
        let joins = total.saturating_add(bytes) <= segment_bytes && places.len() < TOGETHER_MAX;
        if !(is_meant(part) && joins && places.end == place) {
            found.push(core::mem::replace(&mut places, place..place));
            total = 0;
        }
        if is_meant(part) {
            places.end = place + 1;
            total = total.saturating_add(bytes);
        }
    }
    found.push(places);
    found.retain(|places| places.len() > 1 || access.parts[places.clone()].iter().any(|part| !is_tidy(access, part)));
    found
}

/// About what the rows of a segment that are there take: an image each, and their share of the long values that were ever written.
fn kept_bytes(part: &Part) -> u64 {
    let written = part.count.saturating_add(updates(part));
    let heap = wide::share(part.heap_bytes, part.visible(), written);
    let images = part.visible().saturating_mul(part.stride as u64);
    images.saturating_add(heap.unwrap_or(u64::MAX))
}

/// Images that were written for rows that had one.
fn updates(part: &Part) -> u64 {
    part.lengths.updates / (UPDATE_HEAD_BYTES + part.layout.width()) as u64
}

/// Whether a segment is as it would be written now.
fn is_tidy(access: &Access, part: &Part) -> bool {
    let newest = part.segment.layout() + 1 == access.table.layouts.len();
    newest && part.lengths.deletes == 0 && part.lengths.updates == 0
}

/// Whether so much of a segment is gone that it pays to renew it, so many times over.
fn is_worn(shared: &Shared, part: &Part, times: u64) -> bool {
    let changes = part.lengths.deletes / DELETE_BYTES as u64 + updates(part);
    // Of wide rows there are few.
    let least = (shared.fresh_rows as u64 / CHANGES_MIN_PART).min(part.count / ROWS_PER_CHANGE).max(1);
    changes >= least * times && changes.saturating_mul(ROWS_PER_CHANGE) >= part.count.saturating_mul(times)
}
