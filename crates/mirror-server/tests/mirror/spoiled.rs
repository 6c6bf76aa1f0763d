//! What a hostile folder makes of a table: a shelf that its owner never had, on which readers look for their answer themselves.
//! What is done to it is done where the honest answer to a question would be found.

use counterfoil_mirror::{Entry, MemoryShelf, SignedFilter, SignedGroup};
use counterfoil_proof::record::{Stamp, head_rid, tail_rid};
use counterfoil_proof::{FIRST_FILTER, FIRST_GROUP, FIRST_NODE, Filter, FilterBits, Hint, Signature, Value, is_node};

use crate::part::Part;
use crate::stock::Stock;
use crate::told::Told;

/// A way to spoil a shelf, given the honest answer; none where there is nothing to be spoilt in this way.
pub type Spoil = fn(&mut MemoryShelf, &mut Told, &Stock) -> Option<()>;

/// Name, the word that it earns, and how it is done.
pub const SPOILT: &[(&str, &str, Spoil)] = &[
    ("a row left out", "forged", row_left_out),
    ("one of several equal keys left out", "forged", one_of_equal_keys),
    ("another value", "forged", another_value),
    ("another total", "forged", another_total),
    ("a later version", "forged", later_version),
    ("a later period", "forged", later_period),
    ("a period that has not begun", "malformed", period_to_come),
    ("all of before", "stale", |shelf, told, stock| all_of(&stock.then, shelf, told, stock)),
    ("all as it was renewed", "stale", |shelf, told, stock| all_of(&stock.renewed, shelf, told, stock)),
    ("a part of before", "stale", |shelf, told, stock| part_of(&stock.then, shelf, told, stock)),
    ("a part as it was renewed", "stale", |shelf, told, stock| part_of(&stock.renewed, shelf, told, stock)),
    ("a row of another table", "forged", row_of_the_twin),
    ("a row of another schema", "forged", |shelf, told, stock| row_of(&stock.other_schema, shelf, told)),
    ("a row with a node's number", "malformed", |shelf, told, stock| with_number(FIRST_NODE, shelf, told, stock)),
    ("a row with a filter's number", "malformed", |shelf, told, stock| with_number(FIRST_FILTER, shelf, told, stock)),
    ("a row with a group's number", "malformed", |shelf, told, stock| with_number(FIRST_GROUP, shelf, told, stock)),
    ("a signature of another table", "forged", another_signature),
    ("a signature out of the group", "malformed", signature_out_of_the_group),
    ("a negative signature", "forged", negative_signature),
    ("a hint of another", "malformed", hint_of_another),
    ("an end of the other order", "forged", end_of_the_other_order),
    ("a filter that denies all", "forged", filter_that_denies_all),
    ("a record of before in the group of now", "forged", record_of_before_in_its_group),
    ("digests of a group exchanged", "forged", digests_exchanged),
    ("a group left out", "malformed", group_left_out),
];

/// A row in the middle of those that are told.
fn row(told: &mut Told) -> Option<u64> {
    let rows = told.rows();
    rows.get(rows.len() / 2).map(|row| row.stamp.rid)
}

fn change(shelf: &mut MemoryShelf, rid: u64, change: impl FnOnce(&mut Entry)) -> Option<()> {
    let mut entry = shelf.remove(rid)?;
    change(&mut entry);
    shelf.put(entry).ok()
}

fn row_left_out(shelf: &mut MemoryShelf, told: &mut Told, _: &Stock) -> Option<()> {
    let rid = row(told)?;
    shelf.remove(rid).map(drop)
}

fn one_of_equal_keys(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    let order = told.order();
    let rids: Vec<u64> = told.rows().into_iter().map(|row| row.stamp.rid).collect();
    let key = |rid: u64| stock.place(order, rid).and_then(|place| place.key().map(<[u8]>::to_vec));
    let at = rids.windows(2).rposition(|pair| key(pair[0]) == key(pair[1]))?;
    shelf.remove(rids[at]).map(drop)
}

/// In the last column that is shown.
fn another_value(shelf: &mut MemoryShelf, told: &mut Told, _: &Stock) -> Option<()> {
    let column = usize::from(*told.columns().last()?);
    let rid = row(told)?;
    change(shelf, rid, |entry| match entry.record.as_mut().map(|record| &mut record.values[column]) {
        Some(Value::Text(text)) => text.push('x'),
        Some(Value::Integer(number)) => *number ^= 1,
        _ => panic!("a value of another type"),
    })
}

fn another_total(shelf: &mut MemoryShelf, told: &mut Told, _: &Stock) -> Option<()> {
    let rid = told.tiles().first()?.stamp.rid;
    let mut node = shelf.nodes.remove(rid)?;
    node.node.totals.rows += 1;
    shelf.nodes.put(node);
    Some(())
}

/// Changes when something was signed, as it is kept: a group where records have none.
fn stamped(shelf: &mut MemoryShelf, rid: u64, change: impl FnOnce(&mut Stamp)) -> Option<()> {
    if let Some(mut node) = shelf.nodes.remove(rid) {
        change(&mut node.stamp);
        shelf.nodes.put(node);
    } else if let Some(mut filter) = shelf.remove_filter(rid) {
        change(&mut filter.stamp);
        shelf.put_filter(filter);
    } else if let Some(mut group) = shelf.groups.remove(rid) {
        change(&mut group.stamp);
        shelf.groups.put(group);
    } else {
        let mut entry = shelf.remove(rid)?;
        change(&mut entry.stamp);
        shelf.put(entry).ok()?;
    }
    Some(())
}

fn later_version(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    // Of what was signed more than once in its period the summary says which version was the last.
    let rid = told.stamps(stock).into_iter().find(|stamp| stock.is_unchanged(stamp))?.rid;
    stamped(shelf, rid, |stamp| stamp.version += 1)
}

fn later_period(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    let rid = told.stamps(stock).into_iter().max_by_key(|stamp| stamp.period)?.rid;
    stamped(shelf, rid, |stamp| stamp.period += 1)
}

fn period_to_come(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    // Where a node cannot be of now, whoever looks for an answer takes what is below it.
    let rid = told.stamps(stock).into_iter().map(|stamp| stamp.rid).find(|rid| !is_node(*rid))?;
    stamped(shelf, rid, |stamp| stamp.period += 1000)
}

fn all_of(then: &MemoryShelf, shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    let mut before = Told::by(&stock.definition, &told.question(), then);
    *shelf = then.clone();
    before.stamps(stock).into_iter().any(|stamp| stock.is_old(stamp)).then_some(())
}

/// What counts no more of what the answer would have been made of then: a row, a boundary, a node, a filter or a group with its
/// records.
fn part_of(then: &MemoryShelf, shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    let order = told.order();
    // Filters last: whoever believes one of before looks for other rows.
    let mut rids: Vec<u64> = told.stamps(stock).into_iter().map(|stamp| stamp.rid).collect();
    rids.sort_by_key(|rid| SignedFilter::is_number(*rid));
    rids.into_iter().find_map(|rid| put_back(then, shelf, order, rid, stock))
}

fn put_back(then: &MemoryShelf, shelf: &mut MemoryShelf, order: u8, rid: u64, stock: &Stock) -> Option<()> {
    if let Some(group) = then.groups.of_number(rid) {
        let rids = |group: &SignedGroup| group.members.iter().map(|member| member.0).collect::<Vec<_>>();
        if !stock.is_old(&group.stamp) || stock.now.groups.of_number(rid).map(rids) != Some(rids(group)) {
            return None;
        }
        for (member, _) in &group.members {
            shelf.put(then.entry(*member)?.clone()).ok()?;
        }
        shelf.groups.put(group.clone());
    } else if let Some(node) = then.nodes.entry(rid) {
        let part = stock.now.nodes.entry(rid).map(|now| &now.node.part);
        if !stock.is_old(&node.stamp) || part != Some(&node.node.part) {
            return None;
        }
        shelf.nodes.put(node.clone());
    } else if let Some(filter) = then.filter_of_number(rid) {
        let bounds = |filter: &SignedFilter| (filter.filter.low().to_vec(), filter.filter.high().to_vec());
        if !stock.is_old(&filter.stamp) || stock.now.filter_of_number(rid).map(bounds) != Some(bounds(filter)) {
            return None;
        }
        shelf.put_filter(filter.clone());
    } else {
        let entry = then.entry(rid).filter(|entry| stock.is_old(&entry.stamp))?;
        if entry.position(&stock.definition, order).ok() != stock.place(order, rid) {
            return None;
        }
        shelf.put(entry.clone()).ok()?;
    }
    Some(())
}

/// The row that stands there in a table that lived as this one did, with its group there.
fn row_of(other: &MemoryShelf, shelf: &mut MemoryShelf, told: &mut Told) -> Option<()> {
    let rid = row(told)?;
    if let Some(group) = other.groups.from(&[]).find(|group| group.holds(rid)) {
        shelf.groups.put(group.clone());
    }
    shelf.put(other.entry(rid)?.clone()).ok()
}

fn row_of_the_twin(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    // What another table signed at other times would be stale.
    if stock.definition.name == "soon" { None } else { row_of(&stock.twin, shelf, told) }
}

fn with_number(first: u64, shelf: &mut MemoryShelf, told: &mut Told, _: &Stock) -> Option<()> {
    let rid = row(told)?;
    let mut group = shelf.groups.from(&[]).find(|group| group.holds(rid)).cloned();
    change(shelf, rid, |entry| entry.stamp.rid += first)?;
    if let Some(group) = &mut group {
        group.members.iter_mut().filter(|member| member.0 == rid).for_each(|member| member.0 += first);
        shelf.groups.put(group.clone());
    }
    Some(())
}

/// Changes what was signed of something, as it is kept.
fn resigned(shelf: &mut MemoryShelf, rid: u64, change: impl FnOnce(&mut Signature, &mut Hint)) -> Option<()> {
    if let Some(mut node) = shelf.nodes.remove(rid) {
        change(&mut node.signature, &mut node.hint);
        shelf.nodes.put(node);
    } else if let Some(mut filter) = shelf.remove_filter(rid) {
        change(&mut filter.signature, &mut filter.hint);
        shelf.put_filter(filter);
    } else if let Some(mut group) = shelf.groups.remove(rid) {
        change(&mut group.signature, &mut group.hint);
        shelf.groups.put(group);
    } else {
        let mut entry = shelf.remove(rid)?;
        let (signature, hint) = entry.signed.first_mut()?;
        change(signature, hint);
        shelf.put(entry).ok()?;
    }
    Some(())
}

/// What an answer has a signature of.
fn first_signed(told: &mut Told, stock: &Stock) -> Option<u64> {
    told.stamps(stock).first().map(|stamp| stamp.rid)
}

fn another_signature(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    let other = stock.twin.entry(head_rid(0))?.signature()?;
    resigned(shelf, first_signed(told, stock)?, |signature, _| *signature = other)
}

fn negative_signature(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    resigned(shelf, first_signed(told, stock)?, |signature, _| {
        let mut packed = signature.to_bytes();
        packed[0] ^= 0x20;
        *signature = Signature::from_bytes(&packed).expect("a signature");
    })
}

/// Out of the group of signatures: such points are on the curve, and no pairing is made for them.
fn signature_out_of_the_group(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    let mut packed = [0; 48];
    (packed[0], packed[47]) = (0x80, 4);
    let other = Signature::from_bytes(&packed).ok()?;
    resigned(shelf, first_signed(told, stock)?, |signature, _| *signature = other)
}

fn hint_of_another(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    told.hints().as_ref()?;
    let other = stock.twin.entry(head_rid(0))?.signed[0].1;
    resigned(shelf, first_signed(told, stock)?, |_, hint| *hint = other)
}

/// Its signature and its links, under the number of this one.
fn end_of_the_other_order(shelf: &mut MemoryShelf, told: &mut Told, _: &Stock) -> Option<()> {
    let order = told.order();
    let is_there = |told: &mut Told, rid: u64| told.parts().into_iter().any(|part| part.number() == rid);
    let (own, other) = [(head_rid(order), head_rid(1 - order)), (tail_rid(order), tail_rid(1 - order))]
        .into_iter()
        .find(|(own, _)| is_there(told, *own))?;
    let other = shelf.entry(other)?.clone();
    change(shelf, own, |entry| (entry.links, entry.signed) = (other.links, other.signed))
}

fn filter_that_denies_all(shelf: &mut MemoryShelf, told: &mut Told, _: &Stock) -> Option<()> {
    let rid = told.parts().into_iter().find_map(|part| match part {
        Part::Filter((stamp, _)) => Some(stamp.rid),
        _ => None,
    })?;
    let mut signed = shelf.remove_filter(rid)?;
    let bits = FilterBits::build(*signed.filter.bits().salt(), &[], 8);
    let (low, high) = (signed.filter.low().to_vec(), signed.filter.high().to_vec());
    signed.filter = Filter::new(signed.filter.order(), low, high, bits).ok()?;
    shelf.put_filter(signed);
    Some(())
}

fn record_of_before_in_its_group(shelf: &mut MemoryShelf, told: &mut Told, stock: &Stock) -> Option<()> {
    let order = told.order();
    told.groups().first()?;
    let rids: Vec<u64> = told.parts().into_iter().filter(Part::is_record).map(|part| part.number()).collect();
    let old = rids.into_iter().filter_map(|rid| stock.then.entry(rid)).find(|old| {
        let place = old.position(&stock.definition, order).ok();
        // One whose neighbours alone changed is told as it is now.
        let is_other = stock.now.entry(old.stamp.rid).is_some_and(|now| now.record != old.record);
        is_other && place == stock.place(order, old.stamp.rid)
    })?;
    shelf.put(old.clone()).ok()
}

fn digests_exchanged(shelf: &mut MemoryShelf, told: &mut Told, _: &Stock) -> Option<()> {
    let rid = told.groups().iter().find(|group| group.list.len() > 1)?.stamp.rid;
    let mut group = shelf.groups.remove(rid)?;
    group.members.swap(0, 1);
    shelf.groups.put(group);
    Some(())
}

fn group_left_out(shelf: &mut MemoryShelf, told: &mut Told, _: &Stock) -> Option<()> {
    let rid = told.groups().first()?.stamp.rid;
    shelf.groups.remove(rid)?;
    // A folder without any is no folder of such a table.
    shelf.groups.from(&[]).next().map(drop)
}
