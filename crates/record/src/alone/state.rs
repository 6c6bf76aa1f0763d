//! What a store that stands alone knows beside its buffers.
//!
//! Invariants (`Standalone::check`):
//! 1. tail <= replay <= middle <= version + 1 <= head.
//! 2. The head never comes round to the block of the oldest page that the last counted commit needs, in neither ring.
//! 3. Every page that is needed belongs to an opening of the list.

use core::num::NonZeroU32;

use counterfoil_vault::Tag;

use super::error::Error;
use super::form::Form;
use super::memory::Shape;
use super::sequence::Sequence;

/// An opening that is cut short before its root is whole takes two pages and gives none back: three of them can follow each other.
/// One that is cut in its first commit takes three, if that commit is one page, as it is where room is short.
pub(crate) const OPENING_PAGES: u32 = 2 * 3;
/// What a deallocation and the cleaning of a block take at a time; in rings of few pages more of them are half empty.
const FREEING_PAGES: u32 = 1;
const FREEING_PAGES_IF_SMALL: u32 = 4;
/// Pages of a small data ring at most.
const SMALL_PAGES: u32 = 128;

/// The oldest pages that the last durable commit needs: what a cut falls back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Floor {
    pub(crate) tail: Sequence,
    pub(crate) index_tail: Sequence,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) form: Form,
    pub(crate) shape: Shape,
    pub(crate) page_entries: NonZeroU32,
    pub(crate) leaf_ids: NonZeroU32,
    pub(crate) version: Sequence,
    pub(crate) tag: Tag,
    /// What the newest commit took the counter to, or will take it to when its group is closed.
    pub(crate) counted: u64,
    pub(crate) group_is_open: bool,
    pub(crate) tail: Sequence,
    /// The next sequence of the data ring, and of the index ring.
    pub(crate) head: Sequence,
    pub(crate) index_head: Sequence,
    /// The next page of the data ring that a commit in the making writes; less than the head if there is none.
    pub(crate) data_next: Sequence,
    /// The newest map, and whether the next commit has to write another, because this opening has not written one.
    pub(crate) map: Sequence,
    pub(crate) map_is_due: bool,
    /// Whether the block that each ring enters next is erased already.
    pub(crate) data_is_erased: bool,
    pub(crate) index_is_erased: bool,
    pub(crate) opening_count: usize,
    /// Images behind their counter that were opened all the same.
    pub(crate) rollbacks: u16,
    pub(crate) purges: u32,
    /// Where cleaning ahead ends: the head when it began. Behind it everything was moved once.
    pub(crate) ahead_end: Option<Sequence>,
    /// Ids below this one may have records.
    pub(crate) ids: u32,
    /// Where `allocate` looks next.
    pub(crate) cursor: u32,
    /// No id below this one is without a record.
    pub(crate) free_from: u32,
    pub(crate) floor: Floor,
    pub(crate) latched: bool,
}

impl State {
    /// Of a store of which nothing is known yet.
    pub(crate) fn empty(form: Form, shape: Shape, leaf_ids: u32) -> Result<State, Error> {
        Ok(State {
            form,
            shape,
            page_entries: NonZeroU32::new(shape.page_entries).ok_or(Error::Geometry)?,
            leaf_ids: NonZeroU32::new(leaf_ids).ok_or(Error::Geometry)?,
            version: Sequence::ZERO,
            tag: [0; 16],
            counted: 0,
            group_is_open: false,
            tail: Sequence::ZERO,
            head: Sequence::ZERO,
            index_head: Sequence::ZERO,
            data_next: Sequence::ZERO,
            map: Sequence::ZERO,
            map_is_due: false,
            data_is_erased: false,
            index_is_erased: false,
            opening_count: 0,
            ids: 0,
            rollbacks: 0,
            purges: 0,
            ahead_end: None,
            cursor: shape.names,
            free_from: shape.names,
            floor: Floor { tail: Sequence::ZERO, index_tail: Sequence::ZERO },
            latched: false,
        })
    }

    /// The page, counted in the data ring, and the entry that a slot stands for.
    pub(crate) fn place(&self, slot: u32) -> (u32, u32) {
        (slot / self.page_entries, slot % self.page_entries)
    }

    /// The slot of an entry of a page.
    pub(crate) fn slot(&self, sequence: Sequence, entry: u32) -> u32 {
        sequence.slot * self.page_entries.get() + entry
    }

    /// Pages of the data ring that may be written before the next commit is counted.
    pub(crate) fn free_pages(&self) -> u32 {
        self.form.data.free(self.floor.tail, self.head)
    }

    /// The same for the index ring.
    pub(crate) fn free_index_pages(&self) -> u32 {
        self.form.index.free(self.floor.index_tail, self.index_head)
    }

    /// Pages that only deallocations, cleaning and openings use.
    pub(crate) fn reserve(&self) -> u32 {
        let is_small = self.form.data.pages <= SMALL_PAGES;
        OPENING_PAGES + if is_small { FREEING_PAGES_IF_SMALL } else { FREEING_PAGES }
    }
}
