//! Queries over a tree of tables, as they are asked on both sides.

use super::super::scripts::Dice;
use super::joined::Joined;
use super::table::Table;
use super::window::window;
use super::with::with;

pub fn query(dice: &mut Dice, tables: &[Table]) -> String {
    let joined = Joined::new(dice, tables);
    match dice.below(10) {
        0 => window(dice, &joined),
        1 => with(dice, &joined),
        2 => of_sets(dice, &joined),
        _ => shown(dice, &joined),
    }
}

/// A query of what there is, in one of many shapes.
fn shown(dice: &mut Dice, joined: &Joined<'_>) -> String {
    let from = joined.text(dice);
    if dice.below(14) < 8 { totals(dice, joined, &from) } else { rows(dice, joined, &from) }
}

/// What rows come to, in all or group by group.
fn totals(dice: &mut Dice, joined: &Joined<'_>, from: &str) -> String {
    let (one, other, number) = (joined.column(dice), joined.column(dice), joined.integer(dice));
    let name = joined.any(dice).0;
    let (extreme, exact) = (format!("{name}.{}", dice.pick(&["a", "b", "c", "d", "e", "g"])), format!("{name}.d"));
    match dice.below(8) {
        0 => format!("SELECT count(*) {from}"),
        1 => format!("SELECT {one}, count(*), min({extreme}), max({extreme}) {from} GROUP BY {one}"),
        2 => format!("SELECT count({one}), count(DISTINCT {other}) {from}"),
        3 => {
            let having = having(dice, &number, &extreme);
            format!("SELECT {one}, sum({number}), avg({number}), sum({exact}) {from} GROUP BY {one} HAVING {having}")
        }
        4 => format!(
            "SELECT sum({number}), avg({number}), sum({exact}), avg({exact}), sum({name}.c), avg({name}.c) {from}"
        ),
        5 => {
            let order = format!("ORDER BY 2{}, 1{}", direction(dice), direction(dice));
            format!("SELECT {one}, count(*) {from} GROUP BY {one} {order} LIMIT {}", dice.below(9))
        }
        6 => format!("SELECT {number} % 5, {one}, sum({number} + 1) {from} GROUP BY {number} % 5, {one}"),
        _ => {
            let sum = format!("sum({number}) FILTER (WHERE {name}.a < {})", dice.below(40));
            format!("SELECT {one}, {sum}, avg({name}.c), count(DISTINCT {other}), count(*) {from} GROUP BY {one}")
        }
    }
}

/// Rows, all of them or those that come first.
fn rows(dice: &mut Dice, joined: &Joined<'_>, from: &str) -> String {
    let (one, other, number) = (joined.column(dice), joined.column(dice), joined.integer(dice));
    let (limit, offset) = (dice.below(30), dice.below(5));
    let [first, second, third] = [(); 3].map(|()| direction(dice));
    match dice.below(6) {
        0 => format!("SELECT DISTINCT {one}, {other} {from}"),
        1 => {
            let order = format!("ORDER BY 1{first}, 2{second}, 3{third}");
            format!("SELECT {one}, {other}, {number} {from} {order} LIMIT {limit} OFFSET {offset}")
        }
        2 => {
            // What is not shown decides the order.
            let order = format!("ORDER BY {number}{first}, {}", joined.order());
            format!("SELECT {one}, {other} {from} {order} LIMIT {limit} OFFSET {offset}")
        }
        3 => format!("SELECT {one}, CASE WHEN {number} < 9 THEN 'few' ELSE {number} || 'x' END {from}"),
        4 => {
            let order = format!("ORDER BY 1{first}, 2{second}");
            format!("SELECT DISTINCT {one}, {number} {from} {order} LIMIT {limit} OFFSET {offset}")
        }
        _ => format!("SELECT {one}, {other}, {number} {from}"),
    }
}

/// A condition on groups.
fn having(dice: &mut Dice, number: &str, extreme: &str) -> String {
    match dice.below(5) {
        0 => format!("count(*) > {}", dice.below(4)),
        1 => format!("sum({number}) > {} OR min({extreme}) IS NULL", dice.below(200)),
        2 => format!("count(*) >= 2 AND max({number}) < {}", dice.below(60)),
        3 => format!("count(DISTINCT {extreme}) < {}", 1 + dice.below(3)),
        _ => format!("avg({number}) > {}", dice.below(30)),
    }
}

/// UNION and its kin, of two questions or of three.
fn of_sets(dice: &mut Dice, joined: &Joined<'_>) -> String {
    let (number, from) = (joined.integer(dice), joined.text(dice));
    let second = Joined::new(dice, joined.tables);
    let (other, behind) = (second.integer(dice), second.text(dice));
    let set = dice.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]);
    let sets = format!("SELECT {number} AS n {from} {set} SELECT {other} {behind}");
    match dice.below(4) {
        0 => format!("{sets} ORDER BY 1{} LIMIT {} OFFSET {}", direction(dice), dice.below(9), dice.below(5)),
        1 => format!("SELECT n, count(*), sum(n) FROM ({sets}) AS s GROUP BY n"),
        // INTERSECT binds closer than the others here, and no closer in SQLite.
        2 if set != "INTERSECT" => {
            let third = &joined.tables[dice.below(joined.tables.len() as u64) as usize];
            let set = dice.pick(&["UNION", "UNION ALL", "EXCEPT"]);
            format!("{sets} {set} SELECT a FROM {}", third.name)
        }
        _ => sets,
    }
}

/// How a column orders, as both sides have it.
pub fn direction(dice: &mut Dice) -> &'static str {
    dice.pick(&[" NULLS LAST", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST"])
}
