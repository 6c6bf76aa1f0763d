//! Index entries in order, in memory: a tree, or on devices with little memory (feature `small`) one string of bytes.
//!
//! ```text
//! | bytes of the key u16 | key | number of the row, seven bits in a byte | ... the next entry
//! ```
//! A tree has a place, an allocation and eight bytes of a row's number for each: 45 bytes for a key of 10, where these are 14. A device
//! has some dozens of entries for an index, so that it reads over all of them to find one.

#[cfg(not(feature = "small"))]
pub(crate) use tree::Entries;

#[cfg(feature = "small")]
pub(crate) use packed::Entries;

#[cfg(not(feature = "small"))]
mod tree {
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::ops::Bound;

    use counterfoil_log::Set;

    use crate::RowId;
    use crate::key::split_entry;

    /// About what an entry takes beside its bytes: its place in the set, and what the allocator spends on it.
    const ENTRY_BYTES: usize = 40;

    /// Entries, each once.
    #[derive(Default)]
    pub(crate) struct Entries {
        all: Set<Box<[u8]>>,
        bytes: usize,
    }

    impl Entries {
        /// How many there are.
        pub(crate) fn len(&self) -> usize {
            self.all.len()
        }

        /// About what they take of memory.
        pub(crate) fn bytes(&self) -> usize {
            self.bytes
        }

        /// Adds one, unless it is there.
        pub(crate) fn add(&mut self, entry: Vec<u8>) {
            let bytes = entry.len() + ENTRY_BYTES;
            if self.all.insert(entry.into_boxed_slice()) {
                self.bytes += bytes;
            }
        }

        /// Whether one is there.
        pub(crate) fn contains(&self, entry: &[u8]) -> bool {
            self.all.contains(entry)
        }

        /// So many, in order, behind the first `from` of them.
        pub(crate) fn piece(&self, from: usize, count: usize) -> Vec<Box<[u8]>> {
            self.all.iter().skip(from).take(count).cloned().collect()
        }

        fn between<'e>(
            &'e self,
            low: &[u8],
            high: Option<&[u8]>,
        ) -> impl DoubleEndedIterator<Item = &'e Box<[u8]>> + use<'e> {
            let high = high.map_or(Bound::Unbounded, |high| Bound::Excluded(if high < low { low } else { high }));
            self.all.range::<[u8], _>((Bound::Included(low), high))
        }

        /// The rows of those from one on that come before another.
        pub(crate) fn rows_between<'e>(
            &'e self,
            low: &[u8],
            high: Option<&[u8]>,
        ) -> impl Iterator<Item = RowId> + use<'e> {
            self.between(low, high).filter_map(|entry| split_entry(entry)).map(|(_, row)| row)
        }

        /// The first of those from one on that come before another, or the last, the last first.
        pub(crate) fn outermost(
            &self,
            (low, high): (&[u8], Option<&[u8]>),
            at_end: bool,
            count: usize,
        ) -> Vec<Box<[u8]>> {
            let entries = self.between(low, high);
            match at_end {
                true => entries.rev().take(count).cloned().collect(),
                false => entries.take(count).cloned().collect(),
            }
        }

        /// The rows of those that begin with some bytes.
        pub(crate) fn rows_under<'e>(&'e self, key: &'e [u8]) -> impl Iterator<Item = RowId> + use<'e> {
            let from = self.all.range::<[u8], _>((Bound::Included(key), Bound::Unbounded));
            let found = from.take_while(move |entry| entry.starts_with(key));
            found.filter_map(|entry| split_entry(entry)).map(|(_, row)| row)
        }
    }
}

#[cfg(any(feature = "small", test))]
mod packed {
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::cmp::Ordering;

    use crate::RowId;
    use crate::key::{entry, split_entry};

    /// Bytes that there is room for beyond those that an entry needs.
    const SPARE_BYTES: usize = 32;

    /// Entries, each once.
    #[derive(Default)]
    pub(crate) struct Entries {
        all: Vec<u8>,
    }

    /// One that is there, and where.
    struct Known<'e> {
        at: usize,
        key: &'e [u8],
        row: u64,
    }

    impl Known<'_> {
        fn compare(&self, bytes: &[u8]) -> Ordering {
            self.key.iter().copied().chain(self.row.to_be_bytes()).cmp(bytes.iter().copied())
        }

        fn row(self) -> RowId {
            RowId(self.row)
        }

        fn entry(self) -> Box<[u8]> {
            entry(self.key, RowId(self.row)).into_boxed_slice()
        }
    }

    impl Entries {
        /// How many there are.
        pub(crate) fn len(&self) -> usize {
            self.iter().count()
        }

        /// What they take of memory.
        pub(crate) fn bytes(&self) -> usize {
            self.all.capacity()
        }

        fn iter(&self) -> impl Iterator<Item = Known<'_>> {
            let mut at = 0;
            core::iter::from_fn(move || {
                let (low, high) = (*self.all.get(at)?, *self.all.get(at + 1)?);
                let start = at + 2 + usize::from(u16::from_le_bytes([low, high]));
                let (key, mut row, mut end) = (self.all.get(at + 2..start)?, 0, start);
                for shift in (0..u64::BITS).step_by(7) {
                    let byte = *self.all.get(end)?;
                    end += 1;
                    row |= u64::from(byte & 0x7F) << shift;
                    if byte & 0x80 == 0 {
                        break;
                    }
                }
                let known = Known { at, key, row };
                at = end;
                Some(known)
            })
        }

        /// Adds one, unless it is there.
        pub(crate) fn add(&mut self, entry: Vec<u8>) {
            let Some((key, row)) = split_entry(&entry) else { return };
            let behind = self.iter().find(|known| known.compare(&entry).is_ge());
            if behind.as_ref().is_some_and(|known| known.compare(&entry).is_eq()) {
                return;
            }
            let at = behind.map_or(self.all.len(), |known| known.at);
            let mut packed = Vec::with_capacity(entry.len() + 4);
            packed.extend_from_slice(&(key.len() as u16).to_le_bytes());
            packed.extend_from_slice(key);
            put_number(&mut packed, row.0);
            if self.all.capacity() - self.all.len() < packed.len() {
                self.all.reserve_exact(packed.len() + SPARE_BYTES);
            }
            self.all.splice(at..at, packed);
        }

        /// Whether one is there.
        pub(crate) fn contains(&self, entry: &[u8]) -> bool {
            self.iter().any(|known| known.compare(entry).is_eq())
        }

        /// So many, in order, behind the first `from` of them.
        pub(crate) fn piece(&self, from: usize, count: usize) -> Vec<Box<[u8]>> {
            let mut piece = Vec::with_capacity(count.min(self.len().saturating_sub(from)));
            let entries = self.iter().skip(from).take(count);
            piece.extend(entries.map(|known| entry(known.key, RowId(known.row)).into_boxed_slice()));
            piece
        }

        fn between(&self, low: &[u8], high: Option<&[u8]>) -> impl Iterator<Item = Known<'_>> {
            let from = self.iter().skip_while(move |known| known.compare(low).is_lt());
            from.take_while(move |known| high.is_none_or(|high| known.compare(high).is_lt()))
        }

        /// The rows of those from one on that come before another.
        pub(crate) fn rows_between(&self, low: &[u8], high: Option<&[u8]>) -> impl Iterator<Item = RowId> {
            self.between(low, high).map(Known::row)
        }

        /// The first of those from one on that come before another, or the last, the last first.
        pub(crate) fn outermost(
            &self,
            (low, high): (&[u8], Option<&[u8]>),
            at_end: bool,
            count: usize,
        ) -> Vec<Box<[u8]>> {
            let passed = if at_end { self.between(low, high).count().saturating_sub(count) } else { 0 };
            let entries = self.between(low, high).skip(passed).take(count);
            let mut entries: Vec<Box<[u8]>> = entries.map(Known::entry).collect();
            if at_end {
                entries.reverse();
            }
            entries
        }

        /// The rows of those that begin with some bytes.
        pub(crate) fn rows_under(&self, key: &[u8]) -> impl Iterator<Item = RowId> {
            self.iter().filter(move |known| known.key.starts_with(key)).map(Known::row)
        }
    }

    fn put_number(out: &mut Vec<u8>, mut number: u64) {
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use super::packed::Entries;
    use crate::RowId;
    use crate::key::{entry, split_entry};

    #[test]
    fn packed_entries_are_a_sorted_set() {
        let mut dice = 3_u64;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let key = |number: u64| [&[1][..], &[b'a'; 300][..(number as usize % 3) * 140], &[number as u8, 0]].concat();
        let (mut packed, mut tree) = (Entries::default(), BTreeSet::new());
        for _ in 0..300 {
            let row = RowId([roll(4), roll(1 << 14), u64::MAX - roll(3)][roll(3) as usize]);
            let added = entry(&key(roll(20)), row);
            tree.insert(added.clone());
            packed.add(added);
            let asked = entry(&key(roll(20)), RowId(roll(4)));
            assert_eq!(packed.contains(&asked), tree.contains(&asked));
            let (low, high) = (key(roll(20)), key(roll(20)));
            let rows = |found: &mut dyn Iterator<Item = &Vec<u8>>| -> Vec<RowId> {
                found.filter_map(|entry| split_entry(entry)).map(|(_, row)| row).collect()
            };
            let between = rows(&mut tree.iter().filter(|entry| **entry >= low && **entry < high));
            assert!(packed.rows_between(&low, Some(&high)).eq(between));
            let count = roll(4) as usize;
            let within: Vec<&Vec<u8>> = tree.iter().filter(|entry| **entry >= low && **entry < high).collect();
            let first = packed.outermost((&low, Some(&high)), false, count);
            assert!(first.iter().map(|entry| &**entry).eq(within.iter().take(count).map(|entry| entry.as_slice())));
            let last = packed.outermost((&low, Some(&high)), true, count);
            assert!(
                last.iter().map(|entry| &**entry).eq(within.iter().rev().take(count).map(|entry| entry.as_slice()))
            );
            assert!(packed.rows_between(&low, None).eq(rows(&mut tree.range(low.clone()..))));
            assert!(packed.rows_under(&low).eq(rows(&mut tree.iter().filter(|entry| entry.starts_with(&low)))));
        }
        assert_eq!(packed.len(), tree.len());
        for from in 0..tree.len() + 1 {
            let piece = packed.piece(from, 7);
            assert!(piece.iter().map(|entry| &**entry).eq(tree.iter().skip(from).take(7).map(Vec::as_slice)));
        }
        assert!(packed.bytes() < tree.iter().map(|entry| entry.len() + 4).sum());
    }
}
