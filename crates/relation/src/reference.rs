//! Foreign keys: whether what is referenced is there.
//!
//! A reference with a NULL in it references nothing. The child's index and the parent's unique index have their columns
//! in the same order, so a child's key, taken over the columns that pair with the parent's, is the parent's key.

use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::View;

use crate::access::{Access, Shared};
use crate::index::IndexReader;
use crate::join::Joined;
use crate::key::{ByteRange, Keys};
use crate::statement::{Statement, Waiting};
use crate::{ColumnId, Error, ForeignKey, IndexDef, RowBatch, RowId, Rule, Storage, Table};

/// The columns of a child in the order of the columns of the parent's index they pair with.
pub(crate) fn paired(
    columns: &[ColumnId],
    parent_columns: &[ColumnId],
    parent_index: &[ColumnId],
) -> Option<Vec<ColumnId>> {
    let partner = |column: &ColumnId| {
        let place = parent_columns.iter().position(|parent| parent == column)?;
        columns.get(place).copied()
    };
    let partners: Option<Vec<_>> = parent_index.iter().map(partner).collect();
    partners.filter(|partners| partners.len() == columns.len())
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
    let columns = paired(&foreign_key.columns, &foreign_key.parent_columns, &index.columns);
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
    shared: &'a Shared,
    view: &'a dyn View,
    child: &'a Access,
    foreign_key: &ForeignKey,
    writing: bool,
) -> Result<IndexReader<'a>, Error> {
    let index = child.table.index(foreign_key.index);
    let index = index.ok_or_else(|| Error::corrupt(&child.table.name, "index behind a foreign key"))?;
    shared.index(view, child, index, writing)
}

pub(crate) fn missing_parent(child: &Table, foreign_key: &ForeignKey) -> Error {
    Error::violation(Rule::Reference, &foreign_key.name, &child.name, child.names(&foreign_key.columns))
}

pub(crate) fn still_referenced(child: &Table, foreign_key: &ForeignKey) -> Error {
    Error::violation(Rule::Referenced, &foreign_key.name, &child.name, child.names(&foreign_key.columns))
}

/// Checks that new rows of a child reference what is there; they may wait for others of their own table.
pub(crate) fn check_inserted(
    statement: &mut Statement<'_>,
    child: &Access,
    batch: &RowBatch,
    joined: &Joined,
    first: RowId,
) -> Result<(), Error> {
    let references = child.table.foreign_keys.iter().zip(&joined.references);
    for (key, references) in references.filter(|(key, references)| key.enforced && !references.dangling.is_empty()) {
        if key.parent != child.table.id {
            return Err(missing_parent(&child.table, key));
        }
        let keys = keys_of(child, key, &child.table, batch)?;
        for row in &references.dangling {
            let value = keys.key(*row).to_vec();
            let row = RowId(first.0 + *row as u64);
            statement.waiting.push(Waiting { table: child.table.id, foreign_key: key.id, key: value, row });
        }
    }
    Ok(())
}

/// Looks again at what was waiting for the end of the statement, and finds anew what was noted to join something else.
pub(crate) fn finish(shared: &Shared, statement: Statement<'_>, writer: &mut dyn Storage) -> Result<(), Error> {
    let Statement { waiting, mut rejoin, .. } = statement;
    let mut opened: Option<Arc<Access>> = None;
    for waiting in &waiting {
        let access = match &opened {
            Some(access) if access.table.id == waiting.table => access.clone(),
            _ => opened.insert(Arc::new(shared.access_to_write(writer, waiting.table)?)).clone(),
        };
        let foreign_key = access.table.foreign_key(waiting.foreign_key);
        let foreign_key = foreign_key.ok_or_else(|| Error::misuse("a table that changed during a statement"))?;
        let reader = shared.index(writer, &access, parent_index(&access.table, foreign_key)?, true)?;
        if reader.any(&ByteRange::exactly(&waiting.key))?.is_none() {
            return Err(missing_parent(&access.table, foreign_key));
        }
        rejoin.note_row(waiting.table, waiting.row);
    }
    rejoin.work_off(shared, writer)
}
