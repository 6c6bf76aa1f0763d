//! How a value becomes fragments, each of which says no more than its coding admits.
//!
//! | coding | for | what whoever holds the fragments learns of them at rest |
//! |---|---|---|
//! | [`cells`] | fetching | the class of a value's length |
//! | [`shares`] | sums | nothing, below the threshold |
//! | [`tags`] | equality, prefixes | which values are equal, and how often each comes |
//! | [`orders`] | ranges | nothing; with each question, how it compares with each value |
//!
//! [`places`] gives rows their places, [`field`] is the arithmetic of shares. Nothing here knows providers or tables.

pub mod cells;
pub mod field;
pub mod orders;
pub mod paillier;
pub mod places;
pub mod shares;
pub mod tags;
