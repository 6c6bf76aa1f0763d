//! A shelf in memory.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use counterfoil_proof::{Definition, Malformed, Position};

use crate::entry::Entry;
use crate::filter_index::Filters;
use crate::filters::SignedFilter;
use crate::groups::{Groups, SignedGroup};
use crate::node_entry::NodeEntry;
use crate::nodes::Nodes;
use crate::shelf::Shelf;

/// Everything in maps: for tests, and for owners whose table fits.
#[derive(Clone)]
pub struct MemoryShelf {
    definition: Definition,
    orders: Vec<BTreeMap<Vec<u8>, u64>>,
    entries: HashMap<u64, Entry>,
    filters: Filters,
    /// Signed totals of parts of the orders.
    pub nodes: Nodes,
    /// Signed groups of records.
    pub groups: Groups,
}

impl MemoryShelf {
    /// An empty shelf.
    #[must_use]
    pub fn new(definition: Definition) -> Self {
        let orders = vec![BTreeMap::new(); definition.orders.len()];
        let (filters, nodes, groups) = (Filters::default(), Nodes::default(), Groups::default());
        Self { definition, orders, entries: HashMap::new(), filters, nodes, groups }
    }

    /// Puts an entry in the place of the one with its number.
    ///
    /// # Errors
    /// [`Malformed`]: it is none of this table.
    pub fn put(&mut self, entry: Entry) -> Result<(), Malformed> {
        if orders_of(&self.definition, &entry).end as usize > self.orders.len() {
            return Err(Malformed("the head or tail of an order that is not there"));
        }
        self.remove(entry.stamp.rid);
        for order in orders_of(&self.definition, &entry) {
            let position = entry.position(&self.definition, order)?;
            self.orders[usize::from(order)].insert(position.bytes().to_vec(), entry.stamp.rid);
        }
        self.entries.insert(entry.stamp.rid, entry);
        Ok(())
    }

    /// Takes the entry with this number away.
    pub fn remove(&mut self, rid: u64) -> Option<Entry> {
        let entry = self.entries.remove(&rid)?;
        for order in orders_of(&self.definition, &entry) {
            if let Ok(position) = entry.position(&self.definition, order) {
                self.orders[usize::from(order)].remove(position.bytes());
            }
        }
        Some(entry)
    }

    /// The entry with this number.
    #[must_use]
    pub fn entry(&self, rid: u64) -> Option<&Entry> {
        self.entries.get(&rid)
    }

    /// The period of the oldest signature; 0 where there is none.
    #[must_use]
    pub fn oldest(&self) -> u64 {
        let signed = self.entries.values().filter(|entry| !entry.signed.is_empty());
        let periods = signed.map(|entry| entry.stamp.period);
        let groups = self.groups.from(&[]).map(|group| group.stamp.period);
        let nodes = self.nodes.all().map(|entry| entry.stamp.period);
        let filters = self.filters.all().map(|signed| signed.stamp.period);
        periods.chain(groups).chain(nodes).chain(filters).min().unwrap_or(0)
    }

    /// Puts a filter in the place of the one with its number.
    pub fn put_filter(&mut self, signed: SignedFilter) {
        self.filters.put(signed);
    }

    /// Takes the filter with this number away.
    pub fn remove_filter(&mut self, rid: u64) -> Option<SignedFilter> {
        self.filters.remove(rid)
    }

    /// The filter with this number.
    #[must_use]
    pub fn filter_of_number(&self, rid: u64) -> Option<&SignedFilter> {
        self.filters.of_number(rid)
    }

    /// The filter of an order that tells of an encoded value.
    #[must_use]
    pub fn filter_at(&self, order: u8, value: &[u8]) -> Option<&SignedFilter> {
        self.filters.at(order, value)
    }

    /// The filter of an order that ends where one with the lower bound `low` begins.
    #[must_use]
    pub fn filter_before(&self, order: u8, low: &[u8]) -> Option<&SignedFilter> {
        self.filters.before(order, low)
    }

    /// All filters of an order, by their bounds.
    pub fn filters(&self, order: u8) -> impl Iterator<Item = &SignedFilter> {
        self.filters.of(order)
    }

    /// All numbers of an order, as their entries stand in it.
    pub fn rids(&self, order: u8) -> impl Iterator<Item = u64> + '_ {
        self.orders[usize::from(order)].values().copied()
    }

    /// What stands beside a position in an order: before and behind it.
    #[must_use]
    pub fn neighbours(&self, order: u8, position: &Position) -> [Option<u64>; 2] {
        let order = &self.orders[usize::from(order)];
        let left = order.range(..position.bytes().to_vec()).next_back();
        let right = order.range(Edge::after(position)..).next();
        [left, right].map(|found| found.map(|(_, rid)| *rid))
    }

    /// What stands at `from` in an order, or first behind it.
    #[must_use]
    pub fn next(&self, order: u8, from: &[u8]) -> Option<Position> {
        let found = self.orders[usize::from(order)].range(from.to_vec()..).next();
        found.map(|(position, _)| Self::position(position))
    }

    /// The records of an order from `start` on and before `end`, with their positions.
    pub fn within(&self, order: u8, start: &[u8], end: &[u8]) -> impl Iterator<Item = (&[u8], &Entry)> {
        let found = self.orders[usize::from(order)].range(start.to_vec()..end.to_vec());
        found.filter_map(|(position, rid)| Some((&position[..], self.entries.get(rid)?)))
    }

    fn position(bytes: &[u8]) -> Position {
        Position::from_bytes(bytes).unwrap_or_else(|_| unreachable!("these bytes are those of a position"))
    }
}

struct Edge;

impl Edge {
    fn after(position: &Position) -> Vec<u8> {
        [position.bytes(), &[0]].concat()
    }
}

/// The orders in which an entry stands: all for a record, its own for a head or tail.
pub(crate) fn orders_of(definition: &Definition, entry: &Entry) -> std::ops::Range<u8> {
    let own = (entry.stamp.rid / 2) as u8;
    if entry.record.is_some() { 0..definition.orders.len() as u8 } else { own..own + 1 }
}

impl Shelf for MemoryShelf {
    type Error = Infallible;

    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn upward(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), Infallible> {
        (&mut &*self).upward(order, from, visit)
    }

    fn downward(
        &mut self,
        order: u8,
        before: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), Infallible> {
        (&mut &*self).downward(order, before, visit)
    }

    fn filter(&mut self, order: u8, value: &[u8]) -> Result<Option<SignedFilter>, Infallible> {
        Ok(self.filter_at(order, value).cloned())
    }

    fn node(&mut self, order: u8, level: u8, from: &[u8]) -> Result<Option<NodeEntry>, Infallible> {
        (&mut &*self).node(order, level, from)
    }

    fn group(&mut self, place: &[u8]) -> Result<Option<SignedGroup>, Infallible> {
        Ok(self.groups.at(place).cloned())
    }
}

/// Many threads answer from one shelf.
impl Shelf for &MemoryShelf {
    type Error = Infallible;

    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn upward(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), Infallible> {
        for (position, rid) in self.orders[usize::from(order)].range(from.to_vec()..) {
            if !visit(MemoryShelf::position(position), self.entries[rid].clone()) {
                break;
            }
        }
        Ok(())
    }

    fn downward(
        &mut self,
        order: u8,
        before: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), Infallible> {
        for (position, rid) in self.orders[usize::from(order)].range(..before.to_vec()).rev() {
            if !visit(MemoryShelf::position(position), self.entries[rid].clone()) {
                break;
            }
        }
        Ok(())
    }

    fn filter(&mut self, order: u8, value: &[u8]) -> Result<Option<SignedFilter>, Infallible> {
        Ok(self.filter_at(order, value).cloned())
    }

    fn node(&mut self, order: u8, level: u8, from: &[u8]) -> Result<Option<NodeEntry>, Infallible> {
        Ok(self.nodes.level(order, level, from).next().cloned())
    }

    fn group(&mut self, place: &[u8]) -> Result<Option<SignedGroup>, Infallible> {
        Ok(self.groups.at(place).cloned())
    }
}
