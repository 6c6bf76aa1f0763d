//! The arithmetic of a ring of pages, in 32 bits and without a division by anything but the pages of a block.
//!
//! ```text
//! sequence: lap u32, slot u32: the page at `slot` of the ring, written in this lap; laps count from 1
//! ```
//! 1. Sequences are ordered as they are written: by lap, then by slot. One is never used twice in one epoch.
//! 2. No two of them that are needed at once lie more than a lap apart.

use core::num::NonZeroU32;

use counterfoil_flash::{BlockNumber, PageNumber};
use counterfoil_vault::{Epoch, Kind, Place};

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
    /// First block on the medium.
    pub(crate) first_block: u64,
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

    /// The block of the medium that a page stands in.
    pub(crate) fn block(&self, sequence: Sequence) -> BlockNumber {
        BlockNumber(self.first_block + u64::from(sequence.slot / self.block_pages))
    }

    /// Where a page stands on the medium.
    pub(crate) fn page(&self, sequence: Sequence) -> PageNumber {
        let before = u64::from(self.lead + self.in_block(sequence));
        PageNumber(self.block(sequence).0 * u64::from(self.lead + self.block_pages.get()) + before)
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
        let at = |lap, slot| Sequence { lap, slot };
        assert_eq!(ring.after(at(1, 22), 5), at(2, 3));
        assert_eq!(ring.before(at(2, 3), 5), at(1, 22));
        assert_eq!(ring.before(at(0, 3), 5), Sequence::ZERO);
        assert_eq!((ring.distance(at(1, 22), at(2, 3)), ring.distance(at(2, 3), at(1, 22))), (5, 0));
        assert_eq!((ring.at(3, at(2, 3)), ring.at(4, at(2, 3))), (at(2, 3), at(1, 4)));
        assert_eq!((ring.next_block(at(1, 16)), ring.block_rest(at(1, 23))), (at(2, 0), 1));
        assert_eq!((ring.free(at(1, 9), at(2, 3)), ring.free(at(1, 9), at(2, 8))), (5, 0));
        assert_eq!((ring.page(at(7, 5)), ring.page(at(7, 8))), (PageNumber(12 * 9 + 6), PageNumber(13 * 9 + 1)));
        assert!(at(1, 23) < at(2, 0));
    }
}
