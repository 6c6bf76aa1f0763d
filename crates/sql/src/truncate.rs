//! TRUNCATE: tables that are emptied together, with those that reference them where CASCADE is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use counterfoil_log::View;
use counterfoil_relation::{Table, TableId};
use datafusion::sql::sqlparser::ast::{CascadeOption, Truncate, TruncateIdentityOption};

use crate::dispersed;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::planner;
use crate::series;
use crate::session::{Outcome, Session};
use crate::statement::table_name;
use crate::transaction::Change;

impl Session {
    pub(crate) fn truncate(&mut self, truncate: &Truncate) -> Result<Outcome> {
        if truncate.partitions.is_some() {
            return Err(Error::NotSupported("TRUNCATE with PARTITION: name the tables".into()));
        }
        let restart = matches!(truncate.identity, Some(TruncateIdentityOption::Restart));
        let cascades = matches!(truncate.cascade, Some(CascadeOption::Cascade));
        let mut names = named(truncate)?;
        if cascades {
            let view = self.view()?;
            let more = referencing(self.engine(), &view, &names)?;
            drop(view);
            self.notices.extend(more.iter().map(|name| format!("TRUNCATE empties table {name} as well")));
            names.extend(more);
        }
        names.iter().try_for_each(|name| self.lease_named(name))?;
        self.freeing_change(|session, change| {
            let table = |name: &String| planner::rows_of(session.engine(), &*change.lease, name);
            let tables = names.iter().map(table).collect::<Result<Vec<_>>>()?;
            let together: Vec<TableId> = tables.iter().map(|table| table.id).collect();
            for name in &names {
                // As it is now: what went of another one may have changed its paths.
                let table = planner::rows_of(session.engine(), &*change.lease, name)?;
                session.truncate_one(change, &table, restart, &together)?;
            }
            Ok(Outcome::Done("TRUNCATE TABLE"))
        })
    }

    fn truncate_one(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        restart: bool,
        together: &[TableId],
    ) -> Result<()> {
        let relations = self.engine().relations.clone();
        if series::is_series(table) {
            series::truncate(&self.engine().series, &mut change.lease, table)?;
        }
        if dispersed::is_dispersed(table) {
            return dispersed::truncate(self, change, table, restart);
        }
        if series::is_apart(table) {
            return Ok(());
        }
        relations.truncate_together(&mut *change.lease, table, restart, together).map_err(Error::Relation)
    }
}

/// The tables that are named.
pub(crate) fn named(truncate: &Truncate) -> Result<Vec<String>> {
    truncate.table_names.iter().map(|target| table_name(&target.name)).collect()
}

/// Tables with foreign keys to those that are named, and to these in turn.
fn referencing(engine: &Engine, view: &dyn View, names: &[String]) -> Result<Vec<String>> {
    let all = engine.relations.tables(view).map_err(Error::Relation)?;
    let mut emptied: BTreeSet<TableId> =
        all.iter().filter(|table| names.contains(&table.name)).map(|table| table.id).collect();
    let mut more = Vec::new();
    loop {
        let references =
            |table: &Arc<Table>| table.foreign_keys.iter().any(|key| key.enforced && emptied.contains(&key.parent));
        let next = all.iter().find(|table| !emptied.contains(&table.id) && references(table));
        let Some(next) = next else { return Ok(more) };
        emptied.insert(next.id);
        more.push(next.name.clone());
    }
}
