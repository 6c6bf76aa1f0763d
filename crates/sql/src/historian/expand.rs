//! Puts plans in the place of calls in FROM.
//!
//! A call becomes a table with a hidden name, whose plan is there before the statement is planned. The input of a call
//! is a query of its own: it sees the tables of the database, and what WITH has named before it.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use counterfoil_log::Snapshot;
use datafusion::catalog::TableProvider;
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as LibraryStatement;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, Query, SelectItem, Statement, TableAlias, TableFactor, VisitMut, VisitorMut, With,
};

use super::call::{self, Call};
use crate::change;
use crate::error::{Error, Result};
use crate::naming;
use crate::planner::{Planner, select_from};
use crate::statement::{fold, ident, object};

/// A planned input.
pub(crate) struct Input {
    pub plan: LogicalPlan,
    /// What it is called in messages.
    pub name: String,
    /// The primary key, if it is a table that has one.
    pub key: Option<Vec<String>>,
}

impl Planner {
    /// Puts tables in the place of the calls of a statement, and makes them known.
    ///
    /// # Errors
    /// What is wrong with a call, or with the query it reads.
    pub(crate) fn expand(&mut self, statement: &mut Statement, snapshot: &Snapshot, depth: usize) -> Result<()> {
        match statement.visit(&mut Expander { planner: self, snapshot, depth, scopes: Vec::new() }) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        }
    }
}

/// A query that is being visited: what its WITH names, and how far that has been visited.
struct Scope {
    recursive: bool,
    waiting: VecDeque<Cte>,
    known: Vec<Cte>,
}

struct Expander<'a> {
    planner: &'a mut Planner,
    snapshot: &'a Snapshot,
    depth: usize,
    scopes: Vec<Scope>,
}

impl VisitorMut for Expander<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let with = query.with.as_ref();
        let waiting = with.map(|with| with.cte_tables.iter().cloned().collect()).unwrap_or_default();
        let recursive = with.is_some_and(|with| with.recursive);
        self.scopes.push(Scope { recursive, waiting, known: Vec::new() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.scopes.pop();
        // The queries of a WITH are visited before anything else of the query that it belongs to.
        if let Some(outer) = self.scopes.last_mut()
            && let Some(mut named) = outer.waiting.pop_front()
        {
            *named.query = query.clone();
            outer.known.push(named);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        let found = call::read(factor).and_then(|call| match call {
            Some(call) => self.plan(&call).map(|table| Some((call, table))),
            None => Ok(None),
        });
        match found {
            Err(error) => return ControlFlow::Break(error),
            Ok(None) => {}
            Ok(Some((call, table))) => replace(factor, &call, self.planner.name_call(table)),
        }
        ControlFlow::Continue(())
    }
}

fn replace(factor: &mut TableFactor, call: &Call, hidden: String) {
    if let TableFactor::Table { name, alias, args, .. } = factor {
        let own = || TableAlias { explicit: true, name: ident(call.function), columns: Vec::new(), at: None };
        *alias = Some(alias.take().unwrap_or_else(own));
        (*name, *args) = (object(&hidden), None);
    }
}

/// The table that an argument names: as it is written, and what it is called.
pub(super) fn table(expr: &Expr) -> Option<(Ident, String)> {
    let ident = match expr {
        Expr::Identifier(name) => name.clone(),
        Expr::CompoundIdentifier(names) => match names.as_slice() {
            [schema, name] if fold(schema) == crate::SCHEMA => name.clone(),
            _ => return None,
        },
        expr => {
            let text = call::text(expr)?;
            match crate::evaluate::parse(&text) {
                Ok(expr @ (Expr::Identifier(_) | Expr::CompoundIdentifier(_))) => return table(&expr),
                _ => return None,
            }
        }
    };
    let name = fold(&ident);
    Some((ident, name))
}

impl Expander<'_> {
    fn plan(&mut self, call: &Call) -> Result<Arc<dyn TableProvider>> {
        let expr = call.required(call::INPUT)?;
        let input = self.input(expr)?.ok_or_else(|| {
            call.error(format!("{expr} is no table: write the name of one, or a query in parentheses"))
        })?;
        // What is no table there is an instant.
        let instants = match call.argument("at") {
            Some(at) if call::text(at).is_none() => self.input(at)?,
            _ => None,
        };
        Ok(Arc::new(ViewTable::new(self.planner.build(call, input, instants)?, None)))
    }

    /// The plan of an argument that is a table or a query.
    fn input(&mut self, expr: &Expr) -> Result<Option<Input>> {
        let (query, name) = match (expr, table(expr)) {
            (Expr::Subquery(query), _) => ((**query).clone(), None),
            (_, Some((_, name))) => {
                let star = vec![SelectItem::Wildcard(Default::default())];
                (change::select(None, star, vec![select_from(&name, &name)], None), Some(name))
            }
            _ => return Ok(None),
        };
        let named = self.with(query.with.as_ref());
        let is_table =
            name.as_ref().is_some_and(|name| !named.cte_tables.iter().any(|cte| fold(&cte.alias.name) == *name));
        let with = (!named.cte_tables.is_empty()).then_some(named);
        let mut statement = Statement::Query(Box::new(Query { with, ..query }));
        naming::name_columns(&mut statement, naming::Names::Written);
        let statement = LibraryStatement::Statement(Box::new(statement));
        self.planner.resolve(&statement, self.snapshot, self.depth)?;
        let plan = self.planner.plan_resolved(statement)?;
        let key = name.as_ref().filter(|_| is_table).and_then(|name| self.planner.primary_key(name));
        Ok(Some(Input { plan, name: name.unwrap_or_else(|| "the query".into()), key }))
    }

    /// All that a query here can name by WITH, its own last.
    fn with(&self, own: Option<&With>) -> With {
        let mut named: Vec<Cte> = Vec::new();
        let outer = self.scopes.iter().flat_map(|scope| &scope.known);
        for cte in outer.chain(own.into_iter().flat_map(|with| &with.cte_tables)) {
            named.retain(|other| fold(&other.alias.name) != fold(&cte.alias.name));
            named.push(cte.clone());
        }
        let recursive = self.scopes.iter().any(|scope| scope.recursive) || own.is_some_and(|with| with.recursive);
        With { with_token: AttachedToken::empty(), recursive, cte_tables: named }
    }
}
