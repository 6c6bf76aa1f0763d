//! The type that fits every value of a column.
//!
//! Only what comes back counts: `007` is a text, not seven, and so are integers with more digits than BIGINT has; numbers with
//! more digits than DOUBLE PRECISION keeps are NUMERIC, if that has room for all of them. `NA` is a text unless `--null NA` was given.

use std::borrow::Cow;

use counterfoil::value::parse;

/// What a column could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inferred {
    Boolean,
    BigInt,
    Double,
    /// With so many digits behind the point: some number has more digits than a double keeps.
    Numeric(usize),
    Date,
    Timestamp,
    /// With more than six digits behind the second.
    TimestampNanoseconds,
    TimestampTz,
    Text,
}

impl Inferred {
    /// As SQL writes it.
    pub fn sql(self) -> Cow<'static, str> {
        let name = match self {
            Inferred::Numeric(scale) => return format!("NUMERIC({NUMERIC_DIGITS_MAX},{scale})").into(),
            Inferred::Boolean => "BOOLEAN",
            Inferred::BigInt => "BIGINT",
            Inferred::Double => "DOUBLE PRECISION",
            Inferred::Date => "DATE",
            Inferred::Timestamp => "TIMESTAMP",
            Inferred::TimestampNanoseconds => "TIMESTAMP(9)",
            Inferred::TimestampTz => "TIMESTAMPTZ",
            Inferred::Text => "TEXT",
        };
        name.into()
    }
}

/// What is known of a column so far.
#[derive(Debug, Clone)]
pub struct Guess {
    boolean: bool,
    integer: bool,
    double: bool,
    /// Some number loses digits as DOUBLE PRECISION.
    is_long: bool,
    numeric: Digits,
    date: bool,
    timestamp: bool,
    zoned: bool,
    nanoseconds: bool,
    any: bool,
}

/// Digits that all numbers of a column have at most, before the point and behind it; none where one has no end of them.
#[derive(Debug, Clone, Copy)]
struct Digits(Option<(usize, usize)>);

impl Default for Digits {
    fn default() -> Self {
        Self(Some((0, 0)))
    }
}

impl Digits {
    fn see(&mut self, text: &str) {
        let (Some((whole, fraction)), Some((more, behind))) = (self.0, digits(text)) else { return self.0 = None };
        self.0 = Some((whole.max(more), fraction.max(behind)));
    }

    /// Digits behind the point of the NUMERIC in which all have room.
    fn scale(self) -> Option<usize> {
        self.0.filter(|(whole, fraction)| whole + fraction <= NUMERIC_DIGITS_MAX).map(|(_, fraction)| fraction)
    }
}

/// Digits that a NUMERIC has at most.
const NUMERIC_DIGITS_MAX: usize = 38;

/// As many digits come back from DOUBLE PRECISION, whichever they are.
const DOUBLE_DIGITS: usize = 15;

/// Integers up to here are the same as DOUBLE PRECISION.
const EXACT_DOUBLE: u64 = 1 << 53;

impl Default for Guess {
    fn default() -> Self {
        Self {
            boolean: true,
            integer: true,
            double: true,
            is_long: false,
            numeric: Digits::default(),
            date: true,
            timestamp: true,
            zoned: true,
            nanoseconds: false,
            any: false,
        }
    }
}

impl Guess {
    /// Takes a value that is not NULL into account.
    pub fn see(&mut self, text: &str) {
        self.any = true;
        self.boolean = self.boolean && (text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false"));
        if self.integer || self.double {
            self.see_number(text);
        }
        if self.date || self.timestamp || self.zoned {
            self.see_moment(text);
        }
    }

    /// Takes a value into account that the file itself calls a text: a moment perhaps, never a number.
    pub fn see_text(&mut self, text: &str) {
        self.any = true;
        (self.boolean, self.integer, self.double) = (false, false, false);
        if self.date || self.timestamp || self.zoned {
            self.see_moment(text);
        }
    }

    fn see_number(&mut self, text: &str) {
        match number(text) {
            Number::Integer(value) => {
                // Fits BIGINT, and would lose digits as DOUBLE PRECISION.
                self.is_long |= value.unsigned_abs() > EXACT_DOUBLE;
                self.numeric.see(text);
            }
            Number::Double => {
                self.integer = false;
                self.is_long = self.is_long || !is_kept(text);
                self.numeric.see(text);
            }
            Number::Other => (self.integer, self.double) = (false, false),
        }
    }

    fn see_moment(&mut self, text: &str) {
        // Years of four digits only: `12-1-1` is more likely something else.
        let bytes = text.as_bytes();
        let plausible = (10..=40).contains(&bytes.len())
            && bytes[..4].iter().all(u8::is_ascii_digit)
            && bytes[4] == b'-'
            && bytes[7] == b'-';
        if !plausible {
            return (self.date, self.timestamp, self.zoned) = (false, false, false);
        }
        if bytes.len() == 10 {
            let is_date = parse::date(text).is_some();
            return (self.date, self.timestamp, self.zoned) =
                (self.date && is_date, self.timestamp && is_date, self.zoned && is_date);
        }
        self.date = false;
        match parse::timestamp(text) {
            Some((nanoseconds, zoned)) => {
                self.nanoseconds |= nanoseconds % 1000 != 0;
                // A plain Z is what TIMESTAMP means anyway.
                self.timestamp = self.timestamp && (!zoned || text.ends_with(['Z', 'z']));
                self.zoned = self.zoned && zoned;
            }
            None => (self.timestamp, self.zoned) = (false, false),
        }
    }

    /// The type.
    pub fn settle(&self) -> Inferred {
        if !self.any {
            Inferred::Text
        } else if self.boolean {
            Inferred::Boolean
        } else if self.integer {
            Inferred::BigInt
        } else if self.double && self.is_long {
            self.numeric.scale().map_or(Inferred::Text, Inferred::Numeric)
        } else if self.double {
            Inferred::Double
        } else if self.date {
            Inferred::Date
        } else if self.timestamp && self.nanoseconds {
            Inferred::TimestampNanoseconds
        } else if self.timestamp {
            Inferred::Timestamp
        } else if self.zoned && !self.nanoseconds {
            Inferred::TimestampTz
        } else {
            Inferred::Text
        }
    }
}

enum Number {
    Integer(i64),
    Double,
    Other,
}

/// What sort of number a text is, if it would be written again as it stands.
fn number(text: &str) -> Number {
    let bytes = text.as_bytes();
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let leading_zero = matches!(digits, [b'0', b'0'..=b'9', ..]);
    if digits.is_empty() || leading_zero || !(digits[0].is_ascii_digit() || digits[0] == b'.') {
        return Number::Other;
    }
    if digits.iter().all(u8::is_ascii_digit) {
        return match text.parse() {
            Ok(_) if text == "-0" => Number::Double,
            Ok(value) => Number::Integer(value),
            Err(_) => Number::Other,
        };
    }
    if !digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return Number::Other;
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Number::Double,
        _ => Number::Other,
    }
}

/// Digits of a number before the point and behind it.
fn digits(text: &str) -> Option<(usize, usize)> {
    let plain = text.strip_prefix('-').unwrap_or(text);
    if !plain.contains(['e', 'E']) {
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        return Some((whole.trim_start_matches('0').len(), fraction.len()));
    }
    let (unscaled, scale) = parse::decimal(plain)?;
    let all = i64::try_from(unscaled.to_string().len()).ok()?;
    Some(((all - i64::from(scale)).max(0) as usize, scale.max(0) as usize))
}

/// Whether all digits of a number come back from DOUBLE PRECISION.
fn is_kept(text: &str) -> bool {
    if text.bytes().filter(u8::is_ascii_digit).count() <= DOUBLE_DIGITS {
        return true;
    }
    let Ok(double) = text.parse::<f64>() else { return false };
    let same = |text: &str| parse::decimal(text).map(without_zeros);
    same(text).is_some_and(|number| same(&format!("{double:e}")) == Some(number))
}

/// A number whose last digit is not zero, if it is not zero itself.
fn without_zeros((mut unscaled, mut scale): (i128, i32)) -> (i128, i32) {
    while unscaled != 0 && unscaled % 10 == 0 {
        (unscaled, scale) = (unscaled / 10, scale - 1);
    }
    (unscaled, if unscaled == 0 { 0 } else { scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Cow<'static, str> {
        let mut guess = Guess::default();
        texts.iter().for_each(|text| guess.see(text));
        guess.settle().sql()
    }

    #[test]
    fn the_type_fits_every_value() {
        for (texts, kind) in [
            (&[][..], "TEXT"),
            (&["1", "-2", "9223372036854775807"], "BIGINT"),
            (&["1", "2.5", "1e3", "-.5"], "DOUBLE PRECISION"),
            (&["1", "NA"], "TEXT"),
            (&["007"], "TEXT"),
            (&["+1"], "TEXT"),
            (&["-0"], "DOUBLE PRECISION"),
            (&["9223372036854775808"], "TEXT"),
            (&["9007199254740993", "0.5"], "NUMERIC(38,1)"),
            (&["0.5", "9007199254740993"], "NUMERIC(38,1)"),
            (&["12345678901234567.89", "1", "-2.5"], "NUMERIC(38,2)"),
            (&["0.1234567890123456789", "1e3"], "NUMERIC(38,19)"),
            (&["1234567890.12345678901", "123456789012345678901234567890.5"], "TEXT"),
            (&["12345678901234567.89", "1e300"], "TEXT"),
            (&["0.10000000000000000000", "100000000000000000000.0"], "DOUBLE PRECISION"),
            (&["nan"], "TEXT"),
            (&["1e999"], "TEXT"),
            (&["true", "FALSE"], "BOOLEAN"),
            (&["t"], "TEXT"),
            (&["true", "1"], "TEXT"),
            (&["2013-01-01"], "DATE"),
            (&["2013-02-30"], "TEXT"),
            (&["2013-01-01", "2013-01-01 10:00"], "TIMESTAMP"),
            (&["2013-01-01T10:00:00Z"], "TIMESTAMP"),
            (&["2013-01-01T10:00:00+02:00"], "TIMESTAMPTZ"),
            (&["2013-01-01T10:00:00.123456789"], "TIMESTAMP(9)"),
            (&["2013-01-01T10:00:00+02:00", "2013-01-01T10:00:00"], "TEXT"),
            (&["€", "2013-€1-01"], "TEXT"),
        ] {
            assert_eq!(of(texts), kind, "{texts:?}");
        }
    }

    #[test]
    fn what_a_file_calls_text_is_no_number() {
        let mut guess = Guess::default();
        guess.see_text("12");
        assert_eq!(guess.settle(), Inferred::Text);
        let mut guess = Guess::default();
        guess.see_text("2013-01-01");
        assert_eq!(guess.settle(), Inferred::Date);
    }
}
