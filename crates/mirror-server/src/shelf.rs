//! A snapshot of a store as a shelf, of which one answer may take so much and no more.

use std::sync::Arc;
use std::time::Instant;

use counterfoil_mirror::{Entry, NodeEntry, Shelf, nodes_of, place};
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
            spend(left, deadline, position.len() + entry.len())?;
            Ok(visit(Position::from_bytes(position)?, Entry::from_bytes(entry, &definition)?))
        };
        match upward {
            true => self.reading.upward(order, at, &mut bounded),
            false => self.reading.downward(order, at, &mut bounded),
        }
    }
}

/// Takes an entry's bytes from what may still be read.
fn spend(left: &mut usize, deadline: Instant, bytes: usize) -> Result<(), StoreError> {
    let rest = left.checked_sub(bytes + BYTES_BESIDE).filter(|_| Instant::now() < deadline);
    *left = rest.ok_or(StoreError::TooMuch)?;
    Ok(())
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

    fn node(&mut self, order: u8, level: u8, from: &[u8]) -> Result<Option<NodeEntry>, StoreError> {
        let (definition, deadline) = (self.definition.clone(), self.deadline);
        let left = &mut self.bytes_left;
        let mut found = None;
        let mut first = |position: &[u8], entry: &[u8]| {
            spend(left, deadline, position.len() + entry.len())?;
            if position.starts_with(&[1, level]) {
                found = Some(NodeEntry::from_bytes(entry, &definition)?);
            }
            Ok(false)
        };
        self.reading.upward(nodes_of(order), &place(level, from), &mut first)?;
        Ok(found)
    }
}
