//! Bad blocks of raw flash, hidden: a block that is bad from the factory, or fails, is replaced by one of a reserve.
//!
//! ```text
//! raw device:  | blocks 0 .. n as they are seen | reserve | table blocks |
//! table page:  | magic [8] | number u64 | reserve u32 | for each block of the reserve: what it replaces, u32 | CRC-32 |
//! ```
//! 1. The whole table is one page, written anew at each change behind the one before; the highest number whose check holds
//!    is the table. When a table block is full the next good one is erased; the one with the newest table never is.
//! 2. A block that fails is copied, as far as it reads, into a block of the reserve, with the page that failed; then the
//!    table is written. A cut before that leaves the old block as it was, with one page cut short.
//! 3. A table that a cut ended may read well now and not later. So an opening writes it once more before it writes anything
//!    else.
//!
//! The table needs no trust: seals bind the addresses that are seen, so whoever moves blocks about is noticed above.

use crate::{BlockNumber, Device, Error, Geometry, Operation, PageNumber, Read};

/// Blocks for the table.
pub const TABLE_BLOCKS: u32 = 4;
/// The code of an error: no block of the reserve, or none for the table, is left.
pub const RESERVE_SPENT: i32 = -16;
/// The code of an error: there is no table.
pub const NO_TABLE: i32 = -17;

const MAGIC: [u8; 8] = *b"CFremap1";
const HEAD_BYTES: usize = 20;
const CHECK_BYTES: usize = 4;
/// How often the newest table is looked for, when it is gone at the second look: cuts in a row may each leave such a one.
const LOOKS_MAX: usize = 8;
/// A block of the reserve that replaces nothing.
const FREE: u32 = u32::MAX;
/// One that is bad.
const BAD: u32 = u32::MAX - 1;

/// What the factory marked.
pub trait FactoryMarks {
    /// Whether the factory marked this block as bad. Asked only before the block was ever erased: erasing may wipe the mark.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn is_bad(&self, block: BlockNumber) -> Result<bool, Error>;
}

/// A device without bad blocks over one with some.
pub struct Remapped<'a, D> {
    device: D,
    geometry: Geometry,
    /// For each block of the reserve the block that it replaces.
    slots: &'a mut [u32],
    /// A page, for copies and for the table.
    page: &'a mut [u8],
    /// The number of the newest table, and where it stands.
    number: u64,
    at: u64,
    is_settled: bool,
}

impl<'a, D: Device> Remapped<'a, D> {
    /// Takes a part into use: asks for the factory's marks and writes the first table. **The marks of blocks that were ever
    /// erased may be gone: never for a part that was in use.** `slots` is as long as the reserve is to be, `page` as a page.
    ///
    /// # Errors
    /// [`Error::Shape`] for buffers that do not fit, [`Error::Device`], also if more is bad than there are reserves.
    pub fn format(device: D, slots: &'a mut [u32], page: &'a mut [u8]) -> Result<Self, Error>
    where
        D: FactoryMarks,
    {
        let mut new = Self::new(device, slots, page)?;
        new.slots.fill(FREE);
        for index in 0..new.slots.len() {
            if new.device.is_bad(new.reserve_block(index))? {
                new.slots[index] = BAD;
            }
        }
        for block in 0..new.geometry.block_count {
            if new.device.is_bad(BlockNumber(block))? {
                let index = new.free_slot().ok_or(new.spent(block))?;
                new.slots[index] = block as u32;
            }
        }
        // The first table goes into the first block behind this page.
        new.at = new.table_first().0 + new.table_pages() - 1;
        new.write_table()?;
        Ok(new)
    }

    /// Opens a part that was taken into use with as long a reserve.
    ///
    /// # Errors
    /// [`Error::Shape`] for buffers that do not fit; [`Error::Device`], with [`NO_TABLE`] where no table is found.
    pub fn open(device: D, slots: &'a mut [u32], page: &'a mut [u8]) -> Result<Self, Error> {
        let mut new = Self::new(device, slots, page)?;
        for _ in 0..LOOKS_MAX {
            new.find_table();
            if new.number > 0 && new.read_table(new.at) == Some(new.number) {
                new.take_table();
                return Ok(new);
            }
        }
        Err(Error::Device { operation: Operation::Open, page: new.table_first(), code: NO_TABLE })
    }

    fn find_table(&mut self) {
        (self.number, self.at) = (0, 0);
        let first = self.table_first().0;
        for at in first..first + self.table_pages() {
            if let Some(number) = self.read_table(at).filter(|number| *number > self.number) {
                (self.number, self.at) = (number, at);
            }
        }
    }

    fn new(device: D, slots: &'a mut [u32], page: &'a mut [u8]) -> Result<Self, Error> {
        let raw = device.geometry();
        let hidden = slots.len() as u64 + u64::from(TABLE_BLOCKS);
        let reason = if page.len() != raw.page_bytes as usize {
            "the buffer is not one page"
        } else if HEAD_BYTES + 4 * slots.len() + CHECK_BYTES > page.len() {
            "the table of the reserve does not fit into a page"
        } else if raw.grows || raw.block_count <= hidden || raw.block_count > u64::from(BAD) {
            "the reserve leaves no block"
        } else {
            let geometry = Geometry { block_count: raw.block_count - hidden, ..raw };
            return Ok(Self { device, geometry, slots, page, number: 0, at: 0, is_settled: false });
        };
        Err(Error::Shape { reason })
    }

    /// Blocks of the reserve that can still replace one.
    pub fn reserve_left(&self) -> usize {
        self.slots.iter().filter(|slot| **slot == FREE).count()
    }

    fn reserve_block(&self, index: usize) -> BlockNumber {
        BlockNumber(self.geometry.block_count + index as u64)
    }

    fn table_first(&self) -> PageNumber {
        self.geometry.first_page(self.reserve_block(self.slots.len()))
    }

    fn table_pages(&self) -> u64 {
        u64::from(TABLE_BLOCKS) * u64::from(self.geometry.block_pages)
    }

    fn free_slot(&self) -> Option<usize> {
        self.slots.iter().position(|slot| *slot == FREE)
    }

    fn spent(&self, block: u64) -> Error {
        let page = self.geometry.first_page(BlockNumber(block));
        Error::Device { operation: Operation::Program, page, code: RESERVE_SPENT }
    }

    /// Where a block lies.
    fn place(&self, block: BlockNumber) -> BlockNumber {
        let slot = self.slots.iter().position(|slot| u64::from(*slot) == block.0);
        slot.map_or(block, |index| self.reserve_block(index))
    }

    fn page_in(&self, block: BlockNumber, index: u64) -> PageNumber {
        PageNumber(self.geometry.first_page(block).0 + index)
    }

    /// Where a page lies.
    fn place_of(&self, page: PageNumber) -> PageNumber {
        let index = page.0 % u64::from(self.geometry.block_pages);
        self.page_in(self.place(self.geometry.block_of(page)), index)
    }

    /// The number of the table in this page, which then stands in the buffer.
    fn read_table(&mut self, at: u64) -> Option<u64> {
        self.device.read(PageNumber(at), 0, self.page).ok()?;
        let end = HEAD_BYTES + 4 * self.slots.len();
        let (body, check) = (self.page.get(..end)?, self.page.get(end..end + CHECK_BYTES)?);
        let reserve = u32::from_le_bytes(*body.get(16..)?.first_chunk()?);
        let is_whole =
            body.starts_with(&MAGIC) && reserve as usize == self.slots.len() && check == crc32(body).to_le_bytes();
        is_whole.then_some(u64::from_le_bytes(*body.get(8..)?.first_chunk()?))
    }

    fn take_table(&mut self) {
        for (slot, bytes) in self.slots.iter_mut().zip(self.page[HEAD_BYTES..].chunks_exact(4)) {
            *slot = bytes.first_chunk().map_or(BAD, |bytes| u32::from_le_bytes(*bytes));
        }
    }

    /// Writes the table behind the newest one, and reads it back; a table block that fails is passed over.
    fn write_table(&mut self) -> Result<(), Error> {
        let (first, pages) = (self.table_first().0, self.table_pages());
        let block_pages = u64::from(self.geometry.block_pages);
        let newest_block = (self.number > 0).then(|| self.at / block_pages);
        for step in 1..=pages {
            let at = first + (self.at - first + step) % pages;
            if newest_block == Some(at / block_pages) && at <= self.at {
                // Once round: all others failed, and this one holds the table.
                break;
            }
            let is_first = at.is_multiple_of(block_pages);
            if is_first && self.device.erase(BlockNumber(at / block_pages)).is_err() {
                continue;
            }
            self.fill_table();
            let written = self.device.program(PageNumber(at), self.page).and_then(|()| self.device.flush());
            if written == Err(Error::Latched) {
                return written;
            }
            if written.is_ok() && self.read_table(at) == Some(self.number + 1) {
                (self.number, self.at, self.is_settled) = (self.number + 1, at, true);
                return Ok(());
            }
        }
        Err(self.spent(self.geometry.block_count))
    }

    fn fill_table(&mut self) {
        self.page.fill(0xFF);
        let end = HEAD_BYTES + 4 * self.slots.len();
        self.page[..8].copy_from_slice(&MAGIC);
        self.page[8..16].copy_from_slice(&(self.number + 1).to_le_bytes());
        self.page[16..20].copy_from_slice(&(self.slots.len() as u32).to_le_bytes());
        for (bytes, slot) in self.page[HEAD_BYTES..end].chunks_exact_mut(4).zip(self.slots.iter()) {
            bytes.copy_from_slice(&slot.to_le_bytes());
        }
        let check = crc32(&self.page[..end]);
        self.page[end..end + CHECK_BYTES].copy_from_slice(&check.to_le_bytes());
    }

    fn settle(&mut self) -> Result<(), Error> {
        if self.is_settled { Ok(()) } else { self.write_table() }
    }

    /// Puts a block of the reserve in the place of one that failed: with this page, or blank. After an error nothing has
    /// changed, and the old block is still the one that is read.
    fn replace(&mut self, block: BlockNumber, written: Option<(u64, &[u8])>) -> Result<(), Error> {
        let old = self.place(block);
        let failed = self.slots.iter().position(|slot| u64::from(*slot) == block.0);
        loop {
            let index = self.free_slot().ok_or(self.spent(block.0))?;
            match self.copy(old, self.reserve_block(index), written) {
                Ok(()) => {
                    failed.into_iter().for_each(|failed| self.slots[failed] = BAD);
                    self.slots[index] = block.0 as u32;
                    let told = self.write_table();
                    if told.is_err() {
                        self.slots[index] = FREE;
                        failed.into_iter().for_each(|failed| self.slots[failed] = block.0 as u32);
                    }
                    return told;
                }
                Err(error @ Error::Device { .. }) => {
                    // One of the reserve failed; or the power did, and then nothing will succeed.
                    self.slots[index] = BAD;
                    if self.free_slot().is_none() {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Copies what reads, and what does not as zeros: a page to which a write was tried must not look blank.
    fn copy(&mut self, old: BlockNumber, new: BlockNumber, written: Option<(u64, &[u8])>) -> Result<(), Error> {
        self.device.erase(new)?;
        let Some((failed, data)) = written else { return Ok(()) };
        for index in 0..u64::from(self.geometry.block_pages) {
            let to = self.page_in(new, index);
            if index == failed {
                self.device.program(to, data)?;
                continue;
            }
            if self.device.read(self.page_in(old, index), 0, self.page).is_err() {
                self.page.fill(0);
            }
            if self.page.iter().any(|byte| *byte != 0xFF) {
                self.device.program(to, self.page)?;
            }
        }
        Ok(())
    }
}

impl<D: Device> Read for Remapped<'_, D> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        let at = self.geometry.locate(page, offset, buffer.len())?;
        let page_bytes = u64::from(self.geometry.page_bytes);
        let block_bytes = page_bytes * u64::from(self.geometry.block_pages);
        let (mut at, mut rest) = (at, buffer);
        while !rest.is_empty() {
            let count = rest.len().min((block_bytes - at % block_bytes) as usize);
            let (piece, after) = rest.split_at_mut(count);
            self.device.read(self.place_of(PageNumber(at / page_bytes)), (at % page_bytes) as u32, piece)?;
            (at, rest) = (at + count as u64, after);
        }
        Ok(())
    }
}

impl<D: Device> Device for Remapped<'_, D> {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        let page_bytes = self.geometry.page_bytes as usize;
        assert!(data.len().is_multiple_of(page_bytes), "pages are programmed whole");
        self.geometry.locate(page, 0, data.len())?;
        self.settle()?;
        for (number, bytes) in (page.0..).zip(data.chunks_exact(page_bytes)) {
            let page = PageNumber(number);
            match self.device.program(self.place_of(page), bytes) {
                Err(Error::Device { .. }) => {
                    let index = number % u64::from(self.geometry.block_pages);
                    self.replace(self.geometry.block_of(page), Some((index, bytes)))?;
                }
                outcome => outcome?,
            }
        }
        Ok(())
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        self.geometry.locate(self.geometry.first_page(block), 0, self.geometry.page_bytes as usize)?;
        self.settle()?;
        match self.device.erase(self.place(block)) {
            Err(Error::Device { .. }) => self.replace(block, None),
            outcome => outcome,
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.device.flush()
    }
}

/// CRC-32 as Ethernet has it, a bit at a time: tables are short.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_is_the_usual_one() {
        assert_eq!(super::crc32(b"123456789"), 0xCBF4_3926);
    }
}
