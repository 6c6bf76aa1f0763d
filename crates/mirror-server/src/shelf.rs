//! A snapshot of a store as a shelf, of which one answer may take so much and no more.

use std::sync::Arc;
use std::time::Instant;

use counterfoil_mirror::{Entry, GROUPS, NodeEntry, Shelf, SignedFilter, SignedGroup, filters_of, nodes_of, place};
use counterfoil_proof::{Definition, Edge, Filter, Position, Scheme, SignatureSum};

use crate::store::{Reading, StoreError, Visit};
use crate::walked::Walked;

/// What takes part in an answer beside an entry's bytes: the structures around it.
const BYTES_BESIDE: usize = 256;

pub(crate) struct BoundedShelf<'a> {
    pub reading: &'a mut dyn Reading,
    pub definition: Arc<Definition>,
    /// Bytes that may still be read.
    pub bytes_left: usize,
    pub deadline: Instant,
    /// What the last walk along records has passed, where they have signatures of their own.
    pub walked: Option<Walked<'a>>,
}

/// What is left of `left` bytes after an entry of so many, if there is that much room and time.
fn take(left: usize, bytes: usize, deadline: Instant) -> Result<usize, StoreError> {
    left.checked_sub(bytes + BYTES_BESIDE).filter(|_| Instant::now() < deadline).ok_or(StoreError::TooMuch)
}

impl BoundedShelf<'_> {
    /// Walks along records, of which there may be sums to be made then.
    fn walk_records(&mut self, order: u8, at: &[u8], upward: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut walked = self.walked.take();
        walked.iter_mut().for_each(|walked| walked.begin(order, upward));
        let done = self.walk(order, at, upward, &mut |position, entry| {
            walked.as_mut().map_or(Ok(()), |walked| walked.pass(position, entry))?;
            visit(position, entry)
        });
        self.walked = walked;
        done
    }

    fn walk(&mut self, order: u8, at: &[u8], upward: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let deadline = self.deadline;
        let left = &mut self.bytes_left;
        let mut bounded = |position: &[u8], entry: &[u8]| {
            *left = take(*left, position.len() + entry.len(), deadline)?;
            visit(position, entry)
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
        let definition = self.definition.clone();
        self.walk_records(order, from, true, &mut |position, entry| {
            Ok(visit(Position::from_bytes(position)?, Entry::from_bytes(entry, &definition)?))
        })
    }

    fn downward(
        &mut self,
        order: u8,
        before: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), StoreError> {
        let definition = self.definition.clone();
        self.walk_records(order, before, false, &mut |position, entry| {
            Ok(visit(Position::from_bytes(position)?, Entry::from_bytes(entry, &definition)?))
        })
    }

    fn filter(&mut self, order: u8, value: &[u8]) -> Result<Option<SignedFilter>, StoreError> {
        let definition = self.definition.clone();
        if !definition.filters.contains(&order) {
            return Ok(None);
        }
        let behind = Edge::after(&Filter::place_of(value)?);
        let mut found = None;
        self.walk(filters_of(order), behind.bytes(), false, &mut |_, entry| {
            found = Some(SignedFilter::from_bytes(entry, &definition)?);
            Ok(false)
        })?;
        Ok(found)
    }

    fn group(&mut self, place: &[u8]) -> Result<Option<SignedGroup>, StoreError> {
        let definition = self.definition.clone();
        if !matches!(definition.scheme, Scheme::Group(_)) {
            return Ok(None);
        }
        // The last one that begins at the place, or before.
        let behind = [place, &[0]].concat();
        let mut found = None;
        self.walk(GROUPS, &behind, false, &mut |_, entry| {
            found = Some(SignedGroup::from_bytes(entry, &definition)?);
            Ok(false)
        })?;
        Ok(found)
    }

    fn upward_bytes(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool, StoreError> {
        self.walk_records(order, from, true, &mut |position, entry| Ok(visit(position, entry)))?;
        Ok(true)
    }

    fn sum(&mut self, _order: u8, from: &[u8], before: &[u8]) -> Result<Option<SignatureSum>, StoreError> {
        Ok(self.walked.as_mut().map(|walked| walked.sum(from, before)).transpose()?)
    }

    fn node(&mut self, order: u8, level: u8, from: &[u8]) -> Result<Option<NodeEntry>, StoreError> {
        let definition = self.definition.clone();
        let mut found = None;
        self.walk(nodes_of(order), &place(level, from), true, &mut |position, entry| {
            if position.starts_with(&[1, level]) {
                found = Some(NodeEntry::from_bytes(entry, &definition)?);
            }
            Ok(false)
        })?;
        Ok(found)
    }
}
