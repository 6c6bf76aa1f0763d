//! The part, the blocks of it that are free, the sectors of it that are in memory, and what was done.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use counterfoil_flash::{BlockNumber, Device, PageNumber, Read};
use counterfoil_flash_sim::{Part, Scenario, SimulatedDevice};

use crate::milo::cost::Cost;

pub const PAGE_BYTES: usize = 2048;
pub const BLOCK_PAGES: u64 = 64;
const SECTOR_BYTES: usize = 512;
/// Sectors that stay in memory: 8 KB, as our engine keeps four pages.
const SECTORS_KEPT: usize = 16;

/// A part of the paper's token. A simulated part that nothing happens to does what it is asked, so what it refuses is our mistake.
pub struct Nand {
    device: SimulatedDevice,
    free: Vec<u64>,
    /// The first block that was never used.
    next: u64,
    cipher: Cell<u64>,
    kept: RefCell<Kept>,
}

/// Sectors in memory, each with when it was used last.
#[derive(Default)]
struct Kept {
    sectors: HashMap<(u64, usize), ([u8; SECTOR_BYTES], u64)>,
    uses: u64,
}

impl Kept {
    fn sector(&mut self, place: (u64, usize)) -> Option<&[u8; SECTOR_BYTES]> {
        self.uses += 1;
        let (bytes, used) = self.sectors.get_mut(&place)?;
        *used = self.uses;
        Some(bytes)
    }

    fn keep(&mut self, place: (u64, usize), bytes: &[u8]) {
        if self.sectors.len() == SECTORS_KEPT && !self.sectors.contains_key(&place) {
            let oldest = self.sectors.iter().min_by_key(|(_, (_, used))| *used).map(|(place, _)| *place);
            oldest.map(|oldest| self.sectors.remove(&oldest));
        }
        self.uses += 1;
        let mut sector = [0; SECTOR_BYTES];
        sector.copy_from_slice(bytes);
        self.sectors.insert(place, (sector, self.uses));
    }
}

impl Nand {
    pub fn new(blocks: u64) -> Self {
        let device = SimulatedDevice::new(Part::milo_token(blocks), Scenario::calm(1));
        Self { device, free: Vec::new(), next: 0, cipher: Cell::new(0), kept: RefCell::default() }
    }

    pub fn cost(&self) -> Cost {
        Cost { meters: self.device.meters(), cipher: self.cipher.get() }
    }

    /// Lets the co-processor work on so many bytes that lie together.
    pub fn cipher(&self, bytes: usize) {
        self.cipher.set(self.cipher.get() + bytes.div_ceil(16) as u64);
    }

    /// Erases a block and hands it over.
    pub fn take_block(&mut self) -> u64 {
        let block = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.device.erase(BlockNumber(block)).expect("a part that is large enough");
        block
    }

    /// Takes a block back.
    pub fn free_block(&mut self, block: u64) {
        self.kept.get_mut().sectors.retain(|(page, _), _| page / BLOCK_PAGES != block);
        self.free.push(block);
    }

    /// Programs a page; its ciphering is the caller's to tell.
    pub fn program(&mut self, page: u64, bytes: &[u8; PAGE_BYTES]) {
        self.device.program(PageNumber(page), bytes).expect("pages are programmed once, in order");
    }

    /// Reads without keeping: what is read from end to end.
    pub fn pass(&self, page: u64, offset: usize, buffer: &mut [u8]) {
        self.device.read(PageNumber(page), offset as u32, buffer).expect("a calm part reads");
    }

    /// Reads within a page, what is in memory from there; whether anything was transferred.
    pub fn read(&self, page: u64, offset: usize, buffer: &mut [u8]) -> bool {
        let mut kept = self.kept.borrow_mut();
        let sectors = offset / SECTOR_BYTES..(offset + buffer.len()).div_ceil(SECTOR_BYTES);
        let missing: Vec<usize> = sectors.clone().filter(|sector| kept.sector((page, *sector)).is_none()).collect();
        let base = sectors.start * SECTOR_BYTES;
        let mut bytes = vec![0; sectors.len() * SECTOR_BYTES];
        if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
            let range = first * SECTOR_BYTES - base..(last + 1) * SECTOR_BYTES - base;
            self.pass(page, first * SECTOR_BYTES, &mut bytes[range]);
        }
        for (sector, part) in sectors.zip(bytes.chunks_exact_mut(SECTOR_BYTES)) {
            match missing.contains(&sector) {
                true => kept.keep((page, sector), part),
                false => part.copy_from_slice(kept.sector((page, sector)).expect("was there a moment ago")),
            }
        }
        buffer.copy_from_slice(&bytes[offset - base..][..buffer.len()]);
        !missing.is_empty()
    }
}
