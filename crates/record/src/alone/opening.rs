//! Which opening wrote which pages: their epochs are in the keys of the pages, so nothing opens without this list.
//!
//! ```text
//!  0 data before u64: newest commit page before this opening | 8 data first u64: its own first page in the data ring
//! 16 index first u64: its own first page in the index ring   | 24 epoch number u64 | 32 epoch salt [16]
//! ```
//! 1. Openings are in the order of their pages. Between `data before` and `data first` lie pages that a cut left behind,
//!    and one that it may have begun: they belong to nobody.

use counterfoil_vault::Epoch;

use crate::bytes::{array_at, put, u64_at};

pub(crate) const OPENING_BYTES: usize = 48;

/// One opening for writing. Callers hand over a buffer of these and need not know what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    pub(crate) data_before: u64,
    pub(crate) data_first: u64,
    pub(crate) index_first: u64,
    pub(crate) epoch: Epoch,
}

impl Opening {
    /// To fill a new buffer with.
    pub const EMPTY: Opening =
        Opening { data_before: 0, data_first: 0, index_first: 0, epoch: Epoch { number: 0, salt: [0; 16] } };

    pub(crate) fn encode(&self) -> [u8; OPENING_BYTES] {
        let mut bytes = [0; OPENING_BYTES];
        put(&mut bytes, 0, &self.data_before.to_le_bytes());
        put(&mut bytes, 8, &self.data_first.to_le_bytes());
        put(&mut bytes, 16, &self.index_first.to_le_bytes());
        put(&mut bytes, 24, &self.epoch.number.to_le_bytes());
        put(&mut bytes, 32, &self.epoch.salt);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Opening {
        Opening {
            data_before: u64_at(bytes, 0),
            data_first: u64_at(bytes, 8),
            index_first: u64_at(bytes, 16),
            epoch: Epoch { number: u64_at(bytes, 24), salt: array_at(bytes, 32) },
        }
    }

    /// Whether this one may come after `before` in the list.
    pub(crate) fn follows(&self, before: &Opening) -> bool {
        let data = before.data_first <= self.data_before && self.data_before < self.data_first;
        data && before.index_first <= self.index_first
    }
}

/// The epoch of a page of the data ring, if it belongs to anybody.
pub(crate) fn data_epoch(openings: &[Opening], sequence: u64) -> Option<Epoch> {
    let mut owner = None;
    for opening in openings {
        if sequence >= opening.data_first {
            owner = Some(opening.epoch);
        } else if sequence > opening.data_before {
            owner = None;
        }
    }
    owner
}

/// The epoch of a page of the index ring.
pub(crate) fn index_epoch(openings: &[Opening], sequence: u64) -> Option<Epoch> {
    openings.iter().rev().find(|opening| opening.index_first <= sequence).map(|opening| opening.epoch)
}

/// Drops the openings of which no page is needed any more; the new count.
pub(crate) fn drop_before(openings: &mut [Opening], tail: u64, index_tail: u64) -> usize {
    let needless = |pair: &&[Opening]| pair[1].data_first <= tail && pair[1].index_first <= index_tail;
    let gone = openings.windows(2).take_while(needless).count();
    openings.copy_within(gone.., 0);
    openings.len() - gone
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(data_before: u64, data_first: u64, index_first: u64) -> Opening {
        Opening { data_before, data_first, index_first, epoch: Epoch { number: data_first, salt: [0; 16] } }
    }

    #[test]
    fn pages_belong_to_the_opening_that_committed_them() {
        let mut openings = [opening(9, 10, 100), opening(20, 23, 130), opening(23, 25, 130)];
        assert!(openings.windows(2).all(|pair| pair[1].follows(&pair[0])));
        let owner = |sequence| data_epoch(&openings, sequence).map(|epoch| epoch.number);
        assert_eq!(
            [9, 10, 20, 21, 22, 23, 24, 25].map(owner),
            [None, Some(10), Some(10), None, None, Some(23), None, Some(25)]
        );
        assert_eq!(index_epoch(&openings, 99), None);
        assert_eq!(index_epoch(&openings, 129).map(|epoch| epoch.number), Some(10));
        assert_eq!(index_epoch(&openings, 130).map(|epoch| epoch.number), Some(25));
        assert_eq!(drop_before(&mut openings, 23, 129), 3);
        assert_eq!(drop_before(&mut openings, 23, 130), 2);
        assert_eq!(Opening::decode(&openings[0].encode()), openings[0]);
    }
}
