//! The root that a commit page carries. Small, because it stands in every commit: what an opening settled for good stands
//! in its opening root and in the map.
//!
//! ```text
//! counted u32: steps of the counter since the opening, whose epoch has the number that it took the counter to
//! index head lap u24, slot word: the next page of the index ring
//! tail word: pages from the oldest page that is needed to this one
//! replay word: pages from the first one whose directory is not in the leaves yet to this one
//! map word: pages from the first page of the newest map to the index head
//! in an opening root of a store that has a map already:
//!   before word: pages from the newest commit before it to this one
//!   map epoch: number u64, salt [16] of the opening that wrote the map
//!   rollbacks u16: images behind their counter that were opened all the same, this time included
//! ```
//! 1. All distances are less than a lap of their ring.
//! 2. An opening root is the first page of its opening in the data ring, and its index head the first in the index ring.

use counterfoil_vault::Epoch;

use crate::bytes::{array_at, put, u16_at, u32_at, u64_at};

use super::form::{Form, Head, LAP_BYTES, LAPS_MAX, lap_at};
use super::opening::Opening;
use super::sequence::Sequence;
use super::word::Word;

const WORDS_AT: usize = 4 + LAP_BYTES;
const EPOCH_BYTES: usize = 24;
const ROLLBACKS_BYTES: usize = 2;

/// See the picture above, with the distances made sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) counted: u64,
    pub(crate) index_head: Sequence,
    pub(crate) tail: Sequence,
    pub(crate) replay: Sequence,
    pub(crate) map: Sequence,
    /// In an opening root: itself, and the opening that wrote the map.
    pub(crate) opening: Option<(Opening, Epoch)>,
    /// Told by opening roots alone.
    pub(crate) rollbacks: u16,
}

/// Bytes of a root; `is_opening`: of one that tells of its opening.
pub(crate) fn root_bytes<W: Word>(is_opening: bool) -> usize {
    let fixed = WORDS_AT + 4 * W::BYTES;
    if is_opening { fixed + W::BYTES + EPOCH_BYTES + ROLLBACKS_BYTES } else { fixed }
}

impl Root {
    pub(crate) fn encode<W: Word>(&self, form: &Form, body: &mut [u8], at: usize, commit: &Head<'_>) {
        let (data, version) = (&form.data, commit.sequence);
        let before = self.opening.map_or(version, |(opening, _)| opening.data_before);
        put(body, at, &((self.counted - commit.epoch.number) as u32).to_le_bytes());
        put(body, at + 4, &self.index_head.lap.to_le_bytes()[..LAP_BYTES]);
        let words = [
            self.index_head.slot,
            data.distance(self.tail, version),
            data.distance(self.replay, version),
            form.index.distance(self.map, self.index_head),
            data.distance(before, version),
        ];
        let mut at = at + WORDS_AT;
        for word in words.iter().take(if self.opening.is_some() { 5 } else { 4 }) {
            W::of(*word).encode(body.get_mut(at..).unwrap_or_default());
            at += W::BYTES;
        }
        if let Some((_, epoch)) = self.opening {
            put(body, at, &epoch.number.to_le_bytes());
            put(body, at + 8, &epoch.salt);
            put(body, at + EPOCH_BYTES, &self.rollbacks.to_le_bytes());
        }
    }

    /// Takes apart the root that stands in the page of this head; none if it makes no sense.
    pub(crate) fn decode<W: Word>(bytes: &[u8], form: &Form, commit: &Head<'_>, is_opening: bool) -> Option<Root> {
        let bytes = bytes.get(..root_bytes::<W>(is_opening))?;
        let words = bytes.get(WORDS_AT..)?;
        let word = |index: usize| W::decode(words.get(index * W::BYTES..).unwrap_or_default()).number();
        let (data, version) = (&form.data, commit.sequence);
        let index_head = Sequence { lap: lap_at(bytes, 4), slot: word(0) };
        let is_placed = index_head.slot < form.index.pages && (1..LAPS_MAX).contains(&index_head.lap);
        let in_lap = word(2) <= word(1) && word(1) < data.pages && (1..form.index.pages).contains(&word(3));
        if !is_placed || !in_lap || (is_opening && word(4) >= data.pages) {
            return None;
        }
        let epoch = words.get(5 * W::BYTES..).unwrap_or_default();
        let opening = is_opening.then(|| {
            let (data_before, index_first) = (data.before(version, word(4)), index_head);
            let opening = Opening { data_before, data_first: version, index_first, epoch: *commit.epoch };
            (opening, Epoch { number: u64_at(epoch, 0), salt: array_at(epoch, 8) })
        });
        Some(Root {
            counted: commit.epoch.number + u64::from(u32_at(bytes, 0)),
            index_head,
            tail: data.before(version, word(1)),
            replay: data.before(version, word(2)),
            map: form.index.before(index_head, word(3)),
            opening,
            rollbacks: if is_opening { u16_at(epoch, EPOCH_BYTES) } else { 0 },
        })
    }
}
