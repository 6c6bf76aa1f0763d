//! Values of fields, and how they are spelled.

use std::fmt;

use crate::problem::Problem;
use crate::text::Text;

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// `1.5`: 64 bits.
    Float,
    /// `1i`: 64 bits with a sign.
    Integer,
    /// `1u`: 64 bits without a sign.
    Unsigned,
    /// `true`.
    Boolean,
    /// `"text"`.
    Text,
    /// A quality, from the field that `--quality-field` names: [`crate::quality`].
    Quality,
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldType::Float => "float",
            FieldType::Integer => "integer",
            FieldType::Unsigned => "unsigned",
            FieldType::Boolean => "boolean",
            FieldType::Text => "string",
            FieldType::Quality => "quality",
        })
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "as in FieldType")]
pub enum Value<'a> {
    Float(f64),
    Integer(i64),
    Unsigned(u64),
    Boolean(bool),
    Text(Text<'a>),
}

impl Value<'_> {
    /// The type that its column has to have.
    pub fn field_type(&self) -> FieldType {
        match self {
            Value::Float(_) => FieldType::Float,
            Value::Integer(_) => FieldType::Integer,
            Value::Unsigned(_) => FieldType::Unsigned,
            Value::Boolean(_) => FieldType::Boolean,
            Value::Text(_) => FieldType::Text,
        }
    }
}

/// A value that is no string, from all of its bytes.
pub(crate) fn parse(token: &str) -> Result<Value<'static>, Problem> {
    let bytes = token.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(b'0'..=b'9' | b'-' | b'.'), Some(b'i')) => integer(&token[..token.len() - 1]).map(Value::Integer),
        (Some(b'0'..=b'9'), Some(b'u')) => unsigned(&token[..token.len() - 1]).map(Value::Unsigned),
        (Some(b'0'..=b'9' | b'-' | b'.'), _) => float(token).map(Value::Float),
        _ => boolean(token).map(Value::Boolean).ok_or(Problem::NotAValue),
    }
}

fn boolean(token: &str) -> Option<bool> {
    match token {
        "t" | "T" | "true" | "True" | "TRUE" => Some(true),
        "f" | "F" | "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Rust reads `inf`, `nan` and `+1` too, which are no numbers here: the bytes are looked at first.
fn float(token: &str) -> Result<f64, Problem> {
    if !token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
        return Err(Problem::NotAValue);
    }
    match token.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(Problem::OutOfRange),
        Err(_) => Err(Problem::NotAValue),
    }
}

pub(crate) fn integer(token: &str) -> Result<i64, Problem> {
    let digits = token.strip_prefix('-').unwrap_or(token);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::NotAValue);
    }
    token.parse().map_err(|_| Problem::OutOfRange)
}

fn unsigned(token: &str) -> Result<u64, Problem> {
    if !token.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::NotAValue);
    }
    token.parse().map_err(|_| Problem::OutOfRange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_as_influxdb_spells_them() {
        for (token, value) in
            [("1", 1.0), ("-1.5", -1.5), (".5", 0.5), ("1.", 1.0), ("6.02e+23", 6.02e23), ("1E-3", 1e-3)]
        {
            assert!(matches!(parse(token), Ok(Value::Float(float)) if float == value), "{token}");
        }
        assert!(matches!(parse("-9223372036854775808i"), Ok(Value::Integer(i64::MIN))));
        assert!(matches!(parse("18446744073709551615u"), Ok(Value::Unsigned(u64::MAX))));
        assert!(matches!(parse("-0i"), Ok(Value::Integer(0))));
        for token in [
            "", "+1", "NaN", "nan", "Inf", "-inf", "-", ".", "1e", "1.5i", "-1u", "1ii", "0x1", "1 ", "truE", "i", "-i",
        ] {
            assert!(matches!(parse(token), Err(Problem::NotAValue)), "{token}");
        }
        for token in ["1e999", "9223372036854775808i", "18446744073709551616u"] {
            assert!(matches!(parse(token), Err(Problem::OutOfRange)), "{token}");
        }
    }

    #[test]
    fn booleans_have_ten_spellings() {
        for token in ["t", "T", "true", "True", "TRUE"] {
            assert!(matches!(parse(token), Ok(Value::Boolean(true))));
        }
        for token in ["f", "F", "false", "False", "FALSE"] {
            assert!(matches!(parse(token), Ok(Value::Boolean(false))));
        }
    }
}
