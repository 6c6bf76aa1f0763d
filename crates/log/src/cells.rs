//! Reading and writing pages of cells.
//!
//! Who reads a few bytes reads and opens the cells that hold them. The MAC of the page is checked where all of the page is
//! read: scans, copies, `verify`. [`CellLatch`] sees to it that a forger has one guess at cells and not as many as there are
//! reads: after the first cell that did not open, cells are opened only out of pages whose MAC holds, until the volume is
//! opened again. So one damaged page makes reading slower, and hides nothing that is whole.
//!
//! Invariants:
//! 1. a cell is opened without its page's MAC only while no cell failed to open;
//! 2. a page stands in the cache only as a whole whose MAC held.

use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_vault::{CellKey, CellLatch, CellPage, Epoch, Tag, Vault};

use crate::lock::Lock;
use crate::pages::Pages;
use crate::root::{Root, Run};
use crate::{Error, Sealing};

/// Keys that are kept: those of the openings whose pages were touched last. Each takes up to two kilobytes.
const KEYS_KEPT: usize = if cfg!(feature = "std") { 8 } else { 2 };
/// A cache that has room for so many pages keeps those of cells as wholes: deciphering one is cheap there, and twice is not.
const PAGES_WORTH_KEEPING: usize = 64;

/// What is known of cells while a volume is open.
#[derive(Default)]
pub(crate) struct Cells {
    keys: Lock<Vec<(Epoch, Arc<CellKey>)>>,
    latch: CellLatch,
}

impl Cells {
    /// The key of the cells of an epoch.
    pub(crate) fn key(&self, vault: &Vault, epoch: Epoch) -> Arc<CellKey> {
        let is_it = |(of, _): &&(Epoch, Arc<CellKey>)| *of == epoch;
        if let Some(known) = self.keys.read(|keys| keys.iter().find(is_it).map(|(_, key)| key.clone())) {
            return known;
        }
        let key = Arc::new(vault.cell_key(&epoch));
        self.keys.write(|keys| {
            if keys.len() == KEYS_KEPT {
                keys.remove(0);
            }
            keys.push((epoch, key.clone()));
        });
        key
    }

    /// Opens neighbouring cells of a page without its MAC, in place.
    pub(crate) fn open(
        &self,
        page: &CellPage<'_>,
        first: usize,
        cells: &mut [u8],
        cell_payload: usize,
        address: u64,
    ) -> Result<(), Error> {
        let opened = self.latch.watch(page.open_cells(first as u16, cells, cell_payload));
        opened.map_err(|_| Error::tampered("cells of a container", address))
    }
}

impl Pages {
    /// Whether so many bytes of a page are read as the cells that hold them, and not as a part of the whole.
    pub(crate) fn reads_pieces(&self, sealing: Sealing, bytes: usize) -> bool {
        let is_piece = sealing.cell_payload().is_some() && bytes < sealing.payload(self.layout.page_bytes);
        is_piece && !self.cells.latch.tripped() && !self.cache.has_room_for(PAGES_WORTH_KEEPING, &self.layout)
    }

    /// Opens whole pages of cells in place, neighbours in a run.
    pub(crate) fn open_pages_of_cells(
        &self,
        root: &Root,
        (run, within): (&Run, u32),
        cell_payload: usize,
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        let key = self.cells.key(&self.vault, root.epoch(run.epoch)?);
        let first = run.position + within;
        for (position, page) in (first..).zip(bytes.chunks_exact_mut(self.layout.page_bytes as usize)) {
            let opened = key.page(run.allocation, position).open_page(page, cell_payload);
            let address = self.layout.page(run.extent, position);
            opened.map_err(|_| Error::tampered("page of cells", address.0))?;
        }
        Ok(())
    }

    /// The MAC of a page of cells as it was read, if it holds.
    pub(crate) fn check_page_of_cells(
        &self,
        root: &Root,
        (run, within): (&Run, u32),
        page: &[u8],
    ) -> Result<Tag, Error> {
        let position = run.position + within;
        let key = self.cells.key(&self.vault, root.epoch(run.epoch)?);
        let checked = key.page(run.allocation, position).check_page(page);
        let address = self.layout.page(run.extent, position);
        checked.map_err(|_| Error::tampered("page of cells", address.0))
    }

    /// Seals a page of cells in place and tells its MAC.
    pub(crate) fn seal_page_of_cells(
        &self,
        (allocation, position): (u64, u32),
        epoch: Epoch,
        cell_payload: usize,
        page: &mut [u8],
    ) -> Tag {
        self.cells.key(&self.vault, epoch).page(allocation, position).seal_page(page, cell_payload)
    }
}
