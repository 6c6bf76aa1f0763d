//! The bits of a filter: which values a partition of a join's column has, some false positives aside.
//!
//! ```text
//! k | bits          k one byte, then m / 8 bytes; a filter of no value is one byte, zero
//! ```
//! SHA-256 of ("filter/1", salt, value) gives eight numbers of 32 bits, lowest byte first; the first k of them, each times
//! m / 2^32, are the places of a value. Of one hash all places are independent, where the usual two numbers and their
//! sums would meet too often in the 32 bits of a partition of four values.
//!
//! A false positive costs bytes and never soundness; the salt is drawn anew for each filter that is signed, so that nobody
//! chooses values ahead that meet.

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use crate::bytes::{Reader, Writer};
use crate::error::Malformed;

const WHAT: &str = "bits of a filter";
/// Places of a value at most: what one hash gives.
const PLACES_MAX: usize = 8;
/// A mebibyte: a million values at eight bits each.
const BYTES_MAX: usize = 1 << 20;

/// What mixes the values of one filter unlike those of all others.
pub type Salt = [u8; 16];

/// The bits, with the salt that their signed header holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterBits {
    salt: Salt,
    places: u8,
    bits: Vec<u8>,
}

impl FilterBits {
    /// The filter of distinct values with so many bits for each, whole bytes in all and no more than a mebibyte.
    pub fn build(salt: Salt, values: &[&[u8]], bits_per_value: u32) -> Self {
        let wanted = (values.len() as u64).saturating_mul(u64::from(bits_per_value.max(1))).div_ceil(8);
        let mut filter = Self { salt, places: places(bits_per_value), bits: vec_of(wanted) };
        if values.is_empty() {
            filter.places = 0;
        }
        for value in values {
            for place in filter.places_of(value) {
                filter.bits[place / 8] |= 1 << (place % 8);
            }
        }
        filter
    }

    /// What mixes its values.
    pub fn salt(&self) -> &Salt {
        &self.salt
    }

    /// About as many values as it was built of: its bits by those that its places are best for.
    pub fn capacity(&self) -> usize {
        if self.places == 0 { 0 } else { self.bits.len() * 8 * 693 / (1000 * usize::from(self.places)) }
    }

    /// Whether a value may be among those it was built of. No is certain.
    pub fn may_contain(&self, value: &[u8]) -> bool {
        self.places > 0 && self.places_of(value).all(|place| self.bits[place / 8] >> (place % 8) & 1 == 1)
    }

    fn places_of(&self, value: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let hash = Sha256::new().chain_update(b"filter/1").chain_update(self.salt).chain_update(value).finalize();
        let words: [u32; PLACES_MAX] = core::array::from_fn(|at| {
            u32::from_le_bytes([hash[4 * at], hash[4 * at + 1], hash[4 * at + 2], hash[4 * at + 3]])
        });
        let bits = self.bits.len() as u64 * 8;
        words.into_iter().take(usize::from(self.places)).map(move |word| ((u64::from(word) * bits) >> 32) as usize)
    }

    /// The bytes; the salt is not among them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(self.places).raw(&self.bits);
        writer.0
    }

    /// Reads what [`FilterBits::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Malformed`] for more than a mebibyte, for more places than a hash gives, and for bits without places or places
    /// without bits.
    pub fn parse(salt: Salt, bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, WHAT);
        let places = reader.byte()?;
        let bits = reader.raw(reader.left())?;
        if usize::from(places) > PLACES_MAX || bits.len() > BYTES_MAX || (places == 0) != bits.is_empty() {
            return Err(Malformed(WHAT));
        }
        Ok(Self { salt, places, bits: bits.to_vec() })
    }
}

/// The places of a value that give the fewest false positives: bits for each, times ln 2, rounded.
fn places(bits_per_value: u32) -> u8 {
    (u64::from(bits_per_value) * 693 + 500).div_euclid(1000).clamp(1, PLACES_MAX as u64) as u8
}

fn vec_of(bytes: u64) -> Vec<u8> {
    alloc::vec![0; bytes.min(BYTES_MAX as u64) as usize]
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{BYTES_MAX, FilterBits};

    fn rate(values: u32, bits: u32) -> f64 {
        let mut hits = 0;
        let rounds = 8_000 / values.max(4);
        for round in 0..rounds {
            let mut salt = [7; 16];
            salt[..4].copy_from_slice(&round.to_le_bytes());
            let all: Vec<[u8; 4]> = (0..values).map(u32::to_le_bytes).collect();
            let all: Vec<&[u8]> = all.iter().map(|value| &value[..]).collect();
            let filter = FilterBits::build(salt, &all, bits);
            let per_round = 100_000 / rounds;
            hits += (0..per_round).filter(|n| filter.may_contain(&(n + (1 << 24)).to_le_bytes())).count();
        }
        hits as f64 / f64::from(100_000 / rounds * rounds)
    }

    #[test]
    fn false_positives_are_as_the_paper_says() {
        let large = rate(1000, 8);
        assert!((0.018..0.026).contains(&large), "{large} of 1000 values at 8 bits; the paper has 0.0216");
        let small = rate(4, 8);
        assert!((0.018..0.035).contains(&small), "{small} of 4 values at 8 bits");
        assert!(rate(1000, 12) < 0.0045, "12 bits");
    }

    proptest! {
        #[test]
        fn a_value_that_is_there_is_never_denied(values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..50), bits in 0u32..20, salt: [u8; 16]) {
            let values: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
            let filter = FilterBits::build(salt, &values, bits);
            let read = FilterBits::parse(salt, &filter.to_bytes()).unwrap();
            prop_assert!(values.iter().all(|value| read.may_contain(value)));
            prop_assert_eq!(read, filter);
        }

        #[test]
        fn what_parses_is_written_in_the_same_way(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(filter) = FilterBits::parse([0; 16], &bytes) {
                prop_assert_eq!(filter.to_bytes(), &bytes[..]);
                filter.may_contain(b"anything");
            }
        }
    }

    #[test]
    fn another_salt_puts_values_elsewhere() {
        assert_ne!(
            FilterBits::build([0; 16], &[b"a", b"b"], 64).to_bytes(),
            FilterBits::build([1; 16], &[b"a", b"b"], 64).to_bytes()
        );
    }

    #[test]
    fn a_filter_of_nothing_denies_everything() {
        let filter = FilterBits::build([0; 16], &[], 8);
        assert_eq!(filter.to_bytes(), [0]);
        assert!(!filter.may_contain(b""));
    }

    #[test]
    fn bytes_out_of_bounds_are_refused() {
        for bytes in [&[][..], &[9, 1], &[0, 0], &[1]] {
            assert!(FilterBits::parse([0; 16], bytes).is_err(), "{bytes:?}");
        }
        let mut bytes = [0].repeat(BYTES_MAX + 2);
        bytes[0] = 6;
        assert!(FilterBits::parse([0; 16], &bytes).is_err());
        bytes.pop();
        assert!(FilterBits::parse([0; 16], &bytes).is_ok());
    }

    #[test]
    fn the_vector_of_the_specification() {
        let filter = FilterBits::build(core::array::from_fn(|at| at as u8), &[b"one", b"two", b"three"], 8);
        assert_eq!(filter.to_bytes(), [6, 233, 24, 127]);
    }
}
