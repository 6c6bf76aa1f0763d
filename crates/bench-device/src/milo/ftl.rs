//! What a B+-tree would stand on (sections 2 and 7.1): a translation layer with little memory, as cards have.
//!
//! Logical blocks are mapped to blocks; a page that is written anew goes to one of a few log blocks, which any page may use, and
//! what is written in order from a block's start to a log block of its own, which then simply takes the place of the old one.
//! When log blocks run out, the oldest is emptied: every logical block with a page in it is merged into a fresh block, 64 pages read
//! and written. Memory: four bytes a block and four a page of the log blocks, 40 KB for a gigabyte.

use std::collections::{BTreeSet, HashMap, VecDeque};

use counterfoil_flash::{BlockNumber, Device, PageNumber, Read};
use counterfoil_flash_sim::{Meters, Part, Scenario, SimulatedDevice};

const PAGE_BYTES: usize = 2048;
const BLOCK_PAGES: u64 = 64;
/// Log blocks for pages in any order.
const LOG_BLOCKS: usize = 8;

pub type Page = [u8; PAGE_BYTES];

pub struct Ftl {
    device: SimulatedDevice,
    free: Vec<u64>,
    next: u64,
    /// The block of each logical block.
    blocks: HashMap<u64, u64>,
    /// The newest version of a page in the log blocks.
    logged: HashMap<u64, u64>,
    /// Log blocks with the logical pages written to them, the oldest first.
    log: VecDeque<(u64, Vec<u64>)>,
    /// What is written in order: logical block, block, pages so far.
    sequence: Option<(u64, u64, u64)>,
    /// Pages that were asked to be written.
    writes: u64,
}

impl Ftl {
    pub fn new(blocks: u64) -> Self {
        let device = SimulatedDevice::new(Part::milo_token(blocks), Scenario::calm(1));
        Self {
            device,
            free: Vec::new(),
            next: 0,
            blocks: HashMap::new(),
            logged: HashMap::new(),
            log: VecDeque::new(),
            sequence: None,
            writes: 0,
        }
    }

    pub fn meters(&self) -> Meters {
        self.device.meters()
    }

    pub fn writes(&self) -> u64 {
        self.writes
    }

    pub fn read(&self, page: u64) -> Page {
        let (block, within) = (page / BLOCK_PAGES, page % BLOCK_PAGES);
        let place = match (self.logged.get(&page), self.sequence) {
            (Some(place), _) => Some(*place),
            (None, Some((logical, new, pages))) if logical == block && within < pages => {
                Some(new * BLOCK_PAGES + within)
            }
            _ => self.blocks.get(&block).map(|block| block * BLOCK_PAGES + within),
        };
        let mut bytes = [0; PAGE_BYTES];
        if let Some(place) = place {
            self.device.read(PageNumber(place), 0, &mut bytes).expect("a calm part reads");
        }
        bytes
    }

    pub fn write(&mut self, page: u64, bytes: &Page) {
        self.writes += 1;
        let (block, within) = (page / BLOCK_PAGES, page % BLOCK_PAGES);
        if within == 0 {
            self.end_sequence();
            let new = self.take_block();
            self.sequence = Some((block, new, 0));
        }
        match &mut self.sequence {
            Some((logical, new, pages)) if *logical == block && *pages == within => {
                let place = *new * BLOCK_PAGES + within;
                *pages += 1;
                self.logged.remove(&page);
                self.program(place, bytes);
                if within + 1 == BLOCK_PAGES {
                    self.end_sequence();
                }
            }
            _ => self.write_logged(page, bytes),
        }
    }

    fn write_logged(&mut self, page: u64, bytes: &Page) {
        if self.log.back().is_none_or(|(_, pages)| pages.len() as u64 == BLOCK_PAGES) {
            if self.log.len() == LOG_BLOCKS {
                self.empty_oldest();
            }
            let block = self.take_block();
            self.log.push_back((block, Vec::new()));
        }
        let (block, pages) = self.log.back_mut().expect("a log block with room");
        let place = *block * BLOCK_PAGES + pages.len() as u64;
        pages.push(page);
        self.logged.insert(page, place);
        self.program(place, bytes);
    }

    fn empty_oldest(&mut self) {
        let Some((block, pages)) = self.log.pop_front() else { return };
        let of_block = |page: &u64| self.logged.get(page).is_some_and(|place| place / BLOCK_PAGES == block);
        let logical: BTreeSet<u64> =
            pages.iter().filter(|page| of_block(page)).map(|page| page / BLOCK_PAGES).collect();
        logical.into_iter().for_each(|logical| self.merge(logical));
        self.free_block(block);
    }

    /// Ends what was written in order: the new block takes the old one's place, with the rest of that one's pages.
    fn end_sequence(&mut self) {
        if let Some((logical, _, _)) = self.sequence {
            self.merge(logical);
        }
    }

    /// Brings the newest versions of a logical block's pages into one block.
    fn merge(&mut self, logical: u64) {
        let (new, done) = match self.sequence.take_if(|(block, _, _)| *block == logical) {
            Some((_, new, pages)) => (new, pages),
            None => (self.take_block(), 0),
        };
        // A page of the sequence that was written again later stands in a log block, and stays there.
        for within in done..BLOCK_PAGES {
            let page = logical * BLOCK_PAGES + within;
            let bytes = self.read(page);
            self.logged.remove(&page);
            self.program(new * BLOCK_PAGES + within, &bytes);
        }
        if let Some(old) = self.blocks.insert(logical, new) {
            self.free_block(old);
        }
        if done > 0 && (logical * BLOCK_PAGES..logical * BLOCK_PAGES + done).any(|page| self.logged.contains_key(&page))
        {
            self.merge(logical);
        }
    }

    fn take_block(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn free_block(&mut self, block: u64) {
        self.device.erase(BlockNumber(block)).expect("a part that is large enough");
        self.free.push(block);
    }

    fn program(&mut self, place: u64, bytes: &Page) {
        self.device.program(PageNumber(place), bytes).expect("pages are programmed once, in order");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use counterfoil_flash_sim::Dice;

    use super::*;

    /// Pages written in any order, in order, and in pieces in order, against a map.
    #[test]
    fn pages_are_what_was_written_last() {
        let (mut dice, mut ftl, mut truth) = (Dice::new(4), Ftl::new(200), BTreeMap::new());
        let mut at = 0;
        for turn in 0..20_000u32 {
            at = if dice.once_in(3) { dice.below(1600) } else { (at + 1) % 1600 };
            let mut bytes = [0; PAGE_BYTES];
            bytes[..4].copy_from_slice(&turn.to_le_bytes());
            ftl.write(at, &bytes);
            truth.insert(at, turn);
            if turn % 1000 == 999 {
                for page in 0..1600 {
                    let found = u32::from_le_bytes(ftl.read(page)[..4].try_into().expect("four bytes"));
                    assert_eq!(found, truth.get(&page).copied().unwrap_or(0), "page {page} after {turn}");
                }
            }
        }
        assert!(ftl.meters().programs > 2 * ftl.writes(), "merges copy pages");
    }
}
