//! Making a store, opening it, and taking up writing.
//!
//! Taking up writing is a commit (section 1 of the storage rules): what a cut left one step ahead of the counter is
//! stepped up to, an opening root is written two above the counter, and the counter steps twice before anything else is
//! written. So no two commits ever share a number, whatever image is put back between them.

use core::num::NonZeroU32;

use counterfoil_flash::{Device, Geometry};
use counterfoil_vault::{Accepted, Counter, Entropy, Epoch, Refused, SALT_BYTES, Vault, judge};

use super::commit::own_epoch;
use super::error::Error;
use super::form::{Form, Head};
use super::live::LiveEntries;
use super::memory::{Memory, Shape};
use super::opening::Opening;
use super::page::Draft;
use super::pages::{Pages, Spot};
use super::pending::Pending;
use super::recovery::{self, Found};
use super::sequence::{Ring, Sequence};
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

    /// Takes up writing, if this opening has not yet: what a cut left ahead of the counter is counted, and an opening root
    /// written and counted.
    ///
    /// # Errors
    /// [`Error::Full`] if there is no room for an opening root, and those of writing.
    pub(crate) fn ready_to_write(&mut self) -> Result<(), Error> {
        self.not_latched()?;
        if !self.pages.vault.same_process() {
            return Err(Error::OtherProcess);
        }
        let Some(found) = self.opened.take() else { return self.not_worn_out() };
        let begun = self.begin_writing(&found);
        if begun.is_err() {
            // Nothing was written, or the store has latched.
            self.opened = Some(found);
            return begun;
        }
        if self.state.opening_count + 2 >= self.openings.len() {
            self.retire_openings()?;
        }
        match self.regain_reserve() {
            Err(Error::Full) => {}
            outcome => outcome?,
        }
        self.retire_openings()
    }

    fn not_worn_out(&self) -> Result<(), Error> {
        let number = own_epoch(self.openings, self.state.opening_count).number;
        let commits = self.state.counted.saturating_sub(number);
        let heads = [self.state.head, self.state.index_head];
        if self.state.form.is_worn_out(heads, number, commits) { Err(Error::WornOut) } else { Ok(()) }
    }

    fn begin_writing(&mut self, found: &Found) -> Result<(), Error> {
        let head = self.resume_at(self.state.form.data, found.head.sequence)?;
        let index_head =
            self.resume_at(self.state.form.index, self.state.form.index.before(found.root.index_head, 1))?;
        if self.state.form.is_worn_out([head, index_head], found.root.counted, 0) {
            return Err(Error::WornOut);
        }
        if self.state.form.data.free(self.state.floor.tail, head) < 1 {
            return Err(Error::Full);
        }
        let salt = self.salt.ok_or(Error::NoGenerator)?;
        self.pages.flush()?;
        self.complete(found)?;
        (self.state.head, self.state.index_head, self.state.map_is_due) = (head, index_head, true);
        self.pages.go_on_from(self.state.form.data.block(found.head.sequence));
        let mut before = found.head.sequence;
        if let Some((unused, _)) = found.root.opening {
            // Nothing was committed since that one: it stands in no map, and nobody needs its root any more.
            self.state.opening_count -= 1;
            before = unused.data_before;
        }
        let epoch = Epoch { number: found.root.counted + 2, salt };
        let outcome = self.begin_opening(epoch, before).and_then(|opening| {
            let told = Some((opening, *found.map_epoch()));
            self.write_opening_root(told)
        });
        self.state.latched |= outcome.is_err();
        outcome
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
    fn judge(&mut self, found: &Found) -> Result<(), Error> {
        let Some(counter) = &mut self.counter else { return Ok(()) };
        let present = counter.value().map_err(|_| Error::Counter)?;
        match judge(found.root.counted, found.head.is_opening, present.value) {
            Err(Refused::RolledBack { .. }) => Err(Error::RolledBack),
            Err(Refused::CounterLost { .. }) => Err(Error::CounterLost),
            Ok(Accepted::Level) if present.tag.is_some_and(|tag| tag != found.tag) => Err(Error::RolledBack),
            Ok(_) => Ok(()),
        }
    }

    /// Takes up writing above the counter, and writes down that the image was behind it.
    fn go_on_from_older(&mut self) -> Result<(), Error> {
        let (Some(counter), Some(found)) = (&mut self.counter, &mut self.opened) else { return Ok(()) };
        let present = counter.value().map_err(|_| Error::Counter)?;
        // As if it were the commit that was counted last: it is, from now on.
        (found.root.counted, found.tag) = (present.value, present.tag.unwrap_or(found.tag));
        self.state.counted = present.value;
        self.state.rollbacks += 1;
        self.ready_to_write()
    }

    /// Images behind their counter that were opened all the same, as far as this image knows.
    pub fn rollbacks(&self) -> u16 {
        self.state.rollbacks
    }

    /// Steps the counter up to what a cut left ahead of it.
    fn complete(&mut self, found: &Found) -> Result<(), Error> {
        self.judge(found)?;
        let Some(counter) = &mut self.counter else { return Ok(()) };
        let present = counter.value().map_err(|_| Error::Counter)?;
        for value in present.value + 1..=found.root.counted {
            counter.step(value, &found.tag).map_err(|_| Error::Counter)?;
        }
        Ok(())
    }

    /// Where writing goes on in a ring whose newest page of ours is `last`. Behind it a cut may have left pages, and one
    /// more that was begun and does not show it: where pages are programmed once, that one is passed over.
    fn resume_at(&mut self, ring: Ring, last: Sequence) -> Result<Sequence, Error> {
        let (mut last_written, mut next) = (last, ring.after(last, 1));
        if !self.pages.needs_erase() || ring.in_block(next) == 0 {
            return Ok(next);
        }
        let end = ring.next_block(next);
        while next < end {
            if !self.is_blank(ring.spot(next))? {
                last_written = next;
            }
            next = ring.after(next, 1);
        }
        Ok(ring.after(last_written, 2).min(end))
    }

    /// Whether a page reads as erased.
    pub(crate) fn is_blank(&mut self, spot: Spot) -> Result<bool, Error> {
        match self.pages.read(spot, self.scratch) {
            Ok(()) => Ok(self.scratch.iter().all(|byte| *byte == 0xFF)),
            Err(counterfoil_flash::Error::Latched) => Err(Error::Latched),
            Err(_) => Ok(false),
        }
    }

    /// Puts our own opening into the list.
    fn begin_opening(&mut self, epoch: Epoch, data_before: Sequence) -> Result<Opening, Error> {
        let own = Opening { data_before, data_first: self.state.head, index_first: self.state.index_head, epoch };
        self.add_opening(own)?;
        Ok(own)
    }

    /// Writes the opening root two above the counter, and steps it twice.
    fn write_opening_root(&mut self, told: Option<(Opening, Epoch)>) -> Result<(), Error> {
        let counted = self.state.counted + 2;
        let root = self.root(counted, told);
        self.page.fill(0);
        self.live.clear_page(self.state.head.slot);
        self.enter_data(self.state.head)?;
        let (form, epoch) = (&self.state.form, own_epoch(self.openings, self.state.opening_count));
        let head = Head { sequence: self.state.head, epoch, is_opening: true };
        let body = form.opening_body_mut(self.page);
        let at = Draft::new(body.len(), 0).finish_commit(body, told.is_some());
        root.encode::<W>(form, body, at, &head);
        let tag = form.write(&mut self.pages, &form.data, head, self.page)?;
        self.pages.flush()?;
        // A cut in an opening before this one may have begun this page and left no trace of it: it is looked at once.
        let epoch = own_epoch(self.openings, self.state.opening_count);
        let head = Head { sequence: self.state.head, epoch, is_opening: true };
        form.open(&self.pages, &form.data, head, self.scratch).map_err(|_| Error::Device)?;
        self.step(counted - 1, &tag)?;
        self.step(counted, &tag)?;
        self.committed(self.state.head, tag, counted);
        Ok(())
    }
}

impl State {
    /// Of a store of which nothing is known yet.
    fn empty(form: Form, shape: Shape, leaf_ids: u32) -> Result<State, Error> {
        Ok(State {
            form,
            shape,
            page_entries: NonZeroU32::new(shape.page_entries).ok_or(Error::Geometry)?,
            leaf_ids: NonZeroU32::new(leaf_ids).ok_or(Error::Geometry)?,
            version: Sequence::ZERO,
            tag: [0; 16],
            counted: 0,
            group_is_open: false,
            tail: Sequence::ZERO,
            head: Sequence::ZERO,
            index_head: Sequence::ZERO,
            data_next: Sequence::ZERO,
            map: Sequence::ZERO,
            map_is_due: false,
            data_is_erased: false,
            index_is_erased: false,
            opening_count: 0,
            ids: 0,
            rollbacks: 0,
            purges: 0,
            ahead_end: None,
            cursor: shape.names,
            free_from: shape.names,
            floor: Floor { tail: Sequence::ZERO, index_tail: Sequence::ZERO },
            latched: false,
        })
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
