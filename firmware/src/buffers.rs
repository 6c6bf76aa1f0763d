//! The memory of a store.

use counterfoil_record::alone::{Memory, Moved, Opening};

/// Buffers of a store on pages of 512 bytes: so many waiting changes of the index, leaves of the index, and bytes with a bit
/// for every entry.
pub struct Buffers<const PENDING: usize, const LEAVES: usize, const LIVE: usize> {
    pending: [Moved<u16>; PENDING],
    leaves: [u16; LEAVES],
    blocks: [u16; 16],
    live: [u8; LIVE],
    openings: [Opening; 8],
    page: [u8; 512],
    scratch: [u8; 512],
}

impl<const PENDING: usize, const LEAVES: usize, const LIVE: usize> Buffers<PENDING, LEAVES, LIVE> {
    /// Buffers with nothing in them.
    pub const fn new() -> Self {
        Buffers {
            pending: [Moved::EMPTY; PENDING],
            leaves: [0; LEAVES],
            blocks: [0; 16],
            live: [0; LIVE],
            openings: [Opening::EMPTY; 8],
            page: [0; 512],
            scratch: [0; 512],
        }
    }

    /// The buffers, lent to a store.
    pub fn memory(&mut self) -> Memory<'_, u16> {
        Memory {
            pending: &mut self.pending,
            leaves: &mut self.leaves,
            blocks: &mut self.blocks,
            live: &mut self.live,
            openings: &mut self.openings,
            page: &mut self.page,
            scratch: &mut self.scratch,
        }
    }
}

impl<const PENDING: usize, const LEAVES: usize, const LIVE: usize> Default for Buffers<PENDING, LEAVES, LIVE> {
    fn default() -> Self {
        Self::new()
    }
}
