//! What the owner ever sent of a table, and what others sent of tables like it: all that a liar has who has no key.

use counterfoil_mirror::{Entry, MemoryShelf};
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{Boundary, Definition, Hint, Position, Scheme, Signature, attributes};

pub struct Stock {
    pub definition: Definition,
    /// Before everything changed.
    pub then: MemoryShelf,
    /// Signed again in the period in which it changed, and before it did.
    pub renewed: MemoryShelf,
    pub now: MemoryShelf,
    /// Of another table of the same shape and rows.
    pub twin: MemoryShelf,
    /// Of a table of the same number and rows, and another schema.
    pub other_schema: MemoryShelf,
}

impl Stock {
    /// What was signed of a part of something in these versions, or failing that of what bears its number.
    pub fn signed(&self, stamp: &Stamp, part: usize) -> Option<(Signature, Hint)> {
        let shelves = [&self.now, &self.renewed, &self.then];
        let exact = shelves.iter().find_map(|shelf| signed(shelf, stamp.rid).filter(|(known, _)| known == stamp));
        let (_, signed) = exact.or_else(|| shelves.iter().find_map(|shelf| signed(shelf, stamp.rid)))?;
        signed.get(part).copied()
    }

    /// Whether something counts no more.
    pub fn is_old(&self, stamp: &Stamp) -> bool {
        signed(&self.now, stamp.rid).is_none_or(|(now, _)| now.version != stamp.version)
    }

    /// Whether something was signed once in the period in which all was renewed, and not since: no list of changes names it.
    pub fn is_unchanged(&self, stamp: &Stamp) -> bool {
        signed(&self.renewed, stamp.rid).is_some_and(|(renewed, _)| renewed == *stamp) && !self.is_old(stamp)
    }

    pub fn is_grouped(&self) -> bool {
        matches!(self.definition.scheme, Scheme::Group(_))
    }

    /// The boundary that an entry makes.
    pub fn boundary(&self, order: u8, entry: &Entry) -> Option<Boundary> {
        let (position, mut stamp) = (entry.position(&self.definition, order).ok()?, entry.stamp);
        let Some(record) = &entry.record else {
            return Some(Boundary { position, outer: None, stamp, root: None, links: Vec::new() });
        };
        if self.is_grouped() {
            stamp = counterfoil_proof::member_stamp(stamp.rid);
        }
        let root = Some(attributes::root(&record.leaves(&self.definition).ok()?));
        let root = root.filter(|_| self.definition.scheme != Scheme::PerAttribute);
        let mut links = entry.links.clone();
        links.remove(usize::from(order));
        Some(Boundary { position, outer: None, stamp, root, links })
    }

    /// What stands before a place of an order, or behind it.
    pub fn beside(&self, order: u8, position: &Position, behind: bool) -> Option<&Entry> {
        self.now.entry(self.now.neighbours(order, position)[usize::from(behind)]?)
    }

    /// Where something stands in an order now.
    pub fn place(&self, order: u8, rid: u64) -> Option<Position> {
        self.now.entry(rid)?.position(&self.definition, order).ok()
    }
}

/// When something was signed, and the signatures of all its parts.
fn signed(shelf: &MemoryShelf, rid: u64) -> Option<(Stamp, Vec<(Signature, Hint)>)> {
    let entry = shelf.entry(rid).map(|entry| (entry.stamp, entry.signed.clone()));
    let filter = || shelf.filter_of_number(rid).map(|signed| (signed.stamp, vec![(signed.signature, signed.hint)]));
    let node = || shelf.nodes.entry(rid).map(|node| (node.stamp, vec![(node.signature, node.hint)]));
    let group = || shelf.groups.of_number(rid).map(|group| (group.stamp, vec![(group.signature, group.hint)]));
    entry.or_else(filter).or_else(node).or_else(group)
}
