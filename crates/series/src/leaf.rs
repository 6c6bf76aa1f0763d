//! Leaves: pages of points, in the order of series and time, that are written once and full (Chronos, section 3.2; storage rules,
//! section 4).
//!
//! ```text
//! 0 format u8 (1) | segments | zeros up to the end of the page
//! segment: series u32, one more than it is | points u16, less one | bytes of what follows u16 | times | each column of the table
//! ```
//! 1. A segment has points of one series, their times ascending, all different. Segments are in the order of their series.
//! 2. What a column holds follows from the table, and columns that were added later are at the end: a leaf that ends before them
//!    has NULL there.

use alloc::vec::Vec;

use crate::codec::{Nonsense, integers};
use crate::column::{Column, Kind};

const FORMAT: u8 = 1;
const SEGMENT_HEAD_BYTES: usize = 8;
/// Points that a segment has at most.
const POINTS_MAX: usize = 1 << 16;

/// Points of one series, by ascending time.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// In the unit of the table's time column.
    pub times: Vec<i64>,
    /// As long as `times`, each.
    pub columns: Vec<Column>,
}

impl Points {
    /// None yet.
    pub fn new(kinds: &[Kind]) -> Self {
        Points { times: Vec::new(), columns: kinds.iter().map(|kind| Column::new(*kind)).collect() }
    }

    /// The bytes of some of them, without a head.
    fn encode(&self, range: core::ops::Range<usize>, out: &mut Vec<u8>) {
        integers::encode(&self.times[range.clone()], out);
        self.columns.iter().for_each(|column| column.encode(range.clone(), out));
    }
}

/// A leaf being filled.
pub struct LeafWriter {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl LeafWriter {
    /// An empty leaf for a page with so many bytes of payload.
    ///
    /// # Panics
    /// If they are fewer than 64 or more than 65,535.
    pub fn new(bytes_max: usize) -> Self {
        assert!((64..=usize::from(u16::MAX)).contains(&bytes_max), "a leaf fits a page");
        LeafWriter { bytes: alloc::vec![FORMAT], bytes_max }
    }

    /// Puts as many points of a series into the leaf as fit, from this one on; how many. `guess` is what the caller thinks they
    /// are: what fitted the last leaf of the series.
    pub fn fill(&mut self, series: u32, points: &Points, from: usize, guess: usize) -> usize {
        let there = (points.times.len() - from).min(POINTS_MAX);
        let room = self.bytes_max.saturating_sub(self.bytes.len() + SEGMENT_HEAD_BYTES);
        let (mut most, mut too_many) = (0, there + 1);
        let mut next = guess.clamp(1, there.max(1));
        let mut fitting = Vec::new();
        // The bytes of a column grow nearly evenly, so two or three attempts come within a hundredth.
        while next > most && next < too_many {
            let mut segment = Vec::with_capacity(room + room / 8);
            points.encode(from..from + next, &mut segment);
            let by_bytes = next * room / segment.len().max(1);
            if segment.len() <= room {
                (most, fitting) = (next, segment);
                if most == there || by_bytes <= most + most / 64 {
                    break;
                }
                next = by_bytes.min(there).min(too_many - 1);
            } else {
                too_many = next;
                next = by_bytes.min(too_many - 1).max(most);
            }
        }
        if most > 0 {
            self.bytes.extend_from_slice(&(series + 1).to_le_bytes());
            self.bytes.extend_from_slice(&((most - 1) as u16).to_le_bytes());
            self.bytes.extend_from_slice(&(fitting.len() as u16).to_le_bytes());
            self.bytes.extend_from_slice(&fitting);
        }
        most
    }

    /// Bytes that are taken.
    pub fn bytes_taken(&self) -> usize {
        self.bytes.len()
    }

    /// The payload of the page.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes_max, 0);
        self.bytes
    }
}

/// A leaf that was read.
#[derive(Clone, Copy)]
pub struct Leaf<'a> {
    segments: &'a [u8],
}

/// The points of one series in a leaf.
#[derive(Clone, Copy)]
pub struct Segment<'a> {
    /// The number that the table has for the series.
    pub series: u32,
    /// How many points.
    pub count: usize,
    bytes: &'a [u8],
}

impl<'a> Leaf<'a> {
    /// Takes the payload of a page for a leaf.
    ///
    /// # Errors
    /// [`Nonsense`] if it is none.
    pub fn new(payload: &'a [u8]) -> Result<Self, Nonsense> {
        let leaf = Leaf { segments: payload.strip_prefix(&[FORMAT]).ok_or(Nonsense)? };
        let mut before = None;
        for segment in leaf.segments() {
            let series = Some(segment?.series);
            if series <= before {
                return Err(Nonsense);
            }
            before = series;
        }
        Ok(leaf)
    }

    /// Its segments, in the order of their series.
    pub fn segments(&self) -> impl Iterator<Item = Result<Segment<'a>, Nonsense>> + use<'a> {
        let mut rest = self.segments;
        core::iter::from_fn(move || {
            let (series, after) = rest.split_first_chunk::<4>()?;
            let series = u32::from_le_bytes(*series).checked_sub(1)?;
            let segment = Segment::take(series, after);
            rest = segment.map_or(&[], |(_, rest)| rest);
            Some(segment.map(|(segment, _)| segment).ok_or(Nonsense))
        })
    }
}

impl<'a> Segment<'a> {
    fn take(series: u32, bytes: &'a [u8]) -> Option<(Segment<'a>, &'a [u8])> {
        let (count, bytes) = bytes.split_first_chunk::<2>()?;
        let (length, bytes) = bytes.split_first_chunk::<2>()?;
        let (bytes, rest) = bytes.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        Some((Segment { series, count: usize::from(u16::from_le_bytes(*count)) + 1, bytes }, rest))
    }

    /// Appends its points.
    ///
    /// # Errors
    /// [`Nonsense`] if they make no sense; then some may have been appended.
    pub fn read(&self, points: &mut Points) -> Result<(), Nonsense> {
        let (mut bytes, begun) = (self.bytes, points.times.len());
        integers::decode(&mut bytes, self.count, &mut points.times)?;
        if !points.times[begun..].is_sorted_by(|one, next| one < next) {
            return Err(Nonsense);
        }
        for column in &mut points.columns {
            if bytes.is_empty() {
                column.append_nothing(self.count);
            } else {
                column.decode(&mut bytes, self.count)?;
            }
        }
        if bytes.is_empty() { Ok(()) } else { Err(Nonsense) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::column::Values;

    const KINDS: [Kind; 2] = [Kind::Double, Kind::Integer];

    fn walk(count: usize, first: i64) -> Points {
        let times = (0..count as i64).map(|at| first + at * 1_000_000 + at * 7919 % 1000).collect();
        let values = (0..count as i64).map(|at| (at * 7919 % 61 + at) as f64 / 10.0).collect();
        let quality = Column { values: Values::Integers(vec![192; count]), present: None };
        Points { times, columns: vec![Column { values: Values::Doubles(values), present: None }, quality] }
    }

    /// Fills leaves with these points; how many each took.
    fn write(points: &Points, bytes_max: usize) -> (Vec<usize>, Points) {
        let (mut from, mut counts, mut found) = (0, Vec::new(), Points::new(&KINDS));
        while from < points.times.len() {
            let mut leaf = LeafWriter::new(bytes_max);
            let count = leaf.fill(7, points, from, counts.last().copied().unwrap_or(100));
            assert!(count > 0, "a leaf takes a point");
            (from, _) = (from + count, counts.push(count));
            let payload = leaf.finish();
            assert_eq!(payload.len(), bytes_max);
            for segment in Leaf::new(&payload).expect("a leaf").segments() {
                let segment = segment.expect("a segment");
                assert_eq!((segment.series, segment.count), (7, count));
                segment.read(&mut found).expect("points");
            }
        }
        (counts, found)
    }

    #[test]
    fn leaves_are_full() {
        let points = walk(20_000, 1_700_000_000_000_000);
        let (counts, found) = write(&points, 4080);
        assert_eq!(found, points);
        let (last, full) = counts.split_last().expect("leaves");
        let mean = full.iter().sum::<usize>() / full.len();
        assert!(full.iter().all(|count| *count * 50 > mean * 48), "{counts:?}");
        assert!(mean > 1400 && *last <= mean + mean / 20, "{counts:?}");
    }

    #[test]
    fn several_series_share_a_leaf() {
        let mut leaf = LeafWriter::new(4080);
        let points = walk(20, 5);
        let mut series = 0;
        while leaf.fill(series, &points, 0, 20) == 20 {
            series += 1;
        }
        assert!(series > 40, "{series} series of 20 points");
        let payload = leaf.finish();
        let found: Vec<_> =
            Leaf::new(&payload).expect("a leaf").segments().map(|segment| segment.expect("one")).collect();
        assert!(found[..series as usize].iter().map(|segment| segment.series).eq(0..series));
        let mut last = Points::new(&KINDS);
        found[series as usize - 1].read(&mut last).expect("points");
        assert_eq!(last, points);
    }

    #[test]
    fn columns_that_came_later_are_null() {
        let mut leaf = LeafWriter::new(500);
        leaf.fill(0, &walk(9, 5), 0, 9);
        let payload = leaf.finish();
        let mut points = Points::new(&[Kind::Double, Kind::Integer, Kind::Double]);
        for _ in 0..2 {
            Leaf::new(&payload).expect("a leaf").segments().for_each(|segment| {
                // The second time the times go on from the first: that is the caller's affair.
                segment.expect("one").read(&mut points).expect("points");
            });
        }
        assert_eq!(points.columns[2].present, Some(vec![false; 18]));
        assert_eq!(points.columns[1].present, None);
    }

    proptest! {
        #[test]
        fn points_come_back(
            rows in prop::collection::vec((1_i64..1_000_000, prop::option::of(any::<f64>()), prop::option::of(-3_i64..3)), 1..400),
            bytes_max in 64_usize..600,
        ) {
            let mut points = Points::new(&KINDS);
            let mut time = -5_000_000;
            let (mut values, mut states) = (Vec::new(), Vec::new());
            for (step, value, state) in &rows {
                time += step;
                points.times.push(time);
                values.push(value.unwrap_or(0.0));
                states.push(state.unwrap_or(0));
            }
            let present = |is_there: Vec<bool>| Some(is_there).filter(|all| all.contains(&false));
            points.columns[0] = Column { values: Values::Doubles(values), present: present(rows.iter().map(|row| row.1.is_some()).collect()) };
            points.columns[1] = Column { values: Values::Integers(states), present: present(rows.iter().map(|row| row.2.is_some()).collect()) };
            let (_, found) = write(&points, bytes_max);
            let same = |one: &Points, other: &Points| alloc::format!("{one:?}") == alloc::format!("{other:?}");
            prop_assert!(same(&found, &points));
        }

        #[test]
        fn no_bytes_are_more_than_nonsense(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut payload = vec![FORMAT];
            payload.extend(bytes);
            if let Ok(leaf) = Leaf::new(&payload) {
                for segment in leaf.segments() {
                    let segment = segment.expect("seen before");
                    let mut points = Points::new(&KINDS);
                    if segment.read(&mut points).is_ok() {
                        prop_assert!(points.columns.iter().all(|column| column.values.len() == segment.count));
                    }
                }
            }
        }
    }
}
