//! Maps and sets in the order of their keys: trees, or on devices with little memory sorted vectors (feature `small`).
//!
//! A tree makes room for eleven entries where there is one, and each kind of it is 3 to 6 KB of code; a vector takes what
//! it holds, and moves it where an entry goes in before others. Catalogs of a few hundred entries do not notice.

#[cfg(not(feature = "small"))]
pub use alloc::collections::{BTreeMap as Map, BTreeSet as Set};

#[cfg(feature = "small")]
pub use crate::sorted::{SortedMap as Map, SortedSet as Set};
