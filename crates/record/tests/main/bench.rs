//! What every test has on its bench: a part, a vault, working memory, and a map that says what is true.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil_flash::{Device, Geometry, Read};
use counterfoil_record::{BufferSizes, Buffers, Change, Error, Name, Reader, RecordId, Run, Store, Which, Window};
use counterfoil_vault::{DatabaseId, Epoch, Suite, Vault, VolumeKey};

use crate::part::{Part, Random};

/// What a store holds.
pub type Truth = BTreeMap<u32, Vec<u8>>;

/// Changes with owned bytes.
pub type Changes = Vec<(u32, Option<Vec<u8>>)>;

pub fn borrowed(changes: &Changes) -> Vec<Change<'_>> {
    changes.iter().map(|(id, record)| (RecordId(*id), record.as_deref())).collect()
}

pub fn apply(truth: &mut Truth, changes: &Changes) {
    for (id, record) in changes {
        match record {
            Some(record) => truth.insert(*id, record.clone()),
            None => truth.remove(id),
        };
    }
}

fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// An epoch that no other opening of this process has.
pub fn fresh_epoch() -> Epoch {
    let mut salt = [0; 16];
    salt[..8].copy_from_slice(&unique().to_le_bytes());
    Epoch { number: 1, salt }
}

/// A vault of a database of its own.
pub fn fresh_vault() -> Vault {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&unique().to_le_bytes());
    Vault::new(&VolumeKey::from_bytes(&[42; 32]), DatabaseId(id), Suite::Aes256GcmSiv)
}

/// Working memory.
pub struct Memory {
    index: Vec<u32>,
    runs: Vec<Run>,
    page: Vec<u8>,
    scratch: Vec<u8>,
}

impl Memory {
    pub fn new(geometry: &Geometry, window: &Window, ids: usize) -> Memory {
        let sizes = BufferSizes::of(geometry, window).unwrap();
        Memory {
            index: vec![7; ids],
            runs: vec![Run::EMPTY; sizes.runs],
            page: vec![7; sizes.page_bytes],
            scratch: vec![7; sizes.page_bytes],
        }
    }

    pub fn buffers(&mut self) -> Buffers<'_> {
        Buffers { index: &mut self.index, runs: &mut self.runs, page: &mut self.page, scratch: &mut self.scratch }
    }
}

/// The shape of a test.
#[derive(Clone, Copy)]
pub struct Shape {
    pub page_bytes: u32,
    pub block_pages: u32,
    pub blocks: u64,
    pub erase: bool,
    pub ids: usize,
    pub doubled: bool,
}

pub const NAND: Shape = Shape { page_bytes: 256, block_pages: 8, blocks: 12, erase: true, ids: 40, doubled: false };
pub const FILE: Shape = Shape { page_bytes: 512, block_pages: 8, blocks: 12, erase: false, ids: 64, doubled: true };

impl Shape {
    /// The window leaves a block free on each side, which nobody may touch.
    pub fn window(&self) -> Window {
        Window { first_block: 1, block_count: self.blocks, doubled: self.doubled }
    }

    /// The pages of the window, each with its copies.
    pub fn copies(&self) -> impl Iterator<Item = Vec<usize>> + use<> {
        let (block, doubled) = (self.block_pages as usize, self.doubled);
        let pages = self.blocks as usize * block;
        (block..block + pages).map(move |page| if doubled { vec![page, page + pages] } else { vec![page] })
    }

    pub fn part(&self) -> Part {
        let copies = if self.doubled { 2 } else { 1 };
        Part::new(self.page_bytes, self.block_pages, copies * self.blocks + 2, self.erase)
    }

    pub fn memory(&self) -> Memory {
        Memory::new(&self.part().geometry, &self.window(), self.ids)
    }
}

/// Everything in the store, by `visit`; also that `ids`, `count` and `read` agree.
pub fn contents<R: Read>(reader: &mut Reader<'_, R>) -> Result<Truth, Error> {
    let mut found = Truth::new();
    reader.visit::<Error>(|id, record| {
        assert!(found.insert(id.0, record.to_vec()).is_none(), "a record came twice");
        Ok(())
    })?;
    assert_eq!(reader.count() as usize, found.len());
    let mut buffer = vec![0; 4096];
    let ids: Vec<_> = reader.ids().collect();
    assert_eq!(ids.len(), found.len());
    for id in ids {
        let length = reader.read(id, &mut buffer)?;
        assert_eq!(found[&id.0], buffer[..length]);
    }
    Ok(found)
}

/// Opens an image for reading and takes everything out of it.
pub fn look<R: Read>(part: &R, vault: &Vault, shape: &Shape, which: Which) -> Result<(Name, Truth), Error> {
    let mut memory = shape.memory();
    let mut reader = Reader::open(part, vault, shape.window(), which, memory.buffers())?;
    let name = reader.name();
    Ok((name, contents(&mut reader)?))
}

/// Opens a store for writing.
pub fn open<'a, D: Device>(
    part: &'a mut D,
    vault: &'a Vault,
    memory: &'a mut Memory,
    shape: &Shape,
    which: Which,
) -> Result<Store<'a, D>, Error> {
    let store = Store::open(part, vault, shape.window(), which, Some(fresh_epoch()), memory.buffers())?;
    store.check();
    Ok(store)
}

pub fn format<'a, D: Device>(part: &'a mut D, vault: &'a Vault, memory: &'a mut Memory, shape: &Shape) -> Store<'a, D> {
    let store = Store::format(part, vault, shape.window(), fresh_epoch(), memory.buffers()).unwrap();
    store.check();
    store
}

/// Random changes to ids below `ids`, records up to `bytes` long.
pub fn random_changes(random: &mut Random, ids: usize, bytes: usize, count: usize) -> Changes {
    (0..count)
        .map(|_| {
            let id = random.below(ids) as u32;
            let record = (random.below(4) > 0).then(|| {
                let (length, fill) = (random.below(bytes + 1), random.next() as u8);
                (0..length).map(|place| fill.wrapping_add(place as u8)).collect()
            });
            (id, record)
        })
        .collect()
}
