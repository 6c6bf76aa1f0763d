//! Nodes at the end of a period: what changed in it is added up anew, from the rows upwards, and signed once.
//!
//! ```text
//! edit      a row comes, goes or moves -> the nodes of level 1 that it was and is in are noted       (in the edit's commit)
//! close     noted nodes -> their rows -> nodes of level 1 that differ -> those above ... -> signed   (in the summary's commit)
//! ```
//! 1. Nodes say what the table was when the last period ended: in the open period rows change and nodes do not.
//! 2. What a node says changes its version; its number stays as long as a node of its level begins where it does. What is gone
//!    is told to be gone, like records. So the summary names each node that does not hold any more.
//! 3. A cut before the commit leaves the period open and all that was noted, so that ending it again does the same.

use std::collections::BTreeSet;

use counterfoil_mirror::NodeEntry;
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{Definition, FIRST_NODE, Node, Scheme};

use crate::edit::Edit;
use crate::error::Error;
use crate::filters::ORDERS_PER_FILTER;
use crate::groups::ORDERS_PER_GROUP;
use crate::ledger::{Change, Ledger};
use crate::publication::{Publication, entry_key, noted_key};
use crate::tree::{Level, Window, all};

/// Nodes of which a summary tells, at most, for a row that comes, goes or moves: its node, a neighbour that it is joined with,
/// two pieces, and what is above them.
const NODES_PER_ROW: usize = 6;

/// Nodes of level 1 whose rows changed in the open period: orders, and where they begin.
pub(crate) type Unsettled = BTreeSet<(u8, Vec<u8>)>;

pub(crate) fn unsettled_key(order: u8, low: &[u8]) -> Vec<u8> {
    [&b"d"[..], &[order], low].concat()
}

impl<L: Ledger> Publication<L> {
    /// Changes of which the open period's summary may have to tell behind an edit, of nodes too.
    pub(crate) fn changes_with(&self, edit: &Edit) -> usize {
        let before = self.period.told + NODES_PER_ROW * self.unsettled.len();
        edit.changes(self.orders_told()).saturating_add(before)
    }

    /// How many orders would make as many changes of a row: two each, those of nodes, of filters, and of groups.
    pub(crate) fn orders_told(&self) -> usize {
        let Definition { orders, nodes, filters, scheme, .. } = self.definition();
        let groups = if matches!(scheme, Scheme::Group(_)) { ORDERS_PER_GROUP } else { 0 };
        orders.len() + NODES_PER_ROW / 2 * nodes.len() + ORDERS_PER_FILTER * filters.len() + groups
    }

    /// Notes that rows changed at a place of an order.
    pub(crate) fn unsettle(&mut self, order: u8, at: &[u8], changes: &mut Vec<Change>) {
        // Before the first period ends there is no node.
        let Some(entry) = self.shelf().nodes.holding(order, 1, at) else { return };
        let low = entry.node.part.start().to_vec();
        let key = unsettled_key(order, &low);
        if self.unsettled.insert((order, low)) {
            changes.push((key, Some(Vec::new())));
        }
    }

    /// Brings the nodes of all orders up to date, at the end of a period.
    pub(crate) fn settle(&mut self, changes: &mut Vec<Change>) -> Result<(), Error> {
        let unsettled = std::mem::take(&mut self.unsettled);
        changes.extend(unsettled.iter().map(|(order, low)| (unsettled_key(*order, low), None)));
        let orders: Vec<u8> = self.definition().nodes.iter().map(|of| of.order).collect();
        let mut signed = BTreeSet::new();
        for order in orders {
            let mut changed = Vec::new();
            for (_, low) in unsettled.range((order, Vec::new())..).take_while(|(own, _)| *own == order) {
                let node = self.shelf().nodes.holding(order, 1, low).ok_or(Error::Corrupt("a node that was there"))?;
                changed.push((low.clone(), node.node.part.end().to_vec()));
            }
            if self.shelf().nodes.of(order).next().is_none() {
                changed = vec![all()];
            }
            self.settle_order(order, changed, &mut signed, changes)?;
        }
        self.sign(&signed, true, changes).map(drop)
    }

    fn settle_order(
        &mut self,
        order: u8,
        mut changed: Vec<(Vec<u8>, Vec<u8>)>,
        signed: &mut BTreeSet<u64>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        for level in 1..u8::MAX {
            if changed.is_empty() {
                return Ok(());
            }
            let windows = Level { shelf: self.shelf(), order, level }.windows(&changed);
            changed = Vec::new();
            for window in windows {
                let nodes = Level { shelf: self.shelf(), order, level }.nodes(&window)?;
                if self.replace(order, level, &window, nodes, signed, changes)? {
                    changed.push((window.start, window.end));
                }
            }
            if self.shelf().nodes.level(order, level, &[]).nth(1).is_none() {
                return self.remove_above(order, level, signed, changes);
            }
            if self.shelf().nodes.level(order, level + 1, &[]).next().is_none() {
                changed = vec![all()];
            }
        }
        Err(Error::Corrupt("nodes over less than all that is below them"))
    }

    /// Puts nodes in the place of those of a window; whether that changed anything.
    fn replace(
        &mut self,
        order: u8,
        level: u8,
        window: &Window,
        nodes: Vec<Node>,
        signed: &mut BTreeSet<u64>,
        changes: &mut Vec<Change>,
    ) -> Result<bool, Error> {
        let before = self.shelf().nodes.level(order, level, &window.start);
        let before = before.take_while(|entry| entry.node.part.start() < &window.end[..]);
        let stays =
            |entry: &&NodeEntry| window.lows.binary_search_by(|low| low[..].cmp(entry.node.part.start())).is_ok();
        let gone: Vec<u64> = before.filter(|entry| !stays(entry)).map(|entry| entry.stamp.rid).collect();
        let mut is_changed = !gone.is_empty();
        for rid in gone {
            self.remove_node(rid, signed, changes)?;
        }
        for node in nodes {
            if let Some(rid) = self.put_node(node)? {
                signed.insert(rid);
                is_changed = true;
            }
        }
        Ok(is_changed)
    }

    /// Puts a node where it belongs, to be signed; none if it stands there as it is.
    fn put_node(&mut self, node: Node) -> Result<Option<u64>, Error> {
        let (order, level, low) = (node.order, node.level, node.part.start());
        let known = self.shelf().nodes.level(order, level, low).next();
        let known = known.filter(|known| known.node.part.start() == low);
        let stamp = match known {
            Some(known) if known.node == node => return Ok(None),
            Some(known) => known.stamp,
            None => Stamp { rid: self.new_node()?, version: 0, period: self.period.number },
        };
        // It stands in its place before it is signed, as rows do.
        let (signature, hint) = self.any_signature()?;
        self.shelf_mut().nodes.put(NodeEntry { stamp, node, signature, hint });
        Ok(Some(stamp.rid))
    }

    fn new_node(&mut self) -> Result<u64, Error> {
        let rid = FIRST_NODE + self.next_node;
        self.next_node =
            (self.next_node + 1 < FIRST_NODE).then_some(self.next_node + 1).ok_or(Error::Corrupt("a number"))?;
        Ok(rid)
    }

    /// Where one node is over all, nothing is above it.
    fn remove_above(
        &mut self,
        order: u8,
        level: u8,
        signed: &mut BTreeSet<u64>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let above: Vec<u64> = self.shelf().nodes.above(order, level).map(|entry| entry.stamp.rid).collect();
        above.into_iter().try_for_each(|rid| self.remove_node(rid, signed, changes))
    }

    fn remove_node(&mut self, rid: u64, signed: &mut BTreeSet<u64>, changes: &mut Vec<Change>) -> Result<(), Error> {
        let entry = self.shelf_mut().nodes.remove(rid).ok_or(Error::Corrupt("a node that was there"))?;
        self.ages.remove(&entry.stamp);
        signed.remove(&rid);
        changes.push((entry_key(rid), None));
        changes.push((noted_key(rid), Some(self.period.delete(rid).to_bytes())));
        Ok(())
    }

    /// Signs nodes as they stand: as their next version if they changed, as the same one if they did not.
    pub(crate) fn sign_nodes(
        &mut self,
        rids: impl Iterator<Item = u64>,
        is_change: bool,
        changes: &mut Vec<Change>,
    ) -> Result<usize, Error> {
        let (mut entries, mut messages) = (Vec::new(), Vec::new());
        for rid in rids {
            let mut entry = self.shelf().nodes.entry(rid).ok_or(Error::Corrupt("a node that was there"))?.clone();
            self.ages.remove(&entry.stamp);
            entry.stamp.version += u64::from(is_change);
            entry.stamp.period = self.period.number;
            messages.push(entry.node.message(self.definition(), self.digest(), &entry.stamp)?);
            entries.push(entry);
        }
        let signatures = self.sign_all(&messages)?;
        for ((mut entry, message), (signature, hint)) in entries.into_iter().zip(&messages).zip(signatures) {
            (entry.signature, entry.hint) = (signature, hint);
            self.note_signed(&entry.stamp, is_change, &[*message], changes);
            changes.push((entry_key(entry.stamp.rid), Some(entry.to_bytes(self.definition())?)));
            self.shelf_mut().nodes.put(entry);
        }
        Ok(messages.len())
    }
}
