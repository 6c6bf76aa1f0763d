//! Sets of numbers of which few are there: the records that changed in a period.
//!
//! ```text
//! count | first | span | gaps, in bits           numbers as everywhere, then Golomb-Rice
//! ```
//! A set of none is the count alone, a set of one has no span; `span` is the last number less the first. What stands between
//! first and last are gaps, each less one: a gap g is (g - 1) >> k zeros, a one, and the low k bits of g - 1, all from the
//! lowest bit of a byte upwards. The last gap follows from the span and is not written. k follows from count and span, so
//! that no field can choose it.
//!
//! Invariants: (1) what parses re-encodes to the same bytes; (2) a set of n numbers below U takes no more than
//! n (2 + log2(U / n)) bits, the bound of Elias-Fano, and 32 bytes; (3) memory is at most twice the bytes, whatever they claim.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::error::Malformed;

const WHAT: &str = "set of record numbers";
/// Numbers between two that a search can begin at. At a bit each they take 8 bytes, and such a place 16.
const STRIDE: u64 = 64;

/// A set in its bytes, which were looked through once.
#[derive(Clone, Debug)]
pub struct SparseSet<'a> {
    count: u64,
    first: u64,
    last: u64,
    gaps: Bits<'a>,
    /// The 64th number, the 128th, ..., and where its successor's bits begin.
    places: Vec<(u64, u64)>,
}

impl<'a> SparseSet<'a> {
    /// The bytes of strictly increasing numbers.
    ///
    /// # Panics
    /// Where the numbers do not increase: that is the caller's mistake.
    pub fn encode(numbers: &[u64]) -> Vec<u8> {
        assert!(numbers.is_sorted_by(|a, b| a < b), "the numbers of a set increase");
        let mut writer = Writer::default();
        writer.number(numbers.len() as u64);
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return writer.0 };
        writer.number(*first);
        if numbers.len() > 1 {
            writer.number(last - first);
            let mut gaps = BitWriter { bytes: writer.0, used: 0 };
            let low = low_bits(numbers.len() as u64, last - first);
            for pair in numbers[..numbers.len() - 1].windows(2) {
                gaps.gap(pair[1] - pair[0] - 1, low);
            }
            return gaps.bytes;
        }
        writer.0
    }

    /// Looks the bytes through.
    ///
    /// # Errors
    /// [`Malformed`] for anything that [`SparseSet::encode`] does not write.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes, WHAT);
        let count = reader.number()?;
        let first = if count > 0 { reader.number()? } else { 0 };
        let span = if count > 1 { reader.number()? } else { 0 };
        let last = first.checked_add(span).ok_or(Malformed(WHAT))?;
        let gaps = Bits { bytes: reader.raw(reader.left())?, low: 0 };
        // A gap takes a bit at least, so a count beyond that is refused before anything is made of it.
        let written = count.saturating_sub(2);
        if written > gaps.bytes.len() as u64 * 8 || (count > 1 && span < count - 1) {
            return Err(Malformed(WHAT));
        }
        let gaps = Bits { low: if count > 1 { low_bits(count, span) } else { 0 }, ..gaps };
        let mut set = Self { count, first, last, gaps, places: Vec::new() };
        set.look_through(written)?;
        Ok(set)
    }

    fn look_through(&mut self, written: u64) -> Result<(), Malformed> {
        let (mut number, mut bit) = (self.first, 0);
        for index in 1..=written {
            (number, bit) =
                self.gaps.after(number, bit).filter(|(number, _)| *number < self.last).ok_or(Malformed(WHAT))?;
            if index % STRIDE == 0 {
                self.places.push((number, bit));
            }
        }
        if self.gaps.is_rest_empty(bit) { Ok(()) } else { Err(Malformed(WHAT)) }
    }

    /// How many numbers there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a number is among them; decodes 64 at most.
    pub fn contains(&self, wanted: u64) -> bool {
        if self.is_empty() || wanted < self.first || wanted > self.last {
            return false;
        }
        if wanted == self.last {
            return true;
        }
        let places = self.places.partition_point(|(number, _)| *number <= wanted);
        let (mut number, mut bit) = if places == 0 { (self.first, 0) } else { self.places[places - 1] };
        let mut index = places as u64 * STRIDE;
        while number < wanted && index + 2 < self.count {
            let Some(next) = self.gaps.after(number, bit) else { return false };
            (number, bit) = next;
            index += 1;
        }
        number == wanted
    }

    /// All numbers, increasing.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (mut number, mut bit) = (self.first, 0);
        (0..self.count).map(move |index| {
            if index > 0 && index + 1 < self.count {
                // Looked through: there is a next one.
                (number, bit) = self.gaps.after(number, bit).unwrap_or((self.last, bit));
            } else if index > 0 {
                number = self.last;
            }
            number
        })
    }
}

/// The low bits of a gap that are written as they are: the logarithm of what the mean gap has beyond one.
fn low_bits(count: u64, span: u64) -> u32 {
    let gaps = count - 1;
    (span.saturating_sub(gaps) / gaps).checked_ilog2().unwrap_or(0)
}

/// Bits from the lowest of the first byte upwards; behind the end there are zeros.
#[derive(Clone, Copy, Debug)]
struct Bits<'a> {
    bytes: &'a [u8],
    low: u32,
}

impl Bits<'_> {
    /// 56 bits and more from a place on; what is above may be zeros.
    fn word(&self, bit: u64) -> u64 {
        let rest = usize::try_from(bit / 8).ok().and_then(|byte| self.bytes.get(byte..)).unwrap_or(&[]);
        let word = match rest.first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        word >> (bit % 8)
    }

    /// The number after a gap that begins at a bit, and where the next gap begins.
    fn after(&self, number: u64, mut bit: u64) -> Option<(u64, u64)> {
        let begin = bit;
        let end = self.bytes.len() as u64 * 8;
        while self.word(bit) == 0 {
            bit = bit + 64 - bit % 8;
            if bit >= end {
                return None;
            }
        }
        bit += u64::from(self.word(bit).trailing_zeros());
        let high = bit - begin;
        bit += 1;
        if bit + u64::from(self.low) > end || (high > 0 && high.leading_zeros() < self.low) {
            return None;
        }
        let gap = high.checked_shl(self.low)? | self.low_bits(bit);
        Some((number.checked_add(gap)?.checked_add(1)?, bit + u64::from(self.low)))
    }

    fn low_bits(&self, bit: u64) -> u64 {
        let part = |bit: u64, bits: u32| self.word(bit) & ((1 << bits) - 1);
        let near = self.low.min(32);
        part(bit, near) | part(bit + u64::from(near), self.low - near) << near
    }

    /// Whether what is left from a bit on is the zeros that fill its byte.
    fn is_rest_empty(&self, bit: u64) -> bool {
        self.bytes.len() as u64 == bit.div_ceil(8) && self.word(bit) == 0
    }
}

struct BitWriter {
    bytes: Vec<u8>,
    /// Bits of the last byte that are written; none before the first gap.
    used: u32,
}

impl BitWriter {
    fn gap(&mut self, gap: u64, low: u32) {
        let mut zeros = gap >> low;
        while zeros > 0 {
            let now = zeros.min(32) as u32;
            self.bits(0, now);
            zeros -= u64::from(now);
        }
        self.bits(1, 1);
        self.bits(gap, low);
    }

    fn bits(&mut self, bits: u64, count: u32) {
        for at in 0..count {
            if self.used == 0 {
                self.bytes.push(0);
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= ((bits >> at & 1) as u8) << self.used;
            }
            self.used = (self.used + 1) % 8;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::SparseSet;

    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let below = prop_oneof![Just(300u64), Just(5_000), Just(1 << 20), Just(1 << 40), Just(u64::MAX)];
        (below, any::<bool>()).prop_flat_map(|(below, from_above)| {
            prop::collection::btree_set(0..=below, 0..400).prop_map(move |set: BTreeSet<u64>| {
                set.into_iter().map(|n| if from_above { u64::MAX - below + n } else { n }).collect()
            })
        })
    }

    /// Elias-Fano's bound of numbers below one more than the last.
    fn bound_bytes(numbers: &[u64]) -> f64 {
        let (count, below) = (numbers.len() as f64, numbers.last().map_or(1.0, |last| *last as f64 + 1.0));
        if numbers.is_empty() { 0.0 } else { count * (2.0 + (below / count).log2()) / 8.0 }
    }

    fn holds(numbers: &[u64]) {
        let bytes = SparseSet::encode(numbers);
        let set = SparseSet::parse(&bytes).unwrap();
        assert_eq!(set.len(), numbers.len() as u64);
        assert!(set.iter().eq(numbers.iter().copied()));
        assert!(bytes.len() as f64 <= bound_bytes(numbers) + 32.0, "{} bytes for {}", bytes.len(), numbers.len());
        for number in numbers {
            for near in [number.wrapping_sub(1), *number, number.wrapping_add(1)] {
                assert_eq!(set.contains(near), numbers.binary_search(&near).is_ok(), "{near}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn sets_come_back_within_the_bound(numbers in numbers()) {
            holds(&numbers);
        }

        #[test]
        fn any_bit_flipped_is_another_set_or_none(numbers in numbers()) {
            let bytes = SparseSet::encode(&numbers);
            for bit in 0..bytes.len() * 8 {
                let mut other = bytes.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                if let Ok(set) = SparseSet::parse(&other) {
                    let found: Vec<u64> = set.iter().collect();
                    prop_assert_ne!(&found, &numbers);
                    prop_assert_eq!(SparseSet::encode(&found), other);
                }
            }
        }

        #[test]
        fn what_parses_is_written_in_the_same_way(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(set) = SparseSet::parse(&bytes) {
                prop_assert_eq!(SparseSet::encode(&set.iter().collect::<Vec<_>>()), bytes);
            }
        }
    }

    #[test]
    fn sets_at_the_edges_come_back() {
        for numbers in
            [&[][..], &[0], &[u64::MAX], &[0, u64::MAX], &[0, 1, u64::MAX], &[0, u64::MAX - 1, u64::MAX], &[7, 8]]
        {
            holds(numbers);
        }
        holds(&(0..20_000).collect::<Vec<_>>());
        holds(&(0..20_000).map(|n| n * 10 + n % 7).collect::<Vec<_>>());
        holds(&(0..1000).map(|n| n * n * n).collect::<Vec<_>>());
    }

    #[test]
    fn the_vector_of_the_specification() {
        let bytes = SparseSet::encode(&[3, 5, 1000, 1001, 4000]);
        assert_eq!(bytes, [5, 3, 0x9d, 0x1f, 0x03, 0x28, 0x3e, 0x00]);
    }

    #[test]
    fn counts_that_cannot_be_are_refused() {
        // 2^56 numbers in four bytes; two of them where one fits; a first one beyond all numbers.
        assert!(SparseSet::parse(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0, 9, 1]).is_err());
        assert!(SparseSet::parse(&[2, 0, 0]).is_err());
        assert!(SparseSet::parse(&[2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1]).is_err());
        assert!(SparseSet::parse(&[0, 0]).is_err(), "bytes after the end");
        assert!(SparseSet::parse(&[]).is_err());
    }
}
