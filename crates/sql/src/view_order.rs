//! Views in the order in which they can be made: each behind those that it reads.

use std::collections::{HashMap, HashSet};

use counterfoil_relation::StoredView;
use datafusion::sql::parser::Statement as LibraryStatement;
use datafusion::sql::resolve::resolve_table_references;

use crate::error::Result;
use crate::historian;
use crate::session::with_stack;
use crate::statement;

/// Those that are read before those that read them, by name otherwise.
///
/// # Errors
/// Of a view whose text is not read any more.
pub fn views_in_order(mut waiting: Vec<StoredView>) -> Result<Vec<StoredView>> {
    waiting.sort_by(|one, other| one.name.cmp(&other.name));
    let read: HashMap<String, HashSet<String>> =
        waiting.iter().map(|view| Ok((view.name.clone(), read_by(view)?))).collect::<Result<_>>()?;
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let is_ready = |view: &StoredView| {
            let of_others = |other: &StoredView| other.name != view.name && read[&view.name].contains(&other.name);
            !waiting.iter().any(of_others)
        };
        // No view is made over one that is not there: without a circle there is always one to go on with.
        let next = waiting.iter().position(is_ready).unwrap_or(0);
        ordered.push(waiting.remove(next));
    }
    Ok(ordered)
}

/// Names of what a view reads.
fn read_by(view: &StoredView) -> Result<HashSet<String>> {
    with_stack(&view.sql, || {
        let Some(query) = statement::parse(&view.sql)?.into_iter().next() else { return Ok(HashSet::new()) };
        let inputs = historian::inputs(&query);
        let (tables, _) = resolve_table_references(&LibraryStatement::Statement(Box::new(query)), true)?;
        let named = tables.into_iter().map(|table| table.table().to_owned()).chain(inputs);
        Ok(named.map(|name| statement::plain(&name).to_owned()).collect())
    })
}
