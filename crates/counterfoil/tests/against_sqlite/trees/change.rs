//! Statements that change rows.

use super::super::scripts::Dice;
use super::condition::test;
use super::table::{Table, key_parts};
use super::value::{date, quarters, reference_to, text, truth, value};

pub fn insert(dice: &mut Dice, tables: &mut [Table], number: usize) -> String {
    let rows = 1 + dice.below(30);
    let mut texts = Vec::new();
    for _ in 0..rows {
        let table = &tables[number];
        let mut values = key_parts(table.keys, table.key.len());
        for reference in &table.references {
            values.extend(reference_to(dice, &tables[reference.parent], reference.enforced));
        }
        values.extend([value(dice), text(dice)]);
        values.extend([quarters(dice), quarters(dice), date(dice), truth(dice), text(dice)]);
        texts.push(format!("({})", values.join(", ")));
        tables[number].keys += 1;
    }
    format!("INSERT INTO {} VALUES {}", tables[number].name, texts.join(", "))
}

pub fn change(dice: &mut Dice, tables: &mut [Table]) -> String {
    let number = dice.below(tables.len() as u64) as usize;
    let table = &tables[number];
    let some = test(dice, table, &table.name);
    match dice.below(8) {
        0..4 => insert(dice, tables, number),
        4 => format!("DELETE FROM {} WHERE {some} AND a < 12", table.name),
        5 => {
            let set = match dice.below(3) {
                0 => format!("a = {}, b = {}", value(dice), text(dice)),
                1 => format!("c = c + 1.25, e = {}, g = {}", date(dice), text(dice)),
                _ => format!("d = {}, f = {}", quarters(dice), truth(dice)),
            };
            format!("UPDATE {} SET {set} WHERE {some}", table.name)
        }
        6 => {
            // To a key that nobody has, or one that somebody references already: behind all others, since SQLite refuses a key that
            // another row has in the middle of the statement and not at its end.
            let by = table.greatest.max(table.keys) + dice.below(9);
            let (key, name) = (table.key[0].clone(), table.name.clone());
            tables[number].greatest = 2 * by;
            format!("UPDATE {name} SET {key} = {key} + {by} WHERE {some} AND a > 30")
        }
        _ => match table.references.is_empty() {
            true => insert(dice, tables, number),
            false => {
                let reference = &table.references[dice.below(table.references.len() as u64) as usize];
                let to = reference_to(dice, &tables[reference.parent], reference.enforced);
                let set = reference.columns.iter().zip(to).map(|(column, to)| format!("{column} = {to}"));
                format!("UPDATE {} SET {} WHERE {some}", table.name, set.collect::<Vec<_>>().join(", "))
            }
        },
    }
}
