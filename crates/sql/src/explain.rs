//! EXPLAIN, and statements prepared by SQL.

use std::sync::Arc;

use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Statement, ValueWithSpan};
use futures::TryStreamExt;

use crate::changes_explained::ChangePlan;
use crate::error::{Error, Named, Result};
use crate::insert;
use crate::naming;
use crate::parameters;
use crate::session::{Outcome, Session, with_stack_for};
use crate::show;
use crate::statement::{self, fold};
use crate::value::Value;

/// Statements that PREPARE may have named at a time.
const PREPARED_MAX: usize = 1000;

/// A statement that PREPARE named.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) statement: Arc<Statement>,
    /// Bytes of its text: by them it may nest deep.
    pub(crate) bytes: usize,
    /// How many arguments EXECUTE gives it.
    wanted: usize,
}

/// How a plan is shown.
#[derive(Clone, Copy)]
struct How {
    /// After running it, with what each node did.
    analyze: bool,
    verbose: bool,
}

impl Session {
    /// The physical plan of a query, or of one that EXECUTE names, a line a row; with ANALYZE after running it, with what each node did.
    pub(crate) fn explain(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Outcome> {
        let Statement::Explain { analyze, verbose, statement, options, .. } = statement else {
            return Err(Error::Bug("EXPLAIN".into()));
        };
        let option = |name: &str| {
            let options = options.iter().flatten();
            options.clone().any(|option| option.name.value.eq_ignore_ascii_case(name))
        };
        let how = How { analyze: *analyze || option("analyze"), verbose: *verbose };
        if let Statement::Execute { name: Some(name), parameters: given, .. } = statement.as_ref() {
            return self.with_prepared(name, (given, parameters), |session, statement, given| {
                session.explain_query(statement, given, how)
            });
        }
        self.explain_query(statement, parameters, how)
    }

    fn explain_query(&mut self, statement: &Statement, parameters: &[Value], how: How) -> Result<Outcome> {
        if let Some(change) = self.plan_of_change(statement, parameters)? {
            return explained(&change, how);
        }
        if !matches!(statement, Statement::Query(_)) {
            return Err(Error::NotSupported("EXPLAIN of anything but queries, INSERT, UPDATE and DELETE".into()));
        }
        if how.analyze {
            self.follow(statement)?;
        }
        let direct = self.direct_scan(statement, parameters)?;
        let is_direct = direct.is_some();
        let physical = match direct {
            Some(scan) => scan.node(),
            None => self.planned(statement.clone(), parameters)?,
        };
        let text = if how.analyze {
            self.run_through(physical.clone())?;
            DisplayableExecutionPlan::with_metrics(physical.as_ref()).indent(how.verbose).to_string()
        } else {
            DisplayableExecutionPlan::new(physical.as_ref()).indent(how.verbose).to_string()
        };
        // The library's planner had no part in it.
        let text = if is_direct { format!("Direct: {text}") } else { text };
        lines(&text)
    }

    /// The physical plan of the query library.
    pub(crate) fn planned(&mut self, mut statement: Statement, parameters: &[Value]) -> Result<Arc<dyn ExecutionPlan>> {
        // As when it is asked: a column may be there twice.
        naming::name_columns(&mut statement, self.names);
        parameters::bind(&mut statement, parameters)?;
        let snapshot = self.view()?;
        let plan = self.planner.plan(statement, &snapshot, Vec::new())?;
        self.planner.physical(&plan)
    }

    fn run_through(&mut self, physical: Arc<dyn ExecutionPlan>) -> Result<()> {
        let planner = &self.planner;
        self.guard.engine.executor.run(&planner.interrupt, async {
            let stream = execute_stream(physical, planner.state.task_ctx())?;
            Ok(stream.try_for_each(|_| async { Ok(()) }).await?)
        })
    }

    /// PREPARE, EXECUTE, DEALLOCATE.
    pub(crate) fn prepared_statement(&mut self, statement: &Statement, parameters: &[Value]) -> Result<Outcome> {
        match statement {
            Statement::Prepare { name, data_types, statement } => {
                let name = fold(name);
                if self.prepared.contains_key(&name) {
                    let text = format!("there is a prepared statement {name} already: DEALLOCATE it first");
                    return Err(Error::Taken(Named::Statement, text));
                }
                if self.prepared.len() >= PREPARED_MAX {
                    let text = format!("more than {PREPARED_MAX} prepared statements: DEALLOCATE some");
                    return Err(Error::NotSupported(text));
                }
                // Of others some would name themselves: PREPARE a AS EXECUTE a.
                let (Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)) =
                    statement.as_ref()
                else {
                    let text = "PREPARE of anything but SELECT, VALUES, INSERT, UPDATE and DELETE";
                    return Err(Error::NotSupported(text.into()));
                };
                let mut statement = (**statement).clone();
                let wanted = parameters::count(&statement).max(data_types.len());
                parameters::declare(&mut statement, data_types)?;
                let bytes = statement.to_string().len();
                self.prepared.insert(name, Prepared { statement: Arc::new(statement), bytes, wanted });
                Ok(Outcome::Done("PREPARE"))
            }
            Statement::Execute { name: Some(name), parameters: given, .. } => {
                self.with_prepared(name, (given, parameters), |session, statement, given| {
                    session.dispatch(statement, given)
                })
            }
            Statement::Deallocate { name, .. } => {
                if fold(name) == "all" {
                    self.prepared.clear();
                    return Ok(Outcome::Done("DEALLOCATE ALL"));
                } else if self.prepared.remove(&fold(name)).is_none() {
                    return Err(Error::NotFound(format!("no prepared statement {name}")));
                }
                Ok(Outcome::Done("DEALLOCATE"))
            }
            other => Err(Error::NotSupported(other.to_string())),
        }
    }

    /// Does something with a statement that PREPARE named and the arguments that EXECUTE gives it.
    pub(crate) fn with_prepared(
        &mut self,
        name: &ObjectName,
        (given, parameters): (&[Expr], &[Value]),
        run: impl FnOnce(&mut Self, &Statement, &[Value]) -> Result<Outcome>,
    ) -> Result<Outcome> {
        let given = given.iter().map(|expr| constant(expr, parameters)).collect::<Result<Vec<_>>>()?;
        // The text says the name alone, and what it names may nest deep.
        let Prepared { statement, bytes, wanted } = self.prepared_by(name)?;
        with_stack_for(bytes, || {
            if given.len() != wanted {
                return Err(Error::Sql(format!("{name} wants {wanted} arguments, and {} were given", given.len())));
            }
            run(self, &statement, &given)
        })
    }

    /// A statement that PREPARE named.
    pub(crate) fn prepared_by(&self, name: &ObjectName) -> Result<Prepared> {
        let name = statement::parts(name)?.pop().unwrap_or_default();
        self.prepared.get(&name).cloned().ok_or_else(|| Error::NotFound(format!("no prepared statement {name}")))
    }
}

fn constant(expr: &Expr, parameters: &[Value]) -> Result<Value> {
    use datafusion::sql::sqlparser::ast::{UnaryOperator, Value as Literal};
    let wrong = || Error::NotSupported(format!("the argument {expr} of EXECUTE: literals are taken"));
    match expr {
        Expr::Value(ValueWithSpan { value: Literal::Placeholder(name), .. }) => {
            parameters::value(name, parameters).cloned()
        }
        Expr::Value(ValueWithSpan { value, .. }) => insert::literal(value).ok_or_else(wrong),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } => match constant(inner, parameters)? {
            Value::Integer(number) => number.checked_neg().map(Value::Integer).ok_or_else(wrong),
            Value::Double(number) => Ok(Value::Double(-number)),
            Value::Decimal { unscaled, scale } => {
                unscaled.checked_neg().map(|unscaled| Value::Decimal { unscaled, scale }).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

/// A change is shown, and not made.
fn explained(change: &ChangePlan, how: How) -> Result<Outcome> {
    if how.analyze {
        let text = "EXPLAIN ANALYZE of a change, which it would make: EXPLAIN shows how its rows are found";
        return Err(Error::NotSupported(text.into()));
    }
    let mut text = format!("{} on {}\n", change.verb, change.table);
    if let Some(plan) = &change.plan {
        let plan = DisplayableExecutionPlan::new(plan.as_ref()).indent(how.verbose).to_string();
        plan.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    lines(&text)
}

fn lines(text: &str) -> Result<Outcome> {
    show::table(vec![("QUERY PLAN", text.lines().map(|line| Some(line.to_owned())).collect())])
}
