//! Merging the runs of an index, a step at a time.
//!
//! ```text
//! fresh --16384 rows--> tier 0 --8 runs--> tier 1 --8 runs--> tier 2 ...          rows that come many at a time: a run at once
//!
//! runs    | tier 1 | tier 0 | tier 0 | ... | tier 0 |   the index, until the merge has ended
//!                  |<------ a merge of these ------>|
//! made             | piece | piece | ...                a step each, up to the entry `until`
//! ```
//!
//! A step reads and writes so many entries and no more, in whatever transaction it is called. Where it stands is in the catalog, so
//! that a cut costs one step, and the next one goes on wherever it is taken. What a merge makes is one sorted run in pieces: their
//! ranges of keys do not meet, and each has a filter of its own, so that the memory a step takes is bounded as well.
//!
//! Until it has ended it takes room for what goes into it once more. It does not begin where there is less, and where room is
//! short in the middle it is given up (`abandon`).

use alloc::vec::Vec;

use counterfoil_log::GroupId;

use crate::access::{Access, Shared};
use crate::files::{IndexFiles, Merging, groups, pieces};
use crate::room::StepUse;
use crate::run::{Merge, Run, RunWriter};
use crate::settle::{Doubt, current};
use crate::{Error, IndexDef, Storage, TableId, catalog, few_or_many};

/// Sorted runs of a tier that are merged into one of the next, unless [`crate::Relations::with_tier_runs`] says otherwise.
pub(crate) const TIER_RUNS: usize = 8;
/// As many while an index is built: they are read side by side.
const BUILD_RUNS: usize = 64;
/// Entries that a step looks at, in rows of a fresh part.
const STEP_FRESH_PARTS: usize = few_or_many(64, 16);
/// Pieces of a sorted run, about, at most: the catalog says where each begins and ends.
const PIECES_MAX: u64 = 64;
/// Bytes of each run that a merge reads at a time, at most; on a device, a page.
const AHEAD_BYTES: usize = 128 << 10;
/// And at least, where memory is little.
const AHEAD_BYTES_MIN: usize = 1 << 10;
/// Entries looked at together.
const PIECE_ENTRIES: usize = few_or_many(16, 4096);
/// Entries of rows that are gone from which on all runs are merged, in rows of a fresh part, if there are as many as rows.
const DEAD_FRESH_PARTS: u64 = 4;

/// What makes a merge due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// A tier that has become far too many runs.
    Crowded,
    /// A tier that is full, or as many dead entries as rows.
    Full,
    /// More of a tier than an index is built of before they are merged.
    Wide,
    /// More than one run.
    Several,
    /// More than one run, or one with entries of rows that are gone.
    Untidy,
}

/// Looks at so many entries of a merge that is under way, or begins one if it is due. Whether there was anything to do.
pub(crate) fn step(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: TableId,
    index: &IndexDef,
    due: Due,
) -> Result<bool, Error> {
    let access = shared.access_to_write(writer, table)?;
    if access.table.index(index.id).is_none() {
        return Ok(false);
    }
    let files = shared.index_files(writer, &access, index.id)?;
    let begun = begin(shared, &access, &files, due);
    // One that is under way goes on when there is time, or if it is in the way of one that is pressing.
    let goes_on = files.merging.is_some();
    match &begun {
        None if due == Due::Crowded || !goes_on => return Ok(false),
        // Whoever asked for it is told; otherwise it waits for room.
        Some(begun) if !goes_on && due == Due::Untidy => {
            StepUse::merge(inputs(&files, begun).iter(), 0).require(writer, &access)?;
        }
        Some(begun) if !goes_on && !has_room(writer, &files, begun) => return Ok(false),
        _ => {}
    }
    drop(files);
    let mut files = shared.take_index(writer, &access, index.id)?;
    let Some(merging) = files.merging.take().or(begun) else { return Ok(false) };
    go_on(shared, writer, &access, index, &mut files, merging)?;
    catalog::put_index(writer, table, index.id, &files)?;
    Ok(true)
}

/// The runs that go into a merge.
fn inputs<'f>(files: &'f IndexFiles, merging: &Merging) -> &'f [Run] {
    files.runs.get(merging.places()).unwrap_or_default()
}

fn has_room(writer: &dyn Storage, files: &IndexFiles, merging: &Merging) -> bool {
    let inputs = inputs(files, merging);
    let bytes = inputs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.bytes()));
    let pages = bytes / writer.page_bytes() as u64 + inputs.len() as u64;
    // Others want to store something meanwhile.
    pages.saturating_mul(2) <= writer.pages_left()
}

/// Gives up what merges of a table have made so far; whether there was anything.
pub(crate) fn abandon(shared: &Shared, writer: &mut dyn Storage, table: TableId) -> Result<bool, Error> {
    let Some(definition) = shared.catalog.table(writer, table)? else { return Ok(false) };
    let files = shared.catalog.files(writer, &definition)?;
    let mut was_there = false;
    for index in &definition.indexes {
        let mut files = shared.catalog.take_index(writer, (&definition, &files), index.id)?;
        let Some(under_way) = files.merging.take() else { continue };
        for group in groups(under_way.made.iter()) {
            shared.drop_group(writer, &definition.name, group)?;
        }
        catalog::put_index(writer, table, index.id, &files)?;
        was_there = true;
    }
    Ok(was_there)
}

/// Whether a step would find anything to do.
pub(crate) fn is_due(shared: &Shared, access: &Access, files: &IndexFiles, due: Due) -> bool {
    files.merging.is_some() || begin(shared, access, files, due).is_some()
}

/// Whether the merge that is under way is one of all runs, or none is left to be merged.
pub(crate) fn is_whole(files: &IndexFiles) -> bool {
    files.merging.as_ref().map_or(files.sorted().count() <= 1, |merging| merging.first == 0)
}

/// The merge that is due.
fn begin(shared: &Shared, access: &Access, files: &IndexFiles, due: Due) -> Option<Merging> {
    let all = || newest(shared, files);
    let sorted = files.sorted().count();
    match due {
        Due::Several | Due::Untidy if sorted > 1 => Some(all()),
        Due::Untidy if has_dead(access, files) => Some(all()),
        Due::Several | Due::Untidy => None,
        Due::Full if is_mostly_dead(shared, access, files) => Some(all()),
        Due::Full => full_tier(shared, files, shared.tier_runs),
        Due::Wide => full_tier(shared, files, BUILD_RUNS.min(runs_at_once(shared))),
        Due::Crowded => full_tier(shared, files, 2 * shared.tier_runs),
    }
}

/// Runs that a merge has the memory to read side by side, and as many as a tier has.
fn runs_at_once(shared: &Shared) -> usize {
    (shared.merge_bytes / AHEAD_BYTES_MIN).max(shared.tier_runs)
}

/// A merge of all runs; of the newest, where there are more than can be read side by side. (A device has few.)
fn newest(shared: &Shared, files: &IndexFiles) -> Merging {
    if cfg!(feature = "small") {
        let tier = tier_of(shared, files.entries());
        return Merging { first: 0, count: files.runs.len() as u32, tier, until: Vec::new(), made: Vec::new() };
    }
    let sorted: Vec<&[Run]> = files.sorted().collect();
    let (rest, some) = sorted.split_at(sorted.len().saturating_sub(runs_at_once(shared)));
    let first = rest.iter().map(|run| run.len()).sum::<usize>();
    let entries = some.iter().flat_map(|run| *run).fold(0_u64, |sum, run| sum.saturating_add(run.entries));
    // Tiers do not rise from one run to the next.
    let highest = if rest.is_empty() { 0 } else { some.first().map_or(0, |run| run[0].tier) };
    let tier = match rest.last() {
        None => tier_of(shared, entries),
        Some(before) => tier_of(shared, entries).max(highest).min(before[0].tier),
    };
    Merging { first: first as u32, count: (files.runs.len() - first) as u32, tier, until: Vec::new(), made: Vec::new() }
}

/// Whether segments were renewed since a run was written: it may name rows that are gone.
fn has_dead(access: &Access, files: &IndexFiles) -> bool {
    files.runs.iter().any(|run| run.renewals < access.files.renewals)
}

fn is_mostly_dead(shared: &Shared, access: &Access, files: &IndexFiles) -> bool {
    let dead = files.entries().saturating_sub(access.count());
    has_dead(access, files) && dead >= access.count().max(DEAD_FRESH_PARTS * shared.fresh_rows as u64)
}

/// The merge of the lowest tier with so many sorted runs.
fn full_tier(shared: &Shared, files: &IndexFiles, runs_max: usize) -> Option<Merging> {
    let mut first = files.runs.len();
    let tiers: Vec<&[Run]> = files.runs.chunk_by(|one, next| one.tier == next.tier).collect();
    for runs in tiers.into_iter().rev() {
        first -= runs.len();
        if pieces(runs).count() >= runs_max {
            let (first, count, tier) = (first as u32, runs.len() as u32, tier_above(shared, runs));
            return Some(Merging { first, count, tier, until: Vec::new(), made: Vec::new() });
        }
    }
    None
}

/// The tier of what runs of one become: the next one, or the same until it is as large as those of the next.
fn tier_above(shared: &Shared, runs: &[Run]) -> u8 {
    let tier = runs[0].tier;
    match shared.tier_growth {
        None => tier.saturating_add(1),
        Some(_) => tier_of(shared, runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.entries))).max(tier),
    }
}

/// The tier of a run of so many entries.
pub(crate) fn tier_of(shared: &Shared, entries: u64) -> u8 {
    let mut tier = 0;
    let (mut size, growth) = (shared.fresh_rows as u64, shared.tier_growth.unwrap_or(shared.tier_runs) as u64);
    while size.saturating_mul(growth) <= entries {
        size *= growth;
        tier += 1;
    }
    tier
}

/// Makes the next piece, and the index of them if it is the last.
fn go_on(
    shared: &Shared,
    writer: &mut dyn Storage,
    access: &Access,
    index: &IndexDef,
    files: &mut IndexFiles,
    mut merging: Merging,
) -> Result<(), Error> {
    let inputs = inputs(files, &merging);
    inputs.iter().try_for_each(|run| run.check_length(writer)).map_err(access.named())?;
    let entries = inputs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.entries));
    let share = usize::try_from(entries / PIECES_MAX).unwrap_or(usize::MAX);
    let entries_max = shared.fresh_rows.saturating_mul(STEP_FRESH_PARTS).max(shared.step_entries).max(share);
    let entries_max = entries_max.min(usize::try_from(entries).unwrap_or(usize::MAX)).max(1);
    let beside = match merging.made.last() {
        Some(made) => Some(made.group()),
        // One step makes all of it, so that nobody gives it up on the way: it may lie beside others that have been there before.
        None if entries_max as u64 == entries => files.group_beside(merging.first as usize, merging.tier),
        None => None,
    };
    let bounds = (entries_max, shared.merge_bytes);
    let (piece, is_last) = make_piece(writer, access, index, inputs, (&mut merging, beside), bounds)?;
    if !is_last && entries_max as u64 == entries && merging.made.is_empty() {
        return Err(Error::corrupt(&access.table.name, "number of entries of index runs"));
    }
    let follows = !merging.made.is_empty();
    merging.made.extend(piece.map(|piece| piece.following(follows)));
    if !is_last {
        files.merging = Some(merging);
        return Ok(());
    }
    let gone = groups(inputs.iter());
    if let Some(last) = merging.made.last().filter(|run| run.follows) {
        // Of a large one nothing more is to come.
        writer.close_group(last.group());
    }
    files.runs.splice(merging.places(), merging.made);
    let there = groups(files.runs.iter());
    for group in gone.into_iter().filter(|group| there.binary_search(group).is_err()) {
        shared.drop_group(writer, &access.table.name, group)?;
    }
    Ok(())
}

/// Merges as many entries as a step may look at. Whether they were the last.
fn make_piece(
    writer: &mut dyn Storage,
    access: &Access,
    index: &IndexDef,
    inputs: &[Run],
    (merging, beside): (&mut Merging, Option<GroupId>),
    (entries_max, bytes_max): (usize, usize),
) -> Result<(Option<Run>, bool), Error> {
    let named = access.named();
    let renewals = access.files.renewals;
    let looked = inputs.iter().map(|run| run.renewals).min().unwrap_or(renewals);
    let blocks = access.blocks(index, writer)?;
    let output = RunWriter::new(blocks, beside, (merging.tier, renewals), entries_max as u64);
    let mut output = output.buffering(bytes_max);
    let each = bytes_max / pieces(inputs).count().max(1);
    let each = if cfg!(feature = "small") { writer.page_bytes() } else { each.clamp(AHEAD_BYTES_MIN, AHEAD_BYTES) };
    let mut merge = Merge::after(writer, pieces(inputs), &merging.until, each).map_err(&named)?;
    let ends_most = PIECE_ENTRIES.min(entries_max).min(bytes_max / AHEAD_BYTES_MIN).max(1);
    let (mut bytes, mut ends, mut seen) = (Vec::new(), Vec::with_capacity(ends_most), 0);
    let is_last = loop {
        bytes.clear();
        ends.clear();
        let count = PIECE_ENTRIES.min(entries_max - seen);
        while ends.len() < count && bytes.len() < bytes_max && merge.next(writer, &mut bytes).map_err(&named)? {
            ends.push(bytes.len());
        }
        let starts = core::iter::once(0).chain(ends.iter().copied());
        let piece: Vec<&[u8]> = starts.zip(&ends).map(|(start, end)| &bytes[start..*end]).collect();
        let Some(last) = piece.last() else { break true };
        merging.until = last.to_vec();
        for entry in current(writer, access, index, &piece, Doubt::Since(looked))? {
            output.push(writer, entry)?;
        }
        seen += piece.len();
        if seen >= entries_max {
            break merge.is_over();
        }
    };
    // A block of each input, which is not needed beside what is written last.
    drop(merge);
    Ok((output.finish(writer)?, is_last))
}
