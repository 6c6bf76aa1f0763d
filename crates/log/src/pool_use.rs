//! A nameless pool in numbers.

use crate::pool::{NamelessPage, Pool, PoolId};
use crate::spare::Spare;

/// How far it was from each write to the next one (Chronos 2.2: the distance d, 1 for neighbours; going on from the
/// last extent of the pool to its first counts as if they were neighbours).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteDistances {
    /// Writes that had one before them.
    pub writes: u64,
    /// Pages of the medium from one write to the next, all together.
    pub pages: u64,
    /// Writes by their distance: 1, 2, 3 to 4, 5 to 8 and so on, the last one all that are further.
    pub histogram: [u64; WriteDistances::BUCKETS],
}

impl WriteDistances {
    /// Buckets of the histogram.
    pub const BUCKETS: usize = 16;

    pub(crate) fn add(&mut self, distance: u64) {
        let distance = distance.max(1);
        self.writes += 1;
        self.pages += distance;
        let bucket = (u64::BITS - (distance - 1).leading_zeros()) as usize;
        self.histogram[bucket.min(Self::BUCKETS - 1)] += 1;
    }

    /// Those of writes that follow each other in a pool of so many pages: their numbers and pages, the oldest first. Where
    /// a write between two others is not known, neither is how far it was.
    pub fn of_writes(writes: impl IntoIterator<Item = NamelessPage>, pool_pages: u64) -> Self {
        let mut distances = WriteDistances::default();
        let mut before: Option<NamelessPage> = None;
        for one in writes {
            if let Some(before) = before.filter(|before| before.write + 1 == one.write) {
                let onward = one.page.checked_sub(before.page);
                distances.add(onward.unwrap_or_else(|| (pool_pages + one.page).saturating_sub(before.page)));
            }
            before = Some(one);
        }
        distances
    }

    /// Pages from a write to the next one, on average; 0 where there were none.
    pub fn average(&self) -> f64 {
        if self.writes == 0 { 0.0 } else { self.pages as f64 / self.writes as f64 }
    }
}

/// A nameless pool in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    /// Which one.
    pub id: PoolId,
    /// Of a hundred pages, how many are kept free.
    pub free_percent: u8,
    /// Extents it has.
    pub extents: u32,
    /// Pages that somebody points to.
    pub live_pages: u64,
    /// Pages that can be written now.
    pub free_pages: u64,
    /// All other pages: freed, but a commit that may come back or a reader still needs them, or they were tried and
    /// their medium wants an erase first. Nobody knows which of them are free before the pool is first written to.
    pub waiting_pages: u64,
    /// Pages in them, written or not.
    pub pages: u64,
    /// Numbers of writes that were given out since it was made: a cut may have left some without a page.
    pub writes: u64,
    /// Pages written since this opening.
    pub pages_written: u64,
    /// How far apart they were.
    pub distances: WriteDistances,
}

impl PoolUse {
    pub(crate) fn of(id: PoolId, pool: &Pool, spare: Option<&Spare>) -> Self {
        let free_pages = spare.map_or(0, Spare::free_count);
        PoolUse {
            id,
            free_percent: pool.options.free_percent,
            extents: pool.extents(),
            live_pages: pool.live(),
            free_pages,
            pages: pool.pages(),
            writes: pool.next_write - 1,
            waiting_pages: pool.pages().saturating_sub(pool.live() + free_pages),
            pages_written: spare.map_or(0, |spare| spare.pages_written),
            distances: spare.map(|spare| spare.distances).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_between_writes_that_follow_each_other() {
        let writes = [(7, 4), (8, 5), (10, 9), (11, 1), (12, 3)];
        let distances =
            WriteDistances::of_writes(writes.into_iter().map(|(write, page)| NamelessPage { page, write }), 10);
        assert_eq!(
            (distances.writes, distances.pages),
            (3, 1 + 2 + 2),
            "5 after 4, 1 after 9 around the end, 3 after 1"
        );
    }

    #[test]
    fn distances_fall_into_buckets_by_powers_of_two() {
        let mut distances = WriteDistances::default();
        [1, 1, 2, 3, 4, 5, 8, 9, 1 << 40].iter().for_each(|distance| distances.add(*distance));
        assert_eq!(distances.histogram[..5], [2, 1, 2, 2, 1]);
        assert_eq!(distances.histogram[15], 1);
        assert_eq!((distances.writes, distances.pages), (9, 33 + (1 << 40)));
    }
}
