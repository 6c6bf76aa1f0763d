//! `date_bin` of a time column, by arithmetic: the same that the query library does for each row.

use datafusion::scalar::ScalarValue;

/// Nanoseconds of a day without a change of the clock.
const DAY: i128 = 86_400_000_000_000;

/// Buckets of one width. Where the library's arithmetic in nanoseconds overflows it answers NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bin {
    /// Nanoseconds of a unit of the time column, and of a unit of the answer.
    scale: i64,
    answer: i64,
    /// Nanoseconds.
    stride: i64,
    origin: i64,
}

impl Bin {
    /// Buckets of a width from an origin on; none if they are not of one width, or not whole units of the answer. Units have so
    /// many nanoseconds.
    pub(super) fn new(stride: &ScalarValue, origin: Option<&ScalarValue>, (scale, answer): (i64, i64)) -> Option<Bin> {
        let stride = match stride {
            ScalarValue::IntervalMonthDayNano(Some(stride)) if stride.months == 0 => {
                i128::from(stride.days) * DAY + i128::from(stride.nanoseconds)
            }
            _ => return None,
        };
        let origin = match origin {
            None => 0,
            Some(ScalarValue::TimestampNanosecond(Some(origin), _)) => *origin,
            Some(ScalarValue::TimestampMicrosecond(Some(origin), _)) => origin.checked_mul(1000)?,
            Some(_) => return None,
        };
        let stride = i64::try_from(stride).ok().filter(|stride| *stride > 0)?;
        (stride % answer == 0 && origin % answer == 0).then_some(Bin { scale, answer, stride, origin })
    }

    /// Where the bucket of a time begins.
    pub(super) fn of(&self, time: i64) -> Option<i64> {
        let distance = time.checked_mul(self.scale)?.checked_sub(self.origin)?;
        let whole = distance.checked_sub(distance.rem_euclid(self.stride))?;
        Some(self.origin.checked_add(whole)? / self.answer)
    }

    /// Whether a time is there in the unit of the answer: the library refuses to cast one that is not.
    pub(super) fn has(&self, time: i64) -> bool {
        self.scale == self.answer || time.checked_mul(self.scale).is_some()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    fn bin(days: i32, nanoseconds: i64, origin: Option<i64>) -> Option<Bin> {
        let stride = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(0, days, nanoseconds)));
        let origin = origin.map(|origin| ScalarValue::TimestampNanosecond(Some(origin), None));
        Bin::new(&stride, origin.as_ref(), (1000, 1000))
    }

    #[test]
    fn buckets_begin_before_their_times() {
        let hour = bin(0, 3_600_000_000_000, None).expect("an hour");
        let hours = [0, 1, 3_599_999_999, 3_600_000_000, -1, -3_600_000_000].map(|time| hour.of(time));
        assert_eq!(hours, [0, 0, 0, 3_600_000_000, -3_600_000_000, -3_600_000_000].map(Some));
        let moved = bin(1, 0, Some(5000)).expect("a day");
        assert_eq!([4, 5, -86_399_999_995].map(|time| moved.of(time)), [-86_399_999_995, 5, -86_399_999_995].map(Some));
        assert_eq!([i64::MIN, i64::MAX].map(|time| hour.of(time)), [None, None]);
        let stride = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(0, 0, 1500)));
        let cast = Bin::new(&stride, None, (1000, 1)).expect("microseconds that were cast");
        assert_eq!([0, 1, 2, 3, i64::MAX].map(|time| cast.of(time)), [Some(0), Some(0), Some(1500), Some(3000), None]);
        assert_eq!([0, i64::MAX].map(|time| (hour.has(time), cast.has(time))), [(true, true), (true, false)]);
    }

    #[test]
    fn buckets_that_are_no_whole_units_are_left_to_the_library() {
        assert_eq!(bin(0, 1500, None), None);
        assert_eq!(bin(0, 0, None), None);
        assert_eq!(bin(0, -1000, None), None);
        assert_eq!(bin(0, 1000, Some(1)), None);
        let month = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(1, 0, 0)));
        assert_eq!(Bin::new(&month, None, (1000, 1000)), None);
    }
}
