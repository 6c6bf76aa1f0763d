//! The arithmetic of a ring of pages, in 32 bits and without a division by anything but the pages of a block.
//!
//! ```text
//! sequence: lap u32, slot u32: the page at `slot` of the ring, written in this lap; laps count from 1
//! ```
//! 1. Sequences are ordered as they are written: by lap, then by slot. One is never used twice in one epoch.
//! 2. No two of them that are needed at once lie more than a lap apart.

use core::num::NonZeroU32;

use counterfoil_vault::{Epoch, Kind, Place};

use super::pages::Spot;

/// A page of a ring, in the lap in which it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sequence {
    pub(crate) lap: u32,
    pub(crate) slot: u32,
}

impl Sequence {
    pub(crate) const ZERO: Sequence = Sequence { lap: 0, slot: 0 };
}

/// A ring of pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    pub(crate) kind: Kind,
    /// Its first block, among those of both rings.
    pub(crate) first_block: u32,
    pub(crate) pages: u32,
    /// Pages of a block that are the ring's.
    pub(crate) block_pages: NonZeroU32,
    /// Pages before those in each block, which are not.
    pub(crate) lead: u32,
    /// Goes into the place of every page: stores of different shapes never take each other's pages for their own.
    pub(crate) mark: u32,
}

impl Ring {
    /// The first sequence that is ever written.
    pub(crate) fn start(&self) -> Sequence {
        Sequence { lap: 1, slot: 0 }
    }

    /// So many pages after a sequence, less than a lap.
    pub(crate) fn after(&self, from: Sequence, pages: u32) -> Sequence {
        let left = self.pages - from.slot;
        match pages.checked_sub(left) {
            None => Sequence { slot: from.slot + pages, ..from },
            Some(slot) => Sequence { lap: from.lap + 1, slot },
        }
    }

    /// So many pages before a sequence, less than a lap; the first of all if there are not so many.
    pub(crate) fn before(&self, from: Sequence, pages: u32) -> Sequence {
        match from.slot.checked_sub(pages) {
            Some(slot) => Sequence { slot, ..from },
            None if from.lap == 0 => Sequence::ZERO,
            None => Sequence { lap: from.lap - 1, slot: (from.slot + self.pages).saturating_sub(pages) },
        }
    }

    /// Pages from one sequence to a later one, two laps at most; none to an earlier one.
    pub(crate) fn distance(&self, from: Sequence, to: Sequence) -> u32 {
        let laps = to.lap.saturating_sub(from.lap).min(2);
        if to <= from { 0 } else { (laps * self.pages + to.slot).saturating_sub(from.slot) }
    }

    /// The newest page at a slot that is not newer than `newest`.
    pub(crate) fn at(&self, slot: u32, newest: Sequence) -> Sequence {
        Sequence { lap: if slot <= newest.slot { newest.lap } else { newest.lap.saturating_sub(1) }, slot }
    }

    /// How many pages of the ring stand before this one in its block.
    pub(crate) fn in_block(&self, sequence: Sequence) -> u32 {
        sequence.slot % self.block_pages
    }

    /// The first page of the block that holds a page.
    pub(crate) fn block_start(&self, sequence: Sequence) -> Sequence {
        Sequence { slot: sequence.slot - self.in_block(sequence), ..sequence }
    }

    /// Pages of the block from this one on.
    pub(crate) fn block_rest(&self, sequence: Sequence) -> u32 {
        self.block_pages.get() - self.in_block(sequence)
    }

    /// The first page of the block after the one that holds this page.
    pub(crate) fn next_block(&self, sequence: Sequence) -> Sequence {
        self.after(sequence, self.block_rest(sequence))
    }

    /// The first page of the block that is entered next, when this is the next page to be written.
    pub(crate) fn block_from(&self, head: Sequence) -> Sequence {
        if self.in_block(head) == 0 { head } else { self.next_block(head) }
    }

    pub(crate) fn blocks(&self) -> u32 {
        self.pages / self.block_pages
    }

    /// Pages that may be written from `head` on before the block of `tail` comes round.
    pub(crate) fn free(&self, tail: Sequence, head: Sequence) -> u32 {
        let start = self.block_start(tail);
        self.distance(head, Sequence { lap: start.lap + 1, ..start })
    }

    /// The block that a page stands in, among those of both rings.
    pub(crate) fn block(&self, sequence: Sequence) -> u32 {
        self.first_block + sequence.slot / self.block_pages
    }

    /// Where a page stands.
    pub(crate) fn spot(&self, sequence: Sequence) -> Spot {
        Spot { block: self.block(sequence), page: self.lead + self.in_block(sequence) }
    }

    /// The slot of the page that stands there, if it is one of this ring.
    pub(crate) fn slot(&self, spot: Spot) -> Option<u32> {
        let block = spot.block.checked_sub(self.first_block).filter(|block| *block < self.blocks())?;
        Some(block * self.block_pages.get() + spot.page.checked_sub(self.lead)?)
    }

    /// The place that a page is sealed at.
    pub(crate) fn place(&self, sequence: Sequence, epoch: Epoch) -> Place {
        let allocation = u64::from(self.mark) << 32 | u64::from(sequence.lap);
        Place { kind: self.kind, allocation, position: sequence.slot, epoch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_follow_each_other() {
        let block_pages = NonZeroU32::new(8).expect("eight");
        let ring = Ring { kind: Kind::RecordData, first_block: 12, pages: 24, block_pages, lead: 1, mark: 0 };
        let spot = |block, page| Spot { block, page };
        let at = |lap, slot| Sequence { lap, slot };
        assert_eq!(ring.after(at(1, 22), 5), at(2, 3));
        assert_eq!(ring.before(at(2, 3), 5), at(1, 22));
        assert_eq!(ring.before(at(0, 3), 5), Sequence::ZERO);
        assert_eq!((ring.distance(at(1, 22), at(2, 3)), ring.distance(at(2, 3), at(1, 22))), (5, 0));
        assert_eq!((ring.at(3, at(2, 3)), ring.at(4, at(2, 3))), (at(2, 3), at(1, 4)));
        assert_eq!((ring.next_block(at(1, 16)), ring.block_rest(at(1, 23))), (at(2, 0), 1));
        assert_eq!((ring.free(at(1, 9), at(2, 3)), ring.free(at(1, 9), at(2, 8))), (5, 0));
        assert_eq!((ring.spot(at(7, 5)), ring.spot(at(7, 8))), (spot(12, 6), spot(13, 1)));
        assert_eq!((ring.slot(spot(12, 6)), ring.slot(spot(13, 1))), (Some(5), Some(8)));
        assert_eq!([spot(11, 1), spot(15, 1), spot(12, 0)].map(|spot| ring.slot(spot)), [None; 3]);
        assert!(at(1, 23) < at(2, 0));
    }
}
