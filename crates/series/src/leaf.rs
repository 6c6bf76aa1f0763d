//! Leaves: pages of points of one series, by time, that are written once and full (Chronos, section 3.2; storage rules,
//! section 4).
//!
//! ```text
//! 0          1            5                     7               9
//! | 1 u8     | series u32 | points u16, less 1  | bytes n u16   | times | each column (n bytes) | zeros to the end of the page
//! ```
//! What a column holds follows from the table, and columns that were added later are at the end: a leaf that ends before them has
//! NULL there.

use alloc::vec::Vec;
use core::ops::Range;

use crate::codec::Nonsense;
use crate::column::Kind;
use crate::points::Points;

const FORMAT: u8 = 1;
pub(crate) const HEAD_BYTES: usize = 9;
/// Points that a leaf has at most: where they take next to nothing, they wait in memory for a leaf to be full.
pub(crate) const POINTS_MAX: usize = 1 << 15;

/// Bytes at most of one value beside those of a text, and of what stands before all of them with the time.
const VALUE_BYTES: usize = 16;
const POINT_BYTES: usize = 32;

/// Columns beside its key that a table may have where a page has so many bytes of payload: then a point fits into half a page
/// beside its texts.
#[must_use]
pub fn columns_max(page_bytes: usize) -> usize {
    (page_bytes / 2).saturating_sub(POINT_BYTES) / VALUE_BYTES
}

/// Bytes that the texts of a point may have together: the other half.
#[must_use]
pub fn text_bytes_max(page_bytes: usize) -> usize {
    page_bytes / 2
}

/// Points as a leaf.
pub struct Packed {
    /// How many points it took.
    pub count: usize,
    /// Bytes of the page that they need.
    pub bytes: usize,
    /// The payload of the page.
    pub payload: Vec<u8>,
}

/// Packs as many of some points as fit into a leaf, from the first one on. `guess` is what the caller thinks they are: what
/// fitted the last leaf of the series. None if not even the first one fits.
///
/// # Panics
/// If a page has fewer than 64 or more than 65,535 bytes of payload.
pub fn pack(series: u32, points: &Points, range: Range<usize>, guess: usize, page_bytes: usize) -> Option<Packed> {
    assert!((64..=usize::from(u16::MAX)).contains(&page_bytes), "a leaf fits a page");
    let (from, there) = (range.start, range.len().min(POINTS_MAX));
    let (mut most, mut too_many) = (0, there + 1);
    let mut next = guess.clamp(1, there.max(1));
    let mut best = Vec::new();
    // The bytes of a column grow nearly evenly, so two or three attempts come within a hundredth.
    while next > most && next < too_many {
        let mut payload = Vec::with_capacity(page_bytes + page_bytes / 8);
        payload.resize(HEAD_BYTES, 0);
        points.encode(from..from + next, &mut payload);
        let by_bytes = next * (page_bytes - HEAD_BYTES) / (payload.len() - HEAD_BYTES).max(1);
        if payload.len() <= page_bytes {
            (most, best) = (next, payload);
            if most == there || by_bytes <= most + most / 64 {
                break;
            }
            next = by_bytes.min(there).min(too_many - 1);
        } else {
            too_many = next;
            next = by_bytes.min(too_many - 1).max(most);
        }
    }
    let bytes = best.len();
    let body = bytes.checked_sub(HEAD_BYTES)?;
    best[0] = FORMAT;
    best[1..5].copy_from_slice(&series.to_le_bytes());
    best[5..7].copy_from_slice(&((most - 1) as u16).to_le_bytes());
    best[7..9].copy_from_slice(&(body as u16).to_le_bytes());
    best.resize(page_bytes, 0);
    Some(Packed { count: most, bytes, payload: best })
}

/// A leaf that was read.
#[derive(Clone, Copy)]
pub struct Leaf<'a> {
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
        Self::take(payload).ok_or(Nonsense)
    }

    fn take(payload: &'a [u8]) -> Option<Self> {
        let rest = payload.strip_prefix(&[FORMAT])?;
        let (series, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<2>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let bytes = rest.get(..usize::from(u16::from_le_bytes(*length)))?;
        Some(Leaf { series: u32::from_le_bytes(*series), count: usize::from(u16::from_le_bytes(*count)) + 1, bytes })
    }

    /// Appends its points with only some of the columns that the table has: those at these places, ascending.
    ///
    /// # Errors
    /// As [`Leaf::read`]. What stands behind the last of these columns is not looked at.
    pub(crate) fn read_some(&self, points: &mut Points, (kinds, wanted): (&[Kind], &[usize])) -> Result<(), Nonsense> {
        let (mut bytes, begun) = (self.bytes, points.len());
        points.decode_some(&mut bytes, self.count, (kinds, wanted))?;
        if points.times[begun..].is_sorted_by(|one, next| one < next) { Ok(()) } else { Err(Nonsense) }
    }

    /// Appends its points.
    ///
    /// # Errors
    /// [`Nonsense`] if they make no sense; then some may have been appended.
    pub fn read(&self, points: &mut Points) -> Result<(), Nonsense> {
        let (mut bytes, begun) = (self.bytes, points.len());
        points.decode(&mut bytes, self.count)?;
        let ascending = points.times[begun..].is_sorted_by(|one, next| one < next);
        if ascending && bytes.is_empty() { Ok(()) } else { Err(Nonsense) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;
    use crate::column::{Column, Kind, Value, Values};

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
        while from < points.len() {
            let guess = counts.last().copied().unwrap_or(100);
            let packed = pack(7, points, from..points.len(), guess, bytes_max).expect("a leaf takes a point");
            (from, _) = (from + packed.count, counts.push(packed.count));
            assert_eq!(packed.payload.len(), bytes_max);
            let leaf = Leaf::new(&packed.payload).expect("a leaf");
            assert_eq!((leaf.series, leaf.count), (7, packed.count));
            leaf.read(&mut found).expect("points");
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
    fn the_largest_point_fits() {
        for page_bytes in [300, 512, 4072, 16_000] {
            let columns = columns_max(page_bytes);
            for kind in [Kind::Integer, Kind::Double, Kind::Text] {
                let mut points = Points::new(&vec![kind; columns]);
                let value = |at: usize| match kind {
                    Kind::Integer => Value::Integer(i64::MIN),
                    Kind::Double => Value::Double(f64::from_bits(0xFFF1_2345_6789_ABCD)),
                    Kind::Text if at == 0 => Value::Text(vec![7; text_bytes_max(page_bytes)].into()),
                    Kind::Text => Value::Text(vec![].into()),
                };
                points.push(i64::MIN, (0..columns).map(|at| Some(value(at))));
                assert!(
                    pack(u32::MAX, &points, 0..1, 1, page_bytes).is_some(),
                    "{columns} of {kind:?} in {page_bytes}"
                );
            }
        }
    }

    #[test]
    fn columns_that_came_later_are_null() {
        let payload = pack(0, &walk(9, 5), 0..9, 9, 500).expect("fits").payload;
        let mut points = Points::new(&[Kind::Double, Kind::Integer, Kind::Double]);
        for _ in 0..2 {
            // The second time the times go on from the first: that is the caller's affair.
            Leaf::new(&payload).expect("a leaf").read(&mut points).expect("points");
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
            let bytes = |points: &Points| {
                let mut bytes = Vec::new();
                points.encode(0..points.len(), &mut bytes);
                bytes
            };
            prop_assert_eq!(bytes(&found), bytes(&points));
        }

        #[test]
        fn no_bytes_are_more_than_nonsense(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut payload = vec![FORMAT];
            payload.extend(bytes);
            if let Ok(leaf) = Leaf::new(&payload) {
                let mut points = Points::new(&KINDS);
                if leaf.read(&mut points).is_ok() {
                    prop_assert!(points.columns.iter().all(|column| column.values.len() == leaf.count));
                }
            }
        }
    }
}
