//! Where a mirror finds what it keeps.

use counterfoil_proof::{Definition, Position, SignatureSum};

use crate::entry::Entry;
use crate::filters::SignedFilter;
use crate::groups::SignedGroup;
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

    /// As [`Shelf::upward`], with positions and entries as bytes ([`Entry::to_bytes`]). Says whether it did: a shelf that
    /// keeps no bytes visits nothing.
    ///
    /// # Errors
    /// Those of reading.
    fn upward_bytes(
        &mut self,
        _order: u8,
        _from: &[u8],
        _visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool, Self::Error> {
        Ok(false)
    }

    /// The sum of the signatures of all that stands from `from` on and before `before`, if it takes less than adding them: of what the last
    /// walk along this order visited, right behind it, or of nothing.
    ///
    /// # Errors
    /// Those of reading.
    fn sum(&mut self, _order: u8, _from: &[u8], _before: &[u8]) -> Result<Option<SignatureSum>, Self::Error> {
        Ok(None)
    }

    /// The filter of an order that tells of an encoded value: the last one that begins with it or before. A shelf without
    /// filters has none, and proofs are by what stands around values.
    ///
    /// # Errors
    /// Those of reading.
    fn filter(&mut self, _order: u8, _value: &[u8]) -> Result<Option<SignedFilter>, Self::Error> {
        Ok(None)
    }

    /// The node of a level of an order that begins first at `from` or behind it. A shelf without nodes has none: totals are
    /// made of rows then.
    ///
    /// # Errors
    /// Those of reading.
    fn node(&mut self, _order: u8, _level: u8, _from: &[u8]) -> Result<Option<NodeEntry>, Self::Error> {
        Ok(None)
    }

    /// The last group that begins at a place of the first order, or before: that of the record there. A shelf of a table
    /// without groups has none.
    ///
    /// # Errors
    /// Those of reading.
    fn group(&mut self, _place: &[u8]) -> Result<Option<SignedGroup>, Self::Error> {
        Ok(None)
    }
}
