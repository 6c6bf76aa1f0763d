//! A table for people: borders, numbers on the right, nothing in it that could steer a terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, Table as Drawing};
use counterfoil::arrow::array::RecordBatch;
use counterfoil::arrow::datatypes::{DataType, SchemaRef};

use super::{Rows, Sink, Style, cell, put};
use crate::failure::{Failure, Result};

/// Left, right, top, bottom; then the line below the header, the inner lines, and the corners.
const BORDERS: &str = "││──├─┼┤│    ┬┴┌┐└┘";
/// Rows that are laid out together: widths are worked out for so many rows at a time.
const ROWS_MAX: usize = 10_000;

pub struct Table<'a> {
    sink: Sink<'a>,
    schema: SchemaRef,
    header: bool,
    null: String,
    held: Vec<Vec<String>>,
    drawn: bool,
}

impl<'a> Table<'a> {
    pub fn new(style: &Style, schema: &SchemaRef, sink: Sink<'a>) -> Self {
        let null = style.null.clone().unwrap_or_else(|| "NULL".into());
        Self { sink, schema: schema.clone(), header: style.header, null, held: Vec::new(), drawn: false }
    }

    fn draw(&mut self) -> Result<()> {
        let mut drawing = Drawing::new();
        drawing.load_preset(BORDERS).set_content_arrangement(ContentArrangement::Disabled);
        let sides: Vec<CellAlignment> = self.schema.fields().iter().map(|field| side(field.data_type())).collect();
        if self.header {
            let names = self.schema.fields().iter().zip(&sides);
            drawing.set_header(names.map(|(field, side)| Cell::new(shown(field.name())).set_alignment(*side)));
        }
        for row in self.held.drain(..) {
            let cells = row.into_iter().zip(&sides);
            drawing.add_row(cells.map(|(text, side)| Cell::new(text).set_alignment(*side)));
        }
        self.drawn = true;
        put(&mut *self.sink, format!("{drawing}\n").as_bytes())
    }
}

impl Rows for Table<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            let mut cells = Vec::with_capacity(batch.num_columns());
            for column in 0..batch.num_columns() {
                cells.push(if cell(&mut text, batch, column, row)? { shown(&text) } else { self.null.clone() });
            }
            self.held.push(cells);
            if self.held.len() == ROWS_MAX {
                self.draw()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if !self.held.is_empty() || !self.drawn {
            self.draw()?;
        }
        self.sink.flush().map_err(Failure::output)
    }
}

fn side(kind: &DataType) -> CellAlignment {
    if kind.is_numeric() { CellAlignment::Right } else { CellAlignment::Left }
}

/// Text with its control characters spelled out: whoever wrote a row must not steer the terminal of whoever reads it.
fn shown(text: &str) -> String {
    if !text.chars().any(|letter| letter.is_control() || is_invisible(letter)) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len() + 8), |mut out, letter| {
        if letter.is_control() || is_invisible(letter) {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
        out
    })
}

/// Letters that turn the direction of writing.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
