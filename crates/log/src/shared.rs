//! Maps of a root: a copy costs a few pointers, and whoever changes one copies what others hold of it, no more.
//!
//! On a host that is a tree, copied as a whole by the first change after somebody else took it. On devices with little memory (feature
//! `small`) a commit in the making would hold all entries once more: there a map is a list of sorted pieces of at most
//! [`PIECE_ENTRIES`] entries, and a change copies one.
//!
//! Invariants: keys ascend within a piece and from each to the next, each of them once; no piece is empty, or longer than that.

#[cfg(not(feature = "small"))]
pub(crate) use whole::SharedMap;

#[cfg(feature = "small")]
pub(crate) use in_pieces::SharedMap;

#[cfg(not(feature = "small"))]
mod whole {
    use alloc::sync::Arc;
    use core::borrow::Borrow;
    use core::ops::Deref;

    use crate::maps::Map;

    /// A map that is copied when it changes and somebody else has it, too.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct SharedMap<K, V>(Arc<Map<K, V>>);

    impl<K, V> Default for SharedMap<K, V> {
        fn default() -> Self {
            SharedMap(Arc::default())
        }
    }

    impl<K, V> Deref for SharedMap<K, V> {
        type Target = Map<K, V>;

        fn deref(&self) -> &Map<K, V> {
            &self.0
        }
    }

    impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
        fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
            SharedMap(Arc::new(entries.into_iter().collect()))
        }
    }

    impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
        /// The entries from a key on.
        pub(crate) fn range_from<'m, Q: Ord + ?Sized>(
            &'m self,
            from: &Q,
        ) -> impl Iterator<Item = (&'m K, &'m V)> + use<'m, K, V, Q>
        where
            K: Borrow<Q>,
        {
            use core::ops::Bound::{Included, Unbounded};
            self.0.range::<Q, _>((Included(from), Unbounded))
        }

        /// The value of a key, to be changed.
        pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
            Arc::make_mut(&mut self.0).get_mut(key)
        }

        /// Gives a key a value; the one it had.
        pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
            Arc::make_mut(&mut self.0).insert(key, value)
        }

        /// Takes a key away; the value it had.
        pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
        where
            K: Borrow<Q>,
        {
            Arc::make_mut(&mut self.0).remove(key)
        }

        /// Keeps the entries that `is_kept` says.
        pub(crate) fn retain(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
            Arc::make_mut(&mut self.0).retain(|key, value| is_kept(key, value));
        }
    }
}

/// Entries of a piece at most: where a piece is copied, some hundred bytes are.
#[cfg(any(feature = "small", test))]
const PIECE_ENTRIES: usize = 16;

#[cfg(any(feature = "small", test))]
mod in_pieces {
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use core::borrow::Borrow;
    use core::cmp::Ordering;
    use core::{mem, slice};

    use super::PIECE_ENTRIES;
    use crate::search::search;

    type Piece<K, V> = Arc<Vec<(K, V)>>;

    /// A map of which a piece is copied when it changes and somebody else has it, too.
    #[derive(Clone, Debug)]
    pub(crate) struct SharedMap<K, V> {
        pub(super) pieces: Vec<Piece<K, V>>,
    }

    impl<K, V> Default for SharedMap<K, V> {
        fn default() -> Self {
            SharedMap { pieces: Vec::new() }
        }
    }

    /// Entries in their order, piece after piece. The library's adapters would bring code for each way of going through them.
    struct Entries<'m, K, V> {
        pieces: slice::Iter<'m, Piece<K, V>>,
        piece: slice::Iter<'m, (K, V)>,
    }

    impl<'m, K, V> Iterator for Entries<'m, K, V> {
        type Item = (&'m K, &'m V);

        #[inline(never)]
        fn next(&mut self) -> Option<(&'m K, &'m V)> {
            loop {
                if let Some((key, value)) = self.piece.next() {
                    return Some((key, value));
                }
                self.piece = self.pieces.next()?.iter();
            }
        }
    }

    /// The same entries, in whatever pieces.
    impl<K: PartialEq, V: PartialEq> PartialEq for SharedMap<K, V> {
        fn eq(&self, other: &Self) -> bool {
            self.iter().eq(other.iter())
        }
    }

    impl<K: Eq, V: Eq> Eq for SharedMap<K, V> {}

    impl<K, V> SharedMap<K, V> {
        /// How many entries there are.
        pub(crate) fn len(&self) -> usize {
            self.pieces.iter().map(|piece| piece.len()).sum()
        }

        /// Whether there are none.
        pub(crate) fn is_empty(&self) -> bool {
            self.pieces.is_empty()
        }

        /// All entries.
        pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
            Entries { pieces: self.pieces.iter(), piece: Default::default() }
        }

        /// All keys.
        pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
            self.iter().map(|(key, _)| key)
        }

        /// All values.
        pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
            self.iter().map(|(_, value)| value)
        }
    }

    impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
        /// The piece where a key is or would be, and its place in it.
        fn place<Q: Ord + ?Sized>(&self, key: &Q) -> (usize, Result<usize, usize>)
        where
            K: Borrow<Q>,
        {
            let mut first =
                |at: usize| self.pieces[at].first().map_or(Ordering::Less, |(key_of, _)| key_of.borrow().cmp(key));
            let piece = search(self.pieces.len(), &mut first).unwrap_or_else(|at| at.saturating_sub(1));
            let Some(entries) = self.pieces.get(piece) else { return (piece, Err(0)) };
            (piece, search(entries.len(), &mut |at| entries[at].0.borrow().cmp(key)))
        }

        fn entries(&mut self, piece: usize) -> Option<&mut Vec<(K, V)>> {
            self.pieces.get_mut(piece).map(Arc::make_mut)
        }

        /// The value of a key.
        pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
        where
            K: Borrow<Q>,
        {
            let (piece, found) = self.place(key);
            self.pieces.get(piece)?.get(found.ok()?).map(|(_, value)| value)
        }

        /// Whether there is such a key.
        pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
        where
            K: Borrow<Q>,
        {
            self.place(key).1.is_ok()
        }

        /// The entries from a key on.
        pub(crate) fn range_from<'m, Q: Ord + ?Sized>(
            &'m self,
            from: &Q,
        ) -> impl Iterator<Item = (&'m K, &'m V)> + use<'m, K, V, Q>
        where
            K: Borrow<Q>,
        {
            let (first, found) = self.place(from);
            let skipped = found.unwrap_or_else(|at| at);
            let mut pieces = self.pieces.get(first..).unwrap_or_default().iter();
            let piece = pieces.next().and_then(|piece| piece.get(skipped..)).unwrap_or_default().iter();
            Entries { pieces, piece }
        }

        /// The value of a key, to be changed.
        pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
            let (piece, found) = self.place(key);
            let at = found.ok()?;
            self.entries(piece)?.get_mut(at).map(|(_, value)| value)
        }

        /// Gives a key a value; the one it had.
        pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
            let (piece, found) = self.place(&key);
            let at = match found {
                Ok(at) => {
                    let known = self.entries(piece).and_then(|entries| entries.get_mut(at));
                    return known.map(|(_, known)| mem::replace(known, value));
                }
                Err(at) => at,
            };
            match self.entries(piece) {
                Some(entries) if entries.len() < PIECE_ENTRIES => {
                    entries.reserve_exact(1);
                    entries.insert(at, (key, value));
                }
                // Most keys are numbers that go up: a piece that ends is left full.
                Some(entries) if at < entries.len() => {
                    let behind = entries.split_off(at);
                    entries.push((key, value));
                    self.pieces.insert(piece + 1, Arc::new(behind));
                    self.join(piece + 1);
                }
                entries => {
                    let next = if entries.is_some() { piece + 1 } else { 0 };
                    self.pieces.insert(next, Arc::new(Vec::from([(key, value)])));
                }
            }
            None
        }

        /// Takes a key away; the value it had.
        pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
        where
            K: Borrow<Q>,
        {
            let (piece, found) = self.place(key);
            let at = found.ok()?;
            let (_, value) = self.entries(piece)?.remove(at);
            self.join(piece);
            Some(value)
        }

        /// Keeps the entries that `is_kept` says.
        pub(crate) fn retain(&mut self, is_kept: impl Fn(&K, &V) -> bool) {
            for piece in (0..self.pieces.len()).rev() {
                if self.pieces.get(piece).is_some_and(|piece| !piece.iter().all(|(key, value)| is_kept(key, value))) {
                    let entries = self.entries(piece);
                    entries.into_iter().for_each(|entries| entries.retain(|(key, value)| is_kept(key, value)));
                    self.join(piece);
                }
            }
        }

        /// Drops a piece that has become empty, and makes one of two that have become short.
        fn join(&mut self, piece: usize) {
            let entries = |at: usize| self.pieces.get(at).map(|piece| piece.len());
            match (entries(piece), entries(piece + 1)) {
                (Some(0), _) => drop(self.pieces.remove(piece)),
                (Some(one), Some(next)) if one + next <= PIECE_ENTRIES / 2 => {
                    let next = self.pieces.remove(piece + 1);
                    let entries = self.entries(piece);
                    entries.into_iter().for_each(|entries| entries.extend(next.iter().cloned()));
                }
                _ => {}
            }
        }
    }

    impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
        fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
            let mut map = SharedMap::default();
            entries.into_iter().for_each(|(key, value)| drop(map.insert(key, value)));
            map
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PIECE_ENTRIES;
    use super::in_pieces::SharedMap;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    /// The map in pieces against a tree, with a copy that must stay as it was.
    #[test]
    fn what_others_hold_stays_as_it_was() {
        let mut dice = 3_u64;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let (mut map, mut tree) = (SharedMap::default(), BTreeMap::new());
        let mut held = (map.clone(), tree.clone());
        for step in 0..20_000 {
            let (key, much) = (roll(300), roll(100));
            match much {
                0 => held = (map.clone(), tree.clone()),
                1 => {
                    let (part, of) = (roll(7), 1 + roll(7));
                    map.retain(|key, _| key % of != part);
                    tree.retain(|key, _| key % of != part);
                }
                2..40 => assert_eq!(map.remove(&key), tree.remove(&key)),
                40..50 => {
                    assert_eq!(map.get_mut(&key).map(|value| *value += 1), tree.get_mut(&key).map(|value| *value += 1))
                }
                _ => assert_eq!(map.insert(key, step), tree.insert(key, step)),
            }
            assert_eq!((map.get(&key), map.contains_key(&key)), (tree.get(&key), tree.contains_key(&key)));
            assert!(map.range_from(&key).eq(tree.range(key..)));
            assert!(map.iter().eq(tree.iter()) && held.0.iter().eq(held.1.iter()));
            assert_eq!((map.len(), map.is_empty()), (tree.len(), tree.is_empty()));
            assert!(map.lengths().all(|entries| (1..=PIECE_ENTRIES).contains(&entries)));
        }
        let sorted: SharedMap<u64, ()> = (0..100).map(|key| (key, ())).collect();
        assert_eq!(sorted.lengths().collect::<Vec<_>>(), [16, 16, 16, 16, 16, 16, 4]);
        assert_eq!((sorted.keys().count(), sorted.values().count()), (100, 100));
    }

    impl<K, V> SharedMap<K, V> {
        fn lengths(&self) -> impl Iterator<Item = usize> {
            self.pieces.iter().map(|piece| piece.len())
        }
    }
}
