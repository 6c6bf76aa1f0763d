//! A number of which all distances between the values of a column are multiples: times in milliseconds that a column of nanoseconds
//! has, directions in tens of degrees, tenths of a degree Celsius told in hundredths of Fahrenheit.
//!
//! A value is factor * number + rest, modulo 2^64.

use alloc::vec::Vec;

use super::{Nonsense, numbers};

/// Differences of neighbours that are looked at before all values are: mostly two or three tell that there is no factor.
const SAMPLES: usize = 32;

/// A factor, and what all values leave of it.
pub(crate) struct Factor {
    factor: i64,
    rest: i64,
}

impl Factor {
    /// The greatest factor of all distances between some values; none if it is 1, or nothing that was looked at differs.
    pub(crate) fn of(values: &[i64]) -> Option<Factor> {
        let step = (values.len() / SAMPLES).max(1);
        let mut common = 0;
        for pair in values.windows(2).step_by(step) {
            common = common_factor(common, pair[0].abs_diff(pair[1]));
            if common == 1 {
                return None;
            }
        }
        let first = *values.first()?;
        let mut division = Division::by(common)?;
        for value in values {
            let distance = value.abs_diff(first);
            if !division.leaves_nothing_of(distance) {
                common = common_factor(common, distance);
                division = Division::by(common)?;
            }
        }
        let factor = i64::try_from(common).ok()?;
        Some(Factor { factor, rest: first.rem_euclid(factor) })
    }

    /// The numbers that give these values, of which it is a factor.
    pub(crate) fn divided(&self, values: &[i64]) -> Vec<i64> {
        let (Some(first), Some(division)) = (values.first(), Division::by(self.factor as u64)) else {
            return Vec::new();
        };
        let begin = first.div_euclid(self.factor);
        values.iter().map(|value| begin.wrapping_add(division.of(value.wrapping_sub(*first)))).collect()
    }

    /// Makes values of their numbers.
    pub(crate) fn multiply(&self, numbers: &mut [i64]) {
        numbers.iter_mut().for_each(|number| *number = number.wrapping_mul(self.factor).wrapping_add(self.rest));
    }

    /// Appends it.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        numbers::put(self.factor as u64, out);
        numbers::put(self.rest as u64, out);
    }

    /// Takes one off the front: it is 2 at least, and greater than the rest.
    pub(crate) fn take(bytes: &mut &[u8]) -> Result<Factor, Nonsense> {
        let mut number = || i64::try_from(numbers::take(bytes)?).map_err(|_| Nonsense);
        let (factor, rest) = (number()?, number()?);
        if factor >= 2 && rest < factor { Ok(Factor { factor, rest }) } else { Err(Nonsense) }
    }
}

/// Of two numbers of which one may be zero.
fn common_factor(one: u64, other: u64) -> u64 {
    let (mut factor, mut rest) = (one, other);
    while rest != 0 {
        (factor, rest) = (rest, factor % rest);
    }
    factor
}

/// A division that leaves nothing, as a multiplication modulo 2^64: several times as fast as the processor's (Granlund and
/// Montgomery, Division by Invariant Integers using Multiplication, section 9).
struct Division {
    /// How often the divisor can be halved.
    halves: u32,
    /// What its odd part is multiplied with to make 1.
    inverse: u64,
    /// The greatest number that there is of multiples.
    most: u64,
}

impl Division {
    /// By a number greater than 1.
    fn by(divisor: u64) -> Option<Division> {
        if divisor <= 1 {
            return None;
        }
        let halves = divisor.trailing_zeros();
        let odd = divisor >> halves;
        // Three bits of it are right at first, and twice as many each time.
        let doubled = |inverse: u64, _| inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
        Some(Division { halves, inverse: (0..5).fold(odd, doubled), most: u64::MAX / divisor })
    }

    fn leaves_nothing_of(&self, number: u64) -> bool {
        number.wrapping_mul(self.inverse).rotate_right(self.halves) <= self.most
    }

    /// What times the divisor is a multiple of it, modulo 2^64.
    fn of(&self, multiple: i64) -> i64 {
        (multiple >> self.halves).wrapping_mul(self.inverse as i64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_greatest_factor_is_found() {
        let factor_of = |values: &[i64]| Factor::of(values).map(|factor| (factor.factor, factor.rest));
        assert_eq!(factor_of(&[-3, 7, 27, -13]), Some((10, 7)));
        // What was looked at differs by 4, another one by 6.
        let mut fours: Vec<i64> = (0..1000).map(|at| at * 4).collect();
        fours[2] = 6;
        assert_eq!(factor_of(&fours), Some((2, 0)));
        fours[999] = 7;
        assert_eq!(factor_of(&fours), None);
        assert_eq!((factor_of(&[5; 9]), factor_of(&[]), factor_of(&[1])), (None, None, None));
        assert_eq!(factor_of(&[i64::MIN, i64::MAX]), None, "more than an integer has");
        assert_eq!(factor_of(&[i64::MIN, 0, i64::MIN]), None);
    }

    proptest! {
        #[test]
        fn a_division_is_that_of_the_processor(divisor in 2_u64.., number in any::<u64>(), times in any::<u64>()) {
            for divisor in [divisor, divisor >> 40 | 2, 1 << (divisor % 63 + 1)] {
                let division = Division::by(divisor).expect("greater than 1");
                prop_assert_eq!(division.leaves_nothing_of(number), number % divisor == 0);
                let multiple = times % (u64::MAX / divisor + 1) * divisor;
                prop_assert!(division.leaves_nothing_of(multiple));
                prop_assert_eq!((division.of(multiple as i64) as u64).wrapping_mul(divisor), multiple);
            }
        }

        #[test]
        fn values_come_back(factor in 2_i64.., few in 2_i64..5000, numbers in prop::collection::vec(any::<i64>(), 2..50), rest in any::<i64>()) {
            for factor in [factor, few] {
                let values: Vec<i64> = numbers.iter().map(|number| number.wrapping_mul(factor).wrapping_add(rest)).collect();
                if let Some(factor) = Factor::of(&values) {
                    let mut found = factor.divided(&values);
                    factor.multiply(&mut found);
                    prop_assert_eq!(found, values);
                }
            }
        }
    }
}
