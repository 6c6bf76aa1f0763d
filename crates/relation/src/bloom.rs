//! Bloom filters of sorted runs.
//!
//! A filter is an array of *lines* of 64 bytes. A key's 64-bit hash chooses one line and six of its 512 bits, so that
//! asking costs one small read wherever the filter lies. At ten bits a key about one absent key in a hundred passes.
//!
//! ```text
//! hash:   h = key length * C1; for each 8 bytes w, little-endian, the last padded with zeros:
//!         h = (h ^ w) * C1; h ^= h >> 29           at the end: h *= C2; h ^= h >> 32
//! line:   (high 32 bits of h) * lines / 2^32       bits: h * C3, bits 0..9, 9..18, ... 45..54, as places in the line
//! ```

use alloc::vec;
use alloc::vec::Vec;

/// Bytes of a line.
pub(crate) const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 512;
const BITS_PER_KEY: u64 = 10;
const PROBES: u32 = 6;
const C1: u64 = 0x9E37_79B9_7F4A_7C15;
const C2: u64 = 0xBF58_476D_1CE4_E5B9;
const C3: u64 = 0x94D0_49BB_1331_11EB;

/// How often a filter that came out too large is halved at most.
const FOLDS_MAX: u32 = 6;

/// Lines that a filter for so many keys has at least.
fn lines(keys: u64) -> u64 {
    keys.saturating_mul(BITS_PER_KEY).div_ceil(LINE_BITS).max(1)
}

/// The hash of a key.
pub(crate) fn hash(key: &[u8]) -> u64 {
    let mix = |h: u64, word: u64| {
        let h = (h ^ word).wrapping_mul(C1);
        h ^ (h >> 29)
    };
    let (words, rest) = key.as_chunks::<8>();
    let mut h = words.iter().fold((key.len() as u64).wrapping_mul(C1), |h, word| mix(h, u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        h = mix(h, u64::from_le_bytes(word));
    }
    let h = h.wrapping_mul(C2);
    h ^ (h >> 32)
}

/// The line of a key, in a filter with at least one.
pub(crate) fn line(hash: u64, lines: u32) -> u32 {
    (((hash >> 32) * u64::from(lines)) >> 32) as u32
}

fn places(hash: u64) -> impl Iterator<Item = (usize, u8)> {
    let bits = hash.wrapping_mul(C3);
    (0..PROBES).map(move |probe| {
        let place = (bits >> (9 * probe)) & (LINE_BITS - 1);
        ((place / 8) as usize, 1 << (place % 8))
    })
}

/// Whether the key may be among those of this line. A line of another size holds everything.
pub(crate) fn may_hold(line: &[u8], hash: u64) -> bool {
    line.len() != LINE_BYTES || places(hash).all(|(byte, bit)| line[byte] & bit != 0)
}

/// A filter being filled.
pub(crate) struct Bloom {
    bytes: Vec<u8>,
    lines: u32,
}

impl Bloom {
    /// An empty filter for at most so many keys.
    pub(crate) fn for_keys(keys_max: u64) -> Self {
        let lines = lines(keys_max);
        let lines = lines.next_multiple_of((lines.next_power_of_two() / 32).clamp(1, 1 << FOLDS_MAX));
        let lines = u32::try_from(lines).unwrap_or(1 << 31);
        Bloom { bytes: vec![0; lines as usize * LINE_BYTES], lines }
    }

    /// As large as it would have been made for so many keys, about: each two lines that lie side by side become one. The line of a
    /// key is its hash, scaled, so in a filter of half as many lines it is the one with half the number.
    pub(crate) fn folded(mut self, keys: u64) -> Self {
        while self.lines.is_multiple_of(2) && u64::from(self.lines / 2) >= lines(keys) {
            let pairs = self.bytes.chunks_exact(2 * LINE_BYTES);
            let one = |pair: &[u8]| core::array::from_fn(|byte| pair[byte] | pair[LINE_BYTES + byte]);
            self.bytes = pairs.flat_map(|pair| -> [u8; LINE_BYTES] { one(pair) }).collect();
            self.lines /= 2;
        }
        self
    }

    pub(crate) fn add(&mut self, key: &[u8]) {
        let hash = hash(key);
        let start = line(hash, self.lines) as usize * LINE_BYTES;
        for (byte, bit) in places(hash) {
            self.bytes[start + byte] |= bit;
        }
    }

    pub(crate) fn lines(&self) -> u32 {
        self.lines
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_passes_and_few_others_do() {
        let key = |number: u64| number.to_be_bytes();
        let mut bloom = Bloom::for_keys(10_000);
        (0..10_000).for_each(|number| bloom.add(&key(number)));
        let (lines, bytes) = (bloom.lines(), bloom.into_bytes());
        let passes = |number: u64| {
            let hash = hash(&key(number));
            let start = line(hash, lines) as usize * LINE_BYTES;
            may_hold(&bytes[start..start + LINE_BYTES], hash)
        };
        assert!((0..10_000).all(passes));
        let wrong = (10_000..110_000).filter(|number| passes(*number)).count();
        assert!(wrong < 2_500, "{wrong} of 100,000 absent keys pass");
    }

    #[test]
    fn a_filter_made_too_large_becomes_the_one_that_would_have_done() {
        let key = |number: u64| number.to_be_bytes();
        for made_for in [5000, 6001, 40_000, 1_000_000] {
            let mut bloom = Bloom::for_keys(made_for);
            (0..5000).for_each(|number| bloom.add(&key(number)));
            let bloom = bloom.folded(5000);
            assert!(u64::from(bloom.lines()) < 2 * lines(5000) + (made_for >> FOLDS_MAX), "{}", bloom.lines());
            let mut plain = Bloom { bytes: vec![0; bloom.lines as usize * LINE_BYTES], lines: bloom.lines };
            (0..5000).for_each(|number| plain.add(&key(number)));
            assert!(bloom.bytes == plain.bytes, "made for {made_for}");
        }
    }

    #[test]
    fn the_hash_of_the_specification() {
        assert_eq!(hash(b""), 0);
        assert_eq!(hash(b"counterfoil"), 0x8EEA1B588F1B6975);
    }
}
