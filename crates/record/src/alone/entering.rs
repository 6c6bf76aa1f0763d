//! Entering a block: it is given a place, and erased, before its first page is written. What a cut leaves is a block that
//! nobody needs, half erased, and the next opening erases it again.
//!
//! 1. [`Standalone::prepare`] may have done so for the block that a ring enters next. Nobody remembers that after a cut.

use counterfoil_flash::Device;

use super::error::Error;
use super::sequence::{Ring, Sequence};
use super::store::Standalone;
use super::superblock;
use super::word::Word;

/// Blocks of a ring that nobody needs: so many, cyclically, from the one that is entered next on.
#[derive(Clone, Copy)]
struct Free {
    first: u32,
    count: u32,
    /// Where in all the blocks the ring has its own.
    ring_first: u32,
    ring_blocks: u32,
    /// The next one is erased, and stays where it is.
    is_erased: bool,
}

impl Free {
    fn of(ring: &Ring, (tail, head): (Sequence, Sequence), is_erased: bool) -> Free {
        let next = ring.block_from(head);
        let count = ring.free(tail, next) / ring.block_pages;
        Free { first: ring.block(next), count, ring_first: ring.first_block, ring_blocks: ring.blocks(), is_erased }
    }

    fn holds(&self, block: u32) -> bool {
        let is_of_ring = block >= self.ring_first && block - self.ring_first < self.ring_blocks;
        if !is_of_ring {
            return false;
        }
        let ahead = if block >= self.first { block - self.first } else { block + self.ring_blocks - self.first };
        ahead < self.count && !(self.is_erased && ahead == 0)
    }
}

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Makes the data ring ready for this page.
    pub(crate) fn enter_data(&mut self, sequence: Sequence) -> Result<(), Error> {
        let ring = &self.state.form.data;
        self.state.data_next = ring.after(sequence, 1);
        if ring.in_block(sequence) == 0 && !core::mem::take(&mut self.state.data_is_erased) {
            self.erase_data(sequence)?;
        }
        Ok(())
    }

    /// Makes the index ring ready for this page. Uses the scratch page.
    pub(crate) fn enter_index(&mut self, sequence: Sequence) -> Result<(), Error> {
        let is_first = self.state.form.index.in_block(sequence) == 0;
        if is_first && !core::mem::take(&mut self.state.index_is_erased) {
            self.erase_index(sequence)?;
        }
        Ok(())
    }

    /// Erases the block of the data ring that begins with this page, at a new place.
    pub(crate) fn erase_data(&mut self, first: Sequence) -> Result<(), Error> {
        self.give_place(self.state.form.data.block(first), first);
        self.pages.erase(self.state.form.data.block(first))
    }

    /// Erases the block of the index ring that begins with this page, at a new place, and writes its superblock.
    pub(crate) fn erase_index(&mut self, first: Sequence) -> Result<(), Error> {
        let block = self.state.form.index.block(first);
        self.give_place(block, self.state.data_next);
        self.pages.erase(block)?;
        superblock::write(&mut self.pages, &self.state.shape, block, self.scratch)
    }

    /// Gives a block that is entered the next place round. `data_next`: the next page of the data ring to be written.
    fn give_place(&mut self, block: u32, data_next: Sequence) {
        if !self.pages.needs_erase() {
            return;
        }
        let (state, form) = (&self.state, &self.state.form);
        let data = Free::of(&form.data, (state.floor.tail, data_next.max(state.head)), state.data_is_erased);
        let index = Free::of(&form.index, (state.floor.index_tail, state.index_head), state.index_is_erased);
        self.pages.enter(block, |other| data.holds(other) || index.holds(other));
    }
}
