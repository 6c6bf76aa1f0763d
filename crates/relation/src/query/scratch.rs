//! Where a query puts what it cannot keep in memory.

use counterfoil_log::{ContainerId, Storage, View};

use crate::Error;

/// Bytes that come back as they went out, until the query ends.
pub trait Scratch {
    /// Appends bytes; answers where they begin.
    ///
    /// # Errors
    /// [`Error::memory`] where there is none, [`crate::Cause::Log`].
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Error>;

    /// Reads bytes that were appended.
    ///
    /// # Errors
    /// [`crate::Cause::Log`], [`Error::corrupt`].
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Error>;

    /// What lies before an offset is not read any more: whoever can gives its room back.
    fn forget_before(&mut self, _offset: u64) {}

    /// Whether it has room of its own, so that a query may put there what it could do without.
    fn is_roomy(&self) -> bool {
        true
    }
}

/// None: a query that needs one ends with [`Error::memory`].
#[derive(Clone, Copy, Debug, Default)]
pub struct NoScratch;

impl Scratch for NoScratch {
    fn append(&mut self, _bytes: &[u8]) -> Result<u64, Error> {
        Err(Error::memory(None))
    }

    fn read(&mut self, _offset: u64, _buffer: &mut [u8]) -> Result<(), Error> {
        Err(Error::misuse("nothing was put there"))
    }

    fn is_roomy(&self) -> bool {
        false
    }
}

/// A container of a transaction, which is sealed like everything else. The transaction is to be rolled back: then what a query put
/// there has never been.
pub struct ContainerScratch<'a> {
    storage: &'a mut dyn Storage,
    container: ContainerId,
}

impl<'a> ContainerScratch<'a> {
    /// A new container.
    ///
    /// # Errors
    /// [`crate::Cause::Log`].
    pub fn create(storage: &'a mut dyn Storage) -> Result<Self, Error> {
        let group = storage.create_group().map_err(Error::log(""))?;
        let container = storage.create_container(group).map_err(Error::log(""))?;
        Ok(ContainerScratch { storage, container })
    }
}

impl Scratch for ContainerScratch<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Error> {
        self.storage.append(self.container, bytes).map_err(Error::log(""))
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        View::read(self.storage, self.container, offset, buffer).map_err(Error::log(""))
    }
}

/// In memory, for tests.
#[cfg(test)]
pub(super) struct InMemory(pub alloc::vec::Vec<u8>);

#[cfg(test)]
impl Scratch for InMemory {
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Error> {
        self.0.extend_from_slice(bytes);
        Ok((self.0.len() - bytes.len()) as u64)
    }

    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }
}
