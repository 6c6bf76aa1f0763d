//! A medium in memory: for `:memory:` databases and for tests.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::{BlockNumber, Device, Error, Geometry, PageNumber, Read};

/// Placeholder until the shared storage is written.
#[derive(Clone)]
pub struct MemoryDevice {
    geometry: Geometry,
    bytes: Arc<Vec<u8>>,
}

impl Read for MemoryDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }
    fn read(&self, _page: PageNumber, _offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        buffer.copy_from_slice(self.bytes.get(..buffer.len()).ok_or(Error::Latched)?);
        Ok(())
    }
}

impl Device for MemoryDevice {
    fn program(&mut self, _page: PageNumber, _data: &[u8]) -> Result<(), Error> {
        Ok(())
    }
    fn erase(&mut self, _block: BlockNumber) -> Result<(), Error> {
        Ok(())
    }
    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
