//! Assignment: what a value becomes when it is stored in a column of some type, or why it cannot.
//!
//! As in PostgreSQL: numbers are rounded to the column's scale and must fit its range, quoted literals are read as the
//! column's type, blanks behind a CHAR(n) or beyond a VARCHAR(n) are dropped and other letters are an error, and truth
//! values and numbers are not exchanged silently. Beyond PostgreSQL: -0.0 is stored as 0.0, so that equal numbers have
//! equal bytes in keys and comparisons.

use counterfoil_relation::{Type, Value as Stored};

use crate::error::{Error, Result};
use crate::types;
use crate::value::{Value, parse, to_microseconds};

/// The times that a TIME may be, in microseconds: from 00:00 to 24:00.
pub(crate) const DAY: std::ops::RangeInclusive<i64> = 0..=86_400_000_000;

/// Why a value does not go into a column; the caller adds the column's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The number is too large or too small.
    Range,
    /// The text has more letters than the type allows.
    Length,
    /// The text does not read as a value of the type.
    Text,
    /// The text has a zero byte in it.
    Zero,
    /// Values of this kind are not stored in columns of this type.
    Kind,
}

impl Misfit {
    /// The error for column `column` of type `kind`. `given` is the kind of value, never the value.
    pub fn error(self, column: &str, kind: &Type, given: &str) -> Error {
        let type_name = types::name(kind);
        match self {
            Misfit::Range => {
                let given = if given == "text" { "value" } else { given };
                Error::TooLarge(format!("{} {given} is out of range (column {column}, {type_name})", article(given)))
            }
            Misfit::Length => Error::TooLong(format!("a text is too long (column {column}, {type_name})")),
            Misfit::Zero => Error::ZeroInText,
            Misfit::Text => Error::NotValid(format!("a text is not a valid {type_name} (column {column})")),
            Misfit::Kind => Error::Sql(format!(
                "{} {given} cannot be stored in column {column} ({type_name}): cast it",
                article(given)
            )),
        }
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
}

/// The stored form of `value` in a column of type `kind`.
///
/// # Errors
/// The reason why there is none.
pub fn assign(value: &Value, kind: &Type) -> Result<Stored, Misfit> {
    match value {
        Value::Null => Ok(Stored::Null),
        Value::Text(text) => text_as(text, kind),
        Value::Boolean(truth) => match kind {
            Type::Boolean => Ok(Stored::Boolean(*truth)),
            Type::Text | Type::VarChar(_) | Type::Char(_) => text_as(if *truth { "true" } else { "false" }, kind),
            _ => Err(Misfit::Kind),
        },
        Value::Integer(number) => integer(*number, kind),
        Value::Decimal { unscaled, scale } => decimal(*unscaled, i32::from(*scale), kind),
        Value::Double(number) => double(*number, kind),
        Value::Bytes(bytes) => match kind {
            Type::Bytea => Ok(Stored::Bytea(bytes.clone())),
            Type::Uuid => bytes.as_slice().try_into().map(Stored::Uuid).map_err(|_| Misfit::Kind),
            _ => Err(Misfit::Kind),
        },
        Value::Uuid(bytes) => match kind {
            Type::Uuid => Ok(Stored::Uuid(*bytes)),
            Type::Text | Type::VarChar(_) | Type::Char(_) => {
                let mut text = String::new();
                crate::text::uuid(&mut text, bytes);
                text_as(&text, kind)
            }
            _ => Err(Misfit::Kind),
        },
        Value::Date(days) => match kind {
            Type::Date => Ok(Stored::Date(*days)),
            Type::Timestamp { .. } | Type::TimestampTz => instant(i128::from(*days) * 86_400_000_000_000, kind),
            _ => Err(Misfit::Kind),
        },
        Value::Time(microseconds) => match kind {
            Type::Time if !DAY.contains(microseconds) => Err(Misfit::Range),
            Type::Time => Ok(Stored::Time(*microseconds)),
            _ => Err(Misfit::Kind),
        },
        Value::Timestamp(nanoseconds) | Value::TimestampTz(nanoseconds) => instant(*nanoseconds, kind),
        // No column is one.
        Value::Interval { .. } => Err(Misfit::Kind),
    }
}

fn integer(number: i64, kind: &Type) -> Result<Stored, Misfit> {
    match kind {
        Type::SmallInt => number.try_into().map(Stored::SmallInt).map_err(|_| Misfit::Range),
        Type::Integer => number.try_into().map(Stored::Integer).map_err(|_| Misfit::Range),
        Type::BigInt => Ok(Stored::BigInt(number)),
        Type::Real => Ok(Stored::Real(number as f32)),
        Type::Double => Ok(Stored::Double(number as f64)),
        Type::Numeric { .. } => decimal(i128::from(number), 0, kind),
        Type::Text | Type::VarChar(_) | Type::Char(_) => text_as(&number.to_string(), kind),
        _ => Err(Misfit::Kind),
    }
}

fn double(number: f64, kind: &Type) -> Result<Stored, Misfit> {
    match kind {
        Type::Real => {
            let narrow = number as f32;
            if narrow.is_infinite() && number.is_finite() { Err(Misfit::Range) } else { Ok(Stored::Real(narrow + 0.0)) }
        }
        Type::Double => Ok(Stored::Double(number + 0.0)),
        Type::SmallInt | Type::Integer | Type::BigInt => {
            let rounded = number.round_ties_even();
            if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                integer(rounded as i64, kind)
            } else {
                Err(Misfit::Range)
            }
        }
        Type::Numeric { .. } if number.is_finite() => {
            let (unscaled, scale) = parse::decimal(&format!("{number:e}")).ok_or(Misfit::Range)?;
            decimal(unscaled, scale, kind)
        }
        Type::Numeric { .. } => Err(Misfit::Range),
        Type::Text | Type::VarChar(_) | Type::Char(_) => text_as(&number.to_string(), kind),
        _ => Err(Misfit::Kind),
    }
}

/// `unscaled / 10^scale` (the scale may be negative) in a numeric column.
fn decimal(unscaled: i128, scale: i32, kind: &Type) -> Result<Stored, Misfit> {
    match kind {
        Type::SmallInt | Type::Integer | Type::BigInt => {
            let whole = rescale(unscaled, scale, 0).ok_or(Misfit::Range)?;
            integer(i64::try_from(whole).map_err(|_| Misfit::Range)?, kind)
        }
        Type::Numeric { precision, scale: wanted } => {
            let number = rescale(unscaled, scale, i32::from(*wanted)).ok_or(Misfit::Range)?;
            let bound = 10_i128.checked_pow(u32::from(*precision)).ok_or(Misfit::Range)?;
            if number.unsigned_abs() < bound.unsigned_abs() { Ok(Stored::Numeric(number)) } else { Err(Misfit::Range) }
        }
        Type::Real | Type::Double => {
            let number: f64 = format!("{unscaled}e{}", -scale).parse().map_err(|_| Misfit::Range)?;
            double(number, kind)
        }
        Type::Text | Type::VarChar(_) | Type::Char(_) => {
            let digits = rescale(unscaled, scale, scale.max(0)).ok_or(Misfit::Range)?;
            let mut text = String::new();
            crate::text::decimal(&mut text, digits, i8::try_from(scale.max(0)).map_err(|_| Misfit::Range)?);
            text_as(&text, kind)
        }
        _ => Err(Misfit::Kind),
    }
}

/// Changes the scale of a decimal, rounding half away from zero.
fn rescale(unscaled: i128, from: i32, to: i32) -> Option<i128> {
    if unscaled == 0 {
        return Some(0);
    }
    let steps = to.checked_sub(from)?;
    let power = |exponent: u32| 10_i128.checked_pow(exponent);
    if steps >= 0 {
        return unscaled.checked_mul(power(steps.unsigned_abs())?);
    }
    let Some(divisor) = power(steps.unsigned_abs()) else {
        return Some(0);
    };
    let quotient = unscaled / divisor;
    let remainder = (unscaled % divisor).unsigned_abs();
    let up = remainder >= divisor.unsigned_abs() - remainder;
    Some(if up { quotient + unscaled.signum() } else { quotient })
}

fn instant(nanoseconds: i128, kind: &Type) -> Result<Stored, Misfit> {
    let microseconds = || i64::try_from(to_microseconds(nanoseconds)).map_err(|_| Misfit::Range);
    match kind {
        Type::Timestamp { nanoseconds: true } => {
            i64::try_from(nanoseconds).map(Stored::Timestamp).map_err(|_| Misfit::Range)
        }
        Type::Timestamp { nanoseconds: false } => microseconds().map(Stored::Timestamp),
        Type::TimestampTz => microseconds().map(Stored::TimestampTz),
        Type::Date => {
            i32::try_from(nanoseconds.div_euclid(86_400_000_000_000)).map(Stored::Date).map_err(|_| Misfit::Range)
        }
        Type::Time => Ok(Stored::Time(to_microseconds(nanoseconds.rem_euclid(86_400_000_000_000)) as i64)),
        _ => Err(Misfit::Kind),
    }
}

/// A text, read as a value of the type.
pub fn text_as(text: &str, kind: &Type) -> Result<Stored, Misfit> {
    match kind {
        Type::Text | Type::VarChar(_) | Type::Char(_) if text.as_bytes().contains(&0) => Err(Misfit::Zero),
        Type::Text => Ok(Stored::Text(text.to_owned())),
        Type::VarChar(letters) => bounded(text, *letters as usize).map(|text| Stored::Text(text.to_owned())),
        Type::Char(letters) => {
            bounded(text, *letters as usize).map(|text| Stored::Text(text.trim_end_matches(' ').to_owned()))
        }
        Type::Boolean => parse::boolean(text).map(Stored::Boolean).ok_or(Misfit::Text),
        Type::SmallInt | Type::Integer | Type::BigInt => {
            let digits = text.trim();
            match digits.parse::<i64>() {
                Ok(number) => integer(number, kind),
                Err(error) => Err(match error.kind() {
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => Misfit::Range,
                    _ => Misfit::Text,
                }),
            }
        }
        Type::Real => double(f64::from(parse::real(text).ok_or_else(|| no_number(text))?), kind),
        Type::Double => double(parse::double(text).ok_or_else(|| no_number(text))?, kind),
        Type::Numeric { .. } => match parse::decimal(text) {
            Some((unscaled, scale)) => decimal(unscaled, scale, kind),
            // More digits than are kept: read the leading ones by way of the nearest floating-point number only if
            // there are no more than that in front of the point.
            None if parse::double(text).is_some() => long_decimal(text, kind),
            None => Err(Misfit::Text),
        },
        Type::Bytea => parse::bytea(text).map(Stored::Bytea).ok_or(Misfit::Text),
        Type::Uuid => parse::uuid(text).map(Stored::Uuid).ok_or(Misfit::Text),
        Type::Date => parse::date(text).map(Stored::Date).ok_or(Misfit::Text),
        Type::Time => {
            let nanoseconds = parse::time(text).ok_or(Misfit::Text)?;
            Ok(Stored::Time(to_microseconds(i128::from(nanoseconds)) as i64))
        }
        Type::Timestamp { .. } => {
            let (nanoseconds, _) = parse::timestamp(text).ok_or(Misfit::Text)?;
            instant(nanoseconds, kind)
        }
        Type::TimestampTz => {
            let (nanoseconds, _) = parse::timestamp(text).ok_or(Misfit::Text)?;
            instant(nanoseconds, kind)
        }
    }
}

/// A decimal text with more than 38 digits: those behind the column's scale (and one more, for rounding) are cut off.
fn long_decimal(text: &str, kind: &Type) -> Result<Stored, Misfit> {
    let text = text.trim();
    let (Some((whole, fraction)), false) = (text.split_once('.'), text.contains(['e', 'E'])) else {
        return Err(Misfit::Range);
    };
    let Type::Numeric { scale, .. } = kind else { return Err(Misfit::Kind) };
    let kept = fraction.get(..usize::from(*scale) + 1).ok_or(Misfit::Range)?;
    let (unscaled, scale) = parse::decimal(&format!("{whole}.{kept}")).ok_or(Misfit::Range)?;
    decimal(unscaled, scale, kind)
}

/// Why a text is no floating-point number.
fn no_number(text: &str) -> Misfit {
    if text.trim().parse::<f64>().is_ok() { Misfit::Range } else { Misfit::Text }
}

/// At most so many letters; blanks beyond them are dropped.
fn bounded(text: &str, letters: usize) -> Result<&str, Misfit> {
    if text.len() <= letters {
        return Ok(text);
    }
    match text.char_indices().nth(letters) {
        None => Ok(text),
        Some((end, _)) if text[end..].bytes().all(|byte| byte == b' ') => Ok(&text[..end]),
        Some(_) => Err(Misfit::Length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_bounded() {
        let money = Type::Numeric { precision: 5, scale: 2 };
        assert_eq!(assign(&Value::Double(1.005), &money), Ok(Stored::Numeric(101)));
        assert_eq!(assign(&Value::from("-1.005"), &money), Ok(Stored::Numeric(-101)));
        assert_eq!(assign(&Value::from("999.994"), &money), Ok(Stored::Numeric(99_999)));
        assert_eq!(assign(&Value::from("999.995"), &money), Err(Misfit::Range));
        assert_eq!(assign(&Value::Integer(1000), &money), Err(Misfit::Range));
        assert_eq!(assign(&Value::Integer(40_000), &Type::SmallInt), Err(Misfit::Range));
        assert_eq!(assign(&Value::Double(2.5), &Type::Integer), Ok(Stored::Integer(2)));
        assert_eq!(assign(&Value::Double(1e19), &Type::BigInt), Err(Misfit::Range));
        assert_eq!(assign(&Value::from("12x"), &Type::Integer), Err(Misfit::Text));
        for (text, kind) in [("1e309", Type::Double), ("-1e-400", Type::Double), ("1e39", Type::Real)] {
            assert_eq!(assign(&Value::from(text), &kind), Err(Misfit::Range), "{text}");
        }
        assert_eq!(assign(&Value::from("0e999"), &Type::Double), Ok(Stored::Double(0.0)));
        assert_eq!(assign(&Value::from("-inf"), &Type::Real), Ok(Stored::Real(f32::NEG_INFINITY)));
        assert_eq!(assign(&Value::Boolean(true), &Type::Integer), Err(Misfit::Kind));
        let digits = "3.14159265358979323846264338327950288419716939937510";
        assert_eq!(assign(&Value::from(digits), &money), Ok(Stored::Numeric(314)));
    }

    #[test]
    fn texts_are_bounded_by_letters_not_bytes() {
        assert_eq!(assign(&Value::from("äöü"), &Type::VarChar(3)), Ok(Stored::Text("äöü".into())));
        assert_eq!(assign(&Value::from("äöüx"), &Type::VarChar(3)), Err(Misfit::Length));
        assert_eq!(assign(&Value::from("äöü  "), &Type::VarChar(4)), Ok(Stored::Text("äöü ".into())));
        assert_eq!(assign(&Value::from("ab  "), &Type::Char(4)), Ok(Stored::Text("ab".into())));
        assert_eq!(assign(&Value::from("a\0b"), &Type::Text), Err(Misfit::Zero));
    }

    #[test]
    fn a_zone_in_a_text_moves_a_timestamp_to_utc() {
        let kind = Type::Timestamp { nanoseconds: false };
        assert_eq!(assign(&Value::from("1970-01-01T01:00:00+01:00"), &kind), Ok(Stored::Timestamp(0)));
        assert_eq!(assign(&Value::from("1970-01-01T01:00:00Z"), &kind), Ok(Stored::Timestamp(3_600_000_000)));
        assert_eq!(assign(&Value::from("1969-12-31 23:59:59.9999999"), &kind), Ok(Stored::Timestamp(0)));
        assert_eq!(assign(&Value::Timestamp(-1), &Type::TimestampTz), Ok(Stored::TimestampTz(0)));
        assert_eq!(assign(&Value::from("23:59:59.9999999"), &Type::Time), Ok(Stored::Time(86_400_000_000)));
        let fine = Type::Timestamp { nanoseconds: true };
        assert_eq!(assign(&Value::from("1970-01-01 00:00:00.000000999"), &fine), Ok(Stored::Timestamp(999)));
    }
}
