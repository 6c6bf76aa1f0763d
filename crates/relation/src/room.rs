//! Room that a VACUUM takes while it is under way: each of its steps writes before what it replaces is given back.

use core::ops::Range;

use counterfoil_log::{Room, View};

use crate::access::{Access, Part, Shared};
use crate::grain::Grain;
use crate::run::Run;
use crate::{Error, Storage, wide};

/// A step of a VACUUM: the renewal of neighbouring segments, or the merge of all runs of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepUse {
    /// Bytes that it writes, about. Long values and index entries are reckoned by the share of rows that are there.
    pub written_bytes: u64,
    /// Bytes of what it replaces.
    pub replaced_bytes: u64,
    /// Bytes of pages that have to be free for it, none for what writes nothing; and of those that are free afterwards.
    room_bytes: u64,
    freed_bytes: u64,
    /// Groups that it may begin, each in an extent of its own.
    groups: u64,
}

/// Room that is missing for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Bytes that have to be free for it.
    pub needed_bytes: u64,
    /// Bytes that are.
    pub left_bytes: u64,
}

impl StepUse {
    /// Of a renewal of segments.
    pub(crate) fn renewal(
        shared: &Shared,
        view: &dyn View,
        access: &Access,
        places: Range<usize>,
    ) -> Result<Self, Error> {
        let parts = &access.parts[places];
        let sum = |bytes: &dyn Fn(&Part) -> u64| parts.iter().fold(0_u64, |sum, part| sum.saturating_add(bytes(part)));
        let written_bytes = sum(&|part| renewed_bytes(access, part));
        let replaced_bytes = sum(&|part| part.bytes() + part.lengths.deletes + part.lengths.updates);
        // Keys that no run knows yet become runs before the logs go that they come from.
        let mut groups = 1 + written_bytes / access.segment_bytes(shared).max(1);
        for index in &access.table.indexes {
            let coverage = &shared.index_files(view, access, index.id)?.coverage;
            groups += u64::from(parts.iter().any(|part| coverage.of_updates(&part.segment) < part.lengths.updates));
        }
        // A page of cells takes half as much as others.
        let times = if access.grain == Grain::Cells { 2 } else { 1 };
        let (room_bytes, freed_bytes) = (written_bytes.saturating_mul(times), replaced_bytes.saturating_mul(times));
        Ok(StepUse { written_bytes, replaced_bytes, room_bytes, freed_bytes, groups })
    }

    /// Of a merge of runs. What goes into it stays until it has ended, and others want to store something meanwhile.
    pub(crate) fn merge<'r>(runs: impl Iterator<Item = &'r Run>, written_bytes: u64) -> Self {
        let replaced_bytes = runs.fold(0_u64, |sum, run| sum.saturating_add(run.bytes()));
        StepUse { written_bytes, replaced_bytes, room_bytes: replaced_bytes, freed_bytes: replaced_bytes, groups: 1 }
    }

    /// Pages that have to be free for it: whole extents.
    fn pages(&self, room: &Room) -> u64 {
        let extent_bytes = (room.page_bytes * room.extent_pages).max(1);
        match self.room_bytes {
            0 => 0,
            bytes => bytes.div_ceil(extent_bytes).saturating_add(self.groups).saturating_mul(room.extent_pages),
        }
    }

    /// The room that is missing for it, if there is too little.
    pub(crate) fn lacks(&self, room: &Room) -> Option<Lack> {
        let pages = self.pages(room);
        let bytes = |pages: u64| pages.saturating_mul(room.page_bytes);
        (pages > room.pages).then(|| Lack { needed_bytes: bytes(pages), left_bytes: bytes(room.pages) })
    }

    /// Room as it is after the step, at the least: what lies in an extent that others share is not free.
    pub(crate) fn leaves(&self, room: Room) -> Room {
        let extent_bytes = (room.page_bytes * room.extent_pages).max(1);
        let freed = (self.freed_bytes / extent_bytes).saturating_mul(room.extent_pages);
        Room { pages: room.pages.saturating_add(freed).saturating_sub(self.pages(&room)), ..room }
    }

    /// Whether there is room for it: a step that would find none half way writes nothing.
    pub(crate) fn require(&self, writer: &dyn Storage, access: &Access) -> Result<(), Error> {
        writer.require_pages(self.pages(&writer.room())).map_err(Error::log(&access.table.name))
    }
}

/// What the rows of a segment take that are there.
fn renewed_bytes(access: &Access, part: &Part) -> u64 {
    let updates = part.state.read(|state| state.update_count(part.lengths));
    let images = part.visible() * access.shape.newest.width().max(part.stride) as u64;
    images + share(part.heap_bytes, part.visible(), part.count + updates)
}

/// What `part` takes where `whole` takes so many bytes.
pub(crate) fn share(bytes: u64, part: u64, whole: u64) -> u64 {
    wide::share(bytes, part, whole).unwrap_or(bytes)
}
