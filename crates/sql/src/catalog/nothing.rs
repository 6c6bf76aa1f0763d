//! Queries that answer nothing, because they read a table that is always empty.
//!
//! psql asks seven such tables about every table it describes, in words that the query library does not know. What answers no row
//! need not be understood: its columns become NULL, but for those that are columns of a table, and its condition false.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, GroupByExpr, Ident, Join, JoinOperator, ObjectName, ObjectNamePart, Query,
    Select, SelectItem, SetExpr, Statement, TableFactor, TableWithJoins, Value as Literal, ValueWithSpan, Visit,
    VisitMut, Visitor, VisitorMut,
};

use super::functions_list::NO_TEXTS;
use super::{SCHEMA, is_always_empty};
use crate::dialect::call;
use crate::statement::fold;

/// Empties the queries of a statement that answer nothing. `ours`: names of the catalogue that tables of the database have.
pub(super) fn prune(statement: &mut Statement, ours: &HashSet<String>) {
    let _ = VisitMut::visit(statement, &mut Pruner { ours });
}

struct Pruner<'a> {
    ours: &'a HashSet<String>,
}

impl VisitorMut for Pruner<'_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if matches!(query.body.as_ref(), SetExpr::Select(_)) && self.answers_nothing(query) {
            query.order_by = None;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if !self.is_emptied(select) && self.reads_nothing(&select.from) && !aggregates(select) {
            empty(select);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // What stands in FROM may turn out to be empty as it is looked at.
        self.pre_visit_select(select)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let other = match expr {
            Expr::Subquery(query) if self.answers_nothing(query) => null(),
            Expr::Exists { subquery, negated } if self.answers_nothing(subquery) => truth(*negated),
            Expr::InSubquery { subquery, negated, .. } if self.answers_nothing(subquery) => truth(*negated),
            Expr::Function(Function { name, args: FunctionArguments::Subquery(query), .. })
                if name.to_string().eq_ignore_ascii_case("array") && self.answers_nothing(query) =>
            {
                call(NO_TEXTS, Vec::new())
            }
            _ => return ControlFlow::Continue(()),
        };
        *expr = other;
        ControlFlow::Continue(())
    }
}

fn null() -> Expr {
    Expr::Value(Literal::Null.into())
}

fn truth(truth: bool) -> Expr {
    Expr::Value(Literal::Boolean(truth).into())
}

impl Pruner<'_> {
    /// Whether a query was found to answer nothing.
    fn answers_nothing(&self, query: &Query) -> bool {
        self.is_empty_body(&query.body)
    }

    fn is_empty_body(&self, body: &SetExpr) -> bool {
        match body {
            SetExpr::Select(select) => self.is_emptied(select),
            SetExpr::Query(query) => self.answers_nothing(query),
            SetExpr::SetOperation { left, right, .. } => self.is_empty_body(left) && self.is_empty_body(right),
            _ => false,
        }
    }

    fn is_emptied(&self, select: &Select) -> bool {
        let is_false = |expr: &Expr| matches!(expr, Expr::Value(ValueWithSpan { value: Literal::Boolean(false), .. }));
        select.selection.as_ref().is_some_and(is_false) && self.reads_nothing(&select.from) && !aggregates(select)
    }

    /// Whether there are no rows to read.
    fn reads_nothing(&self, from: &[TableWithJoins]) -> bool {
        from.iter().any(|TableWithJoins { relation, joins }| {
            let is_left = |join: &Join| is_inner(&join.join_operator) || is_outer(&join.join_operator);
            let inner = joins.iter().filter(|join| is_inner(&join.join_operator)).map(|join| &join.relation);
            joins.iter().all(is_left) && std::iter::once(relation).chain(inner).any(|factor| self.is_nothing(factor))
        })
    }

    fn is_nothing(&self, factor: &TableFactor) -> bool {
        match factor {
            TableFactor::Table { name, args: None, .. } => {
                self.table_of(name).is_some_and(|name| is_always_empty(&name))
            }
            // Options of tables are kept elsewhere.
            TableFactor::Table { name, args: Some(args), .. } => {
                name.to_string().ends_with("unnest") && args.args.iter().any(is_options)
            }
            TableFactor::UNNEST { array_exprs, .. } => array_exprs.iter().any(is_options),
            TableFactor::Derived { subquery, .. } => self.answers_nothing(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.reads_nothing(std::slice::from_ref(table_with_joins))
            }
            _ => false,
        }
    }

    /// The table of the catalogue that a name means.
    fn table_of(&self, name: &ObjectName) -> Option<String> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
        match parts.as_slice() {
            [name] => Some(fold(name)).filter(|name| !self.ours.contains(name)),
            [schema, name] if fold(schema) == SCHEMA => Some(fold(name)),
            _ => None,
        }
    }
}

fn is_options(argument: &impl std::fmt::Display) -> bool {
    argument.to_string().ends_with(".reloptions")
}

fn is_outer(join: &JoinOperator) -> bool {
    matches!(join, JoinOperator::Left(_) | JoinOperator::LeftOuter(_))
}

fn is_inner(join: &JoinOperator) -> bool {
    matches!(join, JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_))
}

/// Whether a query answers a row even if it reads none.
pub(super) fn aggregates(select: &Select) -> bool {
    let by_nothing = matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    by_nothing
        && (select.having.is_some()
            || select.projection.iter().any(|item| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_aggregate(expr),
                _ => false,
            }))
}

/// Whether an expression adds rows up, outside of queries of its own.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    expr.visit(&mut Aggregates { depth: 0 }).is_break()
}

struct Aggregates {
    depth: usize,
}

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        const KNOWN: &[&str] = &[
            "array_agg",
            "avg",
            "bool_and",
            "bool_or",
            "count",
            "every",
            "first_value",
            "json_agg",
            "json_object_agg",
            "jsonb_agg",
            "max",
            "min",
            "string_agg",
            "sum",
        ];
        match expr {
            Expr::Function(function) if self.depth == 0 && function.over.is_none() => {
                let name = function.name.0.last().and_then(ObjectNamePart::as_ident).map(fold).unwrap_or_default();
                if KNOWN.contains(&name.as_str()) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn empty(select: &mut Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
        if !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_)) {
            *expr = null();
        }
    }
    select.selection = Some(truth(false));
    select.distinct = None;
    select.having = None;
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
}
