//! The record store on a chip, from the first format to the refusal of yesterday's flash.
//!
//! A chip sells plays of a song. The number of plays that are left is a record on flash that its owner could unsolder, copy
//! and put back; the counter is in the chip. Build and run: `scripts/run-firmware example`.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use counterfoil_firmware::{Buffers, RamCounter};
use counterfoil_flash::{BlockNumber, Device, Error as FlashError, Geometry, PageNumber, Read};
use counterfoil_record::alone::{Error, Shape, Standalone, Surroundings};
use counterfoil_vault::{DatabaseId, Suite, Vault, VolumeKey};

const PART: Geometry =
    Geometry { page_bytes: 512, block_pages: 8, block_count: 5, erase_before_program: true, grows: false };
const PART_BYTES: usize = 5 * 8 * 512;

/// Where the store stands on the part, and how it is cut up. It is the same at every opening.
const SHAPE: Shape =
    Shape { first_block: 0, block_count: 5, index_blocks: 2, page_entries: 16, names: 0, is_salted: false };

/// 40 changes of the index wait in memory; one leaf of the index is enough for 240 records; a bit for each of 24 * 16 entries.
type Memory = Buffers<40, 1, 48>;

/// The driver of the flash. Here it is RAM.
#[derive(Clone)]
struct Flash([u8; PART_BYTES]);

impl Read for Flash {
    fn geometry(&self) -> Geometry {
        PART
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), FlashError> {
        let at = PART.locate(page, offset, buffer.len())? as usize;
        buffer.copy_from_slice(&self.0[at..at + buffer.len()]);
        Ok(())
    }
}

impl Device for Flash {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), FlashError> {
        let at = PART.locate(page, 0, data.len())? as usize;
        self.0[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), FlashError> {
        let bytes = (PART.block_pages * PART.page_bytes) as usize;
        let at = PART.locate(PART.first_page(block), 0, bytes)? as usize;
        self.0[at..at + bytes].fill(0xFF);
        Ok(())
    }

    /// Returns once what was written survives a power cut. RAM has no cache before it.
    fn flush(&mut self) -> Result<(), FlashError> {
        Ok(())
    }
}

/// Runs through the life of a store; how many plays are left at the end.
fn life(flash: &mut Flash, counter: &mut RamCounter, memory: &mut Memory) -> Result<u8, Error> {
    // The key is in the chip, out of the reach of whoever has the flash. The name is no secret, and never the same for two.
    let vault = Vault::new(&VolumeKey::from_bytes(&[7; 32]), DatabaseId([1; 32]), Suite::AsconAead128);

    // A new store, and one record in it: seven plays. Commit returns once it is durable and counted.
    let around = Surroundings { device: flash, vault: &vault, counter: Some(counter), entropy: None };
    let mut store: Standalone<'_, Flash, u16> = Standalone::format(around, SHAPE, memory.memory())?;
    let song = store.allocate()?;
    store.commit(&[(song, Some(&[7]))])?;
    hprintln!("sold: 7 plays of song {}", song.0);

    // The power goes: nothing has to be written, and what is in memory may be lost. Opening finds the newest commit.
    *memory = Memory::new();
    let yesterday = flash.clone();
    let around = Surroundings { device: flash, vault: &vault, counter: Some(counter), entropy: None };
    let mut store: Standalone<'_, Flash, u16> = Standalone::open(around, SHAPE, memory.memory())?;
    let mut record = [0; 16];
    for _ in 0..3 {
        let bytes = store.read(song, &mut record)?;
        let [left] = record[..bytes] else { return Err(Error::Corrupt) };
        // One less is durable before the first note sounds.
        store.commit(&[(song, Some(&[left - 1]))])?;
        hprintln!("played: {} left", left - 1);
    }
    store.read(song, &mut record)?;
    let left = record[0];

    // The owner puts back the flash as it was when all seven plays were left.
    *flash = yesterday;
    let around = Surroundings { device: flash, vault: &vault, counter: Some(counter), entropy: None };
    match Standalone::<Flash, u16>::open(around, SHAPE, memory.memory()) {
        Err(Error::RolledBack) => hprintln!("yesterday's flash put back: refused"),
        Err(other) => return Err(other),
        Ok(_) => hprintln!("yesterday's flash put back: TAKEN"),
    }
    Ok(left)
}

#[entry]
fn main() -> ! {
    let (mut flash, mut counter, mut memory) = (Flash([0xFF; PART_BYTES]), RamCounter::default(), Memory::new());
    hprintln!("{} bytes of memory for the store", size_of::<Memory>());
    let status = match life(&mut flash, &mut counter, &mut memory) {
        Ok(4) => debug::EXIT_SUCCESS,
        Ok(left) => {
            hprintln!("{} plays are left", left);
            debug::EXIT_FAILURE
        }
        Err(error) => {
            hprintln!("{}", error);
            debug::EXIT_FAILURE
        }
    };
    loop {
        debug::exit(status);
    }
}
