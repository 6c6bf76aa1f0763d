//! The shape of a medium and the addresses on it.

/// The number of a page on the medium, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNumber(pub u64);

/// The number of a block on the medium, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockNumber(pub u64);

/// The shape of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes in a page, a power of two from 128 to 65536.
    pub page_bytes: u32,
    /// Pages in a block (the unit of erase).
    pub block_pages: u32,
    /// Blocks that may be used; for a growing medium the limit.
    pub block_count: u64,
    /// Whether a page must be erased before it is programmed again.
    pub erase_before_program: bool,
    /// Whether the medium becomes longer as pages are programmed.
    pub grows: bool,
}

impl Geometry {
    /// Pages that may be used.
    pub fn page_count(&self) -> u64 {
        self.block_count.saturating_mul(u64::from(self.block_pages))
    }

    /// The block that holds `page`.
    pub fn block_of(&self, page: PageNumber) -> BlockNumber {
        BlockNumber(page.0 / u64::from(self.block_pages))
    }

    /// The first page of `block`.
    pub fn first_page(&self, block: BlockNumber) -> PageNumber {
        PageNumber(block.0.saturating_mul(u64::from(self.block_pages)))
    }
}
