//! The extents of a map, as small as can be: there are as many as the medium has room for. Each has two numbers, its owner's code and
//! that of its allocation, which have four bytes each until one of them needs more.

use alloc::vec::Vec;

use crate::runs::make_room;

/// An extent of the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The owner's code.
    pub(crate) code: u64,
    pub(crate) allocation: u64,
}

impl Slot {
    fn narrow(self) -> Option<[u32; 2]> {
        Some([u32::try_from(self.code).ok()?, u32::try_from(self.allocation).ok()?])
    }
}

impl From<[u32; 2]> for Slot {
    fn from([code, allocation]: [u32; 2]) -> Self {
        Slot { code: code.into(), allocation: allocation.into() }
    }
}

/// Extents, by their numbers.
#[derive(Clone, Debug)]
pub(crate) enum Slots {
    /// Of small numbers.
    Narrow(Vec<[u32; 2]>),
    /// Of numbers of which one is larger.
    Wide(Vec<Slot>),
}

impl Slots {
    /// None yet.
    pub(crate) fn new() -> Self {
        Slots::Narrow(Vec::new())
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Slots::Narrow(slots) => slots.len(),
            Slots::Wide(slots) => slots.len(),
        }
    }

    /// One of them.
    pub(crate) fn get(&self, place: usize) -> Option<Slot> {
        match self {
            Slots::Narrow(slots) => slots.get(place).copied().map(Slot::from),
            Slots::Wide(slots) => slots.get(place).copied(),
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// Adds one.
    pub(crate) fn push(&mut self, slot: Slot) {
        match (self.fitted(slot), slot.narrow()) {
            (Slots::Narrow(slots), Some(slot)) => {
                make_room(slots);
                slots.push(slot);
            }
            (Slots::Wide(slots), _) => {
                make_room(slots);
                slots.push(slot);
            }
            (Slots::Narrow(_), None) => {}
        }
    }

    /// Makes one what it is now; whether there is such a one.
    pub(crate) fn set(&mut self, place: usize, slot: Slot) -> bool {
        let is_set = match (self.fitted(slot), slot.narrow()) {
            (Slots::Narrow(slots), Some(slot)) => slots.get_mut(place).map(|known| *known = slot),
            (Slots::Wide(slots), _) => slots.get_mut(place).map(|known| *known = slot),
            (Slots::Narrow(_), None) => None,
        };
        is_set.is_some()
    }

    /// All of them, with room for the numbers of one.
    fn fitted(&mut self, slot: Slot) -> &mut Self {
        if let (Slots::Narrow(_), None) = (&*self, slot.narrow()) {
            *self = Slots::Wide(self.iter().collect());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_kept_like_small_ones() {
        let [small, large] = [7, 1 << 63].map(|code| Slot { code, allocation: 9 });
        let mut slots = Slots::new();
        slots.push(small);
        assert!(slots.set(0, Slot { code: 8, ..small }) && !slots.set(1, small));
        assert!(matches!(slots, Slots::Narrow(_)));
        let mut other = slots.clone();
        slots.push(large);
        assert!(slots.iter().eq([Slot { code: 8, ..small }, large]));
        assert!(other.set(0, Slot { allocation: 1 << 32, ..small }));
        assert_eq!((other.get(0), other.get(1), other.len()), (Some(Slot { allocation: 1 << 32, ..small }), None, 1));
    }
}
