//! The two copies of a doubled window, held against each other and made good.
//!
//! Every page that the newest commit needs is looked at in both copies: those of the runs after the tail, and those of
//! the index copy. A copy is made good with the bytes of the other one, so no position ever gets bytes that it did not
//! have, and a cut on the way leaves the good one.

use counterfoil_flash::{Device, Error as FlashError, PageNumber, Read};
use counterfoil_vault::Vault;

use crate::error::Error;
use crate::head::Head;
use crate::ring_io;
use crate::run::Run;
use crate::state::State;
use crate::store::Store;
use crate::view::View;
use crate::window::Ring;

/// The pages that the newest commit needs.
fn needed<'s>(state: &'s State, runs: &'s [Run]) -> impl Iterator<Item = (&'s Ring, Head)> {
    let (data, index, copy) = (&state.layout.data, &state.layout.index, state.copy);
    let of_run = move |run: &'s Run| {
        (run.first.max(state.tail)..run.end).map(move |sequence| (data, Head { sequence, epoch: run.epoch }))
    };
    let of_copy = copy.first..copy.first + copy.pages(&state.layout);
    runs.iter().flat_map(of_run).chain(of_copy.map(move |sequence| (index, Head { sequence, epoch: copy.epoch })))
}

/// The copies of a page, and whether each authenticates.
fn compare<R: Read + ?Sized>(
    device: &R,
    vault: &Vault,
    (ring, head): (&Ring, &Head),
    scratch: &mut [u8],
) -> Result<impl Iterator<Item = (PageNumber, bool)> + Clone + use<R>, Error> {
    let mut is_good = [false; 2];
    for (good, page) in is_good.iter_mut().zip(ring.copies(head.sequence)) {
        *good = match ring_io::authenticate(device, vault, ring, head, page, scratch) {
            Ok(_) => true,
            Err(Error::Device(FlashError::Latched)) => return Err(Error::Latched),
            Err(_) => false,
        };
    }
    Ok(ring.copies(head.sequence).zip(is_good))
}

impl<R: Read + ?Sized> View<'_, R> {
    /// Tells of every copy of a needed page that does not authenticate, and whether another one does.
    pub(crate) fn damaged_pages(&mut self, mut each: impl FnMut(PageNumber, bool)) -> Result<(), Error> {
        for (ring, head) in needed(self.state, self.runs) {
            let copies = compare(self.device, self.vault, (ring, &head), self.scratch)?;
            let is_there = copies.clone().any(|(_, good)| good);
            copies.filter(|(_, good)| !good).for_each(|(page, _)| each(page, is_there));
        }
        Ok(())
    }
}

impl<D: Device + ?Sized> Store<'_, D> {
    /// Writes every copy anew that is damaged while the other one is whole; how many there were. Where a page must be
    /// erased before it is programmed nothing is done: the ring comes round to it.
    ///
    /// # Errors
    /// [`Error::Device`], after which the store answers [`Error::Latched`]; [`Error::Misuse`] in another process.
    pub fn mend_copies(&mut self) -> Result<u32, Error> {
        self.not_latched()?;
        self.require_same_process()?;
        if self.device.geometry().erase_before_program {
            return Ok(0);
        }
        let mended = self.mend();
        self.state.latched = mended.is_err();
        mended
    }

    fn mend(&mut self) -> Result<u32, Error> {
        let runs = self.buffers.runs.get(..self.state.run_count).unwrap_or_default();
        let (device, scratch) = (&mut *self.device, &mut *self.buffers.scratch);
        let mut mended = 0;
        for (ring, head) in needed(&self.state, runs) {
            let copies = compare(&*device, self.vault, (ring, &head), scratch)?;
            let whole = copies.clone().find(|(_, good)| *good);
            let damaged = copies.clone().find(|(_, good)| !good);
            if let (Some((whole, _)), Some((damaged, _))) = (whole, damaged) {
                device.read(whole, 0, scratch)?;
                device.program(damaged, scratch)?;
                mended += 1;
            }
        }
        if mended > 0 {
            device.flush()?;
        }
        Ok(mended)
    }
}
