//! Checkpoints: everything since the last one folded into the record store, so that recovery stays short and the spine
//! before it can be reused.
//!
//! A cut between the record store's commit and the frame that names it leaves a checkpoint that is not named yet: it
//! tells of the same commit as the frames before it, and either is a good beginning.

use alloc::vec::Vec;

use super::Writer;
use crate::Error;
use crate::checkpoint::Checkpoint;
use crate::frame::{Each, Element};
use crate::layout::HEADER_EXTENTS;
use crate::space::Owner;

/// Frames after which a checkpoint is due. What changed since the last one is noted in memory, and all of it is there at once when
/// it is written.
const FRAMES_BETWEEN_CHECKPOINTS: u64 = if cfg!(feature = "small") { 64 } else { 1024 };
/// Spine extents after which a checkpoint is due, however few frames they hold.
const SPINE_EXTENTS_MAX: usize = 8;

impl Writer {
    /// What is due now and then after a commit, which stands: where there is no room, it waits.
    pub(super) fn tidy(&mut self, records_changed: bool) -> Result<(), Error> {
        if self.window_moves {
            return Ok(());
        }
        let record_bytes = self.record_bytes;
        let grows = records_changed && self.store.is_small_for(record_bytes) && self.settings.headers.is_some();
        let done = if grows && self.room_for(record_bytes) {
            self.grow_window(record_bytes)
        } else if self.checkpoint_is_due() {
            self.checkpoint()
        } else {
            Ok(())
        };
        self.unless_full(done)
    }

    /// No room for a checkpoint: the spine stays longer, until there is.
    fn unless_full(&mut self, done: Result<(), Error>) -> Result<(), Error> {
        match done {
            Err(error) if error.is_full() && !self.failed => {
                self.frames_since_checkpoint = 0;
                Ok(())
            }
            other => other,
        }
    }

    /// Right after an opening whose last page nothing vouches for. On raw flash a page that a cut met while it was programmed
    /// may read well now and badly later: what is acknowledged from here on must not depend on reading it again, so recovery
    /// is to begin behind it. Where there is no room for that, it is believed.
    pub(crate) fn leave_spine_behind(&mut self) -> Result<(), Error> {
        if !self.writes_once() {
            return Ok(());
        }
        let done = self.checkpoint();
        self.unless_full(done)
    }

    /// Right after an opening: openings that were cut short again and again leave a long spine behind.
    pub(crate) fn shorten_spine_if_long(&mut self) -> Result<(), Error> {
        if self.spine_extents() <= 2 * SPINE_EXTENTS_MAX && (self.spine_extents() <= 3 || !self.space_is_low()) {
            return Ok(());
        }
        let done = self.checkpoint();
        self.unless_full(done)
    }

    /// Makes a checkpoint if anything is told by frames alone: the next opening then has little to follow, and what a
    /// database at rest holds does not hang on single pages of the spine.
    pub(super) fn checkpoint_before_closing(&mut self) -> Result<(), Error> {
        if self.state.changed.is_empty() && self.spine_extents() <= SPINE_EXTENTS_MAX {
            return Ok(());
        }
        let done = self.checkpoint();
        self.unless_full(done)
    }

    fn checkpoint_is_due(&mut self) -> bool {
        self.frames_since_checkpoint >= FRAMES_BETWEEN_CHECKPOINTS
            || (self.spine_extents() > 3 && self.space_is_low())
            || (self.end.position >= self.pages.layout.extent_pages / 2 && self.spine_extents() > SPINE_EXTENTS_MAX)
    }

    /// Extents of the spine that recovery would go through.
    fn spine_extents(&self) -> usize {
        let space = &self.state.space;
        let first = self.base.extent.unwrap_or(self.base.next).allocation;
        let spine = space.owned_by(Owner::Spine).filter(|extent| space.allocation(*extent) >= Some(first));
        spine.count()
    }

    /// Folds everything since the last checkpoint into the record store, so that the spine before it can be reused.
    ///
    /// # Errors
    /// [`Error::misuse`] while a commit is under way, [`Error::full`], [`crate::Cause::Device`], [`crate::Cause::CounterLost`].
    #[inline(never)]
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.require_sound()?;
        if self.pending.is_some() {
            return Err(Error::misuse("a commit is under way"));
        }
        if self.window_moves {
            return Err(Error::misuse("the record store is moving"));
        }
        self.ask_for_room()?;
        self.flush_frames()?;
        self.state.root.forget_epochs(self.end.epoch.number);
        loop {
            match self.write_checkpoint() {
                Ok(version) => {
                    self.base = self.end.clone();
                    return self.name_checkpoint(version);
                }
                Err(error) if error.is_full() && self.make_room_for_checkpoint()? => {}
                Err(error) if error.is_full() && self.settings.headers.is_some() => return self.grow_window(0),
                Err(error) if error.is_full() => return Err(error),
                Err(error) => {
                    self.failed = true;
                    return Err(error);
                }
            }
        }
    }

    /// Writes what changed since the last checkpoint to the record store. Where something hinders it, the next one writes
    /// all of it: its spine begins where this one's would have, or later.
    #[inline(never)]
    fn write_checkpoint(&mut self) -> Result<u64, Error> {
        let checkpoint = Checkpoint { state: &self.state, end: &self.end };
        let version = self.store.commit(&mut *self.device, &self.pages.vault, self.end.epoch, &checkpoint)?;
        self.state.changes_are_written();
        Ok(version)
    }

    /// Lets the record store move what is live together. The checkpoint that comes of it tells what the one before
    /// told, so the spine stays as it is; only the record store's own space is given back.
    #[inline(never)]
    fn make_room_for_checkpoint(&mut self) -> Result<bool, Error> {
        let prepared = self.store.prepare(&mut *self.device, &self.pages.vault, self.end.epoch);
        let Some(version) = prepared.inspect_err(|_| self.failed = true)? else { return Ok(false) };
        self.write_frame(&|_| Ok(()), version, true)?;
        self.count()?;
        self.store.release(version);
        Ok(true)
    }

    /// Writes the frame that names a checkpoint and frees the spine before it.
    #[inline(never)]
    fn name_checkpoint(&mut self, version: u64) -> Result<(), Error> {
        let needed_from = self.end.extent.unwrap_or(self.end.next).allocation;
        let mut before = self.state.space.spine();
        before.retain(|extent| extent.allocation < needed_from);
        let followed_from = self.followed_from(&before);
        let unread = before.iter().filter(|extent| extent.allocation < followed_from);
        let freed: Vec<u32> = unread.map(|extent| extent.number).chain(self.stray_windows()).collect();
        let told = |each: &mut Each<'_>| freed.iter().try_for_each(|number| each(Element::ExtentFreed(*number)));
        self.write_frame(&told, version, true)?;
        for number in freed {
            self.state.space.release(number, self.end.commit, self.end.version)?;
        }
        self.count()?;
        self.store.release(version);
        self.frames_since_checkpoint = 0;
        Ok(())
    }

    /// Extents of windows that the record store moved away from, or never moved to, because a cut came between.
    fn stray_windows(&self) -> impl Iterator<Item = u32> + '_ {
        let window = self.store.layout().window();
        let fixed = self.state.space.owned_by(Owner::Fixed);
        fixed.filter(move |extent| *extent >= HEADER_EXTENTS && !window.contains(extent))
    }
}
