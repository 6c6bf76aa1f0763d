//! ALTER TABLE ADD CONSTRAINT and DROP CONSTRAINT: what CREATE TABLE takes, over the rows that are there.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::access::Shared;
use crate::define::{self, Making, reread};
use crate::read::Wanted;
use crate::{
    ColumnId, Error, ForeignKey, IndexId, NewCheck, NewForeignKey, NewKey, Rule, Storage, Table, TableId, path,
};

/// Rows that are looked at together.
const BLOCK_ROWS: u64 = 4096;

/// A constraint for a table that is there.
#[derive(Clone, Debug, PartialEq)]
pub enum NewConstraint {
    /// PRIMARY KEY.
    PrimaryKey(NewKey),
    /// UNIQUE.
    Unique(NewKey),
    /// CHECK. Whether the rows there keep it is the caller's to find out.
    Check(NewCheck),
    /// FOREIGN KEY. Whether the rows there keep it is the caller's to find out.
    ForeignKey(NewForeignKey),
}

/// ADD CONSTRAINT. The definition, the files of its index and its runs are of one commit: a power cut leaves the table without it.
pub(crate) fn add_constraint(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    new: &NewConstraint,
) -> Result<Arc<Table>, Error> {
    let before = shared.access_to_write(writer, id)?;
    let mut making = Making { shared, writer, table: (*before.table).clone() };
    making.table.shape = None;
    match new {
        NewConstraint::PrimaryKey(_) if before.table.primary_key.is_some() => {
            return Err(Error::sql(format!("table {} has a primary key already", before.table.name)));
        }
        NewConstraint::PrimaryKey(key) => making.add_primary_key(key)?,
        NewConstraint::Unique(key) => making.add_unique(key)?,
        NewConstraint::Check(check) => making.add_check(check)?,
        NewConstraint::ForeignKey(key) => making.add_foreign_key(key)?,
    }
    let Making { table, .. } = making;
    let added: Vec<IndexId> = table.indexes.iter().skip(before.table.indexes.len()).map(|index| index.id).collect();
    define::store(shared, writer, &table)?;
    for index in added {
        define::fill_index(shared, writer, &before, index)?;
    }
    path::redefine(shared, writer, id)?;
    let table = reread(shared, writer, id)?;
    if let (NewConstraint::PrimaryKey(_), Some(key)) = (new, &table.primary_key) {
        check_not_null(shared, writer, &table, &key.columns)?;
    }
    Ok(table)
}

/// DROP CONSTRAINT; none where the table has none of that name. Columns of a primary key stay NOT NULL. `cascade`: foreign keys that
/// reference a key go with it; otherwise they forbid it. All of it is of one commit.
pub(crate) fn drop_constraint(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    name: &str,
    cascade: bool,
) -> Result<Option<Arc<Table>>, Error> {
    let table = reread(shared, writer, id)?;
    if table.foreign_keys.iter().any(|key| key.name == name) {
        define::drop_foreign_keys(shared, writer, &table, &|key| key.name == name)?;
        return reread(shared, writer, id).map(Some);
    }
    let mut keys = table.primary_key.iter().chain(&table.uniques);
    if let Some(index) = keys.find(|key| key.name == name).map(|key| key.index) {
        return drop_key(shared, writer, &table, (name, index), cascade).map(Some);
    }
    let mut changed = (*table).clone();
    changed.checks.retain(|check| check.name != name);
    if changed.checks.len() == table.checks.len() {
        return Ok(None);
    }
    define::store(shared, writer, &changed)?;
    reread(shared, writer, id).map(Some)
}

/// Drops PRIMARY KEY or UNIQUE, and the index behind it.
fn drop_key(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: &Table,
    (name, index): (&str, IndexId),
    cascade: bool,
) -> Result<Arc<Table>, Error> {
    let references = |key: &ForeignKey| key.parent == table.id && key.parent_index == index;
    let children = define::children(shared, writer, table)?;
    for referencing in children.iter().map(|child| child.id).chain([table.id]) {
        // As it is now: what went of another's foreign keys may have changed its paths.
        let referencing = reread(shared, writer, referencing)?;
        if !referencing.foreign_keys.iter().any(references) {
            continue;
        }
        if !cascade {
            let by = &referencing.name;
            return Err(Error::sql(format!(
                "key {name} is referenced by foreign keys of table {by}: CASCADE drops them"
            )));
        }
        define::drop_foreign_keys(shared, writer, &referencing, &references)?;
    }
    let mut changed = (*reread(shared, writer, table.id)?).clone();
    if let Some(key) = changed.foreign_keys.iter().find(|key| key.index == index) {
        return Err(Error::sql(format!("foreign key {} leans on the index of key {name}: drop it first", key.name)));
    }
    define::remove_indexes(shared, writer, &mut changed, &[index])?;
    changed.primary_key = changed.primary_key.filter(|key| key.index != index);
    changed.uniques.retain(|key| key.index != index);
    define::store(shared, writer, &changed)?;
    reread(shared, writer, table.id)
}

/// Checks that no row has a NULL in these columns.
pub(crate) fn check_not_null(
    shared: &Shared,
    writer: &dyn Storage,
    table: &Table,
    columns: &[ColumnId],
) -> Result<(), Error> {
    let access = shared.access_to_write(writer, table.id)?;
    let places = access.places(columns)?;
    for part in 0..access.parts.len() {
        let mut position = 0;
        while position < access.parts[part].count {
            let count = (access.parts[part].count - position).min(BLOCK_ROWS) as usize;
            let block = access.read(writer, part, position, count, &Wanted::only(&places))?;
            position += block.count() as u64;
            let is_null = |place: &&usize| {
                (0..block.count()).any(|row| block.is_visible(row) && block.rows.is_null(row, **place))
            };
            if let Some(place) = places.iter().find(is_null) {
                let name = &table.columns[*place].name;
                return Err(Error::violation(Rule::NotNull, name, &table.name, vec![name.clone()]));
            }
        }
    }
    Ok(())
}
