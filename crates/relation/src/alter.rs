//! ALTER TABLE and TRUNCATE.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::access::{Access, Shared};
use crate::catalog::{self, NameEntry};
use crate::define::{self, reread};
use crate::files::{Coverage, Files, IndexFiles, ROW_NUMBERS_MAX};
use crate::table::RetiredColumn;
use crate::{ColumnId, Engine, Error, IndexId, NewColumn, RowBatch, RowId, Storage, Table, TableId, Value, path};

/// RENAME TO.
pub(crate) fn rename_table(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    name: &str,
) -> Result<Arc<Table>, Error> {
    let table = reread(shared, writer, id)?;
    if table.name != name {
        catalog::take_name(writer, name, NameEntry::Table(id))?;
        catalog::free_name(writer, &table.name)?;
        catalog::put_table(writer, &Table { name: name.into(), ..(*table).clone() })?;
    }
    reread(shared, writer, id)
}

/// What the engine that keeps the rows was told.
pub(crate) fn set_engine(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    engine: Engine,
) -> Result<Arc<Table>, Error> {
    let table = reread(shared, writer, id)?;
    if table.engine.is_none() {
        return Err(Error::misuse("a table whose rows are kept here"));
    }
    catalog::put_table(writer, &Table { engine: Some(engine), ..(*table).clone() })?;
    reread(shared, writer, id)
}

/// ADD COLUMN. Rows that are there are not touched: images of older layouts are read with the value.
pub(crate) fn add_column(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    new: &NewColumn,
    value: &Value,
) -> Result<Arc<Table>, Error> {
    let access = shared.access_to_write(writer, id)?;
    let mut table = (*access.table).clone();
    if new.identity.is_some() {
        return Err(Error::not_supported("ADD COLUMN with an identity".into()));
    }
    if !value.fits(new.kind) {
        return Err(Error::misuse("a default of another type than its column"));
    }
    let mut column = define::new_column(&mut table, new)?;
    column.added_default = (*value != Value::Null).then(|| value.clone().into());
    table.columns.push(column);
    table.shape = None;
    begin_layout(&mut table)?;
    if access.count() > 0 {
        check_value(&table, value)?;
    }
    catalog::put_table(writer, &table)?;
    reread(shared, writer, id)
}

/// Whether the value keeps the rules of the last column.
fn check_value(table: &Table, value: &Value) -> Result<(), Error> {
    let mut only = table.clone();
    let last = only.columns.pop();
    only.columns = last.into_iter().collect();
    let mut batch = RowBatch::new(only.layout(), 1);
    batch.set(0, 0, value.borrow())?;
    only.check(&batch)
}

/// From now on rows are written with the columns and joins that the table has now.
pub(crate) fn begin_layout(table: &mut Table) -> Result<(), Error> {
    table.layouts.push(table.stored_layout());
    match u32::try_from(table.layouts.len()) {
        Ok(count) if count < 1 << 16 => Ok(()),
        _ => Err(Error::sql(format!("table {} was altered too often: VACUUM it first", table.name))),
    }
}

/// DROP COLUMN. Its values stay where they are until the table is rewritten.
pub(crate) fn drop_column(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    name: &str,
    cascade: bool,
) -> Result<Arc<Table>, Error> {
    let table = reread(shared, writer, id)?;
    let column = column_id(&table, name)?;
    let referenced = |key: &crate::ForeignKey| key.parent == id && key.parent_columns.contains(&column);
    for child in define::children(shared, writer, &table)? {
        if child.foreign_keys.iter().any(referenced) {
            if !cascade {
                return Err(Error::sql(format!(
                    "column {name} is referenced by foreign keys of table {}: CASCADE drops them",
                    child.name
                )));
            }
            // As it is now: what went of another child's foreign keys may have changed its paths.
            let child = reread(shared, writer, child.id)?;
            define::drop_foreign_keys(shared, writer, &child, &referenced)?;
        }
    }
    let own = |key: &crate::ForeignKey| key.columns.contains(&column) || referenced(key);
    let before = reread(shared, writer, id)?;
    let leans = |key: &&crate::ForeignKey| referenced(key) && !key.columns.contains(&column);
    if let (Some(key), false) = (before.foreign_keys.iter().find(leans), cascade) {
        return Err(Error::sql(format!("column {name} is referenced by foreign key {}: CASCADE drops it", key.name)));
    }
    if before.foreign_keys.iter().any(own) {
        define::drop_foreign_keys(shared, writer, &before, &own)?;
    }
    let mut table = (*reread(shared, writer, id)?).clone();
    let over: Vec<IndexId> =
        table.indexes.iter().filter(|index| index.columns.contains(&column)).map(|index| index.id).collect();
    refuse_shared_index(&table, &over)?;
    define::remove_indexes(shared, writer, &mut table, &over)?;
    table.primary_key = table.primary_key.filter(|key| !key.columns.contains(&column));
    table.uniques.retain(|key| !key.columns.contains(&column));
    table.checks.retain(|check| !check.columns.contains(&column));
    let gone = table.columns.iter().find(|candidate| candidate.id == column).map(|column| column.kind);
    table.columns.retain(|candidate| candidate.id != column);
    table.retired.extend(gone.map(|kind| RetiredColumn { id: column, kind }));
    table.shape = None;
    begin_layout(&mut table)?;
    catalog::put_table(writer, &table)?;
    reread(shared, writer, id)
}

/// A foreign key may lean on the index of a longer key that goes with the column.
fn refuse_shared_index(table: &Table, gone: &[IndexId]) -> Result<(), Error> {
    match table.foreign_keys.iter().find(|key| gone.contains(&key.index)) {
        Some(key) => {
            Err(Error::not_supported(format!("dropping a column of the key that foreign key {} leans on", key.name)))
        }
        None => Ok(()),
    }
}

pub(crate) fn column_id(table: &Table, name: &str) -> Result<ColumnId, Error> {
    let found = table.column(name).map(|(_, column)| column.id);
    found.ok_or_else(|| Error::sql(format!("table {} has no column {name}", table.name)))
}

/// RENAME COLUMN.
pub(crate) fn rename_column(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    from: &str,
    to: &str,
    rewrite: &mut dyn FnMut(&str) -> String,
) -> Result<Arc<Table>, Error> {
    let mut table = (*reread(shared, writer, id)?).clone();
    let column = column_id(&table, from)?;
    catalog::check_name(to)?;
    if from != to && table.column(to).is_some() {
        return Err(Error::sql(format!("table {} has a column {to} already", table.name)));
    }
    for candidate in table.columns.iter_mut().filter(|candidate| candidate.id == column) {
        candidate.name = to.into();
    }
    for check in table.checks.iter_mut().filter(|check| check.columns.contains(&column)) {
        check.sql = rewrite(&check.sql);
    }
    catalog::put_table(writer, &table)?;
    reread(shared, writer, id)
}

/// TRUNCATE.
pub(crate) fn truncate(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    restart: bool,
    together: &[TableId],
) -> Result<(), Error> {
    let access = shared.access_to_write(writer, id)?;
    for child in define::children(shared, writer, &access.table)? {
        let is_left = !together.contains(&child.id);
        if is_left && child.foreign_keys.iter().any(|key| key.enforced && key.parent == id) {
            let (name, child) = (&access.table.name, &child.name);
            return Err(Error::sql(format!(
                "table {name} is referenced by foreign keys of table {child}: name that as well, or add CASCADE"
            )));
        }
    }
    define::drop_groups(shared, writer, &access)?;
    put_empty(writer, &access, access.next_row())?;
    if restart {
        catalog::put_identities(writer, id, &Vec::new())?;
    }
    // Rows that reference this table although nobody enforces it join nothing now.
    path::refill_descendants(shared, writer, id)
}

/// Files and indexes of a table without rows, whose next one has this number.
fn put_empty(writer: &mut dyn Storage, access: &Access, next_row: u64) -> Result<(), Error> {
    let (id, rewrites) = (access.table.id, access.files.rewrites.wrapping_add(1));
    catalog::put_files(writer, id, &Files { next_row, rewrites, ..Files::default() })?;
    let empty = IndexFiles::empty(Coverage { rows: next_row, ..Coverage::none(rewrites) });
    access.table.indexes.iter().try_for_each(|index| catalog::put_index(writer, id, index.id, &empty))
}

/// Lets the rows of a table that has none go on at a number, or behind those that it has had.
pub(crate) fn go_on_at(shared: &Shared, writer: &mut dyn Storage, id: TableId, row: RowId) -> Result<(), Error> {
    let access = shared.access_to_write(writer, id)?;
    if row.0 > ROW_NUMBERS_MAX {
        return Err(Error::misuse("a row number behind the last one that there may be"));
    }
    define::drop_groups(shared, writer, &access)?;
    put_empty(writer, &access, row.0.max(access.next_row()))
}
