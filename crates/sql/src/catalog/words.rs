//! Statements about the catalogue, in words that the query library reads.
//!
//! | PostgreSQL | here |
//! |---|---|
//! | `pg_catalog.f(x)`, `x OPERATOR(pg_catalog.~) y`, `x::pg_catalog.text` | without the schema |
//! | `x COLLATE "default"`, `"C"` | `x`: texts compare byte by byte anyway |
//! | `generate_subscripts(x, 1)`, `(_pg_expandarray(x)).n` | a list of places, unnested |
//! | `x = ANY ('{a,b}')`, `x <> ALL (ARRAY[...])` | `x IN (...)`, `x NOT IN (...)` |
//! | `f(x) AS i` in FROM, and `i` a value | a column `i` of it |

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName,
    ObjectNamePart, SelectItem, SetExpr, Statement, TableFactor, Value as Literal, Visit, VisitMut, Visitor,
    VisitorMut,
};

use super::functions_list::{AS_TEXT, REGCLASS, REGNAMESPACE, REGROLE, REGTYPE, SUBSCRIPTS};
use super::{SCHEMA, casts, constants, from, introspection, is_table, nothing, subqueries};
use crate::dialect::call;
use crate::error::{Error, Result};
use crate::statement::{fold, object};

/// What the session has been told, and may do.
#[derive(Debug, Default)]
pub(crate) struct Said {
    settings: Vec<(String, String)>,
    /// Whether it may change anything.
    pub writes: bool,
}

impl Said {
    pub fn new(settings: Vec<(String, String)>, writes: bool) -> Self {
        Said { settings, writes }
    }

    /// All settings, by name.
    pub fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// A setting by name, however it is written.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Puts a statement into words that the query library reads. `is_ours`: whether a name without a schema is that of a table or view
/// of the database, which then is meant.
///
/// # Errors
/// [`Error::NotFound`] for settings that are not there.
pub(crate) fn adapt(statement: &mut Statement, said: &Said, is_ours: &dyn Fn(&str) -> bool) -> Result<()> {
    let mut about = About::default();
    let _ = Visit::visit(statement, &mut about);
    if about.is_catalog {
        if let Some(other) = introspection::adapt(statement) {
            *statement = other;
        }
        about.bare.retain(|name| is_ours(name));
        nothing::prune(statement, &about.bare);
        subqueries::adapt(statement);
    }
    let mut words = Words { said, about };
    if let ControlFlow::Break(error) = VisitMut::visit(statement, &mut words) {
        return Err(error);
    }
    if let Statement::Query(query) = statement {
        show_names(&mut query.body);
    }
    Ok(())
}

/// Whether a statement that was adapted calls a function that answers from what the database holds.
pub(crate) fn wants_facts(statement: &Statement) -> bool {
    const WANTING: &[&str] = &[
        "pg_get_indexdef",
        "pg_get_constraintdef",
        "pg_get_viewdef",
        "pg_get_serial_sequence",
        "current_setting",
        "to_regclass",
        "has_table_privilege",
        "has_any_column_privilege",
        "has_column_privilege",
        "has_schema_privilege",
        "has_database_privilege",
    ];
    let found = datafusion::sql::sqlparser::ast::visit_expressions(statement, |expr: &Expr| match expr {
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            let name = name.trim_matches('"');
            match name.starts_with(REGCLASS) || WANTING.contains(&name) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// What a statement is about.
#[derive(Default)]
struct About {
    /// It names a table of the catalogue, or of the standard's.
    is_catalog: bool,
    /// Tables of the catalogue that it names without their schema.
    bare: HashSet<String>,
    /// It calls `_pg_expandarray`, whose answer has parts `x` and `n`.
    expands: bool,
}

impl Visitor for About {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        let parts: Vec<String> = name.0.iter().filter_map(ObjectNamePart::as_ident).map(fold).collect();
        self.is_catalog |= match parts.as_slice() {
            [name] => {
                is_table(name) && {
                    self.bare.insert(name.clone());
                    true
                }
            }
            [.., schema, _] => schema == SCHEMA || schema == crate::INFORMATION,
            [] => false,
        };
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.expands |= matches!(expr, Expr::Function(function) if expanded(function).is_some());
        ControlFlow::Continue(())
    }
}

/// The argument of `_pg_expandarray`.
fn expanded(function: &Function) -> Option<&Expr> {
    let name = function.name.0.last()?.as_ident()?;
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] if fold(name) == "_pg_expandarray" => Some(expr),
        _ => None,
    }
}

struct Words<'a> {
    said: &'a Said,
    about: About,
}

impl VisitorMut for Words<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if self.about.expands
            && let Some(other) = part(expr)
        {
            *expr = other;
        }
        // Nobody can say anything about a row of the catalogue, which is all that this is asked for.
        if self.about.is_catalog
            && matches!(expr, Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|name| fold(name) == "tableoid"))
        {
            *expr = Expr::Value(Literal::Null.into());
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        if let Expr::Function(function) = expr {
            without_schema(&mut function.name);
        }
        match constants::folded(expr, self.said) {
            Err(error) => return ControlFlow::Break(error),
            Ok(Some(other)) => *expr = other,
            Ok(None) => {
                if let Some(other) = casts::rewritten(expr).or_else(|| rewritten(expr)) {
                    *expr = other;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        match from::in_from(factor, self.said) {
            Err(error) => return ControlFlow::Break(error),
            Ok(Some(other)) => *factor = other,
            Ok(None) => {}
        }
        ControlFlow::Continue(())
    }
}

/// `pg_catalog.f` is `f`.
pub(super) fn without_schema(name: &mut ObjectName) {
    if let [schema, _] = name.0.as_slice()
        && schema.as_ident().is_some_and(|schema| fold(schema) == SCHEMA)
    {
        name.0.remove(0);
    }
}

/// A part of what `_pg_expandarray` answers: `x` is the value, `n` its place.
fn part(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::CompoundFieldAccess { root, access_chain } => {
            let [AccessExpr::Dot(Expr::Identifier(field))] = access_chain.as_slice() else { return None };
            let (Expr::Nested(inner), field) = (root.as_ref(), fold(field)) else { return None };
            match (inner.as_ref(), field.as_str()) {
                (Expr::Function(function), "n") => {
                    let one = Expr::Value(Literal::Number("1".into(), false).into());
                    Some(call("generate_subscripts", vec![expanded(function)?.clone(), one]))
                }
                (Expr::Function(function), "x") => Some(call("unnest", vec![expanded(function)?.clone()])),
                (Expr::CompoundIdentifier(_), "x") => Some(inner.as_ref().clone()),
                _ => None,
            }
        }
        Expr::Function(function) => Some(call("unnest", vec![expanded(function)?.clone()])),
        _ => None,
    }
}

fn rewritten(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Collate { expr, collation } => {
            let name = fold(collation.0.last()?.as_ident()?);
            matches!(name.as_str(), "default" | "C" | "c" | "POSIX" | "posix").then(|| expr.as_ref().clone())
        }
        Expr::BinaryOp { left, op: BinaryOperator::PGCustomBinaryOperator(parts), right } => {
            let [schema, name] = parts.as_slice() else { return None };
            let op = if schema.eq_ignore_ascii_case(SCHEMA) { operator(name)? } else { return None };
            Some(Expr::BinaryOp { left: left.clone(), op, right: right.clone() })
        }
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => among(left, right, false),
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => among(left, right, true),
        Expr::Function(function) => called(function),
        Expr::Identifier(name) if name.quote_style.is_none() && fold(name) == "current_role" => {
            Some(call("current_user", Vec::new()))
        }
        _ => None,
    }
}

fn operator(name: &str) -> Option<BinaryOperator> {
    Some(match name {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// Whether a value is among those of a list that is written out.
fn among(left: &Expr, right: &Expr, negated: bool) -> Option<Expr> {
    let list = match right {
        Expr::Array(Array { elem, .. }) => elem.clone(),
        Expr::Nested(inner) => return among(left, inner, negated),
        other => casts::texts_in(other)?,
    };
    if list.is_empty() {
        return Some(Expr::Value(Literal::Boolean(negated).into()));
    }
    Some(Expr::InList { expr: Box::new(left.clone()), list, negated })
}

fn called(function: &Function) -> Option<Expr> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let arguments = match &function.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    let first = match arguments.first() {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))) => Some(expr.clone()),
        _ => None,
    };
    match (fold(name).as_str(), arguments.len()) {
        ("user" | "current_role", 0) => Some(call("current_user", Vec::new())),
        // What answers rows among columns.
        ("generate_subscripts", 2) => Some(call("unnest", vec![call(SUBSCRIPTS, vec![first?])])),
        ("pg_partition_ancestors", 1) if name.quote_style.is_none() => {
            Some(call("unnest", vec![call("pg_partition_ancestors", vec![first?])]))
        }
        _ => None,
    }
}

/// Numbers of objects are shown as names, where nothing is done with them.
fn show_names(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { continue };
                if let Expr::Function(function) = expr
                    && let Some(name) = as_text(function)
                {
                    function.name = object(&name);
                }
            }
        }
        SetExpr::Query(query) => show_names(&mut query.body),
        SetExpr::SetOperation { left, right, .. } => {
            show_names(left);
            show_names(right);
        }
        _ => {}
    }
}

/// The function that answers as text what this one answers as a number.
pub(super) fn as_text(function: &Function) -> Option<String> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    [REGCLASS, REGTYPE, REGNAMESPACE, REGROLE]
        .contains(&name.value.as_str())
        .then(|| format!("{}{AS_TEXT}", name.value))
}
