//! One connection: runs statements one after another.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use counterfoil_log::{Snapshot, View as _, record_space};
use counterfoil_relation::Named;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{SetExpr, Statement};

use crate::asked::is_locking;
use crate::catalog::set_config;
use crate::copy::CopyOut;
use crate::cursors::Cursor;
use crate::described::Described;
use crate::dispersed;
use crate::engine::{Engine, Rows};
use crate::error::{Error, Result};
use crate::explain::Prepared;
use crate::interrupt::Interrupt;
use crate::naming::{self, Names};
use crate::on_conflict::Checked;
use crate::parameters;
use crate::planner::Planner;
use crate::published::Verified;
use crate::rights::Rights;
use crate::series;
use crate::settings::{Kept, Settings};
use crate::statement::{self, Cache};
use crate::transaction::{Change, Guard, Purpose};
use crate::types;
use crate::value::Value;

/// Texts up to this long cannot nest so deep that they would need a stack of their own.
const SHORT_BYTES: usize = 512;
/// The stack on which longer texts run.
pub(crate) const STACK_BYTES: usize = 64 << 20;
/// The stack that the others find at least. A frame of code that is not optimised is several times as large, and so is what
/// rules of 900 terms take: more than the two megabytes of a thread. Where it is there, a short statement asks for none.
const STACK_LEFT_MIN: usize = if cfg!(debug_assertions) { 16 << 20 } else { 1 << 20 };

/// What a statement answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// Rows, to be read batch by batch.
    Rows(Rows),
    /// How many rows were changed.
    Count {
        /// The statement, as PostgreSQL tags it: `INSERT`, `UPDATE`, `DELETE`, `COPY`, `SELECT`.
        tag: &'static str,
        /// Rows changed.
        rows: u64,
    },
    /// The text of COPY ... TO STDOUT, piece by piece.
    CopyOut(CopyOut),
    /// Done, with nothing to count: the statement's tag.
    Done(&'static str),
}

/// One connection to a database.
///
/// It is used by one thread at a time; other connections read beside it, and one of them all writes at a time.
pub struct Session {
    pub(crate) guard: Guard,
    pub(crate) planner: Planner,
    pub(crate) settings: Settings,
    /// The settings with which it began.
    pub(crate) first: Settings,
    /// What becomes of them when the transaction ends.
    pub(crate) kept: Option<Kept>,
    /// Whether it does what no statement says: then it writes where transactions only read.
    pub(crate) is_of_itself: bool,
    pub(crate) rights: Rights,
    pub(crate) names: Names,
    pub(crate) prepared: std::collections::HashMap<String, Prepared>,
    pub(crate) cursors: std::collections::HashMap<String, Cursor>,
    pub(crate) notices: Vec<String>,
    pub(crate) cache: Cache,
    pub(crate) checked: Checked,
    pub(crate) described: Described,
    /// Dispersed tables of which clouds are told once it is committed; and those that were dropped, by their numbers there: whether so many
    /// clouds have heard before that nobody has gone on with them.
    pub(crate) untold: std::collections::HashSet<counterfoil_relation::TableId>,
    pub(crate) dropped: std::collections::BTreeMap<[u8; 16], bool>,
    /// Dispersed tables that no other client changes while this session does.
    pub(crate) leased: dispersed::Leased,
}

impl Session {
    /// A connection to the database of an engine.
    ///
    /// # Errors
    /// [`Error::Bug`] if the query library cannot be set up.
    pub fn new(engine: Arc<Engine>) -> Result<Self> {
        Session::with_rights(engine, Rights::ALL)
    }

    /// A connection of the database itself: it may name the tables in which a publisher keeps its keys.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn own(engine: Arc<Engine>) -> Result<Self> {
        let mut session = Session::new(engine)?;
        session.cache.is_own = true;
        session.planner.is_own = true;
        Ok(session)
    }

    /// A connection that may do no more than this.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn with_rights(engine: Arc<Engine>, rights: Rights) -> Result<Self> {
        let planner = Planner::new(engine.clone())?;
        let guard = Guard { transaction: Default::default(), engine };
        let mut session = Session {
            guard,
            planner,
            settings: Settings::default(),
            first: Settings::default(),
            kept: None,
            is_of_itself: false,
            rights,
            names: Names::default(),
            prepared: Default::default(),
            cursors: Default::default(),
            notices: Vec::new(),
            cache: Cache::default(),
            checked: Checked::default(),
            described: Described::default(),
            untold: Default::default(),
            dropped: Default::default(),
            leased: dispersed::Leased::default(),
        };
        session.tell_planner();
        Ok(session)
    }

    /// The engine this session uses.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.guard.engine
    }

    /// A handle with which another thread interrupts what this session is doing.
    pub fn interrupt(&self) -> Interrupt {
        self.planner.interrupt.clone()
    }

    /// Has `is_called_off` asked ten times a second while a query runs, on the thread that waits for it and holding nothing; true
    /// ends it like an interrupt. For callers whose signals reach one thread alone, the one that waits.
    pub fn ask_while_waiting(&mut self, is_called_off: impl Fn() -> bool + Send + Sync + 'static) {
        self.planner.interrupt.is_called_off = Some(Arc::new(is_called_off));
    }

    /// Whether a transaction is open, and whether it has failed and waits for ROLLBACK.
    pub fn transaction_state(&self) -> TransactionState {
        match (self.guard.transaction.in_block(), self.guard.transaction.has_failed()) {
            (false, _) => TransactionState::Idle,
            (true, false) => TransactionState::Open,
            (true, true) => TransactionState::Failed,
        }
    }

    /// From now on columns of results that the query gives no name to are called as PostgreSQL calls them: `count` and not
    /// `count(*)`.
    pub fn name_as_postgresql(&mut self) {
        self.names = Names::Figured;
        self.described = Described::default();
    }

    /// A transaction that is open takes nothing but ROLLBACK from now on: something that belongs to it went wrong elsewhere.
    pub fn fail_transaction(&mut self) {
        self.guard.transaction.fail();
    }

    /// What the statements of the last run have to say beside their answers, such as that points were kept apart.
    pub fn take_notices(&mut self) -> Vec<String> {
        let mut notices = std::mem::take(&mut self.notices);
        let (verdicts, notes) = self.planner.verdicts.untold();
        if let Some(verifier) = self.guard.engine.verifier.get() {
            let told = |of: &Verified| format!("verified: {}: {}", of.table, verifier.told(&of.verdict));
            notices.extend(verdicts.iter().map(told));
        }
        notices.extend(notes);
        // A statement of several steps meets the same thing in each of them.
        let mut told = HashSet::new();
        notices.retain(|notice| told.insert(notice.clone()));
        notices
    }

    /// What is known of the rows of published tables that the last run has seen so far: a result that is read later adds to it.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verified> {
        self.planner.verdicts.all()
    }

    /// Runs a text of statements one after another and stops at the first error.
    ///
    /// Parameters `$1`, `$2` stand for `parameters` in order.
    ///
    /// # Errors
    /// The first statement's that failed; what statements before it committed stays.
    pub fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Outcome>> {
        self.planner.interrupt.clear();
        self.notices.clear();
        self.planner.verdicts.clear();
        with_stack(sql, || self.run_text(sql, parameters))
    }

    fn run_text(&mut self, sql: &str, parameters: &[Value]) -> Result<Vec<Outcome>> {
        let statements = match self.cache.parse(sql) {
            Ok(statements) => statements,
            Err(error) => {
                self.guard.transaction.fail();
                return Err(error);
            }
        };
        let mut outcomes = Vec::with_capacity(statements.len());
        for statement in statements.iter() {
            if !outcomes.is_empty() {
                let called_off = self.planner.interrupt.check();
                called_off.inspect_err(|_| self.guard.transaction.fail())?;
            }
            outcomes.push(self.run_statement(statement, parameters)?);
        }
        Ok(outcomes)
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a text of several statements; otherwise the statement's.
    pub fn run_one(&mut self, sql: &str, parameters: &[Value]) -> Result<Outcome> {
        let mut outcomes = self.run(sql, parameters)?;
        match outcomes.pop() {
            Some(outcome) if outcomes.is_empty() => Ok(outcome),
            None => Ok(Outcome::Done("")),
            Some(_) => Err(Error::Misuse("a text of several statements where one was expected".into())),
        }
    }

    /// Parses a statement and says how many parameters it wants: what preparing needs.
    ///
    /// # Errors
    /// [`Error::Sql`].
    pub fn prepare(&mut self, sql: &str) -> Result<usize> {
        with_stack(sql, || {
            let statements = self.cache.parse(sql)?;
            Ok(statements.iter().map(parameters::count).max().unwrap_or(0))
        })
    }

    fn run_statement(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Outcome> {
        if !ends_failure(statement) {
            self.begin_statement()?;
        }
        self.guard.transaction.take_room();
        let mut outcome = match is_control(statement) {
            true => self.dispatch(statement, parameters),
            false => self.with_memory(|session| session.dispatch(statement, parameters)),
        };
        let had_no_room = outcome.as_ref().is_err_and(Error::is_full) && is_insert(statement);
        if had_no_room && self.guard.transaction.take_room() {
            // Nothing of it is there, and the oldest points of a table that is kept as long as there is room have gone for it.
            outcome = self.dispatch(statement, parameters);
        }
        if outcome.is_err() {
            self.guard.transaction.fail();
        }
        self.keep_seen();
        self.tell_clouds();
        outcome
    }

    /// Writes what was seen of published tables while a statement had the writer, as soon as it has not.
    fn keep_seen(&self) {
        if let (Some(verifier), false) = (self.guard.engine.verifier.get(), self.guard.transaction.is_writing()) {
            verifier.keep_seen().into_iter().for_each(|note| self.planner.verdicts.note(note));
        }
    }

    /// What comes first in every statement: nothing runs in a transaction that has failed, and clocks start.
    pub(crate) fn begin_statement(&mut self) -> Result<()> {
        if self.guard.transaction.has_failed() {
            return Err(Error::Failed);
        }
        self.start_clock();
        self.planner.is_writing = self.guard.transaction.is_writing();
        self.planner.interrupt.end_after(self.settings.statement_timeout);
        Ok(())
    }

    /// `now()` is the start of the transaction, in microseconds like every TIMESTAMP.
    fn start_clock(&mut self) {
        let state = &mut self.planner.state;
        state.mark_start_execution();
        let clock = &mut state.execution_props_mut().query_execution_start_time;
        *clock = Some(self.guard.engine.options.clock.now().into());
        *clock = clock.map(|time| time - Duration::from_nanos(u64::from(time.timestamp_subsec_nanos() % 1000)));
        if let Some(block) = self.guard.transaction.block() {
            match &block.clock {
                Some(clock) => {
                    state.execution_props_mut().query_execution_start_time = clock.query_execution_start_time;
                }
                None => block.clock = Some(state.execution_props().clone()),
            }
        }
    }

    pub(crate) fn dispatch(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Outcome> {
        if let Some(block) = self.guard.transaction.block() {
            block.has_asked |= asks(statement);
        }
        match statement {
            Statement::Query(query) => match query.body.as_ref() {
                SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) | SetExpr::Merge(inner) => {
                    self.change_with(query.with.clone(), inner, parameters)
                }
                _ => self.query(statement, parameters),
            },
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => {
                self.change_with(None, statement, parameters)
            }
            Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. } => self.control(statement),
            Statement::Declare { stmts } => self.declare(stmts, parameters),
            Statement::Fetch { name, direction, into: None, .. } => self.fetch(name, direction),
            Statement::Close { cursor } => self.close(cursor),
            Statement::Discard { object_type } => self.discard(object_type),
            // Nobody can listen.
            Statement::UNLISTEN { .. } => Ok(Outcome::Done("UNLISTEN")),
            Statement::Explain { .. } => self.explain(statement, parameters),
            Statement::Set(set) => self.set(set),
            Statement::Reset(reset) => self.reset(reset),
            Statement::Copy { .. } => self.copy(statement),
            Statement::Call(function) => self.call(function),
            Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Deallocate { .. } => {
                self.prepared_statement(statement, parameters)
            }
            Statement::ShowVariable { .. }
            | Statement::ShowTables { .. }
            | Statement::ShowColumns { .. }
            | Statement::ShowViews { .. }
            | Statement::ShowSchemas { .. }
            | Statement::ShowDatabases { .. }
            | Statement::ShowCreate { .. }
            | Statement::ExplainTable { .. } => self.show(statement),
            _ => self.define(statement, parameters),
        }
    }

    /// Runs a query.
    pub(crate) fn query(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Outcome> {
        if self.guard.transaction.fixes_what_it_sees() {
            self.follow(statement)?;
        }
        if let Some(rows) = self.directly(statement, parameters)? {
            return Ok(Outcome::Rows(rows));
        }
        let mut statement = statement.clone();
        // Named first: a column is called what the text says, whatever its parameters are.
        naming::name_columns(&mut statement, self.names);
        parameters::bind(&mut statement, parameters)?;
        if set_config::is_asked(&statement) {
            return self.set_config(statement);
        }
        self.rows_of(statement).map(Outcome::Rows)
    }

    /// Whether statements see what others commit.
    pub(crate) fn sees_what_comes(&self) -> bool {
        self.guard.transaction.sees_what_comes()
    }

    /// Plans a query over what the next statement sees.
    pub(crate) fn plan_of(&mut self, statement: Statement) -> Result<LogicalPlan> {
        let locks = is_locking(&statement);
        if locks && self.guard.transaction.in_block() {
            // One transaction writes at a time: the rows cannot change once this one is it.
            self.change(|_, _| Ok(()))?;
        }
        self.follow(&statement)?;
        self.planner.is_writing = self.guard.transaction.is_writing();
        let snapshot = self.view()?;
        self.planner.plan(statement, &snapshot, Vec::new())
    }

    /// Starts a plan. Rows of a transaction's own uncommitted state are read at once: what comes next may undo them.
    pub(crate) fn rows(&mut self, plan: &LogicalPlan) -> Result<Rows> {
        let is_writing = self.guard.transaction.is_writing();
        self.rows_read(plan, is_writing)
    }

    /// Starts a plan, or runs it to its end.
    pub(crate) fn rows_read(&mut self, plan: &LogicalPlan, at_once: bool) -> Result<Rows> {
        let mut stream = self.started(plan)?;
        if at_once {
            stream = self.planner.read_ahead(stream)?;
        }
        Ok(self.rows_from(plan, stream))
    }

    pub(crate) fn started(&mut self, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
        self.planner.stream(plan)
    }

    /// The rows of a plan, from a stream of them.
    pub(crate) fn rows_from(&self, plan: &LogicalPlan, stream: SendableRecordBatchStream) -> Rows {
        let schema = types::marked(&stream.schema(), plan.schema().as_arrow());
        Rows::stream(schema, stream, self.guard.engine.executor.clone(), self.planner.interrupt.clone())
    }

    /// Keeps bytes under a name in the users' record store, as a statement of this session.
    ///
    /// # Errors
    /// [`Error::Log`] for names and values that are too long, and what every change answers.
    pub fn put_record(&mut self, name: &[u8], value: &[u8]) -> Result<()> {
        if self.guard.transaction.has_failed() {
            return Err(Error::Failed);
        }
        let stored = self.change(|_, change| Ok(change.lease.put_record(record_space::USER, name, value)?));
        if stored.is_err() {
            self.guard.transaction.fail();
        }
        stored
    }

    /// Deletes records of the users' store, as a statement of this session, and answers how many of them there were.
    ///
    /// # Errors
    /// What every change answers.
    pub fn delete_records(&mut self, names: &[&[u8]]) -> Result<usize> {
        if self.guard.transaction.has_failed() {
            return Err(Error::Failed);
        }
        let deleted = self.freeing_change(|_, change| {
            let mut deleted = 0;
            for name in names {
                if change.lease.record(record_space::USER, name).is_some() {
                    change.lease.delete_record(record_space::USER, name)?;
                    deleted += 1;
                }
            }
            Ok(deleted)
        });
        if deleted.is_err() {
            self.guard.transaction.fail();
        }
        deleted
    }

    /// What the next statement sees, uncommitted changes of this session among it.
    ///
    /// # Errors
    /// Those of reading.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        self.view()
    }

    /// What the next statement sees.
    pub(crate) fn view(&mut self) -> Result<Snapshot> {
        let Guard { transaction, engine } = &mut self.guard;
        transaction.view(engine)
    }

    /// Runs a change: as a whole, or not at all.
    pub(crate) fn change<T>(&mut self, body: impl FnOnce(&mut Self, &mut Change) -> Result<T>) -> Result<T> {
        self.change_for(Purpose::Store, body)
    }

    /// Runs a change that adds rows to a table: together with those of other sessions, where the table says so.
    pub(crate) fn adding_change<T>(
        &mut self,
        table: &str,
        body: impl FnOnce(&mut Self, &mut Change) -> Result<T>,
    ) -> Result<T> {
        self.to_write()?;
        let Some(every) = self.commit_every(table)? else { return self.change(body) };
        let engine = self.guard.engine.clone();
        let lease = engine.writer(self.settings.lock_timeout, &self.planner.interrupt)?;
        let (lease, member) = engine.groups.join(&engine, lease)?;
        let mut change = Change::of_member(lease);
        match self.with_writer(|session| body(session, &mut change)) {
            Ok(value) => {
                engine.groups.wait(&engine, change.lease, every, &self.planner.interrupt)?;
                Ok(value)
            }
            Err(error) => {
                engine.groups.leave(&engine, change.lease, member, &error)?;
                Err(error)
            }
        }
    }

    /// Does something while this session has the writer.
    fn with_writer<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let was_writing = std::mem::replace(&mut self.planner.is_writing, true);
        let done = body(self);
        self.planner.is_writing = was_writing;
        done
    }

    /// How long a statement that adds rows to a table waits for others.
    fn commit_every(&mut self, table: &str) -> Result<Option<Duration>> {
        if self.guard.transaction.in_block() || !self.settings.synchronous_commit {
            return Ok(None);
        }
        let view = self.view()?;
        match self.guard.engine.relations.named(&view, statement::plain(table)).map_err(Error::Relation)? {
            Some(Named::Table(table)) => series::Told::table(&table).commit_every(),
            _ => Ok(None),
        }
    }

    /// Runs a change that only deletes: it goes on where the medium is full.
    pub(crate) fn freeing_change<T>(&mut self, body: impl FnOnce(&mut Self, &mut Change) -> Result<T>) -> Result<T> {
        self.change_for(Purpose::Free, body)
    }

    fn change_for<T>(&mut self, purpose: Purpose, body: impl FnOnce(&mut Self, &mut Change) -> Result<T>) -> Result<T> {
        self.to_write()?;
        let Guard { transaction, engine } = &mut self.guard;
        let writer = || engine.writer(self.settings.lock_timeout, &self.planner.interrupt);
        let mut change = transaction.change(engine, writer, purpose)?;
        let result = self.with_writer(|session| body(session, &mut change));
        let Guard { transaction, engine } = &mut self.guard;
        match result {
            Ok(value) => {
                transaction.keep(engine, change, self.settings.synchronous_commit)?;
                Ok(value)
            }
            Err(error) => {
                transaction.undo(engine, change, &error)?;
                Err(error)
            }
        }
    }
}

/// Whether a statement looks at tables, or changes them: what only says how others are to run does not.
fn asks(statement: &Statement) -> bool {
    !is_control(statement)
        && !matches!(
            statement,
            Statement::Set(_)
                | Statement::Reset(_)
                | Statement::ShowVariable { .. }
                | Statement::Prepare { .. }
                | Statement::Deallocate { .. }
                | Statement::Discard { .. }
                | Statement::Close { .. }
                | Statement::UNLISTEN { .. }
        )
}

/// Whether a statement begins or ends a transaction, or a part of one: it is done once.
fn is_control(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. }
    )
}

/// Does something with a text. What a long one says may nest deep, and so may what a short one names (a prepared statement,
/// the rules of a table); the stack of the caller's thread may be small.
pub(crate) fn with_stack<T>(sql: &str, body: impl FnOnce() -> T) -> T {
    with_stack_for(sql.len(), body)
}

/// The same for a text of so many bytes.
pub(crate) fn with_stack_for<T>(bytes: usize, body: impl FnOnce() -> T) -> T {
    match bytes <= SHORT_BYTES {
        true => stacker::maybe_grow(STACK_LEFT_MIN, STACK_BYTES, body),
        false => stacker::grow(STACK_BYTES, body),
    }
}

/// What a session is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// No transaction.
    Idle,
    /// Between BEGIN and COMMIT.
    Open,
    /// A statement failed since BEGIN.
    Failed,
}

fn is_insert(statement: &Statement) -> bool {
    match statement {
        Statement::Query(query) => matches!(query.body.as_ref(), SetExpr::Insert(_)),
        statement => matches!(statement, Statement::Insert(_)),
    }
}

/// Whether a failed transaction takes this statement.
fn ends_failure(statement: &Statement) -> bool {
    matches!(statement, Statement::Commit { .. } | Statement::Rollback { .. })
}
