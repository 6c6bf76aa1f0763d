//! Finding the newest whole commit of a store that stands alone, and reading what it says.
//!
//! 1. A commit is whole if every page of it authenticates under its own epoch and says how many come before it.
//! 2. A whole commit whose older pages do not authenticate is passed over for the one before it, at most [`LOADS_MAX`]
//!    times: the counter says whether that is new enough.

use counterfoil_flash::{Device, Read};
use counterfoil_vault::{Epoch, Tag, Vault};

use crate::error::Error;
use crate::head::Head;
use crate::search;

use super::form::Form;
use super::leaf::Leaf;
use super::map;
use super::opening::{self, Opening};
use super::page::{DataPage, Entry};
use super::root::Root;
use super::state::Floor;
use super::store::Standalone;
use super::word::{NONE, Word};

pub(crate) const LOADS_MAX: u32 = 8;

/// A whole commit.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) head: Head,
    pub(crate) is_opening: bool,
    pub(crate) tag: Tag,
    pub(crate) root: Root,
}

impl Found {
    /// The opening that wrote the map.
    pub(crate) fn map_epoch(&self) -> Epoch {
        self.root.opening.map_or(self.head.epoch, |(_, epoch)| epoch)
    }
}

/// The newest whole commit before `below`.
pub(crate) fn newest<R: Read + ?Sized, W: Word>(
    device: &R,
    vault: &Vault,
    form: &Form,
    below: u64,
    buffer: &mut [u8],
) -> Result<Option<Found>, Error> {
    let claims_at = &|slot| Ok([form.claim(device, slot)?.map(|(head, _)| head), None]);
    let commit_at = &mut |head: &Head| {
        let found = commit_at::<R, W>(device, vault, form, head, buffer)?;
        Ok(found.map(|found| (found.head.sequence, found)))
    };
    search::newest(&form.data, claims_at, below, commit_at).map(|(found, _)| found)
}

/// The commit whose commit page is the one claimed; none if the page is an inner one of a commit.
fn commit_at<R: Read + ?Sized, W: Word>(
    device: &R,
    vault: &Vault,
    form: &Form,
    head: &Head,
    buffer: &mut [u8],
) -> Result<Option<Found>, Error> {
    let ring = &form.data;
    let corrupt = |what| Error::Corrupt { page: ring.page(head.sequence), what };
    let is_opening = form.claim(device, head.sequence % ring.pages)?.is_some_and(|(_, is_opening)| is_opening);
    let page = form.open(device, vault, ring, (head, is_opening), buffer)?;
    let tag = page.tag;
    let parsed = DataPage::parse::<W>(page.body).map_err(corrupt)?;
    if !parsed.is_commit {
        return Ok(None);
    }
    let root = Root::decode::<W>(parsed.root_bytes(), form, head, parsed.tells_opening).map_err(corrupt)?;
    let pages_before = parsed.before;
    for before in 1..=pages_before {
        let sequence = head.sequence - u64::from(before);
        let inner = Head { sequence, epoch: head.epoch };
        let page = form.open(device, vault, ring, (&inner, false), buffer)?;
        let inner = DataPage::parse::<W>(page.body).map_err(corrupt)?;
        if inner.is_commit || inner.before != pages_before - before {
            return Err(corrupt("page inside a commit"));
        }
    }
    Ok(Some(Found { head: *head, is_opening, tag, root }))
}

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Reads the map, later directories and leaves of a whole commit.
    pub(crate) fn load(&mut self, found: &Found) -> Result<(), Error> {
        let root = &found.root;
        let corrupt = |what| Error::Corrupt { page: self.state.form.data.page(found.head.sequence), what };
        let map_epoch = found.map_epoch();
        let form = &self.state.form;
        self.leaves.fill(W::NONE);
        let (openings, ids) =
            map::read(&*self.device, self.vault, form, root.map, map_epoch, self.openings, self.leaves, self.scratch)?;
        if self.openings.get(..openings).and_then(<[_]>::last).is_none_or(|last| last.epoch != map_epoch) {
            return Err(corrupt("openings of a map"));
        }
        self.state.opening_count = openings;
        if let Some((opening, _)) = &root.opening {
            if self.openings().last().is_some_and(|last| !opening.follows(last)) {
                return Err(corrupt("opening of a root"));
            }
            self.add_opening(*opening)?;
        }
        (self.state.version, self.state.tag, self.state.counted) = (found.head.sequence, found.tag, root.counted);
        (self.state.tail, self.state.head) = (root.tail, found.head.sequence + 1);
        (self.state.index_head, self.state.map) = (root.index_head, root.map);
        self.state.map_is_due = root.opening.is_some();
        (self.state.ids, self.state.cursor) = (ids, 0);
        if ids > self.ids_max() {
            let needed = ids.div_ceil(self.state.leaf_ids) as usize;
            return Err(Error::BufferTooSmall { what: "the leaves", needed, given: self.leaves.len() });
        }
        self.pending.begin_at(root.replay);
        self.replay(found)?;
        self.mark_live()?;
        self.state.floor = Floor { tail: self.state.tail, index_tail: self.index_tail() };
        Ok(())
    }

    /// Adds an opening to the list.
    pub(crate) fn add_opening(&mut self, opening: Opening) -> Result<(), Error> {
        let (needed, given) = (self.state.opening_count + 1, self.openings.len());
        let place = self.openings.get_mut(self.state.opening_count);
        *place.ok_or(Error::BufferTooSmall { what: "the openings", needed, given })? = opening;
        self.state.opening_count += 1;
        Ok(())
    }

    /// Applies the directories of the pages that the leaves do not know yet, in their order.
    fn replay(&mut self, found: &Found) -> Result<(), Error> {
        let form = self.state.form;
        let ring = &form.data;
        for sequence in self.pending.replay..=found.head.sequence {
            let Some(epoch) = opening::data_epoch(self.openings(), sequence) else { continue };
            let head = Head { sequence, epoch };
            let is_opening = self.openings().iter().any(|opening| opening.data_first == sequence);
            // The buffer is lent out while what it says is applied.
            let buffer = core::mem::take(&mut self.page);
            let applied = form.open(&*self.device, self.vault, ring, (&head, is_opening), buffer).and_then(|page| {
                let parsed = DataPage::parse::<W>(page.body);
                let parsed = parsed.map_err(|what| Error::Corrupt { page: ring.page(sequence), what })?;
                self.apply(sequence, parsed)
            });
            self.page = buffer;
            applied?;
        }
        Ok(())
    }

    fn apply(&mut self, sequence: u64, page: DataPage<'_>) -> Result<(), Error> {
        let at = self.state.form.data.page(sequence);
        let corrupt = |what| Error::Corrupt { page: at, what };
        let mut number = 0;
        for entry in page.entries::<W>() {
            let (id, slot) = match entry {
                Entry::Record(..) if number >= self.state.page_entries => return Err(corrupt("entries of a page")),
                Entry::Record(id, _) => {
                    number += 1;
                    (id, self.state.slot(sequence, number - 1))
                }
                Entry::Deallocated(id) => (id, NONE),
                Entry::Leaf(leaf, slot) => {
                    if u64::from(slot) >= self.state.form.index.pages {
                        return Err(corrupt("slot of a leaf"));
                    }
                    *self.leaves.get_mut(leaf as usize).ok_or(corrupt("number of a leaf"))? = W::of(slot);
                    let leaf_ids = self.state.leaf_ids;
                    self.pending.take(|id, _| id / leaf_ids == leaf);
                    continue;
                }
            };
            if id >= self.ids_max() {
                let (needed, given) = ((id / self.state.leaf_ids) as usize + 1, self.leaves.len());
                return Err(Error::BufferTooSmall { what: "the leaves", needed, given });
            }
            self.state.ids = self.state.ids.max(id + 1);
            if self.pending.slot(id).is_none() && self.pending.room() == 0 {
                let (needed, given) = (self.pending.capacity() + 1, self.pending.capacity());
                return Err(Error::BufferTooSmall { what: "the pending changes", needed, given });
            }
            self.pending.note(id, slot);
        }
        Ok(())
    }

    /// Finds out which entries hold current records.
    fn mark_live(&mut self) -> Result<(), Error> {
        self.live.clear();
        if !self.live.is_kept() {
            return Ok(());
        }
        for number in 0..self.leaf_count() as u32 {
            let slot = self.leaves.get(number as usize).map_or(NONE, |slot| slot.number());
            if slot == NONE {
                continue;
            }
            let openings = self.openings.get(..self.state.opening_count).unwrap_or_default();
            let leaf = Leaf::read(&*self.device, self.vault, &self.state, openings, slot, self.scratch)?;
            for cell in 0..self.state.leaf_ids {
                let id = number * self.state.leaf_ids + cell;
                if let Some((slot, sequence)) = leaf.cell::<W>(&self.state, cell)
                    && self.pending.slot(id).is_none()
                    && sequence >= self.state.tail
                {
                    self.live.set(slot, true);
                }
            }
        }
        let live = &mut self.live;
        self.pending.each(|_, slot| {
            if slot != NONE {
                live.set(slot, true);
            }
        });
        Ok(())
    }
}
