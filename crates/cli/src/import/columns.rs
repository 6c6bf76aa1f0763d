//! Texts on their way into the columns of a table.

use std::sync::Arc;

use counterfoil::arrow::array::{
    Array, ArrayRef, BooleanBuilder, Date32Builder, Float32Builder, Float64Builder, Int16Builder, Int32Builder,
    Int64Builder, StringBuilder, TimestampMicrosecondBuilder, TimestampNanosecondBuilder,
};
use counterfoil::arrow::datatypes::{DataType, TimeUnit};
use counterfoil::value::{parse, to_microseconds};

/// Values of one column being gathered.
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type, as SQL writes it.
    pub kind: String,
    builder: Builder,
}

enum Builder {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Date(Date32Builder),
    /// Microseconds; with a zone or without.
    Timestamp(TimestampMicrosecondBuilder, Option<Arc<str>>),
    TimestampNanoseconds(TimestampNanosecondBuilder),
    /// TEXT, and what the table itself makes of texts that are of its type.
    Text(StringBuilder, Check),
}

/// What a text has to be.
enum Check {
    Anything,
    /// A number with so many digits before the point.
    Numeric(u32),
    Time,
    Uuid,
    Bytes,
    /// At most so many letters, blanks at the end not counted.
    Letters(usize),
}

impl Check {
    fn of(kind: &str, arrow: &DataType) -> Self {
        match arrow {
            DataType::Decimal128(precision, scale) => {
                Check::Numeric(u32::from(*precision).saturating_sub(u32::from(scale.unsigned_abs())))
            }
            DataType::Time64(_) => Check::Time,
            DataType::BinaryView => Check::Bytes,
            _ if kind == "uuid" => Check::Uuid,
            _ => {
                let letters = kind.strip_prefix("character").and_then(|rest| rest.split(['(', ')']).nth(1));
                letters.and_then(|letters| letters.parse().ok()).map_or(Check::Anything, Check::Letters)
            }
        }
    }

    fn holds(&self, text: &str) -> bool {
        match self {
            Check::Anything => !has_zero(text),
            Check::Numeric(digits) => fits(text, *digits),
            Check::Time => parse::time(text).is_some(),
            Check::Uuid => parse::uuid(text).is_some(),
            Check::Bytes => parse::bytea(text).is_some(),
            Check::Letters(letters) => !has_zero(text) && text.trim_end_matches(' ').chars().count() <= *letters,
        }
    }
}

/// No text has a zero byte.
fn has_zero(text: &str) -> bool {
    text.as_bytes().contains(&0)
}

/// Whether a text is a number with at most so many digits before the point, once it is rounded.
fn fits(text: &str, digits: u32) -> bool {
    let Some((unscaled, scale)) = parse::decimal(text) else { return false };
    let size = unscaled.unsigned_abs();
    match (u32::try_from(scale), 10_u128.checked_pow(digits)) {
        (Ok(scale), Some(limit)) => 10_u128.checked_pow(scale).is_none_or(|one| size / one < limit),
        (Err(_), Some(limit)) => {
            let zeros = 10_u128.checked_pow(scale.unsigned_abs());
            size == 0 || zeros.and_then(|zeros| size.checked_mul(zeros)).is_some_and(|size| size < limit)
        }
        (_, None) => true,
    }
}

impl Column {
    /// A column of the Arrow type that the table has for it.
    pub fn new(name: &str, kind: &str, arrow: &DataType) -> Self {
        let builder = match arrow {
            DataType::Boolean => Builder::Boolean(BooleanBuilder::new()),
            DataType::Int16 => Builder::SmallInt(Int16Builder::new()),
            DataType::Int32 => Builder::Integer(Int32Builder::new()),
            DataType::Int64 => Builder::BigInt(Int64Builder::new()),
            DataType::Float32 => Builder::Real(Float32Builder::new()),
            DataType::Float64 => Builder::Double(Float64Builder::new()),
            DataType::Date32 => Builder::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                Builder::Timestamp(TimestampMicrosecondBuilder::new(), zone.clone())
            }
            DataType::Timestamp(TimeUnit::Nanosecond, None) => {
                Builder::TimestampNanoseconds(TimestampNanosecondBuilder::new())
            }
            other => Builder::Text(StringBuilder::new(), Check::of(kind, other)),
        };
        Self { name: name.to_owned(), kind: kind.to_owned(), builder }
    }

    /// Adds a NULL.
    pub fn push_null(&mut self) {
        match &mut self.builder {
            Builder::Boolean(builder) => builder.append_null(),
            Builder::SmallInt(builder) => builder.append_null(),
            Builder::Integer(builder) => builder.append_null(),
            Builder::BigInt(builder) => builder.append_null(),
            Builder::Real(builder) => builder.append_null(),
            Builder::Double(builder) => builder.append_null(),
            Builder::Date(builder) => builder.append_null(),
            Builder::Timestamp(builder, _) => builder.append_null(),
            Builder::TimestampNanoseconds(builder) => builder.append_null(),
            Builder::Text(builder, _) => builder.append_null(),
        }
    }

    /// Adds a value; `None` if the text is not of the column's type.
    pub fn push(&mut self, text: &str) -> Option<()> {
        match &mut self.builder {
            Builder::Boolean(builder) => builder.append_value(parse::boolean(text)?),
            Builder::SmallInt(builder) => builder.append_value(text.trim().parse().ok()?),
            Builder::Integer(builder) => builder.append_value(text.trim().parse().ok()?),
            Builder::BigInt(builder) => builder.append_value(text.trim().parse().ok()?),
            Builder::Real(builder) => builder.append_value(parse::real(text)?),
            Builder::Double(builder) => builder.append_value(parse::double(text)?),
            Builder::Date(builder) => builder.append_value(quick_date(text.as_bytes()).or_else(|| parse::date(text))?),
            Builder::Timestamp(builder, _) => builder.append_value(microseconds(text)?),
            Builder::TimestampNanoseconds(builder) => {
                builder.append_value(i64::try_from(parse::timestamp(text)?.0).ok()?);
            }
            Builder::Text(builder, check) if check.holds(text) => builder.append_value(text),
            Builder::Text(..) => return None,
        }
        Some(())
    }

    /// What was gathered, and begins anew.
    pub fn finish(&mut self) -> ArrayRef {
        match &mut self.builder {
            Builder::Boolean(builder) => Arc::new(builder.finish()),
            Builder::SmallInt(builder) => Arc::new(builder.finish()),
            Builder::Integer(builder) => Arc::new(builder.finish()),
            Builder::BigInt(builder) => Arc::new(builder.finish()),
            Builder::Real(builder) => Arc::new(builder.finish()),
            Builder::Double(builder) => Arc::new(builder.finish()),
            Builder::Date(builder) => Arc::new(builder.finish()),
            Builder::Timestamp(builder, zone) => {
                Arc::new(builder.finish().with_timezone_opt(zone.clone())) as Arc<dyn Array>
            }
            Builder::TimestampNanoseconds(builder) => Arc::new(builder.finish()),
            Builder::Text(builder, _) => Arc::new(builder.finish()),
        }
    }
}

/// Two digits of a number.
fn two(bytes: &[u8], at: usize) -> Option<i64> {
    let (high, low) = (bytes.get(at)?.wrapping_sub(b'0'), bytes.get(at + 1)?.wrapping_sub(b'0'));
    (high < 10 && low < 10).then(|| i64::from(high) * 10 + i64::from(low))
}

/// `YYYY-MM-DD` and nothing else.
fn quick_date(bytes: &[u8]) -> Option<i32> {
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = two(bytes, 0)? * 100 + two(bytes, 2)?;
    parse::days(Some(year).filter(|year| *year > 0)?, two(bytes, 5)?, two(bytes, 8)?)
}

/// `YYYY-MM-DD HH:MM:SS` as it stands in most files, quickly; everything else as SQL reads it.
fn microseconds(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let usual = matches!(bytes.len(), 19 | 20)
        && matches!(bytes[10], b'T' | b' ')
        && (bytes.len() == 19 || bytes[19] == b'Z')
        && bytes[13] == b':'
        && bytes[16] == b':';
    let quick = || {
        let (hours, minutes, seconds) = (two(bytes, 11)?, two(bytes, 14)?, two(bytes, 17)?);
        let days = quick_date(&bytes[..10])?;
        let clock = (hours * 60 + minutes) * 60 + seconds;
        (hours < 24 && minutes < 60 && seconds < 60).then(|| (i64::from(days) * 86_400 + clock) * 1_000_000)
    };
    if let Some(quick) = usual.then(quick).flatten() {
        return Some(quick);
    }
    i64::try_from(to_microseconds(parse::timestamp(text)?.0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_way_and_sqls_way_agree() {
        for text in ["2013-01-01 10:00:00", "1969-12-31T23:59:59Z", "2024-02-29 00:00:00", "0001-01-01 00:00:00"] {
            let slow = i64::try_from(parse::timestamp(text).expect("a timestamp").0.div_euclid(1000)).expect("fits");
            assert_eq!(microseconds(text), Some(slow), "{text}");
            assert_eq!(quick_date(&text.as_bytes()[..10]), parse::date(&text[..10]), "{text}");
        }
        for text in ["2013-02-30 10:00:00", "2013-01-01 1a:00:00", "", "2013-01-01 25:00:00", "0000-01-01 00:00:00"] {
            assert_eq!(microseconds(text), None, "{text}");
        }
        assert_eq!(microseconds("2013-01-01"), Some(1_356_998_400_000_000));
        assert_eq!(microseconds("2012-12-31 23:59:59.9999999"), Some(1_356_998_400_000_000));
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let mut column = Column::new("n", "integer", &DataType::Int32);
        assert_eq!(column.push("2147483648"), None);
        assert_eq!(column.push("x"), None);
        assert_eq!(column.push(" 7 "), Some(()));
        column.push_null();
        assert_eq!(column.finish().len(), 2);
        for (kind, arrow, good, bad) in [
            ("numeric(5,2)", DataType::Decimal128(5, 2), "-999.994", "1000"),
            ("numeric(5,2)", DataType::Decimal128(5, 2), "1e2", "1e3"),
            ("numeric(38,10)", DataType::Decimal128(38, 10), "0.5", "abc"),
            ("time without time zone", DataType::Time64(TimeUnit::Microsecond), "10:00", "25:00"),
            ("real", DataType::Float32, "-1e38", "1e39"),
            ("double precision", DataType::Float64, "Infinity", "1e309"),
            ("double precision", DataType::Float64, "0e-999", "1e-400"),
            ("uuid", DataType::Utf8View, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0"),
            ("bytea", DataType::BinaryView, "\\xAB", "\\xA"),
            ("character varying(3)", DataType::Utf8View, "äöü ", "abcd"),
            ("text", DataType::Utf8View, "anything", "a\u{0}b"),
        ] {
            let mut column = Column::new("c", kind, &arrow);
            assert_eq!(column.push(good), Some(()), "{kind} {good}");
            assert_eq!(column.push(bad), None, "{kind} {bad}");
        }
    }
}
