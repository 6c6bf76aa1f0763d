//! What the writer knows of a nameless pool beside the root: which pages it may write, and which number comes next.
//!
//! ```text
//! live --free_nameless, commit--> waiting --commit counted, no older reader--> free --write_nameless--> live
//!                                    ^                                          ^  \--rollback--> free, or waiting
//!            nobody knows when what is free was freed (after an open)  --------/         while a preview is held
//! ```
//!
//! Invariants:
//! 1. a page is live in the root, free, waiting, or was tried in the commit under way: one of them;
//! 2. `next_write` is above every number ever tried in this opening, whatever became of the write;
//! 3. what waits stands in the order of its commits.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use counterfoil_vault::{Epoch, Kind, PageKey, Vault};

use crate::free_pages::{FreePages, Taken};
use crate::maps::Set;
use crate::pool::Pool;
use crate::pool_use::WriteDistances;
use crate::space::{Extent, Needs};

/// Pages that were freed together.
struct Waiting {
    /// No reader pinned below this commit may be left.
    commit: u64,
    /// The counter must stand at this value or above.
    version: u64,
    pages: Vec<u64>,
}

/// The pages of a pool that nobody points to.
pub(crate) struct Spare {
    extent_pages: u32,
    /// Whether a page is programmed once only until its extent is erased.
    writes_once: bool,
    free: FreePages,
    waiting: VecDeque<Waiting>,
    waiting_count: u64,
    pub(crate) next_write: u64,
    /// The extent granted last.
    pub(crate) last_extent: Option<u32>,
    /// Slots in which nothing was live as of some commit.
    pub(crate) empty: Set<u32>,
    /// The commit before the one for which was looked at what waits.
    looked_at: Option<u64>,
    /// Allocation and epoch of a key, and the key.
    key: Option<(u64, u64, PageKey)>,
    /// The page of the medium that was written last.
    last_page: Option<u64>,
    pub(crate) pages_written: u64,
    pub(crate) distances: WriteDistances,
}

impl Spare {
    /// What can be known of a pool that this opening has not written to. Readers of commits before `held_since` hold
    /// all that is free.
    pub(crate) fn of(pool: &Pool, writes_once: bool, held_since: u64) -> Self {
        let extent_pages = pool.extent_pages();
        let mut spare = Spare {
            extent_pages,
            writes_once,
            free: FreePages::new(extent_pages),
            waiting: VecDeque::new(),
            waiting_count: 0,
            next_write: pool.next_write,
            last_extent: pool.slots().map(|(_, slot)| slot.extent.number).max(),
            empty: pool.slots().filter(|(_, slot)| slot.live.count() == 0).map(|(number, _)| number).collect(),
            looked_at: None,
            key: None,
            last_page: None,
            pages_written: 0,
            distances: WriteDistances::default(),
        };
        let not_live = pool.slots().flat_map(|(number, slot)| {
            (0..extent_pages).filter(|at| !slot.live.contains(*at)).map(move |at| pool.page(number, at))
        });
        spare.wait(held_since, 0, not_live.collect());
        spare
    }

    /// Whether a page is programmed once only until its extent is erased.
    pub(crate) fn writes_once(&self) -> bool {
        self.writes_once
    }

    /// Pages that can be written now.
    pub(crate) fn free_count(&self) -> u64 {
        self.free.count()
    }

    /// Pages that can be written later.
    pub(crate) fn waiting_count(&self) -> u64 {
        self.waiting_count
    }

    /// Whether an extent has pages that can be written now.
    pub(crate) fn has_free(&self, extent: u32) -> bool {
        self.free.has(extent)
    }

    /// Pages freed by a commit. Those of media that want an erase first wait for their whole extent.
    pub(crate) fn wait(&mut self, commit: u64, version: u64, pages: Vec<u64>) {
        if !self.writes_once && !pages.is_empty() {
            self.waiting_count += pages.len() as u64;
            self.waiting.push_back(Waiting { commit, version, pages });
        }
    }

    /// Whether something may have stopped waiting: looked at once for each commit, and when nothing is free.
    pub(crate) fn is_to_look(&mut self, commit: u64, counted: u64) -> bool {
        let is_counted = self.waiting.front().is_some_and(|waiting| waiting.version <= counted);
        let is_new = self.looked_at.replace(commit) != Some(commit);
        is_counted && (is_new || self.free.count() == 0)
    }

    /// Frees what nobody needs any more. `pool` is the pool with all its slots.
    pub(crate) fn look(&mut self, pool: &Pool, needs: Needs) {
        let pin = needs.oldest_pin.unwrap_or(u64::MAX);
        let is_free = |waiting: &mut Waiting| waiting.version <= needs.counted && waiting.commit <= pin;
        while let Some(waiting) = self.waiting.pop_front_if(is_free) {
            self.waiting_count -= waiting.pages.len() as u64;
            waiting.pages.iter().for_each(|page| self.put_back(pool, *page));
        }
    }

    /// Makes a page free, unless its slot has no extent.
    pub(crate) fn put_back(&mut self, pool: &Pool, page: u64) {
        if !self.writes_once
            && let Some((number, position)) = pool.split(page)
            && let Some(slot) = pool.slot(number)
        {
            self.free.insert(slot.extent.number, number, position);
        }
    }

    /// A new extent: all of its pages are free.
    pub(crate) fn add_extent(&mut self, slot: u32, extent: Extent) {
        (0..self.extent_pages).for_each(|position| self.free.insert(extent.number, slot, position));
        self.last_extent = Some(extent.number);
    }

    /// An extent is the pool's no longer.
    pub(crate) fn forget_extent(&mut self, slot: u32, extent: u32) {
        self.free.forget(extent);
        self.empty.remove(&slot);
        let pages = u64::from(slot) * u64::from(self.extent_pages);
        let pages = pages..pages + u64::from(self.extent_pages);
        for waiting in &mut self.waiting {
            waiting.pages.retain(|page| !pages.contains(page));
        }
        self.waiting.retain(|waiting| !waiting.pages.is_empty());
        self.waiting_count = self.waiting.iter().map(|waiting| waiting.pages.len() as u64).sum();
    }

    /// Takes the free page nearest after the last write, and the number of its write.
    pub(crate) fn take(&mut self) -> Option<(Taken, u64)> {
        let taken = self.free.pop()?;
        let write = self.next_write;
        // From here on the number counts as tried, whatever becomes of the write.
        self.next_write += 1;
        Some((taken, write))
    }

    /// Takes note of where a page of the medium was written.
    pub(crate) fn wrote(&mut self, pool: &Pool, page: u64) {
        self.pages_written += 1;
        let Some(last) = self.last_page.replace(page) else { return };
        let around = || {
            let extents = || pool.slots().map(|(_, slot)| u64::from(slot.extent.number));
            let pages = u64::from(self.extent_pages);
            let (first, end) = (extents().min().unwrap_or(0) * pages, (extents().max().unwrap_or(0) + 1) * pages);
            end.saturating_sub(last).saturating_add(page.saturating_sub(first))
        };
        self.distances.add(page.checked_sub(last).unwrap_or_else(around));
    }

    /// The key of an extent's pages.
    pub(crate) fn key(&mut self, vault: &Vault, extent: Extent, epoch: &Epoch) -> &PageKey {
        let is_it =
            |(allocation, number, _): &(u64, u64, PageKey)| (*allocation, *number) == (extent.allocation, epoch.number);
        let known = self.key.take().filter(is_it);
        let key = known.unwrap_or_else(|| {
            (extent.allocation, epoch.number, vault.page_key(Kind::Nameless, extent.allocation, epoch))
        });
        &self.key.insert(key).2
    }
}
