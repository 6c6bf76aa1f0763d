//! Where a record stands in an order: byte strings that sort as the records do.
//!
//! ```text
//! 00                       the head, before all records
//! 01 key values, rid (8)   a record; the encodings of its key's values, one behind the other
//! 02                       the tail, behind all records
//! ```
//! The record's number makes positions of equal keys different: with keys alone the middle one of three equal rows could
//! be dropped and nobody would see it.

use alloc::vec::Vec;
use core::ops::Range;

use crate::error::Malformed;

/// Bytes of a position at most, so that boundaries stay small: a key takes up to 1024.
pub const POSITION_BYTES_MAX: usize = 1 + KEY_BYTES_MAX + 8;

/// Bytes of the encoded key of a record at most.
pub const KEY_BYTES_MAX: usize = 1024;

/// A place in an order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(Vec<u8>);

/// Keys are values of rows and reach no log.
impl core::fmt::Debug for Position {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self.0.first() {
            Some(0) => "head",
            Some(2) => "tail",
            _ => "Position(..)",
        })
    }
}

impl Position {
    /// Before all records.
    #[must_use]
    pub fn head() -> Self {
        Self(alloc::vec![0])
    }

    /// Behind all records.
    #[must_use]
    pub fn tail() -> Self {
        Self(alloc::vec![2])
    }

    /// Of the record `rid` with an encoded key of at most [`KEY_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// [`Malformed`]: a longer key.
    pub fn of(key: &[u8], rid: u64) -> Result<Self, Malformed> {
        if key.len() > KEY_BYTES_MAX {
            return Err(Malformed(
                "a value of more than 1024 bytes in a column of ORDER BY: shorten it, or order by others",
            ));
        }
        let mut bytes = Vec::with_capacity(key.len() + 9);
        bytes.push(1);
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(&rid.to_be_bytes());
        Ok(Self(bytes))
    }

    /// Reads what [`Position::bytes`] gave.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes {
            [0] | [2] => Ok(Self(bytes.to_vec())),
            [1, rest @ ..] if rest.len() >= 8 && bytes.len() <= POSITION_BYTES_MAX => Ok(Self(bytes.to_vec())),
            _ => Err(Malformed("a position in an order")),
        }
    }

    /// As bytes, which sort as positions do.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded key of a record; none of the head and the tail.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        if self.0[0] == 1 { Some(&self.0[1..self.0.len() - 8]) } else { None }
    }
}

/// A part of an order: positions from `start` on and before `end`, both as bytes.
///
/// Invariant: `01` <= start < end <= `02`, so that head and tail are in no interval.
#[derive(Clone, PartialEq, Eq)]
pub struct Interval {
    start: Vec<u8>,
    end: Vec<u8>,
}

impl core::fmt::Debug for Interval {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Interval(..)")
    }
}

impl Interval {
    /// All records.
    #[must_use]
    pub fn all() -> Self {
        Self { start: alloc::vec![1], end: alloc::vec![2] }
    }

    /// From `start` on and before `end`; none if nothing lies between.
    #[must_use]
    pub fn new(keys: Range<Edge>) -> Option<Self> {
        let (start, end) = (keys.start.0, keys.end.0);
        if start < end { Some(Self { start, end }) } else { None }
    }

    /// Reads what [`Interval::start`] and [`Interval::end`] gave.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn from_bytes(start: &[u8], end: &[u8]) -> Result<Self, Malformed> {
        // Just behind a position is a byte more than the position.
        let within = [start, end].iter().all(|edge| edge.len() <= POSITION_BYTES_MAX + 1);
        if within && start >= &[1][..] && start < end && end <= &[2][..] {
            Ok(Self { start: start.to_vec(), end: end.to_vec() })
        } else {
            Err(Malformed("an interval of an order"))
        }
    }

    /// The first bytes that belong to it.
    #[must_use]
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// The first bytes behind it.
    #[must_use]
    pub fn end(&self) -> &[u8] {
        &self.end
    }

    /// Whether a record at `position` is in it.
    #[must_use]
    pub fn contains(&self, position: &Position) -> bool {
        position.bytes() >= &self.start[..] && position.bytes() < &self.end[..]
    }
}

/// A cut between positions: the bytes before which the left side ends.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge(Vec<u8>);

impl Edge {
    /// Before all records.
    #[must_use]
    pub fn first() -> Self {
        Self(alloc::vec![1])
    }

    /// Behind all records.
    #[must_use]
    pub fn last() -> Self {
        Self(alloc::vec![2])
    }

    /// Before all keys that begin with `prefix`: encodings of the first values of a key.
    #[must_use]
    pub fn before(prefix: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(prefix.len() + 1);
        bytes.push(1);
        bytes.extend_from_slice(prefix);
        Self(bytes)
    }

    /// Behind all keys that begin with `prefix`.
    #[must_use]
    pub fn behind(prefix: &[u8]) -> Self {
        let mut bytes = Self::before(prefix).0;
        // The next string that does not begin with these bytes; `01` alone is followed by `02`, which always stands.
        while bytes.last() == Some(&0xff) {
            bytes.pop();
        }
        if let Some(last) = bytes.last_mut() {
            *last += 1;
        }
        Self(bytes)
    }

    /// The bytes before which the left side ends.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Just behind one position.
    #[must_use]
    pub fn after(position: &Position) -> Self {
        let mut bytes = position.0.clone();
        bytes.push(0);
        Self(bytes)
    }

    /// Just before one position.
    #[must_use]
    pub fn at(position: &Position) -> Self {
        Self(position.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{Edge, Interval, Position};

    proptest! {
        #[test]
        fn an_edge_behind_a_prefix_leaves_out_exactly_what_begins_with_it(
            prefix in prop::collection::vec(prop::sample::select(alloc::vec![0u8, 1, 254, 255]), 0..4),
            key in prop::collection::vec(prop::sample::select(alloc::vec![0u8, 1, 254, 255]), 0..6),
            rid: u64,
        ) {
            let position = Position::of(&key, rid).expect("a short key");
            let within = Interval::new(Edge::before(&prefix)..Edge::behind(&prefix)).expect("never empty");
            // A position carries its number behind the key: it takes part in the comparison.
            let whole = [&key[..], &rid.to_be_bytes()].concat();
            prop_assert_eq!(within.contains(&position), whole.starts_with(&prefix));
        }
    }

    #[test]
    fn head_and_tail_are_in_no_interval() {
        assert!(
            Position::head() < Position::of(&[], 0).expect("a key")
                && Position::of(&[0xff; 9], u64::MAX).expect("a key") < Position::tail()
        );
        for end in [Position::head(), Position::tail()] {
            assert!(!Interval::all().contains(&end));
        }
        assert!(Position::of(&Vec::from([1; 1025]), 1).is_err());
        assert!(Interval::new(Edge::last()..Edge::first()).is_none());
    }
}
