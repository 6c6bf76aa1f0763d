//! One block of a run: entries, each written as what differs from the one before.
//!
//! Entries in order share most of their keys, and rows that came in the order of their keys lie near one another: an entry is
//! what its key adds to the one before, and how far its row is from the one before. Every 32nd is written whole, and a signpost
//! says where it lies, so that an entry is found by halving and few steps.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::key::{KEY_BYTES_MAX, ROW_BYTES};
use crate::{Error, few_or_many};
use counterfoil_log::{SECTOR_PAYLOAD_BYTES, Sealing};

/// Bytes of a block of which a sector is one.
pub(super) const SECTOR_BLOCK_BYTES: usize = SECTOR_PAYLOAD_BYTES;
/// Bytes that a block has at least where there are others and entries may be as large as can be: a few of those.
const BLOCK_BYTES_MIN: usize = 4 * SECTOR_BLOCK_BYTES;
/// Bytes of the keys of which a few entries fit into a sector.
const SECTOR_KEY_BYTES_MAX: usize = 80;
/// Bytes that the only block of a run has at least.
pub(super) const ONLY_BLOCK_BYTES_MIN: usize = 32;
/// Bytes that a block has at most: places in it are told by two bytes.
pub(super) const BLOCK_BYTES_MAX: usize = 65_535;
pub(super) const HEAD_BYTES: usize = 16;
/// Room that a block is given at first where memory is little.
const FEW_BYTES: usize = 496;
/// Entries from one signpost to the next.
const SIGNPOST_ENTRIES: usize = 32;
/// In the low five bits of an entry's first byte: how many bytes of its key are those of the one before stands in two bytes more.
const SHARED_APART: usize = 31;
/// In its high three bits: how many bytes of its key follow stands in two bytes more.
const REST_APART: usize = 7;
/// Bytes that a difference of rows takes at most: seven bits in each.
const DIFFERENCE_BYTES_MAX: usize = 10;

/// Bytes of the blocks of a run on pages that hold so many: whole pages, and one of them where it is large enough, so that a
/// block is read with as few as can be.
fn block_bytes(page_bytes: usize) -> usize {
    let page_bytes = page_bytes.clamp(64, BLOCK_BYTES_MAX);
    page_bytes * BLOCK_BYTES_MIN.div_ceil(page_bytes)
}

/// How the blocks of a run are sealed, and how many bytes each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(super) sealing: Sealing,
    pub(super) bytes: usize,
}

impl Blocks {
    /// Where pages that hold so many bytes are opened as wholes.
    pub(crate) fn in_pages(page_bytes: usize) -> Self {
        Blocks { sealing: Sealing::Whole, bytes: block_bytes(page_bytes) }
    }

    /// Where sectors are, for keys of so many bytes at most.
    pub(crate) fn in_sectors(key_bytes_max: usize) -> Self {
        let is_small = key_bytes_max <= SECTOR_KEY_BYTES_MAX;
        Blocks { sealing: Sealing::Sectors, bytes: if is_small { SECTOR_BLOCK_BYTES } else { BLOCK_BYTES_MIN } }
    }
}

fn signposts(count: usize) -> usize {
    count.div_ceil(SIGNPOST_ENTRIES)
}

/// Splits an entry into its key and its row.
fn split(entry: &[u8]) -> Option<(&[u8], u64)> {
    let (key, row) = entry.split_last_chunk::<ROW_BYTES>()?;
    Some((key, u64::from_be_bytes(*row)))
}

/// How far a row is from the one before: small in either direction is small.
fn difference(before: u64, row: u64) -> u64 {
    let signed = row.wrapping_sub(before) as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// The row that is so far from the one before.
fn row_after(before: u64, difference: u64) -> u64 {
    before.wrapping_add((difference >> 1) ^ (difference & 1).wrapping_neg())
}

/// Appends a number, seven bits in a byte, the lowest first; every byte but the last has its high bit set.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes such a number off the front of some bytes; none where it does not end, is too large, or is written too long.
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..DIFFERENCE_BYTES_MAX {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7F);
        if part << (7 * at) >> (7 * at) != part {
            return None;
        }
        number |= part << (7 * at);
        if byte & 0x80 == 0 {
            return (at == 0 || *byte > 0).then_some(number);
        }
    }
    None
}

/// A block being filled.
pub(super) struct BlockWriter {
    bytes: Vec<u8>,
    /// Bytes that there is room for from the first entry on.
    first_room: usize,
    signposts: Vec<u16>,
    count: u16,
    /// The entry written last: its key and its row.
    last: (Vec<u8>, u64),
    /// The entry asked about or written, as it stands in the block.
    code: Vec<u8>,
    bytes_max: usize,
}

impl BlockWriter {
    /// A block of so many bytes.
    pub(super) fn new(level: u8, first_child: u64, bytes_max: usize) -> Self {
        let mut bytes = Vec::with_capacity(few_or_many(HEAD_BYTES, bytes_max));
        bytes.extend_from_slice(&[level, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&first_child.to_le_bytes());
        let (signposts, last, code) = (Vec::new(), (Vec::new(), 0), Vec::new());
        BlockWriter { bytes, first_room: FEW_BYTES, signposts, count: 0, last, code, bytes_max }
    }

    /// With room for all that it may hold as soon as there is an entry.
    pub(super) fn with_all_room(self) -> Self {
        BlockWriter { first_room: self.bytes_max, ..self }
    }

    /// Whether the next entry is written whole.
    fn at_signpost(&self) -> bool {
        usize::from(self.count).is_multiple_of(SIGNPOST_ENTRIES)
    }

    /// Writes an entry into `code`, as it stands behind the one before; how many bytes of its key are that one's.
    fn encode(&mut self, key: &[u8], row: u64) -> usize {
        let (shared, before) = match self.at_signpost() {
            true => (0, 0),
            false => (self.last.0.iter().zip(key).take_while(|(one, other)| one == other).count(), self.last.1),
        };
        let rest = &key[shared..];
        let (low, high) = (shared.min(SHARED_APART), rest.len().min(REST_APART));
        self.code.clear();
        self.code.push((high << 5 | low) as u8);
        if low == SHARED_APART {
            self.code.extend_from_slice(&(shared as u16).to_le_bytes());
        }
        if high == REST_APART {
            self.code.extend_from_slice(&(rest.len() as u16).to_le_bytes());
        }
        self.code.extend_from_slice(rest);
        put_number(&mut self.code, difference(before, row));
        shared
    }

    /// Takes an entry that comes after all before it, if there is room for it: whether it may have another key than the one before.
    pub(super) fn push(&mut self, entry: &[u8]) -> Option<bool> {
        let (key, row) = split(entry).filter(|(key, _)| key.len() <= KEY_BYTES_MAX).expect("a key and a row");
        let shared = self.encode(key, row);
        let comes_later = (&self.last.0[shared..], self.last.1) < (&key[shared..], row);
        assert!(self.count == 0 || comes_later, "entries come in order");
        let signposts = 2 * signposts(usize::from(self.count) + 1);
        if self.bytes.len() + self.code.len() + signposts > self.bytes_max {
            return None;
        }
        if self.bytes.len() + self.code.len() > self.bytes.capacity() {
            // Once, if it has entries: whenever it grows, it is in memory as it was and as it becomes.
            let room = if self.count == 0 { self.first_room.max(HEAD_BYTES + self.code.len()) } else { self.bytes_max };
            self.bytes.reserve_exact(room.min(self.bytes_max) - self.bytes.len());
        }
        if self.at_signpost() {
            self.signposts.push(self.bytes.len() as u16);
        }
        self.bytes.extend_from_slice(&self.code);
        let is_another = shared < key.len();
        self.last.0.truncate(shared);
        self.last.0.extend_from_slice(&key[shared..]);
        self.last.1 = row;
        self.count += 1;
        Some(is_another)
    }

    /// The entry taken last.
    pub(super) fn last_entry(&self) -> Vec<u8> {
        [self.last.0.as_slice(), &self.last.1.to_be_bytes()].concat()
    }

    /// Makes the block as few whole pages as it needs; how many bytes it has.
    pub(super) fn shorten(&mut self, page_bytes: usize) -> usize {
        let needed = (self.bytes.len() + 2 * self.signposts.len()).max(ONLY_BLOCK_BYTES_MIN);
        self.bytes_max = self.bytes_max.min(needed.next_multiple_of(page_bytes.max(1)));
        self.bytes_max
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes[2..4].copy_from_slice(&self.count.to_le_bytes());
        self.bytes.reserve_exact(self.bytes_max - self.bytes.len());
        self.bytes.resize(self.bytes_max - 2 * self.signposts.len(), 0);
        for place in self.signposts.iter().rev() {
            self.bytes.extend_from_slice(&place.to_le_bytes());
        }
        self.bytes
    }
}

/// A block that was read.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    bytes: &'a [u8],
    count: usize,
    first_child: u64,
}

/// An entry as it stands in its block.
struct Coded<'a> {
    /// How many bytes of its key are those of the one before.
    shared: usize,
    /// The others.
    own: &'a [u8],
    /// How far its row is from the one before.
    difference: u64,
    /// How many bytes it is.
    bytes: usize,
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

/// Reads the head of a block of so many bytes that must be of this level; how many entries it has.
pub(super) fn count_of(head: &[u8], block_bytes: usize, level: u8) -> Result<usize, Error> {
    let [its_level, 0, low, high, 0, 0, 0, 0, ..] = *head else { return Err(nonsense()) };
    let count = usize::from(u16::from_le_bytes([low, high]));
    let is_sound = its_level == level && count > 0 && 2 * signposts(count) + HEAD_BYTES <= block_bytes;
    is_sound.then_some(count).ok_or_else(nonsense)
}

/// The entry that stands at the beginning of some bytes.
fn parse(bytes: &[u8]) -> Result<Coded<'_>, Error> {
    let (first, mut rest) = bytes.split_first().ok_or_else(nonsense)?;
    let mut number = |code: usize, apart: usize| -> Result<usize, Error> {
        if code != apart {
            return Ok(code);
        }
        let (bytes, after) = rest.split_first_chunk::<2>().ok_or_else(nonsense)?;
        rest = after;
        Ok(usize::from(u16::from_le_bytes(*bytes)))
    };
    let shared = number(usize::from(first & 31), SHARED_APART)?;
    let length = number(usize::from(first >> 5), REST_APART)?;
    if !(1..=KEY_BYTES_MAX).contains(&(shared + length)) {
        return Err(nonsense());
    }
    let (own, mut rest) = rest.split_at_checked(length).ok_or_else(nonsense)?;
    let difference = take_number(&mut rest).ok_or_else(nonsense)?;
    Ok(Coded { shared, own, difference, bytes: bytes.len() - rest.len() })
}

impl Walk {
    /// Steps to the entry that stands at the beginning of some bytes; how many of them it is.
    #[inline(never)]
    pub(super) fn step_in(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let coded = parse(bytes)?;
        let (key, before) = match self.passed.is_multiple_of(SIGNPOST_ENTRIES) {
            true => (0, 0),
            false => split(&self.entry).map(|(key, row)| (key.len(), row)).ok_or_else(nonsense)?,
        };
        if coded.shared > key {
            return Err(nonsense());
        }
        self.entry.truncate(coded.shared);
        self.entry.extend_from_slice(coded.own);
        self.entry.extend_from_slice(&row_after(before, coded.difference).to_be_bytes());
        self.passed += 1;
        Ok(coded.bytes)
    }
}

impl<'a> Block<'a> {
    /// Takes the bytes of a block that must be of this level.
    pub(super) fn new(bytes: &'a [u8], level: u8) -> Result<Self, Error> {
        let count = count_of(bytes, bytes.len(), level)?;
        let first_child = bytes.get(8..).and_then(|bytes| bytes.first_chunk()).ok_or_else(nonsense)?;
        Ok(Block { bytes, count, first_child: u64::from_le_bytes(*first_child) })
    }

    pub(super) fn first_child(&self) -> u64 {
        self.first_child
    }

    /// The bytes from an offset on.
    fn from(&self, offset: usize) -> &'a [u8] {
        self.bytes.get(offset..).unwrap_or_default()
    }

    /// Goes on to the next entry; whether there is one.
    pub(super) fn step(&self, walk: &mut Walk) -> Result<bool, Error> {
        if walk.passed >= self.count {
            return Ok(false);
        }
        walk.offset += walk.step_in(self.from(walk.offset))?;
        Ok(true)
    }

    /// Before the entry that a signpost points to: the one numbered 32 times the signpost's own number.
    fn signpost(&self, number: usize) -> Walk {
        let at = self.bytes.len() - 2 * (number + 1);
        let offset = usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]));
        Walk { passed: number * SIGNPOST_ENTRIES, offset, entry: Vec::new() }
    }

    /// Whether the entry that a signpost points to, which is written whole, is less than `low`.
    fn is_less(&self, number: usize, low: &[u8]) -> Result<bool, Error> {
        let Coded { shared: 0, own, difference, .. } = parse(self.from(self.signpost(number).offset))? else {
            return Err(nonsense());
        };
        let (low, behind) = low.split_at(own.len().min(low.len()));
        let row = row_after(0, difference).to_be_bytes();
        Ok(own.cmp(low).then_with(|| row.as_slice().cmp(behind)) == Ordering::Less)
    }

    /// Walks to the first entry that is not less than `low`; none if all are, and then the walk has passed them.
    pub(super) fn seek(&self, low: &[u8]) -> Result<(Walk, bool), Error> {
        // The last signpost whose entry is less than `low`; the first if none is.
        let (mut from, mut to) = (0, signposts(self.count));
        while to - from > 1 {
            let middle = from + (to - from) / 2;
            if self.is_less(middle, low)? { from = middle } else { to = middle }
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
        let mut writer = BlockWriter::new(0, 0, 4080);
        for (key, row) in [(1, 5), (1, 70), (2, 6)] {
            let key = [[1, 0x80, 0, 0, 0, 0, 0, 0].as_slice(), &[key]].concat();
            assert!(writer.push(&entry(&key, RowId(row))).is_some());
        }
        let bytes = writer.finish();
        let head = [0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let first = [0xE0, 9, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 1, 10];
        let others = [0x09, 0x82, 0x01, 0x28, 2, 0x7F];
        let expected = [head.as_slice(), &first, &others].concat();
        assert_eq!(bytes[..expected.len()], expected);
        assert!(bytes[expected.len()..4078].iter().all(|byte| *byte == 0));
        assert_eq!(bytes[4078..], [16, 0]);
    }

    #[test]
    fn differences_of_rows_go_both_ways_and_around() {
        let rows = [0, 1, 63, 64, 8191, 8192, (1 << 47) - 1, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX];
        for (before, row) in rows.iter().flat_map(|before| rows.map(|row| (*before, row))) {
            let mut bytes = Vec::new();
            put_number(&mut bytes, difference(before, row));
            assert!(bytes.len() <= DIFFERENCE_BYTES_MAX);
            bytes.push(7);
            let mut rest = bytes.as_slice();
            let read = take_number(&mut rest).map(|difference| row_after(before, difference));
            assert_eq!((read, rest), (Some(row), [7].as_slice()));
        }
    }

    #[test]
    fn a_number_is_written_in_one_way_only() {
        let too_large = [[0xFF; 9].as_slice(), &[2]].concat();
        for wrong in [[].as_slice(), &[0x80], &[0x80, 0], &[0xFF; 11], &too_large] {
            assert_eq!(take_number(&mut { wrong }), None, "{wrong:?}");
        }
    }

    #[test]
    fn blocks_are_whole_pages() {
        assert_eq!([496, 1008, 2032, 4080, 16_368, 65_520].map(block_bytes), [1984, 2016, 2032, 4080, 16_368, 65_520]);
        assert!((0..100_000).all(|page| (BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes(page))));
    }
}
