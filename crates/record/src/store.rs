//! The store as its one writer sees it.

use counterfoil_flash::{Device, PageNumber};
use counterfoil_vault::{Epoch, Vault};

use crate::error::Error;
use crate::index::{IndexCopy, NO_SLOT};
use crate::recovery::{self, Which};
use crate::space::{Change, Changes, Purpose, measure, reserve};
use crate::state::{Buffers, Floor, Floors, Name, RecordId, State, Suspended};
use crate::view::View;
use crate::window::{Layout, Window};

/// A record store open on a window of a medium, for its one writer.
pub struct Store<'a, D: Device + ?Sized> {
    pub(crate) device: &'a mut D,
    pub(crate) vault: &'a Vault,
    pub(crate) buffers: Buffers<'a>,
    pub(crate) state: State,
}

impl<'a, D: Device + ?Sized> Store<'a, D> {
    /// Makes an empty store and commits it. Whatever the window held is gone.
    ///
    /// # Errors
    /// [`Error::Geometry`], [`Error::BufferTooSmall`], [`Error::Device`].
    pub fn format(
        device: &'a mut D,
        vault: &'a Vault,
        window: Window,
        epoch: Epoch,
        buffers: Buffers<'a>,
    ) -> Result<Self, Error> {
        let layout = Layout::new(&device.geometry(), &window)?;
        let buffers = buffers.trimmed(&layout)?;
        buffers.index.fill(NO_SLOT);
        for block in window.blocks() {
            device.erase(counterfoil_flash::BlockNumber(block))?;
        }
        // Lap 1 begins right after an imaginary commit, the last page of lap 0, that no medium holds.
        let (head, index_head) = (layout.data.pages, layout.index.pages);
        let copy = IndexCopy { first: index_head, epoch, ids: 0, runs: 0 };
        let state = State {
            layout,
            epoch: Some(epoch),
            version: head - 1,
            tag: [0; 16],
            tail: head,
            fold: head - 1,
            copy,
            head,
            index_head,
            ids: 0,
            live: 0,
            run_count: 0,
            cursor: 0,
            floors: Floors::new(Floor { version: head - 1, tail: head, index_first: index_head }),
            lap: None,
            latched: false,
        };
        let mut store = Store { device, vault, buffers, state };
        let version = store.commit_for(Purpose::Folding, &[].as_slice())?;
        store.release(version);
        Ok(store)
    }

    /// Opens a store, writes nothing. With an epoch, commits begin on fresh blocks under it. The commit opened counts
    /// as released: what only older or newer ones need may be overwritten by the next commit.
    ///
    /// The epoch must never have been used before by any opening, finished or not.
    ///
    /// # Errors
    /// [`Error::NoCommit`], [`Error::Tampered`] or [`Error::Corrupt`] if the commit asked for is not there whole;
    /// [`Error::Geometry`], [`Error::BufferTooSmall`], [`Error::Device`].
    pub fn open(
        device: &'a mut D,
        vault: &'a Vault,
        window: Window,
        which: Which,
        epoch: Option<Epoch>,
        buffers: Buffers<'a>,
    ) -> Result<Self, Error> {
        let layout = Layout::new(&device.geometry(), &window)?;
        let mut buffers = buffers.trimmed(&layout)?;
        let state = recovery::open(&*device, vault, layout, which, &mut buffers)?;
        let mut store = Store { device, vault, buffers, state };
        if let Some(epoch) = epoch {
            store.start_writing(epoch)?;
        }
        Ok(store)
    }

    /// Takes up a store that was put aside, or one that a [`crate::Reader`] opened. The buffers must be the same,
    /// with what was in them.
    ///
    /// # Errors
    /// [`Error::BufferTooSmall`] if they cannot be the same.
    pub fn resume(
        device: &'a mut D,
        vault: &'a Vault,
        suspended: Suspended,
        buffers: Buffers<'a>,
    ) -> Result<Self, Error> {
        let buffers = suspended.taken_up(buffers)?;
        Ok(Store { device, vault, buffers, state: suspended.0 })
    }

    /// Puts the store aside.
    pub fn suspend(self) -> Suspended {
        Suspended(self.state)
    }

    /// Takes up writing under `epoch` after an opening without one.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the store is open for writing already, or the epoch was used before.
    pub fn start_writing(&mut self, epoch: Epoch) -> Result<(), Error> {
        let runs = self.buffers.runs.get(..self.state.run_count).unwrap_or_default();
        self.state.start_writing(epoch, runs)
    }

    /// The newest commit.
    pub fn version(&self) -> u64 {
        self.state.version
    }

    /// The newest commit, in a way that no other commit shares.
    pub fn name(&self) -> Name {
        self.state.name()
    }

    /// Copies a record to the start of `buffer`; how long it is.
    ///
    /// # Errors
    /// [`Error::NoRecord`], [`Error::BufferTooSmall`], [`Error::Tampered`], [`Error::Corrupt`], [`Error::Device`],
    /// [`Error::Latched`].
    pub fn read(&mut self, id: RecordId, buffer: &mut [u8]) -> Result<usize, Error> {
        self.not_latched()?;
        self.view().read(id, buffer)
    }

    /// Hands over every record, in the order of the medium; every page is read once.
    ///
    /// # Errors
    /// As [`Store::read`], and whatever `each` answers.
    pub fn visit<E: From<Error>>(&mut self, each: impl FnMut(RecordId, &[u8]) -> Result<(), E>) -> Result<(), E> {
        self.not_latched()?;
        self.view().visit(each)
    }

    /// Tells of every copy of a page in the stretch that the newest commit lives in, if it does not authenticate, and
    /// whether the other one does. Pages without a current record count too.
    ///
    /// # Errors
    /// [`Error::Latched`].
    pub fn damaged_pages(&mut self, each: impl FnMut(PageNumber, bool)) -> Result<(), Error> {
        self.not_latched()?;
        self.view().damaged_pages(each)
    }

    /// The ids that have records, in order.
    pub fn ids(&self) -> impl Iterator<Item = RecordId> + '_ {
        live_ids(self.buffers.index, self.state.ids)
    }

    /// How many records there are.
    pub fn count(&self) -> u32 {
        self.state.live
    }

    /// An id without a record that was not handed out since the last commit. It stays free unless it is committed.
    ///
    /// # Errors
    /// [`Error::IdsExhausted`], [`Error::Latched`].
    pub fn allocate(&mut self) -> Result<RecordId, Error> {
        self.not_latched()?;
        let limit = self.state.ids_limit(self.buffers.index);
        let slots = self.buffers.index.get(..limit as usize).unwrap_or_default();
        let mut from = slots.iter().enumerate().skip(self.state.cursor);
        let free = from.find(|(id, slot)| *id >= self.state.ids || **slot == NO_SLOT);
        let (id, _) = free.ok_or(Error::IdsExhausted { limit })?;
        self.state.cursor = id + 1;
        Ok(RecordId(id as u32))
    }

    /// Writes all changes or, after a cut, none of them; durable on return. An id named twice keeps its last change.
    /// The new version.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::IdOutOfRange`], [`Error::RecordTooLong`] or [`Error::Misuse`] before anything is
    /// written, lost or changed. After any other error the store answers [`Error::Latched`] until it is opened again.
    pub fn commit(&mut self, changes: &[Change<'_>]) -> Result<u64, Error> {
        self.commit_for(Purpose::Changes, &changes)
    }

    /// As [`Store::commit`], of changes that are told one after the other.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn commit_told(&mut self, changes: &dyn Changes) -> Result<u64, Error> {
        self.commit_for(Purpose::Changes, changes)
    }

    /// A commit without changes that moves records together, as far as the free pages go, so that its release gives
    /// room; `None` if there is no more to gain. When a commit answers [`Error::Full`], call this, release what it
    /// wrote, and try the commit again, until it fits or this answers `None`.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn prepare(&mut self) -> Result<Option<u64>, Error> {
        self.ready_to_write()?;
        if !self.state.lap_goes_on() {
            return Ok(None);
        }
        match self.commit_for(Purpose::Cleaning, &[].as_slice()) {
            Err(Error::Full { .. }) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// A commit without changes that carries a new index copy, for a quick opening: before a clean close.
    ///
    /// # Errors
    /// As [`Store::commit`].
    pub fn fold(&mut self) -> Result<u64, Error> {
        self.commit_for(Purpose::Folding, &[].as_slice())
    }

    /// Says that nothing older than the commit `version` will be fallen back to: on a volume once a frame that names
    /// it is durable and counted. What only older commits need may be overwritten from now on.
    pub fn release(&mut self, version: u64) {
        self.state.floors.release(version);
    }

    /// Whether these changes fit into a commit now.
    pub fn fits(&self, changes: &dyn Changes) -> bool {
        let Ok(measured) = measure(&self.state.layout, changes, |_, _| Ok(())) else { return false };
        let kept = if measured.adds { reserve(&self.state.layout) } else { 0 };
        measured.pages + kept <= self.state.free_pages()
    }

    /// Bytes that one commit surely takes now, however they are cut into records, each record counted with 6 bytes
    /// more than it has. Deallocations fit beyond that.
    pub fn space_left(&self) -> u64 {
        self.state.bytes_left()
    }

    /// Pages that the records of one commit may fill now.
    pub fn pages_left(&self) -> u64 {
        self.state.pages_left()
    }

    /// How much a store can hold: with records that fill `p` pages when packed in the order they were written, a
    /// commit that fills `w` pages fits, after [`Store::prepare`] and releases if need be, as long as `p + w` is not
    /// more than this.
    pub fn pages_max(&self) -> u64 {
        self.state.pages_max()
    }

    /// Bytes of a page that records share, each of them with 6 bytes more than it has.
    pub fn page_room(&self) -> usize {
        self.state.layout.record_room()
    }

    /// The most bytes a record may have.
    pub fn record_bytes_max(&self) -> usize {
        self.state.record_bytes_max()
    }

    /// How many record ids there can be, with this window and this index buffer.
    pub fn ids_max(&self) -> u32 {
        self.state.ids_limit(self.buffers.index)
    }

    /// Asserts the invariants of the store; for tests, which call it after every step.
    ///
    /// # Panics
    /// If one is broken.
    pub fn check(&self) {
        if !self.state.latched {
            let runs = self.buffers.runs.get(..self.state.run_count).unwrap_or_default();
            self.state.check(runs, self.buffers.index);
        }
    }

    pub(crate) fn not_latched(&self) -> Result<(), Error> {
        if self.state.latched { Err(Error::Latched) } else { Ok(()) }
    }

    pub(crate) fn require_same_process(&self) -> Result<(), Error> {
        if self.vault.same_process() {
            return Ok(());
        }
        Err(Error::Misuse("the record store was opened by another process"))
    }

    pub(crate) fn ready_to_write(&self) -> Result<Epoch, Error> {
        self.not_latched()?;
        self.require_same_process()?;
        self.state.epoch.ok_or(Error::Misuse("the record store was opened for reading only"))
    }

    fn view(&mut self) -> View<'_, D> {
        View {
            device: self.device,
            vault: self.vault,
            state: &self.state,
            index: self.buffers.index.get(..self.state.ids).unwrap_or_default(),
            runs: self.buffers.runs.get(..self.state.run_count).unwrap_or_default(),
            scratch: self.buffers.scratch,
        }
    }
}

/// The ids below `ids` that the index finds records for.
pub(crate) fn live_ids(index: &[u32], ids: usize) -> impl Iterator<Item = RecordId> + '_ {
    let slots = index.iter().take(ids).enumerate();
    slots.filter(|(_, slot)| **slot != NO_SLOT).map(|(id, _)| RecordId(id as u32))
}
