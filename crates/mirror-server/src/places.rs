//! Where an entry stands in its table's orders, and a node, group or filter beside them.

use counterfoil_mirror::{Entry, GROUPS, NodeEntry, SignedFilter, SignedGroup, filters_of, nodes_of};
use counterfoil_proof::{Definition, Malformed};

use crate::store::Place;

/// Reads an entry's bytes, and tells its number and places.
pub(crate) fn places(bytes: &[u8], definition: &Definition) -> Result<(u64, Vec<Place>), Malformed> {
    if SignedFilter::are(bytes) {
        let signed = SignedFilter::from_bytes(bytes, definition)?;
        let place = (filters_of(signed.filter.order()), signed.filter.place().bytes().to_vec());
        return Ok((signed.stamp.rid, vec![place]));
    }
    if NodeEntry::is_one(bytes) {
        let entry = NodeEntry::from_bytes(bytes, definition)?;
        return Ok((entry.stamp.rid, vec![(nodes_of(entry.node.order), entry.place())]));
    }
    if SignedGroup::are(bytes) {
        let group = SignedGroup::from_bytes(bytes, definition)?;
        return Ok((group.stamp.rid, vec![(GROUPS, group.low)]));
    }
    let entry = Entry::from_bytes(bytes, definition)?;
    let rid = entry.stamp.rid;
    let orders = definition.orders.len() as u8;
    let own = if entry.record.is_some() {
        0..orders
    } else {
        let order = (rid / 2) as u8;
        if order >= orders {
            return Err(Malformed("the head or tail of an order that is not there"));
        }
        order..order + 1
    };
    let mut places = Vec::new();
    for order in own {
        places.push((order, entry.position(definition, order)?.bytes().to_vec()));
    }
    Ok((rid, places))
}
