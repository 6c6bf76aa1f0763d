//! Making a store, opening it, and taking up writing.
//!
//! Taking up writing is a commit (section 1 of the storage rules): what a cut left one step ahead of the counter is
//! stepped up to, an opening root is written two above the counter, and the counter steps twice before anything else is
//! written. So no two commits ever share a number, whatever image is put back between them.

use counterfoil_flash::{Device, PageNumber};
use counterfoil_vault::{Accepted, Counter, Entropy, Epoch, Refused, SALT_BYTES, Suite, Vault, judge};

use crate::error::Error;
use crate::head::Head;
use crate::window::Ring;

use super::form::Form;
use super::live::LiveEntries;
use super::memory::{Memory, Shape};
use super::opening::Opening;
use super::page::Draft;
use super::pending::Pending;
use super::recovery::{self, Found};
use super::state::{Floor, State};
use super::store::Standalone;
use super::word::Word;

/// What a store is opened with.
pub struct Surroundings<'a, D: Device + ?Sized> {
    /// The medium.
    pub device: &'a mut D,
    /// The keys.
    pub vault: &'a Vault,
    /// The one-way counter, if there is one.
    pub counter: Option<&'a mut dyn Counter>,
    /// The generator, if there is one.
    pub entropy: Option<&'a mut dyn Entropy>,
}

impl<'a, D: Device + ?Sized, W: Word> Standalone<'a, D, W> {
    /// Makes an empty store and commits it. Whatever the blocks held is gone.
    ///
    /// # Errors
    /// [`Error::Geometry`], [`Error::BufferTooSmall`], [`Error::Device`], [`Error::Counter`]; [`Error::Misuse`] with
    /// neither counter nor generator and a suite that does not stand that.
    pub fn format(around: Surroundings<'a, D>, shape: Shape, memory: Memory<'a, W>) -> Result<Self, Error> {
        let form = shape.form(&around.device.geometry())?;
        let (head, index_head) = (form.data.pages, form.index.pages);
        let mut store = Self::new(&around.device.geometry(), around.device, around.vault, shape, memory)?;
        store.counter = around.counter;
        let value = match &mut store.counter {
            Some(counter) => counter.value().map_err(Error::Counter)?.value,
            None => 0,
        };
        let salt = salt(shape.is_salted, store.counter.is_some(), store.vault, around.entropy)?;
        let epoch = Epoch { number: value + 2, salt };
        for block in shape.first_block..shape.first_block + shape.block_count {
            store.device.erase(counterfoil_flash::BlockNumber(block))?;
        }
        store.state.version = head - 1;
        (store.state.head, store.state.index_head, store.state.counted) = (head, index_head, value);
        store.state.tail = head;
        store.state.floor = Floor { tail: head, index_tail: index_head };
        store.pending.begin_at(head);
        store.begin_opening(epoch, head - 1)?;
        store.write_map(epoch)?;
        store.write_opening_root(epoch, None)?;
        Ok(store)
    }

    /// Opens a store. Nothing is written and the counter is not stepped before the first commit: until then what is shown
    /// is the newest whole commit, acknowledged or not.
    ///
    /// # Errors
    /// [`Error::NoCommit`], [`Error::Tampered`] or [`Error::Corrupt`] if there is no whole commit;
    /// [`Error::RolledBack`] and [`Error::CounterLost`] if the counter speaks against the newest one;
    /// [`Error::Geometry`], [`Error::BufferTooSmall`], [`Error::Device`], [`Error::Counter`].
    pub fn open(around: Surroundings<'a, D>, shape: Shape, memory: Memory<'a, W>) -> Result<Self, Error> {
        let Surroundings { device, vault, counter, entropy } = around;
        let salt = salt(shape.is_salted, counter.is_some(), vault, entropy)?;
        let mut store = Self::new(&device.geometry(), device, vault, shape, memory)?;
        (store.counter, store.salt) = (counter, salt);
        let found = store.recover()?;
        store.judge(&found)?;
        store.opened = Some(found);
        Ok(store)
    }

    /// Takes up writing, if this opening has not yet: what a cut left ahead of the counter is counted, and an opening root
    /// written and counted.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no room for an opening root, and those of writing.
    pub(crate) fn ready_to_write(&mut self) -> Result<Epoch, Error> {
        self.not_latched()?;
        if !self.vault.same_process() {
            return Err(Error::Misuse("the record store was opened by another process"));
        }
        match (self.state.epoch, self.opened.take()) {
            (Some(epoch), _) => Ok(epoch),
            (None, Some(found)) => {
                let begun = self.begin_writing(&found);
                self.opened = begun.is_err().then_some(found);
                begun
            }
            (None, None) => Err(Error::Misuse("the record store was not opened")),
        }
    }

    fn begin_writing(&mut self, found: &Found) -> Result<Epoch, Error> {
        let head = self.resume_at(self.state.form.data, found.head.sequence)?;
        let index_head = self.resume_at(self.state.form.index, found.root.index_head - 1)?;
        if self.state.free_from(self.state.floor.tail, head) < 1 {
            return Err(Error::Full { needed: 1, free: 0 });
        }
        self.device.flush()?;
        self.complete(found)?;
        (self.state.head, self.state.index_head, self.state.map_is_due) = (head, index_head, true);
        let mut before = found.head.sequence;
        if let Some((unused, _)) = found.root.opening {
            // Nothing was committed since that one: it stands in no map, and nobody needs its root any more.
            self.state.opening_count -= 1;
            before = unused.data_before;
        }
        let epoch = Epoch { number: found.root.counted + 2, salt: self.salt };
        let opening = self.begin_opening(epoch, before)?;
        self.write_opening_root(epoch, Some((opening, found.map_epoch())))?;
        self.regain_reserve()?;
        self.retire_openings()?;
        Ok(epoch)
    }

    fn new(
        geometry: &counterfoil_flash::Geometry,
        device: &'a mut D,
        vault: &'a Vault,
        shape: Shape,
        memory: Memory<'a, W>,
    ) -> Result<Self, Error> {
        let (form, sizes) = (shape.form(geometry)?, shape.sizes::<W>(geometry)?);
        let memory = memory.trimmed(&form, &shape, &sizes)?;
        memory.leaves.fill(W::NONE);
        Ok(Standalone {
            device,
            vault,
            counter: None,
            salt: [0; SALT_BYTES],
            opened: None,
            pending: Pending::new(memory.pending, 0),
            leaves: memory.leaves,
            live: LiveEntries::new(memory.live, form.data.pages, shape.page_entries),
            openings: memory.openings,
            page: memory.page,
            scratch: memory.scratch,
            full_at: None,
            state: State::empty(form, shape.page_entries, sizes.leaf_ids),
        })
    }

    /// Finds the newest commit and reads what it says.
    fn recover(&mut self) -> Result<Found, Error> {
        let mut below = u64::MAX;
        let mut failure = None;
        for _ in 0..recovery::LOADS_MAX {
            let Some(found) = recovery::newest::<D, W>(self.device, self.vault, &self.state.form, below, self.page)?
            else {
                break;
            };
            match self.load(&found) {
                Err(error @ (Error::Tampered { .. } | Error::Corrupt { .. })) => {
                    failure.get_or_insert(error);
                    below = found.head.sequence;
                }
                outcome => return outcome.map(|()| found),
            }
        }
        Err(failure.unwrap_or(Error::NoCommit { claims: 0 }))
    }

    /// Holds the commit against the counter.
    fn judge(&mut self, found: &Found) -> Result<(), Error> {
        let Some(counter) = &mut self.counter else { return Ok(()) };
        let present = counter.value().map_err(Error::Counter)?;
        let image = found.root.counted;
        match judge(image, found.is_opening, present.value) {
            Err(Refused::RolledBack { version, counter }) => Err(Error::RolledBack { image: version, counter }),
            Err(Refused::CounterLost { version, counter }) => Err(Error::CounterLost { image: version, counter }),
            Ok(Accepted::Level) if present.tag.is_some_and(|tag| tag != found.tag) => {
                Err(Error::RolledBack { image, counter: present.value })
            }
            Ok(_) => Ok(()),
        }
    }

    /// Steps the counter up to what a cut left ahead of it.
    fn complete(&mut self, found: &Found) -> Result<(), Error> {
        self.judge(found)?;
        let Some(counter) = &mut self.counter else { return Ok(()) };
        let present = counter.value().map_err(Error::Counter)?;
        for value in present.value + 1..=found.root.counted {
            counter.step(value, &found.tag).map_err(Error::Counter)?;
        }
        Ok(())
    }

    /// Where writing goes on in a ring whose newest page of ours is `last`. Behind it a cut may have left pages, and one
    /// more that was begun and does not show it: where pages are programmed once, that one is passed over.
    fn resume_at(&mut self, ring: Ring, last: u64) -> Result<u64, Error> {
        if !self.device.geometry().erase_before_program {
            return Ok(last + 1);
        }
        let end = ring.fresh_block(last + 1);
        let mut written = last;
        for sequence in last + 1..end {
            if !self.is_blank(ring.page(sequence))? {
                written = sequence;
            }
        }
        Ok((written + 2).min(end))
    }

    fn is_blank(&mut self, page: PageNumber) -> Result<bool, Error> {
        match self.device.read(page, 0, self.scratch) {
            Ok(()) => Ok(self.scratch.iter().all(|byte| *byte == 0xFF)),
            Err(counterfoil_flash::Error::Latched) => Err(Error::Latched),
            Err(_) => Ok(false),
        }
    }

    /// Puts our own opening into the list.
    fn begin_opening(&mut self, epoch: Epoch, data_before: u64) -> Result<Opening, Error> {
        let own = Opening { data_before, data_first: self.state.head, index_first: self.state.index_head, epoch };
        self.add_opening(own)?;
        self.state.epoch = Some(epoch);
        Ok(own)
    }

    /// Writes the opening root two above the counter, and steps it twice.
    fn write_opening_root(&mut self, epoch: Epoch, told: Option<(Opening, Epoch)>) -> Result<(), Error> {
        let outcome = self.try_opening_root(epoch, told);
        self.state.latched |= outcome.is_err();
        outcome
    }

    fn try_opening_root(&mut self, epoch: Epoch, told: Option<(Opening, Epoch)>) -> Result<(), Error> {
        let counted = self.state.counted + 2;
        let root = self.root(counted, told);
        let head = Head { sequence: self.state.head, epoch };
        self.page.fill(0);
        let page = self.state.data_page(head.sequence);
        self.live.clear_page(page);
        let form = &self.state.form;
        let body = form.opening_body_mut(self.page);
        let at = Draft::new(body.len()).finish_commit(body, 0, told.is_some());
        root.encode::<W>(body, at, &head);
        let tag = form.write(self.device, self.vault, &form.data, (&head, true), self.page)?;
        self.device.flush()?;
        if let Some(counter) = &mut self.counter {
            for value in [counted - 1, counted] {
                counter.step(value, &tag).map_err(Error::Counter)?;
            }
        }
        self.committed(head.sequence, tag, counted);
        Ok(())
    }
}

impl State {
    /// Of a store of which nothing is known yet.
    fn empty(form: Form, page_entries: u32, leaf_ids: u32) -> State {
        State {
            form,
            page_entries,
            leaf_ids,
            epoch: None,
            version: 0,
            tag: [0; 16],
            counted: 0,
            tail: 0,
            head: 0,
            index_head: 0,
            map: 0,
            map_is_due: false,
            opening_count: 0,
            ids: 0,
            cursor: 0,
            floor: Floor { tail: 0, index_tail: 0 },
            latched: false,
        }
    }
}

/// The random bytes of an opening, in salted stores.
fn salt(
    is_salted: bool,
    has_counter: bool,
    vault: &Vault,
    entropy: Option<&mut dyn Entropy>,
) -> Result<[u8; SALT_BYTES], Error> {
    let mut salt = [0; SALT_BYTES];
    match entropy.filter(|_| is_salted) {
        Some(entropy) => entropy.fill(&mut salt).map_err(|_| Error::Misuse("the generator has nothing to give"))?,
        None if is_salted => return Err(Error::Misuse("a salted store needs a generator")),
        None if !has_counter && vault.suite() != Suite::Aes256GcmSiv => {
            return Err(Error::Misuse("without counter and generator only a misuse-resistant cipher is safe"));
        }
        None => {}
    }
    Ok(salt)
}
