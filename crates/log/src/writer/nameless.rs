//! Nameless writes: each into the free page nearest after the last one, under a number of its own.
//! (Chronos, Algorithms 1 and 4; there is no write in place.)
//!
//! A cut leaves pages that no frame names, in places that nothing needs. The next opening may write there again: it
//! seals under an epoch of its own, so it may go on counting from the last write that a frame told of.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_vault::Plain;

use super::Writer;
use crate::Error;
use crate::maps::{Map, Set};
use crate::pending::{Granted, Pending};
use crate::pending_pools::ChangedPages;
use crate::pool::{CHUNK_SLOTS, NamelessPage, Pool, PoolId, PoolOptions};
use crate::pool_use::PoolUse;
use crate::report::Room;
use crate::space::{Extent, Owner};
use crate::spare::Spare;

/// A pool grows by this part of itself at once, so that its extents lie side by side.
const GROWS_BY: u32 = 32;
const GROWS_BY_EXTENTS_MAX: u32 = 64;
/// From so many extents on a pool lets uncounted commits be counted before it grows.
const COUNTS_FROM_EXTENTS: u32 = 8;
/// Whole extents are given back while so many pages of a hundred stay free beyond those that are to be kept free.
const KEEPS_BEYOND_PERCENT: u64 = 12;

impl Writer {
    /// Bytes in a nameless page.
    pub fn payload_bytes(&self) -> usize {
        self.pages.layout.payload()
    }

    /// Makes an empty nameless pool.
    ///
    /// # Errors
    /// [`Error::misuse`] outside a commit or for a share that cannot be kept, [`Error::latched`].
    pub fn create_pool(&mut self, options: PoolOptions) -> Result<PoolId, Error> {
        if !options.are_sound() {
            return Err(Error::misuse("a pool keeps at most 90 of a hundred pages free"));
        }
        let extent_pages = self.pages.layout.extent_pages;
        self.pending_mut()?.create_pool(options, extent_pages)
    }

    /// Drops a pool with all its pages.
    ///
    /// # Errors
    /// [`Error::corrupt`] if there is none, [`Error::misuse`] outside a commit, [`Error::latched`].
    pub fn drop_pool(&mut self, pool: PoolId) -> Result<(), Error> {
        self.pending_mut()?.drop_pool(pool)
    }

    /// Writes a page of exactly [`Writer::payload_bytes`] where it is best written, and tells where that was.
    ///
    /// # Errors
    /// [`Error::full`], after which the caller rolls back; [`Error::corrupt`] if there is no such pool;
    /// [`Error::misuse`], [`Error::latched`], [`crate::Cause::Device`].
    pub fn write_nameless(&mut self, pool: PoolId, payload: &[u8]) -> Result<NamelessPage, Error> {
        if payload.len() != self.payload_bytes() {
            return Err(Error::misuse("a nameless page is written whole"));
        }
        self.pending_mut()?.root.pool(pool)?;
        // A long transaction keeps the commits before it waiting no longer than others would.
        self.close_group_if_due()?;
        self.require_sound()?;
        self.make_room(pool)?;
        let (epoch, layout) = (self.end.epoch, self.pages.layout);
        let none = || Error::misuse("a pool without pages");
        let (Some(spare), Some(pending)) = (self.spares.get_mut(&pool), &mut self.pending) else { return Err(none()) };
        let (taken, write) = spare.take().ok_or_else(none)?;
        let known = pending.root.pool(pool)?;
        let page = NamelessPage { page: known.page(taken.slot, taken.position), write };
        let slot = known.slot(taken.slot).ok_or_else(none)?;
        debug_assert!(
            spare.is_in_order(slot, taken.position, write),
            "writes follow positions where pages are written once"
        );
        let extent = slot.extent;
        let address = layout.page(extent.number, taken.position);
        self.tried.push((pool, page.page));
        let mut bytes = vec![0; layout.page_bytes as usize];
        bytes[..payload.len()].copy_from_slice(payload);
        let key = spare.key(&self.pages.vault, extent, &epoch);
        let sealed = key.seal_nameless(taken.position, write, Plain::new(&mut bytes));
        let tag = sealed.tag();
        spare.wrote(known, address.0);
        let written = self.device.program(address, sealed.bytes());
        self.latch_on_error(written)?;
        self.pending_mut()?.wrote(pool, page, epoch.number, tag)?;
        Ok(page)
    }

    /// Says that nobody points to a page any more. It is written again when the commit is counted and no reader of an
    /// older one is left. The caller gives the address that writing gave: the page is not read.
    ///
    /// # Errors
    /// [`Error::tampered`] if there is no such page, or it was freed; [`Error::corrupt`] if there is no such pool;
    /// [`Error::misuse`] outside a commit, [`Error::latched`].
    pub fn free_nameless(&mut self, pool: PoolId, page: NamelessPage) -> Result<(), Error> {
        if self.pending_mut()?.root.pool(pool)?.locate(page).is_none() {
            return Err(Error::tampered("nameless page", page.page));
        }
        self.know_spare(pool)?;
        self.pending_mut()?.freed(pool, page)
    }

    /// A pool in numbers, as of the commit under way if there is one.
    ///
    /// # Errors
    /// [`Error::corrupt`] if there is no such pool.
    pub fn pool_use(&self, pool: PoolId) -> Result<PoolUse, Error> {
        Ok(PoolUse::of(pool, self.current().pool(pool)?, self.spares.get(&pool)))
    }

    /// Pages that commits which store something may come to have beside those they have: of extents that nobody has, or that somebody
    /// has given back, once that is counted and no reader needs them. Where the medium turned out to be full before its limit, only
    /// of those that it has.
    pub fn pages_left(&self) -> u64 {
        self.state.space.pages_beyond(2, &self.pages.layout)
    }

    /// Room that the commit under way may come to have, with what is kept for those that free others if it is one of them.
    pub fn room(&self) -> Room {
        Room::of(&self.state.space, &self.pages.layout, if self.frees { 1 } else { 2 })
    }

    /// Whether so many pages are within the room that there is: of extents given back, too, that are waited for.
    ///
    /// # Errors
    /// [`Error::full`] if they are not.
    pub fn require_pages(&self, pages: u64) -> Result<(), Error> {
        let is_there = pages <= self.room().pages;
        is_there.then_some(()).ok_or_else(|| Error::full(u64::from(self.state.space.end()), None))
    }

    /// Pages that the medium may come to have, as far as is known.
    pub fn pages_max(&self) -> u64 {
        u64::from(self.state.space.end()) * u64::from(self.pages.layout.extent_pages)
    }

    /// Whether a page is programmed once only until its extent is erased.
    pub(crate) fn writes_once(&self) -> bool {
        self.device.geometry().erase_before_program
    }

    /// Sees to it that a pool has a free page, and if it can its share of them.
    fn make_room(&mut self, pool: PoolId) -> Result<(), Error> {
        let writes_once = self.writes_once();
        let known = self.know_spare(pool)?;
        self.look(pool, &known);
        let (free, waiting) = self.spare_counts(pool);
        let wanted = known.pages() * u64::from(known.options.free_percent) / 100;
        let counting_helps = waiting >= wanted.max(1) && known.extents() >= COUNTS_FROM_EXTENTS;
        if free == 0 && counting_helps && self.waits_for_the_counter() {
            self.count()?;
            self.look(pool, &known);
        }
        let (free, waiting) = self.spare_counts(pool);
        if free == 0 {
            return self.grow(pool, &known);
        }
        if free + waiting < wanted && !writes_once && !self.only_frees() {
            // What cannot be had is done without, as long as there is a page. What is kept for deletions is not for this.
            match self.grow_by_some(pool, &known) {
                Err(error) if error.is_full() => {}
                other => return other,
            }
        }
        Ok(())
    }

    /// Learns what is free in a pool, before this opening changes anything in it: what it frees itself waits for its own
    /// commits.
    fn know_spare(&mut self, pool: PoolId) -> Result<Arc<Pool>, Error> {
        let known = self.current().pool(pool)?.clone();
        let (writes_once, held_since) = (self.writes_once(), self.held_since);
        self.spares.entry(pool).or_insert_with(|| Spare::of(&known, writes_once, held_since));
        Ok(known)
    }

    fn spare_counts(&self, pool: PoolId) -> (u64, u64) {
        self.spares.get(&pool).map_or((0, 0), |spare| (spare.free_count(), spare.waiting_count()))
    }

    /// Frees what waits in a pool no longer.
    fn look(&mut self, pool: PoolId, known: &Pool) {
        let (commit, counted) = (self.state.root.commit, self.counted);
        if self.spares.get_mut(&pool).is_some_and(|spare| spare.is_to_look(commit, counted)) {
            let needs = self.needs();
            self.spares.entry(pool).and_modify(|spare| spare.look(known, needs));
        }
    }

    /// Grants a pool that has no free page at least one extent, counting commits if only that helps.
    fn grow(&mut self, pool: PoolId, known: &Pool) -> Result<(), Error> {
        match self.grant_extent(Owner::Pool(pool)) {
            Ok(extent) => self.add_extent(pool, extent)?,
            Err(full) if full.is_full() => {
                self.look(pool, known);
                return if self.spare_counts(pool).0 > 0 { Ok(()) } else { Err(full) };
            }
            Err(error) => return Err(error),
        }
        match self.grow_by_some(pool, known) {
            Err(error) if error.is_full() => Ok(()),
            other => other,
        }
    }

    fn grow_by_some(&mut self, pool: PoolId, known: &Pool) -> Result<(), Error> {
        // Where pages are written once and in order, so are extents: each begins with the write that comes next.
        let one_by_one = self.writes_once() || self.only_frees();
        let extents = if one_by_one { 0 } else { known.extents().div_ceil(GROWS_BY) };
        for _ in 0..extents.min(GROWS_BY_EXTENTS_MAX) {
            let extent = self.try_grant_extent(Owner::Pool(pool))?;
            self.add_extent(pool, extent)?;
        }
        Ok(())
    }

    fn add_extent(&mut self, pool: PoolId, extent: Extent) -> Result<(), Error> {
        let spare = self.spares.get_mut(&pool).ok_or_else(|| Error::misuse("a pool without pages"))?;
        let pending = self.pending.as_mut().ok_or_else(|| Error::misuse("no commit was begun"))?;
        let (known, first_write) = (pending.root.pool_mut(pool)?, spare.next_write);
        let slot = known.vacant_slot();
        known.add_slot(slot, extent, first_write)?;
        spare.add_extent(slot, extent);
        self.granted.push(Granted { extent, owner: Owner::Pool(pool), slot, first_write });
        Ok(())
    }

    /// The extent behind which an owner's next one would best lie.
    pub(super) fn last_extent_of(&self, owner: Owner) -> Option<u32> {
        let Owner::Pool(pool) = owner else { return None };
        self.spares.get(&pool)?.last_extent
    }

    /// Lets the pages be written again that the commit under way tried, but the first `keep` of them. Where somebody
    /// sees the commit in the making, they wait as what commit `commit` freed.
    pub(super) fn give_pages_back(&mut self, keep: usize, commit: u64) {
        let mut given: Map<PoolId, Vec<u64>> = Map::new();
        for (pool, page) in self.tried.split_off(keep) {
            given.entry(pool).or_default().push(page);
        }
        for (id, pages) in given {
            let known = self.current().pools.get(&id).cloned();
            let (Some(known), Some(spare)) = (known, self.spares.get_mut(&id)) else { continue };
            if commit == 0 {
                pages.into_iter().for_each(|page| spare.put_back(&known, page));
            } else {
                spare.wait(commit, 0, pages);
            }
        }
    }

    /// Extents of pools that a commit gives back: nothing in them is live, and enough is free without them.
    pub(super) fn extents_to_give_back(&mut self, pending: &Pending) -> Vec<(PoolId, u32)> {
        let mut shrunk = Vec::new();
        for (id, changed) in pending.pools.changed() {
            let Ok(pool) = pending.root.pool(id) else { continue };
            let empty = self.empty_slots(id, pool, changed);
            let given = if self.writes_once() || empty.is_empty() {
                empty.len()
            } else {
                extents_too_many(pool, self.nothing_is_left())
            };
            shrunk.extend(empty.into_iter().rev().take(given).map(|slot| (id, slot)));
        }
        shrunk
    }

    /// Slots of older commits in which nothing is live after this one. On media that want an erase first, not the one
    /// that is being filled.
    fn empty_slots(&mut self, id: PoolId, pool: &Pool, changed: &ChangedPages) -> Vec<u32> {
        let writes_once = self.writes_once();
        let Some(spare) = self.spares.get_mut(&id) else { return Vec::new() };
        spare.empty.extend(changed.freed().filter_map(|page| Some(pool.split(page)?.0)));
        spare.empty.retain(|slot| pool.slot(*slot).is_some_and(|slot| slot.live.count() == 0));
        let is_ours = |granted: &&Granted| granted.owner == Owner::Pool(id);
        let fresh: Set<u32> = self.granted.iter().filter(is_ours).map(|granted| granted.slot).collect();
        let is_open = |slot: &u32| pool.slot(*slot).is_some_and(|slot| spare.has_free(slot.extent.number));
        let old = spare.empty.iter().filter(|slot| !(fresh.contains(slot) || writes_once && is_open(slot)));
        old.copied().collect()
    }

    /// The frame is durable: what pools there are, what is free in them and what waits.
    pub(super) fn adopt_pools(&mut self, pending: &mut Pending, shrunk: &[(PoolId, u32)]) -> Result<(), Error> {
        let (commit, version) = (self.end.commit, self.end.version);
        let changed = &mut self.state.changed.pools;
        changed.pools.extend(pending.pools.pools_created());
        for granted in &self.granted {
            if let Owner::Pool(id) = granted.owner {
                changed.note(id, granted.slot / CHUNK_SLOTS as u32);
                // Those that the commit did not come to write are given back like others, should it come to that.
                if let Some(spare) = self.spares.get_mut(&id) {
                    spare.empty.insert(granted.slot);
                }
            }
        }
        for (id, pages) in pending.pools.changed() {
            let pool = pending.root.pool(id)?;
            pages.written().chain(pages.freed()).for_each(|page| changed.note(id, pool.chunk_of(page)));
            if let Some(spare) = self.spares.get_mut(&id) {
                spare.wait(commit, version, pages.freed().collect());
            }
        }
        for (id, slot) in shrunk {
            changed.note(*id, slot / CHUNK_SLOTS as u32);
            let extent = pending.root.pool_mut(*id)?.remove_slot(*slot)?;
            self.state.space.release(extent.number, commit, version)?;
            self.spares.entry(*id).and_modify(|spare| spare.forget_extent(*slot, extent.number));
        }
        for id in pending.pools.pools_dropped() {
            changed.note_all(id, self.state.root.pool(id)?);
            self.state.space.release_all(Owner::Pool(id), commit, version)?;
        }
        self.spares.retain(|id, _| pending.root.pools.contains_key(id));
        Ok(())
    }
}

/// Extents that a pool does without and keeps what it is to keep free, and some more unless room is short.
fn extents_too_many(pool: &Pool, is_low: bool) -> usize {
    let beyond = if is_low { 0 } else { KEEPS_BEYOND_PERCENT };
    let share = u64::from(pool.options.free_percent) + beyond;
    let enough = |extents: u64| {
        let pages = extents * u64::from(pool.extent_pages());
        pages.checked_sub(pool.live()).is_some_and(|spare| spare * 100 >= pages * share.min(100))
    };
    let extents = u64::from(pool.extents());
    (0..extents).take_while(|given| enough(extents - given - 1) && extents - given > 1).count()
}
