//! A commit in the making: a copy of the root that changes, and what it takes to write the difference down.

use counterfoil_vault::Tag;

use crate::frame::{Each, Element};
use crate::layout::Layout;
use crate::maps::{Map, Set};
use crate::pending_pools::PendingPools;
use crate::pool::{NamelessPage, Pool, PoolId, PoolOptions};
use crate::record_key::RecordKey;
use crate::root::{Container, Root};
use crate::space::Extent;
use crate::space::Owner;
use crate::unflushed::Unflushed;
use crate::{ContainerId, Error, GroupId, Sealing};

/// What a container was like before this commit touched it.
#[derive(Clone, Copy, Debug)]
struct Before {
    pages: u64,
    tail_bytes: usize,
    created: bool,
}

/// An extent that a commit was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) extent: Extent,
    pub(crate) owner: Owner,
    /// The slot that it has in its pool, and the write from which on it is used; zeros for what is a group's.
    pub(crate) slot: u32,
    pub(crate) first_write: u64,
}

/// The changes of a commit that was begun.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) root: Root,
    touched: Map<ContainerId, Before>,
    groups_created: Set<GroupId>,
    groups_dropped: Set<GroupId>,
    records: Set<RecordKey>,
    pub(crate) pools: PendingPools,
    /// Pages programmed for this commit and not flushed since.
    unflushed: Unflushed<(ContainerId, u64), Tag>,
}

impl Pending {
    pub(crate) fn new(root: Root) -> Self {
        Pending {
            root,
            touched: Map::new(),
            groups_created: Set::new(),
            groups_dropped: Set::new(),
            records: Set::new(),
            pools: PendingPools::default(),
            unflushed: Unflushed::default(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.touched.is_empty()
            && self.groups_created.is_empty()
            && self.groups_dropped.is_empty()
            && self.records.is_empty()
            && self.pools.is_empty()
    }

    /// The container, to be appended to.
    pub(crate) fn touch(&mut self, id: ContainerId) -> Result<&mut Container, Error> {
        let container = self.root.container_mut(id)?;
        let before = Before { pages: container.pages(), tail_bytes: container.tail.len(), created: false };
        self.touched.entry(id).or_insert(before);
        Ok(container)
    }

    pub(crate) fn create_group(&mut self) -> Result<GroupId, Error> {
        let id = GroupId(self.root.next_group);
        self.adopt_group(id)?;
        Ok(id)
    }

    /// Makes a group of this very number.
    pub(crate) fn adopt_group(&mut self, id: GroupId) -> Result<(), Error> {
        self.root.add_group(id)?;
        self.groups_created.insert(id);
        Ok(())
    }

    /// Drops a group; whether this commit had made it.
    pub(crate) fn drop_group(&mut self, id: GroupId) -> Result<bool, Error> {
        let containers = self.root.containers.clone();
        self.root.drop_group(id)?;
        let in_group = |container: &ContainerId| containers.get(container).is_some_and(|c| c.group == id);
        self.touched.retain(|container, _| !in_group(container));
        self.unflushed.retain(|(container, _)| !in_group(container));
        let is_own = self.groups_created.remove(&id);
        if !is_own {
            self.groups_dropped.insert(id);
        }
        Ok(is_own)
    }

    pub(crate) fn create_container(&mut self, group: GroupId, sealing: Sealing) -> Result<ContainerId, Error> {
        let id = ContainerId(self.root.next_container);
        self.adopt_container(id, Container::new(group, sealing))?;
        Ok(id)
    }

    /// Takes in an empty container of this very number.
    pub(crate) fn adopt_container(&mut self, id: ContainerId, container: Container) -> Result<(), Error> {
        self.root.add_container(id, container.into())?;
        self.touched.insert(id, Before { pages: 0, tail_bytes: 0, created: true });
        Ok(())
    }

    pub(crate) fn create_pool(&mut self, options: PoolOptions, extent_pages: u32) -> Result<PoolId, Error> {
        let id = PoolId(self.root.next_group);
        self.adopt_pool(id, options, extent_pages)?;
        Ok(id)
    }

    /// Makes an empty pool of this very number.
    pub(crate) fn adopt_pool(&mut self, id: PoolId, options: PoolOptions, extent_pages: u32) -> Result<(), Error> {
        self.root.add_pool(id, Pool::new(options, extent_pages))?;
        self.pools.created(id, options.free_percent);
        Ok(())
    }

    pub(crate) fn drop_pool(&mut self, id: PoolId) -> Result<(), Error> {
        self.root.drop_pool(id)?;
        self.pools.dropped(id);
        Ok(())
    }

    /// Takes note of a nameless page that was programmed.
    pub(crate) fn wrote(&mut self, id: PoolId, page: NamelessPage, epoch: u64, tag: Tag) -> Result<(), Error> {
        self.root.pool_mut(id)?.write(page, epoch)?;
        self.pools.wrote(id, page, tag);
        Ok(())
    }

    /// Takes note that nobody points to a nameless page any more.
    pub(crate) fn freed(&mut self, id: PoolId, page: NamelessPage) -> Result<(), Error> {
        self.root.pool_mut(id)?.free(page)?;
        self.pools.freed(id, page);
        Ok(())
    }

    pub(crate) fn change_record(&mut self, key: RecordKey, value: Option<&[u8]>) {
        let records = &mut self.root.records;
        let changed = match value {
            Some(value) => records.insert(key.clone(), value.into()).as_deref() != Some(value),
            None => records.remove(&key).is_some(),
        };
        if changed {
            self.records.insert(key);
        }
    }

    pub(crate) fn programmed(&mut self, id: ContainerId, page: u64, tag: Tag) {
        self.unflushed.insert((id, page), tag);
    }

    /// Pages that the frame would have to list, if it can.
    pub(crate) fn unflushed_count(&self) -> usize {
        self.unflushed.count() + self.pools.unflushed_count()
    }

    pub(crate) fn flushed(&mut self) {
        self.unflushed = Unflushed::default();
        self.pools.flushed();
    }

    pub(crate) fn groups_created(&self) -> &Set<GroupId> {
        &self.groups_created
    }

    pub(crate) fn groups_dropped(&self) -> &Set<GroupId> {
        &self.groups_dropped
    }

    pub(crate) fn records_changed(&self) -> &Set<RecordKey> {
        &self.records
    }

    pub(crate) fn containers_touched(&self) -> impl Iterator<Item = ContainerId> + '_ {
        self.touched.keys().copied()
    }

    /// Whether the frame tells of an owner's extents: not of those of a group or pool that this commit made and dropped.
    pub(crate) fn tells_of(&self, owner: Owner) -> bool {
        match owner {
            Owner::Group(group) => self.root.groups.contains_key(&group) || self.groups_dropped.contains(&group),
            Owner::Pool(pool) => self.root.pools.contains_key(&pool) || self.pools.is_dropped(pool),
            Owner::Free | Owner::Fixed | Owner::Spine => false,
        }
    }

    /// The commit as the elements of a frame. `granted` are the extents it grants, `shrunk` the slots of pools whose
    /// extents it gives back.
    pub(crate) fn tell(
        &self,
        granted: &[Granted],
        shrunk: &[(PoolId, u32)],
        layout: &Layout,
        each: &mut Each<'_>,
    ) -> Result<(), Error> {
        // Groups that this commit drops may have been granted extents by it: they are granted first, then dropped.
        self.groups_created.iter().try_for_each(|id| each(Element::GroupCreated(*id)))?;
        let told = || granted.iter().filter(|granted| self.tells_of(granted.owner));
        for granted in told().filter(|granted| matches!(granted.owner, Owner::Group(_))) {
            each(Element::ExtentGranted { extent: granted.extent, owner: granted.owner })?;
        }
        for (id, before) in &self.touched {
            self.tell_container(*id, before, layout, each)?;
        }
        self.groups_dropped.iter().try_for_each(|id| each(Element::GroupDropped(*id)))?;
        for key in &self.records {
            each(match self.root.records.get(key) {
                Some(value) => Element::RecordPut { key, value },
                None => Element::RecordDeleted { key },
            })?;
        }
        self.pools.tell(told(), shrunk, each)?;
        for ((id, page), tag) in self.unflushed.iter() {
            if self.root.container(*id).is_ok_and(|container| *page < container.pages()) {
                each(Element::Unflushed { id: *id, page: *page, tag: *tag })?;
            }
        }
        Ok(())
    }

    fn tell_container(
        &self,
        id: ContainerId,
        before: &Before,
        layout: &Layout,
        each: &mut Each<'_>,
    ) -> Result<(), Error> {
        let container = self.root.container(id)?;
        if before.created {
            each(Element::ContainerCreated { id, group: container.group, sealing: container.sealing })?;
        }
        for run in container.runs.ending_behind(before.pages) {
            let old = before.pages.saturating_sub(run.first) as u32;
            each(Element::Pages { id, extent: run.extent, position: run.position + old, pages: run.pages - old })?;
        }
        if container.pages() > before.pages {
            let offset = container.bytes_in_pages(layout);
            each(Element::TailReplaced { id, offset, bytes: &container.tail })?;
        } else if container.tail.len() > before.tail_bytes {
            let offset = container.bytes_in_pages(layout) + before.tail_bytes as u64;
            each(Element::TailAppended { id, offset, bytes: &container.tail[before.tail_bytes..] })?;
        }
        Ok(())
    }
}
