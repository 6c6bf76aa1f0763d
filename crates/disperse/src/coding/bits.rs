//! Numbers cut into fragments of bits, as the paper disperses them, with a fragment of parity: for availability, and for sums and bounds
//! from fragments. It hides nothing.
//!
//! ```text
//! number + 2^(bits - 1) = fragment 0 | fragment 1 | ...             the highest bits first, each fragment as wide or one bit less
//! parity                = the exclusive or of the codes of all fragments
//! sum of numbers        = sum over fragments of 2^(bits below it) (its sum) - rows 2^(bits - 1)
//! ```
//! 1. A fragment *is* bits of the number: whoever holds the first one has its size, and an order-preserving code of a narrow one is that
//!    one. So fragments are coded before they go anywhere, by pads, shares or cells; then what is learned is what those codings say,
//!    and cutting adds no secrecy.
//! 2. Parity is of the codes, never of the fragments: whoever held parity and all fragments but one would have that one.
//! 3. Codes that are joined by parity have one length. Any one of them that is missing is given back by all others; two are not, for which
//!    [`super::erasure`] has as many parities as are wanted.
//! 4. Of sums and numbers whose lower fragments are missing, the bounds are told (the paper's approximate answers).

use std::fmt;
use std::ops::RangeInclusive;

/// Bits of a number at most.
pub const BITS_MAX: u32 = 64;
/// Rows of a sum at most: it fits into a signed number of 128 bits.
pub const ROWS_MAX: u64 = 1 << 48;

/// How numbers are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    bits: u32,
    fragments: u32,
}

/// Why fragments or codes do not make a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsplit {
    /// A number, or a fragment, with more bits than were declared.
    Bits(u32),
    /// Other than all fragments: so many are there.
    Fragments {
        /// How many.
        there: usize,
        /// How many there are of a number.
        needed: usize,
    },
    /// A sum of more rows than there is room for.
    Rows(u64),
    /// A sum that so many fragments cannot have.
    Sum,
    /// Codes of different lengths, or none: parity is of codes of one length.
    Lengths,
    /// More than one code is missing.
    Missing(usize),
}

impl Cut {
    /// Of signed numbers of so many bits, the sign's among them, into so many fragments; none: fewer bits than fragments, or too many.
    #[must_use]
    pub fn new(bits: u32, fragments: u32) -> Option<Self> {
        (fragments > 0 && fragments <= bits && bits <= BITS_MAX).then_some(Self { bits, fragments })
    }

    /// How many fragments a number has.
    #[must_use]
    pub fn fragments(self) -> usize {
        self.fragments as usize
    }

    /// Bits of a fragment.
    #[must_use]
    pub fn width(self, fragment: usize) -> u32 {
        self.below(fragment) - self.below(fragment + 1)
    }

    /// Bits below those fragments before this one.
    fn below(self, fragment: usize) -> u32 {
        // As even as it goes: what is over is a bit more for the first ones.
        let (whole, over) = (self.bits / self.fragments, self.bits % self.fragments);
        let before = fragment as u32;
        self.bits - before * whole - before.min(over)
    }

    /// The fragments of a number, the highest bits first. They are its bits: code them.
    ///
    /// # Errors
    /// [`Unsplit::Bits`].
    pub fn cut(self, number: i128) -> Result<Vec<u64>, Unsplit> {
        let moved = number.checked_add(1 << (self.bits - 1)).and_then(|moved| u128::try_from(moved).ok());
        let moved = moved.filter(|moved| moved >> self.bits == 0).ok_or(Unsplit::Bits(self.bits))?;
        let fragment = |at| (moved >> self.below(at + 1)) as u64 & mask(self.width(at));
        Ok((0..self.fragments()).map(fragment).collect())
    }

    /// The number of all its fragments.
    ///
    /// # Errors
    /// [`Unsplit::Fragments`], [`Unsplit::Bits`].
    pub fn join(self, fragments: &[u64]) -> Result<i128, Unsplit> {
        let sums: Vec<u128> = fragments.iter().map(|fragment| u128::from(*fragment)).collect();
        let bounds = self
            .bounds(&sums, 1)
            .map_err(|error| if error == Unsplit::Sum { Unsplit::Bits(self.bits) } else { error })?;
        self.whole(fragments.len(), bounds)
    }

    /// The sum of as many rows, of the sums of all fragments.
    ///
    /// # Errors
    /// [`Unsplit::Fragments`], [`Unsplit::Sum`], [`Unsplit::Rows`].
    pub fn join_sums(self, sums: &[u128], rows: u64) -> Result<i128, Unsplit> {
        let bounds = self.bounds(sums, rows)?;
        self.whole(sums.len(), bounds)
    }

    fn whole(self, there: usize, bounds: RangeInclusive<i128>) -> Result<i128, Unsplit> {
        let needed = self.fragments();
        if there == needed { Ok(*bounds.start()) } else { Err(Unsplit::Fragments { there, needed }) }
    }

    /// Between which numbers a sum of as many rows is, of the sums of its first fragments: what is missing may be anything.
    ///
    /// # Errors
    /// [`Unsplit::Fragments`]: more than there are; [`Unsplit::Sum`], [`Unsplit::Rows`].
    pub fn bounds(self, sums: &[u128], rows: u64) -> Result<RangeInclusive<i128>, Unsplit> {
        if sums.len() > self.fragments() {
            return Err(Unsplit::Fragments { there: sums.len(), needed: self.fragments() });
        }
        if rows > ROWS_MAX {
            return Err(Unsplit::Rows(rows));
        }
        let rows = i128::from(rows);
        let mut least = -(rows << (self.bits - 1));
        for (at, sum) in sums.iter().enumerate() {
            let most = rows as u128 * u128::from(mask(self.width(at)));
            // Checked before it is moved up: what so many rows have fits, whatever the fragment.
            let sum = i128::try_from(*sum).ok().filter(|_| *sum <= most).ok_or(Unsplit::Sum)?;
            least += sum << self.below(at + 1);
        }
        let missing = rows * i128::from(mask(self.below(sums.len())));
        Ok(least..=least + missing)
    }
}

/// The parity of the codes of all fragments of a value.
///
/// # Errors
/// [`Unsplit::Lengths`].
pub fn parity(codes: &[&[u8]]) -> Result<Vec<u8>, Unsplit> {
    let (first, others) = codes.split_first().ok_or(Unsplit::Lengths)?;
    let mut parity = first.to_vec();
    for code in others {
        if code.len() != parity.len() {
            return Err(Unsplit::Lengths);
        }
        parity.iter_mut().zip(*code).for_each(|(to, own)| *to ^= own);
    }
    Ok(parity)
}

/// The one code that is missing, of all others and their parity; none: all are there. A code that is wrong makes a wrong one, which its
/// own seal tells.
///
/// # Errors
/// [`Unsplit::Missing`], [`Unsplit::Lengths`].
pub fn restored(codes: &[Option<&[u8]>], parity_code: &[u8]) -> Result<Option<Vec<u8>>, Unsplit> {
    let mut there: Vec<&[u8]> = codes.iter().flatten().copied().collect();
    there.push(parity_code);
    match codes.len() + 1 - there.len() {
        0 => Ok(None),
        1 => parity(&there).map(Some),
        missing => Err(Unsplit::Missing(missing)),
    }
}

fn mask(bits: u32) -> u64 {
    1_u64.checked_shl(bits).unwrap_or(0).wrapping_sub(1)
}

impl fmt::Display for Unsplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bits(bits) => write!(f, "a number with more than {bits} bits, which is what was declared"),
            Self::Fragments { there, needed } => write!(f, "{there} fragments, where a number has {needed}"),
            Self::Rows(rows) => write!(f, "a sum of {rows} rows, where {ROWS_MAX} have room: add up fewer"),
            Self::Sum => f.write_str("a sum that so many fragments cannot have"),
            Self::Lengths => f.write_str("codes of different lengths, of which there is no parity"),
            Self::Missing(missing) => write!(
                f,
                "{missing} codes are missing, where parity gives one back: wait for the clouds that have them"
            ),
        }
    }
}

impl std::error::Error for Unsplit {}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // one stretch of rows is a range
mod tests {
    use proptest::prelude::*;

    use super::{Cut, ROWS_MAX, Unsplit, parity, restored};
    use crate::coding::pads::{Pads, add};
    use crate::keys::Secret;

    proptest! {
        #[test]
        fn numbers_sums_and_bounds_come_of_fragments(
            numbers in prop::collection::vec(any::<i64>(), 1..40),
            bits in 1_u32..=64,
            fragments in 1_u32..9,
        ) {
            let cut = Cut::new(bits, fragments.min(bits)).expect("a cut");
            prop_assert_eq!((0..cut.fragments()).map(|at| cut.width(at)).sum::<u32>(), bits);
            let numbers: Vec<i128> = numbers.iter().map(|number| i128::from(number >> (64 - bits))).collect();
            let mut sums = vec![0_u128; cut.fragments()];
            for number in &numbers {
                let own = cut.cut(*number).expect("a number");
                prop_assert_eq!(cut.join(&own), Ok(*number));
                sums.iter_mut().zip(&own).for_each(|(sum, own)| *sum += u128::from(*own));
            }
            let (total, rows) = (numbers.iter().sum::<i128>(), numbers.len() as u64);
            prop_assert_eq!(cut.join_sums(&sums, rows), Ok(total));
            let mut width = i128::MAX;
            for first in 0..=sums.len() {
                let bounds = cut.bounds(&sums[..first], rows).expect("bounds");
                prop_assert!(bounds.contains(&total));
                prop_assert!(bounds.end() - bounds.start() <= width);
                width = bounds.end() - bounds.start();
            }
            prop_assert_eq!(width, 0);
        }

        #[test]
        fn parity_gives_any_one_code_back(codes in prop::collection::vec(any::<[u8; 9]>(), 1..6), missing in any::<prop::sample::Index>()) {
            let all: Vec<&[u8]> = codes.iter().map(|code| &code[..]).collect();
            let parity_code = parity(&all).expect("codes of one length");
            let missing = missing.index(codes.len());
            let mut there: Vec<Option<&[u8]>> = all.iter().copied().map(Some).collect();
            prop_assert_eq!(restored(&there, &parity_code), Ok(None));
            there[missing] = None;
            prop_assert_eq!(restored(&there, &parity_code), Ok(Some(codes[missing].to_vec())));
            there.push(None);
            prop_assert_eq!(restored(&there, &parity_code), Err(Unsplit::Missing(2)));
        }

        #[test]
        fn noise_is_told(sums in prop::collection::vec(any::<u128>(), 0..9), rows in any::<u64>(), bits in 0_u32..80, fragments in 0_u32..9) {
            if let Some(cut) = Cut::new(bits, fragments) {
                let _ = cut.join_sums(&sums, rows);
                let _ = cut.bounds(&sums, rows);
                let _ = cut.join(&sums.iter().map(|sum| *sum as u64).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_fragment_that_is_lost_is_given_back_under_its_pads() {
        // Two fragments of sixteen bits, each under pads of its own, and their parity at a third cloud: the second cloud is lost.
        let cut = Cut::new(16, 2).expect("a cut");
        let pads = [51, 52].map(|key| Pads::<u64>::new(&Secret::new([key; 32]), 8, 1 << 20).expect("room"));
        let numbers: [i128; 3] = [269, -4, 32_000];
        let mut codes = [Vec::new(), Vec::new()];
        for (row, number) in (0..).zip(numbers) {
            for (at, own) in cut.cut(number).expect("a number").into_iter().enumerate() {
                pads[at].seal(row, &[i128::from(own)], &mut codes[at]).expect("a value");
            }
        }
        let bytes = |codes: &[u64]| codes.iter().flat_map(|code| code.to_be_bytes()).collect::<Vec<u8>>();
        let (high, low) = (bytes(&codes[0]), bytes(&codes[1]));
        let parity_code = parity(&[&high, &low]).expect("codes of one length");
        let back = restored(&[Some(&high), None], &parity_code).expect("one is missing").expect("one is missing");
        assert_eq!(back, low);
        let low: Vec<u64> = back.as_chunks::<8>().0.iter().map(|code| u64::from_be_bytes(*code)).collect();
        let sum = |at: usize, codes: &[u64]| pads[at].open_sum(add(codes), &[0..3]).expect("a sum") as u128;
        assert_eq!(cut.join_sums(&[sum(0, &codes[0]), sum(1, &low)], 3), Ok(32_265));
        // What the first cloud alone says: within 255 a row.
        assert_eq!(cut.bounds(&[sum(0, &codes[0])], 3), Ok(32_000..=32_000 + 765));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (bits, fragments) in [(8, 0), (0, 0), (3, 4), (65, 1)] {
            assert_eq!(Cut::new(bits, fragments), None);
        }
        let cut = Cut::new(8, 2).expect("a cut");
        for number in [128, -129, i128::MAX, i128::MIN] {
            assert_eq!(cut.cut(number), Err(Unsplit::Bits(8)));
        }
        assert_eq!(cut.join(&[1]), Err(Unsplit::Fragments { there: 1, needed: 2 }));
        assert_eq!(cut.join(&[16, 0]), Err(Unsplit::Bits(8)));
        assert_eq!(cut.join_sums(&[31, 0], 2), Err(Unsplit::Sum));
        assert_eq!(cut.join_sums(&[0; 2], ROWS_MAX + 1), Err(Unsplit::Rows(ROWS_MAX + 1)));
        assert_eq!(cut.join_sums(&[0; 3], 2), Err(Unsplit::Fragments { there: 3, needed: 2 }));
        assert_eq!(parity(&[b"one", b"other"]), Err(Unsplit::Lengths));
        assert_eq!(parity(&[]), Err(Unsplit::Lengths));
        assert_eq!(restored(&[None, Some(b"one")], b"other"), Err(Unsplit::Lengths));
    }
}
