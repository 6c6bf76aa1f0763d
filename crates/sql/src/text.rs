//! Values as PostgreSQL writes them: what COPY, CSV files, casts to TEXT and the wire show.

use std::fmt::Write;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};

const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;

/// Appends the text of one cell. NULL appends nothing: ask the array first.
///
/// # Errors
/// [`Error::Bug`] for a type that no query yields.
pub fn write_cell(out: &mut String, array: &dyn Array, row: usize) -> Result<()> {
    if array.is_null(row) {
        return Ok(());
    }
    match array.data_type() {
        DataType::Null => {}
        DataType::Boolean => out.push_str(if array.as_boolean().value(row) { "true" } else { "false" }),
        DataType::Int8 => display(out, array.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => display(out, array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => display(out, array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => display(out, array.as_primitive::<Int64Type>().value(row)),
        DataType::UInt8 => display(out, array.as_primitive::<UInt8Type>().value(row)),
        DataType::UInt16 => display(out, array.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt32 => display(out, array.as_primitive::<UInt32Type>().value(row)),
        DataType::UInt64 => display(out, array.as_primitive::<UInt64Type>().value(row)),
        DataType::Float32 => real(out, array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => double(out, array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(_, scale) => decimal(out, array.as_primitive::<Decimal128Type>().value(row), *scale),
        DataType::Utf8 => out.push_str(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => out.push_str(array.as_string::<i64>().value(row)),
        DataType::Utf8View => out.push_str(array.as_string_view().value(row)),
        DataType::Binary => bytes(out, array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => bytes(out, array.as_binary::<i64>().value(row)),
        DataType::BinaryView => bytes(out, array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => bytes(out, array.as_fixed_size_binary().value(row)),
        DataType::Date32 => date(out, i64::from(array.as_primitive::<Date32Type>().value(row))),
        DataType::Time64(TimeUnit::Microsecond) => {
            time(out, i128::from(array.as_primitive::<Time64MicrosecondType>().value(row)) * 1000);
        }
        DataType::Time64(_) => time(out, i128::from(array.as_primitive::<Time64NanosecondType>().value(row))),
        DataType::Timestamp(unit, zone) => timestamp(out, instant(array, *unit, row), zone.is_some()),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let interval = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
            span(out, interval.months, interval.days, interval.nanoseconds);
        }
        // What lies between two instants: whole days and a time, as PostgreSQL counts it.
        DataType::Duration(unit) => {
            let (nanoseconds, day) = (i128::from(elapsed(array, row)) * nanoseconds(*unit), NANOSECONDS_PER_DAY);
            span(out, 0, (nanoseconds / day) as i32, (nanoseconds % day) as i64);
        }
        DataType::List(_) => list(out, &array.as_list::<i32>().value(row))?,
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            write_cell(out, dictionary.values().as_ref(), dictionary.normalized_keys()[row])?;
        }
        _ => other(out, array, row)?,
    }
    Ok(())
}

/// The text of one cell, `None` for NULL.
///
/// # Errors
/// As [`write_cell`].
pub fn cell(array: &dyn Array, row: usize) -> Result<Option<String>> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return Ok(None);
    }
    let mut text = String::new();
    write_cell(&mut text, array, row)?;
    Ok(Some(text))
}

fn other(out: &mut String, array: &dyn Array, row: usize) -> Result<()> {
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(array, &options).map_err(|error| Error::Bug(error.to_string()))?;
    write!(out, "{}", formatter.value(row)).map_err(|_| Error::Bug("a value has no text".into()))
}

fn display(out: &mut String, value: impl std::fmt::Display) {
    // Writing to a String does not fail.
    let _ = write!(out, "{value}");
}

fn real(out: &mut String, value: f32) {
    floating(out, f64::from(value), &format!("{value:e}"), 6);
}

fn double(out: &mut String, value: f64) {
    floating(out, value, &format!("{value:e}"), 15);
}

/// The shortest digits that read back as the same number, in plain form unless the exponent is small or large.
fn floating(out: &mut String, value: f64, scientific: &str, plain_below: i32) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    if value.is_infinite() {
        return out.push_str(if value < 0.0 { "-Infinity" } else { "Infinity" });
    }
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return out.push_str(scientific);
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..plain_below).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return display(out, format_args!("{mantissa}e{sign}{:02}", exponent.abs()));
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|letter| *letter != '.').collect();
    out.push_str(sign);
    if exponent < 0 {
        out.push_str("0.");
        (1..-exponent).for_each(|_| out.push('0'));
        return out.push_str(&digits);
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.push_str(&digits);
        (digits.len()..whole).for_each(|_| out.push('0'));
    } else {
        display(out, format_args!("{}.{}", &digits[..whole], &digits[whole..]));
    }
}

/// Appends `unscaled / 10^scale`.
pub fn decimal(out: &mut String, unscaled: i128, scale: i8) {
    if scale <= 0 {
        display(out, unscaled);
        return (scale..0).for_each(|_| out.push('0'));
    }
    let scale = scale.unsigned_abs() as usize;
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    display(out, format_args!("{sign}{whole}.{fraction}"));
}

fn bytes(out: &mut String, bytes: &[u8]) {
    out.push_str("\\x");
    for byte in bytes {
        display(out, format_args!("{byte:02x}"));
    }
}

/// Appends 16 bytes as the text of a UUID.
pub fn uuid(out: &mut String, bytes: &[u8; 16]) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        display(out, format_args!("{byte:02x}"));
    }
}

/// Appends a date given in days since 1970-01-01.
pub fn date(out: &mut String, days: i64) {
    let era = day(out, days);
    out.push_str(era);
}

/// Appends a date, and answers what stands last behind it.
fn day(out: &mut String, days: i64) -> &'static str {
    let (year, month, day) = civil(days);
    let (shown, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    display(out, format_args!("{shown:04}-{month:02}-{day:02}"));
    era
}

/// Appends a time of day.
pub fn time(out: &mut String, nanoseconds: i128) {
    let seconds = nanoseconds / 1_000_000_000;
    display(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    let fraction = nanoseconds % 1_000_000_000;
    if fraction != 0 {
        let digits = format!("{fraction:09}");
        display(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

/// Appends an instant.
pub fn timestamp(out: &mut String, nanoseconds: i128, zoned: bool) {
    let era = day(out, nanoseconds.div_euclid(NANOSECONDS_PER_DAY) as i64);
    out.push(' ');
    time(out, nanoseconds.rem_euclid(NANOSECONDS_PER_DAY));
    if zoned {
        out.push_str("+00");
    }
    out.push_str(era);
}

fn instant(array: &dyn Array, unit: TimeUnit, row: usize) -> i128 {
    let (ticks, nanoseconds) = match unit {
        TimeUnit::Second => (array.as_primitive::<TimestampSecondType>().value(row), 1_000_000_000),
        TimeUnit::Millisecond => (array.as_primitive::<TimestampMillisecondType>().value(row), 1_000_000),
        TimeUnit::Microsecond => (array.as_primitive::<TimestampMicrosecondType>().value(row), 1000),
        TimeUnit::Nanosecond => (array.as_primitive::<TimestampNanosecondType>().value(row), 1),
    };
    i128::from(ticks) * nanoseconds
}

fn elapsed(array: &dyn Array, row: usize) -> i64 {
    use datafusion::arrow::compute::cast;
    let ticks = cast(&array.slice(row, 1), &DataType::Int64);
    ticks.map_or(0, |ticks| ticks.as_primitive::<Int64Type>().value(0))
}

fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

fn span(out: &mut String, months: i32, days: i32, nanoseconds: i64) {
    let mut parts: Vec<String> = Vec::new();
    let mut part = |count: i32, one: &str| match count {
        0 => {}
        1 | -1 => parts.push(format!("{count} {one}")),
        _ => parts.push(format!("{count} {one}s")),
    };
    part(months / 12, "year");
    part(months % 12, "mon");
    part(days, "day");
    if nanoseconds != 0 || parts.is_empty() {
        let mut clock = String::new();
        time(&mut clock, i128::from(nanoseconds).abs());
        parts.push(if nanoseconds < 0 { format!("-{clock}") } else { clock });
    }
    out.push_str(&parts.join(" "));
}

fn list(out: &mut String, values: &ArrayRef) -> Result<()> {
    out.push('{');
    for row in 0..values.len() {
        if row > 0 {
            out.push(',');
        }
        match cell(values.as_ref(), row)? {
            None => out.push_str("NULL"),
            Some(text) if matches!(values.data_type(), DataType::List(_)) => out.push_str(&text),
            Some(text) if quoted_in_list(&text) => {
                display(out, format_args!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")));
            }
            Some(text) => out.push_str(&text),
        }
    }
    out.push('}');
    Ok(())
}

fn quoted_in_list(text: &str) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case("null")
        || text.contains(|letter: char| letter.is_whitespace() || matches!(letter, '{' | '}' | ',' | '"' | '\\'))
}

/// Year, month and day of a number of days since 1970-01-01 in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse;

    fn written(write: impl FnOnce(&mut String)) -> String {
        let mut text = String::new();
        write(&mut text);
        text
    }

    #[test]
    fn numbers_are_written_as_postgresql_writes_them() {
        for (number, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (100.0, "100"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1.5e-5, "1.5e-05"),
            (0.000_123, "0.000123"),
            (123.456, "123.456"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(written(|out| double(out, number)), text);
        }
        assert_eq!(written(|out| decimal(out, -5, 2)), "-0.05");
        assert_eq!(written(|out| decimal(out, 12_345, 2)), "123.45");
        assert_eq!(written(|out| decimal(out, 12, -2)), "1200");
    }

    #[test]
    fn dates_are_written_as_they_are_read() {
        for text in ["1970-01-01", "2024-02-29", "1582-10-15", "0001-01-01", "9999-12-31", "1969-12-31"] {
            let days = parse::date(text).unwrap();
            assert_eq!(written(|out| date(out, i64::from(days))), text);
        }
        for text in ["0044-03-15 BC", "290309-12-21 BC", "5874897-12-31"] {
            assert_eq!(written(|out| date(out, i64::from(parse::date(text).unwrap()))), text);
        }
        for text in
            ["290309-12-21 19:59:05.224192+00 BC", "294247-01-10 04:00:54.775807+00", "0001-12-31 23:59:59+00 BC"]
        {
            assert_eq!(written(|out| timestamp(out, parse::timestamp(text).unwrap().0, true)), text);
        }
        let (instant, _) = parse::timestamp("1965-03-04 05:06:07.89").unwrap();
        assert_eq!(written(|out| timestamp(out, instant, false)), "1965-03-04 05:06:07.89");
        assert_eq!(written(|out| timestamp(out, 0, true)), "1970-01-01 00:00:00+00");
        assert_eq!(written(|out| span(out, 14, 1, -3_600_000_000_000)), "1 year 2 mons 1 day -01:00:00");
    }
}
