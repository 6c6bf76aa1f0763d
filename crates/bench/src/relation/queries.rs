//! The 18 queries of the paper's Table 1. Multi3 means MS10 and the ranges the top 1, 5 and 10 values, or its counts do not come out.

use super::schema::{TABLES, value};

/// A query, and how many rows the paper says that it has where T0 has a million.
pub struct Query {
    pub name: &'static str,
    pub paper_rows: u64,
    pub sql: String,
}

const T3: &str = "JOIN t3 ON t0.t3 = t3.id";
const T4: &str = "JOIN t4 ON t3.t4 = t4.id";
const T5: &str = "JOIN t5 ON t3.t5 = t5.id";
const T1: &str = "JOIN t1 ON t0.t1 = t1.id JOIN t2 ON t1.t2 = t2.id";

/// All of them, for a database whose T0 has `rows`.
pub fn all(rows: u64) -> Vec<Query> {
    // The middle row, or value, of those that a table has.
    let middle = |table: &str, each: u64| {
        let count = TABLES.iter().find(|known| known.name == table).map_or(0, |known| known.rows(rows));
        count.div_ceil(each) / 2
    };
    let at = |table: &str, column: &str, each: u64| {
        let middle = middle(table, each);
        match column {
            "id" => format!("{table}.id = {middle}"),
            _ => format!("{table}.{column} = '{}'", value(middle)),
        }
    };
    let mono = |name, paper_rows, joins: &[&str], shown: &str, (table, column, each): (&str, &str, u64)| Query {
        name,
        paper_rows,
        sql: format!("SELECT {shown} FROM t0 {} WHERE {}", joins.join(" "), at(table, column, each)),
    };
    let every = format!("SELECT t0.a1, t1.a1, t2.a1, t3.a1, t4.a1, t5.a1 FROM t0 {T1} {T3} {T4} {T5}");
    let multi = |name, paper_rows, tests: String| Query { name, paper_rows, sql: format!("{every} WHERE {tests}") };
    let values = middle("t5", 100) * 2;
    let range = |name, paper_rows, top: u64| Query {
        name,
        paper_rows,
        sql: format!(
            "SELECT t0.a1, t3.a1, t5.a1 FROM t0 {T3} {T5} WHERE t5.dup100 > '{}'",
            value(values.saturating_sub(top + 1))
        ),
    };
    let (v50, v5) = (value(50), value(5));
    vec![
        mono("Mono1", 1, &[], "t0.a1", ("t0", "id", 1)),
        mono("Mono2", 8, &[T3], "t0.a1, t3.a1", ("t3", "id", 1)),
        mono("Mono3", 10, &[], "t0.a1", ("t0", "dup10", 10)),
        mono("Mono4", 30, &[T3, T5], "t0.a1, t3.a1, t5.a1", ("t5", "id", 1)),
        mono("Mono5", 80, &[T3], "t0.a1, t3.a1", ("t3", "dup10", 10)),
        mono("Mono6", 100, &[], "t0.a1", ("t0", "dup100", 100)),
        multi("Multi1", 100, format!("t2.ms1 = '{v50}' AND t5.ms1 = '{v50}'")),
        mono("Mono7", 300, &[T3, T5], "t0.a1, t3.a1, t5.a1", ("t5", "dup10", 10)),
        mono("Mono8", 599, &[T3, T4], "t0.a1, t3.a1, t4.a1", ("t4", "id", 1)),
        mono("Mono9", 799, &[T3], "t0.a1, t3.a1", ("t3", "dup100", 100)),
        multi("Multi2", 998, format!("t2.ms10 = '{v5}' AND t4.ms10 = '{v5}' AND t5.ms10 = '{v5}'")),
        mono("Mono10", 2997, &[T3, T5], "t0.a1, t3.a1, t5.a1", ("t5", "dup100", 100)),
        range("Range1", 2997, 1),
        mono("Mono11", 5995, &[T3, T4], "t0.a1, t3.a1, t4.a1", ("t4", "dup10", 10)),
        multi("Multi3", 9971, format!("t2.ms10 = '{v5}' AND t5.ms10 = '{v5}'")),
        range("Range2", 14_955, 5),
        range("Range3", 29_912, 10),
        mono("Mono12", 59_881, &[T3, T4], "t0.a1, t3.a1, t4.a1", ("t4", "dup100", 100)),
    ]
}
