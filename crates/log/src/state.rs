//! Root and map of extents together, and how a frame changes them. Recovery and the writer go through the same door.

use crate::Error;
use crate::checkpoint::Changed;
use crate::frame::Element;
use crate::root::{Container, Root, Run};
use crate::space::{Extent, Owner, Space};

/// What a volume is, as of one commit.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) root: Root,
    pub(crate) space: Space,
    pub(crate) changed: Changed,
}

/// What an element needs to know of the frame that holds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) commit: u64,
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    pub(crate) extent_pages: u32,
    pub(crate) payload: usize,
}

impl State {
    /// Makes the next checkpoint write everything.
    pub(crate) fn mark_all_changed(&mut self) {
        self.changed.records = self.root.records.keys().cloned().collect();
        self.changed.containers = self.root.containers.keys().copied().collect();
        self.changed.groups = (*self.root.groups).clone();
        self.space.mark_all_changed();
    }

    /// Notes what the next checkpoint must write again because of a change.
    fn note(&mut self, element: &Element<'_>) {
        match element {
            Element::RecordPut { key, .. } | Element::RecordDeleted { key } => {
                self.changed.records.insert(key.to_vec());
            }
            Element::GroupCreated(id) => {
                self.changed.groups.insert(*id);
            }
            Element::GroupDropped(id) => {
                let dying = self.root.containers.iter().filter(|(_, container)| container.group == *id);
                self.changed.containers.extend(dying.map(|(id, _)| *id));
                self.changed.groups.insert(*id);
            }
            Element::ContainerCreated { id, .. }
            | Element::Pages { id, .. }
            | Element::TailAppended { id, .. }
            | Element::TailReplaced { id, .. } => {
                self.changed.containers.insert(*id);
            }
            Element::ExtentGranted { .. } | Element::ExtentFreed(_) | Element::Unflushed { .. } => {}
        }
    }

    /// Applies one change of a frame.
    pub(crate) fn apply(&mut self, element: &Element<'_>, context: &Context) -> Result<(), Error> {
        self.note(element);
        match element {
            Element::RecordPut { key, value } => {
                alloc::sync::Arc::make_mut(&mut self.root.records).insert(key.to_vec(), (*value).into());
            }
            Element::RecordDeleted { key } => {
                alloc::sync::Arc::make_mut(&mut self.root.records).remove(*key);
            }
            Element::GroupCreated(id) => self.root.add_group(*id)?,
            Element::GroupDropped(id) => {
                self.root.drop_group(*id)?;
                self.space.release_group(*id, context.commit, context.version)?;
            }
            Element::ContainerCreated { id, group } => self.root.add_container(*id, Container::new(*group))?,
            Element::Pages { id, extent, position, pages } => {
                let run = self.run(*id, *extent, *position, *pages, context)?;
                self.root.container_mut(*id)?.add_pages(run);
            }
            Element::TailAppended { id, bytes } => {
                let container = self.root.container_mut(*id)?;
                if container.tail.len() + bytes.len() >= context.payload {
                    return Err(Error::Corrupt { what: "tail of a container" });
                }
                container.tail.extend_from_slice(bytes);
            }
            Element::TailReplaced { id, bytes } => {
                if bytes.len() >= context.payload {
                    return Err(Error::Corrupt { what: "tail of a container" });
                }
                self.root.container_mut(*id)?.tail = bytes.to_vec();
            }
            Element::ExtentGranted { extent, owner } => self.space.take(*extent, *owner)?,
            Element::ExtentFreed(number) => self.space.release(*number, context.commit, context.version)?,
            Element::Unflushed { .. } => {}
        }
        Ok(())
    }

    /// The run that an element names, held against the map of extents.
    fn run(
        &self,
        id: crate::ContainerId,
        extent: u32,
        position: u32,
        pages: u32,
        context: &Context,
    ) -> Result<Run, Error> {
        let corrupt = Error::Corrupt { what: "pages of a container" };
        let group = self.root.container(id)?.group;
        let within = position.checked_add(pages).is_some_and(|end| end <= context.extent_pages);
        if self.space.owner(extent) != Owner::Group(group) || !within || pages == 0 {
            return Err(corrupt);
        }
        let allocation = self.space.allocation(extent).ok_or(corrupt)?;
        Ok(Run { first: 0, extent, position, pages, allocation, epoch: context.epoch })
    }

    /// Takes note of the extent in which the spine goes on, when a page names a new one.
    pub(crate) fn take_spine_extent(&mut self, extent: Extent) -> Result<(), Error> {
        self.space.take(extent, Owner::Spine)
    }
}
