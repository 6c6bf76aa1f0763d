//! Foreign keys: whether what is referenced is there.
//!
//! A reference with a NULL in it references nothing. The child's index and the parent's unique index have their columns
//! in the same order, so a child's key, taken over the columns that pair with the parent's, is the parent's key.

use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use crate::access::{Access, Shared};
use crate::index::IndexReader;
use crate::key::{ByteRange, Keys};
use crate::statement::{Statement, Waiting};
use crate::{ColumnId, Error, ForeignKey, IndexDef, RowBatch, Rule, Table};

/// The columns of a child in the order of the columns of the parent's index they pair with.
pub(crate) fn paired(foreign_key: &ForeignKey, parent_index: &[ColumnId]) -> Option<Vec<ColumnId>> {
    let partner = |column: &ColumnId| {
        let place = foreign_key.parent_columns.iter().position(|parent| parent == column)?;
        foreign_key.columns.get(place).copied()
    };
    let columns: Option<Vec<_>> = parent_index.iter().map(partner).collect();
    columns.filter(|columns| columns.len() == foreign_key.columns.len())
}

/// The parent's unique index behind a foreign key.
pub(crate) fn parent_index<'a>(parent: &'a Table, foreign_key: &ForeignKey) -> Result<&'a IndexDef, Error> {
    let index = parent.index(foreign_key.parent_index).filter(|index| index.unique);
    index.ok_or_else(|| Error::corrupt(&parent.name, "index behind a foreign key"))
}

/// The keys by which rows of a child reference the parent.
pub(crate) fn keys_of(
    child: &Access,
    foreign_key: &ForeignKey,
    parent: &Table,
    batch: &RowBatch,
) -> Result<Keys, Error> {
    let index = parent_index(parent, foreign_key)?;
    let columns = paired(foreign_key, &index.columns);
    let columns = columns.ok_or_else(|| Error::corrupt(&child.table.name, "columns of a foreign key"))?;
    Keys::of(batch, &child.places(&columns)?).map_err(child.named())
}

/// The range of the child's index in which the rows lie that reference a key.
pub(crate) fn children_range(index: &IndexDef, foreign_key: &ForeignKey, key: &[u8]) -> ByteRange {
    let exact = index.columns.len() == foreign_key.columns.len();
    ByteRange { exact, ..ByteRange::exactly(key) }
}

/// A child's index, opened to find the rows that reference a key.
pub(crate) fn child_reader<'a>(
    shared: &Shared,
    view: &'a dyn View,
    child: &'a Access,
    foreign_key: &ForeignKey,
) -> Result<IndexReader<'a>, Error> {
    let index = foreign_key.index.and_then(|id| child.table.index(id));
    let index = index.ok_or_else(|| Error::corrupt(&child.table.name, "index behind a foreign key"))?;
    shared.index(view, child, index, true)
}

pub(crate) fn missing_parent(child: &Table, foreign_key: &ForeignKey) -> Error {
    Error::violation(Rule::Reference, &foreign_key.name, &child.name, child.names(&foreign_key.columns))
}

pub(crate) fn still_referenced(child: &Table, foreign_key: &ForeignKey) -> Error {
    Error::violation(Rule::Referenced, &foreign_key.name, &child.name, child.names(&foreign_key.columns))
}

/// Checks that what rows of a child reference is there. `before`: what they were; references that have not changed are
/// not looked at. Rows of an INSERT (without a before) may wait for others of their own table.
pub(crate) fn check_references(
    shared: &Shared,
    statement: &mut Statement<'_>,
    view: &dyn View,
    child: &Access,
    batch: &RowBatch,
    before: Option<&RowBatch>,
) -> Result<(), Error> {
    for (place, foreign_key) in child.table.foreign_keys.iter().enumerate().filter(|(_, key)| key.enforced) {
        let parent = shared.access_to_write(view, foreign_key.parent)?;
        let keys = keys_of(child, foreign_key, &parent.table, batch)?;
        let old = before.map(|before| keys_of(child, foreign_key, &parent.table, before)).transpose()?;
        let changed = |row: &usize| old.as_ref().is_none_or(|old| old.key(*row) != keys.key(*row));
        let which = keys.distinct((0..keys.count()).filter(changed));
        let parents = shared.index(view, &parent, parent_index(&parent.table, foreign_key)?, true)?;
        for row in missing(&parents, &keys, &which)? {
            if foreign_key.parent != child.table.id || before.is_some() {
                return Err(missing_parent(&child.table, foreign_key));
            }
            let key = keys.key(row).to_vec();
            statement.waiting.push(Waiting { table: child.table.id, foreign_key: place, key });
        }
    }
    Ok(())
}

/// Of some rows, those whose parents are not there.
pub(crate) fn missing(parents: &IndexReader<'_>, keys: &Keys, which: &[usize]) -> Result<Vec<usize>, Error> {
    let found = parents.matches(keys, which)?;
    let mut found = found.into_iter().map(|(place, _)| place).peekable();
    let mut missing = Vec::new();
    for (place, row) in which.iter().enumerate() {
        if found.next_if_eq(&place).is_none() {
            missing.push(*row);
        }
        while found.next_if_eq(&place).is_some() {}
    }
    Ok(missing)
}

/// Looks again at what was waiting for the end of the statement.
pub(crate) fn finish(shared: &Shared, statement: Statement<'_>, view: &dyn View) -> Result<(), Error> {
    let mut opened: Option<Arc<Access>> = None;
    for waiting in &statement.waiting {
        let access = match &opened {
            Some(access) if access.table.id == waiting.table => access.clone(),
            _ => opened.insert(Arc::new(shared.access_to_write(view, waiting.table)?)).clone(),
        };
        let foreign_key = access.table.foreign_keys.get(waiting.foreign_key);
        let foreign_key = foreign_key.ok_or(Error::Misuse("a table that changed during a statement"))?;
        let reader = shared.index(view, &access, parent_index(&access.table, foreign_key)?, true)?;
        if reader.any(&ByteRange::exactly(&waiting.key))?.is_none() {
            return Err(missing_parent(&access.table, foreign_key));
        }
    }
    Ok(())
}
