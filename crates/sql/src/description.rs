//! What a statement wants and answers, before it runs: drivers ask for both when they prepare one.
//!
//! It is turned into queries that are planned and not run. Parameters stay open in them, and the query library concludes
//! what each is from what stands beside it; a change asks for its columns as `column = value`, so that the same
//! conclusion holds for values that are stored. Where nothing stands beside one, the text says (`argument_types`).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::expr::{Cast, Expr as Planned, Placeholder};
use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, Insert, OnConflictAction, OnInsert, Query, SelectItem, SetExpr, Statement, TableObject,
    TableWithJoins, Update, UpdateTableFromKind, With,
};

use crate::argument_types;
use crate::catalog;
use crate::change;
use crate::error::{Error, Result};
use crate::functions;
use crate::naming;
use crate::parameters::{self, Unbound};
use crate::planner;
use crate::session::{Outcome, Session, with_stack, with_stack_for};
use crate::statement::{self, fold, ident};
use crate::types;

/// What a statement wants and answers.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// The types of its parameters, in their order; none where a parameter may be anything.
    pub parameters: Vec<Option<FieldRef>>,
    /// The columns of the rows it answers; none where it answers no rows.
    pub columns: Option<SchemaRef>,
}

/// A query that stands for a statement, or for a part of it.
struct Question {
    query: Query,
    /// Columns before those that the statement answers.
    before: usize,
    answers: bool,
}

impl Question {
    fn of(query: Query, answers: bool) -> Self {
        Question { query, before: 0, answers }
    }
}

impl Session {
    /// Describes a statement whose parameters are of these types, as far as they are known.
    ///
    /// # Errors
    /// What planning it answers: [`Error::Sql`], [`Error::NotFound`], [`Error::NotSupported`].
    pub fn description(&mut self, sql: &str, given: &[Option<DataType>]) -> Result<Description> {
        self.planner.interrupt.clear();
        with_stack(sql, || {
            let statements = self.cache.parse(sql)?;
            match statements.as_slice() {
                [statement] => self.describe_once(sql, statement, given),
                _ => Ok(Description::default()),
            }
        })
    }

    /// As it was described before, if that still holds.
    fn describe_once(&mut self, sql: &str, statement: &Statement, given: &[Option<DataType>]) -> Result<Description> {
        let Some(tables) = self.tables_described_by(statement)? else {
            return self.describe_statement(statement, given);
        };
        if let Some(known) = self.described.known(sql, given, &tables) {
            return Ok(known);
        }
        let description = self.describe_statement(statement, given)?;
        self.described.note(sql, given, tables, &description);
        Ok(description)
    }

    fn describe_statement(&mut self, statement: &Statement, given: &[Option<DataType>]) -> Result<Description> {
        let mut given = given.to_vec();
        given.resize(parameters::count(statement).max(given.len()), None);
        argument_types::fill(statement, &mut given);
        let known = |kind: &Option<DataType>| kind.clone().map(|kind| Arc::new(Field::new("", kind, true)));
        let parameters: Vec<Option<FieldRef>> = given.iter().map(known).collect();
        let columns = match statement {
            // These only look, and answer little.
            Statement::ShowVariable { .. } | Statement::ShowTables { .. } | Statement::ShowColumns { .. } => {
                match self.dispatch(statement, &[])? {
                    Outcome::Rows(rows) => Some(rows.schema().clone()),
                    _ => None,
                }
            }
            Statement::Explain { .. } => {
                Some(Arc::new(Schema::new(vec![Field::new("QUERY PLAN", DataType::Utf8View, true)])))
            }
            Statement::Fetch { name, .. } => Some(self.cursor_columns(&fold(name))?),
            Statement::Execute { name: Some(name), .. } => {
                // The text says the name alone, and what it names may nest deep.
                let prepared = self.prepared_by(name)?;
                let described = with_stack_for(prepared.bytes, || self.ask(&prepared.statement, &[], Vec::new()));
                described?.columns
            }
            _ => return self.ask(statement, &given, parameters),
        };
        Ok(Description { parameters, columns })
    }

    fn ask(
        &mut self,
        statement: &Statement,
        given: &[Option<DataType>],
        mut parameters: Vec<Option<FieldRef>>,
    ) -> Result<Description> {
        for (place, array) in catalog::array_parameters(statement) {
            parameters.get_mut(place).into_iter().for_each(|known| *known = known.take().or(Some(array.clone())));
        }
        let lists = parameters::one_of_each(&mut statement.clone());
        let mut columns = None;
        for question in self.questions(statement)? {
            let plan = match self.plan_open(&question.query, given, Unbound::Open) {
                Ok(plan) => plan,
                // Something wants to know what an open parameter is: NULL will do, and says nothing about it.
                Err(_) => match self.plan_open(&question.query, given, Unbound::Null) {
                    Ok(plan) => plan,
                    Err(_) => self.plan_open(&question.query, &[], Unbound::Null)?,
                },
            };
            conclude(&plan, &mut parameters)?;
            if question.answers {
                // Where a parameter is open, what stands beside it may not be known to fit.
                let schema = self.planner.schema_of(&plan).unwrap_or_else(|_| plan.schema().as_arrow().clone());
                let fields = schema.fields().iter().skip(question.before).cloned();
                columns = Some(naming::shown(&Arc::new(Schema::new(fields.collect::<Vec<_>>()))));
            }
        }
        for list in lists {
            if let Some(Some(part)) = parameters.get_mut(list)
                && !matches!(part.data_type(), DataType::List(_))
            {
                *part = Arc::new(Field::new_list(
                    "",
                    part.as_ref().clone().with_name(Field::LIST_FIELD_DEFAULT_NAME),
                    true,
                ));
            }
        }
        Ok(Description { parameters, columns })
    }

    fn plan_open(&mut self, query: &Query, given: &[Option<DataType>], unbound: Unbound) -> Result<LogicalPlan> {
        let mut statement = Statement::Query(Box::new(query.clone()));
        naming::name_columns(&mut statement, self.names);
        parameters::one_of_each(&mut statement);
        parameters::open(&mut statement, given, unbound)?;
        let snapshot = self.view()?;
        self.planner.plan(statement, &snapshot, Vec::new())
    }

    fn questions(&mut self, statement: &Statement) -> Result<Vec<Question>> {
        match statement {
            Statement::Declare { stmts } => match stmts.first().and_then(|declared| declared.for_query.as_ref()) {
                Some(query) => Ok(vec![Question::of((**query).clone(), false)]),
                None => Ok(Vec::new()),
            },
            Statement::Query(query) => match query.body.as_ref() {
                SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) | SetExpr::Merge(inner) => {
                    self.questions_of_change(query.with.clone(), inner)
                }
                _ => Ok(vec![Question::of((**query).clone(), true)]),
            },
            _ => self.questions_of_change(None, statement),
        }
    }

    fn questions_of_change(&mut self, with: Option<With>, statement: &Statement) -> Result<Vec<Question>> {
        match statement {
            Statement::Insert(insert) => self.questions_of_insert(with, insert),
            Statement::Update(update) => questions_of_update(with, update),
            Statement::Delete(delete) => questions_of_delete(with, delete),
            _ => Ok(Vec::new()),
        }
    }

    fn questions_of_insert(&mut self, with: Option<With>, insert: &Insert) -> Result<Vec<Question>> {
        let TableObject::TableName(name) = &insert.table else { return Ok(Vec::new()) };
        let name = statement::table_name(name)?;
        let snapshot = self.view()?;
        let table = planner::rows_of(self.engine(), &snapshot, &name)?;
        let alias =
            insert.table_alias.as_ref().map_or_else(|| statement::plain(&name).to_owned(), |it| fold(&it.alias));
        let columns: Vec<String> = match insert.columns.as_slice() {
            [] => table.columns.iter().map(|column| column.name.clone()).collect(),
            named => {
                named.iter().map(|name| Ok(statement::parts(name)?.pop().unwrap_or_default())).collect::<Result<_>>()?
            }
        };
        let from = || vec![planner::select_from(&name, &alias)];
        let mut items = Vec::new();
        let mut questions = Vec::new();
        match insert.source.as_deref() {
            Some(Query { body, .. }) if matches!(body.as_ref(), SetExpr::Values(_)) => {
                let SetExpr::Values(values) = body.as_ref() else { return Err(Error::Bug("VALUES".into())) };
                let cells = values.rows.iter().flat_map(|row| columns.iter().zip(&row.content));
                let open = cells.filter(|(_, value)| parameters::stands_in(value));
                items.extend(open.map(|(column, value)| stored(&alias, column, value.clone())));
            }
            Some(query) => {
                let mut query = query.clone();
                query.with = with.clone().or(query.with);
                questions.push(Question::of(query, false));
            }
            None => {}
        }
        questions.push(changing(None, items, from(), None, insert.returning.as_deref()));
        if let Some(OnInsert::OnConflict(conflict)) = &insert.on
            && let OnConflictAction::DoUpdate(update) = &conflict.action
        {
            let mut items = Vec::new();
            for assignment in &update.assignments {
                items.extend(change::pairs(assignment)?.into_iter().map(|(name, value)| stored(&alias, &name, value)));
            }
            let both = [from(), vec![planner::select_from(&name, "excluded")]].concat();
            questions.push(changing(None, items, both, update.selection.clone(), None));
        }
        Ok(questions)
    }
}

fn questions_of_update(with: Option<With>, update: &Update) -> Result<Vec<Question>> {
    let (name, alias) = change::named(&update.table.relation)?;
    let mut from = vec![planner::select_from(&name, &alias)];
    if let Some(UpdateTableFromKind::BeforeSet(more) | UpdateTableFromKind::AfterSet(more)) = &update.from {
        from.extend(more.iter().cloned());
    }
    let mut items = Vec::new();
    for assignment in &update.assignments {
        items.extend(change::pairs(assignment)?.into_iter().map(|(name, value)| stored(&alias, &name, value)));
    }
    Ok(vec![changing(with, items, from, update.selection.clone(), update.returning.as_deref())])
}

fn questions_of_delete(with: Option<With>, delete: &Delete) -> Result<Vec<Question>> {
    let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
    let [TableWithJoins { relation, .. }] = tables.as_slice() else { return Ok(Vec::new()) };
    let (name, alias) = change::named(relation)?;
    let mut from = vec![planner::select_from(&name, &alias)];
    from.extend(delete.using.iter().flatten().cloned());
    Ok(vec![changing(with, Vec::new(), from, delete.selection.clone(), delete.returning.as_deref())])
}

/// A value that goes into a column, as a question: `alias.column = value`.
fn stored(alias: &str, column: &str, value: Expr) -> Expr {
    match change::is_default(&value) {
        true => change::column_expr(alias, column),
        false => change::equal(change::column_expr(alias, column), Expr::Nested(Box::new(value))),
    }
}

/// The query for a change that stores these, and answers those.
fn changing(
    with: Option<With>,
    stored: Vec<Expr>,
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
    returning: Option<&[SelectItem]>,
) -> Question {
    let before = stored.len();
    let named = |(place, expr)| SelectItem::ExprWithAlias { expr, alias: ident(&format!("{}_{place}", crate::HIDDEN)) };
    let mut items: Vec<SelectItem> = stored.into_iter().enumerate().map(named).collect();
    items.extend(returning.unwrap_or_default().iter().cloned());
    if items.is_empty() {
        items.push(SelectItem::UnnamedExpr(Expr::Value(datafusion::sql::sqlparser::ast::Value::Null.into())));
    }
    Question { query: change::select(with, items, from, selection), before, answers: returning.is_some() }
}

/// What a plan says of parameters of which nothing was known.
fn conclude(plan: &LogicalPlan, known: &mut [Option<FieldRef>]) -> Result<()> {
    plan.apply_with_subqueries(|plan| {
        let counts_rows = matches!(plan, LogicalPlan::Limit(_));
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                let Some((placeholder, kind)) = concluded(expr, counts_rows) else {
                    return Ok(TreeNodeRecursion::Continue);
                };
                let place = parameters::index(&placeholder.id)?;
                if let Some(known @ None) = known.get_mut(place) {
                    *known = Some(kind);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// A parameter and what it is: what the library concluded, what it is cast to, or a number of rows.
fn concluded(expr: &Planned, counts_rows: bool) -> Option<(&Placeholder, FieldRef)> {
    match expr {
        Planned::Placeholder(placeholder) => match &placeholder.field {
            Some(field) => Some((placeholder, field.clone())),
            None => counts_rows.then(|| (placeholder, Arc::new(Field::new("", DataType::Int64, true)))),
        },
        Planned::Cast(Cast { expr, field, .. }) => match expr.as_ref() {
            Planned::Placeholder(placeholder @ Placeholder { field: None, .. }) => Some((placeholder, field.clone())),
            _ => None,
        },
        Planned::ScalarFunction(call) if call.func.name() == functions::TO_UUID => match call.args.as_slice() {
            [Planned::Placeholder(placeholder @ Placeholder { field: None, .. })] => {
                Some((placeholder, Arc::new(types::with_uuid(Field::new("", DataType::Utf8View, true)))))
            }
            _ => None,
        },
        Planned::ScalarFunction(call) if call.func.name() == functions::TO_BYTEA => match call.args.as_slice() {
            [Planned::Placeholder(placeholder @ Placeholder { field: None, .. })] => {
                Some((placeholder, Arc::new(Field::new("", DataType::BinaryView, true))))
            }
            _ => None,
        },
        _ => None,
    }
}
