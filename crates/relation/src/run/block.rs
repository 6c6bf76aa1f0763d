//! One block of a run.

use alloc::vec;
use alloc::vec::Vec;

use crate::Error;
use crate::key::{ENTRY_BYTES_MAX, ROW_BYTES};

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 4080;
const HEAD_BYTES: usize = 16;

/// A block being filled.
pub(super) struct BlockWriter {
    bytes: Vec<u8>,
    count: u16,
}

impl BlockWriter {
    pub(super) fn new(level: u8, first_child: u64) -> Self {
        let mut bytes = Vec::with_capacity(BLOCK_BYTES);
        bytes.extend_from_slice(&[level, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&first_child.to_le_bytes());
        BlockWriter { bytes, count: 0 }
    }

    pub(super) fn has_room(&self, entry: &[u8]) -> bool {
        self.bytes.len() + 2 + entry.len() <= BLOCK_BYTES
    }

    pub(super) fn push(&mut self, entry: &[u8]) {
        assert!(self.has_room(entry) && entry.len() <= ENTRY_BYTES_MAX, "an entry fits its block");
        self.bytes.extend_from_slice(&(entry.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(entry);
        self.count += 1;
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        self.bytes.resize(BLOCK_BYTES, 0);
        self.bytes
    }
}

/// Reads the entries of a block, one after another.
pub(super) struct BlockReader {
    bytes: Vec<u8>,
    /// Where the next entry begins.
    place: usize,
    left: u16,
    first_child: u64,
}

fn nonsense() -> Error {
    Error::corrupt("", "block of an index run")
}

impl BlockReader {
    /// Nothing.
    pub(super) fn empty() -> Self {
        BlockReader { bytes: vec![], place: 0, left: 0, first_child: 0 }
    }

    /// Takes the bytes of a block that must be of this level.
    pub(super) fn new(bytes: Vec<u8>, level: u8) -> Result<Self, Error> {
        let Some(([its_level, 0, low, high, 0, 0, 0, 0, rest @ ..], _)) = bytes.split_first_chunk::<HEAD_BYTES>()
        else {
            return Err(nonsense());
        };
        let left = u16::from_le_bytes([*low, *high]);
        if *its_level != level || left == 0 || bytes.len() != BLOCK_BYTES {
            return Err(nonsense());
        }
        let first_child = u64::from_le_bytes(*rest);
        Ok(BlockReader { bytes, place: HEAD_BYTES, left, first_child })
    }

    pub(super) fn first_child(&self) -> u64 {
        self.first_child
    }

    /// The next entry; `None` past the last.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let length = self.bytes.get(self.place..self.place + 2).ok_or_else(nonsense)?;
        let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
        let start = self.place + 2;
        if !(ROW_BYTES + 1..=ENTRY_BYTES_MAX).contains(&length) {
            return Err(nonsense());
        }
        let entry = self.bytes.get(start..start + length).ok_or_else(nonsense)?;
        self.place = start + length;
        self.left -= 1;
        Ok(Some(entry))
    }
}
