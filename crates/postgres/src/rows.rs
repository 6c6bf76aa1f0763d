//! Rows of a query as messages.

use std::cell::Cell;
use std::sync::Arc;

use counterfoil::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use counterfoil::arrow::buffer::NullBuffer;
use counterfoil::arrow::datatypes::{DataType, Field, Schema};
use counterfoil::write_cell;

use crate::binary::{self, Put, put_behind_length};
use crate::sqlstate::{Refusal, Stopped};
use crate::types::{Told, oid};
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

/// Columns of a batch, ready to be sent row by row.
pub struct Encoder<'a> {
    columns: Vec<(Option<NullBuffer>, Put<'a>)>,
}

impl<'a> Encoder<'a> {
    /// The columns of a batch, each in its format.
    pub fn new(batch: &'a RecordBatch, formats: &[Format]) -> Self {
        let columns = batch.columns().iter().zip(batch.schema_ref().fields()).enumerate();
        let column = |(at, (column, field)): (usize, (&'a ArrayRef, &'a Arc<Field>))| {
            let format = formats.get(at).copied().unwrap_or(Format::Text);
            (column.logical_nulls(), writer(format, field, column.as_ref()))
        };
        Encoder { columns: columns.map(column).collect() }
    }

    /// Sends a row.
    ///
    /// # Errors
    /// [`Stopped`].
    pub fn send<S: Stream>(&self, wire: &mut Wire<S>, row: usize) -> Result<(), Stopped> {
        wire.try_send(b'D', |out| {
            out.extend_from_slice(&count(self.columns.len()));
            match self.columns.iter().all(|(nulls, put)| put_behind_length(out, nulls.as_ref(), row, put)) {
                true => Ok(()),
                false => {
                    Err(Refusal::new("0A000", "not supported: a value of this type in binary, ask for text").into())
                }
            }
        })
    }
}

fn writer<'a>(format: Format, field: &'a Field, column: &'a dyn Array) -> Put<'a> {
    match format {
        Format::Text => as_text(field, column),
        Format::Binary => match binary::writer(field, column) {
            Some(put) => put,
            // What is told as text goes as one.
            None if Told::of(field).oid == oid::TEXT => as_text(field, column),
            // It may be NULL wherever it is asked for.
            None => Box::new(|_, _| false),
        },
    }
}

/// Cells as the shell shows them.
fn as_text<'a>(field: &'a Field, column: &'a dyn Array) -> Put<'a> {
    if let Some(texts) = binary::texts(column) {
        return texts;
    }
    if *column.data_type() == DataType::Boolean {
        let column = column.as_boolean();
        return Box::new(|out, row| {
            out.push(if column.value(row) { b't' } else { b'f' });
            true
        });
    }
    let are_truths = matches!(column.data_type(), DataType::List(of) if *of.data_type() == DataType::Boolean);
    let is_vector = matches!(column.data_type(), DataType::List(_)) && Told::of(field).is_vector();
    let scratch = Cell::new(String::new());
    Box::new(move |out, row| {
        let mut text = scratch.take();
        text.clear();
        let is_written = write_cell(&mut text, column, row).is_ok();
        match (is_vector, are_truths) {
            (true, _) => out.extend_from_slice(text.trim_matches(['{', '}']).replace(',', " ").as_bytes()),
            (_, true) => out.extend_from_slice(text.replace("true", "t").replace("false", "f").as_bytes()),
            _ => out.extend_from_slice(text.as_bytes()),
        }
        scratch.set(text);
        is_written
    })
}
