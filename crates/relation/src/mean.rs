//! Means of NUMERIC, wherever they are worked out: the same question has one answer.

use crate::query::PRECISION_MAX;
use crate::wide::{power_of_ten, quotient, signed_quotient};

/// Digits that a mean of NUMERIC has behind the point where there is room for them, as a quotient has.
const MEAN_SCALE: u8 = 16;
/// Digits that it has more than what it is a mean of, whatever room there is.
const MEAN_DIGITS: u8 = 4;

/// How many digits a mean of such values has, and how many of them behind the point: 16, if the 38 that there are leave room for those
/// before the point, and four more than the values at least.
pub fn mean_digits(precision: u8, scale: u8) -> (u8, u8) {
    let before = precision.saturating_sub(scale);
    let room = PRECISION_MAX.saturating_sub(before);
    let behind = scale.saturating_add(MEAN_DIGITS).max(MEAN_SCALE.min(room)).min(PRECISION_MAX);
    (before.saturating_add(behind).min(PRECISION_MAX), behind)
}

/// The mean of `count` numbers with such a sum, with so many digits more behind the point, up to 18: rounded, half a digit away from zero.
/// None of no numbers, and where 128 bits do not hold it.
pub fn mean(sum: i128, count: u64, more: u8) -> Option<i128> {
    if count == 0 {
        return None;
    }
    // What is left over is less than 2^64, and so fits with its digits.
    let (power, whole) = (power_of_ten(more)?, signed_quotient(sum, count));
    let rest = sum.checked_sub(whole.checked_mul(i128::from(count))?)?;
    let digits = rest.unsigned_abs().checked_mul(power.unsigned_abs())?.checked_add(u128::from(count / 2))?;
    let digits = i128::try_from(quotient(digits, count)).ok()?;
    whole.checked_mul(power)?.checked_add(if rest < 0 { digits.checked_neg()? } else { digits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_16_digits_where_there_is_room() {
        for (kind, expected) in [
            ((9, 2), (23, 16)),
            ((38, 0), (38, 4)),
            ((38, 10), (38, 14)),
            ((30, 2), (38, 10)),
            ((20, 15), (24, 19)),
            ((38, 38), (38, 38)),
        ] {
            assert_eq!(mean_digits(kind.0, kind.1), expected, "{kind:?}");
        }
    }

    #[test]
    fn a_mean_is_rounded_to_its_last_digit() {
        for (sum, count, more, expected) in [
            (2, 3, 4, 6667),
            (-2, 3, 4, -6667),
            (1, 3, 4, 3333),
            (1, 8, 2, 13),
            (-1, 8, 2, -13),
            (7, 2, 0, 4),
            (-9, 3, 16, -30_000_000_000_000_000),
            (i128::MAX, 1, 0, i128::MAX),
            (i128::MIN, 1, 0, i128::MIN),
            (1, u64::MAX, 18, 0),
        ] {
            assert_eq!(mean(sum, count, more), Some(expected), "{sum} / {count}");
        }
        assert_eq!((mean(1, 0, 4), mean(i128::MAX, 1, 1), mean(0, 1, 39)), (None, None, None));
    }
}
