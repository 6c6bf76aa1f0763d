//! Columns of a leaf as bytes. A codec is chosen for each column of each leaf, by what its values are like; every one gives
//! back exactly what it was given.
//!
//! | values | module | bytes |
//! |---|---|---|
//! | times, integers | [`integers`] | reference, then differences in as few bits as most of them need |
//! | doubles that are decimals | [`doubles`] | a power of ten, then integers |
//! | other doubles | [`doubles`] | their bits without those that all of them have as zero |
//! | qualities, flags | [`runs`] | each value and how often it follows itself |
//!
//! What is read was sealed by us, but a codec does not know that: bytes that make no sense end in [`Nonsense`], and no more
//! values come out than were asked for.

mod bits;
pub mod doubles;
pub mod integers;
mod numbers;
pub mod runs;

/// Bytes that no column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense;
