//! A set of small numbers, as bits.

use alloc::vec;
use alloc::vec::Vec;

use crate::Error;
use crate::bytes::Cursor;

/// Which of `length` numbers are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    length: u32,
    count: u32,
}

impl Bits {
    /// The empty set of numbers below `length`.
    pub(crate) fn none(length: u32) -> Self {
        Bits { words: vec![0; length.div_ceil(64) as usize], length, count: 0 }
    }

    /// How many are in it.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        self.words.get((number / 64) as usize).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Puts a number in; false if it was there or is none of these.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let is_new = number < self.length && !self.contains(number);
        if is_new {
            self.words[(number / 64) as usize] |= 1 << (number % 64);
            self.count += 1;
        }
        is_new
    }

    /// Takes a number out; false if it was not there.
    pub(crate) fn remove(&mut self, number: u32) -> bool {
        let was_there = self.contains(number);
        if was_there {
            self.words[(number / 64) as usize] &= !(1 << (number % 64));
            self.count -= 1;
        }
        was_there
    }

    /// The smallest one from `from` on.
    pub(crate) fn next_from(&self, from: u32) -> Option<u32> {
        let first = (from / 64) as usize;
        let masked = |(index, word): (usize, &u64)| {
            let word = if index == first { word & (u64::MAX << (from % 64)) } else { *word };
            (word != 0).then(|| index as u32 * 64 + word.trailing_zeros())
        };
        self.words.iter().enumerate().skip(first).find_map(masked)
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.next_from(0), |number| self.next_from(number + 1))
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    }

    pub(crate) fn decode(length: u32, cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let mut bits = Bits::none(length);
        for word in &mut bits.words {
            *word = cursor.u64()?;
        }
        bits.count = bits.words.iter().map(|word| word.count_ones()).sum();
        let beyond = bits.words.last().is_some_and(|word| !length.is_multiple_of(64) && word >> (length % 64) != 0);
        if beyond { Err(cursor.corrupt()) } else { Ok(bits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_in_and_out_and_are_found_in_order() {
        for length in [1, 63, 64, 65, 200] {
            let mut bits = Bits::none(length);
            let mut model = alloc::collections::BTreeSet::new();
            for step in 0..3 * u64::from(length) {
                let number = (step * 7919 % (u64::from(length) + 3)) as u32;
                let inside = number < length;
                if step % 3 == 2 {
                    assert_eq!(bits.remove(number), model.remove(&number));
                } else {
                    assert_eq!(bits.insert(number), inside && model.insert(number));
                }
                assert_eq!(bits.count() as usize, model.len());
                assert_eq!(bits.next_from(number), model.range(number..).next().copied());
            }
            assert!(bits.iter().eq(model.iter().copied()));
            let mut bytes = Vec::new();
            bits.encode(&mut bytes);
            assert_eq!(Bits::decode(length, &mut Cursor::new(&bytes, "bits")).as_ref(), Ok(&bits));
        }
        let beyond = [0xFF; 8];
        assert!(Bits::decode(63, &mut Cursor::new(&beyond, "bits")).is_err());
    }
}
