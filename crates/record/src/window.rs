//! The window of the medium that a store lives in, and the arithmetic of its two rings.
//!
//! ```text
//! window:  | data ring: block_count - index blocks            | index ring: max(3, block_count / 6) blocks |
//! ring:    page 0 .. pages-1, written round and round; the page with sequence s stands at s mod pages
//! doubled: | the same again, byte for byte                                                              |
//! ```
//! 1. A sequence is `lap * pages + offset`, counted from lap 1 (so that a page of zeros claims nothing), and never
//!    used twice in one epoch.
//! 2. The absolute block of a sequence is `s / block_pages`; block `b` stands where `b - blocks` stood a lap before.
//! 3. The copies of a page are written together, and one that authenticates is enough.
//! 4. Sequences end at [`SEQUENCE_MAX`], so sums of them and of ring lengths never overflow.

use counterfoil_flash::{BlockNumber, Geometry, PageNumber};
use counterfoil_vault::{Epoch, Kind, Place, TAG_BYTES};

use crate::Error;
use crate::data_page::BODY_HEAD_BYTES;
use crate::head::HEAD_BYTES;

/// No sequence is larger. A page a microsecond reaches it after a hundred thousand years.
pub(crate) const SEQUENCE_MAX: u64 = 1 << 62;

/// Pages in a block at most.
pub(crate) const BLOCK_PAGES_MAX: u32 = 1024;

/// Blocks in a window at least.
const BLOCKS_MIN: u64 = 8;

/// The blocks of the medium that a store may use. No other block is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first block.
    pub first_block: u64,
    /// How many blocks.
    pub block_count: u64,
    /// Whether every page stands a second time, `block_count` blocks further on: then no single page that is lost
    /// loses a record.
    pub doubled: bool,
}

impl Window {
    /// The first block behind the window, its copy included.
    fn end(&self) -> Option<u64> {
        let blocks = if self.doubled { self.block_count.checked_mul(2)? } else { self.block_count };
        self.first_block.checked_add(blocks)
    }

    /// All blocks, those of the copy too.
    pub(crate) fn blocks(&self) -> core::ops::Range<u64> {
        self.first_block..self.end().unwrap_or(self.first_block)
    }
}

/// One ring of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    pub(crate) kind: Kind,
    /// First page on the medium.
    first_page: u64,
    pub(crate) pages: u64,
    pub(crate) block_pages: u64,
    /// How many pages further on the second copy stands, if there is one.
    copy_distance: Option<u64>,
}

impl Ring {
    /// Where the page with this sequence stands on the medium; its first copy if there are two.
    pub(crate) fn page(&self, sequence: u64) -> PageNumber {
        PageNumber(self.first_page + sequence % self.pages)
    }

    /// Where the copies of the page with this sequence stand.
    pub(crate) fn copies(&self, sequence: u64) -> impl Iterator<Item = PageNumber> + Clone + use<> {
        let first = self.page(sequence);
        let second = self.copy_distance.map(|distance| PageNumber(first.0 + distance));
        core::iter::once(first).chain(second)
    }

    /// Where a slot of the ring stands on the medium.
    pub(crate) fn slot_page(&self, slot: u64) -> PageNumber {
        self.page(slot)
    }

    /// The block of the medium that holds a page.
    pub(crate) fn medium_block(&self, page: PageNumber) -> BlockNumber {
        BlockNumber(page.0 / self.block_pages)
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.pages / self.block_pages
    }

    /// The absolute block of a sequence.
    pub(crate) fn block(&self, sequence: u64) -> u64 {
        sequence / self.block_pages
    }

    /// The first sequence of an absolute block.
    pub(crate) fn block_start(&self, block: u64) -> u64 {
        block * self.block_pages
    }

    /// The first sequence of the first block that holds nothing before `sequence`.
    pub(crate) fn fresh_block(&self, sequence: u64) -> u64 {
        sequence.div_ceil(self.block_pages) * self.block_pages
    }

    /// Whether a page that stands in `slot` may claim `sequence`.
    pub(crate) fn plausible(&self, slot: u64, sequence: u64) -> bool {
        (self.pages..=SEQUENCE_MAX).contains(&sequence) && sequence % self.pages == slot
    }

    /// The sequence of the newest page at `slot` that is not newer than `newest`.
    pub(crate) fn sequence_at(&self, slot: u64, newest: u64) -> u64 {
        newest - (newest % self.pages + self.pages - slot) % self.pages
    }

    /// The place that the page with this sequence is sealed at.
    pub(crate) fn place(&self, sequence: u64, epoch: Epoch) -> Place {
        let position = (sequence % self.block_pages) as u32;
        Place { kind: self.kind, allocation: self.block(sequence), position, epoch }
    }
}

/// The two rings and the sizes that follow from the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) page_bytes: usize,
    pub(crate) data: Ring,
    pub(crate) index: Ring,
}

impl Layout {
    pub(crate) fn new(geometry: &Geometry, window: &Window) -> Result<Layout, Error> {
        if !(256..=65536).contains(&geometry.page_bytes) {
            return Err(Error::Geometry("pages must have 256 to 65536 bytes"));
        }
        if !(2..=BLOCK_PAGES_MAX).contains(&geometry.block_pages) {
            return Err(Error::Geometry("blocks must have 2 to 1024 pages"));
        }
        if window.block_count < BLOCKS_MIN {
            return Err(Error::Geometry("the window must have at least 8 blocks"));
        }
        if window.end().is_none_or(|end| end > geometry.block_count) {
            return Err(Error::Geometry("the window lies past the end of the medium"));
        }
        let block_pages = u64::from(geometry.block_pages);
        let index_blocks = (window.block_count / 6).max(3);
        let data_pages = (window.block_count - index_blocks).checked_mul(block_pages);
        let first_page = window.first_block.checked_mul(block_pages);
        let (Some(data_pages), Some(first_page)) = (data_pages, first_page) else {
            return Err(Error::Geometry("the window lies past the end of the medium"));
        };
        if data_pages >= u64::from(u32::MAX) {
            return Err(Error::Geometry("the window has too many pages"));
        }
        let copy_distance = window.doubled.then_some(window.block_count * block_pages);
        let data = Ring { kind: Kind::RecordData, first_page, pages: data_pages, block_pages, copy_distance };
        let index = Ring {
            kind: Kind::RecordIndex,
            first_page: first_page + data_pages,
            pages: index_blocks * block_pages,
            block_pages,
            copy_distance,
        };
        Ok(Layout { page_bytes: geometry.page_bytes as usize, data, index })
    }

    /// Bytes of a page that are sealed and ours.
    pub(crate) fn body_bytes(&self) -> usize {
        self.page_bytes - HEAD_BYTES - TAG_BYTES
    }

    /// Bytes of a data page that directory and records share.
    pub(crate) fn record_room(&self) -> usize {
        self.body_bytes() - BODY_HEAD_BYTES
    }

    /// Words that a page of the index ring holds.
    pub(crate) fn index_page_words(&self) -> usize {
        self.body_bytes() / 4
    }

    /// Pages of an index copy at most, so that a released copy and the next one always find room beside each other.
    pub(crate) fn index_copy_pages_max(&self) -> u64 {
        (self.index.blocks() - 1) / 2 * self.index.block_pages
    }
}
