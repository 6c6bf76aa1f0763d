//! More rows of one table than are kept fresh: its indexes become sorted runs with however much memory.

use super::super::scripts::Dice;
use super::table::Table;

/// Rows that come. Above the 16,384 that an index has in memory at most.
const ROWS: u64 = 17_000;
/// Of so many one stays.
const STAYS: u64 = 1000;

/// The rows come, and all but a few go again, so that questions stay small: for ours, and for SQLite what it comes to.
pub fn flood(dice: &mut Dice, tables: &mut [Table]) -> [String; 2] {
    let number = dice.below(tables.len() as u64) as usize;
    let table = &mut tables[number];
    // Behind all keys that there are, as those are that change.
    let first = table.greatest.max(table.keys + 6) + 1;
    table.greatest = first + ROWS;
    let (name, key) = (&table.name, &table.key[0]);
    let insert = insert(table, first);
    let ours = format!(
        "{insert} FROM generate_series(0, {ROWS} - 1) AS s(i), {}; DELETE FROM {name} WHERE {key} >= {first} AND ({key} - {first}) % {STAYS} <> 0",
        one_row(table)
    );
    let series = format!("SELECT 0 UNION ALL SELECT i + {STAYS} FROM s WHERE i + {STAYS} < {ROWS}");
    let theirs = format!("WITH RECURSIVE s(i) AS ({series}) {insert} FROM s, {}", one_row(table));
    [ours, theirs]
}

/// The INSERT of rows that are numbered `i`, up to where they come from.
fn insert(table: &Table, first: u64) -> String {
    let references = || table.references.iter().flat_map(|reference| reference.columns.iter());
    let columns: Vec<String> = table.key.iter().chain(references()).cloned().collect();
    let keys = [format!("{first} + i"), "i % 7".into()].into_iter().take(table.key.len());
    let values: Vec<String> = keys.chain(references().map(|column| format!("o.{column}"))).collect();
    format!("INSERT INTO {} ({}, a) SELECT {}, i % 37", table.name, columns.join(", "), values.join(", "))
}

/// A row that is there, whose references are those of all that come.
fn one_row(table: &Table) -> String {
    format!("(SELECT * FROM {} ORDER BY {} LIMIT 1) AS o", table.name, table.key.join(", "))
}
