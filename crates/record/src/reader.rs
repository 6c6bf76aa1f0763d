//! The store as a reader sees it: a medium that cannot be written through.

use counterfoil_flash::{PageNumber, Read};
use counterfoil_vault::Vault;

use crate::error::Error;
use crate::recovery::{self, Which};
use crate::state::{Buffers, Name, RecordId, State, Suspended};
use crate::store::live_ids;
use crate::view::View;
use crate::window::{Layout, Window};

/// A record store open for reading. It never writes; a writer beside it may overwrite what it reads once that is
/// released, which then fails to authenticate.
pub struct Reader<'a, R: Read + ?Sized> {
    device: &'a R,
    vault: &'a Vault,
    buffers: Buffers<'a>,
    state: State,
}

impl<'a, R: Read + ?Sized> Reader<'a, R> {
    /// Opens a store for reading.
    ///
    /// # Errors
    /// As [`crate::Store::open`].
    pub fn open(
        device: &'a R,
        vault: &'a Vault,
        window: Window,
        which: Which,
        buffers: Buffers<'a>,
    ) -> Result<Self, Error> {
        let layout = Layout::new(&device.geometry(), &window)?;
        let mut buffers = buffers.trimmed(&layout)?;
        let state = recovery::open(device, vault, layout, which, &mut buffers)?;
        Ok(Reader { device, vault, buffers, state })
    }

    /// Opens a store for reading and puts it aside at once, so that what is known of it is not moved about on a small stack.
    ///
    /// # Errors
    /// As [`crate::Store::open`].
    pub fn find(
        device: &R,
        vault: &Vault,
        window: Window,
        which: Which,
        buffers: Buffers<'_>,
    ) -> Result<Suspended, Error> {
        let layout = Layout::new(&device.geometry(), &window)?;
        let mut buffers = buffers.trimmed(&layout)?;
        recovery::open(device, vault, layout, which, &mut buffers).map(Suspended)
    }

    /// Takes up again what was put aside. The buffers must be the same, with what was in them.
    ///
    /// # Errors
    /// As [`crate::Store::resume`].
    pub fn resume(device: &'a R, vault: &'a Vault, suspended: Suspended, buffers: Buffers<'a>) -> Result<Self, Error> {
        let buffers = suspended.taken_up(buffers)?;
        Ok(Reader { device, vault, buffers, state: suspended.0 })
    }

    /// Puts the store aside, for [`crate::Store::resume`] with the same buffers.
    pub fn suspend(self) -> Suspended {
        Suspended(self.state)
    }

    /// The commit that was opened.
    pub fn version(&self) -> u64 {
        self.state.version
    }

    /// The commit that was opened, in a way that no other commit shares.
    pub fn name(&self) -> Name {
        self.state.name()
    }

    /// As [`crate::Store::read`].
    ///
    /// # Errors
    /// As there.
    pub fn read(&mut self, id: RecordId, buffer: &mut [u8]) -> Result<usize, Error> {
        self.view().read(id, buffer)
    }

    /// As [`crate::Store::visit`].
    ///
    /// # Errors
    /// As there.
    pub fn visit<E: From<Error>>(&mut self, each: impl FnMut(RecordId, &[u8]) -> Result<(), E>) -> Result<(), E> {
        self.view().visit(each)
    }

    /// As [`crate::Store::damaged_pages`].
    ///
    /// # Errors
    /// As there.
    pub fn damaged_pages(&mut self, each: impl FnMut(PageNumber, bool)) -> Result<(), Error> {
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

    fn view(&mut self) -> View<'_, R> {
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
