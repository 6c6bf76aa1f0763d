//! What the tables of a database have, for whoever reads lines.

use std::collections::HashMap;
use std::sync::Arc;

use counterfoil_influx::{Kind, Problem, Schema};
use counterfoil_log::{Snapshot, View};
use counterfoil_sql::is_series;
use counterfoil_sql::relation::Table;
use parking_lot::Mutex;

use super::databases::Entry;
use super::points;
use crate::database::Database;

/// Tables that are remembered: lines of more measurements at once are looked up again.
const TABLES_MAX: usize = 1024;

/// The tables of one database of clients.
pub(super) struct Known {
    database: Database,
    entry: Entry,
    may_create: bool,
    /// What the lines are held against; none: the newest state whenever somebody asks.
    fixed: Option<Snapshot>,
    seen: Mutex<Seen>,
}

/// Tables as of one commit.
#[derive(Default)]
struct Seen {
    commit: Option<u64>,
    tables: HashMap<String, Option<Arc<Table>>>,
}

impl Known {
    /// The newest state, whenever somebody asks.
    pub(super) fn newest(database: Database, entry: Entry, may_create: bool) -> Self {
        Self { database, entry, may_create, fixed: None, seen: Mutex::default() }
    }

    /// One state.
    pub(super) fn fixed(database: Database, entry: Entry, may_create: bool, snapshot: Snapshot) -> Self {
        Self { database, entry, may_create, fixed: Some(snapshot), seen: Mutex::default() }
    }

    /// The table of a measurement. One that cannot be read now is told of when rows go there.
    fn table(&self, measurement: &str) -> Option<Arc<Table>> {
        let snapshot = match &self.fixed {
            Some(snapshot) => snapshot.clone(),
            None => self.database.snapshot().ok()?,
        };
        let mut seen = self.seen.lock();
        let commit = Some(snapshot.commit_number().0);
        if seen.commit != commit || seen.tables.len() >= TABLES_MAX {
            *seen = Seen { commit, tables: HashMap::new() };
        }
        if let Some(table) = seen.tables.get(measurement) {
            return table.clone();
        }
        let relations = self.database.inner.engine.relations();
        let table = relations.table(&snapshot, &self.entry.table(measurement)).ok().flatten();
        seen.tables.insert(measurement.to_owned(), table.clone());
        table
    }
}

impl Schema for Known {
    fn column(&self, measurement: &str, name: &str) -> Option<Kind> {
        let table = self.table(measurement).filter(|table| is_series(table))?;
        points::kind_of(&table, name)
    }

    fn takes(&self, measurement: &str) -> Result<(), Problem> {
        match self.may_create || self.table(measurement).is_some() {
            true => Ok(()),
            false => Err(Problem::NoTable(self.entry.table(measurement))),
        }
    }
}
