//! A shelf in memory.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use counterfoil_proof::{Definition, Malformed, Position};

use crate::entry::Entry;
use crate::node_entry::NodeEntry;
use crate::nodes::Nodes;
use crate::shelf::Shelf;

/// Everything in maps: for tests, and for owners whose table fits.
#[derive(Clone)]
pub struct MemoryShelf {
    definition: Definition,
    orders: Vec<BTreeMap<Vec<u8>, u64>>,
    entries: HashMap<u64, Entry>,
    /// Signed totals of parts of the orders.
    pub nodes: Nodes,
}

impl MemoryShelf {
    /// An empty shelf.
    #[must_use]
    pub fn new(definition: Definition) -> Self {
        let orders = vec![BTreeMap::new(); definition.orders.len()];
        Self { definition, orders, entries: HashMap::new(), nodes: Nodes::default() }
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
        let periods = self.entries.values().map(|entry| entry.stamp.period);
        periods.chain(self.nodes.all().map(|entry| entry.stamp.period)).min().unwrap_or(0)
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
fn orders_of(definition: &Definition, entry: &Entry) -> std::ops::Range<u8> {
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
        for (position, rid) in self.orders[usize::from(order)].range(from.to_vec()..) {
            if !visit(Self::position(position), self.entries[rid].clone()) {
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
            if !visit(Self::position(position), self.entries[rid].clone()) {
                break;
            }
        }
        Ok(())
    }

    fn node(&mut self, order: u8, level: u8, from: &[u8]) -> Result<Option<NodeEntry>, Infallible> {
        Ok(self.nodes.level(order, level, from).next().cloned())
    }
}
