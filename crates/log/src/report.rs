//! What a volume looks like from inside: for people who inspect one.

use alloc::vec::Vec;

use crate::layout::Layout;
use crate::maps::Map;
use crate::pool_use::PoolUse;
use crate::space::{Owner, Space};
use crate::spine::SpineEnd;
use crate::state::State;
use crate::volume::Recovered;
use crate::writer::Writer;
use crate::{ContainerId, GroupId, Sealing};

/// An extent and what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentUse {
    /// Whose it is.
    pub owner: Owner,
    /// Pages in it that the newest commit needs.
    pub live_pages: u32,
}

/// A container in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerUse {
    /// Which one.
    pub id: ContainerId,
    /// The group it dies with.
    pub group: GroupId,
    /// How its pages are sealed.
    pub sealing: Sealing,
    /// Bytes in it.
    pub bytes: u64,
    /// Full pages.
    pub pages: u64,
    /// Stretches of neighbouring pages.
    pub runs: usize,
}

/// Room for what is not written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of payload of a page.
    pub page_bytes: u64,
    /// Pages of an extent, which a group is granted at a time.
    pub extent_pages: u64,
    /// Pages that may come to be used: of extents that nobody has, or that somebody has given back, but for what is kept.
    pub pages: u64,
}

impl Room {
    pub(crate) fn of(space: &Space, layout: &Layout, reserves: u64) -> Self {
        Room {
            page_bytes: layout.payload() as u64,
            extent_pages: u64::from(layout.extent_pages),
            pages: space.pages_beyond(reserves, layout),
        }
    }
}

/// A volume in numbers, as of its newest commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its shape.
    pub layout: Layout,
    /// The newest commit.
    pub commit: u64,
    /// Its version, which the counter must not exceed.
    pub version: u64,
    /// The record store's version that recovery begins with.
    pub checkpoint: u64,
    /// Openings whose pages are still needed.
    pub epochs: usize,
    /// Room for commits that free others.
    pub room: Room,
    /// Every extent there is.
    pub extents: Vec<ExtentUse>,
    /// Every container.
    pub containers: Vec<ContainerUse>,
    /// Every nameless pool. What can be written in it now, only its writer knows ([`Writer::pool_use`]): here all that
    /// is not live waits.
    pub pools: Vec<PoolUse>,
    /// Records and the bytes of their names and values.
    pub records: usize,
    /// See `records`.
    pub record_bytes: u64,
}

fn report(state: &State, end: &SpineEnd, layout: &Layout) -> Report {
    let mut live: Map<u32, u32> = Map::new();
    for container in state.root.containers.values() {
        for run in container.runs.iter() {
            *live.entry(run.extent).or_default() += run.pages;
        }
    }
    for (_, slot) in state.root.pools.values().flat_map(|pool| pool.slots()) {
        live.insert(slot.extent.number, slot.live.count());
    }
    if let Some(extent) = end.extent {
        live.insert(extent.number, end.position.min(layout.extent_pages));
    }
    let use_of = |number: u32| ExtentUse {
        owner: state.space.owner(number),
        live_pages: live.get(&number).copied().unwrap_or(0),
    };
    let containers = state.root.containers.iter().map(|(id, container)| ContainerUse {
        id: *id,
        group: container.group,
        sealing: container.sealing,
        bytes: container.bytes(layout),
        pages: container.pages(),
        runs: container.runs.len(),
    });
    Report {
        layout: *layout,
        commit: end.commit,
        version: end.version,
        checkpoint: end.checkpoint,
        epochs: state.root.epochs.len(),
        room: Room::of(&state.space, layout, 1),
        extents: (0..state.space.len()).map(use_of).collect(),
        containers: containers.collect(),
        pools: state.root.pools.iter().map(|(id, pool)| PoolUse::of(*id, pool, None)).collect(),
        records: state.root.records.len(),
        record_bytes: state.root.records.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum(),
    }
}

impl Recovered {
    /// The volume in numbers.
    pub fn report(&self) -> Report {
        report(&self.state, &self.end, &self.pages.layout)
    }
}

impl Writer {
    /// The volume in numbers, as of the last commit.
    pub fn report(&self) -> Report {
        report(&self.state, &self.end, &self.pages.layout)
    }
}
