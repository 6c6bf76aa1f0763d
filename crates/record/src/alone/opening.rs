//! Which opening wrote which pages: their epochs are in the keys of the pages, so nothing opens without this list.
//!
//! ```text
//!  0 data before: newest commit page before this opening | 8 data first: its own first page in the data ring
//! 16 index first: its own first page in the index ring    | 24 epoch number u64 | 32 epoch salt [16]
//! (a sequence is lap u32, slot u32)
//! ```
//! 1. Openings are in the order of their pages. Between `data before` and `data first` lie pages that a cut left behind,
//!    and one that it may have begun: they belong to nobody.

use counterfoil_vault::Epoch;

use crate::bytes::{array_at, put, u32_at, u64_at};

use super::sequence::Sequence;

pub(crate) const OPENING_BYTES: usize = 48;

/// One opening for writing. Callers hand over a buffer of these and need not know what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    pub(crate) data_before: Sequence,
    pub(crate) data_first: Sequence,
    pub(crate) index_first: Sequence,
    pub(crate) epoch: Epoch,
}

impl Opening {
    /// To fill a new buffer with.
    pub const EMPTY: Opening = Opening {
        data_before: Sequence::ZERO,
        data_first: Sequence::ZERO,
        index_first: Sequence::ZERO,
        epoch: Epoch { number: 0, salt: [0; 16] },
    };

    pub(crate) fn encode(&self) -> [u8; OPENING_BYTES] {
        let mut bytes = [0; OPENING_BYTES];
        for (offset, sequence) in [(0, self.data_before), (8, self.data_first), (16, self.index_first)] {
            put(&mut bytes, offset, &sequence.lap.to_le_bytes());
            put(&mut bytes, offset + 4, &sequence.slot.to_le_bytes());
        }
        put(&mut bytes, 24, &self.epoch.number.to_le_bytes());
        put(&mut bytes, 32, &self.epoch.salt);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Opening {
        let sequence = |offset| Sequence { lap: u32_at(bytes, offset), slot: u32_at(bytes, offset + 4) };
        Opening {
            data_before: sequence(0),
            data_first: sequence(8),
            index_first: sequence(16),
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
pub(crate) fn data_epoch(openings: &[Opening], sequence: Sequence) -> Option<&Epoch> {
    let mut owner = None;
    for opening in openings {
        if sequence >= opening.data_first {
            owner = Some(&opening.epoch);
        } else if sequence > opening.data_before {
            owner = None;
        }
    }
    owner
}

/// The epoch of a page of the index ring.
pub(crate) fn index_epoch(openings: &[Opening], sequence: Sequence) -> Option<&Epoch> {
    openings.iter().rev().find(|opening| opening.index_first <= sequence).map(|opening| &opening.epoch)
}

/// Drops the openings of which no page is needed any more; the new count.
pub(crate) fn drop_before(openings: &mut [Opening], tail: Sequence, index_tail: Sequence) -> usize {
    let needless = |pair: &&[Opening]| pair[1].data_first <= tail && pair[1].index_first <= index_tail;
    let gone = openings.windows(2).take_while(needless).count();
    let left = openings.len().saturating_sub(gone);
    for place in 0..left {
        if let (Some(opening), true) = (openings.get(place + gone).copied(), gone > 0)
            && let Some(place) = openings.get_mut(place)
        {
            *place = opening;
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(slot: u32) -> Sequence {
        Sequence { lap: 3, slot }
    }

    fn opening(before: u32, data: u32, index: u32) -> Opening {
        let epoch = Epoch { number: u64::from(data), salt: [0; 16] };
        Opening { data_before: at(before), data_first: at(data), index_first: at(index), epoch }
    }

    #[test]
    fn pages_belong_to_the_opening_that_committed_them() {
        let mut openings = [opening(9, 10, 100), opening(20, 23, 130), opening(23, 25, 130)];
        assert!(openings.windows(2).all(|pair| pair[1].follows(&pair[0])));
        let owner = |slot| data_epoch(&openings, at(slot)).map(|epoch| epoch.number);
        let owners = [None, Some(10), Some(10), None, None, Some(23), None, Some(25)];
        assert_eq!([9, 10, 20, 21, 22, 23, 24, 25].map(owner), owners);
        assert_eq!(index_epoch(&openings, at(99)), None);
        assert_eq!(index_epoch(&openings, at(129)).map(|epoch| epoch.number), Some(10));
        assert_eq!(index_epoch(&openings, at(130)).map(|epoch| epoch.number), Some(25));
        assert_eq!(drop_before(&mut openings, at(23), at(129)), 3);
        assert_eq!(drop_before(&mut openings, at(23), at(130)), 2);
        assert_eq!(Opening::decode(&openings[0].encode()), openings[0]);
    }
}
