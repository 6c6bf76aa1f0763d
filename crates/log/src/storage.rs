//! What those above need of the writer.

use alloc::vec::Vec;

use crate::{ContainerId, Error, GroupId, NamelessPage, PoolId, PoolOptions, Room, Sealing, View, Writer};

/// A transaction in the making: everything written through it is seen through it at once, and by nobody else until it
/// is committed. [`Writer`] is the one that matters; tests use one of containers that are byte vectors.
pub trait Storage: View {
    /// Bytes of payload of a page.
    fn page_bytes(&self) -> usize;

    /// Pages that may come to be used beside those that are, as [`Writer::pages_left`] has it.
    fn pages_left(&self) -> u64;

    /// As [`Writer::room`].
    fn room(&self) -> Room;

    /// Whether so many pages are within the room that there is.
    ///
    /// # Errors
    /// [`Error::full`] if they are not.
    fn require_pages(&self, pages: u64) -> Result<(), Error>;

    /// Adds bytes to a container; returns where they begin.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn append(&mut self, container: ContainerId, bytes: &[u8]) -> Result<u64, Error>;

    /// Makes a reclaim group.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn create_group(&mut self) -> Result<GroupId, Error>;

    /// Makes a container in a group, whose pages are sealed in this way.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn create_container_sealed(&mut self, group: GroupId, sealing: Sealing) -> Result<ContainerId, Error>;

    /// Makes a container in a group, whose pages are sealed as wholes.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn create_container(&mut self, group: GroupId) -> Result<ContainerId, Error> {
        self.create_container_sealed(group, Sealing::Whole)
    }

    /// Drops a group with its containers.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn drop_group(&mut self, group: GroupId) -> Result<(), Error>;

    /// Nothing more is appended to what is in a group: what is kept in memory for that is let go. Who appends all the same may be
    /// granted an extent for it.
    fn close_group(&mut self, _group: GroupId) {}

    /// Makes a pool of nameless pages.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn create_pool(&mut self, options: PoolOptions) -> Result<PoolId, Error>;

    /// Drops a pool with its pages.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn drop_pool(&mut self, pool: PoolId) -> Result<(), Error>;

    /// Writes a page of [`Storage::page_bytes`] where it is best written, and tells where that was.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn write_nameless(&mut self, pool: PoolId, payload: &[u8]) -> Result<NamelessPage, Error>;

    /// Gives a page back.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn free_nameless(&mut self, pool: PoolId, page: NamelessPage) -> Result<(), Error>;

    /// Live pages, so many at most, that keep extents from being given back: their owner writes them anew and frees them.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn pages_to_relocate(&self, pool: PoolId, count: usize) -> Result<Vec<NamelessPage>, Error>;

    /// Writes a record.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn put_record(&mut self, space: u8, name: &[u8], value: &[u8]) -> Result<(), Error>;

    /// Deletes a record, if it is there.
    ///
    /// # Errors
    /// As [`Writer`]'s.
    fn delete_record(&mut self, space: u8, name: &[u8]) -> Result<(), Error>;
}

impl Storage for Writer {
    fn page_bytes(&self) -> usize {
        self.payload_bytes()
    }

    fn pages_left(&self) -> u64 {
        Writer::pages_left(self)
    }

    fn room(&self) -> Room {
        Writer::room(self)
    }

    fn require_pages(&self, pages: u64) -> Result<(), Error> {
        Writer::require_pages(self, pages)
    }

    fn append(&mut self, container: ContainerId, bytes: &[u8]) -> Result<u64, Error> {
        Writer::append(self, container, bytes)
    }

    fn create_group(&mut self) -> Result<GroupId, Error> {
        Writer::create_group(self)
    }

    fn create_container_sealed(&mut self, group: GroupId, sealing: Sealing) -> Result<ContainerId, Error> {
        Writer::create_container_sealed(self, group, sealing)
    }

    fn drop_group(&mut self, group: GroupId) -> Result<(), Error> {
        Writer::drop_group(self, group)
    }

    fn close_group(&mut self, group: GroupId) {
        Writer::close_group(self, group);
    }

    fn create_pool(&mut self, options: PoolOptions) -> Result<PoolId, Error> {
        Writer::create_pool(self, options)
    }

    fn drop_pool(&mut self, pool: PoolId) -> Result<(), Error> {
        Writer::drop_pool(self, pool)
    }

    fn write_nameless(&mut self, pool: PoolId, payload: &[u8]) -> Result<NamelessPage, Error> {
        Writer::write_nameless(self, pool, payload)
    }

    fn free_nameless(&mut self, pool: PoolId, page: NamelessPage) -> Result<(), Error> {
        Writer::free_nameless(self, pool, page)
    }

    fn pages_to_relocate(&self, pool: PoolId, count: usize) -> Result<Vec<NamelessPage>, Error> {
        Writer::pages_to_relocate(self, pool, count)
    }

    fn put_record(&mut self, space: u8, name: &[u8], value: &[u8]) -> Result<(), Error> {
        Writer::put_record(self, space, name, value)
    }

    fn delete_record(&mut self, space: u8, name: &[u8]) -> Result<(), Error> {
        Writer::delete_record(self, space, name)
    }
}
