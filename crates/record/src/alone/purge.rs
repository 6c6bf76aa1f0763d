//! Purging: nothing that is not current any more is left on the part.
//!
//! ```text
//! before:  | stale and current, mixed | head ...
//! then:    | stale and current, mixed | empty pages to the end of the block | current alone | head ...
//! after:   | erased, and read back ......................................... | current alone | head ...
//! ```
//! 1. What is current is moved by commits like any others, so a cut loses nothing; it leaves the purge undone.
//! 2. A record is gone only where its block was erased by us and reads as blank.

use counterfoil_flash::Device;

use super::error::Error;
use super::pages::Spot;
use super::sequence::{Ring, Sequence};
use super::state::OPENING_PAGES;
use super::store::Standalone;
use super::word::Word;

/// What a purge can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purged {
    /// Nothing on the part tells of what was replaced or deallocated, as far as the part does what it says. Copies taken
    /// before are out of reach.
    Done,
    /// The medium does not erase when it is told to, or did not read as erased.
    NotGuaranteed,
}

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Moves everything that is current, erases everything else, and reads back that it is erased. Programs as many pages as
    /// hold something current and less than two blocks more, and what cleaning takes where room is short; reads every page
    /// twice at most, and erases every block once.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no room to move things in: nothing is lost then. Those of writing.
    pub fn purge(&mut self) -> Result<Purged, Error> {
        self.ready_to_write()?;
        self.state.purges = self.state.purges.saturating_add(1);
        self.make_room_to_fill()?;
        let data_first = self.state.form.data.block_from(self.state.head);
        let index_first = self.state.form.index.block_from(self.state.index_head);
        self.fill_blocks(data_first, index_first)?;
        self.move_before(data_first, index_first)?;
        let mut is_blank = self.pages.needs_erase();
        let (data, index) = (self.state.form.data, self.state.form.index);
        is_blank &= self.erase_free(&data, self.state.head, self.state.floor.tail)?;
        is_blank &= self.erase_free(&index, self.state.index_head, self.state.floor.index_tail)?;
        // The superblock of the next block of the index ring, if it was there already, is erased with it.
        let next = data.block_from(self.state.head);
        self.state.data_is_erased = data.free(self.state.floor.tail, next) >= data.block_pages.get();
        self.state.index_is_erased = false;
        Ok(if is_blank { Purged::Done } else { Purged::NotGuaranteed })
    }

    /// Makes room in both rings until the blocks being written can be filled, a lap at most. Cleaning one takes room in the
    /// other.
    fn make_room_to_fill(&mut self) -> Result<(), Error> {
        for _ in 0..self.pages.blocks() {
            if self.index_pages_to_fill() > self.state.free_index_pages() {
                self.clear_next_index_block()?;
            } else if self.pages_to_fill() <= self.state.free_pages() || !self.clean_block(OPENING_PAGES)? {
                break;
            }
        }
        Ok(())
    }

    /// The same of the index ring: the rest of the block being written, and what moving things writes there.
    fn index_pages_to_fill(&self) -> u32 {
        let (index, head) = (&self.state.form.index, self.state.index_head);
        index.distance(head, index.block_from(head)) + self.index_pages_of(0)
    }

    /// Pages of the data ring that a purge needs: the rest of the block being written, and those to move things in.
    fn pages_to_fill(&self) -> u32 {
        let (data, head) = (&self.state.form.data, self.state.head);
        data.distance(head, data.block_from(head)) + self.pages_to_move() + self.state.reserve()
    }

    /// A commit that fills the blocks being written with empty pages and maps.
    fn fill_blocks(&mut self, data_first: Sequence, index_first: Sequence) -> Result<(), Error> {
        let fits = self.pages_to_fill() <= self.state.free_pages();
        if !fits || self.index_pages_to_fill() > self.state.free_index_pages() {
            return Err(Error::Full);
        }
        self.write_commit(true, &mut |store, assembly| {
            while store.state.index_head < index_first {
                store.write_map()?;
            }
            while store.state.form.data.after(assembly.sequence, 1) < data_first {
                store.next_page(assembly)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Erases the blocks of a ring between its head and its tail, and reads them back; whether they are blank.
    fn erase_free(&mut self, ring: &Ring, head: Sequence, tail: Sequence) -> Result<bool, Error> {
        let (mut next, mut is_blank) = (ring.block_from(head), true);
        while ring.free(tail, next) >= ring.block_pages.get() {
            self.erase_and_look(ring, next, &mut is_blank).inspect_err(|_| self.state.latched = true)?;
            next = ring.next_block(next);
        }
        Ok(is_blank)
    }

    fn erase_and_look(&mut self, ring: &Ring, first: Sequence, is_blank: &mut bool) -> Result<(), Error> {
        let block = ring.block(first);
        self.pages.erase(block)?;
        for page in 0..self.pages.geometry().block_pages {
            *is_blank &= self.is_blank(Spot { block, page })?;
        }
        Ok(())
    }
}
