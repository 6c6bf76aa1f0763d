//! The map: which openings wrote the pages, and where in the index ring each leaf stands. In memory it is the caller's;
//! a copy of it stands in the index ring, and what changed since is told by the directories of the data pages.
//!
//! ```text
//! page:   head (form.rs) | pieces ... | zeros | tag [16]
//! pieces: openings u16, rollbacks u16, purges u32, leaves u32, ids u32: ids below may have records | openings x 48 bytes (opening.rs) | leaves x slot word
//! ```
//! 1. No piece stands on two pages: what does not fit begins the next one.

use counterfoil_flash::Device;
use counterfoil_vault::Epoch;

use crate::bytes::{put, u16_at, u32_at};

use super::commit::own_epoch;
use super::error::Error;
use super::form::{Form, Head};
use super::opening::{self, OPENING_BYTES, Opening};
use super::sequence::Sequence;
use super::store::Standalone;
use super::word::{NONE, Word};

const COUNTS_BYTES: usize = 16;

/// Pages of a map.
pub(crate) fn pages<W: Word>(form: &Form, openings: usize, leaves: usize) -> u32 {
    let room = form.body_bytes();
    let (mut pages, mut at) = (1, COUNTS_BYTES);
    let openings = core::iter::repeat_n(OPENING_BYTES, openings);
    for bytes in openings.chain(core::iter::repeat_n(W::BYTES, leaves)) {
        if at + bytes > room {
            (pages, at) = (pages + 1, 0);
        }
        at += bytes;
    }
    pages
}

/// Where the next piece of a map goes or stands: in the scratch page.
struct Draft {
    sequence: Sequence,
    at: usize,
}

impl<D: Device + ?Sized, W: Word> Standalone<'_, D, W> {
    /// Writes the map, as it is now.
    pub(crate) fn write_map(&mut self) -> Result<(), Error> {
        let (tail, index_tail) = (self.state.tail, self.oldest_leaf_page());
        let openings = self.openings.get_mut(..self.state.opening_count).unwrap_or_default();
        self.state.opening_count = opening::drop_before(openings, tail, index_tail);
        let (openings, leaves) = (self.state.opening_count, self.leaf_count());
        self.require_index_pages(pages::<W>(&self.state.form, openings, leaves))?;
        let first = self.state.index_head;
        let mut draft = Draft { sequence: first, at: 0 };
        self.begin_map_page(first)?;
        let mut counts = [0; COUNTS_BYTES];
        put(&mut counts, 0, &(openings as u16).to_le_bytes());
        put(&mut counts, 2, &self.state.rollbacks.to_le_bytes());
        put(&mut counts, 4, &self.state.purges.to_le_bytes());
        put(&mut counts, 8, &(leaves as u32).to_le_bytes());
        put(&mut counts, 12, &self.state.ids.to_le_bytes());
        self.put_piece(&mut draft, &counts)?;
        for number in 0..openings {
            let opening = self.openings.get(number).unwrap_or(&Opening::EMPTY).encode();
            self.put_piece(&mut draft, &opening)?;
        }
        for number in 0..leaves {
            let mut word = [0; 4];
            self.leaves.get(number).unwrap_or(&W::NONE).encode(&mut word);
            self.put_piece(&mut draft, word.get(..W::BYTES).unwrap_or_default())?;
        }
        self.write_map_page(&draft)?;
        self.state.index_head = self.state.form.index.after(draft.sequence, 1);
        (self.state.map, self.state.map_is_due) = (first, false);
        Ok(())
    }

    fn put_piece(&mut self, draft: &mut Draft, bytes: &[u8]) -> Result<(), Error> {
        if draft.at + bytes.len() > self.state.form.body_bytes() {
            self.write_map_page(draft)?;
            *draft = Draft { sequence: self.state.form.index.after(draft.sequence, 1), at: 0 };
            self.begin_map_page(draft.sequence)?;
        }
        put(self.state.form.body_mut(self.scratch), draft.at, bytes);
        draft.at += bytes.len();
        Ok(())
    }

    fn begin_map_page(&mut self, sequence: Sequence) -> Result<(), Error> {
        self.enter_index(sequence)?;
        self.scratch.fill(0);
        Ok(())
    }

    fn write_map_page(&mut self, draft: &Draft) -> Result<(), Error> {
        let (form, epoch) = (&self.state.form, own_epoch(self.openings, self.state.opening_count));
        form.write(&mut self.pages, &form.index, Head::new(draft.sequence, epoch), self.scratch).map(drop)
    }
    /// Reads the map that begins at `first`: openings, leaves, and below which number ids may have records.
    pub(crate) fn read_map(&mut self, first: Sequence, epoch: &Epoch) -> Result<(), Error> {
        self.leaves.fill(W::NONE);
        self.open_map_page(first, epoch)?;
        let counts = self.state.form.body(self.scratch);
        let (openings, leaves) = (usize::from(u16_at(counts, 0)), u32_at(counts, 8) as usize);
        (self.state.rollbacks, self.state.purges, self.state.ids) =
            (u16_at(counts, 2), u32_at(counts, 4), u32_at(counts, 12));
        if openings > self.openings.len() || leaves > self.leaves.len() {
            return Err(Error::BufferTooSmall);
        }
        self.state.opening_count = openings;
        let mut draft = Draft { sequence: first, at: COUNTS_BYTES };
        let mut before: Option<Opening> = None;
        for number in 0..openings {
            let opening = Opening::decode(self.next_piece(&mut draft, epoch, OPENING_BYTES)?);
            if before.is_some_and(|before| !opening.follows(&before)) {
                return Err(Error::Corrupt);
            }
            before = Some(opening);
            if let Some(place) = self.openings.get_mut(number) {
                *place = opening;
            }
        }
        for number in 0..leaves {
            let leaf = W::decode(self.next_piece(&mut draft, epoch, W::BYTES)?);
            if leaf.number() != NONE && leaf.number() >= self.state.form.index.pages {
                return Err(Error::Corrupt);
            }
            if let Some(place) = self.leaves.get_mut(number) {
                *place = leaf;
            }
        }
        if before.is_some_and(|last| last.epoch == *epoch) { Ok(()) } else { Err(Error::Corrupt) }
    }

    fn next_piece(&mut self, draft: &mut Draft, epoch: &Epoch, bytes: usize) -> Result<&[u8], Error> {
        if draft.at + bytes > self.state.form.body_bytes() {
            *draft = Draft { sequence: self.state.form.index.after(draft.sequence, 1), at: 0 };
            self.open_map_page(draft.sequence, epoch)?;
        }
        draft.at += bytes;
        Ok(self.state.form.body(self.scratch).get(draft.at - bytes..).unwrap_or_default())
    }

    fn open_map_page(&mut self, sequence: Sequence, epoch: &Epoch) -> Result<(), Error> {
        let form = &self.state.form;
        form.open(&self.pages, &form.index, Head::new(sequence, epoch), self.scratch).map(drop)
    }
}
