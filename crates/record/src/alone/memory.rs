//! Working memory of a store that stands alone: all of it the caller's.

use counterfoil_flash::Geometry;

use crate::bytes;

use super::error::Error;
use super::form::Form;
use super::map;
use super::opening::Opening;
use super::pending::Moved;
use super::word::{NONE, Word};

/// Entries of a data page at most.
pub(crate) const PAGE_ENTRIES_MAX: u32 = 32;
/// Openings at least that the memory must have room for.
const OPENINGS_MIN: usize = 4;
/// Changes that may wait for each leaf of a new store at least. With fewer, a commit may have to write more leaves than the
/// index ring ever has room for.
const LEAF_PENDING_MIN: usize = 4;
/// Bytes of a leaf before its cells: the version that it is of.
pub(crate) const LEAF_HEAD_BYTES: usize = 8;

/// Where a store stands and how it is cut up. It must be the same at every opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The first block.
    pub first_block: u64,
    /// How many blocks, 4 at least.
    pub block_count: u32,
    /// How many of them, the last ones, are the index ring: 2 at least.
    pub index_blocks: u32,
    /// Entries of a data page at most: 1 to 32. Records of less than a page divided by this many waste room.
    pub page_entries: u32,
    /// Ids below this one belong to names ([`super::Standalone::put_named`]); none if nothing is named.
    pub names: u32,
    /// Whether every opening has random bytes of its own in its keys, and in 16 bytes of every page: where there is a
    /// generator. Without it the counter alone tells the keys of two openings apart.
    pub is_salted: bool,
}

/// Working memory. Contents need not be cleared.
pub struct Memory<'a, W: Word> {
    /// Changes that wait for their leaves: twice as many as a page has entries at least, and to make a store four times as many
    /// as there are leaves; the more, the fewer leaves are written.
    pub pending: &'a mut [Moved<W>],
    /// One for every leaf of the index: as many ids fit as there are leaves times [`Sizes::leaf_ids`].
    pub leaves: &'a mut [W],
    /// One for every block of the store.
    pub blocks: &'a mut [W],
    /// A bit for every entry of every data page ([`Sizes::live_bytes`]). With less, cleaning asks the leaves instead.
    pub live: &'a mut [u8],
    /// The openings of which pages are still needed: 8 do.
    pub openings: &'a mut [Opening],
    /// One page: the page in the making.
    pub page: &'a mut [u8],
    /// One page: the page being read.
    pub scratch: &'a mut [u8],
}

/// What follows from a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Ids that one leaf tells of.
    pub leaf_ids: u32,
    /// Leaves for which the index ring has room.
    pub leaves_max: u32,
    /// Bytes of [`Memory::live`].
    pub live_bytes: usize,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// The most bytes that a record may have.
    pub record_bytes_max: usize,
}

impl Shape {
    /// How many changes there must be room for at least ([`Memory::pending`]) to make a store with room for so many leaves. Fewer
    /// do to open one.
    pub fn pending_to_make(&self, leaves: usize) -> usize {
        (self.page_entries as usize * 2).max(leaves.saturating_mul(LEAF_PENDING_MIN))
    }

    pub(crate) fn form<W: Word>(&self, geometry: &Geometry) -> Result<Form, Error> {
        if !(1..=PAGE_ENTRIES_MAX).contains(&self.page_entries) {
            return Err(Error::Geometry);
        }
        Form::new::<W>(geometry, self)
    }

    /// What follows from the shape on a medium of this geometry, with words as wide as `W`.
    ///
    /// # Errors
    /// [`Error::Geometry`] if the shape does not suit a store.
    pub fn sizes<W: Word>(&self, geometry: &Geometry) -> Result<Sizes, Error> {
        let form = self.form::<W>(geometry)?;
        let entries = form.data.pages.checked_mul(self.page_entries).ok_or(Error::Geometry)?;
        if W::of(entries).number() == NONE || W::of(self.block_count).number() == NONE {
            return Err(Error::Geometry);
        }
        // Half of the ring less a block, so that what is current and what a cut falls back to stand beside each other.
        let leaves_max = (form.index.pages - form.index.block_pages.get()).saturating_sub(8) / 4 * 3;
        Ok(Sizes {
            leaf_ids: leaf_ids::<W>(&form),
            leaves_max: leaves_max.max(1),
            live_bytes: entries.div_ceil(8) as usize,
            page_bytes: form.page_bytes,
            record_bytes_max: super::commit::record_bytes_max::<W>(&form),
        })
    }
}

/// Ids that a leaf tells of.
pub(crate) fn leaf_ids<W: Word>(form: &Form) -> u32 {
    ((form.body_bytes() - LEAF_HEAD_BYTES) / W::BYTES) as u32
}

impl<'a, W: Word> Memory<'a, W> {
    /// The memory with its buffers as long as the store uses them.
    pub(crate) fn trimmed(self, form: &Form, shape: &Shape, sizes: &Sizes) -> Result<Self, Error> {
        let page_bytes = form.page_bytes;
        let has_room = self.pending.len() >= shape.page_entries as usize * 2
            && !self.leaves.is_empty()
            && self.blocks.len() >= shape.block_count as usize
            && self.openings.len() >= OPENINGS_MIN
            && self.page.len() >= page_bytes
            && self.scratch.len() >= page_bytes;
        if !has_room {
            return Err(Error::BufferTooSmall);
        }
        let leaves = self.leaves.len().min(sizes.leaves_max as usize);
        if map::pages::<W>(form, self.openings.len(), leaves) * 2 > form.index.block_pages.get() {
            return Err(Error::Geometry);
        }
        Ok(Memory {
            leaves: bytes::first_mut(self.leaves, leaves),
            blocks: bytes::first_mut(self.blocks, shape.block_count as usize),
            page: bytes::first_mut(self.page, page_bytes),
            scratch: bytes::first_mut(self.scratch, page_bytes),
            ..self
        })
    }
}
