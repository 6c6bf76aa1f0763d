//! docs/historian.md does what it says: each block of SQL is run, and the text after it is what it answers.

use counterfoil_sql::arrow::array::RecordBatch;
use counterfoil_sql::{Outcome, text};

use crate::database::Database;

/// The blocks of a document: their language and their text.
fn blocks(document: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((language.to_owned(), inside.join("\n")));
        }
    }
    blocks
}

/// A table as the program draws it.
fn drawn(batches: &[RecordBatch]) -> String {
    let Some(first) = batches.first() else { return String::new() };
    let schema = first.schema();
    let mut rows = vec![schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>()];
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |column: &counterfoil_sql::arrow::array::ArrayRef| {
                text::cell(column.as_ref(), row).unwrap().unwrap_or_else(|| "NULL".into())
            };
            rows.push(batch.columns().iter().map(cell).collect());
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..schema.fields().len()).map(width).collect();
    let line = |left: &str, middle: &str, right: &str| {
        let bars: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
        format!("{left}{}{right}", bars.join(middle))
    };
    let mut lines = vec![line("┌", "┬", "┐")];
    for (place, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).zip(schema.fields()).map(|((cell, width), field)| {
            match field.data_type().is_numeric() {
                true => format!(" {cell:>width$} "),
                false => format!(" {cell:<width$} "),
            }
        });
        lines.push(format!("│{}│", cells.collect::<Vec<_>>().join("│")));
        if place == 0 {
            lines.push(line("├", "┼", "┤"));
        }
    }
    lines.push(line("└", "┴", "┘"));
    lines.join("\n")
}

#[test]
fn the_document_says_what_its_examples_answer() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/historian.md");
    let document = std::fs::read_to_string(document).unwrap();
    let mut database = Database::new();
    let mut answer = String::new();
    let (mut run, mut wrong) = (0, Vec::new());
    for (language, block) in blocks(&document) {
        match language.as_str() {
            "sql" => {
                run += 1;
                for outcome in database.session.run(&block, &[]).unwrap_or_else(|error| panic!("{block}\n{error}")) {
                    if let Outcome::Rows(rows) = outcome {
                        answer = drawn(&rows.collect_all().unwrap());
                    }
                }
            }
            "text" if block != answer => wrong.push(format!("expected\n{block}\nfound\n{answer}\n")),
            _ => {}
        }
    }
    assert!(run > 8);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
