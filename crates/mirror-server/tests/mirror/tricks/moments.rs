//! What was signed at another time, or of another table.

use counterfoil_mirror::{MemoryShelf, Shelf, reply};
use counterfoil_proof::{Member, Members, Scheme, SignatureSum};

use crate::part::Part;
use crate::stock::Stock;
use crate::told::Told;

pub fn later_version(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    // Of what was signed more than once in its period the summary says which version was the last.
    told.stamps(stock).into_iter().find(|stamp| stock.is_unchanged(stamp))?.version += 1;
    told.to_bytes(&stock.definition)
}

/// What was signed last, as if it had been signed a period later: of an earlier one it would be stale.
pub fn later_period(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.stamps(stock).into_iter().max_by_key(|stamp| stamp.period)?.period += 1;
    told.to_bytes(&stock.definition)
}

pub fn period_to_come(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    told.stamps(stock).into_iter().next()?.period += 1000;
    told.to_bytes(&stock.definition)
}

/// What a shelf of another moment says, if any of it counts no more.
fn said_by(told: &Told, stock: &Stock, shelf: &MemoryShelf) -> Option<Vec<u8>> {
    let mut told = Told::by(&stock.definition, &told.question(), shelf);
    let is_old = told.stamps(stock).into_iter().any(|stamp| stock.is_old(stamp));
    is_old.then(|| told.to_bytes(&stock.definition))?
}

pub fn said_before(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    said_by(&told, stock, &stock.then)
}

/// Signed in the very period in which it changed.
pub fn said_when_renewed(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    said_by(&told, stock, &stock.renewed)
}

/// One row, boundary, node or filter of another moment that counts no more, or a group with all of its records, among what
/// is there now.
fn part_by(mut told: Told, stock: &Stock, shelf: &MemoryShelf) -> Option<Vec<u8>> {
    let mut other = Told::by(&stock.definition, &told.question(), shelf);
    if group_by(&mut told, &mut other, stock, shelf) {
        return told.summed(stock);
    }
    let others = other.parts();
    let is_mixed = told.parts().into_iter().any(|mut part| {
        let is_old = |other: &&Part<'_>| other.number() == part.number() && stock.is_old(other.stamp());
        let may_be = !(stock.is_grouped() && (part.is_record() || matches!(part, Part::Group(_))));
        let old = others.iter().find(is_old).filter(|_| may_be);
        old.is_some_and(|old| part.become_like(old))
    });
    is_mixed.then(|| told.signed(stock))?
}

/// Puts a group of another moment in its place, with its records as they were then.
fn group_by(told: &mut Told, other: &mut Told, stock: &Stock, shelf: &MemoryShelf) -> bool {
    let groups: Vec<Members> = told.groups().clone();
    groups.into_iter().enumerate().any(|(at, group)| {
        let Some(old) = shelf.groups.of_number(group.stamp.rid).filter(|old| stock.is_old(&old.stamp)) else {
            return false;
        };
        let mut mixed = told.clone();
        let others = other.parts();
        let is_shown = |rid: u64| group.list.contains(&Member::Shown(rid));
        let is_replaced = mixed.parts().into_iter().filter(|part| is_shown(part.number())).all(|mut part| {
            let old = others.iter().find(|old| old.number() == part.number() && part.fits(old));
            old.is_some_and(|old| {
                part.become_like(old);
                true
            })
        });
        let list = old.members.iter().map(
            |(rid, digest)| {
                if is_shown(*rid) { Member::Shown(*rid) } else { Member::Hidden(*digest) }
            },
        );
        mixed.groups()[at] = Members { stamp: old.stamp, list: list.collect() };
        if is_replaced {
            *told = mixed;
        }
        is_replaced
    })
}

pub fn part_of_before(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    part_by(told, stock, &stock.then)
}

pub fn part_of_renewed(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    part_by(told, stock, &stock.renewed)
}

/// A record of before with what it takes, in the group of now.
pub fn record_of_before_in_its_group(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    let mut other = Told::by(&stock.definition, &told.question(), &stock.then);
    let others = other.parts();
    let groups = told.groups().clone();
    let changed = |rid: u64| {
        let digest = |shelf: &MemoryShelf| {
            let members = shelf.groups.from(&[]).flat_map(|group| &group.members);
            members.filter(|(member, _)| *member == rid).map(|(_, digest)| *digest).next()
        };
        groups.iter().any(|group| group.list.contains(&Member::Shown(rid))) && digest(&stock.then) != digest(&stock.now)
    };
    let is_mixed =
        told.parts().into_iter().filter(|part| part.is_record() && changed(part.number())).any(|mut part| {
            let old = others.iter().find(|old| old.is_record() && old.number() == part.number());
            old.is_some_and(|old| part.become_like(old))
        });
    is_mixed.then(|| told.signed(stock))?
}

/// A value of before under its own signature, among those of the row as it is now.
pub fn value_of_before(mut told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if stock.definition.scheme != Scheme::PerAttribute {
        return None;
    }
    let (columns, then) = (told.columns().to_vec(), &stock.then);
    let (stamp, part) = told.rows().into_iter().find_map(|row| {
        let old = then.entry(row.stamp.rid)?.record.as_ref()?;
        let (at, column) = columns.iter().enumerate().next_back()?;
        let value = &old.values[usize::from(*column)];
        if *value == row.values[at] {
            return None;
        }
        row.values[at] = value.clone();
        Some((row.stamp, 1 + usize::from(*column)))
    })?;
    let (was, is) = (then.entry(stamp.rid)?.signed[part].0, stock.signed(&stamp, part)?.0);
    let mut sum = SignatureSum::sum_of(&[*told.signature(), was]);
    sum.subtract(&is);
    *told.signature() = sum.finish()?;
    told.to_bytes(&stock.definition)
}

/// What another table says, as if it were this one.
fn said_of(mut told: Told, other: &MemoryShelf) -> Option<Vec<u8>> {
    let name = *told.named();
    let mut question = told.question();
    question[1..33].copy_from_slice(&(&other).definition().digest());
    let mut bytes = reply(&mut other.clone(), &question).ok()?;
    bytes[1..33].copy_from_slice(&name);
    Some(bytes)
}

/// Of a table that lived as this one did: what another one signed at other times would be stale.
pub fn twin(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    if stock.definition.name == "soon" { None } else { said_of(told, &stock.twin) }
}

/// Of one of the same number.
pub fn another_schema(told: Told, stock: &Stock) -> Option<Vec<u8>> {
    said_of(told, &stock.other_schema)
}
