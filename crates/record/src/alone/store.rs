//! The store as its one user sees it.

use counterfoil_flash::Device;
use counterfoil_vault::{Counter, SALT_BYTES, Tag};

use crate::bytes;
use crate::space::Change;
use crate::state::RecordId;

use super::error::Error;
use super::form::Head;
use super::leaf::Leaf;
use super::live::LiveEntries;
use super::opening::{self, Opening};
use super::page::DataPage;
use super::pages::Pages;
use super::pending::Pending;
use super::recovery::Found;
use super::sequence::Sequence;
use super::state::State;
use super::word::{NONE, Word};

/// A record store that stands alone: the whole database of a small device.
pub struct Standalone<'a, D: Device + ?Sized, W: Word> {
    pub(crate) pages: Pages<'a, D, W>,
    pub(crate) counter: Option<&'a mut dyn Counter>,
    /// The random bytes of this opening; without them, where they are needed, it can only read.
    pub(crate) salt: Option<[u8; SALT_BYTES]>,
    /// The commit that was opened, until this opening writes.
    pub(crate) opened: Option<Found>,
    pub(crate) pending: Pending<'a, W>,
    pub(crate) leaves: &'a mut [W],
    pub(crate) live: LiveEntries<'a>,
    pub(crate) openings: &'a mut [Opening],
    pub(crate) page: &'a mut [u8],
    pub(crate) scratch: &'a mut [u8],
    pub(crate) state: State,
    /// The newest commit when a lap of cleaning gained too little.
    pub(crate) full_at: Option<Sequence>,
}

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// What the newest commit took the counter to, or will take it to when its group is closed.
    pub fn counted(&self) -> u64 {
        self.state.counted
    }

    /// The tag of the newest commit.
    pub fn tag(&self) -> Tag {
        self.state.tag
    }

    /// Copies a record to the start of `buffer`; how long it is. Reads two pages at most.
    ///
    /// # Errors
    /// [`Error::NoRecord`], [`Error::BufferTooSmall`], [`Error::Tampered`], [`Error::Corrupt`], [`Error::Device`],
    /// [`Error::Latched`].
    pub fn read(&mut self, id: RecordId, buffer: &mut [u8]) -> Result<usize, Error> {
        self.not_latched()?;
        let (slot, sequence) = self.find(id.0)?.ok_or(Error::NoRecord)?;
        let form = &self.state.form;
        let openings = self.openings.get(..self.state.opening_count).unwrap_or_default();
        let epoch = opening::data_epoch(openings, sequence).ok_or(Error::Corrupt)?;
        form.open(&self.pages, &form.data, Head::new(sequence, epoch), self.scratch)?;
        let page = DataPage::parse::<W>(form.body(self.scratch))?;
        let (_, number) = self.state.place(slot);
        let record = page.records::<W>().nth(number as usize).filter(|(found, _)| *found == id.0);
        let (_, record) = record.ok_or(Error::Corrupt)?;
        bytes::copy(buffer.get_mut(..record.len()).ok_or(Error::BufferTooSmall)?, record);
        Ok(record.len())
    }

    /// Where the record of an id is: its slot, and the sequence of the page.
    pub(crate) fn find(&mut self, id: u32) -> Result<Option<(u32, Sequence)>, Error> {
        if let Some(slot) = self.pending.slot(id) {
            let (page, _) = self.state.place(slot);
            return Ok((slot != NONE).then(|| (slot, self.state.form.data.at(page, self.state.version))));
        }
        let number = id / self.state.leaf_ids;
        let slot = self.leaves.get(number as usize).map_or(NONE, |slot| slot.number());
        if id >= self.state.ids || slot == NONE {
            return Ok(None);
        }
        let openings = self.openings.get(..self.state.opening_count).unwrap_or_default();
        let leaf = Leaf::read(&self.pages, &self.state, openings, slot, self.scratch)?;
        Ok(leaf.cell::<W>(&self.state, id % self.state.leaf_ids))
    }

    /// An id without a record that was not handed out since the last commit. It stays free unless it is committed. Reads each
    /// leaf once at most, and those of which every id has a record only once.
    ///
    /// # Errors
    /// [`Error::IdsExhausted`], and those of reading leaves.
    pub fn allocate(&mut self) -> Result<RecordId, Error> {
        self.not_latched()?;
        let limit = self.ids_max();
        while self.state.cursor < limit {
            let (first, is_first) = (self.state.cursor, self.state.cursor == self.state.free_from);
            let leaf = first / self.state.leaf_ids;
            let end = (leaf + 1).saturating_mul(self.state.leaf_ids.get()).min(limit);
            let free = self.first_free(leaf, first, end)?;
            self.state.cursor = free.map_or(end, |id| id + 1);
            if is_first {
                self.state.free_from = free.unwrap_or(end);
            }
            if let Some(id) = free {
                return Ok(RecordId(id));
            }
        }
        Err(Error::IdsExhausted)
    }

    /// The first id without a record of those between two ids of a leaf.
    fn first_free(&mut self, leaf: u32, first: u32, end: u32) -> Result<Option<u32>, Error> {
        let slot = self.leaves.get(leaf as usize).map_or(NONE, |slot| slot.number());
        let openings = self.openings.get(..self.state.opening_count).unwrap_or_default();
        let read = match slot {
            NONE => Leaf::empty(self.scratch, &self.state),
            slot => Leaf::read(&self.pages, &self.state, openings, slot, self.scratch)?,
        };
        let begin = leaf * self.state.leaf_ids.get();
        let is_free = |id: &u32| match self.pending.slot(*id) {
            Some(slot) => slot == NONE,
            None => read.cell::<W>(&self.state, *id - begin).is_none(),
        };
        Ok((first..end).find(is_free))
    }

    /// Writes all changes or, after a cut, none of them; durable and counted on return. An id named twice keeps its last
    /// change. The new version.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::IdOutOfRange`], [`Error::RecordTooLong`] or [`Error::TooManyChanges`] before anything
    /// is lost or changed. After any other error the store answers [`Error::Latched`] until it is opened again.
    pub fn commit(&mut self, changes: &[Change<'_>]) -> Result<u64, Error> {
        self.commit_and(true, changes)
    }

    /// The same, but leaves the step of the counter to the next commit, or to [`Standalone::close_group`]: durable on return,
    /// and not counted. Until the group is closed, whoever has the flash can put back any commit of it, or the one before
    /// it; after that, where the counter has no room for a tag, still any commit of this last group.
    ///
    /// # Errors
    /// As [`Standalone::commit`].
    pub fn commit_in_group(&mut self, changes: &[Change<'_>]) -> Result<u64, Error> {
        self.commit_and(false, changes)
    }

    /// Steps the counter to the newest commit, if it is not there yet.
    ///
    /// # Errors
    /// [`Error::Counter`], [`Error::Latched`].
    pub fn close_group(&mut self) -> Result<(), Error> {
        self.not_latched()?;
        if core::mem::take(&mut self.state.group_is_open) {
            let (counted, tag) = (self.state.counted, self.state.tag);
            self.step(counted, &tag).inspect_err(|_| self.state.latched = true)?;
        }
        Ok(())
    }

    fn commit_and(&mut self, is_counted: bool, changes: &[Change<'_>]) -> Result<u64, Error> {
        self.check_changes(changes)?;
        self.ready_to_write()?;
        self.state.ahead_end = None;
        self.make_room(changes)?;
        self.write_commit(is_counted, &mut |store, assembly| {
            store.put_changes(assembly, changes)?;
            // With a record there is room beside the reserve: keeping the pace of cleaning is worth more there than a full page.
            assembly.fills_pages = changes.iter().all(|(_, record)| record.is_none());
            store.clean(assembly)
        })
    }

    fn check_changes(&self, changes: &[Change<'_>]) -> Result<(), Error> {
        if changes.len() > self.changes_max() {
            return Err(Error::TooManyChanges);
        }
        for (id, record) in changes {
            if id.0 >= self.ids_max() {
                return Err(Error::IdOutOfRange);
            }
            if record.is_some_and(|record| record.len() > self.record_bytes_max()) {
                return Err(Error::RecordTooLong);
            }
        }
        Ok(())
    }

    /// How many record ids there can be.
    pub fn ids_max(&self) -> u32 {
        // The last number of a word stands for nothing.
        let most = if W::BYTES < 4 { (1 << (8 * W::BYTES)) - 1 } else { (1 << 31) - 1 };
        (self.leaves.len() as u32).saturating_mul(self.state.leaf_ids.get()).min(most)
    }

    pub(crate) fn not_latched(&self) -> Result<(), Error> {
        if self.state.latched { Err(Error::Latched) } else { Ok(()) }
    }

    pub(crate) fn openings(&self) -> &[Opening] {
        self.openings.get(..self.state.opening_count).unwrap_or_default()
    }

    /// Leaves that there may be, whether or not they were written.
    pub(crate) fn leaf_count(&self) -> usize {
        // Without div_ceil, which has a check for zero.
        let (ids, each) = (self.state.ids, self.state.leaf_ids);
        ((ids / each + u32::from(ids % each != 0)) as usize).min(self.leaves.len())
    }

    /// The page of the index ring that a slot stands for.
    pub(crate) fn index_sequence(&self, slot: W) -> Sequence {
        let index = &self.state.form.index;
        index.at(slot.number(), index.before(self.state.index_head, 1))
    }

    /// The oldest page of the index ring that holds a leaf; the index head if there is none.
    pub(crate) fn oldest_leaf_page(&self) -> Sequence {
        let written = self.leaves.iter().filter(|slot| **slot != W::NONE);
        written.map(|slot| self.index_sequence(*slot)).fold(self.state.index_head, Sequence::min)
    }

    /// The oldest page of the index ring that is needed.
    pub(crate) fn index_tail(&self) -> Sequence {
        self.oldest_leaf_page().min(self.state.map)
    }

    /// The leaf that stands on this page of the index ring.
    pub(crate) fn leaf_at(&self, sequence: Sequence) -> Option<u32> {
        let stands = |slot: &W| *slot != W::NONE && self.index_sequence(*slot) == sequence;
        self.leaves.iter().position(stands).map(|leaf| leaf as u32)
    }

    /// Asserts the invariants of the store; for tests, which call it after every step.
    ///
    /// # Panics
    /// If one is broken.
    pub fn check(&self) {
        if self.state.latched {
            return;
        }
        let state = &self.state;
        self.pending.check();
        assert!(state.tail <= self.pending.replay && self.pending.middle <= state.head, "order of the data ring");
        assert!(state.version < state.head, "the head is behind the newest commit");
        assert!(self.openings().windows(2).all(|pair| pair[1].follows(&pair[0])), "openings in order");
        assert!(opening::data_epoch(self.openings(), state.version).is_some(), "the newest commit has an opening");
    }
}
