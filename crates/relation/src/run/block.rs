//! One block of a run: entries, each written as what differs from the one before.
//!
//! Entries under one key differ in the last bytes of a row number, so most of an entry is said by the one before it. Every
//! 32nd is written whole, and a signpost says where it lies, so that an entry is found by halving and few steps.

use alloc::vec::Vec;

use crate::Error;
use crate::key::{ENTRY_BYTES_MAX, ROW_BYTES};

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 4080;
const HEAD_BYTES: usize = 16;
/// Entries from one signpost to the next.
const SIGNPOST_ENTRIES: usize = 32;
/// In the low five bits of an entry's first byte: how many bytes are shared with the entry before stands in two bytes more.
const SHARED_APART: usize = 31;
/// In its high three bits: how many bytes follow stands in two bytes more. Smaller values are one less than the number.
const REST_APART: usize = 7;

fn signposts(count: usize) -> usize {
    count.div_ceil(SIGNPOST_ENTRIES)
}

/// A block being filled.
pub(super) struct BlockWriter {
    bytes: Vec<u8>,
    signposts: Vec<u16>,
    count: u16,
    last: Vec<u8>,
}

impl BlockWriter {
    pub(super) fn new(level: u8, first_child: u64) -> Self {
        let mut bytes = Vec::with_capacity(BLOCK_BYTES);
        bytes.extend_from_slice(&[level, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&first_child.to_le_bytes());
        BlockWriter { bytes, signposts: Vec::new(), count: 0, last: Vec::new() }
    }

    /// Whether the next entry is written whole.
    fn at_signpost(&self) -> bool {
        usize::from(self.count).is_multiple_of(SIGNPOST_ENTRIES)
    }

    /// How many first bytes of an entry are said by the one before it.
    fn shared(&self, entry: &[u8]) -> usize {
        match self.at_signpost() {
            true => 0,
            false => self.last.iter().zip(entry).take_while(|(one, other)| one == other).count(),
        }
    }

    pub(super) fn has_room(&self, entry: &[u8]) -> bool {
        let shared = self.shared(entry);
        let rest = entry.len() - shared;
        let numbers = 2 * (usize::from(shared >= SHARED_APART) + usize::from(rest > REST_APART));
        let signposts = 2 * signposts(usize::from(self.count) + 1);
        self.bytes.len() + 1 + numbers + rest + signposts <= BLOCK_BYTES
    }

    pub(super) fn push(&mut self, entry: &[u8]) {
        assert!(self.has_room(entry) && entry.len() <= ENTRY_BYTES_MAX, "an entry fits its block");
        assert!(self.count == 0 || self.last.as_slice() < entry, "entries come in order");
        let shared = self.shared(entry);
        let rest = &entry[shared..];
        if self.at_signpost() {
            self.signposts.push(self.bytes.len() as u16);
        }
        let low = shared.min(SHARED_APART);
        let high = (rest.len() - 1).min(REST_APART);
        self.bytes.push((high << 5 | low) as u8);
        if low == SHARED_APART {
            self.bytes.extend_from_slice(&(shared as u16).to_le_bytes());
        }
        if high == REST_APART {
            self.bytes.extend_from_slice(&(rest.len() as u16).to_le_bytes());
        }
        self.bytes.extend_from_slice(rest);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
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

/// A walk over the entries of a block, one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// Entries behind it, the one it stands on included.
    pub(super) passed: usize,
    offset: usize,
    /// The entry it stands on, once it has stepped to one.
    pub(super) entry: Vec<u8>,
}

impl Default for Walk {
    /// Before the first entry.
    fn default() -> Self {
        Walk { passed: 0, offset: HEAD_BYTES, entry: Vec::new() }
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

    /// The entry at an offset: how many bytes it shares with the one before, the others, and the offset after it.
    fn parse(&self, offset: usize) -> Result<(usize, &'a [u8], usize), Error> {
        let (first, mut rest) = self.bytes.get(offset..).and_then(|bytes| bytes.split_first()).ok_or_else(nonsense)?;
        let mut number = |code: usize, apart: usize| {
            if code != apart {
                return Ok(None);
            }
            let (bytes, after) = rest.split_first_chunk::<2>().ok_or_else(nonsense)?;
            rest = after;
            Ok(Some(usize::from(u16::from_le_bytes(*bytes))))
        };
        let (low, high) = (usize::from(first & 31), usize::from(first >> 5));
        let shared = number(low, SHARED_APART)?.unwrap_or(low);
        let length = number(high, REST_APART)?.unwrap_or(high + 1);
        if !(ROW_BYTES + 1..=ENTRY_BYTES_MAX).contains(&(shared + length)) {
            return Err(nonsense());
        }
        let own = rest.get(..length).ok_or_else(nonsense)?;
        Ok((shared, own, BLOCK_BYTES - rest.len() + length))
    }

    /// Goes on to the next entry; whether there is one.
    pub(super) fn step(&self, walk: &mut Walk) -> Result<bool, Error> {
        if walk.passed >= self.count {
            return Ok(false);
        }
        let (shared, own, after) = self.parse(walk.offset)?;
        let whole = walk.passed.is_multiple_of(SIGNPOST_ENTRIES);
        if shared > walk.entry.len() || (whole && shared > 0) {
            return Err(nonsense());
        }
        walk.entry.truncate(shared);
        walk.entry.extend_from_slice(own);
        walk.offset = after;
        walk.passed += 1;
        Ok(true)
    }

    /// Before the entry that a signpost points to: the one numbered 32 times the signpost's own number.
    fn signpost(&self, number: usize) -> Walk {
        let at = BLOCK_BYTES - 2 * (number + 1);
        let offset = usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]));
        Walk { passed: number * SIGNPOST_ENTRIES, offset, entry: Vec::new() }
    }

    /// The entry that a signpost points to, which is written whole.
    fn whole(&self, number: usize) -> Result<&'a [u8], Error> {
        match self.parse(self.signpost(number).offset)? {
            (0, entry, _) => Ok(entry),
            _ => Err(nonsense()),
        }
    }

    /// Walks to the first entry that is not less than `low`; none if all are, and then the walk has passed them.
    pub(super) fn seek(&self, low: &[u8]) -> Result<(Walk, bool), Error> {
        // The last signpost whose entry is less than `low`; the first if none is.
        let (mut from, mut to) = (0, signposts(self.count));
        while to - from > 1 {
            let middle = from + (to - from) / 2;
            if self.whole(middle)? < low { from = middle } else { to = middle }
        }
        let mut walk = if from == 0 { Walk::default() } else { self.signpost(from) };
        while self.step(&mut walk)? {
            if walk.entry.as_slice() >= low {
                return Ok((walk, true));
            }
        }
        Ok((walk, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowId;
    use crate::key::entry;

    /// Entries of two rows under one key, and of one under the next.
    #[test]
    fn the_block_of_the_specification() {
        let mut writer = BlockWriter::new(0, 0);
        for (key, row) in [(1, 5), (1, 7), (2, 6)] {
            let key = [[1, 0x80, 0, 0, 0, 0, 0, 0].as_slice(), &[key]].concat();
            writer.push(&entry(&key, RowId(row)));
        }
        let bytes = writer.finish();
        let head = [0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let first = [0xE0, 17, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5];
        let others = [0x10, 7, 0xE8, 9, 0, 2, 0, 0, 0, 0, 0, 0, 0, 6];
        let expected = [head.as_slice(), &first, &others].concat();
        assert_eq!(bytes[..expected.len()], expected);
        assert!(bytes[expected.len()..BLOCK_BYTES - 2].iter().all(|byte| *byte == 0));
        assert_eq!(bytes[BLOCK_BYTES - 2..], [16, 0]);
    }
}
