//! A snapshot of a store as a shelf, of which one answer may take so much and no more.

use std::sync::Arc;
use std::time::Instant;

use counterfoil_mirror::{Entry, Shelf};
use counterfoil_proof::{Definition, Position};

use crate::store::{Reading, StoreError};

/// What takes part in an answer beside an entry's bytes: the structures around it.
const BYTES_BESIDE: usize = 256;

pub(crate) struct BoundedShelf<'a> {
    pub reading: &'a mut dyn Reading,
    pub definition: Arc<Definition>,
    /// Bytes that may still be read.
    pub bytes_left: usize,
    pub deadline: Instant,
}

/// What is left of `left` bytes after an entry of so many, if there is that much room and time.
fn take(left: usize, bytes: usize, deadline: Instant) -> Result<usize, StoreError> {
    left.checked_sub(bytes + BYTES_BESIDE).filter(|_| Instant::now() < deadline).ok_or(StoreError::TooMuch)
}

impl BoundedShelf<'_> {
    fn walk(
        &mut self,
        order: u8,
        at: &[u8],
        upward: bool,
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), StoreError> {
        let (definition, deadline) = (self.definition.clone(), self.deadline);
        let left = &mut self.bytes_left;
        let mut bounded = |position: &[u8], entry: &[u8]| {
            *left = take(*left, position.len() + entry.len(), deadline)?;
            Ok(visit(Position::from_bytes(position)?, Entry::from_bytes(entry, &definition)?))
        };
        match upward {
            true => self.reading.upward(order, at, &mut bounded),
            false => self.reading.downward(order, at, &mut bounded),
        }
    }
}

impl Shelf for BoundedShelf<'_> {
    type Error = StoreError;

    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn upward(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), StoreError> {
        self.walk(order, from, true, visit)
    }

    fn downward(
        &mut self,
        order: u8,
        before: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), StoreError> {
        self.walk(order, before, false, visit)
    }

    fn upward_bytes(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool, StoreError> {
        let deadline = self.deadline;
        let left = &mut self.bytes_left;
        let mut bounded = |position: &[u8], entry: &[u8]| {
            *left = take(*left, position.len() + entry.len(), deadline)?;
            Ok(visit(position, entry))
        };
        self.reading.upward(order, from, &mut bounded)?;
        Ok(true)
    }
}
