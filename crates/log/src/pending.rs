//! A commit in the making: a copy of the root that changes, and what it takes to write the difference down.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use counterfoil_vault::Tag;

use crate::frame::Element;
use crate::root::{Container, RecordKey, Root};
use crate::space::Extent;
use crate::space::Owner;
use crate::{ContainerId, Error, GroupId};

/// What a container was like before this commit touched it.
#[derive(Clone, Copy, Debug)]
struct Before {
    pages: u64,
    tail_bytes: usize,
    created: bool,
}

/// The changes of a commit that was begun.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub(crate) root: Root,
    touched: BTreeMap<ContainerId, Before>,
    groups_created: BTreeSet<GroupId>,
    groups_dropped: BTreeSet<GroupId>,
    records: BTreeSet<RecordKey>,
    /// Pages programmed for this commit and not flushed since.
    unflushed: BTreeMap<(ContainerId, u64), Tag>,
}

impl Pending {
    pub(crate) fn new(root: Root) -> Self {
        Pending {
            root,
            touched: BTreeMap::new(),
            groups_created: BTreeSet::new(),
            groups_dropped: BTreeSet::new(),
            records: BTreeSet::new(),
            unflushed: BTreeMap::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.touched.is_empty()
            && self.groups_created.is_empty()
            && self.groups_dropped.is_empty()
            && self.records.is_empty()
    }

    /// The container, to be appended to.
    pub(crate) fn touch(&mut self, id: ContainerId) -> Result<&mut Container, Error> {
        let container = self.root.container_mut(id)?;
        let before = Before { pages: container.pages, tail_bytes: container.tail.len(), created: false };
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

    pub(crate) fn drop_group(&mut self, id: GroupId) -> Result<(), Error> {
        let containers = self.root.containers.clone();
        self.root.drop_group(id)?;
        let in_group = |container: &ContainerId| containers.get(container).is_some_and(|c| c.group == id);
        self.touched.retain(|container, _| !in_group(container));
        self.unflushed.retain(|(container, _), _| !in_group(container));
        if !self.groups_created.remove(&id) {
            self.groups_dropped.insert(id);
        }
        Ok(())
    }

    pub(crate) fn create_container(&mut self, group: GroupId) -> Result<ContainerId, Error> {
        let id = ContainerId(self.root.next_container);
        self.adopt_container(id, Container::new(group))?;
        Ok(id)
    }

    /// Takes in an empty container of this very number.
    pub(crate) fn adopt_container(&mut self, id: ContainerId, container: Container) -> Result<(), Error> {
        self.root.add_container(id, container)?;
        self.touched.insert(id, Before { pages: 0, tail_bytes: 0, created: true });
        Ok(())
    }

    pub(crate) fn change_record(&mut self, key: RecordKey, value: Option<&[u8]>) {
        let records = alloc::sync::Arc::make_mut(&mut self.root.records);
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

    /// Pages that the frame would have to list.
    pub(crate) fn unflushed_count(&self) -> usize {
        self.unflushed.len()
    }

    pub(crate) fn flushed(&mut self) {
        self.unflushed.clear();
    }

    pub(crate) fn groups_created(&self) -> &BTreeSet<GroupId> {
        &self.groups_created
    }

    pub(crate) fn groups_dropped(&self) -> &BTreeSet<GroupId> {
        &self.groups_dropped
    }

    pub(crate) fn records_changed(&self) -> &BTreeSet<RecordKey> {
        &self.records
    }

    pub(crate) fn containers_touched(&self) -> impl Iterator<Item = ContainerId> + '_ {
        self.touched.keys().copied()
    }

    /// Whether the frame tells of a group's extents: not of those of a group that this commit made and dropped.
    pub(crate) fn tells_of(&self, group: GroupId) -> bool {
        self.root.groups.contains(&group) || self.groups_dropped.contains(&group)
    }

    /// The commit as the elements of a frame. `granted` are the extents it grants.
    pub(crate) fn encode(&self, granted: &[(Extent, GroupId)], payload: usize) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        // Groups that this commit drops may have been granted extents by it: they are granted first, then dropped.
        self.groups_created.iter().for_each(|id| Element::GroupCreated(*id).encode(&mut out));
        for (extent, group) in granted.iter().filter(|(_, group)| self.tells_of(*group)) {
            Element::ExtentGranted { extent: *extent, owner: Owner::Group(*group) }.encode(&mut out);
        }
        for (id, before) in &self.touched {
            self.encode_container(*id, before, payload as u64, &mut out)?;
        }
        self.groups_dropped.iter().for_each(|id| Element::GroupDropped(*id).encode(&mut out));
        for key in &self.records {
            match self.root.records.get(key) {
                Some(value) => Element::RecordPut { key, value }.encode(&mut out),
                None => Element::RecordDeleted { key }.encode(&mut out),
            }
        }
        for ((id, page), tag) in &self.unflushed {
            if self.root.container(*id).is_ok_and(|container| *page < container.pages) {
                Element::Unflushed { id: *id, page: *page, tag: *tag }.encode(&mut out);
            }
        }
        Ok(out)
    }

    fn encode_container(&self, id: ContainerId, before: &Before, payload: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let container = self.root.container(id)?;
        if before.created {
            Element::ContainerCreated { id, group: container.group }.encode(out);
        }
        let old = container.runs.partition_point(|run| run.first + u64::from(run.pages) <= before.pages);
        for run in container.runs.iter().skip(old) {
            let old = before.pages.saturating_sub(run.first) as u32;
            let element =
                Element::Pages { id, extent: run.extent, position: run.position + old, pages: run.pages - old };
            element.encode(out);
        }
        if container.pages > before.pages {
            let offset = container.pages * payload;
            Element::TailReplaced { id, offset, bytes: &container.tail }.encode(out);
        } else if container.tail.len() > before.tail_bytes {
            let offset = before.pages * payload + before.tail_bytes as u64;
            Element::TailAppended { id, offset, bytes: &container.tail[before.tail_bytes..] }.encode(out);
        }
        Ok(())
    }
}
