//! ALTER TABLE ADD CONSTRAINT: what CREATE TABLE takes, over the rows that are there.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use crate::access::Shared;
use crate::define::{self, Making, reread};
use crate::read::Wanted;
use crate::{ColumnId, Error, IndexId, NewCheck, NewForeignKey, NewKey, Rule, Storage, Table, TableId, path};

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

/// Checks that no row has a NULL in these columns.
fn check_not_null(shared: &Shared, writer: &dyn Storage, table: &Table, columns: &[ColumnId]) -> Result<(), Error> {
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
