//! The working memory that all queries of an engine share.
//!
//! ```text
//! 0                              1/2                      3/4                                         bound
//! | what can spill, in equal parts | what merges sorted runs | what cannot spill: build sides of joins |
//! ```
//!
//! 1. Those who can spill get half at most, in equal parts: the other half is there for what merges their runs. A pool
//!    that lends everything to sorters starves the merge that would end them (DataFusion 55, `FairSpillPool`).
//! 2. A merge of runs takes whatever it is given, so it gets a quarter at most, in equal parts as well: as many as a query has, or
//!    more. It cannot give back what it holds, and by the time that the next one begins its first rows may be out. It reserves what
//!    it reckons for each run, as many runs as it can; what the rows then take beyond that is a little, and is never refused.
//! 3. Those who cannot spill take what is left, a quarter of the bound at least; what they hold is taken off first.
//!
//! 4. Who merges the parts of a query is not counted. It holds two batches of each part, whose texts lie with the
//!    sorters and are counted there; it would count them again for each batch.
//!
//! The bound is soft: who came first keeps what it has when another comes and the parts become smaller.

use std::fmt;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::config::{ConfigNonZeroUsize, ConfigOptions};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

use crate::engine::EngineOptions;
use crate::error::Result;
use crate::scan::Reach;

/// Bytes of working memory for each part of a query that runs at once, with which sorts and groups of rows up to a few
/// kilobytes end well at any size. With less, or wider rows, they may end in an error.
pub const MEMORY_BYTES_MIN: usize = 32 << 20;

/// Where more than this would be needed it is not reckoned how much: it may be rows without end.
pub(crate) const RECKONED_BYTES_MAX: usize = 1 << 30;

/// The name that the library gives to what merges the runs of a sorter.
const MERGES_RUNS: &str = "ExternalSorterMerge";
/// The name that the library gives to what merges the sorted parts of a query.
const MERGES_PARTS: &str = "SortPreservingMergeExec";
/// What a sorter that spills keeps back for merging, where there is enough.
const MERGE_BYTES_MAX: usize = 10 << 20;
/// What a merge asks for beyond its share is a little up to this part of it,
const LITTLE_PART: usize = 16;
/// and granted up to this part of it in all.
const BEYOND_PART: usize = 4;
/// Rows of a batch, where there is enough memory for them.
const BATCH_ROWS_MAX: usize = 8192;
const BATCH_ROWS_MIN: usize = 512;

/// Sets what depends on the bound: smaller reserves where it is small.
pub(crate) fn configure(options: &mut ConfigOptions, bytes_max: usize, parallelism: usize) -> Result<()> {
    let each = bytes_max / parallelism.max(1);
    options.execution.sort_spill_reservation_bytes = MERGE_BYTES_MAX.min(each / 16);
    // Batches are not joined before they are sorted: the pieces of the result would share the texts of all of them, and
    // each would count them all.
    options.execution.sort_in_place_threshold_bytes = 1;
    // A file for each batch that a repartition spills. It waits for its oldest file that is still open, also where the
    // next batch lies in another, and then for ever (DataFusion 55, apache/datafusion#24883).
    options.execution.max_spill_file_size_bytes = ConfigNonZeroUsize::try_new(1)?;
    Ok(())
}

/// Rows of a batch.
pub(crate) fn batch_rows(options: &EngineOptions) -> usize {
    match options.is_little {
        true => (options.memory_bytes / LITTLE_ROW_BYTES).clamp(1, BATCH_ROWS_MIN),
        false => {
            let each = options.memory_bytes / options.parallelism.max(1);
            (each / (32 << 10)).clamp(BATCH_ROWS_MIN, BATCH_ROWS_MAX)
        }
    }
}

/// How far a scan may reach.
pub(crate) fn reach(options: &EngineOptions) -> Reach {
    match options.is_little {
        true => Reach {
            parts: 1,
            room: options.memory_bytes / LITTLE_NAMED_BYTES,
            heap_bytes: Some((options.memory_bytes / LITTLE_HEAP_PART) as u64),
        },
        false => Reach { parts: options.parallelism, room: usize::MAX, heap_bytes: None },
    }
}

/// With little memory, about what is taken for each row that is read at a time,
const LITTLE_ROW_BYTES: usize = 1 << 10;
/// for each that an index may name, of which it takes a quarter,
const LITTLE_NAMED_BYTES: usize = 64;
/// and for the long values of those that are read at a time.
const LITTLE_HEAP_PART: usize = 8;

/// How the refusal of memory begins, with how many bytes a pool would have to have behind it: whoever spills looks for nothing else in it.
const NEEDED: &str = "bytes for queries: ";

/// How many bytes all queries together would have to have had for what was refused. The library may have said something before it, or behind.
pub(crate) fn needed(refusal: &str) -> Option<usize> {
    let (_, rest) = refusal.split_once(NEEDED)?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// The pool.
#[derive(Debug)]
pub(crate) struct Shared {
    bytes_max: usize,
    /// Parts of one query that run at once.
    parts: usize,
    lent: Mutex<Lent>,
}

#[derive(Debug, Default)]
struct Lent {
    /// Who can spill.
    spilling: Side,
    /// Who merges runs.
    merging: Side,
    /// Who merges parts.
    uncounted: Side,
    /// The others.
    fixed: Side,
}

#[derive(Debug, Default)]
struct Side {
    consumers: usize,
    bytes: usize,
}

impl Lent {
    fn side(&mut self, consumer: &MemoryConsumer) -> &mut Side {
        match consumer.can_spill() {
            true => &mut self.spilling,
            false if consumer.name().starts_with(MERGES_RUNS) => &mut self.merging,
            false if consumer.name().starts_with(MERGES_PARTS) => &mut self.uncounted,
            false => &mut self.fixed,
        }
    }
}

impl Shared {
    pub(crate) fn new(bytes_max: usize, parts: usize) -> Arc<Self> {
        Arc::new(Shared { bytes_max, parts: parts.max(1), lent: Mutex::default() })
    }

    /// Whether a reservation may have so many bytes more.
    fn grants(&self, lent: &mut Lent, reservation: &MemoryReservation, additional: usize) -> bool {
        let consumer = reservation.consumer();
        if consumer.name().starts_with(MERGES_PARTS) {
            return true;
        }
        let left = self.bytes_max.saturating_sub(lent.fixed.bytes);
        let (part, least) = match (consumer.can_spill(), consumer.name().starts_with(MERGES_RUNS)) {
            (true, _) => (left.min(self.bytes_max / 2), 1),
            (false, true) => (left.min(self.bytes_max / 4), self.parts),
            (false, false) => {
                let kept = (lent.spilling.bytes + lent.merging.bytes).min(self.bytes_max / 4 * 3);
                return additional <= left.saturating_sub(kept);
            }
        };
        let share = part / lent.side(consumer).consumers.max(least);
        let asked = reservation.size().saturating_add(additional);
        let is_a_little = !consumer.can_spill() && additional <= share / LITTLE_PART;
        asked <= share || (is_a_little && asked <= share + share / BEYOND_PART)
    }

    /// How large the pool would have to be to grant what it refused, with what is lent as it is.
    fn needed(&self, lent: &mut Lent, reservation: &MemoryReservation, additional: usize) -> usize {
        let consumer = reservation.consumer();
        let asked = reservation.size().saturating_add(additional);
        let (part, least) = match (consumer.can_spill(), consumer.name().starts_with(MERGES_RUNS)) {
            (true, _) => (2, 1),
            (false, true) => (4, self.parts),
            (false, false) => return lent.fixed.bytes + lent.spilling.bytes + lent.merging.bytes + additional,
        };
        let shares = lent.side(consumer).consumers.max(least);
        asked.saturating_mul(shares).saturating_mul(part).saturating_add(lent.fixed.bytes)
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shared(bytes: {})", self.bytes_max)
    }
}

impl MemoryPool for Shared {
    fn name(&self) -> &str {
        "shared"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.lent.lock().side(consumer).consumers += 1;
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.lent.lock().side(consumer).consumers -= 1;
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.lent.lock().side(reservation.consumer()).bytes += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.lent.lock().side(reservation.consumer()).bytes -= shrink;
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<(), DataFusionError> {
        let mut lent = self.lent.lock();
        if !self.grants(&mut lent, reservation, additional) {
            let needed = self.needed(&mut lent, reservation, additional);
            return Err(DataFusionError::ResourcesExhausted(format!("{NEEDED}{needed}")));
        }
        lent.side(reservation.consumer()).bytes += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let lent = self.lent.lock();
        lent.spilling.bytes + lent.merging.bytes + lent.fixed.bytes
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reserve(pool: &Arc<dyn MemoryPool>, name: &str, can_spill: bool) -> MemoryReservation {
        MemoryConsumer::new(name).with_can_spill(can_spill).register(pool)
    }

    #[test]
    fn what_can_spill_has_half_in_equal_parts() {
        let pool: Arc<dyn MemoryPool> = Shared::new(1000, 1);
        let (first, second) = (reserve(&pool, "a", true), reserve(&pool, "b", true));
        assert!(first.try_grow(251).is_err());
        first.try_grow(250).unwrap();
        second.try_grow(250).unwrap();
        drop(second);
        first.try_grow(250).unwrap();
        assert_eq!(pool.reserved(), 500);
    }

    #[test]
    fn a_merge_of_runs_leaves_room_for_others() {
        let pool: Arc<dyn MemoryPool> = Shared::new(1000, 1);
        let (sorter, merge) = (reserve(&pool, "a", true), reserve(&pool, "ExternalSorterMerge[0]", false));
        sorter.try_grow(500).unwrap();
        assert!(merge.try_grow(251).is_err());
        merge.try_grow(250).unwrap();
        // What the rows of a merge under way take more than was reckoned.
        assert!(merge.try_grow(16).is_err());
        (0..4).for_each(|_| merge.try_grow(15).unwrap());
        assert!(merge.try_grow(15).is_err());
        merge.shrink(60);
        reserve(&pool, "SortPreservingMergeExec[0]", false).try_grow(5000).unwrap();
        let build = reserve(&pool, "HashJoinInput", false);
        build.try_grow(250).unwrap();
        assert!(build.try_grow(1).is_err());
    }

    #[test]
    fn a_merge_of_runs_keeps_its_share_when_the_next_begins() {
        let pool: Arc<dyn MemoryPool> = Shared::new(1000, 2);
        let first = reserve(&pool, "ExternalSorterMerge[0]", false);
        assert!(first.try_grow(126).is_err());
        first.try_grow(90).unwrap();
        let second = reserve(&pool, "ExternalSorterMerge[1]", false);
        first.try_grow(35).unwrap();
        second.try_grow(125).unwrap();
    }

    #[test]
    fn what_cannot_spill_is_taken_off_first() {
        let pool: Arc<dyn MemoryPool> = Shared::new(1000, 1);
        let (build, sorter) = (reserve(&pool, "HashJoinInput", false), reserve(&pool, "a", true));
        build.try_grow(900).unwrap();
        assert!(sorter.try_grow(101).is_err());
        sorter.try_grow(100).unwrap();
        drop(build);
        sorter.try_grow(400).unwrap();
    }
}
