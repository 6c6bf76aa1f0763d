//! Copies of a volume: page by page under the same seals (backup), or sealed anew under another key.
//!
//! A backup is made beside a running writer. The fixed extents (headers, record store) are rewritten in place by the
//! writer's checkpoints, so they are taken into memory first ([`Captured`]); recovery then reads *that* copy, and all
//! that it finds stays put for as long as the caller holds a pin below every commit.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_flash::{self as flash, Device, Geometry, PageNumber, Read};

use crate::Error;
use crate::layout::Layout;
use crate::space::Owner;
use crate::volume::Recovered;

/// A medium whose record store is a copy in memory.
pub struct Captured {
    below: Arc<dyn Read + Send + Sync>,
    window: Vec<u8>,
    /// Where the window begins on the medium, in bytes.
    start: u64,
    page_bytes: u32,
}

impl Captured {
    /// Takes the record store into memory.
    ///
    /// # Errors
    /// [`crate::Cause::Device`].
    pub fn new(below: Arc<dyn Read + Send + Sync>, layout: &Layout) -> Result<Captured, Error> {
        let page_bytes = u64::from(layout.page_bytes);
        let first = layout.page(layout.window_first, 0);
        let bytes = layout.window().len() as u64 * u64::from(layout.extent_pages) * page_bytes;
        let bytes = usize::try_from(bytes).map_err(|_| Error::corrupt("layout of the volume"))?;
        let mut window = vec![0; bytes];
        below.read(first, 0, &mut window)?;
        Ok(Captured { below, window, start: first.0 * page_bytes, page_bytes: layout.page_bytes })
    }
}

impl Read for Captured {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), flash::Error> {
        let start = page.0.saturating_mul(u64::from(self.page_bytes)).saturating_add(u64::from(offset));
        let within = start.checked_sub(self.start).and_then(|start| usize::try_from(start).ok());
        let captured = within.and_then(|start| self.window.get(start..start.checked_add(buffer.len())?));
        match captured {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => self.below.read(page, offset, buffer)?,
        }
        Ok(())
    }
}

/// How far a copy has come: pages done, pages in all. Answering false stops it.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

impl Recovered {
    /// Copies every page that the newest commit needs to the same place of another medium, headers included, and
    /// flushes it. Returns false if `progress` stopped it.
    ///
    /// # Errors
    /// [`crate::Cause::Device`] of either medium, [`Error::full`] of the other one.
    pub fn copy_pages(&self, target: &mut dyn Device, progress: Progress<'_>) -> Result<bool, Error> {
        let layout = &self.pages.layout;
        let stretches = self.stretches();
        let total = stretches.iter().map(|(_, pages)| u64::from(*pages)).sum();
        let mut done = 0;
        let mut bytes = vec![0; layout.page_bytes as usize * layout.extent_pages as usize];
        for (first, pages) in stretches {
            let bytes = &mut bytes[..layout.page_bytes as usize * pages as usize];
            match self.pages.media.read(first, 0, bytes) {
                // What was granted and never written is not there to be copied.
                Err(flash::Error::OutOfRange { .. }) => {}
                other => {
                    other?;
                    program_unless_zero(target, first, layout.page_bytes as usize, bytes)?;
                }
            }
            done += u64::from(pages);
            if !progress(done, total) {
                return Ok(false);
            }
        }
        target.flush()?;
        Ok(true)
    }

    /// Everything to be copied, as first pages and counts within one extent each. Of the spine's last extent only
    /// what recovery has read: what a writer has appended since names pages that this copy does not have.
    fn stretches(&self) -> Vec<(PageNumber, u32)> {
        let layout = &self.pages.layout;
        let mut stretches = Vec::new();
        for extent in 0..self.state.space.len() {
            let whole = (layout.page(extent, 0), layout.extent_pages);
            let is = |other: Option<crate::space::Extent>| other.is_some_and(|other| other.number == extent);
            match self.state.space.owner(extent) {
                Owner::Fixed => stretches.push(whole),
                Owner::Spine if is(Some(self.end.next)) => {}
                Owner::Spine if is(self.end.extent) => stretches.push((whole.0, self.end.position.min(whole.1))),
                Owner::Spine => stretches.push(whole),
                Owner::Free | Owner::Group(_) | Owner::Pool(_) => {}
            }
        }
        for container in self.state.root.containers.values() {
            stretches.extend(container.runs.iter().map(|run| (layout.page(run.extent, run.position), run.pages)));
        }
        for (_, slot) in self.state.root.pools.values().flat_map(|pool| pool.slots()) {
            stretches.extend(slot.live.iter().map(|position| (layout.page(slot.extent.number, position), 1)));
        }
        stretches
    }
}

fn program_unless_zero(
    target: &mut dyn Device,
    first: PageNumber,
    page_bytes: usize,
    bytes: &[u8],
) -> Result<(), Error> {
    for (number, page) in (first.0..).zip(bytes.chunks_exact(page_bytes)) {
        if page.iter().any(|byte| *byte != 0) {
            target.program(PageNumber(number), page)?;
        }
    }
    Ok(())
}
