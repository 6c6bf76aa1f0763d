//! Queries inside of queries about the catalogue, in the forms that the query library plans.
//!
//! | PostgreSQL | here |
//! |---|---|
//! | `(SELECT x FROM t WHERE t.a = outer.a)` | `(SELECT min(x) ...)`: one row, without having to know that there is no more |
//! | `(SELECT f(outer.b, x) FROM t WHERE t.a = outer.a AND outer.c)` | `CASE WHEN outer.c THEN f(outer.b, (SELECT x ...)) END` |
//! | `ARRAY(SELECT x FROM t ORDER BY x)` | `(SELECT array_agg(x ORDER BY x) FROM t)` |
//! | `x IN (SELECT y ...)` among columns, and in the conditions of CASE | `array_has((SELECT array_agg(y) ...), x)` |
//! | `EXISTS (SELECT ...)` in these places | `(SELECT count(*) ...) > 0` |

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    GroupByExpr, ObjectNamePart, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, TableWithJoins, UnaryOperator, Value as Literal, VisitMut, VisitorMut,
    visit_expressions, visit_expressions_mut,
};

use super::functions_list::JSON;
use super::nothing::has_aggregate;
use crate::change;
use crate::dialect::call;
use crate::statement::{fold, ident};

/// Rewrites the subqueries of a statement.
pub(super) fn adapt(statement: &mut Statement) {
    let _ = VisitMut::visit(statement, &mut Subqueries);
}

struct Subqueries;

impl VisitorMut for Subqueries {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // What is JSON must be told as it from outside: it is lost on the way through a subquery.
        for item in &mut select.projection {
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
            condition(expr);
            if !matches!(expr, Expr::Function(_)) && makes_json(expr) {
                *expr = call(JSON, vec![expr.clone()]);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Subquery(query) => {
                if let Some(other) = one_row(query) {
                    *expr = other;
                }
            }
            Expr::Function(Function { name, args: FunctionArguments::Subquery(query), .. })
                if name.to_string().eq_ignore_ascii_case("array") =>
            {
                if let Some(query) = gathered(query) {
                    *expr = Expr::Subquery(Box::new(query));
                }
            }
            Expr::Case { conditions, .. } => {
                conditions.iter_mut().for_each(|when| condition(&mut when.condition));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn makes_json(expr: &Expr) -> bool {
    let found = visit_expressions(expr, |expr: &Expr| match expr {
        Expr::Function(function) if function.name.to_string().ends_with("json_build_object") => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// The select of a query that has nothing else, and the one expression that it answers.
fn plain(query: &mut Query) -> Option<&mut Select> {
    let Query { with: None, body, limit_clause: None, fetch: None, .. } = query else { return None };
    let SetExpr::Select(select) = body.as_mut() else { return None };
    let by_nothing = matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    (by_nothing && select.having.is_none() && select.distinct.is_none() && !select.from.is_empty()).then_some(select)
}

/// A query that answers one value: what of it the query around it decides is put outside, as the query library joins the two by
/// what is equal in both.
fn one_row(query: &mut Query) -> Option<Expr> {
    let select = plain(query)?;
    let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] = select.projection.as_slice()
    else {
        return None;
    };
    let (mut value, names) = (value.clone(), names(&select.from));
    let is_outer = Sides::of(&value, &names).outer;
    // What is put outside is asked for once a column: it must not hold queries itself, or they would grow with every level.
    if has_aggregate(&value) || (is_outer && has_queries(query)) {
        return None;
    }
    let select = plain(query)?;
    let (outer, inner): (Vec<Expr>, Vec<Expr>) = conjuncts(select.selection.take())
        .into_iter()
        .partition(|condition| Sides::of(condition, &names).is_outer_alone());
    select.selection = joined(inner);
    query.order_by = None;
    let of = |value: &Expr| {
        let mut query = query.clone();
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![SelectItem::UnnamedExpr(value.clone())];
        }
        Expr::Subquery(Box::new(query))
    };
    let least = |value: &Expr| of(&call("min", vec![value.clone()]));
    if !is_outer {
        let answer = least(&value);
        return Some(match joined(outer) {
            Some(condition) => case(condition, answer),
            None => answer,
        });
    }
    let _ = visit_expressions_mut(&mut value, |expr: &mut Expr| {
        if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) && Sides::of(expr, &names).inner {
            *expr = least(expr);
        }
        ControlFlow::<()>::Continue(())
    });
    let some = Expr::BinaryOp { left: Box::new(of(&count())), op: BinaryOperator::Gt, right: Box::new(zero()) };
    Some(case(joined(outer.into_iter().chain([some]).collect()).unwrap_or_else(|| value.clone()), value))
}

/// Whether a query has queries of its own.
fn has_queries(query: &Query) -> bool {
    let SetExpr::Select(select) = query.body.as_ref() else { return true };
    let is_query = |expr: &Expr| match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let is_table = |factor: &TableFactor| matches!(factor, TableFactor::Table { .. });
    let plain = select
        .from
        .iter()
        .all(|from| is_table(&from.relation) && from.joins.iter().all(|join| is_table(&join.relation)));
    !plain || visit_expressions(query, is_query).is_break()
}

fn case(condition: Expr, result: Expr) -> Expr {
    let conditions = vec![CaseWhen { condition, result }];
    let (case_token, end_token) = (AttachedToken::empty(), AttachedToken::empty());
    Expr::Case { case_token, end_token, operand: None, conditions, else_result: None }
}

/// What stands between the ANDs of a condition.
fn conjuncts(condition: Option<Expr>) -> Vec<Expr> {
    match condition {
        None => Vec::new(),
        Some(Expr::BinaryOp { left, op: BinaryOperator::And, right }) => {
            let mut all = conjuncts(Some(*left));
            all.extend(conjuncts(Some(*right)));
            all
        }
        Some(Expr::Nested(inner)) => conjuncts(Some(*inner)),
        Some(other) => vec![other],
    }
}

fn joined(conditions: Vec<Expr>) -> Option<Expr> {
    let nested = conditions.into_iter().map(|condition| Expr::Nested(Box::new(condition)));
    nested.reduce(|all, one| Expr::BinaryOp { left: Box::new(all), op: BinaryOperator::And, right: Box::new(one) })
}

/// What tables are called in FROM.
fn names(from: &[TableWithJoins]) -> HashSet<String> {
    let factors = from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let name = |factor: &TableFactor| match factor {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. } => Some(fold(&alias.name)),
        TableFactor::Table { name, .. } => name.0.last().and_then(ObjectNamePart::as_ident).map(fold),
        _ => None,
    };
    factors.filter_map(name).collect()
}

/// Of which sides an expression names columns: of the query that it stands in, or of one around it. A column without a table is
/// taken for one of its own.
#[derive(Default)]
struct Sides {
    inner: bool,
    outer: bool,
}

impl Sides {
    fn of(expr: &Expr, names: &HashSet<String>) -> Self {
        let mut sides = Sides::default();
        let _ = visit_expressions(expr, |expr: &Expr| {
            match expr {
                Expr::CompoundIdentifier(parts) if parts.len() > 1 => {
                    let own = names.contains(&fold(&parts[parts.len() - 2]));
                    sides.inner |= own;
                    sides.outer |= !own;
                }
                Expr::Identifier(_) | Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                    sides.inner = true
                }
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        });
        sides
    }

    fn is_outer_alone(&self) -> bool {
        self.outer && !self.inner
    }
}

/// A query whose rows are gathered into a list.
fn gathered(query: &Query) -> Option<Query> {
    let mut query = query.clone();
    let order = query.order_by.take();
    let select = plain(&mut query)?;
    let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] = select.projection.as_mut_slice()
    else {
        return None;
    };
    let mut list = call("array_agg", vec![expr.clone()]);
    if let (Expr::Function(Function { args: FunctionArguments::List(arguments), .. }), Some(order)) = (&mut list, order)
    {
        arguments.clauses.push(FunctionArgumentClause::OrderBy(by_value(order, expr)?));
    }
    *expr = list;
    Some(query)
}

/// `ORDER BY 1` is by the one column.
fn by_value(order: OrderBy, value: &Expr) -> Option<Vec<datafusion::sql::sqlparser::ast::OrderByExpr>> {
    let OrderByKind::Expressions(mut by) = order.kind else { return None };
    for by in &mut by {
        if matches!(&by.expr, Expr::Value(number) if matches!(&number.value, Literal::Number(_, _))) {
            by.expr = value.clone();
        }
    }
    Some(by)
}

/// IN and EXISTS where the query library wants none.
fn condition(expr: &mut Expr) {
    match expr {
        Expr::Nested(inner) => condition(inner),
        Expr::BinaryOp { left, right, .. } => {
            condition(left);
            condition(right);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => condition(expr),
        Expr::InSubquery { expr: value, subquery, negated } => {
            let has = call("array_has", vec![list_of(subquery), value.as_ref().clone()]);
            *expr = match negated {
                true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(has) },
                false => has,
            };
        }
        Expr::Exists { subquery, negated } => {
            if let Some(counted) = counted(subquery, *negated) {
                *expr = counted;
            }
        }
        _ => {}
    }
}

/// Whether a query answers rows: how many there are.
fn counted(query: &Query, negated: bool) -> Option<Expr> {
    let mut query = query.clone();
    plain(&mut query)?.projection = vec![SelectItem::UnnamedExpr(count())];
    query.order_by = None;
    let op = if negated { BinaryOperator::Eq } else { BinaryOperator::Gt };
    Some(Expr::BinaryOp { left: Box::new(Expr::Subquery(Box::new(query))), op, right: Box::new(zero()) })
}

fn count() -> Expr {
    let mut count = call("count", Vec::new());
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut count {
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
    }
    count
}

fn zero() -> Expr {
    Expr::Value(Literal::Number("0".into(), false).into())
}

/// `(SELECT array_agg(value) FROM (query) AS list (value))`
fn list_of(query: &Query) -> Expr {
    let name = ident("__counterfoil_list");
    let column = TableAliasColumnDef { name: ident("value"), data_type: None };
    let alias = TableAlias { explicit: true, name, columns: vec![column], at: None };
    let relation =
        TableFactor::Derived { lateral: false, subquery: Box::new(query.clone()), alias: Some(alias), sample: None };
    let item = SelectItem::UnnamedExpr(call("array_agg", vec![Expr::Identifier(ident("value"))]));
    let from = vec![TableWithJoins { relation, joins: Vec::new() }];
    Expr::Subquery(Box::new(change::select(None, vec![item], from, None)))
}
