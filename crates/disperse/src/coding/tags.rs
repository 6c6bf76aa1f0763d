//! Values as tags: equal values have equal tags, and that is what whoever holds them learns.
//!
//! ```text
//! tag(value)  = HMAC-SHA256(key of column, 00 | value), its first 16 bytes
//! tag(prefix) = HMAC-SHA256(key of column, 01 | characters u16 | prefix), its first 16 bytes
//! NULL        = a tag of its own for each row, so that NULLs are not told from values that come once
//!             = HMAC-SHA256(key of column, 02 | row u64), its first 16 bytes
//! no prefix   = what a text is too short for, likewise: HMAC-SHA256(key of column, 03 | characters u16 | row u64), its first 16 bytes
//! ```
//! A row is its number with a part of its epoch, as in its place (places.rs): of a database that was put back a number comes again.
//!
//! The tag covers the whole value. With 2^40 values in a column two of them share one by chance once in 2^49
//! tables; whoever asks compares the opened values all the same.

use hmac::Mac as _;

use crate::keys::Secret;

/// A tag.
pub type Tag = [u8; 16];

/// What makes the tags of a column.
pub struct Tags(Secret);

impl Tags {
    /// Tags under a column's key.
    #[must_use]
    pub fn new(key: Secret) -> Self {
        Self(key)
    }

    /// The tag of a value.
    #[must_use]
    pub fn of(&self, value: &[u8]) -> Tag {
        self.tag(0, &[value])
    }

    /// The tag of the first `characters` of a text.
    #[must_use]
    pub fn of_prefix(&self, characters: u16, prefix: &str) -> Tag {
        self.tag(1, &[&characters.to_be_bytes(), prefix.as_bytes()])
    }

    /// The tag of a row that has no value.
    #[must_use]
    pub fn of_null(&self, row: u64) -> Tag {
        self.tag(2, &[&row.to_be_bytes()])
    }

    /// The tag of a row whose text has fewer than so many characters.
    #[must_use]
    pub fn of_no_prefix(&self, characters: u16, row: u64) -> Tag {
        self.tag(3, &[&characters.to_be_bytes(), &row.to_be_bytes()])
    }

    fn tag(&self, kind: u8, parts: &[&[u8]]) -> Tag {
        let mut mac = self.0.mac();
        mac.update(&[kind]);
        parts.iter().for_each(|part| mac.update(part));
        let whole = mac.finalize().into_bytes();
        std::array::from_fn(|at| whole[at])
    }
}

#[cfg(test)]
mod tests {
    use super::Tags;
    use crate::keys::Secret;

    #[test]
    fn tags_are_equal_where_values_of_one_column_are() {
        let (tags, others) = (Tags::new(Secret::new([1; 32])), Tags::new(Secret::new([2; 32])));
        assert_eq!(tags.of(b"Ada"), tags.of(b"Ada"));
        assert_ne!(tags.of(b"Ada"), others.of(b"Ada"));
        assert_ne!(tags.of_null(1), tags.of_null(2));
        let all = [
            tags.of(b""),
            tags.of(b"\0"),
            tags.of(b"Ada"),
            tags.of_prefix(1, "A"),
            tags.of_prefix(2, "A"),
            tags.of_null(0),
            tags.of_no_prefix(0, 0),
        ];
        for (at, tag) in all.iter().enumerate() {
            assert!(!all[..at].contains(tag), "{at}");
        }
    }
}
