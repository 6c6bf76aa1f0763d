//! Sorted runs: the settled part of an index.
//!
//! A run is written once, bottom up, into a container of its own, and never changed:
//!
//! ```text
//! | data blocks | upper blocks, level by level | ... | top block | Bloom filter |
//!
//! a block, as many bytes as a page holds (or a few pages, where they are small):
//!  0       1   2       4     8              16
//!  | level | 0 | count | 0 0 | first child  | entries ... | zeros | ... signpost 1 | signpost 0 |
//!  | u8    |   | u16   |     | u64          |
//!
//! an entry: | r << 5 | s | shared u16, if s = 31 | rest u16, if r = 7 | rest | difference of rows |
//! the first s (or shared) bytes of its key are those of the entry before, then come r (or rest) bytes of its own
//! ```
//!
//! Level 0 holds the entries, in order. A block of level n + 1 holds the first entry of each of `count` blocks of level
//! n, from block `first child` (counted within that level) on; of level 0, `first child` is 0. A run of one data block
//! has no upper blocks; that block has no more pages than it needs, and may have no filter behind it. Signpost n says where in the block entry 32 n begins, which shares nothing, so that an entry is found
//! by halving. The filter knows the keys of all entries (without their row numbers).
//!
//! Invariants: entries ascend strictly, within and across blocks; every level is complete; the topmost has one block.

mod block;
mod merge;
mod reader;
mod stream;
mod writer;

pub(crate) use block::Blocks;
pub(crate) use merge::Merge;
pub(crate) use reader::{Cursor, Head};
pub(crate) use writer::RunWriter;

use alloc::vec::Vec;

use counterfoil_log::{ContainerId, GroupId, View};
use serde::{Deserialize, Serialize};

use crate::key::{ENTRY_BYTES_MAX, split_entry};
use crate::{Error, RowId};
use block::{BLOCK_BYTES_MAX, ONLY_BLOCK_BYTES_MIN, SECTOR_BLOCK_BYTES};

/// Bytes that an entry takes in a block at least.
const ENTRY_BYTES_MIN: u64 = 2;

/// What the catalog holds of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// How often its entries were merged: runs of a tier are of about the same size.
    pub(crate) tier: u8,
    group: u64,
    container: u64,
    /// Bytes of a block.
    block_bytes: u32,
    /// Whether it goes on where the run before it ends: both are pieces of one sorted run.
    pub(crate) follows: bool,
    /// Renewals of segments that there had been when its entries were held against the rows.
    pub(crate) renewals: u64,
    /// Entries in it, at least one.
    pub(crate) entries: u64,
    /// Blocks of each level, from the data up.
    pub(crate) levels: Vec<u32>,
    /// Lines of the Bloom filter.
    pub(crate) lines: u32,
    /// The first entry.
    pub(crate) first: Vec<u8>,
    /// The last entry.
    pub(crate) last: Vec<u8>,
}

impl Run {
    pub(crate) fn group(&self) -> GroupId {
        GroupId(self.group)
    }

    pub(crate) fn container(&self) -> ContainerId {
        ContainerId(self.container)
    }

    /// The same run as a piece that goes on where another ends, or does not.
    pub(crate) fn following(self, follows: bool) -> Self {
        Run { follows, ..self }
    }

    /// Whether the description makes sense; nothing in it is believed before.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let single = self.levels.last() == Some(&1);
        let shrinks = self.levels.is_sorted_by(|below, above| below > above);
        let bounds = [&self.first, &self.last].iter().all(|entry| (9..=ENTRY_BYTES_MAX).contains(&entry.len()));
        // A run of one block may have a short one, and no filter.
        let is_only = self.levels == [1];
        let bytes_min = if is_only { ONLY_BLOCK_BYTES_MIN } else { SECTOR_BLOCK_BYTES };
        let blocks = (bytes_min..=BLOCK_BYTES_MAX).contains(&(self.block_bytes as usize));
        let filter = self.lines > 0 || is_only;
        let room = u64::from(self.data_blocks()) * u64::from(self.block_bytes) / ENTRY_BYTES_MIN;
        let entries = (1..=room).contains(&self.entries);
        if single && shrinks && bounds && blocks && filter && entries && self.first <= self.last {
            return Ok(());
        }
        Err(Error::corrupt("", "description of an index run"))
    }

    /// Whether its container is as long as the description says, but for what fills its last page: before memory is taken for as
    /// many entries.
    pub(crate) fn check_length(&self, view: &dyn View) -> Result<(), Error> {
        let there = view.length(self.container()).map_err(Error::log(""))?;
        match there.checked_sub(self.bytes()).is_some_and(|behind| behind < u64::from(self.block_bytes)) {
            true => Ok(()),
            false => Err(Error::corrupt("", "length of an index run")),
        }
    }

    /// Whether its ends leave room for entries under a key.
    pub(crate) fn may_have(&self, key: &[u8]) -> bool {
        self.last.as_slice() >= key && (self.first.as_slice() <= key || self.first.starts_with(key))
    }

    /// The row that has a key, if the rows of this run came in the order of their keys and no key is missing: then it is as far
    /// from the first row as the key is from the first key. Whoever asks looks at that row.
    pub(crate) fn guess(&self, key: &[u8]) -> Option<RowId> {
        let (first, last) = (counted(&self.first)?, counted(&self.last)?);
        let (span, key) = (last.0.checked_sub(first.0)?, number(key)?);
        let is_dense = last.1.checked_sub(first.1) == Some(span) && span.checked_add(1) == Some(self.entries);
        let place = key.checked_sub(first.0).filter(|place| is_dense && *place <= span)?;
        Some(RowId(first.1 + place))
    }

    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes as usize
    }

    fn data_blocks(&self) -> u32 {
        self.levels.first().copied().unwrap_or(0)
    }

    /// The block of a level, as a place in the container.
    fn block_offset(&self, level: usize, block: u32) -> u64 {
        let below: u64 = self.levels.iter().take(level).map(|blocks| u64::from(*blocks)).sum();
        (below + u64::from(block)) * u64::from(self.block_bytes)
    }

    /// Where the upper levels and the filter begin.
    fn head_offset(&self) -> u64 {
        self.block_offset(1, 0)
    }

    /// Bytes of the upper levels and the filter.
    pub(crate) fn head_bytes(&self) -> u64 {
        self.bytes().saturating_sub(self.head_offset())
    }

    fn filter_offset(&self) -> u64 {
        self.block_offset(self.levels.len(), 0)
    }

    /// Bytes that it has; where memory is little, zeros up to the end of a page stand behind them.
    pub(crate) fn bytes(&self) -> u64 {
        self.filter_offset() + u64::from(self.lines) * crate::bloom::LINE_BYTES as u64
    }
}

/// The number that an index key of one whole number stands for, in their order.
fn number(key: &[u8]) -> Option<u64> {
    let bytes: &[u8; 9] = key.try_into().ok()?;
    Some(u64::from_be_bytes(*bytes.last_chunk()?))
}

/// The number and the row of an entry.
fn counted(entry: &[u8]) -> Option<(u64, u64)> {
    let (key, row) = split_entry(entry)?;
    Some((number(key)?, row.0))
}

#[cfg(test)]
mod tests;
