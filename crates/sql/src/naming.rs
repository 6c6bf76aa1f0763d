//! Names of the columns of a result: as the query writes them, and the same name as often as the query has it.
//!
//! The query library names an expression after its own notation (`Int64(1)`) and refuses a name that comes twice. So
//! every expression without a name gets its own text as name, and what comes twice a number that is taken off again
//! when the result is shown.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SelectItem, SetExpr, Statement};

use crate::statement::{fold, ident};

/// Stands between a name and its number.
const MARK: &str = "__counterfoil_again_";

/// Names the columns of a query.
pub(crate) fn name_columns(statement: &mut Statement) {
    if let Statement::Query(query) = statement {
        name_query(query);
    }
}

/// Names the columns of a query.
pub(crate) fn name_query(query: &mut Query) {
    let mut body = query.body.as_mut();
    loop {
        match body {
            SetExpr::Select(select) => return name_items(select),
            SetExpr::Query(inner) => return name_query(inner),
            SetExpr::SetOperation { left, .. } => body = left.as_mut(),
            _ => return,
        }
    }
}

fn name_items(select: &mut Select) {
    let mut seen = HashSet::new();
    for item in &mut select.projection {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => (None, fold(name)),
            // Columns of two tables may well have one name: the library tells them apart by their tables.
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
                let whole = names.iter().map(fold).collect::<Vec<_>>().join("\0");
                if seen.insert(whole) {
                    continue;
                }
                (None, names.last().map(fold).unwrap_or_default())
            }
            SelectItem::UnnamedExpr(expr) => (Some(expr.clone()), expr.to_string()),
            SelectItem::ExprWithAlias { alias, .. } => (None, fold(alias)),
            _ => continue,
        };
        let again = !seen.insert(name.clone());
        let alias = if again { format!("{name}{MARK}{}", seen.len()) } else { name };
        if again {
            seen.insert(alias.clone());
        }
        match item {
            SelectItem::UnnamedExpr(inner) if expr.is_some() || again => {
                *item = SelectItem::ExprWithAlias { expr: inner.clone(), alias: ident(&alias) };
            }
            SelectItem::ExprWithAlias { alias: name, .. } if again => *name = ident(&alias),
            _ => {}
        }
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
