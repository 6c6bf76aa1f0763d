//! Pages, blocks and erase: the only crate that knows a medium.
//!
//! A medium is an array of equally large *pages*, grouped into *blocks*. A page is programmed as a whole; where the
//! medium says so ([`Geometry::erase_before_program`]) it is programmed once between two erases of its block. Nothing
//! here knows what a page holds: bytes come back exactly as they were handed over, or not at all.
//!
//! Reading and writing are two traits, because many may read while one writes: [`Read`] takes `&self` and is shared,
//! [`Device`] is owned by the one writer.
//!
//! ```
//! use counterfoil_flash::{Device, Error, Geometry, MemoryDevice, PageNumber, Read};
//!
//! let shape =
//!     Geometry { page_bytes: 4096, block_pages: 64, block_count: 1 << 20, erase_before_program: false, grows: true };
//! let mut device = MemoryDevice::new(shape)?;
//! device.program(PageNumber(7), &[1; 4096])?;
//! device.flush()?;
//! let mut last = [0; 2];
//! device.read(PageNumber(7), 4094, &mut last)?;
//! assert_eq!(last, [1, 1]);
//! # Ok::<(), Error>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]
#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod banks;
#[cfg(all(feature = "std", unix))]
mod block_device;
#[cfg(feature = "embedded-storage")]
mod embedded;
mod error;
#[cfg(all(feature = "std", unix))]
mod file;
mod geometry;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod lock;
#[cfg(feature = "alloc")]
mod memory;
#[cfg(all(feature = "std", unix))]
mod raw;
mod remapped;
#[cfg(all(feature = "std", unix))]
mod signature;

pub use banks::{BankShape, Banks, WORD_BYTES_MAX};
#[cfg(all(feature = "std", unix))]
pub use block_device::{BlockDevice, Occupied};
#[cfg(feature = "embedded-storage")]
pub use embedded::EmbeddedFlash;
pub use error::{Error, Operation};
#[cfg(all(feature = "std", unix))]
pub use file::FileDevice;
pub use geometry::{BlockNumber, Geometry, MEDIUM_BYTES_MAX, PAGE_BYTES_MAX, PAGE_BYTES_MIN, PageNumber};
#[cfg(feature = "alloc")]
pub use memory::MemoryDevice;
#[cfg(all(feature = "std", unix))]
pub use raw::Handle;
pub use remapped::{FactoryMarks, NO_TABLE, RESERVE_SPENT, Remapped, TABLE_BLOCKS};

/// What everyone may do with a medium.
pub trait Read {
    /// The shape of the medium. `block_count` may grow between calls where [`Geometry::grows`] is set.
    fn geometry(&self) -> Geometry;

    /// Reads `buffer.len()` bytes that begin `offset` bytes after the start of `page`; the range may run over into
    /// the pages that follow. Bytes never programmed read as whatever the medium holds (files: zeros).
    ///
    /// # Errors
    /// [`Error::OutOfRange`] past the end of the medium, [`Error::Device`] when the medium fails.
    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error>;
}

/// What only the one writer may do.
pub trait Device: Read {
    /// Programs `data` (a whole number of pages) to `page` and the pages after it, in order.
    ///
    /// # Errors
    /// [`Error::NotErased`] where a page was programmed since its last erase and the medium forbids it,
    /// [`Error::Full`] past the size limit, [`Error::Latched`] after an earlier failure, [`Error::Device`].
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error>;

    /// Erases a block. Where nothing needs to be erased before it is programmed this may do nothing, if blocks never
    /// programmed read as zeros; else it writes zeros.
    ///
    /// # Errors
    /// As [`Device::program`].
    fn erase(&mut self, block: BlockNumber) -> Result<(), Error>;

    /// Returns once everything programmed and erased so far will survive a power cut.
    ///
    /// # Errors
    /// [`Error::Device`]; every later call then answers [`Error::Latched`], because after a failed flush nobody
    /// knows what is on the medium.
    fn flush(&mut self) -> Result<(), Error>;

    /// Says that `pages` pages from `page` on will be programmed soon, so that a medium that grows can make room at
    /// once and a flush of one of them need not write down a new length each time. Pages that hold something keep it.
    ///
    /// # Errors
    /// [`Error::Full`] when there is no room: then nothing that was on the medium changed, and the writer may go on.
    fn reserve(&mut self, page: PageNumber, pages: u64) -> Result<(), Error> {
        let _ = (page, pages);
        Ok(())
    }
}

impl<R: Read + ?Sized> Read for &R {
    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        (**self).read(page, offset, buffer)
    }
}

impl<R: Read + ?Sized> Read for &mut R {
    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        (**self).read(page, offset, buffer)
    }
}

#[cfg(feature = "alloc")]
impl<R: Read + ?Sized> Read for alloc::boxed::Box<R> {
    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        (**self).read(page, offset, buffer)
    }
}

#[cfg(feature = "alloc")]
impl<R: Read + ?Sized> Read for alloc::sync::Arc<R> {
    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        (**self).read(page, offset, buffer)
    }
}

impl<D: Device + ?Sized> Device for &mut D {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        (**self).program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        (**self).erase(block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        (**self).flush()
    }

    fn reserve(&mut self, page: PageNumber, pages: u64) -> Result<(), Error> {
        (**self).reserve(page, pages)
    }
}

#[cfg(feature = "alloc")]
impl<D: Device + ?Sized> Device for alloc::boxed::Box<D> {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        (**self).program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        (**self).erase(block)
    }

    fn flush(&mut self) -> Result<(), Error> {
        (**self).flush()
    }

    fn reserve(&mut self, page: PageNumber, pages: u64) -> Result<(), Error> {
        (**self).reserve(page, pages)
    }
}
