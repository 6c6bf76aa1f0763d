//! Arithmetic on numbers of 128 bits. A division of such numbers is a loop of 800 bytes of code on a small processor, wherever it
//! stands: it stands here alone.

/// `number` divided by `by`, which is not zero.
#[inline(never)]
pub(crate) fn quotient(number: u128, by: u64) -> u128 {
    number / u128::from(by)
}

/// The same for a number that may be negative: rounded to zero.
pub(crate) fn signed_quotient(number: i128, by: u64) -> i128 {
    let size = quotient(number.unsigned_abs(), by) as i128;
    if number < 0 { size.wrapping_neg() } else { size }
}

/// `bytes * part / whole`, if it is no larger than a number of 64 bits.
pub(crate) fn share(bytes: u64, part: u64, whole: u64) -> Option<u64> {
    u64::try_from(quotient(u128::from(bytes) * u128::from(part), whole.max(1))).ok()
}

/// Ten to the power of so many digits, up to 38 of them.
#[inline(never)]
pub(crate) fn power_of_ten(digits: u8) -> Option<i128> {
    (0..digits).try_fold(1_i128, |power, _| power.checked_mul(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_here_alone_is_what_the_language_has() {
        let numbers = [0, 1, 7, -1, -7, 1 << 70, -(1 << 70), i128::MAX, i128::MIN, i128::MIN + 1];
        for number in numbers {
            for by in [1, 2, 10, 1 << 40, u64::MAX] {
                assert_eq!(signed_quotient(number, by), number / i128::from(by), "{number} / {by}");
            }
        }
        assert!((0..=38).all(|digits: u8| power_of_ten(digits) == 10_i128.checked_pow(digits.into())));
        assert_eq!(power_of_ten(39), None);
        assert_eq!(share(u64::MAX, 3, 6), Some(u64::MAX / 2));
        assert_eq!((share(u64::MAX, 3, 2), share(5, 4, 0)), (None, Some(20)));
    }
}
