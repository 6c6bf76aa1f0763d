//! Several numbers in one, side by side in slots that their sums do not leave.
//!
//! ```text
//! slot = 2 spare bits | bits of the additions | 1 + bits of a magnitude            the number in it: value + 2^(bits of a magnitude)
//! number = slot 0 + slot 1 2^(bits of a slot) + ...
//! ```
//! 1. What is added to each value makes all slots positive, so that none borrows from its neighbour; it is taken away again as often as
//!    there were additions.
//! 2. A slot that says less or more than so many additions can is told: no wrong sum comes out of it, and no other slot's either.
//! 3. A slot that is not filled, or NULL, holds nought. How many values are not NULL is a sum of its own.

use zeroize::Zeroizing;

use super::Unusable;
use super::digits::Limbs;

/// Bits of a slot that no sum fills.
const SPARE_BITS: u32 = 2;

/// How values of a column share a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    magnitude_bits: u32,
    additions_max: u64,
    slot_bits: u32,
    count: usize,
}

impl Slots {
    /// For values of so many bits of magnitude, added up so many times at most, in numbers below a key of so many bits; none: a slot
    /// would have more than 126 bits. Values of more are cut into limbs, a column each.
    #[must_use]
    pub fn new(magnitude_bits: u32, additions_max: u64, key_bits: usize) -> Option<Self> {
        let addition_bits = u64::BITS - additions_max.max(1).saturating_sub(1).leading_zeros();
        let slot_bits = magnitude_bits.checked_add(1 + addition_bits + SPARE_BITS).filter(|bits| *bits <= 126)?;
        // The highest slot stays below a half of n.
        let count = key_bits.checked_sub(2)? / slot_bits as usize;
        (count > 0).then_some(Self { magnitude_bits, additions_max: additions_max.max(1), slot_bits, count })
    }

    /// How many values a number holds.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// How often such numbers may be added up.
    #[must_use]
    pub fn additions_max(&self) -> u64 {
        self.additions_max
    }

    /// The number of some values, in so many limbs.
    pub(super) fn pack(&self, values: &[i128], limbs: usize) -> Result<Limbs, Unusable> {
        if values.len() > self.count {
            return Err(Unusable::Slots { values: values.len(), slots: self.count });
        }
        let mut packed = Zeroizing::new(vec![0; limbs]);
        let nothing = std::iter::repeat(&0);
        for (slot, value) in values.iter().chain(nothing).take(self.count).enumerate() {
            if value.unsigned_abs() >> self.magnitude_bits > 0 {
                return Err(Unusable::Magnitude { bits: self.magnitude_bits });
            }
            let in_slot = (value + (1 << self.magnitude_bits)) as u128;
            let (limb, shift) = self.place(slot);
            for (to, part) in packed[limb..].iter_mut().zip(parts(in_slot, shift)) {
                *to |= part;
            }
        }
        Ok(packed)
    }

    /// The values, or their sums, that are in a number that so many are added up in.
    pub(super) fn unpack(&self, packed: &[u64], additions: u64) -> Result<Vec<i128>, Unusable> {
        if additions > self.additions_max {
            return Err(Unusable::Additions { additions, most: self.additions_max });
        }
        let times = i128::from(additions);
        let most = (1 << self.magnitude_bits) - 1;
        let sum = |slot| {
            let sum = self.read(packed, slot) as i128 - (times << self.magnitude_bits);
            if (-most * times..=most * times).contains(&sum) { Ok(sum) } else { Err(Unusable::Sum) }
        };
        let sums = (0..self.count).map(sum).collect::<Result<Vec<i128>, Unusable>>()?;
        // Nothing is above the last slot.
        let (limb, shift) = self.place(self.count);
        let above = packed.get(limb).map_or(0, |limb| limb >> shift)
            | packed.iter().skip(limb + 1).fold(0, |all, limb| all | limb);
        if above == 0 { Ok(sums) } else { Err(Unusable::Sum) }
    }

    fn place(&self, slot: usize) -> (usize, u32) {
        let bit = slot * self.slot_bits as usize;
        (bit / 64, (bit % 64) as u32)
    }

    fn read(&self, packed: &[u64], slot: usize) -> u128 {
        let (limb, shift) = self.place(slot);
        let at = |next| packed.get(limb + next).map_or(0, |limb| u128::from(*limb));
        let low = (at(0) | at(1) << 64) >> shift;
        let high = if shift == 0 { 0 } else { at(2) << (128 - shift) };
        (low | high) & ((1 << self.slot_bits) - 1)
    }
}

/// A slot's number at a place in a limb, cut into the three limbs that it may reach into.
fn parts(number: u128, shift: u32) -> [u64; 3] {
    let low = number << shift;
    let high = if shift == 0 { 0 } else { number >> (128 - shift) };
    [low as u64, (low >> 64) as u64, high as u64]
}
