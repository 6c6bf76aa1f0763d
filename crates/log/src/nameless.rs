//! Reading nameless pages: what the parent says a page must be, or nothing.

use alloc::vec;

use counterfoil_flash::Read;
use counterfoil_vault::{Kind, Opened, Sealed, TAG_BYTES};

use crate::Error;
use crate::pages::Pages;
use crate::pool::{NamelessPage, PoolId};
use crate::root::Root;

const WHAT: &str = "nameless page";

impl Pages {
    /// Reads the first bytes of a nameless page as `root` has it.
    pub(crate) fn read_nameless(
        &self,
        root: &Root,
        id: PoolId,
        page: NamelessPage,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        if buffer.len() > self.layout.payload() {
            return Err(Error::misuse("a nameless page has fewer bytes"));
        }
        let stale = || Error::tampered(WHAT, page.page);
        let (extent, position, epoch) = root.pool(id)?.locate(page).ok_or_else(stale)?;
        let address = self.layout.page(extent.number, position);
        let name = (address.0, extent.allocation, epoch, page.write);
        if self.cache.copy(&name, 0, buffer) {
            return Ok(());
        }
        let mut bytes = vec![0; self.layout.page_bytes as usize];
        self.open_nameless(root, id, page, &mut bytes)?;
        bytes.truncate(self.layout.payload());
        buffer.copy_from_slice(&bytes[..buffer.len()]);
        self.cache.keep(name, bytes);
        Ok(())
    }

    /// Reads a nameless page and tells its tag, if it opens.
    pub(crate) fn nameless_tag(&self, root: &Root, id: PoolId, page: NamelessPage) -> Result<[u8; TAG_BYTES], Error> {
        let mut bytes = vec![0; self.layout.page_bytes as usize];
        Ok(self.open_nameless(root, id, page, &mut bytes)?.tag())
    }

    fn open_nameless<'b>(
        &self,
        root: &Root,
        id: PoolId,
        page: NamelessPage,
        bytes: &'b mut [u8],
    ) -> Result<Opened<'b>, Error> {
        let stale = || Error::tampered(WHAT, page.page);
        let (extent, position, epoch) = root.pool(id)?.locate(page).ok_or_else(stale)?;
        let address = self.layout.page(extent.number, position);
        self.media.read(address, 0, bytes)?;
        let key = self.vault.page_key(Kind::Nameless, extent.allocation, &root.epoch(epoch)?);
        let opened = key.open_nameless(position, page.write, Sealed::from_medium(bytes));
        opened.map_err(|_| Error::tampered(WHAT, address.0))
    }
}
