//! Maps and sets that are sorted vectors, with the words of the standard library's trees.
//!
//! Invariant: keys ascend, each of them once.

use alloc::vec::{self, Vec};
use core::borrow::Borrow;
use core::ops::{Bound, RangeBounds};
use core::{mem, slice};

use crate::search::search;

/// A map in the order of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap::new()
    }
}

impl<K, V> SortedMap<K, V> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        SortedMap { entries: Vec::new() }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries.
    pub fn iter(&self) -> Iter<'_, K, V> {
        self.entries.iter().map(of_entry)
    }

    /// All entries, whose values may be changed.
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        self.entries.iter_mut().map(of_entry_mut)
    }

    /// All keys.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(key, _)| key)
    }

    /// All values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator + Clone {
        self.entries.iter().map(|(_, value)| value)
    }

    /// All values, to be changed.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut V> + ExactSizeIterator {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    /// All values, without their keys.
    pub fn into_values(self) -> impl DoubleEndedIterator<Item = V> + ExactSizeIterator {
        self.entries.into_iter().map(|(_, value)| value)
    }

    /// Keeps the entries that `is_kept` says.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K, &mut V) -> bool) {
        let mut at = 0;
        while let Some((key, value)) = self.entries.get_mut(at) {
            match is_kept(key, value) {
                true => at += 1,
                false => drop(self.take(at)),
            }
        }
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    #[inline(never)]
    fn take(&mut self, at: usize) -> (K, V) {
        self.entries.remove(at)
    }
}

/// The entries of a map.
pub type Iter<'m, K, V> = core::iter::Map<slice::Iter<'m, (K, V)>, fn(&'m (K, V)) -> (&'m K, &'m V)>;
/// The entries of a map, whose values may be changed.
pub type IterMut<'m, K, V> = core::iter::Map<slice::IterMut<'m, (K, V)>, fn(&'m mut (K, V)) -> (&'m K, &'m mut V)>;

fn of_entry<K, V>((key, value): &(K, V)) -> (&K, &V) {
    (key, value)
}

fn of_entry_mut<K, V>((key, value): &mut (K, V)) -> (&K, &mut V) {
    (key, value)
}

impl<K: Ord, V> SortedMap<K, V> {
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        search(self.entries.len(), &mut |at| self.entries[at].0.borrow().cmp(key))
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| &self.entries[at].1)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| &mut self.entries[at].1)
    }

    /// Whether there is such a key.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Gives a key a value; the one it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(at) => Some(mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.add(at, key, value);
                None
            }
        }
    }

    /// A new entry, with room for a quarter more where it is used up, since nothing is to spare.
    #[inline(never)]
    fn add(&mut self, at: usize, key: K, value: V) {
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 4 + 1);
        }
        self.entries.insert(at, (key, value));
    }

    /// Takes a key away; the value it had.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(key).map(|(_, value)| value)
    }

    /// Takes an entry away.
    pub fn remove_entry<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<(K, V)>
    where
        K: Borrow<Q>,
    {
        self.find(key).ok().map(|at| self.take(at))
    }

    /// Takes the first entry away.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (!self.is_empty()).then(|| self.take(0))
    }

    /// The place of a key in the map, whether it is there or not.
    pub fn entry(&mut self, key: K) -> Entry<'_, K, V> {
        let found = self.find(&key);
        Entry { map: self, key, found }
    }

    fn places<Q: Ord + ?Sized>(&self, range: impl RangeBounds<Q>) -> core::ops::Range<usize>
    where
        K: Borrow<Q>,
    {
        let from = match range.start_bound() {
            Bound::Included(key) => self.find(key).unwrap_or_else(|at| at),
            Bound::Excluded(key) => self.find(key).map_or_else(|at| at, |at| at + 1),
            Bound::Unbounded => 0,
        };
        let until = match range.end_bound() {
            Bound::Included(key) => self.find(key).map_or_else(|at| at, |at| at + 1),
            Bound::Excluded(key) => self.find(key).unwrap_or_else(|at| at),
            Bound::Unbounded => self.entries.len(),
        };
        from.min(until)..until
    }

    /// The entries whose keys lie in a range.
    pub fn range<Q: Ord + ?Sized, R: RangeBounds<Q>>(&self, range: R) -> Iter<'_, K, V>
    where
        K: Borrow<Q>,
    {
        self.entries[self.places(range)].iter().map(of_entry)
    }

    /// The entries whose keys lie in a range; their values may be changed.
    pub fn range_mut<Q: Ord + ?Sized, R: RangeBounds<Q>>(&mut self, range: R) -> IterMut<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let places = self.places(range);
        self.entries[places].iter_mut().map(of_entry_mut)
    }
}

/// The place of a key in a map.
pub struct Entry<'m, K, V> {
    map: &'m mut SortedMap<K, V>,
    key: K,
    found: Result<usize, usize>,
}

impl<'m, K: Ord, V> Entry<'m, K, V> {
    /// The value; one that is made now where there is none.
    pub fn or_insert_with(self, value: impl FnOnce() -> V) -> &'m mut V {
        let at = match self.found {
            Ok(at) => at,
            Err(at) => {
                self.map.add(at, self.key, value());
                at
            }
        };
        &mut self.map.entries[at].1
    }

    /// The value; this one where there is none.
    pub fn or_insert(self, value: V) -> &'m mut V {
        self.or_insert_with(|| value)
    }

    /// The value; the usual one where there is none.
    pub fn or_default(self) -> &'m mut V
    where
        V: Default,
    {
        self.or_insert_with(V::default)
    }

    /// Changes the value where there is one.
    #[allow(clippy::must_use_candidate, clippy::return_self_not_must_use, reason = "as the tree's")]
    pub fn and_modify(self, change: impl FnOnce(&mut V)) -> Self {
        if let Ok(at) = self.found {
            change(&mut self.map.entries[at].1);
        }
        self
    }
}

impl<K: Ord, V> Extend<(K, V)> for SortedMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = SortedMap::new();
        map.extend(entries);
        map
    }
}

impl<K: Ord, V, const COUNT: usize> From<[(K, V); COUNT]> for SortedMap<K, V> {
    fn from(entries: [(K, V); COUNT]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'m, K, V> IntoIterator for &'m SortedMap<K, V> {
    type Item = (&'m K, &'m V);
    type IntoIter = Iter<'m, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// A set in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedSet<K> {
    keys: SortedMap<K, ()>,
}

impl<K> Default for SortedSet<K> {
    fn default() -> Self {
        SortedSet::new()
    }
}

/// The elements of a set.
pub type Keys<'m, K> = core::iter::Map<slice::Iter<'m, (K, ())>, fn(&'m (K, ())) -> &'m K>;

fn of_key<K>((key, ()): &(K, ())) -> &K {
    key
}

impl<K> SortedSet<K> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        SortedSet { keys: SortedMap::new() }
    }

    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// All elements.
    pub fn iter(&self) -> Keys<'_, K> {
        self.keys.entries.iter().map(of_key)
    }

    /// The first element.
    #[must_use]
    pub fn first(&self) -> Option<&K> {
        self.keys.entries.first().map(of_key)
    }

    /// The last element.
    #[must_use]
    pub fn last(&self) -> Option<&K> {
        self.keys.entries.last().map(of_key)
    }

    /// Keeps the elements that `is_kept` says.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K) -> bool) {
        self.keys.retain(|key, ()| is_kept(key));
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.keys.clear();
    }
}

impl<K: Ord> SortedSet<K> {
    /// Whether this is one of them.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.keys.contains_key(key)
    }

    /// Takes one in; whether it was not in.
    pub fn insert(&mut self, key: K) -> bool {
        self.keys.insert(key, ()).is_none()
    }

    /// Takes one out; whether it was in.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.keys.remove(key).is_some()
    }

    /// Takes the first one out.
    pub fn pop_first(&mut self) -> Option<K> {
        self.keys.pop_first().map(|(key, ())| key)
    }

    /// Takes in all of another one, which is left empty.
    pub fn append(&mut self, other: &mut Self) {
        self.extend(mem::take(other));
    }

    /// The elements in a range.
    pub fn range<Q: Ord + ?Sized, R: RangeBounds<Q>>(&self, range: R) -> Keys<'_, K>
    where
        K: Borrow<Q>,
    {
        self.keys.entries[self.keys.places(range)].iter().map(of_key)
    }

    /// Takes out those from `key` on.
    #[must_use]
    pub fn split_off<Q: Ord + ?Sized>(&mut self, key: &Q) -> Self
    where
        K: Borrow<Q>,
    {
        let at = self.keys.find(key).unwrap_or_else(|at| at);
        SortedSet { keys: SortedMap { entries: self.keys.entries.split_off(at) } }
    }
}

impl<K: Ord> Extend<K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        self.keys.extend(keys.into_iter().map(|key| (key, ())));
    }
}

impl<'k, K: Ord + Copy + 'k> Extend<&'k K> for SortedSet<K> {
    fn extend<I: IntoIterator<Item = &'k K>>(&mut self, keys: I) {
        self.extend(keys.into_iter().copied());
    }
}

impl<K: Ord> FromIterator<K> for SortedSet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = SortedSet::new();
        set.extend(keys);
        set
    }
}

impl<K: Ord, const COUNT: usize> From<[K; COUNT]> for SortedSet<K> {
    fn from(keys: [K; COUNT]) -> Self {
        keys.into_iter().collect()
    }
}

impl<K> IntoIterator for SortedSet<K> {
    type Item = K;
    type IntoIter = core::iter::Map<vec::IntoIter<(K, ())>, fn((K, ())) -> K>;

    fn into_iter(self) -> Self::IntoIter {
        self.keys.into_iter().map(|(key, ())| key)
    }
}

impl<'m, K> IntoIterator for &'m SortedSet<K> {
    type Item = &'m K;
    type IntoIter = Keys<'m, K>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// Numbers that look like none follow another.
    fn dice(seed: &mut u32) -> u32 {
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *seed >> 20
    }

    #[test]
    fn a_map_is_what_a_tree_is() {
        let (mut map, mut model, mut seed) = (SortedMap::new(), BTreeMap::new(), 7);
        for _ in 0..20_000 {
            let (key, value, from, until) =
                (dice(&mut seed) % 64, dice(&mut seed), dice(&mut seed) % 64, dice(&mut seed) % 64);
            match dice(&mut seed) % 8 {
                0 => assert_eq!(map.remove(&key), model.remove(&key)),
                1 => {
                    *map.entry(key).or_default() += value;
                    *model.entry(key).or_default() += value;
                }
                2 => {
                    map.retain(|known, _| known % 5 != key % 5);
                    model.retain(|known, _| known % 5 != key % 5);
                }
                3 => {
                    map.range_mut(key..).take(2).for_each(|(_, known)| *known ^= value);
                    model.range_mut(key..).take(2).for_each(|(_, known)| *known ^= value);
                }
                4 if map.len() > 40 => assert_eq!(map.pop_first(), model.pop_first()),
                5 => assert_eq!(map.remove_entry(&key), model.remove_entry(&key)),
                _ => assert_eq!(map.insert(key, value), model.insert(key, value)),
            }
            let (from, until) = (from.min(until), from.max(until));
            assert!(map.iter().eq(model.iter()) && map.range(from..until).eq(model.range(from..until)));
            assert!(map.range(from..=until).rev().eq(model.range(from..=until).rev()));
            assert_eq!((map.get(&key), map.contains_key(&key)), (model.get(&key), model.contains_key(&key)));
        }
    }

    #[test]
    fn a_set_is_what_a_tree_is() {
        let (mut set, mut model, mut seed) = (SortedSet::new(), BTreeSet::new(), 8);
        for _ in 0..20_000 {
            let key = dice(&mut seed) % 64;
            match dice(&mut seed) % 6 {
                0 => assert_eq!(set.remove(&key), model.remove(&key)),
                1 if set.len() > 40 => assert!(set.split_off(&key).into_iter().eq(model.split_off(&key))),
                2 if set.len() > 40 => assert_eq!(set.pop_first(), model.pop_first()),
                _ => assert_eq!(set.insert(key), model.insert(key)),
            }
            assert!(set.iter().eq(model.iter()) && set.range(key..).eq(model.range(key..)));
            assert_eq!(
                (set.first(), set.last(), set.contains(&key)),
                (model.first(), model.last(), model.contains(&key))
            );
        }
    }
}
