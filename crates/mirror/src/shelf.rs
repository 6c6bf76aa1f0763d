//! Where a mirror finds what it keeps.

use counterfoil_proof::{Definition, Position};

use crate::entry::Entry;
use crate::filters::SignedFilter;

/// Signed records in the orders of their table, heads and tails included, as they were at one moment.
pub trait Shelf {
    /// Why something could not be read.
    type Error;

    /// What table this is.
    fn definition(&self) -> &Definition;

    /// Visits what stands at `from` or behind it, ascending, until `visit` says false.
    ///
    /// # Errors
    /// Those of reading.
    fn upward(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), Self::Error>;

    /// Visits what stands before `before`, descending, until `visit` says false.
    ///
    /// # Errors
    /// Those of reading.
    fn downward(
        &mut self,
        order: u8,
        before: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), Self::Error>;

    /// The filter of an order that tells of an encoded value: the last one that begins with it or before. A shelf without
    /// filters has none, and proofs are by what stands around values.
    ///
    /// # Errors
    /// Those of reading.
    fn filter(&mut self, order: u8, value: &[u8]) -> Result<Option<SignedFilter>, Self::Error>;
}
