//! How a value becomes fragments, each of which says no more than its coding admits.
//!
//! | coding | for | what whoever holds the fragments learns of them at rest |
//! |---|---|---|
//! | [`cells`] | fetching | the class of a value's length |
//! | [`erasure`] | fetching, at less than whole copies | the class of a value's length |
//! | [`shares`] | sums | nothing, below the threshold |
//! | [`tags`] | equality, prefixes | which values are equal, and how often each comes |
//! | [`orders`] | ranges | which are NULL; with each question, how it compares with each value, and the first four bits in which they differ |
//! | [`boldyreva`] | ranges: `danger` | the order, which values are equal, the upper half of their bits and more |
//!
//! Of these no column takes one (DESIGN says why); benchmarks measure them:
//!
//! | coding | for | what whoever holds the fragments learns of them at rest |
//! |---|---|---|
//! | [`paillier`] | sums at one provider, which cannot be checked | nothing |
//! | [`pads`] | the same, as fast as plain numbers, where rows follow one another | nothing |
//! | [`bits`] | sums and bounds of fragments, availability | what the fragments' own coding says |
//! | [`convergent`] | storing equal values once: `danger` | which values are equal, how often each comes, the class of their lengths |
//!
//! [`places`] gives rows their places, [`field`] is the arithmetic of shares. Nothing here knows providers or tables.

pub mod bits;
pub mod boldyreva;
pub mod cells;
pub mod convergent;
pub mod erasure;
pub mod field;
pub mod orders;
pub mod pads;
pub mod paillier;
pub mod places;
pub mod shares;
pub mod tags;
