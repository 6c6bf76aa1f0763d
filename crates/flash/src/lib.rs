//! Pages, blocks and erase: the only crate that knows a medium.
//!
//! A medium is an array of equally large *pages*, grouped into *blocks*. A page is programmed as a whole; where the
//! medium says so ([`Geometry::erase_before_program`]) it is programmed once between two erases of its block. Nothing
//! here knows what a page holds: bytes come back exactly as they were handed over, or not at all.
//!
//! Reading and writing are two traits, because many may read while one writes: [`Read`] takes `&self` and is shared,
//! [`Device`] is owned by the one writer.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod geometry;
mod memory;

pub use error::{Error, Operation};
pub use geometry::{BlockNumber, Geometry, PageNumber};
pub use memory::MemoryDevice;

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

    /// Erases a block. Where nothing needs to be erased this does nothing.
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
}
