//! Window functions, in windows whose rows come in one order only where that decides what they say.

use super::super::scripts::Dice;
use super::joined::Joined;
use super::query::direction;

/// A query with two of them; one over groups now and then.
pub fn window(dice: &mut Dice, joined: &Joined<'_>) -> String {
    let from = joined.text(dice);
    if dice.below(5) == 0 {
        return over_groups(dice, joined, &from);
    }
    let (keys, order) = (joined.keys().join(", "), joined.order());
    let (first, second) = (function(dice, joined), function(dice, joined));
    match dice.below(4) {
        0 => format!("SELECT {keys}, {first}, {second} {from} ORDER BY {order} LIMIT {}", dice.below(30)),
        1 => {
            // Those that stand first in their parts.
            let (part, bound) = (joined.column(dice), 1 + dice.below(3));
            let place = format!("row_number() OVER (PARTITION BY {part} ORDER BY {order})");
            format!(
                "SELECT * FROM (SELECT {part} AS part, {first} AS said, {place} AS place {from}) AS s WHERE place <= {bound}"
            )
        }
        _ => format!("SELECT {keys}, {first}, {second} {from}"),
    }
}

/// Groups in order of what there is in them.
fn over_groups(dice: &mut Dice, joined: &Joined<'_>, from: &str) -> String {
    let (one, number, direction) = (joined.column(dice), joined.integer(dice), direction(dice));
    let over = match dice.below(3) {
        0 => format!("rank() OVER (ORDER BY count(*){direction})"),
        1 => format!("dense_rank() OVER (ORDER BY max({number}){direction})"),
        _ => format!("sum(count(*)) OVER (ORDER BY {one}{direction})"),
    };
    format!("SELECT {one}, count(*), {over} {from} GROUP BY {one}")
}

/// One over some window.
fn function(dice: &mut Dice, joined: &Joined<'_>) -> String {
    let (number, any, order) = (joined.integer(dice), joined.column(dice), joined.order());
    let by = format!("ORDER BY {}{}", joined.column(dice), direction(dice));
    let part = if dice.below(3) == 0 { String::new() } else { format!("PARTITION BY {} ", joined.column(dice)) };
    let sum = dice.pick(&["sum", "avg", "min", "max", "count"]);
    match dice.below(10) {
        0 => format!("row_number() OVER ({part}{by}, {order})"),
        1 => format!("{}() OVER ({part}{by})", dice.pick(&["rank", "dense_rank", "percent_rank", "cume_dist"])),
        // Rows that are equal in the order count together.
        2 => format!("{sum}({number}) OVER ({part}{by})"),
        3 => format!("{sum}({number}) OVER ({part})"),
        4 => format!("{}({any}, {}) OVER ({part}{by}, {order})", dice.pick(&["lag", "lead"]), dice.below(3)),
        5 => format!("{}({any}) OVER ({part}{by}, {order})", dice.pick(&["first_value", "last_value"])),
        6 => format!("ntile({}) OVER ({part}{by}, {order})", 1 + dice.below(4)),
        7 => format!("nth_value({any}, {}) OVER ({part}{by}, {order})", 1 + dice.below(3)),
        8 => format!("{sum}({number}) OVER ({part}{by}, {order} {})", rows(dice)),
        _ => format!("{sum}({number}) OVER ({part}{by} {})", peers(dice)),
    }
}

/// A frame of so many rows.
fn rows(dice: &mut Dice) -> String {
    let (before, behind) = (dice.below(3), dice.below(3));
    match dice.below(4) {
        0 => format!("ROWS BETWEEN {before} PRECEDING AND {behind} FOLLOWING"),
        1 => format!("ROWS BETWEEN UNBOUNDED PRECEDING AND {} PRECEDING", 1 + before),
        2 => format!("ROWS BETWEEN {behind} FOLLOWING AND UNBOUNDED FOLLOWING"),
        _ => format!("ROWS BETWEEN {before} PRECEDING AND CURRENT ROW"),
    }
}

/// A frame of rows that are equal in the order.
fn peers(dice: &mut Dice) -> String {
    let (before, behind) = (dice.below(3), dice.below(3));
    match dice.below(3) {
        0 => format!("GROUPS BETWEEN {before} PRECEDING AND {behind} FOLLOWING"),
        1 => "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING".into(),
        _ => "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW".into(),
    }
}
