//! Common table expressions: queries that begin with WITH.

use super::super::scripts::Dice;
use super::joined::Joined;
use super::query::direction;
use super::table::{Reference, Table};

/// One that is used once, or twice, or that uses itself.
pub fn with(dice: &mut Dice, joined: &Joined<'_>) -> String {
    let own =
        |table: &'_ Table, number: usize| table.references.iter().position(|reference| reference.parent == number);
    let trees: Vec<(usize, usize)> =
        joined.tables.iter().enumerate().filter_map(|(number, table)| Some((number, own(table, number)?))).collect();
    if !trees.is_empty() && dice.below(3) == 0 {
        let (number, place) = trees[dice.below(trees.len() as u64) as usize];
        let table = &joined.tables[number];
        return along(dice, table, &table.references[place]);
    }
    let (from, name, number) = (joined.text(dice), joined.any(dice).0, joined.integer(dice));
    let groups = format!("SELECT {number} AS n, count(*) AS c, min({name}.b) AS x {from} GROUP BY {number}");
    let table = &joined.tables[dice.below(joined.tables.len() as u64) as usize];
    match dice.below(6) {
        0 => format!("WITH w AS ({groups}) SELECT c, count(*), sum(n) FROM w GROUP BY c"),
        1 => format!("WITH w AS ({groups}) SELECT o.b, w.n, w.x FROM {} AS o JOIN w ON w.n = o.a", table.name),
        2 => format!(
            "WITH w AS ({groups}) SELECT p.n, p.c, q.c FROM w AS p LEFT JOIN w AS q ON q.n = p.n + {}",
            dice.below(3)
        ),
        3 => format!("WITH w AS ({groups}) SELECT n, x FROM w WHERE c > (SELECT avg(c) FROM w) OR n IS NULL"),
        4 => {
            let order = format!("ORDER BY n{} LIMIT {}", direction(dice), dice.below(9));
            format!(
                "WITH w AS ({groups}), v AS (SELECT n, c FROM w WHERE n IS NOT NULL {order}) SELECT v.n, w.c FROM v JOIN w ON w.c = v.c"
            )
        }
        _ => format!(
            "WITH w AS ({groups}) SELECT n FROM w WHERE c > 1 UNION SELECT c FROM w WHERE n NOT IN (SELECT c FROM w)"
        ),
    }
}

/// Along a table's references to itself, up or down; no further than a few steps, since they may lead in a circle.
fn along(dice: &mut Dice, table: &Table, reference: &Reference) -> String {
    let (name, key) = (&table.name, &table.key);
    let listed = |of: &str, columns: &[String]| {
        columns.iter().map(|column| format!("{of}{column}")).collect::<Vec<_>>().join(", ")
    };
    let is_down = dice.below(2) == 0;
    let (from, to) = if is_down { (key, &reference.columns) } else { (&reference.columns, key) };
    // What is carried along: the key by which the next step is found, and the first row's own.
    let names: Vec<String> = (0..key.len()).map(|part| format!("w{part}")).collect();
    let pairs: Vec<String> =
        names.iter().zip(to).map(|(carried, column)| format!("t.{column} = w.{carried}")).collect();
    let (carried, steps) = (listed("", &names), 1 + dice.below(5));
    let first = format!("SELECT {}, 0, s.a FROM {name} AS s WHERE s.a < {}", listed("s.", from), dice.below(40));
    let next =
        format!("SELECT {}, w.steps + 1, w.a FROM w JOIN {name} AS t ON {}", listed("t.", from), pairs.join(" AND "));
    let union = if dice.below(3) == 0 { "UNION" } else { "UNION ALL" };
    let with = format!("WITH RECURSIVE w ({carried}, steps, a) AS ({first} {union} {next} WHERE w.steps < {steps})");
    match dice.below(3) {
        0 => format!("{with} SELECT steps, count(*), sum(a) FROM w GROUP BY steps"),
        1 => format!("{with} SELECT {carried}, steps, a FROM w"),
        _ => format!("{with} SELECT t.b, w.steps FROM w JOIN {name} AS t ON t.a = w.a WHERE w.steps > 1"),
    }
}
