//! Where the bucket of a time begins: for the function `date_bin`, and for what is answered from summaries in its place.

use datafusion::arrow::datatypes::IntervalMonthDayNano;

use crate::error::{Error, Result};
use crate::historian::{Tick, later};

/// Nanoseconds of a month, on average over the 400 years after which the calendar begins anew.
const MONTH: i128 = 2_629_746_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    /// Buckets of so many ticks; one begins so many ticks after zero.
    Ticks { stride: i64, phase: i64 },
    /// Buckets of so many months; one begins at the origin.
    Months { months: i32, origin: i64 },
}

/// Buckets from an origin on, and before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bin {
    tick: Tick,
    width: Width,
}

impl Bin {
    /// Buckets of times with this tick, in which the origin is told as well.
    ///
    /// # Errors
    /// [`Error::Sql`] for a width that is not positive, finer than a tick, or of months and days together.
    pub(crate) fn new(width: IntervalMonthDayNano, origin: i64, tick: Tick) -> Result<Bin> {
        let width = match (width.months, width.days, width.nanoseconds) {
            (0, ..) => {
                let stride = tick.ticks("date_bin", width)?;
                Width::Ticks { stride, phase: origin.rem_euclid(stride) }
            }
            (months, 0, 0) if months > 0 => Width::Months { months, origin },
            _ => return Err(Error::Sql("date_bin: whole months, or days and less, and more than nothing".into())),
        };
        Ok(Bin { tick, width })
    }

    /// Where the bucket of a time begins; none if no timestamp says it: then it lies at an end of all of time.
    pub(crate) fn of(&self, time: i64) -> Option<i64> {
        match self.width {
            Width::Ticks { stride, phase } => time.checked_sub((time.rem_euclid(stride) - phase).rem_euclid(stride)),
            Width::Months { months, origin } => self.month(time, months, origin),
        }
    }

    /// A guess by the length of an average month, and from there to the last bucket that begins at the time or before it.
    fn month(&self, time: i64, months: i32, origin: i64) -> Option<i64> {
        let begin = |index: i32| later(origin, index.checked_mul(months)?, self.tick);
        let distance = (i128::from(time) - i128::from(origin)) * i128::from(self.tick.nanoseconds());
        let mut index = i32::try_from(distance.div_euclid(MONTH * i128::from(months))).ok()?;
        while begin(index)? > time {
            index -= 1;
        }
        while begin(index + 1).is_some_and(|next| next <= time) {
            index += 1;
        }
        begin(index)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::TimeUnit;

    use super::*;

    const MICROSECONDS: Tick = Tick { unit: TimeUnit::Microsecond, zoned: false };

    fn bin(months: i32, days: i32, nanoseconds: i64, origin: i64) -> Result<Bin> {
        Bin::new(IntervalMonthDayNano::new(months, days, nanoseconds), origin, MICROSECONDS)
    }

    #[test]
    fn buckets_begin_before_their_times() {
        let hour = bin(0, 0, 3_600_000_000_000, 0).expect("an hour");
        let hours = [0, 1, 3_599_999_999, 3_600_000_000, -1, -3_600_000_000].map(|time| hour.of(time));
        assert_eq!(hours, [0, 0, 0, 3_600_000_000, -3_600_000_000, -3_600_000_000].map(Some));
        let moved = bin(0, 1, 0, 5).expect("a day");
        assert_eq!([4, 5, -86_399_999_995].map(|time| moved.of(time)), [-86_399_999_995, 5, -86_399_999_995].map(Some));
    }

    #[test]
    fn only_what_would_begin_before_all_of_time_has_no_beginning() {
        for origin in [0, 1, i64::MIN, i64::MAX] {
            let hour = bin(0, 0, 3_600_000_000_000, origin).expect("an hour");
            let last = hour.of(i64::MAX).expect("a beginning");
            assert!(i64::MAX - last < 3_600_000_000);
            assert_eq!(hour.of(last - 1), Some(last - 3_600_000_000));
            let first = hour.of(i64::MIN + 3_600_000_000).expect("a beginning");
            assert_eq!(hour.of(first), Some(first));
            // Only where one begins with all of time has its first moment a beginning.
            let begins_there = first == i64::MIN + 3_600_000_000;
            assert_eq!(hour.of(i64::MIN), begins_there.then_some(i64::MIN), "{origin}");
        }
        let month = bin(1, 0, 0, 0).expect("a month");
        assert_eq!([i64::MIN, i64::MAX].map(|time| month.of(time)), [None, None]);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let shown = |bin: Bin, time| MICROSECONDS.shown(bin.of(time).expect("a beginning"));
        let (day, year) = (86_400_000_000, 31_556_952_000_000);
        // From 1970-01-31 on: a bucket begins with the last day of a month that has no 31st.
        let month = bin(1, 0, 0, 30 * day).expect("a month");
        let times = [0, 30 * day, 57 * day, 58 * day, 89 * day, 89 * day - 1].map(|time| shown(month, time));
        let begins = ["1969-12-31", "1970-01-31", "1970-01-31", "1970-02-28", "1970-03-31", "1970-02-28"]
            .map(|day| format!("{day} 00:00:00"));
        assert_eq!(times, begins);
        let quarter = bin(3, 0, 0, 0).expect("a quarter");
        assert_eq!(shown(quarter, 400 * year), "2370-01-01 00:00:00");
        assert_eq!(shown(quarter, -400 * year - 1), "1569-10-01 00:00:00");
    }

    #[test]
    fn what_is_no_width_is_refused() {
        for (months, days, nanoseconds) in
            [(0, 0, 1500), (0, 0, 0), (0, 0, -1000), (1, 1, 0), (-1, 0, 0), (0, i32::MAX, 0)]
        {
            assert!(bin(months, days, nanoseconds, 0).is_err(), "{months} {days} {nanoseconds}");
        }
    }
}
