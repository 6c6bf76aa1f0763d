//! The unit of the times in a request.

/// The unit that the times of a request count in, since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Precision {
    #[default]
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
}

impl Precision {
    /// The precision that `/write` means by a name: `n`, `ns`, `u`, `µ`, `us`, `ms`, `s`, `m`, `h`.
    pub fn from_version_1(name: &str) -> Option<Precision> {
        Some(match name {
            "n" | "ns" => Precision::Nanoseconds,
            "u" | "µ" | "us" => Precision::Microseconds,
            "ms" => Precision::Milliseconds,
            "s" => Precision::Seconds,
            "m" => Precision::Minutes,
            "h" => Precision::Hours,
            _ => return None,
        })
    }

    /// The precision that `/api/v2/write` means by a name: `ns`, `us`, `ms`, `s`.
    pub fn from_version_2(name: &str) -> Option<Precision> {
        match name {
            "ns" | "us" | "ms" | "s" => Precision::from_version_1(name),
            _ => None,
        }
    }

    /// Nanoseconds in one unit.
    pub fn nanoseconds(self) -> i64 {
        match self {
            Precision::Nanoseconds => 1,
            Precision::Microseconds => 1_000,
            Precision::Milliseconds => 1_000_000,
            Precision::Seconds => 1_000_000_000,
            Precision::Minutes => 60_000_000_000,
            Precision::Hours => 3_600_000_000_000,
        }
    }

    /// A time of a line in nanoseconds; none where those do not fit.
    pub fn scale(self, time: i64) -> Option<i64> {
        time.checked_mul(self.nanoseconds())
    }

    /// The time of a line that has none: the present one, cut to this precision as InfluxDB does.
    pub fn cut(self, now: i64) -> i64 {
        now - now.rem_euclid(self.nanoseconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_does_not_fit_is_none() {
        assert_eq!(Precision::Hours.scale(i64::MAX), None);
        assert_eq!(Precision::Seconds.scale(-1), Some(-1_000_000_000));
        assert_eq!(Precision::Seconds.cut(1_999_999_999), 1_000_000_000);
        assert_eq!(Precision::Seconds.cut(-1), -1_000_000_000);
    }

    #[test]
    fn version_2_has_no_minutes() {
        assert_eq!(Precision::from_version_1("m"), Some(Precision::Minutes));
        assert_eq!(Precision::from_version_2("m"), None);
        assert_eq!(Precision::from_version_1("weeks"), None);
    }
}
