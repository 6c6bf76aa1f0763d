//! Nameless pools as records of a checkpoint, and back.
//!
//! ```text
//! "pool" u64 BE           share kept free u8, next write u64, chunks u32, count u32 of openings:
//!                         first write u64, epoch u64, live pages u64
//! "slots" u64 BE u32 BE   up to 64 slots from 64 times the number: extent u32, allocation u64 (0: none), first write
//!                         u64, and unless there is none a bit for each live page; the others have no extent
//! ```

use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_record as record;

use crate::Error;
use crate::bits::Bits;
use crate::bytes::{Cursor, Put};
use crate::checkpoint::{number_of, numbered, of_kind};
use crate::layout::Layout;
use crate::maps::Map;
use crate::pool::{CHUNK_SLOTS, Chunk, Opening, Pool, PoolId, PoolOptions, Slot};
use crate::pool_state::ChangedPools;
use crate::record_key::RecordKey;
use crate::root::Root;
use crate::space::Extent;
use crate::store::Each;

const POOL: &[u8] = b"pool";
const SLOTS: &[u8] = b"slots";

/// Tells the records of what changed.
pub(crate) fn tell(changed: &ChangedPools, root: &Root, each: &mut Each<'_>) -> Result<(), record::Error> {
    for id in &changed.pools {
        let value = root.pools.get(id).map(|pool| encode_pool(pool));
        each(&numbered(POOL, &id.0.to_be_bytes()), value.as_deref())?;
    }
    for (id, chunk) in &changed.chunks {
        let slots = root.pools.get(id).and_then(|pool| pool.chunks.get(*chunk as usize));
        let value = slots.map(|slots| encode_slots(slots));
        each(&numbered(SLOTS, &slots_name(*id, *chunk)), value.as_deref())?;
    }
    Ok(())
}

fn slots_name(id: PoolId, chunk: u32) -> [u8; 12] {
    let mut name = [0; 12];
    name[..8].copy_from_slice(&id.0.to_be_bytes());
    name[8..].copy_from_slice(&chunk.to_be_bytes());
    name
}

fn encode_pool(pool: &Pool) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u8(pool.options.free_percent);
    out.put_u64(pool.next_write);
    out.put_u32(pool.chunks.len() as u32);
    out.put_u32(pool.openings.len() as u32);
    for opening in pool.openings.iter() {
        [opening.first, opening.epoch, opening.live].iter().for_each(|number| out.put_u64(*number));
    }
    out
}

fn encode_slots(slots: &Chunk) -> Vec<u8> {
    let mut out = Vec::new();
    let used = slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    for slot in slots.iter().take(used) {
        let Some(slot) = slot else {
            out.extend_from_slice(&[0; 20]);
            continue;
        };
        out.put_u32(slot.extent.number);
        out.put_u64(slot.extent.allocation);
        out.put_u64(slot.first_write);
        slot.live.encode(&mut out);
    }
    out
}

fn decode_slots(bytes: &[u8], extent_pages: u32) -> Result<Chunk, Error> {
    let mut cursor = Cursor::new(bytes, "slots of a pool");
    let mut slots = Chunk::with_capacity(CHUNK_SLOTS);
    while slots.len() < CHUNK_SLOTS && !cursor.is_empty() {
        let extent = Extent { number: cursor.u32()?, allocation: cursor.u64()? };
        let first_write = cursor.u64()?;
        let slot = match extent.allocation {
            0 => None,
            _ => Some(Slot { extent, first_write, live: Bits::decode(extent_pages, &mut cursor)? }),
        };
        slots.push(slot);
    }
    slots.resize(CHUNK_SLOTS, None);
    if cursor.is_empty() { Ok(slots) } else { Err(cursor.corrupt()) }
}

/// Puts the pools of a checkpoint into a root.
pub(crate) fn decode(records: &Map<RecordKey, Arc<[u8]>>, layout: &Layout, root: &mut Root) -> Result<(), Error> {
    for (number, bytes) in of_kind(records, POOL) {
        let id = PoolId(number_of(number)?);
        root.add_pool(id, decode_pool(records, id, bytes, layout)?)?;
    }
    Ok(())
}

fn decode_pool(records: &Map<RecordKey, Arc<[u8]>>, id: PoolId, bytes: &[u8], layout: &Layout) -> Result<Pool, Error> {
    let mut cursor = Cursor::new(bytes, "pool of a checkpoint");
    let options = PoolOptions { free_percent: cursor.u8()? };
    let next_write = cursor.u64()?;
    let (chunk_count, opening_count) = (cursor.u32()?, cursor.u32()?);
    let mut openings = Vec::new();
    for _ in 0..opening_count {
        openings.push(Opening { first: cursor.u64()?, epoch: cursor.u64()?, live: cursor.u64()? });
    }
    if !cursor.is_empty() {
        return Err(cursor.corrupt());
    }
    let mut chunks = Vec::new();
    for chunk in 0..chunk_count {
        let bytes = records.get(&numbered(SLOTS, &slots_name(id, chunk))).ok_or_else(|| cursor.corrupt())?;
        chunks.push(Arc::new(decode_slots(bytes, layout.extent_pages)?));
    }
    Pool::from_parts(options, layout.extent_pages, chunks, openings, next_write)
}
