//! Index entries gathered in whatever order, to be sorted at once: in one string of bytes, with what each begins with beside its
//! place in it, so that most are told apart without looking at their bytes.
//!
//! ```text
//! bytes   | key | row | key | row | ...
//! places  | head, where it begins, how long it is | ...          these are sorted
//! ```

use alloc::vec::Vec;

use counterfoil_log::Order as _;

use crate::RowId;
use crate::key::{Head, head, stored};

/// Bytes that places can tell.
const BYTES_MAX: usize = u32::MAX as usize;

/// Entries to be sorted.
#[derive(Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    head: Head,
    start: u32,
    length: u32,
}

impl Gathered {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// What they take of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<Place>()
    }

    /// Whether there may be no more of them.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() > BYTES_MAX - crate::key::ENTRY_BYTES_MAX
    }

    /// Takes the entry of a row under a key.
    pub(crate) fn push(&mut self, key: &[u8], row: RowId) {
        assert!(!self.is_full(), "whoever gathers entries asks for room");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(stored(key));
        self.bytes.extend_from_slice(&row.0.to_be_bytes());
        let head = head(&self.bytes[start..]);
        self.places.push(Place { head, start: start as u32, length: (self.bytes.len() - start) as u32 });
    }

    /// All of them in order.
    pub(crate) fn in_order(&mut self) -> impl Iterator<Item = &[u8]> {
        let bytes = &self.bytes;
        let entry = |place: &Place| &bytes[place.start as usize..][..place.length as usize];
        self.places.order_by(|one, two| one.head.cmp(&two.head).then_with(|| entry(one).cmp(entry(two))));
        self.places.iter().map(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KEY_BYTES_MAX, entry};

    #[test]
    fn entries_come_in_the_order_of_their_bytes() {
        let mut gathered = Gathered::default();
        let long = [7; KEY_BYTES_MAX + 5];
        let keys = [&[2_u8][..], &[1, 9, 9], &[1], &long, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], &[]];
        let mut expected = Vec::new();
        for (row, key) in keys.iter().cycle().take(40).enumerate() {
            let row = RowId((row as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            gathered.push(key, row);
            expected.push(entry(key, row));
        }
        expected.sort();
        assert_eq!(gathered.len(), 40);
        assert!(gathered.in_order().eq(expected.iter().map(Vec::as_slice)));
    }
}
