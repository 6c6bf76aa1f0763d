//! Where the blocks of the rings stand on the part. A ring enters its next block at any block of the part that nobody needs,
//! the next one round, so all blocks wear alike however differently the rings go round.
//!
//! ```text
//! rings:  | data 0 | data 1 | ... | data D-1 | index D | ... | index N-1 |    each block's pages tell in their heads which it is
//! table:      7        2               0          5               1           block of the part, counted from the store's first
//! ```
//! 1. The table is a permutation. Opening makes it anew from the heads of pages that authenticate.
//! 2. Only what nobody needs changes places, so the seals do not know of it: they bind block and page of the ring.

use counterfoil_flash::{BlockNumber, Device, Error as FlashError, Geometry, PageNumber};
use counterfoil_vault::Vault;

use super::error::Error;
use super::word::Word;

/// A page of a ring: its block, those of the index ring counted after those of the data ring, and the page in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) block: u32,
    pub(crate) page: u32,
}

/// The pages of the part, sealed.
pub(crate) struct Pages<'a, D: ?Sized, W> {
    device: &'a mut D,
    pub(crate) vault: &'a Vault,
    /// For every block of the rings, its block of the part.
    table: &'a mut [W],
    geometry: Geometry,
    first_block: u64,
    /// The block of the part that was entered last.
    last: u32,
}

impl<'a, D: Device + ?Sized, W: Word> Pages<'a, D, W> {
    /// The part with every block at its place.
    pub(crate) fn new(device: &'a mut D, vault: &'a Vault, table: &'a mut [W], first_block: u64) -> Self {
        for (place, block) in table.iter_mut().zip(0..) {
            *place = W::of(block);
        }
        let geometry = device.geometry();
        Pages { device, vault, table, geometry, first_block, last: u32::MAX }
    }

    pub(crate) fn needs_erase(&self) -> bool {
        self.geometry.erase_before_program
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Where on the part, counted from the first block of the store, a block stands.
    pub(crate) fn place(&self, block: u32) -> u32 {
        self.table.get(block as usize).map_or(block, |place| place.number())
    }

    fn page(&self, place: u32, page: u32) -> PageNumber {
        let block = self.first_block + u64::from(place);
        PageNumber(block * u64::from(self.geometry.block_pages) + u64::from(page))
    }

    pub(crate) fn read(&self, spot: Spot, buffer: &mut [u8]) -> Result<(), FlashError> {
        self.read_at(self.place(spot.block), spot.page, buffer)
    }

    /// Reads a page of a block of the part.
    pub(crate) fn read_at(&self, place: u32, page: u32, buffer: &mut [u8]) -> Result<(), FlashError> {
        self.device.read(self.page(place, page), 0, buffer)
    }

    pub(crate) fn program(&mut self, spot: Spot, page: &[u8]) -> Result<(), Error> {
        Ok(self.device.program(self.page(self.place(spot.block), spot.page), page)?)
    }

    pub(crate) fn erase(&mut self, block: u32) -> Result<(), Error> {
        Ok(self.device.erase(BlockNumber(self.first_block + u64::from(self.place(block))))?)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        Ok(self.device.flush()?)
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.table.len() as u32
    }

    /// Gives a block that is entered the next place round of all that are free; `is_free` says so of the block that has it.
    pub(crate) fn enter(&mut self, block: u32, is_free: impl Fn(u32) -> bool) {
        let blocks = self.blocks();
        let round = |place: &W| {
            let ahead = place.number().wrapping_sub(self.last).wrapping_sub(1);
            if ahead < blocks { ahead } else { ahead.wrapping_add(blocks) }
        };
        let candidates = (0..).zip(&*self.table).filter(|(other, _)| *other == block || is_free(*other));
        let Some((other, _)) = candidates.min_by_key(|(_, place)| round(place)) else { return };
        self.swap(block, other);
        self.last = self.place(block);
    }

    /// Says of a block of the rings where it stands; the block that was said to stand there changes places with it.
    pub(crate) fn put(&mut self, block: u32, place: u32) {
        if let Some(other) = self.table.iter().position(|other| other.number() == place) {
            self.swap(block, other as u32);
        }
    }

    /// Enters on from the place of this block, the one that was entered last.
    pub(crate) fn go_on_from(&mut self, block: u32) {
        self.last = self.place(block);
    }

    fn swap(&mut self, one: u32, other: u32) {
        let (Some(a), Some(b)) = (self.table.get(one as usize).copied(), self.table.get(other as usize).copied())
        else {
            return;
        };
        for (block, place) in [(one, b), (other, a)] {
            if let Some(entry) = self.table.get_mut(block as usize) {
                *entry = place;
            }
        }
    }
}
