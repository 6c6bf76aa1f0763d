//! Writing a commit.
//!
//! ```text
//! data ring:  | changes, told in directories ... | survivors of the oldest pages | last page = commit page: root | flush
//! index ring:       | leaves, when too many changes are pending | the map, when it is time |     then the counter steps
//! ```
//! 1. Whether the commit fits is known before its first write (room.rs).
//! 2. Nothing that the last counted commit needs is erased or overwritten, so a cut leaves that commit, or this one.
//! 3. After a failed write memory speaks of pages that may not be there: the store latches.

use counterfoil_flash::Device;
use counterfoil_vault::{Epoch, Tag};

use crate::space::Change;

use super::error::Error;
use super::form::{Form, Head};
use super::leaf::Leaf;
use super::opening::Opening;
use super::page::{self, Draft, Entry};
use super::root::{Root, root_bytes};
use super::sequence::Sequence;
use super::state::Floor;
use super::store::Standalone;
use super::word::{NONE, Word};

/// What every page leaves to the root, a deallocation, and what tells of a leaf, be it a commit page or not: so what is current
/// in any page fits into a commit page, and a full store gets no fuller by being cleaned.
pub(crate) fn bytes_left<W: Word>() -> usize {
    root_bytes::<W>(false) + page::entry_bytes::<W>(0) + page::entry_bytes::<W>(W::BYTES) + W::BYTES
}

/// The most a record may have: it must fit into a page that nothing else is in.
pub(crate) fn record_bytes_max<W: Word>(form: &Form) -> usize {
    let others = page::HEAD_BYTES + page::entry_bytes::<W>(usize::MAX) + bytes_left::<W>();
    form.body_bytes().saturating_sub(others).min(page::RECORD_BYTES_MAX)
}

/// A commit in the making.
pub(crate) struct Assembly {
    /// The first page of the commit, and the page being filled.
    pub(crate) first: Sequence,
    pub(crate) sequence: Sequence,
    pub(crate) draft: Draft,
    /// Whether cleaning begins a page only if the waiting changes have room for all of it.
    pub(crate) fills_pages: bool,
}

/// Puts into a commit what it is for. Behind a pointer, so that there is one piece of code that writes commits.
type Fill<'f, S> = &'f mut dyn FnMut(&mut S, &mut Assembly) -> Result<(), Error>;

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Writes a commit, and counts it or leaves that to a later one; `fill` puts into it what it is for.
    pub(crate) fn write_commit(&mut self, is_counted: bool, fill: Fill<'_, Self>) -> Result<u64, Error> {
        let outcome = self.assemble(is_counted, fill);
        self.state.latched |= outcome.is_err();
        outcome
    }

    fn assemble(&mut self, is_counted: bool, fill: Fill<'_, Self>) -> Result<u64, Error> {
        let first = self.state.head;
        let draft = Draft::new(self.state.form.body_bytes(), bytes_left::<W>());
        let mut assembly = Assembly { first, sequence: first, draft, fills_pages: true };
        self.begin_page(&assembly);
        // Before anything else: what tells of a leaf would begin a page behind a full one.
        self.fold_if_due(&mut assembly)?;
        fill(self, &mut assembly)?;
        self.turn_if_due(&assembly)?;
        let counted = self.state.counted + u64::from(!self.state.group_is_open);
        let tag = self.finish(&mut assembly, counted)?;
        self.pages.flush()?;
        if is_counted {
            self.step(counted, &tag)?;
        }
        self.state.group_is_open = !is_counted;
        self.committed(assembly.sequence, tag, counted);
        Ok(counted)
    }

    /// Steps the counter, if there is one.
    pub(crate) fn step(&mut self, to: u64, tag: &Tag) -> Result<(), Error> {
        self.counter.as_mut().map_or(Ok(()), |counter| counter.step(to, tag)).map_err(|_| Error::Counter)
    }

    /// What holds once a commit is durable.
    pub(crate) fn committed(&mut self, version: Sequence, tag: Tag, counted: u64) {
        (self.state.version, self.state.tag, self.state.counted) = (version, tag, counted);
        self.state.head = self.state.form.data.after(version, 1);
        self.state.cursor = self.state.free_from;
        self.state.floor = Floor { tail: self.state.tail, index_tail: self.index_tail() };
    }

    fn begin_page(&mut self, assembly: &Assembly) {
        self.page.fill(0);
        self.live.clear_page(assembly.sequence.slot);
    }

    /// Puts the caller's changes into the commit.
    pub(crate) fn put_changes(&mut self, assembly: &mut Assembly, changes: &[Change<'_>]) -> Result<(), Error> {
        for (id, record) in changes {
            self.make_pending_room(assembly, 1)?;
            self.put(assembly, id.0, *record)?;
        }
        Ok(())
    }

    /// Puts a change into the page being filled, or into the next one. There must be room for it among the pending.
    pub(crate) fn put(&mut self, assembly: &mut Assembly, id: u32, record: Option<&[u8]>) -> Result<(), Error> {
        let entry = record.map_or(Entry::Deallocated(id), |record| Entry::Record(id, record));
        let number = self.push(assembly, entry, record.map_or(0, <[u8]>::len))?;
        let slot = if record.is_some() { self.state.slot(assembly.sequence, number) } else { NONE };
        if let Some(before) = self.pending.note(id, slot)?.filter(|before| *before != NONE) {
            self.live.set(before, false);
        }
        if slot != NONE {
            self.live.set(slot, true);
        }
        self.state.ids = self.state.ids.max(id + 1);
        if record.is_none() && id >= self.state.shape.names {
            self.state.free_from = self.state.free_from.min(id);
        }
        Ok(())
    }

    fn push(&mut self, assembly: &mut Assembly, entry: Entry<'_>, bytes: usize) -> Result<u32, Error> {
        let draft = &assembly.draft;
        let fits = match entry {
            Entry::Record(..) => draft.fits::<W>(bytes, 0) && draft.numbered < self.state.page_entries.get(),
            _ => page::entry_bytes::<W>(bytes) + bytes <= draft.room(),
        };
        if !fits {
            self.next_page(assembly)?;
        }
        let number = assembly.draft.numbered;
        assembly.draft.push::<W>(self.state.form.body_mut(self.page), entry)?;
        Ok(number)
    }

    /// Writes the page being filled as an inner page of the commit and begins the next one.
    pub(crate) fn next_page(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        self.require_data_page(assembly)?;
        assembly.draft.finish(self.state.form.body_mut(self.page));
        self.enter_data(assembly.sequence)?;
        let form = &self.state.form;
        let head = Head::new(assembly.sequence, own_epoch(self.openings, self.state.opening_count));
        form.write(&mut self.pages, &form.data, head, self.page)?;
        assembly.sequence = form.data.after(assembly.sequence, 1);
        assembly.draft = Draft::new(self.state.form.body_bytes(), bytes_left::<W>());
        self.begin_page(assembly);
        Ok(())
    }

    /// Writes the commit page; its tag.
    fn finish(&mut self, assembly: &mut Assembly, counted: u64) -> Result<Tag, Error> {
        let root = self.root(counted, None);
        if assembly.draft.room() < root_bytes::<W>(false) {
            self.next_page(assembly)?;
        }
        self.require_data_page(assembly)?;
        self.enter_data(assembly.sequence)?;
        let form = &self.state.form;
        let head = Head::new(assembly.sequence, own_epoch(self.openings, self.state.opening_count));
        let body = form.body_mut(self.page);
        let at = assembly.draft.finish_commit(body, false);
        root.encode::<W>(form, body, at, &head);
        form.write(&mut self.pages, &form.data, head, self.page)
    }

    /// The root of the store as it is now.
    pub(crate) fn root(&self, counted: u64, opening: Option<(Opening, Epoch)>) -> Root {
        Root {
            counted,
            index_head: self.state.index_head,
            tail: self.state.tail,
            replay: self.pending.replay,
            map: self.state.map,
            opening,
            rollbacks: self.state.rollbacks,
        }
    }

    /// Writes leaves until so many more changes may be pending.
    pub(crate) fn make_pending_room(&mut self, assembly: &mut Assembly, changes: usize) -> Result<(), Error> {
        while self.pending.room() < changes {
            self.write_due_leaf(assembly)?;
        }
        Ok(())
    }

    /// Writes the leaf for which it is time: the oldest one if the index ring is about to come round to it, else the one
    /// with the most changes.
    pub(crate) fn write_due_leaf(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        if self.next_index_block_is_due() {
            return self.relocate(assembly, self.index_tail());
        }
        let Some((mut leaf, most)) = self.pending.fullest_leaf(self.state.leaf_ids, |_| true) else { return Ok(()) };
        // A leaf of the oldest block has to move some time: now, if that is worth nearly as much.
        let block = self.state.form.index.block_start(self.index_tail());
        let in_oldest = |leaf: u32| self.leaf_block(leaf) == Some(block);
        if let Some((other, changes)) = self.pending.fullest_leaf(self.state.leaf_ids, in_oldest)
            && 2 * changes >= most
        {
            leaf = other;
        }
        self.write_leaf(assembly, leaf)
    }

    /// Writes anew what stands at this sequence of the index ring.
    pub(crate) fn relocate(&mut self, assembly: &mut Assembly, sequence: Sequence) -> Result<(), Error> {
        match self.leaf_at(sequence) {
            Some(leaf) => self.write_leaf(assembly, leaf),
            None => self.write_map(),
        }
    }

    /// Writes a leaf with all its pending changes, and tells of it in the page being filled.
    pub(crate) fn write_leaf(&mut self, assembly: &mut Assembly, number: u32) -> Result<(), Error> {
        self.require_index_pages(1)?;
        self.enter_index(self.state.index_head)?;
        let (state, scratch) = (&self.state, &mut *self.scratch);
        let slot = self.leaves.get(number as usize).map_or(NONE, |slot| slot.number());
        let openings = self.openings.get(..state.opening_count).unwrap_or_default();
        let mut leaf = match slot {
            NONE => Leaf::empty(scratch, state),
            slot => Leaf::read(&self.pages, state, openings, slot, scratch)?,
        };
        let (first, live) = (number * state.leaf_ids.get(), &mut self.live);
        self.pending.take(|id, slot| {
            let Some(cell) = id.checked_sub(first).filter(|cell| *cell < state.leaf_ids.get()) else { return false };
            // What stood there may have been written over since, and the bit be another record's.
            if let Some((old, _)) = leaf.cell::<W>(state, cell).filter(|(_, sequence)| *sequence >= state.tail) {
                live.set(old, false);
            }
            leaf.set::<W>(cell, slot);
            true
        });
        // Cells that were not changed mean what they meant: the newest page at their slot up to the old version. It is
        // the newest one up to now as well, because a page with a current record is not written over.
        leaf.set_version(assembly.sequence);
        let sequence = self.state.index_head;
        let (form, epoch) = (&self.state.form, own_epoch(self.openings, self.state.opening_count));
        form.write(&mut self.pages, &form.index, Head::new(sequence, epoch), self.scratch)?;
        self.state.index_head = form.index.after(sequence, 1);
        let slot = sequence.slot;
        if let Some(place) = self.leaves.get_mut(number as usize) {
            *place = W::of(slot);
        }
        self.push(assembly, Entry::Leaf(number, slot), W::BYTES).map(drop)
    }

    /// What the last counted commit needs is never written over, whatever was miscounted.
    pub(crate) fn require_index_pages(&self, needed: u32) -> Result<(), Error> {
        if needed > self.state.free_index_pages() { Err(Error::Full) } else { Ok(()) }
    }

    /// The same for a page of the data ring.
    fn require_data_page(&self, assembly: &Assembly) -> Result<(), Error> {
        let free = self.state.form.data.free(self.state.floor.tail, assembly.sequence);
        if free == 0 { Err(Error::Full) } else { Ok(()) }
    }

    /// Writes the leaf of the oldest change that waits, where recovery would have too much to replay, or cleaning has come near
    /// the pages that it would replay.
    fn fold_if_due(&mut self, assembly: &mut Assembly) -> Result<(), Error> {
        let is_due = self.is_late(self.pending.middle, assembly.sequence, true);
        match self.pending.oldest_leaf(self.state.leaf_ids).filter(|_| is_due && self.has_index_room()) {
            Some(leaf) => self.write_leaf(assembly, leaf),
            None => Ok(()),
        }
    }

    /// Writes the map where this opening has not yet, and where it lets recovery begin later, if the index ring is not short of
    /// room: a commit that makes room there writes one map at most.
    fn turn_if_due(&mut self, assembly: &Assembly) -> Result<(), Error> {
        let has_room = self.state.free_index_pages() >= self.map_pages() + self.index_kept();
        let turns = has_room && self.pending.may_turn() && self.is_late(self.pending.replay, assembly.sequence, false);
        if turns || self.state.map_is_due {
            self.write_map()?;
        }
        if turns {
            self.pending.turn(assembly.first);
        }
        Ok(())
    }

    /// Whether from this page on there is more than recovery is to replay at most, or than half of that.
    fn is_late(&self, since: Sequence, now: Sequence, is_half: bool) -> bool {
        let data = &self.state.form.data;
        let window = (data.pages / 4).max(8) >> u32::from(is_half);
        let is_near = self.state.free_pages() < data.pages / 2
            && data.distance(self.state.tail, self.pending.replay) < data.block_pages.get();
        is_near || data.distance(since, now) > window
    }
}

/// The epoch of the opening that writes: the last of the list.
pub(crate) fn own_epoch(openings: &[Opening], count: usize) -> &Epoch {
    openings.get(count.wrapping_sub(1)).map_or(&Opening::EMPTY.epoch, |opening| &opening.epoch)
}
