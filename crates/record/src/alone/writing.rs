//! Taking up writing: what an opening does before it writes anything else.
//!
//! ```text
//! flush what was found | step the counter up to it | opening root, two above it | flush | read it back | step twice
//! ```
//! 1. So no two commits ever share a number, whatever image is put back between them (section 1 of the storage rules).
//! 2. A cut leaves what was found, or the opening root, which holds the same; pages behind them belong to nobody.

use counterfoil_flash::Device;
use counterfoil_vault::Epoch;

use super::commit::own_epoch;
use super::error::Error;
use super::form::Head;
use super::opening::Opening;
use super::page::Draft;
use super::pages::Spot;
use super::recovery::Found;
use super::sequence::{Ring, Sequence};
use super::store::Standalone;
use super::word::Word;

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
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

    /// Takes up writing above the counter, and writes down that the image was behind it.
    pub(crate) fn go_on_from_older(&mut self) -> Result<(), Error> {
        let (Some(counter), Some(found)) = (&mut self.counter, &mut self.opened) else { return Ok(()) };
        let present = counter.value().map_err(|_| Error::Counter)?;
        // As if it were the commit that was counted last: it is, from now on.
        (found.root.counted, found.tag) = (present.value, present.tag.unwrap_or(found.tag));
        self.state.counted = present.value;
        self.state.rollbacks += 1;
        self.ready_to_write()
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
    pub(crate) fn begin_opening(&mut self, epoch: Epoch, data_before: Sequence) -> Result<Opening, Error> {
        let own = Opening { data_before, data_first: self.state.head, index_first: self.state.index_head, epoch };
        self.add_opening(own)?;
        Ok(own)
    }

    /// Writes the opening root two above the counter, and steps it twice.
    pub(crate) fn write_opening_root(&mut self, told: Option<(Opening, Epoch)>) -> Result<(), Error> {
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
