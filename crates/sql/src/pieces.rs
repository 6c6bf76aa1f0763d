//! Pieces of one size that a query puts aside, each sealed by itself, many in a slot.
//!
//! ```text
//! slot a: | piece 0 | piece 1 | ... | piece n-1 |     slot b: | piece n | ...
//! ```
//! Nothing is kept of a piece but what is kept of its slot: a sort in little memory has ten thousands of them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use counterfoil_vault::{SpillOpener, SpillSealer};

use crate::error::{Error, Result};
use crate::slots::{SLOT_BYTES, Slot, Slots};
use crate::spill::{full, opened, unwritten};

/// The pieces of one query.
pub(crate) struct Pieces {
    slots: Arc<Slots>,
    sealer: SpillSealer,
    opener: SpillOpener,
    /// Those that are still wanted, the first first.
    taken: VecDeque<Slot>,
    /// Slots before them that were given back.
    gone: usize,
    count: usize,
    piece_bytes: usize,
    /// Bytes of a piece as it is sealed; known from the first on.
    sealed_bytes: usize,
    sealed: Vec<u8>,
}

impl Pieces {
    pub(crate) fn new(slots: Arc<Slots>, (sealer, opener): (SpillSealer, SpillOpener), piece_bytes: usize) -> Self {
        let (taken, sealed) = (VecDeque::new(), Vec::new());
        Pieces { slots, sealer, opener, taken, gone: 0, count: 0, piece_bytes, sealed_bytes: 0, sealed }
    }

    /// Puts a piece there; its number is how many were put before.
    pub(crate) fn put(&mut self, piece: &[u8]) -> Result<()> {
        if piece.len() != self.piece_bytes {
            return Err(Error::Bug("a piece of another size".into()));
        }
        self.sealed.clear();
        self.sealer.seal(piece, false, &mut self.sealed);
        self.sealed_bytes = self.sealed.len();
        let (place, offset) = self.place(self.count);
        if place == self.taken.len() {
            let bytes = (self.in_a_slot() * self.sealed_bytes) as u64;
            let slot = self.slots.take(bytes).map_err(|error| unwritten(&error, &self.slots))?;
            self.taken.push_back(slot.ok_or_else(full)?);
        }
        self.taken[place].write(&self.sealed, offset).map_err(|error| unwritten(&error, &self.slots))?;
        self.count += 1;
        Ok(())
    }

    /// Reads one of them.
    pub(crate) fn read(&mut self, number: usize) -> Result<Bytes> {
        let gone = || Error::Bug("a piece that was not put there, or is gone".into());
        if number >= self.count || number / self.in_a_slot() < self.gone {
            return Err(gone());
        }
        let (place, offset) = self.place(number);
        self.opener = self.opener.at(number as u64);
        opened(self.taken.get(place).ok_or_else(gone)?, offset, &mut self.opener)
    }

    /// Those before a number are not read any more.
    pub(crate) fn forget_before(&mut self, number: usize) {
        if self.count == 0 {
            return;
        }
        let whole = (number.min(self.count) / self.in_a_slot()).saturating_sub(self.gone).min(self.taken.len());
        let given: Vec<Slot> = self.taken.drain(..whole).collect();
        self.gone += given.len();
        self.slots.give_back(&given);
    }

    /// The slot of a piece, among those that are taken, and where in it the piece begins.
    fn place(&self, number: usize) -> (usize, usize) {
        let in_a_slot = self.in_a_slot();
        (number / in_a_slot - self.gone, number % in_a_slot * self.sealed_bytes)
    }

    fn in_a_slot(&self) -> usize {
        SLOT_BYTES as usize / self.sealed_bytes
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.slots.give_back(self.taken.make_contiguous());
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_vault::{SpillKey, SystemEntropy};

    use super::*;

    #[test]
    fn they_come_back_until_they_are_forgotten_and_their_room_too() {
        let slots = Arc::new(Slots::new(std::env::temp_dir(), 10 << 20));
        let key = SpillKey::generate(&mut SystemEntropy).unwrap();
        let mut pieces = Pieces::new(slots.clone(), key.stream(), 1000);
        let piece = |number: usize| vec![number as u8; 1000];
        (0..500).for_each(|number| pieces.put(&piece(number)).unwrap());
        let before = slots.bytes();
        assert!((500_000..800_000).contains(&before));
        for number in [499, 0, 250, 66, 67, 68] {
            assert_eq!(pieces.read(number).unwrap(), piece(number));
        }
        pieces.forget_before(300);
        pieces.forget_before(200);
        assert!(slots.bytes() <= before / 2 && slots.bytes() >= 200_000);
        (300..500).for_each(|number| assert_eq!(pieces.read(number).unwrap(), piece(number)));
        assert!(pieces.read(3).is_err() && pieces.read(500).is_err());
        (500..600).for_each(|number| pieces.put(&piece(number)).unwrap());
        (300..600).for_each(|number| assert_eq!(pieces.read(number).unwrap(), piece(number)));
        assert!(pieces.put(&[1]).is_err());
        drop(pieces);
        assert_eq!(slots.bytes(), 0);
    }

    #[test]
    fn the_bound_is_told() {
        let slots = Arc::new(Slots::new(std::env::temp_dir(), 100 << 10));
        let mut pieces = Pieces::new(slots, SpillKey::generate(&mut SystemEntropy).unwrap().stream(), 1000);
        let put = (0..200).try_for_each(|_| pieces.put(&[1; 1000]));
        assert!(matches!(put, Err(Error::Memory(text)) if text.contains("room to spill")));
    }
}
