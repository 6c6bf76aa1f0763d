//! A medium in memory: for `:memory:` databases and for tests.
//!
//! Blocks are allocated when first programmed, so a large limit costs nothing. With feature `std` clones share the
//! storage, so that readers may read beside the writer; without it there is one owner and no clone.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::{BlockNumber, Device, Error, Geometry, PageNumber, Read};

/// A medium in memory. It forgets everything when its last owner is dropped.
#[cfg_attr(feature = "std", derive(Clone))]
pub struct MemoryDevice {
    geometry: Geometry,
    #[cfg(feature = "std")]
    blocks: std::sync::Arc<std::sync::RwLock<Vec<Option<Block>>>>,
    #[cfg(not(feature = "std"))]
    blocks: Vec<Option<Block>>,
}

/// One block that was programmed since its last erase.
struct Block {
    bytes: Box<[u8]>,
    /// Which pages were, where that matters.
    programmed: Box<[bool]>,
}

impl MemoryDevice {
    /// An empty medium of this shape: zeros, or all ones where pages must be erased before they are programmed.
    ///
    /// # Errors
    /// [`Error::Shape`].
    pub fn new(geometry: Geometry) -> Result<Self, Error> {
        geometry.validate()?;
        Ok(Self { geometry, blocks: Default::default() })
    }

    #[cfg(feature = "std")]
    fn with_blocks<T>(&self, use_them: impl FnOnce(&Vec<Option<Block>>) -> T) -> T {
        use_them(&self.blocks.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    #[cfg(feature = "std")]
    fn with_blocks_mut<T>(&mut self, use_them: impl FnOnce(&mut Vec<Option<Block>>) -> T) -> T {
        use_them(&mut self.blocks.write().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    #[cfg(not(feature = "std"))]
    fn with_blocks<T>(&self, use_them: impl FnOnce(&Vec<Option<Block>>) -> T) -> T {
        use_them(&self.blocks)
    }

    #[cfg(not(feature = "std"))]
    fn with_blocks_mut<T>(&mut self, use_them: impl FnOnce(&mut Vec<Option<Block>>) -> T) -> T {
        use_them(&mut self.blocks)
    }
}

/// What a byte reads as that was never programmed.
fn blank(geometry: &Geometry) -> u8 {
    if geometry.erase_before_program { 0xFF } else { 0 }
}

/// The part of `buffer_bytes` bytes from `at` on that lies in one block: block index, start within it, length.
fn part(geometry: &Geometry, at: u64, buffer_bytes: usize) -> (usize, usize, usize) {
    let block_bytes = geometry.page_bytes as u64 * geometry.block_pages as u64;
    let start = at % block_bytes;
    let length = (block_bytes - start).min(buffer_bytes as u64);
    ((at / block_bytes) as usize, start as usize, length as usize)
}

impl Block {
    fn blank(geometry: &Geometry) -> Self {
        let pages = geometry.block_pages as usize;
        let bytes = vec![blank(geometry); pages * geometry.page_bytes as usize].into_boxed_slice();
        Self { bytes, programmed: vec![false; pages].into_boxed_slice() }
    }
}

/// The first page of a run that was programmed since its last erase.
fn first_programmed(blocks: &[Option<Block>], geometry: &Geometry, page: PageNumber, count: u64) -> Option<PageNumber> {
    let block_pages = u64::from(geometry.block_pages);
    (page.0..page.0 + count)
        .find(|number| {
            let block = blocks.get((number / block_pages) as usize).and_then(Option::as_ref);
            block.is_some_and(|block| block.programmed[(number % block_pages) as usize])
        })
        .map(PageNumber)
}

impl Read for MemoryDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        let geometry = self.geometry;
        let mut at = geometry.locate(page, offset, buffer.len())?;
        self.with_blocks(|blocks| {
            let mut rest = buffer;
            while !rest.is_empty() {
                let (block, start, length) = part(&geometry, at, rest.len());
                let (piece, after) = rest.split_at_mut(length);
                match blocks.get(block).and_then(Option::as_ref) {
                    Some(block) => piece.copy_from_slice(&block.bytes[start..start + length]),
                    None => piece.fill(blank(&geometry)),
                }
                at += length as u64;
                rest = after;
            }
        });
        Ok(())
    }
}

impl Device for MemoryDevice {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        let geometry = self.geometry;
        let mut at = geometry.locate_program(page, data)?;
        let page_bytes = geometry.page_bytes as usize;
        self.with_blocks_mut(|blocks| {
            if geometry.erase_before_program
                && let Some(page) = first_programmed(blocks, &geometry, page, (data.len() / page_bytes) as u64)
            {
                return Err(Error::NotErased { page });
            }
            let mut rest = data;
            while !rest.is_empty() {
                let (index, start, length) = part(&geometry, at, rest.len());
                if blocks.len() <= index {
                    blocks.resize_with(index + 1, || None);
                }
                let block = blocks[index].get_or_insert_with(|| Block::blank(&geometry));
                block.bytes[start..start + length].copy_from_slice(&rest[..length]);
                block.programmed[start / page_bytes..(start + length) / page_bytes].fill(true);
                at += length as u64;
                rest = &rest[length..];
            }
            Ok(())
        })
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        let geometry = self.geometry;
        geometry.locate(geometry.first_page(block), 0, geometry.page_bytes as usize)?;
        if geometry.erase_before_program {
            self.with_blocks_mut(|blocks| {
                if let Some(block) = blocks.get_mut(block.0 as usize) {
                    *block = None;
                }
            });
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Geometry =
        Geometry { page_bytes: 128, block_pages: 4, block_count: 1 << 30, erase_before_program: false, grows: true };

    #[test]
    fn pages_come_back_over_block_borders() -> Result<(), Error> {
        let mut device = MemoryDevice::new(SHAPE)?;
        let data: Vec<u8> = (0..128 * 9).map(|i| (i % 251) as u8).collect();
        device.program(PageNumber(2), &data)?;
        let mut back = vec![1; 128 * 9 + 20];
        device.read(PageNumber(1), 118, &mut back)?;
        assert_eq!(back[..10], [0; 10]);
        assert_eq!(back[10..10 + data.len()], data[..]);
        assert_eq!(back[10 + data.len()..], [0; 10]);
        Ok(())
    }

    #[test]
    fn the_limit_is_full_when_written_and_out_of_range_when_read() -> Result<(), Error> {
        let mut device = MemoryDevice::new(Geometry { block_count: 2, ..SHAPE })?;
        assert_eq!(device.program(PageNumber(7), &[1; 256]), Err(Error::Full { page: PageNumber(8) }));
        device.program(PageNumber(7), &[1; 128])?;
        let past = Error::OutOfRange { page: PageNumber(8), page_count: 8 };
        assert_eq!(device.read(PageNumber(7), 1, &mut [0; 128]), Err(past));
        assert_eq!(device.erase(BlockNumber(2)), Err(past));
        Ok(())
    }

    #[test]
    fn flash_wants_an_erase_between_two_programs() -> Result<(), Error> {
        let mut device = MemoryDevice::new(Geometry { erase_before_program: true, grows: false, ..SHAPE })?;
        let mut byte = [0];
        device.read(PageNumber(5), 0, &mut byte)?;
        assert_eq!(byte, [0xFF]);
        device.program(PageNumber(5), &[7; 128])?;
        assert_eq!(device.program(PageNumber(4), &[8; 256]), Err(Error::NotErased { page: PageNumber(5) }));
        device.erase(BlockNumber(1))?;
        device.read(PageNumber(5), 0, &mut byte)?;
        assert_eq!(byte, [0xFF]);
        device.program(PageNumber(4), &[8; 256])
    }

    #[cfg(feature = "std")]
    #[test]
    fn clones_share_the_storage() -> Result<(), Error> {
        let mut device = MemoryDevice::new(SHAPE)?;
        let reader = device.clone();
        device.program(PageNumber(0), &[9; 128])?;
        let mut byte = [0];
        reader.read(PageNumber(0), 127, &mut byte)?;
        assert_eq!(byte, [9]);
        Ok(())
    }
}
