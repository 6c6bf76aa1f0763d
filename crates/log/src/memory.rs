//! A log in memory for unit tests of those above: containers are byte vectors, and nothing is ever committed.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    CommitNumber, ContainerId, Error, GroupId, NamelessPage, PoolId, PoolOptions, Room, Sealing, Storage, View,
};

/// Name of a record within its space, and its value.
type Records = BTreeMap<(u8, Vec<u8>), Arc<[u8]>>;

/// A transaction in the making that never ends.
#[derive(Clone, Default)]
pub struct Memory {
    /// Containers with their groups.
    pub containers: BTreeMap<ContainerId, (GroupId, Vec<u8>)>,
    records: Records,
    /// Pages by the number of their write.
    pages: BTreeMap<(PoolId, u64), Vec<u8>>,
    /// Nameless pages written so far.
    pub pages_written: u64,
    /// Pages read so far, of all copies together.
    pub pages_read: Arc<AtomicUsize>,
    next: u64,
    /// Pages are to be relocated that were written before this write.
    pub relocates_before: u64,
    /// Bytes of a page, if not 512.
    pub page_bytes: Option<usize>,
}

impl Memory {
    /// Nameless pages there are.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Wants a part of all nameless pages relocated: the oldest ones, so many of a hundred.
    pub fn relocate(&mut self, percent: usize) {
        let at = self.pages.len() * percent / 100;
        self.relocates_before = self.pages.keys().map(|(_, write)| *write).nth(at).unwrap_or(0);
    }
}

impl View for Memory {
    fn length(&self, container: ContainerId) -> Result<u64, Error> {
        let bytes = self.containers.get(&container).map(|(_, bytes)| bytes.len() as u64);
        bytes.ok_or_else(|| Error::corrupt("container"))
    }

    fn read(&self, container: ContainerId, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let bytes = self.containers.get(&container).map(|(_, bytes)| bytes.as_slice()).unwrap_or_default();
        let piece = bytes.get(offset as usize..offset as usize + buffer.len());
        buffer.copy_from_slice(piece.ok_or_else(|| Error::corrupt("container"))?);
        Ok(())
    }

    fn record(&self, space: u8, name: &[u8]) -> Option<Arc<[u8]>> {
        self.records.get(&(space, name.to_vec())).cloned()
    }

    fn records(&self, space: u8, prefix: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)> {
        let own = self.records.iter().filter(|((of, name), _)| *of == space && name.starts_with(prefix));
        own.map(|((_, name), value)| (name.clone(), value.clone())).collect()
    }

    fn read_nameless(&self, pool: PoolId, page: NamelessPage, buffer: &mut [u8]) -> Result<(), Error> {
        self.pages_read.fetch_add(1, Ordering::Relaxed);
        let payload = self.pages.get(&(pool, page.write)).filter(|_| page.page == page.write % 97);
        buffer.copy_from_slice(payload.ok_or_else(|| Error::tampered("nameless page", page.page))?);
        Ok(())
    }

    fn commit_number(&self) -> CommitNumber {
        CommitNumber(0)
    }
}

impl Storage for Memory {
    fn page_bytes(&self) -> usize {
        self.page_bytes.unwrap_or(512)
    }

    fn pages_left(&self) -> u64 {
        u64::from(u32::MAX)
    }

    fn room(&self) -> Room {
        Room { page_bytes: self.page_bytes() as u64, extent_pages: 1, pages: self.pages_left() }
    }

    fn require_pages(&self, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn append(&mut self, container: ContainerId, bytes: &[u8]) -> Result<u64, Error> {
        let (_, there) = self.containers.get_mut(&container).ok_or_else(|| Error::corrupt("container"))?;
        there.extend_from_slice(bytes);
        Ok((there.len() - bytes.len()) as u64)
    }

    fn create_group(&mut self) -> Result<GroupId, Error> {
        self.next += 1;
        Ok(GroupId(self.next))
    }

    fn create_container_sealed(&mut self, group: GroupId, _: Sealing) -> Result<ContainerId, Error> {
        self.next += 1;
        self.containers.insert(ContainerId(self.next), (group, Vec::new()));
        Ok(ContainerId(self.next))
    }

    fn drop_group(&mut self, group: GroupId) -> Result<(), Error> {
        self.containers.retain(|_, (of, _)| *of != group);
        Ok(())
    }

    fn create_pool(&mut self, _: PoolOptions) -> Result<PoolId, Error> {
        self.next += 1;
        Ok(PoolId(self.next))
    }

    fn drop_pool(&mut self, pool: PoolId) -> Result<(), Error> {
        self.pages.retain(|(of, _), _| *of != pool);
        Ok(())
    }

    fn write_nameless(&mut self, pool: PoolId, payload: &[u8]) -> Result<NamelessPage, Error> {
        self.next += 1;
        self.pages_written += 1;
        self.pages.insert((pool, self.next), payload.to_vec());
        Ok(NamelessPage { page: self.next % 97, write: self.next })
    }

    fn free_nameless(&mut self, pool: PoolId, page: NamelessPage) -> Result<(), Error> {
        let freed = self.pages.remove(&(pool, page.write));
        freed.map(drop).ok_or_else(|| Error::tampered("nameless page", page.page))
    }

    fn pages_to_relocate(&self, pool: PoolId, count: usize) -> Result<Vec<NamelessPage>, Error> {
        let own = self.pages.keys().filter(|(of, write)| *of == pool && *write < self.relocates_before);
        Ok(own.map(|(_, write)| NamelessPage { page: write % 97, write: *write }).take(count).collect())
    }

    fn put_record(&mut self, space: u8, name: &[u8], value: &[u8]) -> Result<(), Error> {
        self.records.insert((space, name.to_vec()), value.into());
        Ok(())
    }

    fn delete_record(&mut self, space: u8, name: &[u8]) -> Result<(), Error> {
        self.records.remove(&(space, name.to_vec()));
        Ok(())
    }
}
