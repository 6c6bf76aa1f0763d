//! Columns of a leaf as bytes. A codec is chosen for each column of each leaf, by what its values are like; every one gives
//! back exactly what it was given.
//!
//! | values | module | bytes |
//! |---|---|---|
//! | times, integers | [`integers`] | reference, then differences in as few bits as most of them need |
//! | qualities, flags, whatever changes rarely | [`integers`] | each value and how often it follows itself |
//! | multiples of a common factor | [`integers`] | the factor, and what they are multiplied with |
//! | few different values, unevenly apart | [`integers`] | these, ascending, and each value's place among them |
//! | doubles that are decimals, or counts of a converter | [`doubles`] | a power of ten or two, then integers |
//! | texts | [`texts`] | each that differs, once, and their numbers as integers |
//! | other doubles | [`doubles`] | their bits without those that all of them have as zero |
//!
//! What is read was sealed by us, but a codec does not know that: bytes that make no sense end in [`Nonsense`], and no more
//! values come out than were asked for.

mod bits;
pub mod doubles;
mod factor;
pub mod integers;
mod list;
mod numbers;
mod plain;
pub mod texts;

/// Bytes that no column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense;
