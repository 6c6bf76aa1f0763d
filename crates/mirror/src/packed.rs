//! A shelf in memory for servers: entries as the bytes that answers are made of, and sums of their signatures where a record
//! has one; groups, filters and nodes.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use counterfoil_proof::{Definition, Malformed, Position, Scheme, Signature, SignatureSum, is_group, is_node};

use crate::entry::Entry;
use crate::filter_index::Filters;
use crate::filters::SignedFilter;
use crate::groups::{Groups, SignedGroup};
use crate::memory::orders_of;
use crate::node_entry::NodeEntry;
use crate::nodes::Nodes;
use crate::shelf::Shelf;
use crate::sums::{Leaves, Sums};

/// An order: entries by their positions.
type Order = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// Entries in their bytes. Many threads answer from one (`&PackedShelf` is a [`Shelf`]), and an update takes microseconds.
/// Filters and nodes are few, and answers hold them one by one: they are kept as they are.
#[derive(Clone)]
pub struct PackedShelf {
    definition: Definition,
    orders: Vec<(Order, Sums)>,
    /// By number.
    entries: HashMap<u64, Arc<[u8]>>,
    groups: Groups,
    filters: Filters,
    nodes: Nodes,
}

impl PackedShelf {
    /// An empty shelf.
    #[must_use]
    pub fn new(definition: Definition) -> Self {
        let orders = vec![(Order::new(), Sums::new()); definition.orders.len()];
        let (groups, filters, nodes) = (Groups::default(), Filters::default(), Nodes::default());
        Self { definition, orders, entries: HashMap::new(), groups, filters, nodes }
    }

    /// Puts an entry, group, filter or node in the place of the one with its number, which tells which it is.
    ///
    /// # Errors
    /// [`Malformed`]: it is none of this table; nothing has changed.
    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        if SignedGroup::are(bytes) {
            self.groups.put(SignedGroup::from_bytes(bytes, &self.definition)?);
            return Ok(());
        }
        if SignedFilter::are(bytes) {
            self.filters.put(SignedFilter::from_bytes(bytes, &self.definition)?);
            return Ok(());
        }
        if NodeEntry::is_one(bytes) {
            self.nodes.put(NodeEntry::from_bytes(bytes, &self.definition)?);
            return Ok(());
        }
        let entry = Entry::from_bytes(bytes, &self.definition)?;
        let places = self.places(&entry)?;
        self.remove(entry.stamp.rid)?;
        let bytes: Arc<[u8]> = bytes.into();
        for (order, position) in places {
            let (entries, sums) = &mut self.orders[usize::from(order)];
            sums.put(position.bytes(), entry.stamp.rid);
            entries.insert(position.bytes().to_vec(), bytes.clone());
        }
        self.entries.insert(entry.stamp.rid, bytes);
        Ok(())
    }

    /// Takes the entry, group, filter or node with this number away; whether there was one.
    ///
    /// # Errors
    /// [`Malformed`]: what is here makes no sense.
    pub fn remove(&mut self, rid: u64) -> Result<bool, Malformed> {
        if is_group(rid) {
            return Ok(self.groups.remove(rid).is_some());
        }
        if SignedFilter::is_number(rid) {
            return Ok(self.filters.remove(rid).is_some());
        }
        if is_node(rid) {
            return Ok(self.nodes.remove(rid).is_some());
        }
        let Some(bytes) = self.entries.remove(&rid) else { return Ok(false) };
        for (order, position) in self.places(&Entry::from_bytes(&bytes, &self.definition)?)? {
            let (entries, sums) = &mut self.orders[usize::from(order)];
            sums.remove(position.bytes(), rid);
            entries.remove(position.bytes());
        }
        Ok(true)
    }

    fn places(&self, entry: &Entry) -> Result<Vec<(u8, Position)>, Malformed> {
        let orders = orders_of(&self.definition, entry);
        if usize::from(orders.end) > self.orders.len() {
            return Err(Malformed("the head or tail of an order that is not there"));
        }
        orders.map(|order| Ok((order, entry.position(&self.definition, order)?))).collect()
    }

    fn read(&self, position: &[u8], bytes: &[u8]) -> (Position, Entry) {
        let read =
            || Ok::<_, Malformed>((Position::from_bytes(position)?, Entry::from_bytes(bytes, &self.definition)?));
        read().unwrap_or_else(|_| unreachable!("what is put here was read before"))
    }
}

/// The signature of an entry, from its bytes: it stands before the hint of 96 bytes.
pub(crate) fn signature_of(entry: &[u8]) -> Option<Signature> {
    let start = entry.len().checked_sub(192)?;
    Signature::from_bytes(&entry[start..start + 96]).ok()
}

impl Leaves for Order {
    fn sum(&self, from: &[u8], before: &[u8]) -> SignatureSum {
        let mut total = SignatureSum::new();
        let within = self.range::<[u8], _>((Included(from), Excluded(before)));
        within.filter_map(|(_, entry)| signature_of(entry)).for_each(|signature| total.add(&signature));
        total
    }
}

impl Shelf for &PackedShelf {
    type Error = std::convert::Infallible;

    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn upward(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), Self::Error> {
        self.upward_bytes(order, from, &mut |position, entry| {
            let (position, entry) = self.read(position, entry);
            visit(position, entry)
        })
        .map(drop)
    }

    fn downward(
        &mut self,
        order: u8,
        before: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), Self::Error> {
        let below = self.orders[usize::from(order)].0.range::<[u8], _>((Unbounded, Excluded(before)));
        for (position, entry) in below.rev() {
            let (position, entry) = self.read(position, entry);
            if !visit(position, entry) {
                break;
            }
        }
        Ok(())
    }

    fn upward_bytes(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<bool, Self::Error> {
        let above = self.orders[usize::from(order)].0.range::<[u8], _>((Included(from), Unbounded));
        for (position, entry) in above {
            if !visit(position, entry) {
                break;
            }
        }
        Ok(true)
    }

    fn sum(&mut self, order: u8, from: &[u8], before: &[u8]) -> Result<Option<SignatureSum>, Self::Error> {
        if self.definition.scheme != Scheme::PerRecord {
            return Ok(None);
        }
        let (entries, sums) = &self.orders[usize::from(order)];
        Ok(Some(if from < before { sums.sum(entries, from, before) } else { SignatureSum::new() }))
    }

    fn group(&mut self, place: &[u8]) -> Result<Option<SignedGroup>, Self::Error> {
        Ok(self.groups.at(place).cloned())
    }

    fn filter(&mut self, order: u8, value: &[u8]) -> Result<Option<SignedFilter>, Self::Error> {
        Ok(self.filters.at(order, value).cloned())
    }

    fn node(&mut self, order: u8, level: u8, from: &[u8]) -> Result<Option<NodeEntry>, Self::Error> {
        Ok(self.nodes.level(order, level, from).next().cloned())
    }
}
