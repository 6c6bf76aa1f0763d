//! Reading and writing pages that are sealed sector by sector.
//!
//! ```text
//!  0              496   512            1008  1024                    n - 16
//!  | payload      | tag | payload      | tag | ...          | payload | tag |
//! ```
//! A sector is a page of its own: it is sealed at the position of its page times the sectors of a page, and its place among them,
//! with the keys of a kind of its own ([`Kind::Sector`]), and it opens there or not at all. So a block of an index that fits into
//! one costs one, and what is not in it is believed as if the whole page had been opened. What a frame says of a page's tag is
//! what all tags of its sectors come to by exclusive or: each sector answers for itself, and no place is written twice.

use alloc::vec;

use counterfoil_flash::Read;
use counterfoil_vault::{Epoch, Kind, Plain, Sealed, TAG_BYTES, Tag};

use crate::Error;
use crate::pages::Pages;
use crate::root::{Root, Run};
use crate::sealing::sectors;

/// Set in the last part of the name of a sector that is kept, beside its number: pages have zeros there.
const NAME_OF_A_SECTOR: u64 = 1 << 63;

impl Pages {
    fn sectors(&self) -> usize {
        sectors(self.layout.page_bytes as usize)
    }

    fn sector_bytes(&self) -> usize {
        self.layout.page_bytes as usize / self.sectors()
    }

    /// The place of a sector of a page as a position of its own.
    fn position(&self, page: u32, sector: usize) -> Result<u32, Error> {
        let position = page.checked_mul(self.sectors() as u32).and_then(|first| first.checked_add(sector as u32));
        position.ok_or_else(|| Error::corrupt("place of a page"))
    }

    /// Reads bytes of a page that are sealed in sectors, from `skip` on, through the cache.
    pub(crate) fn read_sectors(
        &self,
        root: &Root,
        (run, within): (&Run, u32),
        skip: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let payload = self.sector_bytes() - TAG_BYTES;
        let (mut skip, mut rest) = (skip, out);
        while !rest.is_empty() {
            let (sector, start) = (skip / payload, skip % payload);
            let take = rest.len().min(payload - start);
            let (part, others) = rest.split_at_mut(take);
            self.read_sector(root, (run, within), sector, (start, part))?;
            (skip, rest) = (skip + take, others);
        }
        Ok(())
    }

    fn read_sector(
        &self,
        root: &Root,
        (run, within): (&Run, u32),
        sector: usize,
        (start, out): (usize, &mut [u8]),
    ) -> Result<(), Error> {
        let address = self.layout.page(run.extent, run.position + within);
        let name = (address.0, run.allocation, run.epoch, NAME_OF_A_SECTOR | sector as u64);
        if self.cache.copy(&name, start, out) {
            return Ok(());
        }
        let mut bytes = vec![0; self.sector_bytes()];
        self.media.read(address, (sector * self.sector_bytes()) as u32, &mut bytes)?;
        let key = self.vault.page_key(Kind::Sector, run.allocation, &root.epoch(run.epoch)?);
        let opened = key.open(self.position(run.position + within, sector)?, Sealed::from_medium(&mut bytes));
        opened.map_err(|_| Error::tampered("sector of a container", address.0))?;
        bytes.truncate(self.sector_bytes() - TAG_BYTES);
        out.copy_from_slice(&bytes[start..start + out.len()]);
        self.cache.keep(name, bytes);
        Ok(())
    }

    /// Opens a whole page in place, what it holds without gaps at its beginning, and tells its tag.
    pub(crate) fn open_sectors(&self, root: &Root, (run, within): (&Run, u32), page: &mut [u8]) -> Result<Tag, Error> {
        let key = self.vault.page_key(Kind::Sector, run.allocation, &root.epoch(run.epoch)?);
        let (bytes, payload) = (self.sector_bytes(), self.sector_bytes() - TAG_BYTES);
        let address = self.layout.page(run.extent, run.position + within);
        let mut all = Tag::default();
        for (sector, sealed) in page.chunks_exact_mut(bytes).enumerate() {
            let opened = key.open(self.position(run.position + within, sector)?, Sealed::from_medium(sealed));
            let opened = opened.map_err(|_| Error::tampered("sector of a container", address.0))?;
            mix(&mut all, &opened.tag());
        }
        for sector in 1..self.sectors() {
            page.copy_within(sector * bytes..sector * bytes + payload, sector * payload);
        }
        Ok(all)
    }

    /// Seals a page in place, sector by sector, and tells its tag. What it holds stands without gaps at its beginning.
    pub(crate) fn seal_sectors(
        &self,
        (allocation, position): (u64, u32),
        epoch: &Epoch,
        page: &mut [u8],
    ) -> Result<Tag, Error> {
        let key = self.vault.page_key(Kind::Sector, allocation, epoch);
        let (bytes, payload) = (self.sector_bytes(), self.sector_bytes() - TAG_BYTES);
        let mut all = Tag::default();
        // From the last one on: a sector is wider than what it holds.
        for sector in (0..self.sectors()).rev() {
            page.copy_within(sector * payload..(sector + 1) * payload, sector * bytes);
            let plain = Plain::new(&mut page[sector * bytes..(sector + 1) * bytes]);
            mix(&mut all, &key.seal(self.position(position, sector)?, plain).tag());
        }
        Ok(all)
    }
}

/// Takes the tag of a sector into that of its page.
fn mix(all: &mut Tag, tag: &Tag) {
    all.iter_mut().zip(tag).for_each(|(all, tag)| *all ^= tag);
}
