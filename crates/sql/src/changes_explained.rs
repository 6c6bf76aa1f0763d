//! EXPLAIN of a change: the query that finds its rows and their new values, which is what is planned of it.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::{Insert, Query, SetExpr, Statement, TableObject, With};

use crate::change::{self, TARGET};
use crate::error::{Error, Result};
use crate::parameters;
use crate::planner;
use crate::session::Session;
use crate::statement;
use crate::value::Value;

/// What a change does, and how it finds what it is about.
pub(crate) struct ChangePlan {
    /// `Update`, `Delete`, `Insert`.
    pub verb: &'static str,
    /// The table that it changes.
    pub table: String,
    /// None: its rows are written in the statement.
    pub plan: Option<Arc<dyn ExecutionPlan>>,
}

impl Session {
    /// How a statement would change what it changes; none: it is no change.
    pub(crate) fn plan_of_change(&mut self, statement: &Statement, given: &[Value]) -> Result<Option<ChangePlan>> {
        let (with, statement) = match statement {
            Statement::Query(query) => match query.body.as_ref() {
                SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => (query.with.clone(), inner),
                _ => return Ok(None),
            },
            _ => (None, statement),
        };
        let (verb, name, query) = match statement {
            Statement::Update(update) => {
                let (name, alias) = change::named_by_update(update)?;
                let view = self.view()?;
                let table = planner::rows_of(self.engine(), &view, &name)?;
                let query = self.question_of_update(with, update, &table, &alias)?;
                ("Update", name, Some(query))
            }
            Statement::Delete(delete) => {
                let (name, alias) = change::named_by_delete(delete)?;
                ("Delete", name, Some(change::question_of_delete(with, delete, &alias)))
            }
            Statement::Insert(insert) => {
                let (name, query) = asked_by_insert(with, insert)?;
                ("Insert", name, query)
            }
            _ => return Ok(None),
        };
        let snapshot = self.view()?;
        let table = planner::rows_of(self.engine(), &snapshot, &name)?;
        let plan = |query: Query| {
            let mut statement = Statement::Query(Box::new(query));
            parameters::bind(&mut statement, given)?;
            let extra = vec![(TARGET.to_owned(), self.planner.numbered(table.clone(), &snapshot))];
            let plan = self.planner.plan(statement, &snapshot, extra)?;
            self.planner.physical(&plan)
        };
        let plan = query.map(plan).transpose()?;
        Ok(Some(ChangePlan { verb, table: table.name.clone(), plan }))
    }
}

/// The table to which rows come, and the query that they come from.
fn asked_by_insert(with: Option<With>, insert: &Insert) -> Result<(String, Option<Query>)> {
    let TableObject::TableName(name) = &insert.table else {
        return Err(Error::NotSupported("INSERT into anything but a table".into()));
    };
    let source = insert.source.as_deref().filter(|query| !matches!(query.body.as_ref(), SetExpr::Values(_)));
    let query = source.cloned().map(|query| Query { with: with.or(query.with.clone()), ..query });
    Ok((statement::table_name(name)?, query))
}
