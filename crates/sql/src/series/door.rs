//! The swinging door of one series: which points can go because a line between two that stay says enough of them.
//!
//! ```text
//!            x  held: the newest point; it is stored, and goes when the next one takes its place
//!      o   o
//!  x           points that went: the line from the anchor to whatever is held passes each of them within the bound
//!  anchor: the last point that stays
//! ```
//! 1. A point that went lies, in every column with a bound, within that bound of the straight line between the points that stayed
//!    before and after it. For each one that went the door keeps the slopes from the anchor that pass it so; the next point must
//!    lie on one of them that all have in common. (The classical door asks whether its corners leave room for
//!    some line; this one asks for the line that will be drawn, and costs the same.)
//! 2. What is not measured (other columns, NULL, NaN and the infinities) is the same in a point that went as in both of those.
//! 3. Between points that stay next to each other no more than the largest gap passes.
//! 4. The newest point always stays until there is a newer one.
//!
//! Bounds are made smaller by what rounding may add, so that a line computed in double precision keeps them too.

/// What a door is told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// The bound of each measured column, in its unit; finite, not negative.
    pub(crate) bounds: Vec<f64>,
    /// The most time between points that stay, in the unit of the time column.
    pub(crate) gap: Option<i64>,
}

/// A point as a door sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) time: i64,
    /// For each bound the finite number measured; where there is none, something that `rest` tells.
    pub(crate) measured: Box<[f64]>,
    /// All else that the point says.
    pub(crate) rest: Box<[u8]>,
}

/// Slopes of lines from the anchor, in units a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slopes {
    low: f64,
    high: f64,
}

const ALL: Slopes = Slopes { low: f64::NEG_INFINITY, high: f64::INFINITY };

/// What rounding may take of a bound, as a share of the numbers it is about: some 30 roundings of double precision.
const ROUNDING: f64 = 1.0 / (1_u64 << 48) as f64;

/// The door of one series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Door {
    anchor: Point,
    held: Option<Point>,
    /// For each bound, the slopes that pass all points that went since the anchor.
    slopes: Box<[Slopes]>,
}

impl Door {
    /// One that begins at a point that stays.
    pub(crate) fn at(anchor: Point) -> Door {
        let slopes = vec![ALL; anchor.measured.len()].into();
        Door { anchor, held: None, slopes }
    }

    /// The time of the newest point.
    pub(crate) fn newest(&self) -> i64 {
        self.held.as_ref().unwrap_or(&self.anchor).time
    }

    /// Takes the next point, which is newer than all before; whether the one held before it goes.
    pub(crate) fn push(&mut self, next: Point, rule: &Rule) -> bool {
        let Some(held) = self.held.take() else {
            self.held = Some(next);
            return false;
        };
        if let Some(slopes) = self.without(&held, &next, rule) {
            (self.slopes, self.held) = (slopes, Some(next));
            return true;
        }
        *self = Door::at(held);
        self.held = Some(next);
        false
    }

    /// Whether the anchor, alone, stands for a point behind it (a dead band): it says the same within the bounds, and is not older than
    /// the largest gap.
    pub(crate) fn stands_for(&self, next: &Point, rule: &Rule) -> bool {
        let anchor = &self.anchor;
        let is_near = |column: usize| {
            let (from, to, bound) = (anchor.measured[column], next.measured[column], rule.bounds[column]);
            // What is not measured was found the same.
            !from.is_finite() || from == to || (to - from).abs() <= bound - ROUNDING * (from.abs() + to.abs() + bound)
        };
        anchor.rest == next.rest
            && rule.gap.is_none_or(|gap| ticks(anchor, next) < gap as f64)
            && (0..rule.bounds.len()).all(is_near)
    }

    /// The slopes that are left if the point held goes and the line leads to the next one; none if that line is none of them.
    fn without(&self, held: &Point, next: &Point, rule: &Rule) -> Option<Box<[Slopes]>> {
        let anchor = &self.anchor;
        if anchor.rest != held.rest || anchor.rest != next.rest {
            return None;
        }
        if rule.gap.is_some_and(|gap| ticks(anchor, next) > gap as f64) {
            return None;
        }
        let mut left = self.slopes.clone();
        for (column, slopes) in left.iter_mut().enumerate() {
            let (from, over, to) = (anchor.measured[column], held.measured[column], next.measured[column]);
            // What is not measured was found the same in all three.
            if from.is_finite() {
                *slopes = slopes.passing(from, over, ticks(anchor, held), rule.bounds[column])?;
                let slope = (to - from) / ticks(anchor, next);
                if !slope.is_finite() || slope < slopes.low || slopes.high < slope {
                    return None;
                }
            }
        }
        Some(left)
    }
}

impl Slopes {
    /// Those of them that pass a point within a bound.
    fn passing(self, from: f64, over: f64, ticks: f64, bound: f64) -> Option<Slopes> {
        let bound = bound - ROUNDING * (from.abs() + over.abs() + bound);
        let rise = over - from;
        let (low, high) = match bound >= 0.0 {
            true => ((rise - bound) / ticks, (rise + bound) / ticks),
            // Too narrow for what rounding adds, but a value that stays the same needs no rounding.
            false if rise == 0.0 => (0.0, 0.0),
            false => return None,
        };
        let left = Slopes { low: self.low.max(low), high: self.high.min(high) };
        (left.low.is_finite() && left.high.is_finite() && left.low <= left.high).then_some(left)
    }
}

/// The time from one point to another, above 0.
fn ticks(from: &Point, to: &Point) -> f64 {
    (i128::from(to.time) - i128::from(from.time)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(time: i64, value: f64, rest: u8) -> Point {
        let mut rest = vec![rest];
        if !value.is_finite() {
            rest.extend(value.to_bits().to_le_bytes());
        }
        Point { time, measured: [value].into(), rest: rest.into() }
    }

    /// The places of the points that stay.
    fn stay(points: &[Point], rule: &Rule) -> Vec<usize> {
        let mut stay: Vec<usize> = Vec::new();
        let mut door = Door::at(points[0].clone());
        stay.push(0);
        for (at, point) in points.iter().enumerate().skip(1) {
            if door.push(point.clone(), rule) {
                stay.pop();
            }
            stay.push(at);
        }
        stay
    }

    /// Asserts what is promised of points and those of them that stayed.
    fn check(points: &[Point], stayed: &[usize], rule: &Rule) {
        assert_eq!((stayed.first(), stayed.last()), (Some(&0), Some(&(points.len() - 1))));
        for pair in stayed.windows(2) {
            let (from, to) = (&points[pair[0]], &points[pair[1]]);
            for gone in &points[pair[0] + 1..pair[1]] {
                assert!(gone.rest == from.rest && gone.rest == to.rest);
                assert!(rule.gap.is_none_or(|gap| to.time - from.time <= gap));
                if gone.measured[0].is_finite() {
                    let share = ticks(from, gone) / ticks(from, to);
                    let line = from.measured[0] + (to.measured[0] - from.measured[0]) * share;
                    assert!(
                        (line - gone.measured[0]).abs() <= rule.bounds[0],
                        "{line} {gone:?} between {from:?} {to:?}"
                    );
                }
            }
        }
    }

    fn values(of: &[f64]) -> Vec<Point> {
        of.iter().enumerate().map(|(at, value)| point(at as i64 * 10, *value, 0)).collect()
    }

    fn rule(bound: f64, gap: Option<i64>) -> Rule {
        Rule { bounds: vec![bound], gap }
    }

    #[test]
    fn a_line_leaves_its_ends_and_a_bend_stays() {
        let line = values(&[0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(stay(&line, &rule(0.1, None)), [0, 4]);
        let bend = values(&[0.0, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(stay(&bend, &rule(0.1, None)), [0, 2, 4, 6]);
        assert_eq!(stay(&values(&[5.0, 5.0, 5.0, 5.0]), &rule(0.0, None)), [0, 3]);
        assert_eq!(
            stay(&values(&[5.0, 5.0, 6.0, 7.0]), &rule(0.0, None)),
            [0, 1, 2, 3],
            "a bound of 0 keeps what moves"
        );
    }

    #[test]
    fn what_is_not_measured_changes_only_at_points_that_stay() {
        let mut points = values(&[0.0, 0.0, 0.0, f64::NAN, f64::NAN, f64::NAN, 0.0, f64::INFINITY, 0.0, 0.0, 0.0]);
        points[9].rest = [7].into();
        assert_eq!(stay(&points, &rule(1.0, None)), [0, 2, 3, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn no_more_than_the_gap_passes() {
        let flat = values(&[0.0; 11]);
        assert_eq!(stay(&flat, &rule(1.0, Some(35))), [0, 3, 6, 9, 10]);
        assert_eq!(stay(&flat, &rule(1.0, Some(5))).len(), 11);
    }

    /// A number that looks drawn by lot, from 0 to 1.
    fn dice(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (*seed >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn random_walks_keep_their_bound() {
        let mut seed = 3;
        for round in 0..3000 {
            let scale = 10_f64.powi((dice(&mut seed) * 40.0) as i32 - 20);
            let bound = scale * [0.0, 1e-17, 1e-12, 0.1, 1.0, 10.0][round % 6];
            let (mut time, mut value) = (-1_000_000, scale * 1e3 * (dice(&mut seed) - 0.5));
            let points: Vec<Point> = (0..200)
                .map(|_| {
                    time += 1 + (dice(&mut seed) * 1000.0) as i64;
                    value += scale * (dice(&mut seed) - 0.5);
                    let odd = dice(&mut seed);
                    let shown = if odd < 0.01 {
                        f64::NAN
                    } else if odd < 0.02 {
                        value * 1e300
                    } else {
                        value
                    };
                    point(time, shown, u8::from(odd > 0.98))
                })
                .collect();
            let rule = rule(bound, (round % 7 == 0).then_some(9000));
            check(&points, &stay(&points, &rule), &rule);
        }
    }
}
