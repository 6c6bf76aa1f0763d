//! What is simulated: a shape, its manners and its prices.

use counterfoil_flash::Geometry;

use crate::Prices;

/// A part that can be simulated. The fields are open, so that a test can bend a ready-made one.
#[derive(Clone, Debug)]
pub struct Part {
    /// The shape.
    pub geometry: Geometry,
    /// Whether writes wait in a cache, to survive a cut in any subset and order, until a flush.
    pub cached: bool,
    /// Whether the pages of a block must be programmed in ascending order.
    pub in_order: bool,
    /// How many pages lie between a page and the older one that shares its cells, where such pairs exist: a cut while
    /// the newer is programmed damages the older.
    pub paired: Option<u32>,
    /// Blocks that are bad from the factory.
    pub bad_blocks: Vec<u64>,
    /// What an operation costs on the counted clock.
    pub prices: Prices,
}

impl Part {
    /// A file or any medium with a cache before it: pages may be rewritten, it grows, nothing is durable before a
    /// flush.
    pub fn file(page_bytes: u32, block_pages: u32, block_count: u64) -> Self {
        let geometry = Geometry { page_bytes, block_pages, block_count, erase_before_program: false, grows: true };
        Self { geometry, cached: true, in_order: false, paired: None, bad_blocks: Vec::new(), prices: Prices::FREE }
    }

    /// Raw NAND flash: a page is programmed once between two erases, in order; what was programmed is durable.
    pub fn nand(page_bytes: u32, block_pages: u32, block_count: u64) -> Self {
        let geometry = Geometry { page_bytes, block_pages, block_count, erase_before_program: true, grows: false };
        Self { geometry, cached: false, in_order: true, paired: None, bad_blocks: Vec::new(), prices: Prices::FREE }
    }

    /// The board of the GnatDb paper: 512-byte pages, 8 KB blocks.
    pub fn gnatdb_board(block_count: u64) -> Self {
        Self { prices: Prices::GNATDB_NAND, ..Self::nand(512, 16, block_count) }
    }

    /// The token of the MILo-DB paper: 2 KB pages, 64 to a block.
    pub fn milo_token(block_count: u64) -> Self {
        Self { prices: Prices::MILO_TOKEN, ..Self::nand(2048, 64, block_count) }
    }

    /// What a byte reads as that was never programmed.
    pub fn blank(&self) -> u8 {
        if self.geometry.erase_before_program { 0xFF } else { 0 }
    }

    /// The older page, if any, that shares its cells with `page`.
    pub fn older_pair(&self, page: u64) -> Option<u64> {
        let distance = u64::from(self.paired?);
        let index = page % u64::from(self.geometry.block_pages);
        (distance > 0 && index % (2 * distance) >= distance).then(|| page - distance)
    }
}
