//! Entering a block: it is erased before its first page is written. What a cut leaves is a block that nobody needs, half
//! erased, and the next opening erases it again.
//!
//! 1. [`Standalone::prepare`] may have erased the block that a ring enters next. Nobody remembers that after a cut.

use counterfoil_flash::Device;

use super::error::Error;
use super::sequence::Sequence;
use super::store::Standalone;
use super::superblock;
use super::word::Word;

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Makes the data ring ready for this page.
    pub(crate) fn enter_data(&mut self, sequence: Sequence) -> Result<(), Error> {
        let ring = &self.state.form.data;
        if ring.in_block(sequence) == 0 && !core::mem::take(&mut self.state.data_is_erased) {
            self.device.erase(ring.block(sequence))?;
        }
        Ok(())
    }

    /// Makes the index ring ready for this page. Uses the scratch page.
    pub(crate) fn enter_index(&mut self, sequence: Sequence) -> Result<(), Error> {
        let is_first = self.state.form.index.in_block(sequence) == 0;
        if is_first && !core::mem::take(&mut self.state.index_is_erased) {
            self.erase_index(sequence)?;
        }
        Ok(())
    }

    /// Erases the block of this page of the index ring, and writes its superblock.
    pub(crate) fn erase_index(&mut self, sequence: Sequence) -> Result<(), Error> {
        let block = self.state.form.index.block(sequence);
        self.device.erase(block)?;
        superblock::write::<D, W>(self.device, self.vault, (&self.state.form, &self.state.shape), block, self.scratch)
    }
}
