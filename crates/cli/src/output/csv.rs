//! CSV: NULL is nothing, an empty text is `""`, so that both come back as they were.

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::datatypes::SchemaRef;

use super::{Rows, Sink, Style, cell, put};
use crate::failure::Result;

pub struct Csv<'a> {
    sink: Sink<'a>,
    null: String,
    delimiter: u8,
    buffer: Vec<u8>,
}

/// Lines are handed on in pieces of about this size.
const BUFFER_BYTES: usize = 64 * 1024;

impl<'a> Csv<'a> {
    pub fn new(style: &Style, schema: &SchemaRef, sink: Sink<'a>) -> Result<Self> {
        let null = style.null.clone().unwrap_or_default();
        let mut csv = Self { sink, null, delimiter: style.delimiter, buffer: Vec::with_capacity(2 * BUFFER_BYTES) };
        if style.header {
            for (index, field) in schema.fields().iter().enumerate() {
                csv.separate(index);
                csv.field(field.name());
            }
            csv.buffer.push(b'\n');
        }
        Ok(csv)
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.buffer.push(self.delimiter);
        }
    }

    /// A value that is not NULL: in quotes if it could be taken for NULL, or for more than one field.
    fn field(&mut self, text: &str) {
        let special = |byte: &u8| *byte == self.delimiter || matches!(byte, b'"' | b'\n' | b'\r');
        let quoted = text.is_empty() || text == self.null || text.as_bytes().iter().any(special);
        if !quoted {
            return self.buffer.extend_from_slice(text.as_bytes());
        }
        self.buffer.push(b'"');
        for byte in text.bytes() {
            if byte == b'"' {
                self.buffer.push(b'"');
            }
            self.buffer.push(byte);
        }
        self.buffer.push(b'"');
    }

    fn hand_on(&mut self) -> Result<()> {
        put(&mut *self.sink, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Rows for Csv<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            for column in 0..batch.num_columns() {
                self.separate(column);
                if cell(&mut text, batch, column, row)? {
                    self.field(&text);
                } else {
                    self.buffer.extend_from_slice(self.null.as_bytes());
                }
            }
            self.buffer.push(b'\n');
            if self.buffer.len() >= BUFFER_BYTES {
                self.hand_on()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.hand_on()?;
        self.sink.flush().map_err(crate::failure::Failure::output)
    }
}
