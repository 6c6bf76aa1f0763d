//! How the caller's memory is cut up: the handle, then the buffers of the store, each aligned to eight bytes.

use counterfoil_record::alone::{Error, Memory, Moved, Opening, Shape, Sizes};

use crate::{Device, Handle};

/// What the memory must be aligned to.
pub(crate) const ALIGNMENT: usize = 8;
const _: () = assert!(align_of::<Handle>() <= ALIGNMENT);
/// Openings that the list has room for.
const OPENINGS: usize = 8;
/// Bytes of a record with its entry, for which a page has room for as many entries as it has for these.
const RECORD_BYTES: u32 = 30;

/// The sizes of all parts.
pub(crate) struct Plan {
    pub(crate) shape: Shape,
    sizes: Sizes,
    leaves: usize,
    pending: usize,
}

fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

impl Plan {
    /// The plan for a store of so many records.
    pub(crate) fn new(device: &Device, records: u32, pending: u32) -> Result<Self, Error> {
        let geometry = device.geometry();
        let data_pages = device.block_count.saturating_sub(device.index_blocks).saturating_mul(geometry.block_pages);
        // As many as leave the numbers of all entries in 16 bits.
        let entries_max = u32::from(u16::MAX - 1) / data_pages.max(1);
        let page_entries = (geometry.page_bytes / RECORD_BYTES).min(32).min(entries_max);
        let shape = Shape {
            first_block: u64::from(device.first_block),
            block_count: device.block_count,
            index_blocks: device.index_blocks,
            page_entries,
            names: device.names,
            is_salted: device.has_random(),
        };
        let sizes = shape.sizes::<u16>(&geometry)?;
        // One at least; div_ceil would divide out of line, and not know that it is by one at least.
        let leaves = 1 + records.saturating_sub(1) / sizes.leaf_ids.max(1);
        let pending = (pending as usize).max(shape.pending_to_make(leaves as usize));
        if leaves > sizes.leaves_max || pending > usize::from(u16::MAX) {
            return Err(Error::Geometry);
        }
        Ok(Plan { shape, sizes, leaves: leaves as usize, pending })
    }

    /// Bytes of the parts, in their order.
    fn parts(&self) -> [usize; 8] {
        [
            size_of::<Handle>(),
            self.pending * size_of::<Moved<u16>>(),
            self.leaves * size_of::<u16>(),
            self.shape.block_count as usize * size_of::<u16>(),
            self.sizes.live_bytes,
            OPENINGS * size_of::<Opening>(),
            self.sizes.page_bytes,
            self.sizes.page_bytes,
        ]
    }

    pub(crate) fn bytes(&self) -> usize {
        self.parts().into_iter().map(aligned).sum()
    }

    /// The buffers of the store.
    ///
    /// # Safety
    /// `memory` is aligned, holds [`Plan::bytes`], and nobody else uses it while the buffers are in use.
    pub(crate) unsafe fn buffers(&self, memory: *mut u8) -> Memory<'static, u16> {
        let mut at = 0;
        let [_, pending, leaves, blocks, live, openings, page, scratch] = self.parts().map(|bytes| {
            let begin = at;
            at += aligned(bytes);
            begin
        });
        // SAFETY: every part lies inside the memory, apart from all others and aligned for its type, whose elements are
        // written before a reference to them is made.
        unsafe {
            let pending = memory.add(pending).cast::<Moved<u16>>();
            (0..self.pending).for_each(|index| pending.add(index).write(Moved::EMPTY));
            let openings = memory.add(openings).cast::<Opening>();
            (0..OPENINGS).for_each(|index| openings.add(index).write(Opening::EMPTY));
            let bytes = |offset, count: usize| {
                let begin = memory.add(offset);
                begin.write_bytes(0, count);
                core::slice::from_raw_parts_mut(begin, count)
            };
            let leaves = memory.add(leaves).cast::<u16>();
            leaves.write_bytes(0xFF, self.leaves);
            let blocks = memory.add(blocks).cast::<u16>();
            blocks.write_bytes(0xFF, self.shape.block_count as usize);
            Memory {
                pending: core::slice::from_raw_parts_mut(pending, self.pending),
                leaves: core::slice::from_raw_parts_mut(leaves, self.leaves),
                blocks: core::slice::from_raw_parts_mut(blocks, self.shape.block_count as usize),
                live: bytes(live, self.sizes.live_bytes),
                openings: core::slice::from_raw_parts_mut(openings, OPENINGS),
                page: bytes(page, self.sizes.page_bytes),
                scratch: bytes(scratch, self.sizes.page_bytes),
            }
        }
    }
}
