//! Moments, for people.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Seconds since 1970 as `2026-11-21 08:00:00 UTC`.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let mut text = String::new();
    counterfoil_sql::text::date(&mut text, (seconds / 86_400) as i64);
    let clock = seconds % 86_400;
    format!("{text} {:02}:{:02}:{:02} UTC", clock / 3600, clock / 60 % 60, clock % 60)
}

#[cfg(test)]
mod tests {
    #[test]
    fn moments_are_readable() {
        assert_eq!(super::utc(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(super::utc(1_795_248_000), "2026-11-21 08:00:00 UTC");
    }
}
