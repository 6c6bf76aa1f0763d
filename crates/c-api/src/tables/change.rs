//! Rows that change and rows that go, named by their primary keys.

use alloc::vec::Vec;
use core::ffi::{c_char, c_int};

use counterfoil_log::Writer;
use counterfoil_relation::{Error, KeyRange, Relations, RowBatch, RowBuilder, RowId, Table, Value, ValueRef};

use super::value::{CellValue, text};
use super::{Tables, list};
use crate::{MISUSE, OK};

/// There was such a row, and it changed.
const CHANGED: c_int = 1;

/// A row for a table, of a value for each column.
pub(super) fn row_of(table: &Table, values: &[CellValue]) -> Result<RowBatch, Error> {
    if values.len() != table.columns.len() {
        return Err(Error::misuse("as many values as columns"));
    }
    // SAFETY: the values are what the header says.
    let row = values.iter().zip(&table.columns).map(|(value, column)| unsafe { value.of(column.kind) });
    let row: Option<Vec<ValueRef<'_>>> = row.collect();
    let mut rows = RowBuilder::new(table.layout());
    rows.push(&row.ok_or_else(|| Error::misuse("a value of another type than its column"))?)?;
    Ok(rows.finish())
}

/// The row with a primary key.
fn find(relations: &Relations, writer: &Writer, table: &Table, key: &[CellValue]) -> Result<Option<RowId>, Error> {
    let primary = table.primary_key.as_ref().ok_or_else(|| Error::misuse("a table without a primary key"))?;
    if key.len() != primary.columns.len() {
        return Err(Error::misuse("as many values as the primary key has columns"));
    }
    let value = |(value, column): (&CellValue, _)| -> Option<Value> {
        let column = table.columns.get(table.position(column)?)?;
        // SAFETY: the values are what the header says.
        unsafe { value.of(column.kind) }.map(|value| value.to_owned())
    };
    let values: Option<Vec<Value>> = key.iter().zip(primary.columns.iter().copied()).map(value).collect();
    let range = KeyRange::equal(values.ok_or_else(|| Error::misuse("a value of another type than its column"))?);
    // However often the key came and went: entries of rows that are gone stay until runs are merged.
    let found = relations.lookup(writer, table, primary.index, &range, usize::MAX)?;
    Ok(found.unwrap_or_default().first().copied())
}

impl Tables {
    /// Does something with the row that has a key; [`CHANGED`] if there is one.
    fn change_row(
        &mut self,
        (name, key): (&str, &[CellValue]),
        body: impl FnOnce(&Relations, &mut Writer, &Table, RowId) -> Result<u64, Error>,
    ) -> c_int {
        let mut is_there = false;
        let done = self.change(|relations, writer| {
            let table = relations.table(writer, name)?.ok_or_else(|| Error::misuse("no such table"))?;
            let row = find(relations, writer, &table, key)?;
            is_there = row.is_some();
            row.map_or(Ok(0), |row| body(relations, writer, &table, row)).map(drop)
        });
        if done == OK && is_there { CHANGED } else { done }
    }
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_update(
    tables: *mut Tables,
    name: *const c_char,
    key: *const CellValue,
    key_count: u32,
    values: *const CellValue,
    count: u32,
) -> c_int {
    // SAFETY: as the caller promised.
    let given = unsafe { (tables.as_mut(), text(name), list(key, key_count as usize), list(values, count as usize)) };
    let (Some(tables), Some(name), Some(key), Some(values)) = given else { return MISUSE };
    tables.change_row((name, key), |relations, writer, table, row| {
        relations.update(writer, table, &[row], &row_of(table, values)?)
    })
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_delete(
    tables: *mut Tables,
    name: *const c_char,
    key: *const CellValue,
    key_count: u32,
) -> c_int {
    // SAFETY: as the caller promised.
    let given = unsafe { (tables.as_mut(), text(name), list(key, key_count as usize)) };
    let (Some(tables), Some(name), Some(key)) = given else { return MISUSE };
    tables.change_row((name, key), |relations, writer, table, row| relations.delete(writer, table, &[row]))
}
