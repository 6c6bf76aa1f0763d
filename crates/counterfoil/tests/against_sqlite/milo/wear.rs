//! Updates and deletes of the paper's database, as statements that both sides run.

use super::super::scripts::Dice;
use super::figure7::{INDEXED, ROWS, TABLES, Table};
use super::queries::condition;
use super::table1::{self, Asked};

/// Deletes and as many updates, of each million rows of T0.
const CHANGES: u64 = 3000;

/// All of them, for a database whose T0 has `rows`: spread over all tables as in the paper, and some of what each query asks for.
pub fn all(rows: u64) -> Vec<String> {
    let mut dice = Dice(rows);
    let count = CHANGES * rows / ROWS;
    let updates: Vec<String> = (0..count).map(|turn| update(&mut dice, turn as usize, rows)).collect();
    let deletes = (0..count).map(|_| {
        let (table, id) = draw(&mut dice, rows);
        format!("DELETE FROM {} WHERE id = {id}", table.name)
    });
    let deletes: Vec<String> = deletes.collect();
    let asked = table1::all(rows).into_iter().flat_map(|query| query.asked);
    updates.into_iter().chain(deletes).chain(asked.flat_map(|asked| of_asked(&asked))).collect()
}

/// A row of all that there were.
fn draw(dice: &mut Dice, rows: u64) -> (&'static Table, u64) {
    let mut row = dice.below(TABLES.iter().map(|table| table.rows(rows)).sum());
    for table in &TABLES {
        match row.checked_sub(table.rows(rows)) {
            Some(behind) => row = behind,
            None => return (table, row),
        }
    }
    unreachable!("fewer rows than were counted")
}

/// Of a row's indexed attributes to what another row has, and of what fills it, in turn.
fn update(dice: &mut Dice, turn: usize, rows: u64) -> String {
    let (table, id) = draw(dice, rows);
    let other = table.row(dice.below(table.rows(rows)), rows);
    let (column, value) = match turn % (INDEXED.len() + 1) {
        place if place < INDEXED.len() => (INDEXED[place], other.values[place].clone()),
        _ => ("a1", other.a1),
    };
    format!("UPDATE {} SET {column} = '{value}' WHERE id = {id}", table.name)
}

/// What is asked for is filled otherwise if it is one row; of others, one more comes to be asked for, and one no more.
fn of_asked(asked: &Asked) -> Vec<String> {
    let (Asked { table, column, .. }, is_so) = (asked, condition(asked, '.'));
    if *column == "id" {
        return vec![format!("UPDATE {table} SET a1 = (SELECT max(a1) FROM {table}) WHERE {is_so}")];
    }
    let of = |what: &str, some: &str| format!("(SELECT {what} FROM {table} WHERE {some})");
    let (is_not, column_of) = (format!("NOT ({is_so})"), |what| format!("{what}({column})"));
    vec![
        format!(
            "UPDATE {table} SET {column} = {} WHERE id = {}",
            of(&column_of("max"), &is_so),
            of("min(id)", &is_not)
        ),
        format!(
            "UPDATE {table} SET {column} = {} WHERE id = {}",
            of(&column_of("min"), &is_not),
            of("max(id)", &is_so)
        ),
    ]
}
