//! Sealed cells in pieces, of which any so many give the cell back (Reed and Solomon): what texts and blobs cost where whole copies
//! are too many.
//!
//! ```text
//! cell   = cut into `data` pieces of 2 ceil(bytes / (2 data)) bytes each, 00 behind the last
//! parity = as many pieces more as may be missing, by the Reed-Solomon code of Leopard over 16 bits (SPEC.md)
//! piece  = bytes of the cell u32 | data of the piece
//! ```
//! 1. Pieces are of a cell that is sealed: whoever holds some learns what who holds the cell learns, the class of its length, and fewer
//!    of them nothing more. Secrecy is the seal's; pieces are for availability and cost `(data + parity) / data` of the cell, where
//!    copies cost `parity + 1`.
//! 2. Nothing in a piece is believed. Which one it is follows from who gave it; a cell is right if it opens, and then every piece that is
//!    not one of that cell is named.
//! 3. Where a cell does not open, other pieces are taken, of as many more as may lie, in up to [`TRIES_MAX`] ways. What costs more is
//!    an error, and not a wait.

mod sums;

use std::collections::BTreeMap;
use std::fmt;

use sums::Sums;

/// Pieces that a cell may have.
pub const PIECES_MAX: usize = 64;
/// How often the pieces of a cell are put together before its liars are given up.
pub const TRIES_MAX: usize = 1024;

/// Bytes of a piece up to which it is cheaper to know how missing ones follow from others than to have the library work it out.
const SHORT_BYTES: usize = 1 << 14;

/// Bytes that a piece tells the length of its cell in.
const LENGTH_BYTES: usize = 4;

/// How cells are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    data: usize,
    parity: usize,
}

/// Puts cells together, one after another: pieces that are missing from one are mostly missing from the next.
pub struct Joiner {
    pieces: Pieces,
    /// The choice of pieces that gave the last cell.
    last: Vec<usize>,
    /// How missing pieces follow from it, once it has given two.
    known: Option<Sums>,
}

/// A cell that was put together.
#[derive(Debug, PartialEq, Eq)]
pub struct Joined<T> {
    /// What it opened to.
    pub opened: T,
    /// The pieces that are not its own: whoever gave them lied, or kept them badly.
    pub wrong: Vec<usize>,
}

/// Why a cell cannot be cut or put together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unjoined {
    /// A cell that is too long to be cut, or empty.
    Length(usize),
    /// Too few pieces that could be of one cell.
    TooFew {
        /// How many there are.
        there: usize,
        /// How many it takes.
        needed: usize,
    },
    /// However they are put together, no cell opens: more pieces are wrong than may be.
    Wrong,
    /// More ways to put them together than are tried.
    TooManyWays,
}

impl Pieces {
    /// Cells in so many pieces of their own, and so many more; none: no piece, or more than [`PIECES_MAX`].
    #[must_use]
    pub fn new(data: usize, parity: usize) -> Option<Self> {
        let count = data.checked_add(parity)?;
        (data > 0 && count <= PIECES_MAX).then_some(Self { data, parity })
    }

    /// How many pieces a cell becomes.
    #[must_use]
    pub fn count(self) -> usize {
        self.data + self.parity
    }

    /// How many of them give it back.
    #[must_use]
    pub fn needed(self) -> usize {
        self.data
    }

    /// Bytes of each piece of a cell of so many.
    #[must_use]
    pub fn piece_bytes(self, cell_bytes: usize) -> usize {
        LENGTH_BYTES + self.data_bytes(cell_bytes)
    }

    fn data_bytes(self, cell_bytes: usize) -> usize {
        2 * cell_bytes.div_ceil(2 * self.data)
    }

    /// The pieces of a sealed cell, in the order of those who are to hold them.
    ///
    /// # Errors
    /// [`Unjoined::Length`].
    pub fn cut(self, cell: &[u8]) -> Result<Vec<Vec<u8>>, Unjoined> {
        let length = u32::try_from(cell.len()).ok().filter(|length| *length > 0).ok_or(Unjoined::Length(cell.len()))?;
        let bytes = self.data_bytes(cell.len());
        let mut pieces = Vec::with_capacity(self.count());
        for at in 0..self.data {
            let own = &cell[(at * bytes).min(cell.len())..((at + 1) * bytes).min(cell.len())];
            let mut piece = own.to_vec();
            piece.resize(bytes, 0);
            pieces.push(piece);
        }
        if self.parity > 0 {
            let parity = reed_solomon_simd::encode(self.data, self.parity, &pieces);
            pieces.extend(parity.map_err(|_| Unjoined::Length(cell.len()))?);
        }
        pieces.iter_mut().for_each(|piece| drop(piece.splice(0..0, length.to_be_bytes())));
        Ok(pieces)
    }

    /// What puts cells of them together.
    #[must_use]
    pub fn joiner(self) -> Joiner {
        Joiner { pieces: self, last: Vec::new(), known: None }
    }

    /// Pieces that say the same length and have the bytes that go with it, the most first.
    fn groups(self, pieces: &[Option<&[u8]>]) -> Vec<(usize, Vec<usize>)> {
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, piece) in pieces.iter().take(self.count()).enumerate() {
            let Some((length, _)) = piece.and_then(|piece| piece.split_first_chunk::<LENGTH_BYTES>()) else { continue };
            let length = u32::from_be_bytes(*length) as usize;
            if length == 0 || piece.is_none_or(|piece| piece.len() != self.piece_bytes(length)) {
                continue;
            }
            match groups.iter_mut().find(|(own, _)| *own == length) {
                Some((_, members)) => members.push(at),
                None => groups.push((length, vec![at])),
            }
        }
        groups.sort_by_key(|(_, members)| std::cmp::Reverse(members.len()));
        groups
    }

    /// The pieces that are there and not of a cell.
    fn wrong(self, pieces: &[Option<&[u8]>], cell: &[u8]) -> Vec<usize> {
        let own = self.cut(cell).unwrap_or_default();
        let is_own = |at: usize, piece: &[u8]| own.get(at).is_some_and(|own| own == piece);
        let there = pieces.iter().enumerate().filter_map(|(at, piece)| Some((at, (*piece)?)));
        there.filter(|(at, piece)| !is_own(*at, piece)).map(|(at, _)| at).collect()
    }
}

impl Joiner {
    /// What a cell opens to, of pieces in the order of those who hold them, of which so many may be wrong. `open` says whether
    /// bytes are the cell: it must be what a seal says, since nothing else is asked.
    ///
    /// # Errors
    /// [`Unjoined`].
    pub fn join<T>(
        &mut self,
        pieces: &[Option<&[u8]>],
        may_lie: usize,
        mut open: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Joined<T>, Unjoined> {
        let groups = self.pieces.groups(pieces);
        let mut tries = 0;
        for (length, members) in &groups {
            // Among so many are enough that do not lie.
            let members = &members[..members.len().min(self.pieces.data.saturating_add(may_lie))];
            let mut chosen: Vec<usize> = (0..self.pieces.data).collect();
            let mut is_choice = members.len() >= self.pieces.data;
            while is_choice {
                tries += 1;
                if tries > TRIES_MAX {
                    return Err(Unjoined::TooManyWays);
                }
                let numbers: Vec<usize> = chosen.iter().map(|at| members[*at]).collect();
                let some = numbers.iter().filter_map(|number| Some((*number, pieces[*number]?)));
                let cell = self.put_together(some, *length);
                if let Some((opened, cell)) = cell.and_then(|cell| Some((open(&cell)?, cell))) {
                    // Of no more than it takes none can be compared: what is wrong behind the end of a cell is not seen, and does no harm.
                    let is_spare = pieces.iter().flatten().count() > self.pieces.data;
                    let wrong = if is_spare { self.pieces.wrong(pieces, &cell) } else { Vec::new() };
                    self.last = numbers;
                    return Ok(Joined { opened, wrong });
                }
                is_choice = next(&mut chosen, members.len());
            }
        }
        match groups.first().map_or(0, |(_, members)| members.len()) {
            there if there < self.pieces.data => Err(Unjoined::TooFew { there, needed: self.pieces.data }),
            _ => Err(Unjoined::Wrong),
        }
    }

    /// The cell that pieces of one size say, if there are enough of them.
    fn put_together<'a>(&mut self, chosen: impl Iterator<Item = (usize, &'a [u8])>, length: usize) -> Option<Vec<u8>> {
        let chosen: Vec<(usize, &[u8])> = chosen.map(|(number, piece)| (number, &piece[LENGTH_BYTES..])).collect();
        let mut restored = self.restored(&chosen)?;
        let mut cell = Vec::with_capacity(length + 2 * self.pieces.data);
        for at in 0..self.pieces.data {
            match chosen.iter().find(|(number, _)| *number == at) {
                Some((_, data)) => cell.extend_from_slice(data),
                None => cell.append(&mut restored.remove(&at)?),
            }
        }
        cell.truncate(length);
        Some(cell)
    }

    /// The pieces of data that are not among those chosen.
    fn restored(&mut self, chosen: &[(usize, &[u8])]) -> Option<BTreeMap<usize, Vec<u8>>> {
        let Pieces { data, parity } = self.pieces;
        let (own, other): (Vec<_>, Vec<_>) = chosen.iter().copied().partition(|(number, _)| *number < data);
        if other.is_empty() {
            return Some(BTreeMap::new());
        }
        let numbers: Vec<usize> = chosen.iter().map(|(number, _)| *number).collect();
        let is_short = chosen.iter().all(|(_, piece)| piece.len() <= SHORT_BYTES);
        if !is_short || numbers != self.last {
            let other = other.into_iter().map(|(number, piece)| (number - data, piece));
            return Some(reed_solomon_simd::decode(data, parity, own, other).ok()?.into_iter().collect());
        }
        if !self.known.as_ref().is_some_and(|known| known.is_of(&numbers)) {
            self.known = Some(Sums::of(data, parity, &numbers)?);
        }
        let known = self.known.as_ref()?;
        let missing = (0..data).filter(|number| !numbers.contains(number));
        missing.map(|number| Some((number, known.piece(number, chosen)?))).collect()
    }
}

/// The next choice of as many numbers below `of`, each choice ascending; whether there is one. All choices of the first few numbers come
/// before one with a number behind them: so few liars are left out after few tries, whoever they are.
fn next(chosen: &mut [usize], of: usize) -> bool {
    let is_free = |at: &usize| chosen[*at] + 1 < chosen.get(at + 1).copied().unwrap_or(of);
    let Some(at) = (0..chosen.len()).find(is_free) else { return false };
    chosen[at] += 1;
    (0..at).for_each(|before| chosen[before] = before);
    true
}

impl fmt::Display for Unjoined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(bytes) => {
                write!(f, "a cell of {bytes} bytes: cells in pieces have from 1 to {} bytes", u32::MAX)
            }
            Self::TooFew { there, needed } => {
                write!(
                    f,
                    "{there} pieces of a cell, where {needed} give it back: wait for the clouds that have the others"
                )
            }
            Self::Wrong => f.write_str("pieces that are of no cell: more of them are wrong than may be"),
            Self::TooManyWays => {
                write!(
                    f,
                    "pieces that are of no cell in {TRIES_MAX} ways to put them together: ask other clouds for theirs"
                )
            }
        }
    }
}

impl std::error::Error for Unjoined {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Pieces, TRIES_MAX, Unjoined, next};
    use crate::coding::cells::Cells;
    use crate::keys::Secret;

    fn cells() -> Cells {
        Cells::new(&Secret::new([41; 32]), &[4; 16], 1)
    }

    fn sealed(value: &[u8]) -> Vec<u8> {
        let mut cell = Vec::new();
        cells().seal(7, Some(value), &mut cell);
        cell
    }

    fn open(cell: &[u8]) -> Option<Vec<u8>> {
        let mut plain = Vec::new();
        cells().open(7, cell, &mut plain).ok().map(|_| plain)
    }

    fn there(pieces: &[Vec<u8>]) -> Vec<Option<&[u8]>> {
        pieces.iter().map(|piece| Some(piece.as_slice())).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_so_many_pieces_give_the_value_and_liars_are_named(
            value in prop::collection::vec(any::<u8>(), 0..500),
            (data, parity) in (1_usize..7, 0_usize..5),
            order in any::<u64>(),
            (missing, lying) in (0_usize..5, 0_usize..5),
            lie in any::<prop::sample::Index>(),
        ) {
            let cut = Pieces::new(data, parity).expect("pieces");
            let mut pieces = cut.cut(&sealed(&value)).expect("a cell");
            prop_assert!(pieces.iter().all(|piece| piece.len() == cut.piece_bytes(sealed(&value).len())));
            // Which are missing and which lie: an order of all, cut in three.
            let mut numbers: Vec<usize> = (0..pieces.len()).collect();
            numbers.sort_by_key(|number| order.rotate_left(*number as u32 * 7).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ *number as u64);
            let missing = missing.min(parity);
            let lying = lying.min(parity - missing);
            let mut liars = numbers[missing..missing + lying].to_vec();
            liars.sort_unstable();
            for liar in &liars {
                let at = lie.index(pieces[*liar].len() * 8);
                pieces[*liar][at / 8] ^= 1 << (at % 8);
            }
            let mut given = there(&pieces);
            numbers[..missing].iter().for_each(|number| given[*number] = None);
            let joined = cut.joiner().join(&given, lying, open).expect("a cell");
            prop_assert_eq!(joined.opened, value);
            prop_assert_eq!(joined.wrong, liars);
            // One fewer than it takes gives nothing.
            let few: Vec<Option<&[u8]>> = (0..pieces.len()).map(|at| given[at].filter(|_| at + 1 < data)).collect();
            let is_few = matches!(cut.joiner().join(&few, lying, open), Err(Unjoined::TooFew { .. }));
            prop_assert!(is_few);
        }

        #[test]
        fn one_cell_after_another_is_joined_as_each_alone(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..12),
            (data, parity) in (1_usize..9, 1_usize..6),
            missing in any::<[u64; 2]>(),
        ) {
            let cut = Pieces::new(data, parity).expect("pieces");
            let mut joiner = cut.joiner();
            for (number, value) in values.into_iter().enumerate() {
                let pieces = cut.cut(&sealed(&value)).expect("a cell");
                let mut given = there(&pieces);
                // One choice for some cells, then another one.
                let missing = missing[number / 3 % 2];
                (0..parity).for_each(|at| given[(missing >> (8 * at)) as usize % (data + parity)] = None);
                let (joined, alone) = (joiner.join(&given, 0, open), cut.joiner().join(&given, 0, open));
                prop_assert_eq!(&joined, &alone);
                prop_assert_eq!(joined.expect("a cell").opened, value);
            }
        }

        #[test]
        fn noise_is_told(
            noise in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..9),
            length in prop_oneof![any::<u32>(), 0..80_u32],
            (data, parity) in (1_usize..5, 0_usize..5),
        ) {
            let cut = Pieces::new(data, parity).expect("pieces");
            let pieces: Vec<Option<Vec<u8>>> = noise.into_iter()
                .map(|piece| piece.map(|piece| [&length.to_be_bytes()[..], &piece].concat()))
                .collect();
            let given: Vec<Option<&[u8]>> = pieces.iter().map(Option::as_deref).collect();
            prop_assert!(cut.joiner().join(&given, 2, open).is_err());
        }
    }

    #[test]
    fn cells_of_one_class_have_pieces_of_one_length() {
        let cut = Pieces::new(3, 2).expect("pieces");
        let lengths = |value: &[u8]| cut.cut(&sealed(value)).expect("a cell").iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(b""), lengths(b"twelve bytes"));
        assert_ne!(lengths(b""), lengths(&[0; 40]));
    }

    #[test]
    fn more_liars_than_may_be_are_an_error_and_no_wait() {
        let cut = Pieces::new(4, 3).expect("pieces");
        let mut pieces = cut.cut(&sealed(b"a value")).expect("a cell");
        pieces[0][9] ^= 1;
        assert_eq!(cut.joiner().join(&there(&pieces), 0, open), Err(Unjoined::Wrong));
        assert_eq!(cut.joiner().join(&there(&pieces), 1, open).map(|joined| joined.wrong), Ok(vec![0]));
        let cut = Pieces::new(32, 32).expect("pieces");
        let mut pieces = cut.cut(&sealed(&[1; 300])).expect("a cell");
        let mut tries = 0;
        pieces.iter_mut().for_each(|piece| piece[5] ^= 1);
        let joined = cut.joiner().join(&there(&pieces), 32, |_| {
            tries += 1;
            None::<()>
        });
        assert_eq!((joined, tries), (Err(Unjoined::TooManyWays), TRIES_MAX));
    }

    #[test]
    fn a_piece_that_says_another_length_is_none_of_the_cell() {
        let cut = Pieces::new(2, 2).expect("pieces");
        let mut pieces = cut.cut(&sealed(b"a value")).expect("a cell");
        // As many bytes as go with the length that it says.
        pieces[0][3] -= 1;
        pieces[1] = [&u32::MAX.to_be_bytes()[..], &[0; 9]].concat();
        assert_eq!(cut.joiner().join(&there(&pieces), 2, open).map(|joined| joined.wrong), Ok(vec![0, 1]));
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        for (data, parity) in [(0, 1), (64, 1), (1, 64), (usize::MAX, 1)] {
            assert_eq!(Pieces::new(data, parity), None);
        }
        assert_eq!(Pieces::new(3, 1).expect("pieces").cut(&[]), Err(Unjoined::Length(0)));
    }

    #[test]
    fn one_liar_is_found_soon_whoever_it_is() {
        for (data, parity) in [(9, 5), (12, 4), (18, 3), (40, 20)] {
            let cut = Pieces::new(data, parity).expect("pieces");
            for liar in [0, data / 2, data + parity - 1] {
                let mut pieces = cut.cut(&sealed(&[7; 90])).expect("a cell");
                pieces[liar][6] ^= 1;
                let joined = cut.joiner().join(&there(&pieces), parity, open).map(|joined| joined.wrong);
                assert_eq!(joined, Ok(vec![liar]), "{data} and {parity}");
            }
        }
    }

    #[test]
    fn choices_are_all_there_are() {
        let (mut chosen, mut count) = (vec![0, 1, 2], 1);
        while next(&mut chosen, 6) {
            count += 1;
        }
        assert_eq!((count, chosen), (20, vec![3, 4, 5]));
    }
}
