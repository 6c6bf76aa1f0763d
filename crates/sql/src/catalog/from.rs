//! Functions in FROM: what is called `i` there and answers one column is a value called `i` as well.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectNamePart, SelectItem, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, WildcardAdditionalOptions, visit_expressions,
};

use super::words::{Said, without_schema};
use super::{SCHEMA, constants};
use crate::change;
use crate::dialect::call;
use crate::error::Result;
use crate::evaluate;
use crate::statement::{fold, ident};

/// Functions in FROM.
pub(super) fn in_from(factor: &mut TableFactor, said: &Said) -> Result<Option<TableFactor>> {
    match factor {
        TableFactor::Table { name, alias, args: Some(args), with_ordinality: false, .. } => {
            without_schema(name);
            let [ObjectNamePart::Identifier(function)] = name.0.as_slice() else { return Ok(None) };
            let function = fold(function);
            match function.as_str() {
                "pg_get_keywords" => Ok(Some(table_of(&function, alias.clone()))),
                "generate_series" => {
                    column_too(alias);
                    Ok(None)
                }
                "string_to_array" | "current_schemas" | "current_database" | "current_schema" | "version" => {
                    let own = || alias_of(ident(&function));
                    let alias = alias.clone().unwrap_or_else(own);
                    let arguments = args.args.iter().filter_map(|argument| match argument {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                        _ => None,
                    });
                    let value = call(&function, arguments.collect());
                    let value = constants::folded(&value, said)?.unwrap_or(value);
                    Ok(Some(derived(value, alias)))
                }
                _ => Ok(None),
            }
        }
        TableFactor::UNNEST { alias, with_ordinality: false, with_offset: false, .. } => {
            column_too(alias);
            Ok(None)
        }
        TableFactor::Table { args: Some(_), with_ordinality: true, .. }
        | TableFactor::UNNEST { with_offset: false, with_ordinality: true, .. } => Ok(numbered(factor.clone())),
        _ => Ok(None),
    }
}

/// WITH ORDINALITY: the rows of a function that answers one column, and their numbers. None for what is no such function.
fn numbered(mut function: TableFactor) -> Option<TableFactor> {
    let (called, alias) = match &mut function {
        TableFactor::Table { name, alias, with_ordinality, .. } => {
            *with_ordinality = false;
            (ident(&fold(name.0.last()?.as_ident()?)), alias)
        }
        TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } if array_exprs.len() == 1 => {
            *with_ordinality = false;
            (ident("unnest"), alias)
        }
        _ => return None,
    };
    let mut outside = alias.take().unwrap_or_else(|| alias_of(called));
    if outside.columns.is_empty() {
        outside.columns.push(TableAliasColumnDef { name: outside.name.clone(), data_type: None });
    }
    if outside.columns.len() == 1 {
        outside.columns.push(TableAliasColumnDef { name: ident("ordinality"), data_type: None });
    }
    // Who names a column there means one of the query around it.
    let lateral = visit_expressions(&function, |expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    let items = evaluate::parse("row_number() OVER ()").ok()?;
    let items = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default()), SelectItem::UnnamedExpr(items)];
    let from = vec![TableWithJoins { relation: function, joins: Vec::new() }];
    let subquery = Box::new(change::select(None, items, from, None));
    Some(TableFactor::Derived { lateral: lateral.is_break(), subquery, alias: Some(outside), sample: None })
}

/// A table of the catalogue in FROM.
fn table_of(name: &str, alias: Option<TableAlias>) -> TableFactor {
    let alias = alias.unwrap_or_else(|| alias_of(ident(name)));
    let mut table = crate::planner::select_from(name, &fold(&alias.name)).relation;
    if let TableFactor::Table { name, alias: own, .. } = &mut table {
        name.0.insert(0, ObjectNamePart::Identifier(ident(SCHEMA)));
        *own = Some(alias);
    }
    table
}

/// What is called `i` in FROM and has one column is a value called `i` as well.
fn column_too(alias: &mut Option<TableAlias>) {
    if let Some(alias) = alias
        && alias.columns.is_empty()
    {
        alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

fn alias_of(name: Ident) -> TableAlias {
    TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// One value as a table.
fn derived(value: Expr, alias: TableAlias) -> TableFactor {
    let column = alias.columns.first().map_or_else(|| alias.name.clone(), |column| column.name.clone());
    let item = SelectItem::ExprWithAlias { expr: value, alias: column };
    let subquery = Box::new(change::select(None, vec![item], Vec::new(), None));
    TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None }
}
