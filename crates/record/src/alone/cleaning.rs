//! Cleaning: what is current in the oldest pages of the data ring is moved to the end of a commit, in the order of the ring.
//!
//! ```text
//! | oldest block: moved, moved, tail ... | ... | newest commit: changes, survivors | free ... |
//! ```
//! 1. A block is free when the last of its pages is moved and the commit that did so is durable.
//! 2. What is current in a page fits into a commit page, so moving it never takes more pages than it came from, and one for what
//!    was begun.

use counterfoil_flash::Device;

use super::commit::Assembly;
use super::error::Error;
use super::form::Head;
use super::memory::PAGE_ENTRIES_MAX;
use super::opening;
use super::page::{self, DataPage, Draft};
use super::root::root_bytes;
use super::sequence::Sequence;
use super::store::Standalone;
use super::word::{NONE, Word};

/// Pages that a commit with records takes at most to clean in, beside those of its changes.
const OWN_PAGES_MAX: u32 = 4;
/// Pages beside the reserve from which on cleaning takes pages of its own, one more for each that lacks.
const MARGIN: u32 = 4;
/// Pages besides below which no commit page is left half empty.
const FILL_AHEAD: u32 = 4;

/// Records that a commit moves although it need not yet.
const CHEAP_ENTRIES: u32 = 2;

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Moves current records of the oldest pages to the end of this commit: at the pace at which the ring fills, and
    /// before that where it costs next to nothing, so that a store that is not full has many free pages.
    pub(crate) fn clean(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        let (data, begun, kept) = (self.state.form.data, assembly.sequence, self.state.reserve() + MARGIN);
        let (mut cheap, mut fills) = (CHEAP_ENTRIES, false);
        for _ in 0..data.block_pages.get() {
            let free = data.free(self.state.tail, data.after(assembly.sequence, 1));
            // Cleaning a block gains nothing before its last page is moved, and takes as many pages as are left of it.
            let wanted = data.block_rest(self.state.tail) + kept;
            // What was begun under pressure goes on until its last page is full: half empty pages are what presses.
            fills |= free < wanted + FILL_AHEAD;
            if !fills {
                let current = self.live.of_page(self.state.tail.slot).count_ones();
                let Some(left) = cheap.checked_sub(current) else { break };
                cheap = left;
            }
            let lacking = wanted.saturating_sub(free).min(OWN_PAGES_MAX);
            if !self.clean_oldest(assembly, data.distance(begun, assembly.sequence) < lacking)? {
                break;
            }
        }
        Ok(())
    }

    /// Moves what is current in the pages before this one, as far as one commit goes.
    pub(crate) fn clean_to(&mut self, assembly: &mut Assembly, end: Sequence) -> Result<(), Error> {
        let data = &self.state.form.data;
        let last = data.after(assembly.sequence, data.block_pages.get() / 4);
        // The last page is filled like the others: half empty ones would give back less than they took.
        while self.state.tail < end && self.clean_oldest(assembly, assembly.sequence < last)? {}
        self.fill_page(assembly)
    }

    /// Moves what is current in the oldest pages as far as the page being filled has room for it.
    pub(crate) fn fill_page(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        for _ in 0..self.state.form.data.block_pages.get() {
            if !self.clean_oldest(assembly, false)? {
                break;
            }
        }
        Ok(())
    }

    /// Moves the current records of the oldest page; false if they are not all moved. Pages of its own it takes only if
    /// the whole block can be cleaned with what is left: else nothing would be gained.
    fn clean_oldest(&mut self, assembly: &mut Assembly, may_go_on: bool) -> Result<bool, Error> {
        let data = &self.state.form.data;
        let left = data.free(self.state.floor.tail, assembly.sequence).saturating_sub(1);
        let is_needed = self.state.tail >= self.pending.replay.min(assembly.first);
        if is_needed || left < self.pages_left() && !self.fits_last_page(assembly)? {
            return Ok(false);
        }
        // Where room is short every commit is one page: a cut takes no more than that.
        let may_go_on = may_go_on && left > self.pages_to_move() + self.state.reserve();
        let moved = self.clean_page(assembly, self.state.tail, may_go_on)?;
        if moved {
            self.state.tail = self.state.form.data.after(self.state.tail, 1);
        }
        Ok(moved)
    }

    /// Whether the oldest page can be moved into the one being filled although no other one may follow it: if it needs one leaf at
    /// most, which is written then.
    fn fits_last_page(&mut self, assembly: &mut Assembly) -> Result<bool, Error> {
        let current = self.live.of_page(self.state.tail.slot).count_ones() as usize;
        if self.pending.room() < current && self.has_index_room() && !self.is_full(&assembly.draft) {
            self.write_due_leaf(assembly)?;
        }
        Ok(self.pending.room() >= current)
    }

    /// Pages that cleaning leaves for what a commit still has to say: where leaves stand, at most one for each record of a page
    /// that is moved, and the root.
    pub(crate) fn pages_left(&self) -> u32 {
        let tells = self.state.page_entries.get() as usize * (page::entry_bytes::<W>(W::BYTES) + W::BYTES);
        let room = self.state.form.body_bytes().saturating_sub(page::HEAD_BYTES + root_bytes::<W>(false));
        1 + u32::from(tells > room)
    }

    /// Pages of the oldest block that hold current records: they fill no more pages than these, when they are moved.
    pub(crate) fn pages_to_move(&self) -> u32 {
        let (tail, rest) = (self.state.tail.slot, self.state.form.data.block_rest(self.state.tail));
        (tail..tail + rest).filter(|page| self.live.of_page(*page) != 0).count() as u32
    }

    /// Moves the current records of a page; false if they are not all moved, because the page being filled is full and
    /// may not be followed by another one.
    fn clean_page(&mut self, assembly: &mut Assembly, sequence: Sequence, may_go_on: bool) -> Result<bool, Error> {
        let Some(epoch) = opening::data_epoch(self.openings(), sequence).copied() else { return Ok(true) };
        if self.openings().iter().any(|opening| opening.data_first == sequence) {
            // An opening root holds no records.
            return Ok(true);
        }
        if !may_go_on && self.is_full(&assembly.draft) {
            return Ok(false);
        }
        let page = sequence.slot;
        if self.has_index_room() {
            self.make_pending_room(assembly, self.live.of_page(page).count_ones() as usize)?;
        }
        // Only now: a leaf that was written for the room no longer tells by the pending changes what it replaced.
        let head = Head::new(sequence, &epoch);
        let candidates = if self.live.is_kept() { self.live.of_page(page) } else { self.current_entries(head)? };
        if candidates == 0 {
            return Ok(true);
        }
        // The page is read into a buffer of its own, lent out while `put` works on the other.
        let scratch = core::mem::take(&mut self.scratch);
        let moved = self.move_records(assembly, head, (candidates, may_go_on), scratch);
        self.scratch = scratch;
        moved
    }

    /// Whether a page in the making takes no record any more, or could not tell of the leaves that moving one may write.
    fn is_full(&self, draft: &Draft) -> bool {
        let tells = 2 * (page::entry_bytes::<W>(W::BYTES) + W::BYTES);
        draft.numbered >= self.state.page_entries.get() || draft.room() < tells + root_bytes::<W>(false)
    }

    /// The entries of a page that are current, one bit each, by asking the leaves.
    pub(crate) fn current_entries(&mut self, head: Head<'_>) -> Result<u32, Error> {
        let form = &self.state.form;
        form.open(&self.pages, &form.data, head, self.scratch)?;
        let page = DataPage::parse::<W>(form.body(self.scratch))?;
        let mut ids = [NONE; PAGE_ENTRIES_MAX as usize];
        for (place, (id, _)) in ids.iter_mut().zip(page.records::<W>()) {
            *place = id;
        }
        let mut current = 0;
        for (number, id) in (0..self.state.page_entries.get()).zip(ids) {
            let slot = self.state.slot(head.sequence, number);
            let is_current = id != NONE && self.find(id)?.is_some_and(|(found, _)| found == slot);
            current |= u32::from(is_current) << number;
        }
        Ok(current)
    }

    fn move_records(
        &mut self,
        assembly: &mut Assembly,
        head: Head<'_>,
        (candidates, may_go_on): (u32, bool),
        buffer: &mut [u8],
    ) -> Result<bool, Error> {
        let form = self.state.form;
        form.open(&self.pages, &form.data, head, buffer)?;
        let page = DataPage::parse::<W>(form.body(buffer))?;
        for (number, (id, record)) in (0..self.state.page_entries.get()).zip(page.records::<W>()) {
            if id >= self.ids_max() {
                return Err(Error::Corrupt);
            }
            let slot = self.state.slot(head.sequence, number);
            let is_current = self.pending.slot(id).is_none_or(|newest| newest == slot);
            if candidates >> number & 1 == 0 || !is_current {
                continue;
            }
            let is_full = assembly.draft.numbered >= self.state.page_entries.get();
            // One that cannot be filled would give back less than it takes.
            let fills = !assembly.fills_pages || self.pending.room() >= self.state.page_entries.get() as usize;
            let begins = may_go_on && fills;
            if self.pending.room() == 0
                || !begins && (is_full || !assembly.draft.fits::<W>(record.len(), root_bytes::<W>(false)))
            {
                return Ok(false);
            }
            self.put(assembly, id, Some(record))?;
            self.live.set(slot, false);
        }
        Ok(true)
    }
}
