//! Dates, times and moments as text: the Gregorian calendar for all times, as PostgreSQL has it.

pub(crate) const DAY_NANOS: i128 = 86_400_000_000_000;
const MICROS: i128 = 1000;

/// Year, month and day of a day, days counted from 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years from March on, in cycles of 400: the leap day is the last of its year.
    let from = days + 719_468;
    let (cycle, day) = (from.div_euclid(146_097), from.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + cycle * 400 + i64::from(month <= 2), month, day_of_month)
}

fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    let shifted = if month <= 2 { year - 1 } else { year };
    let (cycle, of_cycle) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = cycle * 146_097 + of_cycle * 365 + of_cycle / 4 - of_cycle / 100 + day_of_year - 719_468;
    // What is no day of its month comes back as another one.
    ((1..=12).contains(&month) && civil(days) == (year, month, day)).then_some(days)
}

/// A day as `2024-02-29`, and whether it is before Christ.
fn date_parts(days: i64) -> (String, &'static str) {
    let (year, month, day) = civil(days);
    let (shown, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    (format!("{shown:04}-{month:02}-{day:02}"), era)
}

pub(crate) fn date_text(days: i64) -> String {
    // Days that no DATE holds are shown as the nearest one of the calendar here.
    let (date, era) = date_parts(days.clamp(-(1 << 40), 1 << 40));
    date + era
}

/// Nanoseconds of a day as `10:20:30.5`.
pub(crate) fn time_text(nanos: i128) -> String {
    let (sign, nanos) = if nanos < 0 { ("-", -nanos) } else { ("", nanos) };
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let mut text = format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if rest > 0 {
        text += format!(".{rest:09}").trim_end_matches('0');
    }
    text
}

/// A moment, nanoseconds from 1970, as `2024-02-29 10:20:30.5`, with `zone` behind the time.
pub(crate) fn moment_text(nanos: i128, zone: &str) -> String {
    let days = i64::try_from(nanos.div_euclid(DAY_NANOS)).unwrap_or(0);
    let (date, era) = date_parts(days);
    format!("{date} {}{zone}{era}", time_text(nanos.rem_euclid(DAY_NANOS)))
}

/// Digits alone, at most nine.
fn number(text: &str) -> Option<i64> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Takes the era from the end of a text.
fn split_era(text: &str) -> (&str, bool) {
    match text.strip_suffix("BC").and_then(|rest| rest.strip_suffix(' ')) {
        Some(rest) => (rest.trim_end(), true),
        None => (text, false),
    }
}

fn date_of(text: &str, is_before_christ: bool) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    if parts.next().is_some() || year == 0 {
        return None;
    }
    days_of(if is_before_christ { 1 - year } else { year }, month, day)
}

/// Reads a date: days from 1970.
pub(crate) fn read_date(text: &str) -> Option<i64> {
    let (date, era) = split_era(text.trim());
    date_of(date, era)
}

/// Reads a time of day in nanoseconds; `24:00:00` is its end.
pub(crate) fn read_time(text: &str) -> Option<i128> {
    let (time, fraction) = match text.trim().split_once('.') {
        Some((time, fraction)) => (time, fraction),
        None => (text.trim(), "0"),
    };
    let mut parts = time.split(':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let seconds = parts.next().map_or(Some(0), number)?;
    let rest = i128::from(number(fraction)?) * 10i128.pow(9 - fraction.len() as u32);
    let nanos = i128::from(hours * 3600 + minutes * 60 + seconds) * 1_000_000_000 + rest;
    let is_time = hours <= 24 && minutes < 60 && seconds < 60 && nanos <= DAY_NANOS && parts.next().is_none();
    is_time.then_some(nanos)
}

/// Takes a zone from the end of a time: its distance from UTC in nanoseconds, if there is one.
fn split_zone(time: &str) -> Option<(&str, Option<i128>)> {
    if let Some(rest) = time.strip_suffix(['Z', 'z']) {
        return Some((rest.trim_end(), Some(0)));
    }
    let Some(at) = time.rfind(['+', '-']) else { return Some((time, None)) };
    let mut parts = time[at + 1..].split(':');
    let hours = number(parts.next()?)?;
    let minutes = parts.next().map_or(Some(0), number)?;
    if hours > 15 || minutes > 59 || parts.next().is_some() {
        return None;
    }
    let nanos = i128::from(hours * 60 + minutes) * 60_000_000_000;
    Some((time[..at].trim_end(), Some(if time[at..].starts_with('-') { -nanos } else { nanos })))
}

/// Reads a moment, a date alone being its beginning: nanoseconds from 1970 in its own zone, and the zone.
pub(crate) fn read_moment(text: &str) -> Option<(i128, Option<i128>)> {
    let (text, era) = split_era(text.trim());
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
    let (time, zone) = split_zone(time.trim())?;
    Some((i128::from(date_of(date, era)?) * DAY_NANOS + read_time(time)?, zone))
}

/// Nanoseconds as microseconds, if they are some.
pub(crate) fn micros(nanos: i128) -> Option<i64> {
    if nanos % MICROS == 0 { i64::try_from(nanos / MICROS).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::{date_text, moment_text, read_date, read_moment, read_time, time_text};

    #[test]
    fn days_have_their_names() {
        for (days, name) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_782, "2024-02-29"),
            (11_016, "2000-02-29"),
            (-719_162, "0001-01-01"),
            (-719_163, "0001-12-31 BC"),
            (2_932_897, "10000-01-01"),
        ] {
            assert_eq!(date_text(days), name);
            assert_eq!(read_date(name), Some(days));
        }
        for days in (-1_000_000..4_000_000).step_by(97) {
            assert_eq!(read_date(&date_text(days)), Some(days));
        }
        for none in
            ["2023-02-29", "1900-02-29", "2024-13-01", "2024-00-10", "2024-04-31", "0000-01-01", "2024-1", "x", ""]
        {
            assert_eq!(read_date(none), None, "{none}");
        }
        date_text(i64::MIN);
    }

    #[test]
    fn moments_have_their_names() {
        let moment = |text| read_moment(text);
        assert_eq!(moment("1970-01-02 00:00:01.5"), Some((86_401_500_000_000, None)));
        assert_eq!(moment("1970-01-02"), Some((86_400_000_000_000, None)));
        assert_eq!(moment("1970-01-01T01:00:00+02"), Some((3_600_000_000_000, Some(7_200_000_000_000))));
        assert_eq!(moment("1970-01-01 01:00-02:30"), Some((3_600_000_000_000, Some(-9_000_000_000_000))));
        assert_eq!(moment_text(-1, "+00"), "1969-12-31 23:59:59.999999999+00");
        assert_eq!(time_text(0), "00:00:00");
        for none in [
            "1970-01-01 25:00:00",
            "1970-01-01 10:60:00",
            "1970-01-01 10",
            "1970-01-01 10:00:00.1234567891",
            "1970-01-01 é",
        ] {
            assert_eq!(moment(none), None, "{none}");
        }
        assert_eq!(read_time("24:00:00"), Some(86_400_000_000_000));
        assert_eq!(read_time("24:00:01"), None);
    }
}
