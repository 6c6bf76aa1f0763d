//! Values as text: as psql prints them, and back.

use core::fmt::Write;

use counterfoil_proof::{Type, Value};

use crate::calendar::{date_text, micros, moment_text, read_date, read_moment, read_time, time_text};
use crate::decimal::{Decimal, Scaled};
use crate::error::Error;

/// A value as psql prints it; none for NULL. A value of another type than `kind` is printed as its own.
#[must_use]
pub fn text(kind: Type, value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Boolean(value) => String::from(if *value { "t" } else { "f" }),
        Value::Integer(value) => integer_text(kind, *value),
        Value::Numeric(value) => numeric_text(*value, if let Type::Numeric(_, scale) = kind { scale } else { 0 }),
        Value::Double(value) => double_text(*value, kind == Type::Real),
        Value::Text(value) => value.clone(),
        Value::Bytes(value) => value.iter().fold(String::from("\\x"), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }),
        Value::Uuid(value) => uuid_text(value),
    })
}

fn integer_text(kind: Type, value: i64) -> String {
    let wide = i128::from(value);
    match kind {
        Type::Date => date_text(value),
        Type::Time => time_text(wide * 1000),
        Type::Timestamp => moment_text(wide * 1000, ""),
        Type::TimestampTz => moment_text(wide * 1000, "+00"),
        Type::TimestampNanos => moment_text(wide, ""),
        _ => value.to_string(),
    }
}

fn numeric_text(value: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// The fewest digits that come back as the same number; with an exponent where PostgreSQL writes one.
fn double_text(value: f64, is_real: bool) -> String {
    if value.is_nan() {
        return String::from("NaN");
    }
    if value.is_infinite() {
        return String::from(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let (scientific, plain, longest) = if is_real {
        (format!("{:e}", value as f32), (value as f32).to_string(), 6)
    } else {
        (format!("{value:e}"), value.to_string(), 15)
    };
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..longest).contains(&exponent) {
        plain
    } else {
        format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
    }
}

fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        let dash = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}

/// Reads a value as CSV has it: what [`text()`] prints, and what PostgreSQL takes for the same. Nothing is rounded.
///
/// # Errors
/// [`Error::NoValue`]: no value of `kind`.
pub fn parse_value(kind: Type, text: &str) -> Result<Value, Error> {
    let trimmed = text.trim();
    match kind {
        Type::Text => Some(Value::Text(String::from(text))),
        Type::Bytea => trimmed.strip_prefix("\\x").and_then(hex).map(Value::Bytes),
        Type::Uuid => uuid(trimmed).map(Value::Uuid),
        Type::Boolean => boolean(trimmed).map(Value::Boolean),
        Type::Real | Type::Double => floating(trimmed, kind == Type::Real).map(Value::Double),
        Type::Numeric(_, scale) => match Decimal::parse(trimmed).map(|decimal| decimal.scaled(scale)) {
            Some(Scaled::Exact(value)) => Some(Value::Numeric(value)),
            _ => None,
        },
        _ => integer(kind, trimmed).map(Value::Integer),
    }
    .filter(|value| kind.encode(value, &mut Vec::new()).is_ok())
    .ok_or(Error::NoValue(kind))
}

fn integer(kind: Type, text: &str) -> Option<i64> {
    match kind {
        Type::Date => read_date(text),
        Type::Time => read_time(text).and_then(micros),
        Type::Timestamp => read_moment(text).filter(|(_, zone)| zone.is_none()).and_then(|(nanos, _)| micros(nanos)),
        Type::TimestampNanos => {
            read_moment(text).filter(|(_, zone)| zone.is_none()).and_then(|(nanos, _)| i64::try_from(nanos).ok())
        }
        Type::TimestampTz => read_moment(text).and_then(|(nanos, zone)| micros(nanos - zone.unwrap_or(0))),
        _ => text.parse().ok(),
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "true" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn floating(text: &str, is_real: bool) -> Option<f64> {
    let value = if is_real { f64::from(text.parse::<f32>().ok()?) } else { text.parse().ok()? };
    // A number in digits that is too large is none.
    let is_too_large = value.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit());
    (!is_too_large).then_some(value)
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let has_dashes = text.len() == 36 && [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-');
    let digits: String = if has_dashes { text.split('-').collect() } else { String::from(text) };
    hex(&digits)?.try_into().ok()
}
