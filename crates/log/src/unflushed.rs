//! Pages that a commit in the making has programmed and nobody has flushed since.

use crate::maps::Map;

/// Up to this many are listed in the frame and made durable by its flush; more get a flush of their own.
pub(crate) const UNFLUSHED_MAX: usize = 16;

/// Pages and their tags, as long as a frame may list them. Where they are more they are flushed whichever they are, so none is kept: a
/// transaction over a large table programs any number.
#[derive(Clone, Debug)]
pub(crate) struct Unflushed<K, V> {
    few: Map<K, V>,
    are_many: bool,
}

impl<K, V> Default for Unflushed<K, V> {
    fn default() -> Self {
        Unflushed { few: Map::new(), are_many: false }
    }
}

impl<K: Ord, V> Unflushed<K, V> {
    pub(crate) fn insert(&mut self, page: K, told: V) {
        if self.are_many {
            return;
        }
        self.few.insert(page, told);
        if self.few.len() > UNFLUSHED_MAX {
            *self = Unflushed { few: Map::new(), are_many: true };
        }
    }

    pub(crate) fn remove(&mut self, page: &K) {
        self.few.remove(page);
    }

    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&K) -> bool) {
        self.few.retain(|page, _| stays(page));
    }

    /// How many there are; if a frame cannot list them, any number that is too large for it.
    pub(crate) fn count(&self) -> usize {
        if self.are_many { UNFLUSHED_MAX + 1 } else { self.few.len() }
    }

    /// All of them, which are few.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        assert!(!self.are_many, "pages that are too many for a frame are flushed before it is written");
        self.few.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_frame_cannot_list_is_not_kept() {
        let mut pages = Unflushed::default();
        (0..UNFLUSHED_MAX).for_each(|page| pages.insert(page, ()));
        assert_eq!((pages.count(), pages.iter().count()), (UNFLUSHED_MAX, UNFLUSHED_MAX));
        (0..100).for_each(|page| pages.insert(100 + page, ()));
        assert!(pages.few.is_empty());
        // Where some of them are gone nobody knows which are left.
        pages.retain(|_| false);
        pages.remove(&3);
        assert!(pages.count() > UNFLUSHED_MAX);
    }

    #[test]
    #[should_panic(expected = "too many for a frame")]
    fn nobody_lists_pages_that_are_too_many() {
        let mut pages = Unflushed::default();
        (0..=UNFLUSHED_MAX).for_each(|page| pages.insert(page, ()));
        let _ = pages.iter();
    }
}
