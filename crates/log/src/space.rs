//! The one owner of space.
//!
//! The unit is the *extent*. Every grant of an extent is an *allocation* with a number that is never used again: it is
//! key input and expected version of every page in it. An extent that a commit frees may be granted again when that
//! commit is durable and counted, and no reader is pinned to a commit before it.
//!
//! Invariants (`Space::check`): free list, owners and the index by owner agree; allocation numbers are distinct and
//! below `next`; the medium reaches no further than the limit.

use alloc::vec::Vec;

use crate::layout::Layout;
use crate::maps::{Map, Set};
use crate::order::Order as _;
use crate::reach::Reach;
use crate::slots::{Slot, Slots};
use crate::{Error, GroupId, PoolId};

/// Who an extent belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Nobody.
    Free,
    /// The headers and the record store.
    Fixed,
    /// The chain of commit frames.
    Spine,
    /// The containers of a reclaim group.
    Group(GroupId),
    /// The pages of a nameless pool.
    Pool(PoolId),
}

/// Codes from here on are those of pools.
pub(crate) const FIRST_POOL_CODE: u64 = 1 << 63;

impl Owner {
    pub(crate) fn code(self) -> u64 {
        match self {
            Owner::Free => 0,
            Owner::Fixed => 1,
            Owner::Spine => 2,
            Owner::Group(id) => id.0,
            Owner::Pool(id) => id.0 | FIRST_POOL_CODE,
        }
    }

    pub(crate) fn from_code(code: u64) -> Result<Self, Error> {
        match code {
            0 => Ok(Owner::Free),
            1 => Ok(Owner::Fixed),
            2 => Ok(Owner::Spine),
            code if code >= FIRST_POOL_CODE => Ok(Owner::Pool(PoolId(code - FIRST_POOL_CODE))),
            code if code >= crate::root::FIRST_GROUP => Ok(Owner::Group(GroupId(code))),
            _ => Err(Error::corrupt("owner of an extent")),
        }
    }
}

/// One extent under one allocation number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) number: u32,
    pub(crate) allocation: u64,
}

impl Slot {
    fn new(owner: Owner, allocation: u64) -> Self {
        Slot { code: owner.code(), allocation }
    }

    fn owner(self) -> Owner {
        // Made of an owner, so that it is one.
        Owner::from_code(self.code).unwrap_or(Owner::Fixed)
    }

    fn is_free(self) -> bool {
        self.code == Owner::Free.code()
    }
}

/// Whether it is noted for each owner what it has: where memory is little the map has few extents, and whoever asks looks at all.
const NOTES_OWNED: bool = !cfg!(feature = "small");

/// When a freed extent may be granted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Freed {
    /// No reader pinned below this commit may be left.
    commit: u64,
    /// The counter must stand at this value or above.
    version: u64,
}

/// Who may need what was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The counter's value: what the root that it counted last needs stays.
    pub(crate) counted: u64,
    /// The oldest commit that a reader is pinned to.
    pub(crate) oldest_pin: Option<u64>,
}

/// The map of extents and the numbers of allocations.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    slots: Slots,
    free: Map<u32, Freed>,
    /// The extents of each owner that has any, by the owner's code; none for [`Owner::Free`]. Empty unless [`NOTES_OWNED`].
    owned: Map<u64, Set<u32>>,
    extents_max: u32,
    /// How far the medium reaches: what is to be granted lies before that.
    reach: Reach,
    next_allocation: u64,
    /// Chunks of [`CHUNK`] slots that changed since the last checkpoint.
    changed: Set<u32>,
}

/// Slots in one record of the checkpoint.
pub(crate) const CHUNK: usize = 128;
const SLOT_BYTES: usize = 16;
/// Extents that a grant may lie beyond all that were told of: no commit that was undone was larger.
const GAP_EXTENTS_MAX: u32 = 1 << 20;

impl Space {
    /// A map with `fixed` extents that belong to headers and record store.
    pub(crate) fn new(fixed: u32, extents_max: u32) -> Self {
        let mut slots = Slots::new();
        (0..fixed).for_each(|_| slots.push(Slot::new(Owner::Fixed, 0)));
        let mut space = Space {
            slots,
            free: Map::new(),
            owned: Map::new(),
            extents_max,
            reach: Reach { extents: fixed, is_end: false },
            next_allocation: 1,
            changed: Default::default(),
        };
        for extent in 0..fixed {
            space.own(Owner::Fixed, extent);
            space.note_change(extent);
        }
        space
    }

    fn note_change(&mut self, extent: u32) {
        self.changed.insert(extent / CHUNK as u32);
    }

    /// Extents the map knows of; those beyond were never granted.
    pub(crate) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Extents beyond all that were ever granted.
    pub(crate) fn extents_left(&self) -> u32 {
        self.end().saturating_sub(self.len())
    }

    /// Where the volume ends: at its limit, or where the medium refused to go on.
    pub(crate) fn end(&self) -> u32 {
        if self.reach.is_end { self.reach.extents } else { self.extents_max }
    }

    /// How far the medium is known to reach.
    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    pub(crate) fn set_reach(&mut self, reach: Reach) {
        self.reach = reach;
    }

    pub(crate) fn next_allocation(&self) -> u64 {
        self.next_allocation
    }

    pub(crate) fn owner(&self, extent: u32) -> Owner {
        self.slots.get(extent as usize).map_or(Owner::Free, |slot| slot.owner())
    }

    pub(crate) fn allocation(&self, extent: u32) -> Option<u64> {
        let slot = self.slots.get(extent as usize)?;
        (!slot.is_free()).then_some(slot.allocation)
    }

    /// Numbers of the extents that belong to `owner`.
    pub(crate) fn owned_by(&self, owner: Owner) -> impl Iterator<Item = u32> + '_ {
        let code = owner.code();
        let noted = self.owned.get(&code).into_iter().flatten().copied();
        let looked_at = if NOTES_OWNED || owner == Owner::Free { 0 } else { self.slots.len() };
        let looked_at = self.slots.iter().take(looked_at).zip(0..);
        noted.chain(looked_at.filter(move |(slot, _)| slot.code == code).map(|(_, number)| number))
    }

    /// The extents of the spine, in the order in which it goes through them: each was granted before the next one.
    pub(crate) fn spine(&self) -> Vec<Extent> {
        let slots = self.owned_by(Owner::Spine).filter_map(|number| {
            self.slots.get(number as usize).map(|slot| Extent { number, allocation: slot.allocation })
        });
        let mut extents: Vec<Extent> = slots.collect();
        extents.order_by_key(|extent| extent.allocation);
        extents
    }

    fn own(&mut self, owner: Owner, number: u32) {
        if NOTES_OWNED {
            self.owned.entry(owner.code()).or_default().insert(number);
        }
    }

    fn disown(&mut self, owner: Owner, number: u32) {
        if let Some(extents) = self.owned.get_mut(&owner.code()) {
            extents.remove(&number);
            if extents.is_empty() {
                self.owned.remove(&owner.code());
            }
        }
    }

    /// The lowest extent on the medium that nobody needs any more, the next one behind another if there is one, unless
    /// that leaves fewer than `keep` of them.
    pub(crate) fn choose(&self, other: Option<u32>, needs: Needs, keep: u32) -> Result<u32, Error> {
        let pinned = || needs.oldest_pin.filter(|pin| self.free.values().any(|freed| freed.commit > *pin));
        let full = || Error::full(u64::from(self.end()), pinned());
        if !self.has_left(needs, keep.saturating_add(1)) {
            return Err(full());
        }
        let there = || self.usable(needs, self.reach.extents);
        let behind = other.and_then(|other| there().find(|number| *number > other));
        let beyond = (self.len() < self.reach.extents).then_some(self.len());
        behind.or_else(|| there().next()).or(beyond).ok_or_else(full)
    }

    /// Grants the extent that was chosen.
    pub(crate) fn grant_chosen(&mut self, number: u32, owner: Owner) -> Result<Extent, Error> {
        let extent = Extent { number, allocation: self.next_allocation };
        self.take(extent, owner).map_err(|_| Error::misuse("an extent was granted twice"))?;
        Ok(extent)
    }

    /// Extents before `end` that nobody needs any more, of those that were granted before.
    fn usable(&self, needs: Needs, end: u32) -> impl Iterator<Item = u32> + '_ {
        let pin = needs.oldest_pin.unwrap_or(u64::MAX);
        let usable = move |freed: &Freed| freed.version <= needs.counted && freed.commit <= pin;
        self.free.range(..end).filter(move |(_, freed)| usable(freed)).map(|(number, _)| *number)
    }

    /// Whether so many of those that were granted before could be granted again.
    pub(crate) fn has_usable(&self, needs: Needs, count: usize) -> bool {
        self.usable(needs, self.end()).nth(count - 1).is_some()
    }

    /// Extents that were given back, those that a commit not yet counted or a reader needs included.
    pub(crate) fn freed(&self) -> u64 {
        self.free.range(..self.end()).count() as u64
    }

    /// Pages of extents that nobody has, or that somebody has given back, but for what is kept so many times.
    pub(crate) fn pages_beyond(&self, reserves: u64, layout: &Layout) -> u64 {
        let kept = reserves * u64::from(layout.reserve_of(self.end()));
        (u64::from(self.extents_left()) + self.freed()).saturating_sub(kept) * u64::from(layout.extent_pages)
    }

    /// Whether so many extents could be granted now, as far as is known.
    pub(crate) fn has_left(&self, needs: Needs, wanted: u32) -> bool {
        self.has_before(self.end(), needs, wanted)
    }

    /// Whether so many extents could be granted now that are on the medium.
    pub(crate) fn has_there(&self, needs: Needs, wanted: u32) -> bool {
        self.has_before(self.reach.extents, needs, wanted)
    }

    fn has_before(&self, end: u32, needs: Needs, wanted: u32) -> bool {
        let used_before = wanted.saturating_sub(end.saturating_sub(self.len())) as usize;
        used_before == 0 || self.usable(needs, end).nth(used_before - 1).is_some()
    }

    /// Grants neighbouring extents on the medium, beyond all that were ever granted; the first one's number.
    pub(crate) fn grant_stretch(&mut self, extents: u32, owner: Owner) -> Result<u32, Error> {
        let first = self.len();
        if self.reach.extents.saturating_sub(first) < extents {
            return Err(Error::full(u64::from(self.end()), None));
        }
        for number in first..first + extents {
            self.take(Extent { number, allocation: self.next_allocation }, owner)?;
        }
        Ok(first)
    }

    /// Makes the next checkpoint write the whole map.
    pub(crate) fn mark_all_changed(&mut self) {
        self.changed = (0..self.len().div_ceil(CHUNK as u32)).collect();
    }

    /// Records a grant: one just made, or one that a frame tells of.
    pub(crate) fn take(&mut self, extent: Extent, owner: Owner) -> Result<(), Error> {
        let corrupt = || Error::corrupt("map of extents");
        let far = extent.number > self.len().saturating_add(GAP_EXTENTS_MAX);
        if far || extent.number >= self.extents_max || extent.allocation == u64::MAX || owner == Owner::Free {
            return Err(corrupt());
        }
        if self.slots.get(extent.number as usize).is_some_and(|slot| !slot.is_free()) {
            return Err(corrupt());
        }
        while self.len() <= extent.number {
            // Extents in between were granted and taken back, of which no frame tells.
            self.note_change(self.len());
            self.free.insert(self.len(), Freed { commit: 0, version: 0 });
            self.slots.push(Slot::new(Owner::Free, 0));
        }
        self.free.remove(&extent.number);
        self.own(owner, extent.number);
        if !self.slots.set(extent.number as usize, Slot::new(owner, extent.allocation)) {
            return Err(corrupt());
        }
        self.reach.extents = self.reach.extents.max(extent.number + 1);
        self.next_allocation = self.next_allocation.max(extent.allocation + 1);
        self.note_change(extent.number);
        Ok(())
    }

    /// Frees an extent as of `commit`, whose frame has `version`.
    pub(crate) fn release(&mut self, number: u32, commit: u64, version: u64) -> Result<(), Error> {
        let owner = self.owner(number);
        match self.slots.get(number as usize) {
            Some(slot) if owner != Owner::Free => {
                self.slots.set(number as usize, Slot { code: Owner::Free.code(), ..slot });
            }
            _ => return Err(Error::corrupt("map of extents")),
        }
        self.disown(owner, number);
        self.free.insert(number, Freed { commit, version });
        self.note_change(number);
        Ok(())
    }

    /// Takes back a grant that no frame tells of. Whoever is granted the extent next gets another number, and gets it
    /// when no reader is pinned below `commit`.
    pub(crate) fn cancel(&mut self, number: u32, commit: u64) {
        // What was never granted needs no taking back.
        self.release(number, commit, 0).unwrap_or_default();
    }

    /// Frees all extents of an owner as of `commit`.
    pub(crate) fn release_all(&mut self, owner: Owner, commit: u64, version: u64) -> Result<(), Error> {
        let numbers: Vec<u32> = self.owned_by(owner).collect();
        numbers.into_iter().try_for_each(|number| self.release(number, commit, version))
    }

    /// After an open nobody knows when what is free was freed: readers of earlier commits than this one hold all of it.
    pub(crate) fn hold_free_since(&mut self, commit: u64) {
        self.free.values_mut().for_each(|freed| *freed = Freed { commit, version: 0 });
    }

    /// Chunks that changed since the last checkpoint, encoded: chunk number and bytes.
    pub(crate) fn changed_chunks(&self) -> impl Iterator<Item = (u32, Vec<u8>)> + '_ {
        self.changed.iter().map(|chunk| (*chunk, self.encode_chunk(*chunk)))
    }

    /// A checkpoint has what changed.
    pub(crate) fn changes_are_written(&mut self) {
        self.changed.clear();
    }

    fn encode_chunk(&self, chunk: u32) -> Vec<u8> {
        let first = chunk as usize * CHUNK;
        let count = self.slots.len().saturating_sub(first).min(CHUNK);
        let mut bytes = Vec::with_capacity(count * SLOT_BYTES);
        for slot in self.slots.iter().skip(first).take(CHUNK) {
            bytes.extend_from_slice(&slot.code.to_le_bytes());
            bytes.extend_from_slice(&slot.allocation.to_le_bytes());
        }
        bytes
    }

    /// Rebuilds the map from the chunks of a checkpoint, with their numbers and in the order of these.
    pub(crate) fn decode<'a>(
        chunks: impl Iterator<Item = (u64, &'a [u8])>,
        extents_max: u32,
        next_allocation: u64,
    ) -> Result<Self, Error> {
        let corrupt = || Error::corrupt("map of extents");
        let mut space = Space {
            slots: Slots::new(),
            free: Map::new(),
            owned: Map::new(),
            extents_max,
            reach: Reach::default(),
            next_allocation,
            changed: Default::default(),
        };
        for (number, chunk) in chunks {
            let follows = space.slots.len() as u64 == number.saturating_mul(CHUNK as u64);
            if !follows || !chunk.len().is_multiple_of(SLOT_BYTES) {
                return Err(corrupt());
            }
            for slot in chunk.chunks_exact(SLOT_BYTES) {
                let (owner, allocation) = slot.split_at(8);
                let owner = Owner::from_code(u64::from_le_bytes(owner.try_into().map_err(|_| corrupt())?))?;
                let allocation = u64::from_le_bytes(allocation.try_into().map_err(|_| corrupt())?);
                if allocation >= next_allocation.max(1) || space.len() >= extents_max {
                    return Err(corrupt());
                }
                if owner == Owner::Free {
                    space.free.insert(space.len(), Freed { commit: 0, version: 0 });
                } else {
                    let number = space.len();
                    space.own(owner, number);
                    // What lies behind all that is owned may never have come to the medium.
                    space.reach.extents = number + 1;
                }
                space.slots.push(Slot::new(owner, allocation));
            }
        }
        Ok(space)
    }

    /// Asserts the invariants of this file's head.
    pub(crate) fn check(&self) {
        let mut seen = Set::new();
        let noted: usize = self.owned.values().map(Set::len).sum();
        let owned = self.slots.iter().filter(|slot| !slot.is_free()).count();
        assert_eq!(noted, if NOTES_OWNED { owned } else { 0 }, "what is noted of owners is owned");
        assert_eq!(owned + self.free.len(), self.slots.len(), "every extent is owned or free");
        assert!(self.reach.extents <= self.extents_max, "the medium reaches up to the limit");
        for (number, slot) in self.slots.iter().enumerate() {
            let number = number as u32;
            assert_eq!(slot.is_free(), self.free.contains_key(&number), "free list and owners agree");
            let is_known = slot.is_free() || self.owned_by(slot.owner()).any(|owned| owned == number);
            assert!(is_known, "what an owner has is known");
            if !matches!(slot.owner(), Owner::Free | Owner::Fixed) {
                assert!(slot.allocation < self.next_allocation, "allocations are below the next one");
                assert!(seen.insert(slot.allocation), "allocations are distinct");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    fn reread(space: &mut Space, chunks: &mut Map<u32, Vec<u8>>) -> Result<Space, Error> {
        chunks.extend(space.changed_chunks());
        space.changes_are_written();
        let in_order = chunks.iter().map(|(number, bytes)| (u64::from(*number), bytes.as_slice()));
        Space::decode(in_order, 1000, space.next_allocation())
    }

    #[test]
    fn what_was_freed_waits_for_the_counter_and_for_readers() {
        let mut space = Space::new(4, 6);
        let none = Needs { counted: u64::MAX, oldest_pin: None };
        assert!(
            matches!(space.choose(None, none, 0).as_ref().map_err(Error::cause), Err(Cause::Full { .. })),
            "the medium is not asked here"
        );
        space.set_reach(Reach { extents: 6, is_end: false });
        for number in [4, 5] {
            assert_eq!(space.choose(None, none, 0), Ok(number));
            space.grant_chosen(number, Owner::Spine).unwrap();
        }
        space.release(4, 10, 7).unwrap();
        space.release(5, 11, 8).unwrap();
        let grant = |counted, oldest_pin| space.choose(None, Needs { counted, oldest_pin }, 0);
        assert!(
            matches!(grant(6, None).as_ref().map_err(Error::cause), Err(Cause::Full { pinned: None, .. })),
            "nothing is counted"
        );
        assert_eq!(grant(7, None), Ok(4));
        assert_eq!(grant(7, Some(10)), Ok(4));
        assert!(
            matches!(grant(8, Some(9)).as_ref().map_err(Error::cause), Err(Cause::Full { pinned: Some(9), .. })),
            "a reader needs both"
        );
        let both = Needs { counted: 8, oldest_pin: Some(11) };
        assert!(space.has_left(both, 2) && !space.has_left(Needs { counted: 7, ..both }, 2));
    }

    #[test]
    fn a_frame_may_tell_of_an_extent_far_beyond_those_known() {
        let mut chunks = Map::new();
        let mut space = Space::new(100, 1000);
        reread(&mut space, &mut chunks).unwrap();
        space.take(Extent { number: 700, allocation: 9 }, Owner::Spine).unwrap();
        space.check();
        let again = reread(&mut space, &mut chunks).unwrap();
        again.check();
        assert_eq!((again.len(), again.owner(700), again.owner(300)), (701, Owner::Spine, Owner::Free));
        assert!(space.take(Extent { number: 700, allocation: 10 }, Owner::Spine).is_err());
        assert!(space.take(Extent { number: 1000, allocation: 10 }, Owner::Spine).is_err());
        chunks.remove(&3);
        assert!(reread(&mut space, &mut chunks).is_err(), "a chunk is missing");
    }
}
