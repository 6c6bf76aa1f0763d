//! Single values: parameters of statements, literals, and the text forms of every type.

use std::fmt;

/// One value on its way into a statement, or a literal of one.
///
/// Debug shows the kind, never the value.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// NULL, of any type.
    Null,
    /// A truth value.
    Boolean(bool),
    /// An integer of any width.
    Integer(i64),
    /// A floating-point number.
    Double(f64),
    /// `unscaled / 10^scale`.
    Decimal {
        /// All digits.
        unscaled: i128,
        /// How many of them stand behind the point.
        scale: u8,
    },
    /// A text; like a quoted literal it also stands for a date, a UUID and so on where one is wanted.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Nanoseconds since 1970-01-01, without a time zone (UTC where one is wanted).
    Timestamp(i128),
    /// Nanoseconds since 1970-01-01 UTC.
    TimestampTz(i128),
    /// A UUID.
    Uuid([u8; 16]),
    /// A span of time. Its parts do not become each other: months and days are not always as long.
    Interval {
        /// Months.
        months: i32,
        /// Days.
        days: i32,
        /// Microseconds.
        microseconds: i64,
    },
}

impl Value {
    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Boolean(_) => "boolean",
            Value::Integer(_) => "integer",
            Value::Double(_) => "floating-point number",
            Value::Decimal { .. } => "number",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytea",
            Value::Date(_) => "date",
            Value::Time(_) => "time",
            Value::Timestamp(_) => "timestamp",
            Value::TimestampTz(_) => "timestamp with time zone",
            Value::Uuid(_) => "uuid",
            Value::Interval { .. } => "interval",
        }
    }
}

impl Value {
    /// A text that a cast to its type makes the same value again; none for NULL.
    pub fn text(&self) -> Option<String> {
        let mut text = String::new();
        match self {
            Value::Null => return None,
            Value::Boolean(truth) => text.push_str(if *truth { "true" } else { "false" }),
            Value::Integer(number) => text.push_str(&number.to_string()),
            Value::Double(number) => text.push_str(&number.to_string()),
            Value::Decimal { unscaled, scale } => crate::text::decimal(&mut text, *unscaled, *scale as i8),
            Value::Text(own) => text.push_str(own),
            Value::Bytes(bytes) => {
                text.push_str("\\x");
                bytes.iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
            }
            Value::Date(days) => crate::text::date(&mut text, i64::from(*days)),
            Value::Time(microseconds) => crate::text::time(&mut text, i128::from(*microseconds) * 1000),
            Value::Timestamp(nanoseconds) => crate::text::timestamp(&mut text, *nanoseconds, false),
            Value::TimestampTz(nanoseconds) => crate::text::timestamp(&mut text, *nanoseconds, true),
            Value::Uuid(bytes) => crate::text::uuid(&mut text, bytes),
            Value::Interval { months, days, microseconds } => {
                let (sign, ticks) = (if *microseconds < 0 { "-" } else { "" }, microseconds.unsigned_abs());
                let (seconds, rest) = (ticks / 1_000_000, ticks % 1_000_000);
                text.push_str(&format!("{months} months {days} days {sign}{seconds}.{rest:06} seconds"));
            }
        }
        Some(text)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

macro_rules! value_from {
    ($($from:ty => $make:expr),+ $(,)?) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                #[allow(clippy::redundant_closure_call)]
                ($make)(value)
            }
        })+
    };
}

value_from! {
    bool => Value::Boolean,
    i16 => |number| Value::Integer(i64::from(number)),
    i32 => |number| Value::Integer(i64::from(number)),
    u32 => |number| Value::Integer(i64::from(number)),
    i64 => Value::Integer,
    f32 => |number| Value::Double(f64::from(number)),
    f64 => Value::Double,
    &str => |text: &str| Value::Text(text.to_owned()),
    String => Value::Text,
    &[u8] => |bytes: &[u8]| Value::Bytes(bytes.to_vec()),
    Vec<u8> => Value::Bytes,
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// Nanoseconds as microseconds, to the nearest one, half to the even one, as PostgreSQL reads times.
pub fn to_microseconds(nanoseconds: i128) -> i128 {
    let (whole, rest) = (nanoseconds.div_euclid(1000), nanoseconds.rem_euclid(1000));
    let is_up = rest > 500 || (rest == 500 && whole.rem_euclid(2) == 1);
    whole + i128::from(is_up)
}

/// Texts of the types, read. Every function answers `None` for a text that is not of its type.
pub mod parse {
    use datafusion::arrow::compute::kernels::cast_utils::{
        IntervalParseConfig, IntervalUnit, parse_interval_month_day_nano_config,
    };
    use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, i256};
    use datafusion::scalar::ScalarValue;

    /// `t`, `true`, `yes`, `on`, `1` and their opposites, in any case, and unique beginnings of them.
    pub fn boolean(text: &str) -> Option<bool> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "t" | "tr" | "tru" | "true" | "y" | "ye" | "yes" | "on" | "1" => Some(true),
            "f" | "fa" | "fal" | "fals" | "false" | "n" | "no" | "of" | "off" | "0" => Some(false),
            _ => None,
        }
    }

    /// A decimal number as digits and scale; with an exponent too. Digits behind the 38th are an error.
    pub fn decimal(text: &str) -> Option<(i128, i32)> {
        let (is_negative, digits, scale) = digits(text.trim())?;
        let unscaled: i128 = digits.parse().ok()?;
        let scale = i32::try_from(scale).ok().filter(|scale| SCALES.contains(scale))?;
        Some((if is_negative { -unscaled } else { unscaled }, scale))
    }

    /// A DOUBLE PRECISION, and the names of what is no number (`NaN`, `-Infinity`). None, too, for a number that no double comes near.
    pub fn double(text: &str) -> Option<f64> {
        floating(text)
    }

    /// The same of a REAL.
    pub fn real(text: &str) -> Option<f32> {
        floating(text)
    }

    fn floating<F: std::str::FromStr + Copy + Into<f64>>(text: &str) -> Option<F> {
        let text = text.trim();
        let number: F = text.parse().ok()?;
        let wide: f64 = number.into();
        let is_there = match wide {
            0.0 => !mantissa(text).bytes().any(|byte| matches!(byte, b'1'..=b'9')),
            _ => wide.is_finite() || !text.bytes().any(|byte| byte.is_ascii_digit()),
        };
        is_there.then_some(number)
    }

    fn mantissa(text: &str) -> &str {
        text.split(['e', 'E']).next().unwrap_or(text)
    }

    /// Whoever makes room for zeros need not make it for more than this.
    const SCALES: std::ops::RangeInclusive<i32> = -1000..=2000;

    /// The same as a value of the query library that has room for just these digits, 76 of them at most; none for what is no number, or has
    /// more.
    pub(crate) fn numeric(text: &str) -> Option<ScalarValue> {
        let (is_negative, mut digits, mut scale) = digits(text.trim())?;
        // Zeros at the end behind the point say nothing: they stay where there is room.
        while scale > i64::from(DECIMAL128_MAX_PRECISION) && digits.len() > 1 && digits.ends_with('0') {
            digits.pop();
            scale -= 1;
        }
        if scale < 0 {
            let zeros = usize::try_from(-scale).ok().filter(|zeros| *zeros <= usize::from(DECIMAL256_MAX_PRECISION))?;
            (digits, scale) = (digits + &"0".repeat(zeros), 0);
        }
        let precision = u8::try_from(digits.len().max(usize::try_from(scale).ok()?)).ok()?;
        let (scale, number) = (i8::try_from(scale).ok()?, format!("{}{digits}", if is_negative { "-" } else { "" }));
        if precision <= DECIMAL128_MAX_PRECISION {
            return Some(ScalarValue::Decimal128(Some(number.parse().ok()?), precision, scale));
        }
        let is_wide = precision <= DECIMAL256_MAX_PRECISION;
        is_wide.then(|| Some(ScalarValue::Decimal256(Some(i256::from_string(&number)?), precision, scale)))?
    }

    /// The digits of a number from the first that is not zero on, how many of them stand behind the point, and whether it is negative.
    fn digits(text: &str) -> Option<(bool, String, i64)> {
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (is_negative, digits) = match mantissa.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = [whole, fraction].concat();
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        match all.trim_start_matches('0') {
            "" => Some((is_negative, "0".into(), scale.clamp(0, i64::try_from(all.len()).ok()?))),
            digits => Some((is_negative, digits.to_owned(), scale)),
        }
    }

    /// `2024-02-29`, or `0044-03-15 BC`, as days since 1970-01-01.
    pub fn date(text: &str) -> Option<i32> {
        let (text, before_christ) = era(text.trim());
        match text {
            "epoch" => Some(0),
            _ if text.len() > 10 && matches!(text.as_bytes().get(10), Some(b' ' | b'T')) => {
                i32::try_from(instant(text, before_christ)?.0.div_euclid(NANOSECONDS_PER_DAY)).ok()
            }
            _ => day(text, before_christ),
        }
    }

    /// Takes the word off that stands behind years before the first one.
    fn era(text: &str) -> (&str, bool) {
        let before = text.strip_suffix(" BC").or_else(|| text.strip_suffix(" bc"));
        (before.unwrap_or(text).trim_end(), before.is_some())
    }

    fn day(text: &str, before_christ: bool) -> Option<i32> {
        let mut parts = text.splitn(3, '-');
        let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
        if year.is_empty() || year.len() > 7 || month.len() > 2 || day.len() > 2 {
            return None;
        }
        let year = number(year).filter(|year| *year > 0)?;
        let year = if before_christ { 1 - year } else { year };
        days(year, number(month)?, number(day)?)
    }

    const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;

    /// `12:34`, `12:34:56`, `12:34:56.789` as nanoseconds since midnight.
    pub fn time(text: &str) -> Option<i64> {
        let mut parts = text.trim().splitn(3, ':');
        let hours = number(parts.next()?)?;
        let minutes = number(parts.next()?)?;
        let (seconds, fraction) = match parts.next() {
            None => (0, 0),
            Some(text) => {
                let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
                (number(whole)?, nanoseconds(fraction)?)
            }
        };
        let whole_day = hours == 24 && minutes == 0 && seconds == 0 && fraction == 0;
        if (hours > 23 && !whole_day) || minutes > 59 || seconds > 60 {
            return None;
        }
        let time = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + fraction;
        (time <= 86_400_000_000_000).then_some(time)
    }

    /// `2024-02-29 12:34:56.789`, with `T` or a blank between, and a zone (`Z`, `+02`, `+02:00`, ` UTC`) or none, and last
    /// ` BC` in years before the first one. Answers nanoseconds since 1970-01-01 UTC, and whether a zone was named.
    pub fn timestamp(text: &str) -> Option<(i128, bool)> {
        let (text, before_christ) = era(text.trim());
        instant(text, before_christ)
    }

    fn instant(text: &str, before_christ: bool) -> Option<(i128, bool)> {
        if text == "epoch" {
            return Some((0, false));
        }
        let Some(split) = text.find(['T', ' ', 't']) else {
            return Some((i128::from(day(text, before_christ)?) * NANOSECONDS_PER_DAY, false));
        };
        let day = day(&text[..split], before_christ)?;
        let (clock, zone) = zone(text[split + 1..].trim())?;
        let nanoseconds = i128::from(day) * NANOSECONDS_PER_DAY + i128::from(time(clock)?);
        let offset = i128::from(zone.unwrap_or(0)) * 1_000_000_000;
        Some((nanoseconds - offset, zone.is_some()))
    }

    /// Splits a zone off a time of day: seconds east of UTC.
    fn zone(text: &str) -> Option<(&str, Option<i64>)> {
        for name in ["Z", "z", "UTC", "utc", "GMT"] {
            if let Some(clock) = text.strip_suffix(name) {
                return Some((clock.trim_end(), Some(0)));
            }
        }
        let Some(at) = text.rfind(['+', '-']) else {
            return Some((text, None));
        };
        let digits: String = text[at + 1..].chars().filter(|letter| *letter != ':').collect();
        let (hours, minutes, seconds) = match digits.len() {
            1 | 2 => (number(&digits)?, 0, 0),
            4 => (number(&digits[..2])?, number(&digits[2..])?, 0),
            6 => (number(&digits[..2])?, number(&digits[2..4])?, number(&digits[4..])?),
            _ => return None,
        };
        if hours > 15 || minutes > 59 || seconds > 59 {
            return None;
        }
        let offset = (hours * 60 + minutes) * 60 + seconds;
        let offset = if text.as_bytes()[at] == b'-' { -offset } else { offset };
        Some((text[..at].trim_end(), Some(offset)))
    }

    /// `1 year 2 mons -3 days 04:05:06.7`, a number for as many seconds: months, days and microseconds.
    pub fn interval(text: &str) -> Option<(i32, i32, i64)> {
        let written = crate::idioms::interval_text(text);
        let config = IntervalParseConfig::new(IntervalUnit::Second);
        let span = parse_interval_month_day_nano_config(written.as_deref().unwrap_or(text).trim(), config).ok()?;
        Some((span.months, span.days, span.nanoseconds / 1000))
    }

    /// 32 hexadecimal digits with or without dashes and braces.
    pub fn uuid(text: &str) -> Option<[u8; 16]> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let mut bytes = [0; 16];
        let mut digits = 0;
        for letter in text.bytes() {
            if letter == b'-' {
                continue;
            }
            let digit = (letter as char).to_digit(16)? as u8;
            *bytes.get_mut(digits / 2)? |= if digits % 2 == 0 { digit << 4 } else { digit };
            digits += 1;
        }
        (digits == 32).then_some(bytes)
    }

    /// `\xdeadbeef`, or a text in which `\\` and `\ooo` stand for a backslash and an octal byte.
    pub fn bytea(text: &str) -> Option<Vec<u8>> {
        if let Some(digits) = text.strip_prefix("\\x") {
            return hex(digits);
        }
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let [first, tail @ ..] = rest {
            rest = match (first, tail) {
                (b'\\', [b'\\', tail @ ..]) => {
                    bytes.push(b'\\');
                    tail
                }
                (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                    bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                    tail
                }
                (b'\\', _) => return None,
                (byte, tail) => {
                    bytes.push(*byte);
                    tail
                }
            };
        }
        Some(bytes)
    }

    /// Pairs of hexadecimal digits.
    pub fn hex(digits: &str) -> Option<Vec<u8>> {
        let digits = digits.as_bytes();
        if !digits.len().is_multiple_of(2) {
            return None;
        }
        let value = |digit: u8| (digit as char).to_digit(16).map(|value| value as u8);
        digits.chunks_exact(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
    }

    fn number(digits: &str) -> Option<i64> {
        let plain = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|digit| digit.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    }

    fn nanoseconds(fraction: &str) -> Option<i64> {
        if fraction.is_empty() {
            return Some(0);
        }
        if fraction.len() > 9 {
            // Finer than we keep: what is behind the ninth digit is cut off, if it is digits.
            let (kept, rest) = fraction.split_at_checked(9)?;
            return rest.bytes().all(|digit| digit.is_ascii_digit()).then(|| nanoseconds(kept)).flatten();
        }
        Some(number(fraction)? * 10_i64.pow(9 - fraction.len() as u32))
    }

    /// Days since 1970-01-01 of a date of the Gregorian calendar, as far as 32 bits reach; the year 0 is 1 BC.
    pub fn days(year: i64, month: i64, day: i64) -> Option<i32> {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 => 28 + i64::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        if day < 1 || day > length || !(-5_900_000..=5_900_000).contains(&year) {
            return None;
        }
        // Years are counted from March so that the leap day comes last.
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        i32::try_from(era * 146_097 + day_of_era - 719_468).ok()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::scalar::ScalarValue;

    use super::parse;

    #[test]
    fn nanoseconds_are_rounded_to_the_nearest_microsecond() {
        for (nanoseconds, microseconds) in
            [(0, 0), (499, 0), (500, 0), (501, 1), (1500, 2), (2500, 2), (-1, 0), (-500, 0), (-501, -1), (-1500, -2)]
        {
            assert_eq!(super::to_microseconds(nanoseconds), microseconds, "{nanoseconds}");
        }
    }

    #[test]
    fn dates_and_times_are_read() {
        assert_eq!(parse::date("1970-01-01"), Some(0));
        assert_eq!(parse::date("2000-03-01"), Some(11_017));
        assert_eq!(parse::date("2024-02-29"), Some(19_782));
        assert_eq!(parse::date("2023-02-29"), None);
        assert_eq!(parse::date("1969-12-31"), Some(-1));
        assert_eq!(parse::date("0001-12-31 BC"), Some(-719_163));
        assert_eq!([parse::date("0000-12-31 BC"), parse::date("BC"), parse::date(" BC")], [None; 3]);
        assert_eq!(parse::time("12:34:56.5"), Some(45_296_500_000_000));
        assert_eq!(parse::time("25:00"), None);
        assert_eq!(parse::timestamp("1970-01-01T00:00:01Z"), Some((1_000_000_000, true)));
        assert_eq!(parse::timestamp("1970-01-01 02:00:00+02"), Some((0, true)));
        assert_eq!(parse::timestamp("1970-01-02"), Some((86_400_000_000_000, false)));
        assert_eq!(parse::timestamp("1970-01-01 00:00:00 UTC"), Some((0, true)));
        assert_eq!(parse::timestamp("yesterday"), None);
    }

    #[test]
    fn numbers_and_bytes_are_read() {
        assert_eq!(parse::decimal("-12.50"), Some((-1250, 2)));
        assert_eq!(parse::decimal("1e3"), Some((1, -3)));
        assert_eq!(parse::decimal("1.2.3"), None);
        assert_eq!(parse::decimal("."), None);
        assert_eq!(parse::numeric("77.777"), Some(ScalarValue::Decimal128(Some(77_777), 5, 3)));
        assert_eq!(parse::numeric(" -0.0250 "), Some(ScalarValue::Decimal128(Some(-250), 4, 4)));
        assert_eq!(parse::numeric("+1e3"), Some(ScalarValue::Decimal128(Some(1000), 4, 0)));
        assert_eq!(parse::numeric("1.5e-3"), Some(ScalarValue::Decimal128(Some(15), 4, 4)));
        assert_eq!(parse::numeric("0e400"), Some(ScalarValue::Decimal128(Some(0), 1, 0)));
        assert!(matches!(parse::numeric("1e50"), Some(ScalarValue::Decimal256(Some(_), 51, 0))));
        assert!(matches!(parse::numeric("-1e-50"), Some(ScalarValue::Decimal256(Some(_), 50, 50))));
        for none in ["1e77", "1e-400", "1e99999999999999999999", "", "-", ".", "e5", "NaN", "1_000", "0x1"] {
            assert_eq!(parse::numeric(none), None, "{none}");
        }
        assert_eq!(parse::boolean("YES"), Some(true));
        assert_eq!(parse::boolean("perhaps"), None);
        assert_eq!(parse::bytea("\\xDEad"), Some(vec![0xDE, 0xAD]));
        assert_eq!(parse::bytea("a\\\\b\\001"), Some(b"a\\b\x01".to_vec()));
        assert_eq!(parse::bytea("\\xA"), None);
        let uuid = parse::uuid("A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11").unwrap();
        assert_eq!(uuid[0], 0xA0);
        assert_eq!(parse::uuid("a0eebc99"), None);
    }
}
