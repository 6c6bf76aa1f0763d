//! The yardstick: the design of the GnatDb paper (sections 3 to 5), rebuilt to count what it does.
//!
//! ```text
//! data segment:   | page | page | ...   written round robin; each page: a page index and records
//! index segment:  | copy | copy | ...   a whole copy of the index with every commit
//! ```
//! 1. The index is an array of page numbers, one byte each (4.1): 255 pages at most. On larger parts, which the paper does
//!    not have, it is two bytes, and everything else stays as it is.
//! 2. A commit writes its records to the log's end and then the index anew: reads its pages and writes them all (4.4).
//! 3. Before a block is erased, what is current in it stands elsewhere, told by an index copy on the medium (4.4.1).
//! 4. Every page carries the version number that arithmetic predicts (5), and it is checked with every read.
//!
//! Where the paper leaves a choice, the cheaper one is taken: a commit puts its records behind those that cleaning has moved,
//! into one page; the page of the index that was read last serves until another one is needed; a counter steps once a
//! commit. No cipher runs: each page read or written counts as two passes. Nothing is recovered: a store lives as long as
//! its run.

mod data_page;
mod index;
mod log;
mod secure;

use counterfoil_flash::{Geometry, PageNumber, Read};

use crate::board::Board;
use crate::observed::Observed;
use crate::subject::{COUNTER_BYTES, Counter, Refusal, Subject};
use crate::work::{Ring, Work};

use data_page::SLOT_BYTES;
use index::Index;
use log::Log;
use secure::{BODY_BYTES, Segment};

/// Bytes that a counter takes on a page: its record, and its slot of the page index.
pub const LIVE_BYTES: usize = COUNTER_BYTES + SLOT_BYTES;
/// Bytes of the buffers that hold ids and new places of records while blocks are cleaned (4.4.1).
const RELOCATIONS_MAX: usize = 128 / 4;

/// How a part is cut up.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub index_blocks: u32,
    /// Bytes of a page number in the index.
    pub slot_bytes: usize,
}

impl Layout {
    /// The smallest index segment in which a copy of the index of a full store can be written beside the one before.
    pub fn of(board: &Board) -> Self {
        let slot_bytes = if board.blocks() * board.block_pages() <= 256 { 1 } else { 2 };
        let suits = |index_blocks: &u32| {
            let layout = Self { index_blocks: *index_blocks, slot_bytes };
            let copy_pages = index::pages(layout.counters(board, 1.0), slot_bytes);
            2 * copy_pages - 1 <= (index_blocks - 1) * board.block_pages()
        };
        let index_blocks = (2..board.blocks()).find(suits).expect("a part that has room for an index");
        Self { index_blocks, slot_bytes }
    }

    /// How many counters there are for each part of what the data segment can hold: its bodies, less one block.
    pub fn counters(&self, board: &Board, fill: f64) -> u32 {
        let pages = (board.blocks() - self.index_blocks - 1) * board.block_pages();
        (f64::from(pages) * BODY_BYTES as f64 * fill / LIVE_BYTES as f64) as u32
    }

    fn segments(&self, geometry: &Geometry) -> (Segment, Segment) {
        let block_pages = geometry.block_pages;
        let data = (geometry.block_count as u32 - self.index_blocks) * block_pages;
        let index = self.index_blocks * block_pages;
        (Segment::new(0, data, block_pages), Segment::new(data, index, block_pages))
    }
}

/// Makes a store and hands it over with its part.
pub fn with<T>(board: &Board, layout: &Layout, user: impl FnOnce(&mut dyn Subject, &Observed) -> T) -> T {
    let (data, _) = layout.segments(&board.part().geometry);
    let ring_of =
        move |_: &[u8], page: PageNumber| if page.0 < u64::from(data.pages) { Ring::Data } else { Ring::Index };
    let device = Observed::new(board.part(), Box::new(ring_of));
    user(&mut Yardstick::new(device.clone(), layout), &device)
}

/// A store as the paper describes it.
pub struct Yardstick {
    device: Observed,
    log: Log,
    index: Index,
    counter_steps: u64,
}

impl Yardstick {
    pub fn new(device: Observed, layout: &Layout) -> Self {
        let (data, index) = layout.segments(&device.geometry());
        assert!(layout.slot_bytes > 1 || data.pages <= 255, "a byte has no room for more pages");
        Self { device, log: Log::new(data), index: Index::new(index, layout.slot_bytes), counter_steps: 0 }
    }
}

impl Subject for Yardstick {
    fn read(&mut self, id: u32) -> Result<Counter, Refusal> {
        // Buffers are on the stack of one call (4.2), so nothing of the index is left in memory from the call before.
        self.index.forget();
        let page = self.index.page_of(&self.device, id).ok_or_else(|| Refusal::Other(format!("no record {id}")))?;
        self.log.read(&self.device, page, id).ok_or_else(|| Refusal::Other(format!("no version of {id}")))
    }

    fn commit(&mut self, changes: &[(u32, Counter)]) -> Result<(), Refusal> {
        self.index.forget();
        let Self { device, log, index, .. } = self;
        log.begin_commit();
        for (id, counter) in changes {
            log.append(device, index, *id, counter)?;
        }
        log.end_commit(device, index);
        self.counter_steps += 1;
        Ok(())
    }

    fn work(&self) -> Work {
        Work { counter_steps: self.counter_steps, ..self.device.work() }
    }
}

#[cfg(test)]
mod tests;
