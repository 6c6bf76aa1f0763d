//! One block of a run.

use alloc::vec::Vec;

use crate::Error;
use crate::key::{ENTRY_BYTES_MAX, ROW_BYTES};

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 4080;
const HEAD_BYTES: usize = 16;
/// Entries from one signpost to the next.
const SIGNPOST_ENTRIES: usize = 16;

fn signposts(count: usize) -> usize {
    count.div_ceil(SIGNPOST_ENTRIES)
}

/// A block being filled.
pub(super) struct BlockWriter {
    bytes: Vec<u8>,
    signposts: Vec<u16>,
    count: u16,
}

impl BlockWriter {
    pub(super) fn new(level: u8, first_child: u64) -> Self {
        let mut bytes = Vec::with_capacity(BLOCK_BYTES);
        bytes.extend_from_slice(&[level, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&first_child.to_le_bytes());
        BlockWriter { bytes, signposts: Vec::new(), count: 0 }
    }

    pub(super) fn has_room(&self, entry: &[u8]) -> bool {
        self.bytes.len() + 2 + entry.len() + 2 * signposts(usize::from(self.count) + 1) <= BLOCK_BYTES
    }

    pub(super) fn push(&mut self, entry: &[u8]) {
        assert!(self.has_room(entry) && entry.len() <= ENTRY_BYTES_MAX, "an entry fits its block");
        if usize::from(self.count).is_multiple_of(SIGNPOST_ENTRIES) {
            self.signposts.push(self.bytes.len() as u16);
        }
        self.bytes.extend_from_slice(&(entry.len() as u16).to_le_bytes());
        self.bytes.extend_from_slice(entry);
        self.count += 1;
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        self.bytes.resize(BLOCK_BYTES - 2 * self.signposts.len(), 0);
        for place in self.signposts.iter().rev() {
            self.bytes.extend_from_slice(&place.to_le_bytes());
        }
        self.bytes
    }
}

/// A block that was read.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    bytes: &'a [u8; BLOCK_BYTES],
    count: usize,
    first_child: u64,
}

/// A place before an entry of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Entries before it.
    pub(super) before: usize,
    offset: usize,
}

impl Place {
    /// Before the first entry.
    pub(super) const FIRST: Place = Place { before: 0, offset: HEAD_BYTES };

    /// Where in the block it is.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }
}

fn nonsense() -> Error {
    Error::corrupt("", "block of an index run")
}

impl<'a> Block<'a> {
    /// Takes the bytes of a block that must be of this level.
    pub(super) fn new(bytes: &'a [u8], level: u8) -> Result<Self, Error> {
        let bytes: &[u8; BLOCK_BYTES] = bytes.try_into().map_err(|_| nonsense())?;
        let [its_level, 0, low, high, 0, 0, 0, 0, a, b, c, d, e, f, g, h, ..] = *bytes else {
            return Err(nonsense());
        };
        let count = usize::from(u16::from_le_bytes([low, high]));
        if its_level != level || count == 0 || 2 * signposts(count) > BLOCK_BYTES - HEAD_BYTES {
            return Err(nonsense());
        }
        Ok(Block { bytes, count, first_child: u64::from_le_bytes([a, b, c, d, e, f, g, h]) })
    }

    pub(super) fn first_child(&self) -> u64 {
        self.first_child
    }

    /// The entry at a place, and the place after it; `None` past the last.
    pub(super) fn entry(&self, place: Place) -> Result<Option<(&'a [u8], Place)>, Error> {
        if place.before == self.count {
            return Ok(None);
        }
        let rest = self.bytes.get(place.offset..).ok_or_else(nonsense)?;
        let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(nonsense)?;
        let length = usize::from(u16::from_le_bytes(*length));
        if !(ROW_BYTES + 1..=ENTRY_BYTES_MAX).contains(&length) {
            return Err(nonsense());
        }
        let entry = rest.get(..length).ok_or_else(nonsense)?;
        Ok(Some((entry, Place { before: place.before + 1, offset: place.offset + 2 + length })))
    }

    /// The place of a signpost: before the entry numbered 16 times its own number.
    fn signpost(&self, number: usize) -> Place {
        let at = BLOCK_BYTES - 2 * (number + 1);
        let offset = usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]));
        Place { before: number * SIGNPOST_ENTRIES, offset }
    }

    /// The place before the first entry that is not less than `low`, or after the last.
    pub(super) fn seek(&self, low: &[u8]) -> Result<Place, Error> {
        // The last signpost whose entry is less than `low`; the first if none is.
        let (mut from, mut to) = (0, signposts(self.count));
        while to - from > 1 {
            let middle = from + (to - from) / 2;
            let less = self.entry(self.signpost(middle))?.is_some_and(|(entry, _)| entry < low);
            if less { from = middle } else { to = middle }
        }
        let mut place = if from == 0 { Place::FIRST } else { self.signpost(from) };
        while let Some((_, after)) = self.entry(place)?.filter(|(entry, _)| *entry < low) {
            place = after;
        }
        Ok(place)
    }
}
