//! Working memory of a store that stands alone: all of it the caller's.

use counterfoil_flash::Geometry;

use crate::bytes;
use crate::error::Error;
use crate::window::{Layout, Window};

use super::form::Form;

use super::map;
use super::opening::Opening;
use super::pending::Moved;
use super::word::{NONE, Word};

/// Entries of a data page at most.
pub(crate) const PAGE_ENTRIES_MAX: u32 = 32;
/// Openings at least that the memory must have room for.
const OPENINGS_MIN: usize = 4;
/// Bytes of a leaf before its cells: the version that it is of.
pub(crate) const LEAF_HEAD_BYTES: usize = 8;

/// Where a store stands and how it is cut up. It must be the same at every opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The first block.
    pub first_block: u64,
    /// How many blocks, 4 at least.
    pub block_count: u64,
    /// How many of them, the last ones, are the index ring: 2 at least.
    pub index_blocks: u64,
    /// Entries of a data page at most: 1 to 32. Records of less than a page divided by this many waste room.
    pub page_entries: u32,
    /// Whether every opening has random bytes of its own in its keys, and in 16 bytes of every page: where there is a
    /// generator. Without it the counter alone tells the keys of two openings apart.
    pub is_salted: bool,
}

/// Working memory. Contents need not be cleared.
pub struct Memory<'a, W: Word> {
    /// Changes that wait for their leaves: at least as many as a page has entries; the more, the fewer leaves are written.
    pub pending: &'a mut [Moved<W>],
    /// One for every leaf of the index: as many ids fit as there are leaves times [`Sizes::leaf_ids`].
    pub leaves: &'a mut [W],
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
    pub(crate) fn form(&self, geometry: &Geometry) -> Result<Form, Error> {
        if !(1..=PAGE_ENTRIES_MAX).contains(&self.page_entries) {
            return Err(Error::Geometry("pages must have 1 to 32 entries"));
        }
        let window = Window { first_block: self.first_block, block_count: self.block_count, doubled: false };
        let layout = Layout::cut(geometry, &window, self.index_blocks)?;
        Ok(Form::new(&layout, self.is_salted))
    }

    /// What follows from the shape on a medium of this geometry, with words as wide as `W`.
    ///
    /// # Errors
    /// [`Error::Geometry`] if the shape does not suit a store.
    pub fn sizes<W: Word>(&self, geometry: &Geometry) -> Result<Sizes, Error> {
        let form = self.form(geometry)?;
        let entries = form.data.pages * u64::from(self.page_entries);
        if entries >= u64::from(u32::MAX) || W::of(entries as u32).number() == NONE {
            return Err(Error::Geometry("the words are too narrow for so many pages"));
        }
        // Half of the ring less a block, so that what is current and what a cut falls back to stand beside each other.
        let leaves_max = (form.index.pages - form.index.block_pages).saturating_sub(8) * 3 / 4;
        Ok(Sizes {
            leaf_ids: leaf_ids::<W>(&form),
            leaves_max: u32::try_from(leaves_max).unwrap_or(u32::MAX).max(1),
            live_bytes: usize::try_from(entries.div_ceil(8)).unwrap_or(usize::MAX),
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
        let needs = [
            ("the pending changes", shape.page_entries as usize * 2, self.pending.len()),
            ("the leaves", 1, self.leaves.len()),
            ("the openings", OPENINGS_MIN, self.openings.len()),
            ("the page in the making", page_bytes, self.page.len()),
            ("the page being read", page_bytes, self.scratch.len()),
        ];
        for (what, needed, given) in needs {
            if given < needed {
                return Err(Error::BufferTooSmall { what, needed, given });
            }
        }
        let leaves = self.leaves.len().min(sizes.leaves_max as usize);
        if map::pages::<W>(form, self.openings.len(), leaves) * 2 > form.index.block_pages {
            return Err(Error::Geometry("blocks are too short for the map of so many leaves"));
        }
        Ok(Memory {
            leaves: bytes::first_mut(self.leaves, leaves),
            page: bytes::first_mut(self.page, page_bytes),
            scratch: bytes::first_mut(self.scratch, page_bytes),
            ..self
        })
    }
}
