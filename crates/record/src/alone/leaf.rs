//! Leaves of the index: pages of the index ring that tell for each of their ids the slot of its record.
//!
//! ```text
//! head (form.rs) | version, lap u32, slot u32: newest commit page that the leaf knew of, or the page in the making | cells x slot word
//!   | zeros | tag [16]
//! ```
//! 1. A slot is the page, counted in the data ring, times the entries of a page, plus the entry. Together with the
//!    version of the leaf it gives the sequence: what stood there then, not what stands there now.

use counterfoil_flash::Device;

use crate::bytes::{put, u32_at};

use super::error::Error;
use super::form::{Head, LAPS_MAX};
use super::memory::LEAF_HEAD_BYTES;
use super::opening::{self, Opening};
use super::pages::Pages;
use super::sequence::Sequence;
use super::state::State;
use super::word::Word;

/// A leaf in a buffer of one page.
pub(crate) struct Leaf<'b> {
    body: &'b mut [u8],
}

impl<'b> Leaf<'b> {
    /// A leaf of ids without records.
    pub(crate) fn empty(buffer: &'b mut [u8], state: &State) -> Self {
        let body = state.form.body_mut(buffer);
        body.fill(0xFF);
        Leaf { body }
    }

    /// Reads the leaf that stands at this slot of the index ring.
    pub(crate) fn read<D: Device + ?Sized, W: Word>(
        pages: &Pages<'_, D, W>,
        state: &State,
        openings: &[Opening],
        slot: u32,
        buffer: &'b mut [u8],
    ) -> Result<Self, Error> {
        let (form, ring) = (&state.form, &state.form.index);
        let sequence = ring.at(slot, ring.before(state.index_head, 1));
        let epoch = opening::index_epoch(openings, sequence).ok_or(Error::Corrupt)?;
        form.open(pages, ring, Head::new(sequence, epoch), buffer)?;
        let leaf = Leaf { body: form.body_mut(buffer) };
        let version = leaf.version();
        let possible = (1..LAPS_MAX).contains(&version.lap) && version.slot < form.data.pages;
        if possible { Ok(leaf) } else { Err(Error::Corrupt) }
    }

    /// The newest data page that it knows of.
    fn version(&self) -> Sequence {
        Sequence { lap: u32_at(self.body, 0), slot: u32_at(self.body, 4) }
    }

    pub(crate) fn set_version(&mut self, version: Sequence) {
        put(self.body, 0, &version.lap.to_le_bytes());
        put(self.body, 4, &version.slot.to_le_bytes());
    }

    /// The slot of a cell, and the sequence of the page that it means.
    pub(crate) fn cell<W: Word>(&self, state: &State, cell: u32) -> Option<(u32, Sequence)> {
        let bytes = self.body.get(LEAF_HEAD_BYTES + cell as usize * W::BYTES..).unwrap_or_default();
        let slot = Some(W::decode(bytes)).filter(|slot| *slot != W::NONE)?.number();
        let (page, _) = state.place(slot);
        let ring = &state.form.data;
        (page < ring.pages).then(|| (slot, ring.at(page, self.version())))
    }

    pub(crate) fn set<W: Word>(&mut self, cell: u32, slot: u32) {
        let bytes = self.body.get_mut(LEAF_HEAD_BYTES + cell as usize * W::BYTES..).unwrap_or_default();
        W::of(slot).encode(bytes);
    }
}
