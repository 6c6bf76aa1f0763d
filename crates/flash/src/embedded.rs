//! Drivers of the `embedded-storage` crate: any of its NOR flashes is a medium.

use core::cell::RefCell;

use embedded_storage::nor_flash::{NorFlash, NorFlashError, NorFlashErrorKind};

use crate::{BlockNumber, Device, Error, Geometry, Operation, PageNumber, Read};

/// The largest unit of reading.
const READ_BYTES_MAX: usize = 64;

/// A NOR flash behind the traits of `embedded-storage`, from its first byte to its last whole block. Blocks are the driver's
/// units of erase; the caller chooses the page. Error codes are 1 for arguments not aligned, 2 out of bounds, 3 any other.
///
/// That trait reads through `&mut self`, so this medium is not shared between threads. It has no flush: a driver returns
/// from writing once that is durable.
pub struct EmbeddedFlash<F> {
    flash: RefCell<F>,
    geometry: Geometry,
}

impl<F: NorFlash> EmbeddedFlash<F> {
    /// The medium behind this driver, in pages of `page_bytes`.
    ///
    /// # Errors
    /// [`Error::Shape`] where the page is not a multiple of what is written at once, nor the block of the page, or the driver
    /// reads in units of more than 64 bytes.
    pub fn new(flash: F, page_bytes: u32) -> Result<Self, Error> {
        let is_multiple = |bytes: usize, of: usize| of > 0 && bytes >= of && bytes.is_multiple_of(of);
        let reason = if !is_multiple(page_bytes as usize, F::WRITE_SIZE) {
            "a page is not a multiple of what the driver writes at once"
        } else if !is_multiple(F::ERASE_SIZE, page_bytes as usize) {
            "what the driver erases at once is not a multiple of a page"
        } else if !is_multiple(page_bytes as usize, F::READ_SIZE) || F::READ_SIZE > READ_BYTES_MAX {
            "the driver reads in units that do not divide a page, or of more than 64 bytes"
        } else {
            let geometry = Geometry {
                page_bytes,
                block_pages: (F::ERASE_SIZE / page_bytes as usize) as u32,
                block_count: (flash.capacity().min(u32::MAX as usize) / F::ERASE_SIZE) as u64,
                erase_before_program: true,
                grows: false,
            };
            geometry.validate()?;
            return Ok(Self { flash: RefCell::new(flash), geometry });
        };
        Err(Error::Shape { reason })
    }

    /// Gives the driver back.
    pub fn into_inner(self) -> F {
        self.flash.into_inner()
    }
}

fn failed(operation: Operation, page: PageNumber, error: &impl NorFlashError) -> Error {
    let code = match error.kind() {
        NorFlashErrorKind::NotAligned => 1,
        NorFlashErrorKind::OutOfBounds => 2,
        _ => 3,
    };
    Error::Device { operation, page, code }
}

impl<F: NorFlash> Read for EmbeddedFlash<F> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        let mut at = self.geometry.locate(page, offset, buffer.len())? as u32;
        let mut flash = self.flash.borrow_mut();
        let unit = F::READ_SIZE;
        let mut rest = buffer;
        while !rest.is_empty() {
            let within = at as usize % unit;
            let whole = rest.len() / unit * unit;
            let count = if within == 0 && whole > 0 {
                let (piece, _) = rest.split_at_mut(whole);
                flash.read(at, piece).map_err(|error| failed(Operation::Read, page, &error))?;
                whole
            } else {
                let mut bytes = [0; READ_BYTES_MAX];
                let bytes = &mut bytes[..unit];
                flash.read(at - within as u32, bytes).map_err(|error| failed(Operation::Read, page, &error))?;
                let count = rest.len().min(unit - within);
                rest[..count].copy_from_slice(&bytes[within..within + count]);
                count
            };
            at += count as u32;
            rest = &mut rest[count..];
        }
        Ok(())
    }
}

impl<F: NorFlash> Device for EmbeddedFlash<F> {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        assert!(data.len().is_multiple_of(self.geometry.page_bytes as usize), "pages are programmed whole");
        let at = self.geometry.locate(page, 0, data.len())? as u32;
        self.flash.get_mut().write(at, data).map_err(|error| failed(Operation::Program, page, &error))
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        let page = self.geometry.first_page(block);
        let bytes = self.geometry.page_bytes * self.geometry.block_pages;
        let at = self.geometry.locate(page, 0, bytes as usize)? as u32;
        self.flash.get_mut().erase(at, at + bytes).map_err(|error| failed(Operation::Erase, page, &error))
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use embedded_storage::nor_flash::{ErrorType, ReadNorFlash, check_erase, check_read, check_write};

    use super::*;

    /// Four blocks of 1 KB that are read by 4 bytes and written by 8.
    struct Part([u8; 4096]);

    impl ErrorType for Part {
        type Error = NorFlashErrorKind;
    }

    impl ReadNorFlash for Part {
        const READ_SIZE: usize = 4;

        fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), NorFlashErrorKind> {
            check_read(self, offset, bytes.len())?;
            bytes.copy_from_slice(&self.0[offset as usize..][..bytes.len()]);
            Ok(())
        }

        fn capacity(&self) -> usize {
            4096
        }
    }

    impl NorFlash for Part {
        const WRITE_SIZE: usize = 8;
        const ERASE_SIZE: usize = 1024;

        fn erase(&mut self, from: u32, to: u32) -> Result<(), NorFlashErrorKind> {
            check_erase(self, from, to)?;
            self.0[from as usize..to as usize].fill(0xFF);
            Ok(())
        }

        fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), NorFlashErrorKind> {
            check_write(self, offset, bytes.len())?;
            let cells = self.0[offset as usize..].iter_mut();
            cells.zip(bytes).for_each(|(cell, byte)| *cell &= byte);
            Ok(())
        }
    }

    fn device() -> EmbeddedFlash<Part> {
        EmbeddedFlash::new(Part([0xFF; 4096]), 256).expect("a shape")
    }

    #[test]
    fn a_driver_is_a_medium() -> Result<(), Error> {
        let mut device = device();
        assert_eq!((device.geometry().block_pages, device.geometry().block_count), (4, 4));
        let data: [u8; 512] = core::array::from_fn(|index| (index % 251) as u8);
        device.program(PageNumber(3), &data)?;
        device.flush()?;
        for (offset, bytes) in [(0, 512), (1, 2), (3, 1), (2, 9), (5, 500), (255, 2), (4, 3)] {
            let mut back = [7; 512];
            device.read(PageNumber(3), offset, &mut back[..bytes])?;
            assert_eq!(back[..bytes], data[offset as usize..][..bytes], "{bytes} from {offset}");
        }
        device.erase(BlockNumber(0))?;
        let mut byte = [0];
        device.read(PageNumber(3), 9, &mut byte)?;
        assert_eq!(byte, [0xFF]);
        device.read(PageNumber(4), 0, &mut byte)?;
        assert_eq!(byte, [data[256]]);
        let past = Error::OutOfRange { page: PageNumber(16), page_count: 16 };
        assert_eq!(device.read(PageNumber(15), 1, &mut [0; 256]), Err(past));
        assert_eq!(device.program(PageNumber(16), &[0; 256]), Err(past));
        assert_eq!(device.into_inner().0[1024], data[256]);
        Ok(())
    }

    #[test]
    fn pages_that_do_not_suit_a_driver_are_refused() {
        for page_bytes in [2048, 100, 0, 6] {
            let refused = EmbeddedFlash::new(Part([0; 4096]), page_bytes);
            assert!(matches!(refused.map(drop), Err(Error::Shape { .. })), "{page_bytes}");
        }
    }
}
