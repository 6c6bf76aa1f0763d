//! Root and map of extents together, and how a frame changes them. Recovery and the writer go through the same door.

use alloc::vec::Vec;

use crate::Error;
use crate::checkpoint::Changed;
use crate::frame::Element;
use crate::layout::Layout;
use crate::order::Order as _;
use crate::record_key::RecordKey;
use crate::root::{Container, Root, Run};
use crate::space::{Extent, Owner, Space};
use crate::spine::SpineEnd;
use crate::view::space::LOG;
use crate::writer::{RECORD_NAME_BYTES_MAX, RECORD_VALUE_BYTES_MAX};

/// Commits and versions stay below, so that they can be counted on without a thought of overflow.
pub(crate) const NUMBER_MAX: u64 = 1 << 62;

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
    pub(crate) layout: Layout,
}

impl State {
    /// Makes the next checkpoint write everything.
    pub(crate) fn mark_all_changed(&mut self) {
        self.changed.records = self.root.records.keys().cloned().collect();
        self.changed.containers = self.root.containers.keys().copied().collect();
        self.changed.groups = self.root.groups.keys().copied().collect();
        for (id, pool) in self.root.pools.iter() {
            self.changed.pools.note_all(*id, pool);
        }
        self.space.mark_all_changed();
    }

    /// A checkpoint has all that changed.
    pub(crate) fn changes_are_written(&mut self) {
        self.changed = Changed::default();
        self.space.changes_are_written();
    }

    /// Notes what the next checkpoint must write again because of a change.
    fn note(&mut self, element: &Element<'_>) {
        match element {
            Element::RecordPut { key, .. } | Element::RecordDeleted { key } => {
                self.changed.records.insert(RecordKey::of(&[key]));
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
            Element::ExtentGranted { .. } | Element::ExtentFreed(_) => {}
            Element::Unflushed { .. } | Element::Pool(_) => {}
        }
    }

    /// Applies one change of a frame.
    pub(crate) fn apply(&mut self, element: &Element<'_>, context: &Context) -> Result<(), Error> {
        self.note(element);
        match element {
            Element::RecordPut { key, value } => {
                if !is_record(key) || value.len() > RECORD_VALUE_BYTES_MAX {
                    return Err(Error::corrupt("record in a commit frame"));
                }
                self.root.records.insert(RecordKey::of(&[key]), (*value).into());
            }
            Element::RecordDeleted { key } => {
                self.root.records.remove(*key);
            }
            Element::GroupCreated(id) => self.root.add_group(*id)?,
            Element::GroupDropped(id) => {
                self.root.drop_group(*id)?;
                self.space.release_all(Owner::Group(*id), context.commit, context.version)?;
            }
            Element::ContainerCreated { id, group, sealing } => {
                self.root.add_container(*id, Container::new(*group, *sealing).into())?;
            }
            Element::Pages { id, extent, position, pages } => {
                let run = self.run(*id, *extent, *position, *pages, context)?;
                self.root.container_mut(*id)?.add_pages(run);
            }
            Element::TailAppended { id, offset, bytes } => {
                let container = self.root.container_mut(*id)?;
                let payload = container.payload(&context.layout);
                if *offset != container.bytes(&context.layout) || container.tail.len() + bytes.len() >= payload {
                    return Err(Error::corrupt("tail of a container"));
                }
                container.tail.add(bytes);
            }
            Element::TailReplaced { id, offset, bytes } => {
                let container = self.root.container_mut(*id)?;
                let in_pages = container.bytes_in_pages(&context.layout);
                if *offset != in_pages || bytes.len() >= container.payload(&context.layout) {
                    return Err(Error::corrupt("tail of a container"));
                }
                container.tail = (*bytes).into();
            }
            Element::ExtentGranted { extent, owner } => {
                let Owner::Group(group) = owner else { return Err(Error::corrupt("owner of an extent")) };
                if !self.root.groups.contains_key(group) {
                    return Err(Error::corrupt("owner of an extent"));
                }
                self.space.take(*extent, *owner)?;
            }
            Element::ExtentFreed(number) => {
                let stray = self.space.owner(*number) == Owner::Fixed && !context.layout.is_fixed(*number);
                if self.space.owner(*number) != Owner::Spine && !stray {
                    return Err(Error::corrupt("freed extent"));
                }
                self.space.release(*number, context.commit, context.version)?;
            }
            Element::Unflushed { .. } => {}
            Element::Pool(element) => self.apply_to_pool(element, context)?,
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
        let corrupt = || Error::corrupt("pages of a container");
        let group = self.root.container(id)?.group;
        let within = position.checked_add(pages).is_some_and(|end| end <= context.layout.extent_pages);
        if self.space.owner(extent) != Owner::Group(group) || !within || pages == 0 {
            return Err(corrupt());
        }
        let allocation = self.space.allocation(extent).ok_or_else(corrupt)?;
        Ok(Run { first: 0, extent, position, pages, allocation, epoch: context.epoch })
    }

    /// Takes note of the extent in which the spine goes on, when a page names a new one.
    pub(crate) fn take_spine_extent(&mut self, extent: Extent) -> Result<(), Error> {
        self.space.take(extent, Owner::Spine)
    }

    /// Holds a recovered state together: what authenticates may still make no sense.
    #[inline(never)]
    pub(crate) fn validate(&self, end: &SpineEnd, layout: &Layout) -> Result<(), Error> {
        let in_range = [end.commit, end.version, end.epoch.number].iter().all(|number| *number <= NUMBER_MAX);
        let is_spine = |extent: &Extent| {
            self.space.owner(extent.number) == Owner::Spine
                && self.space.allocation(extent.number) == Some(extent.allocation)
        };
        if !in_range || !end.extent.iter().chain([&end.next]).all(is_spine) || end.position > layout.extent_pages {
            return Err(Error::corrupt("end of the spine"));
        }
        if !(0..self.space.len()).all(|extent| !layout.is_fixed(extent) || self.space.owner(extent) == Owner::Fixed) {
            return Err(Error::corrupt("map of extents"));
        }
        self.validate_runs(layout)?;
        self.validate_pools(layout)
    }

    /// Every run lies in an extent of its group, and no two share a page.
    fn validate_runs(&self, layout: &Layout) -> Result<(), Error> {
        let corrupt = || Error::corrupt("map of a container");
        let mut stretches = Vec::new();
        for container in self.root.containers.values() {
            for run in container.runs.iter() {
                let end = run.position.checked_add(run.pages).filter(|end| *end <= layout.extent_pages);
                let end = end.ok_or_else(corrupt)?;
                let sound = run.pages > 0
                    && self.space.owner(run.extent) == Owner::Group(container.group)
                    && self.space.allocation(run.extent) == Some(run.allocation)
                    && self.root.epochs.contains_key(&run.epoch);
                if !sound {
                    return Err(corrupt());
                }
                stretches.push((run.extent, run.position, end));
            }
        }
        stretches.order();
        let apart = |pair: &[(u32, u32, u32)]| pair[0].0 != pair[1].0 || pair[0].2 <= pair[1].1;
        if stretches.windows(2).all(apart) { Ok(()) } else { Err(corrupt()) }
    }
}

/// Whether a record may have this key: a space that is not the log's own, and a name.
fn is_record(key: &[u8]) -> bool {
    key.first().is_some_and(|space| *space != LOG) && key.len() <= 1 + RECORD_NAME_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::bytes::Cursor;
    use crate::checkpoint::{self, Checkpoint, Parts};
    use crate::frame::next_element;
    use crate::maps::Map;
    use crate::pool_element::PoolElement;
    use crate::store::Told as _;
    use crate::{ContainerId, GroupId, NamelessPage, PoolId, Sealing};
    use alloc::sync::Arc;
    use counterfoil_vault::Epoch;

    const LAYOUT: Layout =
        Layout { page_bytes: 512, extent_pages: 8, window_first: 2, window_extents: 4, extents_max: 1000 };
    const CONTEXT: Context = Context { commit: 2, version: 2, epoch: 1, layout: LAYOUT };

    fn written(page: u64, write: u64, pages: u32) -> Element<'static> {
        Element::Pool(PoolElement::Written { id: PoolId(20), page: NamelessPage { page, write }, pages })
    }

    fn freed(page: u64, write: u64) -> Element<'static> {
        Element::Pool(PoolElement::Freed { id: PoolId(20), page: NamelessPage { page, write } })
    }

    fn grown(slot: u32, number: u32, allocation: u64) -> Element<'static> {
        let extent = Extent { number, allocation };
        Element::Pool(PoolElement::Grown { id: PoolId(20), slot, extent, first_write: 1 })
    }

    /// A group with a container of three pages, a pool with five pages of which one is freed, and a spine of two extents.
    fn state() -> (State, SpineEnd) {
        let mut space = Space::new(10, LAYOUT.extents_max);
        let spine = [10, 11].map(|number| space.grant_chosen(number, Owner::Spine).unwrap());
        let mut root = Root::empty(1);
        root.epochs = Arc::new(Map::from([(1, [0; 16])]));
        let mut state = State { root, space, changed: Changed::default() };
        let extent = Extent { number: 12, allocation: 3 };
        for element in [
            Element::GroupCreated(GroupId(16)),
            Element::ExtentGranted { extent, owner: Owner::Group(GroupId(16)) },
            Element::ContainerCreated { id: ContainerId(1), group: GroupId(16), sealing: Sealing::Whole },
            Element::Pages { id: ContainerId(1), extent: 12, position: 0, pages: 3 },
            Element::TailReplaced { id: ContainerId(1), offset: 3 * 496, bytes: b"tail" },
            Element::ContainerCreated { id: ContainerId(2), group: GroupId(16), sealing: Sealing::Pointers },
            Element::Pages { id: ContainerId(2), extent: 12, position: 5, pages: 2 },
            Element::TailReplaced { id: ContainerId(2), offset: 2 * 248, bytes: b"tail" },
            Element::RecordPut { key: b"\x02name", value: b"value" },
            Element::Pool(PoolElement::Created { id: PoolId(20), free_percent: 10 }),
            grown(0, 14, 5),
            written(0, 1, 5),
            freed(3, 4),
        ] {
            state.apply(&element, &CONTEXT).unwrap();
        }
        let end = SpineEnd {
            extent: Some(spine[0]),
            position: 3,
            epoch: Epoch { number: 1, salt: [0; 16] },
            next: spine[1],
            tag: [1; 16],
            closed: [2; 16],
            commit: 2,
            version: 2,
            checkpoint: 40,
            opening: false,
        };
        state.validate(&end, &LAYOUT).unwrap();
        (state, end)
    }

    #[test]
    fn authenticated_nonsense_in_a_frame_is_refused() {
        let far = Extent { number: 900_000_000, allocation: 9 };
        let id = ContainerId(1);
        for element in [
            Element::RecordPut { key: b"", value: b"" },
            Element::RecordPut { key: b"\0root", value: b"" },
            Element::GroupCreated(GroupId(2)),
            Element::GroupDropped(GroupId(17)),
            Element::ContainerCreated { id, group: GroupId(16), sealing: Sealing::Cells },
            Element::Pages { id, extent: 12, position: u32::MAX, pages: 2 },
            Element::Pages { id, extent: 12, position: 6, pages: 3 },
            Element::Pages { id, extent: 12, position: 3, pages: 0 },
            Element::Pages { id, extent: 10, position: 3, pages: 1 },
            Element::Pages { id, extent: u32::MAX, position: 0, pages: 1 },
            Element::TailAppended { id, offset: 3 * 496 + 4, bytes: &[0; 600] },
            Element::TailAppended { id, offset: 3 * 496, bytes: b"x" },
            Element::TailAppended { id: ContainerId(2), offset: 2 * 248 + 4, bytes: &[0; 244] },
            Element::TailReplaced { id: ContainerId(2), offset: 2 * 248, bytes: &[0; 248] },
            Element::TailReplaced { id: ContainerId(2), offset: 2 * 496, bytes: b"x" },
            Element::ExtentGranted { extent: far, owner: Owner::Group(GroupId(16)) },
            Element::ExtentGranted { extent: Extent { number: 20, allocation: 9 }, owner: Owner::Fixed },
            Element::ExtentGranted { extent: Extent { number: 20, allocation: 9 }, owner: Owner::Group(GroupId(99)) },
            Element::ExtentFreed(0),
            Element::ExtentFreed(5),
            Element::ExtentFreed(12),
            Element::ExtentFreed(500),
            Element::ExtentFreed(14),
            Element::ExtentGranted { extent: Extent { number: 20, allocation: 9 }, owner: Owner::Pool(PoolId(20)) },
            Element::Pool(PoolElement::Created { id: PoolId(20), free_percent: 10 }),
            Element::Pool(PoolElement::Created { id: PoolId(21), free_percent: 91 }),
            Element::Pool(PoolElement::Created { id: PoolId(2), free_percent: 10 }),
            Element::Pool(PoolElement::Created { id: PoolId(u64::MAX), free_percent: 10 }),
            Element::Pool(PoolElement::Dropped(PoolId(21))),
            Element::Pool(PoolElement::Shrunk { id: PoolId(20), slot: 0 }),
            Element::Pool(PoolElement::Shrunk { id: PoolId(20), slot: 1 }),
            grown(0, 20, 9),
            grown(1, 14, 9),
            grown(u32::MAX, 20, 9),
            written(0, 9, 1),
            written(3, 4, 1),
            written(3, u64::MAX, 1),
            written(6, 9, 3),
            written(6, 9, u32::MAX),
            written(u64::MAX, 9, 1),
            freed(3, 4),
            freed(6, 5),
            freed(0, 9),
            freed(u64::MAX, 1),
        ] {
            let (mut state, _) = state();
            assert!(
                matches!(state.apply(&element, &CONTEXT).as_ref().map_err(Error::cause), Err(Cause::Corrupt { .. })),
                "{element:?}"
            );
        }
        let (mut state, end) = state();
        state.apply(&Element::Pages { id, extent: 12, position: 2, pages: 2 }, &CONTEXT).unwrap();
        assert!(state.validate(&end, &LAYOUT).is_err(), "two runs share a page");
    }

    #[test]
    fn a_container_is_sealed_in_a_way_that_there_is() {
        for sealing in [Sealing::Whole, Sealing::Cells, Sealing::Pointers, Sealing::Sectors] {
            let element = Element::ContainerCreated { id: ContainerId(3), group: GroupId(16), sealing };
            let mut bytes = Vec::new();
            element.encode(&mut bytes);
            assert_eq!(next_element(&mut Cursor::new(&bytes, "commit frame")).unwrap(), Some(element));
            if sealing != Sealing::Whole {
                for wrong in (0..=u8::MAX).filter(|payload| ![0, 8, 10].contains(payload)) {
                    *bytes.last_mut().unwrap() = wrong;
                    assert!(next_element(&mut Cursor::new(&bytes, "commit frame")).is_err(), "{wrong}");
                }
            }
        }
    }

    /// What records of a checkpoint tell of.
    fn decode(records: &Map<Vec<u8>, Arc<[u8]>>) -> Result<(alloc::boxed::Box<State>, SpineEnd), Error> {
        let mut parts = Parts::default();
        records.iter().try_for_each(|(key, value)| parts.take(key, value, &LAYOUT))?;
        checkpoint::decode(parts, &LAYOUT)
    }

    #[test]
    fn noise_in_frames_and_checkpoints_ends_in_typed_errors() {
        let (mut state, end) = state();
        let mut elements = Vec::new();
        for element in [
            Element::Pages { id: ContainerId(1), extent: 12, position: 3, pages: 1 },
            Element::TailReplaced { id: ContainerId(1), offset: 4 * 496, bytes: b"more" },
            Element::ExtentGranted { extent: Extent { number: 13, allocation: 4 }, owner: Owner::Group(GroupId(16)) },
            Element::ExtentFreed(10),
            Element::RecordPut { key: b"\x02name", value: b"value" },
            grown(1, 15, 6),
            written(5, 6, 5),
            freed(0, 1),
            Element::Pool(PoolElement::Unflushed {
                id: PoolId(20),
                page: NamelessPage { page: 5, write: 6 },
                tag: [1; 16],
            }),
        ] {
            element.encode(&mut elements);
        }
        state.mark_all_changed();
        let mut records: Map<Vec<u8>, Arc<[u8]>> = Map::new();
        let told = Checkpoint { state: &state, end: &end }.tell(&mut |key, value| {
            records.extend(value.map(|value| (key.to_vec(), value.into())));
            Ok(())
        });
        told.unwrap();
        let (decoded, decoded_end) = decode(&records).unwrap();
        assert_eq!((&decoded.root.containers, &decoded_end), (&state.root.containers, &end));
        assert_eq!(decoded.root.pools, state.root.pools);
        let mut dice = 1u64;
        let mut roll = |sides: usize| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) as usize % sides
        };
        for _ in 0..20_000 {
            let mut noise = elements.clone();
            (0..1 + roll(3)).for_each(|_| {
                let at = roll(elements.len());
                noise[at] = [0, 1, 0xFF, roll(256) as u8][roll(4)];
            });
            let (mut state, mut cursor) = (decoded.clone(), Cursor::new(&noise, "commit frame"));
            while let Ok(Some(element)) = next_element(&mut cursor) {
                if state.apply(&element, &CONTEXT).is_err() {
                    break;
                }
            }
            if state.validate(&end, &LAYOUT).is_ok() {
                state.root.check(&LAYOUT);
            }
            let mut noise = records.clone();
            let index = roll(records.len());
            if let Some((_, value)) = noise.iter_mut().nth(index).filter(|(_, value)| !value.is_empty()) {
                let mut bytes = value.to_vec();
                let at = roll(bytes.len());
                bytes[at] = [0, 1, 0xFF, roll(256) as u8][roll(4)];
                *value = bytes.into();
            }
            if let Ok((state, _)) = decode(&noise) {
                state.root.check(&LAYOUT);
            }
        }
    }
}
