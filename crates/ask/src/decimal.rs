//! Decimal numbers as they are written, and what they are at the scale of a column, exactly.

/// A decimal number: digits without leading zeros, times a power of ten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// A number among the multiples of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scaled {
    /// This multiple.
    Exact(i128),
    /// Between this multiple and the next.
    Above(i128),
    /// Below all that an `i128` holds.
    Below,
    /// Above all that an `i128` holds.
    Beyond,
}

/// Exponents beyond it are no number of any column.
const EXPONENT_MAX: i64 = 100_000;

impl Decimal {
    /// Reads `[+-]digits[.digits][e[+-]digits]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (is_negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = || whole.bytes().chain(fraction.bytes());
        if exponent.abs() > EXPONENT_MAX || all().next().is_none() || !all().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = all().map(|byte| byte - b'0').skip_while(|digit| *digit == 0).collect();
        Some(Self { is_negative, digits, exponent: exponent - i64::try_from(fraction.len()).ok()? })
    }

    pub(crate) fn negated(self) -> Self {
        Self { is_negative: !self.is_negative, ..self }
    }

    /// As a multiple of 10^-scale.
    pub(crate) fn scaled(&self, scale: u8) -> Scaled {
        // The number of digits before the point.
        let point = self.digits.len() as i64 + self.exponent + i64::from(scale);
        let outside = if self.is_negative { Scaled::Below } else { Scaled::Beyond };
        if self.digits.is_empty() {
            return Scaled::Exact(0);
        }
        if point > 38 {
            return outside;
        }
        let point = point.max(0) as usize;
        let kept = point.min(self.digits.len());
        let digits = self.digits[..kept].iter().copied().chain(std::iter::repeat_n(0, point - kept));
        // At most 38 digits.
        let whole = digits.fold(0i128, |value, digit| value * 10 + i128::from(digit));
        let is_exact = self.digits[kept..].iter().all(|digit| *digit == 0);
        match (is_exact, self.is_negative) {
            (true, false) => Scaled::Exact(whole),
            (true, true) => Scaled::Exact(-whole),
            (false, false) => Scaled::Above(whole),
            (false, true) => Scaled::Above(-whole - 1),
        }
    }

    /// The nearest floating number; none if it is none.
    pub(crate) fn double(&self) -> Option<f64> {
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let sign = if self.is_negative { "-" } else { "" };
        let value: f64 = format!("{sign}0{digits}e{}", self.exponent).parse().ok()?;
        value.is_finite().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::{Decimal, Scaled};

    fn scaled(text: &str, scale: u8) -> Option<Scaled> {
        Decimal::parse(text).map(|decimal| decimal.scaled(scale))
    }

    #[test]
    fn decimals_are_exact_at_any_scale() {
        assert_eq!(scaled("10.005", 2), Some(Scaled::Above(1000)));
        assert_eq!(scaled("-10.005", 2), Some(Scaled::Above(-1001)));
        assert_eq!(scaled("10.0050", 3), Some(Scaled::Exact(10_005)));
        assert_eq!(scaled("-2.5", 0), Some(Scaled::Above(-3)));
        assert_eq!(scaled("1.5e3", 0), Some(Scaled::Exact(1500)));
        assert_eq!(scaled("0.00", 2), Some(Scaled::Exact(0)));
        assert_eq!(scaled("1e-50", 2), Some(Scaled::Above(0)));
        assert_eq!(scaled("-1e-50", 2), Some(Scaled::Above(-1)));
        assert_eq!(scaled("1e38", 0), Some(Scaled::Beyond));
        assert_eq!(scaled("-1e37", 2), Some(Scaled::Below));
        assert_eq!(scaled(&"9".repeat(38), 0), Some(Scaled::Exact(10i128.pow(38) - 1)));
        for none in ["", "-", ".", "1e", "1e999999", "1.2.3", "0x10", "é", "1_0", "--1"] {
            assert_eq!(scaled(none, 0), None, "{none}");
        }
        assert_eq!(Decimal::parse("0.1").and_then(|decimal| decimal.double()), Some(0.1));
        assert_eq!(Decimal::parse("1e400").and_then(|decimal| decimal.double()), None);
    }
}
