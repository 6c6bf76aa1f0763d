//! Numbers under pads that cancel out where rows follow one another (Seabed's ASHE: Papadimitriou and others, "Big Data Analytics over
//! Encrypted Datasets with Seabed", 2016).
//!
//! ```text
//! c(row) = value + F(row + 1) - F(row)        modulo 2^64, or 2^128 for wide numbers
//! F(at)  = half (at mod 2) of AES-256(key of column, part, replica set and epoch; 0 u64 | floor(at / 2) u64)
//!          wide: all of AES-256(the same; 1 u64 | at u64)
//! sum of c over the rows from a until b = their sum + F(b) - F(a)
//! ```
//! 1. A row's number belongs to one value for ever and the key to one epoch: each difference of pads hides one value, and whoever holds
//!    all of them learns nothing of any. A second value under one row shows the difference of the two; so [`Pads::seal`] is given rows
//!    that were never used, and a retry the same values.
//! 2. One provider adds up alone, as fast as plain numbers; the owner works out two pads for each stretch of rows.
//! 3. Whoever holds codes can change them, and a sum by adding to it: it is `unverified`, unless others who hold the same say the same.
//! 4. Rows times the declared magnitude fit with two spare bits: a sum that leaves what so many rows can have is an error.
//!
//! At rest nothing is learned; a question shows which rows it adds up.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use aes::Aes256;
use aes::cipher::consts::U16;
use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};
use zeroize::Zeroize;

use crate::keys::Secret;

/// Bits of a sum that no sum fills.
const SPARE_BITS: u32 = 2;
/// Blocks that the cipher is given at once.
const BLOCKS: usize = 64;

/// What codes are numbers of: `u64`, or `u128` for wide numbers.
pub trait Word: Copy + Zeroize + sealed::Pad {}

impl Word for u64 {}
impl Word for u128 {}

mod sealed {
    /// How a width is padded.
    pub trait Pad: Sized {
        /// Bits of a code.
        const BITS: u32;
        /// Pads in a block.
        const IN_BLOCK: u64;
        /// What tells the blocks of this width from those of the other.
        const KIND: u64;
        /// A pad of a block.
        fn pad(block: u128, at: u64) -> Self;
        /// A code of a number that fits.
        fn of(number: i128) -> Self;
        /// The number that is nearest to nought.
        fn number(self) -> i128;
        /// Modulo the width.
        fn plus(self, other: Self) -> Self;
        /// Modulo the width.
        fn minus(self, other: Self) -> Self;
    }
}

impl sealed::Pad for u64 {
    const BITS: u32 = 64;
    const IN_BLOCK: u64 = 2;
    const KIND: u64 = 0;

    fn pad(block: u128, at: u64) -> Self {
        if at.is_multiple_of(2) { (block >> 64) as u64 } else { block as u64 }
    }

    fn of(number: i128) -> Self {
        number as u64
    }

    fn number(self) -> i128 {
        i128::from(self as i64)
    }

    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

impl sealed::Pad for u128 {
    const BITS: u32 = 128;
    const IN_BLOCK: u64 = 1;
    const KIND: u64 = 1;

    fn pad(block: u128, _: u64) -> Self {
        block
    }

    fn of(number: i128) -> Self {
        number as u128
    }

    fn number(self) -> i128 {
        self as i128
    }

    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

/// Why values or sums are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unpadded {
    /// A value with more bits of magnitude than were declared.
    Magnitude {
        /// How many were declared.
        bits: u32,
    },
    /// Rows that are beyond the last one there can be.
    Rows,
    /// Rows that do not ascend, or stretches that are empty or overlap: each row is added once.
    Order,
    /// More rows than were declared.
    TooMany {
        /// How many.
        rows: u64,
        /// How many there may be.
        most: u64,
    },
    /// A sum that so many values of the declared size cannot have: it is not of these rows, or somebody changed it.
    Sum,
}

/// What codes and opens the numbers of one part of a column, in one epoch.
pub struct Pads<W: Word> {
    cipher: Aes256,
    magnitude_bits: u32,
    rows_max: u64,
    width: PhantomData<W>,
}

impl<W: Word> Pads<W> {
    /// Under a key, for values of so many bits of magnitude, in so many rows at most; none: sums have no room with two spare bits. Wide
    /// ones have, or limbs, each a part with a key of its own.
    #[must_use]
    pub fn new(key: &Secret, magnitude_bits: u32, rows_max: u64) -> Option<Self> {
        let row_bits = u64::BITS - rows_max.max(1).saturating_sub(1).leading_zeros();
        let needed = magnitude_bits.checked_add(1 + row_bits + SPARE_BITS)?;
        let cipher = Aes256::new(&Array(*key.expose()));
        (needed <= W::BITS).then_some(Self { cipher, magnitude_bits, rows_max, width: PhantomData })
    }

    /// Appends the codes of rows that follow one another from `first` on.
    ///
    /// # Errors
    /// [`Unpadded::Magnitude`], [`Unpadded::Rows`]; nothing is appended.
    pub fn seal(&self, first: u64, values: &[i128], codes: &mut Vec<W>) -> Result<(), Unpadded> {
        if values.iter().any(|value| value.unsigned_abs() >> self.magnitude_bits > 0) {
            return Err(Unpadded::Magnitude { bits: self.magnitude_bits });
        }
        let start = codes.len();
        self.differences(first, values.len(), codes)?;
        codes[start..].iter_mut().zip(values).for_each(|(code, value)| *code = code.plus(W::of(*value)));
        Ok(())
    }

    /// The values of rows that follow one another from `first` on.
    ///
    /// # Errors
    /// [`Unpadded::Sum`]: a code is none of such a value; [`Unpadded::Rows`].
    pub fn open(&self, first: u64, codes: &[W]) -> Result<Vec<i128>, Unpadded> {
        let mut pads = Vec::new();
        self.differences(first, codes.len(), &mut pads)?;
        let values = codes.iter().zip(&pads).map(|(code, pad)| self.checked(code.minus(*pad), 1)).collect();
        pads.zeroize();
        values
    }

    /// The sum of the values of rows, given the sum of their codes. Of stretches of rows, ascending; each costs two pads.
    ///
    /// # Errors
    /// [`Unpadded`].
    pub fn open_sum(&self, sum: W, rows: &[Range<u64>]) -> Result<i128, Unpadded> {
        let (mut opened, mut count, mut end) = (sum, 0_u64, None);
        for stretch in rows {
            if stretch.is_empty() || end.is_some_and(|end| stretch.start < end) {
                return Err(Unpadded::Order);
            }
            end = Some(stretch.end);
            // Stretches do not overlap: all of them together are not more than there are numbers.
            count += stretch.end - stretch.start;
            opened = opened.minus(self.pad(stretch.end)).plus(self.pad(stretch.start));
        }
        if count > self.rows_max {
            return Err(Unpadded::TooMany { rows: count, most: self.rows_max });
        }
        self.checked(opened, count)
    }

    fn checked(&self, opened: W, rows: u64) -> Result<i128, Unpadded> {
        let number = opened.number();
        // Of so many rows there is room for their most: it was declared so.
        let most = ((1_u128 << self.magnitude_bits) - 1) * u128::from(rows);
        if number.unsigned_abs() <= most { Ok(number) } else { Err(Unpadded::Sum) }
    }

    fn pad(&self, at: u64) -> W {
        let mut block = block::<W>(at / W::IN_BLOCK);
        self.cipher.encrypt_block(&mut block);
        W::pad(u128::from_be_bytes(block.0), at)
    }

    /// Appends what is between the pads of rows and of those behind them.
    fn differences(&self, first: u64, count: usize, to: &mut Vec<W>) -> Result<(), Unpadded> {
        let end = u64::try_from(count).ok().and_then(|count| first.checked_add(count)).ok_or(Unpadded::Rows)?;
        to.reserve(count);
        let (mut blocks, mut before, mut at) = ([Array([0; 16]); BLOCKS], self.pad(first), first);
        while at < end {
            let next = (at + 1) / W::IN_BLOCK;
            blocks.iter_mut().enumerate().for_each(|(own, to)| *to = block::<W>(next.wrapping_add(own as u64)));
            self.cipher.encrypt_blocks(&mut blocks);
            let beyond = next.checked_add(BLOCKS as u64).and_then(|next| next.checked_mul(W::IN_BLOCK));
            let until = beyond.map_or(end, |beyond| end.min(beyond - 1));
            for own in at..until {
                let own = own + 1;
                let pad = W::pad(u128::from_be_bytes(blocks[(own / W::IN_BLOCK - next) as usize].0), own);
                to.push(pad.minus(before));
                before = pad;
            }
            at = until;
        }
        blocks.iter_mut().for_each(|block| block.0.zeroize());
        Ok(())
    }
}

fn block<W: Word>(at: u64) -> Array<u8, U16> {
    Array((u128::from(W::KIND) << 64 | u128::from(at)).to_be_bytes())
}

/// What a provider does: the sum of codes.
#[must_use]
pub fn add<W: Word>(codes: &[W]) -> W {
    codes.iter().fold(W::of(0), |sum, code| sum.plus(*code))
}

/// The stretches of rows that ascend.
///
/// # Errors
/// [`Unpadded::Order`]: one does not come behind the one before it; [`Unpadded::Rows`]: the last number has none behind it.
pub fn stretches(rows: impl IntoIterator<Item = u64>) -> Result<Vec<Range<u64>>, Unpadded> {
    let mut stretches: Vec<Range<u64>> = Vec::new();
    for row in rows {
        let end = row.checked_add(1).ok_or(Unpadded::Rows)?;
        match stretches.last_mut() {
            Some(last) if row < last.end => return Err(Unpadded::Order),
            Some(last) if row == last.end => last.end = end,
            _ => stretches.push(row..end),
        }
    }
    Ok(stretches)
}

impl fmt::Display for Unpadded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magnitude { bits } => write!(f, "a value with more than {bits} bits, which is what was declared"),
            Self::Rows => f.write_str("rows beyond the last number that a row can have"),
            Self::Order => f.write_str("rows that do not ascend: each is added once"),
            Self::TooMany { rows, most } => {
                write!(f, "a sum of {rows} rows, where {most} have room: add up fewer, or declare more rows")
            }
            Self::Sum => f.write_str("a sum that so many values of the declared size cannot have"),
        }
    }
}

impl std::error::Error for Unpadded {}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)] // one stretch of rows is a range
mod tests {
    use proptest::prelude::*;

    use super::{Pads, Unpadded, Word, add, stretches};
    use crate::keys::Secret;

    fn pads<W: Word>(bits: u32, rows_max: u64) -> Pads<W> {
        Pads::new(&Secret::new([31; 32]), bits, rows_max).expect("room")
    }

    fn comes_back<W: Word + PartialEq + std::fmt::Debug>(bits: u32, first: u64, values: &[i128], chosen: &[bool]) {
        let pads = pads::<W>(bits, 1 << 20);
        let mut codes = Vec::new();
        pads.seal(first, values, &mut codes).expect("values");
        assert_eq!(pads.open(first, &codes).as_deref(), Ok(values));
        // In two parts they are the same.
        let (left, right) = values.split_at(values.len() / 3);
        let mut parts = Vec::new();
        pads.seal(first, left, &mut parts).expect("values");
        pads.seal(first + left.len() as u64, right, &mut parts).expect("values");
        assert_eq!(parts, codes);
        let picked: Vec<usize> = (0..values.len()).filter(|at| chosen[at % chosen.len()]).collect();
        let sum = add(&picked.iter().map(|at| codes[*at]).collect::<Vec<W>>());
        let rows = stretches(picked.iter().map(|at| first + *at as u64)).expect("ascending rows");
        assert_eq!(pads.open_sum(sum, &rows), Ok(picked.iter().map(|at| values[*at]).sum()));
    }

    proptest! {
        #[test]
        fn values_and_sums_of_any_rows_come_back(
            values in prop::collection::vec(-(1_i128 << 40) + 1..1 << 40, 0..300),
            first in prop_oneof![0..1000_u64, any::<u64>().prop_map(|first| first - first.min(1000))],
            chosen in prop::collection::vec(any::<bool>(), 1..50),
        ) {
            comes_back::<u64>(40, first, &values, &chosen);
            comes_back::<u128>(40, first, &values, &chosen);
            let wide: Vec<i128> = values.iter().map(|value| value << 60).collect();
            comes_back::<u128>(100, first, &wide, &chosen);
        }

        #[test]
        fn no_sum_of_what_was_declared_is_refused(bits in 0_u32..=42, negative in any::<bool>()) {
            // The most that there can be: all rows, each with the greatest magnitude.
            let rows = 100;
            let pads = pads::<u64>(bits, rows);
            let most = if negative { -((1_i128 << bits) - 1) } else { (1 << bits) - 1 };
            let mut codes = Vec::new();
            pads.seal(5, &vec![most; rows as usize], &mut codes).expect("values");
            prop_assert_eq!(pads.open_sum(add(&codes), &[5..5 + rows]), Ok(most * i128::from(rows)));
        }

        #[test]
        fn noise_is_told_or_a_sum_that_could_be(sum in any::<u64>(), bounds in prop::collection::vec(any::<u64>(), 0..8)) {
            let rows: Vec<_> = bounds.chunks_exact(2).map(|pair| pair[0]..pair[1]).collect();
            if let Ok(sum) = pads::<u64>(10, 1 << 50).open_sum(sum, &rows) {
                prop_assert!(sum.unsigned_abs() < 1 << 61);
            }
        }
    }

    #[test]
    fn pads_are_different_for_each_row_width_and_key() {
        let mut codes = Vec::new();
        pads::<u64>(1, 1).seal(0, &[0; 1000], &mut codes).expect("values");
        let mut others = Vec::new();
        Pads::<u64>::new(&Secret::new([32; 32]), 1, 1).expect("room").seal(0, &[0; 1000], &mut others).expect("values");
        let mut wide: Vec<u128> = Vec::new();
        pads::<u128>(1, 1).seal(0, &[0; 1000], &mut wide).expect("values");
        codes.extend(others);
        codes.extend(wide.iter().flat_map(|code| [*code as u64, (*code >> 64) as u64]));
        let mut different = codes.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), codes.len());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let key = Secret::new([31; 32]);
        assert!(Pads::<u64>::new(&key, 64, 1).is_none());
        assert!(Pads::<u64>::new(&key, 36, 1 << 25).is_some());
        assert!(Pads::<u64>::new(&key, 37, 1 << 25).is_none());
        assert!(Pads::<u128>::new(&key, 100, 1 << 25).is_some());
        assert!(Pads::<u128>::new(&key, u32::MAX, u64::MAX).is_none());
        let (pads, mut codes) = (pads::<u64>(10, 4), Vec::new());
        for value in [1024, -1024, i128::MAX, i128::MIN] {
            assert_eq!(pads.seal(0, &[value], &mut codes), Err(Unpadded::Magnitude { bits: 10 }));
        }
        assert_eq!(pads.seal(u64::MAX - 1, &[1; 2], &mut codes), Err(Unpadded::Rows));
        assert!(codes.is_empty());
        pads.seal(u64::MAX - 2, &[1; 2], &mut codes).expect("the last rows");
        assert_eq!(pads.open_sum(add(&codes), &[u64::MAX - 2..u64::MAX]), Ok(2));
        assert_eq!(stretches([3, 4, 9]), Ok(vec![3..5, 9..10]));
        assert_eq!(stretches([3, 3]), Err(Unpadded::Order));
        assert_eq!(stretches([u64::MAX]), Err(Unpadded::Rows));
        assert_eq!(pads.open_sum(0, &[0..5]), Err(Unpadded::TooMany { rows: 5, most: 4 }));
        #[allow(clippy::reversed_empty_ranges)]
        for rows in [&[0..2, 1..3][..], &[2..3, 0..1], &[1..1], &[5..1], &[0..1, 0..1]] {
            assert_eq!(pads.open_sum(0, rows), Err(Unpadded::Order));
        }
        assert_eq!(pads.open_sum(0, &[]), Ok(0));
    }

    #[test]
    fn a_sum_of_other_rows_is_told() {
        let (pads, mut codes) = (pads::<u64>(20, 1 << 20), Vec::new());
        pads.seal(0, &[7; 1000], &mut codes).expect("values");
        let sum = add(&codes);
        assert_eq!(pads.open_sum(sum, &[0..1000]), Ok(7000));
        for rows in [0..999, 1..1000, 1..1001] {
            assert_eq!(pads.open_sum(sum, &[rows]), Err(Unpadded::Sum));
        }
        assert_eq!(pads.open_sum(sum ^ 1 << 63, &[0..1000]), Err(Unpadded::Sum));
        assert_eq!(pads.open(0, &[codes[1]]), Err(Unpadded::Sum));
    }
}
