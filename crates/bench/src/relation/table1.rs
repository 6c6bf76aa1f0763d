//! The 18 queries of the paper's Table 1. Multi3 means MS10 and the ranges the top 1, 5 and 10 values, or its counts do not come out.

use super::figure7::{TABLES, value};

/// A query.
pub struct Query {
    pub name: &'static str,
    /// How many rows the paper says that it has where T0 has a million.
    pub paper_rows: u64,
    /// The tables whose A1 is shown: T0 and what joins it on the way to them.
    pub shown: &'static [&'static str],
    /// What is asked, all of it.
    pub asked: Vec<Asked>,
}

/// What is asked of an attribute.
pub struct Asked {
    pub table: &'static str,
    pub column: &'static str,
    pub is: Is,
}

/// What an attribute is to be.
pub enum Is {
    /// This identifier.
    Id(u64),
    /// This value.
    Equal(String),
    /// Any value above this one.
    Above(String),
}

const ALL: &[&str] = &["t0", "t1", "t2", "t3", "t4", "t5"];

/// All of them, for a database whose T0 has `rows`.
pub fn all(rows: u64) -> Vec<Query> {
    // The middle row, or value, of those that a table has.
    let middle = |table: &str, each: u64| {
        let count = TABLES.iter().find(|known| known.name == table).map_or(0, |known| known.rows(rows));
        count.div_ceil(each) / 2
    };
    let mono = |name, paper_rows, shown, (table, column, each): (&'static str, &'static str, u64)| {
        let is = match column {
            "id" => Is::Id(middle(table, each)),
            _ => Is::Equal(value(middle(table, each))),
        };
        Query { name, paper_rows, shown, asked: vec![Asked { table, column, is }] }
    };
    let multi = |name, paper_rows, column, number: u64, tables: &[&'static str]| {
        let asked = tables.iter().map(|table| Asked { table, column, is: Is::Equal(value(number)) });
        Query { name, paper_rows, shown: ALL, asked: asked.collect() }
    };
    let values = middle("t5", 100) * 2;
    let range = |name, paper_rows, top: u64| {
        let above = Is::Above(value(values.saturating_sub(top + 1)));
        let asked = vec![Asked { table: "t5", column: "dup100", is: above }];
        Query { name, paper_rows, shown: &["t0", "t3", "t5"], asked }
    };
    vec![
        mono("Mono1", 1, &["t0"], ("t0", "id", 1)),
        mono("Mono2", 8, &["t0", "t3"], ("t3", "id", 1)),
        mono("Mono3", 10, &["t0"], ("t0", "dup10", 10)),
        mono("Mono4", 30, &["t0", "t3", "t5"], ("t5", "id", 1)),
        mono("Mono5", 80, &["t0", "t3"], ("t3", "dup10", 10)),
        mono("Mono6", 100, &["t0"], ("t0", "dup100", 100)),
        multi("Multi1", 100, "ms1", 50, &["t2", "t5"]),
        mono("Mono7", 300, &["t0", "t3", "t5"], ("t5", "dup10", 10)),
        mono("Mono8", 599, &["t0", "t3", "t4"], ("t4", "id", 1)),
        mono("Mono9", 799, &["t0", "t3"], ("t3", "dup100", 100)),
        multi("Multi2", 998, "ms10", 5, &["t2", "t4", "t5"]),
        mono("Mono10", 2997, &["t0", "t3", "t5"], ("t5", "dup100", 100)),
        range("Range1", 2997, 1),
        mono("Mono11", 5995, &["t0", "t3", "t4"], ("t4", "dup10", 10)),
        multi("Multi3", 9971, "ms10", 5, &["t2", "t5"]),
        range("Range2", 14_955, 5),
        range("Range3", 29_912, 10),
        mono("Mono12", 59_881, &["t0", "t3", "t4"], ("t4", "dup100", 100)),
    ]
}

impl Query {
    /// The tables it reads, T0 first: those shown, those asked about, and those on the way to them.
    pub fn tables(&self) -> Vec<&'static str> {
        let named = |table: &&&str| self.shown.contains(table) || self.asked.iter().any(|asked| asked.table == **table);
        let is_on_the_way = |table: &str| {
            let referenced = TABLES.iter().find(|known| known.name == table).map_or(&[][..], |known| known.references);
            ALL.iter().filter(named).any(|named| *named == table || referenced.contains(named))
        };
        ALL.iter().copied().filter(|table| *table == "t0" || is_on_the_way(table)).collect()
    }
}
