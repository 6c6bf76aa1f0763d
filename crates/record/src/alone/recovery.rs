//! Finding the newest whole commit of a store that stands alone, and reading what it says.
//!
//! 1. A commit is whole if every page from the first one to replay on authenticates, its own pages among them: no page of
//!    its epoch stands before its commit page that is not its own or an older commit's, because an opening that was cut is
//!    never gone on in.
//! 2. A commit that is not whole is passed over for the one before it, eight times at most: the counter says
//!    whether that is new enough.

use counterfoil_flash::Device;
use counterfoil_vault::{Epoch, Tag};

use super::error::Error;
use super::form::{Age, Claim, Form, Head};
use super::leaf::Leaf;
use super::opening::{self, Opening};
use super::page::{DataPage, Entry};
use super::pages::Pages;
use super::root::Root;
use super::sequence::Sequence;
use super::state::Floor;
use super::store::Standalone;
use super::word::{NONE, Word};

const MISSES_MAX: u32 = 4;

/// A commit page that authenticated.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) head: Claim,
    pub(crate) tag: Tag,
    pub(crate) root: Root,
}

impl Found {
    /// The opening that wrote the map.
    pub(crate) fn map_epoch(&self) -> &Epoch {
        self.root.opening.as_ref().map_or(&self.head.epoch, |(_, epoch)| epoch)
    }
}

/// The newest commit page before `below`. The highest claim is tried first, then those below it in order; after
/// [`MISSES_MAX`] that do not authenticate every page is tried once. So forged heads cost one pass at most and hide nothing.
pub(crate) fn newest<D: Device + ?Sized, W: Word>(
    pages: &Pages<'_, D, W>,
    form: &Form,
    below: Age,
    buffer: &mut [u8],
) -> Result<Option<Found>, Error> {
    let (mut bound, mut misses, mut next) = (below, 0, None);
    while misses <= MISSES_MAX {
        let Some(claim) = next.take().map_or_else(|| highest(pages, form, bound), |claim| Ok(Some(claim)))? else {
            return Ok(None);
        };
        match commit_at(pages, form, &claim, buffer) {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {
                // An inner page of a commit that was cut: the page before it is next, and need not be looked for.
                let before = form.data.before(claim.sequence, 1);
                let follows = |before_it: &Claim| before_it.age() == (claim.epoch.number, before);
                next = form.claim(pages, before.slot)?.filter(follows);
                misses += u32::from(next.is_none());
            }
            Err(error) => misses += passed_over(error)?,
        }
        bound = claim.age();
    }
    sweep(pages, form, below, buffer)
}

/// The highest claim below a bound.
fn highest<D: Device + ?Sized, W: Word>(
    pages: &Pages<'_, D, W>,
    form: &Form,
    bound: Age,
) -> Result<Option<Claim>, Error> {
    let mut highest: Option<Claim> = None;
    for slot in 0..form.data.pages {
        let claim = form.claim(pages, slot)?.filter(|claim| claim.age() < bound);
        let is_higher = |claim: &Claim| highest.is_none_or(|highest| claim.age() > highest.age());
        highest = claim.filter(is_higher).or(highest);
    }
    Ok(highest)
}

/// Tries every claim, in the order of the medium.
fn sweep<D: Device + ?Sized, W: Word>(
    pages: &Pages<'_, D, W>,
    form: &Form,
    below: Age,
    buffer: &mut [u8],
) -> Result<Option<Found>, Error> {
    let mut newest: Option<Found> = None;
    for slot in 0..form.data.pages {
        let Some(head) = form.claim(pages, slot)? else { continue };
        if head.age() >= below || newest.is_some_and(|newest| head.age() <= newest.head.age()) {
            continue;
        }
        match commit_at(pages, form, &head, buffer) {
            Ok(found) => newest = found.or(newest),
            Err(error) => drop(passed_over(error)?),
        }
    }
    Ok(newest)
}

/// Keeps what cannot be told from a page that was never whole apart from what stops the search; one miss.
fn passed_over(error: Error) -> Result<u32, Error> {
    match error {
        // Torn words of some media read as errors for ever: no reason not to open the commit before.
        Error::Tampered | Error::Corrupt | Error::Device => Ok(1),
        other => Err(other),
    }
}

/// The commit whose commit page is the one claimed; none if the page is an inner one of a commit.
fn commit_at<D: Device + ?Sized, W: Word>(
    pages: &Pages<'_, D, W>,
    form: &Form,
    claim: &Claim,
    buffer: &mut [u8],
) -> Result<Option<Found>, Error> {
    let head = claim.head();
    let tag = form.open(pages, &form.data, head, buffer)?;
    let page = DataPage::parse::<W>(form.body(buffer))?;
    if !page.is_commit {
        return Ok(None);
    }
    let root = Root::decode::<W>(page.root_bytes(), form, &head, page.tells_opening).ok_or(Error::Corrupt)?;
    Ok(Some(Found { head: *claim, tag, root }))
}

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Reads the map, later directories and leaves of a whole commit.
    pub(crate) fn load(&mut self, found: &Found) -> Result<(), Error> {
        let root = &found.root;
        self.read_map(root.map, found.map_epoch())?;
        if let Some((opening, _)) = &root.opening {
            self.state.rollbacks = root.rollbacks;
            if self.openings().last().is_some_and(|last| !opening.follows(last)) {
                return Err(Error::Corrupt);
            }
            self.add_opening(*opening)?;
        }
        (self.state.version, self.state.tag, self.state.counted) = (found.head.sequence, found.tag, root.counted);
        (self.state.tail, self.state.head) = (root.tail, self.state.form.data.after(found.head.sequence, 1));
        (self.state.index_head, self.state.map) = (root.index_head, root.map);
        self.state.map_is_due = root.opening.is_some();
        (self.state.cursor, self.state.free_from) = (self.state.shape.names, self.state.shape.names);
        if self.state.ids > self.ids_max() {
            return Err(Error::BufferTooSmall);
        }
        self.pending.begin_at(root.replay);
        self.replay(found)?;
        self.mark_live()?;
        self.state.floor = Floor { tail: self.state.tail, index_tail: self.index_tail() };
        Ok(())
    }

    /// Adds an opening to the list.
    pub(crate) fn add_opening(&mut self, opening: Opening) -> Result<(), Error> {
        *self.openings.get_mut(self.state.opening_count).ok_or(Error::BufferTooSmall)? = opening;
        self.state.opening_count += 1;
        Ok(())
    }

    /// Applies the directories of the pages that the leaves do not know yet, in their order.
    fn replay(&mut self, found: &Found) -> Result<(), Error> {
        let form = self.state.form;
        for back in (0..=form.data.distance(self.pending.replay, found.head.sequence)).rev() {
            let sequence = form.data.before(found.head.sequence, back);
            // The buffer is lent out while what it says is applied.
            let buffer = core::mem::take(&mut self.page);
            let Some(epoch) = opening::data_epoch(self.openings(), sequence) else {
                self.page = buffer;
                continue;
            };
            let is_opening = self.openings().iter().any(|opening| opening.data_first == sequence);
            let head = Head { sequence, epoch, is_opening };
            let opened = form.open(&self.pages, &form.data, head, buffer);
            let applied = opened.and_then(|_| self.apply(sequence, DataPage::parse::<W>(form.body(buffer))?));
            self.page = buffer;
            applied?;
        }
        Ok(())
    }

    fn apply(&mut self, sequence: Sequence, page: DataPage<'_>) -> Result<(), Error> {
        let mut number = 0;
        for entry in page.entries::<W>() {
            let (id, slot) = match entry {
                Entry::Record(..) if number >= self.state.page_entries.get() => return Err(Error::Corrupt),
                Entry::Record(id, _) => {
                    number += 1;
                    (id, self.state.slot(sequence, number - 1))
                }
                Entry::Deallocated(id) => (id, NONE),
                Entry::Leaf(leaf, slot) => {
                    if slot >= self.state.form.index.pages {
                        return Err(Error::Corrupt);
                    }
                    *self.leaves.get_mut(leaf as usize).ok_or(Error::Corrupt)? = W::of(slot);
                    let leaf_ids = self.state.leaf_ids;
                    self.pending.take(|id, _| id / leaf_ids == leaf);
                    continue;
                }
            };
            if id >= self.ids_max() {
                return Err(Error::BufferTooSmall);
            }
            self.state.ids = self.state.ids.max(id + 1);
            if self.pending.slot(id).is_none() && self.pending.room() == 0 {
                return Err(Error::BufferTooSmall);
            }
            self.pending.note(id, slot)?;
        }
        Ok(())
    }

    /// Finds out which entries hold current records. Every leaf is read even where nobody keeps that: one of this commit may
    /// be missing, if pages reached the medium in another order than they were written in.
    fn mark_live(&mut self) -> Result<(), Error> {
        self.live.clear();
        for number in 0..self.leaf_count() as u32 {
            let slot = self.leaves.get(number as usize).map_or(NONE, |slot| slot.number());
            if slot == NONE {
                continue;
            }
            let openings = self.openings.get(..self.state.opening_count).unwrap_or_default();
            let leaf = Leaf::read(&self.pages, &self.state, openings, slot, self.scratch)?;
            for cell in 0..self.state.leaf_ids.get() {
                let id = number * self.state.leaf_ids.get() + cell;
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
