//! What a device does while it has time: cleaning ahead, and looking after its flash.

use core::num::NonZeroUsize;

use counterfoil_flash::Device;

use super::commit::bytes_left;
use super::error::Error;
use super::form::Head;
use super::opening;
use super::page::{self, DataPage};
use super::retire::LEAVES_MAX;
use super::sequence::Sequence;
use super::store::Standalone;
use super::word::Word;

/// What current records take.
struct Held {
    entries: usize,
    bytes: usize,
    longest: usize,
}

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Does one step of what later commits would have to do otherwise: takes up writing, erases the block that a ring enters
    /// next, or cleans some of the oldest pages. Whether there is more to do; whoever calls it until there is not, has the
    /// next block of pages at the price of programming them.
    ///
    /// One step is an erase, with a program in the index ring; or a commit of a quarter of a block and two pages more at most,
    /// with the leaves that fill up by it, and those that clear a block of the index ring, if that is short of room. The
    /// first one after an opening takes up writing, as a commit would.
    ///
    /// # Errors
    /// Those of writing; [`Error::Full`] if there is nothing that could be done about room.
    pub fn prepare(&mut self) -> Result<bool, Error> {
        if self.opened.is_some() {
            return self.ready_to_write().map(|()| true);
        }
        self.ready_to_write()?;
        Ok(self.clean_ahead()? || self.erase_ahead()?)
    }

    /// Cleans until two blocks are free beside the reserve, as long as pages are gained by it, and once round at most until
    /// something else is committed.
    fn clean_ahead(&mut self) -> Result<bool, Error> {
        let data = &self.state.form.data;
        let wanted = self.state.reserve() + 2 * data.block_pages.get();
        let rest = data.block_rest(self.state.tail);
        let moved = self.pages_to_move();
        if self.state.free_pages() >= wanted || moved >= rest || self.state.free_pages() < moved + self.state.reserve()
        {
            return Ok(false);
        }
        let last = *self.state.ahead_end.get_or_insert(self.state.head);
        if self.state.tail >= last {
            return Ok(false);
        }
        let (end, before) = (data.next_block(self.state.tail), self.progress());
        self.make_index_room(0, LEAVES_MAX)?;
        self.write_commit(true, &mut |store, assembly| {
            store.settle(assembly, end)?;
            store.clean_to(assembly, end)
        })?;
        Ok(before != self.progress())
    }

    fn erase_ahead(&mut self) -> Result<bool, Error> {
        let (data, index) = (self.state.form.data, self.state.form.index);
        let next = data.block_from(self.state.head);
        if !self.state.data_is_erased && data.free(self.state.floor.tail, next) >= data.block_pages.get() {
            self.erase_data(next).inspect_err(|_| self.state.latched = true)?;
            self.state.data_is_erased = true;
            return Ok(true);
        }
        let next = index.block_from(self.state.index_head);
        if !self.state.index_is_erased && index.free(self.state.floor.index_tail, next) >= index.block_pages.get() {
            self.erase_index(next).inspect_err(|_| self.state.latched = true)?;
            self.state.index_is_erased = true;
            return Ok(true);
        }
        Ok(false)
    }

    /// How many more records of so many bytes there is room for at least, committed singly or together; with an index ring of two
    /// blocks it can be fewer, because that one may be full before. Reads each page of the data ring that holds something, twice
    /// where the caller keeps no bits.
    ///
    /// # Errors
    /// Those of reading.
    pub fn space_left(&mut self, record_bytes: usize) -> Result<u32, Error> {
        self.not_latched()?;
        let data = self.state.form.data;
        let longest = page::entry_bytes::<W>(record_bytes) + record_bytes;
        let mut held = Held { entries: 0, bytes: 0, longest };
        for back in 0..=data.distance(self.state.tail, self.state.version) {
            self.count_current(data.before(self.state.version, back), &mut held)?;
        }
        let room = self.state.form.body_bytes().saturating_sub(page::HEAD_BYTES + bytes_left::<W>());
        let entries = self.state.page_entries.get();
        // A page is left when the next record does not fit: so it is filled but for one byte less than that.
        let filled = (room + 1).saturating_sub(held.longest);
        // One at least, as the compiler can see: a division out of line would look once more.
        let filled = NonZeroUsize::new(filled).unwrap_or(NonZeroUsize::MIN);
        let used = (held.bytes / filled + 1).max(held.entries / entries.max(1) as usize + 1) as u32;
        let kept = self.state.reserve() + 2 * data.block_pages.get() + data.pages / 32;
        let pages = data.pages.saturating_sub(kept + used);
        Ok(pages * entries.min(room.checked_div(longest).unwrap_or(0) as u32))
    }

    /// Counts the current records of a page.
    fn count_current(&mut self, sequence: Sequence, held: &mut Held) -> Result<(), Error> {
        let Some(epoch) = opening::data_epoch(self.openings(), sequence).copied() else { return Ok(()) };
        if self.openings().iter().any(|opening| opening.data_first == sequence) {
            return Ok(());
        }
        let head = Head::new(sequence, &epoch);
        let page = sequence.slot;
        let current = if self.live.is_kept() { self.live.of_page(page) } else { self.current_entries(head)? };
        if current == 0 {
            return Ok(());
        }
        let form = &self.state.form;
        form.open(&self.pages, &form.data, head, self.scratch)?;
        let page = DataPage::parse::<W>(form.body(self.scratch))?;
        for (_, (_, record)) in (0..32u32).zip(page.records::<W>()).filter(|(number, _)| current >> number & 1 == 1) {
            let bytes = page::entry_bytes::<W>(record.len()) + record.len();
            held.entries += 1;
            held.bytes += bytes;
            held.longest = held.longest.max(bytes);
        }
        Ok(())
    }

    /// How many more times each block can be erased before the most used one has been erased `endurance` times since the
    /// making of the store, at least. What was erased ahead, and again after a cut, is not counted.
    pub fn lifetime_left(&self, endurance: u32) -> u32 {
        let laps = self.state.head.lap.max(self.state.index_head.lap);
        endurance.saturating_sub(laps.saturating_add(self.state.purges))
    }
}
