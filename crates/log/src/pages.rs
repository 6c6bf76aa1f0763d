//! Reading containers: from byte ranges to sealed pages and back.

use alloc::sync::Arc;
use alloc::vec;

use counterfoil_flash::Read;
use counterfoil_vault::{Kind, Place, Sealed, TAG_BYTES, Vault};

use crate::cache::PageCache;
use crate::cells::Cells;
use crate::layout::Layout;
use crate::pieces::Piece;
use crate::root::{Container, Root, Run};
use crate::{ContainerId, Error, Sealing};

/// Pages read at once at the most, so that a large read needs a bounded buffer.
const BATCH_PAGES: u32 = if cfg!(feature = "small") { 2 } else { 64 };
/// Reads of up to this many pages go through the cache; larger ones are scans and would only sweep it.
const CACHED_PAGES: u64 = 4;

/// Everything needed to turn addresses into authenticated bytes. Shared by all readers and the writer.
pub(crate) struct Pages {
    pub(crate) media: Arc<dyn Read + Send + Sync>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) layout: Layout,
    pub(crate) cache: PageCache,
    pub(crate) cells: Cells,
}

impl Pages {
    pub(crate) fn new(
        media: Arc<dyn Read + Send + Sync>,
        vault: Arc<Vault>,
        layout: Layout,
        cache_bytes: usize,
    ) -> Pages {
        Pages { media, vault, layout, cache: PageCache::new(cache_bytes), cells: Cells::default() }
    }

    /// Refuses a child that inherited all this by `fork`: it would seal other bytes than its parent in the same places.
    /// Asked before anything is granted, sealed or counted.
    pub(crate) fn require_same_process(&self) -> Result<(), Error> {
        if self.vault.same_process() {
            return Ok(());
        }
        Err(Error::misuse("this database was opened by another process, from which this one was forked"))
    }

    /// Reads bytes of a container as `root` has it.
    pub(crate) fn read(&self, root: &Root, id: ContainerId, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let container = root.container(id)?;
        let payload = container.payload(&self.layout) as u64;
        let full = container.pages() * payload;
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= full + container.tail.len() as u64);
        let end = end.ok_or_else(|| Error::corrupt("byte range of a container"))?;
        let in_pages = (end.min(full).saturating_sub(offset)) as usize;
        let (from_pages, from_tail) = buffer.split_at_mut(in_pages);
        if !from_tail.is_empty() {
            let start = (offset + in_pages as u64 - full) as usize;
            from_tail.copy_from_slice(&container.tail[start..start + from_tail.len()]);
        }
        if from_pages.is_empty() {
            return Ok(());
        }
        let (first, last) = (offset / payload, (offset + in_pages as u64 - 1) / payload);
        let skip = (offset % payload) as usize;
        if last - first < CACHED_PAGES {
            self.read_cached(root, container, first, skip, from_pages)
        } else {
            self.read_run_wise(root, container, first, skip, from_pages)
        }
    }

    pub(crate) fn locate(&self, container: &Container, page: u64) -> Result<(Run, u32), Error> {
        container.locate(page).ok_or_else(|| Error::corrupt("map of a container"))
    }

    /// Whether a page is kept as a whole.
    pub(crate) fn is_kept(&self, run: &Run, within: u32) -> bool {
        let address = self.layout.page(run.extent, run.position + within);
        self.cache.copy(&(address.0, run.allocation, run.epoch, 0), 0, &mut [])
    }

    /// Page by page, through the cache.
    pub(crate) fn read_cached(
        &self,
        root: &Root,
        container: &Container,
        first: u64,
        mut skip: usize,
        mut buffer: &mut [u8],
    ) -> Result<(), Error> {
        let payload = container.payload(&self.layout);
        for page in first.. {
            if buffer.is_empty() {
                break;
            }
            let (run, within) = self.locate(container, page)?;
            let address = self.layout.page(run.extent, run.position + within);
            let key = (address.0, run.allocation, run.epoch, 0);
            let take = buffer.len().min(payload - skip);
            let (part, rest) = buffer.split_at_mut(take);
            buffer = rest;
            let cell_payload = container.sealing.cell_payload();
            if container.sealing == Sealing::Sectors {
                self.read_sectors(root, (&run, within), skip, part)?;
            } else if self.cache.copy(&key, skip, part) {
                // It was opened as a whole before.
            } else if let Some(cell_payload) = cell_payload.filter(|_| self.reads_pieces(container.sealing, take)) {
                let piece = Piece { offset: skip as u64, bytes: take, at: 0 };
                self.read_cells(root, (&run, within), cell_payload, &[piece], part)?;
            } else {
                let mut bytes = vec![0; self.layout.page_bytes as usize];
                self.open_run(root, container.sealing, (&run, within), &mut bytes)?;
                bytes.truncate(payload);
                part.copy_from_slice(&bytes[skip..skip + take]);
                self.cache.keep(key, bytes);
            }
            skip = 0;
        }
        Ok(())
    }

    /// As many neighbouring pages at once as there are.
    fn read_run_wise(
        &self,
        root: &Root,
        container: &Container,
        first: u64,
        mut skip: usize,
        mut buffer: &mut [u8],
    ) -> Result<(), Error> {
        let (page_bytes, payload) = (self.layout.page_bytes as usize, container.payload(&self.layout));
        // No more than the caller has room for himself.
        let pages = (skip + buffer.len()).div_ceil(payload).min(BATCH_PAGES as usize);
        let mut scratch = vec![0; page_bytes * pages];
        let mut page = first;
        while !buffer.is_empty() {
            let (run, within) = self.locate(container, page)?;
            let wanted = (skip + buffer.len()).div_ceil(payload).min(BATCH_PAGES as usize) as u32;
            let count = wanted.min(run.pages - within);
            let bytes = &mut scratch[..page_bytes * count as usize];
            self.open_run(root, container.sealing, (&run, within), bytes)?;
            for opened in bytes.chunks_exact(page_bytes) {
                let take = buffer.len().min(payload - skip);
                let (part, rest) = buffer.split_at_mut(take);
                part.copy_from_slice(&opened[skip..skip + take]);
                buffer = rest;
                skip = 0;
            }
            page += u64::from(count);
        }
        Ok(())
    }

    /// Reads and opens neighbouring pages of a run in place.
    fn open_run(
        &self,
        root: &Root,
        sealing: Sealing,
        (run, within): (&Run, u32),
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        let position = run.position + within;
        let address = self.layout.page(run.extent, position);
        self.media.read(address, 0, bytes)?;
        if sealing == Sealing::Sectors {
            let pages = (within..).zip(bytes.chunks_exact_mut(self.layout.page_bytes as usize));
            return pages
                .into_iter()
                .try_for_each(|(within, page)| self.open_sectors(root, (run, within), page).map(drop));
        }
        if let Some(cell_payload) = sealing.cell_payload() {
            return self.open_pages_of_cells(root, (run, within), cell_payload, bytes);
        }
        let key = self.vault.page_key(Kind::Container, run.allocation, &root.epoch(run.epoch)?);
        for (index, page) in (0u32..).zip(bytes.chunks_exact_mut(self.layout.page_bytes as usize)) {
            let opened = key.open(position + index, Sealed::from_medium(page));
            opened.map_err(|_| Error::tampered("page of a container", address.0 + u64::from(index)))?;
        }
        Ok(())
    }

    /// Reads one page of a container and tells its tag, if it opens.
    pub(crate) fn tag_of(&self, root: &Root, id: ContainerId, page: u64) -> Result<[u8; TAG_BYTES], Error> {
        let container = root.container(id)?;
        let (run, within) = self.locate(container, page)?;
        let address = self.layout.page(run.extent, run.position + within);
        let mut bytes = vec![0; self.layout.page_bytes as usize];
        self.media.read(address, 0, &mut bytes)?;
        match container.sealing {
            Sealing::Whole => {}
            Sealing::Sectors => return self.open_sectors(root, (&run, within), &mut bytes),
            Sealing::Cells | Sealing::Pointers => return self.check_page_of_cells(root, (&run, within), &bytes),
        }
        let place = Place {
            kind: Kind::Container,
            allocation: run.allocation,
            position: run.position + within,
            epoch: root.epoch(run.epoch)?,
        };
        let opened = self.vault.open(&place, Sealed::from_medium(&mut bytes));
        Ok(opened.map_err(|_| Error::tampered("page of a container", address.0))?.tag())
    }
}
