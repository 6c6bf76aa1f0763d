//! Sums of so many numbers that 128 bits may not hold them.
//!
//! ```text
//! length (0 to 24), so many bytes      two's complement, most significant first, in as few bytes as it takes; 0 takes none
//! ```
//! 2^64 rows of 128 bits each need 192 bits: a sum over a table's rows always fits, and is the same in whatever order it was
//! made. Whether a total fits its type is known at the end and not on the way there.

use crate::bytes::{Reader, Writer};
use crate::error::Malformed;

const BYTES: usize = 24;
const WHAT: &str = "a sum";

/// A whole number of 192 bits.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Wide {
    high: i64,
    low: u128,
}

/// Sums are made of rows' values and reach no log.
impl core::fmt::Debug for Wide {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Wide(..)")
    }
}

impl From<i128> for Wide {
    fn from(value: i128) -> Self {
        Self { high: if value < 0 { -1 } else { 0 }, low: value as u128 }
    }
}

impl Wide {
    /// The sum of both; none if 192 bits do not hold it.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (low, carry) = self.low.overflowing_add(other.low);
        // In 128 bits the high parts and a carry always fit.
        let high = i128::from(self.high) + i128::from(other.high) + i128::from(carry);
        Some(Self { high: i64::try_from(high).ok()?, low })
    }

    /// The number, if 128 bits hold it.
    #[must_use]
    pub fn to_i128(self) -> Option<i128> {
        let value = self.low as i128;
        (Self::from(value) == self).then_some(value)
    }

    fn to_be_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.high.to_be_bytes());
        bytes[8..].copy_from_slice(&self.low.to_be_bytes());
        bytes
    }

    pub(crate) fn write(self, writer: &mut Writer) {
        let bytes = self.to_be_bytes();
        let mut from = 0;
        // A byte is needless if it only repeats the sign that the next byte's top bit says; of 0 all are.
        while from < BYTES && bytes[from] == sign(bytes.get(from + 1).copied(), bytes[from]) {
            from += 1;
        }
        writer.byte((BYTES - from) as u8).raw(&bytes[from..]);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = usize::from(reader.byte()?);
        let written = reader.raw(length)?;
        let fill = if written.first().is_some_and(|first| first >> 7 == 1) { 0xff } else { 0 };
        let mut bytes = [fill; BYTES];
        bytes.get_mut(BYTES.wrapping_sub(length)..).ok_or(Malformed(WHAT))?.copy_from_slice(written);
        let (high, low) = bytes.split_at(8);
        let high = i64::from_be_bytes(high.try_into().map_err(|_| Malformed(WHAT))?);
        let low = u128::from_be_bytes(low.try_into().map_err(|_| Malformed(WHAT))?);
        let wide = Self { high, low };
        let mut again = Writer::default();
        wide.write(&mut again);
        if again.0[1..] == *written { Ok(wide) } else { Err(Malformed(WHAT)) }
    }
}

/// What a byte in front of `next` would be if it said nothing new; behind the last one, only 0 says nothing.
fn sign(next: Option<u8>, own: u8) -> u8 {
    match next {
        Some(next) if next >> 7 == 1 => 0xff,
        Some(_) => 0,
        None if own == 0 => own,
        None => !own,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::Wide;
    use crate::bytes::{Reader, Writer};

    fn bytes(wide: Wide) -> Vec<u8> {
        let mut writer = Writer::default();
        wide.write(&mut writer);
        writer.0
    }

    fn comes_back(wide: Wide) {
        let bytes = bytes(wide);
        let mut reader = Reader::new(&bytes, "test");
        assert!(Wide::read(&mut reader).expect("a sum") == wide && reader.end().is_ok());
    }

    proptest! {
        #[test]
        fn sums_are_those_of_numbers(a: i128, b in -1000i128..1000, c: i64) {
            let half = a / 2;
            let sum = Wide::from(half).checked_add(Wide::from(i128::from(c))).expect("192 bits");
            prop_assert_eq!(sum.to_i128(), Some(half + i128::from(c)));
            for value in [a, b, -b, i128::from(c)] {
                comes_back(Wide::from(value));
            }
        }

        #[test]
        fn what_parses_is_written_in_the_same_way(written in prop::collection::vec(any::<u8>(), 0..30)) {
            let mut reader = Reader::new(&written, "test");
            if let Ok(wide) = Wide::read(&mut reader) {
                prop_assert_eq!(&bytes(wide)[..], &written[..written.len() - reader.left()]);
            }
        }
    }

    #[test]
    fn a_sum_may_leave_128_bits_and_come_back() {
        for (value, back) in [(i128::MAX, i128::MIN), (i128::MIN, i128::MAX)] {
            let twice = Wide::from(value).checked_add(Wide::from(value)).expect("192 bits");
            assert_eq!(twice.to_i128(), None);
            comes_back(twice);
            let less = twice.checked_add(Wide::from(back)).expect("192 bits");
            // MIN and MAX together are -1.
            assert_eq!(less.checked_add(Wide::from(1)).expect("192 bits").to_i128(), Some(value));
        }
        let mut most = Wide::from(i128::MAX);
        let doubled = (0..200).take_while(|_| most.checked_add(most).map(|sum| most = sum).is_some()).count();
        assert_eq!(doubled, 64, "2^127 has 64 more doublings in 192 bits, less one for the sign");
    }

    #[test]
    fn the_vectors_of_the_specification() {
        for (value, written) in [
            (0, &[0][..]),
            (1, &[1, 1]),
            (-1, &[1, 0xff]),
            (127, &[1, 127]),
            (128, &[2, 0, 128]),
            (-129, &[2, 0xff, 0x7f]),
        ] {
            assert_eq!(bytes(Wide::from(value)), written, "{value}");
        }
        for wrong in [&[1, 0][..], &[2, 0, 1], &[2, 0xff, 0xff], &[25], &[24]] {
            assert!(Wide::read(&mut Reader::new(wrong, "test")).is_err(), "{wrong:?}");
        }
    }
}
