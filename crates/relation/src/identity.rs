//! Identity columns: numbers that go one way.

use alloc::vec;
use alloc::vec::Vec;

use crate::catalog::{self, IdentityNext};
use crate::{Column, ColumnId, Error, Identity, RowBatch, Rule, Storage, Table, Type, ValueRef};

/// Takes `count` values; see [`crate::Relations::next_identity`].
pub(crate) fn take(writer: &mut dyn Storage, table: &Table, id: ColumnId, count: u64) -> Result<i64, Error> {
    let column = table.columns.iter().find(|column| column.id == id);
    let Some((column, identity)) = column.and_then(|column| Some((column, column.identity?))) else {
        return Err(Error::misuse("not an identity column"));
    };
    let exhausted = || Error::violation(Rule::Identity, &column.name, &table.name, vec![column.name.clone()]);
    let mut all = catalog::identities(writer, table.id)?;
    let first = next(&all, column.id, identity).ok_or_else(exhausted)?;
    let steps = i128::from(count.max(1)) - 1;
    let last = i128::from(first) + steps * i128::from(identity.increment);
    if !range_of(column.kind).contains(&last) || !range_of(column.kind).contains(&first.into()) {
        return Err(exhausted());
    }
    set(&mut all, column.id, i64::try_from(last + i128::from(identity.increment)).ok());
    catalog::put_identities(writer, table.id, &all)?;
    Ok(first)
}

fn next(all: &[IdentityNext], column: ColumnId, identity: Identity) -> Option<i64> {
    all.iter().find(|(id, _)| *id == column).map_or(Some(identity.start), |(_, next)| *next)
}

fn set(all: &mut Vec<IdentityNext>, column: ColumnId, next: Option<i64>) {
    match all.iter_mut().find(|(id, _)| *id == column) {
        Some(entry) => entry.1 = next,
        None => all.push((column, next)),
    }
}

fn range_of(kind: Type) -> core::ops::RangeInclusive<i128> {
    match kind {
        Type::SmallInt => i16::MIN.into()..=i16::MAX.into(),
        Type::Integer => i32::MIN.into()..=i32::MAX.into(),
        _ => i64::MIN.into()..=i64::MAX.into(),
    }
}

/// Moves on past the values that rows bring along.
pub(crate) fn raise(writer: &mut dyn Storage, table: &Table, batch: &RowBatch) -> Result<(), Error> {
    if table.columns.iter().all(|column| column.identity.is_none()) {
        return Ok(());
    }
    let mut all = catalog::identities(writer, table.id)?;
    let before = all.clone();
    for (place, column) in table.columns.iter().enumerate() {
        if let Some(identity) = column.identity {
            raise_column(&mut all, column, identity, place, batch)?;
        }
    }
    if all != before { catalog::put_identities(writer, table.id, &all) } else { Ok(()) }
}

fn raise_column(
    all: &mut Vec<IdentityNext>,
    column: &Column,
    identity: Identity,
    place: usize,
    batch: &RowBatch,
) -> Result<(), Error> {
    let Some(next) = next(all, column.id, identity) else { return Ok(()) };
    let mut farthest: Option<i64> = None;
    for row in 0..batch.count() {
        let value = match batch.value(row, place)? {
            ValueRef::SmallInt(value) => value.into(),
            ValueRef::Integer(value) => value.into(),
            ValueRef::BigInt(value) => value,
            _ => continue,
        };
        let farther = |far: i64| if identity.increment > 0 { far.max(value) } else { far.min(value) };
        farthest = Some(farthest.map_or(value, farther));
    }
    let Some(farthest) = farthest else { return Ok(()) };
    let (next, step) = (i128::from(next), i128::from(identity.increment));
    let ahead = if step > 0 { i128::from(farthest) - next } else { next - i128::from(farthest) };
    if let Ok(ahead) = u64::try_from(ahead) {
        let steps = i128::from(ahead / identity.increment.unsigned_abs()) + 1;
        set(all, column.id, i64::try_from(next + steps * step).ok());
    }
    Ok(())
}
