//! Conditions on rows of tables that are joined.

use super::super::scripts::Dice;
use super::table::Table;
use super::value::{date, quarters, text, value};

/// A condition on the rows of one table.
pub fn test(dice: &mut Dice, table: &Table, name: &str) -> String {
    if dice.below(4) == 0 {
        return test_of_others(dice, name);
    }
    let columns = table.integers();
    let column = &columns[dice.below(columns.len() as u64) as usize];
    let number = dice.below(40);
    match dice.below(15) {
        13 => format!("({name}.{column} IS NOT DISTINCT FROM {} OR {name}.a < 4)", value(dice)),
        14 => format!("{name}.{column} IS DISTINCT FROM {name}.a AND {name}.b IS NOT NULL"),
        9 => format!("NOT ({name}.{column} > {number} OR {name}.b = {})", text(dice)),
        10 => format!("{name}.{column} NOT BETWEEN {} AND {number}", dice.below(5)),
        11 => {
            let other = if dice.below(3) == 0 { "NULL".into() } else { dice.below(40).to_string() };
            format!("{name}.{column} NOT IN ({number}, {other})")
        }
        12 => format!("({name}.b NOT LIKE 'ab{}%' OR {name}.{column} IS NOT NULL)", dice.below(9)),
        0 => format!("{name}.{column} IS NULL"),
        1 => format!("{name}.{column} BETWEEN {number} AND {}", number + dice.below(5)),
        2 => format!("{name}.{column} IN ({number}, {}, {})", dice.below(40), dice.below(40)),
        3 => format!("{name}.b LIKE 'ab{}%'", dice.below(9)),
        4 => format!("{name}.b = {}", text(dice)),
        5 => format!("({name}.a = {number} OR {name}.{column} < {})", dice.below(6)),
        6 => format!("{name}.{column} > {number} AND {name}.b IS NOT NULL"),
        _ => format!("{name}.{column} = {number}"),
    }
}

/// One on a column that is no integer.
fn test_of_others(dice: &mut Dice, name: &str) -> String {
    let column = dice.pick(&["c", "d"]);
    match dice.below(10) {
        0 => format!("{name}.{column} = {}", quarters(dice)),
        1 => format!("{name}.{column} > {}", dice.below(40)),
        2 => format!("{name}.{column} BETWEEN {}.5 AND {}", dice.below(9), dice.below(40)),
        3 => format!("{name}.e = {}", date(dice)),
        4 => format!("{name}.e >= {} AND {name}.e < '2013-03-01'", date(dice)),
        5 => format!("{name}.e IN ({}, {}, {})", date(dice), date(dice), date(dice)),
        6 => format!("{name}.f"),
        7 => format!("(NOT {name}.f OR {name}.g < {})", text(dice)),
        8 => format!("{name}.g LIKE 'ab{}%'", dice.below(9)),
        _ => format!("{name}.a * 2 + 1 > {}", dice.below(80)),
    }
}

/// Alternatives of any of the tables, most of which name few rows each.
pub fn alternatives(dice: &mut Dice, tables: &[Table], joined: &[usize]) -> String {
    let one = |dice: &mut Dice| {
        let place = dice.below(joined.len() as u64) as usize;
        let table = &tables[joined[place]];
        match dice.below(4) {
            0 => test(dice, table, &format!("j{place}")),
            1 => format!("j{place}.a = {} AND {}", dice.below(40), test(dice, table, &format!("j{place}"))),
            2 => format!("j{place}.{} = {}", table.key[0], dice.below(table.keys.max(1))),
            _ => format!("j{place}.b = {}", text(dice)),
        }
    };
    let any: Vec<String> = (0..2 + dice.below(2)).map(|_| format!("({})", one(dice))).collect();
    format!("({})", any.join(" OR "))
}

/// Alternatives of two tables, one of which has a query of its own: what cannot be taken below a join must stay with its own table.
pub fn of_two(dice: &mut Dice, tables: &[Table], joined: &[usize]) -> String {
    let mut one = || {
        let place = dice.below(joined.len() as u64) as usize;
        (place, test(dice, &tables[joined[place]], &format!("j{place}")))
    };
    let ((_, first), (place, next)) = (one(), one());
    let (bound, other) = (dice.pick(&["<", ">="]), &tables[dice.below(tables.len() as u64) as usize]);
    format!("(({first}) OR ({next}) AND j{place}.a {bound} (SELECT max(o.a) FROM {} o))", other.name)
}

/// A condition on a table, called by a name, with a query of its own.
pub fn nested(dice: &mut Dice, tables: &[Table], table: &Table, name: &str) -> String {
    let integers = table.integers();
    let column = format!("{name}.{}", integers[dice.below(integers.len() as u64) as usize]);
    let other = &tables[dice.below(tables.len() as u64) as usize];
    let (from, some) = (&other.name, test(dice, other, "o"));
    match dice.below(8) {
        0 => format!("{column} IN (SELECT o.a FROM {from} AS o WHERE {some})"),
        1 => format!("{column} NOT IN (SELECT o.a FROM {from} AS o WHERE {some})"),
        2 => format!("EXISTS (SELECT 1 FROM {from} AS o WHERE o.a = {column} AND {some})"),
        3 => format!("NOT EXISTS (SELECT 1 FROM {from} AS o WHERE o.a = {column} AND {some})"),
        4..6 => by_key(dice, tables, table, name),
        6 => format!("{name}.a >= (SELECT count(*) FROM {from} AS o WHERE o.a = {column})"),
        _ => format!("{column} > (SELECT avg(o.a) FROM {from} AS o WHERE {some})"),
    }
}

/// One on what a table references, or whether anybody references it.
fn by_key(dice: &mut Dice, tables: &[Table], table: &Table, name: &str) -> String {
    let all = tables.iter().flat_map(|child| child.references.iter().map(move |reference| (child, reference)));
    let near = all.filter(|(child, reference)| child.name == table.name || tables[reference.parent].name == table.name);
    let near: Vec<_> = near.collect();
    if near.is_empty() {
        return test(dice, table, name);
    }
    let (child, reference) = near[dice.below(near.len() as u64) as usize];
    let (parent, is_child) = (&tables[reference.parent], child.name == table.name);
    let other = if is_child { parent } else { child };
    let pair = |(own, key): (&String, &String)| match is_child {
        true => format!("o.{key} = {name}.{own}"),
        false => format!("o.{own} = {name}.{key}"),
    };
    let pairs: Vec<String> = reference.columns.iter().zip(&parent.key).map(pair).collect();
    let from = format!("FROM {} AS o WHERE {} AND {}", other.name, pairs.join(" AND "), test(dice, other, "o"));
    match dice.below(4) {
        0 => format!("EXISTS (SELECT 1 {from})"),
        1 => format!("NOT EXISTS (SELECT 1 {from})"),
        2 => format!("(SELECT count(*) {from}) < {}", dice.below(3)),
        _ => format!("(SELECT sum(o.a) {from}) > {}", dice.below(40)),
    }
}
