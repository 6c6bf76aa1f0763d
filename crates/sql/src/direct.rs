//! Answers simple questions without the query library: columns of rows that an index names, and of the rows that these join along
//! foreign keys. Parsing, optimizing and planning in general takes a hundred times longer than reading such a row.
//!
//! ```text
//! statement -- reading --> Question -- bound to tables --> TableScan, or JoinedScan along foreign keys --> rows
//!      \                      \                                 \
//!       any other shape        a view, a series, a value of      no index names few rows
//!                              another type
//!                               -------> the query library
//! ```
//!
//! It never answers otherwise than the library does: both read by the same scans, and whatever is not surely understood is left to
//! the library (`SET enable_direct_queries = off` leaves it everything).

mod binding;
mod question;
mod reading;
mod refine;
mod refining;
mod writing;

use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::Table;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::sql::sqlparser::ast::Statement;

use crate::engine::Rows;
use crate::error::{Error, Result};
use crate::running;
use crate::session::{Outcome, Session};
use crate::value::Value;
use binding::{Bound, Near};
pub use question::{ColumnName, Condition, Question, column};
pub(crate) use reading::constant;

impl Session {
    /// The rows of a statement that is a simple question; none of any other, and of one whose answer is not near at hand.
    pub(crate) fn directly(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Option<Rows>> {
        match self.direct_scan(statement, parameters)? {
            Some(scan) => self.read(&scan),
            None => Ok(None),
        }
    }

    /// The rows of a question, as a statement.
    ///
    /// # Errors
    /// As those of the query that asks the same.
    pub fn ask_question(&mut self, question: &Question) -> Result<Rows> {
        self.planner.interrupt.clear();
        let rows = self.begin_statement().and_then(|()| {
            self.with_memory(|session| match session.scan_for(question)? {
                Some(scan) => session.read(&scan),
                None => Ok(None),
            })
        });
        match rows {
            Ok(Some(rows)) => Ok(rows),
            Ok(None) => self.ask_library(question),
            Err(error) => {
                self.guard.transaction.fail();
                Err(error)
            }
        }
    }

    fn ask_library(&mut self, question: &Question) -> Result<Rows> {
        let (text, values) = writing::statement(question);
        match self.run_one(&text, &values)? {
            Outcome::Rows(rows) => Ok(rows),
            _ => Err(Error::Bug("a question without rows".into())),
        }
    }

    /// The scan that answers such a statement.
    pub(crate) fn direct_scan(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Option<Near>> {
        if !self.settings.enable_direct_queries {
            return Ok(None);
        }
        let Some(question) = reading::question(statement, parameters, self.names) else { return Ok(None) };
        self.scan_for(&question)
    }

    fn scan_for(&mut self, question: &Question) -> Result<Option<Near>> {
        let snapshot = self.view()?;
        self.scan_as_of(question, &snapshot, None)
    }

    fn scan_as_of(
        &self,
        question: &Question,
        snapshot: &Snapshot,
        target: Option<&Arc<Table>>,
    ) -> Result<Option<Near>> {
        let Some(bound) = Bound::to_tables(question, &self.guard.engine, snapshot, target)? else { return Ok(None) };
        let joins = self.settings.enable_foreign_key_joins;
        // As the library plans: whatever goes wrong there is an error of the statement.
        let (options, means) = (self.planner.options(), &self.planner.means);
        let scan = async { bound.scan(options, means, joins) };
        self.guard.engine.executor.run(&self.planner.interrupt, scan)
    }

    /// Begins to read the rows that a statement is to change, as of a snapshot: `target` is the table that it names
    /// [`TARGET`](crate::change::TARGET). None where that takes planning.
    pub(crate) fn stream_directly(
        &self,
        statement: &Statement,
        parameters: &[Value],
        snapshot: &Snapshot,
        target: &Arc<Table>,
    ) -> Result<Option<SendableRecordBatchStream>> {
        if !self.settings.enable_direct_queries {
            return Ok(None);
        }
        let Some(question) = reading::question(statement, parameters, self.names) else { return Ok(None) };
        let scan = self.scan_as_of(&question, snapshot, Some(target))?;
        scan.map(|scan| self.begin(&scan)).transpose()
    }

    fn begin(&self, scan: &Near) -> Result<SendableRecordBatchStream> {
        let state = &self.planner.state;
        let pace = (state.config().batch_size(), state.config().target_partitions());
        running::start_with(state, |hold| scan.stream(pace, hold))
    }

    /// The rows of a scan; none where it needs more memory than it has and the library may do with less: its records may be longer.
    /// Those of a transaction's own uncommitted state are read at once: what comes next may undo them.
    fn read(&mut self, scan: &Near) -> Result<Option<Rows>> {
        let mut stream = self.begin(scan)?;
        let schema = stream.schema();
        if matches!(scan, Near::Answered(_)) {
            stream = match self.planner.begun(stream) {
                Err(Error::Memory(_)) if !self.planner.options().is_little => return Ok(None),
                stream => stream?,
            };
        }
        if self.guard.transaction.is_writing() {
            stream = self.planner.read_ahead(stream)?;
        }
        let (executor, interrupt) = (self.guard.engine.executor.clone(), self.planner.interrupt.clone());
        Ok(Some(Rows::stream(schema, stream, executor, interrupt)))
    }
}
