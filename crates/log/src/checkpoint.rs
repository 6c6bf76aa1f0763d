//! A checkpoint: the state of the volume as named records, and back.
//!
//! A checkpoint holds what changed since the one before, so its cost follows the change and not the volume. The
//! records of the log (space 0) are
//!
//! ```text
//! "root"              commit, version, numbers to go on from, where the spine goes on, epochs
//! "space" u32 BE      128 slots of the map of extents: owner u64, allocation u64
//! "group" u64 BE      empty; the extents of a group stand in the map
//! "container" u64 BE  group, runs, tail; of one of cells, what a cell holds
//! "pool", "slots"     see `pool_checkpoint`
//! ```
//!
//! All other records are folded in under their own names.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_record as record;
use counterfoil_vault::Epoch;

use crate::bytes::{Cursor, Put};
use crate::layout::Layout;
use crate::maps::{Map, Set};
use crate::pool_checkpoint;
use crate::pool_state::ChangedPools;
use crate::record_key::{RecordKey, record_key};
use crate::root::{Container, Root, Run};
use crate::space::{Extent, Space};
use crate::spine::SpineEnd;
use crate::state::State;
use crate::store::{Each, Told};
use crate::view::space::LOG;
use crate::{ContainerId, Error, GroupId, Sealing};

const FORMAT: u8 = 1;
const ROOT: &[u8] = b"root";
const SPACE: &[u8] = b"space";
const GROUP: &[u8] = b"group";
const CONTAINER: &[u8] = b"container";
/// Bytes of a container beside its runs and its tail, and of a run.
const CONTAINER_BYTES: usize = 8 + 4 + 4 + 1;
const RUN_BYTES: usize = 4 + 4 + 4 + 8 + 8;

/// What changed since the last checkpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changed {
    pub(crate) records: Set<RecordKey>,
    pub(crate) containers: Set<ContainerId>,
    pub(crate) groups: Set<GroupId>,
    pub(crate) pools: ChangedPools,
}

impl Changed {
    /// Whether the last checkpoint tells all there is.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.containers.is_empty() && self.groups.is_empty() && self.pools.is_empty()
    }
}

pub(crate) fn numbered(kind: &[u8], number: &[u8]) -> RecordKey {
    RecordKey::of(&[&[LOG], kind, number])
}

/// The name of a container's record.
pub(crate) fn of_container(id: ContainerId) -> RecordKey {
    numbered(CONTAINER, &id.0.to_be_bytes())
}

/// A checkpoint of a state: what changed since the one before.
pub(crate) struct Checkpoint<'c> {
    pub(crate) state: &'c State,
    pub(crate) end: &'c SpineEnd,
}

impl Told for Checkpoint<'_> {
    fn tell(&self, each: &mut Each<'_>) -> Result<(), record::Error> {
        let (root, changed) = (&self.state.root, &self.state.changed);
        for key in &changed.records {
            each(key, root.records.get(key).map(|value| &**value))?;
        }
        for group in &changed.groups {
            each(&numbered(GROUP, &group.0.to_be_bytes()), root.groups.contains_key(group).then_some(&[]))?;
        }
        for id in &changed.containers {
            let value = root.containers.get(id).map(|container| encode_container(container));
            each(&of_container(*id), value.as_deref())?;
        }
        pool_checkpoint::tell(&changed.pools, root, each)?;
        for (chunk, bytes) in self.state.space.changed_chunks() {
            each(&numbered(SPACE, &chunk.to_be_bytes()), Some(&bytes))?;
        }
        each(&record_key(LOG, ROOT), Some(&encode_root(self.state, self.end)))
    }
}

fn encode_container(container: &Container) -> Vec<u8> {
    let mut out = Vec::with_capacity(CONTAINER_BYTES + container.runs.len() * RUN_BYTES + container.tail.len());
    out.put_u64(container.group.0);
    out.put_u32(container.runs.len() as u32);
    for run in container.runs.iter() {
        out.put_u32(run.extent);
        out.put_u32(run.position);
        out.put_u32(run.pages);
        out.put_u64(run.allocation);
        out.put_u64(run.epoch);
    }
    out.put_sized(&container.tail);
    if let Some(code) = container.sealing.code() {
        out.put_u8(code);
    }
    out
}

fn decode_container(bytes: &[u8], layout: &Layout) -> Result<Container, Error> {
    let mut cursor = Cursor::new(bytes, "container of a checkpoint");
    let mut container = Container::new(GroupId(cursor.u64()?), Sealing::Whole);
    for _ in 0..cursor.u32()? {
        let run = Run {
            first: 0,
            extent: cursor.u32()?,
            position: cursor.u32()?,
            pages: cursor.u32()?,
            allocation: cursor.u64()?,
            epoch: cursor.u64()?,
        };
        if run.pages == 0 {
            return Err(cursor.corrupt());
        }
        container.add_pages(run);
    }
    container.tail = cursor.sized()?.into();
    if !cursor.is_empty() {
        container.sealing = Sealing::of_code(cursor.u8()?)?;
    }
    if container.tail.len() >= container.payload(layout) || !cursor.is_empty() {
        return Err(cursor.corrupt());
    }
    Ok(container)
}

fn encode_root(state: &State, end: &SpineEnd) -> Vec<u8> {
    let root = &state.root;
    let mut out = Vec::new();
    out.put_u8(FORMAT);
    for number in [end.commit, end.version, end.checkpoint, state.space.next_allocation()] {
        out.put_u64(number);
    }
    out.put_u64(root.next_container);
    out.put_u64(root.next_group);
    out.extend_from_slice(&end.tag);
    out.extend_from_slice(&end.closed);
    out.put_u8(u8::from(end.extent.is_some()) | u8::from(end.opening) << 1);
    for extent in [end.extent.unwrap_or(end.next), end.next] {
        out.put_u32(extent.number);
        out.put_u64(extent.allocation);
    }
    out.put_u32(end.position);
    put_epoch(&mut out, end.epoch.number, &end.epoch.salt);
    out.put_u32(root.epochs.len() as u32);
    for (number, salt) in root.epochs.iter() {
        put_epoch(&mut out, *number, salt);
    }
    out
}

fn put_epoch(out: &mut Vec<u8>, number: u64, salt: &[u8; 16]) {
    out.put_u64(number);
    out.extend_from_slice(salt);
}

/// What was read of a checkpoint: each record is decoded as it comes, where it can be understood by itself.
#[derive(Default)]
pub(crate) struct Parts {
    containers: Map<ContainerId, Arc<Container>>,
    groups: Set<GroupId>,
    /// The other records of the log.
    own: Map<RecordKey, Arc<[u8]>>,
    /// Those of others.
    records: Map<RecordKey, Arc<[u8]>>,
}

impl Parts {
    /// Takes in a record.
    pub(crate) fn take(&mut self, key: &[u8], value: &[u8], layout: &Layout) -> Result<(), Error> {
        let Some((&LOG, name)) = key.split_first() else {
            self.records.insert(RecordKey::of(&[key]), value.into());
            return Ok(());
        };
        if let Some(number) = name.strip_prefix(GROUP) {
            self.groups.insert(GroupId(number_of(number)?));
        } else if let Some(number) = name.strip_prefix(CONTAINER) {
            let container = decode_container(value, layout)?;
            self.containers.insert(ContainerId(number_of(number)?), Arc::new(container));
        } else {
            self.own.insert(RecordKey::of(&[key]), value.into());
        }
        Ok(())
    }
}

/// The state that a checkpoint's records tell of, and where its spine begins.
#[inline(never)]
pub(crate) fn decode(parts: Parts, layout: &Layout) -> Result<(Box<State>, SpineEnd), Error> {
    let records = &parts.own;
    let bytes = records.get(&record_key(LOG, ROOT)).ok_or_else(|| Error::corrupt("root of a checkpoint"))?;
    let (mut root, end, next_allocation) = decode_root(bytes)?;
    let mut chunks = Vec::new();
    for (number, bytes) in of_kind(records, SPACE) {
        let number: [u8; 4] = number.try_into().map_err(|_| Error::corrupt("name in a checkpoint"))?;
        chunks.push((u64::from(u32::from_be_bytes(number)), &**bytes));
    }
    let space = Space::decode(chunks.into_iter(), layout.extents_max, next_allocation)?;
    parts.groups.iter().try_for_each(|id| root.add_group(*id))?;
    pool_checkpoint::decode(records, layout, &mut root)?;
    parts.containers.into_iter().try_for_each(|(id, container)| root.add_container(id, container))?;
    root.records = parts.records.into_iter().collect();
    let state = Box::new(State { root, space, changed: Changed::default() });
    state.validate(&end, layout)?;
    Ok((state, end))
}

pub(crate) fn of_kind<'a>(
    records: &'a Map<RecordKey, Arc<[u8]>>,
    kind: &[u8],
) -> impl Iterator<Item = (&'a [u8], &'a Arc<[u8]>)> {
    let prefix = record_key(LOG, kind);
    records
        .range(prefix.clone()..)
        .map_while(move |(key, value)| key.strip_prefix(&*prefix).map(|number| (number, value)))
}

pub(crate) fn number_of(bytes: &[u8]) -> Result<u64, Error> {
    bytes.try_into().map(u64::from_be_bytes).map_err(|_| Error::corrupt("name in a checkpoint"))
}

fn decode_root(bytes: &[u8]) -> Result<(Root, SpineEnd, u64), Error> {
    let mut cursor = Cursor::new(bytes, "root of a checkpoint");
    if cursor.u8()? != FORMAT {
        return Err(cursor.corrupt());
    }
    let (commit, version, checkpoint, next_allocation) = (cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let (next_container, next_group) = (cursor.u64()?, cursor.u64()?);
    let (tag, closed) = (cursor.array()?, cursor.array()?);
    let flags = cursor.u8()?;
    let extent = Extent { number: cursor.u32()?, allocation: cursor.u64()? };
    let next = Extent { number: cursor.u32()?, allocation: cursor.u64()? };
    let position = cursor.u32()?;
    let epoch = Epoch { number: cursor.u64()?, salt: cursor.array()? };
    let mut epochs = Map::new();
    for _ in 0..cursor.u32()? {
        epochs.insert(cursor.u64()?, cursor.array()?);
    }
    if flags & !3 != 0 || !cursor.is_empty() {
        return Err(cursor.corrupt());
    }
    let extent = (flags & 1 != 0).then_some(extent);
    let opening = flags & 2 != 0;
    let end = SpineEnd { extent, position, epoch, next, tag, closed, commit, version, checkpoint, opening };
    let root = Root { commit, epochs: Arc::new(epochs), next_container, next_group, ..Root::empty(version) };
    Ok((root, end, next_allocation))
}
