//! Keys as bytes whose order is the order of the values.

use alloc::vec::Vec;

use crate::Value;

/// One end of a range of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyBound {
    /// No end; NULLs are not part of the range.
    Unbounded,
    /// The value is part of the range.
    Included(Value),
    /// The value is not part of the range.
    Excluded(Value),
}

/// A range of an index: equal values for its first columns, and optionally bounds for the column after them.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRange {
    /// Values of the index's first columns; NULL stands for IS NULL.
    pub prefix: Vec<Value>,
    /// Bounds of the next column (which then is not NULL).
    pub bounds: Option<(KeyBound, KeyBound)>,
}

impl KeyRange {
    /// Keys that begin with these values.
    #[must_use]
    pub fn equal(prefix: Vec<Value>) -> Self {
        KeyRange { prefix, bounds: None }
    }
}
