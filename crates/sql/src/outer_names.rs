//! `o.id` in a subquery, where `o` is a table of the query around it.
//!
//! The query library looks at the tables of the subquery first, and takes `o.id` for a part of a column `o` that one of them has
//! (DataFusion 55); so tables around it are named with their schema, which is no column's. And it sees one query around another: what names a
//! table further out is refused here, and not as a column that nobody knows.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SetExpr, Statement, TableFactor, TableWithJoins, VisitMut, VisitorMut,
};

use crate::error::{Error, Result};
use crate::statement::{fold, ident};

/// Names tables of queries around subqueries with their schema.
///
/// # Errors
/// [`Error::NotSupported`] for one that is further out.
pub(crate) fn qualified(statement: &mut Statement) -> Result<()> {
    match statement.visit(&mut Scopes { open: Vec::new(), subqueries: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(name) => {
            let text = format!("{name}, of a query further out than the one around it: join its table in between");
            Err(Error::NotSupported(text))
        }
    }
}

/// The queries around an expression.
struct Scopes {
    open: Vec<Scope>,
    /// Subqueries in expressions around it.
    subqueries: usize,
}

struct Scope {
    tables: Vec<String>,
    subqueries: usize,
}

impl VisitorMut for Scopes {
    type Break = String;

    /// Its tables are known to its ORDER BY, too.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<String> {
        let mut tables = Vec::new();
        if let SetExpr::Select(select) = &*query.body {
            select.from.iter().for_each(|from| add_names(from, &mut tables));
        }
        self.open.push(Scope { tables, subqueries: self.subqueries });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<String> {
        self.open.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<String> {
        let mut tables = Vec::new();
        select.from.iter().for_each(|from| add_names(from, &mut tables));
        self.open.push(Scope { tables, subqueries: self.subqueries });
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<String> {
        self.open.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<String> {
        self.subqueries += usize::from(has_query(expr));
        let Expr::CompoundIdentifier(parts) = expr else { return ControlFlow::Continue(()) };
        let [table, column] = &parts[..] else { return ControlFlow::Continue(()) };
        let name = fold(table);
        let Some(at) = self.open.iter().rposition(|scope| scope.tables.contains(&name)) else {
            return ControlFlow::Continue(());
        };
        let Some(innermost) = self.open.last().filter(|_| at + 1 < self.open.len()) else {
            return ControlFlow::Continue(());
        };
        if innermost.subqueries > self.open[at].subqueries + 1 {
            return ControlFlow::Break(format!("{table}.{column}"));
        }
        parts.insert(0, ident(crate::SCHEMA));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<String> {
        self.subqueries -= usize::from(has_query(expr));
        ControlFlow::Continue(())
    }
}

fn has_query(expr: &Expr) -> bool {
    matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. })
}

/// What the tables of a FROM are called.
fn add_names(from: &TableWithJoins, names: &mut Vec<String>) {
    let joined = from.joins.iter().map(|join| &join.relation);
    for factor in [&from.relation].into_iter().chain(joined) {
        let alias = match factor {
            TableFactor::Table { name, alias, .. } => match alias {
                Some(alias) => Some(fold(&alias.name)),
                None => name.0.last().and_then(|part| part.as_ident()).map(fold),
            },
            TableFactor::NestedJoin { table_with_joins, alias } => {
                add_names(table_with_joins, names);
                alias.as_ref().map(|alias| fold(&alias.name))
            }
            TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias.as_ref().map(|alias| fold(&alias.name)),
            _ => None,
        };
        names.extend(alias);
    }
}
