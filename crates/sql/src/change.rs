//! UPDATE and DELETE: a query finds the rows and their new values, all of them, and only then are they changed. Where
//! no other row is looked at to change one, it is done part by part, so that memory does not grow with the table: the
//! query reads a snapshot, which stays as it was.
//!
//! The query library's own hooks for this lose conditions; they are not implemented. What is used of it is a SELECT
//! over the table with the hidden column that numbers its rows.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use counterfoil_log::Snapshot;
use counterfoil_relation::{self as relation, RowBatch, RowId, Table};
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type, Schema};
use datafusion::catalog::TableProvider;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, BinaryOperator, Delete, Expr, FromTable, GroupByExpr, Query, Select, SelectFlavor,
    SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, Update, UpdateTableFromKind, Value as Literal, Visit,
    With, visit_expressions, visit_relations,
};

use crate::cast;
use crate::direct;
use crate::dispersed;
use crate::error::{Error, Result};
use crate::evaluate;
use crate::met::Met;
use crate::naming;
use crate::parameters;
use crate::planner;
use crate::provider::ROW_ID;
use crate::ram::Ram;
use crate::rows;
use crate::series;
use crate::session::{Outcome, Session};
use crate::statement::{self, fold, ident};
use crate::together::{DELETED_ROW_BYTES, Together, UPDATED_ROW_BYTES};
use crate::transaction::Change;
use crate::value::Value;

/// The name under which a statement's own table is planned.
pub(crate) const TARGET: &str = "__counterfoil_target";
/// The name under which changed rows are planned for RETURNING.
const CHANGED: &str = "__counterfoil_changed";

/// Rows that are changed at a time, where that makes no difference: about so many, and less where memory is little.
const PART_ROWS: usize = 1 << 16;
const PART_ROWS_LEAST: usize = 1 << 10;
/// Memory that there is for each of them.
const PART_ROW_BYTES: usize = 1 << 9;

/// What the expressions of a statement see, whichever of its parts they are worked out for.
pub(crate) struct Seen<'p> {
    /// Tables as they were when it began; none of one that has but one part.
    pub(crate) as_of: Option<Snapshot>,
    pub(crate) parameters: &'p [Value],
}

/// What a statement has changed so far.
pub(crate) struct Changed {
    pub(crate) table: Arc<Table>,
    pub(crate) alias: Option<String>,
    pub(crate) statement: relation::Statement<'static>,
    pub(crate) rows: u64,
    pub(crate) met: Met,
    /// Those of them that are not where they were meant to be.
    pub(crate) elsewhere: series::Elsewhere,
    gathers: bool,
    gathered: Vec<RecordBatch>,
    items: Vec<SelectItem>,
    /// What subqueries of RETURNING see: tables as they were when the statement began.
    before: Option<Snapshot>,
    parameters: Vec<Value>,
    answer: Option<(Arc<Schema>, Vec<RecordBatch>)>,
}

impl Changed {
    /// Nothing yet; `gathers`: RETURNING wants the rows.
    pub(crate) fn new(table: Arc<Table>, gathers: bool, parameters: &[Value]) -> Self {
        Changed {
            table,
            alias: None,
            statement: relation::Statement::new(),
            rows: 0,
            met: Met::default(),
            elsewhere: series::Elsewhere::default(),
            gathers,
            gathered: Vec::new(),
            items: Vec::new(),
            before: None,
            parameters: if gathers { parameters.to_vec() } else { Vec::new() },
            answer: None,
        }
    }

    /// Whether RETURNING wants the rows.
    pub(crate) fn gathers(&self) -> bool {
        self.gathers
    }

    /// Counts rows, and keeps them for RETURNING.
    pub(crate) fn add(&mut self, batch: RowBatch) -> Result<()> {
        self.rows += batch.count() as u64;
        if self.gathers {
            self.gathered.push(evaluate::record_batch(&self.table, &batch)?);
        }
        Ok(())
    }

    /// Ends the statement: what could only be checked now is, and RETURNING is answered.
    pub(crate) fn finish(mut self, session: &mut Session, change: &mut Change) -> Result<Self> {
        let statement = std::mem::take(&mut self.statement);
        let relations = session.engine().relations.clone();
        relations.finish(statement, &mut *change.lease).map_err(Error::Relation)?;
        let series::Elsewhere { ahead, expired } = self.elsewhere;
        if ahead > 0 {
            session.notices.push(series::notice_of_apart(&self.table, ahead));
        }
        if expired > 0 {
            session.notices.push(series::notice_of_expired(&self.table, expired));
        }
        if self.gathers {
            self.answer = Some(self.returned(session, change)?);
        }
        Ok(self)
    }

    fn returned(&mut self, session: &mut Session, change: &mut Change) -> Result<(Arc<Schema>, Vec<RecordBatch>)> {
        let empty = || evaluate::record_batch(&self.table, &RowBatch::new(self.table.layout(), 0));
        let schema =
            self.gathered.first().map_or_else(|| Ok(empty()?.schema()), |batch| Ok::<_, Error>(batch.schema()))?;
        let rows = concat_batches(&schema, &self.gathered)?;
        let extra = vec![(CHANGED.to_owned(), planner::batch_table(rows)?)];
        let alias = self.alias.clone().unwrap_or_else(|| self.table.name.clone());
        let mut query = select(None, self.items.clone(), vec![planner::select_from(CHANGED, &alias)], None);
        naming::name_query(&mut query, session.names);
        let mut statement = Statement::Query(Box::new(query));
        parameters::bind(&mut statement, &self.parameters)?;
        let snapshot = self.before.take().unwrap_or_else(|| change.lease.pending());
        let plan = session.planner.plan(statement, &snapshot, extra)?;
        let schema = Arc::new(session.planner.schema_of(&plan)?);
        Ok((schema, session.planner.collect(&plan)?))
    }
}

/// Refuses what RETURNING cannot tell where other tables are named beside the one that is changed.
fn check_returning(items: Option<&[SelectItem]>, alias: &str, names_others: bool) -> Result<()> {
    let Some(items) = items.filter(|_| names_others) else { return Ok(()) };
    if items.iter().any(|item| matches!(item, SelectItem::Wildcard(_))) {
        return Err(Error::NotSupported(format!("RETURNING * of several tables: write RETURNING {alias}.*")));
    }
    let is_other = |expr: &Expr| match expr {
        Expr::CompoundIdentifier(parts) if parts.len() == 2 && fold(&parts[0]) != alias => {
            ControlFlow::Break(fold(&parts[0]))
        }
        _ => ControlFlow::Continue(()),
    };
    let items = items.to_vec();
    if let ControlFlow::Break(other) = visit_expressions(&items, is_other)
        && !asks_others(&items)
    {
        return Err(Error::NotSupported(format!("RETURNING of {other}: it answers what became of {alias} alone")));
    }
    Ok(())
}

/// The table that an update changes, and what it is called there.
pub(crate) fn named_by_update(update: &Update) -> Result<(String, String)> {
    if update.limit.is_some() || !update.order_by.is_empty() {
        return Err(Error::NotSupported("LIMIT and ORDER BY in UPDATE: choose the rows in WHERE".into()));
    }
    if update.or.is_some() || update.output.is_some() || !update.table.joins.is_empty() {
        return Err(Error::NotSupported("UPDATE OR, OUTPUT and joins: write UPDATE ... FROM ... RETURNING".into()));
    }
    let (name, alias) = named(&update.table.relation)?;
    check_returning(update.returning.as_deref(), &alias, update.from.is_some())?;
    Ok((name, alias))
}

/// The table from which rows are deleted, and what it is called there.
pub(crate) fn named_by_delete(delete: &Delete) -> Result<(String, String)> {
    if delete.limit.is_some() || !delete.order_by.is_empty() {
        return Err(Error::NotSupported("LIMIT and ORDER BY in DELETE: choose the rows in WHERE".into()));
    }
    if delete.output.is_some() || !delete.tables.is_empty() {
        return Err(Error::NotSupported("OUTPUT and several tables in DELETE: write RETURNING and USING".into()));
    }
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
    let [TableWithJoins { relation, joins }] = tables.as_slice() else {
        return Err(Error::NotSupported("DELETE from several tables at once".into()));
    };
    if !joins.is_empty() {
        return Err(Error::NotSupported("joins in DELETE FROM: write USING".into()));
    }
    let (name, alias) = named(relation)?;
    check_returning(delete.returning.as_deref(), &alias, delete.using.is_some())?;
    Ok((name, alias))
}

/// The query for the numbers of rows that go.
pub(crate) fn question_of_delete(with: Option<With>, delete: &Delete, alias: &str) -> Query {
    let mut from = vec![planner::select_from(TARGET, alias)];
    from.extend(delete.using.iter().flatten().cloned());
    select(with, vec![column_item(alias, ROW_ID, ROW_ID)], from, delete.selection.clone())
}

/// Hands the items of RETURNING over.
pub(crate) fn returning_items(items: Option<&[SelectItem]>, change: &mut Change, changed: &mut Changed) {
    if let Some(items) = items {
        changed.items = items.to_vec();
        changed.before = asks_others(&changed.items).then(|| change.lease.pending());
    }
}

/// Whether tables are named in expressions, by subqueries.
pub(crate) fn asks_others(of: &impl Visit) -> bool {
    visit_relations(of, |_| ControlFlow::Break(())).is_break()
}

impl Session {
    /// INSERT, UPDATE or DELETE, with the WITH that stood before it.
    pub(crate) fn change_with(
        &mut self,
        with: Option<With>,
        statement: &Statement,
        parameters: &[Value],
    ) -> Result<Outcome> {
        match statement {
            Statement::Insert(insert) => self.insert(with, insert, parameters),
            Statement::Update(update) => self.update(with, update, parameters),
            Statement::Delete(delete) => self.delete(with, delete, parameters),
            _ => Err(Error::NotSupported(
                "MERGE: write INSERT ... ON CONFLICT, UPDATE ... FROM or DELETE ... USING".into(),
            )),
        }
    }

    /// The outcome of a change.
    pub(crate) fn changed(&mut self, tag: &'static str, changed: Changed) -> Result<Outcome> {
        Ok(match changed.answer {
            Some((schema, batches)) => Outcome::Rows(crate::engine::Rows::changed(tag, schema, batches)),
            None => Outcome::Count { tag, rows: changed.rows },
        })
    }

    /// Runs a query inside a change, over what a statement of it sees.
    pub(crate) fn collect_query(
        &mut self,
        change: &mut Change,
        query: Query,
        extra: Vec<(String, Arc<dyn TableProvider>)>,
        seen: &Seen<'_>,
    ) -> Result<Vec<RecordBatch>> {
        let plan = self.plan_query(change, query, extra, seen)?;
        self.planner.collect(&plan)
    }

    /// Plans a query inside a change.
    pub(crate) fn plan_query(
        &mut self,
        change: &mut Change,
        query: Query,
        extra: Vec<(String, Arc<dyn TableProvider>)>,
        seen: &Seen<'_>,
    ) -> Result<LogicalPlan> {
        let mut statement = Statement::Query(Box::new(query));
        parameters::bind(&mut statement, seen.parameters)?;
        let snapshot = seen.as_of.clone().unwrap_or_else(|| change.lease.pending());
        self.planner.plan(statement, &snapshot, extra)
    }

    /// Starts a query for rows of a table inside a change. It goes on seeing what was there when it began, whatever is changed meanwhile.
    fn stream_query(
        &mut self,
        change: &mut Change,
        query: Query,
        table: &Arc<Table>,
        parameters: &[Value],
    ) -> Result<SendableRecordBatchStream> {
        let mut statement = Statement::Query(Box::new(query));
        let snapshot = change.lease.pending();
        if let Some(stream) = self.stream_directly(&statement, parameters, &snapshot, table)? {
            return Ok(stream);
        }
        parameters::bind(&mut statement, parameters)?;
        let extra = vec![(TARGET.to_owned(), self.planner.numbered(table.clone(), &snapshot))];
        let plan = self.planner.plan(statement, &snapshot, extra)?;
        self.planner.stream(&plan)
    }

    fn update(&mut self, with: Option<With>, update: &Update, parameters: &[Value]) -> Result<Outcome> {
        let (name, alias) = named_by_update(update)?;
        self.lease_named(&name)?;
        self.follow(update)?;
        let changed = self.change(|session, change| {
            let table = planner::rows_of(session.engine(), &*change.lease, &name)?;
            session.update_in(change, with, update, (&table, &alias), parameters)
        })?;
        self.changed("UPDATE", changed)
    }

    /// Updates rows of a table inside a change.
    pub(crate) fn update_in(
        &mut self,
        change: &mut Change,
        with: Option<With>,
        update: &Update,
        (table, alias): (&Arc<Table>, &str),
        parameters: &[Value],
    ) -> Result<Changed> {
        let direct = match with.is_none() && update.from.is_none() {
            true => self.update_directly(change, table, alias, update, parameters)?,
            false => None,
        };
        let query = self.question_of_update(with, update, table, alias)?;
        let part_rows = self.part_rows(stands_alone(table, &update.assignments)?);
        let mut together =
            self.together(part_rows, update.returning.is_some(), UPDATED_ROW_BYTES, update.from.is_some());
        let mut changed = Changed::new(table.clone(), update.returning.is_some(), parameters);
        changed.alias = Some(alias.to_owned());
        returning_items(update.returning.as_deref(), change, &mut changed);
        let mut images = Images::new(table, update.from.is_some());
        let mut stream = match direct {
            Some((stream, constants)) => {
                images.constants = constants;
                stream
            }
            None => self.stream_query(change, query, table, parameters)?,
        };
        while let Some(batch) = self.planner.next(&mut stream)? {
            let (rows, bytes) = images.add(&batch)?;
            if !together.take(rows, bytes)? {
                images.take();
                continue;
            }
            if images.numbers.len() >= part_rows {
                apply_numbered(self, change, images.take(), &mut changed)?;
            }
        }
        together.check()?;
        apply_numbered(self, change, images.take(), &mut changed)?;
        changed.finish(self, change)
    }

    /// The query for the numbers of rows that an update is about, and their new values.
    pub(crate) fn question_of_update(
        &mut self,
        with: Option<With>,
        update: &Update,
        table: &Table,
        alias: &str,
    ) -> Result<Query> {
        let mut from = vec![planner::select_from(TARGET, alias)];
        if let Some(UpdateTableFromKind::BeforeSet(more) | UpdateTableFromKind::AfterSet(more)) = &update.from {
            from.extend(more.iter().cloned());
        }
        Ok(select(with, self.items_of_update(update, table, alias)?, from, update.selection.clone()))
    }

    fn items_of_update(&mut self, update: &Update, table: &Table, alias: &str) -> Result<Vec<SelectItem>> {
        let mut items = vec![column_item(alias, ROW_ID, ROW_ID)];
        items.extend(self.assigned_items(table, alias, &update.assignments)?);
        Ok(items)
    }

    /// Begins to read the rows of an update without planning, and what SET gives all of them alike.
    fn update_directly(
        &mut self,
        change: &mut Change,
        table: &Arc<Table>,
        alias: &str,
        update: &Update,
        parameters: &[Value],
    ) -> Result<Option<(SendableRecordBatchStream, Vec<Option<ScalarValue>>)>> {
        let mut items = self.items_of_update(update, table, alias)?;
        let constants = take_constants(table, alias, &mut items[1..], parameters);
        let query = select(None, items, vec![planner::select_from(TARGET, alias)], update.selection.clone());
        let snapshot = change.lease.pending();
        let query = Statement::Query(Box::new(query));
        let stream = self.stream_directly(&query, parameters, &snapshot, table)?;
        Ok(stream.map(|stream| (stream, constants)))
    }

    fn delete(&mut self, with: Option<With>, delete: &Delete, parameters: &[Value]) -> Result<Outcome> {
        let (name, alias) = named_by_delete(delete)?;
        self.lease_named(&name)?;
        self.follow(delete)?;
        let changed = self.freeing_change(|session, change| {
            let table = planner::rows_of(session.engine(), &*change.lease, &name)?;
            let query = question_of_delete(with, delete, &alias);
            let mut stream = session.stream_query(change, query, &table, parameters)?;
            let part_rows = session.part_rows(!table.is_referenced() && table.engine.is_none());
            let mut together =
                session.together(part_rows, delete.returning.is_some(), DELETED_ROW_BYTES, delete.using.is_some());
            let mut changed = Changed::new(table.clone(), delete.returning.is_some(), parameters);
            changed.alias = Some(alias);
            returning_items(delete.returning.as_deref(), change, &mut changed);
            let (mut seen, mut rows) = (HashSet::new(), Vec::new());
            while let Some(batch) = session.planner.next(&mut stream)? {
                // A row of one table alone comes once.
                let is_new = |number: &i128| delete.using.is_none() || seen.insert(*number);
                let before = rows.len();
                rows.extend(numbers(&batch).into_iter().filter(is_new));
                if !together.take(rows.len() - before, 0)? {
                    rows.clear();
                    continue;
                }
                if rows.len() >= part_rows {
                    apply_delete(session, change, &table, &std::mem::take(&mut rows), &mut changed)?;
                }
            }
            together.check()?;
            drop(stream);
            apply_delete(session, change, &table, &rows, &mut changed)?;
            changed.finish(session, change)
        })?;
        self.changed("DELETE", changed)
    }

    /// How many rows are changed at a time; `alone`: what becomes of one says nothing about another.
    pub(crate) fn part_rows(&self, alone: bool) -> usize {
        let of_ram = |ram: Ram| (ram.queries() / PART_ROW_BYTES).clamp(PART_ROWS_LEAST, PART_ROWS);
        if alone { self.planner.options().ram.map_or(PART_ROWS, of_ram) } else { usize::MAX }
    }

    /// Counts rows that are changed so many at a time: parts have their room, and what RETURNING answers is kept to the end. `repeats`:
    /// the query may answer a row more than once.
    fn together(&self, part_rows: usize, returns: bool, row_bytes: usize, repeats: bool) -> Together {
        let counts = part_rows == usize::MAX || returns;
        Together::new(self.planner.pool(), if counts { row_bytes } else { 0 }, repeats)
    }

    /// For each column of the table its new value: what SET says, else what it is.
    pub(crate) fn assigned_items(
        &mut self,
        table: &Table,
        alias: &str,
        assignments: &[Assignment],
    ) -> Result<Vec<SelectItem>> {
        let mut assigned: Vec<Option<Expr>> = vec![None; table.columns.len()];
        for assignment in assignments {
            for (name, value) in pairs(assignment)? {
                let place = place(table, &name)?;
                let column = &table.columns[place];
                if assigned[place].is_some() {
                    return Err(Error::Sql(format!("column {name} is set twice")));
                }
                let is_default = is_default(&value);
                if column.identity.is_some_and(|identity| identity.always) {
                    return Err(Error::NotSupported(format!("setting column {name}, which is GENERATED ALWAYS")));
                }
                assigned[place] = Some(match (&column.default, is_default) {
                    (_, false) => value,
                    (Some(sql), true) => evaluate::parse(sql)?,
                    (None, true) => Expr::Value(Literal::Null.into()),
                });
            }
        }
        let items = table.columns.iter().enumerate().zip(assigned).map(|((place, column), value)| {
            let expr = value.unwrap_or_else(|| column_expr(alias, &column.name));
            SelectItem::ExprWithAlias { expr, alias: ident(&format!("__counterfoil_{place}")) }
        });
        Ok(items.collect())
    }
}

/// Takes out of an update's items what is the same in every row, and has the column as it is read in its place: what is left is
/// a question to the table alone.
fn take_constants(
    table: &Table,
    alias: &str,
    items: &mut [SelectItem],
    parameters: &[Value],
) -> Vec<Option<ScalarValue>> {
    let mut constants = vec![None; table.columns.len()];
    for ((item, constant), column) in items.iter_mut().zip(&mut constants).zip(&table.columns) {
        let SelectItem::ExprWithAlias { expr, .. } = item else { continue };
        *constant = direct::constant(expr, parameters);
        if constant.is_some() {
            *expr = column_expr(alias, &column.name);
        }
    }
    constants
}

/// Gives the rows of these numbers their new images.
fn apply_numbered(
    session: &mut Session,
    change: &mut Change,
    (numbers, images): (Vec<i128>, RowBatch),
    changed: &mut Changed,
) -> Result<()> {
    let table = changed.table.clone();
    apply_update(session, change, &table, &numbers, images, changed)
}

/// Gives rows new images, after their checks.
pub(crate) fn apply_update(
    session: &mut Session,
    change: &mut Change,
    table: &Arc<Table>,
    rows: &[i128],
    images: RowBatch,
    changed: &mut Changed,
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    session.planner.check(table, &images)?;
    if dispersed::is_dispersed(table) {
        dispersed::update(session, change, table, rows, &images, changed)?;
        return changed.add(images);
    }
    if series::is_series(table) {
        let engine = session.engine();
        let expired = series::update(engine, &mut change.lease, table, rows, &images)?;
        changed.elsewhere.expired += expired;
        return changed.add(match expired {
            0 => images,
            _ => series::without_expired_rows(engine, &*change.lease, table, images, true)?,
        });
    }
    let (relations, rows) = (session.engine().relations.clone(), &row_ids(rows));
    let planner = &session.planner;
    let mut observer = |table: &Table, batch: &RowBatch| observed(planner.check(table, batch));
    let mut statement = relation::Statement::observed(&mut observer);
    relations.update_in(&mut statement, &mut *change.lease, table, rows, &images).map_err(Error::Relation)?;
    relations.finish(statement, &mut *change.lease).map_err(Error::Relation)?;
    changed.add(images)
}

fn row_ids(numbers: &[i128]) -> Vec<RowId> {
    numbers.iter().map(|number| RowId(*number as u64)).collect()
}

/// The numbers of rows that a query answered: its first column.
fn numbers(batch: &RecordBatch) -> Vec<i128> {
    let column = batch.column(0);
    match column.data_type() {
        DataType::Decimal128(..) => column.as_primitive::<Decimal128Type>().values().to_vec(),
        _ => column.as_primitive::<Int64Type>().values().iter().map(|number| i128::from(*number)).collect(),
    }
}

/// The rows with these numbers as they are, in this order.
pub(crate) fn fetch(session: &Session, change: &Change, table: &Arc<Table>, rows: &[i128]) -> Result<RecordBatch> {
    let engine = session.engine();
    if dispersed::is_dispersed(table) {
        return dispersed::fetch(session, &*change.lease, table, rows);
    }
    if series::is_series(table) {
        return series::fetch(&engine.series, &*change.lease, table, rows);
    }
    let block = engine.relations.fetch(&*change.lease, table, &row_ids(rows), None).map_err(Error::Relation)?;
    evaluate::record_batch(table, &block.rows)
}

fn apply_delete(
    session: &mut Session,
    change: &mut Change,
    table: &Arc<Table>,
    rows: &[i128],
    changed: &mut Changed,
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    if changed.gathers {
        changed.gathered.push(fetch(session, change, table, rows)?);
    }
    if dispersed::is_dispersed(table) {
        changed.rows += dispersed::delete(session, change, table, rows)?;
        return Ok(());
    }
    if series::is_series(table) {
        changed.rows += series::delete(session.engine(), &mut change.lease, table, rows)?;
        return Ok(());
    }
    let (relations, rows) = (session.engine().relations.clone(), &row_ids(rows));
    let planner = &session.planner;
    let mut observer = |table: &Table, batch: &RowBatch| observed(planner.check(table, batch));
    let mut statement = relation::Statement::observed(&mut observer);
    changed.rows += relations.delete_in(&mut statement, &mut *change.lease, table, rows).map_err(Error::Relation)?;
    relations.finish(statement, &mut *change.lease).map_err(Error::Relation)
}

fn observed(checked: Result<()>) -> Result<(), relation::Error> {
    match checked {
        Ok(()) => Ok(()),
        Err(Error::Relation(error)) => Err(error),
        Err(error) => Err(relation::Error::sql(error.to_string())),
    }
}

/// Rows to be changed, and their new images.
pub(crate) struct Images<'t> {
    table: &'t Table,
    numbers: Vec<i128>,
    images: RowBatch,
    /// For each column the value that it has in all of them, where the query does not say.
    constants: Vec<Option<ScalarValue>>,
    /// The rows met so far, where a query may answer a row more than once: the first time counts.
    seen: Option<HashSet<i128>>,
}

impl<'t> Images<'t> {
    /// None yet; `repeat`: the query may answer a row more than once.
    fn new(table: &'t Table, repeat: bool) -> Self {
        let images = RowBatch::new(table.layout(), 0);
        let constants = vec![None; table.columns.len()];
        Images { table, numbers: Vec::new(), images, constants, seen: repeat.then(HashSet::new) }
    }

    /// Adds a batch of row numbers and all columns; how many rows of it had not come before, and the bytes of their images.
    fn add(&mut self, batch: &RecordBatch) -> Result<(usize, usize)> {
        let bytes = |images: &RowBatch| images.bytes().len() + images.heap().len();
        let before = (self.numbers.len(), bytes(&self.images));
        let columns = batch.columns()[1..].iter().zip(&self.table.columns).zip(&self.constants);
        let column = |((array, column), constant): ((&ArrayRef, &relation::Column), &Option<ScalarValue>)| {
            let constant = constant.as_ref().map(|constant| constant.to_array_of_size(batch.num_rows())).transpose()?;
            cast::to_column(constant.as_ref().unwrap_or(array), &column.kind, &column.name).map(Some)
        };
        let columns: Vec<Option<ArrayRef>> = columns.map(column).collect::<Result<_>>()?;
        let images = rows::encode(&self.table.layout(), &columns, batch.num_rows())?;
        for (row, number) in numbers(batch).into_iter().enumerate() {
            if self.seen.as_mut().is_none_or(|seen| seen.insert(number)) {
                self.numbers.push(number);
                self.images.push_from(&images, row).map_err(Error::Relation)?;
            }
        }
        Ok((self.numbers.len() - before.0, bytes(&self.images) - before.1))
    }

    /// Hands over what was gathered.
    fn take(&mut self) -> (Vec<i128>, RowBatch) {
        let images = std::mem::replace(&mut self.images, RowBatch::new(self.table.layout(), 0));
        (std::mem::take(&mut self.numbers), images)
    }

    /// All of the rows of some batches at once.
    pub(crate) fn of(table: &'t Table, batches: &[RecordBatch]) -> Result<(Vec<i128>, RowBatch)> {
        let mut images = Self::new(table, true);
        batches.iter().try_for_each(|batch| images.add(batch).map(drop))?;
        Ok(images.take())
    }
}

/// Whether an update can be made part by part: no other row, of this table or another, is looked at when a row gets
/// these new values. Foreign keys of others reference keys; what others join through this table, its own foreign keys decide.
fn stands_alone(table: &Table, assignments: &[Assignment]) -> Result<bool> {
    let mut assigned = HashSet::new();
    for assignment in assignments {
        for (name, _) in pairs(assignment)? {
            assigned.insert(table.columns[place(table, &name)?].id);
        }
    }
    let in_key = table.unique_indexes().any(|index| index.columns.iter().any(|column| assigned.contains(column)));
    let mut own = table.foreign_keys.iter().flat_map(|key| &key.columns);
    let leads_on = table.is_referenced() && own.any(|column| assigned.contains(column));
    Ok(!in_key && !leads_on)
}

/// A table's name and what the statement calls it.
pub(crate) fn named(relation: &TableFactor) -> Result<(String, String)> {
    let TableFactor::Table { name, alias, args: None, .. } = relation else {
        return Err(Error::NotSupported("changing anything but a table".into()));
    };
    let name = statement::table_name(name)?;
    let alias = alias.as_ref().map_or_else(|| statement::plain(&name).to_owned(), |alias| fold(&alias.name));
    Ok((name, alias))
}

pub(crate) fn pairs(assignment: &Assignment) -> Result<Vec<(String, Expr)>> {
    let last = |name| Ok::<_, Error>(statement::parts(name)?.pop().unwrap_or_default());
    match (&assignment.target, &assignment.value) {
        (AssignmentTarget::ColumnName(name), value) => Ok(vec![(last(name)?, value.clone())]),
        (AssignmentTarget::Tuple(names), Expr::Tuple(values)) if names.len() == values.len() => {
            names.iter().zip(values).map(|(name, value)| Ok((last(name)?, value.clone()))).collect()
        }
        (AssignmentTarget::Tuple(names), value) if names.len() == 1 => Ok(vec![(last(&names[0])?, value.clone())]),
        _ => Err(Error::NotSupported("SET (a, b) = anything but a list of as many values".into())),
    }
}

pub(crate) fn is_default(value: &Expr) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// The place of a column.
pub(crate) fn place(table: &Table, name: &str) -> Result<usize> {
    match table.column(name) {
        Some((place, _)) => Ok(place),
        None => Err(Error::NoColumn(format!("no column {name} in table {}", table.name))),
    }
}

/// `alias.column`.
pub(crate) fn column_expr(alias: &str, column: &str) -> Expr {
    Expr::CompoundIdentifier(vec![ident(alias), ident(column)])
}

/// `alias.column AS name`.
pub(crate) fn column_item(alias: &str, column: &str, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr: column_expr(alias, column), alias: ident(name) }
}

/// `left = right`.
pub(crate) fn equal(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::Eq, right: Box::new(right) }
}

/// `left AND right`.
pub(crate) fn and(left: Expr, right: Option<Expr>) -> Expr {
    match right {
        None => left,
        Some(right) => Expr::BinaryOp {
            left: Box::new(left),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(right))),
        },
    }
}

/// `WITH with SELECT items FROM from WHERE selection`.
pub(crate) fn select(
    with: Option<With>,
    projection: Vec<SelectItem>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
) -> Query {
    let select = Select {
        select_token: AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from,
        lateral_views: Vec::new(),
        prewhere: None,
        selection,
        connect_by: Vec::new(),
        group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: SelectFlavor::Standard,
    };
    Query {
        with,
        body: Box::new(SetExpr::Select(Box::new(select))),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}
