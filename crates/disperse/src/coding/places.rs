//! Where a provider has a row: a number that says nothing of when the row came, nor of where another provider has it.
//!
//! ```text
//! number = the first 24 bits of the row's epoch | 40 bits of the row
//! place  = a permutation of 64 bits, by a Feistel network of ten rounds over AES-256(key of provider; round | half)
//! ```
//! 1. The owner goes both ways; to providers a place is a random number that is the row's name. A network over halves of 32 bits is
//!    proven for less than 2^32 names (Patarin), so that is how many rows a table may show in all.
//! 2. A database that was put back gives its rows' numbers again, in another epoch: they have other places than the rows that
//!    clouds still have from before, which are nobody's any more.

use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};
use aes::{Aes256, Block};

use crate::keys::Secret;

const ROUNDS: u8 = 10;
/// Numbers that go through a round together: a round needs the one before, and a processor has several blocks in hand at a time.
const TOGETHER: usize = 64;

/// A provider's permutation.
pub struct Places(Aes256);

impl Places {
    /// That of a key.
    #[must_use]
    pub fn new(key: &Secret) -> Self {
        Self(Aes256::new(&Array(*key.expose())))
    }

    /// A round of each of some numbers: `input` is the half that goes in, and `output` what comes of a number and what came out.
    fn round(&self, round: u8, numbers: &mut [u64], input: impl Fn(u64) -> u32, output: impl Fn(u64, u32) -> u64) {
        let mut blocks = [Block::default(); TOGETHER];
        let blocks = &mut blocks[..numbers.len()];
        for (block, number) in blocks.iter_mut().zip(numbers.iter()) {
            block[0] = round;
            block[12..].copy_from_slice(&input(*number).to_be_bytes());
        }
        self.0.encrypt_blocks(blocks);
        for (number, block) in numbers.iter_mut().zip(blocks) {
            *number = output(*number, u32::from_be_bytes([block[0], block[1], block[2], block[3]]));
        }
    }

    /// From numbers to where they are.
    pub fn places(&self, numbers: &mut [u64]) {
        for some in numbers.chunks_mut(TOGETHER) {
            for round in 0..ROUNDS {
                // (left, right) becomes (right, left ^ F(right)).
                self.round(
                    round,
                    some,
                    |number| number as u32,
                    |number, out| number << 32 | u64::from((number >> 32) as u32 ^ out),
                );
            }
        }
    }

    /// From places to the numbers that are there.
    pub fn numbers(&self, places: &mut [u64]) {
        for some in places.chunks_mut(TOGETHER) {
            for round in (0..ROUNDS).rev() {
                // (left, right) becomes (right ^ F(left), left).
                self.round(
                    round,
                    some,
                    |place| (place >> 32) as u32,
                    |place, out| u64::from(place as u32 ^ out) << 32 | place >> 32,
                );
            }
        }
    }

    /// Where a number is.
    #[must_use]
    pub fn place(&self, number: u64) -> u64 {
        let mut one = [number];
        self.places(&mut one);
        one[0]
    }

    /// Which number is there.
    #[must_use]
    pub fn number(&self, place: u64) -> u64 {
        let mut one = [place];
        self.numbers(&mut one);
        one[0]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Places;
    use crate::keys::Secret;

    proptest! {
        #[test]
        fn places_lead_back_to_rows(
            row in any::<u64>(),
            key in any::<[u8; 32]>(),
            mut rows in prop::collection::vec(any::<u64>(), 0..200),
        ) {
            let places = Places::new(&Secret::new(key));
            let before = rows.clone();
            places.places(&mut rows);
            prop_assert!(rows.iter().zip(&before).all(|(place, row)| places.place(*row) == *place));
            places.numbers(&mut rows);
            prop_assert_eq!(rows, before);
            prop_assert_eq!(places.number(places.place(row)), row);
            prop_assert_eq!(places.place(places.number(row)), row);
        }
    }

    #[test]
    fn neighbours_are_no_neighbours_there() {
        let places = Places::new(&Secret::new([5; 32]));
        let others = Places::new(&Secret::new([6; 32]));
        let found: Vec<u64> = (0..4096).map(|row| places.place(row)).collect();
        // Of random numbers, about a half of all bits differ from one to the next.
        let differing: u32 = found.windows(2).map(|pair| (pair[0] ^ pair[1]).count_ones()).sum();
        assert!((31 * 4095..33 * 4095).contains(&differing), "{differing}");
        let rising = found.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((1800..2300).contains(&rising), "{rising}");
        assert!((0..4096).all(|row| others.place(row) != places.place(row)));
    }
}
