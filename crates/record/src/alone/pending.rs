//! Changes of the index that are not in their leaves yet.
//!
//! They need no page of their own: the directories of the data pages tell them once more, so recovery reads those from
//! [`Pending::replay`] on. The list is in the order in which ids came into it, and in two generations:
//!
//! ```text
//! | older: from pages at `replay` or later | younger: from pages at `middle` or later |
//!                                          ^ older
//! ```
//! 1. No id stands in it twice; a change of an id that is there replaces the slot where it stands.
//! 2. When nothing of the older generation is left, `middle` becomes the place to replay from.

use core::num::NonZeroU32;

use super::error::Error;
use super::sequence::Sequence;
use super::word::Word;

/// A record number and the slot where its record is, or [`Word::NONE`] if it has none any more. Callers hand over a
/// buffer of these and need not know what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved<W: Word> {
    pub(crate) id: W,
    pub(crate) slot: W,
}

impl<W: Word> Moved<W> {
    /// To fill a new buffer with.
    pub const EMPTY: Self = Moved { id: W::NONE, slot: W::NONE };
}

/// The list, in the caller's buffer.
pub(crate) struct Pending<'a, W: Word> {
    entries: &'a mut [Moved<W>],
    count: usize,
    older: usize,
    /// The first page that recovery replays.
    pub(crate) replay: Sequence,
    /// The first page of the younger generation.
    pub(crate) middle: Sequence,
}

impl<'a, W: Word> Pending<'a, W> {
    /// An empty list, at this page.
    pub(crate) fn new(entries: &'a mut [Moved<W>], replay: Sequence) -> Self {
        Pending { entries, count: 0, older: 0, replay, middle: replay }
    }

    /// Empties the list; it begins anew at this page.
    pub(crate) fn begin_at(&mut self, replay: Sequence) {
        (self.count, self.older, self.replay, self.middle) = (0, 0, replay, replay);
    }

    pub(crate) fn each(&self, mut each: impl FnMut(u32, u32)) {
        self.all().iter().for_each(|moved| each(moved.id.number(), moved.slot.number()));
    }

    pub(crate) fn room(&self) -> usize {
        self.entries.len() - self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    fn all(&self) -> &[Moved<W>] {
        self.entries.get(..self.count).unwrap_or_default()
    }

    /// The slot of an id that was changed: none if it was not, a slot of NONE if it has no record any more.
    pub(crate) fn slot(&self, id: u32) -> Option<u32> {
        let id = W::of(id);
        self.all().iter().find(|moved| moved.id == id).map(|moved| moved.slot.number())
    }

    /// Notes a change; the slot that it replaces, if the id was there.
    ///
    /// # Errors
    /// [`Error::Bug`] if there is no room: the caller made it before.
    pub(crate) fn note(&mut self, id: u32, slot: u32) -> Result<Option<u32>, Error> {
        let moved = Moved { id: W::of(id), slot: W::of(slot) };
        let all = self.entries.get_mut(..self.count).unwrap_or_default();
        if let Some(known) = all.iter_mut().find(|known| known.id == moved.id) {
            let before = known.slot.number();
            *known = moved;
            return Ok(Some(before));
        }
        *self.entries.get_mut(self.count).ok_or(Error::Bug)? = moved;
        self.count += 1;
        Ok(None)
    }

    /// Takes out every change for which `take` says so, in order.
    pub(crate) fn take(&mut self, mut take: impl FnMut(u32, u32) -> bool) {
        let (mut kept, mut older) = (0, 0);
        for at in 0..self.count {
            let Some(moved) = self.entries.get(at).copied() else { break };
            if take(moved.id.number(), moved.slot.number()) {
                continue;
            }
            if let Some(place) = self.entries.get_mut(kept) {
                *place = moved;
            }
            kept += 1;
            older += usize::from(at < self.older);
        }
        (self.count, self.older) = (kept, older);
    }

    /// The leaf, of `leaf_ids` ids each, that the oldest change belongs to, if it is of the older generation.
    pub(crate) fn oldest_leaf(&self, leaf_ids: NonZeroU32) -> Option<u32> {
        let oldest = self.all().first().filter(|_| self.older > 0)?;
        Some(oldest.id.number() / leaf_ids)
    }

    /// The leaf, of those that are asked for, that the most changes belong to, and how many.
    pub(crate) fn fullest_leaf(
        &self,
        leaf_ids: NonZeroU32,
        mut is_asked: impl FnMut(u32) -> bool,
    ) -> Option<(u32, usize)> {
        let of = |moved: &Moved<W>| moved.id.number() / leaf_ids;
        let changes = |leaf: u32| self.all().iter().filter(|moved| of(moved) == leaf).count();
        let leaves = self.all().iter().map(of).filter(|leaf| is_asked(*leaf));
        leaves.map(|leaf| (leaf, changes(leaf))).max_by_key(|(_, changes)| *changes)
    }

    /// Whether the older generation is gone, so that recovery may begin later.
    pub(crate) fn may_turn(&self) -> bool {
        self.older == 0
    }

    /// Begins a new generation at the page `now`, if the older one is gone: what was younger is older now.
    pub(crate) fn turn(&mut self, now: Sequence) {
        if self.may_turn() {
            (self.replay, self.middle, self.older) = (self.middle, now, self.count);
        }
    }

    /// Asserts the invariants of this file's head.
    pub(crate) fn check(&self) {
        assert!(self.older <= self.count && self.count <= self.entries.len() && self.replay <= self.middle);
        let all = self.all();
        let twice = |(at, moved): (usize, &Moved<W>)| all.iter().skip(at + 1).any(|other| other.id == moved.id);
        assert!(!all.iter().enumerate().any(twice), "no id stands in it twice");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_end_when_their_changes_are_taken() {
        let mut entries = [Moved::<u16>::EMPTY; 4];
        let ids = NonZeroU32::new(100).expect("a hundred");
        let at = |slot| Sequence { lap: 1, slot };
        let mut pending = Pending::new(&mut entries, at(100));
        assert_eq!(pending.note(7, 70), Ok(None));
        assert_eq!(pending.note(300, 71), Ok(None));
        pending.turn(at(110));
        assert_eq!((pending.replay, pending.middle), (at(100), at(110)));
        assert_eq!(pending.note(8, 72), Ok(None));
        assert_eq!(pending.note(7, u32::MAX), Ok(Some(70)));
        pending.check();
        assert_eq!((pending.slot(7), pending.slot(8), pending.slot(9)), (Some(u32::MAX), Some(72), None));
        assert_eq!((pending.fullest_leaf(ids, |_| true), pending.oldest_leaf(ids)), (Some((0, 2)), Some(0)));
        pending.take(|id, _| id < 100);
        assert_eq!((pending.count, pending.room(), pending.oldest_leaf(ids)), (1, 3, Some(3)));
        assert!(!pending.may_turn());
        pending.take(|_, _| true);
        pending.turn(at(120));
        assert_eq!((pending.replay, pending.middle), (at(110), at(120)));
        pending.check();
    }
}
