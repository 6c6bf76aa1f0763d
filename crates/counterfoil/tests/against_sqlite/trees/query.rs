//! Queries over a tree of tables.

use super::super::scripts::Dice;
use super::condition::{alternatives, nested, of_two, test};
use super::table::Table;

/// A query over a tree of tables, as it is asked on both sides.
pub fn query(dice: &mut Dice, tables: &[Table]) -> String {
    let mut joined = vec![dice.below(tables.len() as u64) as usize];
    if dice.below(3) > 0 {
        joined[0] = tables.len() - 1 - dice.below(2) as usize;
    }
    let mut from = format!("{} AS j0", tables[joined[0]].name);
    for _ in 0..dice.below(5) {
        let child = dice.below(joined.len() as u64) as usize;
        let table = &tables[joined[child]];
        if table.references.is_empty() {
            continue;
        }
        let reference = &table.references[dice.below(table.references.len() as u64) as usize];
        let (parent, number) = (&tables[reference.parent], joined.len());
        let equal = |(own, key): (&String, &String)| match dice.below(2) {
            0 => format!("j{child}.{own} = j{number}.{key}"),
            _ => format!("j{number}.{key} = j{child}.{own}"),
        };
        let mut pairs: Vec<String> = reference.columns.iter().zip(&parent.key).map(equal).collect();
        match dice.below(12) {
            // Something else than the key says, or less.
            0 => pairs.push(format!("j{number}.a = j{child}.a")),
            1 if pairs.len() > 1 => drop(pairs.pop()),
            2 => pairs[0] = format!("j{child}.a = j{number}.{}", parent.key[0]),
            3 => pairs.push(format!("j{number}.a < j{child}.a + 10")),
            _ => {}
        }
        let kind = if dice.below(10) == 0 { "LEFT JOIN" } else { "JOIN" };
        from.push_str(&format!(" {kind} {} AS j{number} ON {}", parent.name, pairs.join(" AND ")));
        joined.push(reference.parent);
    }
    let mut tests = Vec::new();
    for _ in 0..1 + dice.below(3) {
        let place = dice.below(joined.len() as u64) as usize;
        tests.push(test(dice, &tables[joined[place]], &format!("j{place}")));
    }
    if dice.below(3) == 0 {
        tests.push(alternatives(dice, tables, &joined));
    }
    if dice.below(6) == 0 {
        tests.push(nested(dice, tables, &joined));
    }
    if dice.below(8) == 0 {
        tests.push(of_two(dice, tables, &joined));
    }
    let tests = tests.join(if dice.below(8) == 0 { " OR " } else { " AND " });
    shown(dice, tables, &joined, &format!("FROM {from} WHERE {tests}"))
}

/// A query of what there is, in one of many shapes.
fn shown(dice: &mut Dice, tables: &[Table], joined: &[usize], from: &str) -> String {
    let any = |dice: &mut Dice, is_integer: bool| {
        let place = dice.below(joined.len() as u64) as usize;
        let table = &tables[joined[place]];
        let columns = if is_integer { table.integers() } else { table.columns() };
        format!("j{place}.{}", columns[dice.below(columns.len() as u64) as usize])
    };
    let (one, other, number) = (any(dice, false), any(dice, false), any(dice, true));
    let place = dice.below(joined.len() as u64);
    let (extreme, exact) = (format!("j{place}.{}", dice.pick(&["a", "b", "c", "d", "e", "g"])), format!("j{place}.d"));
    match dice.below(12) {
        0 => format!("SELECT count(*) {from}"),
        1 => format!("SELECT {one}, count(*), min({extreme}), max({extreme}) {from} GROUP BY {one}"),
        2 => format!("SELECT DISTINCT {one}, {other} {from}"),
        3 => format!("SELECT count({one}), count(DISTINCT {other}) {from}"),
        4 => {
            let having = match dice.below(4) {
                0 => format!("count(*) > {}", dice.below(4)),
                1 => format!("sum({number}) > {} OR min({extreme}) IS NULL", dice.below(200)),
                2 => format!("count(*) >= 2 AND max({number}) < {}", dice.below(60)),
                _ => format!("avg({number}) > {}", dice.below(30)),
            };
            format!("SELECT {one}, sum({number}), avg({number}), sum({exact}) {from} GROUP BY {one} HAVING {having}")
        }
        5 => format!("SELECT sum({number}), avg({number}), sum({exact}), avg({exact}), sum(j{place}.c) {from}"),
        6 => {
            let order = format!("ORDER BY 1{}, 2{}, 3{}", direction(dice), direction(dice), direction(dice));
            format!("SELECT {one}, {other}, {number} {from} {order} LIMIT {} OFFSET {}", dice.below(30), dice.below(5))
        }
        7 => {
            let order = format!("ORDER BY 2{}, 1{}", direction(dice), direction(dice));
            format!("SELECT {one}, count(*) {from} GROUP BY {one} {order} LIMIT {}", dice.below(9))
        }
        8 => format!("SELECT {number} % 5, {one}, sum({number} + 1) {from} GROUP BY {number} % 5, {one}"),
        9 => {
            let (set, table) = (dice.pick(&["UNION", "EXCEPT", "INTERSECT"]), &tables[0].name);
            format!("SELECT {number} {from} {set} SELECT a FROM {table}")
        }
        10 => format!("SELECT {one}, CASE WHEN {number} < 9 THEN 'few' ELSE {number} || 'x' END {from}"),
        _ => format!("SELECT {one}, {other}, {number} {from}"),
    }
}

/// How a column orders, as both sides have it.
fn direction(dice: &mut Dice) -> &'static str {
    dice.pick(&[" NULLS LAST", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST"])
}
