//! A sorted list that grows: one long part, and a short one of what came last, so that an insertion moves little and each item takes
//! hardly more than its bytes, where a tree takes twice as many beside them.

use alloc::vec::Vec;

/// The short part has so many items before it becomes part of the long one, and then four times the root of how many those are: what an
/// insertion moves and what a merge moves are about as much.
const SHORT_LEAST: usize = 64;

/// Items in order, each once.
#[derive(Debug)]
pub(crate) struct Sorted<T> {
    /// The long part, and behind it the short one.
    items: Vec<T>,
    long: usize,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { items: Vec::new(), long: 0 }
    }
}

impl<T: Copy + Ord> Sorted<T> {
    fn parts(&self) -> (&[T], &[T]) {
        self.items.split_at(self.long)
    }

    /// Adds an item that is not there.
    pub(crate) fn insert(&mut self, item: T) {
        if self.items.capacity() == self.items.len() {
            // Doubling would leave as much unused as is used.
            self.items.reserve_exact(self.items.len() / 8 + 4);
        }
        let (long, short) = self.parts();
        if short.is_empty() && long.last().is_none_or(|last| *last < item) {
            self.items.push(item);
            self.long += 1;
            return;
        }
        let place = self.long + short.partition_point(|other| *other < item);
        self.items.insert(place, item);
        if self.items.len() - self.long >= (4 * self.long.isqrt()).max(SHORT_LEAST) {
            self.merge();
        }
    }

    /// Makes one part of both, from the end on: what is moved lands where nothing is any more.
    fn merge(&mut self) {
        let mut short = self.items[self.long..].to_vec();
        let (mut from, mut to) = (self.long, self.items.len());
        self.long = to;
        while let Some(item) = short.pop() {
            while from > 0 && self.items[from - 1] > item {
                (from, to) = (from - 1, to - 1);
                self.items[to] = self.items[from];
            }
            to -= 1;
            self.items[to] = item;
        }
    }

    /// Keeps the items of which something is true.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        self.long = self.parts().0.iter().filter(|item| is_kept(item)).count();
        self.items.retain(is_kept);
    }

    /// The items from one on and below another, in order.
    pub(crate) fn range(&self, from: T, below: T) -> Range<'_, T> {
        let part = |items: &'_ [T]| {
            let first = items.partition_point(|item| *item < from);
            first..first + items[first..].partition_point(|item| *item < below)
        };
        let (long, short) = self.parts();
        Range { long: &long[part(long)], short: &short[part(short)] }
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// How many they are.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}

/// Items of both parts, in order.
pub(crate) struct Range<'a, T> {
    long: &'a [T],
    short: &'a [T],
}

impl<T: Copy + Ord> Range<'_, T> {
    /// The last one.
    pub(crate) fn greatest(&self) -> Option<T> {
        self.long.last().max(self.short.last()).copied()
    }
}

impl<T: Copy + Ord> Iterator for Range<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let is_long = match (self.long.first(), self.short.first()) {
            (Some(long), Some(short)) => long < short,
            (long, _) => long.is_some(),
        };
        let items = if is_long { &mut self.long } else { &mut self.short };
        let (first, rest) = items.split_first()?;
        *items = rest;
        Some(*first)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::Sorted;

    proptest! {
        #[test]
        fn it_has_what_a_set_has(
            runs in prop::collection::vec((0_u32..2000, 1_u32..300, any::<bool>()), 0..12),
            (from, below) in (0_u32..2500, 0_u32..2500),
            divisor in 1_u32..9,
        ) {
            let (mut sorted, mut set) = (Sorted::default(), BTreeSet::new());
            for (first, count, is_rising) in runs {
                for step in 0..count {
                    let item = if is_rising { first + step } else { first + (step * 7919) % 307 };
                    if set.insert(item) {
                        sorted.insert(item);
                    }
                }
                sorted.retain(|item| item % divisor != 1);
                set.retain(|item| item % divisor != 1);
            }
            let below = below.max(from);
            prop_assert!(sorted.range(from, below).eq(set.range(from..below).copied()));
            prop_assert_eq!(sorted.range(from, below).greatest(), set.range(from..below).next_back().copied());
            let mut all: Vec<u32> = sorted.iter().copied().collect();
            all.sort_unstable();
            prop_assert!(all.into_iter().eq(set));
        }
    }

    #[test]
    fn it_takes_little_more_than_its_items() {
        let mut sorted = Sorted::default();
        (0..100_000_u32).for_each(|item| sorted.insert((item * 7919) % 100_003));
        let room = sorted.items.capacity();
        assert!(sorted.len() == 100_000 && room < 125_000, "{room}");
    }
}
