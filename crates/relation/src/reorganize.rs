//! Reorganizing: which step of tidying a table is next.
//!
//! 1. A segment is renewed when half as many rows of it are gone or were updated as it has, together with neighbours that have
//!    become small. It is of bounded size, so a step is.
//! 2. Then indexes are merged, a step at a time (`merge.rs`).
//!
//! VACUUM takes the same steps, also where little is gained: until every segment is as it would be written now, and every index
//! one sorted run without entries of rows that are gone.

use alloc::vec::Vec;
use core::ops::Range;

use crate::access::{Access, Part, Shared};
use crate::merge::{self, Due};
use crate::state::{DELETE_BYTES, UPDATE_HEAD_BYTES};
use crate::vacuum::{self, Joins};
use crate::{Error, Storage, TableId};

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
pub(crate) enum Effort {
    /// Only what would become too much while nobody finds the time for the rest.
    WherePressing,
    /// As far as it pays.
    WherePaying,
    /// Whatever can be gained.
    Whole,
}

/// One step in some table that has changed; whether there was one. It may be called again at once.
pub(crate) fn maintain(shared: &Shared, writer: &mut dyn Storage) -> Result<bool, Error> {
    let mut touched = shared.touched.write(core::mem::take);
    shared.untidy.write(|untidy| untidy.append(&mut touched));
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
    for id in touched {
        if shared.catalog.table(writer, id)?.is_some() && step(shared, writer, id, Effort::WherePressing)? {
            shared.touched.write(|touched| touched.insert(id));
            return Ok(true);
        }
    }
    Ok(false)
}

/// One step in a table; whether there was one.
pub(crate) fn step(shared: &Shared, writer: &mut dyn Storage, id: TableId, effort: Effort) -> Result<bool, Error> {
    let access = shared.access_to_write(writer, id)?;
    let (rewrites, renews) = (is_small(shared, &access), to_renew(shared, &access, effort));
    if let Some(places) = renews {
        match rewrites {
            true => vacuum::rewrite(shared, writer, id, Joins::Kept)?,
            false => vacuum::renew(shared, writer, id, places)?,
        }
        return Ok(true);
    }
    let due = match effort {
        Effort::WherePressing => Due::Crowded,
        Effort::WherePaying => Due::Full,
        Effort::Whole => Due::Untidy,
    };
    for index in &access.table.indexes {
        if merge::step(shared, writer, id, index, due)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a table is so small that its indexes would have no runs.
fn is_small(shared: &Shared, access: &Access) -> bool {
    let stored: u64 = access.parts.iter().map(|part| part.count).sum();
    let bytes = access.parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.bytes()));
    stored <= shared.fresh_rows as u64 && bytes <= shared.segment_bytes
}

/// The next segments to be renewed together.
fn to_renew(shared: &Shared, access: &Access, effort: Effort) -> Option<Range<usize>> {
    let is_due = |part: &Part| match effort {
        Effort::WherePressing => is_worn(shared, part, PRESSING),
        Effort::WherePaying => is_worn(shared, part, 1),
        Effort::Whole => !is_tidy(access, part),
    };
    let parts = &access.parts;
    let segment_bytes = access.segment_bytes(shared);
    let bytes: Vec<u64> = parts.iter().map(kept_bytes).collect();
    let both_fit = |one: usize, next: usize| bytes[one].saturating_add(bytes[next]) <= segment_bytes;
    let due = parts.iter().position(is_due).or_else(|| match effort {
        Effort::WherePressing | Effort::WherePaying => None,
        Effort::Whole => (1..parts.len()).position(|next| both_fit(next - 1, next)),
    })?;
    let mut places = due..due + 1;
    let mut total = bytes[due];
    // A large neighbour is not written again and again for a small one.
    let mut count = 1;
    let mut joins = |total: u64, next: u64| {
        let does = (next <= total || effort == Effort::Whole) && total.saturating_add(next) <= segment_bytes;
        count += usize::from(does);
        does && count <= TOGETHER_MAX
    };
    while places.start > 0 && joins(total, bytes[places.start - 1]) {
        places.start -= 1;
        total += bytes[places.start];
    }
    while places.end < parts.len() && joins(total, bytes[places.end]) {
        total += bytes[places.end];
        places.end += 1;
    }
    Some(places)
}

/// All segments that a VACUUM would renew.
pub(crate) fn untidy(shared: &Shared, access: &Access) -> Vec<usize> {
    let segment_bytes = access.segment_bytes(shared);
    let bytes: Vec<u64> = access.parts.iter().map(kept_bytes).collect();
    let fits = |one: usize, next: usize| bytes[one].saturating_add(bytes[next]) <= segment_bytes;
    let is_untidy = |place: &usize| {
        let joins = (*place > 0 && fits(place - 1, *place)) || (place + 1 < bytes.len() && fits(*place, place + 1));
        joins || !is_tidy(access, &access.parts[*place])
    };
    (0..bytes.len()).filter(is_untidy).collect()
}

/// About what the rows of a segment that are there take.
fn kept_bytes(part: &Part) -> u64 {
    let share = u128::from(part.bytes()) * u128::from(part.visible()) / u128::from(part.count.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Whether a segment is as it would be written now.
fn is_tidy(access: &Access, part: &Part) -> bool {
    let newest = part.segment.layout as usize + 1 == access.table.layouts.len();
    newest && part.lengths.deletes == 0 && part.lengths.updates == 0
}

/// Whether so much of a segment is gone that it pays to renew it, so many times over.
fn is_worn(shared: &Shared, part: &Part, times: u64) -> bool {
    let updates = part.lengths.updates / (UPDATE_HEAD_BYTES + part.layout.width()) as u64;
    let changes = part.lengths.deletes / DELETE_BYTES as u64 + updates;
    // Of wide rows there are few.
    let least = (shared.fresh_rows as u64 / CHANGES_MIN_PART).min(part.count / ROWS_PER_CHANGE).max(1);
    changes >= least * times && changes.saturating_mul(ROWS_PER_CHANGE) >= part.count.saturating_mul(times)
}
