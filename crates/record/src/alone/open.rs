//! Making a store, and opening it. Nothing is written by an opening before it takes up writing (writing.rs).

use counterfoil_flash::{Device, Geometry};
use counterfoil_vault::{Accepted, Counter, Entropy, Epoch, Refused, SALT_BYTES, Vault, judge};

use super::error::Error;
use super::live::LiveEntries;
use super::memory::{Memory, Shape};
use super::pages::{Pages, Spot};
use super::pending::Pending;
use super::recovery::{self, Found};
use super::sequence::Sequence;
use super::state::{Floor, State};
use super::store::Standalone;
use super::word::Word;

/// Commits that are not whole and are passed over, where an older one than the counter's is not wanted anyway.
const LOADS_MAX: u32 = 8;

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
    /// [`Error::Geometry`], [`Error::BufferTooSmall`], [`Error::Device`], [`Error::Counter`], [`Error::NoGenerator`].
    pub fn format(around: Surroundings<'a, D>, shape: Shape, memory: Memory<'a, W>) -> Result<Self, Error> {
        let form = shape.form::<W>(&around.device.geometry())?;
        let (head, index_head) = (form.data.start(), form.index.start());
        let mut store = Self::new(&around.device.geometry(), around.device, around.vault, shape, memory)?;
        if store.pending.capacity() < shape.pending_to_make(store.leaves.len()) {
            return Err(Error::BufferTooSmall);
        }
        store.counter = around.counter;
        let value = match &mut store.counter {
            Some(counter) => counter.value().map_err(|_| Error::Counter)?.value,
            None => 0,
        };
        let salt = salt(shape.is_salted, store.counter.is_some(), store.pages.vault, around.entropy)?;
        if form.is_worn_out([head, index_head], value, 0) {
            return Err(Error::WornOut);
        }
        // A making that is cut may be begun anew in another shape: it must not come upon the same keys.
        let value = value + 1;
        store.step(value, &[0; 16])?;
        let epoch = Epoch { number: value + 2, salt };
        for block in 0..store.pages.blocks() {
            store.pages.erase(block)?;
            store.write_zeros(block)?;
        }
        store.state.version = form.data.before(head, 1);
        (store.state.head, store.state.index_head, store.state.counted) = (head, index_head, value);
        store.state.tail = head;
        store.state.floor = Floor { tail: head, index_tail: index_head };
        store.pending.begin_at(head);
        store.begin_opening(epoch, store.state.version)?;
        store.write_map()?;
        store.write_opening_root(None)?;
        Ok(store)
    }

    /// Where nothing is erased, an older store's pages would be left: without a counter its newest one could be taken for ours.
    fn write_zeros(&mut self, block: u32) -> Result<(), Error> {
        self.scratch.fill(0);
        let pages = if self.pages.needs_erase() { 0 } else { self.pages.geometry().block_pages };
        (0..pages).try_for_each(|page| self.pages.program(Spot { block, page }, self.scratch))
    }

    /// Opens a store. Nothing is written and the counter is not stepped before the first commit: until then what is shown
    /// is the newest whole commit, acknowledged or not.
    ///
    /// # Errors
    /// [`Error::NoCommit`], [`Error::Tampered`] or [`Error::Corrupt`] if there is no whole commit;
    /// [`Error::RolledBack`] and [`Error::CounterLost`] if the counter speaks against the newest one;
    /// [`Error::Geometry`], [`Error::BufferTooSmall`], [`Error::Device`], [`Error::Counter`].
    pub fn open(around: Surroundings<'a, D>, shape: Shape, memory: Memory<'a, W>) -> Result<Self, Error> {
        Self::open_with(around, shape, memory, 0)
    }

    /// Opens a store even if its counter stands above it, unless the image says that this has happened `rollbacks_max` times
    /// before: for devices that nobody looks after, on media that lie about what they have written. It is written down in the
    /// image at once, and [`Standalone::rollbacks`] tells of it from then on. That bounds what a medium forgets, and nothing for
    /// one who has the flash: who puts the same older image back again puts back what it says of this, too.
    ///
    /// # Errors
    /// As [`Standalone::open`], and those of writing.
    pub fn open_despite_rollback(
        around: Surroundings<'a, D>,
        shape: Shape,
        memory: Memory<'a, W>,
        rollbacks_max: u16,
    ) -> Result<Self, Error> {
        Self::open_with(around, shape, memory, rollbacks_max)
    }

    fn open_with(
        around: Surroundings<'a, D>,
        shape: Shape,
        memory: Memory<'a, W>,
        rollbacks_max: u16,
    ) -> Result<Self, Error> {
        let Surroundings { device, vault, counter, entropy } = around;
        let salt = match salt(shape.is_salted, counter.is_some(), vault, entropy) {
            // Who only reads needs none.
            Err(Error::NoGenerator) => None,
            salt => Some(salt?),
        };
        let mut store = Self::new(&device.geometry(), device, vault, shape, memory)?;
        (store.counter, store.salt) = (counter, salt);
        store.locate_blocks()?;
        let loads_max = if rollbacks_max > 0 { store.state.form.data.pages } else { LOADS_MAX };
        let found = store.recover(loads_max)?;
        store.opened = Some(found);
        match store.judge(&found) {
            Err(Error::RolledBack) if store.state.rollbacks < rollbacks_max => store.go_on_from_older()?,
            outcome => outcome?,
        }
        Ok(store)
    }

    fn new(
        geometry: &Geometry,
        device: &'a mut D,
        vault: &'a Vault,
        shape: Shape,
        memory: Memory<'a, W>,
    ) -> Result<Self, Error> {
        let (form, sizes) = (shape.form::<W>(geometry)?, shape.sizes::<W>(geometry)?);
        let memory = memory.trimmed(&form, &shape, &sizes)?;
        memory.leaves.fill(W::NONE);
        // A name's place depends on how many ids there are for names.
        if u64::from(shape.names) > memory.leaves.len() as u64 * u64::from(sizes.leaf_ids) {
            return Err(Error::BufferTooSmall);
        }
        Ok(Standalone {
            pages: Pages::new(device, vault, memory.blocks, shape.first_block),
            counter: None,
            salt: None,
            opened: None,
            pending: Pending::new(memory.pending, Sequence::ZERO),
            leaves: memory.leaves,
            live: LiveEntries::new(memory.live, form.data.pages, shape.page_entries),
            openings: memory.openings,
            page: memory.page,
            scratch: memory.scratch,
            full_at: None,
            state: State::empty(form, shape, sizes.leaf_ids)?,
        })
    }

    /// Finds out which block of the rings stands where. Of two that claim to be the same the younger one is believed: the
    /// other is left from a lap before.
    fn locate_blocks(&mut self) -> Result<(), Error> {
        let form = self.state.form;
        for place in 0..if self.pages.needs_erase() { self.pages.blocks() } else { 0 } {
            let Some((block, age)) = form.identify(&self.pages, place, self.page)? else { continue };
            let present = self.pages.place(block);
            let other = form.identify(&self.pages, present, self.page)?;
            if present == place || other.is_none_or(|(other, its_age)| other != block || its_age < age) {
                self.pages.put(block, place);
            }
        }
        Ok(())
    }

    /// Finds the newest commit and reads what it says.
    fn recover(&mut self, loads_max: u32) -> Result<Found, Error> {
        let mut below = (u64::MAX, Sequence::ZERO);
        let mut failure = Error::NoCommit;
        for _ in 0..loads_max {
            let found = recovery::newest(&self.pages, &self.state.form, below, self.page)?;
            let Some(found) = found else { break };
            match self.load(&found) {
                Err(error @ (Error::Tampered | Error::Corrupt)) => {
                    if failure == Error::NoCommit {
                        failure = error;
                    }
                    below = found.head.age();
                }
                outcome => return outcome.map(|()| found),
            }
        }
        Err(failure)
    }

    /// Holds the commit against the counter.
    pub(crate) fn judge(&mut self, found: &Found) -> Result<(), Error> {
        let Some(counter) = &mut self.counter else { return Ok(()) };
        let present = counter.value().map_err(|_| Error::Counter)?;
        match judge(found.root.counted, found.head.is_opening, present.value) {
            Err(Refused::RolledBack { .. }) => Err(Error::RolledBack),
            Err(Refused::CounterLost { .. }) => Err(Error::CounterLost),
            Ok(Accepted::Level) if present.tag.is_some_and(|tag| tag != found.tag) => Err(Error::RolledBack),
            Ok(_) => Ok(()),
        }
    }

    /// Images behind their counter that were opened all the same, as far as this image knows.
    pub fn rollbacks(&self) -> u16 {
        self.state.rollbacks
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
        Some(entropy) => entropy.fill(&mut salt).map_err(|_| Error::NoGenerator)?,
        None if is_salted => return Err(Error::NoGenerator),
        None if !has_counter && !vault.suite().resists_misuse() => return Err(Error::NoGenerator),
        None => {}
    }
    Ok(salt)
}
