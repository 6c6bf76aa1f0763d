//! Queries of rows that others let go of while clouds are asked for them: an UPDATE lays rows anew, and who reads the old ones meanwhile finds
//! them gone. Before its first rows are there a query can be asked again, of what is there then.

use std::sync::Arc;

use counterfoil_relation::Table;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::Statement;
use futures::StreamExt;

use crate::engine::Rows;
use crate::error::{Error, Result};
use crate::session::Session;

/// How often a query is asked. Whoever writes without end is as fast as who reads.
const TRIES: usize = 8;

impl Session {
    /// Starts a query, as often as it takes.
    ///
    /// # Errors
    /// [`Error::Conflict`] if others were faster each time, or where all statements see one state; those of planning and reading.
    pub(crate) fn rows_of(&mut self, statement: Statement) -> Result<Rows> {
        for _ in 1..TRIES {
            let plan = self.plan_of(statement.clone())?;
            let tables = self.dispersed_tables(&statement)?;
            if tables.is_empty() || !self.sees_what_comes() {
                return self.rows(&plan);
            }
            match self.begun_rows(&plan) {
                Err(Error::Conflict(_)) => self.follow_at_once(&tables)?,
                rows => return rows,
            }
        }
        let plan = self.plan_of(statement)?;
        self.rows(&plan)
    }

    /// Starts a plan and waits for its first rows.
    fn begun_rows(&mut self, plan: &LogicalPlan) -> Result<Rows> {
        let mut stream = self.started(plan)?;
        let first = self.planner.next(&mut stream)?;
        let schema = stream.schema();
        let all = futures::stream::iter(first.map(Ok)).chain(stream);
        Ok(self.rows_from(plan, Box::pin(RecordBatchStreamAdapter::new(schema, all))))
    }

    /// Learns what they have told, unless somebody writes here just now.
    ///
    /// # Errors
    /// Why it cannot be learned: asking again does not help.
    fn follow_at_once(&mut self, tables: &[Arc<Table>]) -> Result<()> {
        tables.iter().try_for_each(|table| match self.follow_table(table, true) {
            Err(Error::Locked(_)) => Ok(()),
            followed => followed,
        })
    }
}
