//! What is known of a column of many points without looking at them: of a leaf when it is born, of a node when it is written, of a
//! tail when it is asked.
//!
//! ```text
//! first ------ lead ============ area, known ============ last
//!       nothing yet | a value from one sample to the next | held: what goes on from here
//! ```
//! 1. A summary of points one after another is the sum of the summaries of their parts, whatever the parts are.
//! 2. Values are kept as integers in whose order they are sorted: of doubles their total order, -NaN lowest and NaN highest.
//! 3. A *sample* is a point whose value is not NULL or whose quality is not good. A good one holds until the next sample; one
//!    that is not good ends what was known. A good NULL is no sample.

use crate::column::{Column, Kind, Value, Values};
use crate::wide::{self, Adder, Wide};

/// Not a number, in what is summed.
const NAN: u8 = 1;
/// Infinities in what is summed.
const ABOVE: u8 = 2;
const BELOW: u8 = 4;

/// A sum of values: exact while they lie within 126 binary places, and then rounded once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub(crate) finite: Wide,
    /// Which of NaN and the infinities are among the values.
    pub(crate) odd: u8,
}

impl Sum {
    /// The double nearest to it; what IEEE 754 makes of NaN and infinities.
    pub fn double(&self) -> f64 {
        match self.odd {
            0 => self.finite.nearest(),
            ABOVE => f64::INFINITY,
            BELOW => f64::NEG_INFINITY,
            _ => f64::NAN,
        }
    }

    /// The sum of integers; none if it does not fit.
    pub fn integer(&self) -> Option<i128> {
        let (mantissa, exponent) = (self.finite.mantissa(), u32::try_from(self.finite.exponent()).ok()?);
        let shifted = mantissa.checked_shl(exponent).filter(|shifted| shifted.checked_shr(exponent) == Some(mantissa));
        shifted.filter(|_| self.odd == 0)
    }

    pub(crate) fn stored(finite: Wide, odd: i64) -> Option<Sum> {
        let odd = u8::try_from(odd).ok().filter(|odd| *odd <= NAN | ABOVE | BELOW)?;
        Some(Sum { finite, odd })
    }

    fn merge(&mut self, other: &Sum) {
        *self = Sum { finite: self.finite.plus(other.finite), odd: self.odd | other.odd };
    }
}

/// A sum in the making.
#[derive(Clone, Copy, Debug, Default)]
struct Adding {
    finite: Adder,
    odd: u8,
}

impl Adding {
    /// Adds a value so many times.
    fn add(&mut self, kind: Kind, rank: i64, times: u64) {
        if kind != Kind::Double {
            return self.finite.add(i128::from(rank) * i128::from(times), 0);
        }
        let value = double(rank);
        if value.is_finite() {
            let (mantissa, exponent) = wide::parts(value);
            self.finite.add(i128::from(mantissa) * i128::from(times), exponent);
        } else if times > 0 {
            self.odd |= if value.is_nan() { NAN } else { ABOVE << u8::from(value < 0.0) };
        }
    }

    fn sum(&self) -> Sum {
        Sum { finite: self.finite.wide(), odd: self.odd }
    }
}

/// What goes on behind the last point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// There was no sample: whatever went on before.
    AsBefore,
    /// The last sample was not good.
    Nothing,
    /// A value, by its rank.
    Value(i64),
}

/// A column of points that follow each other in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub(crate) kind: Kind,
    /// Values that are not NULL.
    pub count: u64,
    /// Those of them whose quality is good: 192 to 255 in the low byte, or none known.
    pub good: u64,
    /// Their sum, all of them.
    pub sum: Sum,
    /// The lowest and the highest rank: of no meaning where there is no value.
    pub(crate) least: i64,
    pub(crate) greatest: i64,
    /// The value of the first and of the last point, which may be NULL.
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
    /// How long after the first point the first sample is, in the unit of time; none if there is none.
    pub lead: Option<u64>,
    /// The integral of good values over time, each held until the next sample, up to the last point: value times unit of time.
    pub area: Sum,
    /// For how much of that time a value is known.
    pub known: u64,
    pub(crate) held: Held,
}

impl Summary {
    /// Of no points.
    pub(crate) fn empty(kind: Kind) -> Summary {
        Summary {
            kind,
            count: 0,
            good: 0,
            sum: Sum::default(),
            least: 0,
            greatest: 0,
            first: None,
            last: None,
            lead: None,
            area: Sum::default(),
            known: 0,
            held: Held::AsBefore,
        }
    }

    /// Of some points of a column that holds no texts, with their qualities if there are any.
    pub(crate) fn of(times: &[i64], column: &Column, quality: Option<&Column>, from: usize) -> Summary {
        let range = from..from + times.len();
        let all_good = quality.is_none_or(|quality| match &quality.values {
            Values::Integers(values) => values[range.clone()].iter().all(|quality| quality & 0xFF >= 192),
            _ => true,
        });
        match &column.values {
            Values::Doubles(values) if all_good && range.clone().all(|at| column.is_present(at)) => {
                of_near(times, &values[range]).unwrap_or_else(|| Self::of_any(times, column, quality, from))
            }
            _ => Self::of_any(times, column, quality, from),
        }
    }

    fn of_any(times: &[i64], column: &Column, quality: Option<&Column>, from: usize) -> Summary {
        let kind = column.values.kind();
        let mut summary = Summary::empty(kind);
        let is_good = |at: usize| match quality {
            Some(Column { values: Values::Integers(values), present }) => {
                present.as_ref().is_some_and(|present| !present[at]) || values[at] & 0xFF >= 192
            }
            _ => true,
        };
        let (mut sum, mut area) = (Adding::default(), Adding::default());
        let mut before = times.first().copied().unwrap_or_default();
        for (at, time) in times.iter().enumerate() {
            let (rank, long) = (rank(column, from + at), time.wrapping_sub(before) as u64);
            if let Held::Value(held) = summary.held {
                area.add(kind, held, long);
                summary.known += long;
            }
            if let Some(rank) = rank {
                sum.add(kind, rank, 1);
            }
            before = *time;
            summary.take(rank, is_good(from + at), time.wrapping_sub(times[0]) as u64);
        }
        if let Some(last) = times.len().checked_sub(1) {
            (summary.first, summary.last) = (rank(column, from), rank(column, from + last));
        }
        (summary.sum, summary.area) = (sum.sum(), area.sum());
        summary
    }

    /// Takes a point, so long after the first one; the sums are the caller's.
    fn take(&mut self, rank: Option<i64>, is_good: bool, after: u64) {
        if let Some(rank) = rank {
            (self.least, self.greatest) = match self.count {
                0 => (rank, rank),
                _ => (self.least.min(rank), self.greatest.max(rank)),
            };
            self.count += 1;
            self.good += u64::from(is_good);
        }
        if rank.is_some() || !is_good {
            self.lead = self.lead.or(Some(after));
            self.held = rank.filter(|_| is_good).map_or(Held::Nothing, Held::Value);
        }
    }

    /// What is known goes on for a while.
    fn hold(&mut self, long: u64) {
        if let Held::Value(rank) = self.held {
            let mut area = Adding::default();
            area.add(self.kind, rank, long);
            self.area.merge(&area.sum());
            self.known = self.known.wrapping_add(long);
        }
    }

    /// Adds what comes after: its first point is so long after our first one and our last one, and it goes on for so long.
    pub(crate) fn append(&mut self, next: &Summary, from_first: u64, from_last: u64, long: u64) {
        self.hold(from_last.wrapping_add(next.lead.unwrap_or(long)));
        self.area.merge(&next.area);
        self.known = self.known.wrapping_add(next.known);
        self.lead = self.lead.or(next.lead.map(|lead| from_first.wrapping_add(lead)));
        if next.held != Held::AsBefore {
            self.held = next.held;
        }
        self.join(next);
        self.last = next.last;
    }

    /// Adds what does not hang on the order in which points come.
    pub(crate) fn join(&mut self, other: &Summary) {
        if other.count > 0 {
            (self.least, self.greatest) = match self.count {
                0 => (other.least, other.greatest),
                _ => (self.least.min(other.least), self.greatest.max(other.greatest)),
            };
        }
        self.count += other.count;
        self.good += other.good;
        self.sum.merge(&other.sum);
    }

    /// The least value; of doubles -NaN is the least and NaN the greatest.
    pub fn least(&self) -> Option<Value> {
        self.value(Some(self.least).filter(|_| self.count > 0))
    }

    /// The greatest value.
    pub fn greatest(&self) -> Option<Value> {
        self.value(Some(self.greatest).filter(|_| self.count > 0))
    }

    /// The value of the first point; none if that is NULL.
    pub fn first(&self) -> Option<Value> {
        self.value(self.first)
    }

    /// The value of the last point.
    pub fn last(&self) -> Option<Value> {
        self.value(self.last)
    }

    /// What is known from the last point on: of good quality, and none if the last sample is not good or there is none.
    pub fn held(&self) -> Option<Value> {
        match self.held {
            Held::Value(rank) => self.value(Some(rank)),
            Held::Nothing | Held::AsBefore => None,
        }
    }

    fn value(&self, rank: Option<i64>) -> Option<Value> {
        rank.map(|rank| match self.kind {
            Kind::Double => Value::Double(double(rank)),
            Kind::Integer | Kind::Text => Value::Integer(rank),
        })
    }
}

/// Of doubles that are all there and good, if they are finite and of about the same size, as those of one sensor are: their sums are
/// those of integers then.
fn of_near(times: &[i64], values: &[f64]) -> Option<Summary> {
    let (first, last) = (*values.first()?, *values.last()?);
    times[times.len() - 1].checked_sub(times[0])?;
    let (mut least, mut greatest, mut low, mut high) = (i64::MAX, i64::MIN, i32::MAX, i32::MIN);
    for value in values {
        let rank = rank_of(*value);
        (least, greatest) = (least.min(rank), greatest.max(rank));
        if *value != 0.0 {
            let exponent = wide::parts(*value).1;
            (low, high) = (low.min(exponent), high.max(exponent));
        }
    }
    let is_near = low > high || high - low <= 8;
    if !is_near || !double(least).is_finite() || !double(greatest).is_finite() {
        return None;
    }
    // Mantissas have 53 bits, so these have 61; a sum of 2^15 of them, and their area over 2^63 units of time, fit into 126.
    let scaled = |value: f64| match wide::parts(value) {
        (0, _) => 0,
        (mantissa, exponent) => mantissa << (exponent - low),
    };
    let (mut sum, mut area, mut held, mut before) = (0_i128, 0_i128, 0_i64, times[0]);
    for (value, time) in values.iter().zip(times) {
        area += i128::from(held) * i128::from(time - before);
        (held, before) = (scaled(*value), *time);
        sum += i128::from(held);
    }
    let exponent = if low > high { 0 } else { low };
    let count = values.len() as u64;
    Some(Summary {
        count,
        good: count,
        sum: Sum { finite: Wide::new(sum, exponent), odd: 0 },
        least,
        greatest,
        first: Some(rank_of(first)),
        last: Some(rank_of(last)),
        lead: Some(0),
        area: Sum { finite: Wide::new(area, exponent), odd: 0 },
        known: (before - times[0]) as u64,
        held: Held::Value(rank_of(last)),
        ..Summary::empty(Kind::Double)
    })
}

/// The integer in whose order doubles are sorted; it is its own inverse on bits.
pub(crate) fn rank_of(value: f64) -> i64 {
    let bits = value.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The double of a rank.
pub(crate) fn double(rank: i64) -> f64 {
    f64::from_bits((rank ^ ((rank >> 63) as u64 >> 1) as i64) as u64)
}

fn rank(column: &Column, at: usize) -> Option<i64> {
    match &column.values {
        Values::Integers(values) => column.is_present(at).then(|| values[at]),
        Values::Doubles(values) => column.is_present(at).then(|| rank_of(values[at])),
        Values::Texts(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn near_ones_are_like_any(
            rows in prop::collection::vec((1_i64..1 << 40, -1000_i64..1000, 0_u32..4), 1..60), first in any::<i32>(),
        ) {
            let (mut times, mut values, mut time) = (Vec::new(), Vec::new(), i64::from(first));
            for (step, digits, power) in rows {
                time += step;
                times.push(time);
                values.push(digits as f64 / [1.0, 10.0, 8.0, 1000.0][power as usize]);
            }
            if let Some(near) = of_near(&times, &values) {
                let column = Column { values: Values::Doubles(values), present: None };
                prop_assert_eq!(near, Summary::of_any(&times, &column, None, 0));
            }
        }
    }
}
