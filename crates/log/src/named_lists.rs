//! Numbers of records by name: a map, or on devices with little memory (feature `small`) one string of bytes.
//!
//! ```text
//! | bytes of the name u16 | name, zeros as 0 and how many | numbers u16 | number u32, number u32 ... | ... the next name
//! ```
//! A map has a place and an allocation for each name: 36 bytes for a name of 14, of which most are zeros, where these are 14. A device
//! has some dozens of names, so that it reads over all of them to find one.

#[cfg(not(feature = "small"))]
pub(crate) use map::NamedLists;

#[cfg(feature = "small")]
pub(crate) use packed::NamedLists;

/// Numbers of one name at most.
pub(crate) const NUMBERS_MAX: usize = u16::MAX as usize;

#[cfg(any(not(feature = "small"), test))]
mod map {
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    use crate::maps::Map;

    /// Lists of numbers, none of them empty.
    #[derive(Default)]
    pub(crate) struct NamedLists(Map<Box<[u8]>, Box<[u32]>>);

    impl NamedLists {
        /// Whether there is none.
        pub(crate) fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        /// The numbers of a name.
        pub(crate) fn of(&self, name: &[u8]) -> impl Iterator<Item = u32> + use<'_> {
            self.0.get(name).into_iter().flat_map(|list| list.iter().copied())
        }

        /// All numbers.
        pub(crate) fn all(&self) -> impl Iterator<Item = u32> + '_ {
            self.0.values().flat_map(|list| list.iter().copied())
        }

        /// Gives a name these numbers; one without any goes.
        pub(crate) fn set(&mut self, name: &[u8], numbers: &[u32]) {
            match numbers {
                [] => drop(self.0.remove(name)),
                _ => drop(self.0.insert(name.into(), numbers.into())),
            }
        }

        /// Makes each number what `change` says; none: it goes.
        pub(crate) fn change(&mut self, change: impl Fn(u32) -> Option<u32>) {
            self.0.retain(|_, list| {
                if list.iter().any(|number| change(*number) != Some(*number)) {
                    *list = list.iter().filter_map(|number| change(*number)).collect::<Vec<_>>().into();
                }
                !list.is_empty()
            });
        }
    }
}

#[cfg(any(feature = "small", test))]
mod packed {
    use alloc::vec::Vec;
    use core::ops::Range;

    /// Lists of numbers, none of them empty.
    #[derive(Default)]
    pub(crate) struct NamedLists(Vec<u8>);

    /// A name as it is kept, its numbers, and where both stand.
    struct List<'l> {
        name: &'l [u8],
        numbers: &'l [u8],
        place: Range<usize>,
    }

    impl List<'_> {
        fn numbers(&self) -> impl Iterator<Item = u32> + use<'_> {
            self.numbers.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number))
        }
    }

    impl NamedLists {
        fn list(&self, start: usize) -> Option<List<'_>> {
            let bytes_of = |at: usize, each: usize| {
                let bytes =
                    self.0.get(at..)?.first_chunk().map(|count| usize::from(u16::from_le_bytes(*count)) * each)?;
                Some((self.0.get(at + 2..at + 2 + bytes)?, at + 2 + bytes))
            };
            let (name, behind) = bytes_of(start, 1)?;
            let (numbers, end) = bytes_of(behind, size_of::<u32>())?;
            Some(List { name, numbers, place: start..end })
        }

        fn iter(&self) -> impl Iterator<Item = List<'_>> {
            let mut at = 0;
            core::iter::from_fn(move || {
                let list = self.list(at)?;
                at = list.place.end;
                Some(list)
            })
        }

        /// Whether there is none.
        pub(crate) fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        /// The numbers of a name.
        pub(crate) fn of(&self, name: &[u8]) -> impl Iterator<Item = u32> + use<'_> {
            let name = kept(name);
            let found = self.iter().find(|list| list.name == name);
            let numbers = found.map(|list| list.numbers).unwrap_or_default();
            numbers.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number))
        }

        /// All numbers.
        pub(crate) fn all(&self) -> impl Iterator<Item = u32> + '_ {
            self.iter().flat_map(|list| list.numbers.as_chunks().0).map(|number| u32::from_le_bytes(*number))
        }

        /// Gives a name these numbers; one without any goes.
        pub(crate) fn set(&mut self, name: &[u8], numbers: &[u32]) {
            let name = kept(name);
            let place = self.iter().find(|list| list.name == name).map(|list| list.place);
            let place = place.unwrap_or(self.0.len()..self.0.len());
            let mut list = Vec::new();
            if !numbers.is_empty() {
                put(&mut list, &name, numbers);
            }
            self.0.reserve_exact(list.len().saturating_sub(place.len()));
            self.0.splice(place, list);
        }

        /// Makes each number what `change` says; none: it goes.
        pub(crate) fn change(&mut self, change: impl Fn(u32) -> Option<u32>) {
            let is_same = |number: u32| change(number) == Some(number);
            if self.all().all(is_same) {
                return;
            }
            let mut at = 0;
            while let Some(list) = self.list(at) {
                let numbers: Vec<u32> = list.numbers().filter_map(&change).collect();
                let (name, place) = (Vec::from(list.name), list.place);
                let mut changed = Vec::new();
                if !numbers.is_empty() {
                    put(&mut changed, &name, &numbers);
                }
                at = place.start + changed.len();
                self.0.splice(place, changed);
            }
        }
    }

    fn put(out: &mut Vec<u8>, name: &[u8], numbers: &[u32]) {
        out.extend_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name);
        out.extend_from_slice(&(numbers.len() as u16).to_le_bytes());
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    }

    /// A name as it is kept: no two names are the same.
    fn kept(name: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(name.len());
        let alike = name.chunk_by(|one, next| (*one, *next) == (0, 0));
        for bytes in alike.flat_map(|bytes| bytes.chunks(usize::from(u8::MAX))) {
            kept.push(bytes[0]);
            if bytes[0] == 0 {
                kept.push(bytes.len() as u8);
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{map, packed};

    #[test]
    fn packed_lists_are_a_map_of_lists() {
        let mut dice = 5_u64;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % sides
        };
        let name =
            |number: u64| [&[b'x'][..number as usize % 2], &[0; 300][..(number as usize % 5) * 75], &[1]].concat();
        let (mut packed, mut map) = (packed::NamedLists::default(), map::NamedLists::default());
        for _ in 0..2000 {
            let set = name(roll(10));
            let numbers: Vec<u32> = (0..roll(4)).map(|_| roll(1 << 20) as u32).collect();
            packed.set(&set, &numbers);
            map.set(&set, &numbers);
            if roll(10) == 0 {
                let change = |number: u32| (!number.is_multiple_of(3)).then_some(number / 2);
                packed.change(change);
                map.change(change);
            }
            let asked = name(roll(10));
            assert!(packed.of(&asked).eq(map.of(&asked)));
            assert_eq!(packed.is_empty(), map.is_empty());
            let sorted = |numbers: &mut dyn Iterator<Item = u32>| {
                let mut numbers: Vec<u32> = numbers.collect();
                numbers.sort_unstable();
                numbers
            };
            assert_eq!(sorted(&mut packed.all()), sorted(&mut map.all()));
        }
    }
}
