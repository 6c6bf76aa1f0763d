//! Names of the columns of a result: as the query writes them, and the same name as often as the query has it.
//!
//! The query library names an expression after its own notation (`Int64(1)`) and refuses a name that comes twice. So
//! every expression without a name gets its own text as name, and what comes twice a number that is taken off again
//! when the result is shown.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Query, Select, SelectItem, SetExpr, Statement,
    TableAlias, TableAliasColumnDef, Value, visit_expressions, visit_expressions_mut,
};

use crate::dialect;
use crate::figured;
use crate::statement::{fold, ident};

/// Stands between a name and its number.
const MARK: &str = "__counterfoil_again_";

/// How columns are called that the query gives no name to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Names {
    /// As the query writes them: `count(*)`.
    #[default]
    Written,
    /// As PostgreSQL calls them: `count`.
    Figured,
}

impl Names {
    /// What a column is called that is this expression.
    pub(crate) fn of(self, expr: &Expr) -> String {
        match self {
            Names::Written => expr.to_string(),
            Names::Figured => figured::name(expr),
        }
    }
}

/// Names the columns of a query.
pub(crate) fn name_columns(statement: &mut Statement, names: Names) {
    if let Statement::Query(query) = statement {
        name_query(query, names);
    }
}

/// Names the columns of a query.
pub(crate) fn name_query(query: &mut Query, names: Names) {
    let mut body = query.body.as_mut();
    loop {
        match body {
            SetExpr::Select(select) => return name_items(select, names),
            SetExpr::Query(inner) => return name_query(inner, names),
            SetExpr::SetOperation { left, .. } => body = left.as_mut(),
            _ => return,
        }
    }
}

fn name_items(select: &mut Select, names: Names) {
    let wild = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let wildcard = select.projection.iter().any(wild);
    let mut seen = HashSet::new();
    for (place, item) in select.projection.iter_mut().enumerate() {
        let (is_column, name) = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => (true, fold(name)),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
                (true, names.last().map(fold).unwrap_or_default())
            }
            SelectItem::UnnamedExpr(expr) => (false, names.of(expr)),
            SelectItem::ExprWithAlias { alias, .. } => (true, fold(alias)),
            _ => continue,
        };
        // Beside a star, any column may come twice.
        let again = !seen.insert(name.clone()) || (wildcard && is_column);
        let alias = if again { format!("{name}{MARK}{place}") } else { name };
        match item {
            SelectItem::UnnamedExpr(inner) if again || !is_column => {
                *item = SelectItem::ExprWithAlias { expr: inner.clone(), alias: ident(&alias) };
            }
            SelectItem::ExprWithAlias { alias: name, .. } if again && !wildcard => *name = ident(&alias),
            _ => {}
        }
    }
}

/// A function in FROM that answers one column: that has the name which the function has there, its own if no other is given.
pub(crate) fn name_function(alias: &mut Option<TableAlias>, function: &str) {
    let own = || TableAlias { explicit: true, name: ident(function), columns: Vec::new(), at: None };
    let alias = alias.get_or_insert_with(own);
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

/// Gives function calls that differ in their casts only another form each. The query library leaves casts out of names,
/// so that `avg(x)` and `avg(x::REAL)` would be one column. `coalesce` of one value is that value.
pub(crate) fn tell_casts_apart(query: &mut Query) {
    let mut calls: HashMap<String, Vec<String>> = HashMap::new();
    let mut has_cast = false;
    let _ = visit_expressions(query, |expr: &Expr| {
        has_cast |= matches!(expr, Expr::Cast { .. });
        if has_cast { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if !has_cast {
        return;
    }
    let _ = visit_expressions_mut(query, |expr: &mut Expr| {
        if !matches!(expr, Expr::Function(_)) {
            return ControlFlow::<()>::Continue(());
        }
        let (text, bare) = (expr.to_string(), castless(expr));
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let Some(argument) = first_argument(function) else { return ControlFlow::Continue(()) };
        let seen = calls.entry(bare).or_default();
        let place = seen.iter().position(|other| *other == text).unwrap_or(seen.len());
        if place == seen.len() {
            seen.push(text);
        }
        for _ in 0..place {
            *argument = dialect::call("coalesce", vec![argument.clone()]);
        }
        ControlFlow::Continue(())
    });
}

/// The text of an expression without its casts.
fn castless(expr: &Expr) -> String {
    let mut bare = expr.clone();
    let _ = visit_expressions_mut(&mut bare, |expr: &mut Expr| {
        while let Expr::Cast { expr: inner, .. } = expr {
            *expr = std::mem::replace(inner, Expr::Value(Value::Null.into()));
        }
        ControlFlow::<()>::Continue(())
    });
    bare.to_string()
}

fn first_argument(function: &mut Function) -> Option<&mut Expr> {
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match list.args.first_mut() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))) => Some(expr),
        _ => None,
    }
}

/// The schema as it is shown.
pub(crate) fn shown(schema: &SchemaRef) -> SchemaRef {
    if !schema.fields().iter().any(|field| field.name().contains(MARK)) {
        return schema.clone();
    }
    let fields = schema.fields().iter().map(|field| {
        let name = field.name().split(MARK).next().unwrap_or_default().to_owned();
        field.as_ref().clone().with_name(name)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
