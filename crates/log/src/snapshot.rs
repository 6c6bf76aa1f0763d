//! A snapshot: one root, held for as long as somebody reads it.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::layout::Layout;
use crate::pages::Pages;
use crate::record_key::record_key;
use crate::root::Root;
use crate::{CommitNumber, ContainerId, Error, NamelessPage, Piece, PoolId, View};

/// An immutable view of one commit. Cloning it is cheap; while a clone is alive, the writer that handed it out
/// reclaims nothing that it can see.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) root: Arc<Root>,
    pub(crate) pages: Arc<Pages>,
}

impl Snapshot {
    /// Reads and authenticates every page of every container, and tells after each container how many pages were
    /// good. Damaged pages do not stop it. Nameless pages are read by who knows their addresses; [`Snapshot::pools`]
    /// tells how many there must be.
    pub fn verify_pages(&self, progress: &mut dyn FnMut(ContainerId, u64)) -> Vec<(ContainerId, Error)> {
        let mut damaged = Vec::new();
        for (id, container) in self.root.containers.iter() {
            let mut good = 0;
            for page in 0..container.pages() {
                match self.pages.tag_of(&self.root, *id, page) {
                    Ok(_) => good += 1,
                    Err(error) => damaged.push((*id, error)),
                }
            }
            progress(*id, good);
        }
        damaged
    }

    /// Whether a clone of this very snapshot is alive elsewhere.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.root) > 1
    }

    /// Bytes of page payload, where pages are sealed as a whole: reads that begin at multiples of it touch the fewest pages.
    pub fn payload_bytes(&self) -> usize {
        self.pages.layout.payload()
    }

    /// Nameless pools there are, and the live pages of each: what a walk from the roots of its owner must come to.
    pub fn pools(&self) -> Vec<(PoolId, u64)> {
        self.root.pools.iter().map(|(id, pool)| (*id, pool.live())).collect()
    }

    /// Containers there are.
    pub fn containers(&self) -> Vec<ContainerId> {
        self.root.containers.keys().copied().collect()
    }
}

impl View for Snapshot {
    fn length(&self, container: ContainerId) -> Result<u64, Error> {
        length(&self.root, &self.pages.layout, container)
    }

    fn read(&self, container: ContainerId, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.pages.read(&self.root, container, offset, buffer)
    }

    fn read_pieces(&self, container: ContainerId, pieces: &[Piece], buffer: &mut [u8]) -> Result<(), Error> {
        self.pages.read_pieces(&self.root, container, pieces, buffer)
    }

    fn read_nameless(&self, pool: PoolId, page: NamelessPage, buffer: &mut [u8]) -> Result<(), Error> {
        self.pages.read_nameless(&self.root, pool, page, buffer)
    }

    fn record(&self, space: u8, name: &[u8]) -> Option<Arc<[u8]>> {
        self.root.records.get(&record_key(space, name)).cloned()
    }

    fn records(&self, space: u8, prefix: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)> {
        records(&self.root, space, prefix)
    }

    fn commit_number(&self) -> CommitNumber {
        CommitNumber(self.root.commit)
    }
}

pub(crate) fn length(root: &Root, layout: &Layout, container: ContainerId) -> Result<u64, Error> {
    Ok(root.container(container)?.bytes(layout))
}

pub(crate) fn records(root: &Root, space: u8, prefix: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)> {
    let from = record_key(space, prefix);
    let matching = root.records.range_from(&from).take_while(|(key, _)| key.starts_with(&from));
    matching.map(|(key, value)| (key[1..].to_vec(), value.clone())).collect()
}
