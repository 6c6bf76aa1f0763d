//! What asyncpg asks of the types of a result that it does not know: a tree of types, each below those that are made of it.
//!
//! PostgreSQL's types nest as deep as anybody likes, so it asks by WITH RECURSIVE, in which every level looks at all types again.
//! Here only arrays are made of others, and of such that are made of nothing: the tree is two levels deep.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Query, Statement, visit_expressions};

use crate::statement::{fold, parse};

/// The name of the tree in the question.
const TREE: &str = "typeinfo_tree";

/// The question in the words that it has here, if it is that question.
pub(super) fn adapt(statement: &Statement) -> Option<Statement> {
    let Statement::Query(query) = statement else { return None };
    let wanted = wanted(query)?;
    let sql = format!(
        "SELECT t.oid, n.nspname AS ns, t.typname AS name, t.typtype AS kind, NULL::oid AS basetype, t.typelem AS elemtype,
            e.typdelim AS elemdelim, NULL::oid AS range_subtype, NULL::oid[] AS attrtypoids, NULL::text[] AS attrnames,
            CASE WHEN t.oid = ANY ({wanted}) THEN 0 ELSE 1 END AS depth, NULL::text AS basetype_name,
            t.typelem::regtype::text AS elemtype_name, NULL::text AS range_subtype_name
        FROM pg_catalog.pg_type t
            JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
            LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND t.typlen = -1
        WHERE t.oid = ANY ({wanted}) OR t.oid IN (SELECT typelem FROM pg_catalog.pg_type WHERE oid = ANY ({wanted}))
        ORDER BY depth DESC, t.oid"
    );
    parse(&sql).ok()?.pop()
}

/// The types that are asked for, as they are written.
fn wanted(query: &Query) -> Option<String> {
    let tree = query.with.as_ref()?.cte_tables.first()?;
    if fold(&tree.alias.name) != TREE {
        return None;
    }
    let found = visit_expressions(&tree.query, |expr: &Expr| match expr {
        Expr::AnyOp { compare_op: BinaryOperator::Eq, right, .. } if matches!(right.as_ref(), Expr::Cast { .. }) => {
            ControlFlow::Break(right.to_string())
        }
        _ => ControlFlow::Continue(()),
    });
    found.break_value()
}
