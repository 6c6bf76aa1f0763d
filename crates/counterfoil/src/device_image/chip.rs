//! A store that stands alone, whatever the width of its words.

use counterfoil_flash::Device;
use counterfoil_record::alone::{Error, Named, Standalone, Word};
use counterfoil_record::{Change, RecordId};
use counterfoil_vault::Tag;

pub(super) trait Chip {
    fn names(&self) -> u32;
    fn ids_max(&self) -> u32;
    fn record_bytes_max(&self) -> usize;
    fn counted(&self) -> u64;
    fn tag(&self) -> Tag;
    fn rollbacks(&self) -> u16;
    /// How often the most used block was erased since the store was made.
    fn erases(&self) -> u32;
    fn space_left(&mut self, record_bytes: usize) -> Result<u32, Error>;
    fn read(&mut self, id: RecordId, buffer: &mut [u8]) -> Result<usize, Error>;
    fn read_named(&mut self, name: &[u8], buffer: &mut [u8]) -> Result<usize, Error>;
    fn named_at<'b>(&mut self, id: u32, buffer: &'b mut [u8]) -> Result<Option<Named<'b>>, Error>;
    fn commit(&mut self, changes: &[Change<'_>]) -> Result<u64, Error>;
    fn put_named(&mut self, name: &[u8], value: &[u8], buffer: &mut [u8]) -> Result<u64, Error>;
    fn delete_named(&mut self, name: &[u8], buffer: &mut [u8]) -> Result<u64, Error>;
}

impl<D: Device + ?Sized, W: Word> Chip for Standalone<'_, D, W> {
    fn names(&self) -> u32 {
        Standalone::names(self)
    }

    fn ids_max(&self) -> u32 {
        Standalone::ids_max(self)
    }

    fn record_bytes_max(&self) -> usize {
        Standalone::record_bytes_max(self)
    }

    fn counted(&self) -> u64 {
        Standalone::counted(self)
    }

    fn tag(&self) -> Tag {
        Standalone::tag(self)
    }

    fn rollbacks(&self) -> u16 {
        Standalone::rollbacks(self)
    }

    fn erases(&self) -> u32 {
        u32::MAX - self.lifetime_left(u32::MAX)
    }

    fn space_left(&mut self, record_bytes: usize) -> Result<u32, Error> {
        Standalone::space_left(self, record_bytes)
    }

    fn read(&mut self, id: RecordId, buffer: &mut [u8]) -> Result<usize, Error> {
        Standalone::read(self, id, buffer)
    }

    fn read_named(&mut self, name: &[u8], buffer: &mut [u8]) -> Result<usize, Error> {
        Standalone::read_named(self, name, buffer)
    }

    fn named_at<'b>(&mut self, id: u32, buffer: &'b mut [u8]) -> Result<Option<Named<'b>>, Error> {
        Standalone::named_at(self, id, buffer)
    }

    fn commit(&mut self, changes: &[Change<'_>]) -> Result<u64, Error> {
        Standalone::commit(self, changes)
    }

    fn put_named(&mut self, name: &[u8], value: &[u8], buffer: &mut [u8]) -> Result<u64, Error> {
        Standalone::put_named(self, name, value, buffer)
    }

    fn delete_named(&mut self, name: &[u8], buffer: &mut [u8]) -> Result<u64, Error> {
        Standalone::delete_named(self, name, buffer)
    }
}
