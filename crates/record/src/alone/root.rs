//! The root that a commit page carries. Small, because it stands in every commit: what an opening settled for good stands
//! in its opening root and in the map.
//!
//! ```text
//! counted u32: steps of the counter since the opening, whose epoch has the number that it took the counter to
//! index head u40: sequence of the next page of the index ring
//! tail word: pages from the oldest page that is needed to this one
//! replay word: pages from the first one whose directory is not in the leaves yet to this one
//! map word: pages from the first page of the newest map to the index head
//! in an opening root of a store that has a map already:
//!   before word: pages from the newest commit before it to this one
//!   map epoch: number u64, salt [16] of the opening that wrote the map
//! ```
//! 1. All distances are less than a lap of their ring.
//! 2. An opening root is the first page of its opening in the data ring, and its index head the first in the index ring.

use counterfoil_vault::Epoch;

use crate::bytes::{array_at, put, u32_at, u64_at};
use crate::head::Head;
use crate::window::SEQUENCE_MAX;

use super::form::{Form, SEQUENCE_BYTES, put_sequence, sequence_at};
use super::opening::Opening;
use super::word::{NONE, Word};

const EPOCH_BYTES: usize = 24;

/// See the picture above, with the distances made sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) counted: u64,
    pub(crate) index_head: u64,
    pub(crate) tail: u64,
    pub(crate) replay: u64,
    pub(crate) map: u64,
    /// In an opening root: itself, and the opening that wrote the map.
    pub(crate) opening: Option<(Opening, Epoch)>,
}

/// Bytes of a root; `is_opening`: of one that tells of its opening.
pub(crate) fn root_bytes<W: Word>(is_opening: bool) -> usize {
    let fixed = 4 + SEQUENCE_BYTES + 3 * W::BYTES;
    if is_opening { fixed + W::BYTES + EPOCH_BYTES } else { fixed }
}

impl Root {
    pub(crate) fn encode<W: Word>(&self, body: &mut [u8], at: usize, commit: &Head) {
        let version = commit.sequence;
        let word = |number: u64| W::of(u32::try_from(number).unwrap_or(NONE));
        put(body, at, &((self.counted - commit.epoch.number) as u32).to_le_bytes());
        put_sequence(body, at + 4, self.index_head);
        let mut at = at + 4 + SEQUENCE_BYTES;
        let before = self.opening.map(|(opening, _)| word(version - opening.data_before));
        let distances =
            [word(version - self.tail), word(version.saturating_sub(self.replay)), word(self.index_head - self.map)];
        for word in distances.into_iter().chain(before) {
            word.encode(body.get_mut(at..).unwrap_or_default());
            at += W::BYTES;
        }
        if let Some((_, epoch)) = self.opening {
            put(body, at, &epoch.number.to_le_bytes());
            put(body, at + 8, &epoch.salt);
        }
    }

    /// Takes apart the root that stands in the page of this head.
    pub(crate) fn decode<W: Word>(
        bytes: &[u8],
        form: &Form,
        commit: &Head,
        is_opening: bool,
    ) -> Result<Root, &'static str> {
        let bytes = bytes.get(..root_bytes::<W>(is_opening)).ok_or("root length")?;
        let words = bytes.get(4 + SEQUENCE_BYTES..).unwrap_or_default();
        let word = |index: usize| W::decode(words.get(index * W::BYTES..).unwrap_or_default()).number();
        let version = commit.sequence;
        let index_head = sequence_at(bytes, 4);
        let before = |sequence: u64, index| sequence.saturating_sub(u64::from(word(index)));
        let opening = is_opening.then(|| {
            let opening = Opening {
                data_before: before(version, 3),
                data_first: version,
                index_first: index_head,
                epoch: commit.epoch,
            };
            let epoch = words.get(4 * W::BYTES..).unwrap_or_default();
            (opening, Epoch { number: u64_at(epoch, 0), salt: array_at(epoch, 8) })
        });
        let root = Root {
            counted: commit.epoch.number.saturating_add(u64::from(u32_at(bytes, 0))),
            index_head,
            tail: before(version, 0),
            replay: before(version, 1),
            map: before(index_head, 2),
            opening,
        };
        let (data, index) = (form.data.pages, form.index.pages);
        let in_lap = root.tail + data > version && root.map + index > index_head;
        let ordered = data <= root.tail && root.tail <= root.replay && index <= root.map && root.map < index_head;
        if in_lap && ordered && root.counted <= SEQUENCE_MAX { Ok(root) } else { Err("distances of a root") }
    }
}
