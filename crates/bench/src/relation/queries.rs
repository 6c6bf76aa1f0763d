//! The paper's queries in SQL.

use super::figure7::TABLES;
use super::table1::{Asked, Is, Query};

/// The text of a query.
pub fn sql(query: &Query) -> String {
    let tables = query.tables();
    let shown: Vec<String> = query.shown.iter().map(|table| format!("{table}.a1")).collect();
    let joins = tables.iter().filter_map(|table| {
        let child = TABLES.iter().find(|child| child.references.contains(table))?.name;
        Some(format!(" JOIN {table} ON {child}.{table} = {table}.id"))
    });
    let asked: Vec<String> = query.asked.iter().map(condition).collect();
    format!("SELECT {} FROM t0{} WHERE {}", shown.join(", "), joins.collect::<String>(), asked.join(" AND "))
}

fn condition(Asked { table, column, is }: &Asked) -> String {
    match is {
        Is::Id(id) => format!("{table}.{column} = {id}"),
        Is::Equal(value) => format!("{table}.{column} = '{value}'"),
        Is::Above(value) => format!("{table}.{column} > '{value}'"),
    }
}
