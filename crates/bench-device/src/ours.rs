//! Our store: `counterfoil_record::alone`, sealed, with its counter.

use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Memory, Moved, Opening, Shape, Standalone, Surroundings};
use counterfoil_vault::{Counter as _, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

use crate::board::Board;
use crate::observed::{Observed, RingOf};
use crate::subject::{COUNTER_BYTES, Counter, Refusal, Subject};
use crate::work::{Ring, Work};

/// Bytes that a counter takes on a page: its record, and its entry of the directory.
pub const LIVE_BYTES: usize = COUNTER_BYTES + 3;
/// Bytes of a page beside its body: the clear head with a block number of two bytes, and the tag.
const PAGE_HEAD_BYTES: usize = 26;
/// Where the head says which block of the rings it is in, those of the index counted last.
const BLOCK_AT: usize = 8;
const SUPERBLOCK: &[u8] = b"foilchip";
const OPENINGS: usize = 8;

/// How a part is cut up, and how much memory the store gets.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub index_blocks: u32,
    /// Changes of the index that may wait.
    pub pending: usize,
}

impl Layout {
    /// What docs/devices.md advises: a fifth of the blocks, two at least; 160 waiting changes, and one for each 2 KB of a larger
    /// part.
    pub fn advised(board: &Board) -> Self {
        let bytes = (board.blocks() * board.block_pages()) as usize * board.page_bytes();
        Self { index_blocks: (board.blocks() / 5).max(2), pending: (bytes / 2048).max(160) }
    }

    fn shape(&self, board: &Board) -> Shape {
        let (block_count, index_blocks) = (board.blocks(), self.index_blocks);
        Shape { first_block: 0, block_count, index_blocks, page_entries: 17, names: 0, is_salted: false }
    }

    /// Blocks of both rings stand all over the part, so a page itself says which ring it is of. A page without a head is the
    /// superblock of an index block.
    fn ring_of(&self, board: &Board) -> RingOf {
        let data_blocks = board.blocks() - self.index_blocks;
        Box::new(move |page, _| {
            let block = u32::from(u16::from_le_bytes([page[BLOCK_AT], page[BLOCK_AT + 1]]));
            if page.starts_with(SUPERBLOCK) || block >= data_blocks { Ring::Index } else { Ring::Data }
        })
    }

    /// How many counters there are for each part of what the data ring can hold: its bodies, less one block.
    pub fn counters(&self, board: &Board, fill: f64) -> u32 {
        let pages = (board.blocks() - self.index_blocks - 1) * board.block_pages();
        let usable = pages as usize * (board.page_bytes() - PAGE_HEAD_BYTES);
        (usable as f64 * fill / LIVE_BYTES as f64) as u32
    }
}

/// The buffers of a store.
struct Buffers {
    pending: Vec<Moved<u16>>,
    leaves: Vec<u16>,
    blocks: Vec<u16>,
    live: Vec<u8>,
    openings: Vec<Opening>,
    page: Vec<u8>,
    scratch: Vec<u8>,
}

impl Buffers {
    fn new(board: &Board, layout: &Layout, counters: u32) -> Self {
        let sizes = layout.shape(board).sizes::<u16>(&board.part().geometry).expect("a board suits a store");
        Self {
            pending: vec![Moved::EMPTY; layout.pending],
            leaves: vec![0; counters.div_ceil(sizes.leaf_ids).clamp(1, sizes.leaves_max) as usize],
            blocks: vec![0; board.blocks() as usize],
            live: vec![0; sizes.live_bytes],
            openings: vec![Opening::EMPTY; OPENINGS],
            page: vec![0; sizes.page_bytes],
            scratch: vec![0; sizes.page_bytes],
        }
    }

    /// Bytes that they take in memory.
    fn bytes(&self) -> usize {
        size_of_val(&self.pending[..])
            + size_of_val(&self.leaves[..])
            + size_of_val(&self.blocks[..])
            + self.live.len()
            + size_of_val(&self.openings[..])
            + self.page.len()
            + self.scratch.len()
    }
}

/// Bytes of memory that a store of so many counters gets.
pub fn memory_bytes(board: &Board, layout: &Layout, counters: u32) -> usize {
    Buffers::new(board, layout, counters).bytes()
}

/// Makes a store with room for the ids of so many counters, and hands it over with its part.
pub fn with<T>(
    board: &Board,
    layout: &Layout,
    counters: u32,
    user: impl FnOnce(&mut dyn Subject, &Observed) -> T,
) -> Result<T, Refusal> {
    let mut device = Observed::new(board.part(), layout.ring_of(board));
    let seen = device.clone();
    let mut counter = MemoryCounter::at(0, None);
    let steps = counter.clone();
    let vault = Vault::new(&VolumeKey::from_bytes(&[3; 32]), DatabaseId([4; 32]), Suite::Aes128Ocb3);
    let mut buffers = Buffers::new(board, layout, counters);
    let memory = Memory {
        pending: &mut buffers.pending,
        leaves: &mut buffers.leaves,
        blocks: &mut buffers.blocks,
        live: &mut buffers.live,
        openings: &mut buffers.openings,
        page: &mut buffers.page,
        scratch: &mut buffers.scratch,
    };
    let around = Surroundings { device: &mut device, vault: &vault, counter: Some(&mut counter), entropy: None };
    let store = Standalone::format(around, layout.shape(board), memory).map_err(refusal)?;
    let mut ours = Ours { store, seen: seen.clone(), steps };
    Ok(user(&mut ours, &seen))
}

struct Ours<'a> {
    store: Standalone<'a, Observed, u16>,
    seen: Observed,
    steps: MemoryCounter,
}

fn refusal(error: Error) -> Refusal {
    if error == Error::Full { Refusal::Full } else { Refusal::Other(error.to_string()) }
}

impl Subject for Ours<'_> {
    fn read(&mut self, id: u32) -> Result<Counter, Refusal> {
        let mut counter = [0; COUNTER_BYTES];
        self.store.read(RecordId(id), &mut counter).map_err(refusal)?;
        Ok(counter)
    }

    fn commit(&mut self, changes: &[(u32, Counter)]) -> Result<(), Refusal> {
        let changes: Vec<_> = changes.iter().map(|(id, counter)| (RecordId(*id), Some(&counter[..]))).collect();
        self.store.commit(&changes).map(drop).map_err(refusal)
    }

    fn work(&self) -> Work {
        let counter_steps = self.steps.clone().value().map_or(0, |counter| counter.value);
        Work { counter_steps, ..self.seen.work() }
    }
}
