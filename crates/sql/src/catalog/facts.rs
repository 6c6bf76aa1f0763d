//! What functions of the catalogue answer from, as of one snapshot.

use std::collections::HashMap;

use counterfoil_log::Snapshot;

use super::held::{Held, shown_indexes};
use super::numbers::{OWNER, Object, PG_CATALOG, PUBLIC};
use super::shape::shapes;
use super::texts::{parse_ident, quote_ident};
use super::{keys, relations};
use crate::error::Result;
use crate::planner::Planner;

/// What a database holds, by number and by name.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    names: HashMap<u32, String>,
    numbers: HashMap<String, u32>,
    constraints: HashMap<u32, String>,
    indexes: HashMap<u32, (String, Vec<String>)>,
    views: HashMap<u32, String>,
    /// What counts columns up, by table and column.
    sequences: HashMap<(String, String), String>,
    settings: HashMap<String, String>,
    /// Whether this session may change anything.
    pub(super) writes: bool,
}

impl Facts {
    /// As of a snapshot.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn of(planner: &Planner, snapshot: &Snapshot) -> Result<Self> {
        let held = Held::of(planner, snapshot)?;
        let said = planner.said();
        let settings = said.settings().iter().cloned().collect();
        let mut facts = Facts { writes: said.writes, settings, ..Facts::default() };
        shapes().for_each(|shape| facts.name(shape.number, shape.name));
        for table in &held.tables {
            facts.name(held.table_number(table), &table.name);
            for index in shown_indexes(table) {
                let number = held.index_number(table, index);
                facts.name(number, &index.name);
                let told = (keys::index_definition(table, index), keys::index_columns(table, index));
                facts.indexes.insert(number, told);
            }
            facts.constraints_of(&held, table);
        }
        for view in &held.views {
            let number = held.view_number(view);
            facts.name(number, &view.name);
            facts.views.insert(number, keys::view_definition(view));
        }
        Ok(facts)
    }

    fn name(&mut self, number: u32, name: &str) {
        self.names.insert(number, name.to_owned());
        self.numbers.insert(name.to_owned(), number);
    }

    fn constraints_of(&mut self, held: &Held, table: &counterfoil_relation::Table) {
        for key in table.primary_key.iter().chain(&table.uniques) {
            let number = held.numbers.get(&Object::Key(table.id, key.index));
            self.constraints.insert(number, keys::key_definition(table, key));
        }
        for check in &table.checks {
            let number = held.numbers.get(&Object::Check(table.id, check.name.clone()));
            self.constraints.insert(number, keys::check_definition(check));
        }
        for key in &table.foreign_keys {
            let number = held.numbers.get(&Object::Reference(table.id, key.name.clone()));
            let told = keys::reference_definition(held, table, key);
            told.into_iter().for_each(|told| drop(self.constraints.insert(number, told)));
        }
        for column in table.columns.iter().filter(|column| column.identity.is_some()) {
            let name = relations::sequence_name(table, column);
            let number = held.numbers.get(&Object::Sequence(table.id, column.id));
            self.numbers.entry(name.clone()).or_insert(number);
            self.names.insert(number, name.clone());
            self.sequences.insert((table.name.clone(), column.name.clone()), name);
        }
    }

    /// The number of a relation by a name as SQL writes it.
    pub(super) fn relation(&self, text: &str) -> Option<u32> {
        let parts = parse_ident(text)?;
        let name = match parts.as_slice() {
            [name] => name,
            [schema, name] if schema == crate::SCHEMA || schema == super::SCHEMA => name,
            _ => return None,
        };
        self.numbers.get(name).copied()
    }

    /// The name of a relation as SQL writes it.
    pub(super) fn relation_name(&self, number: u32) -> Option<String> {
        self.names.get(&number).map(|name| quote_ident(name))
    }

    pub(super) fn constraint(&self, number: u32) -> Option<&String> {
        self.constraints.get(&number)
    }

    pub(super) fn index(&self, number: u32) -> Option<&String> {
        self.indexes.get(&number).map(|(told, _)| told)
    }

    /// A column of an index, counted from 1.
    pub(super) fn index_column(&self, number: u32, place: usize) -> Option<&String> {
        self.indexes.get(&number).and_then(|(_, columns)| columns.get(place.checked_sub(1)?))
    }

    pub(super) fn view(&self, number: u32) -> Option<&String> {
        self.views.get(&number)
    }

    /// A setting of the session.
    pub(super) fn setting(&self, name: &str) -> Option<&String> {
        self.settings.get(&name.to_ascii_lowercase())
    }

    /// What counts a column up, as SQL writes it.
    pub(super) fn sequence(&self, table: &str, column: &str) -> Option<String> {
        let table = self.names.get(&self.relation(table)?)?;
        let name = self.sequences.get(&(table.clone(), column.to_owned()))?;
        Some(format!("{}.{}", crate::SCHEMA, quote_ident(name)))
    }
}

/// The number of a schema.
pub(super) fn schema(name: &str) -> Option<u32> {
    match parse_ident(name)?.as_slice() {
        [name] if name == crate::SCHEMA => Some(PUBLIC),
        [name] if name == super::SCHEMA => Some(PG_CATALOG),
        [name] if name == crate::INFORMATION => Some(super::numbers::INFORMATION),
        _ => None,
    }
}

/// The name of a schema.
pub(super) fn schema_name(number: u32) -> Option<&'static str> {
    match number {
        PUBLIC => Some(crate::SCHEMA),
        PG_CATALOG => Some(super::SCHEMA),
        super::numbers::INFORMATION => Some(crate::INFORMATION),
        _ => None,
    }
}

/// The name of a user.
pub(super) fn user_name(number: u32) -> String {
    if number == OWNER { crate::functions::USER.into() } else { format!("unknown (OID={number})") }
}
