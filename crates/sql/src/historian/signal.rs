//! What is known of a signal between its samples.
//!
//! ```text
//! value
//!   |   p-------.                p: good     step: p holds until the next sample, or until it is too old
//!   |   .  `--. :      r---      q: good     linear: a line joins two good samples that follow each other
//!   |   .      `q..  .          b: bad      either way a bad sample ends what was known before it
//!   |___.______.__b__._____ time
//! ```
//!
//! 1. Of samples of one series at one time one counts: the better in quality, then the larger value.
//! 2. A sample without a value is bad, whatever its quality says; a NULL of good quality is no sample at all.
//! 3. Nothing is known before the first good sample, and with lines nothing after the last.

use super::grid::Tick;
use super::quality;

/// What stands between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Method {
    /// The value holds.
    Step,
    /// A line.
    Linear,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// When, in ticks of the table's times.
    pub ts: i64,
    /// The value, if it is good.
    pub value: Option<f64>,
    /// The quality that came with it.
    pub quality: Option<i64>,
}

impl Sample {
    /// Which of two samples at one time counts.
    pub(crate) fn or_better(self, other: Sample) -> Sample {
        let rank = |sample: &Sample| (sample.value.is_some(), sample.quality.map(quality::rank));
        let value = |sample: &Sample| sample.value.unwrap_or(0.0);
        match rank(&other).cmp(&rank(&self)).then(greater(value(&other), value(&self))) {
            std::cmp::Ordering::Greater => other,
            _ => self,
        }
    }
}

/// Compares as ORDER BY does: NaN is the greatest.
pub(crate) fn greater(left: f64, right: f64) -> std::cmp::Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// How samples make a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Signal {
    /// What stands between samples.
    pub method: Method,
    /// Ticks for which a sample is good, or over which a line is drawn.
    pub max_age: Option<i64>,
}

/// A piece of a signal that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    /// How long.
    pub ticks: i64,
    /// The value where it begins.
    pub first: f64,
    /// The value where it ends.
    pub last: f64,
}

impl Piece {
    /// Value times ticks.
    pub(crate) fn area(&self) -> f64 {
        let height = if self.first == self.last { self.first } else { self.first / 2.0 + self.last / 2.0 };
        height * self.ticks as f64
    }
}

impl Signal {
    /// What EXPLAIN says of it.
    pub(crate) fn shown(&self, tick: Tick) -> String {
        let method = match self.method {
            Method::Step => "step",
            Method::Linear => "linear",
        };
        let age = self.max_age.map_or(String::new(), |age| format!(", max_age: {}", tick.length(age)));
        format!("method: {method}{age}")
    }

    /// Whether two times are so near that the sample at the first says something of the second.
    fn near(&self, earlier: i64, later: i64) -> bool {
        self.max_age.is_none_or(|age| i128::from(later) - i128::from(earlier) <= i128::from(age))
    }

    /// The value at a time that is not before one sample, and before the next if there is one.
    pub(crate) fn at(&self, before: &Sample, after: Option<&Sample>, time: i64) -> Option<f64> {
        let value = before.value?;
        if time == before.ts {
            return Some(value);
        }
        match self.method {
            Method::Step => self.near(before.ts, time).then_some(value),
            Method::Linear => self.line(before, after).map(|end| between((before.ts, value), end, time)),
        }
    }

    /// The other end of the line that begins in a sample.
    fn line(&self, before: &Sample, after: Option<&Sample>) -> Option<(i64, f64)> {
        let after = after?;
        let value = after.value?;
        self.near(before.ts, after.ts).then_some((after.ts, value))
    }

    /// What is known of `from..to`, times between two samples that follow each other.
    pub(crate) fn piece(&self, before: &Sample, after: Option<&Sample>, from: i64, to: i64) -> Option<Piece> {
        let value = before.value?;
        match self.method {
            Method::Step => {
                let until = self.max_age.map_or(to, |age| to.min(before.ts.saturating_add(age)));
                (until > from).then(|| Piece { ticks: until - from, first: value, last: value })
            }
            Method::Linear => {
                let (start, end) = ((before.ts, value), self.line(before, after)?);
                let piece = Piece { ticks: to - from, first: between(start, end, from), last: between(start, end, to) };
                (to > from).then_some(piece)
            }
        }
    }
}

/// The value at a time on a line between two others.
pub(crate) fn between(start: (i64, f64), end: (i64, f64), time: i64) -> f64 {
    // At its ends, and where it is level, the line is what the samples say: infinity times zero would be NaN.
    if time <= start.0 || start.1 == end.1 {
        return start.1;
    }
    if time >= end.0 {
        return end.1;
    }
    let ticks = |from: i64, to: i64| (i128::from(to) - i128::from(from)) as f64;
    let part = ticks(start.0, time) / ticks(start.0, end.0);
    start.1 * (1.0 - part) + end.1 * part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ts: i64, value: Option<f64>, quality: Option<i64>) -> Sample {
        Sample { ts, value, quality }
    }

    #[test]
    fn of_two_samples_at_one_time_the_better_counts_whatever_comes_first() {
        let cases = [
            (sample(0, Some(1.0), Some(192)), sample(0, None, Some(0))),
            (sample(0, Some(1.0), Some(216)), sample(0, Some(9.0), Some(192))),
            (sample(0, Some(2.0), Some(192)), sample(0, Some(1.0), Some(192))),
            (sample(0, Some(f64::NAN), None), sample(0, Some(f64::INFINITY), None)),
            (sample(0, None, Some(64)), sample(0, None, Some(32))),
        ];
        for (better, other) in cases {
            for chosen in [better.or_better(other), other.or_better(better)] {
                assert_eq!(format!("{chosen:?}"), format!("{better:?}"));
            }
        }
    }

    #[test]
    fn lines_end_in_their_samples_and_never_make_nan_of_infinity() {
        let (low, high) = ((0, f64::INFINITY), (10, f64::INFINITY));
        assert_eq!(between(low, high, 0), f64::INFINITY);
        assert_eq!(between(low, high, 3), f64::INFINITY);
        assert_eq!(between((0, 1.0), (10, f64::INFINITY), 10), f64::INFINITY);
        assert_eq!(between((0, 1.0), (10, f64::INFINITY), 0), 1.0);
        assert_eq!(between((i64::MIN, 0.0), (i64::MAX, 1.0), 0), 0.5);
        assert_eq!(between((0, f64::MAX), (2, -f64::MAX), 1), 0.0);
    }

    #[test]
    fn a_step_holds_as_long_as_it_is_good() {
        let signal = Signal { method: Method::Step, max_age: Some(5) };
        let last = sample(10, Some(3.0), None);
        assert_eq!(signal.at(&last, None, 15), Some(3.0));
        assert_eq!(signal.at(&last, None, 16), None);
        assert_eq!(signal.piece(&last, None, 12, 20), Some(Piece { ticks: 3, first: 3.0, last: 3.0 }));
        assert_eq!(signal.piece(&last, None, 15, 20), None);
    }
}
