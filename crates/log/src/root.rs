//! The root: everything that one commit can see.
//!
//! A root is a value. The writer changes a copy of it and publishes the copy when its frame is durable; readers hold
//! whichever root they began with. Its parts are shared by reference count, so that a copy costs a few pointers.
//!
//! Invariants (`Root::check`):
//! 1. the runs of a container follow one another without a gap, and their pages add up;
//! 2. a container's tail is shorter than the payload of a page;
//! 3. every container belongs to a group that is there, every run and every opening of a pool to an epoch that is there.

use alloc::sync::Arc;

use counterfoil_vault::Epoch;

use crate::layout::Layout;
use crate::maps::{Map, Set};
use crate::pool::Pool;
use crate::record_key::RecordKey;
use crate::runs::Runs;
use crate::shared::SharedMap;
use crate::space::{Extent, FIRST_POOL_CODE};
use crate::tail::Tail;
use crate::{ContainerId, Error, GroupId, PoolId, Sealing};

/// Pages of a container that lie side by side in one extent and were sealed in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first page's number within the container.
    pub(crate) first: u64,
    pub(crate) extent: u32,
    /// The first page's position in the extent.
    pub(crate) position: u32,
    pub(crate) pages: u32,
    pub(crate) allocation: u64,
    pub(crate) epoch: u64,
}

impl Run {
    /// Whether it lies in this extent, as it was granted this time.
    pub(crate) fn lies_in(&self, extent: Extent) -> bool {
        (self.extent, self.allocation) == (extent.number, extent.allocation)
    }

    /// This run with the next one behind it, where that continues it.
    pub(crate) fn and(self, next: &Run) -> Option<Run> {
        self.continues_with(next).then(|| Run { pages: self.pages + next.pages, ..self })
    }

    /// Whether `next` continues this run on the medium and under the same key.
    pub(crate) fn continues_with(&self, next: &Run) -> bool {
        self.extent == next.extent
            && self.allocation == next.allocation
            && self.epoch == next.epoch
            && self.position.checked_add(self.pages) == Some(next.position)
            && next.position.checked_add(next.pages).is_some()
    }
}

/// An append-only stream of bytes: full pages on the medium, and the bytes that do not fill one yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Container {
    pub(crate) group: GroupId,
    pub(crate) sealing: Sealing,
    pub(crate) runs: Runs,
    pub(crate) tail: Tail,
}

impl Container {
    pub(crate) fn new(group: GroupId, sealing: Sealing) -> Self {
        Container { group, sealing, runs: Runs::default(), tail: Tail::default() }
    }

    /// Bytes that a page of it holds.
    pub(crate) fn payload(&self, layout: &Layout) -> usize {
        self.sealing.payload(layout.page_bytes)
    }

    /// Full pages.
    pub(crate) fn pages(&self) -> u64 {
        self.runs.pages()
    }

    /// Bytes in its pages.
    pub(crate) fn bytes_in_pages(&self, layout: &Layout) -> u64 {
        self.pages() * self.payload(layout) as u64
    }

    /// Bytes in it.
    pub(crate) fn bytes(&self, layout: &Layout) -> u64 {
        self.bytes_in_pages(layout) + self.tail.len() as u64
    }

    /// Adds pages at the end; `run.first` is known here.
    pub(crate) fn add_pages(&mut self, run: Run) {
        self.runs.add(run);
    }

    /// Adds bytes that do not fill a page.
    pub(crate) fn add_to_tail(&mut self, bytes: &[u8]) {
        self.tail.add(bytes);
    }

    /// The run that holds page `page`, and the page's place in it.
    pub(crate) fn locate(&self, page: u64) -> Option<(Run, u32)> {
        let run = self.runs.holding(page)?;
        Some((run, (page - run.first) as u32))
    }
}

/// Everything that one commit can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) commit: u64,
    pub(crate) version: u64,
    pub(crate) containers: SharedMap<ContainerId, Arc<Container>>,
    pub(crate) groups: SharedMap<GroupId, ()>,
    pub(crate) pools: Arc<Map<PoolId, Arc<Pool>>>,
    pub(crate) records: SharedMap<RecordKey, Arc<[u8]>>,
    pub(crate) epochs: Arc<Map<u64, [u8; 16]>>,
    pub(crate) next_container: u64,
    /// The number of the next group or pool.
    pub(crate) next_group: u64,
}

impl Root {
    pub(crate) fn empty(version: u64) -> Self {
        Root {
            commit: 0,
            version,
            containers: SharedMap::default(),
            groups: SharedMap::default(),
            pools: Arc::default(),
            records: SharedMap::default(),
            epochs: Arc::default(),
            next_container: 1,
            next_group: FIRST_GROUP,
        }
    }

    pub(crate) fn container(&self, id: ContainerId) -> Result<&Arc<Container>, Error> {
        self.containers.get(&id).ok_or_else(|| Error::corrupt("container number"))
    }

    pub(crate) fn container_mut(&mut self, id: ContainerId) -> Result<&mut Container, Error> {
        self.containers.get_mut(&id).map(Arc::make_mut).ok_or_else(|| Error::corrupt("container number"))
    }

    /// The epoch with its 16 bytes.
    pub(crate) fn epoch(&self, number: u64) -> Result<Epoch, Error> {
        let salt = self.epochs.get(&number).ok_or_else(|| Error::corrupt("epoch number"))?;
        Ok(Epoch { number, salt: *salt })
    }

    pub(crate) fn add_group(&mut self, id: GroupId) -> Result<(), Error> {
        if !NUMBERS.contains(&id.0) || self.groups.insert(id, ()).is_some() {
            return Err(Error::corrupt("group number"));
        }
        self.next_group = self.next_group.max(id.0.saturating_add(1));
        Ok(())
    }

    pub(crate) fn pool(&self, id: PoolId) -> Result<&Arc<Pool>, Error> {
        self.pools.get(&id).ok_or_else(|| Error::corrupt("pool number"))
    }

    pub(crate) fn pool_mut(&mut self, id: PoolId) -> Result<&mut Pool, Error> {
        let pools = Arc::make_mut(&mut self.pools);
        pools.get_mut(&id).map(Arc::make_mut).ok_or_else(|| Error::corrupt("pool number"))
    }

    pub(crate) fn add_pool(&mut self, id: PoolId, pool: Pool) -> Result<(), Error> {
        if !NUMBERS.contains(&id.0) || !pool.options.are_sound() || self.pools.contains_key(&id) {
            return Err(Error::corrupt("pool number"));
        }
        Arc::make_mut(&mut self.pools).insert(id, Arc::new(pool));
        self.next_group = self.next_group.max(id.0.saturating_add(1));
        Ok(())
    }

    pub(crate) fn drop_pool(&mut self, id: PoolId) -> Result<(), Error> {
        let gone = Arc::make_mut(&mut self.pools).remove(&id);
        gone.map(drop).ok_or_else(|| Error::corrupt("pool number"))
    }

    /// Removes a group with all its containers.
    pub(crate) fn drop_group(&mut self, id: GroupId) -> Result<(), Error> {
        if self.groups.remove(&id).is_none() {
            return Err(Error::corrupt("group number"));
        }
        self.containers.retain(|_, container| container.group != id);
        Ok(())
    }

    pub(crate) fn add_container(&mut self, id: ContainerId, container: Arc<Container>) -> Result<(), Error> {
        if !self.groups.contains_key(&container.group) || self.containers.contains_key(&id) {
            return Err(Error::corrupt("container number"));
        }
        self.containers.insert(id, container);
        self.next_container = self.next_container.max(id.0.saturating_add(1));
        Ok(())
    }

    /// Forgets the epochs that no live page was sealed in; `keep` is the current one.
    pub(crate) fn forget_epochs(&mut self, keep: u64) {
        let mut live: Set<u64> = Set::from([keep]);
        for container in self.containers.values() {
            live.extend(container.runs.iter().map(|run| run.epoch));
        }
        for pool in self.pools.values() {
            live.extend(pool.openings.iter().map(|opening| opening.epoch));
        }
        if self.epochs.keys().any(|epoch| !live.contains(epoch)) {
            Arc::make_mut(&mut self.epochs).retain(|epoch, _| live.contains(epoch));
        }
    }

    /// Asserts the invariants of this file's head.
    pub(crate) fn check(&self, layout: &Layout) {
        for container in self.containers.values() {
            let mut pages = 0;
            for run in container.runs.iter() {
                assert_eq!(run.first, pages, "runs follow one another");
                assert!(self.epochs.contains_key(&run.epoch), "a run's epoch is known");
                pages += u64::from(run.pages);
            }
            assert_eq!(pages, container.pages(), "runs add up");
            assert!(container.tail.len() < container.payload(layout), "a tail is shorter than a page");
            assert!(self.groups.contains_key(&container.group), "a container's group is there");
        }
        for pool in self.pools.values() {
            pool.check();
            let known = pool.openings.iter().all(|opening| self.epochs.contains_key(&opening.epoch));
            assert!(known, "an opening's epoch is known");
        }
    }
}

/// Group numbers below this one name the owners of space that are no groups (see `space`).
pub(crate) const FIRST_GROUP: u64 = 16;
/// The numbers of groups and pools.
const NUMBERS: core::ops::Range<u64> = FIRST_GROUP..FIRST_POOL_CODE - 1;
