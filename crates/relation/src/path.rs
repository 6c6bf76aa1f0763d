//! Paths of foreign keys: which begin at a table, and what follows when a foreign key comes or goes.
//!
//! Foreign keys between different tables never lead back to where they began (a cycle is refused and named), so there are
//! finitely many paths; a reference of a table to itself is a path of one step and part of no other.
//!
//! Invariants:
//! 1. a table's joins are its paths, the shorter first, at most [`JOINS_MAX`]; what is a join here without its first step
//!    is a join of the table to which that step leads;
//! 2. every row has every join of its table: where rows are older than a path, the table is rewritten in the same
//!    transaction, so a power cut leaves neither the path nor the new rows.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::View;

use crate::access::Shared;
use crate::alter::begin_layout;
use crate::define::{remove_indexes, reread};
use crate::files::{Coverage, IndexFiles};
use crate::vacuum::{self, Joins};
use crate::{Error, IndexDef, IndexId, IndexOrigin, Join, JoinId, Step, Storage, Table, TableId, catalog};
use counterfoil_log::Set;

/// Paths that a table's rows hold, and foreign keys that it may have.
pub(crate) const JOINS_MAX: usize = 64;

/// The paths that begin at a table, the shorter first: its foreign keys, and each with what goes on from the table there.
fn paths_of(shared: &Shared, view: &dyn View, table: &Table) -> Result<Vec<Vec<Step>>, Error> {
    let mut paths: Vec<Vec<Step>> = Vec::new();
    for key in &table.foreign_keys {
        paths.push(vec![key.step()]);
        if key.parent == table.id {
            continue;
        }
        let parent = reread(shared, view, key.parent)?;
        let goes_on = |join: &&Join| join.steps.first().is_some_and(|step| step.to != parent.id);
        let longer = parent.joins.iter().filter(goes_on).map(|join| [&[key.step()], join.steps.as_slice()].concat());
        paths.extend(longer);
    }
    paths.order_stably_by_key(Vec::len);
    paths.truncate(JOINS_MAX);
    Ok(paths)
}

/// Refuses a foreign key of `child` to `parent` if there is a way back.
pub(crate) fn refuse_cycle(
    shared: &Shared,
    view: &dyn View,
    name: &str,
    child: &Table,
    parent: &Table,
) -> Result<(), Error> {
    let mut seen = Set::from([parent.id]);
    let mut due = VecDeque::from([(Arc::new(parent.clone()), format!("{} references {}", child.name, parent.name))]);
    while let Some((from, way)) = due.pop_front() {
        for key in from.foreign_keys.iter().filter(|key| key.parent != from.id) {
            if key.parent == child.id {
                let way = format!("{way}, {} references {}", from.name, child.name);
                return Err(Error::sql(format!(
                    "foreign key {name} would close a cycle: {way}: leave one of them out"
                )));
            }
            if seen.insert(key.parent) {
                let to = reread(shared, view, key.parent)?;
                let way = format!("{way}, {} references {}", from.name, to.name);
                due.push_back((to, way));
            }
        }
    }
    Ok(())
}

/// Works out anew the paths of a table of which a foreign key came or went, and of all tables from which a path leads
/// there. Rows that lack a path are rewritten with it.
pub(crate) fn redefine(shared: &Shared, writer: &mut dyn Storage, id: TableId) -> Result<(), Error> {
    let mut gained = Set::new();
    let mut due = VecDeque::from([id]);
    while let Some(next) = due.pop_front() {
        let table = reread(shared, writer, next)?;
        let paths = paths_of(shared, writer, &table)?;
        let differ = !paths.iter().eq(table.joins.iter().map(|join| &join.steps));
        if differ && define_paths(shared, writer, &table, paths)? {
            gained.insert(next);
        }
        // The first has lost its own paths already where its foreign keys went.
        if differ || next == id {
            due.extend(others(&table.children, next));
        }
    }
    refill(shared, writer, gained)
}

/// The tables of a list but one, each once.
fn others(tables: &[TableId], but: TableId) -> Set<TableId> {
    tables.iter().copied().filter(|table| *table != but).collect()
}

/// Writes down the paths of a table, with an index for each of several steps. Whether there are rows that lack one.
fn define_paths(
    shared: &Shared,
    writer: &mut dyn Storage,
    table: &Table,
    paths: Vec<Vec<Step>>,
) -> Result<bool, Error> {
    let has_rows = !shared.catalog.files(writer, table)?.segments.is_empty();
    let mut changed = Table { shape: None, joins: Vec::with_capacity(paths.len()), ..table.clone() };
    let mut gained = Vec::new();
    for steps in paths {
        let known = table.joins.iter().find(|join| join.steps == steps);
        let join = match known {
            Some(join) => join.clone(),
            None => {
                let id = JoinId(changed.next_join);
                changed.next_join =
                    changed.next_join.checked_add(1).ok_or_else(|| Error::misuse("no more path numbers"))?;
                gained.push(Join { id, steps: steps.clone() });
                Join { id, steps }
            }
        };
        changed.joins.push(join);
    }
    index_paths(shared, writer, &mut changed, &gained)?;
    if has_rows {
        begin_layout(&mut changed)?;
    } else {
        changed.layouts = vec![changed.stored_layout()];
    }
    catalog::put_table(writer, &changed)?;
    Ok(!gained.is_empty() && has_rows)
}

/// Drops the indexes of paths that are gone, and begins those of paths that have come. They know nothing yet: whoever has
/// rows is rewritten, and its indexes are made of all of them.
fn index_paths(shared: &Shared, writer: &mut dyn Storage, table: &mut Table, gained: &[Join]) -> Result<(), Error> {
    let leads = |id: JoinId| table.joins.iter().any(|join| join.id == id);
    let is_gone = |index: &&IndexDef| matches!(index.origin, IndexOrigin::Path(join) if !leads(join));
    let gone: Vec<_> = table.indexes.iter().filter(is_gone).map(|index| index.id).collect();
    remove_indexes(shared, writer, table, &gone)?;
    let files = shared.catalog.files(writer, table)?;
    for join in gained.iter().filter(|join| join.steps.len() > 1) {
        let id = IndexId(table.next_index);
        table.next_index = table.next_index.checked_add(1).ok_or_else(|| Error::misuse("no more index numbers"))?;
        let (name, origin) = (name_of(shared, writer, table, join)?, IndexOrigin::Path(join.id));
        table.indexes.push(IndexDef { id, name, columns: Vec::new(), unique: false, origin });
        let coverage = Coverage { rows: files.next_row, ..Coverage::none(files.rewrites) };
        catalog::put_index(writer, table.id, id, &IndexFiles::empty(coverage))?;
    }
    Ok(())
}

/// Rewrites tables with the joins of their rows found anew, those that are joined before those that join them.
fn refill(shared: &Shared, writer: &mut dyn Storage, mut tables: Set<TableId>) -> Result<(), Error> {
    while let Some(table) = innermost(shared, writer, &tables)? {
        tables.remove(&table);
        vacuum::rewrite(shared, writer, table, Joins::Found)?;
    }
    Ok(())
}

/// One of some tables from which no path leads to another of them.
pub(crate) fn innermost(shared: &Shared, view: &dyn View, tables: &Set<TableId>) -> Result<Option<TableId>, Error> {
    for id in tables {
        let table = reread(shared, view, *id)?;
        let ends = table.joins.iter().filter_map(|join| join.steps.last()).map(|step| step.to);
        if { ends }.all(|end| end == *id || !tables.contains(&end)) {
            return Ok(Some(*id));
        }
    }
    // Only where paths are more than are kept: then the order costs work, not the result.
    Ok(tables.first().copied())
}

/// Finds anew what rows join whose paths lead to a table that was emptied.
pub(crate) fn refill_descendants(shared: &Shared, writer: &mut dyn Storage, id: TableId) -> Result<(), Error> {
    let mut all = Set::new();
    let mut due = VecDeque::from([id]);
    while let Some(id) = due.pop_front() {
        let table = reread(shared, writer, id)?;
        due.extend(others(&table.children, id).into_iter().filter(|child| all.insert(*child)));
    }
    refill(shared, writer, all)
}

/// A path by the names of its foreign keys.
pub(crate) fn name_of(shared: &Shared, view: &dyn View, table: &Table, join: &Join) -> Result<String, Error> {
    let mut name = String::new();
    let mut key = join.steps.first().and_then(|step| table.foreign_key(step.key)).cloned();
    for (place, step) in join.steps.iter().enumerate() {
        if place > 0 {
            name.push('.');
        }
        name.push_str(key.as_ref().map_or("", |key| &key.name));
        let next = join.steps.get(place + 1);
        key = match next {
            Some(next) => reread(shared, view, step.to)?.foreign_key(next.key).cloned(),
            None => None,
        };
    }
    Ok(name)
}
