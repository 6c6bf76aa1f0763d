//! What is simulated: a shape, its manners and its prices.
//!
//! | part | programming | a cut |
//! |---|---|---|
//! | [`Part::file`] | replaces pages, in a cache | any subset and order of what was not flushed |
//! | [`Part::nand`] | a page once between two erases, in order | the page or block under way |
//! | [`Part::nor`] | clears bits, in any order | any subset of the changed bits; a block in any state |
//! | [`Part::ecc_words`] | a word once between two erases | words that read as errors, or as anything |
//! | [`Part::stick`] | replaces sectors, in a cache that may lie | sectors of the same erase unit as well |

use counterfoil_flash::Geometry;

use crate::Prices;

/// What programming a page does to what the page held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programming {
    /// It replaces it; where the geometry wants an erase first, only blank pages are programmed.
    Replaces,
    /// It clears bits, as on NOR flash: what is programmed is what was there AND what is handed over.
    Clears(Again),
    /// The same, but each word has error correction of its own and is programmed once between two erases. A word that
    /// a cut tears reads as an error, or as anything.
    Words {
        /// Bytes in a word: 8 or 16 on the parts there are.
        bytes: u32,
    },
}

/// Whether a page of NOR flash may be programmed a second time before its block is erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It is refused: some parts allow it, and nothing here may depend on that.
    Never,
    /// It is refused if a bit would have to go from 0 to 1.
    ClearingMore,
    /// It is done, and bits that are 0 stay 0, as the part itself does when nobody checks.
    Anyhow,
}

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
    /// What programming does.
    pub programming: Programming,
    /// Pages in an erase unit of the part's own translation layer, where it has one: a cut while one of them is written
    /// damages others.
    pub unit_pages: Option<u32>,
    /// One of how many flushes is acknowledged and does nothing, where flushes lie.
    pub lying_flushes: Option<u64>,
    /// What an operation costs on the counted clock.
    pub prices: Prices,
}

impl Part {
    /// A file or any medium with a cache before it: pages may be rewritten, it grows, nothing is durable before a
    /// flush.
    pub fn file(page_bytes: u32, block_pages: u32, block_count: u64) -> Self {
        let geometry = Geometry { page_bytes, block_pages, block_count, erase_before_program: false, grows: true };
        Self { cached: true, ..Self::plain(geometry) }
    }

    /// Raw NAND flash: a page is programmed once between two erases, in order; what was programmed is durable.
    pub fn nand(page_bytes: u32, block_pages: u32, block_count: u64) -> Self {
        Self { in_order: true, ..Self::plain(flash(page_bytes, block_pages, block_count)) }
    }

    /// NOR flash: programming clears bits; pages in any order. A second program of a page is refused.
    pub fn nor(page_bytes: u32, block_pages: u32, block_count: u64) -> Self {
        let programming = Programming::Clears(Again::Never);
        Self { programming, ..Self::plain(flash(page_bytes, block_pages, block_count)) }
    }

    /// NOR flash with error correction for each word of so many bytes, as in many microcontrollers.
    pub fn ecc_words(page_bytes: u32, block_pages: u32, block_count: u64, word_bytes: u32) -> Self {
        let programming = Programming::Words { bytes: word_bytes };
        Self { programming, ..Self::plain(flash(page_bytes, block_pages, block_count)) }
    }

    /// A stick or a card with a translation layer of its own: sectors are rewritten at will, one of sixteen flushes lies,
    /// and a cut damages sectors of the same erase unit (of `unit_pages`) that nobody was writing. Either vice goes away
    /// with its field.
    pub fn stick(page_bytes: u32, block_pages: u32, block_count: u64, unit_pages: u32) -> Self {
        let geometry = Geometry { erase_before_program: false, ..flash(page_bytes, block_pages, block_count) };
        let prices = Prices::AVERAGE_CARD;
        Self { cached: true, unit_pages: Some(unit_pages), lying_flushes: Some(16), prices, ..Self::plain(geometry) }
    }

    fn plain(geometry: Geometry) -> Self {
        Self {
            geometry,
            cached: false,
            in_order: false,
            paired: None,
            bad_blocks: Vec::new(),
            programming: Programming::Replaces,
            unit_pages: None,
            lying_flushes: None,
            prices: Prices::FREE,
        }
    }

    /// The board of the GnatDb paper: 512-byte pages, 8 KB blocks.
    pub fn gnatdb_board(block_count: u64) -> Self {
        Self { prices: Prices::GNATDB_NAND, ..Self::nand(512, 16, block_count) }
    }

    /// The same board with its NOR flash: 512-byte pages, 16 KB blocks.
    pub fn gnatdb_nor_board(block_count: u64) -> Self {
        Self { prices: Prices::GNATDB_NOR, ..Self::nor(512, 32, block_count) }
    }

    /// The token of the MILo-DB paper: 2 KB pages, 64 to a block.
    pub fn milo_token(block_count: u64) -> Self {
        Self { prices: Prices::MILO_TOKEN, ..Self::nand(2048, 64, block_count) }
    }

    /// What a byte reads as that was never programmed.
    pub fn blank(&self) -> u8 {
        if self.geometry.erase_before_program { 0xFF } else { 0 }
    }

    /// Bytes in a word with error correction of its own, if there are such.
    pub(crate) fn word_bytes(&self) -> Option<u32> {
        match self.programming {
            Programming::Words { bytes } => Some(bytes),
            Programming::Replaces | Programming::Clears(_) => None,
        }
    }

    /// The pages, if the part has a translation layer, that a cut damages while `page` is written.
    pub(crate) fn unit_of(&self, page: u64) -> Option<std::ops::Range<u64>> {
        let pages = u64::from(self.unit_pages?.max(1));
        let first = page / pages * pages;
        Some(first..(first + pages).min(self.geometry.page_count()))
    }

    /// The older page, if any, that shares its cells with `page`.
    pub fn older_pair(&self, page: u64) -> Option<u64> {
        let distance = u64::from(self.paired?);
        let index = page % u64::from(self.geometry.block_pages);
        (distance > 0 && index % (2 * distance) >= distance).then(|| page - distance)
    }
}

fn flash(page_bytes: u32, block_pages: u32, block_count: u64) -> Geometry {
    Geometry { page_bytes, block_pages, block_count, erase_before_program: true, grows: false }
}
