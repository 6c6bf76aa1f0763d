//! What a database holds, as the catalogue tells it.

use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{ColumnId, IndexDef, IndexOrigin, StoredView, Table, TableId};

use super::numbers::{Numbers, Object};
use crate::error::{Error, Result};
use crate::planner::Planner;

/// Tables, views, and the numbers of everything.
pub(super) struct Held {
    pub tables: Vec<Arc<Table>>,
    pub views: Vec<StoredView>,
    pub numbers: Numbers,
}

impl Held {
    pub fn of(planner: &Planner, snapshot: &Snapshot) -> Result<Self> {
        let relations = &planner.engine().relations;
        let mut tables = relations.tables(snapshot).map_err(Error::Relation)?;
        tables.retain(|table| !crate::publishing::is_hidden(&table.name));
        let views = relations.views(snapshot).map_err(Error::Relation)?;
        let numbers = Numbers::of(&tables, &views);
        Ok(Held { tables, views, numbers })
    }

    pub fn table(&self, id: TableId) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id).map(AsRef::as_ref)
    }

    pub fn table_number(&self, table: &Table) -> u32 {
        self.numbers.get(&Object::Table(table.id))
    }

    pub fn view_number(&self, view: &StoredView) -> u32 {
        self.numbers.get(&Object::View(view.name.clone()))
    }

    pub fn index_number(&self, table: &Table, index: &IndexDef) -> u32 {
        self.numbers.get(&Object::Index(table.id, index.id))
    }

    /// The indexes that PostgreSQL would have too: foreign keys have none of their own there.
    pub fn indexes(&self) -> impl Iterator<Item = (&Table, &IndexDef)> {
        let tables = self.tables.iter().map(AsRef::as_ref);
        tables.flat_map(|table: &Table| shown_indexes(table).map(move |index| (table, index)))
    }
}

/// The indexes of a table that PostgreSQL would have too.
pub(super) fn shown_indexes(table: &Table) -> impl Iterator<Item = &IndexDef> {
    table.indexes.iter().filter(|index| !matches!(index.origin, IndexOrigin::ForeignKey | IndexOrigin::Path(_)))
}

/// The places of columns, counted from 1.
pub(super) fn places(table: &Table, columns: &[ColumnId]) -> Vec<i64> {
    columns.iter().map(|column| table.position(*column).map_or(0, |place| place as i64 + 1)).collect()
}
