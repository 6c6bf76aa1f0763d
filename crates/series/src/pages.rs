//! Pages of a table: nameless ones, each written once, and given back when nothing points to it any more.

use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::{NamelessPage, PoolId, PoolOptions, View};
use serde::{Deserialize, Serialize};

use crate::{Error, Storage};

/// Where a page is: what its parent knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageAt {
    pub(crate) page: u64,
    pub(crate) write: u64,
}

impl From<PageAt> for NamelessPage {
    fn from(at: PageAt) -> Self {
        NamelessPage { page: at.page, write: at.write }
    }
}

/// Where a table's pages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pages {
    pub(crate) pool: u64,
    /// Bytes of payload that each has.
    pub(crate) bytes: u32,
}

impl Pages {
    /// A place for pages.
    pub(crate) fn create(storage: &mut dyn Storage) -> Result<Pages, Error> {
        Ok(Pages { pool: storage.create_pool(PoolOptions::default())?.0, bytes: storage.page_bytes() as u32 })
    }

    /// The pool.
    pub(crate) fn pool(&self) -> PoolId {
        PoolId(self.pool)
    }

    /// Writes a page.
    pub(crate) fn write(&self, storage: &mut dyn Storage, payload: &[u8]) -> Result<PageAt, Error> {
        assert_eq!(payload.len(), self.bytes as usize, "a page is written whole");
        let NamelessPage { page, write } = storage.write_nameless(self.pool(), payload)?;
        Ok(PageAt { page, write })
    }

    /// Gives a page back: nothing points to it any more.
    pub(crate) fn free(&self, storage: &mut dyn Storage, at: PageAt) -> Result<(), Error> {
        Ok(storage.free_nameless(self.pool(), at.into())?)
    }

    /// Gives all pages back.
    pub(crate) fn drop(&self, storage: &mut dyn Storage) -> Result<(), Error> {
        Ok(storage.drop_pool(self.pool())?)
    }

    /// Reads a page.
    pub(crate) fn read(&self, view: &dyn View, at: PageAt) -> Result<Vec<u8>, Error> {
        let mut payload = vec![0; self.bytes as usize];
        view.read_nameless(self.pool(), at.into(), &mut payload)?;
        Ok(payload)
    }
}
