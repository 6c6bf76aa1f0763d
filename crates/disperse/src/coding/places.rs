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

use aes::Aes256;
use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};

use crate::keys::Secret;

const ROUNDS: u8 = 10;

/// A provider's permutation.
pub struct Places(Aes256);

impl Places {
    /// That of a key.
    #[must_use]
    pub fn new(key: &Secret) -> Self {
        Self(Aes256::new(&Array(*key.expose())))
    }

    fn round(&self, round: u8, half: u32) -> u32 {
        let mut block = [0; 16];
        block[0] = round;
        block[12..].copy_from_slice(&half.to_be_bytes());
        let mut block = Array(block);
        self.0.encrypt_block(&mut block);
        u32::from_be_bytes([block[0], block[1], block[2], block[3]])
    }

    /// Where a number is.
    #[must_use]
    pub fn place(&self, number: u64) -> u64 {
        let (mut left, mut right) = ((number >> 32) as u32, number as u32);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.round(round, right));
        }
        u64::from(left) << 32 | u64::from(right)
    }

    /// Which number is there.
    #[must_use]
    pub fn number(&self, place: u64) -> u64 {
        let (mut left, mut right) = ((place >> 32) as u32, place as u32);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.round(round, left), left);
        }
        u64::from(left) << 32 | u64::from(right)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Places;
    use crate::keys::Secret;

    proptest! {
        #[test]
        fn places_lead_back_to_rows(row in any::<u64>(), key in any::<[u8; 32]>()) {
            let places = Places::new(&Secret::new(key));
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
