//! Numbers of rows put aside by the part of all numbers in which they lie, to be read again part by part.
//!
//! ```text
//! push ... push | to the pending bytes of its part; as many as a block has: a block to the scratch
//! close         | what is pending, one short block of each part
//! each_of       | the blocks of a part, the last one first
//!
//! a block: | where the one before it begins u64 | bytes of that one's numbers u32, 0: there is none | numbers |
//! a number: from the first of its part on, little-endian, in as many bytes as a part needs
//! ```
//!
//! Nothing is sorted: who reads a part has room for a bit for each of its numbers, or reads it several times.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::packed::wrong;
use super::scratch::Scratch;
use crate::{Error, RowId};

/// Bytes before the numbers of a block.
const HEAD_BYTES: usize = 12;
/// Least bytes of the numbers of a block: with fewer, its head would be most of it.
const BLOCK_BYTES_MIN: usize = 64;
/// Most: one is read at a time.
const BLOCK_BYTES_MAX: usize = 1 << 10;

/// Numbers of rows, put aside.
pub(super) struct Parts {
    first: RowId,
    /// Numbers in a part.
    span: u64,
    /// Bytes of a number.
    width: usize,
    /// Bytes of the numbers of a block.
    block_bytes: usize,
    /// What is not in a block yet, from the first number to the last: of several paths one has numbers that come.
    pending: Vec<Vec<u8>>,
    /// The last block of each part.
    last: Vec<Block>,
}

/// A block in the scratch.
#[derive(Clone, Copy, Default)]
struct Block {
    start: u64,
    /// Of its numbers; 0: there is none.
    bytes: u32,
}

impl Parts {
    /// For some numbers, in parts of so many or several times as many, with so many bytes of memory at most while they come.
    pub(super) fn new(numbers: &Range<u64>, span: u64, bytes_max: usize) -> Self {
        let spans = (numbers.end - numbers.start).div_ceil(span).max(1);
        let a_part = BLOCK_BYTES_MIN + size_of::<Vec<u8>>() + size_of::<Block>();
        let parts_max = (bytes_max / a_part).max(1) as u64;
        let span = span.saturating_mul(spans.div_ceil(parts_max));
        let count = (numbers.end - numbers.start).div_ceil(span).max(1) as usize;
        let block_bytes = (bytes_max / count + BLOCK_BYTES_MIN).saturating_sub(a_part);
        let width = (1..8).find(|bytes| (span - 1) >> (8 * bytes) == 0).unwrap_or(8);
        let block_bytes = block_bytes.clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX) / width * width;
        let (pending, last) = (Vec::new(), vec![Block::default(); count]);
        Parts { first: RowId(numbers.start), span, width, block_bytes, pending, last }
    }

    /// How many parts there are.
    pub(super) fn count(&self) -> u64 {
        self.last.len() as u64
    }

    /// Puts a number aside.
    pub(super) fn push(&mut self, scratch: &mut dyn Scratch, row: RowId) -> Result<(), Error> {
        let place = row.0.checked_sub(self.first.0).ok_or_else(|| Error::misuse("a row before all parts"))?;
        let part = (place / self.span) as usize;
        if self.pending.is_empty() {
            self.pending = vec![Vec::new(); self.last.len()];
        }
        let pending = self.pending.get_mut(part).ok_or_else(|| Error::misuse("a row behind all parts"))?;
        if pending.is_empty() {
            pending.reserve_exact(self.block_bytes);
        }
        pending.extend_from_slice(&(place % self.span).to_le_bytes()[..self.width]);
        if pending.len() == self.block_bytes { self.put(scratch, part) } else { Ok(()) }
    }

    /// Ends with the numbers that have come.
    pub(super) fn close(&mut self, scratch: &mut dyn Scratch) -> Result<(), Error> {
        (0..self.pending.len()).try_for_each(|part| self.put(scratch, part))?;
        self.pending = Vec::new();
        Ok(())
    }

    /// Puts the pending numbers of a part into a block.
    fn put(&mut self, scratch: &mut dyn Scratch, part: usize) -> Result<(), Error> {
        let (numbers, before) = (&mut self.pending[part], &mut self.last[part]);
        if numbers.is_empty() {
            return Ok(());
        }
        let start = scratch.append(&before.start.to_le_bytes())?;
        scratch.append(&before.bytes.to_le_bytes())?;
        scratch.append(numbers)?;
        *before = Block { start, bytes: numbers.len() as u32 };
        numbers.clear();
        Ok(())
    }

    /// Hands out all numbers of the part in which one lies, in no order, and some perhaps twice.
    pub(super) fn each_beside(
        &self,
        scratch: &mut dyn Scratch,
        row: RowId,
        take: &mut dyn FnMut(RowId),
    ) -> Result<(), Error> {
        let part = row.0.saturating_sub(self.first.0) / self.span;
        let from = self.first.0 + part * self.span;
        let mut block = self.last.get(part as usize).copied().unwrap_or_default();
        let mut bytes = Vec::new();
        while block.bytes > 0 {
            bytes.resize(HEAD_BYTES + block.bytes as usize, 0);
            scratch.read(block.start, &mut bytes)?;
            let (head, numbers) = bytes.split_first_chunk().ok_or_else(wrong)?;
            let before = Block::read(*head);
            for number in numbers.chunks_exact(self.width) {
                let mut place = [0; 8];
                place[..self.width].copy_from_slice(number);
                take(RowId(from + u64::from_le_bytes(place)));
            }
            // They lead backwards, so there is an end.
            if before.bytes > 0 && (before.start >= block.start || before.bytes as usize > self.block_bytes) {
                return Err(wrong());
            }
            block = before;
        }
        Ok(())
    }
}

impl Block {
    fn read(head: [u8; HEAD_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = head;
        Block { start: u64::from_le_bytes([a, b, c, d, e, f, g, h]), bytes: u32::from_le_bytes([i, j, k, l]) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scratch::InMemory;
    use super::*;

    /// Every part's numbers, sorted, of some that were put aside.
    fn parted(numbers: &[u64], all: Range<u64>, span: u64, bytes_max: usize) -> Vec<u64> {
        let (mut aside, mut parts) = (InMemory(Vec::new()), Parts::new(&all, span, bytes_max));
        assert!(parts.span % span == 0 && parts.count() * parts.span >= all.end - all.start);
        numbers.iter().for_each(|number| parts.push(&mut aside, RowId(*number)).unwrap());
        let taken: usize = parts.pending.iter().map(|pending| pending.capacity()).sum();
        assert!(taken + parts.last.len() * 40 <= bytes_max.max(200), "{taken} bytes of {bytes_max}");
        parts.close(&mut aside).unwrap();
        let mut got = Vec::new();
        for part in 0..parts.count() {
            let (from, before) = (all.start + part * parts.span, got.len());
            parts.each_beside(&mut aside, RowId(from + part % parts.span), &mut |row| got.push(row.0)).unwrap();
            assert!(got[before..].iter().all(|number| (from..from + parts.span).contains(number)));
        }
        got.sort_unstable();
        got
    }

    #[test]
    fn numbers_come_back_with_those_of_their_part() {
        for (all, span) in
            [(0..1, 64), (5..70_000, 64), (5..70_000, 4096), (1000..9_000_000, 32_768), (7..1 << 40, 640)]
        {
            let spread = (all.end - all.start).max(2) as u128;
            let number =
                |place: u64| all.start + (u128::from(place.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % spread) as u64;
            let mut numbers: Vec<u64> = (0..5000).map(number).filter(|number| all.contains(number)).collect();
            numbers.extend([all.start, all.end - 1]);
            for bytes_max in [0, 500, 3000, 100_000] {
                let got = parted(&numbers, all.clone(), span, bytes_max);
                numbers.sort_unstable();
                assert!(got == numbers, "{all:?} in parts of {span}, {bytes_max} bytes");
            }
        }
    }

    #[test]
    fn what_comes_back_as_something_else_is_told() {
        let (mut aside, mut parts) = (InMemory(Vec::new()), Parts::new(&(0..64), 64, 0));
        (0..200).for_each(|row| parts.push(&mut aside, RowId(row % 64)).unwrap());
        parts.close(&mut aside).unwrap();
        let last = parts.last[0].start as usize;
        // A block that has itself before it.
        aside.0[last..last + 8].copy_from_slice(&(last as u64).to_le_bytes());
        assert!(parts.each_beside(&mut aside, RowId(0), &mut |_| ()).is_err());
    }
}
