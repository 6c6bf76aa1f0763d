//! The paper's queries in SQL.

use super::figure7::TABLES;
use super::table1::{Asked, Is, Query};

/// The text of a query.
pub fn sql(query: &Query) -> String {
    let shown: Vec<String> = query.shown.iter().map(|table| format!("{table}.a1")).collect();
    let asked: Vec<String> = query.asked.iter().map(|asked| condition(asked, '.')).collect();
    format!("SELECT {} FROM t0{} WHERE {}", shown.join(", "), joins(&query.tables()), asked.join(" AND "))
}

/// How these tables come to T0, those first that others join on the way.
pub fn joins(tables: &[&str]) -> String {
    let joined = tables.iter().filter_map(|table| {
        let child = TABLES.iter().find(|child| child.references.contains(table))?.name;
        Some(format!(" JOIN {table} ON {child}.{table} = {table}.id"))
    });
    joined.collect()
}

/// What is asked of a column, whose name follows that of its table behind `mark`.
pub fn condition(Asked { table, column, is }: &Asked, mark: char) -> String {
    match is {
        Is::Id(id) => format!("{table}{mark}{column} = {id}"),
        Is::Equal(value) => format!("{table}{mark}{column} = '{value}'"),
        Is::Above(value) => format!("{table}{mark}{column} > '{value}'"),
    }
}
