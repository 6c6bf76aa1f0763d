//! The bytes at the end of a container that do not fill a page yet. Most containers are runs of an index and have none for good, so
//! none takes no more than a pointer.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Deref;

/// Bytes for which there is room to spare where memory is little.
const SPARE_BYTES: usize = 32;

/// The bytes that do not fill a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::box_collection, reason = "a vector takes three times what a pointer does")]
pub(crate) struct Tail(Option<Box<Vec<u8>>>);

impl Tail {
    /// Adds bytes at the end.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let all = self.0.get_or_insert_default();
        // A vector that doubles has room to spare in every container.
        if cfg!(feature = "small") && all.capacity() - all.len() < bytes.len() {
            all.reserve_exact(bytes.len() + SPARE_BYTES);
        }
        all.extend_from_slice(bytes);
    }
}

impl From<&[u8]> for Tail {
    fn from(bytes: &[u8]) -> Self {
        Tail((!bytes.is_empty()).then(|| Box::new(bytes.to_vec())))
    }
}

impl Deref for Tail {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |all| all.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_takes_a_pointer() {
        assert_eq!(size_of::<Tail>(), size_of::<usize>());
        let mut tail = Tail::default();
        tail.add(&[]);
        assert!(tail.is_empty() && tail.0.is_none() && Tail::from([].as_slice()) == tail);
        tail.add(&[1, 2]);
        tail.add(&[3]);
        assert!(*tail == [1, 2, 3] && Tail::from([1, 2, 3].as_slice()) == tail);
    }
}
