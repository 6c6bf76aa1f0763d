//! Rows on their way out: to standard output or to a file, in the format asked for.

mod csv;
mod ipc;
mod json;
mod parquet;
mod table;

use std::io::{self, IsTerminal, Write};

use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::datatypes::SchemaRef;

use crate::arguments::{Fields, Format};
use crate::failure::{Failure, Result, misuse};

/// Writes the rows of one result.
pub trait Rows {
    /// Writes some rows.
    fn batch(&mut self, batch: &RecordBatch) -> Result<()>;
    /// Writes what stands at the end, and everything still held back.
    fn finish(&mut self) -> Result<()>;
}

/// Where bytes go.
pub type Sink<'a> = Box<dyn Write + Send + 'a>;

/// How rows are written.
#[derive(Debug, Clone)]
pub struct Style {
    /// The format.
    pub format: Format,
    /// What stands for NULL; without it, what the format has for it.
    pub null: Option<String>,
    /// Whether a line of column names comes first.
    pub header: bool,
    /// What separates fields.
    pub delimiter: u8,
}

impl Style {
    /// The style asked for.
    pub fn new(format: Format, fields: &Fields) -> Self {
        Self { format, null: fields.null.clone(), header: !fields.no_header, delimiter: fields.delimiter }
    }

    /// A table on a terminal, CSV elsewhere.
    pub fn for_standard_output(format: Option<Format>, fields: &Fields) -> Result<Self> {
        let usual = if io::stdout().is_terminal() { Format::Table } else { Format::Csv };
        let format = format.unwrap_or(usual);
        if matches!(format, Format::Parquet | Format::Influx) {
            return Err(misuse("rows are printed as table, csv, json, jsonl or arrow")
                .advise("use `counterfoil export` for Parquet")
                .into());
        }
        Ok(Self::new(format, fields))
    }

    /// Begins a result with columns of `schema`.
    pub fn begin<'a>(&self, schema: &SchemaRef, sink: Sink<'a>) -> Result<Box<dyn Rows + 'a>> {
        Ok(match self.format {
            Format::Table => Box::new(table::Table::new(self, schema, sink)),
            Format::Csv => Box::new(csv::Csv::new(self, schema, sink)?),
            Format::Json => Box::new(json::Json::array(schema, sink)),
            Format::Jsonl => Box::new(json::Json::lines(schema, sink)),
            Format::Arrow => Box::new(ipc::Ipc::new(schema, sink)?),
            Format::Parquet => Box::new(parquet::Parquet::new(schema, sink)?),
            Format::Influx => {
                return Err(counterfoil::Error::new(counterfoil::Kind::NotSupported, "not supported: line protocol")
                    .advise("use csv, jsonl or parquet")
                    .into());
            }
        })
    }
}

/// Writes bytes, and says so if it cannot.
pub(crate) fn put(sink: &mut dyn Write, bytes: &[u8]) -> Result<()> {
    sink.write_all(bytes).map_err(Failure::output)
}

/// The text of a cell; false if it is NULL.
pub(crate) fn cell(out: &mut String, batch: &RecordBatch, column: usize, row: usize) -> Result<bool> {
    let array = batch.column(column);
    out.clear();
    if array.is_null(row) || array.data_type() == &counterfoil::arrow::datatypes::DataType::Null {
        return Ok(false);
    }
    counterfoil::write_cell(out, array.as_ref(), row)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil::arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray};
    use std::sync::Arc;

    fn sample() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(-3)]))),
            ("t", Arc::new(StringViewArray::from(vec![Some("a,\"b\""), Some(""), None]))),
            ("x", Arc::new(Float64Array::from(vec![Some(1.5), Some(f64::NAN), None]))),
            ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }

    fn written(style: &Style) -> String {
        let mut out = Vec::new();
        {
            let mut rows = style.begin(&sample().schema(), Box::new(&mut out)).expect("begins");
            rows.batch(&sample()).expect("a batch");
            rows.finish().expect("an end");
        }
        String::from_utf8(out).expect("text")
    }

    fn style(format: Format) -> Style {
        Style { format, null: None, header: true, delimiter: b',' }
    }

    #[test]
    fn csv_tells_null_from_an_empty_text() {
        assert_eq!(written(&style(Format::Csv)), "n,t,x,b\n1,\"a,\"\"b\"\"\",1.5,true\n,\"\",NaN,false\n-3,,,\n");
        let other = Style { null: Some("NA".into()), header: false, delimiter: b'\t', ..style(Format::Csv) };
        assert_eq!(written(&other), "1\t\"a,\"\"b\"\"\"\t1.5\ttrue\nNA\t\"\"\tNaN\tfalse\n-3\tNA\tNA\tNA\n");
    }

    #[test]
    fn json_is_one_array_and_lines_are_objects() {
        let first = r#"{"n":1,"t":"a,\"b\"","x":1.5,"b":true}"#;
        let second = r#"{"n":null,"t":"","x":"NaN","b":false}"#;
        let third = r#"{"n":-3,"t":null,"x":null,"b":null}"#;
        assert_eq!(written(&style(Format::Json)), format!("[{first},\n{second},\n{third}]\n"));
        assert_eq!(written(&style(Format::Jsonl)), format!("{first}\n{second}\n{third}\n"));
    }

    #[test]
    fn a_table_has_borders_and_right_hand_numbers() {
        let table = written(&style(Format::Table));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines[0], "┌──────┬───────┬──────┬───────┐");
        assert_eq!(lines[1], "│    n │ t     │    x │ b     │");
        assert_eq!(lines[5], "│   -3 │ NULL  │ NULL │ NULL  │");
    }

    #[test]
    fn arrow_and_parquet_begin_with_their_marks() {
        let mut out = Vec::new();
        {
            let mut rows = style(Format::Parquet).begin(&sample().schema(), Box::new(&mut out)).expect("begins");
            rows.batch(&sample()).expect("a batch");
            rows.finish().expect("an end");
        }
        assert!(out.starts_with(b"PAR1") && out.ends_with(b"PAR1"));
    }
}
