//! Nodes in memory.

use std::collections::{BTreeMap, HashMap};

use crate::node_entry::NodeEntry;

/// The nodes of all orders of a table.
#[derive(Clone, Default)]
pub struct Nodes {
    /// By order, level, and where they begin.
    places: BTreeMap<(u8, u8, Vec<u8>), u64>,
    entries: HashMap<u64, NodeEntry>,
}

fn place(entry: &NodeEntry) -> (u8, u8, Vec<u8>) {
    (entry.node.order, entry.node.level, entry.node.part.start().to_vec())
}

impl Nodes {
    /// Puts a node in the place of the one with its number.
    pub fn put(&mut self, entry: NodeEntry) {
        self.remove(entry.stamp.rid);
        self.places.insert(place(&entry), entry.stamp.rid);
        self.entries.insert(entry.stamp.rid, entry);
    }

    /// Takes the node with this number away.
    pub fn remove(&mut self, rid: u64) -> Option<NodeEntry> {
        let entry = self.entries.remove(&rid)?;
        self.places.remove(&place(&entry));
        Some(entry)
    }

    /// The node with this number.
    #[must_use]
    pub fn entry(&self, rid: u64) -> Option<&NodeEntry> {
        self.entries.get(&rid)
    }

    /// The nodes of a level of an order that begin at `from` or behind it, ascending.
    pub fn level(&self, order: u8, level: u8, from: &[u8]) -> impl Iterator<Item = &NodeEntry> {
        let from = (order, level, from.to_vec());
        let found = self.places.range(from..).take_while(move |(place, _)| (place.0, place.1) == (order, level));
        found.filter_map(|(_, rid)| self.entries.get(rid))
    }

    /// The node of a level of an order that begins last of those that do not begin behind `at`.
    #[must_use]
    pub fn holding(&self, order: u8, level: u8, at: &[u8]) -> Option<&NodeEntry> {
        let first = (order, level, Vec::new());
        let (_, rid) = self.places.range(first..=(order, level, at.to_vec())).next_back()?;
        self.entries.get(rid)
    }

    /// The node of a level of an order that begins last of those that begin before `at`.
    #[must_use]
    pub fn before(&self, order: u8, level: u8, at: &[u8]) -> Option<&NodeEntry> {
        let (_, rid) = self.places.range((order, level, Vec::new())..(order, level, at.to_vec())).next_back()?;
        self.entries.get(rid)
    }

    /// All nodes, in no order.
    pub fn all(&self) -> impl Iterator<Item = &NodeEntry> {
        self.entries.values()
    }

    /// All nodes of an order, by level and where they begin.
    pub fn of(&self, order: u8) -> impl Iterator<Item = &NodeEntry> {
        self.above(order, 0)
    }

    /// The nodes of an order above a level, by level and where they begin.
    pub fn above(&self, order: u8, level: u8) -> impl Iterator<Item = &NodeEntry> {
        let first = level.checked_add(1).map(|level| (order, level, Vec::new()));
        let found = first.into_iter().flat_map(|first| self.places.range(first..));
        let found = found.take_while(move |(place, _)| place.0 == order);
        found.filter_map(|(_, rid)| self.entries.get(rid))
    }
}
