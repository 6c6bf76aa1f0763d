//! Where a mirror finds what it keeps.

use counterfoil_proof::{Definition, Position};

use crate::entry::Entry;

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
}
