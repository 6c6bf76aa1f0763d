//! Where the query library and PostgreSQL differ, and what is done about it.

use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::sql::sqlparser::ast::{Expr, Statement};

/// Adds our functions and rules to a session of the query library.
pub(crate) fn register(state: SessionStateBuilder) -> SessionStateBuilder {
    state
}

/// Rewrites what PostgreSQL writes and the query library does not read.
pub(crate) fn rewrite(_statement: &mut Statement) {}

/// As [`rewrite`], for one expression.
pub(crate) fn rewrite_expr(_expr: &mut Expr) {}
