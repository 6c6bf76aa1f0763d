//! Rows that entries of indexes name: all of them, or those with the least numbers that there is room for.
//!
//! ```text
//! far apart    a list: | row | row | row | ...        as many as there is room for, and the first behind them is known
//! close        bits:   | 0 0 1 0 1 1 0 ... |          one for each number from the first on: 64 numbers take the room of one row
//! ```
//!
//! Whoever has room for some only asks again for those behind them, and the entries are read once more: a page of an index names a
//! thousand rows, and each of these costs a page. However many lists there are, they take the room of one.

use alloc::vec;
use alloc::vec::Vec;

use crate::index::IndexReader;
use crate::key::ByteRange;
use crate::{Error, RowId};
use counterfoil_log::Order as _;

/// Numbers that the bits of a row's room stand for.
const BITS: u64 = u64::BITS as u64;

/// Rows found so far.
pub(crate) struct Found {
    kept: Kept,
    /// Those before this one are known already.
    from: RowId,
    /// Entries that may be looked at: more are worse than reading all rows.
    entries_left: usize,
    /// Ranges asked for so far; and of each row in a list by which of them it was found, where that is wanted.
    ranges: u32,
    found_by: Option<Vec<u32>>,
}

enum Kept {
    List {
        rows: Vec<RowId>,
        /// Rows that there is room for; twice as many may be there until they are sorted.
        room: usize,
        /// The last that there is room for, once there are more.
        last: Option<RowId>,
    },
    Bits {
        words: Vec<u64>,
        /// Whether there are rows behind them.
        is_more: bool,
    },
    /// Some rows that others found, in ascending order, and a bit for each that was found again.
    Among { rows: Vec<RowId>, again: Vec<u64> },
    /// The same of rows that are bits.
    Again { words: Vec<u64>, again: Vec<u64> },
}

impl Found {
    /// All rows, of so many entries at most.
    pub(crate) fn all(entries_max: usize) -> Self {
        Found::some(RowId(0), usize::MAX, entries_max)
    }

    /// As [`Found::all`], and which rows were found together.
    pub(crate) fn all_together(entries_max: usize) -> Self {
        Found { found_by: Some(Vec::new()), ..Found::all(entries_max) }
    }

    /// The first `room` rows from one on, of so many entries at most.
    pub(crate) fn some(from: RowId, room: usize, entries_max: usize) -> Self {
        let kept = Kept::List { rows: Vec::new(), room: room.max(1), last: None };
        Found { kept, from, entries_left: entries_max, ranges: 0, found_by: None }
    }

    /// All rows of the `span_of(room)` numbers from one on, of so many entries at most.
    pub(crate) fn close(from: RowId, room: usize, entries_max: usize) -> Self {
        let kept = Kept::Bits { words: vec![0; words_of(room)], is_more: false };
        Found { kept, from, entries_left: entries_max, ranges: 0, found_by: None }
    }

    /// Those of some rows, which are all that were found before, that are found again.
    pub(crate) fn among(rows: FoundRows) -> Self {
        let kept = match rows {
            FoundRows::List(rows) => {
                let rows: Vec<RowId> = rows.collect();
                Kept::Among { again: vec![0; rows.len().div_ceil(BITS as usize)], rows }
            }
            FoundRows::Bits { words, first, .. } => {
                return Found { from: first, ..Found::of(Kept::Again { again: vec![0; words.len()], words }) };
            }
        };
        Found::of(kept)
    }

    fn of(kept: Kept) -> Self {
        Found { kept, from: RowId(0), entries_left: usize::MAX, ranges: 0, found_by: None }
    }

    /// Adds the rows of a range; whether there are not too many.
    pub(crate) fn add(&mut self, reader: &IndexReader<'_>, range: &ByteRange) -> Result<bool, Error> {
        reader.visit(range, &mut |row| Ok(self.take(row)))
    }

    /// As [`Found::add`], for several ranges.
    pub(crate) fn add_each(&mut self, reader: &IndexReader<'_>, ranges: &[ByteRange]) -> Result<bool, Error> {
        let first = self.ranges;
        self.ranges = first.saturating_add(ranges.len() as u32);
        reader.visit_each(ranges, &mut |place, row, _| {
            if let Some(found_by) = &mut self.found_by {
                found_by.push(first.saturating_add(place as u32));
            }
            Ok(self.take(row))
        })
    }

    /// Takes a row; whether there are not too many.
    pub(crate) fn take(&mut self, row: RowId) -> bool {
        let Some(left) = self.entries_left.checked_sub(1) else { return false };
        self.entries_left = left;
        let Some(place) = row.0.checked_sub(self.from.0) else { return true };
        match &mut self.kept {
            Kept::List { rows, room, last } => {
                if last.is_none_or(|last| row <= last) {
                    rows.push(row);
                    if rows.len() >= room.saturating_mul(2) {
                        tidy(rows, *room, last);
                    }
                }
            }
            Kept::Bits { words, is_more } => *is_more |= !set(words, place),
            Kept::Among { rows, again } => {
                let _ = rows.binary_search(&row).is_ok_and(|place| set(again, place as u64));
            }
            Kept::Again { again, .. } => {
                let _ = set(again, place);
            }
        }
        true
    }

    /// About how many rows of another table may be looked at together to find these.
    pub(crate) fn piece_rows(&self) -> usize {
        let room = match &self.kept {
            Kept::List { room, .. } => *room,
            Kept::Bits { words, .. } | Kept::Again { words, .. } => words.len() / 2,
            Kept::Among { rows, .. } => rows.len(),
        };
        self.entries_left.min(room) / 8
    }

    /// All rows, some of them perhaps twice: those together that the same range found, in the order of their numbers.
    pub(crate) fn into_list(self) -> Vec<RowId> {
        let (Kept::List { rows, .. }, Some(found_by)) = (self.kept, self.found_by) else { return Vec::new() };
        let mut together: Vec<(u32, RowId)> = found_by.into_iter().zip(rows).collect();
        together.order();
        together.into_iter().map(|(_, row)| row).collect()
    }

    /// The rows, each once, in the order of their numbers; and where those behind them begin, if there may be any.
    pub(crate) fn finish(self) -> (FoundRows, Option<RowId>) {
        match self.kept {
            Kept::List { mut rows, room, mut last } => {
                tidy(&mut rows, room, &mut last);
                let behind = last.map(|last| RowId(last.0.saturating_add(1)));
                (FoundRows::List(rows.into_iter()), behind)
            }
            Kept::Bits { words, is_more } => {
                let behind = is_more.then(|| RowId(self.from.0.saturating_add(words.len() as u64 * BITS)));
                (FoundRows::Bits { words, first: self.from, word: 0 }, behind)
            }
            Kept::Among { mut rows, again } => {
                let mut place = 0..;
                rows.retain(|_| place.next().is_some_and(|place| is_set(&again, place)));
                (FoundRows::List(rows.into_iter()), None)
            }
            Kept::Again { mut words, again } => {
                words.iter_mut().zip(again).for_each(|(word, again)| *word &= again);
                (FoundRows::Bits { words, first: self.from, word: 0 }, None)
            }
        }
    }

    /// All rows as a list.
    pub(crate) fn finish_all(self) -> Vec<RowId> {
        match self.finish().0 {
            // They stay where they are.
            FoundRows::List(rows) => rows.collect(),
            rows => rows.collect(),
        }
    }
}

/// Sets a bit; whether there is such a one.
fn set(words: &mut [u64], place: u64) -> bool {
    let word = usize::try_from(place / BITS).ok().and_then(|word| words.get_mut(word));
    word.map(|word| *word |= 1 << (place % BITS)).is_some()
}

fn is_set(words: &[u64], place: usize) -> bool {
    words.get(place / BITS as usize).is_some_and(|word| word >> (place % BITS as usize) & 1 == 1)
}

fn words_of(room: usize) -> usize {
    // A list may be there twice until it is sorted.
    room.saturating_mul(2).max(1)
}

/// How many numbers the bits stand for that take no more room than a list of so many rows.
pub(crate) fn span_of(room: usize) -> u64 {
    words_of(room) as u64 * BITS
}

fn tidy(rows: &mut Vec<RowId>, room: usize, last: &mut Option<RowId>) {
    rows.order();
    rows.dedup();
    if rows.len() > room {
        rows.truncate(room);
        *last = rows.last().copied();
    }
}

/// Rows that were found, in the order of their numbers.
pub(crate) enum FoundRows {
    List(vec::IntoIter<RowId>),
    Bits {
        /// Those that are left.
        words: Vec<u64>,
        first: RowId,
        /// The word with the next.
        word: usize,
    },
}

impl FoundRows {
    pub(crate) fn none() -> Self {
        FoundRows::List(Vec::new().into_iter())
    }

    /// How many are left.
    pub(crate) fn count_left(&self) -> usize {
        match self {
            FoundRows::List(rows) => rows.len(),
            FoundRows::Bits { words, .. } => words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The last of those that are left.
    pub(crate) fn greatest(&self) -> Option<RowId> {
        match self {
            FoundRows::List(rows) => rows.as_slice().last().copied(),
            FoundRows::Bits { words, first, .. } => {
                let (word, bits) = words.iter().enumerate().rfind(|(_, bits)| **bits != 0)?;
                let place = word as u64 * BITS + (BITS - 1 - u64::from(bits.leading_zeros()));
                Some(RowId(first.0 + place))
            }
        }
    }
}

impl Iterator for FoundRows {
    type Item = RowId;

    fn next(&mut self) -> Option<RowId> {
        match self {
            FoundRows::List(rows) => rows.next(),
            FoundRows::Bits { words, first, word } => {
                while *words.get(*word)? == 0 {
                    *word += 1;
                }
                let bits = &mut words[*word];
                let place = *word as u64 * BITS + u64::from(bits.trailing_zeros());
                *bits &= *bits - 1;
                Some(RowId(first.0 + place))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of taking rows window by window.
    fn windows(rows: &[u64], begin: impl Fn(RowId) -> Found) -> Vec<Vec<u64>> {
        let (mut windows, mut from) = (Vec::new(), Some(RowId(0)));
        while let Some(first) = from {
            let mut found = begin(first);
            assert!(rows.iter().all(|row| found.take(RowId(*row))));
            let (some, behind) = found.finish();
            let (count, last) = (some.count_left(), some.greatest());
            let some: Vec<u64> = some.map(|row| row.0).collect();
            assert_eq!((count, last), (some.len(), some.last().map(|row| RowId(*row))));
            windows.push(some);
            from = behind;
        }
        windows
    }

    #[test]
    fn windows_are_all_rows_once_and_in_order() {
        let rows: Vec<u64> = (0..500).map(|row| row * 7919 % 300).collect();
        let mut all = rows.clone();
        all.order();
        all.dedup();
        for room in [1, 2, 7, 299, 300, 1000] {
            let windows = windows(&rows, |from| Found::some(from, room, rows.len()));
            assert_eq!(windows.concat(), all, "room for {room}");
            assert!(windows.len() <= all.len().div_ceil(room) + 1);
            assert!(windows.iter().all(|window| window.len() <= room));
        }
        assert_eq!(windows(&[], |from| Found::some(from, 5, 0)), [[0_u64; 0]]);
    }

    #[test]
    fn windows_of_bits_are_all_rows_once_and_in_order() {
        let rows: Vec<u64> = (0..3000).map(|row| row * 7919 % 20_011).chain([63, 64, 127, 128]).collect();
        let mut all = rows.clone();
        all.order();
        all.dedup();
        for room in [0, 1, 2, 7, 200] {
            let windows = windows(&rows, |from| Found::close(from, room, rows.len()));
            assert_eq!(windows.concat(), all, "room for {room}");
            assert_eq!(windows.len() as u64, 1 + all.last().unwrap() / span_of(room));
        }
        assert_eq!(windows(&[], |from| Found::close(from, 5, 0)), [[0_u64; 0]]);
        let mut found = Found::close(RowId(5), 1, 1);
        assert!(found.take(RowId(u64::MAX)) && !found.take(RowId(6)), "one entry was granted");
        assert_eq!(found.finish().1, Some(RowId(5 + span_of(1))));
    }

    #[test]
    fn what_is_found_again_is_in_both() {
        let rows: Vec<u64> = (0..300).map(|row| row * 7919 % 2003).collect();
        let others: Vec<u64> = (0..400).map(|row| row * row * 5 % 2003).collect();
        for begin in [Found::some(RowId(5), 100, 300), Found::close(RowId(5), 10, 300)] {
            let mut found = begin;
            assert!(rows.iter().all(|row| found.take(RowId(*row))));
            let (first, behind) = found.finish();
            let mut again = Found::among(first);
            assert!(others.iter().all(|row| again.take(RowId(*row))));
            let both: Vec<u64> = again.finish().0.map(|row| row.0).collect();
            let end = behind.map_or(u64::MAX, |row| row.0);
            let mut all: Vec<u64> = rows.iter().copied().filter(|row| others.contains(row)).collect();
            all.retain(|row| (5..end).contains(row));
            all.order();
            assert_eq!(both, all);
            assert!(!all.is_empty());
        }
    }

    #[test]
    fn too_many_entries_are_told() {
        let mut found = Found::all(2);
        assert!(found.take(RowId(1)) && found.take(RowId(1)) && !found.take(RowId(0)));
    }
}
