//! Where a mirror finds what it keeps.

use counterfoil_proof::{Definition, Position};

use crate::entry::Entry;
use crate::node_entry::NodeEntry;

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

    /// The node of a level of an order that begins first at `from` or behind it. A shelf without nodes has none: totals are
    /// made of rows then.
    ///
    /// # Errors
    /// Those of reading.
    fn node(&mut self, _order: u8, _level: u8, _from: &[u8]) -> Result<Option<NodeEntry>, Self::Error> {
        Ok(None)
    }
}
