//! ALTER TABLE ... ALTER COLUMN: what is said of a column, and columns that get another type.
//!
//! Where values of both types are stored alike, the catalog alone changes. Otherwise a column of the new type steps in front of the
//! old one, and takes its name and its rules ([`begin_retype`]); the caller gives it values, by updates like any other; and then the
//! old one goes ([`end_retype`]). Both and the updates between them are of one transaction: a power cut leaves the old type or the
//! new one, and what was written of the new one is then in nobody's catalog.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::access::Shared;
use crate::alter::{begin_layout, column_id};
use crate::catalog;
use crate::constrain::check_not_null;
use crate::define::{self, reread};
use crate::table::RetiredColumn;
use crate::{Action, Column, ColumnId, Error, ForeignKey, IndexId, NewColumn, Storage, Table, TableId, Type, Value};

/// What ALTER COLUMN says of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnChange {
    /// SET DEFAULT.
    Default {
        /// As SQL text.
        sql: String,
        /// Its value where it is a constant.
        value: Option<Value>,
    },
    /// DROP DEFAULT.
    NoDefault,
    /// SET NOT NULL: of the rows that are there, too.
    NotNull,
    /// DROP NOT NULL.
    Nullable,
    /// TYPE, where values of both types are stored alike. Whether those that are there fit is the caller's to find out.
    Kind {
        /// The new type.
        kind: Type,
        /// The default's value where it is a constant.
        default_value: Option<Value>,
    },
}

/// TYPE, where rows have to be written for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Retype<'a> {
    /// The column's name.
    pub column: &'a str,
    /// The new type.
    pub kind: Type,
    /// The default's value where it is a constant.
    pub default_value: Option<Value>,
    /// Whether each row gets the value that it has.
    pub keeps_values: bool,
    /// What the column as it was is called until all is done.
    pub aside: &'a str,
}

impl Retype<'_> {
    /// Whether keys stay what they are.
    fn keeps_keys(&self, from: &Type) -> bool {
        self.keeps_values && from.is_keyed_like(&self.kind)
    }
}

/// Does to a column what is said of it. No row is written.
pub(crate) fn alter_column(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    name: &str,
    change: &ColumnChange,
) -> Result<Arc<Table>, Error> {
    let mut table = (*reread(shared, writer, id)?).clone();
    let column_id = column_id(&table, name)?;
    match change {
        ColumnChange::Default { .. } | ColumnChange::NoDefault => check_default(&table, column_id, name, change)?,
        ColumnChange::NotNull => check_not_null(shared, writer, &table, &[column_id])?,
        ColumnChange::Nullable => check_nullable(&table, column_id, name)?,
        ColumnChange::Kind { .. } => {}
    }
    for column in table.columns.iter_mut().filter(|column| column.id == column_id) {
        apply(column, change)?;
    }
    table.shape = None;
    catalog::put_table(writer, &table)?;
    reread(shared, writer, id)
}

fn apply(column: &mut Column, change: &ColumnChange) -> Result<(), Error> {
    let check_fit = |value: &Option<Value>, kind| match value {
        Some(value) if !value.fits(kind) => Err(Error::misuse("a default of another type than its column")),
        _ => Ok(()),
    };
    match change {
        ColumnChange::Default { sql, value } => {
            check_fit(value, column.kind)?;
            (column.default, column.default_value) = (Some(sql.clone()), value.clone());
        }
        ColumnChange::NoDefault => (column.default, column.default_value) = (None, None),
        ColumnChange::NotNull => column.not_null = true,
        ColumnChange::Nullable => column.not_null = false,
        ColumnChange::Kind { kind, default_value } => {
            if !column.kind.is_stored_like(kind) || !kind.is_valid() {
                return Err(Error::misuse("a type whose values are stored otherwise"));
            }
            check_fit(default_value, *kind)?;
            (column.kind, column.default_value) = (*kind, default_value.clone());
        }
    }
    Ok(())
}

/// A number that counts up is no default, and SET DEFAULT of a foreign key can only set what is known here.
fn check_default(table: &Table, column: ColumnId, name: &str, change: &ColumnChange) -> Result<(), Error> {
    if table.columns.iter().any(|known| known.id == column && known.identity.is_some()) {
        return Err(Error::not_supported(format!(
            "the default of column {name}, which counts up by itself (SERIAL, IDENTITY): give the number in INSERT"
        )));
    }
    let is_constant = !matches!(change, ColumnChange::Default { value: None, .. });
    let sets_default = |key: &&ForeignKey| {
        key.columns.contains(&column) && [key.on_delete, key.on_update].contains(&Action::SetDefault)
    };
    match table.foreign_keys.iter().find(sets_default) {
        Some(key) if !is_constant => {
            Err(Error::not_supported(format!("SET DEFAULT in {} with a default that is not a constant", key.name)))
        }
        _ => Ok(()),
    }
}

fn check_nullable(table: &Table, column: ColumnId, name: &str) -> Result<(), Error> {
    if table.columns.iter().any(|known| known.id == column && known.identity.is_some()) {
        return Err(Error::sql(format!("column {name} counts up by itself (SERIAL, IDENTITY), and is never NULL")));
    }
    match table.primary_key.as_ref().filter(|key| key.columns.contains(&column)) {
        Some(key) => Err(Error::sql(format!("column {name} is in a primary key: drop constraint {} first", key.name))),
        None => Ok(()),
    }
}

/// A column of another type steps in front of one, with its name and its rules, and without a value in any row. The one that was
/// there is called [`Retype::aside`] until [`end_retype`]; indexes, keys and what counts up stay with it till then.
pub(crate) fn begin_retype(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    retype: &Retype<'_>,
) -> Result<Arc<Table>, Error> {
    let mut table = (*reread(shared, writer, id)?).clone();
    let old = column_id(&table, retype.column)?;
    let new = define::new_column(&mut table, &NewColumn::new(retype.aside, retype.kind))?;
    let place = table.position(old).ok_or_else(|| Error::misuse("a column that is not there"))?;
    if !retype.keeps_keys(&table.columns[place].kind) {
        refuse_foreign_keys(shared, writer, &table, old, retype.column)?;
    }
    let was = &mut table.columns[place];
    was.name = retype.aside.into();
    let column = Column { name: retype.column.into(), not_null: was.not_null, default: was.default.clone(), ..new };
    for check in &mut table.checks {
        rename(&mut check.columns, old, column.id);
    }
    table.columns.insert(place, column);
    table.shape = None;
    begin_layout(&mut table)?;
    catalog::put_table(writer, &table)?;
    reread(shared, writer, id)
}

/// Values of a column that become other ones would leave what references them behind.
fn refuse_foreign_keys(
    shared: &Shared,
    writer: &dyn Storage,
    table: &Table,
    column: ColumnId,
    name: &str,
) -> Result<(), Error> {
    let refuse = |key: &ForeignKey, of: &str| {
        let key = &key.name;
        Err(Error::not_supported(format!(
            "another type for column {name}, which is in foreign key {key} of table {of}: drop that, and add it again"
        )))
    };
    if let Some(key) = table.foreign_keys.iter().find(|key| key.columns.contains(&column)) {
        return refuse(key, &table.name);
    }
    let referenced = |key: &&ForeignKey| key.parent == table.id && key.parent_columns.contains(&column);
    let mut tables = define::children(shared, writer, table)?;
    tables.push(Arc::new(table.clone()));
    match tables.iter().find_map(|child| child.foreign_keys.iter().find(referenced).map(|key| (key, &child.name))) {
        Some((key, child)) => refuse(key, child),
        None => Ok(()),
    }
}

/// The column aside goes, and what was still with it belongs to the one that stepped in front of it: indexes are made anew, unless
/// they hold what they would hold then.
pub(crate) fn end_retype(
    shared: &Shared,
    writer: &mut dyn Storage,
    id: TableId,
    retype: &Retype<'_>,
) -> Result<Arc<Table>, Error> {
    let before = shared.access_to_write(writer, id)?;
    let mut table = (*before.table).clone();
    let (old, new) = (column_id(&table, retype.aside)?, column_id(&table, retype.column)?);
    let gone = table.position(old).map(|place| table.columns.remove(place));
    let gone = gone.ok_or_else(|| Error::misuse("a column that is not there"))?;
    let keeps_keys = retype.keeps_keys(&gone.kind);
    for column in table.columns.iter_mut().filter(|column| column.id == new) {
        (column.identity, column.default_value) = (gone.identity, retype.default_value.clone());
    }
    table.retired.push(RetiredColumn { id: old, kind: gone.kind });
    rename_everywhere(&mut table, old, new);
    table.shape = None;
    begin_layout(&mut table)?;
    let made = if keeps_keys { Vec::new() } else { renew_indexes(shared, writer, &mut table, new)? };
    catalog::put_table(writer, &table)?;
    if keeps_keys {
        rename_in_children(shared, writer, &table, old, new)?;
    }
    let mut identities = catalog::identities(writer, id)?;
    if let Some(entry) = identities.iter_mut().find(|(column, _)| *column == old) {
        entry.0 = new;
        catalog::put_identities(writer, id, &identities)?;
    }
    made.into_iter().try_for_each(|index| define::fill_index(shared, writer, &before, index).map(drop))?;
    reread(shared, writer, id)
}

fn rename(columns: &mut [ColumnId], old: ColumnId, new: ColumnId) {
    columns.iter_mut().filter(|column| **column == old).for_each(|column| *column = new);
}

fn rename_everywhere(table: &mut Table, old: ColumnId, new: ColumnId) {
    let keys = table.primary_key.iter_mut().chain(&mut table.uniques);
    keys.for_each(|key| rename(&mut key.columns, old, new));
    table.indexes.iter_mut().for_each(|index| rename(&mut index.columns, old, new));
    for key in &mut table.foreign_keys {
        rename(&mut key.columns, old, new);
        if key.parent == table.id {
            rename(&mut key.parent_columns, old, new);
        }
    }
}

/// Foreign keys of other tables that reference the column.
fn rename_in_children(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: &Table,
    old: ColumnId,
    new: ColumnId,
) -> Result<(), Error> {
    for child in define::children(shared, writer, table)? {
        let mut child = (*child).clone();
        for key in child.foreign_keys.iter_mut().filter(|key| key.parent == table.id) {
            rename(&mut key.parent_columns, old, new);
        }
        catalog::put_table(writer, &child)?;
    }
    Ok(())
}

/// Puts new indexes, still empty, in the place of those over a column; their numbers.
fn renew_indexes(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: &mut Table,
    column: ColumnId,
) -> Result<Vec<IndexId>, Error> {
    let order: Vec<IndexId> = table.indexes.iter().map(|index| index.id).collect();
    let (over, _) = table.indexes.clone().into_iter().partition::<Vec<_>, _>(|index| index.columns.contains(&column));
    let gone: Vec<IndexId> = over.iter().map(|index| index.id).collect();
    define::remove_indexes(shared, writer, table, &gone)?;
    let mut made = Vec::with_capacity(over.len());
    for was in over {
        let id = define::new_index(writer, table, &was.name, was.columns, was.origin, was.unique)?;
        // It stands where the other one stood: those behind keys come before those that were created.
        if let (Some(place), Some(index)) = (order.iter().position(|known| *known == was.id), table.indexes.pop()) {
            table.indexes.insert(place, index);
        }
        let keys = table.primary_key.iter_mut().chain(&mut table.uniques);
        keys.filter(|key| key.index == was.id).for_each(|key| key.index = id);
        // A foreign key over other columns may lean on it.
        table.foreign_keys.iter_mut().filter(|key| key.index == was.id).for_each(|key| key.index = id);
        made.push(id);
    }
    Ok(made)
}
