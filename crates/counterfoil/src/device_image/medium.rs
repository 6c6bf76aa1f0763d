//! A part in a file: it is erased to ones, a block at a time, and programmed once between two erases.
//!
//! A cut of the host leaves what a cut of the device would: pages that were not flushed are there, torn or not there. Flash
//! keeps the order of an erase and what is programmed after it, and a file does not, so an erase is flushed.

use counterfoil_flash::{BlockNumber, Device, Error, FileDevice, Geometry, PageNumber, Read};

/// What a file is read and written in: the smallest page of a store, on whose multiples all of them begin.
pub(super) const GRAIN: Geometry =
    Geometry { page_bytes: 256, block_pages: 1, block_count: 1 << 40, erase_before_program: false, grows: true };
pub(super) const GRAIN_BYTES: u64 = 256;

/// A store's blocks in a file.
pub(super) struct PartInFile {
    pub(super) file: FileDevice,
    /// Of the part, up to the last block of the store.
    pub(super) geometry: Geometry,
    /// The first block of the store, and the byte of the file at which it begins.
    pub(super) first_block: u64,
    pub(super) start: u64,
}

impl PartInFile {
    /// Where in the file a range begins.
    fn locate(&self, page: PageNumber, offset: u32, bytes: usize) -> Result<(PageNumber, u32), Error> {
        let outside = Error::OutOfRange { page, page_count: self.geometry.page_count() };
        let before = self.geometry.first_page(BlockNumber(self.first_block)).0;
        let before = before.saturating_mul(u64::from(self.geometry.page_bytes));
        let at = self.geometry.locate(page, offset, bytes)?.checked_sub(before).ok_or(outside)?;
        let at = at.checked_add(self.start).ok_or(outside)?;
        Ok((PageNumber(at / GRAIN_BYTES), (at % GRAIN_BYTES) as u32))
    }

    fn is_erased(&self, page: PageNumber, bytes: usize) -> Result<bool, Error> {
        let mut there = vec![0; bytes];
        self.read(page, 0, &mut there)?;
        Ok(there.iter().all(|byte| *byte == 0xFF))
    }
}

impl Read for PartInFile {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        let (page, offset) = self.locate(page, offset, buffer.len())?;
        self.file.read(page, offset, buffer)
    }
}

impl Device for PartInFile {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        let (at, _) = self.locate(page, 0, data.len())?;
        if self.geometry.erase_before_program && !self.is_erased(page, data.len())? {
            return Err(Error::NotErased { page });
        }
        self.file.program(at, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        let first = self.geometry.first_page(block);
        let blank = vec![if self.geometry.erase_before_program { 0xFF } else { 0 }; self.geometry.page_bytes as usize];
        for page in first.0..first.0.saturating_add(u64::from(self.geometry.block_pages)) {
            let (at, _) = self.locate(PageNumber(page), 0, blank.len())?;
            self.file.program(at, &blank)?;
        }
        self.file.flush()
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_where_it_begins_and_is_programmed_once() -> Result<(), Error> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = FileDevice::create_new(folder.path().join("part"), GRAIN)?;
        let geometry =
            Geometry { page_bytes: 512, block_pages: 4, block_count: 5, erase_before_program: true, grows: false };
        let mut part = PartInFile { file: file.clone(), geometry, first_block: 2, start: 768 };
        for block in 2..5 {
            part.erase(BlockNumber(block))?;
        }
        assert_eq!(file.length()?, 768 + 3 * 4 * 512);
        part.program(PageNumber(9), &[7; 512])?;
        let mut bytes = [0; 4];
        file.read(PageNumber(0), 768 + 512 - 2, &mut bytes)?;
        assert_eq!(bytes, [0xFF, 0xFF, 7, 7]);
        assert_eq!(part.program(PageNumber(9), &[8; 512]), Err(Error::NotErased { page: PageNumber(9) }));
        assert!(part.read(PageNumber(7), 0, &mut bytes).is_err() && part.read(PageNumber(20), 0, &mut bytes).is_err());
        assert!(part.erase(BlockNumber(1)).is_err() && part.erase(BlockNumber(5)).is_err());
        part.erase(BlockNumber(2))?;
        part.program(PageNumber(9), &[8; 512])
    }
}
