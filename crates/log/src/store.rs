//! The checkpoint store: named values of any length over the record store's numbered ones.
//!
//! A value is cut into chunks of at most a page; every chunk is a record that says whose it is:
//!
//! ```text
//!  0        2              2+n      6+n       10+n
//!  | n u16  | name (n)     | chunk  | chunks  | bytes ... |
//! ```
//!
//! The record store is put aside between checkpoints and taken up again for the next: it borrows medium and vault only
//! while it works.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_flash::{Device, Geometry, PageNumber, Read};
use counterfoil_record::{
    self as record, BufferSizes, Buffers, Changes as _, Reader, RecordId, Run, Store, Suspended, Which, Window,
};
use counterfoil_vault::{Epoch, Vault};

use crate::bytes::{Cursor, Put};
use crate::layout::{CHUNK_HEAD_BYTES, Layout};
use crate::maps::Map;
use crate::names::Names;
use crate::record_key::RecordKey;
use crate::{Cause, Error};

/// Takes a record to be written, by its name, or the name of one to be taken away.
pub(crate) type Each<'e> = dyn FnMut(&[u8], Option<&[u8]>) -> Result<(), record::Error> + 'e;

/// What a checkpoint changes, told one record after the other: no two of them need to be in memory together. It is told
/// several times, the same each time.
pub(crate) trait Told {
    /// Tells all records, and stops at the first error.
    fn tell(&self, each: &mut Each<'_>) -> Result<(), record::Error>;
}

/// A chunk that was found: where, of how many, its bytes.
type FoundChunk = (RecordId, u32, Vec<u8>);

/// Takes a record that was read, in the order of the medium: no two of them need to be in memory together.
pub(crate) type Take<'t> = dyn FnMut(&[u8], &[u8]) -> Result<(), Error> + 't;

/// Records for which the index has room when nothing is known of it yet. On a host it has what the window has room for.
const IDS_AT_FIRST: usize = if cfg!(feature = "small") { 256 } else { usize::MAX };
/// Records for which there is room beyond those that a commit makes.
const SPARE_IDS: usize = 32;
/// The id of a record that is yet to be given one.
const NO_ID: RecordId = RecordId(u32::MAX);
/// What the index says of an id without a record.
const NO_RECORD: u32 = u32::MAX;

/// Working memory of the record store. With little memory the index has room for the records that there are and those of the next
/// commit: the window may have room for a hundred times as many.
struct Memory {
    index: Vec<u32>,
    runs: Vec<Run>,
    sizes: BufferSizes,
}

/// Two pages, while the record store works.
struct PagePair {
    page: Vec<u8>,
    scratch: Vec<u8>,
}

impl Memory {
    fn new(geometry: &Geometry, window: &Window) -> Result<Memory, Error> {
        let sizes = BufferSizes::of(geometry, window)?;
        Ok(Memory { index: Vec::new(), runs: vec![Run::EMPTY; sizes.runs], sizes })
    }

    /// Makes room for so many records in all, or as many as the window has room for.
    fn hold(&mut self, ids: usize) {
        let ids = ids.min(self.sizes.ids_max as usize);
        if self.index.len() < ids {
            self.index.reserve_exact(ids - self.index.len());
            self.index.resize(ids, NO_RECORD);
        }
    }

    /// Whether there can be room for so many records where there is none now.
    fn can_hold(&self, ids: usize) -> bool {
        (self.index.len()..self.sizes.ids_max as usize).contains(&ids.saturating_sub(1))
    }

    fn pages(&self) -> PagePair {
        PagePair { page: vec![0; self.sizes.page_bytes], scratch: vec![0; self.sizes.page_bytes] }
    }

    fn buffers<'b>(&'b mut self, pages: &'b mut PagePair) -> Buffers<'b> {
        Buffers { index: &mut self.index, runs: &mut self.runs, page: &mut pages.page, scratch: &mut pages.scratch }
    }
}

/// Named values over the record store.
pub(crate) struct CheckpointStore {
    memory: Memory,
    /// None after a failure, for good: then the writer has latched.
    suspended: Option<Suspended>,
    /// The epoch under which commits are made, once one was.
    epoch: Option<Epoch>,
    /// A version to be released when the store is taken up again.
    released: Option<u64>,
    names: Names,
    version: u64,
    layout: Layout,
}

fn window_of(layout: &Layout, geometry: &Geometry) -> Window {
    let blocks = u64::from(layout.extent_pages / geometry.block_pages);
    Window {
        first_block: u64::from(layout.window_first) * blocks,
        block_count: u64::from(layout.window_extents) * blocks,
        doubled: true,
    }
}

impl From<record::Error> for Error {
    fn from(error: record::Error) -> Error {
        from_record(error)
    }
}

fn from_record(error: record::Error) -> Error {
    match error {
        record::Error::Device(error) => Error::from(Cause::Device(error)),
        record::Error::Tampered { page } => Error::tampered("checkpoint", page.0),
        record::Error::Corrupt { what, .. } => Error::corrupt(what),
        record::Error::NoCommit { .. } => Error::tampered("checkpoint", 0),
        record::Error::Full { needed, .. } => Error::full(needed, None),
        record::Error::IdsExhausted { limit } => Error::full(u64::from(limit), None),
        record::Error::Geometry(what) | record::Error::Misuse(what) => Error::misuse(what),
        record::Error::Latched => Error::latched(),
        _ => Error::misuse("the record store was not used as it must be"),
    }
}

impl CheckpointStore {
    /// Makes an empty store under the epoch of the opening that follows.
    #[inline(never)]
    pub(crate) fn create(
        device: &mut dyn Device,
        vault: &Vault,
        layout: &Layout,
        epoch: Epoch,
    ) -> Result<Box<CheckpointStore>, Error> {
        let geometry = device.geometry();
        let window = window_of(layout, &geometry);
        let mut memory = Memory::new(&geometry, &window)?;
        memory.hold(IDS_AT_FIRST);
        let mut pages = memory.pages();
        let store = Store::format(device, vault, window, epoch, memory.buffers(&mut pages))?;
        let (version, suspended) = (store.version(), store.suspend());
        let mut store = CheckpointStore::of(layout, memory);
        (store.version, store.suspended, store.epoch) = (version, Some(suspended), Some(epoch));
        Ok(store)
    }

    /// One that is not filled yet: what it is to hold is found in its place, and not on the stack.
    fn of(layout: &Layout, memory: Memory) -> Box<CheckpointStore> {
        let (names, layout) = (Names::default(), *layout);
        Box::new(CheckpointStore { memory, suspended: None, epoch: None, released: None, names, version: 0, layout })
    }

    /// Finds the newest checkpoint that authenticates and reads all of it. Writes nothing.
    #[inline(never)]
    pub(crate) fn load(
        media: &dyn Read,
        vault: &Vault,
        layout: &Layout,
        take: &mut Take<'_>,
    ) -> Result<Box<CheckpointStore>, Error> {
        let mut store = find(media, vault, layout)?;
        store.names = store.read_all(media, vault, take)?.join(take)?;
        Ok(store)
    }

    /// Its records are handed over as they come, but for those that come in parts.
    #[inline(never)]
    fn read_all(&mut self, media: &dyn Read, vault: &Vault, take: &mut Take<'_>) -> Result<Chunks, Error> {
        let mut pages = self.memory.pages();
        let mut chunks = Chunks::default();
        let mut reader = read_again(&mut self.suspended, media, vault, self.memory.buffers(&mut pages))?;
        reader.visit(|id, bytes| chunks.add(id, bytes, take))?;
        self.version = reader.version();
        put_reader_aside(&mut self.suspended, reader);
        Ok(chunks)
    }

    /// Writes the changes as one commit and tells its version.
    ///
    /// A cut before the commit page leaves the commit before, whole.
    pub(crate) fn commit(
        &mut self,
        device: &mut dyn Device,
        vault: &Vault,
        epoch: Epoch,
        records: &dyn Told,
    ) -> Result<u64, Error> {
        let record_bytes_max = self.memory.sizes.record_bytes_max;
        let mut names = core::mem::take(&mut self.names);
        let mut lacking = 0;
        let cut = Cut { records, names: &names, record_bytes_max };
        cut.visit(&mut |id, _| {
            lacking += usize::from(id == NO_ID);
            Ok(())
        })?;
        self.memory.hold(names.end() + lacking + SPARE_IDS);
        let done = self.with_store(device, vault, epoch, |store| {
            commit_into(store, &mut names, records, record_bytes_max).map_err(Error::from)
        });
        names.settle(done.is_ok());
        self.names = names;
        self.version = done?;
        Ok(self.version)
    }

    /// Moves records together so that a release gives room; none if nothing can be gained.
    pub(crate) fn prepare(
        &mut self,
        device: &mut dyn Device,
        vault: &Vault,
        epoch: Epoch,
    ) -> Result<Option<u64>, Error> {
        let version = self.with_store(device, vault, epoch, |store| store.prepare().map_err(from_record))?;
        self.version = version.unwrap_or(self.version);
        Ok(version)
    }

    /// Makes good what only one of its copies has lost; how many pages there were.
    #[inline(never)]
    pub(crate) fn mend_copies(&mut self, device: &mut dyn Device, vault: &Vault) -> Result<u32, Error> {
        let mut pages = self.memory.pages();
        let mut store = taken_up(&mut self.suspended, device, vault, self.memory.buffers(&mut pages))?;
        let mended = store.mend_copies()?;
        put_aside(&mut self.suspended, store);
        Ok(mended)
    }

    /// The copies of pages that are lost, and whether the other copy is there.
    pub(crate) fn damaged_pages(&mut self, media: &dyn Read, vault: &Vault) -> Result<Vec<(PageNumber, bool)>, Error> {
        let suspended = self.suspended.take().ok_or_else(Error::latched)?;
        let mut pages = self.memory.pages();
        let mut reader = Reader::resume(media, vault, suspended, self.memory.buffers(&mut pages))?;
        let mut damaged = Vec::new();
        let looked = reader.damaged_pages(|page, is_there| damaged.push((page, is_there)));
        self.suspended = Some(reader.suspend());
        looked?;
        Ok(damaged)
    }

    /// Takes the store up, lets `work` use it and puts it aside again.
    fn with_store<T>(
        &mut self,
        device: &mut dyn Device,
        vault: &Vault,
        epoch: Epoch,
        work: impl FnOnce(&mut Store<'_, dyn Device + '_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut pages = self.memory.pages();
        let mut store = taken_up(&mut self.suspended, device, vault, self.memory.buffers(&mut pages))?;
        if let Some(version) = self.released.take() {
            store.release(version);
        }
        if self.epoch != Some(epoch) {
            store.start_writing(epoch)?;
            self.epoch = Some(epoch);
        }
        let done = work(&mut store);
        put_aside(&mut self.suspended, store);
        done
    }

    /// Says that a frame naming this version is durable and counted.
    pub(crate) fn release(&mut self, version: u64) {
        self.released = Some(version);
    }

    /// Whether it has a record of this name.
    pub(crate) fn tells_of(&self, key: &[u8]) -> bool {
        self.names.of(key).next().is_some()
    }

    /// Where the store lives.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// The newest commit of the store.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Bytes that all records together may have, as [`CheckpointStore::bytes_of`] counts them.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.layout.record_bytes_max()
    }

    /// Whether records of so many bytes leave too little room for containers and the map of extents beside them.
    pub(crate) fn is_small_for(&self, bytes: u64) -> bool {
        bytes > self.bytes_max() / 2
    }

    /// Bytes that a record of this size takes.
    pub(crate) fn bytes_of(&self, key_bytes: usize, value_bytes: usize) -> u64 {
        self.layout.record_bytes(key_bytes, value_bytes)
    }
}

/// Takes up a store that was put aside. What is moved for that is on the stack here, and not beneath what is done with it.
#[inline(never)]
fn taken_up<'s>(
    suspended: &mut Option<Suspended>,
    device: &'s mut (dyn Device + 's),
    vault: &'s Vault,
    buffers: Buffers<'s>,
) -> Result<Box<Store<'s, dyn Device + 's>>, Error> {
    match suspended.take() {
        Some(suspended) => Store::resume(device, vault, suspended, buffers).map(Box::new).map_err(from_record),
        None => Err(Error::latched()),
    }
}

#[inline(never)]
fn put_aside(suspended: &mut Option<Suspended>, store: Box<Store<'_, dyn Device + '_>>) {
    *suspended = Some((*store).suspend());
}

/// The same of a reader.
#[inline(never)]
fn read_again<'s>(
    suspended: &mut Option<Suspended>,
    media: &'s dyn Read,
    vault: &'s Vault,
    buffers: Buffers<'s>,
) -> Result<Box<Reader<'s, dyn Read + 's>>, Error> {
    match suspended.take() {
        Some(suspended) => Reader::resume(media, vault, suspended, buffers).map(Box::new).map_err(from_record),
        None => Err(Error::latched()),
    }
}

#[inline(never)]
fn put_reader_aside(suspended: &mut Option<Suspended>, reader: Box<Reader<'_, dyn Read + '_>>) {
    *suspended = Some((*reader).suspend());
}

/// The newest checkpoint that authenticates.
#[inline(never)]
fn find(media: &dyn Read, vault: &Vault, layout: &Layout) -> Result<Box<CheckpointStore>, Error> {
    let geometry = media.geometry();
    let window = window_of(layout, &geometry);
    let mut store = CheckpointStore::of(layout, Memory::new(&geometry, &window)?);
    store.memory.hold(IDS_AT_FIRST);
    let mut pages = store.memory.pages();
    while let Some(needed) = look(&mut store, (media, vault), window, &mut pages)? {
        // No more than the window has room for, and that ends it: the other buffers have the size they must have.
        if !store.memory.can_hold(needed) {
            return Err(Error::corrupt("record number of a checkpoint"));
        }
        store.memory.hold(needed.max(store.memory.index.len().saturating_mul(2)));
    }
    Ok(store)
}

/// Looks for it with the room that there is for records; for how many there should be room, if it is too little.
#[inline(never)]
fn look(
    store: &mut CheckpointStore,
    (media, vault): (&dyn Read, &Vault),
    window: Window,
    pages: &mut PagePair,
) -> Result<Option<usize>, Error> {
    match Reader::find(media, vault, window, Which::Newest, store.memory.buffers(pages)) {
        Ok(suspended) => store.suspended = Some(suspended),
        Err(record::Error::BufferTooSmall { needed, .. }) => return Ok(Some(needed)),
        Err(error) => return Err(error.into()),
    }
    Ok(None)
}

/// Commits records; those that are new are given ids, which are lost with a commit that does not come to be, until another one does.
/// So whether it fits is asked before.
fn commit_into(
    store: &mut Store<'_, dyn Device + '_>,
    names: &mut Names,
    records: &dyn Told,
    record_bytes_max: usize,
) -> Result<u64, record::Error> {
    if !store.fits(&Cut { records, names, record_bytes_max }) {
        return Err(record::Error::Full { needed: 0, free: 0 });
    }
    records.tell(&mut |key, value| {
        let count = value.map_or(0, |value| chunks_of(record_bytes_max, key, value).1);
        match names.assign(key, count, || store.allocate())? {
            true => Ok(()),
            false => Err(record::Error::IdsExhausted { limit: store.ids_max() }),
        }
    })?;
    store.commit_told(&Cut { records, names, record_bytes_max })
}

/// Records, cut into chunks: ids that a name has already are used first.
struct Cut<'c> {
    records: &'c dyn Told,
    names: &'c Names,
    record_bytes_max: usize,
}

/// The bytes of a value that go into a chunk, and how many chunks there are.
fn chunks_of(record_bytes_max: usize, key: &[u8], value: &[u8]) -> (usize, usize) {
    let room = record_bytes_max.saturating_sub(CHUNK_HEAD_BYTES as usize + key.len()).max(1);
    (room, value.len().div_ceil(room).max(1))
}

impl record::Changes for Cut<'_> {
    fn visit(&self, each: &mut record::EachChange<'_>) -> Result<(), record::Error> {
        self.records.tell(&mut |key, value| {
            let mut ids = self.names.of(key);
            if let Some(value) = value {
                let (room, count) = chunks_of(self.record_bytes_max, key, value);
                for chunk in 0..count {
                    let part = value.get(chunk * room..value.len().min((chunk + 1) * room)).unwrap_or_default();
                    each(ids.next().unwrap_or(NO_ID), Some(&encode_chunk(key, chunk, count, part)))?;
                }
            }
            ids.try_for_each(|id| each(id, None))
        })
    }
}

fn encode_chunk(key: &[u8], chunk: usize, chunks: usize, part: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CHUNK_HEAD_BYTES as usize + key.len() + part.len());
    bytes.extend_from_slice(&(key.len() as u16).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.put_u32(chunk as u32);
    bytes.put_u32(chunks as u32);
    bytes.extend_from_slice(part);
    bytes
}

/// Chunks as they are found, in any order.
#[derive(Default)]
struct Chunks {
    /// Those of records that have several.
    found: Map<RecordKey, Map<u32, FoundChunk>>,
    names: Names,
}

impl Chunks {
    fn add(&mut self, id: RecordId, bytes: &[u8], take: &mut Take<'_>) -> Result<(), Error> {
        let mut cursor = Cursor::new(bytes, "record of a checkpoint");
        let name_bytes = u16::from_le_bytes(cursor.array()?);
        let key = cursor.take(usize::from(name_bytes))?;
        let (chunk, chunks) = (cursor.u32()?, cursor.u32()?);
        if chunks == 1 {
            if chunk != 0 || !self.name(key, &[id.0]) {
                return Err(cursor.corrupt());
            }
            return take(key, cursor.rest());
        }
        let before =
            self.found.entry(RecordKey::of(&[key])).or_default().insert(chunk, (id, chunks, cursor.rest().to_vec()));
        if before.is_some() { Err(cursor.corrupt()) } else { Ok(()) }
    }

    /// Notes which chunks hold a name; whether that makes sense, and none did.
    fn name(&mut self, key: &[u8], ids: &[u32]) -> bool {
        self.names.of(key).next().is_none() && self.names.add(key, ids)
    }

    /// Puts the values together that came in parts; a chunk missing or too many is corruption.
    #[inline(never)]
    fn join(mut self, take: &mut Take<'_>) -> Result<Names, Error> {
        let corrupt = || Error::corrupt("record of a checkpoint");
        while let Some((key, chunks)) = self.found.pop_first() {
            let count = chunks.len() as u32;
            let whole = chunks.iter().zip(0..).all(|((chunk, (_, of, _)), index)| *chunk == index && *of == count);
            let ids: Vec<u32> = chunks.values().map(|(id, _, _)| id.0).collect();
            if !whole || !self.name(&key, &ids) {
                return Err(corrupt());
            }
            let value: Vec<u8> = chunks.into_values().flat_map(|(_, _, bytes)| bytes).collect();
            take(&key, &value)?;
        }
        Ok(self.names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Taken = Map<RecordKey, Vec<u8>>;

    /// Chunks, and what comes of them.
    fn joined(chunks: &[(u32, &[u8])]) -> Result<(Taken, Names), Error> {
        let mut taken = Taken::new();
        let mut take = |key: &[u8], value: &[u8]| {
            taken.insert(RecordKey::of(&[key]), value.to_vec());
            Ok(())
        };
        let mut found = Chunks::default();
        chunks.iter().try_for_each(|(id, bytes)| found.add(RecordId(*id), bytes, &mut take))?;
        let names = found.join(&mut take)?;
        Ok((taken, names))
    }

    #[test]
    fn chunks_join_in_any_order_and_gaps_are_noticed() {
        let [world, hello] =
            [(1, b"world".as_slice()), (0, b"hello ")].map(|(at, part)| encode_chunk(b"\x02long", at, 2, part));
        let (empty, single) = (encode_chunk(b"\x02", 0, 1, b""), encode_chunk(b"\x02long", 0, 1, b"x"));
        let (taken, names) = joined(&[(4, &world), (9, &hello), (1, &empty)]).unwrap();
        assert_eq!(taken.get(b"\x02long".as_slice()).unwrap(), b"hello world");
        assert!(names.of(b"\x02long").eq([RecordId(9), RecordId(4)]));
        assert_eq!(taken.get(b"\x02".as_slice()).unwrap(), b"");
        assert!(joined(&[(4, &world)]).is_err(), "a gap");
        assert!(joined(&[(4, &empty), (5, &empty)]).is_err(), "one twice");
        assert!(joined(&[(4, &world), (9, &hello), (5, &single)]).is_err(), "one twice, in parts and not");
        assert!(joined(&[(4, &encode_chunk(b"\x02", 1, 1, b""))]).is_err(), "the second of one");
        assert!(joined(&[(1, &[200, 0, 1])]).is_err());
    }
}
