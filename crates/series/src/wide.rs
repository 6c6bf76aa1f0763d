//! Sums without rounding: an integer of 126 bits times a power of two.
//!
//! Doubles added one by one are rounded at each step, so their sum hangs on the order in which they come, and summaries of parts
//! added up would be another number than the sum of the points. Here a sum is exact as long as what is added lies within 126
//! binary places, which sensors do; beyond that the lowest bits are rounded off, 2^-126 of the greatest partial sum each time.
//!
//! 1. The mantissa is below 2^126 in magnitude; it is odd, or zero with the exponent zero: equal sums have equal bytes.

/// Bits that a mantissa has at most.
const BITS: u32 = 126;
/// The exponent of the lowest bit that a double can have.
const LOWEST: i32 = -1074;
/// And of any sum: a double's highest bit, times 2^64, times as many as there may be.
const HIGHEST: i32 = 1200;

/// A sum of finite numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wide {
    mantissa: i128,
    exponent: i32,
}

/// The mantissa and the exponent of a finite double.
pub(crate) fn parts(value: f64) -> (i64, i32) {
    let bits = value.to_bits();
    let (raised, fraction) = ((bits >> 52 & 0x7FF) as i32, (bits & ((1 << 52) - 1)) as i64);
    let (mantissa, exponent) = if raised == 0 { (fraction, LOWEST) } else { (fraction | 1 << 52, raised - 1075) };
    (if value.is_sign_negative() { -mantissa } else { mantissa }, exponent)
}

impl Wide {
    /// An integer times a power of two.
    pub(crate) fn new(mantissa: i128, exponent: i32) -> Wide {
        if mantissa == 0 {
            return Wide::default();
        }
        let (mut mantissa, mut exponent) = (mantissa, exponent);
        if mantissa.unsigned_abs() >> BITS != 0 {
            let over = 128 - mantissa.unsigned_abs().leading_zeros() - BITS;
            (mantissa, exponent) = (rounded(mantissa, over), exponent + over as i32);
        }
        let zeros = mantissa.trailing_zeros();
        Wide { mantissa: mantissa >> zeros, exponent: exponent + zeros as i32 }
    }

    /// What was stored; none if it is no sum.
    pub(crate) fn stored(mantissa: i128, exponent: i64) -> Option<Wide> {
        let exponent = i32::try_from(exponent).ok().filter(|exponent| (LOWEST..=HIGHEST).contains(exponent))?;
        let wide = Wide { mantissa, exponent };
        let fits = mantissa.unsigned_abs() >> BITS == 0;
        let is_normal = if mantissa == 0 { exponent == 0 } else { mantissa & 1 == 1 };
        (fits && is_normal).then_some(wide)
    }

    pub(crate) fn mantissa(&self) -> i128 {
        self.mantissa
    }

    pub(crate) fn exponent(&self) -> i32 {
        self.exponent
    }

    /// The sum of both.
    pub(crate) fn plus(self, other: Wide) -> Wide {
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        if high.mantissa == 0 {
            return low;
        }
        let shift = (high.exponent - low.exponent) as u32;
        // Two summands below 2^126 are below 2^127 together.
        let room = high.mantissa.unsigned_abs().leading_zeros() - (128 - BITS);
        if shift <= room {
            return Wide::new((high.mantissa << shift) + low.mantissa, low.exponent);
        }
        let lost = shift - room;
        Wide::new((high.mantissa << room) + rounded(low.mantissa, lost), low.exponent + lost as i32)
    }

    /// The double that is nearest, of two the even one.
    pub(crate) fn nearest(self) -> f64 {
        // All that is added is a whole multiple of the least double, so what is below the normal ones is not rounded here.
        let (one, other) = match self.exponent {
            low @ ..-1022 => (-1022, low + 1022),
            high @ 1024.. => (1023, high - 1023),
            within => (within, 0),
        };
        self.mantissa as f64 * power(one) * power(other)
    }
}

/// A sum in the making: as [`Wide`], but for many summands of about the same size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Adder {
    mantissa: i128,
    exponent: i32,
}

impl Adder {
    /// Adds an integer below 2^118 times a power of two.
    pub(crate) fn add(&mut self, mantissa: i128, exponent: i32) {
        // Values of one sensor have exponents that are near: nothing is done but a shift and a sum.
        let shift = exponent.wrapping_sub(self.exponent) as u32;
        if shift <= 8 && is_below(self.mantissa, 124) && is_below(mantissa, 116) {
            self.mantissa += mantissa << shift;
        } else if mantissa != 0 {
            self.add_far(mantissa, exponent);
        }
    }

    #[cold]
    fn add_far(&mut self, mantissa: i128, exponent: i32) {
        let below = self.exponent - exponent;
        if self.mantissa == 0 {
            self.exponent = exponent;
        } else if below > 0 && below < self.room() {
            (self.mantissa, self.exponent) = (self.mantissa << below, exponent);
        }
        let shift = exponent - self.exponent;
        let summand_room = mantissa.unsigned_abs().leading_zeros() as i32 - 3;
        if (0..=summand_room).contains(&shift) && self.room() > 0 {
            self.mantissa += mantissa << shift;
        } else {
            let wide = self.wide().plus(Wide::new(mantissa, exponent));
            *self = Adder { mantissa: wide.mantissa, exponent: wide.exponent };
        }
    }

    /// How many bits it may be shifted and still take a summand.
    fn room(&self) -> i32 {
        self.mantissa.unsigned_abs().leading_zeros() as i32 - 3
    }

    pub(crate) fn wide(&self) -> Wide {
        Wide::new(self.mantissa, self.exponent)
    }
}

/// Whether an integer is below a power of two in magnitude, one from 65 on.
fn is_below(mantissa: i128, power: u32) -> bool {
    let high = (mantissa >> 64) as i64;
    (high ^ high >> 63) >> (power - 64) == 0
}

/// Shifts right, rounding to the nearest.
fn rounded(mantissa: i128, by: u32) -> i128 {
    match by {
        0 => mantissa,
        1..=126 => (mantissa >> by) + (mantissa >> (by - 1) & 1),
        _ => 0,
    }
}

/// 2 to a power from -1022 to 1023.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent.clamp(-1022, 1023) + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn of(value: f64) -> Wide {
        let (mantissa, exponent) = parts(value);
        Wide::new(mantissa.into(), exponent)
    }

    fn sum(values: &[f64]) -> Wide {
        values.iter().fold(Wide::default(), |sum, value| sum.plus(of(*value)))
    }

    fn added(values: &[f64]) -> Wide {
        let mut adder = Adder::default();
        values.iter().map(|value| parts(*value)).for_each(|(mantissa, exponent)| adder.add(mantissa.into(), exponent));
        adder.wide()
    }

    #[test]
    fn what_doubles_lose_is_kept() {
        assert_eq!(sum(&[1e16, 1.0, -1e16]).nearest(), 1.0);
        assert_eq!(sum(&[0.1; 10]).nearest(), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).nearest(), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).nearest(), f64::INFINITY);
        assert_eq!(sum(&[5e-324, 5e-324, -0.0]).nearest(), 1e-323);
        assert_eq!(sum(&[1e300, 1e-300, -1e300]).nearest(), 0.0, "too far apart for 126 bits");
        assert_eq!(sum(&[]), Wide::default());
    }

    #[test]
    fn only_sums_are_taken_for_sums() {
        for (mantissa, exponent) in
            [(2, 0), (0, 1), (1 << 126, 0), (i128::MIN, 0), (1, -1075), (1, 1201), (1, i64::MAX)]
        {
            assert_eq!(Wide::stored(mantissa, exponent), None);
        }
        let (mantissa, exponent) = (sum(&[0.1, 7.0]).mantissa(), sum(&[0.1, 7.0]).exponent());
        assert_eq!(Wide::stored(mantissa, exponent.into()), Some(sum(&[7.0, 0.1])));
    }

    proptest! {
        #[test]
        fn doubles_come_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(of(value).nearest(), value);
        }

        #[test]
        fn what_is_added_is_near(bits in prop::collection::vec(any::<u64>(), 0..20)) {
            let values: Vec<f64> = bits.iter().map(|bits| f64::from_bits(*bits)).filter(|value| value.is_finite()).collect();
            let most = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let (sum, added) = (sum(&values).nearest(), added(&values).nearest());
            prop_assert!(sum == added || (sum - added).abs() <= most * 1e-15);
        }

        #[test]
        fn order_is_nothing(digits in prop::collection::vec((-1_000_000_i64..1_000_000, 0_i32..7), 0..60), cut in 0_usize..60) {
            let values: Vec<f64> = digits.iter().map(|(digits, power)| *digits as f64 / [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6][*power as usize]).collect();
            let backwards: Vec<f64> = values.iter().rev().copied().collect();
            let (one, other) = values.split_at(cut.min(values.len()));
            prop_assert_eq!(sum(&values), sum(&backwards));
            prop_assert_eq!(sum(&values), added(&values));
            prop_assert_eq!(sum(&values), sum(one).plus(sum(other)));
            let plain: f64 = values.iter().sum();
            prop_assert!((sum(&values).nearest() - plain).abs() <= 1e-7);
        }
    }
}
