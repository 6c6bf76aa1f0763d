//! Opened pages kept in memory, so that a page read twice is deciphered once.
//!
//! A page is known by where it lies and under which allocation, epoch and number of its write it was sealed, so nothing
//! ever has to be thrown out for being old: what is sealed there later has another name.

use alloc::vec::Vec;

use crate::layout::Layout;

/// Page address, allocation, epoch, and for nameless pages the number of the write, which is never 0.
pub(crate) type PageName = (u64, u64, u64, u64);

#[cfg(feature = "std")]
mod shared {
    extern crate std;
    use super::{Layout, PageName, Vec};
    use core::hash::{BuildHasherDefault, Hasher};
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::collections::{HashMap, VecDeque};
    use std::sync::{PoisonError, RwLock};

    /// As many parts as can be locked apart from each other, where each of them has room for a good many pages.
    const SHARDS_MAX: usize = 16;
    const SHARD_BYTES_MIN: usize = 1 << 18;

    struct Entry {
        bytes: Vec<u8>,
        used: AtomicBool,
    }

    /// Names of pages mixed into a number. They are the writer's own, so nobody chooses them to fall together.
    #[derive(Default)]
    struct Mixer(u64);

    impl Hasher for Mixer {
        fn write(&mut self, bytes: &[u8]) {
            bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
        }

        fn write_u64(&mut self, number: u64) {
            self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(SPREAD);
        }

        fn finish(&self) -> u64 {
            // A table looks at the lowest bits, into which a product carries nothing from above.
            self.0 ^ self.0 >> 32
        }
    }

    /// An odd number without a pattern: 2^64 over the golden ratio.
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

    #[derive(Default)]
    struct Shard {
        entries: HashMap<PageName, Entry, BuildHasherDefault<Mixer>>,
        /// Names in the order in which they get a second chance and then leave (CLOCK).
        order: VecDeque<PageName>,
        bytes: usize,
    }

    impl Drop for Shard {
        fn drop(&mut self) {
            self.entries.values_mut().for_each(|entry| entry.bytes.fill(0));
        }
    }

    /// A cache of at most `bytes_max` bytes. Whoever finds a page there does not wait for others who find one: where two threads read
    /// many rows, one that had to wait would often be put to sleep, which takes longer than to open the page.
    pub(crate) struct PageCache {
        shards: Vec<RwLock<Shard>>,
        shard_bytes_max: usize,
    }

    impl PageCache {
        pub(crate) fn new(bytes_max: usize) -> Self {
            let count = (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
            let shards = (0..count).map(|_| RwLock::default()).collect();
            PageCache { shards, shard_bytes_max: bytes_max / count }
        }

        fn shard(&self, name: &PageName) -> &RwLock<Shard> {
            let mixed = name.0.wrapping_mul(SPREAD) >> 60;
            &self.shards[mixed as usize % self.shards.len()]
        }

        /// Whether it keeps so many pages at once.
        pub(crate) fn has_room_for(&self, pages: usize, layout: &Layout) -> bool {
            self.shard_bytes_max * self.shards.len() >= pages * layout.page_bytes as usize
        }

        /// Copies bytes of a page from `skip` on, if the page is here.
        pub(crate) fn copy(&self, name: &PageName, skip: usize, out: &mut [u8]) -> bool {
            let shard = self.shard(name).read().unwrap_or_else(PoisonError::into_inner);
            let Some(entry) = shard.entries.get(name) else { return false };
            if !entry.used.load(Ordering::Relaxed) {
                entry.used.store(true, Ordering::Relaxed);
            }
            out.copy_from_slice(&entry.bytes[skip..skip + out.len()]);
            true
        }

        pub(crate) fn keep(&self, name: PageName, bytes: Vec<u8>) {
            if bytes.len() > self.shard_bytes_max {
                return;
            }
            let mut shard = self.shard(&name).write().unwrap_or_else(PoisonError::into_inner);
            while shard.bytes + bytes.len() > self.shard_bytes_max {
                let Some(oldest) = shard.order.pop_front() else { break };
                let entry = shard.entries.get_mut(&oldest);
                if entry.is_some_and(|entry| core::mem::take(entry.used.get_mut())) {
                    shard.order.push_back(oldest);
                } else if let Some(mut entry) = shard.entries.remove(&oldest) {
                    shard.bytes -= entry.bytes.len();
                    entry.bytes.fill(0);
                }
            }
            shard.bytes += bytes.len();
            if let Some(before) = shard.entries.insert(name, Entry { bytes, used: AtomicBool::new(false) }) {
                shard.bytes -= before.bytes.len();
            } else {
                shard.order.push_back(name);
            }
        }
    }
}

#[cfg(not(feature = "std"))]
mod shared {
    use super::{Layout, PageName, Vec};

    /// Without a mutex there is nothing to share, and a small device has no room for it.
    pub(crate) struct PageCache;

    impl PageCache {
        pub(crate) fn new(_bytes_max: usize) -> Self {
            PageCache
        }

        pub(crate) fn has_room_for(&self, _pages: usize, _layout: &Layout) -> bool {
            false
        }

        pub(crate) fn copy(&self, _name: &PageName, _skip: usize, _out: &mut [u8]) -> bool {
            false
        }

        pub(crate) fn keep(&self, _name: PageName, _bytes: Vec<u8>) {}
    }
}

pub(crate) use shared::PageCache;

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use alloc::vec;

    fn kept(bytes_max: usize, page_bytes: usize) -> usize {
        let cache = PageCache::new(bytes_max);
        (0..1000).for_each(|page| cache.keep((page, 1, 2, 0), vec![page as u8; page_bytes]));
        let is_there = |page: &u64| cache.copy(&(*page, 1, 2, 0), 0, &mut [0]);
        (0..1000).filter(is_there).count()
    }

    #[test]
    fn a_small_cache_keeps_what_it_has_room_for() {
        assert_eq!((kept(8 << 10, 2032), kept(2031, 2032), kept(0, 2032)), (4, 0, 0));
        assert!((400..=516).contains(&kept(1 << 20, 2032)), "in parts");
    }
}
