//! Rules that a row keeps or breaks by itself: NOT NULL, and the bounds of types.

use alloc::vec;

use crate::batch::Piece;
use crate::wide::power_of_ten;
use crate::{Column, Error, RowBatch, Rule, Table, Type};

impl Table {
    /// Checks every row of a batch by itself, without regard to other rows: NOT NULL, lengths, precision.
    ///
    /// # Errors
    /// [`crate::Cause::Constraint`] for the first column that breaks its rule; [`Error::misuse`] for a batch of another layout.
    pub fn check(&self, batch: &RowBatch) -> Result<(), Error> {
        if batch.layout().columns() != self.layout().columns() {
            return Err(Error::misuse("rows of another layout than the table's"));
        }
        self.columns.iter().enumerate().try_for_each(|(place, column)| check_column(self, place, column, batch))
    }
}

fn check_column(table: &Table, place: usize, column: &Column, batch: &RowBatch) -> Result<(), Error> {
    let broken = |rule| Error::violation(rule, &column.name, &table.name, vec![column.name.clone()]);
    let rows = 0..batch.count();
    if column.not_null && rows.clone().any(|row| batch.is_null(row, place)) {
        return Err(broken(Rule::NotNull));
    }
    match column.kind {
        Type::VarChar(max) | Type::Char(max) => {
            let fits = |row| characters(batch, row, place, max);
            if rows.into_iter().try_fold(true, |all, row| Ok::<_, Error>(all && fits(row)?))? {
                Ok(())
            } else {
                Err(broken(Rule::Length(max)))
            }
        }
        Type::Numeric { precision, scale } => {
            let limit = power_of_ten(precision).map_or(u128::MAX, i128::unsigned_abs);
            let fits = |row| match batch.fixed(row, place).try_into() {
                Ok(bytes) => i128::from_le_bytes(bytes).unsigned_abs() < limit,
                Err(_) => false,
            };
            if rows.into_iter().all(fits) { Ok(()) } else { Err(broken(Rule::Range(precision, scale))) }
        }
        _ => Ok(()),
    }
}

/// Whether a text has at most `max` characters. One with no more bytes than that has.
fn characters(batch: &RowBatch, row: usize, place: usize, max: u32) -> Result<bool, Error> {
    let length = match Piece::read(batch.fixed(row, place)) {
        Piece::Inline { length } | Piece::Long { length, .. } => length,
    };
    if length <= max as usize {
        return Ok(true);
    }
    let bytes = batch.variable(row, place)?;
    // The first byte of each character is the only one that is not of the form 10xxxxxx.
    Ok(bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() <= max as usize)
}
