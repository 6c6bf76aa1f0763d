//! The free pages of a pool: which of them comes next after the last write, all around.
//! (Chronos 2.3: the free page that is nearest after the previous write; 2.4: `pop`, `insert`, `erase`.)
//!
//! ```text
//! others:  extent -> bits      each extent with a free page but the current one, in a tree
//! current: (extent, bits)      where the last page was taken: the next one is mostly in the same words
//! ```
//! Taking the next page is a look at the words of one extent, and a step in the tree once it has none left; putting one
//! in is a step in the tree. A free page costs a bit, so that a tenth of a large pool fits into memory.

use crate::bits::Bits;
use crate::maps::Map;

/// The free pages of one extent.
#[derive(Clone, Debug)]
struct Free {
    slot: u32,
    pages: Bits,
}

/// A free page that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) slot: u32,
    pub(crate) extent: u32,
    pub(crate) position: u32,
}

/// Free pages in the order of the medium.
#[derive(Clone, Debug)]
pub(crate) struct FreePages {
    extent_pages: u32,
    others: Map<u32, Free>,
    current: Option<(u32, Free)>,
    /// Extent and position behind the last write.
    after: (u32, u32),
    count: u64,
}

impl FreePages {
    pub(crate) fn new(extent_pages: u32) -> Self {
        FreePages { extent_pages, others: Map::new(), current: None, after: (0, 0), count: 0 }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Takes the page nearest after the last one taken.
    pub(crate) fn pop(&mut self) -> Option<Taken> {
        let (extent, from) = self.after;
        let stays = |(number, free): &(u32, Free)| *number == extent && free.pages.next_from(from).is_some();
        if !self.current.as_ref().is_some_and(stays) {
            self.go_on();
        }
        let (number, free) = self.current.as_mut()?;
        let ahead = if *number == extent { free.pages.next_from(from) } else { None };
        let position = ahead.or_else(|| free.pages.next_from(0))?;
        free.pages.remove(position);
        self.count -= 1;
        self.after = (*number, position + 1);
        Some(Taken { slot: free.slot, extent: *number, position })
    }

    /// Makes the extent current in which the next page lies.
    fn go_on(&mut self) {
        self.put_current_aside();
        let (extent, from) = self.after;
        let is_ahead = |(number, free): &(&u32, &Free)| **number != extent || free.pages.next_from(from).is_some();
        let ahead = self.others.range(extent..).find(is_ahead).or_else(|| self.others.iter().next());
        let number = ahead.map(|(number, _)| *number);
        self.current = number.and_then(|number| self.others.remove_entry(&number));
    }

    fn put_current_aside(&mut self) {
        if let Some((number, free)) = self.current.take()
            && free.pages.count() > 0
        {
            self.others.insert(number, free);
        }
    }

    /// Puts a page in.
    pub(crate) fn insert(&mut self, extent: u32, slot: u32, position: u32) {
        let free = match &mut self.current {
            Some((number, free)) if *number == extent => free,
            _ => self.others.entry(extent).or_insert_with(|| Free { slot, pages: Bits::none(self.extent_pages) }),
        };
        self.count += u64::from(free.pages.insert(position));
    }

    /// Takes all pages of an extent out: it is the pool's no longer.
    pub(crate) fn forget(&mut self, extent: u32) {
        let gone = match self.current.take_if(|(number, _)| *number == extent) {
            Some((_, free)) => Some(free),
            None => self.others.remove(&extent),
        };
        self.count -= gone.map_or(0, |free| u64::from(free.pages.count()));
        // Should it come back, it is another one, and is written from its beginning.
        if self.after.0 == extent {
            self.after.1 = 0;
        }
    }

    /// Whether an extent has one.
    pub(crate) fn has(&self, extent: u32) -> bool {
        self.others.contains_key(&extent)
            || self.current.as_ref().is_some_and(|(number, free)| *number == extent && free.pages.count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn the_nearest_page_after_the_last_one_is_taken_all_around() {
        let mut dice = 5u64;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let (mut free, mut model, mut last) = (FreePages::new(10), BTreeSet::new(), 0);
        for _ in 0..20_000 {
            match roll(8) {
                0..4 => {
                    let page = roll(120);
                    model.insert(page);
                    free.insert((page / 10) as u32, (page / 10) as u32 + 7, (page % 10) as u32);
                }
                4..7 => {
                    let next = model.range(last..).next().or_else(|| model.iter().next()).copied();
                    let taken = free.pop();
                    assert_eq!(taken.map(|taken| u64::from(taken.extent) * 10 + u64::from(taken.position)), next);
                    assert!(taken.is_none_or(|taken| taken.slot == taken.extent + 7));
                    if let Some(page) = next {
                        model.remove(&page);
                        last = page + 1;
                    }
                }
                _ if roll(10) == 0 => {
                    let extent = roll(12);
                    free.forget(extent as u32);
                    model.retain(|page| page / 10 != extent);
                    last = if free.after.0 == extent as u32 { extent * 10 } else { last };
                }
                _ => {}
            }
            assert_eq!(free.count() as usize, model.len());
            assert!((0..12).all(|extent| free.has(extent) == model.iter().any(|page| page / 10 == u64::from(extent))));
        }
    }
}
