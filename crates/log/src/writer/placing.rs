//! Where pages of containers go: each into the tip of its group, several neighbouring ones granted at once.
//!
//! A cut leaves pages that no frame names. Their positions count as tried in this opening ([`Grant::next`] moves before
//! the write), and the next opening has keys of its own.

use alloc::vec;

use counterfoil_vault::{Plain, Tag};

use super::{Grant, Tip, Writer};
use crate::opening;
use crate::pending::Granted;
use crate::reach::{reach, reach_to};
use crate::root::Run;
use crate::space::{Extent, Needs, Owner};
use crate::tail::Tail;
use crate::{Cause, ContainerId, Error, GroupId, Sealing};

/// So many extents that wait for the counter, and such a part of all, are worth a step of it.
const WAITING_MIN: u32 = 16;
const WAITING_PART: u32 = 32;

/// Turns that a container takes in an extent before it gets one of its own.
const TURNS_MAX: usize = 16;

/// Whether it is forgotten after each commit where groups are to be gone on with: where memory is little there are few containers, and
/// whoever goes on looks at all of them.
const FORGETS_TIPS: bool = cfg!(feature = "small");

impl Tip {
    /// The next pages, so many at most.
    fn grant(&mut self, pages: u32, extent_pages: u32) -> Grant {
        let (next, end) = (self.next, extent_pages.min(self.next + pages));
        self.next = end;
        Grant { extent: self.extent, next, end }
    }
}

impl Writer {
    /// Appends bytes to a container and tells the offset at which they begin.
    ///
    /// # Errors
    /// [`Error::full`], after which the caller rolls back; [`Error::corrupt`] if there is no such container;
    /// [`Error::misuse`], [`Error::latched`], [`crate::Cause::Device`].
    pub fn append(&mut self, id: ContainerId, bytes: &[u8]) -> Result<u64, Error> {
        let layout = self.pages.layout;
        let container = self.pending_mut()?.touch(id)?;
        let (sealing, payload, offset) = (container.sealing, container.payload(&layout), container.bytes(&layout));
        let mut rest = bytes;
        loop {
            let page_bytes = self.pages.layout.page_bytes as usize;
            let container = self.pending_mut()?.root.container_mut(id)?;
            let tail = &container.tail;
            let room = payload - tail.len();
            if rest.len() < room {
                container.add_to_tail(rest);
                return Ok(offset);
            }
            let mut page = vec![0; page_bytes];
            let filled = tail.len();
            page[..filled].copy_from_slice(tail);
            page[filled..payload].copy_from_slice(&rest[..room]);
            rest = &rest[room..];
            self.program_page(id, sealing, &mut page)?;
        }
    }

    /// Seals and programs the next page of a container, whose tail it takes with it.
    fn program_page(&mut self, id: ContainerId, sealing: Sealing, page: &mut [u8]) -> Result<(), Error> {
        // A long transaction keeps the commits before it waiting no longer than others would.
        self.close_group_if_due()?;
        let (extent, position, tag) = self.place_page(id, sealing, page)?;
        let pending = self.pending.as_mut().ok_or_else(|| Error::misuse("no commit was begun"))?;
        let container = pending.root.container_mut(id)?;
        let number = container.pages();
        container.add_pages(Run {
            first: number,
            extent: extent.number,
            position,
            pages: 1,
            allocation: extent.allocation,
            epoch: self.end.epoch.number,
        });
        container.tail = Tail::default();
        pending.programmed(id, number, tag);
        Ok(())
    }

    fn place_page(&mut self, id: ContainerId, sealing: Sealing, page: &mut [u8]) -> Result<(Extent, u32, Tag), Error> {
        self.require_sound()?;
        if self.grants.get(&id).is_none_or(|grant| grant.next == grant.end) {
            let grant = self.grant_pages(id)?;
            self.grants.insert(id, grant);
        }
        let grant = self.grants.get_mut(&id).ok_or_else(|| Error::misuse("a container without pages"))?;
        let position = grant.next;
        // From here on the position counts as tried, whatever becomes of the write.
        grant.next += 1;
        let (extent, is_used_up) = (grant.extent, grant.next == grant.end);
        let place = (extent.allocation, position);
        let tag = match sealing.cell_payload() {
            Some(payload) => self.pages.seal_page_of_cells(place, self.end.epoch, payload, page),
            None if sealing == Sealing::Sectors => self.pages.seal_sectors(place, &self.end.epoch, page)?,
            None => {
                let key = self.container_keys.of(&self.pages.vault, extent.allocation, &self.end.epoch);
                key.seal(position, Plain::new(page)).tag()
            }
        };
        let written = self.device.program(self.pages.layout.page(extent.number, position), page);
        if is_used_up {
            self.grants.remove(&id);
        }
        self.latch_on_error(written)?;
        Ok((extent, position, tag))
    }

    /// Pages for a container: the more it has, the more at once, up to a whole extent.
    fn grant_pages(&mut self, id: ContainerId) -> Result<Grant, Error> {
        let (group, pages) = self.current().container(id).map(|container| (container.group, container.pages()))?;
        let extent_pages = self.pages.layout.extent_pages;
        if !self.tips.contains_key(&group) {
            let none = Tip { extent: Extent { number: 0, allocation: 0 }, next: extent_pages };
            let tip = self.resume_tip(group).unwrap_or(none);
            self.tips.insert(group, tip);
        }
        if let Some(grant) = self.grant_of_own_extent(id, group)? {
            return Ok(grant);
        }
        if self.tips.get(&group).is_none_or(|tip| tip.next >= extent_pages) {
            let extent = self.grant_to_group(group)?;
            self.tips.insert(group, Tip { extent, next: 0 });
        }
        let wanted = if self.writes_once() { 1 } else { (pages / 4).clamp(1, u64::from(extent_pages)) as u32 };
        let tip = self.tips.get_mut(&group).ok_or_else(|| Error::misuse("a group without extents"))?;
        Ok(tip.grant(wanted, extent_pages))
    }

    fn grant_to_group(&mut self, group: GroupId) -> Result<Extent, Error> {
        let owner = Owner::Group(group);
        let extent = self.grant_extent(owner)?;
        self.granted.push(Granted { extent, owner, slot: 0, first_write: 0 });
        Ok(extent)
    }

    /// A page of an extent that a container has for itself. On media that are written in order nothing can be granted ahead, so
    /// containers that grow side by side take turns page by page, and each page is a run to be remembered. A container that has taken
    /// many turns in the extent that its group fills gets one of its own, unless there is none.
    fn grant_of_own_extent(&mut self, id: ContainerId, group: GroupId) -> Result<Option<Grant>, Error> {
        let extent_pages = self.pages.layout.extent_pages;
        let is_known = self.own_tips.contains_key(&id);
        if !is_known && !self.takes_turns(id, group)? {
            return Ok(None);
        }
        if self.own_tips.get(&id).is_none_or(|tip| tip.next >= extent_pages) {
            match self.grant_to_group(group) {
                Ok(extent) => drop(self.own_tips.insert(id, Tip { extent, next: 0 })),
                // In the group's there may be room.
                Err(error) if error.is_full() => {
                    self.own_tips.remove(&id);
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(self.own_tips.get_mut(&id).map(|tip| tip.grant(1, extent_pages)))
    }

    /// Whether a container has taken many turns in the extent that its group fills, and others go on taking theirs.
    fn takes_turns(&self, id: ContainerId, group: GroupId) -> Result<bool, Error> {
        if !self.writes_once() {
            return Ok(false);
        }
        let Some(tip) = self.tips.get(&group) else { return Ok(false) };
        let runs = &self.current().container(id)?.runs;
        Ok(runs.count_in_last(tip.extent) >= TURNS_MAX && !runs.end_at(tip.extent, tip.next))
    }

    /// Where a group is to be gone on with: where an earlier opening left off, whose pages carry that opening's epoch and the new ones
    /// ours, so no key meets a position twice; media that need an erase first begin a fresh extent instead. Or where this opening did,
    /// if that was forgotten since what is written tells it.
    fn resume_tip(&self, group: GroupId) -> Option<Tip> {
        let (tip, epoch) = self.end_of_group(group)?;
        let is_forgotten = FORGETS_TIPS && epoch == self.end.epoch.number;
        (!self.writes_once() || is_forgotten).then_some(tip)
    }

    /// Where the pages of a group end that the last commit knows, and the epoch of the last one.
    fn end_of_group(&self, group: GroupId) -> Option<(Tip, u64)> {
        let containers = self.state.root.containers.values().filter(|container| container.group == group);
        let runs = containers.flat_map(|container| container.runs.iter());
        let last = runs.max_by_key(|run| (run.allocation, run.position))?;
        let extent = Extent { number: last.extent, allocation: last.allocation };
        Some((Tip { extent, next: last.position + last.pages }, last.epoch))
    }

    /// After a commit: where groups are to be gone on with is forgotten where the pages that are known tell the same, since none was
    /// tried behind them. Not where containers have extents for themselves: their pages may come last.
    pub(super) fn forget_tips(&mut self) {
        if !FORGETS_TIPS || !self.writes_once() {
            return;
        }
        let tips = core::mem::take(&mut self.tips).into_iter();
        let kept = tips.filter(|(group, tip)| {
            let is_told = self.end_of_group(*group).is_some_and(|(end, epoch)| {
                (end.extent, end.next, epoch) == (tip.extent, tip.next, self.end.epoch.number)
            });
            let has_own = |id| self.state.root.container(id).is_ok_and(|container| container.group == *group);
            self.state.root.groups.contains_key(group) && (!is_told || self.own_tips.keys().any(|id| has_own(*id)))
        });
        self.tips = kept.collect();
    }

    /// Nothing more is appended to what is in a group: what is kept in memory for that is let go. Who appends all the same is
    /// granted an extent for it on media that are written in order; on others which positions were tried must stay known.
    pub fn close_group(&mut self, group: GroupId) {
        // Where tips are forgotten with a commit, one that is missing says that nothing was tried behind the pages that are known.
        if self.writes_once() && !FORGETS_TIPS {
            self.tips.remove(&group);
            let root = self.pending.as_ref().map_or(&self.state.root, |pending| &pending.root);
            self.own_tips.retain(|id, _| root.containers.get(id).is_none_or(|container| container.group != group));
        }
    }

    /// Grants an extent and makes it writable. The last ones are for the spine, and those before them for commits that
    /// are to free others: a full volume takes deletions. Where only what uncounted commits freed is left, or much of that while
    /// the volume would grow, they are counted now.
    pub(crate) fn grant_extent(&mut self, owner: Owner) -> Result<Extent, Error> {
        let is_for_contents = matches!(owner, Owner::Group(_) | Owner::Pool(_));
        if is_for_contents && self.waits_for_the_counter() && self.counting_spares_growth() {
            self.count()?;
        }
        match self.try_grant_extent(owner) {
            Err(error) if error.is_full() && self.waits_for_the_counter() => {
                self.count()?;
                self.try_grant_extent(owner)
            }
            other => other,
        }
    }

    /// Whether no extent could be granted but beyond all others, and many could once the last commits are counted. Without a bound a file
    /// that is rewritten all the time would grow by what it rewrites between two steps of the counter.
    fn counting_spares_growth(&mut self) -> bool {
        let needs = self.needs();
        let space = &self.state.space;
        let worth = WAITING_MIN.max(space.len() / WAITING_PART) as usize;
        let counted = Needs { counted: self.end.version, ..needs };
        !space.has_usable(needs, 1) && space.has_usable(counted, worth)
    }

    pub(super) fn try_grant_extent(&mut self, owner: Owner) -> Result<Extent, Error> {
        let reserves = match owner {
            Owner::Group(_) | Owner::Pool(_) if self.frees => 1,
            Owner::Group(_) | Owner::Pool(_) => 2,
            _ => 0,
        };
        let needs = self.needs();
        let behind = self.last_extent_of(owner);
        let space = &mut self.state.space;
        let granted = opening::grant(&mut *self.device, &self.pages, space, (owner, behind), (needs, reserves));
        self.failed |= matches!(granted.as_ref().map_err(Error::cause), Err(Cause::Device(_)));
        granted
    }

    pub(super) fn needs(&mut self) -> Needs {
        Needs { counted: self.counted, oldest_pin: self.oldest_pin() }
    }

    /// Whether the last extents are being granted.
    pub(crate) fn space_is_low(&mut self) -> bool {
        self.lacks_beyond_reserves(0)
    }

    /// Whether no extent is left but those that are kept.
    pub(super) fn nothing_is_left(&mut self) -> bool {
        self.lacks_beyond_reserves(1)
    }

    fn lacks_beyond_reserves(&mut self, extents: u32) -> bool {
        let (needs, layout) = (self.needs(), self.pages.layout);
        let (device, space) = (&mut *self.device, &mut self.state.space);
        let wanted = |end| 2 * layout.reserve_of(end) + extents;
        let is_there = reach(device, &layout, space, needs, wanted);
        let is_left = space.has_left(needs, wanted(space.end()));
        !(self.latch_on_error(is_there).unwrap_or(false) && is_left)
    }

    /// Asks a medium that was full before its limit whether there is room again, enough for what is kept and as much as that.
    pub(super) fn ask_for_room(&mut self) -> Result<(), Error> {
        let (layout, space) = (self.pages.layout, &mut self.state.space);
        if !space.reach().is_end {
            return Ok(());
        }
        let end = space.reach().extents.saturating_add(2 * layout.reserve_of(space.end()).max(1));
        let asked = reach_to(&mut *self.device, &layout, space, end.min(layout.extents_max));
        self.latch_on_error(asked).map(drop)
    }

    fn oldest_pin(&mut self) -> Option<u64> {
        self.readers.retain(|(_, root)| root.strong_count() > 0);
        let here = self.readers.iter().map(|(commit, _)| *commit).min();
        match (here, self.settings.pins.oldest()) {
            (Some(here), Some(there)) => Some(here.min(there)),
            (here, there) => here.or(there),
        }
    }
}
