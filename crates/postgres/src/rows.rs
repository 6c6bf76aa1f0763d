//! Rows of a query as messages.

use counterfoil::arrow::array::{Array, AsArray, RecordBatch};
use counterfoil::arrow::datatypes::{DataType, Field, Schema};
use counterfoil::write_cell;

use crate::binary;
use crate::sqlstate::{Refusal, Stopped};
use crate::types::Told;
use crate::wire::{Ended, Stream, Wire, put_text};

/// How a column is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As text, as the shell shows it.
    Text,
    /// As PostgreSQL keeps it.
    Binary,
}

/// Names and types of columns.
///
/// # Errors
/// [`Ended::Gone`].
pub fn describe<S: Stream>(wire: &mut Wire<S>, schema: &Schema, formats: &[Format]) -> Result<(), Ended> {
    wire.send(b'T', |out| {
        out.extend_from_slice(&count(schema.fields().len()));
        for (at, field) in schema.fields().iter().enumerate() {
            let told = Told::of(field);
            put_text(out, field.name());
            // Neither a table nor a place in one: what a query answers may be anything.
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&told.oid.to_be_bytes());
            out.extend_from_slice(&told.bytes.to_be_bytes());
            out.extend_from_slice(&told.modifier.to_be_bytes());
            let is_binary = formats.get(at) == Some(&Format::Binary);
            out.extend_from_slice(&i16::from(is_binary).to_be_bytes());
        }
    })
}

fn count(columns: usize) -> [u8; 2] {
    // A statement has fewer columns than this holds: PostgreSQL itself stops at 1,664.
    u16::try_from(columns).unwrap_or(u16::MAX).to_be_bytes()
}

/// Rows of a batch, as far as there are so many of them.
pub struct Encoder {
    cell: String,
}

impl Encoder {
    /// An encoder for all batches of a query.
    pub fn new() -> Self {
        Encoder { cell: String::new() }
    }

    /// Sends a row.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn send<S: Stream>(
        &mut self,
        wire: &mut Wire<S>,
        formats: &[Format],
        batch: &RecordBatch,
        row: usize,
    ) -> Result<(), Stopped> {
        wire.try_send(b'D', |out| {
            out.extend_from_slice(&count(batch.num_columns()));
            for (at, (column, field)) in batch.columns().iter().zip(batch.schema_ref().fields()).enumerate() {
                let format = formats.get(at).copied().unwrap_or(Format::Text);
                self.put(out, (format, field), column.as_ref(), row)?;
            }
            Ok(())
        })
    }

    fn put(
        &mut self,
        out: &mut Vec<u8>,
        (format, field): (Format, &Field),
        column: &dyn Array,
        row: usize,
    ) -> Result<(), Refusal> {
        if column.is_null(row) || *column.data_type() == DataType::Null {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            return Ok(());
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        match format {
            Format::Binary if binary::put(out, field, column, row) => {}
            Format::Binary => {
                return Err(Refusal::new("0A000", "not supported: a column of this type in binary, ask for text"));
            }
            Format::Text => {
                self.cell.clear();
                match column.data_type() {
                    DataType::Boolean => self.cell.push(if column.as_boolean().value(row) { 't' } else { 'f' }),
                    _ => write_cell(&mut self.cell, column, row)?,
                }
                if matches!(column.data_type(), DataType::List(_)) && Told::of(field).is_vector() {
                    self.cell = self.cell.trim_matches(['{', '}']).replace(',', " ");
                }
                out.extend_from_slice(self.cell.as_bytes());
            }
        }
        // Values have less than 2 GiB: an Arrow array holds no longer ones.
        let length = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}
