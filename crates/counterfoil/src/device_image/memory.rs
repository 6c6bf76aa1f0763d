//! Working memory of a store, as much as its image may need.

use counterfoil_flash::Geometry;
use counterfoil_record::alone::{Error, Memory, Moved, Opening, Shape, Sizes, Word};

/// Changes that wait for their leaves in the smallest memory that the documents allow a device (docs/devices.md).
pub(super) const PENDING_MIN: usize = 64;
/// More than any device has room for.
pub(super) const PENDING_MAX: usize = u16::MAX as usize;
/// Openings that devices have room for.
const OPENINGS: usize = 8;
/// Bytes in a map: what it begins with, and an opening.
const MAP_HEAD_BYTES: usize = 16;
const OPENING_BYTES: usize = 48;

/// The buffers of a store. The file's length bounds all of them.
pub(super) struct Buffers<W: Word> {
    pending: Vec<Moved<W>>,
    leaves: Vec<W>,
    blocks: Vec<W>,
    live: Vec<u8>,
    openings: Vec<Opening>,
    page: Vec<u8>,
    scratch: Vec<u8>,
}

impl<W: Word> Buffers<W> {
    /// With room for so many changes that wait for their leaves.
    pub(super) fn new(geometry: &Geometry, shape: &Shape, pending: usize) -> Result<Self, Error> {
        let sizes = shape.sizes::<W>(geometry)?;
        Ok(Self {
            pending: vec![Moved::EMPTY; pending],
            leaves: vec![W::NONE; leaves::<W>(&sizes, geometry)],
            blocks: vec![W::NONE; shape.block_count as usize],
            live: vec![0; sizes.live_bytes],
            openings: vec![Opening::EMPTY; OPENINGS],
            page: vec![0; sizes.page_bytes],
            scratch: vec![0; sizes.page_bytes],
        })
    }

    /// With room for the changes that the making of a store asks for, so many for each leaf: none of them waits when it is made.
    pub(super) fn to_make(geometry: &Geometry, shape: &Shape) -> Result<Self, Error> {
        let leaves = leaves::<W>(&shape.sizes::<W>(geometry)?, geometry);
        Self::new(geometry, shape, PENDING_MIN.max(shape.pending_to_make(leaves)))
    }

    pub(super) fn memory(&mut self) -> Memory<'_, W> {
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

/// As many leaves as the index ring has room for, and as a map tells of that takes half of a block of it at most.
fn leaves<W: Word>(sizes: &Sizes, geometry: &Geometry) -> usize {
    let cells = sizes.leaf_ids as usize + 8 / W::BYTES;
    let (mut pages, mut at) = (1, MAP_HEAD_BYTES);
    for _ in 0..OPENINGS {
        if at + OPENING_BYTES > cells * W::BYTES {
            (pages, at) = (pages + 1, 0);
        }
        at += OPENING_BYTES;
    }
    let pages_max = (geometry.block_pages as usize - 1) / 2;
    let told = cells.saturating_sub(at / W::BYTES) + pages_max.saturating_sub(pages) * cells;
    told.min(sizes.leaves_max as usize).max(1)
}
