//! Banks that are written a few bytes at a time: what is too small for a page, and trusted because it lies on the chip.
//!
//! A one-way counter steps by clearing a bit, or by writing a word; a [`crate::Device`] programs whole pages. Banks lie in
//! *banks*, each erased as a whole, and a bank knows nothing of the other.

use crate::{BlockNumber, Error};

/// The largest word.
pub const WORD_BYTES_MAX: u32 = 32;

/// How cells are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankShape {
    /// Bytes in each bank; a bank is what is erased at once.
    pub bank_bytes: u32,
    /// Bytes that are programmed at once, from 1 to [`WORD_BYTES_MAX`]; offsets are multiples of it.
    pub word_bytes: u32,
    /// Whether a word may be programmed again as long as that only clears bits, any number of times. Flash with error
    /// correction for each word does not allow it.
    pub clears_again: bool,
}

/// Two banks of cells that read as ones once they are erased. Bank numbers are 0 and 1, and stand for the page in errors.
pub trait Banks {
    /// How the cells are laid out.
    fn shape(&self) -> BankShape;

    /// Reads `buffer.len()` bytes from `offset` on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], or [`Error::Device`] where error correction gave up.
    fn read(&self, bank: BlockNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error>;

    /// Programs one word, and returns once it survives a power cut.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::NotErased`] where the word may not be programmed again, [`Error::Device`].
    fn program(&mut self, bank: BlockNumber, offset: u32, word: &[u8]) -> Result<(), Error>;

    /// Erases a bank, and returns once that survives a power cut.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], [`Error::Device`].
    fn erase(&mut self, bank: BlockNumber) -> Result<(), Error>;
}

impl BankShape {
    /// Where a range ends, after checking that all of it lies in a bank.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], naming the bank.
    pub fn check(&self, bank: BlockNumber, offset: u32, bytes: usize) -> Result<(), Error> {
        let end = u64::from(offset).saturating_add(bytes as u64);
        if bank.0 < 2 && end <= u64::from(self.bank_bytes) {
            return Ok(());
        }
        Err(Error::OutOfRange { page: crate::PageNumber(bank.0), page_count: 2 })
    }
}

impl<B: Banks + ?Sized> Banks for &mut B {
    fn shape(&self) -> BankShape {
        (**self).shape()
    }

    fn read(&self, bank: BlockNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        (**self).read(bank, offset, buffer)
    }

    fn program(&mut self, bank: BlockNumber, offset: u32, word: &[u8]) -> Result<(), Error> {
        (**self).program(bank, offset, word)
    }

    fn erase(&mut self, bank: BlockNumber) -> Result<(), Error> {
        (**self).erase(bank)
    }
}
