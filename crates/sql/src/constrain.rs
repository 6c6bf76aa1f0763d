//! ALTER TABLE ADD CONSTRAINT, where the rows that are there keep the rule or it is refused, and DROP CONSTRAINT.

use counterfoil_relation::{self as relation, ColumnId, NewConstraint, Rule, Table, Violation};
use datafusion::sql::sqlparser::ast::TableConstraint;

use crate::error::{Error, Result};
use crate::series;
use crate::session::Session;
use crate::statement::{self, ident};
use crate::transaction::Change;

impl Session {
    /// Adds a constraint to a table; answers the table's name.
    pub(crate) fn add_constraint(
        &mut self,
        change: &mut Change,
        table: &Table,
        constraint: &TableConstraint,
        not_valid: bool,
    ) -> Result<String> {
        if not_valid {
            return Err(Error::NotSupported("NOT VALID: every row keeps the constraints of its table".into()));
        }
        series::keep_constraints(table)?;
        let new = self.added_constraint(table, constraint)?;
        let relations = self.engine().relations.clone();
        let made = relations.add_constraint(&mut *change.lease, table, &new).map_err(Error::Relation)?;
        // Keys are held against the rows by the index that was just made.
        let (query, rule, name) = match &new {
            NewConstraint::Check(_) => match made.checks.last() {
                Some(check) => (breaking_check(&made, &check.sql), Rule::Check, check.name.clone()),
                None => return Err(Error::Bug("a check that was added is not there".into())),
            },
            NewConstraint::ForeignKey(new) => match made.foreign_keys.last() {
                Some(key) if key.enforced => {
                    let parent = relations.table(&*change.lease, &new.parent).map_err(Error::Relation)?;
                    let parent = parent.ok_or_else(|| Error::Bug("the table of a foreign key is not there".into()))?;
                    (orphans(&made, &parent, key), Rule::Reference, key.name.clone())
                }
                Some(_) => return Ok(made.name.clone()),
                None => return Err(Error::Bug("a foreign key that was added is not there".into())),
            },
            NewConstraint::PrimaryKey(_) | NewConstraint::Unique(_) => return Ok(made.name.clone()),
        };
        if self.answers_a_row(change, &query)? {
            let columns = match &new {
                NewConstraint::ForeignKey(key) => key.columns.clone(),
                _ => Vec::new(),
            };
            let violation = Violation { rule, constraint: name, table: made.name.clone(), columns };
            return Err(Error::Relation(relation::Error::from(violation)));
        }
        Ok(made.name.clone())
    }

    /// Drops a constraint of a table; answers the table's name.
    pub(crate) fn drop_constraint(
        &mut self,
        change: &mut Change,
        table: &Table,
        name: &str,
        (if_exists, cascade): (bool, bool),
    ) -> Result<String> {
        series::keep_constraints(table)?;
        let relations = &self.engine().relations;
        let dropped = relations.drop_constraint(&mut *change.lease, table, name, cascade).map_err(Error::Relation)?;
        match dropped {
            None if !if_exists => Err(Error::Sql(format!("table {} has no constraint {name}", table.name))),
            _ => Ok(table.name.clone()),
        }
    }

    /// Whether a query of ours answers a row.
    pub(crate) fn answers_a_row(&mut self, change: &mut Change, sql: &str) -> Result<bool> {
        let statement = statement::parse(sql)?.pop().ok_or_else(|| Error::Bug("a query of ours is empty".into()))?;
        let snapshot = change.lease.pending();
        let plan = self.planner.plan(statement, &snapshot, Vec::new())?;
        Ok(self.planner.collect(&plan)?.iter().any(|batch| batch.num_rows() > 0))
    }
}

/// Asks for a row that breaks a check. One of which it is not known keeps it.
fn breaking_check(table: &Table, condition: &str) -> String {
    format!("SELECT 1 FROM {} WHERE NOT ({condition}) LIMIT 1", ident(&table.name))
}

/// Asks for a row whose reference leads nowhere.
fn orphans(child: &Table, parent: &Table, key: &relation::ForeignKey) -> String {
    let name = |table: &Table, id: &ColumnId| {
        table.columns.iter().find(|column| column.id == *id).map(|column| ident(&column.name).to_string())
    };
    let pairs: Vec<(String, String)> = key
        .columns
        .iter()
        .zip(&key.parent_columns)
        .filter_map(|(own, other)| name(child, own).zip(name(parent, other)))
        .collect();
    let given: Vec<String> = pairs.iter().map(|(own, _)| format!("c.{own} IS NOT NULL")).collect();
    let equal: Vec<String> = pairs.iter().map(|(own, other)| format!("p.{other} = c.{own}")).collect();
    let (own, other, given, equal) =
        (ident(&child.name), ident(&parent.name), given.join(" AND "), equal.join(" AND "));
    format!("SELECT 1 FROM {own} c WHERE {given} AND NOT EXISTS (SELECT 1 FROM {other} p WHERE {equal}) LIMIT 1")
}
