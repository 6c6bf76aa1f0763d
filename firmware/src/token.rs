//! The NAND chip of the MILo-DB paper's token, in a file of the debugger's host: blocks of 64 pages with 2 KB, each page four sectors
//! of 512 bytes. A sector is what is programmed and sealed, one after another, as parts with one bit a cell allow: what waits in memory
//! until it fills one is a quarter of what would wait for a page.
//!
//! The chip is there once. What it has been told lives as long as its power: [`Token`]s are handles to it, for a reader
//! and a writer, before and after an opening that was cut off.

use core::cell::RefCell;

use cortex_m::interrupt::{Mutex, free};
use counterfoil_flash::{BlockNumber, Device, Error, Geometry, Operation, PageNumber, Read};

use crate::Meters;
use crate::host::File;

/// Bytes that are programmed at once: a sector.
pub const PAGE_BYTES: usize = 512;
/// Sectors in a block.
pub const BLOCK_PAGES: usize = 256;
/// Blocks of the chip.
pub const BLOCKS: usize = 256;

/// What the chip answers to a page that is programmed out of order, or twice.
const MANNERS: i32 = -1;
/// What it answers when the file fails.
const FILE: i32 = -2;
/// What it answers once its power is gone.
const POWER: i32 = -3;

struct Chip {
    file: Option<File>,
    /// Pages of every block that were programmed since its last erase.
    programmed: [u16; BLOCKS],
    meters: Meters,
    power: Power,
}

/// How long the chip has power.
enum Power {
    On,
    /// Until so many pages more have been programmed, and half of one.
    For(u32),
    Off,
}

static CHIP: Mutex<RefCell<Chip>> =
    Mutex::new(RefCell::new(Chip { file: None, programmed: [0; BLOCKS], meters: NOTHING, power: Power::On }));

const NOTHING: Meters = Meters {
    reads: 0,
    read_sectors: 0,
    read_bytes: 0,
    programs: 0,
    scattered_programs: 0,
    program_bytes: 0,
    erases: 0,
    flushes: 0,
};

fn with<T>(work: impl FnOnce(&mut Chip) -> T) -> T {
    free(|section| work(&mut CHIP.borrow(section).borrow_mut()))
}

/// A handle to the chip.
#[derive(Clone, Copy)]
pub struct Token;

impl Token {
    /// The chip as it comes out of the factory, all erased; none if the host gives no file.
    pub fn erased() -> Option<Token> {
        let file = File::create(c"token.image")?;
        let is_erased = (0..BLOCKS * BLOCK_PAGES).all(|page| file.write(page * PAGE_BYTES, &[0xFF; PAGE_BYTES]));
        with(|chip| chip.file = Some(file));
        is_erased.then_some(Token)
    }

    /// The power goes while the page after the next `pages` is being programmed: half of it is written, and from then on
    /// nothing is.
    pub fn cut_after(&self, pages: u32) {
        with(|chip| chip.power = Power::For(pages));
    }

    /// The power is back.
    pub fn power_on(&self) {
        with(|chip| chip.power = Power::On);
    }

    /// What the chip has done.
    pub fn meters(&self) -> Meters {
        with(|chip| chip.meters)
    }
}

fn checked(good: bool, operation: Operation, page: PageNumber, code: i32) -> Result<(), Error> {
    if good { Ok(()) } else { Err(Error::Device { operation, page, code }) }
}

impl Chip {
    fn write(&self, at: usize, bytes: &[u8]) -> bool {
        self.file.as_ref().is_some_and(|file| file.write(at, bytes))
    }

    fn require_power(&self, operation: Operation, page: PageNumber) -> Result<(), Error> {
        checked(!matches!(self.power, Power::Off), operation, page, POWER)
    }

    fn program(&mut self, number: usize, data: &[u8]) -> Result<(), Error> {
        let page = PageNumber(number as u64);
        self.require_power(Operation::Program, page)?;
        let (block, position) = (number / BLOCK_PAGES, number % BLOCK_PAGES);
        let next = self.programmed.get_mut(block).ok_or(Error::OutOfRange { page, page_count: Token.pages() })?;
        checked(position >= usize::from(*next), Operation::Program, page, MANNERS)?;
        // What was tried is written, whole or not.
        *next = position as u16 + 1;
        match &mut self.power {
            Power::For(0) => {
                self.power = Power::Off;
                self.write(number * PAGE_BYTES, &data[..PAGE_BYTES / 2]);
                return checked(false, Operation::Program, page, POWER);
            }
            Power::For(left) => *left -= 1,
            Power::On | Power::Off => {}
        }
        checked(self.write(number * PAGE_BYTES, data), Operation::Program, page, FILE)?;
        self.meters.programs += 1;
        self.meters.program_bytes += data.len() as u64;
        Ok(())
    }

    fn erase(&mut self, block: usize) -> Result<(), Error> {
        let first = PageNumber((block * BLOCK_PAGES) as u64);
        self.require_power(Operation::Erase, first)?;
        self.programmed[block] = 0;
        self.meters.erases += 1;
        let mut pages = block * BLOCK_PAGES..(block + 1) * BLOCK_PAGES;
        let is_erased = pages.all(|page| self.write(page * PAGE_BYTES, &[0xFF; PAGE_BYTES]));
        checked(is_erased, Operation::Erase, first, FILE)
    }
}

impl Token {
    fn pages(&self) -> u64 {
        (BLOCKS * BLOCK_PAGES) as u64
    }
}

impl Read for Token {
    fn geometry(&self) -> Geometry {
        Geometry {
            page_bytes: PAGE_BYTES as u32,
            block_pages: BLOCK_PAGES as u32,
            block_count: BLOCKS as u64,
            erase_before_program: true,
            grows: false,
        }
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        let at = self.geometry().locate(page, offset, buffer.len())? as usize;
        let pages = (offset as usize + buffer.len()).div_ceil(PAGE_BYTES);
        with(|chip| {
            chip.meters.reads += pages as u64;
            chip.meters.read_bytes += buffer.len() as u64;
            let is_read = chip.file.as_ref().is_some_and(|file| file.read(at, buffer));
            checked(is_read, Operation::Read, page, FILE)
        })
    }
}

impl Device for Token {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        let at = self.geometry().locate(page, 0, data.len())? as usize;
        (at / PAGE_BYTES..)
            .zip(data.chunks(PAGE_BYTES))
            .try_for_each(|(number, data)| with(|chip| chip.program(number, data)))
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        self.geometry().locate(self.geometry().first_page(block), 0, BLOCK_PAGES * PAGE_BYTES)?;
        with(|chip| chip.erase(block.0 as usize))
    }

    fn flush(&mut self) -> Result<(), Error> {
        with(|chip| {
            chip.meters.flushes += 1;
            chip.require_power(Operation::Flush, PageNumber(0))
        })
    }
}
