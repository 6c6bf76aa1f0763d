//! Statements that change rows.

use super::super::scripts::Dice;
use super::condition::{nested, test};
use super::table::{Table, key_parts};
use super::value::{date, quarters, reference_to, text, truth, value};

pub fn insert(dice: &mut Dice, tables: &mut [Table], number: usize) -> String {
    let (rows, first) = (1 + dice.below(30), tables[number].keys);
    // Before the rows are made: one that references its own table may mean itself, or one that stands behind it.
    tables[number].keys += rows;
    let texts: Vec<String> = (first..first + rows).map(|key| row(dice, tables, number, key)).collect();
    format!("INSERT INTO {} VALUES {}", tables[number].name, texts.join(", "))
}

/// A row with a key, in brackets.
fn row(dice: &mut Dice, tables: &[Table], number: usize, key: u64) -> String {
    let table = &tables[number];
    let mut values = key_parts(key, table.key.len());
    for reference in &table.references {
        values.extend(reference_to(dice, &tables[reference.parent], reference.enforced));
    }
    values.extend([value(dice), text(dice)]);
    values.extend([quarters(dice), quarters(dice), date(dice), truth(dice), text(dice)]);
    format!("({})", values.join(", "))
}

pub fn change(dice: &mut Dice, tables: &mut [Table]) -> String {
    let number = dice.below(tables.len() as u64) as usize;
    match dice.below(12) {
        0..4 => insert(dice, tables, number),
        4 => insert_or(dice, tables, number),
        5 => delete(dice, tables, number),
        6..8 => update(dice, tables, number),
        8..10 => update_key(dice, tables, number),
        _ => update_reference(dice, tables, number),
    }
}

/// An INSERT of a row that may be there.
fn insert_or(dice: &mut Dice, tables: &[Table], number: usize) -> String {
    let table = &tables[number];
    let key = dice.below(table.keys.max(1));
    let (name, row, columns) = (&table.name, row(dice, tables, number, key), table.key.join(", "));
    match (dice.below(3), table.references.first()) {
        (0, _) => format!("INSERT INTO {name} VALUES {row} ON CONFLICT DO NOTHING"),
        (1, Some(reference)) => {
            let set: Vec<String> = reference.columns.iter().map(|own| format!("{own} = excluded.{own}")).collect();
            format!("INSERT INTO {name} VALUES {row} ON CONFLICT ({columns}) DO UPDATE SET {}", set.join(", "))
        }
        _ => format!("INSERT INTO {name} VALUES {row} ON CONFLICT ({columns}) DO UPDATE SET a = excluded.a + {name}.a"),
    }
}

fn delete(dice: &mut Dice, tables: &[Table], number: usize) -> String {
    let table = &tables[number];
    let some = match dice.below(3) {
        0 => nested(dice, tables, table, &table.name),
        _ => test(dice, table, &table.name),
    };
    let text = format!("DELETE FROM {} WHERE {some} AND a < {}", table.name, 8 + dice.below(8));
    // SQLite does not show a row that went with another one before its turn came.
    match dice.below(3) {
        0 if table.references.iter().all(|reference| reference.parent != number) => {
            format!("{text} RETURNING {}, a", table.key.join(", "))
        }
        _ => text,
    }
}

/// Of columns that nobody references.
fn update(dice: &mut Dice, tables: &[Table], number: usize) -> String {
    let table = &tables[number];
    let set = match dice.below(5) {
        0 => format!("a = {}, b = {}", value(dice), text(dice)),
        1 => format!("c = c + 1.25, e = {}, g = {}", date(dice), text(dice)),
        2 => format!("d = {}, f = {}", quarters(dice), truth(dice)),
        // Of another table: SQLite would see those rows of its own that the statement has changed already.
        3 => asked(dice, tables, number),
        _ => "a = CASE WHEN a > 20 THEN a - 10 ELSE coalesce(a, 3) + 1 END".into(),
    };
    let some =
        if dice.below(4) == 0 { nested(dice, tables, table, &table.name) } else { test(dice, table, &table.name) };
    let shown = if dice.below(3) == 0 { format!(" RETURNING {}, a, b", table.key.join(", ")) } else { String::new() };
    format!("UPDATE {} SET {set} WHERE {some}{shown}", table.name)
}

/// A value that a query of another table answers.
fn asked(dice: &mut Dice, tables: &[Table], number: usize) -> String {
    let other = &tables[(number + 1 + dice.below(tables.len() as u64 - 1) as usize) % tables.len()];
    let (name, from) = (&tables[number].name, &other.name);
    match dice.below(3) {
        0 => format!("a = (SELECT max(o.a) FROM {from} o WHERE {})", test(dice, other, "o")),
        1 => format!("a = (SELECT count(*) FROM {from} o WHERE o.a = {name}.a)"),
        _ => {
            let some = test(dice, other, "o");
            format!(
                "c = (SELECT max(o.c) FROM {from} o WHERE {some}), a = (SELECT count(o.a) FROM {from} o WHERE {some}) % 40"
            )
        }
    }
}

/// To a key that nobody has, or one that somebody references already.
fn update_key(dice: &mut Dice, tables: &mut [Table], number: usize) -> String {
    let table = &tables[number];
    let (name, key) = (table.name.clone(), &table.key[dice.below(table.key.len() as u64) as usize]);
    if dice.below(3) == 0 {
        // Of one row, which may be there, to that of another one, which may be there, too.
        let (from, to) = (dice.below(table.keys.max(1)), dice.below(table.keys + 6));
        let pairs = |number| table.key.iter().zip(key_parts(number, table.key.len()));
        let set: Vec<String> = pairs(to).map(|(column, part)| format!("{column} = {part}")).collect();
        let which: Vec<String> = pairs(from).map(|(column, part)| format!("{column} = {part}")).collect();
        return format!("UPDATE {name} SET {} WHERE {}", set.join(", "), which.join(" AND "));
    }
    // Behind all others, since SQLite refuses a key that another row has in the middle of the statement and not at its end.
    let by = table.greatest.max(table.keys + 6) + dice.below(9);
    let text = format!("UPDATE {name} SET {key} = {key} + {by} WHERE {} AND a > 30", test(dice, table, &name));
    tables[number].greatest = 2 * by;
    text
}

fn update_reference(dice: &mut Dice, tables: &mut [Table], number: usize) -> String {
    let table = &tables[number];
    if table.references.is_empty() {
        return insert(dice, tables, number);
    }
    let reference = &table.references[dice.below(table.references.len() as u64) as usize];
    let to = reference_to(dice, &tables[reference.parent], reference.enforced);
    let set: Vec<String> = reference.columns.iter().zip(to).map(|(column, to)| format!("{column} = {to}")).collect();
    format!("UPDATE {} SET {} WHERE {}", table.name, set.join(", "), test(dice, table, &table.name))
}
