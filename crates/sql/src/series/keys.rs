//! Keys of series: the values of the columns that name one, as bytes and back.
//!
//! ```text
//! for each column: texts and bytes: length u16 | bytes; others: their bytes in a row image
//! ```

use std::sync::Arc;

use counterfoil_relation::{RowBatch, Table};
use datafusion::arrow::array::RecordBatch;

use super::Form;
use crate::error::{Error, Result};
use crate::{evaluate, rows};

/// The key of the series that a row belongs to.
pub(crate) fn of_row(form: &Form, batch: &RowBatch, row: usize, key: &mut Vec<u8>) -> Result<()> {
    key.clear();
    for place in &form.keys {
        if !batch.layout().columns()[*place].kind.is_variable() {
            key.extend_from_slice(batch.fixed(row, *place));
            continue;
        }
        let text = batch.variable(row, *place).map_err(Error::Relation)?;
        let length = u16::try_from(text.len())
            .map_err(|_| Error::Constraint("the name of a series is longer than 65,535 bytes".into()))?;
        key.extend_from_slice(&length.to_le_bytes());
        key.extend_from_slice(text);
    }
    Ok(())
}

/// The key of a series that is named by texts alone; none where one of them is too long.
pub(crate) fn of_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for text in texts {
        key.extend_from_slice(&u16::try_from(text.len()).ok()?.to_le_bytes());
        key.extend_from_slice(text.as_bytes());
    }
    Some(key)
}

/// Rows that have nothing but the columns that name these series, as a batch of the table's columns.
pub(crate) fn batch(table: &Table, form: &Form, keys: &[Arc<[u8]>]) -> Result<RowBatch> {
    let mut batch = RowBatch::new(table.layout(), keys.len());
    for (row, key) in keys.iter().enumerate() {
        read(form, &mut batch, row, key)?;
    }
    Ok(batch)
}

/// The columns that name series, one row for each key.
pub(crate) fn record_batch(table: &Table, form: &Form, keys: &[Arc<[u8]>]) -> Result<RecordBatch> {
    evaluate::record_batch(table, &batch(table, form, keys)?)
}

fn read(form: &Form, batch: &mut RowBatch, row: usize, key: &[u8]) -> Result<()> {
    let corrupt = || Error::Relation(counterfoil_relation::Error::corrupt("", "name of a series"));
    let mut rest = key;
    for place in &form.keys {
        let kind = batch.layout().columns()[*place].kind;
        let length = match kind.is_variable() {
            false => kind.bytes(),
            true => {
                let (length, after) = rest.split_first_chunk::<2>().ok_or_else(corrupt)?;
                rest = after;
                usize::from(u16::from_le_bytes(*length))
            }
        };
        let (value, after) = rest.split_at_checked(length).ok_or_else(corrupt)?;
        rest = after;
        rows::set_bytes(batch, row, *place, value)?;
    }
    if rest.is_empty() { Ok(()) } else { Err(corrupt()) }
}
