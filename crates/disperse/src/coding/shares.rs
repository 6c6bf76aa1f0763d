//! Numbers as shares: any `threshold` providers together could put them together, fewer learn nothing, and each adds up its own.
//!
//! ```text
//! share(row, limb, x) = v + a1 x + a2 x^2 + ... + a(t-1) x^(t-1)   modulo 2^61 - 1      (Shamir), x = 1, 2, ... by provider
//! ak = AES-256(key of column, limb and epoch; row u64 | k u64) modulo 2^61 - 1
//! ```
//! 1. The coefficients are pseudo-random instead of drawn. Whoever lacks the key sees what they would see of drawn ones: all that
//!    `t - 1` providers hold is independent of the values. Whoever has it gains three things: a retry sends the same bytes, one
//!    share is enough to have the value back, and a sum is checked without another column (3).
//! 2. A row's number belongs to one value for ever (an update takes another one), and keys change with the epoch: no coefficient
//!    hides two values.
//! 3. A sum of shares over rows R is a share of the sum, with coefficients `Ak = sum of ak over R` that the owner adds up alone.
//!    So each provider's answer gives a sum of its own. Of answers that are all from honest providers, all are equal. One liar
//!    among `t` or fewer is found out, since to shift all answers alike takes all of them; with an honest majority of those asked,
//!    liars are named.
//! 4. Where one share alone would give a value away (`t = 1`), all providers have `v + a1`, under one pad: then no coalition learns
//!    anything, and `a1` is used once, for one value (2).
//! 5. Numbers have as many limbs as their type and the declared number of rows need, so that no sum leaves the field:
//!    `limb bits + row bits + 2 <= 61`.

use aes::Aes256;
use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};

use crate::coding::field::Element;
use crate::keys::Secret;

/// Bits of a field's number that a sum may fill: one is for the sign, and one is spare.
const SUM_BITS: u32 = 61 - 2;

/// Blocks that the cipher is given at once: it ciphers several side by side.
const BLOCKS: usize = 64;

/// How numbers of a column are cut so that their sums fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limbs {
    /// Bits of each limb's magnitude.
    bits: u32,
    /// How many there are.
    count: u32,
}

impl Limbs {
    /// For numbers of so many bits of magnitude, in so many rows at most; none if not even one bit a limb were left.
    #[must_use]
    pub fn new(magnitude_bits: u32, rows_max: u64) -> Option<Self> {
        let row_bits = u64::BITS - rows_max.max(1).saturating_sub(1).leading_zeros();
        let most = SUM_BITS.checked_sub(row_bits).filter(|most| *most > 0)?;
        let count = magnitude_bits.max(1).div_ceil(most);
        // As even as possible: three limbs of 22 bits add up like three of 31.
        Some(Self { bits: magnitude_bits.max(1).div_ceil(count), count })
    }

    /// How many numbers of the field a value becomes.
    #[must_use]
    pub fn count(self) -> usize {
        self.count as usize
    }

    /// A limb of a number, the lowest being 0, with the number's sign; none if the number has more bits than all limbs together.
    #[must_use]
    pub fn limb(self, number: i128, limb: u8) -> Option<Element> {
        let magnitude = number.unsigned_abs();
        if magnitude.checked_shr(self.bits * self.count).is_some_and(|left| left > 0) {
            return None;
        }
        let own = magnitude.checked_shr(self.bits * u32::from(limb)).unwrap_or(0) & ((1 << self.bits) - 1);
        Some(Element::from_signed(if number < 0 { -(own as i64) } else { own as i64 }))
    }

    /// The limbs of a number, lowest first; none if it has more bits.
    #[must_use]
    pub fn cut(self, number: i128) -> Option<Vec<Element>> {
        (0..self.count as u8).map(|limb| self.limb(number, limb)).collect()
    }

    /// Whether a limb can be the sum of so many.
    #[must_use]
    pub fn can_be_sum(self, limb: Element, count: u64) -> bool {
        u128::from(limb.centred().unsigned_abs()) <= u128::from(count) * ((1 << self.bits) - 1)
    }

    /// A number, or a sum of them, from its limbs; none if it does not fit into 128 bits, which sums of honest limbs do.
    #[must_use]
    pub fn join(self, limbs: &[Element]) -> Option<i128> {
        limbs.iter().rev().try_fold(0_i128, |number, limb| {
            let shifted = number.checked_mul(1_i128.checked_shl(self.bits)?)?;
            shifted.checked_add(i128::from(limb.centred()))
        })
    }
}

/// What hides one limb of a column, in one epoch.
pub struct Coefficients {
    cipher: Aes256,
    degree: u64,
}

impl Coefficients {
    /// Those of a key, for shares of which `threshold` give a value away: one at least is needed.
    #[must_use]
    pub fn new(key: &Secret, threshold: u32) -> Self {
        debug_assert!(threshold > 0, "no share at all gives a value away");
        // What one provider has is hidden whatever others have.
        Self { cipher: Aes256::new(&Array(*key.expose())), degree: u64::from(threshold - 1).max(1) }
    }

    /// What is added to a row's value at `x`: `a1 x + a2 x^2 + ...`.
    #[must_use]
    pub fn hiding(&self, row: u64, x: Element) -> Element {
        let coefficients = (1..=self.degree).rev();
        coefficients.fold(Element::ZERO, |sum, power| (sum + self.coefficient(row, power)) * x)
    }

    fn coefficient(&self, row: u64, power: u64) -> Element {
        let mut block = block(row, power);
        self.cipher.encrypt_block(&mut block);
        Element::reduce(u128::from_be_bytes(block.0))
    }

    /// The coefficients of a sum over rows, `A1` first. The cipher is the whole cost: some nanoseconds a row.
    #[must_use]
    pub fn sums(&self, rows: impl Iterator<Item = u64>) -> Vec<Element> {
        let mut sums = vec![0_u128; self.degree as usize];
        let mut blocks = [Array([0; 16]); BLOCKS];
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let some: Vec<u64> = rows.by_ref().take(BLOCKS).collect();
            for (power, sum) in (1..).zip(&mut sums) {
                let blocks = &mut blocks[..some.len()];
                blocks.iter_mut().zip(&some).for_each(|(to, row)| *to = block(*row, power));
                self.cipher.encrypt_blocks(blocks);
                let elements = blocks.iter().map(|block| Element::reduce(u128::from_be_bytes(block.0)));
                *sum += elements.map(|element| u128::from(element.number())).sum::<u128>();
            }
        }
        sums.into_iter().map(Element::reduce).collect()
    }
}

fn block(row: u64, power: u64) -> Array<u8, aes::cipher::consts::U16> {
    Array((u128::from(row) << 64 | u128::from(power)).to_be_bytes())
}

/// What is added at `x` to a sum whose coefficients are `sums`.
#[must_use]
pub fn hiding_of(sums: &[Element], x: Element) -> Element {
    sums.iter().rev().fold(Element::ZERO, |sum, coefficient| (sum + *coefficient) * x)
}

/// The value at nought of the polynomial through `points`, which have different places: how shares are put together without
/// the key, as a coalition would.
#[must_use]
pub fn interpolate(points: &[(Element, Element)]) -> Element {
    let mut value = Element::ZERO;
    for (x, y) in points {
        let mut weight = *y;
        for (other, _) in points.iter().filter(|(other, _)| other != x) {
            let Some(inverse) = (*other - *x).inverse() else { unreachable!("different places") };
            weight = weight * *other * inverse;
        }
        value += weight;
    }
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Coefficients, Limbs, hiding_of, interpolate};
    use crate::coding::field::Element;
    use crate::keys::Secret;

    fn at(x: u64) -> Element {
        Element::reduce(u128::from(x))
    }

    proptest! {
        #[test]
        fn enough_shares_give_the_sum_and_each_gives_it_to_the_owner(
            values in prop::collection::vec(any::<i64>(), 1..80),
            threshold in 1_u32..5,
            first in any::<u64>(),
        ) {
            let limbs = Limbs::new(63 + 1, 1 << 20).expect("limbs");
            let rows: Vec<u64> = (0..values.len() as u64).map(|row| first.wrapping_add(row)).collect();
            let mut found: Vec<Vec<Element>> = Vec::new();
            for limb in 0..limbs.count() {
                let coefficients = Coefficients::new(&Secret::new([limb as u8; 32]), threshold);
                let sums = coefficients.sums(rows.iter().copied());
                let shares: Vec<(Element, Element)> = (1..=u64::from(threshold) + 1)
                    .map(|x| {
                        let shares = values.iter().zip(&rows).map(|(value, row)| {
                            limbs.cut(i128::from(*value)).expect("a value")[limb] + coefficients.hiding(*row, at(x))
                        });
                        (at(x), shares.sum())
                    })
                    .collect();
                // Under a pad, which takes the place of shares at threshold 1, the owner alone has the sum.
                let whole = match threshold {
                    1 => shares[0].1 - hiding_of(&sums, at(1)),
                    _ => interpolate(&shares[..threshold as usize]),
                };
                prop_assert!(threshold == 1 || interpolate(&shares[1..]) == whole);
                for (x, share) in &shares {
                    prop_assert_eq!(*share - hiding_of(&sums, *x), whole);
                }
                found.push(vec![whole]);
            }
            let limbs_of_sum: Vec<Element> = found.into_iter().flatten().collect();
            prop_assert_eq!(limbs.join(&limbs_of_sum), Some(values.iter().map(|value| i128::from(*value)).sum()));
        }

        #[test]
        fn no_sum_leaves_the_field(bits in 1_u32..=127, row_bits in 0_u32..40) {
            let limbs = Limbs::new(bits, 1 << row_bits).expect("limbs");
            // The most that a limb can add up to stays below half the prime, with a spare bit.
            prop_assert!(limbs.bits + row_bits <= 59);
            prop_assert!(limbs.bits * limbs.count >= bits);
            let most = i128::MAX >> (127 - bits);
            for number in [most, -most, 0, 1, -1] {
                let cut = limbs.cut(number).expect("a number of so many bits");
                prop_assert_eq!(limbs.join(&cut), Some(number));
            }
            if bits < 127 && limbs.bits * limbs.count == bits {
                prop_assert_eq!(limbs.cut(most + 1), None);
            }
        }
    }

    #[test]
    fn coefficients_differ_by_row_and_by_power() {
        let coefficients = Coefficients::new(&Secret::new([3; 32]), 3);
        let mut seen = std::collections::HashSet::new();
        for row in 0..1000 {
            for power in 1..=2 {
                assert!(seen.insert(coefficients.coefficient(row, power).number()), "row {row}");
            }
        }
        // Of a single provider, too, no two values are hidden alike.
        let pads = Coefficients::new(&Secret::new([3; 32]), 1);
        assert!((0..1000).all(|row| seen.insert(pads.hiding(row + 5000, at(1)).number())));
    }

    #[test]
    fn limbs_say_what_can_be_their_sum() {
        let limbs = Limbs::new(8, 1 << 20).expect("limbs");
        for (sum, count, can_be) in [(0, 0, true), (1, 0, false), (510, 2, true), (-510, 2, true), (511, 2, false)] {
            assert_eq!(limbs.can_be_sum(Element::from_signed(sum), count), can_be, "{sum} of {count}");
        }
        assert!(limbs.can_be_sum(Element::from_signed(i64::MAX >> 3), u64::MAX));
    }

    #[test]
    fn limbs_are_refused_where_rows_leave_no_room() {
        assert_eq!(Limbs::new(64, u64::MAX), None);
        assert_eq!(Limbs::new(34, 1 << 24).map(Limbs::count), Some(1));
        assert_eq!(Limbs::new(64, 1 << 28).map(Limbs::count), Some(3));
    }
}
