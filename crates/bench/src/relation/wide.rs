//! T0 with all that it joins in one table: how a peer is asked who would rather have wide rows than joins.

use super::figure7::{INDEXED, TABLES};
use super::queries::{condition, joins};
use super::table1::{Asked, Query};

/// Makes the table out of the others, with an index on every attribute that one of them indexes.
pub fn statements() -> Vec<String> {
    let columns =
        || TABLES.iter().flat_map(|table| ["id"].into_iter().chain(INDEXED).map(|column| (table.name, column)));
    let all = columns().chain(TABLES.iter().map(|table| (table.name, "a1")));
    let shown: Vec<String> = all.map(|(table, column)| format!("{table}.{column} AS {table}_{column}")).collect();
    let names: Vec<&str> = TABLES.iter().map(|table| table.name).rev().collect();
    let table = format!("CREATE TABLE wide AS SELECT {} FROM t0{}", shown.join(", "), joins(&names));
    let index = |(table, column)| format!("CREATE INDEX wide_{table}_{column} ON wide ({table}_{column})");
    let last = "PRAGMA wal_checkpoint(TRUNCATE); ANALYZE".to_owned();
    [table].into_iter().chain(columns().map(index)).chain([last]).collect()
}

/// The text of a query to it.
pub fn sql(query: &Query) -> String {
    let shown: Vec<String> = query.shown.iter().map(|table| format!("{table}_a1")).collect();
    let asked: Vec<String> = query.asked.iter().map(|asked: &Asked| condition(asked, '_')).collect();
    format!("SELECT {} FROM wide WHERE {}", shown.join(", "), asked.join(" AND "))
}
