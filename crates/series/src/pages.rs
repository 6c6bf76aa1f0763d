//! Pages of a table: each is written once, and given back when nothing points to it any more.

use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::{ContainerId, GroupId, View};
use serde::{Deserialize, Serialize};

use crate::{Error, Storage};

/// Where a page is: what its parent knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageAt {
    pub(crate) page: u64,
    pub(crate) write: u64,
}

/// Where a table's pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pages {
    group: u64,
    container: u64,
    /// Bytes of payload that each has.
    pub(crate) bytes: u32,
}

impl Pages {
    /// A place for pages.
    pub(crate) fn create(storage: &mut dyn Storage) -> Result<Pages, Error> {
        let group = storage.create_group()?;
        Ok(Pages { group: group.0, container: storage.create_container(group)?.0, bytes: storage.page_bytes() as u32 })
    }

    /// Writes a page.
    pub(crate) fn write(&self, storage: &mut dyn Storage, payload: &[u8]) -> Result<PageAt, Error> {
        assert_eq!(payload.len(), self.bytes as usize, "a page is written whole");
        let offset = storage.append(ContainerId(self.container), payload)?;
        Ok(PageAt { page: offset / u64::from(self.bytes), write: 0 })
    }

    /// Gives a page back: nothing points to it any more.
    pub(crate) fn free(&self, _storage: &mut dyn Storage, _at: PageAt) -> Result<(), Error> {
        Ok(())
    }

    /// Gives all pages back.
    pub(crate) fn drop(&self, storage: &mut dyn Storage) -> Result<(), Error> {
        Ok(storage.drop_group(GroupId(self.group))?)
    }

    /// Reads a page.
    pub(crate) fn read(&self, view: &dyn View, at: PageAt) -> Result<Vec<u8>, Error> {
        let mut payload = vec![0; self.bytes as usize];
        let offset = at.page.checked_mul(u64::from(self.bytes)).ok_or(Error::Corrupt { what: "address of a page" })?;
        view.read(ContainerId(self.container), offset, &mut payload)?;
        Ok(payload)
    }
}
