//! The name of a record: its space, then its name.
//!
//! A short one lies where it is kept and has no allocation of its own. Most are: what the catalog numbers has 14 bytes at most, and
//! whoever copies a piece of the map of records copies names with it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::ops::Deref;

/// Bytes of a short one: with how many it has, and which of both it is, 16 where a pointer has 4.
const SHORT_BYTES: usize = 14;

/// The name of a record.
#[derive(Clone, Debug)]
pub(crate) struct RecordKey(Kept);

#[derive(Clone, Debug)]
enum Kept {
    Short { count: u8, bytes: [u8; SHORT_BYTES] },
    Long(Box<[u8]>),
}

impl RecordKey {
    /// That which some bytes are together.
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut bytes = [0; SHORT_BYTES];
        let mut count = 0;
        for part in parts {
            match bytes.get_mut(count..count + part.len()) {
                Some(place) => place.copy_from_slice(part),
                None => return RecordKey(Kept::Long(Vec::into_boxed_slice(parts.concat()))),
            }
            count += part.len();
        }
        RecordKey(Kept::Short { count: count as u8, bytes })
    }
}

/// The name of a record in a space.
pub(crate) fn record_key(space: u8, name: &[u8]) -> RecordKey {
    RecordKey::of(&[&[space], name])
}

impl Deref for RecordKey {
    type Target = [u8];

    #[inline(never)]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kept::Short { count, bytes } => bytes.get(..usize::from(*count)).unwrap_or_default(),
            Kept::Long(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for RecordKey {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for RecordKey {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for RecordKey {}

impl PartialOrd for RecordKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RecordKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_or_long_it_is_its_bytes() {
        assert_eq!(size_of::<RecordKey>(), if cfg!(target_pointer_width = "64") { 24 } else { 16 });
        let name: Vec<u8> = (1..40).collect();
        for count in 0..name.len() {
            let key = record_key(7, &name[..count]);
            let bytes = [&[7], &name[..count]].concat();
            assert_eq!((&*key, matches!(key.0, Kept::Short { .. })), (bytes.as_slice(), count < SHORT_BYTES));
            assert!(key == RecordKey::of(&[&bytes]) && key < record_key(7, &name[..count + 1]));
            assert!(key < record_key(8, &[]) && key > record_key(6, &name));
        }
    }
}
