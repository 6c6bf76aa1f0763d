//! The Secure Device of the paper (3.2, 5), without a cipher: pages with version numbers.
//!
//! ```text
//! page: version u32 | body | zeros where the MAC would stand [16]
//! ```

use counterfoil_flash::{BlockNumber, Device, PageNumber, Read};

use crate::observed::Observed;

const PAGE_BYTES: usize = 512;
const VERSION_BYTES: usize = 4;
const MAC_BYTES: usize = 16;
/// Bytes of a page that are the store's.
pub const BODY_BYTES: usize = PAGE_BYTES - VERSION_BYTES - MAC_BYTES;

/// What the store has of a page.
pub type Body = [u8; BODY_BYTES];

/// Pages that are written round robin.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    first: u32,
    pub pages: u32,
    pub block_pages: u32,
}

impl Segment {
    pub fn new(first: u32, pages: u32, block_pages: u32) -> Self {
        Self { first, pages, block_pages }
    }

    pub fn blocks(&self) -> u32 {
        self.pages / self.block_pages
    }

    /// The page so many pages after another one.
    pub fn after(&self, page: u32, pages: u32) -> u32 {
        (page + pages) % self.pages
    }

    /// Pages from one to the next time that the other is written.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        (to + self.pages - from) % self.pages
    }

    /// Writes a page; its block is erased first if it is the first page of one.
    pub fn write(&self, device: &mut Observed, page: u32, version: u32, body: &Body) {
        let mut bytes = [0; PAGE_BYTES];
        bytes[..VERSION_BYTES].copy_from_slice(&version.to_le_bytes());
        bytes[VERSION_BYTES..PAGE_BYTES - MAC_BYTES].copy_from_slice(body);
        let number = PageNumber(u64::from(self.first + page));
        if page.is_multiple_of(self.block_pages) {
            device.erase(BlockNumber(number.0 / u64::from(self.block_pages))).expect("the simulated part erases");
        }
        device.program(number, &bytes).expect("the page was erased");
    }

    /// Reads the page that must have this version.
    pub fn read(&self, device: &Observed, page: u32, version: u32) -> Body {
        let mut bytes = [0; PAGE_BYTES];
        device.read(PageNumber(u64::from(self.first + page)), 0, &mut bytes).expect("the simulated part reads");
        let (found, rest) = bytes.split_at(VERSION_BYTES);
        assert_eq!(found, version.to_le_bytes(), "page {page} is the one that was written last");
        let mut body = [0; BODY_BYTES];
        body.copy_from_slice(&rest[..BODY_BYTES]);
        body
    }
}
