//! A NAND chip beside the processor: 128 KB in a file of the debugger's host, with the manners of the part.

use core::cell::Cell;

use counterfoil_flash::{BlockNumber, Device, Error, Geometry, Operation, PageNumber, Read};

use crate::Meters;
use crate::host::File;

const PAGE_BYTES: usize = 512;
const BLOCK_PAGES: usize = 16;
const BLOCKS: usize = 16;
/// What the chip answers to a page that is programmed out of order, or twice.
const MANNERS: i32 = -1;
/// What it answers when the file fails.
const FILE: i32 = -2;

/// The chip of the GnatDb paper, 128 KB of it.
pub struct HostedNand<'a> {
    file: File,
    /// Pages of every block that were programmed since its last erase.
    programmed: [usize; BLOCKS],
    meters: &'a Cell<Meters>,
}

fn checked(good: bool, operation: Operation, page: PageNumber, code: i32) -> Result<(), Error> {
    if good { Ok(()) } else { Err(Error::Device { operation, page, code }) }
}

impl<'a> HostedNand<'a> {
    /// An erased chip that counts into `meters`; none if the host gives no file.
    pub fn new(meters: &'a Cell<Meters>) -> Option<Self> {
        let file = File::create(c"nand.image")?;
        let is_erased = (0..BLOCKS * BLOCK_PAGES).all(|page| file.write(page * PAGE_BYTES, &[0xFF; PAGE_BYTES]));
        is_erased.then_some(HostedNand { file, programmed: [0; BLOCKS], meters })
    }

    fn count(&self, count: impl FnOnce(&mut Meters)) {
        let mut meters = self.meters.get();
        count(&mut meters);
        self.meters.set(meters);
    }
}

impl Read for HostedNand<'_> {
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
        self.count(|meters| {
            meters.reads += pages as u64;
            meters.read_bytes += buffer.len() as u64;
        });
        checked(self.file.read(at, buffer), Operation::Read, page, FILE)
    }
}

impl Device for HostedNand<'_> {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        let at = self.geometry().locate(page, 0, data.len())? as usize;
        for (number, data) in (at / PAGE_BYTES..).zip(data.chunks(PAGE_BYTES)) {
            let next = &mut self.programmed[number / BLOCK_PAGES];
            checked(number % BLOCK_PAGES >= *next, Operation::Program, page, MANNERS)?;
            *next = number % BLOCK_PAGES + 1;
            checked(self.file.write(number * PAGE_BYTES, data), Operation::Program, page, FILE)?;
            self.count(|meters| {
                meters.programs += 1;
                meters.program_bytes += data.len() as u64;
            });
        }
        Ok(())
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        let first = self.geometry().first_page(block);
        let at = self.geometry().locate(first, 0, BLOCK_PAGES * PAGE_BYTES)? as usize;
        self.programmed[block.0 as usize] = 0;
        self.count(|meters| meters.erases += 1);
        for page in 0..BLOCK_PAGES {
            let is_erased = self.file.write(at + page * PAGE_BYTES, &[0xFF; PAGE_BYTES]);
            checked(is_erased, Operation::Erase, first, FILE)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.count(|meters| meters.flushes += 1);
        Ok(())
    }
}
