//! Sorting: as the standard library does it, or on devices with little memory by insertion (feature `small`).
//!
//! The library's sorts are 2 to 4 KB of code for each type that is sorted. By insertion it is some dozens of bytes; what a device
//! sorts fits into a few kilobytes and mostly comes in order already.

/// What can be sorted.
pub trait Order<T> {
    /// Sorts.
    fn order(&mut self)
    where
        T: Ord;

    /// Sorts by a key; those with the same key end up in any order.
    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);

    /// Sorts by a key; those with the same key stay in their order.
    fn order_stably_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K);

    /// Sorts by comparing; those that are equal end up in any order.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> core::cmp::Ordering);

    /// Sorts by comparing; those that are equal stay in their order.
    fn order_stably_by(&mut self, compare: impl FnMut(&T, &T) -> core::cmp::Ordering);
}

#[cfg(not(feature = "small"))]
impl<T> Order<T> for [T] {
    fn order(&mut self)
    where
        T: Ord,
    {
        self.sort_unstable();
    }

    fn order_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K) {
        self.sort_unstable_by_key(key);
    }

    fn order_stably_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K) {
        self.sort_by_key(key);
    }

    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> core::cmp::Ordering) {
        self.sort_unstable_by(compare);
    }

    fn order_stably_by(&mut self, compare: impl FnMut(&T, &T) -> core::cmp::Ordering) {
        self.sort_by(compare);
    }
}

#[cfg(feature = "small")]
impl<T> Order<T> for [T] {
    fn order(&mut self)
    where
        T: Ord,
    {
        insert(self, &mut |one, two| one < two);
    }

    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        insert(self, &mut |one, two| key(one) < key(two));
    }

    fn order_stably_by_key<K: Ord>(&mut self, key: impl FnMut(&T) -> K) {
        self.order_by_key(key);
    }

    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> core::cmp::Ordering) {
        insert(self, &mut |one, two| compare(one, two).is_lt());
    }

    fn order_stably_by(&mut self, compare: impl FnMut(&T, &T) -> core::cmp::Ordering) {
        self.order_by(compare);
    }
}

/// Sorts by insertion: each goes before those that are more than it. Once for each type, whatever it is sorted by.
#[cfg(any(feature = "small", test))]
#[inline(never)]
fn insert<T>(all: &mut [T], is_less: &mut dyn FnMut(&T, &T) -> bool) {
    for number in 1..all.len() {
        let mut at = number;
        while at > 0 && is_less(&all[at], &all[at - 1]) {
            all.swap(at, at - 1);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn insertion_sorts_stably() {
        for count in 0..60_u32 {
            let mut pairs: Vec<(u32, u32)> = (0..count).map(|number| (number * 7919 % 13, number)).collect();
            let mut model = pairs.clone();
            insert(&mut pairs, &mut |one, two| one.0 < two.0);
            model.sort_by_key(|(key, _)| *key);
            assert_eq!(pairs, model);
        }
    }
}
