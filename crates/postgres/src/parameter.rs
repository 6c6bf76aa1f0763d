//! Parameters as clients send them, as values.

use counterfoil::Value;
use counterfoil::value::parse;

use crate::array;
use crate::body::Body;
use crate::rows::Format;
use crate::sqlstate::Refusal;
use crate::types::oid;

/// Days from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
pub const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub const EPOCH_MICROSECONDS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;

/// Digits of a NUMERIC, at most.
const DIGITS_MAX: u8 = 38;

/// The value that these bytes are, of the type of this number (0 where the client does not say).
///
/// # Errors
/// 22P02 and 22P03 for bytes that are none, 0A000 for types that are not understood.
pub fn read(kind: u32, format: Format, bytes: &[u8]) -> Result<Value, Refusal> {
    match format {
        Format::Text => text(kind, bytes),
        Format::Binary => binary(kind, bytes),
    }
}

fn text(kind: u32, bytes: &[u8]) -> Result<Value, Refusal> {
    let wrong = || Refusal::new("22P02", "a parameter is no value of its type");
    let text = letters(bytes)?;
    match kind {
        oid::BOOL => parse::boolean(text).map(Value::Boolean).ok_or_else(wrong),
        oid::INT2 | oid::INT4 | oid::INT8 | oid::OID => text.trim().parse().map(Value::Integer).map_err(|_| wrong()),
        oid::FLOAT4 | oid::FLOAT8 => text.trim().parse().map(Value::Double).map_err(|_| wrong()),
        oid::BYTEA => parse::bytea(text).map(Value::Bytes).ok_or_else(wrong),
        // As in a statement, a text stands for what is wanted where it stands; what it was declared to be it is, if it is written as usual.
        _ => Ok(declared(kind, text).unwrap_or_else(|| Value::Text(text.to_owned()))),
    }
}

/// Whether a NUMERIC has room for so many digits.
fn fits(unscaled: i128) -> bool {
    unscaled.unsigned_abs() < 10_u128.pow(u32::from(DIGITS_MAX))
}

/// The value of a type that would be something else where another one is wanted: a time is cut to a day, a number to the digits of a column.
fn declared(kind: u32, text: &str) -> Option<Value> {
    Some(match kind {
        oid::NUMERIC => {
            let (unscaled, scale) = parse::decimal(text).filter(|(unscaled, _)| fits(*unscaled))?;
            match u32::try_from(-scale) {
                Ok(zeros) => {
                    let unscaled =
                        unscaled.checked_mul(10_i128.checked_pow(zeros)?).filter(|unscaled| fits(*unscaled))?;
                    Value::Decimal { unscaled, scale: 0 }
                }
                Err(_) => {
                    Value::Decimal { unscaled, scale: u8::try_from(scale).ok().filter(|scale| *scale <= DIGITS_MAX)? }
                }
            }
        }
        oid::DATE => Value::Date(parse::date(text)?),
        oid::INTERVAL => {
            let (months, days, microseconds) = parse::interval(text)?;
            Value::Interval { months, days, microseconds }
        }
        oid::TIMESTAMP | oid::TIMESTAMPTZ => match parse::timestamp(text).filter(|(time, _)| time % 1000 == 0)? {
            (time, _) if kind == oid::TIMESTAMPTZ => Value::TimestampTz(time),
            (time, false) => Value::Timestamp(time),
            (_, true) => return None,
        },
        _ => return None,
    })
}

/// A text. None has a zero, which would end it for clients that are written in C.
fn letters(bytes: &[u8]) -> Result<&str, Refusal> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| Refusal::new("22021", "a parameter is not UTF-8, or has a zero"))
}

fn binary(kind: u32, bytes: &[u8]) -> Result<Value, Refusal> {
    let wrong = || Refusal::new("22P03", "a parameter is no value of its type");
    let number = |width: usize| -> Option<i64> {
        match bytes.len() {
            length if length != width => None,
            2 => Some(i64::from(i16::from_be_bytes(bytes.try_into().ok()?))),
            4 => Some(i64::from(i32::from_be_bytes(bytes.try_into().ok()?))),
            8 => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    };
    let value = match kind {
        oid::BOOL => (bytes.len() == 1).then(|| Value::Boolean(bytes[0] != 0)),
        oid::INT2 => number(2).map(Value::Integer),
        oid::INT4 => number(4).map(Value::Integer),
        oid::INT8 => number(8).map(Value::Integer),
        oid::FLOAT4 => bytes.try_into().ok().map(|bytes| Value::Double(f32::from_be_bytes(bytes).into())),
        oid::FLOAT8 => bytes.try_into().ok().map(|bytes| Value::Double(f64::from_be_bytes(bytes))),
        oid::BYTEA => Some(Value::Bytes(bytes.to_vec())),
        oid::DATE => number(4).and_then(days).map(Value::Date),
        oid::TIME => number(8).map(Value::Time),
        oid::TIMESTAMP => number(8).and_then(nanoseconds).map(Value::Timestamp),
        oid::TIMESTAMPTZ => number(8).and_then(nanoseconds).map(Value::TimestampTz),
        oid::INTERVAL => interval(bytes),
        oid::UUID => bytes.try_into().ok().map(Value::Uuid),
        oid::NUMERIC => numeric(bytes),
        oid::OID => bytes.try_into().ok().map(|bytes| Value::Integer(u32::from_be_bytes(bytes).into())),
        _ if array::element(kind).is_some() => array::read(bytes)?.map(Value::Text),
        0 | oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::CHAR => {
            Some(Value::Text(letters(bytes)?.to_owned()))
        }
        _ => return Err(Refusal::new("0A000", format!("not supported: binary parameters of type {kind}"))),
    };
    value.ok_or_else(wrong)
}

/// A day; none for the two that are infinity, which is no day here.
fn days(days: i64) -> Option<i32> {
    i32::try_from(days).ok().filter(|days| *days > i32::MIN)?.checked_add(EPOCH_DAYS)
}

/// A time; none for the two that are infinity.
fn nanoseconds(ticks: i64) -> Option<i128> {
    let is_finite = ticks > i64::MIN && ticks < i64::MAX;
    is_finite.then(|| (i128::from(ticks) + i128::from(EPOCH_MICROSECONDS)) * 1000)
}

/// A span of time: microseconds, days, months.
fn interval(bytes: &[u8]) -> Option<Value> {
    let mut body = Body::new(bytes);
    let microseconds = (i64::from(body.i32().ok()?) << 32) | i64::from(body.u32().ok()?);
    let (days, months) = (body.i32().ok()?, body.i32().ok()?);
    body.end().ok()?;
    Some(Value::Interval { months, days, microseconds })
}

/// Digits to base 10,000, the first of which has the given weight. NaN and infinities are no NUMERIC here.
fn numeric(bytes: &[u8]) -> Option<Value> {
    let mut body = Body::new(bytes);
    let digits = i64::from(body.i16().ok()?);
    let weight = i64::from(body.i16().ok()?);
    let sign = body.i16().ok()?;
    let scale = u8::try_from(body.i16().ok()?).ok().filter(|scale| *scale <= DIGITS_MAX)?;
    let mut unscaled = 0i128;
    // The value is the sum of digit times 10,000 to its weight; what is wanted is that times ten to the scale.
    for at in 0..digits {
        let digit = body.i16().ok().filter(|digit| (0..10_000).contains(digit))?;
        let power = 4 * (weight - at) + i64::from(scale);
        let digit = i128::from(digit);
        let part = match power {
            0.. => digit.checked_mul(10i128.checked_pow(u32::try_from(power).ok()?)?)?,
            // Digits behind the scale are zeros.
            -3.. => digit / 10i128.pow(power.unsigned_abs() as u32),
            _ => 0,
        };
        unscaled = unscaled.checked_add(part)?;
    }
    body.end().ok()?;
    match sign {
        0 => Some(Value::Decimal { unscaled, scale }),
        0x4000 => Some(Value::Decimal { unscaled: -unscaled, scale }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_text_and_from_binary() {
        let value = |kind, bytes: &[u8]| read(kind, Format::Binary, bytes).ok();
        assert_eq!(value(oid::INT4, &[0xff, 0xff, 0xff, 0xfe]), Some(Value::Integer(-2)));
        assert_eq!(value(oid::DATE, &[0, 0, 0, 0]), Some(Value::Date(EPOCH_DAYS)));
        assert_eq!(value(oid::TIMESTAMP, &[0; 8]), Some(Value::Timestamp(946_684_800_000_000_000)));
        assert_eq!(value(oid::DATE, &[0x7f, 0xff, 0xff, 0xff]), None);
        assert_eq!(value(oid::DATE, &[0x80, 0, 0, 0]), None);
        for infinity in [i64::MIN, i64::MAX] {
            assert_eq!(value(oid::TIMESTAMP, &infinity.to_be_bytes()), None);
            assert_eq!(value(oid::TIMESTAMPTZ, &infinity.to_be_bytes()), None);
        }
        for length in [0, 1, 2, 3, 5, 8] {
            assert_eq!(value(oid::INT4, &vec![1; length]), None);
        }
        let span = |months, days, microseconds| Value::Interval { months, days, microseconds };
        for (declared, text, wanted) in [
            (oid::NUMERIC, "1.005", Value::Decimal { unscaled: 1005, scale: 3 }),
            (oid::NUMERIC, "-2e3", Value::Decimal { unscaled: -2000, scale: 0 }),
            (oid::NUMERIC, "NaN", Value::Text("NaN".into())),
            (oid::DATE, "1970-01-02", Value::Date(1)),
            (oid::TIMESTAMP, "1970-01-01 00:00:01", Value::Timestamp(1_000_000_000)),
            (oid::TIMESTAMP, "now", Value::Text("now".into())),
            (oid::INTERVAL, "1 years 2 mons -3 days -00:00:01.5", span(14, -3, -1_500_000)),
            (oid::INTERVAL, "0 years 0 mons 2 days 4 hours 0 mins 0.5 secs", span(0, 2, 14_400_500_000)),
            (oid::INTERVAL, "1 days 5 seconds 7 microseconds", span(0, 1, 5_000_007)),
            (oid::INTERVAL, "90", span(0, 0, 90_000_000)),
            (oid::INTERVAL, "soon", Value::Text("soon".into())),
            (0, "1.005", Value::Text("1.005".into())),
        ] {
            assert_eq!(read(declared, Format::Text, text.as_bytes()).ok(), Some(wanted), "{text}");
        }
        // 12345.678 is 1 * 10,000 + 2345 + 6780 / 10,000.
        let bytes = [0, 3, 0, 1, 0, 0, 0, 3, 0, 1, 0x09, 0x29, 0x1a, 0x7c];
        assert_eq!(value(oid::NUMERIC, &bytes), Some(Value::Decimal { unscaled: 12_345_678, scale: 3 }));
        let bytes_of_span = [[0xff; 8].as_slice(), &[0, 0, 0, 2], &[0, 0, 0, 14]].concat();
        assert_eq!(value(oid::INTERVAL, &bytes_of_span), Some(span(14, 2, -1)));
        assert_eq!(value(oid::INTERVAL, &bytes_of_span[1..]), None);
        let nan = [0, 0, 0, 0, 0xc0, 0, 0, 0];
        assert_eq!(value(oid::NUMERIC, &nan), None);
        assert_eq!(read(oid::INT8, Format::Text, b" 12 ").ok(), Some(Value::Integer(12)));
        assert_eq!(read(oid::INT8, Format::Text, b"twelve").ok(), None);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_value_or_refused(kind in 0u32..3000, is_binary: bool, bytes: Vec<u8>) {
            let _ = read(kind, if is_binary { Format::Binary } else { Format::Text }, &bytes);
            let _ = numeric(&bytes);
        }
    }
}
