//! Whether a commit fits, and what makes room for it.

use core::num::NonZeroU32;

use counterfoil_flash::Device;

use crate::space::Change;

use super::commit::bytes_left;
use super::error::Error;
use super::map;
use super::page::{self, Draft};
use super::retire::LEAVES_MAX;
use super::root::root_bytes;
use super::sequence::Sequence;
use super::state::OPENING_PAGES;
use super::store::Standalone;
use super::word::Word;

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Makes sure that these changes fit, moving leaves out of the way if need be.
    ///
    /// # Errors
    /// [`Error::Full`]: then nothing but leaves was moved.
    pub(crate) fn make_room(&mut self, changes: &[Change<'_>]) -> Result<(), Error> {
        let adds = changes.iter().any(|(_, record)| record.is_some());
        let pages = self.pages_of(changes)?;
        // With that much the oldest block can always be cleaned after this commit. One that only deallocates takes from it.
        let beside =
            |store: &Self| if adds { store.state.reserve() + store.pages_to_move() + 1 } else { store.pages_left() };
        let needed = |store: &Self| pages + beside(store);
        let (blocks, kept) = if adds { (self.state.form.data.blocks(), OPENING_PAGES) } else { (1, self.pages_left()) };
        let was_tried = self.full_at == Some(self.state.version);
        self.make_index_room(changes.len(), 0)?;
        for _ in 0..if was_tried { 0 } else { blocks } {
            if needed(self) <= self.state.free_pages() || !self.clean_block(kept)? {
                break;
            }
            self.make_index_room(changes.len(), 0)?;
        }
        if needed(self) <= self.state.free_pages() {
            return Ok(());
        }
        // A lap that gained too little is not made again before something was written.
        self.full_at = adds.then_some(self.state.version);
        Err(Error::Full)
    }

    /// Makes sure that the index ring has room for so many changes, and for so many leaves that are written early.
    pub(crate) fn make_index_room(&mut self, changes: usize, early: u32) -> Result<(), Error> {
        for _ in 0..self.state.form.index.blocks() {
            if self.index_pages_of(changes) + early.max(self.index_kept()) <= self.state.free_index_pages() {
                return Ok(());
            }
            self.clear_next_index_block()?;
        }
        Err(Error::Full)
    }

    /// Makes good what openings that were cut short have used up, as far as it goes: before anything else is written.
    pub(crate) fn regain_reserve(&mut self) -> Result<(), Error> {
        // One lap at most: blocks in which everything is current give nothing, however often they are moved.
        for _ in 0..self.state.form.data.blocks() {
            let enough = 2 * self.state.reserve() + self.pages_to_move();
            if self.state.free_pages() >= enough || !self.clean_block(0)? {
                break;
            }
        }
        Ok(())
    }

    /// Commits that move what is current in the oldest block, if there is room to do so beside the pages to be kept; false
    /// if there is not.
    pub(crate) fn clean_block(&mut self, kept: u32) -> Result<bool, Error> {
        self.ready_to_write()?;
        let end = self.state.form.data.next_block(self.state.tail);
        while self.state.tail < end {
            if self.needs_index_room(end) {
                self.make_index_room(0, LEAVES_MAX)?;
            }
            let before = self.progress();
            if self.state.free_pages() < (self.pages_to_move() + kept).max(1) {
                return Ok(false);
            }
            self.write_commit(true, &mut |store, assembly| {
                store.settle(assembly, end)?;
                store.clean_to(assembly, end)
            })?;
            if before == self.progress() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether cleaning the next page before `end` writes leaves or a map. If not, it needs no room for them: making that takes
    /// pages of the data ring, too.
    fn needs_index_room(&self, end: Sequence) -> bool {
        let has_pending_room = self.pending.room() >= self.state.page_entries.get() as usize;
        self.state.map_is_due || self.pending.replay < end || !has_pending_room
    }

    /// Pages of the data ring that changes take by themselves at most, with what tells of leaves and with the root.
    fn pages_of(&self, changes: &[Change<'_>]) -> Result<u32, Error> {
        let body = self.state.form.body_bytes();
        let mut pages = 1;
        let mut draft = Draft::new(body, bytes_left::<W>());
        let leaf_count = self.leaves_of(changes.len());
        let leaves = core::iter::repeat_n((W::BYTES, false), leaf_count as usize);
        let records = changes.iter().map(|(_, record)| record.map_or((0, false), |record| (record.len(), true)));
        let longest = records.clone().map(|(bytes, _)| bytes).max().unwrap_or(0);
        if longest + leaf_count as usize * (2 * W::BYTES + 1) > self.record_bytes_max() {
            // What tells of a leaf may take a page of its own between two records as long as these.
            pages += leaf_count.min(changes.len() as u32);
        }
        for (bytes, is_record) in records.chain(leaves).chain([(root_bytes::<W>(false), false)]) {
            let fits = match is_record {
                true => draft.fits::<W>(bytes, 0) && draft.numbered < self.state.page_entries.get(),
                false => page::entry_bytes::<W>(bytes) + bytes <= draft.room(),
            };
            if !fits {
                draft = Draft::new(body, bytes_left::<W>());
                pages += 1;
            }
            if is_record { draft.take_record::<W>(bytes)? } else { draft.take::<W>(bytes)? }
        }
        Ok(pages)
    }

    /// Leaves that so many changes, and as many more as cleaning a page makes, fill at most.
    fn leaves_of(&self, changes: usize) -> u32 {
        let changes = (changes + self.state.page_entries.get() as usize) as u32;
        // The leaf that is written has half of the changes at least that the fullest one has, both rounded up: so, because
        // dividing with rounding looks for zero.
        let leaves = NonZeroU32::new(self.leaf_count() as u32).unwrap_or(NonZeroU32::MIN);
        let each = (self.pending.capacity() as u32).saturating_sub(1) / leaves / 2 + 1;
        let each = NonZeroU32::new(each).unwrap_or(NonZeroU32::MIN);
        changes / each + u32::from(changes % each != 0) + 1
    }

    /// Pages of the index ring that a commit takes at most: leaves, for changes and for what is late, the map twice, and
    /// what stands in the way.
    pub(crate) fn index_pages_of(&self, changes: usize) -> u32 {
        let in_the_way = self.in_block_of(self.index_tail());
        self.leaves_of(changes) + 2 * self.map_pages() + in_the_way
    }

    /// Pages of the index ring that a commit leaves beside what stands in the way: clearing the next block writes a map and a
    /// leaf, and openings that are cut short write maps and pass pages over.
    pub(crate) fn index_kept(&self) -> u32 {
        2 * self.map_pages() + 1
    }

    /// Whether the index ring has room for the leaves of a commit that only cleans.
    pub(crate) fn has_index_room(&self) -> bool {
        self.index_pages_of(0) + self.index_kept() <= self.state.free_index_pages()
    }

    /// Whether what stands in the next block of the index ring has to be written anew now: with every leaf that is written
    /// before it, there is less room left for it.
    pub(crate) fn next_index_block_is_due(&self) -> bool {
        let (oldest, index) = (self.index_tail(), &self.state.form.index);
        let (free, head) = (index.free(oldest, self.state.index_head), self.state.index_head);
        let rest = if index.in_block(head) == 0 { 0 } else { index.block_rest(head) };
        free <= rest && free <= self.in_block_of(oldest) + self.map_pages() + 1
    }

    pub(crate) fn map_pages(&self) -> u32 {
        map::pages::<W>(&self.state.form, self.state.opening_count + 1, self.leaf_count())
    }

    /// How many leaves stand in the block of this page of the index ring.
    fn in_block_of(&self, sequence: Sequence) -> u32 {
        let block = self.state.form.index.block_start(sequence);
        (0..self.leaf_count() as u32).filter(|leaf| self.leaf_block(*leaf) == Some(block)).count() as u32
    }

    /// The block of the index ring that a leaf stands in.
    pub(crate) fn leaf_block(&self, leaf: u32) -> Option<Sequence> {
        let slot = self.leaves.get(leaf as usize).filter(|slot| **slot != W::NONE)?;
        Some(self.state.form.index.block_start(self.index_sequence(*slot)))
    }

    /// Commits that write anew whatever stands in the oldest block of the index ring that anything stands in: in each of them no
    /// more leaves than leave enough for openings that are cut short, should it be cut itself.
    pub(crate) fn clear_next_index_block(&mut self) -> Result<(), Error> {
        self.ready_to_write()?;
        let (ring, oldest) = (self.state.form.index, self.index_tail());
        let block = ring.block_start(oldest);
        // Each of them writes a leaf at least, or the map.
        for _ in 0..=self.leaf_count() + 1 {
            if ring.block_start(self.index_tail()) != block {
                return Ok(());
            }
            let leaves = self.leaves_to_clear(block)?;
            self.write_commit(true, &mut |store, assembly| {
                for _ in 0..leaves {
                    if ring.block_start(store.index_tail()) == block {
                        store.relocate(assembly, store.index_tail())?;
                    } else if store.pending.room() < store.state.page_entries.get() as usize {
                        // Else the page would stay half empty.
                        store.write_due_leaf(assembly)?;
                    }
                }
                store.fill_page(assembly)
            })?;
        }
        Err(Error::Full)
    }

    /// How many leaves of this block, the oldest of the index ring, the next commit writes anew.
    fn leaves_to_clear(&self, block: Sequence) -> Result<u32, Error> {
        let (state, in_block) = (&self.state, self.in_block_of(block));
        let writes_map = state.map_is_due || state.form.index.block_start(state.map) == block;
        let map_pages = if writes_map { self.map_pages() } else { 0 };
        let rest = state.free_index_pages().checked_sub(in_block + map_pages).ok_or(Error::Full)?;
        if state.free_pages() < self.pages_left() {
            return Err(Error::Full);
        }
        // What the next opening takes before it gets on, should this commit be cut.
        let kept = self.map_pages() + 1;
        Ok(rest.saturating_sub(kept).min(state.page_entries.get() - 1).max(1))
    }

    /// The most changes that one commit takes.
    pub fn changes_max(&self) -> usize {
        (self.pending.capacity() / 2).max(1)
    }

    /// The most bytes that a record may have.
    pub fn record_bytes_max(&self) -> usize {
        super::commit::record_bytes_max::<W>(&self.state.form)
    }
}
