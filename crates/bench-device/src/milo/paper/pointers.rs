//! PTR: for each row how far back the one before with the same key is, 0 where the chain ends. A cell of 16 bytes is deciphered
//! at once and has room for 80 bits (6.3).

use super::container::Container;
use super::nand::Nand;

const CELL_BYTES: usize = 16;
const PAYLOAD_BITS: u32 = 80;
const PAGE_CELLS: u64 = 128;

/// How pointers are written.
#[derive(Clone, Copy)]
pub struct Pointers {
    bits: u32,
}

impl Pointers {
    /// For distances up to this one.
    pub fn up_to(distance: u64) -> Self {
        Self { bits: (u64::BITS - distance.leading_zeros()).min(32) }
    }

    fn in_cell(self) -> u64 {
        u64::from(PAYLOAD_BITS / self.bits)
    }

    /// Pointers of a page.
    pub fn in_page(self) -> u64 {
        PAGE_CELLS * self.in_cell()
    }

    /// Bytes of one in BUF.
    pub fn bytes(self) -> usize {
        if self.bits <= 16 { 2 } else { 4 }
    }

    pub fn page(self, distances: &[u32]) -> Vec<u8> {
        let cell = |distances: &[u32]| {
            let packed = distances.iter().rev().fold(0u128, |cell, distance| cell << self.bits | u128::from(*distance));
            packed.to_le_bytes()
        };
        distances.chunks(self.in_cell() as usize).flat_map(cell).collect()
    }

    /// The pointer of a row, and the cell in which it stands.
    pub fn read(self, container: &Container, nand: &Nand, row: u64) -> (u64, u64) {
        let (page, within) = (row / self.in_page(), row % self.in_page());
        let cell = within / self.in_cell();
        let mut bytes = [0; CELL_BYTES];
        container.read(nand, page, cell as usize * CELL_BYTES, &mut bytes);
        let packed = u128::from_le_bytes(bytes) >> (self.bits * (within % self.in_cell()) as u32);
        ((packed & ((1 << self.bits) - 1)) as u64, page * PAGE_CELLS + cell)
    }
}
