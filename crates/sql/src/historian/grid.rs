//! The buckets of a range of time: the first begins with the range, the last ends with it.

use std::fmt;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};

use crate::error::{Error, Result};
use crate::text;

/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;

/// How long a tick of a table's times is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tick {
    /// Microseconds or nanoseconds.
    pub unit: TimeUnit,
    /// Whether times carry a zone.
    pub zoned: bool,
}

impl Tick {
    /// Of a type of times, if it is one in microseconds or nanoseconds.
    pub(crate) fn of(kind: &DataType) -> Option<Tick> {
        match kind {
            DataType::Timestamp(unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond), zone) => {
                Some(Tick { unit: *unit, zoned: zone.is_some() })
            }
            _ => None,
        }
    }

    /// Nanoseconds of a tick.
    pub(crate) fn nanoseconds(self) -> i64 {
        if self.unit == TimeUnit::Nanosecond { 1 } else { 1000 }
    }

    /// Ticks as seconds.
    pub(crate) fn seconds(self) -> f64 {
        self.nanoseconds() as f64 / 1e9
    }

    /// An instant, for people.
    pub(crate) fn shown(self, time: i64) -> String {
        let mut out = String::new();
        text::timestamp(&mut out, i128::from(time) * i128::from(self.nanoseconds()), self.zoned);
        out
    }

    /// A length of time, for people: in the largest unit that says it without a fraction.
    pub(crate) fn length(self, ticks: i64) -> String {
        const UNITS: [(&str, i64); 6] = [
            ("h", 3_600_000_000_000),
            ("min", 60_000_000_000),
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1000),
            ("ns", 1),
        ];
        let nanoseconds = i128::from(ticks) * i128::from(self.nanoseconds());
        let fits = |unit: &&(&str, i64)| nanoseconds % i128::from(unit.1) == 0;
        let (name, size) = UNITS.iter().find(fits).unwrap_or(&("ns", 1));
        format!("{} {name}", nanoseconds / i128::from(*size))
    }

    /// The ticks of an interval that has no months.
    ///
    /// # Errors
    /// [`Error::Sql`] if it has months, is not positive, or finer or longer than times can be.
    pub(crate) fn ticks(self, what: &str, interval: IntervalMonthDayNano) -> Result<i64> {
        if interval.months != 0 {
            return Err(Error::Sql(format!("{what}: months are not always as long; say days or hours")));
        }
        let nanoseconds = i128::from(interval.days) * DAY + i128::from(interval.nanoseconds);
        let size = i128::from(self.nanoseconds());
        match i64::try_from(nanoseconds / size) {
            Ok(ticks) if ticks > 0 && nanoseconds % size == 0 => Ok(ticks),
            _ if nanoseconds <= 0 => Err(Error::Sql(format!("{what}: must be longer than nothing"))),
            Ok(_) => Err(Error::Sql(format!("{what}: finer than the microseconds of the times"))),
            Err(_) => Err(Error::Sql(format!("{what}: longer than a timestamp reaches"))),
        }
    }
}

/// How wide a bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Width {
    Ticks(i64),
    Months(i32),
}

/// Buckets one after another: `[start, start + width)`, `[start + width, start + 2 width)`, ... , the last cut at `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grid {
    /// The first instant of the range.
    pub start: i64,
    /// The first instant after it.
    pub stop: i64,
    /// What a tick is.
    pub tick: Tick,
    width: Width,
}

impl Grid {
    /// The buckets of a range.
    ///
    /// # Errors
    /// [`Error::Sql`] if the range is empty or the width is not positive.
    pub(crate) fn new(start: i64, stop: i64, width: IntervalMonthDayNano, tick: Tick) -> Result<Self> {
        if stop <= start {
            let (start, stop) = (tick.shown(start), tick.shown(stop));
            return Err(Error::Sql(format!("the range from {start} to {stop} is empty: stop must be after start")));
        }
        if stop.checked_sub(start).is_none() {
            return Err(Error::Sql("the range is longer than its length can be counted: narrow it".into()));
        }
        let width = match (width.months, width.days, width.nanoseconds) {
            (months, 0, 0) if months > 0 => Width::Months(months),
            (0, ..) => Width::Ticks(tick.ticks("width", width)?),
            _ => return Err(Error::Sql("width: whole months, or days and less, and more than nothing".into())),
        };
        Ok(Grid { start, stop, tick, width })
    }

    /// Where a bucket begins; `stop` for what would begin later.
    pub(crate) fn bound(&self, index: i64) -> i64 {
        let bound = match self.width {
            Width::Ticks(ticks) => index.checked_mul(ticks).and_then(|offset| self.start.checked_add(offset)),
            Width::Months(months) => i32::try_from(index)
                .ok()
                .and_then(|index| index.checked_mul(months))
                .and_then(|months| later(self.start, months, self.tick)),
        };
        bound.map_or(self.stop, |bound| bound.min(self.stop))
    }

    /// The bucket in which an instant of the range lies.
    pub(crate) fn index(&self, time: i64) -> i64 {
        match self.width {
            Width::Ticks(ticks) => (time - self.start) / ticks,
            // Months are few: even of the longest range there are less than four million.
            Width::Months(_) => {
                (0..).find(|index| self.bound(index + 1) > time || self.bound(index + 1) == self.stop).unwrap_or(0)
            }
        }
    }
}

/// A time some months later: on the same day, or on the last one of a month that does not have it.
pub(crate) fn later(start: i64, months: i32, tick: Tick) -> Option<i64> {
    let utc: Tz = crate::types::UTC.parse().ok()?;
    match tick.unit {
        TimeUnit::Nanosecond => TimestampNanosecondType::add_year_months(start, months, utc),
        _ => TimestampMicrosecondType::add_year_months(start, months, utc),
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width {
            Width::Ticks(ticks) => write!(f, "every {}", self.tick.length(ticks))?,
            Width::Months(months) => write!(f, "every {months} months")?,
        }
        write!(f, " from {} to {}", self.tick.shown(self.start), self.tick.shown(self.stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Tick = Tick { unit: TimeUnit::Microsecond, zoned: false };

    #[test]
    fn months_are_as_long_as_they_are() {
        // 2024-01-31 00:00:00
        let start = 1_706_659_200_000_000;
        let grid = Grid::new(start, i64::MAX, IntervalMonthDayNano::new(1, 0, 0), TICK).unwrap();
        let shown: Vec<String> = (0..4).map(|index| TICK.shown(grid.bound(index))).collect();
        assert_eq!(shown, ["2024-01-31 00:00:00", "2024-02-29 00:00:00", "2024-03-31 00:00:00", "2024-04-30 00:00:00"]);
        assert_eq!(grid.bound(i64::MAX), i64::MAX);
    }

    #[test]
    fn what_cannot_be_a_width_is_said() {
        let width = |months, days, nanoseconds| {
            let width = IntervalMonthDayNano::new(months, days, nanoseconds);
            Grid::new(0, 100, width, TICK).unwrap_err().to_string()
        };
        assert_eq!(width(0, 0, 0), "width: must be longer than nothing");
        assert_eq!(width(0, 0, -1000), "width: must be longer than nothing");
        assert_eq!(width(0, 0, 1500), "width: finer than the microseconds of the times");
        assert_eq!(width(1, 1, 0), "width: whole months, or days and less, and more than nothing");
        assert_eq!(width(-1, 0, 0), "width: whole months, or days and less, and more than nothing");
        assert!(Grid::new(5, 5, IntervalMonthDayNano::new(0, 1, 0), TICK).is_err());
        assert!(Grid::new(i64::MIN, i64::MAX, IntervalMonthDayNano::new(0, 1, 0), TICK).is_err());
    }
}
