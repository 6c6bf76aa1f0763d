//! How evenly the blocks of a part wear, however differently the two rings go round.

use std::cell::RefCell;

use counterfoil_flash::{BlockNumber, Device, Error, Geometry, MemoryDevice, PageNumber, Read};
use counterfoil_flash_sim::Dice;
use counterfoil_record::RecordId;
use counterfoil_record::alone::{Memory, Moved, Opening, Shape, Standalone, Surroundings};
use counterfoil_vault::{DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

use crate::chip::is_full_size;

/// A part that counts how often each of its blocks is erased.
struct Counting {
    part: MemoryDevice,
    erases: RefCell<Vec<u64>>,
}

impl Read for Counting {
    fn geometry(&self) -> Geometry {
        self.part.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.part.read(page, offset, buffer)
    }
}

impl Device for Counting {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        self.part.program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        self.erases.borrow_mut()[block.0 as usize] += 1;
        self.part.erase(block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.part.flush()
    }
}

const PART: Geometry =
    Geometry { page_bytes: 512, block_pages: 16, block_count: 16, erase_before_program: true, grows: false };

/// Opens 200 times, and commits in between; the least and the most erases of a block.
fn wear(counters: u64, commits: usize) -> (u64, u64) {
    let mut part = Counting { part: MemoryDevice::new(PART).expect("a part"), erases: RefCell::new(vec![0; 16]) };
    let mut counter = MemoryCounter::at(0, None);
    let vault = Vault::new(&VolumeKey::from_bytes(&[3; 32]), DatabaseId([4; 32]), Suite::AsconAead128);
    let shape =
        Shape { first_block: 0, block_count: 16, index_blocks: 3, page_entries: 17, names: 0, is_salted: false };
    let (mut pending, mut leaves, mut openings) = ([Moved::<u16>::EMPTY; 120], [0; 16], [Opening::EMPTY; 8]);
    let (mut blocks, mut live, mut page, mut scratch) = ([0; 16], [0; 442], [0; 512], [0; 512]);
    let (mut dice, openings_made) = (Dice::new(1), 200);
    for opening in 0..=openings_made {
        let memory = Memory {
            pending: &mut pending,
            leaves: &mut leaves,
            blocks: &mut blocks,
            live: &mut live,
            openings: &mut openings,
            page: &mut page,
            scratch: &mut scratch,
        };
        let around = Surroundings { device: &mut part, vault: &vault, counter: Some(&mut counter), entropy: None };
        let mut store = match opening {
            0 => Standalone::format(around, shape, memory).expect("made"),
            _ => Standalone::open(around, shape, memory).expect("opens"),
        };
        if opening == 0 {
            for first in (0..counters as u32).step_by(10) {
                let changes = (first..(first + 10).min(counters as u32)).map(|id| (RecordId(id), Some(&[7; 24][..])));
                store.commit(&changes.collect::<Vec<_>>()).expect("loads");
            }
        }
        for turn in 0..commits / openings_made {
            let ids = (0..1 + dice.below(5)).map(|_| RecordId(dice.below(counters) as u32));
            let record = [turn as u8; 24];
            store.commit(&ids.map(|id| (id, Some(&record[..]))).collect::<Vec<_>>()).expect("commits");
        }
    }
    let erases = part.erases.borrow();
    (*erases.iter().min().expect("blocks"), *erases.iter().max().expect("blocks"))
}

/// `cargo test -p counterfoil-record --test alone wear -- --nocapture` prints the table.
#[test]
fn all_blocks_wear_alike() {
    let commits = if is_full_size() { 1_000_000 } else { 20_000 };
    for counters in [40, 1500, 2500] {
        let (least, most) = wear(counters, commits);
        println!("{counters} counters, {commits} commits: each block was erased {least} to {most} times");
        assert!(most * 2 < least * 3, "{counters} counters: blocks were erased {least} to {most} times");
    }
}
