//! The record store's window grows by moving.
//!
//! ```text
//! new epoch -> new window, twice as large: all records as its first checkpoint, flush
//!           -> headers name the new window      a cut before or between: either window is a good beginning
//!           -> frame names the new checkpoint and frees the old window
//! ```
//! The new epoch comes first, because both stores count their pages from a lap of their own: under one epoch a page
//! of the one and a page of the other could meet the same key and nonce.

use alloc::boxed::Box;

use counterfoil_flash::PageNumber;
use counterfoil_vault::{Epoch, Kind};

use crate::checkpoint::Checkpoint;
use crate::frame::{Each, Element};
use crate::layout::{HEADER_EXTENTS, Layout};
use crate::opening;
use crate::reach::reach_to;
use crate::space::{Extent, Owner};
use crate::store::CheckpointStore;
use crate::writer::Writer;
use crate::{Cause, Error};

/// Extents that stay free for the spine when the window grows.
const SPINE_EXTENTS_KEPT: u32 = 4;

/// Keeps the headers, which are not the log's.
pub trait HeaderKeeper: Send {
    /// Random bytes for a new epoch.
    ///
    /// # Errors
    /// [`crate::Cause::NoEntropy`].
    fn salt(&mut self) -> Result<[u8; 16], Error>;

    /// Makes both copies of the header name this window for the record store, durably, copy by copy. May commit.
    ///
    /// # Errors
    /// Whatever committing and [`Writer::write_header`] can answer.
    fn move_window(&mut self, writer: &mut Writer, first_extent: u32, extents: u32) -> Result<(), Error>;
}

impl Writer {
    /// Writes pages at the start of one of the two header extents, and flushes them.
    ///
    /// # Errors
    /// [`Error::misuse`] for any other place; [`crate::Cause::Device`], which latches.
    pub fn write_header(&mut self, first: PageNumber, bytes: &[u8]) -> Result<(), Error> {
        self.require_sound()?;
        let layout = self.pages.layout;
        let is_header = (0..HEADER_EXTENTS).any(|extent| layout.page(extent, 0) == first);
        if !is_header || bytes.len() > layout.extent_pages as usize * layout.page_bytes as usize {
            return Err(Error::misuse("headers stand at the start of their extents"));
        }
        if self.device.geometry().erase_before_program {
            let extent = if layout.page(0, 0) == first { 0 } else { 1 };
            let erased = opening::prepare(&mut *self.device, &layout, extent);
            self.latch_on_error(erased)?;
        }
        let written = self.device.program(first, bytes).and_then(|()| self.device.flush());
        self.latch_on_error(written)
    }

    /// Whether records of so many bytes fit, here or in a window that can be moved to.
    pub(crate) fn require_room_for_records(&self, bytes: u64) -> Result<(), Error> {
        let bytes_max = self.store.bytes_max();
        if bytes <= bytes_max || self.window_moves || (self.settings.headers.is_some() && self.room_for(bytes)) {
            return Ok(());
        }
        // What takes less than before is taken even where all is too much.
        if bytes <= self.record_bytes { Ok(()) } else { Err(Error::from(Cause::TooLarge { bytes, bytes_max })) }
    }

    /// Whether the record store can move to where records of so many bytes have room to grow.
    pub(crate) fn room_for(&self, bytes: u64) -> bool {
        let kept = SPINE_EXTENTS_KEPT.saturating_add(2 * self.store.layout().reserve_extents());
        self.state.space.extents_left() > self.window_wanted(bytes).saturating_mul(2).saturating_add(kept)
    }

    fn window_wanted(&self, bytes: u64) -> u32 {
        let old = self.store.layout();
        old.window_extents_for(bytes).max(old.window_extents.saturating_mul(2))
    }

    /// Moves the record store to a window at least twice as large, with room for records of so many bytes.
    ///
    /// # Errors
    /// [`Error::full`] where there is no room or nobody keeps the headers; as [`Writer::checkpoint`].
    pub(crate) fn grow_window(&mut self, bytes: u64) -> Result<(), Error> {
        let full = || Error::full(u64::from(self.store.layout().window_extents), None);
        let mut keeper = self.settings.headers.take().ok_or_else(full)?;
        self.window_moves = true;
        let grown = self.grow_window_with(&mut *keeper, bytes);
        self.window_moves = false;
        self.settings.headers = Some(keeper);
        grown
    }

    fn grow_window_with(&mut self, keeper: &mut dyn HeaderKeeper, bytes: u64) -> Result<(), Error> {
        // The opening root of the new epoch follows frames that must be there before it.
        self.flush_frames()?;
        let old = self.store.layout();
        let salt = keeper.salt()?;
        let (first, extents, next) = self.reserve_window(bytes)?;
        let layout = Layout { window_first: first, window_extents: extents, ..old };
        self.renew_epoch(salt, next)?;
        let moved = self.fill_window(&layout).and_then(|store| {
            keeper.move_window(self, first, extents)?;
            Ok(store)
        });
        let (store, version) = moved.inspect_err(|_| self.failed = true)?;
        self.store = store;
        self.leave_window(&old, version)
    }

    /// Room for the new window, and the spine's next extent; nothing has changed if there is none.
    fn reserve_window(&mut self, bytes: u64) -> Result<(u32, u32, Extent), Error> {
        let extents = self.window_wanted(bytes);
        if !self.room_for(bytes) {
            return Err(Error::full(u64::from(self.state.space.len()), None));
        }
        let (layout, space) = (self.pages.layout, &mut self.state.space);
        let end = space.len() + 2 * extents;
        // What is kept for others stays on the medium, behind the window.
        let kept = SPINE_EXTENTS_KEPT + 2 * layout.reserve_of(end);
        let reached = reach_to(&mut *self.device, &layout, space, end + kept);
        if !self.latch_on_error(reached)? {
            return Err(Error::full(u64::from(self.state.space.end()), None));
        }
        let first = self.state.space.grant_stretch(2 * extents, Owner::Fixed)?;
        let window = first..first + 2 * extents;
        let prepared = window.clone().try_for_each(|extent| opening::prepare(&mut *self.device, &layout, extent));
        let next = self.latch_on_error(prepared).and_then(|()| self.grant_extent(Owner::Spine));
        let next = next.inspect_err(|_| window.for_each(|extent| self.state.space.cancel(extent, 0)))?;
        Ok((first, extents, next))
    }

    /// Names the first checkpoint of the new window and frees the old one.
    fn leave_window(&mut self, old: &Layout, version: u64) -> Result<(), Error> {
        let window = old.window();
        let freed = |each: &mut Each<'_>| window.clone().try_for_each(|extent| each(Element::ExtentFreed(extent)));
        self.write_frame(&freed, version, true)?;
        for extent in window {
            self.state.space.release(extent, self.end.commit, self.end.version)?;
        }
        self.count()?;
        self.store.release(version);
        Ok(())
    }

    /// Begins a new epoch without closing: what an opening does, for a process that is open already.
    fn renew_epoch(&mut self, salt: [u8; 16], next: Extent) -> Result<(), Error> {
        self.count()?;
        let number = opening::next_epoch_number(&self.end, 0)?;
        let epoch = Epoch { number, salt };
        let written = opening::write_root(
            &self.pages,
            &mut *self.device,
            &mut self.settings,
            (&mut self.state, &mut self.end),
            epoch,
            (self.store.version(), next),
        );
        written.inspect_err(|_| self.failed = true)?;
        self.counted = self.end.version;
        let extent = self.end.extent.ok_or_else(|| Error::misuse("the spine has no extent"))?;
        self.spine_key = self.pages.vault.page_key(Kind::Frame, extent.allocation, &epoch);
        self.grants.clear();
        Ok(())
    }

    /// Writes the whole state as the first checkpoint of a new window.
    fn fill_window(&mut self, layout: &Layout) -> Result<(Box<CheckpointStore>, u64), Error> {
        let (device, vault, epoch) = (&mut *self.device, &self.pages.vault, self.end.epoch);
        let mut store = CheckpointStore::create(device, vault, layout, epoch)?;
        self.state.mark_all_changed();
        let version = store.commit(device, vault, epoch, &Checkpoint { state: &self.state, end: &self.end })?;
        self.state.changes_are_written();
        self.base = self.end.clone();
        Ok((store, version))
    }
}
