//! JSON: one array of objects, or one object a line. Numbers keep all their digits; what JSON has no number for (NaN,
//! infinities) is a text.

use counterfoil::arrow::array::{Array, AsArray, RecordBatch};
use counterfoil::arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};

use super::{Rows, Sink, put};
use crate::failure::{Failure, Result};

pub struct Json<'a> {
    sink: Sink<'a>,
    /// Names as JSON texts with their colons.
    names: Vec<String>,
    as_array: bool,
    row_count: u64,
}

impl<'a> Json<'a> {
    pub fn array(schema: &SchemaRef, sink: Sink<'a>) -> Self {
        Self::new(schema, sink, true)
    }

    pub fn lines(schema: &SchemaRef, sink: Sink<'a>) -> Self {
        Self::new(schema, sink, false)
    }

    fn new(schema: &SchemaRef, sink: Sink<'a>, as_array: bool) -> Self {
        let names = schema.fields().iter().map(|field| {
            let mut name = String::new();
            text(&mut name, field.name());
            name.push(':');
            name
        });
        Self { sink, names: names.collect(), as_array, row_count: 0 }
    }
}

impl Rows for Json<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut out = String::new();
        for row in 0..batch.num_rows() {
            if self.as_array {
                out.push_str(if self.row_count == 0 { "[" } else { ",\n" });
            }
            for (column, name) in self.names.iter().enumerate() {
                out.push(if column == 0 { '{' } else { ',' });
                out.push_str(name);
                value(&mut out, batch.column(column).as_ref(), row)?;
            }
            out.push_str(if self.names.is_empty() { "{}" } else { "}" });
            if !self.as_array {
                out.push('\n');
            }
            self.row_count += 1;
        }
        put(&mut *self.sink, out.as_bytes())
    }

    fn finish(&mut self) -> Result<()> {
        if self.as_array {
            put(&mut *self.sink, if self.row_count == 0 { b"[]\n" } else { b"]\n" })?;
        }
        self.sink.flush().map_err(Failure::output)
    }
}

fn value(out: &mut String, array: &dyn Array, row: usize) -> Result<()> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        out.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            out.push('[');
            for item in 0..items.len() {
                if item > 0 {
                    out.push(',');
                }
                value(out, items.as_ref(), item)?;
            }
            out.push(']');
            Ok(())
        }
        kind => {
            let mut cell = String::new();
            counterfoil::write_cell(&mut cell, array, row)?;
            if is_bare(kind, array, row) {
                out.push_str(&cell);
            } else {
                text(out, &cell);
            }
            Ok(())
        }
    }
}

/// Whether the text of a cell is JSON as it stands.
fn is_bare(kind: &DataType, array: &dyn Array, row: usize) -> bool {
    match kind {
        DataType::Boolean | DataType::Decimal128(_, _) => true,
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).is_finite(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).is_finite(),
        kind => kind.is_integer(),
    }
}

fn text(out: &mut String, text: &str) {
    match serde_json::to_string(text) {
        Ok(quoted) => out.push_str(&quoted),
        // Text is always JSON.
        Err(_) => out.push_str("\"\""),
    }
}
