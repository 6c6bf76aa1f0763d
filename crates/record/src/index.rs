//! The index: for every record id the slot of the data page that holds its record.
//!
//! In memory it is the caller's slice of `u32`, one for each id. On the medium it is a *copy*: pages of the index
//! ring, one after another, read as one stream of little-endian 32-bit words.
//!
//! ```text
//! page:  clear head [32] | words ... | zeros | tag [16]
//! words: runs x 10 words (run.rs) | ids x slot u32 (0xFFFF_FFFF = no record)
//! ```
//! A slot together with the newest version gives the sequence (window.rs), the runs give the epoch: so a copy need
//! not say more than where.

use counterfoil_flash::{Device, Read};
use counterfoil_vault::{Epoch, Vault};

use crate::bytes::{array_at, put, u32_at};
use crate::error::Error;
use crate::head::{HEAD_BYTES, Head};
use crate::ring_io;
use crate::run::{self, RUN_BYTES, Run};
use crate::window::{Layout, SEQUENCE_MAX};

/// The slot of an id that has no record.
pub(crate) const NO_SLOT: u32 = u32::MAX;

const RUN_WORDS: usize = RUN_BYTES / 4;

/// Where an index copy stands and what it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexCopy {
    pub(crate) first: u64,
    pub(crate) epoch: Epoch,
    pub(crate) ids: u32,
    pub(crate) runs: u16,
}

/// Pages of a copy with so many runs and ids.
pub(crate) fn copy_pages(layout: &Layout, runs: usize, ids: usize) -> u64 {
    let words = runs.saturating_mul(RUN_WORDS).saturating_add(ids);
    words.div_ceil(layout.index_page_words()) as u64
}

impl IndexCopy {
    pub(crate) fn pages(&self, layout: &Layout) -> u64 {
        copy_pages(layout, usize::from(self.runs), self.ids as usize)
    }

    /// Whether there can be such a copy at all.
    pub(crate) fn check(&self, layout: &Layout) -> Result<(), &'static str> {
        let (ring, pages) = (&layout.index, self.pages(layout));
        let placed = self.first >= ring.pages && self.first <= SEQUENCE_MAX;
        if placed && pages <= ring.pages { Ok(()) } else { Err("index copy of a root") }
    }

    /// Reads the copy into `runs` and `slots`, which hold exactly what it has.
    pub(crate) fn read<R: Read + ?Sized>(
        &self,
        device: &R,
        vault: &Vault,
        layout: &Layout,
        runs: &mut [Run],
        slots: &mut [u32],
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let mut words = WordReader { device, vault, layout, copy: self, buffer, sequence: self.first, offset: 0 };
        let mut count = 0;
        for _ in 0..self.runs {
            let mut bytes = [0; RUN_BYTES];
            for word in bytes.chunks_exact_mut(4) {
                word.copy_from_slice(&words.next()?.to_le_bytes());
            }
            // Runs of a copy were never joined further than they are, so each one adds one.
            count = run::push(runs, count, Run::decode(&bytes))
                .filter(|after| *after == count + 1)
                .ok_or(words.corrupt("runs of an index copy"))?;
        }
        for slot in slots.iter_mut() {
            *slot = words.next()?;
            if *slot != NO_SLOT && u64::from(*slot) >= layout.data.pages {
                return Err(words.corrupt("slot in an index copy"));
            }
        }
        Ok(())
    }
}

/// Writes a copy of `runs` and `slots` at `first`; `buffer` is one page.
#[allow(clippy::too_many_arguments)]
pub(crate) fn write_copy<D: Device + ?Sized>(
    device: &mut D,
    vault: &Vault,
    layout: &Layout,
    first: u64,
    epoch: Epoch,
    runs: &[Run],
    slots: &[u32],
    buffer: &mut [u8],
) -> Result<IndexCopy, Error> {
    buffer.fill(0);
    let page_end = HEAD_BYTES + layout.index_page_words() * 4;
    let (mut sequence, mut offset) = (first, HEAD_BYTES);
    let run_words = runs.iter().flat_map(|run| {
        let bytes = run.encode();
        (0..RUN_WORDS).map(move |word| u32_at(&bytes, word * 4))
    });
    for word in run_words.chain(slots.iter().copied()) {
        if offset == page_end {
            ring_io::write(device, vault, &layout.index, sequence, epoch, buffer)?;
            buffer.fill(0);
            (sequence, offset) = (sequence + 1, HEAD_BYTES);
        }
        put(buffer, offset, &word.to_le_bytes());
        offset += 4;
    }
    if offset > HEAD_BYTES {
        ring_io::write(device, vault, &layout.index, sequence, epoch, buffer)?;
    }
    Ok(IndexCopy { first, epoch, ids: slots.len() as u32, runs: runs.len() as u16 })
}

/// The words of a copy, page after page.
struct WordReader<'a, R: Read + ?Sized> {
    device: &'a R,
    vault: &'a Vault,
    layout: &'a Layout,
    copy: &'a IndexCopy,
    buffer: &'a mut [u8],
    /// The next page to read.
    sequence: u64,
    /// The next word within the page in the buffer; 0 = no page was read yet.
    offset: usize,
}

impl<R: Read + ?Sized> WordReader<'_, R> {
    fn next(&mut self) -> Result<u32, Error> {
        let page_end = HEAD_BYTES + self.layout.index_page_words() * 4;
        if self.offset == 0 || self.offset == page_end {
            let head = Head { sequence: self.sequence, epoch: self.copy.epoch };
            ring_io::open(self.device, self.vault, &self.layout.index, &head, self.buffer)?;
            (self.sequence, self.offset) = (self.sequence + 1, HEAD_BYTES);
        }
        let word = u32::from_le_bytes(array_at(self.buffer, self.offset));
        self.offset += 4;
        Ok(word)
    }

    fn corrupt(&self, what: &'static str) -> Error {
        Error::Corrupt { page: self.layout.index.page(self.sequence.saturating_sub(1)), what }
    }
}
